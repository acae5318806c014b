//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01): a background transport that
//! fills an idle link and yields to all other traffic.
//!
//! ```text
//!   q = RTT - base RTT,  GAIN = 1 / min(16, ceil(2 TARGET / base RTT))
//!   q < TARGET:  W += GAIN                            per round trip
//!   else:        W += max(GAIN - W (q / TARGET - 1), -W / 2)
//!
//!   first slow start -- q > 3/4 TARGET --> avoidance -- 2 RTTs later --> slowdown
//!                                             ^                            | W = 2, 2 RTTs
//!                                             +-- W as before -- ramp up --+
//! ```
//! Slowdowns let every flow measure the base RTT again, so that a later flow does
//! not count the queue of an earlier one as part of the path; the interval to the
//! next slowdown is nine times its duration. Slow start and ramp grow with GAIN per
//! segment. Loss halves the window, once per round trip (section 4).
//!
//! RTTs replace one-way delays, as the draft allows. The queueing delay is the
//! minimum of four samples; the base RTT is the minimum of ten minutes, kept
//! per minute. The decrease is applied once per round trip.

use crate::loss_based::{Growth, LossBased};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Init, Recovery, Sample};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "ledbat++",
    summary: "background transport: fills an idle link, gives way to all others",
    source: "draft-irtf-iccrg-ledbat-plus-plus-01",
    parameters: &[
        Parameter {
            name: "target",
            kind: Kind::Time { min: Time::from_millis(1), max: Time::from_secs(1) },
            default: "60 ms",
            summary: "queueing delay from which it gives way",
        },
        Parameter {
            name: "slowdowns",
            kind: Kind::Switch,
            default: "true",
            summary: "empty the queue from time to time, to see the base RTT",
        },
    ],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let ledbat = Ledbat {
        target: settings.time("target"),
        slowdowns: settings.switch("slowdowns"),
        base: [Time::MAX; MINUTES],
        minute: 0,
        recent: [Time::MAX; NOISE_SAMPLES],
        next: 0,
        stage: Stage::First,
        credit: 0.0,
        round_end: 0,
    };
    Box::new(LossBased::new(ledbat, &init))
}

/// Minutes of the base RTT's history.
const MINUTES: usize = 10;
const MINUTE: Time = Time::from_secs(60);
/// Samples over which the minimum is taken.
const NOISE_SAMPLES: usize = 4;
/// Largest divisor of the gain.
const SLOWEST: u64 = 16;
/// Fraction of the target at which slow start ends.
const SLOW_START_SHARE: f64 = 0.75;
/// Smallest window, in segments, and the window of a slowdown.
const SMALLEST: u32 = 2;
/// Round trips until the first slowdown, and duration of each pause.
const PAUSE_ROUNDS: u64 = 2;
/// Time between slowdowns, in multiples of the duration of the last one.
const SPACING: u64 = 9;

/// Stage in the sequence of slowdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The first slow start.
    First,
    /// Waiting; the next slowdown begins at this time.
    Until(Time),
    /// In a slowdown that began at `began`, at the smallest window until `until`.
    Rest { began: Time, until: Time },
    /// Growing back after a slowdown.
    Ramp { began: Time },
}

#[derive(Clone, Debug)]
struct Ledbat {
    target: Time,
    slowdowns: bool,
    /// Minimum RTT of each of the last minutes, and the number of the current one.
    base: [Time; MINUTES],
    minute: u64,
    recent: [Time; NOISE_SAMPLES],
    next: usize,
    stage: Stage,
    /// Part of a segment by which slow start has not yet grown the window.
    credit: f64,
    round_end: u64,
}

impl Ledbat {
    fn take_rtt(&mut self, rtt: Time, now: Time) {
        let minute = now.as_nanos() / MINUTE.as_nanos();
        // Minutes without a sample are cleared.
        let passed = minute.saturating_sub(self.minute).min(MINUTES as u64);
        for offset in 0..passed {
            self.base[(minute - offset) as usize % MINUTES] = Time::MAX;
        }
        self.minute = minute;
        let place = &mut self.base[minute as usize % MINUTES];
        *place = (*place).min(rtt);
        self.recent[self.next % NOISE_SAMPLES] = rtt;
        self.next = (self.next + 1) % NOISE_SAMPLES;
    }

    fn base_rtt(&self) -> Time {
        self.base.iter().copied().fold(Time::MAX, Time::min)
    }

    /// Returns the ratio of the queueing delay to the target.
    fn fullness(&self) -> f64 {
        let rtt = self.recent.iter().copied().fold(Time::MAX, Time::min);
        rtt.saturating_sub(self.base_rtt()).as_secs_f64() / self.target.as_secs_f64()
    }

    /// Section 4.2.
    fn gain(&self) -> f64 {
        let base = self.base_rtt().as_nanos().max(1);
        let rounds = (2 * self.target.as_nanos()).div_ceil(base);
        1.0 / rounds.clamp(1, SLOWEST) as f64
    }

    /// Section 4.4.
    fn follow_slowdowns(&mut self, window: &mut Window, connection: &Connection) {
        let now = connection.now;
        let pause = connection.srtt * PAUSE_ROUNDS;
        match self.stage {
            Stage::First if !window.in_slow_start() => self.stage = Stage::Until(now + pause),
            Stage::Until(at) if self.slowdowns && now >= at => {
                window.threshold = window.segments.max(SMALLEST);
                window.set(SMALLEST);
                self.stage = Stage::Rest { began: now, until: now + pause };
            }
            Stage::Rest { began, until } if now >= until => self.stage = Stage::Ramp { began },
            Stage::Ramp { began } if !window.in_slow_start() => {
                let took = now.saturating_sub(began);
                self.stage = Stage::Until(now + took * SPACING);
            }
            _ => {}
        }
    }

    fn slow_start(&mut self, window: &mut Window, acked: u32) {
        self.credit += self.gain() * f64::from(acked);
        let whole = self.credit.floor();
        self.credit -= whole;
        window.slow_start(whole as u32);
    }
}

impl Growth for Ledbat {
    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        if let Some(rtt) = sample.rtt {
            self.take_rtt(rtt.max(Time::from_micros(1)), connection.now);
        }
        let recovering = matches!(connection.recovery, Recovery::Recovery | Recovery::Loss);
        if self.base_rtt() == Time::MAX || recovering {
            return;
        }
        let fullness = self.fullness();
        // Only in the first slow start: later ones end at the earlier window.
        let first = self.stage == Stage::First && window.in_slow_start();
        if first && fullness > SLOW_START_SHARE {
            window.threshold = window.segments;
        }
        self.follow_slowdowns(window, connection);
        if connection.acknowledged > self.round_end {
            self.round_end = connection.sent;
            // Section 4.3.
            if fullness > 1.0 && !window.in_slow_start() {
                let segments = f64::from(window.segments);
                let change = self.gain() - segments * (fullness - 1.0);
                window.advance(change.max(-segments / 2.0));
                window.segments = window.segments.max(SMALLEST);
                window.threshold = window.segments;
            }
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _connection: &Connection) {
        match self.stage {
            Stage::Rest { .. } => {}
            _ if window.in_slow_start() => self.slow_start(window, acked),
            _ if self.fullness() <= 1.0 => {
                window.advance(self.gain() * f64::from(acked) / f64::from(window.segments));
            }
            _ => {}
        }
    }

    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(SMALLEST)
    }

    /// After a timeout slow start grows back to the threshold; this does not
    /// count as a slowdown.
    fn reset(&mut self, connection: &Connection) {
        if self.stage != Stage::First {
            self.stage = Stage::Until(connection.now + connection.srtt * PAUSE_ROUNDS);
        }
    }
}
