//! Pictures of a mix of transfers: size against transfer time, and test against control by size
//! class. Transfers are counted in bins here, so that the page stays small however many there are.

use crate::applications::{Shown, shortened};
use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::{count, time_us};
use knee_record::{
    ClaimOutcome, FlowView, MixAnswer, PairedScale, RatioInterval, RunView, SizeClass,
    TransferValue, Unit, Window, size_classes, transfer_ratio,
};
use knee_scenario::Statistic;
use std::collections::BTreeMap;

/// Bins per decade, in size and in time.
const BINS: f64 = 8.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 26.0;
/// Smallest number of transfers on each side for which a size class is compared.
const COMPARED_MIN: usize = 20;

/// Number of transfers by bins of the logarithm of size and of time.
type Bins = BTreeMap<(i32, i32), u64>;

/// Returns a heat map for each mix, all with the same axes and the same colour scale, so that they
/// can be compared.
pub(crate) fn heat_maps(run: &RunView<'_>) -> Vec<Shown> {
    let mixes = run.flows.iter().filter(|flow| !flow.transfers.is_empty());
    let counted: Vec<(&FlowView<'_>, Bins)> = mixes.map(|flow| (flow, counted(flow))).collect();
    let mut all = Bins::new();
    for (key, transfers) in counted.iter().flat_map(|(_, bins)| bins) {
        let most = all.entry(*key).or_default();
        *most = (*most).max(*transfers);
    }
    counted.iter().map(|(flow, bins)| heat_map(flow, bins, &all)).collect()
}

fn counted(flow: &FlowView<'_>) -> Bins {
    let bin = |value: f64| (value.log10() * BINS).floor() as i32;
    let mut bins = Bins::new();
    for row in flow.transfers.iter().filter(|row| row.size_bytes > 0) {
        if let Some(seconds) = TransferValue::Completion.of(row) {
            *bins.entry((bin(row.size_bytes as f64), bin(seconds))).or_default() += 1;
        }
    }
    bins
}

/// `all` determines the axes and the darkest colour.
fn heat_map(flow: &FlowView<'_>, bins: &Bins, all: &Bins) -> Shown {
    let counted: u64 = bins.values().sum();
    let rest = match flow.transfers.len() as u64 - counted {
        0 => String::new(),
        cut_off => format!(", {} cut off or empty (not drawn)", count(cut_off)),
    };
    let darkest = count(all.values().max().copied().unwrap_or(0));
    Shown {
        half: true,
        title: format!("Size and serving time: {}, {}", flow.record.label(), flow.record.cc),
        caption: format!(
            "{} transfers{rest}. Darker means more transfers, on a logarithmic scale from one to \
             {darkest}. Dashed: equal throughput.",
            count(counted)
        ),
        drawing: (counted > 0).then(|| draw_heat_map(bins, all)),
        empty: "No transfer of this class finished.".to_string(),
    }
}

fn draw_heat_map(bins: &Bins, all: &Bins) -> Drawing {
    let (top, bottom) = (24.0, 300.0);
    let sizes = decades(all.keys().map(|key| key.0), [LEFT, RIGHT], size_name);
    let times = decades(all.keys().map(|key| key.1), [bottom, top], time_name);
    let mut drawing = Drawing::new(340.0, "number of transfers by size and serving time");
    drawing.levels(&times, LEFT, RIGHT, "serving time");
    drawing.axis(&sizes, top, bottom, "size");
    let most = all.values().max().copied().unwrap_or(1) as f64;
    let value = |bin: i32| 10f64.powf(f64::from(bin) / BINS);
    for ((size, time), transfers) in bins {
        let (from, to) = (value(*size), value(size + 1));
        let (least, longest) = (value(*time), value(time + 1));
        let corners = [sizes.at(from), times.at(longest), sizes.at(to), times.at(least)];
        let part = if most > 1.0 { (*transfers as f64).ln() / most.ln() } else { 1.0 };
        let told = format!(
            "{} of {} to {} in {} to {}",
            count(*transfers),
            size_name(from),
            size_name(to),
            time_name(least),
            time_name(longest)
        );
        drawing.shade("heat", corners, Some(0.12 + 0.88 * part), told);
    }
    equal_throughput(&mut drawing, &sizes, &times);
    drawing
}

/// Returns a logarithmic axis from the first to the last bin.
fn decades(
    bins: impl Iterator<Item = i32> + Clone,
    [low_at, high_at]: [f64; 2],
    names: fn(f64) -> String,
) -> Axis {
    let (least, most) = (bins.clone().min().unwrap_or(0), bins.max().unwrap_or(0) + 1);
    let decades = [least, most].map(|bin| f64::from(bin) / BINS);
    // Include at least one power of ten, to read values from.
    let whole = decades[0].ceil() < decades[1].floor();
    let [low, high] = match whole {
        true => decades,
        false => [decades[0].floor(), decades[1].ceil()],
    };
    let (low, high) = (10f64.powf(low), 10f64.powf(high));
    Axis { low, high, low_at, high_at, decades: true, names }
}

/// Adds lines of 100 kbit/s, 1 Mbit/s and so on, as far as they cross the frame.
fn equal_throughput(drawing: &mut Drawing, sizes: &Axis, times: &Axis) {
    for power in 4..=11 {
        let bps = 10f64.powi(power);
        // From the point where the line enters the frame, left or bottom, to the point where it
        // leaves, right or top.
        let from = sizes.low.max(times.low * bps / 8.0);
        let to = sizes.high.min(times.high * bps / 8.0);
        if to <= from * 3.0 {
            continue;
        }
        let point = |size: f64| (sizes.at(size), times.at(8.0 * size / bps));
        drawing.line("reference", &[point(from), point(to)]);
        let (x, y) = point(to);
        drawing.words("small", "end", (x - 4.0, y + 12.0), Unit::BitsPerSecond.show(bps));
    }
}

pub(crate) fn size_name(size: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")];
    let (unit, name) = *units.iter().find(|(unit, _)| size >= 0.999 * unit).unwrap_or(&units[3]);
    format!("{} {name}", Unit::Number.show((size / unit * 10.0).round() / 10.0))
}

fn time_name(seconds: f64) -> String {
    time_us(Some(seconds * 1e6))
}

/// Compares test with control by size class, for any two mixes over the same path under different
/// controllers.
pub(crate) fn comparisons(run: &RunView<'_>) -> Vec<Shown> {
    let mixes: Vec<_> = run.flows.iter().filter(|flow| !flow.transfers.is_empty()).collect();
    let mut shown = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for first in &mixes {
        let path = first.record.path.as_str();
        if done.contains(&path) {
            continue;
        }
        done.push(path);
        let here: Vec<_> = mixes.iter().filter(|flow| flow.record.path == path).collect();
        // CUBIC is the default control.
        let control = here.iter().find(|flow| flow.record.cc == "cubic").unwrap_or(&here[0]);
        let tests = here.iter().filter(|flow| flow.record.cc != control.record.cc);
        shown.extend(tests.map(|test| comparison(run, test, control)));
    }
    shown
}

/// A statistic of a size class, compared.
struct Row {
    label: String,
    faint: bool,
    interval: RatioInterval,
}

fn comparison(run: &RunView<'_>, test: &FlowView<'_>, control: &FlowView<'_>) -> Shown {
    let rows = compared(run, test, control);
    let (of, against) = (test.record.label(), control.record.label());
    Shown {
        half: false,
        title: format!("{of} against {against}, half and half"),
        caption: format!(
            "Both in this run: shows who takes from whom, not which is better. {} over {}, by size: the ratio with its 95 % interval (percentile bootstrap over transfers, in pairs where both see the same process). Completion time: left of 1 is better; throughput: right of 1 is better.",
            test.record.cc, control.record.cc
        ),
        drawing: (!rows.is_empty()).then(|| draw_comparison(&rows, RATIO)),
        empty: format!("No class of sizes has {COMPARED_MIN} finished transfers on both sides."),
    }
}

/// Draws the ratios of an answer by size class: those of completion times and those of throughputs,
/// of which opposite sides are better, apart. Empty if there are none.
pub(crate) fn of_answer(answer: &MixAnswer) -> Vec<Drawing> {
    let drawings = [false, true].map(|throughput| {
        let name = match throughput {
            true => "throughput, test over control (right is better)",
            false => "completion time, test over control (left is better)",
        };
        let rows = ratios(answer, throughput);
        (!rows.is_empty()).then(|| draw_comparison(&rows, name))
    });
    drawings.into_iter().flatten().collect()
}

fn ratios(answer: &MixAnswer, throughput: bool) -> Vec<Row> {
    let is_one = answer.pairs.len() == 1;
    let classes = answer.classes.iter().filter(|class| class.throughput == throughput);
    let rows = classes.filter_map(|class| {
        let compared = &class.compared;
        let ratio = compared.estimate.filter(|_| compared.scale == PairedScale::Ratio)?;
        let (low, high) = compared.low.zip(compared.high)?;
        let whose = match is_one {
            true => String::new(),
            false => format!("{}: ", shortened(&class.pair, 10)),
        };
        let label = format!("{whose}{}", class.sizes);
        Some(Row { label, faint: false, interval: RatioInterval { ratio, low, high } })
    });
    rows.collect()
}

/// Draws the claims of test against control, with their intervals; `None` if there are none.
pub(crate) fn of_claims(claims: &[ClaimOutcome]) -> Option<Shown> {
    let row = |claim: &ClaimOutcome| {
        let label = format!("{} {}", claim.id, claim.of);
        Some(Row { label: shortened(label.trim(), 44), faint: false, interval: claim.interval? })
    };
    let rows: Vec<Row> = claims.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Shown {
        half: false,
        title: "Test over control".to_string(),
        caption: "The ratio that each claim over transfers measured, with its 95 % interval \
                  (percentile bootstrap over transfers)."
            .to_string(),
        drawing: Some(draw_comparison(&rows, RATIO)),
        empty: String::new(),
    })
}

fn compared(run: &RunView<'_>, test: &FlowView<'_>, control: &FlowView<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let labels = [test, control].map(|flow| flow.record.label());
    let targets = labels.each_ref().map(|label| (run, label.as_str()));
    for class in size_classes() {
        // The slow tail beside the mean.
        let (value, what, slow) = match class.is_large() {
            true => (TransferValue::Throughput, "throughput", (Statistic::P5, "5th percentile")),
            false => {
                let slow = (Statistic::P95, "95th percentile");
                (TransferValue::Completion, "completion time", slow)
            }
        };
        let (ours, theirs) = (values(test, class, value), values(control, class, value));
        if ours.len().min(theirs.len()) < COMPARED_MIN {
            continue;
        }
        for (statistic, name) in [(Statistic::Mean, "mean"), slow] {
            let (window, sizes) = (Window::default(), class.sizes);
            let interval = transfer_ratio(targets, window, value, sizes, statistic);
            let Some(interval) = interval else { continue };
            let faint = statistic != Statistic::Mean;
            let label = match faint {
                false => format!("{}: {what}, {name}", class.name),
                true => format!(
                    "{name} · {} / {}",
                    count(ours.len() as u64),
                    count(theirs.len() as u64)
                ),
            };
            rows.push(Row { label, faint, interval });
        }
    }
    rows
}

fn values(flow: &FlowView<'_>, class: SizeClass, value: TransferValue) -> Vec<f64> {
    let rows = flow.transfers.iter().filter(|row| class.sizes.contains(row.size_bytes));
    rows.filter_map(|row| value.of(row)).collect()
}

/// Name of an axis of ratios.
const RATIO: &str = "test over control (1: the same)";

/// `name` is that of the axis.
fn draw_comparison(rows: &[Row], name: &str) -> Drawing {
    let longest = rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    // Letters are largest on a small screen.
    let left = (14.0 + 10.4 * longest as f64).clamp(150.0, 340.0);
    let (top, height) = (10.0, 20.0);
    let bottom = top + height * rows.len() as f64;
    let lows = rows.iter().map(|row| row.interval.low);
    let highs = rows.iter().map(|row| row.interval.high);
    let (low, high) = (lows.fold(1.0, f64::min), highs.fold(1.0, f64::max));
    let margin = (0.06 * (high - low)).max(0.02);
    let axis = Axis {
        low: (low - margin).max(0.0),
        high: high + margin,
        ..Axis::from_zero(1.0, left, RIGHT)
    };
    let mut drawing =
        Drawing::new(bottom + 40.0, "ratio of test to control by size, with intervals");
    drawing.axis(&axis, top, bottom, name);
    drawing.line("even", &[(axis.at(1.0), top), (axis.at(1.0), bottom)]);
    for (number, row) in rows.iter().enumerate() {
        let y = top + height * (number as f64 + 0.5);
        let RatioInterval { ratio, low, high } = row.interval;
        let class = if row.faint { "faint" } else { "strong" };
        drawing.line(
            if row.faint { "whisker faint" } else { "whisker" },
            &[(axis.at(low), y), (axis.at(high), y)],
        );
        let told = format!("{}: {}", row.label, interval_in_words(row.interval));
        drawing.dot(class, axis.at(ratio), y, told);
        drawing.words(
            if row.faint { "small" } else { "name" },
            "end",
            (left - 10.0, y + 4.0),
            row.label.clone(),
        );
    }
    drawing
}

fn interval_in_words(interval: RatioInterval) -> String {
    let RatioInterval { ratio, low, high } = interval;
    format!("{ratio:.3} ({low:.3} to {high:.3})")
}
