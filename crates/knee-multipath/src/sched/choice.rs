//! Queries on a view shared by all schedulers: which paths count, which may
//! send, which is the fastest, and when waiting makes sense.

use crate::sched::{Decision, PATHS_MAX, Path, PathSet, Place, Status, View};
use knee_units::Rate;

impl Path {
    /// Returns the delivery rate: measured, or a window per RTT before that.
    pub(crate) fn throughput(&self) -> Rate {
        self.rate.unwrap_or_else(|| Rate::over(self.window, self.srtt))
    }

    /// Returns a key for sorting by speed: a path without an RTT sample (zero) is last.
    #[inline]
    fn speed_order(&self) -> u64 {
        self.srtt.as_nanos().wrapping_sub(1)
    }
}

impl View<'_> {
    /// Returns the paths that count. Only this function implements the rule:
    /// active ones; if there are none, backups (RFC 8684, section 3.3.8); if
    /// there are neither, the silent ones, since one that may still answer is
    /// better than a stall.
    #[inline]
    pub(crate) fn eligible(&self) -> PathSet {
        let [mut active, mut backup, mut suspect] = [PathSet::default(); 3];
        for (index, path) in self.paths.iter().take(PATHS_MAX).enumerate() {
            match path.status {
                Status::Active => active.insert(index),
                Status::Backup => backup.insert(index),
                Status::Suspect => suspect.insert(index),
                Status::Down => {}
            }
        }
        let mut sets = [active, backup, suspect].into_iter();
        sets.find(|set| !set.is_empty()).unwrap_or_default()
    }

    /// Returns the paths that count and may take a packet now.
    #[inline]
    pub(crate) fn ready(&self) -> PathSet {
        let mut ready = PathSet::default();
        for path in self.eligible().iter().filter(|path| self.paths[*path].ready) {
            ready.insert(path);
        }
        ready
    }

    /// Returns the fastest of the paths that count and may take a packet now.
    #[inline(always)]
    pub(crate) fn fastest_ready(&self) -> Option<usize> {
        // There is almost always an active path: then only active ones count.
        let (mut active, mut best) = (false, None);
        for (index, path) in self.paths.iter().enumerate() {
            if path.status == Status::Active {
                active = true;
                let order = path.speed_order();
                if path.ready && best.is_none_or(|(least, _)| order < least) {
                    best = Some((order, index));
                }
            }
        }
        if active { best.map(|(_, index)| index) } else { self.fastest_without_active() }
    }

    #[cold]
    fn fastest_without_active(&self) -> Option<usize> {
        self.fastest(self.ready())
    }

    /// Returns the path with the lowest smoothed RTT; the first of equals.
    #[inline]
    pub(crate) fn fastest(&self, among: PathSet) -> Option<usize> {
        among.iter().min_by_key(|path| self.paths[*path].speed_order())
    }

    /// Returns the decision of a scheduler that prefers to wait although `path`
    /// is ready. An acknowledgement must be on its way, or the scheduler would
    /// never be called again: if nothing is in flight on the paths that count,
    /// `path` sends.
    pub(crate) fn wait_rather_than(&self, path: usize) -> Decision {
        if self.eligible().iter().any(|other| self.paths[other].in_flight > 0) {
            Decision::Wait
        } else {
            Decision::Send(path, Place::Head)
        }
    }

    /// Returns the window in whole packets, for algorithms that do not count
    /// bytes; at least one.
    pub(crate) fn window_packets(&self, path: usize) -> u64 {
        (self.paths[path].window / self.mss).max(1)
    }
}
