//! ACK aggregation: links such as Wi-Fi deliver acknowledgements in bunches
//! with silence between them. The window is widened by the largest excess of a
//! bunch over what the bandwidth would have delivered, so that sending
//! continues through the silence.

use super::Bbr;
use super::bandwidth::{PacketRate, RATE_SHIFT};
use crate::Sample;
use knee_units::Time;

/// Rounds in each half of the maximum filter: the maximum covers five to ten rounds.
const HALF_ROUNDS: u8 = 5;

/// Upper limit of the excess, as time at the estimated bandwidth, in microseconds: 100 ms.
const LARGEST_EXCESS_US: u64 = 100_000;

/// Packets after which an epoch always ends (2^20, the width of a counter in Linux).
const LARGEST_EPOCH_PACKETS: u64 = 1 << 20;

/// State of the estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    /// Bytes acknowledged in the epoch.
    epoch_acked: u64,
    /// Largest excess in bytes, in the current half of the window and the previous one.
    excess: [u64; 2],
    /// The larger of the two in whole packets, cached because it rarely changes
    /// and a division is expensive.
    excess_packets: u32,
    current: u8,
    rounds: u8,
}

impl Aggregation {
    /// Starts a new epoch, after an idle time.
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    fn advance_round(&mut self, mss: u64) {
        self.rounds += 1;
        if self.rounds >= HALF_ROUNDS {
            self.rounds = 0;
            self.current ^= 1;
            self.put(0, mss);
        }
    }

    fn put(&mut self, excess: u64, mss: u64) {
        self.excess[usize::from(self.current)] = excess;
        let packets = self.excess[0].max(self.excess[1]) / mss;
        self.excess_packets = packets.min(LARGEST_EPOCH_PACKETS) as u32;
    }
}

/// Returns the packets that `bw` delivers in `us` microseconds.
#[inline]
pub(super) fn packets_in(bw: PacketRate, us: u64) -> u64 {
    u64::from(bw).saturating_mul(us) >> RATE_SHIFT
}

impl Bbr {
    #[inline]
    pub(super) fn update_aggregation(&mut self, sample: &Sample) {
        if sample.newly_acked == 0 || sample.interval.as_micros() == 0 {
            return;
        }
        let mss = u64::from(self.mss);
        if self.bandwidth.round_start {
            self.aggregation.advance_round(mss);
        }
        let epoch_us = self.delivered_at.saturating_sub(self.aggregation.epoch_start).as_micros();
        let mut expected = packets_in(self.bw(), epoch_us).saturating_mul(mss);
        let epoch = &mut self.aggregation;
        // Slower than expected, or very old: there is no excess.
        if epoch.epoch_acked <= expected
            || epoch.epoch_acked + sample.newly_acked >= LARGEST_EPOCH_PACKETS * mss
        {
            epoch.restart(self.delivered_at);
            expected = 0;
        }
        epoch.epoch_acked += sample.newly_acked;
        let excess = (epoch.epoch_acked - expected).min(self.window);
        if excess > epoch.excess[usize::from(epoch.current)] {
            epoch.put(excess, mss);
        }
    }

    /// Returns the packets by which the window is widened; zero before the pipe is full.
    #[inline]
    pub(super) fn aggregation_packets(&self, bw: PacketRate) -> u64 {
        if !self.full_pipe.reached || !self.config.allow_for_aggregation {
            return 0;
        }
        let largest = (u64::from(bw) * LARGEST_EXCESS_US) >> RATE_SHIFT;
        u64::from(self.aggregation.excess_packets).min(largest)
    }
}
