//! Search for a better table: hill climbing over actions, and splits.

use super::score::{Scored, Tried, scores};
use super::{Train, TrainProgress};
use crate::error::Error;
use crate::lab::Lab;
use knee_cc::remycc::{Action, Dimension, Memory, RuleTable, Tally};
use std::sync::Arc;

/// Initial action: one more segment per acknowledged segment, as in slow start, and 1 ms between
/// segments.
const FIRST: Action = Action { multiple: 1.0, increment: 1.0, intersend_ms: 1.0 };
/// Steps of the action's parts: the multiple's distance from one, which decides where the window
/// settles, the increment, and a factor of the spacing.
const MULTIPLE_STEP: f64 = 0.02;
const INCREMENT_STEP: f64 = 0.5;
const INTERSEND_FACTOR: f64 = 1.3;
/// Scales of these steps; the next applies when no neighbour is better.
const SCALES: [f64; 3] = [2.0, 1.0, 0.3];
/// Maximum steps of a rule in one round.
const STEPS_MAX: usize = 8;
/// Minimum gain that counts as an improvement: a thousandth of the power.
const GAIN_MIN: f64 = 1e-3;
/// Decimal places (10^4) to which values are rounded, to keep files readable.
const DIGITS: f64 = 1e4;

/// State of the search: the best table so far.
pub(super) struct Search<'t> {
    lab: &'t Lab,
    train: &'t Train,
    pub table: RuleTable,
    pub score: f64,
    tally: Tally,
    pub runs: usize,
}

/// The search was stopped.
struct Stopped;

impl<'t> Search<'t> {
    pub(super) fn new(lab: &'t Lab, train: &'t Train) -> Search<'t> {
        let table = RuleTable::single(FIRST);
        let tally = Tally::new(&table);
        Search { lab, train, table, score: f64::NEG_INFINITY, tally, runs: 0 }
    }

    /// Score of CUBIC.
    pub(super) fn baseline(&mut self) -> Result<Option<f64>, Error> {
        let scored = scores(self.lab, self.train, &[Tried::Named("cubic")])?;
        Ok(scored.and_then(|scored| scored.first().map(|one| one.score)))
    }

    pub(super) fn run(&mut self, rounds: u32, tell: &dyn Fn(&TrainProgress)) -> Result<(), Error> {
        let first = self.table.clone();
        if self.try_all(vec![first])?.is_err() {
            return Ok(());
        }
        for round in 1..=rounds {
            if round > 1 && self.split()?.is_err() || self.improve_all()?.is_err() {
                return Ok(());
            }
            let (rules, score) = (self.table.rules().count(), self.score);
            tell(&TrainProgress { round, rules, score, runs: self.runs });
        }
        Ok(())
    }

    /// Runs tables and keeps the best if it improves on the current one.
    fn try_all(&mut self, tables: Vec<RuleTable>) -> Result<Result<bool, Stopped>, Error> {
        let tables: Vec<Arc<RuleTable>> = tables.into_iter().map(Arc::new).collect();
        let tried: Vec<Tried> = tables.iter().cloned().map(Tried::Table).collect();
        let Some(scored) = scores(self.lab, self.train, &tried)? else {
            return Ok(Err(Stopped));
        };
        self.runs += tables.len() * self.train.scenarios.len();
        let mut best: Option<(usize, &Scored)> = None;
        for (number, one) in scored.iter().enumerate() {
            if best.is_none_or(|(_, known)| one.score > known.score) {
                best = Some((number, one));
            }
        }
        let Some((number, best)) = best.filter(|(_, one)| one.score > self.score + GAIN_MIN) else {
            return Ok(Ok(false));
        };
        self.table = (*tables[number]).clone();
        (self.score, self.tally) = (best.score, best.tally.clone());
        Ok(Ok(true))
    }

    /// Improves every used rule, the most used first.
    fn improve_all(&mut self) -> Result<Result<(), Stopped>, Error> {
        for rule in self.by_use() {
            if self.improve(rule)?.is_err() {
                return Ok(Err(Stopped));
            }
        }
        Ok(Ok(()))
    }

    fn by_use(&self) -> Vec<usize> {
        let used = |rule: &usize| self.tally.uses[*rule] > 0;
        let mut rules: Vec<usize> = self.table.rules().filter(used).collect();
        rules.sort_by_key(|rule| (std::cmp::Reverse(self.tally.uses[*rule]), *rule));
        rules
    }

    /// Climbs from a rule's action until no neighbour is better.
    fn improve(&mut self, rule: usize) -> Result<Result<(), Stopped>, Error> {
        let mut scales = SCALES.into_iter();
        let mut scale = scales.next();
        for _ in 0..STEPS_MAX {
            let Some(step) = scale else { break };
            let action = self.table.action(rule);
            let around = neighbours(action, step);
            let tables = around.into_iter().map(|action| self.table.with_action(rule, action));
            match self.try_all(tables.collect())? {
                Err(stopped) => return Ok(Err(stopped)),
                Ok(true) => {}
                Ok(false) => scale = scales.next(),
            }
        }
        Ok(Ok(()))
    }

    /// Splits the most used rule at the median of one memory component: the one where a different
    /// action on one side gains most; without any gain, the RTT ratio.
    fn split(&mut self) -> Result<Result<(), Stopped>, Error> {
        let Some(rule) = self.by_use().first().copied() else { return Ok(Ok(())) };
        let memories = self.tally.memories[rule].clone();
        let action = self.table.action(rule);
        let mut tables = Vec::new();
        for dimension in Dimension::ALL {
            let Some(value) = median(&memories, dimension) else { continue };
            let split = self.table.split(rule, dimension, value);
            for side in [rule + 1, rule + 2] {
                let around = neighbours(action, SCALES[0]);
                tables.extend(around.into_iter().map(|action| split.with_action(side, action)));
            }
        }
        match self.try_all(tables)? {
            Err(stopped) => return Ok(Err(stopped)),
            Ok(true) => return Ok(Ok(())),
            Ok(false) => {}
        }
        if let Some(value) = median(&memories, Dimension::RttRatio) {
            return self.take(self.table.split(rule, Dimension::RttRatio, value));
        }
        Ok(Ok(()))
    }

    /// Takes a table that decides as the current one does, and runs it to count the use of its
    /// rules. The current one stays if that is stopped.
    fn take(&mut self, table: RuleTable) -> Result<Result<(), Stopped>, Error> {
        let score = std::mem::replace(&mut self.score, f64::NEG_INFINITY);
        let taken = self.try_all(vec![table])?;
        if !matches!(taken, Ok(true)) {
            self.score = score;
        }
        Ok(taken.map(|_| ()))
    }
}

/// Neighbours of an action: each part alone, and each pair of parts.
fn neighbours(action: Action, scale: f64) -> Vec<Action> {
    let moved = |multiple: f64, increment: f64, intersend: f64| {
        let rounded = |value: f64| (value * DIGITS).round() / DIGITS;
        Action {
            multiple: rounded(action.multiple + multiple * MULTIPLE_STEP * scale),
            increment: rounded(action.increment + increment * INCREMENT_STEP * scale),
            intersend_ms: rounded(action.intersend_ms * INTERSEND_FACTOR.powf(intersend * scale)),
        }
        .clamped()
    };
    let mut all: Vec<Action> = Vec::new();
    for side in [-1.0, 1.0] {
        all.extend([moved(side, 0.0, 0.0), moved(0.0, side, 0.0), moved(0.0, 0.0, side)]);
        // Pairs, among them a larger and a smaller window with the same steady state.
        all.extend([moved(side, -side, 0.0), moved(side, 0.0, side), moved(0.0, side, side)]);
    }
    let mut different: Vec<Action> = Vec::new();
    for one in all {
        if one != action && !different.contains(&one) {
            different.push(one);
        }
    }
    different
}

/// The median of a memory component; `None` if all values are on one side of it.
fn median(memories: &[Memory], dimension: Dimension) -> Option<f64> {
    let mut values: Vec<f64> = memories.iter().map(|memory| dimension.of(memory)).collect();
    values.sort_by(f64::total_cmp);
    let middle = *values.get(values.len() / 2)?;
    let rounded = (middle * DIGITS).round() / DIGITS;
    (values[0] < rounded && rounded <= *values.last()?).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ScenarioText;
    use crate::train::TrainSettings;

    const ONE: &str = include_str!("../../../knee-cc/tables/one.toml");

    /// A stop while the halves of a split rule are counted.
    #[test]
    fn a_stop_keeps_table_and_score() {
        let text = ScenarioText::new("one.toml", ONE);
        let train = Train::new(&[text], TrainSettings::default()).unwrap();
        let lab = Lab::default();
        let mut search = Search::new(&lab, &train);
        search.score = 12.5;
        let table = search.table.clone();
        lab.handle().stop();
        let split = table.split(0, Dimension::RttRatio, 1.5);
        assert!(search.take(split).unwrap().is_err());
        assert_eq!((search.table, search.score), (table, 12.5));
    }
}
