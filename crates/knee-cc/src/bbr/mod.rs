//! BBR version 1, as in Linux 6.x (`net/ipv4/tcp_bbr.c`), with switches for
//! five published changes, all off by default; two changes requested in a note
//! on BBR's retransmissions (`bandwidth_window`, `probe_loss_gain`); one from the
//! draft of BBRv3 (`probe_rtt_gain`); six from other papers; and a switch for each
//! part that can be disabled.
//!
//! The model: a path is its bottleneck bandwidth and its minimum RTT.
//! ```text
//!   bandwidth   = max(delivered / elapsed)  over 10 round trips
//!   min_rtt     = min(rtt)                  over 10 seconds
//!   pacing rate = pacing gain x bandwidth
//!   window      = window gain x bandwidth x min_rtt, at least 4 packets
//! ```
//! The phases:
//! ```text
//!            |
//!            v      3 rounds with < 25 % growth
//!   +---> STARTUP ------------------------------> DRAIN
//!   |     gain 2.89                               gain 0.35
//!   |                                               | in flight <= BDP
//!   |     gains 5/4, 3/4, 1, 1, 1, 1, 1, 1          v
//!   |     +-----------------------------------> PROBE_BW
//!   |     |                                         |
//!   |     | >= 200 ms and a round at 4 packets      | min_rtt is 10 s old
//!   |     |                                         v
//!   +-----+------------------------------------ PROBE_RTT
//!  (pipe never full)
//! ```
//! Sources: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM
//! Queue 14(5), 2016; the Linux source. Its integer arithmetic is followed
//! closely enough to compare decisions with the kernel's sample by sample:
//! bandwidth in packets per microsecond times 2^24, gains in 1/256. Windows and
//! in-flight counts are in bytes instead of packets.
//!
//! One file per part of the model: [`bandwidth`] and its [`filter`], [`long_term`]
//! (policers), [`aggregation`], the phases [`startup`] (and DRAIN), [`probe_bw`],
//! [`probe_rtt`], the outputs [`pacing`] and [`window`], the low-delay change
//! [`low_delay`], and those of other papers: [`rtt_gains`], [`delay_aware`],
//! [`window_scale`], [`tobit`], [`window_machine`]; [`changes`] holds their state.

mod aggregation;
mod bandwidth;
mod changes;
mod config;
mod delay_aware;
pub(crate) mod filter;
mod long_term;
mod low_delay;
mod pacing;
mod probe_bw;
mod probe_rtt;
mod rtt_gains;
mod startup;
mod tobit;
mod window;
mod window_machine;
mod window_scale;

use crate::{Connection, Controller, Decision, Ecn, Event, Init, Needs, Recovery, Sample, State};
use aggregation::Aggregation;
use bandwidth::{Bandwidth, PacketRate};
use changes::Changes;
use knee_units::Time;
use knee_units::registry::Settings;
use long_term::LongTerm;
use low_delay::LowDelay;
use pacing::Pacing;
use probe_bw::Cycle;
use probe_rtt::MinRtt;
use rand_core::Rng;
use startup::FullPipe;
use window_machine::WindowMachine;

use config::Config;
pub(crate) use config::{ENTRY, LITERAL_WINDOW, ONLY_HERE};

/// Gain in units of 1/256, as in Linux (`BBR_UNIT`).
type Gain = u16;
const UNIT: Gain = 256;

/// 2/ln 2, the smallest gain that doubles the delivery rate each round.
const HIGH_GAIN: Gain = (UNIT as u32 * 2885 / 1000 + 1) as Gain;

/// Inverse of [`HIGH_GAIN`]: drains in one round the queue that STARTUP built.
const DRAIN_GAIN: Gain = (UNIT as u32 * 1000 / 2885) as Gain;

/// Window in PROBE_RTT as published, and the minimum in other phases: with an ACK for every
/// other packet, four packets keep data flowing.
const MIN_WINDOW_PACKETS: u32 = 4;

/// Window while no RTT is known (RFC 6928).
const INITIAL_PACKETS: u32 = 10;

/// Phase of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR version 1.
#[derive(Clone, Debug)]
struct Bbr {
    config: Config,
    mode: Mode,
    mss: u32,
    pacing_gain: Gain,
    window_gain: Gain,
    bandwidth: Bandwidth,
    long_term: LongTerm,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    cycle: Cycle,
    min_rtt: MinRtt,
    pacing: Pacing,
    /// The change `shrink_window`, if it is on.
    low_delay: Option<Box<LowDelay>>,
    /// State of the changes from other papers, if one is on.
    changes: Option<Box<Changes>>,
    /// Window in bytes.
    window: u64,
    /// Window before recovery or PROBE_RTT, in bytes.
    prior_window: u64,
    /// Reported slow-start threshold: the pipe when STARTUP ended, in bytes.
    threshold: u64,
    /// State of recovery at the last acknowledgement of data.
    prior_recovery: Recovery,
    /// In the first round of recovery, send only as much as was acknowledged.
    packet_conservation: bool,
    /// Sending resumed after an idle time, and nothing has been acknowledged since.
    idle_restart: bool,
    /// Time of the last delivery.
    delivered_at: Time,
}

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    if settings.switch("window_machine") {
        return Box::new(WindowMachine::new(&init));
    }
    let mut bbr = Bbr::new(Config::read(settings), Changes::read(settings), init);
    bbr.low_delay = LowDelay::read(settings);
    Box::new(bbr)
}

impl Bbr {
    fn new(config: Config, changes: Option<Box<Changes>>, mut init: Init) -> Bbr {
        let mss = init.mss.max(1);
        let window = init.initial_window.max(u64::from(mss));
        let mut bbr = Bbr {
            config,
            mode: Mode::Startup,
            mss,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            bandwidth: Bandwidth::default(),
            long_term: LongTerm::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(init.rng.next_u64(), &config),
            min_rtt: MinRtt::default(),
            pacing: Pacing::default(),
            low_delay: None,
            changes,
            window,
            prior_window: 0,
            threshold: u64::MAX,
            prior_recovery: Recovery::Open,
            packet_conservation: false,
            idle_restart: false,
            delivered_at: Time::ZERO,
        };
        bbr.init_pacing_rate(Time::ZERO);
        bbr.update_quantum(Time::ZERO);
        bbr
    }

    /// Returns the estimate in use: the policer's rate if one was found.
    #[inline]
    fn bw(&self) -> PacketRate {
        if self.long_term.in_use { self.long_term.bw } else { self.bandwidth.max() }
    }

    fn update_model(&mut self, sample: &Sample, connection: &Connection) {
        self.update_bandwidth(sample, connection);
        self.update_aggregation(sample);
        self.update_cycle(sample, connection);
        if !self.full_pipe.reached || self.mode == Mode::Drain {
            self.check_full_pipe(sample.app_limited);
            self.check_drain(connection);
        }
        self.update_min_rtt(sample, connection);
        self.update_gains();
    }

    #[inline]
    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.in_use => (UNIT, self.probe_bw_window_gain()),
            Mode::ProbeBw => (self.cycle.gain(), self.probe_bw_window_gain()),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Returns to the phase that fits the model, after PROBE_RTT.
    fn resume_mode(&mut self, delivered: u64) {
        if self.full_pipe.reached {
            self.enter_probe_bw(delivered);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Uses the handshake's RTT as the first estimate and for the initial rate.
    fn on_established(&mut self, connection: &Connection) {
        self.min_rtt.begin(connection.min_rtt, connection.now);
        self.bandwidth.round_end = connection.delivered;
        self.delivered_at = connection.now;
        self.aggregation.restart(connection.now);
        self.init_pacing_rate(connection.srtt);
    }

    /// Called when sending resumes. If the application was the limit, the
    /// estimate holds: pace at it instead of probing into old queues.
    fn on_restart(&mut self, connection: &Connection) {
        if !connection.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(connection.now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(self.paced_bw(), UNIT, connection.srtt),
            Mode::ProbeRtt => self.check_probe_rtt_done(connection),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Linux's `tcp_enter_loss` around `bbr_set_state`.
    fn on_timeout(&mut self, connection: &Connection) {
        if connection.recovery != Recovery::Loss {
            self.save_window();
        }
        self.window = connection.in_flight + u64::from(self.mss);
        self.prior_recovery = Recovery::Loss;
        self.full_pipe.bw = 0;
        self.bandwidth.round_start = true; // a timeout ends a round
        let lost = Sample { newly_lost: u64::from(self.mss), ..Sample::default() };
        self.sample_long_term(&lost, connection);
    }

    /// Called when the loss was spurious: discards what it taught. The window
    /// is restored when the next acknowledgement finds recovery over.
    fn on_spurious(&mut self, connection: &Connection) {
        self.full_pipe.bw = 0;
        self.full_pipe.rounds = 0;
        self.reset_long_term(connection);
    }

    #[cold]
    fn on_mtu(&mut self, connection: &Connection) {
        // Rates count packets: convert the stored ones to the new size.
        let (old, new) = (u64::from(self.mss), u64::from(connection.mss.max(1)));
        self.bandwidth.rescale(old, new);
        self.long_term.rescale(old, new);
        self.cycle.rescale(old, new);
        self.full_pipe.rescale(old, new);
        self.rescale_changes(old, new);
        self.mss = connection.mss.max(1);
        self.pacing.invalidate();
    }

    #[inline]
    fn decide(&mut self, transport_min_rtt: Time) -> Decision {
        self.update_quantum(transport_min_rtt);
        self.decision()
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        if connection.mss != self.mss {
            self.on_mtu(connection);
        }
        if sample.newly_acked > 0 {
            self.delivered_at = connection.now;
        }
        self.observe(sample);
        self.update_model(sample, connection);
        let bw = self.bw();
        self.set_pacing_rate(self.paced_bw(), self.pacing_gain, connection.srtt);
        self.set_window(bw, sample, connection);
        self.decide(connection.min_rtt)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => self.on_established(connection),
            Event::SentAfterIdle => self.on_restart(connection),
            Event::RecoveryStart | Event::CongestionEcho => self.save_window(),
            Event::RecoveryEnd => {}
            Event::Timeout => self.on_timeout(connection),
            Event::SpuriousRecovery => self.on_spurious(connection),
            // The window grows back to its target as data is acknowledged.
            Event::Penalised => self.window = (self.window / 2).max(u64::from(self.mss)),
        }
        self.decide(connection.min_rtt)
    }

    #[inline]
    fn decision(&self) -> Decision {
        Decision {
            window: self.window,
            pacing_rate: Some(self.pacing.rate()),
            send_quantum: self.pacing.quantum(),
            ecn: Ecn::NotCapable,
            holds_back: self.min_rtt.holds_back,
        }
    }

    fn state(&self) -> State {
        let phase = match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeRtt => "probe_rtt",
            Mode::ProbeBw if self.long_term.in_use => "probe_bw_policed",
            Mode::ProbeBw => self.cycle.phase(),
        };
        State {
            phase,
            bandwidth: bandwidth::as_rate(self.bw(), self.mss),
            min_rtt: self.min_rtt.known(),
            slow_start_threshold: (self.threshold != u64::MAX).then_some(self.threshold),
            pacing_gain: Some(f64::from(self.pacing_gain) / f64::from(UNIT)),
            shrink: self.low_delay.as_ref().map(|change| change.shrink()),
            ..State::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    /// Most of the memory of a flow in a large simulation is its controller's state.
    #[test]
    fn the_state_stays_small() {
        let bytes = size_of::<super::Bbr>();
        assert!(bytes <= 400, "{bytes} bytes");
    }
}
