//! Points as an SVG path, in tenths of a unit.

use super::values::Points;
use std::fmt::Write;

/// Mapping from values to the chart's units.
pub(super) struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub view: [f64; 2],
    pub range: (f64, f64),
}

impl Frame {
    /// Returns the horizontal place in the chart's units.
    pub(super) fn x(&self, value: f64) -> f64 {
        let part = (value - self.view[0]) / (self.view[1] - self.view[0]);
        self.left + part * (self.right - self.left)
    }

    /// Returns the vertical place in the chart's units.
    pub(super) fn y(&self, value: f64) -> f64 {
        let part = (value - self.range.0) / (self.range.1 - self.range.0);
        self.bottom - part * (self.bottom - self.top)
    }
}

/// Rounds to tenths.
pub(super) fn tenths(value: f64) -> i64 {
    (value * 10.0 + 0.5).floor() as i64
}

/// Formats tenths as in SVG: `12`, `.5`, `-3.4`.
pub(super) fn plain(tenths: i64) -> String {
    let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.abs());
    match (size / 10, size % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, part) => format!("{sign}.{part}"),
        (whole, part) => format!("{sign}{whole}.{part}"),
    }
}

/// Returns the points of a line in tenths, one list for each part without a gap. Of the points
/// within one unit of width only the lowest and the highest are kept, so that no peak is lost.
pub(super) fn parts(points: &Points, frame: &Frame) -> Vec<Vec<(i64, i64)>> {
    struct Column {
        x: f64,
        low: (usize, f64),
        high: (usize, f64),
    }
    let mut parts: Vec<Vec<(i64, i64)>> = Vec::new();
    let mut column: Option<Column> = None;
    let flush = |parts: &mut Vec<Vec<(i64, i64)>>, column: &mut Option<Column>| {
        let (Some(done), Some(part)) = (column.take(), parts.last_mut()) else { return };
        let ends = if done.low.0 <= done.high.0 {
            [done.low.1, done.high.1]
        } else {
            [done.high.1, done.low.1]
        };
        let ends = ends.map(|y| (tenths(done.x), tenths(y)));
        part.push(ends[0]);
        if ends[1] != ends[0] {
            part.push(ends[1]);
        }
    };
    let mut open = false;
    for (row, (x, value)) in points.iter().enumerate() {
        let Some(value) = value else {
            flush(&mut parts, &mut column);
            open = false;
            continue;
        };
        if !open {
            parts.push(Vec::new());
            open = true;
        }
        let (x, y) = (frame.x(*x), frame.y(*value));
        match &mut column {
            Some(own) if (own.x + 0.5).floor() == (x + 0.5).floor() => {
                if y < own.low.1 {
                    own.low = (row, y);
                }
                if y > own.high.1 {
                    own.high = (row, y);
                }
            }
            _ => {
                flush(&mut parts, &mut column);
                column = Some(Column { x, low: (row, y), high: (row, y) });
            }
        }
    }
    flush(&mut parts, &mut column);
    parts
}

/// Writes part of a line as steps from its first point.
fn steps(path: &mut String, part: &[(i64, i64)], command: char) {
    let Some(&(mut x, mut y)) = part.first() else { return };
    let between = |value: &str| if value.starts_with('-') { "" } else { " " };
    let first = plain(y);
    let _ = write!(path, "{command}{}{}{first}", plain(x), between(&first));
    for (number, &(next_x, next_y)) in part[1..].iter().enumerate() {
        let (dx, dy) = (plain(next_x - x), plain(next_y - y));
        let before = if number == 0 { "l" } else { between(&dx) };
        let _ = write!(path, "{before}{dx}{}{dy}", between(&dy));
        (x, y) = (next_x, next_y);
    }
}

/// Returns the path of a line.
pub(super) fn line(points: &Points, frame: &Frame) -> String {
    let mut path = String::new();
    for part in parts(points, frame) {
        steps(&mut path, &part, 'M');
        if part.len() == 1 {
            // A single point is made visible by the line's round cap.
            path.push_str("h0");
        }
    }
    path
}

/// Returns the path of the area between a line and the bottom of the frame.
pub(super) fn area(points: &Points, frame: &Frame) -> String {
    let mut path = String::new();
    for part in parts(points, frame) {
        steps(&mut path, &part, 'M');
        let foot = plain(tenths(frame.bottom));
        let _ = write!(path, "V{foot}H{}z", plain(part[0].0));
    }
    path
}

/// Returns the path of the area between two lines.
pub(super) fn band(low: &Points, high: &Points, frame: &Frame) -> String {
    let mut path = String::new();
    let lower = parts(low, frame);
    for (number, upper) in parts(high, frame).iter().enumerate() {
        let Some(lower) = lower.get(number) else { break };
        steps(&mut path, upper, 'M');
        let back: Vec<(i64, i64)> = lower.iter().rev().copied().collect();
        steps(&mut path, &back, 'L');
        path.push('z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(right: f64) -> Frame {
        Frame { left: 0.0, top: 0.0, right, bottom: 10.0, view: [0.0, right], range: (0.0, 10.0) }
    }

    #[test]
    fn a_gap_parts_a_line() {
        let points = vec![(0.0, Some(1.0)), (10.0, None), (20.0, Some(2.0)), (30.0, Some(3.0))];
        assert_eq!(line(&points, &frame(30.0)), "M0 9h0M20 8l10-1");
        assert_eq!(area(&points[2..].to_vec(), &frame(30.0)), "M20 8l10-1V10H20z");
    }

    #[test]
    fn a_band_goes_there_and_back() {
        let edge = |y: f64| vec![(0.0, Some(y)), (5.0, Some(y))];
        assert_eq!(band(&edge(2.0), &edge(6.0), &frame(5.0)), "M0 4l5 0L5 8l-5 0z");
    }

    /// 100,000 rows in a frame of 500 units become two points per unit, and the single peak is
    /// kept.
    #[test]
    fn no_peak_is_lost() {
        let value = |row: usize| if row == 77_777 { 9.0 } else { 1.0 };
        let points = (0..100_000).map(|row| (row as f64, Some(value(row)))).collect();
        let wide = Frame { view: [0.0, 100_000.0], ..frame(500.0) };
        let parts = parts(&points, &wide);
        assert_eq!(parts.len(), 1);
        assert!(parts[0].len() <= 2 * 502, "{} points", parts[0].len());
        assert_eq!(parts[0].iter().map(|(_, y)| y).min(), Some(&10));
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        assert_eq!([0, 5, -5, 10, -123].map(plain), ["0", ".5", "-.5", "1", "-12.3"]);
    }
}
