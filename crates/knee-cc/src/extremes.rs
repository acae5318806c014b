//! The smallest and the largest RTT of a time window, in constant space.

use crate::bbr::filter::RunningMax;
use knee_units::Time;

/// The smallest RTT of the recent past. A sample counts for at least the
/// window, and for at most a quarter more ([`RunningMax`]).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMin(RunningMax);

impl RecentMin {
    #[inline]
    pub(crate) fn update(&mut self, window: Time, now: Time, rtt: Time) {
        // The maximum of the distance from the largest number; microseconds
        // wrap after more than an hour, far longer than any window.
        let rtt = rtt.as_micros().clamp(1, u64::from(u32::MAX) - 1) as u32;
        let window = window.as_micros().min(u64::from(u32::MAX / 2)) as u32;
        self.0.update(window, now.as_micros() as u32, u32::MAX - rtt);
    }

    /// Returns the minimum in the window, or `None` if there was no sample.
    #[inline]
    pub(crate) fn get(&self) -> Option<Time> {
        let value = self.0.get();
        (value > 0).then(|| Time::from_micros(u64::from(u32::MAX - value)))
    }
}

/// The largest RTT of the recent past.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMax(RunningMax);

impl RecentMax {
    #[inline]
    pub(crate) fn update(&mut self, window: Time, now: Time, rtt: Time) {
        let rtt = rtt.as_micros().min(u64::from(u32::MAX)) as u32;
        let window = window.as_micros().min(u64::from(u32::MAX / 2)) as u32;
        self.0.update(window, now.as_micros() as u32, rtt);
    }

    #[inline]
    pub(crate) fn get(&self) -> Time {
        Time::from_micros(u64::from(self.0.get()))
    }
}
