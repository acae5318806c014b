//! The pacing rate, 1 % below what the gain gives, and the burst that may be sent at once.

use super::bandwidth::{PacketRate, RATE_SHIFT};
use super::{Bbr, Gain, HIGH_GAIN};
use crate::pacing::{burst_bytes, millisecond_of};
use knee_units::{Rate, Time};

/// Pacing rate as a percentage of the estimate: on average slightly below the
/// bottleneck, so that queues drain rather than grow.
const MARGIN_PERCENT: u64 = 99;

/// RTT assumed until the first sample: 1 ms.
const ASSUMED_RTT: Time = Time::from_millis(1);

/// Below this rate packets are sent one at a time: 1.2 Mbit/s, in bytes per
/// second. At this rate two packets would be a burst of 20 ms.
const SINGLE_PACKET_RATE: u64 = 150_000;

/// Largest burst that the window makes room for, in bytes: the limit of
/// segmentation offload, less headers.
const LARGEST_BURST: u64 = 65_536 - 1 - 320;

/// Largest burst in packets (the width of a counter in Linux).
const LARGEST_GOAL: u32 = 127;

/// The current pacing rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacing {
    /// In bytes per second, as in Linux.
    rate: u64,
    /// Whether an RTT was known when the initial rate was set.
    pub(super) has_rtt: bool,
    /// Bandwidth and gain that `rate` was last computed for.
    computed_for: Option<(PacketRate, Gain)>,
    /// Packets that may be sent at once at this rate.
    pub(super) burst_packets: u32,
    /// Bytes that may be sent at once, and the minimum RTT for which that was computed;
    /// [`Time::MAX`] if the rate has changed since.
    quantum: u64,
    quantum_min_rtt: Time,
}

impl Pacing {
    /// Returns the rate, for the transport.
    #[inline]
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bytes_per_second(self.rate)
    }

    /// Returns the bytes that may be sent at once, as last determined.
    #[inline]
    pub(super) fn quantum(&self) -> u64 {
        self.quantum
    }

    /// Forces a recomputation, after sizes have changed.
    pub(super) fn invalidate(&mut self) {
        self.computed_for = None;
        self.quantum_min_rtt = Time::MAX;
    }
}

impl Bbr {
    /// Returns the payload bytes per second for pacing at `bw`, in Linux's
    /// order of operations.
    pub(super) fn paced_bytes_per_second(&self, bw: PacketRate, gain: Gain) -> u64 {
        let rate = (u64::from(bw) * u64::from(self.mss)).saturating_mul(u64::from(gain)) >> 8;
        rate.saturating_mul(10_000 * MARGIN_PERCENT) >> RATE_SHIFT
    }

    /// Sets the initial rate: STARTUP's gain times the window over the RTT.
    pub(super) fn init_pacing_rate(&mut self, srtt: Time) {
        self.pacing.has_rtt = srtt > Time::ZERO;
        let rtt = if self.pacing.has_rtt { srtt } else { ASSUMED_RTT };
        let packets = (self.window / u64::from(self.mss)).min(1 << 24);
        let bw = (packets << RATE_SHIFT) / rtt.as_micros().max(1);
        let bw = bw.min(u64::from(PacketRate::MAX)) as PacketRate;
        self.put_rate(self.paced_bytes_per_second(bw, HIGH_GAIN));
        self.pacing.invalidate();
    }

    /// Sets the pacing rate. Before the pipe is full, the rate only rises.
    #[inline(always)]
    pub(super) fn set_pacing_rate(&mut self, bw: PacketRate, gain: Gain, srtt: Time) {
        if !self.pacing.has_rtt || self.pacing.computed_for != Some((bw, gain)) {
            self.change_pacing_rate(bw, gain, srtt);
        }
    }

    #[inline(never)]
    fn change_pacing_rate(&mut self, bw: PacketRate, gain: Gain, srtt: Time) {
        if !self.pacing.has_rtt && srtt > Time::ZERO {
            self.init_pacing_rate(srtt);
        }
        if self.pacing.computed_for == Some((bw, gain)) {
            return;
        }
        let rate = self.paced_bytes_per_second(bw, gain);
        if self.full_pipe.reached || rate > self.pacing.rate {
            self.put_rate(rate);
            self.pacing.computed_for = Some((bw, gain));
        }
    }

    fn put_rate(&mut self, rate: u64) {
        // Not in Linux: at least one packet per second, because at a rate of
        // zero the packet that shows a better one would never be sent.
        let rate = rate.max(u64::from(self.mss));
        self.pacing.rate = rate;
        self.pacing.quantum_min_rtt = Time::MAX;
        let burst = (millisecond_of(rate).min(LARGEST_BURST) / u64::from(self.mss)) as u32;
        self.pacing.burst_packets = burst.clamp(self.smallest_burst(), LARGEST_GOAL);
    }

    fn smallest_burst(&self) -> u32 {
        if self.pacing.rate < SINGLE_PACKET_RATE { 1 } else { 2 }
    }

    /// Determines the bytes that may be sent at once, with the transport's minimum RTT.
    #[inline]
    pub(super) fn update_quantum(&mut self, min_rtt: Time) {
        if self.pacing.quantum_min_rtt != min_rtt {
            self.change_quantum(min_rtt);
        }
    }

    #[inline(never)]
    fn change_quantum(&mut self, min_rtt: Time) {
        let segments = burst_bytes(self.pacing.rate, min_rtt) / self.mss;
        self.pacing.quantum = u64::from(segments.max(self.smallest_burst())) * u64::from(self.mss);
        self.pacing.quantum_min_rtt = min_rtt;
    }
}
