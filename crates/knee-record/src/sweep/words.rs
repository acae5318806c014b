//! What a sweep's verdicts say, in words.

use super::{SweepKey, SweepMeasure, SweepPlace, SweepVerdict};
use crate::Unit;
use knee_statistics::{Paired, PairedScale};

/// What a measure says about the values of a key.
pub(super) fn sentence(verdict: &SweepVerdict, key: &SweepKey, measure: &SweepMeasure) -> String {
    let mut title = measure.title.clone();
    if let Some(first) = title.get(..1).map(str::to_uppercase) {
        title.replace_range(..1, &first);
    }
    let said = match verdict.places.as_slice() {
        [place] => of_one_place(place, key, measure),
        places => of_places(places, key),
    };
    format!("{title}: {said}{}.", advice(verdict))
}

fn of_one_place(place: &SweepPlace, key: &SweepKey, measure: &SweepMeasure) -> String {
    let name = |value: usize| key.values[value].as_str();
    if let Some(best) = place.best {
        let mut others = place.pairs.iter().filter_map(|pair| match best {
            _ if pair.value == best => Some(pair.against),
            _ if pair.against == best => Some(pair.value),
            _ => None,
        });
        let only = others.next().filter(|_| others.next().is_none());
        let by = only.and_then(|other| Some((other, place.pair(best, other)?)));
        let by = by.map(|(other, pair)| format!(", {}", against(&pair, name(other), measure)));
        return format!("best with {} = {}{}", key.name, name(best), by.unwrap_or_default());
    }
    let leading: Vec<&str> = place.leading.iter().map(|value| name(*value)).collect();
    let mut pairs = place.pairs.iter();
    let known = pairs.clone().any(|pair| pair.compared.p_value.is_some());
    if pairs.all(|pair| pair.compared.is_same()) {
        return format!("the same with {} = {}", key.name, list(&leading));
    }
    if !known {
        return format!("one run with each {} cannot tell a difference from chance", key.name);
    }
    let all = place.leading.len() == key.values.len();
    let behind = if all { "" } else { ", which are ahead of the rest" };
    let by = match (all, place.pairs.as_slice()) {
        (true, [pair]) => {
            format!(" ({})", against(&pair.compared, name(pair.against), measure))
        }
        _ => String::new(),
    };
    format!("no difference between {} = {}{by}{behind}", key.name, list(&leading))
}

fn of_places(places: &[SweepPlace], key: &SweepKey) -> String {
    if places.iter().flat_map(|place| &place.pairs).all(|pair| pair.compared.p_value.is_none()) {
        return format!("one run with each {} cannot tell a difference from chance", key.name);
    }
    let all = places.len();
    let wins = |value: usize| places.iter().filter(|place| place.best == Some(value)).count();
    let mut winners: Vec<(usize, usize)> = (0..key.values.len()).map(|v| (wins(v), v)).collect();
    winners.retain(|(wins, _)| *wins > 0);
    winners.sort_by_key(|(wins, value)| (usize::MAX - wins, *value));
    let open = all - winners.iter().map(|(wins, _)| wins).sum::<usize>();
    if winners.is_empty() {
        let what = "no value is better than each other one at any of";
        return format!("{what} {all} combinations of the other settings");
    }
    let named = winners.iter().map(|(wins, value)| format!("{} at {wins}", key.values[*value]));
    let named: Vec<String> = named.collect();
    let rest = if open > 0 { format!("; none at {open}") } else { String::new() };
    format!(
        "best {} of {all} combinations of the other settings: {}{rest}",
        key.name,
        named.join(", ")
    )
}

/// `0.973 times that of reno (0.951 to 0.996)`.
fn against(pair: &Paired, other: &str, measure: &SweepMeasure) -> String {
    let Some(estimate) = pair.estimate else {
        let (more, less) = (pair.more, pair.less);
        return format!("longer than {other} in {more} of {} runs, shorter in {less}", pair.pairs);
    };
    let ends = pair.low.zip(pair.high);
    if pair.scale == PairedScale::Difference {
        let show = |value: f64| {
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{}", measure.unit.show(value.abs()))
        };
        let ends = ends.map(|(low, high)| format!(", {} to {}", show(low), show(high)));
        return format!("{} against {other}{}", show(estimate), ends.unwrap_or_default());
    }
    let show = |value: f64| Unit::Number.show((value * 1e3).round() / 1e3);
    let ends = ends.map(|(low, high)| format!(", {} to {}", show(low), show(high)));
    let times = match show(estimate).as_str() {
        "1" => "as much as".to_string(),
        other => format!("{other} times"),
    };
    format!("{times} {other}{}", ends.unwrap_or_default())
}

/// What would be needed to see a difference.
fn advice(verdict: &SweepVerdict) -> String {
    let open = verdict.places.iter().filter(|place| place.best.is_none());
    let differs = |place: &&SweepPlace| place.pairs.iter().any(|pair| !pair.compared.is_same());
    let open: Vec<&SweepPlace> = open.filter(differs).collect();
    let pairs = || open.iter().flat_map(|place| &place.pairs);
    if pairs().next().is_none() {
        return String::new();
    }
    let runs = pairs().map(|pair| pair.compared.pairs).max().unwrap_or(0) as u64;
    match verdict.repeats_advised {
        _ if runs < 2 => "; add --repeat 5".to_string(),
        Some(needed) if needed <= runs => "; one of 5 % would have been seen".to_string(),
        Some(needed) => format!("; --repeat {needed} would show one of 5 %"),
        None => String::new(),
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "any value".to_string(),
        [only] => only.to_string(),
        [names @ .., last] => format!("{} and {last}", names.join(", ")),
    }
}
