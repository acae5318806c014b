//! SCTC in cycles: what is unsent at the beginning of a cycle is divided among the paths, and
//! nothing changes until it has arrived.

use super::{faster, highest_rate, unsent};
use crate::sched::{Decision, PATHS_MAX, PathSet, Place, View};
use std::cmp::Ordering;

/// Windows of all paths that a send buffer holds: Linux lets it grow to two of them
/// (`tcp_sndbuf_expand`, net/ipv4/tcp_input.c).
const BUFFER_WINDOWS: u64 = 2;

/// The cycle in progress.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    /// Whether a task is at most what a send buffer holds.
    send_buffer: bool,
    /// The paths that counted when it began.
    members: PathSet,
    parts: [Part; PATHS_MAX],
    /// Packets of the task that no path was given yet.
    left: u64,
}

/// What a path has to do in a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Window, packets, and RTT, nanoseconds, at the beginning of the cycle; zero if it has no part.
    window: u64,
    rtt: u64,
    /// Packets that it held by then.
    held: u64,
    /// Packets that it has still to be given.
    left: u64,
}

impl Part {
    /// Returns the packets that the path delivers by `time`, nanoseconds, beyond what it held.
    fn share(&self, time: u128) -> u128 {
        let windows = time.checked_div(u128::from(self.rtt)).unwrap_or(0);
        windows.saturating_mul(u128::from(self.window)).saturating_sub(u128::from(self.held))
    }
}

impl Cycle {
    pub fn new(send_buffer: bool) -> Cycle {
        Cycle { send_buffer, ..Cycle::default() }
    }

    pub fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.ready();
        let Some(quickest) = highest_rate(view, ready) else { return Decision::Wait };
        if self.is_over(view) {
            self.begin(view);
            if self.left == 0 {
                // No RTT is known: nothing can be divided.
                return Decision::Send(quickest, Place::Head);
            }
        }
        let able = ready.iter().filter(|path| self.parts[*path].left > 0);
        match able.min_by(|a, b| self.compare(*a, *b)) {
            Some(path) => {
                self.parts[path].left -= 1;
                self.left -= 1;
                Decision::Send(path, Place::Head)
            }
            None => view.wait_rather_than(quickest),
        }
    }

    /// Whether the task has arrived, or its division has lost its ground: a path came or went, or
    /// less waits than was divided.
    fn is_over(&self, view: &View<'_>) -> bool {
        let eligible = view.eligible();
        let is_done = || eligible.iter().all(|path| view.paths[path].in_flight == 0);
        self.members != eligible || self.left > unsent(view) || self.left == 0 && is_done()
    }

    fn begin(&mut self, view: &View<'_>) {
        self.members = view.eligible();
        self.parts = [Part::default(); PATHS_MAX];
        for path in self.members.iter().filter(|path| view.paths[*path].srtt.as_nanos() > 0) {
            self.parts[path] = Part {
                window: view.window_packets(path),
                rtt: view.paths[path].srtt.as_nanos(),
                held: view.paths[path].in_flight.div_ceil(view.mss),
                left: 0,
            };
        }
        let windows = self.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.window));
        let most = if self.send_buffer { windows.saturating_mul(BUFFER_WINDOWS) } else { u64::MAX };
        self.left = if windows > 0 { unsent(view).min(most) } else { 0 };
        self.divide();
    }

    /// Gives each path its part of what is left, so that all end as early as possible: the windows
    /// that end before that time, and of those that end then as many packets as remain, the first
    /// path first.
    fn divide(&mut self) {
        let Some(time) = self.earliest_end() else { return };
        let before = |part: &Part| part.share(time - 1) as u64;
        let mut rest = self.left - self.parts.iter().map(before).sum::<u64>();
        for part in &mut self.parts {
            let before = before(part);
            let last = rest.min((part.share(time) as u64).saturating_sub(before));
            part.left = before + last;
            rest -= last;
        }
    }

    /// Returns the least time by which the paths together deliver what is left; `None` if nothing
    /// is.
    fn earliest_end(&self) -> Option<u128> {
        let wanted = u128::from(self.left);
        let enough = |time: u128| {
            let shares = self.parts.iter().map(|part| part.share(time));
            shares.fold(0_u128, u128::saturating_add) >= wanted
        };
        let alone = self.parts.iter().filter(|part| part.window > 0).map(|part| {
            let windows = (self.left.saturating_add(part.held)).div_ceil(part.window);
            u128::from(windows) * u128::from(part.rtt)
        });
        let mut high = alone.min().filter(|_| self.left > 0)?;
        let mut low = 0;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.parts[a], &self.parts[b]);
        faster((a.window, a.rtt), (b.window, b.rtt))
    }
}
