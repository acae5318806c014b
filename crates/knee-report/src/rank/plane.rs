//! The delay-throughput plane of a ranking, over all scenarios or in one of them.

use crate::drawing::{Drawing, WIDTH};
use crate::scatter::{Mark, Words, scatter};
use knee_present::words::{percent, rate, time_us};
use knee_record::{RankEntry, RankSummary};

/// Size on a page, and on a narrow screen.
pub(super) const WIDE: [f64; 2] = [WIDTH, 440.0];
pub(super) const NARROW: [f64; 2] = [400.0, 360.0];

/// Returns the caption of the plane over all scenarios.
pub(super) fn caption(summary: &RankSummary) -> &'static str {
    match summary.ranking.repeats {
        1 => {
            "Each controller alone: best is up and to the left. Dotted: the Pareto front; dashed: a \
             full path with empty queues. One run \
             each has no ellipses: use --repeat."
        }
        _ => {
            "Each controller alone: best is up and to the left. Dot: mean; ellipse: one standard \
             deviation over the seeds. Dotted: the Pareto front; dashed: a full path with empty \
             queues."
        }
    }
}

/// Draws the plane over all scenarios: the fraction of the path that is used, over the mean RTT
/// relative to the empty path.
pub(super) fn overall(summary: &RankSummary, size: [f64; 2]) -> Option<Drawing> {
    let points = |entry: &RankEntry| {
        entry.overall.iter().map(|[used, delay]| (*delay, *used * 100.0)).collect()
    };
    let narrow = size[0] < WIDTH;
    let words = Words {
        label: "share of the path used over mean RTT, each controller alone".to_string(),
        x: match narrow {
            true => "mean RTT, times the empty RTT".to_string(),
            false => "mean RTT over the RTT of the empty path".to_string(),
        },
        y: "share of the path that is used (%)".to_string(),
        title: &|name, (x, y)| {
            format!("{name}: {} at {x:.2} times the empty RTT", percent(Some(y / 100.0)))
        },
    };
    scatter(size, &marks(summary, points), Some((1.0, 100.0)), &words)
}

/// Draws the plane of one scenario: goodput over RTT.
pub(super) fn of_scenario(summary: &RankSummary, at: usize, size: [f64; 2]) -> Option<Drawing> {
    let points = |entry: &RankEntry| {
        entry.places[at].points.iter().map(|[bps, s]| (*s * 1e3, *bps / 1e6)).collect()
    };
    let first = summary.entries.iter().map(|entry| &entry.places[at]);
    let capacity = first.clone().find_map(|place| place.capacity_bps)?;
    let base_rtt = first.clone().find_map(|place| place.base_rtt_s)?;
    let scenario = &summary.ranking.scenarios[at].name;
    let words = Words {
        label: format!("goodput over mean RTT, each controller alone: {scenario}"),
        x: "mean RTT (ms)".to_string(),
        y: "goodput (Mbit/s)".to_string(),
        title: &|name, (x, y)| {
            format!("{name}: {} at {}", rate(Some(y * 1e6)), time_us(Some(x * 1e3)))
        },
    };
    let knee = Some((base_rtt * 1e3, capacity / 1e6));
    scatter(size, &marks(summary, points), knee, &words)
}

fn marks(summary: &RankSummary, points: impl Fn(&RankEntry) -> Vec<(f64, f64)>) -> Vec<Mark<'_>> {
    let all = summary.entries.iter().enumerate();
    let all = all.map(|(place, entry)| Mark {
        place,
        name: &entry.candidate,
        strong: entry.on_front,
        points: points(entry),
    });
    all.filter(|mark| !mark.points.is_empty()).collect()
}
