//! An access log as it was read: the sizes of its lines beside those of the transfers generated
//! from it, and its lines over time.

use crate::applications::Shown;
use crate::drawing::{Axis, Drawing, WIDTH};
use crate::mix::size_name;
use crate::words::count;
use knee_record::RunView;
use knee_units::Time;

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
    pub sizes: Vec<u64>,
    /// Times of its lines since the earliest one; may be empty.
    pub times: Vec<Time>,
}

pub(crate) fn shown(log: &ReadLog, run: &RunView<'_>) -> Shown {
    let transfers = run.flows.iter().flat_map(|flow| &flow.transfers);
    let mut made: Vec<u64> = transfers.map(|row| row.size_bytes).filter(|size| *size > 0).collect();
    let mut sizes = log.sizes.clone();
    sizes.sort_unstable();
    made.sort_unstable();
    let over_time = match log.times.is_empty() {
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
        drawing: draw(&sizes, &made, &log.times),
        empty: "The log has no lines.".to_string(),
    }
}

/// Draws the log; `sizes` and `made` must be ascending.
fn draw(sizes: &[u64], made: &[u64], times: &[Time]) -> Option<Drawing> {
    let (least, most) = (*sizes.first()?, *sizes.last()?);
    let right = if times.is_empty() { WIDTH - 14.0 } else { HALF };
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
    over_time(&mut drawing, times);
    Some(drawing)
}

/// Returns the fraction of the ascending values at or below each point of the axis.
fn distribution(sorted: &[u64], x: &Axis, y: &Axis) -> Vec<(f64, f64)> {
    let point = |at: usize| {
        let size = x.low * (x.high / x.low).powf(at as f64 / POINTS as f64);
        let below = sorted.partition_point(|own| *own as f64 <= size);
        (x.at(size), y.at(100.0 * below as f64 / sorted.len() as f64))
    };
    (0..=POINTS).map(point).collect()
}

fn over_time(drawing: &mut Drawing, times: &[Time]) {
    let Some(last) = times.iter().max() else { return };
    let seconds = last.as_secs_f64().max(1e-9);
    let mut bins = [0_u64; BARS];
    for time in times {
        let bin = (time.as_secs_f64() / seconds * BARS as f64) as usize;
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
        let curve = distribution(&[1, 10, 100, 1000], &x, &y);
        let at = |place: f64| {
            let near =
                curve.iter().min_by(|a, b| (a.0 - place).abs().total_cmp(&(b.0 - place).abs()));
            100.0 - near.unwrap().1
        };
        assert_eq!((at(0.0), at(0.5), at(1.5), at(3.5)), (25.0, 25.0, 50.0, 100.0));
    }
}
