//! Rounds, and the bottleneck bandwidth as the windowed maximum of the
//! delivery rate.
//!
//! The filter remembers ten rounds, a gain cycle of eight and two more, so that
//! the result of a probe outlives the phases after it. With `bandwidth_window`
//! of one or two, a brief high rate is soon forgotten, and so is the result of
//! a probe: with pacing 1 % below the estimate, the estimate then falls by 1 %
//! per round until the next probe.

use super::filter::RunningMax;
use super::{Bbr, Mode};
use crate::{Connection, Sample};
use knee_units::Rate;

/// Packets per microsecond times 2^24: one unit is about 715 bit/s at 1500
/// bytes; 32 bits reach 3 Tbit/s.
pub(super) type PacketRate = u32;

/// Binary fraction digits of a [`PacketRate`].
pub(super) const RATE_SHIFT: u32 = 24;

/// Estimate of the bottleneck bandwidth, and the round counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidth {
    filter: RunningMax,
    /// Largest sample since the last PROBE_RTT; during PROBE_RTT, the value to
    /// keep across it.
    kept: PacketRate,
    /// Packet-timed round trips so far.
    pub(super) rounds: u32,
    /// The round ends when a packet sent after this many bytes were delivered
    /// is itself delivered.
    pub(super) round_end: u64,
    /// Whether the last acknowledgement began a round.
    pub(super) round_start: bool,
}

impl Bandwidth {
    #[inline]
    pub(super) fn max(&self) -> PacketRate {
        self.filter.get()
    }

    /// Keeps the estimate at the start of PROBE_RTT, limited to what samples
    /// since the last PROBE_RTT support.
    pub(super) fn keep(&mut self) {
        self.kept = self.kept.min(self.filter.get());
    }

    /// Counts the kept value as seen in this round, after PROBE_RTT: the change
    /// `keep_bw_over_probe_rtt`. Samples taken with a window of four packets
    /// say nothing about the path, but rounds go on, and more than ten of them
    /// (RTT below 22 ms) push all earlier samples out.
    pub(super) fn restore(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        if kept >= self.filter.get() {
            self.filter.reset(self.rounds, kept);
        }
    }

    pub(super) fn rescale(&mut self, old_mss: u64, new_mss: u64) {
        self.filter.rescale(old_mss, new_mss);
        let scaled = u64::from(self.kept) * old_mss / new_mss;
        self.kept = scaled.min(u64::from(PacketRate::MAX)) as PacketRate;
    }
}

/// Returns `bw` in payload bits per second, for the records.
pub(super) fn as_rate(bw: PacketRate, mss: u32) -> Option<Rate> {
    let bits = u128::from(bw) * u128::from(mss) * 8_000_000;
    (bw > 0).then(|| Rate::from_bits_per_second((bits >> RATE_SHIFT) as u64))
}

impl Bbr {
    #[inline]
    pub(super) fn update_bandwidth(&mut self, sample: &Sample, connection: &Connection) {
        self.bandwidth.round_start = false;
        let interval_us = sample.interval.as_micros();
        if interval_us == 0 {
            return;
        }
        if sample.prior_delivered >= self.bandwidth.round_end {
            self.bandwidth.round_end = connection.delivered;
            self.bandwidth.rounds = self.bandwidth.rounds.wrapping_add(1);
            self.bandwidth.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(sample, connection);
        // The only division on the path of every acknowledgement. Above 2^40
        // delivered bytes the estimate saturates.
        let scaled = sample.delivered.min((1 << 40) - 1) << RATE_SHIFT;
        let bw = scaled / interval_us.saturating_mul(u64::from(self.mss));
        let bw = bw.min(u64::from(PacketRate::MAX)) as PacketRate;
        if self.filters_bandwidth() {
            return self.filter_bandwidth(bw, scaled, sample);
        }
        // An application-limited sample counts only if it shows the path to be faster.
        if !sample.app_limited || bw >= self.bandwidth.max() {
            if self.mode != Mode::ProbeRtt {
                self.bandwidth.kept = self.bandwidth.kept.max(bw);
            }
            let window = u32::from(self.config.bandwidth_window);
            self.bandwidth.filter.update(window, self.bandwidth.rounds, bw);
        }
    }

    #[inline]
    fn filters_bandwidth(&self) -> bool {
        self.full_pipe.reached && self.changes.as_deref().is_some_and(|one| one.tobit_filter)
    }

    /// Change `tobit_filter`: the last sample of a round updates the estimate,
    /// which replaces the maximum. `scaled` is the sample's delivered amount.
    #[cold]
    fn filter_bandwidth(&mut self, bw: PacketRate, scaled: u64, sample: &Sample) {
        let pace = (u64::from(self.bandwidth.max()) * u64::from(self.pacing_gain)) >> 8;
        let Some(changes) = self.changes.as_deref_mut() else { return };
        let paced = changes.tobit.pace(pace, self.bandwidth.round_start);
        let send_us = sample.send_interval.as_micros();
        let limit = match scaled.checked_div(send_us.saturating_mul(u64::from(self.mss))) {
            _ if sample.app_limited => bw,
            Some(rate) => rate.max(paced).min(u64::from(PacketRate::MAX)) as PacketRate,
            None => PacketRate::MAX,
        };
        let ended = changes.tobit.measured.replace((bw, limit));
        if let Some((bw, limit)) = ended.filter(|_| self.bandwidth.round_start) {
            let estimate = changes.tobit.update(self.bandwidth.filter.get(), bw, limit);
            self.bandwidth.filter.reset(self.bandwidth.rounds, estimate);
        }
    }
}
