//! The delay-throughput plane: the operating point of each flow, and the knee (Kleinrock 1979: the
//! point of largest power, a full path with an empty queue).

use crate::sentence::share_a_path;
use knee_present::words::{rate, time_us};
use knee_record::{FlowSummary, Summary};
use serde::Serialize;

/// Size of the drawing and of the frame within it, in its own units.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 448.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 258.0;
/// Largest number of flows drawn.
const DOTS_MAX: usize = 500;
/// Approximate number of marks on an axis.
const TICKS: f64 = 5.0;
/// Powers for which lines are drawn, with their labels.
const POWERS: [(f64, &str); 3] = [(1.0, "power 1"), (0.5, "½"), (0.25, "¼")];

/// The drawing; coordinates are in its own units.
#[derive(Debug, Serialize)]
pub(crate) struct Plane {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_unit: &'static str,
    y_unit: &'static str,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    powers: Vec<Power>,
    knee: Option<Knee>,
    dots: Vec<Dot>,
    total: Option<Dot>,
}

/// A mark on an axis.
#[derive(Debug, Serialize)]
struct Tick {
    at: String,
    label: String,
}

/// A line of equal power, from the origin.
#[derive(Debug, Serialize)]
struct Power {
    x: String,
    y: String,
    /// Whether the label is left of the line, because it would leave the frame otherwise.
    before: bool,
    label: &'static str,
}

/// The knee, the reference point of all flows.
#[derive(Debug, Serialize)]
struct Knee {
    x: String,
    y: String,
    /// Whether the label is left of the point, because it would leave the frame otherwise.
    before: bool,
    label: String,
}

/// A flow: median RTT and goodput, with the spread of its RTT.
#[derive(Debug, Serialize)]
struct Dot {
    x: String,
    y: String,
    low: String,
    high: String,
    /// Position among the flows drawn in the other plots; `None` is grey.
    colour: Option<usize>,
    title: String,
}

/// Mapping from values to the drawing.
struct Scale {
    rtt_us_max: f64,
    goodput_bps_max: f64,
}

impl Scale {
    fn x(&self, rtt_us: f64) -> String {
        format!("{:.1}", LEFT + (RIGHT - LEFT) * (rtt_us / self.rtt_us_max).clamp(0.0, 1.0))
    }

    fn y(&self, bps: f64) -> String {
        format!("{:.1}", BOTTOM - (BOTTOM - TOP) * (bps / self.goodput_bps_max).clamp(0.0, 1.0))
    }
}

/// Returns the plane of a run; `shown` are the labels of the flows drawn elsewhere, for their
/// colours. `None` if no flow has both a goodput and an RTT.
pub(crate) fn plane(summary: &Summary, shown: &[String]) -> Option<Plane> {
    let placed = |flow: &FlowSummary| flow.goodput_bps.is_some() && flow.rtt_us.is_some();
    let flows: Vec<&FlowSummary> = summary.flows.iter().filter(|flow| placed(flow)).collect();
    if flows.is_empty() {
        return None;
    }
    let knee = knee(summary);
    let sum = flows.iter().filter_map(|flow| flow.goodput_bps).sum::<f64>();
    let together = knee.is_some() && flows.len() > 1;
    let scale = scale(&flows, knee, if together { sum } else { 0.0 });
    let (x_size, x_unit) = unit(scale.rtt_us_max, &[(1e6, "s"), (1e3, "ms"), (1.0, "µs")]);
    let rates = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    let (y_size, y_unit) = unit(scale.goodput_bps_max, &rates);
    Some(Plane {
        width: WIDTH,
        height: HEIGHT,
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: BOTTOM,
        x_unit,
        y_unit,
        x_ticks: ticks(scale.rtt_us_max, x_size, |value| scale.x(value)),
        y_ticks: ticks(scale.goodput_bps_max, y_size, |value| scale.y(value)),
        powers: knee.map_or_else(Vec::new, |knee| powers(knee, &scale)),
        total: together.then(|| total(summary, sum, &scale)).flatten(),
        dots: flows.iter().take(DOTS_MAX).filter_map(|flow| dot(flow, &scale, shown)).collect(),
        knee: knee.map(|(rtt_us, bps)| Knee {
            x: scale.x(rtt_us),
            y: scale.y(bps),
            before: rtt_us > 0.5 * scale.rtt_us_max,
            label: format!("knee: {} at {}", rate(Some(bps)), time_us(Some(rtt_us))),
        }),
    })
}

/// Returns the base RTT (µs) and the payload rate (bit/s, the mean while the flows ran) of the path
/// that all flows share.
fn knee(summary: &Summary) -> Option<(f64, f64)> {
    let bps = summary.measures.capacity_bps.filter(|bps| *bps > 0.0)?;
    let rtt_us = summary.flows.first()?.base_rtt_us;
    (share_a_path(summary) && rtt_us > 0.0).then_some((rtt_us, bps))
}

fn scale(flows: &[&FlowSummary], knee: Option<(f64, f64)>, sum: f64) -> Scale {
    let (knee_rtt, knee_rate) = knee.unwrap_or((1.0, 1.0));
    let rtts = flows.iter().filter_map(|flow| Some(flow.rtt_us?.p95));
    let goodputs = flows.iter().filter_map(|flow| flow.goodput_bps);
    Scale {
        rtt_us_max: 1.08 * rtts.fold(knee_rtt * 1.5, f64::max),
        goodput_bps_max: 1.05 * goodputs.fold(knee_rate.max(sum), f64::max),
    }
}

fn dot(flow: &FlowSummary, scale: &Scale, shown: &[String]) -> Option<Dot> {
    let (rtt, goodput) = (flow.rtt_us?, flow.goodput_bps?);
    let indexed = format!("{}[{}]", flow.name, flow.index);
    let colour = shown.iter().position(|label| *label == indexed || *label == flow.name);
    Some(Dot {
        x: scale.x(rtt.p50),
        y: scale.y(goodput),
        low: scale.x(rtt.p5),
        high: scale.x(rtt.p95),
        colour,
        title: format!(
            "{indexed}: {} at a median RTT of {} (5th to 95th percentile: {} to {})",
            rate(Some(goodput)),
            time_us(Some(rtt.p50)),
            time_us(Some(rtt.p5)),
            time_us(Some(rtt.p95))
        ),
    })
}

fn total(summary: &Summary, sum: f64, scale: &Scale) -> Option<Dot> {
    let rtt = summary.measures.rtt_us?;
    let median = time_us(Some(rtt.p50));
    Some(Dot {
        x: scale.x(rtt.p50),
        y: scale.y(sum),
        low: scale.x(rtt.p5),
        high: scale.x(rtt.p95),
        colour: None,
        title: format!("all flows: {} at a median RTT of {median}", rate(Some(sum))),
    })
}

/// Returns the point at which the line of each power leaves the frame: goodput over the full rate
/// is the power times RTT over the base RTT.
fn powers((rtt_us, bps): (f64, f64), scale: &Scale) -> Vec<Power> {
    let line = |&(power, label): &(f64, &'static str)| {
        let slope = power * bps / rtt_us;
        let rtt_at_full = bps / slope;
        let end = rtt_at_full.min(scale.rtt_us_max);
        let before = end > 0.8 * scale.rtt_us_max;
        Power { x: scale.x(end), y: scale.y(slope * end), before, label }
    };
    POWERS.iter().map(line).collect()
}

fn unit(largest: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    let fits = units.iter().find(|(size, _)| largest >= *size);
    *fits.unwrap_or(&units[units.len() - 1])
}

/// Returns marks at 1, 2 or 5 times a power of ten.
fn ticks(largest: f64, unit: f64, place: impl Fn(f64) -> String) -> Vec<Tick> {
    let rough = largest / unit / TICKS;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough);
    let step = step.unwrap_or(10.0) * power;
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let steps = 0..=(largest / unit / step).floor() as u32;
    let tick = |count: u32| {
        let value = f64::from(count) * step;
        Tick { at: place(value * unit), label: format!("{value:.decimals$}") }
    };
    steps.map(tick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        let labels = |largest: f64, unit: f64| -> Vec<String> {
            ticks(largest, unit, |_| String::new()).into_iter().map(|tick| tick.label).collect()
        };
        assert_eq!(labels(220_000.0, 1e3), ["0", "50", "100", "150", "200"]);
        assert_eq!(labels(10.4e6, 1e6), ["0", "5", "10"]);
        assert_eq!(labels(1.05e6, 1e6), ["0.0", "0.5", "1.0"]);
    }

    /// At the knee the power is one by definition, so the line of power one ends there.
    #[test]
    fn the_line_of_power_one_passes_the_knee() {
        let scale = Scale { rtt_us_max: 200_000.0, goodput_bps_max: 10e6 };
        let lines = powers((60_000.0, 9.65e6), &scale);
        assert_eq!((&lines[0].x, &lines[0].y), (&scale.x(60_000.0), &scale.y(9.65e6)));
        // Half the power at the full rate means twice the delay.
        assert_eq!((&lines[1].x, &lines[1].y), (&scale.x(120_000.0), &scale.y(9.65e6)));
    }
}
