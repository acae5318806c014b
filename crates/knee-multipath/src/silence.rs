//! Detects paths that have been silent for too long.

use crate::sched::{PATHS_MAX, Path, PathSet};
use knee_units::Time;

/// When a path counts as silent: after this many probe timeouts (RFC 9002,
/// section 6.2.1) without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceRule {
    /// Longest time for which a receiver delays an acknowledgement.
    pub ack_delay: Time,
    /// Smallest contribution of the RTT variation to a probe timeout: the
    /// possible lateness of a clock or timer.
    pub floor: Time,
    /// Number of probe timeouts, in halves.
    pub timeouts_halves: u64,
}

impl SilenceRule {
    /// For TCP subflows: 1.5 probe timeouts, Linux's delayed ACK of 40 ms and
    /// RFC 9002's timer granularity of 1 ms.
    pub const TCP: SilenceRule = SilenceRule {
        ack_delay: Time::from_millis(40),
        floor: Time::from_millis(1),
        timeouts_halves: 3,
    };

    /// Returns how long an answer on a path may take.
    #[inline]
    fn patience(&self, srtt: Time, rtt_variation: Time) -> Time {
        let timeout = srtt + (rtt_variation * 4).max(self.floor) + self.ack_delay;
        timeout * self.timeouts_halves / 2
    }
}

/// When each path was last heard from.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    rule: SilenceRule,
    /// Since when an answer is expected; [`Time::MAX`] if nothing was sent since the
    /// path was last heard from.
    waiting_since: [Time; PATHS_MAX],
    suspects: PathSet,
}

impl Silence {
    pub fn new(rule: SilenceRule) -> Silence {
        let waiting_since = [Time::MAX; PATHS_MAX];
        Silence { rule, waiting_since, suspects: PathSet::default() }
    }

    /// Resets a path that joins or leaves.
    pub fn reset(&mut self, path: usize) {
        self.waiting_since[path] = Time::MAX;
        self.suspects.remove(path);
    }

    /// Records that a packet was sent on the path.
    #[inline]
    pub fn on_sent(&mut self, now: Time, path: usize) {
        let since = &mut self.waiting_since[path];
        *since = now.min(*since);
    }

    /// Records an answer on the path. If more is outstanding, the next answer
    /// is expected from now on.
    #[inline]
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        self.waiting_since[path] = if more_outstanding { now } else { Time::MAX };
        self.suspects.remove(path);
    }

    /// Returns the paths that were silent for too long.
    #[inline]
    pub fn suspects(&self) -> PathSet {
        self.suspects
    }

    #[inline]
    pub fn is_suspect(&self, path: usize) -> bool {
        self.suspects.contains(path)
    }

    /// Returns when a path with this RTT and these bytes in flight will have been silent
    /// for too long; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn deadline_of(
        &self,
        path: usize,
        srtt: Time,
        rtt_variation: Time,
        in_flight: u64,
    ) -> Time {
        let since = self.waiting_since[path];
        let waits = since < Time::MAX && in_flight > 0 && srtt > Time::ZERO;
        if waits && !self.is_suspect(path) {
            since + self.rule.patience(srtt, rtt_variation)
        } else {
            Time::MAX
        }
    }

    /// Finds a path that has been silent for too long and marks it as suspect.
    pub fn take_silent(&mut self, now: Time, paths: &[Path]) -> Option<usize> {
        let is_silent = |(path, view): (usize, &Path)| {
            self.deadline_of(path, view.srtt, view.rtt_variation, view.in_flight) <= now
        };
        let found = paths.iter().enumerate().position(is_silent)?;
        self.suspects.insert(found);
        Some(found)
    }
}
