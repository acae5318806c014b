//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control-04; constants from
//! its reference implementation in Linux): DCTCP adapted to the Internet, for
//! queues that mark ECT(1) early (L4S, RFC 9330 to 9332).
//!
//! ```text
//!   RTT_virt = max(srtt, 25 ms)
//!   alpha += g (F - alpha)                        once per RTT_virt
//!   W     *= 1 - alpha / 2                        on a mark, once per RTT_virt
//!   W     += (srtt / RTT_virt)^2 / W              per unmarked segment
//!   W      = W / 2                                on loss
//! ```
//! Differences from DCTCP: flows with an RTT below 25 ms get the rate that they
//! would get at 25 ms; the window also grows while it responds to marks, since
//! a queue that marks at random marks in most rounds; fractions of a segment
//! are carried over, so that small cuts are not lost; and segments are paced at
//! the window per RTT, in bursts of at most 250 us.
//!
//! Left out: the fallback on classic ECN bottlenecks (experimental in the reference
//! implementation and off there), windows below two segments, smaller segments at
//! low rates, and CUBIC instead of Reno after loss (the draft's option).

use crate::loss_based::{Growth, LossBased, reno_growth};
use crate::registry::{Build, Entry};
use crate::window::Window;
use crate::{Connection, Controller, Ecn, Init, Recovery, Sample};
use knee_units::Time;
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "prague",
    summary: "answers to each mark of an L4S queue, independent of short RTTs",
    source: "draft-briscoe-iccrg-prague-congestion-control-04",
    parameters: &[
        Parameter {
            name: "rtt_virtual",
            kind: Kind::Time { min: Time::from_micros(1), max: Time::from_secs(1) },
            default: "25 ms",
            summary: "shorter RTTs are treated as this RTT",
        },
        Parameter {
            name: "rtt_transition",
            kind: Kind::Count { min: 0, max: 100_000 },
            default: "4",
            summary: "rounds after slow start that use the actual RTT",
        },
    ],
    presets: &[],
    build: Build::BuiltIn(build),
};

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let prague = Prague {
        rtt_virtual: settings.time("rtt_virtual"),
        transition: settings.count("rtt_transition"),
        alpha: 1.0,
        seen_marks: false,
        acked: 0,
        marked: 0,
        round_end: 0,
        rounds: 0,
        estimated_at: Time::ZERO,
        reduced_end: 0,
        reduced_at: Time::ZERO,
        unmarked: 0.0,
    };
    Box::new(LossBased::new(prague, &init))
}

/// Weight of a new observation, g = 1/16, as in DCTCP.
const GAIN: f64 = 1.0 / 16.0;

/// Smallest window, in segments.
const SMALLEST: u32 = 2;

#[derive(Clone, Debug)]
struct Prague {
    rtt_virtual: Time,
    transition: u32,
    /// Smoothed fraction of marked bytes; 1 until the first mark, which
    /// therefore halves the window of slow start.
    alpha: f64,
    /// Whether a queue has marked; before that the fraction is not updated.
    seen_marks: bool,
    acked: u64,
    marked: u64,
    /// The observation ends when this byte is acknowledged, and no earlier than
    /// one virtual RTT after it began.
    round_end: u64,
    /// Rounds since slow start ended.
    rounds: u32,
    estimated_at: Time,
    /// Highest byte sent when the window was last reduced, and the time of that.
    reduced_end: u64,
    reduced_at: Time,
    /// Segments of this acknowledgement that arrived unmarked.
    unmarked: f64,
}

impl Prague {
    /// Returns RTT_virt, or the RTT itself while the flow is young.
    fn virtual_rtt(&self, srtt: Time) -> Time {
        if self.rounds < self.transition { srtt } else { srtt.max(self.rtt_virtual) }
    }

    fn estimate(&mut self, window: &Window, sample: &Sample, connection: &Connection) {
        self.acked += sample.newly_acked;
        self.marked += sample.newly_marked.min(sample.newly_acked);
        self.seen_marks |= sample.newly_marked > 0;
        let elapsed = connection.now.saturating_sub(self.estimated_at);
        let over = connection.acknowledged > self.round_end
            && elapsed >= self.virtual_rtt(connection.srtt);
        if !over || self.acked == 0 {
            return;
        }
        if self.seen_marks {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha += GAIN * (share.min(1.0) - self.alpha);
        }
        if !window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = connection.sent;
        self.estimated_at = connection.now;
    }

    /// Reduces the window for a mark, at most once per virtual RTT.
    fn reduce(&mut self, window: &mut Window, connection: &Connection) {
        let elapsed = connection.now.saturating_sub(self.reduced_at);
        let recent = connection.acknowledged < self.reduced_end
            || (self.reduced_end > 0 && elapsed < self.virtual_rtt(connection.srtt));
        if recent || matches!(connection.recovery, Recovery::Recovery | Recovery::Loss) {
            return;
        }
        window.advance(-f64::from(window.segments) * self.alpha / 2.0);
        window.segments = window.segments.max(SMALLEST);
        window.threshold = window.segments;
        self.reduced_end = connection.sent;
        self.reduced_at = connection.now;
    }
}

impl Growth for Prague {
    const MARKS: Option<Ecn> = Some(Ecn::Ect1);
    const SMOOTH: bool = true;

    fn observe(&mut self, window: &mut Window, sample: &Sample, connection: &Connection) {
        let unmarked = sample.newly_acked.saturating_sub(sample.newly_marked);
        self.unmarked = unmarked as f64 / f64::from(connection.mss.max(1));
        self.estimate(window, sample, connection);
        if sample.newly_marked > 0 {
            self.reduce(window, connection);
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u32, connection: &Connection) {
        if window.in_slow_start() {
            return reno_growth(window, acked);
        }
        let rtt = connection.srtt.as_secs_f64();
        let scale = rtt / self.virtual_rtt(connection.srtt).as_secs_f64().max(1e-9);
        let increase = scale * scale * self.unmarked / f64::from(window.segments);
        window.advance(increase);
        // Growth must not return the window to slow start.
        window.threshold = window.threshold.min(window.segments);
    }

    fn reduced(&mut self, window: &Window) -> u32 {
        (window.segments / 2).max(SMALLEST)
    }

    fn marked_share(&self) -> Option<f64> {
        Some(self.alpha)
    }
}
