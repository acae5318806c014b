//! The framework for controllers that couple a connection's paths: each path
//! does slow start as if it were alone (RFC 6356, section 3); after that the
//! increase depends on all of them. The increase, and the decrease where it
//! differs from Reno's, is a [`Coupling`].
//!
//! With one path every coupling here is Reno. It uses floating point where
//! Linux scales integers: only sums, products and quotients, which give the
//! same result on every machine.

use crate::loss_based::Growth;
use crate::window::Window;
use crate::{Connection, Peer};
use std::fmt::Debug;

/// Largest number of paths of a connection; further ones are ignored. As in knee-sched.
const PATHS_MAX: usize = 32;

/// A path as the couplings see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Congestion window, in segments of the path that asks.
    pub(crate) window: f64,
    /// Smoothed RTT in seconds.
    pub(crate) rtt: f64,
    /// Bytes acknowledged between losses, see [`Peer::loss_interval`].
    pub(crate) loss_interval: f64,
}

impl Path {
    /// Stands for this path while no path is known: the formulas depend only
    /// on ratios between paths.
    const ALONE: Path = Path { window: 1.0, rtt: 1.0, loss_interval: 0.0 };

    /// Segments per second.
    pub(crate) fn rate(&self) -> f64 {
        self.window / self.rtt
    }
}

/// The connection's paths with a known RTT, including this path.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// The first entry is this path.
    paths: [Path; PATHS_MAX],
    count: usize,
}

impl Paths {
    fn alone() -> Paths {
        Paths { paths: [Path::ALONE; PATHS_MAX], count: 1 }
    }

    fn show(&mut self, peers: &[Peer], own: usize, mss: u32) {
        (self.paths[0], self.count) = (Path::ALONE, 1);
        let known = |peer: &Peer| peer.srtt.as_nanos() > 0;
        if !peers.get(own).is_some_and(known) {
            return;
        }
        let others = peers.iter().enumerate().filter(|(path, _)| *path != own).map(|(_, p)| p);
        let counted = std::iter::once(&peers[own]).chain(others).filter(|p| known(p));
        self.count = 0;
        for (path, peer) in self.paths.iter_mut().zip(counted) {
            *path = Path {
                window: peer.window.max(1) as f64 / f64::from(mss),
                rtt: peer.srtt.as_secs_f64(),
                loss_interval: peer.loss_interval as f64,
            };
            self.count += 1;
        }
    }

    /// Updates this path's window, which may have changed since the peers were shown.
    fn set_own_window(&mut self, window: &Window) {
        self.paths[0].window = f64::from(window.segments);
    }

    /// Returns all paths that count, at least one.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> + Clone {
        self.paths[..self.count].iter()
    }

    /// Returns the number of paths.
    pub(crate) fn count(&self) -> f64 {
        self.count as f64
    }

    /// Returns the path of the controller that asks.
    pub(crate) fn own(&self) -> &Path {
        &self.paths[0]
    }

    /// Returns the sum of all paths' rates in segments per second.
    pub(crate) fn total_rate(&self) -> f64 {
        self.all().map(Path::rate).sum()
    }

    /// Returns the largest value of `of` over all paths.
    pub(crate) fn largest(&self, of: impl Fn(&Path) -> f64) -> f64 {
        self.all().map(of).fold(0.0, f64::max)
    }
}

/// How a connection's paths are coupled.
pub(crate) trait Coupling: Clone + Debug + Send + 'static {
    /// Segments by which this path's window grows per segment acknowledged on it in
    /// congestion avoidance; negative if it shrinks.
    fn increase(&self, paths: &Paths) -> f64;
    /// Fraction of this path's window by which a loss on it reduces the window.
    fn decrease(&self, _paths: &Paths) -> f64 {
        0.5
    }
    /// Smallest slow-start threshold, in segments, if there are several paths;
    /// with one path it is the 2 of RFC 5681.
    fn smallest_threshold(&self) -> u32 {
        2
    }
}

/// Growth of a window by a [`Coupling`].
#[derive(Clone, Debug)]
pub(crate) struct Coupled<C> {
    coupling: C,
    paths: Paths,
}

impl<C> Coupled<C> {
    pub(crate) fn new(coupling: C) -> Coupled<C> {
        Coupled { coupling, paths: Paths::alone() }
    }
}

impl<C: Coupling> Growth for Coupled<C> {
    const COUPLED: bool = true;

    fn peers(&mut self, peers: &[Peer], own: usize, mss: u32) {
        self.paths.show(peers, own, mss);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _connection: &Connection) {
        let mut rest = acked;
        if window.in_slow_start() {
            rest = window.slow_start(acked);
        }
        if rest > 0 {
            self.paths.set_own_window(window);
            window.advance(f64::from(rest) * self.coupling.increase(&self.paths));
        }
    }

    fn reduced(&mut self, window: &Window) -> u32 {
        self.paths.set_own_window(window);
        let kept = 1.0 - self.coupling.decrease(&self.paths);
        let several = self.paths.count > 1;
        let smallest = if several { self.coupling.smallest_threshold() } else { 2 };
        ((f64::from(window.segments) * kept) as u32).max(smallest)
    }
}
