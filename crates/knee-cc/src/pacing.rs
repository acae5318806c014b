//! Pacing functions shared by all controllers: rates from windows, and burst sizes.

use knee_units::{Rate, Time};

/// Largest burst that segmentation offload takes, in bytes (Linux's
/// `GSO_MAX_SIZE` for devices without larger offload).
const LARGEST_BURST: u64 = 65_536;

/// Size of the bursts that may be sent at once, as in Linux's
/// `tcp_tso_autosize`: what the pacing rate sends in about a millisecond, and
/// more on paths with a short RTT, where bursts do little harm and save work.
///
/// Caches the last result, because the rate often stays the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendQuantum {
    budget: u32,
    mss: u32,
    segments: u32,
}

impl SendQuantum {
    /// Returns the segments that may be sent at once at `rate` payload bytes per second.
    #[inline]
    pub(crate) fn segments(&mut self, rate: u64, min_rtt: Time, mss: u32, floor: u32) -> u32 {
        let budget = burst_bytes(rate, min_rtt);
        if budget != self.budget || mss != self.mss {
            *self = SendQuantum { budget, mss, segments: budget / mss.max(1) };
        }
        self.segments.max(floor)
    }
}

/// Returns the bytes that may be sent at once at `rate` payload bytes per second.
#[inline]
pub(crate) fn burst_bytes(rate: u64, min_rtt: Time) -> u32 {
    (millisecond_of(rate) + short_path_extra(min_rtt)).min(LARGEST_BURST) as u32
}

/// Returns the bytes that `rate` (bytes per second) sends in 2^-10 s.
#[inline]
pub(crate) fn millisecond_of(rate: u64) -> u64 {
    rate >> 10
}

/// Returns the largest burst, halved for each 2^9 us of minimum RTT (`tcp_tso_rtt_log`).
#[inline]
fn short_path_extra(min_rtt: Time) -> u64 {
    if min_rtt == Time::ZERO {
        return 0; // no sample yet: Linux's minimum is then "infinite"
    }
    LARGEST_BURST.checked_shr((min_rtt.as_micros() >> 9).min(63) as u32).unwrap_or(0)
}

/// Returns the segments sent in 2^-12 s, about 250 us, at least one: too short
/// a burst to be marked by a queue that marks early.
#[inline]
pub(crate) fn smooth_burst(rate: u64, mss: u32) -> u32 {
    ((rate >> 12).min(LARGEST_BURST) as u32 / mss.max(1)).max(1)
}

/// Percentages of the window per RTT at which Linux paces
/// (`tcp_update_pacing_rate`): while slow start doubles the window, and later,
/// so that pacing is never the limit.
pub(crate) const TWICE: u64 = 200;
pub(crate) const FASTER: u64 = 120;
/// The factor for controllers that want pacing to be the limit.
pub(crate) const EXACTLY: u64 = 100;

/// Returns the pacing rate of a window-based controller: `percent` percent of
/// the window per RTT.
#[inline]
pub(crate) fn rate_of_window(segments: u64, percent: u64, mss: u32, srtt: Time) -> Option<Rate> {
    let srtt_us = srtt.as_micros();
    if srtt_us == 0 {
        return None;
    }
    let bits = u64::from(mss) * 8 * segments.min(1 << 24);
    Some(Rate::from_bits_per_second(bits * percent * 10_000 / srtt_us))
}
