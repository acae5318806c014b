//! The table of a ranking, shared by the terminal and the page.

use crate::scatter::colour;
use knee_present::words::NONE;
use knee_present::{Cell, Head, Table, number, text};
use knee_record::{Interval, PairedScale, RankEntry, RankSummary};

/// Returns one row per candidate, the one with the most power first; for programs every mean and
/// interval in full.
pub fn rank_table(summary: &RankSummary) -> Table {
    let takes = summary.ranking.rivals.iter().map(|rival| number(format!("share beside {rival}")));
    let figures =
        ["power", "over the first", "used", "mean RTT", "RTT p95", "retransmitted", "Jain"]
            .map(number);
    let heads = [text("controller"), text("outcome")].into_iter().chain(figures).chain(takes);
    let rows = summary.entries.iter().map(|entry| {
        let mut row = vec![
            named(entry),
            entry.word.to_string(),
            mean(&entry.power, plain),
            against(entry),
            mean(&entry.used, part),
            mean(&entry.delay, |times| format!("× {times:.2}")),
            mean(&entry.stretch, |times| format!("× {times:.2}")),
            mean(&entry.retransmit_ratio, part),
            mean(&entry.jain, plain),
        ];
        row.extend(entry.takes.iter().map(|takes| mean(takes, part)));
        row
    });
    Table::new(heads)
        .called("controllers")
        .titled("All figures")
        .noted(NOTE)
        .with_rows(rows)
        .with_data(rank_data(summary))
}

const NOTE: &str = "Outcome: power against the first; of the first, against all others. Each controller \
                    alone: power, which is the share of the path that is used over the mean RTT; \
                    its ratio to the first, in pairs of the same seed, with its interval; mean and \
                    95th percentile of the RTT over the empty path's; bytes retransmitted. Beside \
                    itself: Jain's index. Beside a rival: its share; 50 % is fair. * on the Pareto \
                    front of use and mean RTT.";

fn named(entry: &RankEntry) -> String {
    entry.candidate.clone() + if entry.on_front { " *" } else { "" }
}

/// Returns a row per candidate for programs: every mean and interval in full, in the units with
/// which the names of the columns end; empty if there is no value.
pub fn rank_data(summary: &RankSummary) -> Table {
    let spread = |name: &str| ["", "_low", "_high"].map(|end| format!("{name}{end}"));
    let mut heads = vec!["controller".to_string(), "outcome".to_string(), "on_front".to_string()];
    let names = ["power", "power_over_first", "used", "rtt_mean_over_empty"];
    let names = names.into_iter().chain(["rtt_p95_over_empty", "retransmit_ratio", "jain"]);
    heads.extend(names.flat_map(spread));
    heads.extend(
        summary.ranking.rivals.iter().flat_map(|rival| spread(&format!("share_beside_{rival}"))),
    );
    let three = |of: &Option<Interval>| {
        let low = of.and_then(|of| of.low);
        [of.map(|of| of.mean), low, of.and_then(|of| of.high)].map(Cell::plain)
    };
    let row = |entry: &RankEntry| {
        let ratio = entry.against_first.filter(|paired| paired.scale == PairedScale::Ratio);
        let ratio = ratio.map_or([None; 3], |paired| [paired.estimate, paired.low, paired.high]);
        let mut row: Vec<Cell> = vec![
            (&entry.candidate).into(),
            entry.word.to_string().into(),
            entry.on_front.to_string().into(),
        ];
        row.extend(three(&entry.power).into_iter().chain(ratio.map(Cell::plain)));
        let RankEntry { used, delay, stretch, retransmit_ratio, jain, .. } = entry;
        row.extend([used, delay, stretch, retransmit_ratio, jain].into_iter().flat_map(three));
        row.extend(entry.takes.iter().flat_map(three));
        row
    };
    let heads = heads.into_iter().map(Head::column);
    Table::new(heads).with_rows(summary.entries.iter().map(row))
}

/// Returns colour, name, power and result of each candidate, for the list beside the plane.
pub(super) fn brief(summary: &RankSummary) -> Vec<[String; 4]> {
    let row = |(place, entry): (usize, &RankEntry)| {
        [colour(place), named(entry), shown(&entry.power, plain), entry.word.to_string()]
    };
    summary.entries.iter().enumerate().map(row).collect()
}

/// Formats per cent with one decimal.
fn part(value: f64) -> String {
    format!("{:.1} %", value * 100.0)
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn mean(interval: &Option<Interval>, show: impl Fn(f64) -> String) -> String {
    interval.as_ref().map_or_else(|| NONE.to_string(), |interval| show(interval.mean))
}

/// Formats a mean with its interval, unless that has no width.
fn shown(interval: &Option<Interval>, show: impl Fn(f64) -> String) -> String {
    let Some(interval) = interval else { return NONE.to_string() };
    let mean = show(interval.mean);
    match interval.low.zip(interval.high).map(|(low, high)| (show(low), show(high))) {
        Some((low, high)) if low != high => format!("{mean} ({low} to {high})"),
        _ => mean,
    }
}

fn against(entry: &RankEntry) -> String {
    let Some(paired) = &entry.against_first else { return NONE.to_string() };
    let ratio = paired.estimate.filter(|_| paired.scale == PairedScale::Ratio);
    let Some(ratio) = ratio else { return NONE.to_string() };
    match paired.low.zip(paired.high).filter(|(low, high)| high - low > 1e-9) {
        Some((low, high)) => format!("{ratio:.2} ({low:.2} to {high:.2})"),
        None => format!("{ratio:.2}"),
    }
}
