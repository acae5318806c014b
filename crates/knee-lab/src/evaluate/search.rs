//! Worst-case search: for each metric, random scenarios within bounds, then an evolutionary search
//! around the worst of them, then the simplest scenario that is still as bad.

use super::criteria::{Searched, label, text};
use super::plan::{Evaluate, STANDARDS};
use super::space::{Point, Space};
use super::value_of;
use crate::directory::cannot_write;
use crate::error::Error;
use crate::job::{Job, execute};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::text::ScenarioText;
use knee_record::{Better, Control, Evaluation, INPUTS, Unit, WorstFound, write_text};
use knee_scenario::Scenario;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Default number of scenarios for each metric.
pub const SEARCH_SCENARIOS: usize = 48;
/// Size of a batch. A third of the scenarios are random, the rest are generated in batches.
const BATCH: usize = 8;
/// Number of worst scenarios that generate children.
const PARENTS: usize = 3;
/// Rounds of simplification, and scenarios tried in each.
const ROUNDS: usize = 8;
const SIMPLER: usize = 6;
/// Fraction of the worst harm (a logarithm) that a simpler scenario must keep.
const AS_BAD: f64 = 0.97;

/// Result of a scenario.
#[derive(Clone, Debug)]
struct Tried {
    candidate: f64,
    standards: Vec<f64>,
    /// Logarithm of the factor by which the candidate is worse than the standards, geometric mean.
    harm: f64,
}

/// A metric under search.
struct Search<'e> {
    metric: &'e Searched,
    space: Space,
    rng: ChaCha8Rng,
    /// Results by point; `None` if the point could not be tried.
    tried: BTreeMap<Point, Option<Tried>>,
    /// Points in the order of their evaluation.
    asked: Vec<Point>,
    /// The point reported at the end.
    best: Option<Point>,
}

impl Lab {
    /// Searches for the worst case of each metric and writes its scenario into `directory`. Returns
    /// nothing after a stop.
    pub(super) fn search(
        &self,
        evaluate: &Evaluate<'_>,
        scenarios: usize,
        evaluation: &Evaluation,
        directory: &Path,
    ) -> Result<Vec<WorstFound>, Error> {
        let bounds = &evaluate.bounds;
        let numbered = bounds.metrics.iter().zip(1..);
        let mut searches: Vec<Search<'_>> = numbered
            .map(|(metric, number)| Search {
                metric,
                space: Space::new(&bounds.knobs, &metric.set),
                rng: ChaCha8Rng::seed_from_u64(number),
                tried: BTreeMap::new(),
                asked: Vec::new(),
                best: None,
            })
            .collect();
        let random = scenarios.div_ceil(3);
        self.try_all(evaluate, &mut searches, |search| {
            (0..random).map(|_| search.space.draw(&mut search.rng)).collect()
        })?;
        for done in (random..scenarios).step_by(BATCH) {
            let batch = BATCH.min(scenarios - done);
            self.try_all(evaluate, &mut searches, |search| search.children(batch))?;
        }
        searches.iter_mut().for_each(|search| search.best = search.worst().first().cloned());
        for _ in 0..ROUNDS {
            self.try_all(evaluate, &mut searches, |search| search.simpler())?;
            searches.iter_mut().for_each(Search::simplify);
        }
        if self.is_stopped() {
            return Ok(Vec::new());
        }
        let folder = directory.join(INPUTS);
        fs::create_dir_all(&folder).map_err(|error| cannot_write(&folder, error))?;
        let kept = searches.iter().map(|search| search.keep(evaluate, evaluation, directory));
        kept.collect()
    }

    /// Runs the points that each search requests and has not tried yet.
    fn try_all<'e>(
        &self,
        evaluate: &Evaluate<'_>,
        searches: &mut [Search<'e>],
        mut ask: impl FnMut(&mut Search<'e>) -> Vec<Point>,
    ) -> Result<(), Error> {
        let mut wanted: Vec<(usize, Point)> = Vec::new();
        for (at, search) in searches.iter_mut().enumerate() {
            for point in ask(search) {
                if !search.tried.contains_key(&point) && !wanted.contains(&(at, point.clone())) {
                    wanted.push((at, point));
                }
            }
        }
        let each = 1 + STANDARDS.len();
        let all = wanted.iter().flat_map(|(at, point)| {
            let search = &searches[*at];
            // An unknown candidate has no scenario, and so no value.
            (0..each).map(move |who| search.scenario(evaluate, point, who).ok())
        });
        let scenarios: Vec<Option<Scenario>> = all.collect();
        let nothing = Load { pace: evaluate.on.pace(), duration_ns: 1, setup_s: 0.0, weight: 0.0 };
        let load = |one: &Option<Scenario>| {
            one.as_ref().map_or(nothing, |scenario| Load::of(scenario, evaluate.on))
        };
        let loads: Vec<Load> = scenarios.iter().map(load).collect();
        let claims: Vec<&str> =
            wanted.iter().map(|(at, _)| searches[*at].metric.claim.as_str()).collect();
        let values = self.side_by_side(&loads, costliest_first(&loads), |number, control| {
            let scenario = scenarios[number].as_ref();
            Ok(scenario.and_then(|one| run(evaluate, one, claims[number / each], control)))
        })?;
        let mut values = values.into_iter();
        for (at, point) in wanted {
            let four: Vec<Option<f64>> = values.by_ref().take(each).collect();
            let tried = searches[at].judge(&four);
            searches[at].asked.push(point.clone());
            searches[at].tried.insert(point, tried);
        }
        Ok(())
    }
}

/// Runs one scenario; `None` if it failed, was stopped, or has no such value.
fn run(
    evaluate: &Evaluate<'_>,
    scenario: &Scenario,
    claim: &str,
    control: &Control,
) -> Option<f64> {
    evaluate.on.check(scenario).ok()?;
    let ended = execute(&Job::new(scenario, evaluate.on), control).ok()?;
    let whole = !ended.records.interrupted;
    whole.then(|| value_of(&ended.summary, claim, scenario).ok()).flatten()
}

/// The unit of a metric's claim.
fn unit(metric: &Searched) -> Result<Unit, Error> {
    let scenario = ScenarioText::new(&metric.file, &text(&metric.file)?).scenario(&[])?;
    let claim = scenario.claims.iter().find(|claim| claim.id == metric.claim);
    let claim =
        claim.ok_or_else(|| Error::Defect(format!("{}: there is no such claim", metric.id)))?;
    Ok(Unit::of(&claim.measure))
}

impl Search<'_> {
    fn scenario(
        &self,
        evaluate: &Evaluate<'_>,
        point: &Point,
        controller: usize,
    ) -> Result<Scenario, Error> {
        let set = self.space.fill(&self.metric.set, point);
        let candidate = ["candidate".to_string()];
        evaluate.set_up(&self.metric.file, &set, &candidate, controller, None)
    }

    /// Rates the controllers' values; `None` if one is missing.
    fn judge(&self, values: &[Option<f64>]) -> Option<Tried> {
        let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
        let (candidate, standards) = values.split_first()?;
        let floor = self.metric.floor;
        let log = |other: &f64| ((candidate + floor) / (other + floor)).ln();
        let mean = standards.iter().map(log).sum::<f64>() / standards.len() as f64;
        let harm = self.turned(mean);
        let tried = Tried { candidate: *candidate, standards: standards.to_vec(), harm };
        harm.is_finite().then_some(tried)
    }

    /// Converts the logarithm of a ratio to harm, and back.
    fn turned(&self, log: f64) -> f64 {
        if self.metric.better == Better::More { -log } else { log }
    }

    fn harm(&self, point: &Point) -> Option<f64> {
        Some(self.tried.get(point)?.as_ref()?.harm)
    }

    /// All points with a result, worst first; ties keep their order.
    fn worst(&self) -> Vec<Point> {
        let mut found: Vec<(f64, &Point)> =
            self.asked.iter().filter_map(|point| Some((self.harm(point)?, point))).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().map(|(_, point)| point.clone()).collect()
    }

    fn children(&mut self, count: usize) -> Vec<Point> {
        let parents: Vec<Point> = self.worst().into_iter().take(PARENTS).collect();
        let child = |number: usize| match parents.get(number % parents.len().max(1)) {
            Some(parent) => self.space.near(parent, &mut self.rng),
            None => self.space.draw(&mut self.rng),
        };
        (0..count).map(child).collect()
    }

    fn simpler(&self) -> Vec<Point> {
        let simpler = self.best.as_ref().map(|best| self.space.simpler(best));
        simpler.into_iter().flatten().take(SIMPLER).collect()
    }

    /// Replaces the best point with the simplest one that is still as bad as the worst.
    fn simplify(&mut self) {
        let Some(most) = self.worst().first().and_then(|worst| self.harm(worst)) else { return };
        let enough = if most > 0.0 { most * AS_BAD } else { most };
        let bad = |point: &Point| self.harm(point).is_some_and(|harm| harm >= enough);
        if let Some(simpler) = self.simpler().into_iter().find(bad) {
            self.best = Some(simpler);
        }
    }

    /// The worst ratio among the evaluation's own cases of the same lines.
    fn of_the_list(&self, evaluation: &Evaluation) -> Option<f64> {
        let like = |section: &String| self.metric.like.contains(section);
        let lines = evaluation
            .lines
            .iter()
            .filter(|one| like(&one.line.section) && one.line.claim == self.metric.claim);
        let ratios = lines.filter_map(|line| Some(line.worst.as_ref()?.ratio));
        ratios.max_by(|a, b| self.turned(a.ln()).total_cmp(&self.turned(b.ln())))
    }

    fn keep(
        &self,
        evaluate: &Evaluate<'_>,
        evaluation: &Evaluation,
        directory: &Path,
    ) -> Result<WorstFound, Error> {
        let Searched { id, title, claim, better, .. } = self.metric;
        let best = self.best.as_ref();
        let tried = best.and_then(|best| self.tried.get(best)?.as_ref());
        let (mut scenario, mut case) = (String::new(), String::new());
        if let Some(best) = best {
            scenario = format!("{INPUTS}/worst-{id}.toml");
            let kept = self.scenario(evaluate, best, 0)?;
            case = label(&kept.name, &self.space.fill(&self.metric.set, best));
            write_text(&directory.join(&scenario), &kept.resolved)?;
        }
        let fixed_ratio = self.of_the_list(evaluation);
        let ratio = tried.map(|tried| self.turned(tried.harm).exp());
        let as_bad = ratio
            .zip(fixed_ratio)
            .map(|(ratio, fixed)| self.turned(ratio.ln()) >= self.turned(fixed.ln()));
        Ok(WorstFound {
            id: id.clone(),
            title: title.clone(),
            claim: claim.clone(),
            unit: unit(self.metric)?,
            better: *better,
            tried: self.asked.len(),
            case,
            candidate: tried.map(|tried| tried.candidate),
            standards: tried.map_or_else(Vec::new, |tried| tried.standards.clone()),
            ratio,
            fixed_ratio,
            as_bad_as_fixed: as_bad,
            scenario,
        })
    }
}
