//! The RTT of a path as the layer sees it (RFC 9002, section 5).

use knee_units::Time;

/// RTT before the first sample (RFC 9002, section 6.2.2).
const INITIAL: Time = Time::from_millis(333);
/// Smallest part of the variation in a timeout: how late a timer may be (RFC
/// 9002, section 6.1.2).
const GRANULARITY: Time = Time::from_millis(1);

/// Smoothed RTT, its variation and the minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// The last sample; zero before the first, as the others.
    pub latest: Time,
    /// Smoothed.
    pub smoothed: Time,
    /// Mean deviation.
    pub variation: Time,
    /// Smallest sample.
    pub min: Time,
}

impl Rtt {
    /// Takes a sample; the peer held the acknowledgement back for `delay`.
    pub fn update(&mut self, sample: Time, delay: Time) {
        self.latest = sample;
        if self.smoothed == Time::ZERO {
            (self.min, self.smoothed, self.variation) = (sample, sample, sample / 2);
            return;
        }
        self.min = self.min.min(sample);
        // A delay that would leave less than the minimum is not believed.
        let adjusted = if sample >= self.min + delay { sample - delay } else { sample };
        let deviation = adjusted.max(self.smoothed) - adjusted.min(self.smoothed);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// How long an answer may take before a probe is sent (RFC 9002, section
    /// 6.2.1), where the peer may hold it back for `ack_delay`.
    pub fn probe_timeout(&self, ack_delay: Time) -> Time {
        if self.smoothed == Time::ZERO {
            return INITIAL * 3;
        }
        self.smoothed + (self.variation * 4).max(GRANULARITY) + ack_delay
    }

    /// How long after a packet that arrived one that was sent before it may
    /// still come, in eighths of an RTT (RFC 9002, section 6.1.2).
    pub fn loss_delay(&self, eighths: u64) -> Time {
        let rtt = self.latest.max(self.smoothed);
        let rtt = if rtt == Time::ZERO { INITIAL } else { rtt };
        (rtt * eighths / 8).max(GRANULARITY)
    }
}
