//! What came out of several runs that differ in their seed alone.

use crate::figures::{is_headline, named};
use crate::table::Table;
use knee_lab::words::NONE;
use knee_record::{Interval, RepeatSummary};

/// Title, numbers with their intervals, claims.
pub fn text(repeats: &RepeatSummary) -> String {
    let seeds = match (repeats.seeds.first(), repeats.seeds.last()) {
        (Some(first), Some(last)) => format!("seeds {first} to {last}"),
        _ => String::new(),
    };
    let title =
        format!("{} · {} · {} runs, {seeds}\n", repeats.name, repeats.ground, repeats.seeds.len());
    let same = "All runs came out the same: nothing that the seed draws matters here, so there is \
                no interval. One run says as much.\n";
    let mut table =
        Table::new(&["measure", ">mean", ">95 % interval of it", ">median", ">min", ">max"]);
    let headlines = repeats.measures.iter().filter(|(name, _)| is_headline(name));
    headlines.for_each(|(name, interval)| table.row(row(name, interval)));
    let mut parts = vec![title];
    parts.extend((!repeats.differ).then(|| same.to_string()));
    parts.push(table.text());
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

/// A relative difference below this is none.
const ROUNDING: f64 = 1e-9;

/// Mean with its 95 % confidence interval.
pub fn with_interval(show: impl Fn(f64) -> String, interval: &Interval) -> String {
    let mean = show(interval.mean);
    let ends = interval.low.zip(interval.high);
    // Equal runs differ from their mean by its rounding.
    let ends = ends.filter(|(low, high)| high - low > interval.mean.abs() * ROUNDING);
    match ends {
        Some((low, high)) => format!("{mean} ({} to {})", show(low), show(high)),
        None => mean,
    }
}

fn claims(repeats: &RepeatSummary) -> String {
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
    ]);
    for claim in &repeats.claims {
        let counts = [claim.holds, claim.fails, claim.uncertain, claim.not_tested];
        let measured = claim.measured.as_ref().map_or(NONE.to_string(), |interval| {
            with_interval(|value| claim.unit.show(value), interval)
        });
        let words = [
            claim.outcome.to_string(),
            claim.id.clone(),
            claim.says.clone(),
            claim.expected.clone(),
            measured,
        ];
        table.row(words.into_iter().chain(counts.map(|count| count.to_string())));
    }
    table.text()
}
