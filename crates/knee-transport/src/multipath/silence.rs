//! Which paths have not been heard for too long.

use knee_sched::{PATHS_MAX, Path, PathSet};
use knee_units::Time;

/// Longest time for which a receiver holds an acknowledgement back (Linux's
/// delayed ACK, 40 ms).
const ACK_DELAY: Time = Time::from_millis(40);
/// Smallest part that the variation has in the probe timeout (RFC 9002,
/// section 6.2.1: the timer granularity).
const GRANULARITY: Time = Time::from_millis(1);

/// When each path was heard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence {
    /// Since when an answer is waited for; none: nothing was sent since it
    /// was last heard.
    waiting_since: [Option<Time>; PATHS_MAX],
    suspects: PathSet,
}

impl Silence {
    /// A path joins or leaves.
    pub fn reset(&mut self, path: usize) {
        self.waiting_since[path] = None;
        self.suspects.0 &= !(1 << path);
    }

    /// A packet left on the path.
    #[inline]
    pub fn on_sent(&mut self, now: Time, path: usize) {
        self.waiting_since[path].get_or_insert(now);
    }

    /// The path answered. If more is outstanding, the next answer is waited
    /// for from now on.
    #[inline]
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        self.waiting_since[path] = more_outstanding.then_some(now);
        self.suspects.0 &= !(1 << path);
    }

    /// Paths that were silent for too long.
    #[inline]
    pub fn suspects(&self) -> PathSet {
        self.suspects
    }

    #[inline]
    pub fn is_suspect(&self, path: usize) -> bool {
        self.suspects.contains(path)
    }

    /// When the first of some paths will have been silent for too long.
    #[inline]
    pub fn deadline(&self, paths: &[Path], among: PathSet) -> Time {
        let among = among.iter().take_while(|path| *path < paths.len());
        let each = among.filter_map(|path| self.deadline_of(path, paths));
        each.min().unwrap_or(Time::MAX)
    }

    /// 1.5 probe timeouts after the wait began (RFC 9002, section 6.2.1).
    fn deadline_of(&self, path: usize, paths: &[Path]) -> Option<Time> {
        let view = &paths[path];
        if view.in_flight == 0 || view.srtt == Time::ZERO || self.is_suspect(path) {
            return None;
        }
        let timeout = view.srtt + (view.rtt_variation * 4).max(GRANULARITY) + ACK_DELAY;
        Some(self.waiting_since[path]? + timeout + timeout / 2)
    }

    /// Finds a path that has been silent for too long and suspects it.
    pub fn take_silent(&mut self, now: Time, paths: &[Path]) -> Option<usize> {
        let silent = |path: &usize| self.deadline_of(*path, paths).is_some_and(|at| at <= now);
        let found = (0..paths.len()).find(silent)?;
        self.suspects.insert(found);
        Some(found)
    }
}
