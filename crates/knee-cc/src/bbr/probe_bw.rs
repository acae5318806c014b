//! PROBE_BW: the gain cycle that discovers and shares bandwidth, eight phases
//! of about one minimum RTT each.
//!
//! Three of the published changes alter when phases end:
//! - `drain_to_target`: the phase below gain 1 lasts until in flight is down to
//!   one BDP, however long that takes; a full min_rtt does not end it. Beside a
//!   flow that keeps the queue full (CUBIC, 4 BDP) it lasts until PROBE_RTT.
//! - `probe_up_exit_early`: the phase above gain 1 ends as soon as in flight
//!   reaches its target; a full min_rtt is no longer required.
//! - `max_cruise`: after a phase at gain 1 the next probe begins if these
//!   phases have lasted this long in total, so that flows with a long RTT probe
//!   nearly as often as others. A phase is never cut short.
//!
//! A request from a note on BBR's retransmissions changes the phase above gain
//! 1, the probe: `probe_loss_gain`. A probe that lost packets cuts the pacing
//! rate by this factor, as a ceiling on the estimate used for pacing; a probe
//! that lost none raises the ceiling by its own gain. The note says only that
//! the rate should fall multiplicatively. Decided here:
//! - The next probe starts from the cut rate. If it started from the estimate,
//!   which has memory, it would lose as much again in each cycle.
//! - The ceiling is a rate rather than a factor on the estimate, because the
//!   estimate falls with what is sent, and a factor would cut it again each round.
//! - A probe from below the estimate builds no queue and cannot reach its
//!   in-flight target. It lasts one min_rtt.
//! - The window is unchanged: it limits what is in flight, and the note is about the rate.
//! - A loss counts with the ACK that reveals it, if the data last acknowledged
//!   was sent in the probe; a loss that only a timeout reveals does not count.

use super::aggregation::packets_in;
use super::bandwidth::PacketRate;
use super::config::Config;
use super::{Bbr, Gain, Mode, UNIT};
use crate::split_mix::SplitMix64;
use crate::{Connection, Sample};
use knee_units::Time;

/// Phases of a cycle.
const PHASES: u8 = 8;

/// Phase above gain 1.
const UP: u8 = 0;

/// Phase below gain 1.
const DOWN: u8 = 1;

/// First of the phases at gain 1.
const CRUISE: u8 = 2;

/// Position of the flow in the gain cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    phase: u8,
    start: Time,
    /// Start of the phases at gain 1.
    cruise_start: Time,
    /// Bytes delivered when the last probe began, and from then to its end
    /// ([`u32::MAX`] while it lasts): data sent in between was sent in the probe.
    probe_begin: u64,
    probe_bytes: u32,
    /// Estimate that the probe started from; zero once it has lost packets.
    probe_from: PacketRate,
    /// Upper limit of the estimate used for pacing; [`PacketRate::MAX`] if no
    /// probe has lost packets.
    ceiling: PacketRate,
    /// Gains of the phases above and below gain 1.
    up: Gain,
    down: Gain,
    /// State of the generator that draws the first phases.
    random: SplitMix64,
}

impl Cycle {
    pub(super) fn new(seed: u64, config: &Config) -> Cycle {
        Cycle {
            phase: UP,
            start: Time::ZERO,
            cruise_start: Time::ZERO,
            probe_begin: 0,
            probe_bytes: 0,
            probe_from: 0,
            ceiling: PacketRate::MAX,
            up: config.gain_up,
            down: config.gain_down,
            random: SplitMix64::new(seed),
        }
    }

    #[inline]
    pub(super) fn gain(&self) -> Gain {
        match self.phase {
            UP => self.up,
            DOWN => self.down,
            _ => UNIT,
        }
    }

    /// Returns the gain of the phase above gain 1.
    #[inline]
    pub(super) fn up(&self) -> Gain {
        self.up
    }

    /// Sets the gains of the phases above and below gain 1.
    pub(super) fn set_gains(&mut self, (up, down): (Gain, Gain)) {
        (self.up, self.down) = (up, down);
    }

    #[inline]
    pub(super) fn probing_up(&self) -> bool {
        self.phase == UP
    }

    pub(super) fn phase(&self) -> &'static str {
        match self.phase {
            UP => "probe_bw_up",
            DOWN => "probe_bw_down",
            _ => "probe_bw_cruise",
        }
    }

    pub(super) fn rescale(&mut self, old_mss: u64, new_mss: u64) {
        for rate in [&mut self.probe_from, &mut self.ceiling] {
            if *rate != PacketRate::MAX {
                let scaled = u64::from(*rate) * old_mss / new_mss;
                *rate = scaled.min(u64::from(PacketRate::MAX)) as PacketRate;
            }
        }
    }

    fn enter(&mut self, phase: u8, now: Time) {
        let cruising = self.phase >= CRUISE;
        self.phase = phase;
        self.start = now;
        if self.phase >= CRUISE && !cruising {
            self.cruise_start = now;
        }
    }

    /// Draws a random phase other than [`DOWN`]: flows that start together
    /// should not probe together, and there is nothing to give back yet.
    fn draw(&mut self) -> u8 {
        let random = u128::from(self.random.draw());
        let below = ((random * u128::from(PHASES - 1)) >> 64) as u8;
        (PHASES - below) % PHASES
    }
}

impl Bbr {
    #[inline(never)]
    pub(super) fn enter_probe_bw(&mut self, delivered: u64) {
        self.mode = Mode::ProbeBw;
        let first = self.cycle.draw();
        self.cycle.enter(UP, self.delivered_at);
        self.cycle.enter(first, self.delivered_at);
        // A probe that PROBE_RTT cut short provides no information any more.
        self.cycle.probe_from = 0;
        if first == UP {
            self.begin_probe(delivered);
        }
        if let Some(low_delay) = &mut self.low_delay {
            low_delay.settle(self.bandwidth.rounds);
        }
    }

    #[inline]
    pub(super) fn update_cycle(&mut self, sample: &Sample, connection: &Connection) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        if sample.newly_lost > 0 {
            self.answer_probe_loss(sample);
        }
        if self.phase_is_over(sample, connection) {
            let next = self.next_phase();
            if self.cycle.phase == UP {
                self.end_probe(connection.delivered);
            }
            if next == UP {
                self.begin_probe(connection.delivered);
            }
            self.cycle.enter(next, self.delivered_at);
        }
    }

    fn begin_probe(&mut self, delivered: u64) {
        self.cycle.probe_begin = delivered;
        self.cycle.probe_bytes = u32::MAX;
        self.cycle.probe_from = self.paced_bw();
        self.begin_cycle();
    }

    /// Raises the ceiling if there were no losses so far. If losses show up
    /// later, it falls from where the probe started.
    fn end_probe(&mut self, delivered: u64) {
        let bytes = delivered.saturating_sub(self.cycle.probe_begin);
        self.cycle.probe_bytes = bytes.min(u64::from(u32::MAX)) as u32;
        if self.cycle.probe_from > 0 && self.cycle.ceiling != PacketRate::MAX {
            let raised = (u64::from(self.cycle.ceiling) * u64::from(self.cycle.up)) >> 8;
            self.cycle.ceiling = raised.min(u64::from(PacketRate::MAX)) as PacketRate;
        }
    }

    /// Change `probe_loss_gain`: lowers the ceiling at the first loss of a probe.
    #[inline(never)]
    fn answer_probe_loss(&mut self, sample: &Sample) {
        let gain = self.config.probe_loss_gain;
        let since = sample.prior_delivered.checked_sub(self.cycle.probe_begin);
        let of_probe = since.is_some_and(|bytes| bytes <= u64::from(self.cycle.probe_bytes))
            && self.cycle.up > UNIT
            && !self.long_term.in_use;
        if gain < UNIT && of_probe && self.cycle.probe_from > 0 {
            let cut = (u64::from(self.cycle.probe_from) * u64::from(gain)) >> 8;
            self.cycle.ceiling = cut as PacketRate;
            self.cycle.probe_from = 0;
        }
    }

    /// Returns the estimate used for pacing. The ceiling does not apply to a
    /// policer's rate, which no probe found.
    #[inline]
    pub(super) fn paced_bw(&self) -> PacketRate {
        if self.mode == Mode::ProbeBw && !self.long_term.in_use {
            self.bandwidth.max().min(self.cycle.ceiling)
        } else {
            self.bw()
        }
    }

    fn next_phase(&self) -> u8 {
        let cruised = self.delivered_at.saturating_sub(self.cycle.cruise_start);
        if self.cycle.phase >= CRUISE && cruised >= self.config.max_cruise {
            return UP;
        }
        (self.cycle.phase + 1) % PHASES
    }

    #[inline]
    fn phase_is_over(&self, sample: &Sample, connection: &Connection) -> bool {
        // In whole microseconds, as everything here.
        let elapsed = self.delivered_at.saturating_sub(self.cycle.start);
        let full_length = elapsed >= Time::from_micros(u64::from(self.min_rtt.us) + 1);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_network = self.in_network(sample.prior_in_flight, connection);
        if self.pacing_gain > UNIT {
            self.probe_is_over(full_length, in_network, sample)
        } else {
            self.drain_is_over(full_length, in_network)
        }
    }

    /// Whether the probe is over. Probing raises in flight to `gain x BDP`,
    /// even if that takes longer than a min_rtt; it stops when packets are
    /// lost, because the buffer may not hold that much.
    fn probe_is_over(&self, full_length: bool, in_network: u64, sample: &Sample) -> bool {
        if !full_length && !self.config.probe_up_exit_early {
            return false;
        }
        let bw = self.bandwidth.max();
        if full_length && self.cycle.ceiling < bw {
            return true;
        }
        let mut target = self.in_flight_target(bw, self.pacing_gain);
        if let Some(low_delay) = self.low_delay.as_ref().filter(|change| change.ends_probes()) {
            // The window may be smaller, and its last burst may not fit.
            let burst = u64::from(self.pacing.burst_packets * self.mss);
            target = target.min(self.shrunk_window(low_delay, bw).saturating_sub(burst));
        }
        in_network >= target || (full_length && sample.newly_lost > 0)
    }

    /// Whether draining is over: with one BDP in flight, since less would leave
    /// the link idle.
    fn drain_is_over(&self, full_length: bool, in_network: u64) -> bool {
        (full_length && !self.config.drain_to_target)
            || in_network <= self.in_flight_target(self.bandwidth.max(), UNIT)
    }

    /// Returns the bytes that will be in the network when pacing lets the next
    /// packet leave: bytes delivered by then are not counted, and a packet that
    /// raises in flight is already counted.
    #[inline]
    pub(super) fn in_network(&self, in_flight: u64, connection: &Connection) -> u64 {
        let mss = u64::from(self.mss);
        let wait = connection.next_departure.saturating_sub(connection.now).as_micros();
        let delivered = packets_in(self.bw(), wait).saturating_mul(mss);
        let leaving =
            if self.pacing_gain > UNIT { u64::from(self.pacing.burst_packets) } else { 0 };
        (in_flight + leaving * mss).saturating_sub(delivered)
    }
}
