//! Real time since the start of a run.

use knee_units::{NANOS_PER_SECOND, Time};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC, counted from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Starts a clock; time zero is now.
    pub fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// Returns the time since the start.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic_ns() - self.start_ns)
    }

    /// Converts a time stamp of the kernel; without one, returns the current time.
    pub fn at(&self, stamp: Option<TimeSpec>) -> Time {
        // In this order, a thread that is preempted in between makes it late, not early.
        let age = stamp.map_or(Time::ZERO, age);
        self.now().saturating_sub(age)
    }
}

/// Returns the age of a kernel time stamp. Stamps are of CLOCK_REALTIME, which may be set
/// meanwhile: both clocks are read at once, so that only a jump within the age matters.
pub fn age(stamp: TimeSpec) -> Time {
    Time::from_nanos(read_ns(ClockId::CLOCK_REALTIME).saturating_sub(nanos(&stamp)))
}

/// Converts a span for system calls.
pub fn timespec(span: Time) -> TimeSpec {
    let (seconds, rest) = (span.as_nanos() / NANOS_PER_SECOND, span.as_nanos() % NANOS_PER_SECOND);
    TimeSpec::new(seconds as i64, rest as i64)
}

#[inline]
fn monotonic_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

#[inline]
fn read_ns(clock: ClockId) -> u64 {
    // The call cannot fail, because every Linux has these clocks.
    clock_gettime(clock).map_or(0, |time| nanos(&time))
}

#[inline]
fn nanos(time: &TimeSpec) -> u64 {
    time.tv_sec() as u64 * NANOS_PER_SECOND + time.tv_nsec() as u64
}
