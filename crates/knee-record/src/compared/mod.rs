//! Compares any number of runs, sets of repeats or points of sweeps by the measures that matter for
//! their workload. Each is compared with the first.

mod words;

use crate::sweep::{GroupMeasures, PointMeasure, SweepMeasure, sweep_measures};
use crate::{Comparison, Judgement, Paired};
use knee_units::statistics::{Advice, WORTH_NAMING, holm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use words::compared_in_words;

/// Columns of sweeps that are shown first: what an application waits for, then rates, delays and
/// losses.
const FIRST: [&str; 12] = [
    "completion_s",
    "completion_over_bound",
    "burst_time_s",
    "page_load_s",
    "video_bitrate_bps",
    "video_stall_s",
    "transfer_completion_p50_s",
    "transfer_completion_p95_s",
    "goodput_bps",
    "jain",
    "rtt_p95_s",
    "retransmit_ratio",
];
/// Name of the group of all flows.
const ALL: &str = "*";

/// Runs that differ only in their seed, with their measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Short name.
    pub name: String,
    /// At least one run.
    pub runs: Vec<SideRun>,
}

/// The measures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct SideRun {
    /// Seed of all randomness.
    pub seed: u64,
    /// Measures of each group, as in a sweep.
    pub groups: Vec<GroupMeasures>,
}

/// The document of two runs, `knee-comparison/1`: number by number, and the measures that
/// matter for their workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TwoCompared {
    /// Every number that both runs have.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// The measures that matter for the workload, group by group.
    #[serde(default)]
    pub measures: Vec<MeasureCompared>,
}

/// A measure of a group of flows, for every side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasureCompared {
    /// Group of flows; `*` stands for all flows together.
    pub group: String,
    /// Name of the measure.
    #[serde(flatten)]
    pub measure: SweepMeasure,
    /// Whether it is one of the main measures.
    pub first: bool,
    /// Value of each side over its runs; null if it has none.
    pub values: Vec<Option<PointMeasure>>,
    /// For each side the value of each run, in the order of its seeds; null if there is
    /// none or if the event did not occur.
    pub by_run: Vec<Vec<Option<f64>>>,
    /// Each side compared with the first; null for the first itself, and if one of
    /// the two has no value.
    pub against: Vec<Option<SideAgainst>>,
}

/// A side compared with the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideAgainst {
    /// The result in one word.
    pub word: Judgement,
    /// In pairs of the same seed: this side divided by the first, or minus the
    /// first.
    #[serde(flatten)]
    pub compared: Paired,
    /// Repeats that would decide a difference of the size seen in 80 % of cases; null
    /// unless the word is undecided, or if that is unknown.
    pub repeats_advised: Option<u64>,
}

/// Compares each side with the first, measure by measure. All comparisons are corrected together
/// (Holm).
pub fn compare_sides(sides: &[Side]) -> Vec<MeasureCompared> {
    let mut all = Vec::new();
    for group in groups(sides) {
        all.extend(sweep_measures().into_iter().filter_map(|measure| of(sides, &group, measure)));
    }
    let against = all.iter_mut().flat_map(|one| one.against.iter_mut().flatten());
    let comparisons = holm(against.map(|one| &mut one.compared));
    let advice = Advice::together(comparisons);
    for one in &mut all {
        let better = one.measure.better;
        for against in one.against.iter_mut().flatten() {
            against.word = against.compared.judge(better, WORTH_NAMING);
            let open = against.word == Judgement::Undecided;
            against.repeats_advised =
                open.then(|| advice.to_decide(&against.compared, WORTH_NAMING)).flatten();
        }
    }
    all
}

/// Returns the groups that all sides have, in the order of the first side, and all flows together
/// unless each side has just that one group.
fn groups(sides: &[Side]) -> Vec<String> {
    let names = |side: &Side| -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for group in side.runs.iter().flat_map(|run| &run.groups) {
            if group.group != ALL && !names.contains(&group.group) {
                names.push(group.group.clone());
            }
        }
        names
    };
    let of_each: Vec<Vec<String>> = sides.iter().map(names).collect();
    let Some((first, others)) = of_each.split_first() else { return Vec::new() };
    let mut common = first.clone();
    common.retain(|name| others.iter().all(|names| names.contains(name)));
    let only = common.len() == 1 && of_each.iter().all(|names| names.len() == 1);
    if !only {
        common.push(ALL.to_string());
    }
    common
}

fn of(sides: &[Side], group: &str, measure: SweepMeasure) -> Option<MeasureCompared> {
    let (first, _) = sides.split_first()?;
    let values: Vec<Option<PointMeasure>> =
        sides.iter().map(|side| over_runs(side, group, &measure)).collect();
    if values.iter().all(Option::is_none) {
        return None;
    }
    let against = sides.iter().enumerate().map(|(number, side)| {
        let compared = (number > 0).then(|| paired(side, first, group, &measure.name))??;
        Some(SideAgainst { word: Judgement::Undecided, compared, repeats_advised: None })
    });
    let by_run = |side: &Side| -> Vec<Option<f64>> {
        let values = side.runs.iter().map(|run| value(run, group, &measure.name));
        values.map(|value| value.filter(|value| value.is_finite())).collect()
    };
    Some(MeasureCompared {
        by_run: sides.iter().map(by_run).collect(),
        group: group.to_string(),
        first: FIRST.contains(&measure.name.as_str()),
        against: against.collect(),
        measure,
        values,
    })
}

/// Returns the value in a run; infinity if the event that the measure waits for did not occur.
fn value(run: &SideRun, group: &str, measure: &str) -> Option<f64> {
    let named = run.groups.iter().find(|found| found.group == group);
    // If there is a single group, it is all flows.
    let only = || run.groups.first().filter(|_| group == ALL && run.groups.len() == 1);
    let found = named.or_else(only)?;
    let never = || found.never.iter().any(|never| never == measure).then_some(f64::INFINITY);
    found.measures.get(measure).copied().or_else(never)
}

fn over_runs(side: &Side, group: &str, measure: &SweepMeasure) -> Option<PointMeasure> {
    let values = side.runs.iter().filter_map(|run| value(run, group, &measure.name));
    let values: Vec<f64> = values.collect();
    let never = values.iter().filter(|value| value.is_infinite()).count();
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    (!values.is_empty()).then(|| PointMeasure { interval: measure.interval(&finite), never })
}

/// Pairs runs by seed; single runs form a pair whatever their seeds.
fn paired(side: &Side, first: &Side, group: &str, measure: &str) -> Option<Paired> {
    let pairs: Vec<(f64, f64)> = match (&side.runs[..], &first.runs[..]) {
        ([own], [other]) => {
            vec![(value(own, group, measure)?, value(other, group, measure)?)]
        }
        (own, others) => {
            let pair = |run: &SideRun| {
                let other = others.iter().find(|other| other.seed == run.seed)?;
                Some((value(run, group, measure)?, value(other, group, measure)?))
            };
            own.iter().filter_map(pair).collect()
        }
    };
    let compared = Paired::new(&pairs)?;
    Some(match nothing_is_random(side) && nothing_is_random(first) {
        true => compared.without_chance(),
        false => compared,
    })
}

/// Returns whether the seed changes none of the measured values.
fn nothing_is_random(side: &Side) -> bool {
    side.runs.len() > 1 && side.runs.windows(2).all(|pair| pair[0].groups == pair[1].groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run(seed: u64, values: &[(&str, f64)]) -> SideRun {
        let measures = values.iter().map(|(name, value)| (name.to_string(), *value));
        let measures: BTreeMap<String, f64> = measures.collect();
        let group = GroupMeasures { group: "a".to_string(), measures, never: Vec::new() };
        SideRun { seed, groups: vec![group] }
    }

    fn side(name: &str, goodputs: &[f64]) -> Side {
        let runs = goodputs.iter().enumerate();
        let runs = runs.map(|(at, bps)| run(at as u64 + 1, &[("goodput_bps", *bps)]));
        Side { name: name.to_string(), runs: runs.collect() }
    }

    fn only(sides: &[Side]) -> MeasureCompared {
        let mut all = compare_sides(sides);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// The seed moves both sides alike: each pair differs by 10 %, although the values spread over
    /// a factor of two.
    #[test]
    fn sides_are_paired_by_their_seeds() {
        let first = side("first", &[10e6, 14e6, 20e6, 12e6]);
        let more = side("more", &[11.0e6, 15.5e6, 21.9e6, 13.2e6]);
        let compared = only(&[first, more]);
        let against = compared.against[1].unwrap();
        assert_eq!((against.word, against.compared.pairs), (Judgement::Better, 4));
        let (low, high) = (against.compared.low.unwrap(), against.compared.high.unwrap());
        assert!(1.08 < low && low < 1.10 && 1.10 < high && high < 1.12, "{low} to {high}");
        assert!(compared.against[0].is_none() && compared.first);
    }

    /// Runs in another order are paired by the same seeds.
    #[test]
    fn the_order_of_the_runs_does_not_matter() {
        let first = side("first", &[10e6, 14e6, 20e6]);
        let mut more = side("more", &[11.0e6, 15.5e6, 21.9e6]);
        let ordered = only(&[first.clone(), more.clone()]);
        more.runs.reverse();
        assert_eq!(only(&[first, more]).against, ordered.against);
    }

    /// Values that do not depend on the seed on either side differ with certainty; less than 1 %
    /// counts as none.
    #[test]
    fn nothing_random_is_certain() {
        let first = side("first", &[10e6; 2]);
        let word = |other: f64| {
            only(&[first.clone(), side("other", &[other; 2])]).against[1].unwrap().word
        };
        assert_eq!(word(5e6), Judgement::Worse);
        assert_eq!(word(10.05e6), Judgement::Alike);
        assert_eq!(word(10e6), Judgement::Alike);
        assert_eq!(word(20e6), Judgement::Better);
    }

    #[test]
    fn one_run_each_decides_nothing() {
        let compared = only(&[side("a", &[1e6]), side("b", &[5e6])]);
        let against = compared.against[1].unwrap();
        assert_eq!(against.word, Judgement::Undecided);
        assert!((against.compared.estimate.unwrap() - 5.0).abs() < 1e-12);
    }

    /// Sides whose groups have different names are compared by all flows together.
    #[test]
    fn sides_without_a_common_group_are_compared_as_a_whole() {
        let mut other = side("b", &[2e6, 3e6]);
        for group in other.runs.iter_mut().flat_map(|run| &mut run.groups) {
            group.group = "another".to_string();
        }
        let compared = only(&[side("a", &[1e6, 2e6]), other]);
        assert_eq!(compared.group, ALL);
        assert!(compared.values.iter().all(Option::is_some));
    }
}
