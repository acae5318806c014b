//! Plans and checks the runs of a ranking before any run starts.

use super::RankError;
use crate::command::quoted;
use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::{Ground, SIMULATOR};
use crate::load::Load;
use crate::origin::{OriginSettings, Sources};
use crate::sweep::{VaryError, list_of_values};
use crate::text::{ScenarioText, all_or_every_error, among_inputs};
use knee_cc::Selection;
use knee_link::RateModel;
use knee_record::{Competition, INPUTS, RankScenario, Ranking};
use knee_scenario::{Flow, InputFile, Override, Scenario, SourceText};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Limit on the number of runs; more would be a mistake.
const RUNS_MAX: usize = 500_000;
/// Names of the two flows, the same for every candidate, so that all see the same random draws.
const CANDIDATE: &str = "candidate";
const RIVAL: &str = "rival";

/// Controllers in the syntax of `--cc`: `bbr,cubic,{ name = "fixed", window = "1 BDP" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates(pub Vec<String>);

impl FromStr for Candidates {
    type Err = VaryError;
    fn from_str(text: &str) -> Result<Candidates, VaryError> {
        list_of_values("cc", text).map(Candidates)
    }
}

impl Candidates {
    /// All controllers of this version with their presets, except `fixed`, which controls nothing,
    /// and `gcc`, whose rate is that of a video call.
    pub fn all() -> Candidates {
        let left_out = ["fixed", "gcc"];
        let entries = knee_cc::controllers().iter().filter(|entry| !left_out.contains(&entry.name));
        let names = entries.flat_map(|entry| {
            let presets = entry.presets.iter().map(|preset| preset.name);
            std::iter::once(entry.name).chain(presets)
        });
        Candidates(names.map(str::to_string).collect())
    }

    /// Those that are neither a controller of this version nor one of its presets.
    fn own(&self) -> Vec<String> {
        let known = |name: &String| {
            let mut entries = knee_cc::controllers().iter();
            entries.any(|entry| {
                entry.name == name || entry.presets.iter().any(|preset| preset.name == name)
            })
        };
        self.0.iter().filter(|name| !known(name)).cloned().collect()
    }
}

/// Settings of a ranking.
#[derive(Clone, Debug)]
pub struct RankSettings<'g> {
    /// Controllers to rank.
    pub candidates: Candidates,
    /// Controllers to compete with.
    pub rivals: Candidates,
    /// Keys overridden in every scenario.
    pub set: Vec<Override>,
    /// The flow group that the candidates replace; `None`: the first.
    pub flow: Option<String>,
    /// Seed of the first repeat, overriding the scenario's.
    pub seed: Option<u64>,
    /// Seeds of each run.
    pub repeat: u64,
    /// What makes the ranking, if no command line can: a call of a program whose own classes are
    /// ranked.
    pub call: Option<String>,
    /// The ground.
    pub on: &'g dyn Ground,
}

impl<'g> RankSettings<'g> {
    /// Settings for every controller, beside CUBIC and BBR.
    pub fn on(ground: &'g dyn Ground) -> RankSettings<'g> {
        let rivals = Candidates(vec!["cubic".to_string(), "bbr".to_string()]);
        RankSettings {
            candidates: Candidates::all(),
            rivals,
            set: Vec::new(),
            flow: None,
            seed: None,
            repeat: 1,
            call: None,
            on: ground,
        }
    }
}

impl RankSettings<'_> {
    fn origin(&self) -> OriginSettings {
        OriginSettings::Rank {
            cc: self.candidates.0.clone(),
            against: self.rivals.0.clone(),
            set: self.set.iter().map(|set| set.text().to_string()).collect(),
            flow: self.flow.clone(),
            seed: self.seed,
            repeat: self.repeat,
        }
    }
}

/// The plan of a ranking.
#[derive(Debug)]
pub struct Rank<'g> {
    /// The plan as recorded.
    pub ranking: Ranking,
    /// Runs ordered by scenario, candidate, company and repeat.
    pub runs: Vec<PlannedRank>,
    pub(super) on: &'g dyn Ground,
    pub(super) sources: Vec<Sources>,
    pub(super) settings: OriginSettings,
    stages: Vec<Stage>,
    /// Files of folders that cannot be ranked.
    pub not_ranked: Vec<NotRanked>,
}

/// A file of a folder that cannot be ranked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRanked {
    /// File name in the folder.
    pub file: String,
    /// The reason.
    pub reason: String,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct PlannedRank {
    /// Index of the scenario.
    pub scenario: usize,
    /// Index of the candidate.
    pub candidate: usize,
    /// What shares the path.
    pub company: Competition,
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Expected cost.
    pub load: Load,
}

/// A scenario, and the controllers to put into it.
#[derive(Debug)]
struct Stage {
    scenario: Scenario,
    flow: Flow,
    candidates: Vec<Selection>,
    rivals: Vec<Selection>,
}

impl<'g> Rank<'g> {
    /// Reads and checks all scenarios and controllers.
    ///
    /// # Errors
    /// All errors in the files or of a candidate in them; a [`RankError`].
    pub fn new(texts: &[ScenarioText], settings: &RankSettings<'g>) -> Result<Rank<'g>, Error> {
        let stages = texts.iter().map(|text| Stage::new(text, settings));
        let (mut scenarios, mut all) = (Vec::new(), Vec::new());
        for (stage, described) in all_or_every_error(stages)? {
            settings.on.check(&stage.scenario)?;
            all.push(stage);
            scenarios.push(described);
        }
        let ranking = Ranking {
            command: settings.call.clone().unwrap_or_else(|| command(texts, settings)),
            candidates: settings.candidates.0.clone(),
            rivals: settings.rivals.0.clone(),
            scenarios,
            repeats: settings.repeat,
            own: settings.candidates.own(),
            runs_planned: 0,
        };
        let (on, sources) = (settings.on, sources(texts, &all));
        let settings = settings.origin();
        let (runs, not_ranked) = (Vec::new(), Vec::new());
        let mut rank = Rank { ranking, runs, on, sources, settings, stages: all, not_ranked };
        rank.plan()?;
        Ok(rank)
    }

    fn plan(&mut self) -> Result<(), Error> {
        let Ranking { candidates, rivals, repeats, .. } = &self.ranking;
        let companies = 2 + rivals.len();
        let all = self.stages.len() * candidates.len() * companies;
        let all = all.saturating_mul(*repeats as usize);
        if all > RUNS_MAX {
            return Err(RankError::TooMany(all).into());
        }
        let mut runs = Vec::new();
        for (number, stage) in self.stages.iter().enumerate() {
            let load = Load::of(&stage.scenario, self.on);
            for candidate in 0..candidates.len() {
                let others = (0..rivals.len()).filter(|rival| !self.is_same(candidate, *rival));
                let with = [Competition::Alone, Competition::Itself].into_iter();
                for company in with.chain(others.map(Competition::Rival)) {
                    runs.extend((0..*repeats).map(|at| {
                        let (seed, repeat) = (repeat_seed(stage.scenario.seed, at), at + 1);
                        PlannedRank { scenario: number, candidate, company, repeat, seed, load }
                    }));
                }
            }
        }
        (self.ranking.runs_planned, self.runs) = (all, runs);
        Ok(())
    }

    /// The rivals that equal the candidate in every scenario.
    pub(super) fn rivals_that_are(&self, candidate: usize) -> impl Iterator<Item = usize> {
        (0..self.ranking.rivals.len()).filter(move |rival| self.is_same(candidate, *rival))
    }

    fn is_same(&self, candidate: usize, rival: usize) -> bool {
        self.stages.iter().all(|stage| stage.candidates[candidate] == stage.rivals[rival])
    }

    /// The scenario of a run: the candidate's flow, and its competitor if there is one.
    pub fn scenario(&self, run: &PlannedRank) -> Scenario {
        let stage = &self.stages[run.scenario];
        let selection = &stage.candidates[run.candidate];
        let flow = |name: &str, controller: &Selection| Flow {
            name: name.to_string(),
            index: 0,
            controller: controller.clone(),
            ..stage.flow.clone()
        };
        let other = match run.company {
            Competition::Alone => None,
            Competition::Itself => Some(selection),
            Competition::Rival(rival) => Some(&stage.rivals[rival]),
        };
        let mut flows = vec![flow(CANDIDATE, selection)];
        flows.extend(other.map(|other| flow(RIVAL, other)));
        Scenario { flows, seed: run.seed, ..stage.scenario.clone() }
    }

    /// The scenario of a case as a file for `knee run`, in the folder of inputs: the ranked flow under
    /// the candidate, and its competitor. `None` if the candidate cannot be named in a file.
    pub(super) fn case_file(&self, run: &PlannedRank) -> Option<String> {
        let Ranking { candidates, rivals, scenarios, .. } = &self.ranking;
        let stage = &self.stages[run.scenario];
        let mut file: toml::Table = stage.scenario.resolved.parse().ok()?;
        let flows = file.get("flow")?.as_array()?;
        let wanted = &scenarios[run.scenario].flow;
        let named =
            |flow: &&toml::Value| flow.get("name").and_then(toml::Value::as_str) == Some(wanted);
        let ranked = flows.iter().find(named)?.as_table()?.clone();
        let candidate = &candidates[run.candidate];
        let other = match run.company {
            Competition::Alone => None,
            Competition::Itself => Some(candidate),
            Competition::Rival(rival) => Some(&rivals[rival]),
        };
        let flow = |name: &str, cc: &String| {
            let mut flow = ranked.clone();
            flow.remove("count");
            // Drawn by the name of the group, so that it is written as it was drawn.
            flow.insert("start".to_string(), format!("{} ns", stage.flow.start.as_nanos()).into());
            for none in ["start_jitter", "start_interval"] {
                flow.insert(none.to_string(), "0 s".into());
            }
            flow.insert("name".to_string(), name.into());
            flow.insert("cc".to_string(), value_of(cc));
            toml::Value::Table(flow)
        };
        let flows = std::iter::once(flow(CANDIDATE, candidate));
        let flows = flows.chain(other.map(|other| flow(RIVAL, other)));
        file.insert("flow".to_string(), toml::Value::Array(flows.collect()));
        file.remove("claim");
        file.insert("seed".to_string(), toml::Value::Integer(i64::try_from(run.seed).ok()?));
        let text = toml::to_string(&file).ok()?;
        let kept = stage.scenario.files.iter();
        let kept = kept.map(|file| (format!("{INPUTS}/{}", file.name), file.bytes.clone()));
        let kept = ScenarioText::new("case.toml", &text).with_files(kept.collect());
        let is_python = candidate.contains(".py:");
        if !is_python {
            let same = kept.scenario(&[]).ok()?.flows;
            (same == self.scenario(run).flows).then_some(())?;
        }
        Some(among_inputs(text, stage.scenario.files.iter().map(|file| &file.name)))
    }

    /// Label of a run, for messages.
    pub(super) fn label(&self, run: &PlannedRank) -> String {
        let Ranking { scenarios, candidates, rivals, .. } = &self.ranking;
        let company = match run.company {
            Competition::Alone => "alone".to_string(),
            Competition::Itself => "beside itself".to_string(),
            Competition::Rival(rival) => format!("beside {}", rivals[rival]),
        };
        let (file, seed) = (&scenarios[run.scenario].file, run.seed);
        format!("{file}, {} {company}, seed {seed}", candidates[run.candidate])
    }
}

impl Stage {
    /// Resolves each candidate and rival in a scenario.
    fn new(
        text: &ScenarioText,
        settings: &RankSettings<'_>,
    ) -> Result<(Stage, RankScenario), Error> {
        let given = settings.set.iter().cloned().chain(settings.seed.map(seed));
        let given: Vec<Override> = given.collect();
        let mut scenario = text.scenario(&given)?;
        let file = text.name.clone();
        let named = |flow: &&Flow| settings.flow.as_ref().is_none_or(|name| flow.name == *name);
        let Some(at) = scenario.flows.iter().position(|flow| named(&flow)) else {
            let flow = settings.flow.clone().unwrap_or_default();
            return Err(RankError::NoFlow { file, flow }.into());
        };
        let flow = scenario.flows[at].clone();
        if flow.multipath.is_some() || flow.paths.len() != 1 {
            return Err(RankError::SeveralPaths { file, flow: flow.name }.into());
        }
        if flow.after.is_some() {
            return Err(RankError::Waits { file, flow: flow.name }.into());
        }
        let forward = &scenario.paths[flow.paths[0]].forward;
        let unlimited = |link: &usize| scenario.links[*link].config.rate == RateModel::Unlimited;
        if forward.iter().all(unlimited) {
            return Err(RankError::NoRate { file, flow: flow.name }.into());
        }
        let selections = |all: &Candidates, option: &str| {
            let one = |cc: &String| {
                selection(text, &given, (&flow.name, at), cc)
                    .map_err(|error| of_option(error, option, cc))
            };
            all_or_every_error(all.0.iter().map(one))
        };
        let ((candidates, theirs), (rivals, further)): ((Vec<_>, Vec<_>), (Vec<_>, Vec<_>)) = (
            selections(&settings.candidates, "--cc")?.into_iter().unzip(),
            selections(&settings.rivals, "--against")?.into_iter().unzip(),
        );
        for file in theirs.into_iter().chain(further).flatten() {
            if !scenario.files.contains(&file) {
                scenario.files.push(file);
            }
        }
        let mut left_out: Vec<String> = Vec::new();
        for other in scenario.flows.iter().filter(|other| other.name != flow.name) {
            if !left_out.contains(&other.name) {
                left_out.push(other.name.clone());
            }
        }
        scenario.claims.clear();
        let described =
            RankScenario { name: scenario.name.clone(), file, flow: flow.name.clone(), left_out };
        Ok((Stage { scenario, flow, candidates, rivals }, described))
    }
}

/// A controller as typed, as a value of a scenario file: a table, or else its name.
fn value_of(cc: &str) -> toml::Value {
    let read = || format!("cc = {cc}").parse::<toml::Table>().ok()?.remove("cc");
    read().filter(toml::Value::is_table).unwrap_or_else(|| cc.into())
}

/// The texts, each with the files it names.
fn sources(texts: &[ScenarioText], stages: &[Stage]) -> Vec<Sources> {
    let files = |stage: &Stage| {
        let files = stage.scenario.files.iter();
        files.map(|file| (file.written.clone(), file.bytes.clone())).collect()
    };
    let each = texts.iter().zip(stages);
    each.map(|(text, stage)| Sources { text: text.clone(), files: files(stage) }).collect()
}

/// Resolves a controller as in a scenario's flow, with presets and windows in BDP. Returns the files
/// that the scenario then names as well.
fn selection(
    text: &ScenarioText,
    given: &[Override],
    (flow, at): (&str, usize),
    cc: &str,
) -> Result<(Selection, Vec<InputFile>), Error> {
    let set = [Override::new(&format!("flow.{flow}.cc"), cc)];
    let mut scenario = text.scenario(&[given, &set].concat())?;
    let found = (at < scenario.flows.len()).then(|| scenario.flows.swap_remove(at));
    let missing = || Error::Defect(format!("flow {flow} does not exist with cc = {cc}"));
    Ok((found.ok_or_else(missing)?.controller, scenario.files))
}

/// Places the problems of a controller in the option that names it, instead of in the override that
/// stands for it.
fn of_option(error: Error, option: &str, cc: &str) -> Error {
    let Error::Files(mut files) = error else { return error };
    for errors in &mut files {
        for (at, source) in errors.sources.iter_mut().enumerate() {
            let ours = |text: &str| text.strip_suffix(cc).is_some_and(|key| key.ends_with(".cc="));
            if source.name != "--set" || !ours(&source.text) {
                continue;
            }
            let key = source.text.len() - cc.len();
            *source = SourceText { name: option.to_string(), text: cc.to_string() };
            for problem in errors.problems.iter_mut().filter(|problem| problem.source == at) {
                let Range { start, end } = problem.span;
                problem.span = start.saturating_sub(key)..end.saturating_sub(key);
            }
        }
    }
    Error::Files(files)
}

/// Returns the named files and the scenarios in the named folders, sorted by name: `*.toml`, except
/// files of studies.
///
/// # Errors
/// A folder that cannot be read or contains no scenario.
pub fn scenario_files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    Ok(found_files(named)?.into_iter().map(|(file, _)| file).collect())
}

/// Returns the files of [`scenario_files`], each with whether it comes from a folder.
fn found_files(named: &[PathBuf]) -> Result<Vec<(PathBuf, bool)>, Error> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push((path.clone(), false));
            continue;
        }
        let failed = |source| Error::Read { path: path.clone(), source };
        let entries = std::fs::read_dir(path).map_err(failed)?;
        let all = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>();
        let mut found: Vec<PathBuf> = all.map_err(failed)?;
        found.retain(|file| is_scenario(file));
        found.sort();
        if found.is_empty() {
            return Err(RankError::NoScenarios(path.display().to_string()).into());
        }
        files.extend(found.into_iter().map(|file| (file, true)));
    }
    Ok(files)
}

impl<'g> Rank<'g> {
    /// Reads and checks files, and the scenarios of folders. Scenarios of a folder that cannot be
    /// ranked are skipped and listed in [`Rank::not_ranked`].
    ///
    /// # Errors
    /// The errors of [`Rank::new`] for files that are named directly; the error of a folder's first
    /// file if none can be ranked.
    pub fn of_files(named: &[PathBuf], settings: &RankSettings<'g>) -> Result<Rank<'g>, Error> {
        let files = found_files(named)?;
        let own = files.iter().filter(|(_, brought)| !brought);
        all_or_every_error(own.map(|(file, _)| ScenarioText::read(file)))?;
        let (mut texts, mut not_ranked, mut first) = (Vec::new(), Vec::new(), None);
        for (file, brought) in &files {
            let text = ScenarioText::read(file).map_err(Error::from);
            let checked = text.and_then(|text| {
                if *brought {
                    let (stage, _) = Stage::new(&text, settings)?;
                    settings.on.check(&stage.scenario)?;
                }
                Ok(text)
            });
            match checked {
                Ok(text) => texts.push(text),
                Err(error) => {
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default().to_string();
                    not_ranked.push(NotRanked { file: file.display().to_string(), reason });
                    first.get_or_insert(error);
                }
            }
        }
        if let Some(error) = first.filter(|_| texts.is_empty()) {
            return Err(error);
        }
        let mut rank = Rank::new(&texts, settings)?;
        rank.not_ranked = not_ranked;
        Ok(rank)
    }
}

fn is_scenario(file: &Path) -> bool {
    let toml = file.extension().is_some_and(|ending| ending == "toml");
    toml && file.file_name().is_some_and(|name| name != crate::STUDY)
}

/// The command that repeats the ranking.
fn command(texts: &[ScenarioText], settings: &RankSettings<'_>) -> String {
    let mut words = vec!["knee".to_string(), "rank".to_string()];
    words.extend(texts.iter().map(|text| quoted(&text.name)));
    let mut option = |name: &str, value: String| words.extend([name.to_string(), quoted(&value)]);
    if settings.candidates != Candidates::all() {
        option("--cc", settings.candidates.0.join(","));
    }
    option("--against", settings.rivals.0.join(","));
    settings.set.iter().for_each(|set| option("--set", set.text().to_string()));
    settings.flow.iter().for_each(|flow| option("--flow", flow.clone()));
    settings.seed.iter().for_each(|seed| option("--seed", seed.to_string()));
    option("--repeat", settings.repeat.to_string());
    if settings.on.name() != SIMULATOR {
        option("--on", settings.on.name().to_string());
    }
    words.join(" ")
}
