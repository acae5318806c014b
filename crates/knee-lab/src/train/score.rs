//! Score of a table: all scenarios run with it.

use super::{REMYCC, Train};
use crate::error::Error;
use crate::ground::Simulator;
use crate::job::{Job, Run};
use crate::lab::Lab;
use knee_cc::Selection;
use knee_cc::remycc::{RuleTable, Tally, with_table};
use knee_scenario::{Algorithms, Scenario};
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the controller that runs a candidate table.
const TRIED: &str = "remycc-in-training";
/// RTT assumed for a flow without RTT samples, seconds; its goodput counts as 1 bit/s.
const NO_RTT_S: f64 = 10.0;

/// The controller in place of RemyCC.
#[derive(Clone, Debug)]
pub(super) enum Tried {
    /// RemyCC with this table.
    Table(Arc<RuleTable>),
    /// Another controller.
    Named(&'static str),
}

/// Result of a candidate.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub score: f64,
    /// Usage of the table.
    pub tally: Tally,
}

/// Runs all scenarios of `train` with each of `tried`, in parallel. Returns `None` if it was
/// stopped.
pub(super) fn scores(
    lab: &Lab,
    train: &Train,
    tried: &[Tried],
) -> Result<Option<Vec<Scored>>, Error> {
    let mut grounds = Vec::new();
    let mut scenarios = Vec::new();
    let mut tallies = Vec::new();
    for who in tried {
        for scenario in &train.scenarios {
            let (ground, name, tally) = stage(who)?;
            grounds.push(ground);
            scenarios.push(in_place(scenario, name));
            tallies.push(tally);
        }
    }
    let jobs = scenarios.iter().zip(&grounds).map(|(scenario, ground)| Job::new(scenario, ground));
    let jobs: Vec<Job<'_>> = jobs.collect();
    let per_table = train.scenarios.len();
    let worth = |index: usize, run: Run| {
        Ok(worth(&train.scenarios[index % per_table], &run, train.settings.delay_weight))
    };
    let worths = lab.run_all(&jobs, worth)?;
    if lab.is_stopped() {
        return Ok(None);
    }
    let worths: Vec<f64> = worths.into_iter().flatten().collect();
    let groups = worths.chunks(per_table).zip(tallies.chunks(per_table));
    Ok(Some(groups.map(|(worths, tallies)| together(worths, tallies)).collect()))
}

/// A simulator with the controller to try, its name, and the tally of its rules.
fn stage(who: &Tried) -> Result<(Simulator, &'static str, Arc<Mutex<Tally>>), Error> {
    let table = match who {
        Tried::Named(name) => return Ok((Simulator::default(), name, Arc::default())),
        Tried::Table(table) => table.clone(),
    };
    let tally = Arc::new(Mutex::new(Tally::new(&table)));
    let counted = tally.clone();
    let mut algorithms = Algorithms::built_in().clone();
    let factory = move |_: &knee_cc::Settings, init| {
        Ok(with_table(table.clone(), Some(counted.clone()), &init))
    };
    let added = algorithms.controllers.register(TRIED, factory);
    added.map_err(|error| Error::Defect(error.to_string()))?;
    Ok((Simulator::with_algorithms(Arc::new(algorithms)), TRIED, tally))
}

fn in_place(scenario: &Scenario, name: &str) -> Scenario {
    let mut scenario = scenario.clone();
    for flow in scenario.flows.iter_mut().filter(|flow| flow.controller.name == REMYCC) {
        flow.controller = Selection::named(name);
    }
    scenario
}

/// Mean of `ln(goodput) - w ln(RTT)` over the flows that are trained (section 3.2
/// of the paper, with alpha = beta = 1).
fn worth(scenario: &Scenario, run: &Run, delay_weight: f64) -> f64 {
    let flows = scenario.flows.iter().zip(&run.summary.flows);
    let trained = flows.filter(|(flow, _)| flow.controller.name == REMYCC);
    let each = trained.map(|(_, flow)| {
        let rtt_s = flow.rtt_us.as_ref().map_or(NO_RTT_S, |rtt| rtt.mean / 1e6);
        flow.goodput_bps.unwrap_or(0.0).max(1.0).ln() - delay_weight * rtt_s.max(1e-6).ln()
    });
    mean(&each.collect::<Vec<f64>>())
}

fn together(worths: &[f64], tallies: &[Arc<Mutex<Tally>>]) -> Scored {
    let mut all: Option<Tally> = None;
    for tally in tallies {
        let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut all {
            Some(all) => all.add(&tally),
            None => all = Some(tally.clone()),
        }
    }
    Scored { score: mean(worths), tally: all.unwrap_or_default() }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
