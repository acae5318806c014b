//! The model of alternate probing as a picture: the paths of two flows in the plane of their shares,
//! and the estimates of all flows, round by round.

use crate::drawing::{Axis, Drawing};

/// Height of the picture, in the units of [`Drawing`].
const HEIGHT: f64 = 430.0;
/// Left, top, right and bottom of the plane, and of the frame of the rounds.
const PLANE: [f64; 4] = [52.0, 74.0, 352.0, 374.0];
const ROUNDS: [f64; 4] = [440.0, 74.0, 750.0, 374.0];
/// Flows whose estimates are drawn: as many as there are colours.
const FLOWS_SHOWN: usize = 8;

/// What the picture shows.
#[derive(Clone, Debug)]
pub struct ProbingPicture {
    /// Pacing gain while probing.
    pub gain: f64,
    /// Share of the prober at the fixed point, which all estimates have there.
    pub fixed_point: f64,
    /// The paths drawn.
    pub paths: Vec<Probed>,
    /// Number of starts in all, of which these are the first.
    pub starts: usize,
}

/// The path from one start. Shares and estimates are multiples of the link.
#[derive(Clone, Debug)]
pub struct Probed {
    /// Initial estimates of the flows.
    pub start: Vec<f64>,
    /// After each probe: the shares of the flows during it.
    pub shares: Vec<Vec<f64>>,
    /// After each probe: the estimates of the flows.
    pub estimates: Vec<Vec<f64>>,
}

/// Returns the picture as an SVG file, `pixels` wide.
pub fn probing_svg(picture: &ProbingPicture, pixels: f64) -> String {
    let mut drawing =
        Drawing::new(HEIGHT, "shares and bandwidth estimates of flows that probe in turn");
    let flows = picture.paths.first().map_or(0, |path| path.start.len());
    let shown = picture.paths.len();
    let of = if shown < picture.starts {
        format!(": {shown} of {} starts", picture.starts)
    } else {
        String::new()
    };
    let title = format!("{flows} flows probe in turn with a gain of {}{of}", picture.gain);
    drawing.words("title", "start", (4.0, 18.0), title);
    plane(&mut drawing, picture);
    rounds(&mut drawing, picture);
    drawing.file(pixels)
}

/// Draws what two flows get, and what they estimate, against each other.
fn plane(drawing: &mut Drawing, picture: &ProbingPicture) {
    let [left, top, right, bottom] = PLANE;
    let numbers = picture.paths.iter().flat_map(|path| {
        let starts = std::iter::once(&path.start);
        starts.chain(&path.estimates).flat_map(|all| all.iter().take(2))
    });
    let end = numbers.copied().fold(1.0, f64::max);
    let (x, y) = (Axis::between((0.0, end), left, right), Axis::between((0.0, end), bottom, top));
    drawing.levels(&y, left, right, "second flow, part of the link");
    drawing.axis(&x, top, bottom, "first flow, part of the link");
    let at = |pair: &[f64]| (x.at(pair[0]), y.at(pair[1]));
    drawing.line("edge", &[at(&[0.0, 1.0]), at(&[1.0, 0.0])]);
    let paths = || picture.paths.iter().filter(|path| path.start.len() > 1);
    for path in paths() {
        for (class, pairs) in [("k0", &path.shares), ("k1", &path.estimates)] {
            for (number, pair) in pairs.iter().enumerate() {
                let (across, up) = at(pair);
                let title = format!("probe {}: {:.4}, {:.4}", number + 1, pair[0], pair[1]);
                drawing.dot(class, across, up, title);
            }
        }
    }
    // Above the paths from other starts, which may lead over them.
    for path in paths() {
        let (across, up) = at(&path.start);
        let title = format!("start: {:.4}, {:.4}", path.start[0], path.start[1]);
        drawing.dot("k2", across, up, title);
    }
    for (number, words) in
        ["share during a probe", "estimate after it", "start"].into_iter().enumerate()
    {
        let across = left + [0.0, 142.0, 256.0][number];
        drawing.dot(format!("k{number}"), across + 4.0, 46.0, String::new());
        drawing.words("quiet", "start", (across + 12.0, 50.0), words);
    }
}

/// Draws the estimates of the flows from the first start, round by round.
fn rounds(drawing: &mut Drawing, picture: &ProbingPicture) {
    let Some(path) = picture.paths.first() else { return };
    let [left, top, right, bottom] = ROUNDS;
    let flows = path.start.len().max(1);
    let ends: Vec<&Vec<f64>> = std::iter::once(&path.start)
        .chain(path.estimates.chunks(flows).filter_map(<[_]>::last))
        .collect();
    let largest = ends.iter().flat_map(|round| round.iter()).copied().fold(0.0, f64::max);
    let x = Axis::from_zero(ends.len().saturating_sub(1).max(1) as f64, left, right);
    let y = Axis::from_zero(1.08 * largest.max(picture.fixed_point), bottom, top);
    drawing.levels_at(
        &y,
        [left, right],
        left - 36.0,
        "estimate from the first start, part of the link",
    );
    drawing.axis(&x, top, bottom, "round");
    let level = y.at(picture.fixed_point);
    drawing.line("edge", &[(left, level), (right, level)]);
    for flow in 0..flows.min(FLOWS_SHOWN) {
        let place = |(round, all): (usize, &&Vec<f64>)| (x.at(round as f64), y.at(all[flow]));
        let points: Vec<(f64, f64)> = ends.iter().enumerate().map(place).collect();
        drawing.line(format!("c{flow}"), &points);
    }
    let of =
        if flows > FLOWS_SHOWN { format!("{FLOWS_SHOWN} of {flows}: ") } else { String::new() };
    let together = picture.fixed_point * flows as f64;
    let words = format!("{of}each ends at {:.4}, together {together:.4}", picture.fixed_point);
    drawing.words("quiet", "start", (left - 36.0, 50.0), words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(path: Probed) -> ProbingPicture {
        ProbingPicture { gain: 1.25, fixed_point: 0.5556, paths: vec![path], starts: 40 }
    }

    /// A share of a half is in the middle of the plane; the fixed point is a level over the rounds.
    #[test]
    fn shares_stand_where_they_are() {
        let path = Probed {
            start: vec![0.9, 0.1],
            shares: vec![vec![0.5, 0.5], vec![0.4, 0.6]],
            estimates: vec![vec![0.9, 0.5], vec![0.5, 0.6]],
        };
        let svg = probing_svg(&picture(path), 720.0);
        let [left, top, right, bottom] = PLANE;
        let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
        let place = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_string();
        let dot = format!("cx=\"{}\" cy=\"{}\"", place(middle.0), place(middle.1));
        assert!(svg.contains(&dot), "{dot} is not in {svg}");
        assert_eq!(svg.matches("<circle class=\"k0\"").count(), 3, "two probes and the legend");
        assert_eq!(svg.matches("<circle class=\"k2\"").count(), 2, "a start and the legend");
        assert_eq!(svg.matches("<polyline class=\"c").count(), 2, "a line for each flow");
        let level = bottom - (bottom - top) * 0.5556 / (1.08 * 0.9);
        assert!(
            svg.contains(&format!("{},{}", place(ROUNDS[0]), place(level))),
            "{level:.1}: {svg}"
        );
        assert!(svg.contains("1 of 40"), "{svg}");
    }
}
