//! Token bucket with exact arithmetic.

use crate::config::Policer;
use knee_units::{NANOS_PER_SECOND, Time};

/// One byte, in bit/s x ns: the unit of the bucket, which avoids all rounding.
const BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

pub(crate) struct TokenBucket {
    rate: u128,
    depth: u128,
    level: u128,
    updated: Time,
}

impl TokenBucket {
    pub fn new(policer: Policer) -> TokenBucket {
        let depth = u128::from(policer.burst) * BYTE;
        let rate = u128::from(policer.rate.as_bits_per_second());
        TokenBucket { rate, depth, level: depth, updated: Time::ZERO }
    }

    /// Takes the tokens for a packet; returns false if there are too few.
    pub fn takes(&mut self, now: Time, size: u32) -> bool {
        let elapsed = now.saturating_sub(self.updated);
        self.updated = self.updated.max(now);
        self.level = self.depth.min(self.level + u128::from(elapsed.as_nanos()) * self.rate);
        let cost = u128::from(size) * BYTE;
        let enough = cost <= self.level;
        if enough {
            self.level -= cost;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_units::Rate;

    /// Over any span t from the start, at most burst + rate t passes, and an
    /// overload uses all of it except at most one packet.
    #[test]
    fn an_overload_gets_the_burst_and_then_the_rate() {
        let (rate, burst) = (Rate::from_bits_per_second(8_000_007), 30_000);
        let mut bucket = TokenBucket::new(Policer { rate, burst });
        let mut passed = 0_u64;
        for n in 0..200_000 {
            let now = Time::from_nanos(n * 333_333);
            if bucket.takes(now, 1500) {
                passed += 1500;
            }
            let allowed = burst + rate.bytes_in(now);
            assert!(passed <= allowed, "at {now:?}");
            assert!(n < 100 || passed + 1500 > allowed, "at {now:?}");
        }
    }

    #[test]
    fn the_bucket_fills_up_to_its_depth_only() {
        let rate = Rate::from_bits_per_second(8_000_000);
        let mut bucket = TokenBucket::new(Policer { rate, burst: 3_000 });
        let hour = Time::from_secs(3600);
        let passed = (0..10).filter(|_| bucket.takes(hour, 1000)).count();
        assert_eq!(passed, 3);
        assert!(!bucket.takes(hour + Time::from_nanos(999_999), 1000));
        assert!(bucket.takes(hour + Time::from_millis(1), 1000));
    }
}
