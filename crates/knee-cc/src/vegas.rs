//! Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a
//! Global Internet", IEEE JSAC 13(8), 1995): keeps a few packets in the queue,
//! neither more nor fewer.
//!
//! ```text
//!   diff = (W / base_rtt - W / rtt) base_rtt     once per round trip
//!          < alpha: W += 1     > beta: W -= 1     between: stay
//! ```
//! `rtt` is the smallest of the round, so that delayed acknowledgements do not
//! count as queue. The arithmetic is that of Linux (`tcp_vegas.c`), which
//! differs from the paper: slow start doubles in every round trip, not in every
//! other one; it ends at the window that the measured rate needs; the
//! difference is relative to `base_rtt`, which counts a queue of q packets as q
//! (1 + q / BDP); the overshoot of slow start is then removed at one packet per
//! round trip; and the paper's finer retransmission is left to the transport. A
//! round with fewer than three samples grows as in Reno.

use crate::loss_based::{Growth, LossBased, reno_growth};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Init, Recovery, Sample};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "vegas",
    summary: "keeps two to four packets in the queue, by the RTT",
    source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995; arithmetic as in Linux",
    parameters: PARAMETERS,
    presets: &[],
    build: Build::BuiltIn(build),
};

const PACKETS: Kind = Kind::Count { min: 1, max: 1000 };

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "alpha",
        kind: PACKETS,
        default: "2",
        summary: "packets in the queue below which the window grows",
    },
    Parameter {
        name: "beta",
        kind: PACKETS,
        default: "4",
        summary: "packets in the queue above which it shrinks; alpha, if that is more",
    },
    Parameter {
        name: "gamma",
        kind: PACKETS,
        default: "1",
        summary: "packets in the queue at which slow start ends",
    },
];

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let alpha = settings.count("alpha");
    let vegas = Vegas {
        alpha,
        beta: settings.count("beta").max(alpha),
        gamma: settings.count("gamma"),
        base_rtt: Time::MAX,
        round_rtt: Time::MAX,
        samples: 0,
        round_end: 0,
    };
    Box::new(LossBased::new(vegas, &init))
}

/// Number of samples in a round that one delayed acknowledgement cannot spoil.
const ENOUGH_SAMPLES: u32 = 3;

/// Smallest window, in segments.
const SMALLEST: u32 = 2;

#[derive(Clone, Debug)]
struct Vegas {
    alpha: u32,
    beta: u32,
    gamma: u32,
    /// Smallest RTT measured so far.
    base_rtt: Time,
    /// Smallest RTT of this round, and the number of samples.
    round_rtt: Time,
    samples: u32,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
}

impl Vegas {
    fn begin_round(&mut self, connection: &Connection) {
        self.round_end = connection.sent;
        self.round_rtt = Time::MAX;
        self.samples = 0;
    }

    /// Adjusts the window at the end of a round with enough samples: Linux's
    /// `tcp_vegas_cong_avoid`.
    fn adjust(&self, window: &mut Window, acked: u32) {
        let base = self.base_rtt.as_micros().max(1);
        let rtt = self.round_rtt.as_micros().max(base);
        let diff = u64::from(window.segments) * (rtt - base) / base;
        if window.in_slow_start() {
            if diff <= u64::from(self.gamma) {
                window.slow_start(acked);
                return;
            }
            // The window for the rate that was reached, plus one segment.
            let reached = u64::from(window.segments) * base / rtt + 1;
            window.set(window.segments.min(reached as u32).max(SMALLEST));
            window.threshold = window.segments;
        } else if diff > u64::from(self.beta) {
            window.set((window.segments - 1).max(SMALLEST));
            window.threshold = window.threshold.min(window.segments);
        } else if diff < u64::from(self.alpha) {
            window.set(window.segments + 1);
        }
    }
}

impl Growth for Vegas {
    fn observe(&mut self, _window: &mut Window, sample: &Sample, connection: &Connection) {
        if let Some(rtt) = sample.rtt {
            let rtt = rtt.max(Time::from_micros(1));
            self.base_rtt = self.base_rtt.min(rtt);
            self.round_rtt = self.round_rtt.min(rtt);
            self.samples += 1;
        }
        // A round with a loss says nothing about the queue.
        if connection.recovery != Recovery::Open {
            self.begin_round(connection);
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) {
        if connection.recovery != Recovery::Open {
            return reno_growth(window, acked);
        }
        if connection.acknowledged > self.round_end {
            if self.samples >= ENOUGH_SAMPLES {
                self.adjust(window, acked);
            } else {
                reno_growth(window, acked);
            }
            self.begin_round(connection);
        } else if window.in_slow_start() {
            window.slow_start(acked);
        }
    }

    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(SMALLEST)
    }

    /// Starts a new round, as Linux does: the route may have changed.
    fn reset(&mut self, connection: &Connection) {
        self.begin_round(connection);
    }

    fn idle(&mut self, _since: Time, connection: &Connection) {
        self.begin_round(connection);
    }
}
