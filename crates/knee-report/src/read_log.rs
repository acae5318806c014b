//! An access log as it was read: the sizes of its lines beside those of the transfers generated
//! from it, and its lines over time.

use crate::applications::Shown;
use crate::drawing::{Axis, Drawing, WIDTH};
use crate::mix::size_name;
use knee_present::words::count;
use knee_record::RunView;
use knee_units::Packed;

const LEFT: f64 = 58.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 200.0;
const HEIGHT: f64 = 246.0;
/// Right end of the size axis when the lines over time are beside it, and left end of their axis.
const HALF: f64 = 0.5 * WIDTH - 16.0;
const SECOND: f64 = 0.5 * WIDTH + 52.0;
/// Number of points of a curve, and of bars over time.
const POINTS: usize = 160;
const BARS: usize = 60;

/// An access log, as read by a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadLog {
    /// Name of the file.
    pub name: String,
    /// Number and kind of the lines used, for display.
    pub read_as: String,
    /// Sizes of its lines, bytes.
    pub sizes: Packed,
    /// Times of its lines since the earliest one, nanoseconds; may be empty.
    pub times_ns: Packed,
}

pub(crate) fn shown(log: &ReadLog, run: &RunView<'_>) -> Shown {
    let transfers = run.flows.iter().flat_map(|flow| &flow.transfers);
    let made: Packed = transfers.map(|row| row.size_bytes).filter(|size| *size > 0).collect();
    let over_time = match log.times_ns.is_empty() {
        true => "",
        false => " Right: lines over the log’s own time.",
    };
    Shown {
        title: format!("Access log: {}", log.name),
        caption: format!(
            "{}. Share of lines up to each size; dashed: of the {} transfers of this \
             run.{over_time}",
            log.read_as,
            count(made.len() as u64)
        ),
        half: false,
        drawing: draw(&log.sizes, &made, &log.times_ns),
        empty: "The log has no lines.".to_string(),
    }
}

/// Draws the log.
fn draw(sizes: &Packed, made: &Packed, times_ns: &Packed) -> Option<Drawing> {
    let (least, most) = (sizes.iter().min()?, sizes.iter().max()?);
    let right = if times_ns.is_empty() { WIDTH - 14.0 } else { HALF };
    let decade = |size: u64| (size.max(1) as f64).log10();
    let (low, high) = (10f64.powf(decade(least).floor()), 10f64.powf(decade(most).floor() + 1.0));
    let x = Axis { low, high, low_at: LEFT, high_at: right, decades: true, names: size_name };
    let y = Axis::from_zero(100.0, BOTTOM, TOP);
    let mut drawing = Drawing::new(HEIGHT, "sizes in the log, and of the transfers of the run");
    drawing.levels(&y, LEFT, right, "lines up to a size (%)");
    drawing.axis(&x, TOP, BOTTOM, "size");
    drawing.line("curve", &distribution(sizes, &x, &y));
    if !made.is_empty() {
        drawing.line("even", &distribution(made, &x, &y));
    }
    over_time(&mut drawing, times_ns);
    Some(drawing)
}

/// Returns the fraction of the values at or below each point of the axis.
fn distribution(values: &Packed, x: &Axis, y: &Axis) -> Vec<(f64, f64)> {
    let size = |at: usize| x.low * (x.high / x.low).powf(at as f64 / POINTS as f64);
    let sizes: Vec<f64> = (0..=POINTS).map(size).collect();
    // By the first point that is not below it; the last one counts those beyond the axis.
    let mut counts = [0_u64; POINTS + 2];
    for own in values.iter() {
        counts[sizes.partition_point(|size| *size < own as f64)] += 1;
    }
    let mut below = 0;
    let point = |(size, count): (&f64, &u64)| {
        below += count;
        (x.at(*size), y.at(100.0 * below as f64 / values.len() as f64))
    };
    sizes.iter().zip(&counts).map(point).collect()
}

fn over_time(drawing: &mut Drawing, times_ns: &Packed) {
    let Some(last) = times_ns.iter().max() else { return };
    let seconds = (last as f64 / 1e9).max(1e-9);
    let mut bins = [0_u64; BARS];
    for time in times_ns.iter() {
        let bin = (time as f64 / 1e9 / seconds * BARS as f64) as usize;
        bins[bin.min(BARS - 1)] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(1);
    let right = WIDTH - 14.0;
    let (unit, name) = match seconds {
        seconds if seconds >= 2.0 * 3600.0 => (3600.0, "h"),
        seconds if seconds >= 240.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let x = Axis::from_zero(seconds / unit, SECOND, right);
    let y = Axis::from_zero(most as f64 * 1.05, BOTTOM, TOP);
    drawing.levels_at(&y, [SECOND, right], SECOND - 50.0, "lines");
    drawing.axis(&x, TOP, BOTTOM, &format!("time in the log ({name})"));
    for (bin, lines) in bins.iter().enumerate() {
        let place = |at: usize| x.at(seconds / unit * at as f64 / BARS as f64);
        let title = format!("{} lines", count(*lines));
        let corners = [place(bin), y.at(*lines as f64), place(bin + 1) - 0.6, BOTTOM];
        drawing.bar("arriving", corners, title);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter of 1, 10, 100, 1000 are at most 1, all are at most 1000.
    #[test]
    fn the_curve_is_the_cumulative_distribution() {
        let x = Axis {
            low: 1.0,
            high: 1e4,
            low_at: 0.0,
            high_at: 4.0,
            decades: true,
            names: size_name,
        };
        let y = Axis::from_zero(100.0, 100.0, 0.0);
        let curve = distribution(&[100, 1, 1000, 10].into_iter().collect(), &x, &y);
        let at = |place: f64| {
            let near =
                curve.iter().min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()));
            100.0 - near.unwrap().1
        };
        assert_eq!((at(0.0), at(0.5), at(1.5), at(3.5)), (25.0, 25.0, 50.0, 100.0));
    }
}
