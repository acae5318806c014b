//! What a client uses of its limits.

use crate::config::LimitsConfig;
use crate::used::Used;
use chrono::{Local, Timelike};
use knee_bond::meter::{Meter, hours};
use knee_units::Bytes;
use tokio::time::Instant;

/// Time over which the rate is averaged, seconds.
const AVERAGE_S: f64 = 1.0;

/// What a client has used, over all of its measurements.
#[derive(Debug)]
pub struct Account {
    limits: LimitsConfig,
    meter: Meter,
    /// Bytes that may arrive now, if the rate is limited.
    allowance: f64,
    filled: Instant,
}

impl Account {
    /// Goes on where a former process ended, if it wrote what was used.
    pub fn new(limits: LimitsConfig, used: Option<Used>) -> Account {
        let (limit, now) = (limits.bytes_per_day.map(Bytes::get), Instant::now());
        let resume = |used: Used| Meter::resume(limit, now, used.elapsed(), used.bytes);
        let meter = used.map_or_else(|| Meter::new(limit), resume);
        let mut account = Account { limits, meter, allowance: 0.0, filled: now };
        account.allowance = account.burst().unwrap_or_default();
        account
    }

    /// Returns what is used of the bytes of 24 hours; `None` if nothing is, or nothing limits it.
    pub fn used(&self) -> Option<Used> {
        self.meter.carried(Instant::now()).map(Used::of)
    }

    /// Bytes that the rate allows in the time over which it is averaged.
    fn burst(&self) -> Option<f64> {
        self.limits.rate.map(|rate| rate.as_bits_per_second() as f64 / 8.0 * AVERAGE_S)
    }

    /// Returns why nothing may arrive now, if so.
    pub fn closed(&self) -> Option<String> {
        let now = Local::now();
        self.closed_at(Instant::now(), (now.hour() * 60 + now.minute()) as u16)
    }

    fn closed_at(&self, now: Instant, minute: u16) -> Option<String> {
        if let Some(hours) = self.limits.hours.filter(|hours| !hours.contains(minute)) {
            return Some(format!("it receives at {hours}, its local time: wait until then"));
        }
        self.meter.wait(now).map(|left| {
            let limit = self.limits.bytes_per_day.unwrap_or_default();
            format!("its limit of {limit} in 24 hours is used up: wait {} h", hours(left))
        })
    }

    /// Counts bytes that arrived; returns the limit that they exceed, if any.
    pub fn take(&mut self, bytes: usize) -> Option<String> {
        self.take_at(Instant::now(), bytes)
    }

    fn take_at(&mut self, now: Instant, bytes: usize) -> Option<String> {
        if !self.meter.may_pass(bytes) {
            let limit = self.limits.bytes_per_day.unwrap_or_default();
            return Some(format!("its limit of {limit} in 24 hours is used up"));
        }
        let (rate, burst) = self.limits.rate.zip(self.burst())?;
        let earned = now.duration_since(self.filled).as_secs_f64() * burst / AVERAGE_S;
        self.filled = now;
        self.allowance = (self.allowance + earned).min(burst) - bytes as f64;
        (self.allowance < 0.0).then(|| format!("more than its limit of {rate} arrives"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Hours;
    use knee_units::Rate;
    use std::time::Duration;

    #[test]
    fn the_rate_is_an_average_over_a_second() {
        let rate = Some(Rate::from_bits_per_second(8_000_000));
        let mut account = Account::new(LimitsConfig { rate, ..LimitsConfig::default() }, None);
        let begin = account.filled;
        let at = |millis| begin + Duration::from_millis(millis);
        // 1 MB per second: a second's worth at once, then as it is earned.
        assert_eq!(account.take_at(at(0), 1_000_000), None);
        assert_eq!(account.take_at(at(500), 500_000), None);
        let over = account.take_at(at(600), 100_001);
        assert!(over.is_some_and(|why| why.contains("8 Mbit/s")));
        // An idle minute earns no more than a second's worth.
        assert_eq!(account.take_at(at(60_000), 1_000_000), None);
        assert!(account.take_at(at(60_000), 1).is_some());
    }

    #[test]
    fn a_day_and_hours_close_an_account() {
        let bytes_per_day = Some(Bytes::new(1000));
        let hours = Some(Hours::parse("22:00-06:00").unwrap());
        let limits = LimitsConfig { bytes_per_day, hours, ..LimitsConfig::default() };
        let mut account = Account::new(limits, None);
        let now = account.filled;
        assert!(account.closed_at(now, 12 * 60).is_some_and(|why| why.contains("22:00-06:00")));
        assert_eq!(account.closed_at(now, 0), None);
        assert_eq!(account.take(1000), None);
        assert!(account.closed_at(now, 0).is_some_and(|why| why.contains("24 h")));
        assert!(account.take(1).is_some());
    }
}
