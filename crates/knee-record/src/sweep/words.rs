//! The verdicts of a sweep in sentences.

use super::verdict::VALUES_MAX;
use super::{SweepKey, SweepMeasure, SweepPlace, SweepVerdict};
use crate::Unit;
use knee_statistics::{Paired, PairedScale};
use std::collections::BTreeSet;

/// Largest number of combinations of the other settings that are listed; more are counted.
const NAMED_MAX: usize = 4;

/// Describes the verdict of a measure on the values of one key.
pub(super) fn sentence(
    verdict: &SweepVerdict,
    (keys, at): (&[SweepKey], usize),
    measure: &SweepMeasure,
) -> String {
    let key = &keys[at];
    let title = capital(&measure.title);
    let said = match verdict.places.as_slice() {
        [place] => of_one_place(place, key, measure),
        places => of_places(places, keys, at),
    };
    format!("{title}: {said}{}.", advice(verdict))
}

/// Describes a measure whose event occurred in no run: `Page load time: not finished within the run
/// with cc = bbr or reno.`
pub(super) fn never(verdict: &SweepVerdict, key: &SweepKey, measures: &[SweepMeasure]) -> String {
    let title = measures.iter().find(|measure| measure.name == verdict.measure);
    let title = title.map_or_else(String::new, |measure| capital(&measure.title));
    let pairs = verdict.places.iter().flat_map(|place| &place.pairs);
    let values: BTreeSet<usize> = pairs.flat_map(|pair| [pair.value, pair.against]).collect();
    let mut names: Vec<&str> = values.iter().map(|value| key.values[*value].as_str()).collect();
    let last = names.pop().unwrap_or_default();
    let what = match verdict.measure.as_str() {
        "page_load_s" | "completion_s" | "completion_over_bound" => "not finished",
        "video_startup_s" => "not started",
        _ => "not reached",
    };
    format!("{title}: {what} within the run with {} = {} or {last}.", key.name, names.join(", "))
}

/// Says that the values of a key are too many to be compared; `None` if they are not.
pub(super) fn too_many(key: &SweepKey) -> Option<String> {
    let count = key.values.len();
    (count > VALUES_MAX).then(|| {
        format!(
            "The {count} values of {} are too many to compare each with every other one; the table \
             and the report have the figures. For answers, give at most {VALUES_MAX} values.",
            key.name
        )
    })
}

/// Begins a title with a capital letter.
fn capital(title: &str) -> String {
    let mut title = title.to_string();
    if let Some(first) = title.get(..1).map(str::to_uppercase) {
        title.replace_range(..1, &first);
    }
    title
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
        return format!(
            "one run with each {} cannot distinguish a difference from chance",
            key.name
        );
    }
    let beaten: BTreeSet<usize> = place
        .pairs
        .iter()
        .flat_map(|pair| [pair.value, pair.against])
        .filter(|value| !place.leading.contains(value))
        .collect();
    let all = beaten.is_empty();
    let beats = |a: usize, b: usize| place.beats(a, b, measure.better);
    let ahead = place.leading.iter().all(|a| beaten.iter().all(|b| beats(*a, *b)));
    let behind = match (all, ahead) {
        (true, _) => "",
        (false, true) => ", which are ahead of the rest",
        (false, false) => ", not all of which are ahead of the rest",
    };
    let by = match (all, place.pairs.as_slice()) {
        (true, [pair]) => {
            format!(" ({})", against(&pair.compared, name(pair.against), measure))
        }
        _ => String::new(),
    };
    format!("no difference between {} = {}{by}{behind}", key.name, list(&leading))
}

fn of_places(places: &[SweepPlace], keys: &[SweepKey], at: usize) -> String {
    let key = &keys[at];
    if places.iter().flat_map(|place| &place.pairs).all(|pair| pair.compared.p_value.is_none()) {
        return format!(
            "one run with each {} cannot distinguish a difference from chance",
            key.name
        );
    }
    let all = places.len();
    let won = |value: Option<usize>| -> Vec<&SweepPlace> {
        places.iter().filter(|place| place.best == value).collect()
    };
    let mut winners: Vec<(usize, Vec<&SweepPlace>)> =
        (0..key.values.len()).map(|value| (value, won(Some(value)))).collect();
    winners.retain(|(_, places)| !places.is_empty());
    winners.sort_by_key(|(value, places)| (usize::MAX - places.len(), *value));
    let open = won(None);
    if winners.is_empty() {
        let what = "no value is better than each other one at any of";
        return format!("{what} {all} combinations of the other settings");
    }
    if winners.len() == 1 && open.is_empty() {
        let (value, _) = winners[0];
        return format!(
            "best with {} = {} at all {all} combinations of the other settings",
            key.name, key.values[value]
        );
    }
    if all <= NAMED_MAX {
        let with = |places: &[&SweepPlace]| with(places, keys, at);
        let named = winners.iter().map(|(value, places)| {
            format!("best with {} = {} at {}", key.name, key.values[*value], with(places))
        });
        let none = (!open.is_empty()).then(|| format!("no difference at {}", with(&open)));
        return named.chain(none).collect::<Vec<_>>().join("; ");
    }
    let named = winners.iter().map(|(value, places)| {
        format!("{} = {} at {}", key.name, key.values[*value], places.len())
    });
    let named: Vec<String> = named.collect();
    let rest = match open.len() {
        0 => String::new(),
        open => format!("; no difference at {open}"),
    };
    format!("of {all} combinations of the other settings, best with {}{rest}", named.join(", "))
}

/// Lists the other settings of some places: `link.a.buffer = 1 BDP and link.a.buffer = 4 BDP`.
fn with(places: &[&SweepPlace], keys: &[SweepKey], compared: usize) -> String {
    let one = |place: &&SweepPlace| {
        let settings = keys.iter().enumerate().zip(&place.at);
        let other = settings
            .filter(|((number, key), _)| *number != compared && key.values.len() > 1)
            .map(|((_, key), value)| format!("{} = {}", key.name, key.values[*value]));
        other.collect::<Vec<_>>().join(", ")
    };
    let named: Vec<String> = places.iter().map(one).collect();
    list(&named.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Formats a comparison: `0.973 times that of reno (0.951 to 0.996)`.
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

/// Returns the advice how to find a difference.
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
        Some(needed) if needed <= runs => "; a difference of 5 % would have been found".to_string(),
        Some(needed) => format!("; --repeat {needed} would find a difference of 5 %"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Better;

    fn place(buffer: usize, best: Option<usize>) -> SweepPlace {
        let compared = Paired::new(&[(1.0, 2.0), (1.1, 2.3)]).expect("two pairs");
        let pair = crate::SweepPair { value: 0, against: 1, compared };
        let at = vec![0, buffer];
        SweepPlace { at, best, leading: vec![0, 1], repeats_advised: None, pairs: vec![pair] }
    }

    fn says(places: Vec<SweepPlace>) -> String {
        let key = |name: &str, values: &[&str]| SweepKey {
            name: name.to_string(),
            values: values.iter().map(|value| value.to_string()).collect(),
        };
        let buffers = ["1 BDP", "2 BDP", "4 BDP", "8 BDP", "16 BDP"];
        let keys = [key("flow.a.cc", &["bbr", "reno"]), key("link.b.buffer", &buffers)];
        let measure = SweepMeasure {
            name: "goodput_bps".to_string(),
            title: "goodput".to_string(),
            unit: Unit::BitsPerSecond,
            better: Better::More,
        };
        let (group, says) = ("a".to_string(), String::new());
        let verdict = SweepVerdict {
            key: 0,
            group,
            measure: measure.name.clone(),
            says,
            comparisons: 1,
            repeats_advised: None,
            places,
        };
        sentence(&verdict, (&keys, 0), &measure)
    }

    /// A headline lists the places where a value is best if there are few.
    #[test]
    fn the_headline_says_where_a_value_is_best() {
        let said = says(vec![place(0, Some(1)), place(1, None)]);
        let first = "Goodput: best with flow.a.cc = reno at link.b.buffer = 1 BDP; \
                     no difference at link.b.buffer = 2 BDP";
        assert!(said.starts_with(first), "{said}");
        let said = says((0..5).map(|at| place(at, [Some(1), Some(0), None][at % 3])).collect());
        let counted = "of 5 combinations of the other settings, best with flow.a.cc = bbr at 2, \
                       flow.a.cc = reno at 2; no difference at 1";
        assert!(said.contains(counted), "{said}");
        let said = says((0..3).map(|at| place(at, Some(0))).collect());
        assert!(said.contains("best with flow.a.cc = bbr at all 3 combinations"), "{said}");
    }
}
