//! An experiment, triple by triple.

use crate::confidence::{ConfidenceSequence, mean_and_deviation};
use crate::design::sample_ratio_is_off;
use crate::evidence::Evidence;
use crate::guard::Guard;

/// Records lost on the way, above which nothing is decided: those of busy times
/// are lost first.
const LOST_MAX: f64 = 0.01;

/// How a trial is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialSettings {
    /// Probability to see an effect where there is none.
    pub level: f64,
    /// Trials that are judged at once, of other classes of traffic or other
    /// candidates: each has to be so much surer.
    pub comparisons: usize,
    /// Triples planned.
    pub planned: usize,
    /// Standard deviation of a difference under A and A; see [`Evidence::new`].
    pub scale: f64,
    /// How much worse than A the second measure may be, and its scale, as of
    /// [`Guard::new`]; none: it is not guarded.
    pub guard: Option<(f64, f64)>,
}

/// What the blocks of one group in one triple came to: means of what is
/// measured over the connections of a block that count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cells {
    /// With all under A.
    pub control: f64,
    /// With all under B.
    pub test: f64,
    /// Half and half: those under A and those under B.
    pub halves: [f64; 2],
    /// How many these are.
    pub half_counts: [u64; 2],
    /// By how much a guarded measure was worse under B than under A.
    pub worse: f64,
    /// Share of records that were lost in one of the blocks, at most.
    pub lost: f64,
}

/// What is to be made of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// B is more than A.
    More,
    /// B is less than A.
    Less,
    /// Nothing that could not be chance.
    NoEffect,
    /// A guard ended it.
    Stopped,
    /// It proves nothing: too many records were lost.
    RecordsLost,
    /// It proves nothing: halves of unlike size, so not the draw alone decided
    /// who got what.
    UnlikeHalves,
}

/// A mean over triples, with its interval where there are enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The mean.
    pub mean: f64,
    /// It covers the truth with the trial's level, whenever it is looked at.
    pub interval: Option<(f64, f64)>,
}

/// An experiment with one measure.
#[derive(Clone, Debug)]
pub struct Trial {
    settings: TrialSettings,
    evidence: Evidence,
    guard: Option<Guard>,
    /// Means over the groups of each triple: B less A, B's half less A's, and A's
    /// half less A.
    total: Vec<f64>,
    naive: Vec<f64>,
    neighbours: Vec<f64>,
    halves: [u64; 2],
    ended: Option<(Verdict, usize)>,
}

impl Trial {
    /// Before its first triple.
    pub fn new(settings: TrialSettings) -> Trial {
        let guard = settings.guard.map(|(margin, scale)| Guard::new(margin, scale));
        Trial {
            settings,
            evidence: Evidence::new(settings.scale),
            guard,
            total: Vec::new(),
            naive: Vec::new(),
            neighbours: Vec::new(),
            halves: [0; 2],
            ended: None,
        }
    }

    /// Takes in a triple, a [`Cells`] for each group. Once a trial has ended,
    /// what follows still counts towards its effects, not towards its verdict.
    pub fn push(&mut self, groups: &[Cells]) {
        if groups.is_empty() {
            return;
        }
        let mean =
            |of: &dyn Fn(&Cells) -> f64| groups.iter().map(of).sum::<f64>() / groups.len() as f64;
        self.total.push(mean(&|cells| cells.test - cells.control));
        self.naive.push(mean(&|cells| cells.halves[1] - cells.halves[0]));
        self.neighbours.push(mean(&|cells| cells.halves[0] - cells.control));
        let mut stopped = false;
        for cells in groups {
            self.evidence.push(cells.test - cells.control);
            stopped |= self.guard.as_mut().is_some_and(|guard| guard.push(cells.worse));
            for (sum, count) in self.halves.iter_mut().zip(cells.half_counts) {
                *sum += count;
            }
        }
        if self.ended.is_none() {
            let lost = groups.iter().any(|cells| cells.lost > LOST_MAX);
            let verdict = self.judge(lost, stopped);
            self.ended = verdict.map(|verdict| (verdict, self.total.len()));
        }
    }

    /// Lost records and unlike halves first: they make all else worthless.
    fn judge(&self, lost: bool, stopped: bool) -> Option<Verdict> {
        if lost {
            return Some(Verdict::RecordsLost);
        }
        if sample_ratio_is_off(self.halves) {
            return Some(Verdict::UnlikeHalves);
        }
        if stopped {
            return Some(Verdict::Stopped);
        }
        let (value, more) = self.evidence.largest();
        let sure = value >= self.threshold();
        sure.then_some(if more { Verdict::More } else { Verdict::Less })
    }

    /// E-value from which on there is an effect: both directions are looked at.
    pub fn threshold(&self) -> f64 {
        2.0 * self.settings.comparisons.max(1) as f64 / self.settings.level
    }

    /// The verdict so far, and after how many triples it came; that there is no
    /// effect is said after all of them.
    pub fn verdict(&self) -> (Verdict, usize) {
        self.ended.unwrap_or((Verdict::NoEffect, self.total.len()))
    }

    /// The larger of the two e-values.
    pub fn evidence(&self) -> f64 {
        self.evidence.largest().0
    }

    /// What B does where all use it; none before the first triple.
    pub fn total(&self) -> Option<Effect> {
        self.effect(&self.total)
    }

    /// What a split of the connections says that B does.
    pub fn naive(&self) -> Option<Effect> {
        self.effect(&self.naive)
    }

    /// What it costs those that keep A beside it.
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
