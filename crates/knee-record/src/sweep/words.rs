//! The verdicts of a sweep in sentences.

use super::verdict::VALUES_MAX;
use super::{SweepKey, SweepMeasure, SweepPlace, SweepVerdict};
use crate::{Unit, capitalised, listed, listed_or};
use knee_units::statistics::{Judgement, Paired, PairedScale};
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
    let title = capitalised(&measure.title);
    let pairs = || verdict.places.iter().flat_map(|place| &place.pairs);
    let said = match verdict.places.as_slice() {
        _ if pairs().all(|pair| pair.compared.p_value.is_none()) => "undecided".to_string(),
        [place] => of_one_place(place, key, measure),
        places => of_places(places, (keys, at), measure),
    };
    format!("{title}: {said}{}.", advice(verdict))
}

/// Describes a measure whose event occurred in no run: `Page load time: not finished within the run
/// with cc = bbr or reno.`
pub(super) fn never(verdict: &SweepVerdict, key: &SweepKey, measures: &[SweepMeasure]) -> String {
    let title = measures.iter().find(|measure| measure.name == verdict.measure);
    let title = title.map_or_else(String::new, |measure| capitalised(&measure.title));
    let pairs = verdict.places.iter().flat_map(|place| &place.pairs);
    let values: BTreeSet<usize> = pairs.flat_map(|pair| [pair.value, pair.against]).collect();
    let names: Vec<&str> = values.iter().map(|value| key.values[*value].as_str()).collect();
    let what = match verdict.measure.as_str() {
        "page_load_s" | "completion_s" | "completion_over_bound" => "not finished",
        "video_startup_s" => "not started",
        _ => "not reached",
    };
    format!("{title}: {what} within the run with {} = {}.", key.name, listed_or(&names))
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
    let rest = rest(place, &name);
    format!("{}{rest}", leading(place, &key.name, &name, measure))
}

/// Describes the leading values of a place without a best one: `undecided between cc = a and b (9.1
/// to 9.4 Mbit/s, 3 % apart)`.
fn leading<'k>(
    place: &SweepPlace,
    key: &str,
    name: &dyn Fn(usize) -> &'k str,
    measure: &SweepMeasure,
) -> String {
    let of = format!("{key} = {}", leaders(place, name));
    let shown = means(place, measure).map_or_else(String::new, |means| format!(" ({means})"));
    let same = place.leading_pairs().all(|pair| pair.compared.is_same());
    match (place.is_tied(), all_lead(place)) {
        (true, false) => format!("tied for best, within 1 %: {of}{shown}"),
        (true, true) if same => format!("the same with {of}{shown}"),
        (true, true) => format!("alike within 1 % with {of}{shown}"),
        (false, _) => format!("undecided between {of}{shown}"),
    }
}

/// Names the leading values; none leads if each is beaten by another, in a circle.
fn leaders<'k>(place: &SweepPlace, name: &dyn Fn(usize) -> &'k str) -> String {
    let names: Vec<&str> = place.leading.iter().map(|value| name(*value)).collect();
    if names.is_empty() { "any value".to_string() } else { listed(&names) }
}

/// Returns whether no value is beaten.
fn all_lead(place: &SweepPlace) -> bool {
    place.pairs.len() == place.leading_pairs().count()
}

/// The same of one place among several, where all values need not be named: `undecided at rate = 5
/// Mbit/s (9.1 to 9.4 Mbit/s, 3 % apart)`.
fn leading_at<'k>(
    place: &SweepPlace,
    at: &str,
    name: &dyn Fn(usize) -> &'k str,
    measure: &SweepMeasure,
) -> String {
    let word = if place.is_tied() { "tied" } else { "undecided" };
    let names = (!all_lead(place)).then(|| leaders(place, name));
    let shown: Vec<String> = names.into_iter().chain(means(place, measure)).collect();
    match shown.is_empty() {
        true => format!("{word} at {at}"),
        false => format!("{word} at {at} ({})", shown.join(", ")),
    }
}

/// The means of the leading values: `5.92 to 8.05 Mbit/s, 36 % apart`.
fn means(place: &SweepPlace, measure: &SweepMeasure) -> Option<String> {
    let [low, high] = place.leading_means?.map(|mean| measure.unit.show(mean));
    if low == high {
        return Some(low);
    }
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_string());
    let number = match low.split_once(' ') {
        Some((number, _)) if unit(&low) == unit(&high) => number,
        _ => &low,
    };
    Some(format!("{number} to {high}{}", apart(place.leading_means)))
}

/// Says how far apart the leading values are: `, 36 % apart`.
fn apart(means: Option<[f64; 2]>) -> String {
    match means {
        Some([low, high]) if low > 0.0 && high / low >= 2.0 => {
            format!(", a factor of {} apart", Unit::Number.show((high / low * 10.0).round() / 10.0))
        }
        Some([low, high]) if low > 0.0 && high / low >= 1.0005 => {
            let digits = usize::from(high / low < 1.0995);
            format!(", {:.digits$} % apart", (high / low - 1.0) * 100.0)
        }
        _ => String::new(),
    }
}

/// Says how the values that are beaten compare with the leading ones.
fn rest<'k>(place: &SweepPlace, name: &dyn Fn(usize) -> &'k str) -> String {
    let all = place.pairs.iter().flat_map(|pair| [pair.value, pair.against]);
    let beaten: BTreeSet<usize> = all.filter(|value| !place.leading.contains(value)).collect();
    let unbeaten = |value: &&usize| !place.leading.iter().all(|best| place.beats(*best, **value));
    let open: Vec<&str> = beaten.iter().filter(unbeaten).map(|value| name(*value)).collect();
    match (beaten.is_empty(), open.is_empty()) {
        (true, _) => String::new(),
        (false, true) => ", better than the rest".to_string(),
        (false, false) => format!("; {} cannot be told from all of them", listed(&open)),
    }
}

fn of_places(
    places: &[SweepPlace],
    (keys, at): (&[SweepKey], usize),
    measure: &SweepMeasure,
) -> String {
    let key = &keys[at];
    let name = |value: usize| key.values[value].as_str();
    let all = places.len();
    let won = |value: usize| -> Vec<&SweepPlace> {
        places.iter().filter(|place| place.best == Some(value)).collect()
    };
    let mut winners: Vec<(usize, Vec<&SweepPlace>)> =
        (0..key.values.len()).map(|value| (value, won(value))).collect();
    winners.retain(|(_, places)| !places.is_empty());
    winners.sort_by_key(|(value, places)| (usize::MAX - places.len(), *value));
    let open: Vec<&SweepPlace> = places.iter().filter(|place| place.best.is_none()).collect();
    if winners.len() == 1 && open.is_empty() {
        let best = name(winners[0].0);
        return format!(
            "best with {} = {best} at all {all} combinations of the other settings",
            key.name
        );
    }
    if all <= NAMED_MAX {
        let named = winners.iter().map(|(value, places)| {
            format!("best with {} = {} at {}", key.name, name(*value), with(places, keys, at))
        });
        let others =
            open.iter().map(|place| leading_at(place, &with(&[*place], keys, at), &name, measure));
        return named.chain(others).collect::<Vec<_>>().join("; ");
    }
    let (tied, undecided): (Vec<&SweepPlace>, Vec<&SweepPlace>) =
        open.into_iter().partition(|place| place.is_tied());
    let count = |what: &str, places: &[&SweepPlace]| {
        (!places.is_empty()).then(|| format!("{what} at {}", places.len()))
    };
    let open = [count("tied", &tied), count("undecided", &undecided)];
    let open: Vec<String> = open.into_iter().flatten().collect();
    if winners.is_empty() {
        let what = format!("no value of {} is best at any of", key.name);
        return format!("{what} {all} combinations of the other settings ({})", open.join(", "));
    }
    let named = winners
        .iter()
        .map(|(value, places)| format!("{} = {} at {}", key.name, name(*value), places.len()));
    let named = named.collect::<Vec<_>>().join(", ");
    let said = format!("of {all} combinations of the other settings, best with {named}");
    std::iter::once(said).chain(open).collect::<Vec<_>>().join("; ")
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
    listed(&named)
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

/// Returns the advice how to decide what is undecided.
fn advice(verdict: &SweepVerdict) -> String {
    let is_open = |place: &&SweepPlace| place.best.is_none() && !place.is_tied();
    let open: Vec<&SweepPlace> = verdict.places.iter().filter(is_open).collect();
    let undecided = open.iter().flat_map(|place| &place.pairs);
    let undecided = undecided.filter(|pair| pair.word == Judgement::Undecided);
    let runs = undecided.map(|pair| pair.compared.pairs).max();
    match (runs, verdict.repeats_advised) {
        (None, _) => String::new(),
        (Some(0 | 1), _) => " with one run each; add --repeat 5".to_string(),
        (Some(runs), Some(needed)) => {
            let sizes =
                if open.len() == 1 { "a difference of this size" } else { "such differences" };
            format!(", with {runs} repeats; --repeat {needed} would decide {sizes}")
        }
        (Some(runs), None) => format!(", with {runs} repeats"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Better;

    fn place(buffer: usize, best: Option<usize>) -> SweepPlace {
        let compared = Paired::new(&[(1.0, 2.0), (1.1, 2.3)]).expect("two pairs");
        let word = best.map_or(Judgement::Undecided, |best| match best {
            0 => Judgement::Better,
            _ => Judgement::Worse,
        });
        SweepPlace {
            at: vec![0, buffer],
            best,
            leading: best.map_or(vec![0, 1], |best| vec![best]),
            leading_means: Some([5.92e6, 8.05e6]),
            repeats_advised: None,
            pairs: vec![crate::SweepPair { value: 0, against: 1, word, compared }],
            means: Default::default(),
        }
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
                     undecided at link.b.buffer = 2 BDP (5.92 to 8.05 Mbit/s, 36 % apart), with 2 \
                     repeats";
        assert!(said.starts_with(first), "{said}");
        let said = says((0..5).map(|at| place(at, [Some(1), Some(0), None][at % 3])).collect());
        let counted = "of 5 combinations of the other settings, best with flow.a.cc = bbr at 2, \
                       flow.a.cc = reno at 2; undecided at 1, with 2 repeats";
        assert!(said.contains(counted), "{said}");
        let said = says((0..3).map(|at| place(at, Some(0))).collect());
        assert!(said.contains("best with flow.a.cc = bbr at all 3 combinations"), "{said}");
    }
}
