//! Compares the values of a setting, all else being equal: every two values are compared in pairs
//! of runs that share a seed, and a value that may lead only by chance is not called best.

use super::words::{never, sentence};
use super::{SweepKey, SweepMeasure, SweepRun, sweep_measures};
use knee_units::statistics::{Advice, Judgement, Paired, WORTH_NAMING, holm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest number of values that are compared; a setting with more is shown as a curve.
pub(super) const VALUES_MAX: usize = 10;

/// Comparison of the values of a key by one measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepVerdict {
    /// Index of the key whose values are compared, from zero.
    pub key: usize,
    /// Group of flows.
    pub group: String,
    /// Name of the measure's column.
    pub measure: String,
    /// The result in a sentence or two.
    pub says: String,
    /// Comparisons along this key, of all groups and measures, for which the
    /// probabilities are corrected together.
    pub comparisons: usize,
    /// Repeats that would decide differences of the size seen in 80 % of cases, at
    /// every undecided place; null if that is unknown.
    pub repeats_advised: Option<u64>,
    /// One entry per combination of the other keys at which at least two of
    /// the values have this measure.
    pub places: Vec<SweepPlace>,
}

/// The values of a key at one combination of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPlace {
    /// For each key, the index of its value, from zero; always zero for the
    /// compared key.
    pub at: Vec<usize>,
    /// The value that is better than each other one; null if there is none.
    pub best: Option<usize>,
    /// Values that no other value beats.
    pub leading: Vec<usize>,
    /// Smallest and largest mean of the leading values, in the measure's unit;
    /// null if one of them has none.
    #[serde(default)]
    pub leading_means: Option<[f64; 2]>,
    /// Repeats that would decide a difference of the size seen between two leading
    /// values in 80 % of cases; null if they are alike, or if that is unknown.
    pub repeats_advised: Option<u64>,
    /// Each pair of values.
    pub pairs: Vec<SweepPair>,
    /// Mean of each value over its runs.
    #[serde(skip)]
    pub(super) means: BTreeMap<usize, f64>,
}

/// Comparison of two values of a key.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPair {
    /// Index of the first value, from zero.
    pub value: usize,
    /// Index of the value with which it is compared.
    pub against: usize,
    /// How the first compares with the other.
    #[serde(default = "undecided")]
    pub word: Judgement,
    /// Result of their runs.
    #[serde(flatten)]
    pub compared: Paired,
}

impl SweepPlace {
    /// Returns how a value compares with another one.
    pub fn pair(&self, value: usize, against: usize) -> Option<Paired> {
        let found = |a: usize, b: usize| {
            let mut pairs = self.pairs.iter();
            pairs.find(|pair| (pair.value, pair.against) == (a, b)).map(|pair| pair.compared)
        };
        found(value, against).or_else(|| Some(found(against, value)?.reversed()))
    }

    /// Returns whether a value is better than another one.
    pub(super) fn beats(&self, value: usize, other: usize) -> bool {
        self.pairs.iter().any(|pair| match pair.word {
            Judgement::Better => (pair.value, pair.against) == (value, other),
            Judgement::Worse => (pair.against, pair.value) == (value, other),
            _ => false,
        })
    }

    /// Returns the pairs of leading values.
    pub(super) fn leading_pairs(&self) -> impl Iterator<Item = &SweepPair> {
        let leads = |value: &usize| self.leading.contains(value);
        self.pairs.iter().filter(move |pair| leads(&pair.value) && leads(&pair.against))
    }

    /// Returns whether the leading values are all alike.
    pub(super) fn is_tied(&self) -> bool {
        self.best.is_none() && self.leading_pairs().all(|pair| pair.word == Judgement::Alike)
    }
}

/// What the pairs of files without words are.
fn undecided() -> Judgement {
    Judgement::Undecided
}

/// The runs of a point: the index of each key's value, and the values kept of its runs.
pub(super) type PointRuns = (Vec<usize>, Vec<SweepRun>);

/// Compares the values of each key by each measure of each group.
pub(super) fn verdicts(keys: &[SweepKey], points: &[PointRuns]) -> Vec<SweepVerdict> {
    let compared = |key: &usize| (2..=VALUES_MAX).contains(&keys[*key].values.len());
    let of_key = |key: usize| of_key(key, keys, points);
    (0..keys.len()).filter(compared).flat_map(of_key).collect()
}

fn of_key(key: usize, keys: &[SweepKey], points: &[PointRuns]) -> Vec<SweepVerdict> {
    let mut by_place: BTreeMap<Vec<usize>, Vec<(usize, &[SweepRun])>> = BTreeMap::new();
    for (at, runs) in points {
        let mut place = at.clone();
        place[key] = 0;
        by_place.entry(place).or_default().push((at[key], runs));
    }
    let mut groups: Vec<&str> = Vec::new();
    for group in points.iter().flat_map(|(_, runs)| runs).flat_map(|run| &run.groups) {
        if !groups.contains(&group.group.as_str()) {
            groups.push(&group.group);
        }
    }
    let measures = sweep_measures();
    let mut verdicts = Vec::new();
    for (group, measure) in groups.iter().flat_map(|group| measures.iter().map(move |m| (group, m)))
    {
        let places = by_place.iter();
        let places: Vec<SweepPlace> =
            places.filter_map(|(at, values)| place(at, values, group, &measure.name)).collect();
        if !places.is_empty() {
            verdicts.push(SweepVerdict {
                key,
                group: group.to_string(),
                measure: measure.name.clone(),
                says: String::new(),
                comparisons: 0,
                repeats_advised: None,
                places,
            });
        }
    }
    decide(&mut verdicts, (keys, key), &measures);
    for verdict in &mut verdicts {
        if has_no_value(points, &verdict.group, &verdict.measure) {
            verdict.says = never(verdict, &keys[key], &measures);
        }
    }
    verdicts
}

/// Returns whether no run has a value of a measure.
fn has_no_value(points: &[PointRuns], group: &str, measure: &str) -> bool {
    let groups = points.iter().flat_map(|(_, runs)| runs).flat_map(|run| &run.groups);
    groups.filter(|found| found.group == group).all(|found| !found.measures.contains_key(measure))
}

/// Compares all pairs of values at a place; `None` if fewer than two have the measure.
fn place(
    at: &[usize],
    values: &[(usize, &[SweepRun])],
    group: &str,
    measure: &str,
) -> Option<SweepPlace> {
    let mut pairs = Vec::new();
    for (number, (value, runs)) in values.iter().enumerate() {
        for (against, others) in &values[number + 1..] {
            if let Some(compared) = compare(runs, others, group, measure) {
                let word = Judgement::Undecided;
                pairs.push(SweepPair { value: *value, against: *against, word, compared });
            }
        }
    }
    let means =
        values.iter().filter_map(|(value, runs)| Some((*value, mean(runs, group, measure)?)));
    (!pairs.is_empty()).then(|| SweepPlace {
        at: at.to_vec(),
        best: None,
        leading: Vec::new(),
        leading_means: None,
        repeats_advised: None,
        means: means.collect(),
        pairs,
    })
}

/// Returns the mean over runs; `None` if one of them has no finite value.
fn mean(runs: &[SweepRun], group: &str, measure: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(|run| value(run, group, measure)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64).filter(|mean| mean.is_finite())
}

fn compare(runs: &[SweepRun], others: &[SweepRun], group: &str, measure: &str) -> Option<Paired> {
    let other = |seed: u64| others.iter().find(|other| other.seed == seed);
    let pairs = runs.iter().filter_map(|run| {
        Some((value(run, group, measure)?, value(other(run.seed)?, group, measure)?))
    });
    let compared = Paired::new(&pairs.collect::<Vec<_>>())?;
    Some(match nothing_is_random(runs) && nothing_is_random(others) {
        true => compared.without_chance(),
        false => compared,
    })
}

/// Returns the value; infinity if the event that the measure waits for did not occur.
fn value(run: &SweepRun, group: &str, measure: &str) -> Option<f64> {
    let group = run.groups.iter().find(|found| found.group == group)?;
    let never = || group.never.iter().any(|never| never == measure).then_some(f64::INFINITY);
    group.measures.get(measure).copied().or_else(never)
}

/// Returns whether the seed changes nothing that was measured.
fn nothing_is_random(runs: &[SweepRun]) -> bool {
    let differs = |pair: &[SweepRun]| {
        (&pair[0].groups, pair[0].data_packets) != (&pair[1].groups, pair[1].data_packets)
    };
    runs.len() > 1 && !runs.windows(2).any(differs)
}

/// Corrects all comparisons of a key together, then names the best values.
fn decide(verdicts: &mut [SweepVerdict], key: (&[SweepKey], usize), measures: &[SweepMeasure]) {
    let places = verdicts.iter_mut().flat_map(|verdict| &mut verdict.places);
    let pairs = places.flat_map(|place| &mut place.pairs);
    let comparisons = holm(pairs.map(|pair| &mut pair.compared));
    let advice = Advice::together(comparisons);
    for verdict in verdicts {
        let Some(measure) = measures.iter().find(|m| m.name == verdict.measure) else { continue };
        verdict.comparisons = comparisons;
        for place in &mut verdict.places {
            for pair in &mut place.pairs {
                pair.word = pair.compared.judge(measure.better, WORTH_NAMING);
            }
            rank(place);
            place.repeats_advised = advised(place, &advice);
        }
        verdict.repeats_advised =
            verdict.places.iter().filter_map(|place| place.repeats_advised).max();
        verdict.says = sentence(verdict, key, measure);
        verdict.places.iter_mut().for_each(mirror);
    }
}

/// Adds each comparison in the other direction, so that readers can look up any pair.
fn mirror(place: &mut SweepPlace) {
    let turned = |pair: &SweepPair| SweepPair {
        value: pair.against,
        against: pair.value,
        word: pair.word.reversed(),
        compared: pair.compared.reversed(),
    };
    let turned: Vec<SweepPair> = place.pairs.iter().map(turned).collect();
    place.pairs.extend(turned);
}

fn rank(place: &mut SweepPlace) {
    let mut values: Vec<usize> = Vec::new();
    for value in place.pairs.iter().flat_map(|pair| [pair.value, pair.against]) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.sort_unstable();
    let others = |value: usize| values.iter().copied().filter(move |other| *other != value);
    let best =
        values.iter().copied().find(|value| others(*value).all(|other| place.beats(*value, other)));
    let beaten = |value: &usize| others(*value).any(|other| place.beats(other, *value));
    let leading: Vec<usize> = values.iter().copied().filter(|value| !beaten(value)).collect();
    let means: Option<Vec<f64>> =
        leading.iter().map(|value| place.means.get(value).copied()).collect();
    let ends = means.map(|means| {
        let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
        [means.iter().copied().fold(low, f64::min), means.iter().copied().fold(high, f64::max)]
    });
    (place.best, place.leading, place.leading_means) = (best, leading, ends);
}

/// Returns the repeats that decide the largest undecided difference between leading values.
fn advised(place: &SweepPlace, advice: &Advice) -> Option<u64> {
    let open = place.leading_pairs().filter(|pair| pair.word == Judgement::Undecided);
    let size = |pair: &&SweepPair| pair.compared.size().unwrap_or(f64::INFINITY);
    let largest = open.max_by(|a, b| size(a).total_cmp(&size(b)))?;
    advice.to_decide(&largest.compared, WORTH_NAMING)
}
