//! Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control
//! for the Internet", NSDI 2018): steers the rate towards `1 / (delta d)`,
//! where d is the queueing delay.
//!
//! ```text
//!   d      = RTT_standing - RTT_min
//!   W     += v / (delta W)  per ACK while W / RTT_standing <= 1 / (delta d)
//!   W     -= v / (delta W)  otherwise
//!
//!   default (delta = 1/2) -- no nearly empty queue for 5 RTTs --> competitive
//!           ^                                                       |
//!           +------------- the queue was nearly empty --------------+
//! ```
//! The window crosses its target again and again, which empties the queue once
//! in five round trips: every flow can then measure the minimum RTT, and a flow
//! sees whether others keep the queue full. The velocity v doubles once per
//! window after three in the same direction. In competitive mode `1 / delta`
//! grows by one per round trip and halves on loss, like Reno's window.
//!
//! Beyond the paper: a velocity above one ends as soon as the target is on the
//! other side rather than at the end of the window, as in the authors'
//! implementation in mvfst; one acknowledgement moves the window by no more
//! than it acknowledges; the window does not grow while application-limited;
//! slow start also ends on loss; and a timeout restarts from two segments. In
//! default mode loss changes nothing.

use crate::extremes::{RecentMax, RecentMin};
use crate::pacing::SendQuantum;
use crate::registry::{Build, Entry};
use crate::{Connection, Controller, Decision, Event, Init, Needs, Recovery, Sample, State};
use knee_units::registry::{Kind, Parameter, Settings};
use knee_units::{Rate, Time};

pub(crate) const ENTRY: Entry = Entry {
    name: "copa",
    summary: "steers towards a rate of 1/(delta x queueing delay), and competes where it must",
    source: "Arun and Balakrishnan, NSDI 2018",
    parameters: &[
        Parameter {
            name: "delta",
            kind: Kind::Number { min: 0.001, max: 10.0 },
            default: "0.5",
            summary: "delay against throughput: 1/delta packets are kept in the queue",
        },
        Parameter {
            name: "competitive",
            kind: Kind::Switch,
            default: "true",
            summary: "switch to competitive mode beside flows that fill the buffer",
        },
    ],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(Copa::new(settings.number("delta"), settings.switch("competitive"), &init))
}

/// Time for which the minimum RTT is remembered (section 2).
const MIN_RTT_WINDOW: Time = Time::from_secs(10);
/// RTTs that the largest RTT covers (section 3.1).
const MAX_RTT_ROUNDS: u64 = 4;
/// RTTs without a nearly empty queue after which another flow counts as filling it.
const EMPTY_ROUNDS: u64 = 5;
/// Fraction of the largest queueing delay up to which the queue counts as nearly empty.
const NEARLY_EMPTY: f64 = 0.1;
/// Windows in one direction after which the velocity doubles (section 2.1).
const STEADY_WINDOWS: u32 = 3;
/// Smallest window, in segments.
const SMALLEST: f64 = 2.0;
/// Largest window, in segments: safely within a byte counter.
const LARGEST: f64 = 1e9;

/// Velocity and direction of the window over the last round trips.
#[derive(Clone, Copy, Debug, Default)]
struct Velocity {
    value: f64,
    up: bool,
    /// Windows in this direction.
    windows: u32,
    /// Window when the round began, and the byte that ends it.
    start_window: f64,
    round_end: u64,
}

#[derive(Clone, Debug)]
struct Copa {
    /// Delta of default mode.
    delta: f64,
    may_compete: bool,
    mss: u32,
    /// In segments.
    window: f64,
    slow_start: bool,
    /// 1 / delta in competitive mode; `None` in default mode.
    competitive: Option<f64>,
    /// Whether a packet was lost in this round trip.
    lost: bool,
    /// The byte that ends the round trip of competitive mode.
    round_end: u64,
    velocity: Velocity,
    min_rtt: RecentMin,
    standing: RecentMin,
    max_rtt: RecentMax,
    /// When the queue was last nearly empty.
    emptied_at: Time,
    /// Window before the last loss, for its undo.
    before: f64,
    quantum: SendQuantum,
    decision: Decision,
}

impl Copa {
    fn new(delta: f64, may_compete: bool, init: &Init) -> Copa {
        let mss = init.mss.max(1);
        let window = (init.initial_window as f64 / f64::from(mss)).max(1.0);
        let mut copa = Copa {
            delta,
            may_compete,
            mss,
            window,
            slow_start: true,
            competitive: None,
            lost: false,
            round_end: 0,
            velocity: Velocity { value: 1.0, ..Velocity::default() },
            min_rtt: RecentMin::default(),
            standing: RecentMin::default(),
            max_rtt: RecentMax::default(),
            emptied_at: Time::ZERO,
            before: window,
            quantum: SendQuantum::default(),
            decision: Decision::default(),
        };
        copa.decide(&Connection::default());
        copa
    }

    fn delta(&self) -> f64 {
        self.competitive.map_or(self.delta, |inverse| 1.0 / inverse)
    }

    /// Section 2, step 1: updates RTT_min, RTT_standing, and the largest RTT.
    fn take_rtt(&mut self, rtt: Time, connection: &Connection) {
        let (now, srtt) = (connection.now, connection.srtt.max(Time::from_micros(1)));
        self.min_rtt.update(MIN_RTT_WINDOW, now, rtt);
        self.standing.update(srtt / 2, now, rtt);
        self.max_rtt.update(srtt * MAX_RTT_ROUNDS, now, rtt);
    }

    /// Returns RTT_standing and the queueing delay, in seconds.
    fn delays(&self) -> Option<(f64, f64)> {
        let (standing, least) = (self.standing.get()?, self.min_rtt.get()?);
        Some((standing.as_secs_f64(), standing.saturating_sub(least).as_secs_f64()))
    }

    /// Section 3.1: stays in default mode as long as the queue empties.
    fn choose_mode(&mut self, queueing: f64, connection: &Connection) {
        let least = self.min_rtt.get().unwrap_or(Time::ZERO);
        let range = self.max_rtt.get().saturating_sub(least).as_secs_f64();
        let now = connection.now;
        if queueing <= NEARLY_EMPTY * range {
            self.emptied_at = now;
        }
        let full = now.saturating_sub(self.emptied_at) > connection.srtt * EMPTY_ROUNDS;
        match (full && self.may_compete && !self.slow_start, self.competitive) {
            (true, None) => {
                self.competitive = Some(1.0 / self.delta);
                self.round_end = connection.sent;
                self.lost = false;
            }
            (false, Some(_)) => self.competitive = None,
            _ => {}
        }
    }

    /// Section 3.2: changes 1 / delta like Reno's window; delta never exceeds
    /// that of default mode.
    fn compete(&mut self, connection: &Connection) {
        let Some(inverse) = &mut self.competitive else { return };
        if connection.acknowledged < self.round_end {
            return;
        }
        self.round_end = connection.sent;
        if !std::mem::take(&mut self.lost) {
            *inverse += 1.0;
        }
    }

    /// Section 2.1, at the end of a window: v doubles if the direction is
    /// steady, and is one after a change.
    fn update_velocity(&mut self, connection: &Connection) {
        if connection.acknowledged < self.velocity.round_end {
            return;
        }
        let up = self.window > self.velocity.start_window;
        let velocity = &mut self.velocity;
        if up == velocity.up {
            velocity.windows += 1;
            if velocity.windows >= STEADY_WINDOWS {
                velocity.value *= 2.0;
            }
        } else {
            *velocity = Velocity { value: 1.0, up, windows: 1, ..*velocity };
        }
        velocity.start_window = self.window;
        velocity.round_end = connection.sent;
    }

    /// Steps 2 to 4 of section 2.
    fn steer(&mut self, acked: f64, standing: f64, queueing: f64, connection: &Connection) {
        let delta = self.delta();
        // W / RTT_standing <= 1 / (delta d), without a division by a zero delay.
        let up = self.window * delta * queueing <= standing;
        // An unused window proves nothing (RFC 7661, section 4).
        let used = connection.window_limited && !connection.app_limited;
        if self.slow_start {
            if up && used {
                self.window += acked;
                return;
            }
            if !up {
                self.slow_start = false;
                self.velocity.start_window = self.window;
                self.velocity.round_end = connection.sent;
            }
        }
        if up != self.velocity.up && self.velocity.value > 1.0 {
            self.velocity = Velocity { value: 1.0, up, windows: 0, ..self.velocity };
        }
        let step = (acked * self.velocity.value / (delta * self.window)).min(acked);
        if !up {
            self.window -= step;
        } else if used {
            self.window += step;
        }
        self.update_velocity(connection);
        // A velocity whose effect the bound removes would take long to come down.
        self.velocity.value = self.velocity.value.min((delta * self.window).max(1.0));
    }

    fn on_loss(&mut self) {
        self.before = self.window;
        self.slow_start = false;
        if let Some(inverse) = &mut self.competitive {
            *inverse = (*inverse / 2.0).max(1.0 / self.delta);
            self.lost = true;
        }
    }

    /// Repeated timeouts of one episode are one loss, whose undo restores the window
    /// before the first.
    fn on_timeout(&mut self, connection: &Connection) {
        if connection.recovery != Recovery::Loss {
            self.on_loss();
        }
        self.window = SMALLEST;
        self.slow_start = true;
        self.competitive = None;
        self.velocity = Velocity { value: 1.0, ..Velocity::default() };
    }

    /// Section 2, step 5: paces at twice the window per RTT_standing, so that
    /// pacing smooths and never limits.
    fn decide(&mut self, connection: &Connection) -> Decision {
        self.window = self.window.clamp(SMALLEST, LARGEST);
        let mss = u64::from(self.mss);
        let window = (self.window * f64::from(self.mss)) as u64;
        let rtt = self.standing.get().unwrap_or(connection.srtt);
        let rate = (rtt > Time::ZERO).then(|| {
            let bytes = 2.0 * self.window * f64::from(self.mss) / rtt.as_secs_f64();
            Rate::from_bytes_per_second((bytes as u64).max(1))
        });
        let bytes_per_second = rate.map_or(0, |rate| rate.as_bytes_per_second());
        let quantum = self.quantum.segments(bytes_per_second, Time::ZERO, self.mss, 2);
        self.decision = Decision {
            window,
            pacing_rate: rate,
            send_quantum: u64::from(quantum) * mss,
            ..Decision::default()
        };
        self.decision
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let mss = connection.mss.max(1);
        if mss != self.mss {
            let ratio = f64::from(self.mss) / f64::from(mss);
            self.window *= ratio;
            self.before *= ratio;
            self.velocity.start_window *= ratio;
            self.mss = mss;
        }
        if let Some(rtt) = sample.rtt {
            self.take_rtt(rtt, connection);
        }
        if let Some((standing, queueing)) = self.delays() {
            self.choose_mode(queueing, connection);
            self.compete(connection);
            let acked = sample.newly_acked as f64 / f64::from(mss);
            self.steer(acked, standing, queueing, connection);
        }
        self.decide(connection)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            Event::Established => self.emptied_at = connection.now,
            Event::RecoveryStart | Event::CongestionEcho => self.on_loss(),
            Event::Timeout => self.on_timeout(connection),
            Event::SpuriousRecovery => self.window = self.window.max(self.before),
            Event::Penalised => self.window /= 2.0,
            // The queue was not observed while the application paused.
            Event::SentAfterIdle if connection.app_limited => self.emptied_at = connection.now,
            Event::SentAfterIdle | Event::RecoveryEnd => {}
        }
        self.decide(connection)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        let phase = match (self.slow_start, self.competitive) {
            (true, _) => "slow_start",
            (false, None) => "default",
            (false, Some(_)) => "competitive",
        };
        State { phase, min_rtt: self.min_rtt.get(), ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, ..Needs::default() }
    }
}
