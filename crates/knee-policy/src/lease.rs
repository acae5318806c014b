//! Limits on the time for which a process that does not run can leave a host changed.

use std::time::Duration;

/// Time after its last renewal at which a steering process counts as gone: its programs do nothing
/// from then on, and the process that guards it reverts all changes.
pub const LEASE: Duration = Duration::from_secs(60);
/// Time for which a renewal makes sure that connections are steered.
const SURE: Duration = Duration::from_secs(30);

/// The lease of a steering process. Times are those since the boot.
///
/// A process may be stopped at any point, also between reading the clock and sending the renewal,
/// and cannot know then whether its guard has reverted everything meanwhile. So what it says about
/// its connections holds for half of [`LEASE`] after it has read the clock, and it may renew only
/// within that time. A guard that does not get the next renewal acts [`LEASE`] after it got the
/// last one, which is never before the end of either.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    renewed: Duration,
}

impl Lease {
    /// Begins `now`, before the guard does.
    pub fn begin(now: Duration) -> Lease {
        Lease { renewed: now }
    }

    /// Renews it. The clock is read before the guard and the actuator are told. `false` if this is
    /// too late: all changes are to be reverted.
    #[must_use]
    pub fn renew(&mut self, now: Duration) -> bool {
        let in_time = now <= self.end();
        if in_time {
            self.renewed = now;
        }
        in_time
    }

    /// The time until which connections are steered, even if this process never runs again.
    pub fn end(&self) -> Duration {
        self.renewed + SURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is stopped for any time, before or after it has read the clock, says nothing
    /// about the time after its guard has acted.
    #[test]
    fn it_ends_before_the_guard_acts() {
        let seconds = Duration::from_secs;
        for (before, after) in (0..90).flat_map(|one| (0..90).map(move |other| (one, other))) {
            let mut lease = Lease::begin(seconds(100));
            let acts = seconds(100) + LEASE;
            let renewed = lease.renew(seconds(100 + before));
            let sent = seconds(100 + before + after);
            // The guard acts after the first time or, if it gets the renewal, after the second.
            let acts = if renewed && sent < acts { sent + LEASE } else { acts };
            assert!(lease.end() <= acts, "{before} {after}");
            assert_eq!(renewed, before <= 30);
            assert!(!lease.renew(lease.end() + Duration::from_nanos(1)));
        }
    }
}
