//! Results of several runs that differ only in their seeds.

use crate::figures::{GROUPS_FIRST, ROWS_MAX};
use crate::screen;
use knee_lab::directory::REPEAT;
use knee_lab::words::{figure, is_headline, named, titled};
use knee_present::words::NONE;
use knee_present::{Cell, Document, Head, Table, number, text};
use knee_record::{Interval, RepeatSummary, lockstep_in_words};
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
    let (shown, left_out) = headlines(repeats);
    let partial = shown.iter().any(|(_, interval)| repeats.partial(interval).is_some());
    let figures = ["mean", "95 % interval of it", "median", "min", "max"].into_iter();
    // Only if some of the runs have no value.
    let figures = figures.chain(partial.then_some("in runs")).map(number);
    let heads: Vec<Head> = std::iter::once(text("measure")).chain(figures).collect();
    let [mut table, mut data] = [0, 1].map(|_| Table::new(heads.clone()).called("measures"));
    for (name, interval) in shown {
        let runs = repeats.partial(interval).unwrap_or_else(|| "all".to_string());
        let row = |named: String| {
            row(name, named, interval).into_iter().chain(partial.then(|| Cell::from(runs.as_str())))
        };
        // Sizes are for the page and the answer.
        if !is_of_class(name) {
            table.row(row(titled(name)));
        }
        data.row(row(name.to_string()));
    }
    let table = table.with_data(data);
    let mut document = Document::default().words(title + "\n");
    if let Some(words) = repeats.left_out_words() {
        document = document.said(words).words("\n");
    }
    match &repeats.lockstep {
        Some(link) => {
            let words = format!("The result may be one of several: {}.\n", lockstep_in_words(link));
            document = document.words(screen::wrapped(&words) + "\n");
        }
        None if !repeats.differ && repeats.used() > 1 => {
            document = document.words(screen::wrapped(same) + "\n");
        }
        None => {}
    }
    document = document.table(table);
    if left_out > 0 {
        document = document.words(format!("… and {left_out} more flows, in {REPEAT}\n"));
    }
    match repeats.claims.is_empty() {
        true => document,
        false => {
            let document = document.words("\n").table(claims(repeats));
            repeats.differing_claims().into_iter().fold(document, Document::said)
        }
    }
}

/// Headline numbers: all flows, groups, flows unless there are many, then links. Of many flows,
/// those alone in their group are listed, as after a single run; also returns how many of these
/// are left out.
fn headlines(repeats: &RepeatSummary) -> (Vec<(&str, &Interval)>, usize) {
    let place = |name: &str| match name.split_once('.') {
        Some(("group", _)) => 1,
        Some(("flow", _)) => 2,
        Some(("link", _)) => 3,
        _ => 0,
    };
    let all = repeats.measures.iter().map(|(name, interval)| (name.as_str(), interval));
    let mut shown: Vec<(&str, &Interval)> = all.filter(|(name, _)| is_headline(name)).collect();
    let flows: BTreeSet<&str> = shown.iter().filter_map(|(name, _)| of("flow.", name)).collect();
    let groups: BTreeSet<&str> = shown.iter().filter_map(|(name, _)| of("group.", name)).collect();
    let many = flows.len() > GROUPS_FIRST && !groups.is_empty();
    let grouped = |flow: &str| flow.split('[').next().is_some_and(|name| groups.contains(name));
    let mut listed: Vec<&str> = flows.into_iter().filter(|flow| !many || !grouped(flow)).collect();
    let most = if many { ROWS_MAX } else { usize::MAX };
    let left_out = listed.len().saturating_sub(most);
    listed.truncate(most);
    shown.retain(|(name, _)| of("flow.", name).is_none_or(|flow| listed.contains(&flow)));
    shown.sort_by_key(|(name, _)| place(name));
    (shown, left_out)
}

/// The flow or group that a number belongs to: `web[1]` of `flow.web[1].goodput_bps`.
fn of<'n>(part: &str, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(part)?.split('.').next()
}

/// Whether a number is about transfers of one class of sizes.
fn is_of_class(name: &str) -> bool {
    name.contains(".transfers.") && !name.contains(".transfers.all.")
}

fn row(name: &str, named_so: String, interval: &Interval) -> [Cell; 6] {
    let show = |value: f64| figure(name, value);
    let ends = interval.low.zip(interval.high).map(|(low, high)| {
        let shown = format!("{} to {}", named(name, low), named(name, high));
        Cell::from(shown).with("low", low).with("high", high)
    });
    [
        named_so.into(),
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

fn claims(repeats: &RepeatSummary) -> Table {
    let mut table = Table::new([
        text("outcome"),
        text("id"),
        text("claim"),
        text("expected"),
        text("measured"),
        number("holds"),
        number("fails"),
        number("uncertain"),
        number("not tested"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::Verdict;
    use std::collections::BTreeMap;

    fn repeats(completions: &[f64]) -> RepeatSummary {
        let interval = |values: &[f64]| Interval::new(values).unwrap();
        let measures = [
            ("goodput_bps", interval(&[9e6, 9.1e6, 9.2e6])),
            ("flow.a[0].completion_us", interval(completions)),
        ];
        RepeatSummary {
            schema: "knee-repeat/1".to_string(),
            name: "A file".to_string(),
            ground: "sim".to_string(),
            seeds: vec![1, 2, 3, 4],
            left_out: vec![3],
            verdict: Verdict::Invalid,
            differ: true,
            lockstep: None,
            stalled: Vec::new(),
            measures: BTreeMap::from(measures.map(|(name, value)| (name.to_string(), value))),
            claims: Vec::new(),
        }
    }

    /// Of many flows, those that are alone in their group are listed beside the groups, up to a
    /// limit; the others are not.
    #[test]
    fn flows_without_a_group_are_listed() {
        let with = |alone: usize| {
            let mut repeats = repeats(&[4e6, 5e6, 6e6]);
            let interval = Interval::new(&[9e6, 9.1e6, 9.2e6]).unwrap();
            let names = ["group.web.goodput_bps".to_string()].into_iter();
            let names = names.chain((0..9).map(|at| format!("flow.web[{at}].goodput_bps")));
            let names = names.chain((1..alone).map(|at| format!("flow.b{at}[0].goodput_bps")));
            repeats.measures.extend(names.map(|name| (name, interval)));
            document(&repeats).text(screen::layout())
        };
        let text = with(2);
        assert!(text.contains("a[0]: completion time"), "{text}");
        assert!(text.contains("b1[0]: goodput"), "{text}");
        assert!(!text.contains("web[") && !text.contains("more flows"), "{text}");
        let text = with(22);
        assert_eq!(text.matches("[0]: ").count(), ROWS_MAX, "{text}");
        assert!(text.contains("… and 2 more flows, in repeat.json\n"), "{text}");
    }

    /// A mean over some of the runs says so.
    #[test]
    fn numbers_that_some_runs_lack_are_marked() {
        let text = document(&repeats(&[4e6, 5e6])).text(screen::layout());
        assert!(text.contains("in runs") && text.contains("2 of 3"), "{text}");
        assert!(
            text.contains("1 run is left out, being invalid or interrupted: seed 3."),
            "{text}"
        );
        let text = document(&repeats(&[4e6, 5e6, 6e6])).text(screen::layout());
        assert!(!text.contains("in runs"), "{text}");
    }
}
