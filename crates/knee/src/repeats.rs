//! What came out of several runs that differ in their seed alone.

use crate::figures::{NONE, is_headline, named};
use crate::table::Table;
use knee_record::{Interval, RepeatSummary};

/// Title, numbers with their intervals, claims.
pub fn text(repeats: &RepeatSummary) -> String {
    let seeds = match (repeats.seeds.first(), repeats.seeds.last()) {
        (Some(first), Some(last)) => format!("seeds {first} to {last}"),
        _ => String::new(),
    };
    let title =
        format!("{} · {} · {} runs, {seeds}\n", repeats.name, repeats.ground, repeats.seeds.len());
    let mut table =
        Table::new(&["measure", ">mean", ">95 % interval of it", ">median", ">min", ">max"]);
    let headlines = repeats.measures.iter().filter(|(name, _)| is_headline(name));
    headlines.for_each(|(name, interval)| table.row(row(name, interval)));
    let mut parts = vec![title, table.text()];
    if !repeats.claims.is_empty() {
        parts.push(claims(repeats));
    }
    parts.join("\n")
}

fn row(name: &str, interval: &Interval) -> [String; 6] {
    let show = |value: f64| named(name, value);
    let ends = interval.low.zip(interval.high);
    [
        name.to_string(),
        show(interval.mean),
        ends.map_or(NONE.into(), |(low, high)| format!("{} to {}", show(low), show(high))),
        show(interval.median),
        show(interval.min),
        show(interval.max),
    ]
}

fn claims(repeats: &RepeatSummary) -> String {
    let mut table = Table::new(&["id", "claim", ">holds", ">fails", ">not tested"]);
    for claim in &repeats.claims {
        let counts = [claim.holds, claim.fails, claim.not_tested].map(|count| count.to_string());
        table.row([claim.id.clone(), claim.says.clone()].into_iter().chain(counts));
    }
    table.text()
}
