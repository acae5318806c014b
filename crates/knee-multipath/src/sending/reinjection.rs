//! Reinjection: data that a slower path would deliver later is repeated on a faster one.

use super::{Assignment, Sending};
use crate::sched::{Path, Status};
use crate::source::Source;
use knee_units::Time;

/// Number of outstanding packets, from the oldest, that are searched for one
/// that another path would deliver sooner.
const REINJECTION_SCAN: u64 = 256;

impl<S: Source> Sending<S> {
    /// Called when nothing new may be sent: the fastest path with room repeats the
    /// first packet that a slower one would deliver later than it could. A packet
    /// that should already have been acknowledged, but by no more than the possible
    /// lateness of an acknowledgement, has probably arrived and is not repeated.
    ///
    /// A packet that waits behind other data on its path will be late if the path
    /// has become slow since. It may be repeated as soon as that is known.
    ///
    /// A scheduler that plans the order has given the slower paths data that is
    /// due when they deliver it. Data not acknowledged when it is due
    /// contradicts its plan, and is repeated if a copy arrives before its
    /// latest possible acknowledgement. A full window is planned too: then only
    /// the first packet, for which all wait, is repeated before it is due.
    pub(super) fn reinject(
        &mut self,
        now: Time,
        paths: &[Path],
        is_blocked: bool,
    ) -> Option<Assignment<S::Piece>> {
        let fast = fastest(paths, |path| path.ready && path.is_usable())?;
        let view = &paths[fast];
        let takes =
            (view.srtt + view.rtt_variation).max(view.time_to_carry(view.in_flight + self.mss));
        let arrival = now + takes;
        let from = self.find_repeat(fast)?;
        let first = self.chunks.base();
        for number in from..self.chunks.end().min(from + REINJECTION_SCAN) {
            let Some(chunk) = self.chunks.get(number) else { break };
            let outstanding = chunk.given && !chunk.delivered;
            if outstanding && !chunk.sent_on.contains(fast) {
                let slow = &paths[usize::from(chunk.holder)];
                let lateness = (slow.rtt_variation * 4).max(self.ack_lateness);
                let behind = slow.time_to_carry(u64::from(chunk.queued_behind));
                let foreseen = behind >= slow.srtt * 2;
                let due = chunk.sent_at + if foreseen { behind } else { slow.srtt };
                let overdue = due + lateness;
                let sooner = if now >= overdue {
                    // It may have to be retransmitted there.
                    takes < slow.srtt
                } else if self.plans_order && (now >= due || is_blocked && number == first) {
                    arrival < overdue
                } else {
                    let is_planned = self.plans_order && is_blocked && !foreseen;
                    now <= due && !is_planned && arrival < due
                };
                if sooner {
                    return self.give(now, number, fast, paths);
                }
                if now < overdue && takes < slow.srtt {
                    let again = if self.plans_order && now < due { due } else { overdue };
                    self.overdue_at = self.overdue_at.min(again);
                }
            }
        }
        None
    }
}

/// Returns the fastest of the selected paths, judged by the RTT, or by the time needed for
/// the data in flight if that is longer. A backup counts only if there is no other path,
/// ready or not.
pub(super) fn fastest(paths: &[Path], among: impl Fn(&Path) -> bool) -> Option<usize> {
    let waits = paths.iter().any(|path| path.status == Status::Active);
    let may = |path: &Path| !(waits && path.status == Status::Backup);
    let candidates = paths.iter().enumerate().filter(|(_, path)| may(path) && among(path));
    let takes = |path: &Path| path.srtt.max(path.time_to_carry(path.in_flight));
    candidates.min_by_key(|(_, path)| takes(path)).map(|(i, _)| i)
}
