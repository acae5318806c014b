//! Evaluation of an experiment, triple by triple.

use crate::confidence::{ConfidenceSequence, mean_and_deviation};
use crate::covariate::Covariate;
use crate::design::sample_ratio_is_off;
use crate::evidence::Evidence;
use crate::guard::{Guard, Guarded, Guards, Worse};
use crate::power::smallest_effect;

/// Maximum share of lost records for a valid verdict: losses are biased towards busy times.
const LOST_MAX: f64 = 0.01;
/// Largest effect, of the logarithm, that counts as none: 1 %.
const ALIKE: f64 = 0.01;

/// Settings of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSettings {
    /// Probability of a false effect.
    pub level: f64,
    /// Number of trials judged together, for other traffic classes or candidates; each needs
    /// correspondingly more evidence.
    pub comparisons: usize,
    /// Number of planned triples.
    pub planned: usize,
    /// Number of groups in each triple.
    pub groups: usize,
    /// Standard deviation of a difference between blocks under A; see [`Evidence::new`].
    pub scale: f64,
    /// Guards, with the noise from blocks under A.
    pub guards: Guards,
    /// What is known of forecasts from pairs of blocks before the first triple.
    pub covariate: Covariate,
}

/// Results of one group in one triple: means of the measure over the connections of a block that
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cells {
    /// Block under A.
    pub control: f64,
    /// Block under B.
    pub test: f64,
    /// Half-and-half block: connections under A and under B.
    pub halves: [f64; 2],
    /// Forecast of the measure in the block under B less that in the block under A, from before
    /// the triple, see [`Covariate`]; `None` without one.
    pub forecast: Option<f64>,
    /// By how much B was worse than A, for the guards.
    pub worse: Worse,
    /// Maximum share of lost records in any of the blocks.
    pub lost: f64,
}

/// Verdict of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// B is more than A.
    More,
    /// B is less than A.
    Less,
    /// The interval of the effect lies within 1 % of none.
    Alike,
    /// Any difference so far may be chance, and an effect may be hidden by it.
    Undecided,
    /// So few triples that no effect could be seen, however large: each at most doubles the
    /// evidence.
    TooFew,
    /// A guard ended it.
    Stopped(Guarded),
    /// Invalid: too many records were lost.
    RecordsLost,
    /// Invalid: the sizes of the halves differ, so something other than the draw determined the
    /// assignment.
    UnlikeHalves,
}

/// A mean over triples, with its interval if there are enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The mean.
    pub mean: f64,
    /// Interval that covers the truth with the trial's level at any time.
    pub interval: Option<(f64, f64)>,
}

/// An experiment with one measure.
#[derive(Clone, Debug)]
pub struct Trial {
    settings: TrialSettings,
    evidence: Evidence,
    /// Means over the groups of each triple: B minus A, B's half minus A's, and A's half minus A.
    total: Vec<f64>,
    naive: Vec<f64>,
    neighbours: Vec<f64>,
    /// Differences on which the evidence rests.
    bets: Vec<f64>,
    /// Numbers of clients of each set that is checked.
    halves: Vec<[u64; 2]>,
    ended: Option<(Verdict, usize)>,
}

impl Trial {
    /// Creates a trial without triples.
    pub fn new(settings: TrialSettings) -> Trial {
        Trial {
            evidence: Evidence::new(settings.scale),
            settings,
            total: Vec::new(),
            naive: Vec::new(),
            neighbours: Vec::new(),
            bets: Vec::new(),
            halves: Vec::new(),
            ended: None,
        }
    }

    /// Adds a triple, with [`Cells`] for each group, and the numbers of clients under A and under B
    /// in the half-and-half block. Clients that several hosts have counted are not independent, so
    /// each host's numbers are checked by themselves, in the same place for each triple. After the
    /// end of a trial, further triples contribute to its effects but not to its verdict.
    pub fn push(&mut self, groups: &[Cells], halves: &[[u64; 2]]) {
        if groups.is_empty() {
            return;
        }
        self.halves.resize(self.halves.len().max(halves.len()), [0; 2]);
        for (sums, counts) in self.halves.iter_mut().zip(halves) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let mean =
            |of: &dyn Fn(&Cells) -> f64| groups.iter().map(of).sum::<f64>() / groups.len() as f64;
        let covariate = self.settings.covariate;
        let adjusted =
            |cells: &Cells| covariate.adjusted(cells.test - cells.control, cells.forecast);
        self.total.push(mean(&|cells| adjusted(cells).0));
        self.naive.push(mean(&|cells| cells.halves[1] - cells.halves[0]));
        self.neighbours.push(mean(&|cells| cells.halves[0] - cells.control));
        let mut stopped = None;
        for cells in groups {
            // The factor is known before the triple, so it only changes the stake.
            let (difference, factor) = adjusted(cells);
            self.evidence.push(difference / factor);
            self.bets.push(difference / factor);
            let harm = self.settings.guards.push(&cells.worse);
            stopped = stopped.or(harm);
        }
        for cells in groups {
            if let Some(forecast) = cells.forecast {
                self.settings.covariate.learn(cells.test - cells.control, forecast);
            }
        }
        if self.ended.is_none() {
            let lost = groups.iter().any(|cells| cells.lost > LOST_MAX);
            let verdict = self.judge(lost, stopped);
            self.ended = verdict.map(|verdict| (verdict, self.total.len()));
        }
    }

    /// Checks lost records and unequal halves first, since they invalidate everything else.
    fn judge(&self, lost: bool, stopped: Option<Guarded>) -> Option<Verdict> {
        if lost {
            return Some(Verdict::RecordsLost);
        }
        if self.halves.iter().any(|halves| sample_ratio_is_off(*halves, self.halves.len())) {
            return Some(Verdict::UnlikeHalves);
        }
        if let Some(harm) = stopped {
            return Some(Verdict::Stopped(harm));
        }
        let (value, more) = self.evidence.largest();
        // What is faster for leaving transfers unfinished is not: the guard decides then.
        let is_sure = value >= self.threshold() && !(more && self.leaves_more_unfinished());
        is_sure.then_some(if more { Verdict::More } else { Verdict::Less })
    }

    /// Whether B has so far left more transfers unfinished than its guard allows, on average.
    fn leaves_more_unfinished(&self) -> bool {
        let mut guards = self.settings.guards.each();
        let guard = guards.find(|(harm, _)| *harm == Guarded::Unfinished).map(|(_, guard)| guard);
        guard.is_some_and(|guard| guard.mean().is_some_and(|mean| mean > guard.margin()))
    }

    /// E-value from which an effect is certain, for both directions together.
    pub fn threshold(&self) -> f64 {
        2.0 * self.settings.comparisons.max(1) as f64 / self.settings.level
    }

    /// The verdict so far, and the number of triples after which it was reached; one that is not
    /// final counts all triples.
    pub fn verdict(&self) -> (Verdict, usize) {
        let interval = self.total().and_then(|effect| effect.interval);
        let so_far = match interval {
            _ if self.bets.len() < self.triples_min() => Verdict::TooFew,
            Some((low, high)) if -ALIKE <= low && high <= ALIKE => Verdict::Alike,
            _ => Verdict::Undecided,
        };
        self.ended.unwrap_or((so_far, self.total.len()))
    }

    /// Whether further triples cannot change the verdict.
    pub fn is_final(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the least number of differences that can show any effect.
    pub fn triples_min(&self) -> usize {
        self.threshold().log2().ceil() as usize
    }

    /// Returns the smallest effect, of the logarithm, that the planned triples show with a
    /// probability of 0.8 or more, if they vary as blocks under A do; see
    /// [`smallest_effect`](crate::smallest_effect).
    pub fn smallest_planned(&self) -> Option<f64> {
        let scale = self.settings.scale;
        smallest_effect(scale, scale, self.planned_differences(), self.threshold())
    }

    /// Returns the smallest harm that stops the planned experiment with a probability of 0.8 or
    /// more; see [`Guard::smallest_in`].
    pub fn smallest_harm_planned(&self, guard: &Guard) -> Option<f64> {
        guard.smallest_in(self.planned_differences())
    }

    /// Number of differences in the planned triples: each group contributes one.
    fn planned_differences(&self) -> usize {
        self.settings.planned * self.settings.groups.max(1)
    }

    /// Returns the same as [`smallest_planned`](Trial::smallest_planned) for the triples so far, by
    /// their own variation.
    pub fn smallest_so_far(&self) -> Option<f64> {
        let deviation = mean_and_deviation(&self.bets).1;
        let count = self.bets.len();
        smallest_effect(self.settings.scale, deviation, count, self.threshold())
    }

    /// Number of planned triples.
    pub fn planned(&self) -> usize {
        self.settings.planned
    }

    /// Regression on forecasts; its [`Covariate::remains`] says whether it is used.
    pub fn covariate(&self) -> &Covariate {
        &self.settings.covariate
    }

    /// The guards, with what they have seen.
    pub fn guards(&self) -> &Guards {
        &self.settings.guards
    }

    /// The larger of the two e-values.
    pub fn evidence(&self) -> f64 {
        self.evidence.largest().0
    }

    /// Effect of B if all connections use it; `None` before the first triple.
    pub fn total(&self) -> Option<Effect> {
        self.effect(&self.total)
    }

    /// Effect of B according to a split test.
    pub fn naive(&self) -> Option<Effect> {
        self.effect(&self.naive)
    }

    /// Effect of B on connections that keep A beside it.
    pub fn neighbours(&self) -> Option<Effect> {
        self.effect(&self.neighbours)
    }

    fn effect(&self, values: &[f64]) -> Option<Effect> {
        let TrialSettings { level, comparisons, planned, .. } = self.settings;
        let level = level / comparisons.max(1) as f64;
        let interval = ConfidenceSequence::new(level, planned).interval(values);
        let mean = mean_and_deviation(values).0;
        (!values.is_empty()).then_some(Effect { mean, interval })
    }
}
