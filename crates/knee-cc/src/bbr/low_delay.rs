//! The low-delay change, `shrink_window`: gradually removes from the window the
//! packets that only wait in the queue. `shrink` is what it has removed.
//!
//! As published (`shrink_window = "literal"`), for each acknowledgement:
//! ```text
//!   if the bandwidth is stable and rtt - min_rtt > delay_lower_bound:
//!       shrink += bandwidth x (rtt - min_rtt), over cwnd_pace round trips
//!   window = BDP - shrink
//! ```
//! The path is stable if the variance of the RTT is at most 0.3 of its mean
//! (`shrink_steady`), and not near DRAIN and PROBE_RTT. Three things are read into this,
//! in both forms: `shrink_settling_rounds` after DRAIN or PROBE_RTT, until the bandwidth
//! filter holds a complete gain cycle, and `shrink_before_probe_rtt` are what "near"
//! is; RTTs are in milliseconds, as everywhere in the source, because the ratio has a unit; and
//! mean and variance are moving ones with the weights of RFC 6298, 1/8 and 1/4.
//!
//! Knee's form (`shrink_window = true`) decides otherwise, or decides what the
//! source leaves open. Each point has its own parameter:
//!
//! - *Decay* (`shrink_decay`). What was removed decays over the same `cwnd_pace`
//!   round trips, so that `shrink` follows what the flow had queued in that time. A sum
//!   that only grows never gives back what it took: once the queue is gone, what it holds
//!   is missing in the path, the estimate of the bandwidth falls to the rate that is left
//!   within ten rounds, and the window with it.
//! - *Giving back* (`shrink_return`, `shrink_return_empty`). At or below the bound, `shrink`
//!   also falls by a fixed number of packets over `cwnd_pace` round trips. A flow's share of a
//!   full link is its share of the packets in the queue. Taking in proportion and giving
//!   back in equal amounts makes the shares equal (Chiu and Jain, 1989). The response to an
//!   empty queue, a delay below half the bound, is four times as fast, so that the link does
//!   not stay idle.
//! - *The bound* decides whether there is an excess, not how large it is: within the
//!   bound the queue is left alone, beyond it all of the flow's queued packets count; with
//!   `shrink_excess_only` only those beyond it.
//! - *Allowance* (`shrink_allowance`). With exactly one BDP, the link runs dry while
//!   the receiver waits for the packets that one acknowledgement will cover. Four packets
//!   are allowed for that, or two bursts if segmentation offload makes them
//!   larger, or the observed ACK aggregation.
//! - *Probing* (`shrink_probe_window`). The upward phase may apply its gain to the window
//!   too, since it would otherwise change nothing; and it gets Linux's room for bursts, since it
//!   would otherwise find nothing if the BDP is a few packets. If the rate sampler's
//!   interval is too long by one ACK of `a` packets (as in ns-3.35), it measures
//!   `w / (w + a)` of the rate with `w` packets in flight, so an estimate keeps up
//!   only while `gain w / (w + a) >= 1`: with gain 6/5 and an ACK for two packets,
//!   from ten packets on.
//! - *The end of a probe* (`shrink_probe_ends`). The upward phase ends once that window is in
//!   use: BBR waits for its gain times the BDP in flight, which no smaller window lets
//!   through, so that the phase would last until a loss or PROBE_RTT. *Bandwidth that others
//!   free* is taken over by probes: the phase continues while its target, a multiple of a growing
//!   bandwidth, exceeds the data in flight.
//! - *Limit* (`shrink_limit`). `shrink` is at most half a BDP: against flows that always fill
//!   the buffer, giving back more would only mean giving up.
//! - *Steadiness* (`shrink_by_variance` for the published one). The mean deviation of the RTT
//!   in place of its variance: it has the unit of the mean, so that the bound of 0.3 does not
//!   depend on the unit of time, and means the same on short and long paths.

use super::aggregation::packets_in;
use super::bandwidth::PacketRate;
use super::config::in_units;
use super::probe_rtt::WINDOW;
use super::{Bbr, Gain, Mode, UNIT};
use crate::Sample;
use knee_units::Time;
use knee_units::registry::Settings;

/// A queueing delay below this fraction of the bound counts as an empty queue: 1/2.
const EMPTY_QUEUE: u64 = 2;

/// Limit of `shrink` that stands for none.
const NO_LIMIT: Gain = Gain::MAX;

/// RTT above which the exact value no longer matters.
const LONGEST_RTT: Time = Time::from_secs(100);

/// Fraction bits of `shrink`: the step per acknowledgement is small.
const FRACTION: u32 = 10;

/// Parameters of the change.
#[derive(Clone, Copy, Debug)]
struct Shrink {
    decay: bool,
    excess_only: bool,
    probe_window: bool,
    probe_ends: bool,
    by_variance: bool,
    return_empty: u8,
    /// Round trips (`cwnd_pace`).
    rounds: u16,
    return_packets: u16,
    allowance: u16,
    settling_rounds: u16,
    /// In BDP; [`NO_LIMIT`] without one.
    limit: Gain,
    /// In thousandths.
    steady: u32,
    /// In microseconds.
    delay_lower_bound_us: u32,
    before_probe_rtt_us: u32,
}

/// Parameters of Knee's own decisions, which the literal form does without.
pub(super) const OWN: [&str; 8] = [
    "shrink_decay",
    "shrink_return",
    "shrink_return_empty",
    "shrink_allowance",
    "shrink_probe_window",
    "shrink_probe_ends",
    "shrink_limit",
    "shrink_by_variance",
];

/// Word of `shrink_window` for the change as published.
pub(super) const LITERAL: &str = "literal";

impl Shrink {
    fn read(settings: &Settings) -> Shrink {
        let own = settings.word("shrink_window") != Some(LITERAL);
        let switch = |name: &str| own && settings.switch(name);
        let packets = |name: &str| if own { settings.count(name) as u16 } else { 0 };
        let micros = |name: &str| {
            let time = settings.duration(name).unwrap_or_default();
            time.as_micros().min(u64::from(u32::MAX)) as u32
        };
        Shrink {
            decay: switch("shrink_decay"),
            excess_only: settings.switch("shrink_excess_only"),
            probe_window: switch("shrink_probe_window"),
            probe_ends: switch("shrink_probe_ends"),
            by_variance: !own || settings.switch("shrink_by_variance"),
            return_empty: settings.count("shrink_return_empty") as u8,
            rounds: settings.count("cwnd_pace") as u16,
            return_packets: packets("shrink_return"),
            allowance: packets("shrink_allowance"),
            settling_rounds: settings.count("shrink_settling_rounds") as u16,
            limit: if own { in_units(settings.number("shrink_limit")) } else { NO_LIMIT },
            steady: (settings.number("shrink_steady") * 1000.0).round() as u32,
            delay_lower_bound_us: micros("delay_lower_bound"),
            before_probe_rtt_us: micros("shrink_before_probe_rtt"),
        }
    }
}

/// The change and its state.
#[derive(Clone, Debug)]
pub(super) struct LowDelay {
    config: Shrink,
    /// Bytes removed from the window, times 2^10.
    shrink: u64,
    /// Mean deviation of the RTT in microseconds, or its variance in square microseconds,
    /// times 4 (the filter of RFC 6298, on each sample).
    rtt_spread: u64,
    /// Mean RTT in microseconds, times 8 (likewise).
    rtt_mean: u32,
    /// Round in which PROBE_BW was entered.
    entered: u32,
}

impl LowDelay {
    /// Returns the change, if it is on.
    pub(super) fn read(settings: &Settings) -> Option<Box<LowDelay>> {
        let config = Shrink::read(settings);
        let change = LowDelay { config, shrink: 0, rtt_spread: 0, rtt_mean: 0, entered: 0 };
        settings.switch("shrink_window").then(|| Box::new(change))
    }

    /// Whether the upward phase ends once the window of the change is in use.
    pub(super) fn ends_probes(&self) -> bool {
        self.config.probe_ends
    }

    /// Called when PROBE_BW begins.
    pub(super) fn settle(&mut self, round: u32) {
        self.entered = round;
    }

    /// Returns what is removed from the window, in bytes.
    pub(super) fn shrink(&self) -> u64 {
        self.shrink >> FRACTION
    }

    fn take_rtt(&mut self, rtt: Time) {
        let us = rtt.min(LONGEST_RTT).as_micros() as u32;
        if self.rtt_mean == 0 {
            self.rtt_mean = us * 8;
            return;
        }
        let error = u64::from(us.abs_diff(self.rtt_mean / 8));
        let term = if self.config.by_variance { error * error } else { error };
        self.rtt_spread = self.rtt_spread - self.rtt_spread / 4 + term;
        self.rtt_mean = self.rtt_mean - self.rtt_mean / 8 + us;
    }

    fn steady(&self) -> bool {
        let bound = u64::from(self.rtt_mean / 8) * u64::from(self.config.steady);
        // The variance over the mean is in milliseconds: both sides are a thousand times that.
        let unit = if self.config.by_variance { 1 } else { 1000 };
        self.rtt_spread / 4 * unit <= bound
    }
}

impl Bbr {
    /// Returns the target window of the change, in bytes.
    #[inline(never)]
    pub(super) fn low_delay_window(
        &self,
        change: &mut LowDelay,
        bw: PacketRate,
        sample: &Sample,
        now: Time,
    ) -> u64 {
        if let Some(rtt) = sample.rtt {
            change.take_rtt(rtt);
            if self.may_judge_queue(change, now) {
                self.track_shrink(change, bw, self.queueing_us(rtt), sample.newly_acked);
            }
        }
        self.shrunk_window(change, bw)
    }

    /// Returns the window for the current phase.
    pub(super) fn shrunk_window(&self, change: &LowDelay, bw: PacketRate) -> u64 {
        let mss = u64::from(self.mss);
        let shrink = &change.config;
        let probing = shrink.probe_window && self.mode == Mode::ProbeBw && self.cycle.probing_up();
        let gain = if probing { self.cycle.up() } else { UNIT }.max(self.window_gain);
        let allowance = match u64::from(shrink.allowance) {
            0 => 0,
            packets => {
                let burst = 2 * u64::from(self.pacing.burst_packets);
                burst.max(packets).max(self.aggregation_packets(bw))
            }
        };
        let pipe = (self.bdp_packets(bw, gain) + allowance) * mss;
        let roomy = if probing { self.in_flight_target(bw, gain) } else { 0 };
        pipe.max(roomy).saturating_sub(change.shrink())
    }

    fn queueing_us(&self, rtt: Time) -> u64 {
        rtt.as_micros().saturating_sub(u64::from(self.min_rtt.us))
    }

    /// Whether bandwidth is stable and the minimum RTT can be trusted.
    fn may_judge_queue(&self, change: &LowDelay, now: Time) -> bool {
        let shrink = &change.config;
        let settled = self.bandwidth.rounds.wrapping_sub(change.entered);
        let before = Time::from_micros(u64::from(shrink.before_probe_rtt_us));
        self.mode == Mode::ProbeBw
            && settled >= u32::from(shrink.settling_rounds)
            && now + before <= self.min_rtt.stamp + WINDOW
            && change.steady()
    }

    /// Applies one acknowledgement's share of a round trip's change.
    fn track_shrink(&self, change: &mut LowDelay, bw: PacketRate, queueing_us: u64, acked: u64) {
        let mss = u64::from(self.mss);
        let shrink = change.config;
        let bound = u64::from(shrink.delay_lower_bound_us);
        let per_round = self.window.max(mss) * u64::from(shrink.rounds);
        let step = |bytes: u64| share_of_round(bytes, acked, per_round);
        let worn_off = if shrink.decay { step(change.shrink()) } else { 0 };
        let rest = change.shrink.saturating_sub(worn_off);
        change.shrink = if queueing_us > bound {
            let excess_us = if shrink.excess_only { queueing_us - bound } else { queueing_us };
            let queued = (packets_in(bw, excess_us << 4) * mss) >> 4;
            rest.saturating_add(step(queued)).min(self.shrink_limit(shrink.limit, bw))
        } else {
            let empty = queueing_us < bound / EMPTY_QUEUE;
            let speed = if empty { u64::from(shrink.return_empty) } else { 1 };
            rest.saturating_sub(step(u64::from(shrink.return_packets) * mss * speed))
        };
    }

    /// Returns the largest value of `shrink`, times 2^10.
    fn shrink_limit(&self, limit: Gain, bw: PacketRate) -> u64 {
        match limit {
            NO_LIMIT => u64::MAX,
            limit => {
                let pipe = self.bdp_packets(bw, UNIT) * u64::from(self.mss);
                ((pipe * u64::from(limit)) >> 8) << FRACTION
            }
        }
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
