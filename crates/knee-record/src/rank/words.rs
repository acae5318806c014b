//! The result of a ranking in sentences.

use super::summary::{RankEntry, RankSummary, RankWord};
use crate::{Interval, Unit};

/// Describes the result: which candidate has the most power, how certain that is, which others
/// deserve a look, and how the first gets on with the rivals.
pub(super) fn says(summary: &RankSummary) -> String {
    let measured: Vec<&RankEntry> =
        summary.entries.iter().filter(|entry| entry.power.is_some()).collect();
    let Some(first) = measured.first() else {
        return "No candidate has finished all scenarios yet.".to_string();
    };
    let mut sentences = vec![lead(summary, first)];
    sentences.extend(how_sure(summary, &measured));
    sentences.extend(front(&measured));
    sentences.extend(beside(summary, first));
    sentences.join(" ")
}

fn lead(summary: &RankSummary, first: &RankEntry) -> String {
    let power = first.power.as_ref().map_or_else(String::new, with_interval);
    let place = first.used.zip(first.stretch).map_or_else(String::new, |(used, stretch)| {
        let (used, stretch) = (Unit::Fraction.show(used.mean), plain(stretch.mean));
        format!(": {used} of the path at {stretch} times its empty RTT (95th percentile)")
    });
    let name = &first.candidate;
    let scenarios = plural(summary.ranking.scenarios.len(), "scenario");
    match first.word {
        RankWord::Best => {
            format!("{name} is best: the most power over {scenarios}, {power} of 1{place}.")
        }
        _ => format!("{name} has the most power over {scenarios}, {power} of 1{place}."),
    }
}

fn how_sure(summary: &RankSummary, measured: &[&RankEntry]) -> Option<String> {
    let named = |word: RankWord| {
        let of = measured.iter().skip(1).filter(|entry| entry.word == word);
        of.map(|entry| entry.candidate.as_str()).collect::<Vec<_>>()
    };
    let same = named(RankWord::NoDifference);
    let others = measured.len().saturating_sub(1);
    if others == 0 {
        return None;
    }
    if !named(RankWord::Unknown).is_empty() {
        return Some(
            "One run of each does not show whether this is significant; use --repeat 10."
                .to_string(),
        );
    }
    let seeds = match summary.seeds_matter {
        true => format!("{} seeds", summary.ranking.repeats),
        false => "runs in which nothing is random".to_string(),
    };
    Some(match (same.len(), others - same.len()) {
        (0, _) => format!("It is significantly ahead of every other one ({seeds})."),
        (_, 0) => format!("No significant difference from {} ({seeds}).", list(&same)),
        (_, worse) => {
            format!(
                "No significant difference from {}; ahead of the other {worse} ({seeds}).",
                list(&same)
            )
        }
    })
}

fn front(measured: &[&RankEntry]) -> Option<String> {
    let on: Vec<&str> = measured.iter().filter(|e| e.on_front).map(|e| &*e.candidate).collect();
    (measured.len() > 2).then(|| match on.as_slice() {
        [only] => format!("Only {only} is on the Pareto front of rate and delay."),
        on => format!("On the Pareto front of rate and delay: {}.", list(on)),
    })
}

fn beside(summary: &RankSummary, first: &RankEntry) -> Option<String> {
    let rivals = summary.ranking.rivals.iter().zip(&first.takes);
    let takes: Vec<String> = rivals
        .filter(|(rival, _)| **rival != first.candidate)
        .filter_map(|(rival, takes)| {
            Some(format!("{} beside {rival}", Unit::Fraction.show(takes.as_ref()?.mean)))
        })
        .collect();
    let takes: Vec<&str> = takes.iter().map(String::as_str).collect();
    (!takes.is_empty()).then(|| format!("It takes {} (a half is fair).", list(&takes)))
}

fn with_interval(power: &Interval) -> String {
    let mean = plain(power.mean);
    match power.low.zip(power.high).map(|(low, high)| (plain(low), plain(high))) {
        Some((low, high)) if low != high => format!("{mean} (95 %: {low} to {high})"),
        _ => mean,
    }
}

fn plain(value: f64) -> String {
    format!("{value:.2}")
}

fn plural(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

/// Joins names: `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
