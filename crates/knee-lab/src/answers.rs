//! Answers questions that a scenario implies, without a key for them, by simulating alternatives: a
//! multipath flow group against each path alone; mixes under one controller against all of them
//! under the other.

use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::SIMULATOR;
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::text::ScenarioText;
use knee_record::{
    Answers, MixAnswer, MixPair, MixSeed, OfferedLoad, PathsAnswer, PathsQuestion, PathsRun,
    offered_load,
};
use knee_scenario::{Flow, Override, Scenario, Workload};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Minimum number of seeds for each alternative: enough for an interval, and for a sign test to
/// distinguish two alternatives if one never finishes.
pub(crate) const ANSWER_SEEDS: u64 = 10;
/// Limit on the multipath groups that are examined; the answers name the others.
const GROUPS_MAX: usize = 4;
/// Finer sampling interval of path usage, used when it costs few rows.
const FINE_SAMPLES: &str = "sample_interval=10 ms";
const FEW_FLOWS: usize = 20;

/// The questions that a scenario implies.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    paths: Vec<(PathsQuestion, Vec<String>)>,
    /// Groups of flows over several paths beyond the limit.
    left_out: Vec<String>,
    processes: Vec<MixProcess>,
    pairs: Vec<MixPair>,
}

impl Questions {
    /// Derives the questions from a scenario.
    pub fn of(scenario: &Scenario) -> Questions {
        let (processes, pairs) = mixes(scenario);
        let mut flows = several_paths(scenario);
        let left_out = flows.split_off(flows.len().min(GROUPS_MAX)).into_iter();
        let left_out = left_out.map(|flow| flow.name.clone()).collect();
        let question = |flow: &Flow| {
            let names = flow.paths.iter().map(|path| scenario.paths[*path].name.clone());
            (PathsQuestion::new(&flow.name, &flow.workload), names.collect())
        };
        let paths = flows.into_iter().map(question).collect();
        Questions { paths, left_out, processes, pairs }
    }

    /// Returns the processes that have exactly two mixes, and the pairs of these; drops the others.
    /// If one of the two has the controller `in_use`, it is the control.
    pub(crate) fn into_pairs(self, in_use: Option<&str>) -> (Vec<MixProcess>, Vec<MixPair>) {
        let two = self.processes.into_iter().filter(|process| process.flows.len() == 2);
        let pairs = self.pairs.into_iter().filter(|pair| pair.flows.is_empty());
        let (mut processes, mut pairs): (Vec<_>, Vec<_>) = (two.collect(), pairs.collect());
        for pair in pairs.iter_mut().filter(|pair| in_use == Some(&pair.test)) {
            std::mem::swap(&mut pair.test, &mut pair.control);
            std::mem::swap(&mut pair.test_flow, &mut pair.control_flow);
            let own = processes.iter_mut().filter(|one| one.flows.contains(&pair.test_flow));
            own.for_each(|one| one.flows.reverse());
        }
        (processes, pairs)
    }

    /// Number of controllers in the process that has the most.
    fn controllers(&self) -> usize {
        self.processes.iter().map(|process| process.flows.len()).max().unwrap_or(0)
    }

    /// Indices of the single-controller runs of a pair's test and control.
    fn runs_of(&self, pair: &MixPair) -> [usize; 2] {
        let place = |flow: &String| {
            let mut places = self
                .processes
                .iter()
                .filter_map(|process| process.flows.iter().position(|name| name == flow));
            places.next().unwrap_or(0)
        };
        [place(&pair.test_flow), place(&pair.control_flow)]
    }

    /// Whether the scenario implies no question.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.pairs.is_empty()
    }
}

/// Multipath flow groups without a backup path; with one, using all paths together is not the
/// intended mode.
fn several_paths(scenario: &Scenario) -> Vec<&Flow> {
    let first_of_group = scenario.flows.iter().filter(|flow| flow.index == 0);
    let several = first_of_group.filter(|flow| {
        flow.paths.len() > 1 && flow.multipath.as_ref().is_some_and(|how| how.backup.is_empty())
    });
    several.collect()
}

/// Whether mixes under several controllers share a path.
pub(crate) fn is_half_and_half(scenario: &Scenario) -> bool {
    let flows = scenario.flows.iter();
    let mixes: Vec<&Flow> =
        flows.filter(|flow| flow.index == 0 && matches!(flow.workload, Workload::Mix(_))).collect();
    let rivals = |a: &Flow, b: &Flow| a.paths == b.paths && a.controller != b.controller;
    mixes.iter().any(|one| mixes.iter().any(|other| rivals(one, other)))
}

/// Says why mixes under several controllers over one path raise no question: they have no process in
/// common. One that waits for another can have none.
pub(crate) fn lacks_process(scenario: &Scenario) -> Option<String> {
    let first = scenario.flows.iter().filter(|flow| flow.index == 0 && flow.after.is_none());
    let mixes = first.filter(|flow| matches!(flow.workload, Workload::Mix(_)));
    let mixes: Vec<&Flow> = mixes.filter(|flow| flow.multipath.is_none()).collect();
    let rival = |one: &Flow| {
        let own = one.workload.process();
        mixes.iter().copied().find(|other| {
            let rivals = other.paths == one.paths && other.controller != one.controller;
            rivals && (own.is_none() || other.workload.process() != own)
        })
    };
    let (one, other) = mixes.iter().find_map(|one| Some((*one, rival(one)?)))?;
    Some(format!(
        "No answer: {} and {} have no process in common, so they are not test and control; write \
         process = \"{}\" in both.",
        one.name, other.name, scenario.paths[one.paths[0]].name
    ))
}

/// Mixes of one process over one path; each run puts all transfers under one of the controllers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MixProcess {
    /// Flow groups: those under test in scenario order, the control last.
    flows: Vec<String>,
}

/// Limit on the controllers compared in one process.
const CONTROLLERS_MAX: usize = 6;

/// Finds mixes that share a process and a path, and pairs each test with the control.
fn mixes(scenario: &Scenario) -> (Vec<MixProcess>, Vec<MixPair>) {
    let mut of_process: BTreeMap<&str, Vec<&Flow>> = BTreeMap::new();
    for flow in scenario.flows.iter().filter(|flow| flow.index == 0) {
        if let Workload::Mix(mix) = &flow.workload
            && let Some(process) = &mix.process
        {
            of_process.entry(process).or_default().push(flow);
        }
    }
    let (mut processes, mut pairs) = (Vec::new(), Vec::new());
    for (name, mut flows) in of_process {
        let same_path = flows.iter().all(|flow| flow.paths == flows[0].paths);
        let some = (2..=CONTROLLERS_MAX).contains(&flows.len());
        if !some || !same_path || flows[0].multipath.is_some() {
            continue;
        }
        // CUBIC is the control, as Linux's default; without CUBIC, the last group is.
        let control = flows.iter().position(|flow| flow.controller.name == "cubic");
        let control = flows.remove(control.unwrap_or(flows.len() - 1));
        let tests = flows;
        let all: Vec<String> =
            tests.iter().chain([&control]).map(|flow| flow.name.clone()).collect();
        let links = scenario.paths[control.paths[0]].forward.iter();
        let links: Vec<String> = links.map(|link| scenario.links[*link].name.clone()).collect();
        // Two that differ in their parameters alone have the names of their groups.
        let twice = |test: &Flow| {
            tests.iter().filter(|other| other.controller.name == test.controller.name).count() > 1
        };
        pairs.extend(tests.iter().map(|test| MixPair {
            name: match tests.len() {
                1 => name.to_string(),
                _ if twice(test) => format!("{name}, {}", test.name),
                _ => format!("{name}, {}", test.controller.name),
            },
            test_flow: test.name.clone(),
            control_flow: control.name.clone(),
            test: test.controller.name.clone(),
            control: control.controller.name.clone(),
            flows: if tests.len() > 1 { all.clone() } else { Vec::new() },
            links: links.clone(),
        }));
        processes.push(MixProcess { flows: all });
    }
    (processes, pairs)
}

/// Identifies an alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// The scenario unchanged: all paths together, controllers side by side.
    AsItIs,
    /// The flow group of a question over a single path.
    Alone { question: usize, path: usize },
    /// All mixes of each process under the controller of its group with this index; under the
    /// control if the process has fewer groups.
    All(usize),
}

/// Results so far of one seed's runs.
#[derive(Default)]
struct Seed {
    /// Result of each run, by question.
    values: BTreeMap<(Which, usize), PathsRun>,
    /// Runs with mixes, kept until all runs of the seed have ended.
    whole: BTreeMap<Which, Run>,
    mixes: Vec<MixSeed>,
}

impl Lab {
    /// Answers the questions that a scenario implies, by simulation with `repeat` seeds but at
    /// least [`ANSWER_SEEDS`]. Returns `None` if there are no questions or it was stopped.
    ///
    /// # Errors
    /// An error in an alternative, or an alternative that cannot be run.
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
        let of_first = runs.iter().filter(|(at, ..)| *at == 0);
        let of_first = of_first.map(|(_, which, scenario)| (*which, scenario)).collect();
        Ok(answers(questions, seeds, &of_first, found))
    }
}

/// The alternative scenarios for one seed.
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
            // `minrtt`, because some schedulers require two paths.
            let alone = [
                Override::new(&key("paths"), &format!("[\"{name}\"]")),
                Override::new(&key("scheduler"), "minrtt"),
            ];
            let scenario = with(alone.into_iter().chain(samples.clone()).collect())?;
            all.push((Which::Alone { question, path }, scenario));
        }
    }
    if !questions.pairs.is_empty() {
        let numbers = 0..questions.controllers();
        all.extend(numbers.map(|at| (Which::All(at), under(&plain, &questions.processes, at))));
    }
    all.push((Which::AsItIs, with(samples.into_iter().collect())?));
    Ok(all)
}

/// The scenario with all mixes of each process under the controller of one group.
pub(crate) fn under(scenario: &Scenario, processes: &[MixProcess], at: usize) -> Scenario {
    let mut all = scenario.clone();
    for MixProcess { flows } in processes {
        let name = flows.get(at).or(flows.last());
        let chosen = scenario.flows.iter().find(|flow| Some(&flow.name) == name);
        let Some(controller) = chosen.map(|flow| flow.controller.clone()) else { continue };
        let own = all.flows.iter_mut().filter(|flow| flows.contains(&flow.name));
        own.for_each(|flow| flow.controller = controller.clone());
    }
    all
}

impl Seed {
    /// Extracts the values that the questions need from a run. Runs with mixes have many transfers,
    /// so they are reduced as soon as all runs of the seed have ended.
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
        let under_one: Option<Vec<_>> =
            (0..questions.controllers()).map(|at| there(Which::All(at))).collect();
        if let Some((halves, under_one)) = there(Which::AsItIs).zip(under_one) {
            let mixes = questions.pairs.iter().map(|pair| {
                let [test, control] = questions.runs_of(pair).map(|at| &under_one[at]);
                MixSeed::new(pair, &halves, [test, control])
            });
            self.mixes = mixes.collect();
            self.whole.clear();
        }
    }
}

/// Answers the questions. The load is that of `scenarios`, the alternatives with the first seed.
fn answers(
    questions: Questions,
    seeds: Vec<u64>,
    scenarios: &BTreeMap<Which, &Scenario>,
    found: Vec<Seed>,
) -> Option<Answers> {
    let load = |which: Which, flow: &str| {
        let scenario = scenarios.get(&which);
        scenario.map(|scenario| load_of(scenario, flow)).unwrap_or_default()
    };
    let mut paths = Vec::new();
    for (question, (asked, names)) in questions.paths.iter().enumerate() {
        let runs = |which: Which| -> Option<Vec<PathsRun>> {
            found.iter().map(|seed| seed.values.get(&(which, question)).cloned()).collect()
        };
        let together = runs(Which::AsItIs);
        let alone = (0..names.len()).map(|path| runs(Which::Alone { question, path }));
        let alone: Option<Vec<Vec<PathsRun>>> = alone.collect();
        let each = (0..names.len()).map(|path| Which::Alone { question, path });
        let each = std::iter::once(Which::AsItIs).chain(each);
        let loads: Vec<_> = each.map(|which| load(which, &asked.flow)).collect();
        if let Some((together, alone)) = together.zip(alone) {
            paths.extend(PathsAnswer::new(asked, names, &together, &alone, &loads));
        }
    }
    let mixes: Vec<Vec<MixSeed>> = found.into_iter().map(|seed| seed.mixes).collect();
    let load = scenarios.get(&Which::AsItIs).map(|scenario| offered_load(scenario));
    let load = load.unwrap_or_default();
    let mix = MixAnswer::new(questions.pairs, &mixes, &load);
    let answers = Answers::new(seeds, load, paths, mix)?;
    Some(Answers { unanswered: questions.left_out, ..answers })
}

/// The load on the links that a group of flows passes.
fn load_of(scenario: &Scenario, group: &str) -> Vec<OfferedLoad> {
    let flow = scenario.flows.iter().find(|flow| flow.name == group);
    let paths = flow.into_iter().flat_map(|flow| &flow.paths);
    let links = paths.flat_map(|path| &scenario.paths[*path].forward);
    let names: Vec<&str> = links.map(|link| scenario.links[*link].name.as_str()).collect();
    let loads = offered_load(scenario).into_iter();
    loads.filter(|load| names.contains(&load.link.as_str())).collect()
}
