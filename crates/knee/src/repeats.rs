//! Results of several runs that differ only in their seeds.

use crate::cell::Cell;
use crate::document::Document;
use crate::figures::GROUPS_FIRST;
use crate::screen;
use crate::table::Table;
use knee_lab::words::{NONE, is_headline, named};
use knee_record::{Interval, RepeatSummary};
use std::collections::BTreeSet;

/// Title, numbers with their intervals, and claims.
pub fn document(repeats: &RepeatSummary) -> Document {
    let seeds = match (repeats.seeds.first(), repeats.seeds.last()) {
        (Some(first), Some(last)) if first == last => format!("seed {first}"),
        (Some(first), Some(last)) => format!("seeds {first} to {last}"),
        _ => String::new(),
    };
    let title =
        format!("{} · {} · {}, {seeds}\n", repeats.name, repeats.ground, runs(repeats.seeds.len()));
    let same = "All runs gave the same results: nothing random affects them, so there is no \
                interval. One run is enough.\n";
    let heads = ["measure", ">mean", ">95 % interval of it", ">median", ">min", ">max"];
    let mut table = Table::new(&heads).called("measures");
    headlines(repeats).into_iter().for_each(|(name, interval)| table.row(row(name, interval)));
    let mut document = Document::default().words(title + "\n");
    if !repeats.differ && repeats.seeds.len() > 1 {
        document = document.words(screen::wrapped(same) + "\n");
    }
    document = document.table(table);
    match repeats.claims.is_empty() {
        true => document,
        false => document.words("\n").table(claims(repeats)),
    }
}

/// Headline numbers: all flows, groups, flows unless there are many, then links.
fn headlines(repeats: &RepeatSummary) -> Vec<(&str, &Interval)> {
    let place = |name: &str| match name.split_once('.') {
        Some(("group", _)) => 1,
        Some(("flow", _)) => 2,
        Some(("link", _)) => 3,
        _ => 0,
    };
    let all = repeats.measures.iter().map(|(name, interval)| (name.as_str(), interval));
    let mut shown: Vec<(&str, &Interval)> = all.filter(|(name, _)| is_headline(name)).collect();
    let flows = shown.iter().filter(|(name, _)| place(name) == 2);
    let flows: BTreeSet<&str> = flows.filter_map(|(name, _)| name.split('.').nth(1)).collect();
    let many = flows.len() > GROUPS_FIRST && shown.iter().any(|(name, _)| place(name) == 1);
    shown.retain(|(name, _)| !many || place(name) != 2);
    shown.sort_by_key(|(name, _)| place(name));
    shown
}

fn row(name: &str, interval: &Interval) -> [Cell; 6] {
    let show = |value: f64| Cell::named(name, value);
    let ends = interval.low.zip(interval.high).map(|(low, high)| {
        let shown = format!("{} to {}", named(name, low), named(name, high));
        Cell::from(shown).with("low", low).with("high", high)
    });
    [
        name.into(),
        show(interval.mean),
        ends.unwrap_or_else(|| NONE.into()),
        show(interval.median),
        show(interval.min),
        show(interval.max),
    ]
}

fn runs(count: usize) -> String {
    format!("{count} run{}", if count == 1 { "" } else { "s" })
}

/// Relative width below which an interval is rounding error.
const ROUNDING: f64 = 1e-9;

/// Formats a mean with its 95 % confidence interval.
pub fn with_interval(show: impl Fn(f64) -> String, interval: &Interval) -> String {
    let mean = show(interval.mean);
    let ends = interval.low.zip(interval.high);
    // The mean of equal runs differs from them by rounding.
    let ends = ends.filter(|(low, high)| high - low > interval.mean.abs() * ROUNDING);
    match ends {
        Some((low, high)) => format!("{mean} ({} to {})", show(low), show(high)),
        None => mean,
    }
}

fn claims(repeats: &RepeatSummary) -> Table {
    let mut table = Table::new(&[
        "outcome",
        "id",
        "claim",
        "expected",
        "measured",
        ">holds",
        ">fails",
        ">uncertain",
        ">not tested",
    ])
    .called("claims");
    for claim in &repeats.claims {
        let counts = [claim.holds, claim.fails, claim.uncertain, claim.not_tested];
        let measured = claim.measured.as_ref();
        let measured = measured.map(|interval| Cell::interval(claim.unit, interval));
        let outcome = claim.outcome.to_string();
        let words = [&outcome, &claim.id, &claim.says, &claim.expected].map(Cell::from);
        let measured = measured.unwrap_or_else(|| NONE.into());
        let counts = counts.map(|count| Cell::count(count as u64));
        table.row(words.into_iter().chain([measured]).chain(counts));
    }
    table
}
