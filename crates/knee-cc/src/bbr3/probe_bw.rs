//! PROBE_BW: the cycle of going down, cruising, refilling and going up
//! (section 5.3.3).
//!
//! One deviation: in the draft the bandwidth filter advances one round after a
//! probe, unless the application limits the rate at that time. With a deep
//! queue, after the rate has fallen, a round may last longer than the time to
//! the next probe or to the next PROBE_RTT, where samples count as limited: the
//! filter would never advance, the estimate would stay too high, and the
//! minimum RTT would grow with the queue. Here it advances no later than at the
//! start of the next probe or PROBE_RTT, if there was a usable sample.

use super::{Bbr3, MIN_WINDOW_PACKETS, NONE, Phase, part};
use crate::split_mix::SplitMix64;
use crate::{Connection, Sample};
use knee_units::Time;

/// Largest number of rounds before a probe begins: a Reno flow at 25 Mbit/s and
/// 30 ms loses a packet as often (section 5.3.3.8.3).
const ROUNDS_MAX: u64 = 63;

/// Time between probes: at least `WAIT_MIN`, plus up to a second at random.
const WAIT_MIN: Time = Time::from_secs(2);
const WAIT_RANDOM_NS: u64 = 1_000_000_000;

/// Largest number of doublings of the long-term bound's slope.
const SLOPE_MAX: u8 = 30;

/// Feedback that acknowledgements give about the last probe (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    /// Nothing.
    None,
    /// Refilling the pipe.
    Refilling,
    /// A probe has begun.
    Starting,
    /// Feedback for the probe is arriving.
    Probing,
    /// The probe has ended, and feedback is still arriving.
    Stopping,
}

/// State of the cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// When this cycle began.
    start: Time,
    /// `bw_probe_wait`: time from `start` to the next probe.
    wait: Time,
    /// `rounds_since_probe_up`, plus a random zero or one.
    pub(super) rounds: u32,
    /// `is_bw_probe_sample`: acknowledgements and losses are for packets sent
    /// while probing, and there was no response to a loss yet.
    pub(super) samples_probe: bool,
    /// `prev_probe_too_high`: the last probe lost too much.
    pub(super) too_high: bool,
    /// `prev_probe_precautionary`: the last probe was ended at the bound, as a precaution.
    pub(super) precautionary: bool,
    /// Whether the bandwidth filter has advanced since the last probe or PROBE_RTT began.
    pub(super) advanced: bool,
    /// `bw_probe_up_rounds`: rounds during which the bound has grown.
    growth: u8,
    /// `probe_up_acked_per_inc`: bytes acknowledged per packet by which the bound grows.
    pub(super) acked_per_packet: u64,
    /// `bw_probe_up_acked`: bytes acknowledged towards the next packet.
    acked: u64,
    /// Generator of the waits.
    random: SplitMix64,
}

impl Cycle {
    pub(super) fn new(seed: u64) -> Cycle {
        Cycle {
            feedback: Feedback::None,
            start: Time::ZERO,
            wait: Time::ZERO,
            rounds: 0,
            samples_probe: false,
            too_high: false,
            precautionary: false,
            advanced: false,
            growth: 0,
            acked_per_packet: NONE,
            acked: 0,
            random: SplitMix64::new(seed),
        }
    }

    /// `PickProbeWait`.
    fn pick_wait(&mut self) {
        self.rounds = (self.random.draw() & 1) as u32;
        self.wait = WAIT_MIN + Time::from_nanos(self.random.draw() % WAIT_RANDOM_NS);
    }

    /// Ends feedback for the probe once this round is over.
    pub(super) fn stop_feedback(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    /// `RaiseInflightLongtermSlope`: doubles the slope with each round.
    fn raise_slope(&mut self, window: u64, mss: u64) {
        self.acked_per_packet = (window >> self.growth).max(mss);
        self.growth = (self.growth + 1).min(SLOPE_MAX);
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, connection: &Connection) {
        self.signals.reset();
        self.cycle.acked_per_packet = NONE;
        self.cycle.pick_wait();
        self.cycle.start = connection.now;
        self.cycle.stop_feedback();
        self.bandwidth.start_round(connection.delivered);
        self.phase = Phase::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self, connection: &Connection) {
        self.advance_filter();
        self.cycle.advanced = false;
        self.forget_short_term();
        self.cycle.growth = 0;
        self.cycle.acked = 0;
        self.cycle.precautionary = false;
        self.cycle.feedback = Feedback::Refilling;
        self.bandwidth.start_round(connection.delivered);
        self.phase = Phase::Refill;
    }

    /// Advances the bandwidth filter, unless that already happened in this cycle.
    pub(super) fn advance_filter(&mut self) {
        if !self.cycle.advanced {
            self.bandwidth.advance_cycle();
            self.cycle.advanced = true;
        }
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, connection: &Connection) {
        self.cycle.samples_probe = true;
        self.cycle.feedback = Feedback::Starting;
        self.bandwidth.start_round(connection.delivered);
        self.full_pipe.restart(self.bandwidth.sample);
        self.phase = Phase::Up;
        self.cycle.raise_slope(self.window, u64::from(self.mss));
    }

    pub(super) fn in_probe_bw(&self) -> bool {
        matches!(self.phase, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// `UpdateProbeBWCyclePhase`.
    #[inline]
    pub(super) fn update_cycle(&mut self, sample: &Sample, connection: &Connection) {
        if !self.full_pipe.reached || sample.newly_acked == 0 {
            return;
        }
        if self.adapt_long_term(sample, connection) {
            return;
        }
        let phase = self.phase;
        match phase {
            Phase::Down | Phase::Cruise if self.begin_probe_in_time(connection) => {}
            Phase::Down if self.may_cruise(connection) => self.phase = Phase::Cruise,
            Phase::Refill if self.bandwidth.round_start => self.start_up(connection),
            Phase::Up if self.is_time_to_go_down(connection) => {
                self.cycle.too_high = false; // not yet
                self.start_down(connection);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`.
    #[inline]
    fn begin_probe_in_time(&mut self, connection: &Connection) -> bool {
        let due = connection.now > self.cycle.start + self.cycle.wait || self.reno_would_probe();
        if due {
            self.start_refill(connection);
        }
        due
    }

    /// `IsRenoCoexistenceProbeTime`, in packets: a Reno flow takes as many
    /// rounds between losses as it has packets in flight.
    #[inline]
    fn reno_would_probe(&self) -> bool {
        let rounds = u64::from(self.cycle.rounds);
        let reached = |bytes: u64| rounds.saturating_mul(u64::from(self.mss)) >= bytes;
        rounds >= ROUNDS_MAX || reached(self.target_in_flight())
    }

    /// `IsTimeToCruise`: the queue is empty, and there is headroom for other flows.
    #[inline]
    fn may_cruise(&self, connection: &Connection) -> bool {
        connection.in_flight <= self.in_flight_with_headroom()
            && connection.in_flight <= self.in_flight_target(self.bandwidth.max())
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, connection: &Connection) -> bool {
        // The last probe lost too much at this bound: do not stay there.
        if self.cycle.too_high && connection.in_flight >= self.in_flight_long {
            self.cycle.precautionary = true;
            return true;
        }
        if self.held_by_long_term(connection) {
            // The bound, not the path, keeps the rate from growing.
            self.full_pipe.restart(self.bandwidth.sample);
            return false;
        }
        self.full_pipe.now
    }

    fn held_by_long_term(&self, connection: &Connection) -> bool {
        connection.window_limited && self.window >= self.in_flight_long
    }

    /// `InflightWithHeadroom`: the bound less 15 %, or less one packet if that
    /// is more, and at least four packets.
    pub(super) fn in_flight_with_headroom(&self) -> u64 {
        if self.in_flight_long == NONE {
            return NONE;
        }
        let mss = u64::from(self.mss);
        let headroom = part(self.in_flight_long, self.config.headroom).max(mss);
        self.in_flight_long.saturating_sub(headroom).max(MIN_WINDOW_PACKETS * mss)
    }

    /// `AdaptLongTermModel`. Returns whether a new phase has begun.
    #[inline]
    fn adapt_long_term(&mut self, sample: &Sample, connection: &Connection) -> bool {
        if self.bandwidth.round_start {
            let feedback = self.cycle.feedback;
            match feedback {
                Feedback::Starting => self.cycle.feedback = Feedback::Probing,
                Feedback::Stopping if self.end_feedback(sample, connection) => return true,
                _ => {}
            }
        }
        let bounded = self.in_flight_long != NONE;
        if bounded && !self.is_too_high(sample.lost_since_send, sample.in_flight_at_send) {
            self.in_flight_long = self.in_flight_long.max(sample.in_flight_at_send);
            if self.phase == Phase::Up {
                self.raise_long_term(sample, connection);
            }
        }
        false
    }

    /// Called when feedback for the last probe is complete.
    fn end_feedback(&mut self, sample: &Sample, connection: &Connection) -> bool {
        self.cycle.samples_probe = false;
        self.cycle.feedback = Feedback::None;
        if !self.in_probe_bw() {
            return false;
        }
        if !sample.app_limited {
            self.advance_filter();
        }
        // The bound was reached without too much loss: probe beyond it.
        let beyond = self.cycle.precautionary && !self.cycle.too_high;
        if beyond {
            self.start_refill(connection);
        }
        beyond
    }

    /// `ProbeInflightLongtermUpward`: raises the bound by one packet in the
    /// first round, then two, four, spread over the round.
    fn raise_long_term(&mut self, sample: &Sample, connection: &Connection) {
        if !self.held_by_long_term(connection) {
            return;
        }
        let mss = u64::from(self.mss);
        let cycle = &mut self.cycle;
        cycle.acked += sample.newly_acked;
        if cycle.acked >= cycle.acked_per_packet {
            let packets = cycle.acked / cycle.acked_per_packet;
            cycle.acked -= packets * cycle.acked_per_packet;
            self.in_flight_long = self.in_flight_long.saturating_add(packets * mss);
        }
        if self.bandwidth.round_start {
            cycle.raise_slope(self.window, mss);
        }
    }
}
