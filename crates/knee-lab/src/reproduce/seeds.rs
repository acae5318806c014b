//! Claims over further seeds. They are evaluated as soon as the runs of a seed have ended, which are
//! then forgotten: the memory needed does not grow with the number of seeds.

use super::{Planned, Reproduction, concerns};
use crate::ground::Pace;
use crate::job::Run;
use knee_record::{ClaimOutcome, NamedRun, RunView, evaluate_in_study};
use knee_scenario::{Claim, Scenario};
use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Mutex, PoisonError};

/// Outcomes of claims with each further seed, in the order of the seeds, by the number of the claim
/// among those of its study that are run.
pub(super) type Outcomes = BTreeMap<usize, Vec<ClaimOutcome>>;

/// A run with another seed.
pub(super) type Seeded<'p, 's> = (&'p Planned<'s>, &'s Scenario);

/// Returns a study's runs with further seeds, for each of these those that have it.
pub(super) fn of<'p, 's>(plan: &'p [Planned<'s>]) -> impl Iterator<Item = Vec<Seeded<'p, 's>>> {
    let most = plan.iter().map(|planned| planned.further_seeds().len()).max().unwrap_or(0);
    (0..most).map(move |seed| {
        let with =
            plan.iter().filter_map(|planned| Some((planned, planned.further_seeds().get(seed)?)));
        with.collect()
    })
}

/// Claims of runs with further seeds while these runs end, in any order.
pub(super) struct Further<'p, 's> {
    seeds: Vec<Seed<'p, 's>>,
    /// For each run its seed's place in `seeds`, and its own place there.
    places: Vec<(usize, usize)>,
}

/// Runs of one study with one further seed.
struct Seed<'p, 's> {
    study: usize,
    runs: Vec<&'p Planned<'s>>,
    /// Those claims of the study about these runs alone, with their numbers.
    claims: Vec<(usize, &'s Claim)>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order of the seed's runs.
    ended: BTreeMap<usize, Run>,
    /// In the order of its claims; empty until all runs have ended.
    outcomes: Vec<ClaimOutcome>,
}

impl<'p, 's> Further<'p, 's> {
    /// Plans those of [`Reproduction::jobs`].
    pub fn new(what: &'p Reproduction<'s>) -> Further<'p, 's> {
        let (mut seeds, mut places) = (Vec::new(), Vec::new());
        for (study, plan) in what.plans.iter().enumerate() {
            let claims = what.scope.claims(&what.studies[study].study).enumerate();
            let claims: Vec<(usize, &Claim, usize)> =
                claims.map(|(number, claim)| (number, claim, seeds_of(claim, plan))).collect();
            for (seed, with) in of(plan).enumerate() {
                places.extend((0..with.len()).map(|place| (seeds.len(), place)));
                let runs: Vec<&Planned<'s>> =
                    with.into_iter().map(|(planned, _)| planned).collect();
                let claims = claims.iter().filter(|(.., seeds)| *seeds > seed);
                let claims = claims.map(|(number, claim, _)| (*number, *claim)).collect();
                seeds.push(Seed { study, runs, claims, state: Mutex::default() });
            }
        }
        Further { seeds, places }
    }

    /// Takes a run that has ended, and evaluates the claims of its seed if it is the last.
    pub fn keep(&self, number: usize, run: Run) {
        let (seed, place) = self.places[number];
        let seed = &self.seeds[seed];
        let ended = {
            let mut state = seed.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ended.insert(place, run);
            if state.ended.len() < seed.runs.len() {
                return;
            }
            take(&mut state.ended)
        };
        let outcomes = seed.evaluate(&ended);
        seed.state.lock().unwrap_or_else(PoisonError::into_inner).outcomes = outcomes;
    }

    /// Returns the outcomes of each study once all runs have ended.
    pub fn outcomes(self, studies: usize) -> Vec<Outcomes> {
        let mut all = vec![Outcomes::new(); studies];
        for Seed { study, claims, state, .. } in self.seeds {
            let outcomes = state.into_inner().unwrap_or_else(PoisonError::into_inner).outcomes;
            for ((number, _), outcome) in claims.into_iter().zip(outcomes) {
                all[study].entry(number).or_default().push(outcome);
            }
        }
        all
    }
}

impl Seed<'_, '_> {
    fn evaluate(&self, ended: &BTreeMap<usize, Run>) -> Vec<ClaimOutcome> {
        let views: Vec<RunView<'_>> = self
            .runs
            .iter()
            .zip(ended.values())
            .map(|(p, run)| run.view(&p.run.scenario))
            .collect();
        let named: Vec<NamedRun<'_, '_>> = self
            .runs
            .iter()
            .zip(&views)
            .map(|(planned, view)| NamedRun { name: &planned.run.name, view })
            .collect();
        self.claims.iter().map(|(_, claim)| evaluate_in_study(claim, &named)).collect()
    }
}

/// Returns the number of further seeds that all the runs have that a claim is about; zero if it is
/// about none. Runs in real time have one seed, and the names of others.
fn seeds_of(claim: &Claim, plan: &[Planned<'_>]) -> usize {
    let repeatable = plan.iter().filter(|planned| planned.ground.pace() == Pace::Virtual);
    let about = repeatable.filter(|planned| concerns(claim, planned.run));
    about.map(|planned| planned.further_seeds().len()).min().unwrap_or(0)
}
