//! BBR version 3, after draft-ietf-ccwg-bbr-06. Section numbers in this folder refer to it.
//!
//! The model: a path is its bottleneck bandwidth, its minimum RTT, and the
//! amount in flight that it sustains without losing more than 2 %.
//! ```text
//!   max_bw   = max(delivery rate)  over this cycle of PROBE_BW and the last
//!   min_rtt  = min(rtt)            over 10 seconds
//!   bw       = min(max_bw, short-term bound)
//!   pacing   = 0.99 x pacing gain x bw
//!   window   = window gain x bw x min_rtt + extra_acked, at most the long-term
//!              bound (less 15 % while cruising) and the short-term bound
//! ```
//! The phases:
//! ```text
//!   STARTUP ----------------> DRAIN ---------> PROBE_BW
//!   2.77, until 3 rounds      0.5, until          DOWN 0.9 --> CRUISE 1
//!   without 25 % growth or    in flight <= BDP      ^            |  2 to 3 s or
//!   6 losses and 2 % in one   or 3 rounds           |            v  63 rounds
//!     ^                                           UP 1.25 <-- REFILL 1
//!     |   PROBE_RTT, every 5 s: 0.5 BDP           (full again, or 2 % lost)
//!     +-- for 200 ms and a round, then --------------^ CRUISE
//!     (if the pipe was never full)
//! ```
//! The long-term bound is learnt while probing and outlives the cycle; the
//! short-term bounds are learnt from loss between probes, and the next probe
//! resets them (section 3.4.2).
//!
//! One file per part of the model: [`bandwidth`], [`startup`] (and DRAIN),
//! [`probe_bw`], [`probe_rtt`], [`congestion`] (loss, and undoing it),
//! [`aggregation`], and [`output`] (pacing rate, burst, window). Deviations are
//! documented where they occur. Left out from Linux's branch v3: ECN, the
//! handling of TLP in the round, estimates of what is in the network at the
//! next departure, and the fast path.

mod aggregation;
mod bandwidth;
mod config;
mod congestion;
mod output;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use crate::{
    Connection, Controller, Decision, Ecn, Event, Init, Loss, Needs, Recovery, Sample, State,
};
use aggregation::Aggregation;
use bandwidth::Bandwidth;
use config::Config;
use congestion::{Signals, Undo};
use knee_units::Rate;
use knee_units::registry::Settings;
use output::Pacing;
use probe_bw::Cycle;
use probe_rtt::MinRtt;
use rand_core::Rng;
use startup::{FullPipe, LossRanges};

pub(crate) use config::ENTRY;

/// Fraction of a whole, in units of 1/[`UNIT`].
type Thousandths = u32;
/// Gain, in units of 1/[`UNIT`].
type Gain = u32;
const UNIT: u32 = 1000;

/// No bound: the draft's "Infinity".
const NONE: u64 = u64::MAX;

/// Smallest window, in packets: with an ACK for every other packet, four
/// packets keep data flowing.
const MIN_WINDOW_PACKETS: u64 = 4;

/// Returns a fraction of `whole`, which may be [`NONE`].
#[inline]
fn part(whole: u64, part: Thousandths) -> u64 {
    whole.saturating_mul(u64::from(part)) / u64::from(UNIT)
}

/// Phase of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The BBR version 3 controller.
#[derive(Clone, Debug)]
struct Bbr3 {
    config: Config,
    phase: Phase,
    mss: u32,
    /// Bytes.
    initial_window: u64,
    bandwidth: Bandwidth,
    min_rtt: MinRtt,
    /// `bw`: bandwidth within the short-term bound, bytes per second.
    bw: u64,
    /// `bw_shortterm`, bytes per second, or [`NONE`].
    rate_short: u64,
    /// `inflight_shortterm`, bytes, or [`NONE`].
    in_flight_short: u64,
    /// `inflight_longterm`, bytes, or [`NONE`].
    in_flight_long: u64,
    signals: Signals,
    loss_ranges: LossRanges,
    undo: Undo,
    full_pipe: FullPipe,
    drain_start_round: u32,
    cycle: Cycle,
    aggregation: Aggregation,
    pacing: Pacing,
    /// Bytes.
    window: u64,
    /// Window before recovery or PROBE_RTT, bytes.
    prior_window: u64,
    /// State of recovery at the last acknowledgement.
    prior_recovery: Recovery,
    /// Sending resumed after an idle time, and nothing has been acknowledged since.
    idle_restart: bool,
    decision: Decision,
}

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(Bbr3::new(Config::read(settings), init))
}

impl Bbr3 {
    fn new(config: Config, mut init: Init) -> Bbr3 {
        let mss = init.mss.max(1);
        let window = init.initial_window.max(u64::from(mss));
        let mut bbr = Bbr3 {
            config,
            phase: Phase::Startup,
            mss,
            initial_window: window,
            bandwidth: Bandwidth::default(),
            min_rtt: MinRtt::default(),
            bw: 0,
            rate_short: NONE,
            in_flight_short: NONE,
            in_flight_long: NONE,
            signals: Signals::default(),
            loss_ranges: LossRanges::default(),
            undo: Undo::default(),
            full_pipe: FullPipe::default(),
            drain_start_round: 0,
            cycle: Cycle::new(init.rng.next_u64()),
            aggregation: Aggregation::default(),
            pacing: Pacing::default(),
            window,
            prior_window: 0,
            prior_recovery: Recovery::Open,
            idle_restart: false,
            decision: Decision::default(),
        };
        bbr.init_pacing_rate(knee_units::Time::ZERO);
        bbr.decide();
        bbr
    }

    /// `UpdateModelAndState` (section 5.2.3).
    #[inline]
    fn update_model(&mut self, sample: &Sample, connection: &Connection) {
        self.take_rate(sample);
        self.update_signals(sample, connection);
        self.update_bandwidth(sample, connection);
        self.adapt_short_term();
        self.update_aggregation(sample, connection);
        self.check_full_pipe(sample);
        self.check_startup_done(sample);
        self.check_drain_done(connection);
        self.update_cycle(sample, connection);
        self.update_min_rtt(sample, connection);
        self.advance_signals(sample);
        self.bw = self.bandwidth.max().min(self.rate_short);
    }

    /// Uses the handshake's RTT as the first estimate and for the initial rate.
    fn on_established(&mut self, connection: &Connection) {
        self.min_rtt.begin(connection.min_rtt, connection.now);
        self.bandwidth.start_round(connection.delivered);
        self.aggregation.restart(connection.now);
        self.init_pacing_rate(connection.srtt);
    }

    /// `HandleRestartFromIdle`: the estimate still holds; pace at it instead of
    /// probing (section 5.4.1).
    fn on_restart(&mut self, connection: &Connection) {
        if !connection.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(connection.now);
        if self.in_probe_bw() {
            self.set_pacing_rate(UNIT, connection.srtt);
        } else if self.phase == Phase::ProbeRtt {
            self.check_probe_rtt_done(connection);
        }
    }

    #[inline]
    fn decide(&mut self) -> Decision {
        self.update_quantum();
        self.decision = Decision {
            window: self.window,
            pacing_rate: Some(self.pacing_rate()),
            send_quantum: self.quantum(),
            ecn: Ecn::NotCapable,
            // `MarkConnectionAppLimited` (section 5.3.4.3).
            holds_back: self.phase == Phase::ProbeRtt,
        };
        self.decision
    }
}

impl Controller for Bbr3 {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.mss = connection.mss.max(1);
        self.update_model(sample, connection);
        self.follow_recovery(connection.recovery);
        self.set_pacing_rate(self.pacing_gain(), connection.srtt);
        self.update_quantum();
        self.set_window(sample, connection);
        self.decide()
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => self.on_established(connection),
            Event::SentAfterIdle => self.on_restart(connection),
            Event::RecoveryStart | Event::CongestionEcho => self.on_recovery_start(),
            Event::RecoveryEnd => self.on_recovery_end(),
            Event::Timeout => self.on_timeout(connection),
            Event::SpuriousRecovery => self.on_spurious(connection),
            // The window grows back to its target as data is acknowledged.
            Event::Penalised => self.window = (self.window / 2).max(u64::from(self.mss)),
        }
        self.decide()
    }

    fn on_loss(&mut self, loss: &Loss, connection: &Connection) -> Decision {
        self.handle_loss(loss, connection);
        self.decision
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let phase = match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::Down => "probe_bw_down",
            Phase::Cruise => "probe_bw_cruise",
            Phase::Refill => "probe_bw_refill",
            Phase::Up => "probe_bw_up",
            Phase::ProbeRtt => "probe_rtt",
        };
        let max = self.bandwidth.max();
        State {
            phase,
            bandwidth: (max > 0).then(|| Rate::from_bytes_per_second(self.bw)),
            min_rtt: self.min_rtt.known(),
            // The bound learnt from loss, reported as other controllers' threshold.
            slow_start_threshold: (self.in_flight_long != NONE).then_some(self.in_flight_long),
            pacing_gain: Some(f64::from(self.pacing_gain()) / f64::from(UNIT)),
            ..State::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, losses: true, ..Needs::default() }
    }
}
