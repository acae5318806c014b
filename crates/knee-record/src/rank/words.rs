//! The result of a ranking in sentences.

use super::summary::{OWN_MAX, RankEntry, RankSummary};
use crate::{Interval, Judgement, PairedScale, Unit, capitalised, listed};

/// Describes the result: how the user's own candidates did, which candidate has the most power, how
/// certain that is, which others deserve a look, and how the first gets on with the rivals.
pub(super) fn says(summary: &RankSummary) -> String {
    let measured: Vec<&RankEntry> =
        summary.entries.iter().filter(|entry| entry.power.is_some()).collect();
    let Some(first) = measured.first() else {
        return "No candidate has finished all scenarios yet.".to_string();
    };
    let own = summary.ranking.own.iter().take(OWN_MAX);
    let mut sentences: Vec<String> =
        own.filter_map(|candidate| of_own(summary, &measured, candidate)).collect();
    sentences.push(lead(summary, first));
    sentences.extend(how_sure(summary, &measured));
    sentences.extend(front(&measured));
    sentences.extend(beside(summary, first));
    sentences.join(" ")
}

/// Describes one of the user's own candidates: its place, how it compares with the first, and in
/// what it is worst. `None` if there is nothing to compare it with.
fn of_own(summary: &RankSummary, measured: &[&RankEntry], candidate: &str) -> Option<String> {
    let place = measured.iter().position(|entry| entry.candidate == candidate)?;
    let (first, entry) = (measured[0], measured[place]);
    if measured.len() < 2 {
        return None;
    }
    let ratio = entry.against_first.filter(|paired| paired.scale == PairedScale::Ratio);
    let less = ratio.and_then(|paired| paired.estimate).map(|ratio| 1.0 - ratio);
    let against = match less {
        Some(less) if place > 0 => {
            format!(", {:.0} % less power than {}: {}", less * 100.0, first.candidate, entry.word)
        }
        _ => String::new(),
    };
    let rank = format!("{candidate} is number {} of {}{against}.", place + 1, measured.len());
    let worst = summary.worst.iter().find(|worst| worst.candidate == candidate);
    let worst = worst.map_or_else(
        || "No figure of it is a tenth worse than the median of the others.".to_string(),
        |worst| worst.words(&summary.ranking) + ".",
    );
    Some(format!("{rank} {worst}"))
}

fn lead(summary: &RankSummary, first: &RankEntry) -> String {
    let power = first.power.as_ref().map_or_else(String::new, with_interval);
    let place = first.used.zip(first.delay).map_or_else(String::new, |(used, delay)| {
        let (used, delay) = (Unit::Fraction.show(used.mean), plain(delay.mean));
        format!(": it uses {used} of the path at a mean RTT of {delay} times the empty path's")
    });
    let (name, scenarios) = (&first.candidate, plural(summary.ranking.scenarios.len(), "scenario"));
    let what = if first.word == Judgement::Better { "is best" } else { "has the most power" };
    format!("{name} {what} over {scenarios}, with a power of {power} (1 is ideal){place}.")
}

/// Says how the first compares with the others.
fn how_sure(summary: &RankSummary, measured: &[&RankEntry]) -> Option<String> {
    let (first, others) = measured.split_first()?;
    let named = |word: Judgement| {
        let of = others.iter().filter(|entry| entry.word == word);
        of.map(|entry| entry.candidate.as_str()).collect::<Vec<_>>()
    };
    if others.is_empty() {
        return None;
    }
    let (alike, open) = (named(Judgement::Alike), named(Judgement::Undecided));
    let pairs = others.iter().filter_map(|entry| Some(entry.against_first?.pairs)).max();
    if !open.is_empty() && pairs.is_none_or(|pairs| pairs < 2) {
        return Some("One run of each decides nothing: use --repeat 10.".to_string());
    }
    let random = measured.iter().any(|entry| entry.random);
    let mut basis = match random {
        true => format!("{} seeds", summary.ranking.repeats),
        false => "nothing random".to_string(),
    };
    if random && !first.random {
        basis += &format!("; nothing random for {}", first.candidate);
    }
    let needed = others.iter().filter_map(|entry| entry.repeats_advised).max();
    let needed = needed.map_or_else(String::new, |needed| {
        format!(
            ", --repeat {needed} would decide {} of this size",
            match open.len() {
                1 => "a difference",
                _ => "differences",
            }
        )
    });
    let mut said = Vec::new();
    if !alike.is_empty() {
        said.push(format!("alike within 1 %: {}", listed(&alike)));
    }
    if !open.is_empty() {
        said.push(format!("undecided against {}{needed}", listed(&open)));
    }
    let beaten = named(Judgement::Worse).len();
    match beaten {
        0 => {}
        all if all == others.len() => said.push("better than every other one".to_string()),
        some => said.push(format!("better than the other {some}")),
    }
    Some(format!("{} ({basis}).", capitalised(&said.join("; "))))
}

fn front(measured: &[&RankEntry]) -> Option<String> {
    let on: Vec<&str> = measured.iter().filter(|e| e.on_front).map(|e| &*e.candidate).collect();
    (measured.len() > 2).then(|| match on.as_slice() {
        [only] => format!("Only {only} is on the Pareto front of use and mean RTT."),
        on => format!("On the Pareto front of use and mean RTT: {}.", listed(on)),
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
    let name = &first.candidate;
    (!takes.is_empty()).then(|| format!("{name} gets {} (half is fair).", listed(&takes)))
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
