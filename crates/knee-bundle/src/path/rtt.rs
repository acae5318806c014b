//! RTT of a path as measured by this layer (RFC 9002, section 5).

use knee_units::Time;

/// RTT before the first sample (RFC 9002, section 6.2.2).
const INITIAL: Time = Time::from_millis(333);
/// Lower bound of the variation in a timeout: timer granularity (RFC 9002, section 6.1.2).
const GRANULARITY: Time = Time::from_millis(1);

/// Smoothed RTT, its variation and the minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// Latest sample; like the others, zero before the first.
    pub latest: Time,
    /// Smoothed RTT.
    pub smoothed: Time,
    /// Mean deviation.
    pub variation: Time,
    /// Minimum.
    pub min: Time,
}

impl Rtt {
    /// Adds a sample; the peer held the acknowledgement back for `delay`.
    pub fn update(&mut self, sample: Time, delay: Time) {
        self.latest = sample;
        if self.smoothed == Time::ZERO {
            (self.min, self.smoothed, self.variation) = (sample, sample, sample / 2);
            return;
        }
        self.min = self.min.min(sample);
        // A delay that would bring the sample below the minimum is ignored.
        let adjusted = if sample >= self.min + delay { sample - delay } else { sample };
        let deviation = adjusted.max(self.smoothed) - adjusted.min(self.smoothed);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Returns the smoothed RTT, or the one to assume before the first sample.
    pub fn expected(&self) -> Time {
        if self.smoothed == Time::ZERO { INITIAL } else { self.smoothed }
    }

    /// Returns the time without an answer after which a probe is sent (RFC 9002, section 6.2.1), if
    /// the peer may hold the answer back for `ack_delay`.
    pub fn probe_timeout(&self, ack_delay: Time) -> Time {
        if self.smoothed == Time::ZERO {
            return INITIAL * 3;
        }
        self.smoothed + (self.variation * 4).max(GRANULARITY) + ack_delay
    }

    /// Returns how long after its sending a datagram counts as lost, if a later one has arrived:
    /// this many eighths of an RTT (RFC 9002, section 6.1.2).
    pub fn loss_delay(&self, eighths: u64) -> Time {
        let rtt = self.latest.max(self.smoothed);
        let rtt = if rtt == Time::ZERO { INITIAL } else { rtt };
        (rtt * eighths / 8).max(GRANULARITY)
    }
}
