//! The limit of bytes that a client of a server may carry in 24 hours.

use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// Time in which a client may carry as many bytes as its limit says.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Counts the bytes that a client may carry in a day.
#[derive(Debug)]
pub struct Meter {
    limit: Option<u64>,
    /// Start of the current day, which is 24 hours from the first use on.
    began: Cell<Instant>,
    carried: Cell<u64>,
    /// Whether the server has said today that the limit is used up.
    was_said: Cell<bool>,
}

impl Meter {
    /// Begins to count; `limit` is that of 24 hours, if there is one.
    pub fn new(limit: Option<u64>) -> Meter {
        let began = Cell::new(Instant::now());
        Meter { limit, began, carried: Cell::new(0), was_said: Cell::new(false) }
    }

    /// Goes on to count after a restart, in a day that began so long before `now`.
    pub fn resume(limit: Option<u64>, now: Instant, elapsed: Duration, carried: u64) -> Meter {
        let meter = Meter::new(limit);
        if elapsed < DAY {
            meter.began.set(now.checked_sub(elapsed).unwrap_or(now));
            meter.carried.set(carried);
        }
        meter
    }

    /// Returns how long ago the current 24 hours began, and the bytes carried in them; `None` without
    /// a limit, or before any.
    pub fn carried(&self, now: Instant) -> Option<(Duration, u64)> {
        let elapsed = now.duration_since(self.began.get());
        let carried = self.carried.get();
        (self.limit.is_some() && carried > 0 && elapsed < DAY).then_some((elapsed, carried))
    }

    /// Counts bytes, or returns false if the limit does not allow them.
    pub fn may_pass(&self, bytes: usize) -> bool {
        self.may_pass_at(Instant::now(), bytes)
    }

    fn may_pass_at(&self, now: Instant, bytes: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        if now.duration_since(self.began.get()) >= DAY {
            self.began.set(now);
            self.carried.set(0);
            self.was_said.set(false);
        }
        let carried = self.carried.get().saturating_add(bytes as u64);
        let may = carried <= limit;
        // What is refused uses up the limit: otherwise smaller pieces would pass for ever.
        self.carried.set(if may { carried } else { limit });
        may
    }

    /// Returns how long nothing may pass, if the limit is used up.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let is_used_up = self.limit.is_some_and(|limit| self.carried.get() >= limit);
        let left = DAY.saturating_sub(now.duration_since(self.began.get()));
        (is_used_up && !left.is_zero()).then_some(left)
    }

    /// Returns the hours for which nothing may pass, once for each time the limit is used up.
    pub fn wait_to_say(&self, now: Instant) -> Option<u64> {
        self.wait(now).filter(|_| !self.was_said.replace(true)).map(hours)
    }

    /// Returns the bytes carried in the current 24 hours and their limit, if there is one.
    pub fn used(&self, now: Instant) -> Option<(u64, u64)> {
        let is_current = now.duration_since(self.began.get()) < DAY;
        self.limit.map(|limit| (if is_current { self.carried.get() } else { 0 }, limit))
    }
}

/// Rounds up to hours.
pub fn hours(time: Duration) -> u64 {
    time.as_secs().div_ceil(3600).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_counts_for_a_day() {
        let meter = Meter::new(Some(1000));
        let began = meter.began.get();
        let late = began + DAY - Duration::from_secs(1);
        assert!(meter.may_pass_at(began, 400) && meter.may_pass_at(began, 600));
        assert_eq!(meter.used(late), Some((1000, 1000)));
        assert!(!meter.may_pass_at(late, 1) && meter.may_pass_at(late, 0));
        assert_eq!(meter.wait(late), Some(Duration::from_secs(1)));
        assert_eq!((meter.wait_to_say(late), meter.wait_to_say(late)), (Some(1), None));
        assert_eq!((meter.wait(began + DAY), meter.used(began + DAY)), (None, Some((0, 1000))));
        assert!(meter.may_pass_at(began + DAY, 999));
        // What does not fit uses up the rest.
        assert!(!meter.may_pass_at(began + DAY, 2) && !meter.may_pass_at(began + DAY, 1));
        assert_eq!(meter.wait_to_say(began + DAY), Some(24));
    }

    #[test]
    fn a_restart_does_not_begin_a_new_day() {
        let meter = Meter::new(Some(1000));
        let began = meter.began.get();
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(meter.carried(began), None);
        assert!(meter.may_pass_at(began, 900));
        let (elapsed, carried) = meter.carried(after(3600)).unwrap();
        assert_eq!((elapsed, carried), (Duration::from_secs(3600), 900));
        // Two hours later it runs again.
        let elapsed = elapsed + Duration::from_secs(7200);
        let again = Meter::resume(Some(1000), after(10_800), elapsed, carried);
        assert!(!again.may_pass_at(after(10_801), 101));
        assert_eq!(again.wait(after(10_801)).map(hours), Some(21));
        assert!(again.may_pass_at(began + DAY, 1000));
        let late = Meter::resume(Some(1000), began + DAY, DAY, carried);
        assert!(late.may_pass_at(began + DAY, 1000));
        assert_eq!(Meter::resume(None, began, elapsed, carried).carried(began), None);
    }

    #[test]
    fn without_a_limit_everything_passes() {
        let meter = Meter::new(None);
        assert!(meter.may_pass(usize::MAX) && meter.may_pass(usize::MAX));
        assert_eq!((meter.wait(meter.began.get()), meter.used(meter.began.get())), (None, None));
    }
}
