//! PCC Vivace (Dong et al., "PCC Vivace: Online-Learning Congestion Control",
//! NSDI 2018): climbs the utility of the sending rate, by trial.
//!
//! ```text
//!   u(x) = x^0.9 - 900 x d(RTT)/dT - 11.35 x L
//!
//!   starting: double the rate as long as utility rises
//!   probing:  one interval at r (1 + e), one at r (1 - e), in random order
//!             r += m (u+ - u-) / (2 e r),  at most the boundary
//! ```
//! Steps in one direction grow with the confidence amplifier m and with a boundary
//! that widens while it binds (section 4.2). There is no window except a limit of
//! two round trips at the rate, in case acknowledgements stop arriving.
//!
//! Deviations: the next interval begins when the outcome of the last one is
//! known, with the base rate in the meantime, so that a step takes three round
//! trips and starting doubles every two; an acknowledgement counts for the
//! interval of the last segment that it acknowledges; an interval lasts for at
//! least ten segments. Left out: the utilities for loss-resilient and
//! latency-sensitive traffic of sections 3 and 5.

mod interval;

use crate::pacing::SendQuantum;
use crate::registry::{Build, Entry};
use crate::{Connection, Controller, Decision, Event, Init, Loss, Needs, Sample, State};
use interval::Interval;
use knee_units::registry::Settings;
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

pub(crate) const ENTRY: Entry = Entry {
    name: "vivace",
    summary: "learns the rate of greatest utility by trial: PCC Vivace",
    source: "Dong et al., NSDI 2018",
    parameters: &[],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(_settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(Vivace::new(init))
}

/// Relative difference of a probe from the base rate, e (section 4.1).
const PROBE: f64 = 0.05;
/// Step of the rate for a slope of one, theta_0: Mbit/s (section 4.2).
const CONVERSION: f64 = 1.0;
/// Largest step as a fraction of the rate, omega_0, and the amount by which it widens.
const BOUNDARY: f64 = 0.05;
const BOUNDARY_STEP: f64 = 0.1;
/// Steps in one direction after which the amplifier grows twice as fast.
const CONFIDENT: u32 = 3;
/// Fewest segments in an interval.
const SEGMENTS: f64 = 10.0;
/// Smallest window, in segments.
const SMALLEST: u64 = 4;
/// Slowest rate, Mbit/s, as in the authors' programs (PCC-Uspace). At a few segments per second a
/// trial of ten segments takes so long that a shock would never be made up for.
const SLOWEST: f64 = 0.1;
/// Fastest rate, Mbit/s.
const FASTEST: f64 = 1e6;
/// RTT before the first sample.
const ASSUMED_RTT: Time = Time::from_millis(100);

/// What is being tried.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Doubling; with the utility of the previous rate, if there was one.
    Starting(Option<f64>),
    /// Probing; `faster_first` if the first of the two probes is the faster one.
    Probing { faster_first: bool },
}

/// Progress of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// In the interval with this number.
    Sending(usize),
    /// Waiting for the acknowledgements of the intervals.
    Waiting,
}

#[derive(Clone, Debug)]
struct Vivace {
    mss: u32,
    rng: Box<ChaCha8Rng>,
    /// Base rate, Mbit/s.
    rate: f64,
    stage: Stage,
    step: Step,
    intervals: [Interval; 2],
    /// Number of steps in the current direction, and whether that is up.
    steps: u32,
    up: bool,
    /// How often the boundary was widened.
    widened: u32,
    has_rtt: bool,
    /// Nothing has been acknowledged since a timeout.
    timed_out: bool,
    quantum: SendQuantum,
    decision: Decision,
}

impl Vivace {
    fn new(init: Init) -> Vivace {
        let mss = init.mss.max(1);
        let mut vivace = Vivace {
            mss,
            rng: Box::new(init.rng),
            rate: mbit(init.initial_window.max(u64::from(mss)), ASSUMED_RTT),
            stage: Stage::Starting(None),
            step: Step::Sending(0),
            intervals: [Interval::new(Time::ZERO, Time::MAX); 2],
            steps: 0,
            up: true,
            widened: 0,
            has_rtt: false,
            timed_out: false,
            quantum: SendQuantum::default(),
            decision: Decision { window: init.initial_window, ..Decision::default() },
        };
        vivace.decide(&Connection::default());
        // Before the first RTT, the initial window applies.
        vivace.decision.window = init.initial_window.max(u64::from(mss));
        vivace
    }

    /// Returns the rate of the interval with this number, Mbit/s.
    fn rate_of(&self, number: usize) -> f64 {
        match self.stage {
            Stage::Starting(_) => self.rate,
            Stage::Probing { faster_first } if faster_first == (number == 0) => {
                self.rate * (1.0 + PROBE)
            }
            Stage::Probing { .. } => self.rate * (1.0 - PROBE),
        }
    }

    /// Returns the current sending rate, Mbit/s.
    fn sending_rate(&self) -> f64 {
        match self.step {
            Step::Sending(number) => self.rate_of(number),
            Step::Waiting => self.rate,
        }
    }

    fn begin(&mut self, number: usize, connection: &Connection) {
        let segment = f64::from(self.mss) * 8.0 / 1e6 / self.rate_of(number);
        let length = connection.srtt.max(Time::from_secs_f64(SEGMENTS * segment));
        self.intervals[number] = Interval::new(connection.now, length);
        self.step = Step::Sending(number);
    }

    fn begin_trial(&mut self, connection: &Connection) {
        if let Stage::Probing { faster_first } = &mut self.stage {
            *faster_first = self.rng.next_u32() & 1 == 1;
        }
        self.begin(0, connection);
    }

    /// Returns the number of the last interval of a trial.
    fn last(&self) -> usize {
        usize::from(!self.is_starting())
    }

    fn is_starting(&self) -> bool {
        matches!(self.stage, Stage::Starting(_))
    }

    /// Advances the trial to the current time, after a segment sent at
    /// `sent_at` was acknowledged or lost.
    fn advance(&mut self, sent_at: Time, connection: &Connection) {
        match self.step {
            Step::Sending(number) if connection.now >= self.intervals[number].end => {
                // The interval lasted until now, even if this acknowledgement is late.
                self.intervals[number].end = connection.now;
                if number < self.last() {
                    self.begin(number + 1, connection);
                } else {
                    self.step = Step::Waiting;
                }
            }
            Step::Waiting if sent_at >= self.intervals[self.last()].end => {
                self.conclude();
                self.begin_trial(connection);
            }
            _ => {}
        }
    }

    /// Concludes the trial: all its intervals are known.
    fn conclude(&mut self) {
        let tried = &self.intervals[..=self.last()];
        if tried.iter().any(|interval| interval.limited || interval.is_empty()) {
            return; // Nothing was learnt about this rate.
        }
        match self.stage {
            Stage::Starting(before) => {
                let utility = self.intervals[0].utility(self.rate);
                if before.is_none_or(|before| utility > before) {
                    self.stage = Stage::Starting(Some(utility));
                    self.set_rate(self.rate * 2.0);
                } else {
                    self.set_rate(self.rate / 2.0);
                    self.stage = Stage::Probing { faster_first: true };
                }
            }
            Stage::Probing { faster_first } => {
                let [first, second] =
                    [0, 1].map(|number| self.intervals[number].utility(self.rate_of(number)));
                let gain = if faster_first { first - second } else { second - first };
                self.climb(gain / (2.0 * PROBE * self.rate));
            }
        }
    }

    /// Section 4.2: takes a step along the slope of the utility.
    fn climb(&mut self, slope: f64) {
        let up = slope > 0.0;
        if up != self.up {
            (self.steps, self.widened, self.up) = (0, 0, up);
        }
        self.steps = self.steps.saturating_add(1);
        let amplifier = if self.steps <= CONFIDENT {
            f64::from(self.steps)
        } else {
            2.0 * f64::from(self.steps) - f64::from(CONFIDENT)
        };
        let step = amplifier * CONVERSION * slope;
        let boundary = |widened: u32| BOUNDARY + f64::from(widened) * BOUNDARY_STEP;
        let part = step.abs() / self.rate;
        let limited = part.min(boundary(self.widened));
        if part > boundary(self.widened) {
            self.widened += 1;
        } else {
            // As often as this step needs.
            self.widened = (((part - BOUNDARY) / BOUNDARY_STEP).ceil().max(0.0)) as u32;
        }
        // A rate below zero is meaningless.
        let change = if up { limited } else { -limited.min(0.5) };
        self.set_rate(self.rate * (1.0 + change));
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(SLOWEST, FASTEST);
    }

    /// Halves the rate and discards the trial: everything is lost. The paper does not say
    /// what to send until an acknowledgement arrives; one segment is the loss window of
    /// RFC 5681, section 3.1.
    fn on_timeout(&mut self, connection: &Connection) {
        self.timed_out = true;
        self.set_rate(self.rate / 2.0);
        self.stage = Stage::Probing { faster_first: true };
        (self.steps, self.widened) = (0, 0);
        self.begin_trial(connection);
    }

    fn decide(&mut self, connection: &Connection) -> Decision {
        let bytes_per_second = (self.sending_rate() * 1e6 / 8.0) as u64;
        let mss = u64::from(self.mss);
        let quantum = self.quantum.segments(bytes_per_second, Time::ZERO, self.mss, 1);
        let in_round_trips =
            |times: u64| (bytes_per_second as f64 * connection.srtt.as_secs_f64()) as u64 * times;
        let window = if self.timed_out { mss } else { in_round_trips(2).max(SMALLEST * mss) };
        self.decision = Decision {
            window,
            pacing_rate: Some(Rate::from_bytes_per_second(bytes_per_second.max(mss))),
            send_quantum: u64::from(quantum) * mss,
            ..Decision::default()
        };
        self.decision
    }
}

/// Returns the rate of `bytes` in `time`, in Mbit/s.
fn mbit(bytes: u64, time: Time) -> f64 {
    bytes as f64 * 8.0 / 1e6 / time.as_secs_f64().max(1e-6)
}

impl Controller for Vivace {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.mss = connection.mss.max(1);
        self.timed_out = false;
        if !self.has_rtt && connection.srtt > Time::ZERO {
            self.has_rtt = true;
            self.begin_trial(connection);
        }
        for interval in &mut self.intervals {
            interval.on_ack(sample.sent_at, sample.newly_acked, sample.rtt, sample.app_limited);
        }
        self.advance(sample.sent_at, connection);
        self.decide(connection)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established if connection.srtt > Time::ZERO => {
                self.has_rtt = true;
                self.set_rate(mbit(self.decision.window, connection.srtt));
                self.begin_trial(connection);
            }
            Event::Timeout => self.on_timeout(connection),
            Event::Penalised => self.set_rate(self.rate / 2.0),
            // An interval interrupted by an idle time of the application says nothing. With less
            // than a segment in flight per round trip, each one follows an empty network.
            Event::SentAfterIdle if self.has_rtt && connection.app_limited => {
                self.begin_trial(connection);
            }
            _ => {}
        }
        self.decide(connection)
    }

    fn on_loss(&mut self, loss: &Loss, _connection: &Connection) -> Decision {
        for interval in &mut self.intervals {
            interval.on_loss(loss);
        }
        self.decision
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        State {
            phase: if self.is_starting() { "starting" } else { "probing" },
            bandwidth: Some(Rate::from_bits_per_second((self.rate * 1e6) as u64)),
            pacing_gain: Some(self.sending_rate() / self.rate),
            ..State::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, losses: true, ..Needs::default() }
    }
}
