//! Studies: their runs, models and claims.

use super::claims::{self, Names};
use super::{check_name, in_range, parse_document, scenario};
use crate::StudyChanges;
use crate::file::{ModelFile, ModelWord, RunFile, ScenarioFile, StudyFile};
use crate::measure::Subject;
use crate::model::{Model, ModelKind, Scenario, Starts, Study, StudyRun};
use crate::overrides::{self, Change, Override};
use crate::read::{At, Value, key};
use crate::source::{Reading, beside, folder_of};
use crate::tree::{Key, Kind, Node, Span};

/// Default ground of a run.
const DEFAULT_GROUND: &str = "sim";
/// Largest number of seeds: each is a whole run.
const SEEDS_MAX: u64 = 1000;

/// Checks a study. `folder` is where the files that it names are looked up.
pub(crate) fn study(
    mut file: StudyFile,
    folder: &str,
    changed: &StudyChanges<'_>,
    reading: &mut Reading<'_>,
) -> Study {
    let mut names = Names { study: true, ..Names::default() };
    let mut taken: Vec<String> = Vec::new();
    let mut runs = Vec::new();
    for entry in &file.run.0 {
        let before = reading.problem_count();
        let run =
            entry.get().and_then(|run| self::run(run, (folder, changed), &mut taken, reading));
        if let Some(run) = run {
            names.add_run(&run.name, &run.scenario);
            runs.push(run);
        }
        // A run with a problem lacks names, so an unknown name is no evidence of a mistake.
        names.incomplete |= entry.is_broken() || reading.problem_count() > before;
    }
    let mut models = Vec::new();
    for entry in &file.model.0 {
        let before = reading.problem_count();
        if let Some(model) = entry.get().and_then(|model| self::model(model, &mut taken, reading)) {
            names.known.push((model.name.clone(), Subject::Model, 1));
            models.push(model);
        }
        names.incomplete |= entry.is_broken() || reading.problem_count() > before;
    }
    if file.run.0.is_empty() && file.model.0.is_empty() {
        let help = "add [[run]] with name = \"plain\" and file = \"plain.toml\"";
        reading.problem(Span::default(), "the study has no run", help);
    }
    if names.incomplete {
        names.duration = knee_units::Time::MAX;
    }
    Study {
        name: file.name.get().cloned().unwrap_or_default(),
        source: file.source.get().cloned().unwrap_or_default(),
        summary: file.summary.get().cloned().unwrap_or_default(),
        conclusion: claims::conclusion(&file.conclusion, &file.claim, reading),
        runs,
        models,
        claims: claims::check(&mut file.claim, &names, reading),
    }
}

/// Reports a name that another run or model of the study has.
fn unique(name: &At<String>, taken: &mut Vec<String>, reading: &mut Reading<'_>) {
    check_name(&name.value, name.span, reading);
    if taken.contains(&name.value) {
        let message = format!("two runs or models are named \"{}\"", name.value);
        reading.problem(name.span, message, "write another name");
    }
    taken.push(name.value.clone());
}

fn run(
    file: &RunFile,
    (folder, changed): (&str, &StudyChanges<'_>),
    taken: &mut Vec<String>,
    reading: &mut Reading<'_>,
) -> Option<StudyRun> {
    let name = file.name.at()?;
    unique(name, taken, reading);
    let grounds = file.on.get().map_or(vec![DEFAULT_GROUND.to_string()], |on| {
        on.iter().map(|ground| ground.0.clone()).collect()
    });
    if let (Some(on), true) = (file.on.span(), grounds.is_empty()) {
        reading.problem(on, "the run has no ground", "write on = [\"sim\"], or remove it");
    }
    let few = in_range(&file.seeds, "the number of seeds", 1, SEEDS_MAX, reading);
    let before = reading.problem_count();
    let at = file.file.at()?;
    let path = beside(folder, &at.value);
    let document = load(at, &path, reading)?;
    let given = (document, path.as_str());
    let set = changed.set;
    let mut scenario = scenario_of(file, &given, (file.seed.at().map(seed), set), reading)?;
    if changed.seed_shift > 0 {
        let value = scenario.seed.saturating_add(changed.seed_shift);
        let span = file.seed.span().unwrap_or_default();
        scenario = scenario_of(file, &given, (Some(seed(&At { value, span })), set), reading)?;
    }
    // A problem of the first seed is a problem of all.
    let seeds = match few && reading.problem_count() == before {
        true => file.seeds.get().copied().unwrap_or(1),
        false => 1,
    };
    let further = (1..seeds).map(|more| {
        let value = scenario.seed.saturating_add(more);
        let span = file.seeds.span().unwrap_or_default();
        scenario_of(file, &given, (Some(seed(&At { value, span })), set), reading)
    });
    let further_seeds = further.collect::<Option<_>>()?;
    Some(StudyRun { name: name.value.clone(), scenario, further_seeds, grounds })
}

/// Returns the run's scenario, of a document and its path, with the study's seed and further changes.
fn scenario_of(
    file: &RunFile,
    (document, path): &(Node, &str),
    (seed, set): (Option<Change>, &[Override]),
    reading: &mut Reading<'_>,
) -> Option<Scenario> {
    let mut document = document.clone();
    let changes = file.set.get().map(|set| overrides::changes(&set.0)).unwrap_or_default();
    let set: Vec<Change> = set.iter().map(|given| overrides::change(given, reading)).collect();
    overrides::apply(&mut document, changes.into_iter().chain(seed).chain(set), reading);
    let parsed = ScenarioFile::read(&document, reading)?;
    Some(scenario(parsed, path, folder_of(path), reading))
}

fn seed(At { value, span }: &At<u64>) -> Change {
    let node = Node { kind: Kind::Integer(i128::from(*value)), span: *span };
    Change { path: vec![Key { span: *span, ..key("seed") }], value: node }
}

/// Reads the document of a scenario file.
fn load(at: &At<String>, path: &str, reading: &mut Reading<'_>) -> Option<Node> {
    let text = match reading.load(path).map(|bytes| String::from_utf8(bytes.to_vec())) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            let message = format!("\"{}\" is not valid UTF-8", at.value);
            reading.problem(at.span, message, "write the name of a scenario file");
            return None;
        }
        Err(reason) => {
            let message = format!("cannot read scenario \"{}\": {reason}", at.value);
            let help = "write the name of a file, relative to the folder of the study";
            reading.problem(at.span, message, help);
            return None;
        }
    };
    parse_document(path, &text, reading)
}

fn model(file: &ModelFile, taken: &mut Vec<String>, reading: &mut Reading<'_>) -> Option<Model> {
    let name = file.name.at()?;
    unique(name, taken, reading);
    in_range(&file.gain.0, "the gain", 1.001, 10.0, reading);
    in_range(&file.rounds.0, "the number of rounds", 1, 1_000_000, reading);
    let ModelWord::AlternateProbing = file.model.get()?;
    let starts = starts(file, name, reading)?;
    let (gain, rounds) = (*file.gain.get()?, *file.rounds.get()?);
    let kind = ModelKind::AlternateProbing { gain, starts, rounds };
    Some(Model { name: name.value.clone(), kind })
}

/// Most flows of a model.
const MODEL_FLOWS_MAX: u64 = 50;

fn starts(file: &ModelFile, name: &At<String>, reading: &mut Reading<'_>) -> Option<Starts> {
    let drawn = [&file.starts, &file.flows, &file.seed].into_iter().find_map(|key| key.at());
    let Some(start) = file.start.at() else {
        in_range(&file.starts, "the number of starts", 1, 10_000, reading);
        in_range(&file.flows, "the number of flows", 2, MODEL_FLOWS_MAX, reading);
        let Some(count) = file.starts.get() else {
            let message = format!("model \"{}\" has no start", name.value);
            reading.problem(name.span, message, "add start = [0.9, 0.1], or starts = 1000");
            return None;
        };
        let flows = file.flows.get().copied().unwrap_or(2) as usize;
        let seed = file.seed.get().copied().unwrap_or(1);
        return Some(Starts::Drawn { flows, count: *count as usize, seed });
    };
    if let Some(drawn) = drawn {
        let message = "starts that are drawn, beside a start that is given";
        reading.problem(drawn.span, message, "remove start, or starts, flows and seed");
    }
    let enough = (2..=MODEL_FLOWS_MAX).contains(&(start.value.len() as u64));
    if !enough {
        let message = format!("start needs two to {MODEL_FLOWS_MAX} values, one for each flow");
        reading.problem(start.span, message, "write start = [0.9, 0.1]");
    }
    if start.value.iter().any(|value| !(*value > 0.0 && *value <= 10.0)) {
        let message = "a filter value is a multiple of the link's capacity, above 0 and at most 10";
        reading.problem(start.span, message, "write start = [0.9, 0.1]");
    }
    enough.then(|| Starts::At(start.value.clone()))
}
