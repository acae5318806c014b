//! What a scenario asks without a key for it, answered by runs of the
//! alternatives on the simulator: a group of flows over several paths against
//! each path alone; mixes under one controller against all of them under the
//! other.

use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::SIMULATOR;
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::text::ScenarioText;
use knee_record::{Answers, MixAnswer, MixPair, MixSeed, PathsAnswer, PathsQuestion, PathsRun};
use knee_scenario::{Flow, Override, Scenario, Workload};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Seeds with which each alternative runs at least: enough for an interval,
/// and for a sign test to tell two alternatives apart where one never ends.
pub const ANSWER_SEEDS: u64 = 10;
/// Groups over several paths that are asked about; further ones are not.
const GROUPS_MAX: usize = 4;
/// How often the paths' use is looked at, where that takes few rows.
const FINE_SAMPLES: &str = "sample_interval=10 ms";
const FEW_FLOWS: usize = 20;

/// What a scenario asks.
#[derive(Debug, Default)]
pub struct Questions {
    paths: Vec<(PathsQuestion, Vec<String>)>,
    pairs: Vec<MixPair>,
}

impl Questions {
    /// Of a scenario.
    pub fn of(scenario: &Scenario) -> Questions {
        Questions { paths: paths(scenario), pairs: pairs(scenario) }
    }

    /// Mixes that share a process and a path, two by two.
    pub(crate) fn into_pairs(self) -> Vec<MixPair> {
        self.pairs
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.pairs.is_empty()
    }
}

/// Groups of flows over several paths of which none is for backup alone: with
/// one, together is not what the group is meant to do.
fn paths(scenario: &Scenario) -> Vec<(PathsQuestion, Vec<String>)> {
    let first_of_group = scenario.flows.iter().filter(|flow| flow.index == 0);
    let several = first_of_group.filter(|flow| {
        flow.paths.len() > 1 && flow.multipath.as_ref().is_some_and(|how| how.backup.is_empty())
    });
    several
        .take(GROUPS_MAX)
        .map(|flow| {
            let names = flow.paths.iter().map(|path| scenario.paths[*path].name.clone());
            (PathsQuestion::new(&flow.name, &flow.workload), names.collect())
        })
        .collect()
}

/// Mixes that share a process and a path, two by two.
fn pairs(scenario: &Scenario) -> Vec<MixPair> {
    let mut of_process: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in scenario.flows.iter().filter(|flow| flow.index == 0) {
        if let Workload::Mix(mix) = &flow.workload
            && let Some(process) = &mix.process
        {
            of_process.entry(process).or_default().push(flow);
        }
    }
    let pair = |(process, flows): (&str, Vec<&Flow>)| {
        let [first, second] = flows[..] else { return None };
        if first.paths != second.paths || first.multipath.is_some() {
            return None;
        }
        // CUBIC is what there is without a choice.
        let (test, control) = match first.controller.name == "cubic" {
            true => (second, first),
            false => (first, second),
        };
        let path = &scenario.paths[*first.paths.first()?];
        let links = path.forward.iter().map(|link| scenario.links[*link].name.clone());
        Some(MixPair {
            name: process.to_string(),
            test_flow: test.name.clone(),
            control_flow: control.name.clone(),
            test: test.controller.name.clone(),
            control: control.controller.name.clone(),
            links: links.collect(),
        })
    };
    of_process.into_iter().filter_map(pair).collect()
}

/// Which run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// As the scenario has it: together, half and half.
    AsItIs,
    /// The group of a question over one path alone.
    Alone { question: usize, path: usize },
    /// All mixes of each pair under test (0) or under control (1).
    All(usize),
}

/// What is known so far of the runs of a seed.
#[derive(Default)]
struct Seed {
    /// By question, what a run came to.
    values: BTreeMap<(Which, usize), PathsRun>,
    /// Runs with mixes, until all three are there.
    whole: BTreeMap<Which, Run>,
    mixes: Vec<MixSeed>,
}

impl Lab {
    /// Answers what a scenario asks, by runs on the simulator with
    /// `repeat` seeds, but at least [`ANSWER_SEEDS`]. None: it asks nothing, or
    /// it was stopped.
    ///
    /// # Errors
    /// What is wrong with an alternative, or that one cannot be run.
    pub fn answer(
        &self,
        text: &ScenarioText,
        set: &[Override],
        repeat: u64,
    ) -> Result<Option<Answers>, Error> {
        let first = text.scenario(set)?;
        let questions = Questions::of(&first);
        if questions.is_empty() {
            return Ok(None);
        }
        let simulator = self.grounds.get(SIMULATOR)?;
        let numbers = 0..repeat.max(ANSWER_SEEDS);
        let seeds: Vec<u64> = numbers.map(|number| repeat_seed(first.seed, number)).collect();
        let mut runs: Vec<(usize, Which, Scenario)> = Vec::new();
        for (at, one) in seeds.iter().enumerate() {
            let set: Vec<Override> = set.iter().cloned().chain([seed(*one)]).collect();
            runs.extend(alternatives(text, &set, &questions)?.into_iter().map(|(w, s)| (at, w, s)));
        }
        let found: Mutex<Vec<Seed>> = Mutex::new(seeds.iter().map(|_| Seed::default()).collect());
        let jobs: Vec<Job<'_>> =
            runs.iter().map(|(_, _, scenario)| Job::new(scenario, simulator)).collect();
        let ended = self.run_all(&jobs, |index, run| {
            let (at, which, scenario) = &runs[index];
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found[*at].keep(*which, run, &questions, scenario);
            Ok(())
        })?;
        if self.is_stopped() || ended.iter().any(Option::is_none) {
            return Ok(None);
        }
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(answers(questions, seeds, found))
    }
}

/// The scenarios of a seed, each with what it is.
fn alternatives(
    text: &ScenarioText,
    set: &[Override],
    questions: &Questions,
) -> Result<Vec<(Which, Scenario)>, Error> {
    let with = |more: Vec<Override>| -> Result<Scenario, Error> {
        Ok(text.scenario(&set.iter().cloned().chain(more).collect::<Vec<_>>())?)
    };
    let plain = with(Vec::new())?;
    let fine = plain.flows.len() <= FEW_FLOWS && !questions.paths.is_empty();
    let samples: Option<Override> = FINE_SAMPLES.parse().ok().filter(|_| fine);
    let mut all = Vec::new();
    for (question, (asked, paths)) in questions.paths.iter().enumerate() {
        for (path, name) in paths.iter().enumerate() {
            let key = |key: &str| format!("flow.{}.{key}", asked.flow);
            // A scheduler that has no choice: some take two paths and no fewer.
            let alone = [
                Override::new(&key("paths"), &format!("[\"{name}\"]")),
                Override::new(&key("scheduler"), "minrtt"),
            ];
            let scenario = with(alone.into_iter().chain(samples.clone()).collect())?;
            all.push((Which::Alone { question, path }, scenario));
        }
    }
    if !questions.pairs.is_empty() {
        all.push((Which::All(0), under(&plain, &questions.pairs, 0)));
        all.push((Which::All(1), under(&plain, &questions.pairs, 1)));
    }
    all.push((Which::AsItIs, with(samples.into_iter().collect())?));
    Ok(all)
}

/// All mixes of each pair under the controller of one of the two.
pub(crate) fn under(scenario: &Scenario, pairs: &[MixPair], side: usize) -> Scenario {
    let mut all = scenario.clone();
    for pair in pairs {
        let names = [&pair.test_flow, &pair.control_flow];
        let chosen = scenario.flows.iter().find(|flow| flow.name == *names[side]);
        let Some(controller) = chosen.map(|flow| flow.controller.clone()) else { continue };
        let both = all.flows.iter_mut().filter(|flow| names.contains(&&flow.name));
        both.for_each(|flow| flow.controller = controller.clone());
    }
    all
}

impl Seed {
    /// Keeps what is asked of a run. Transfers are many: those of a seed are
    /// counted together as soon as its three runs are there.
    fn keep(&mut self, which: Which, run: Run, questions: &Questions, scenario: &Scenario) {
        let view = run.view(scenario);
        for (number, (asked, _)) in questions.paths.iter().enumerate() {
            let of_this = matches!(which, Which::AsItIs)
                || matches!(which, Which::Alone { question, .. } if question == number);
            let value = Some(()).filter(|()| of_this).and_then(|()| asked.of(&view));
            self.values.extend(value.map(|value| ((which, number), value)));
        }
        if questions.pairs.is_empty() || matches!(which, Which::Alone { .. }) {
            return;
        }
        self.whole.insert(which, run);
        let there = |which| self.whole.get(&which).map(|run| run.view(scenario));
        let three = [Which::AsItIs, Which::All(0), Which::All(1)];
        if let [Some(halves), Some(test), Some(control)] = three.map(there) {
            let pairs = questions.pairs.iter();
            self.mixes = pairs.map(|pair| MixSeed::new(pair, &halves, [&test, &control])).collect();
            self.whole.clear();
        }
    }
}

fn answers(questions: Questions, seeds: Vec<u64>, found: Vec<Seed>) -> Option<Answers> {
    let mut paths = Vec::new();
    for (question, (asked, names)) in questions.paths.iter().enumerate() {
        let runs = |which: Which| -> Option<Vec<PathsRun>> {
            found.iter().map(|seed| seed.values.get(&(which, question)).cloned()).collect()
        };
        let together = runs(Which::AsItIs);
        let alone = (0..names.len()).map(|path| runs(Which::Alone { question, path }));
        let alone: Option<Vec<Vec<PathsRun>>> = alone.collect();
        if let Some((together, alone)) = together.zip(alone) {
            paths.extend(PathsAnswer::new(asked, names, &together, &alone));
        }
    }
    let mixes: Vec<Vec<MixSeed>> = found.into_iter().map(|seed| seed.mixes).collect();
    let mix = MixAnswer::new(questions.pairs, &mixes);
    Answers::new(seeds, paths, mix)
}
