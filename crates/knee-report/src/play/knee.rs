//! Where the flows of a path are, relative to its knee: RTT and delivery rate against bytes in
//! flight, in multiples of what the empty path has (Kleinrock, ICC 1979; Cardwell et al., ACM Queue
//! 14(5), 2016, figure 1), so that different paths share one picture.

use super::PlayRun;
use crate::drawing::{Axis, Drawing};
use crate::series::{bdp_bytes, full_bps};
use knee_record::{FlowSample, Records};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 580.0;
const HEIGHT: f64 = 272.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 566.0;
/// Top and bottom of the frame of the RTT, and of the frame of the delivery rate.
const RTT: (f64, f64) = (26.0, 114.0);
const RATE: (f64, f64) = (142.0, 226.0);
/// Dots of a run: each is the mean over its share of the time, but at least over an RTT.
const DOTS: u64 = 150;
/// Least end of the axis of bytes in flight, BDP; of RTTs, and of rates.
const FLIGHT_END: f64 = 1.6;
const RTT_END: f64 = 1.6;
const RATE_END: f64 = 1.15;

/// Means over a window, in multiples of the path's own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Dot {
    flight: f64,
    rtt: f64,
    rate: f64,
}

/// What the flows of a path did between two samples.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    in_flight_bytes: u64,
    delivered_bytes: u64,
    rtt_sum_ns: u64,
    rtts: u64,
}

/// Returns the picture as SVG.
pub(super) fn drawing(runs: &[PlayRun<'_>]) -> String {
    let label = "RTT and delivery rate against bytes in flight, relative to the knee";
    let mut drawing = Drawing::sized(WIDTH, HEIGHT, label);
    let dots: Vec<Vec<Dot>> =
        runs.iter().map(|run| dots(run.records, run.path.duration_ns)).collect();
    let largest = |value: fn(&Dot) -> f64| dots.iter().flatten().map(value).fold(0.0, f64::max);
    let end = (1.05 * largest(|dot| dot.flight)).max(FLIGHT_END);
    let x = Axis::from_zero(end, LEFT, RIGHT);
    let rtt = Axis::from_zero((1.05 * largest(|dot| dot.rtt)).max(RTT_END), RTT.1, RTT.0);
    let rate = Axis::from_zero(RATE_END, RATE.1, RATE.0);
    drawing.levels(&rtt, LEFT, RIGHT, "RTT (times that of the empty path)");
    drawing.levels(&rate, LEFT, RIGHT, "delivery rate (part of a full path)");
    drawing.axis(&x, RATE.0, RATE.1, "bytes in flight (BDP)");
    for (top, bottom) in [RTT, RATE] {
        drawing.bar(
            "app",
            [LEFT, top, x.at(1.0), bottom],
            "the rate grows, the queue is empty".into(),
        );
        drawing.bar(
            "bandwidth",
            [x.at(1.0), top, RIGHT, bottom],
            "the rate is full, the queue grows".into(),
        );
    }
    // Without packets lost: the queue holds what exceeds one BDP.
    let model = |axis: &Axis, ends: [f64; 3]| {
        [0.0, 1.0, end]
            .iter()
            .zip(ends)
            .map(|(at, value)| (x.at(*at), axis.at(value)))
            .collect::<Vec<_>>()
    };
    drawing.line("even", &model(&rtt, [1.0, 1.0, end]));
    drawing.line("even", &model(&rate, [0.0, 1.0, 1.0]));
    let mut marks = String::new();
    for (number, (run, dots)) in runs.iter().zip(&dots).enumerate() {
        edge(&mut drawing, run, &x);
        // One path for all dots: a page that exchanges them with each move has no time for elements.
        let _ = write!(marks, "<path class=\"dots k{number}\" d=\"");
        for dot in dots {
            for at in [rtt.at(dot.rtt), rate.at(dot.rate)] {
                let _ = write!(marks, "M{:.1} {at:.1}h0", x.at(dot.flight));
            }
        }
        marks.push_str("\"/>");
    }
    for (number, (run, dots)) in runs.iter().zip(&dots).enumerate() {
        let Some(mean) = mean(dots) else { continue };
        let across = x.at(mean.flight);
        for (axis, value) in [(&rtt, mean.rtt), (&rate, mean.rate)] {
            let up = axis.at(value);
            let _ = write!(
                marks,
                "<circle class=\"mean k{number}\" cx=\"{across:.1}\" cy=\"{up:.1}\"><title>{}: {:.2} BDP \
                 in flight, {value:.2}</title></circle><text class=\"letter\" x=\"{across:.1}\" \
                 y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                run.name,
                mean.flight,
                up + 4.0,
                run.name
            );
        }
    }
    for axis in [&rtt, &rate] {
        let (across, up) = (x.at(1.0), axis.at(1.0));
        let _ = write!(
            marks,
            "<circle class=\"knee\" cx=\"{across:.1}\" cy=\"{up:.1}\"><title>the knee: full, and no \
             queue</title></circle>"
        );
    }
    drawing.cell((0.0, 0.0), None, label.to_string(), marks);
    drawing.words("name", "start", (x.at(1.0) + 9.0, RATE.1 - 8.0), "the knee");
    if dots.iter().all(Vec::is_empty) {
        let words = "no rate of a path is known to compare with";
        drawing.words("quiet", "middle", ((LEFT + RIGHT) / 2.0, RTT.1 - 10.0), words);
    }
    drawing.inline()
}

/// Draws where the buffer is full.
fn edge(drawing: &mut Drawing, run: &PlayRun<'_>, x: &Axis) {
    let Some((_, bdp)) = units(run.records) else { return };
    let Some(buffer) = run.path.buffer_bytes else { return };
    // Payload, as the dots; the buffer holds headers too.
    let overhead = run.records.flows.first().map_or(1.0, |flow| flow.header_overhead.max(1.0));
    let full = 1.0 + buffer as f64 / overhead / bdp;
    if full > x.high {
        return;
    }
    for (top, bottom) in [RTT, RATE] {
        drawing.line("edge", &[(x.at(full), top), (x.at(full), bottom)]);
    }
    let (at, anchor) = if full > 0.8 * x.high { (-4.0, "end") } else { (4.0, "start") };
    let words = format!("{}: buffer full", run.name);
    let y = if run.name == super::NAMES[0] { RATE.1 - 8.0 } else { RATE.1 - 22.0 };
    drawing.words("name quiet", anchor, (x.at(full) + at, y), words);
}

/// Returns the rate of a full path, bit/s of payload, and its BDP, bytes; `None` without a rate.
fn units(records: &Records) -> Option<(f64, f64)> {
    let flow = records.flows.first()?;
    let (full, bdp) = (full_bps(flow), bdp_bytes(full_bps(flow), flow.base_rtt_ns));
    (bdp > 0).then_some((full as f64, bdp as f64))
}

/// Returns the dots of a run, of all flows on the first flow's path together.
fn dots(records: &Records, duration_ns: u64) -> Vec<Dot> {
    let Some((full, bdp)) = units(records) else { return Vec::new() };
    let first = &records.flows[0];
    let base = first.base_rtt_ns as f64;
    let moments = moments(records, &first.path);
    let width = (duration_ns / DOTS).max(first.base_rtt_ns);
    let mut dots = Vec::new();
    let (mut begin, mut sum, mut rows) = (0, Moment::default(), 0_u64);
    for (time, moment) in moments {
        sum.in_flight_bytes += moment.in_flight_bytes;
        sum.delivered_bytes += moment.delivered_bytes;
        sum.rtt_sum_ns += moment.rtt_sum_ns;
        sum.rtts += moment.rtts;
        rows += 1;
        if time < begin + width {
            continue;
        }
        if sum.rtts > 0 {
            dots.push(Dot {
                flight: sum.in_flight_bytes as f64 / rows as f64 / bdp,
                rtt: sum.rtt_sum_ns as f64 / sum.rtts as f64 / base,
                rate: 8e9 * sum.delivered_bytes as f64 / (time - begin) as f64 / full,
            });
        }
        (begin, sum, rows) = (time, Moment::default(), 0);
    }
    dots
}

/// Returns what the flows of a path did, by the times of samples.
fn moments(records: &Records, path: &str) -> BTreeMap<u64, Moment> {
    let fields = FlowSample::FIELDS;
    let mut moments: BTreeMap<u64, Moment> = BTreeMap::new();
    let here = |flow: u32| {
        let mut flows = records.flows.iter();
        flows.any(|own| own.flow == flow && own.path == path && own.scheduler.is_empty())
    };
    for ((_, _), rows) in records.samples.tracks().iter().filter(|((flow, _), _)| here(*flow)) {
        let columns = [fields.in_flight_bytes, fields.delivered_bytes, fields.rtt_ns];
        let [in_flight, delivered, rtts] = columns.map(|field| rows.column(field, 0));
        let mut before = 0;
        for (row, time) in rows.times(0).into_iter().enumerate() {
            let moment = moments.entry(time).or_default();
            moment.in_flight_bytes += in_flight[row];
            moment.delivered_bytes += delivered[row].saturating_sub(before);
            moment.rtt_sum_ns += rtts[row];
            moment.rtts += u64::from(rtts[row] > 0);
            before = delivered[row];
        }
    }
    moments
}

fn mean(dots: &[Dot]) -> Option<Dot> {
    let count = dots.len() as f64;
    let mean = |value: fn(&Dot) -> f64| dots.iter().map(value).sum::<f64>() / count;
    (!dots.is_empty()).then(|| Dot {
        flight: mean(|dot| dot.flight),
        rtt: mean(|dot| dot.rtt),
        rate: mean(|dot| dot.rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::FlowRecord;

    const STEP_NS: u64 = 20_000_000;

    /// Flows over 10 Mbit/s and 40 ms, a BDP of 50 kB, that always have the same in flight.
    fn records(flows: u32, in_flight_bytes: u64, rtt_ms: u64, bps: u64) -> Records {
        let record = |flow| FlowRecord {
            flow,
            index: flow,
            name: "bulk".into(),
            path: "main".into(),
            base_rtt_ns: 40_000_000,
            path_rate_bps: 10_000_000,
            header_overhead: 1.0,
            ..FlowRecord::default()
        };
        let mut records = Records { flows: (0..flows).map(record).collect(), ..Records::default() };
        for step in 1..=500 {
            for flow in 0..flows {
                records.samples.push(FlowSample {
                    flow,
                    time_ns: step * STEP_NS,
                    delivered_bytes: step * STEP_NS * (bps / 8) / 1_000_000_000,
                    in_flight_bytes,
                    rtt_ns: rtt_ms * 1_000_000,
                    ..FlowSample::default()
                });
            }
        }
        records
    }

    /// Twice the BDP in flight keep the path full and double the RTT; half of it fills half.
    #[test]
    fn dots_are_multiples_of_the_empty_path() {
        for (flows, in_flight, rtt, bps, wanted) in [
            (1, 100_000, 80, 10_000_000, [2.0, 2.0, 1.0]),
            (1, 24_000, 40, 8_000_000, [0.48, 1.0, 0.8]),
            (2, 50_000, 80, 8_000_000, [2.0, 2.0, 1.6]),
        ] {
            let dots = dots(&records(flows, in_flight, rtt, bps), 500 * STEP_NS);
            assert!((120..=150).contains(&dots.len()), "{}", dots.len());
            for dot in dots {
                for (is, wanted) in [dot.flight, dot.rtt, dot.rate].into_iter().zip(wanted) {
                    assert!((is / wanted - 1.0).abs() < 1e-9, "{dot:?}, not {wanted}");
                }
            }
        }
    }

    #[test]
    fn a_path_without_a_rate_has_no_knee() {
        let mut records = records(1, 100_000, 80, 8_000_000);
        records.flows[0].path_rate_bps = 0;
        assert!(dots(&records, 500 * STEP_NS).is_empty());
    }
}
