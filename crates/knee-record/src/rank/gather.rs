//! Condenses the runs of a candidate: over the scenarios for each seed, then over the seeds.

use super::{Competition, RankFigures, RankRun};
use std::collections::BTreeMap;

/// One number of a candidate for each repeat.
pub(super) type ByRepeat = BTreeMap<u64, f64>;

/// The runs of one candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'r> {
    pub all: &'r [RankRun],
    pub candidate: usize,
    /// Number of scenarios in the ranking; a repeat counts if it has all of them.
    pub scenarios: usize,
}

impl<'r> Runs<'r> {
    /// Returns the runs in the given company, in the order of all runs.
    pub fn with(self, company: Competition) -> impl Iterator<Item = &'r RankRun> {
        let mine = move |run: &&RankRun| run.candidate == self.candidate && run.company == company;
        self.all.iter().filter(mine)
    }

    /// Returns the geometric mean over all scenarios, in which a given ratio has the same weight in
    /// each.
    pub fn geometric(
        self,
        company: Competition,
        value: impl Fn(&RankFigures) -> Option<f64>,
    ) -> ByRepeat {
        let log = |figures: &RankFigures| value(figures).map(f64::ln);
        self.mean(company, log).into_iter().map(|(repeat, log)| (repeat, log.exp())).collect()
    }

    /// Returns the arithmetic mean over all scenarios. A repeat that lacks a scenario or its value
    /// has none.
    pub fn mean(
        self,
        company: Competition,
        value: impl Fn(&RankFigures) -> Option<f64>,
    ) -> ByRepeat {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in self.with(company) {
            values.entry(run.repeat).or_default().extend(value(&run.figures));
        }
        values.retain(|_, values| values.len() == self.scenarios);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|(repeat, values)| (repeat, mean(values))).collect()
    }
}

impl Runs<'_> {
    /// Returns whether the seed changes nothing that was measured in the given company. A
    /// difference from such runs is not due to chance.
    pub fn nothing_is_random(self, company: Competition) -> bool {
        let mut first: BTreeMap<usize, (&RankFigures, usize)> = BTreeMap::new();
        let same = self.with(company).all(|run| {
            let known = first.entry(run.scenario).or_insert((&run.figures, 0));
            known.1 += 1;
            *known.0 == run.figures
        });
        same && !first.is_empty() && first.values().all(|(_, runs)| *runs > 1)
    }
}

/// Returns whether the seed changes anything: two runs that differ only in it have different
/// figures.
pub(super) fn seeds_matter(runs: &[RankRun]) -> bool {
    let mut first: BTreeMap<(usize, usize, Competition), &RankFigures> = BTreeMap::new();
    runs.iter().any(|run| {
        let key = (run.scenario, run.candidate, run.company);
        *first.entry(key).or_insert(&run.figures) != &run.figures
    })
}
