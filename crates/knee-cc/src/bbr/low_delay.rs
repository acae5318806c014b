//! The low-delay change, `shrink_window`: gradually removes from the window the
//! packets that only wait in the queue.
//!
//! ```text
//!   window = gain x BDP + allowance - shrink
//! ```
//! While the queueing delay exceeds `delay_lower_bound`, `shrink` grows by the
//! flow's own packets in the queue, `bandwidth x queueing delay`, over
//! `cwnd_pace` round trips. That is the whole published description. The points
//! it leaves open are decided as follows.
//!
//! - *Decay.* What was removed decays over the same `cwnd_pace` round trips, so
//!   that `shrink` follows what the flow had queued in that time. A sum that
//!   only grew would be an integrator: combined with the bandwidth filter,
//!   which remembers a probe for ten rounds, it oscillates with almost no
//!   damping, and the shares of five flows vary by a quarter.
//! - *Giving back.* At or below the bound, `shrink` also falls by a fixed number of
//!   packets over `cwnd_pace` round trips. A flow's share of a full link is its
//!   share of the packets in the queue. Taking in proportion and giving back in
//!   equal amounts makes the shares equal (Chiu and Jain, 1989). The response to an
//!   empty queue is four times as fast, so that the link does not stay idle.
//! - *The bound* decides whether there is an excess, not how large it is:
//!   within the bound the queue is left alone, beyond it all of the flow's
//!   queued packets count.
//! - *Allowance.* With exactly one BDP, the link runs dry while the receiver
//!   waits for the packets that one acknowledgement will cover. Four packets
//!   are allowed for that, or two bursts if segmentation offload makes them
//!   larger, or the observed ACK aggregation.
//! - *Probing.* The upward phase may apply its gain to the window too, since it
//!   would otherwise change nothing; and it gets Linux's room for bursts, since it
//!   would otherwise find nothing if the BDP is a few packets. If the rate sampler's
//!   interval is too long by one ACK of `a` packets (as in ns-3.35), it measures
//!   `w / (w + a)` of the rate with `w` packets in flight, so an estimate keeps up
//!   only while `gain w / (w + a) >= 1`: with gain 6/5 and an ACK for two packets,
//!   from ten packets on. The phase ends once that window is in use.
//! - *Bandwidth that others free* is taken over by probes: the upward phase
//!   continues while its target, a multiple of a growing bandwidth, exceeds the data
//!   in flight.
//! - *Limit.* `shrink` is at most half a BDP: against flows that always fill
//!   the buffer, giving back more would only mean giving up.

use super::aggregation::packets_in;
use super::bandwidth::PacketRate;
use super::probe_rtt::WINDOW;
use super::{Bbr, Mode, UNIT};
use crate::{Connection, Sample};
use knee_units::Time;

/// Packets above the BDP, for what a stretched ACK covers.
const ALLOWANCE_PACKETS: u64 = 4;

/// Packets that `shrink` gives back over `cwnd_pace` round trips.
const RETURN_PACKETS: u64 = 4;

/// Factor by which the response to an empty queue is faster.
const EMPTY_QUEUE_FACTOR: u64 = 4;

/// A queueing delay below this fraction of the bound counts as an empty queue: 1/2.
const EMPTY_QUEUE: u64 = 2;

/// Ratio of the RTT's deviation to its mean above which the path is unsteady
/// and its queueing delay is meaningless: 3/10.
const STEADY: (u32, u32) = (3, 10);

/// RTT above which the exact value no longer matters.
const LONGEST_RTT: Time = Time::from_secs(100);

/// Rounds after DRAIN or PROBE_RTT until the bandwidth filter holds a complete gain cycle.
const SETTLING_ROUNDS: u32 = 8;

/// Time before PROBE_RTT during which the minimum RTT is too old to be used.
const NEAR_PROBE_RTT: Time = Time::from_millis(500);

/// Fraction bits of `shrink`: the step per acknowledgement is small.
const FRACTION: u32 = 10;

/// State of the change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LowDelay {
    /// Bytes removed from the window, times 2^10.
    shrink: u64,
    /// Round in which PROBE_BW was entered.
    entered: u32,
    /// Mean RTT, times 8, and its mean deviation, times 4 (the filters of
    /// RFC 6298, on each sample), in microseconds.
    rtt_mean: u32,
    rtt_deviation: u32,
}

impl LowDelay {
    /// Called when PROBE_BW begins.
    pub(super) fn settle(&mut self, round: u32) {
        self.entered = round;
    }

    fn take_rtt(&mut self, rtt: Time) {
        let us = rtt.min(LONGEST_RTT).as_micros() as u32;
        if self.rtt_mean == 0 {
            self.rtt_mean = us * 8;
            return;
        }
        let error = us.abs_diff(self.rtt_mean / 8);
        self.rtt_deviation = self.rtt_deviation - self.rtt_deviation / 4 + error;
        self.rtt_mean = self.rtt_mean - self.rtt_mean / 8 + us;
    }

    fn steady(&self) -> bool {
        self.rtt_deviation / 4 * STEADY.1 <= self.rtt_mean / 8 * STEADY.0
    }
}

impl Bbr {
    /// Returns the target window of the change, in bytes.
    #[inline(never)]
    pub(super) fn low_delay_window(
        &mut self,
        bw: PacketRate,
        sample: &Sample,
        connection: &Connection,
    ) -> u64 {
        if let Some(rtt) = sample.rtt {
            self.low_delay.take_rtt(rtt);
            if self.may_judge_queue(connection.now) {
                self.track_shrink(bw, self.queueing_us(rtt), sample.newly_acked);
            }
        }
        self.shrunk_window(bw)
    }

    /// Returns the window for the current phase.
    pub(super) fn shrunk_window(&self, bw: PacketRate) -> u64 {
        let mss = u64::from(self.mss);
        let probing = self.mode == Mode::ProbeBw && self.cycle.probing_up();
        let gain = if probing { self.cycle.up() } else { UNIT }.max(self.window_gain);
        let burst = 2 * u64::from(self.pacing.burst_packets);
        let allowance = burst.max(ALLOWANCE_PACKETS).max(self.aggregation_packets(bw));
        let pipe = (self.bdp_packets(bw, gain) + allowance) * mss;
        let roomy = if probing { self.in_flight_target(bw, gain) } else { 0 };
        pipe.max(roomy).saturating_sub(self.low_delay.shrink >> FRACTION)
    }

    fn queueing_us(&self, rtt: Time) -> u64 {
        rtt.as_micros().saturating_sub(u64::from(self.min_rtt.us))
    }

    /// Whether bandwidth is stable and the minimum RTT can be trusted.
    fn may_judge_queue(&self, now: Time) -> bool {
        let settled = self.bandwidth.rounds.wrapping_sub(self.low_delay.entered);
        self.mode == Mode::ProbeBw
            && settled >= SETTLING_ROUNDS
            && now + NEAR_PROBE_RTT <= self.min_rtt.stamp + WINDOW
            && self.low_delay.steady()
    }

    /// Applies one acknowledgement's share of a round trip's change.
    fn track_shrink(&mut self, bw: PacketRate, queueing_us: u64, acked: u64) {
        let mss = u64::from(self.mss);
        let bound = u64::from(self.config.delay_lower_bound_us);
        let per_round = self.window.max(mss) * u64::from(self.config.shrink_rounds);
        let step = |bytes: u64| share_of_round(bytes, acked, per_round);
        let worn_off = step(self.low_delay.shrink >> FRACTION);
        let rest = self.low_delay.shrink.saturating_sub(worn_off);
        self.low_delay.shrink = if queueing_us > bound {
            let queued = (packets_in(bw, queueing_us << 4) * mss) >> 4;
            let limit = (self.bdp_packets(bw, UNIT) * mss / 2) << FRACTION;
            rest.saturating_add(step(queued)).min(limit)
        } else {
            let empty = queueing_us < bound / EMPTY_QUEUE;
            let speed = if empty { EMPTY_QUEUE_FACTOR } else { 1 };
            rest.saturating_sub(step(RETURN_PACKETS * mss * speed))
        };
    }
}

/// Returns `bytes * acked / per_round`, times 2^10.
#[inline]
fn share_of_round(bytes: u64, acked: u64, per_round: u64) -> u64 {
    const FITS: u64 = u64::MAX >> FRACTION;
    match bytes.checked_mul(acked) {
        Some(product) if product <= FITS => (product << FRACTION) / per_round,
        _ => wide_share_of_round(bytes, acked, per_round),
    }
}

/// Returns the same for a product that exceeds 64 bits.
#[cold]
fn wide_share_of_round(bytes: u64, acked: u64, per_round: u64) -> u64 {
    let share = ((u128::from(bytes) * u128::from(acked)) << FRACTION) / u128::from(per_round);
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 500 MB acknowledged at once, with as much in the queue, as at 400 Gbit/s after an outage.
    #[test]
    fn a_large_share_does_not_overflow() {
        let (bytes, per_round) = (500_000_000_u64, 30 * 1_000_000_000);
        let exact = (bytes as f64 * bytes as f64 * 1024.0 / per_round as f64) as u64;
        assert_eq!(share_of_round(bytes, bytes, per_round), exact);
        assert_eq!(share_of_round(3_000_000, 1_500, 30_000_000), 150 << FRACTION);
        assert_eq!(share_of_round(u64::MAX, u64::MAX, 1), u64::MAX);
    }
}
