//! CUBIC (RFC 9438), with HyStart as in Linux or another slow start.
//!
//! After a reduction the window follows a cubic function of time, not of
//! round trips: steep far below the last maximum `w_max`, flat around it,
//! steep again beyond.
//!
//! ```text
//!   window                                  /      C (t - K)^3 + w_max
//!   w_max  - - - - - - - - - - - ________--'
//!                        __..--''         |
//!                   _.-''                 |
//!   beta w_max  ---'                      |
//!               0 ----------------------- K -----> time since the reduction
//! ```
//!
//! Where Reno would be faster, CUBIC follows an estimate of Reno's window
//! (section 4.3). Arithmetic that determines whole segments is the same as in
//! Linux; only the cube and its root use floating point, where Linux
//! approximates them to 0.2 %.

use crate::loss_based::{Growth, LossBased};
use crate::registry::{Build, Entry};
use crate::slow_start::{self, SlowStart};
use crate::window::{Sizes, Window};
use crate::{Connection, Controller, Init, Sample};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "cubic growth in time, Linux's default, with HyStart",
    source: "RFC 9438; HyStart: Ha and Rhee 2011, as in Linux",
    parameters: PARAMETERS,
    presets: &[],
    build: Build::Checked(slow_start::check, build),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "c",
        kind: Kind::Number { min: 0.001, max: 100.0 },
        default: "0.4",
        summary: "steepness C of the cubic function, segments per second cubed",
    },
    Parameter {
        name: "beta",
        kind: Kind::Number { min: 0.1, max: 0.95 },
        default: "0.7",
        summary: "share of the window kept on loss",
    },
    Parameter {
        name: "fast_convergence",
        kind: Kind::Switch,
        default: "true",
        summary: "a flow that shrinks below its last maximum gives way to newer ones",
    },
    Parameter {
        name: "tcp_friendliness",
        kind: Kind::Switch,
        default: "true",
        summary: "grow at least as Reno would",
    },
    START[0],
    START[1],
    START[2],
    START[3],
];

const START: [Parameter; 4] = slow_start::parameters("hystart");

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    Box::new(LossBased::new(Cubic::new(settings, &init), &init))
}

/// Longest time before the function is recomputed while the window is unchanged
/// (Linux: HZ / 32).
const REFRESH: Time = Time::from_micros(31_250);

/// Shortest time between recomputations (Linux: one jiffy).
const TICK: Time = Time::from_millis(1);

/// Time after the start of an epoch during which RTT samples are inflated by
/// the loss that began it.
const RTT_SETTLES: Time = Time::from_secs(1);

/// Acknowledgements per segment while no maximum is known: 5 % growth per round.
const CAUTIOUS: u32 = 20;

/// Fastest growth: one segment per two acknowledged, 50 % per round.
const STEEPEST: u32 = 2;

/// State from one reduction to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Time from the start until the cubic function meets `origin`, seconds.
    k: f64,
    /// Window at the inflection, in segments.
    origin: u32,
}

#[derive(Clone, Debug)]
struct Cubic {
    c: f64,
    beta: f64,
    fast_convergence: bool,
    friendly: bool,
    /// Segments acknowledged per segment of Reno's estimate, as a multiple of
    /// the window in eighths: 8 (1 + beta) / (3 (1 - beta)), rounded down.
    friendly_eighths: u64,
    /// Acknowledgements that grow the window by one segment.
    per_segment: u32,
    /// `w_max`: window at the last reduction; zero while unknown.
    last_max: u32,
    last_window: u32,
    last_update: Time,
    epoch: Option<Epoch>,
    acked_in_epoch: u64,
    /// Estimate of Reno's window.
    reno: u32,
    min_rtt: Time,
    start: SlowStart,
}

impl Cubic {
    fn new(settings: &Settings, init: &Init) -> Cubic {
        let beta = settings.number("beta");
        Cubic {
            c: settings.number("c"),
            beta,
            fast_convergence: settings.switch("fast_convergence"),
            friendly: settings.switch("tcp_friendliness"),
            friendly_eighths: (8.0 * (1.0 + beta) / (3.0 * (1.0 - beta))) as u64,
            per_segment: 0,
            last_max: 0,
            last_window: 0,
            last_update: Time::ZERO,
            epoch: None,
            acked_in_epoch: 0,
            reno: 0,
            min_rtt: Time::ZERO,
            start: SlowStart::new(settings, beta, init),
        }
    }

    /// Recomputes how many acknowledgements grow the window by one segment.
    fn update(&mut self, window: u32, acked: u32, now: Time) {
        self.acked_in_epoch += u64::from(acked);
        let age = now.saturating_sub(self.last_update);
        if self.last_window == window && age <= REFRESH {
            return;
        }
        if self.epoch.is_none() || age >= TICK {
            self.last_window = window;
            self.last_update = now;
            self.per_segment = self.cubic_growth(window, acked, now);
        }
        if self.friendly {
            self.follow_reno(window);
        }
        self.per_segment = self.per_segment.max(STEEPEST);
    }

    /// RFC 9438, sections 4.2 to 4.5: aims at the function's value one RTT ahead.
    fn cubic_growth(&mut self, window: u32, acked: u32, now: Time) -> u32 {
        let epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(window, acked, now));
        let ahead = now.saturating_sub(epoch.start) + self.min_rtt;
        let target = cubic_window(self.c, ahead.as_secs_f64() - epoch.k, epoch.origin);
        let growth = if target > window {
            window / (target - window)
        } else {
            window.saturating_mul(100) // almost no growth
        };
        if self.last_max == 0 { growth.min(CAUTIOUS) } else { growth }
    }

    fn begin_epoch(&mut self, window: u32, acked: u32, now: Time) -> Epoch {
        self.acked_in_epoch = u64::from(acked);
        self.reno = window;
        let missing = self.last_max.saturating_sub(window);
        // RFC 9438, figure 2: K = cbrt((w_max - cwnd) / C).
        let k = (f64::from(missing) / self.c).cbrt();
        let epoch = Epoch { start: now, k, origin: self.last_max.max(window) };
        self.epoch = Some(epoch);
        epoch
    }

    /// RFC 9438, section 4.3: grows no more slowly than Reno with the same reduction.
    fn follow_reno(&mut self, window: u32) {
        let per_step = (u64::from(window) * self.friendly_eighths) >> 3;
        if per_step > 0 && self.acked_in_epoch > per_step {
            // Linux subtracts steps while more than one is left.
            let steps = (self.acked_in_epoch - 1) / per_step;
            self.acked_in_epoch -= steps * per_step;
            self.reno = self.reno.saturating_add(steps as u32);
        }
        if self.reno > window {
            self.per_segment = self.per_segment.min(window / (self.reno - window));
        }
    }
}

/// RFC 9438, figure 1: `C x^3 + origin` for `x = t - K` in seconds, in whole
/// segments.
fn cubic_window(c: f64, x: f64, origin: u32) -> u32 {
    // The conversion saturates; the distance is rounded down as in Linux.
    let distance = (c * x.abs() * x.abs() * x.abs()) as u32;
    if x < 0.0 { origin.saturating_sub(distance) } else { origin.saturating_add(distance) }
}

impl Growth for Cubic {
    fn slow_start(&self) -> Option<&SlowStart> {
        Some(&self.start)
    }

    fn slow_start_mut(&mut self) -> Option<&mut SlowStart> {
        Some(&mut self.start)
    }

    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        let now = connection.now;
        let settled = self.epoch.is_none_or(|e| now.saturating_sub(e.start) >= RTT_SETTLES);
        self.start.observe(window, sample, connection, settled);
        let Some(rtt) = sample.rtt else { return };
        let rtt = rtt.max(Time::from_micros(1));
        if settled && (self.min_rtt == Time::ZERO || rtt < self.min_rtt) {
            self.min_rtt = rtt;
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) {
        let mut rest = acked;
        if window.in_slow_start() {
            rest = self.start.grow(window, acked, connection);
        }
        if rest > 0 {
            self.update(window.segments, rest, connection.now);
            window.additive(self.per_segment, rest);
        }
    }

    /// RFC 9438, sections 4.6 and 4.7.
    fn reduced(&mut self, window: &Window) -> u32 {
        self.epoch = None;
        let segments = f64::from(window.segments);
        self.last_max = if self.fast_convergence && window.segments < self.last_max {
            (segments * (1.0 + self.beta) / 2.0) as u32
        } else {
            window.segments
        };
        ((segments * self.beta) as u32).max(2)
    }

    /// Resets the whole curve on a timeout, as Linux does; RFC 9438, section
    /// 4.8, would keep `w_max`.
    fn reset(&mut self, _connection: &Connection) {
        self.per_segment = 0;
        self.last_max = 0;
        self.last_window = 0;
        self.last_update = Time::ZERO;
        self.epoch = None;
        self.acked_in_epoch = 0;
        self.reno = 0;
        self.min_rtt = Time::ZERO;
    }

    fn on_mtu(&mut self, sizes: Sizes) {
        self.last_max = sizes.convert(self.last_max);
        self.reno = sizes.convert(self.reno);
        self.acked_in_epoch = self.acked_in_epoch * u64::from(sizes.old) / u64::from(sizes.new);
        // Nothing was computed for the new window yet.
        self.last_window = 0;
        if let Some(epoch) = &mut self.epoch {
            epoch.origin = sizes.convert(epoch.origin);
            epoch.k *= (f64::from(sizes.old) / f64::from(sizes.new)).cbrt();
        }
    }

    /// RFC 9438, section 5.8: idle time does not count towards growth.
    fn idle(&mut self, since: Time, connection: &Connection) {
        if let Some(epoch) = &mut self.epoch {
            let idle = connection.now.saturating_sub(since);
            epoch.start = (epoch.start + idle).min(connection.now);
        }
    }
}
