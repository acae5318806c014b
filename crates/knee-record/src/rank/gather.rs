//! From runs to what a candidate did: over scenarios first, seed by seed,
//! then over the seeds.

use super::{Company, RankFigures, RankRun};
use std::collections::BTreeMap;

/// One number of a candidate, repeat by repeat.
pub(super) type ByRepeat = BTreeMap<u64, f64>;

/// The runs of one candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'r> {
    pub all: &'r [RankRun],
    pub candidate: usize,
    /// Scenarios of the ranking: a repeat counts when it has them all.
    pub scenarios: usize,
}

impl<'r> Runs<'r> {
    /// The runs in some company, in the order of all runs.
    pub fn with(self, company: Company) -> impl Iterator<Item = &'r RankRun> {
        let mine = move |run: &&RankRun| run.candidate == self.candidate && run.company == company;
        self.all.iter().filter(mine)
    }

    /// The geometric mean over all scenarios: each counts for the same ratio.
    pub fn geometric(
        self,
        company: Company,
        value: impl Fn(&RankFigures) -> Option<f64>,
    ) -> ByRepeat {
        let log = |figures: &RankFigures| value(figures).map(f64::ln);
        self.mean(company, log).into_iter().map(|(repeat, log)| (repeat, log.exp())).collect()
    }

    /// The arithmetic mean over all scenarios. A repeat that lacks one of them,
    /// or its value, has none.
    pub fn mean(self, company: Company, value: impl Fn(&RankFigures) -> Option<f64>) -> ByRepeat {
        let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in self.with(company) {
            values.entry(run.repeat).or_default().extend(value(&run.figures));
        }
        values.retain(|_, values| values.len() == self.scenarios);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|(repeat, values)| (repeat, mean(values))).collect()
    }

    /// Every value, and how often it never came about.
    pub fn finite(
        self,
        company: Company,
        value: impl Fn(&RankFigures) -> Option<f64>,
    ) -> (Vec<f64>, usize) {
        let values: Vec<f64> = self.with(company).filter_map(|run| value(&run.figures)).collect();
        let never = values.iter().filter(|value| value.is_infinite()).count();
        (values.into_iter().filter(|value| value.is_finite()).collect(), never)
    }
}

impl Runs<'_> {
    /// Whether the seed makes no difference to anything that was measured in some
    /// company: what differs from such runs is no coincidence.
    pub fn nothing_is_random(self, company: Company) -> bool {
        let mut first: BTreeMap<usize, (&RankFigures, usize)> = BTreeMap::new();
        let same = self.with(company).all(|run| {
            let known = first.entry(run.scenario).or_insert((&run.figures, 0));
            known.1 += 1;
            *known.0 == run.figures
        });
        same && !first.is_empty() && first.values().all(|(_, runs)| *runs > 1)
    }
}

/// Whether a seed changes anything: some two runs that differ in it alone
/// have other figures.
pub(super) fn seeds_matter(runs: &[RankRun]) -> bool {
    let mut first: BTreeMap<(usize, usize, Company), &RankFigures> = BTreeMap::new();
    runs.iter().any(|run| {
        let key = (run.scenario, run.candidate, run.company);
        *first.entry(key).or_insert(&run.figures) != &run.figures
    })
}
