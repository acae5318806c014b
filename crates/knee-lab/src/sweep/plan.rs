//! Plans a sweep: every combination of the values, checked before any run starts.

use super::{SweepError, SweepSettings, Vary};
use crate::answers::is_half_and_half;
use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::{Ground, GroundError, SIMULATOR};
use crate::load::Load;
use crate::origin::Files;
use crate::text::ScenarioText;
use knee_record::{LeftOut, SweepKey, sha256_hex};
use knee_scenario::{Errors, InputFile, Override, Scenario};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use std::collections::BTreeMap;

/// Limit on the number of runs; more would be a mistake.
const RUNS_MAX: usize = 200_000;
/// Limit on the points that a message names.
const NAMED_MAX: usize = 4;
/// Limit on the distinct errors that are reported.
const TOLD_MAX: usize = 10;

/// The plan of a sweep: a scenario at every combination of some settings.
#[derive(Debug)]
pub struct Sweep<'g> {
    /// The scenario file.
    pub text: ScenarioText,
    /// Varied keys.
    pub keys: Vec<SweepKey>,
    /// Valid combinations, in the order of the values.
    pub points: Vec<Point>,
    /// All runs: every point of the first repeat, then of the second, and so on.
    pub runs: Vec<PlannedRun>,
    /// Combinations that are not valid scenarios.
    pub left_out: Vec<LeftOut>,
    /// Title of the scenario.
    pub name: String,
    /// Whether mixes under several controllers share a path at some point.
    pub(super) half_and_half: bool,
    /// Files named by at least one point.
    pub(super) files: Files,
    pub(super) settings: SweepSettings<'g>,
}

/// A combination of values.
#[derive(Debug)]
pub struct Point {
    /// Index of the value of each key.
    pub at: Vec<usize>,
    /// Label as typed: `flow.main.cc=bbr link.a.rate=10 Mbit/s`.
    pub label: String,
}

/// One run.
#[derive(Debug)]
pub struct PlannedRun {
    /// Index of the point.
    pub point: usize,
    /// Number of the repeat, from one.
    pub repeat: u64,
    /// Seed of all randomness.
    pub seed: u64,
    /// Hash of the resolved scenario and its files.
    pub id: String,
    /// Expected cost.
    pub load: Load,
}

impl<'g> Sweep<'g> {
    /// Combines the values and checks every point.
    ///
    /// # Errors
    /// All errors in the file or at a point, unless such points are skipped; what the ground does
    /// not support; a [`SweepError`].
    pub fn new(text: ScenarioText, settings: SweepSettings<'g>) -> Result<Sweep<'g>, Error> {
        let keys = keys(&settings)?;
        let repeats = settings.repeat.unwrap_or(1);
        let all = combinations(&keys);
        if all.len().saturating_mul(repeats as usize) > RUNS_MAX {
            let points = all.len();
            return Err(SweepError::TooMany { points, repeats, runs_max: RUNS_MAX }.into());
        }
        let mut sweep = Sweep {
            text,
            keys,
            points: Vec::new(),
            runs: Vec::new(),
            left_out: Vec::new(),
            name: String::new(),
            half_and_half: false,
            files: Files::new(),
            settings,
        };
        let points: Vec<Point> = all.into_iter().map(|at| sweep.point(at)).collect();
        let checked: Vec<Result<Checked, Errors>> =
            points.par_iter().map(|point| sweep.check(point, repeats)).collect();
        sweep.take(points, checked)?;
        sweep.interleave(repeats);
        Ok(sweep)
    }

    /// The scenario of a point with a seed.
    pub(super) fn scenario(
        &self,
        point: &Point,
        of_repeat: Option<u64>,
    ) -> Result<Scenario, Errors> {
        let given = self.settings.set.iter().cloned().chain(self.settings.seed.map(seed));
        let varied = self.keys.iter().zip(&point.at);
        let varied = varied.map(|(key, at)| Override::new(&key.name, &key.values[*at]));
        let set: Vec<Override> = given.chain(varied).chain(of_repeat.map(seed)).collect();
        self.text.scenario(&set).map_err(|errors| self.told_of_vary(errors))
    }

    fn point(&self, at: Vec<usize>) -> Point {
        let settings = self.keys.iter().zip(&at);
        let settings: Vec<String> =
            settings.map(|(key, at)| format!("{}={}", key.name, key.values[*at])).collect();
        Point { at, label: settings.join(" ") }
    }

    /// Checks a point's scenario and plans its runs.
    fn check(&self, point: &Point, repeats: u64) -> Result<Checked, Errors> {
        let ground = self.settings.on;
        let first = self.scenario(point, None)?;
        let mut runs = vec![(first.seed, id(&first, ground))];
        for number in 1..repeats {
            let seed = repeat_seed(first.seed, number);
            runs.push((seed, id(&self.scenario(point, Some(seed))?, ground)));
        }
        let refused = ground.check(&first).err();
        let load = Load::of(&first, ground);
        let half_and_half = is_half_and_half(&first);
        Ok(Checked { name: first.name, files: first.files, half_and_half, load, runs, refused })
    }

    /// Keeps the valid points; skips or reports the others.
    fn take(
        &mut self,
        points: Vec<Point>,
        checked: Vec<Result<Checked, Errors>>,
    ) -> Result<(), Error> {
        let total = points.len();
        let mut wrong = Vec::new();
        for (point, checked) in points.into_iter().zip(checked) {
            match checked {
                Err(errors) => wrong.push((point, errors)),
                Ok(Checked { refused: Some(refused), .. }) => {
                    return Err(Error::from(refused).at(&point.label));
                }
                Ok(checked) => {
                    self.name = checked.name;
                    self.half_and_half |= checked.half_and_half;
                    let files = checked.files.into_iter();
                    self.files.extend(files.map(|file| (file.written, file.bytes)));
                    let number = self.points.len();
                    let numbered = checked.runs.into_iter().zip(1..);
                    self.runs.extend(numbered.map(|((seed, id), repeat)| PlannedRun {
                        point: number,
                        repeat,
                        seed,
                        id,
                        load: checked.load,
                    }));
                    self.points.push(point);
                }
            }
        }
        if !wrong.is_empty() && (!self.settings.skip_invalid || self.points.is_empty()) {
            return Err(Error::Files(mistakes(&wrong, total)));
        }
        let reason = |errors: &Errors| errors.problems[0].message.clone();
        let left_out = wrong.into_iter();
        self.left_out = left_out
            .map(|(point, errors)| LeftOut { at: point.at, reason: reason(&errors) })
            .collect();
        Ok(())
    }

    fn interleave(&mut self, repeats: u64) {
        if repeats > 1 {
            self.runs.sort_by_key(|run| (run.repeat, run.point));
        }
    }

    /// Attributes errors in varied values to `--vary` instead of `--set`.
    fn told_of_vary(&self, mut errors: Errors) -> Errors {
        let varied = |text: &str| {
            self.keys
                .iter()
                .any(|key| text.split_once('=').is_some_and(|(name, _)| name == key.name))
        };
        let from_vary = errors.sources.iter_mut().filter(|s| s.name == "--set" && varied(&s.text));
        from_vary.for_each(|source| source.name = "--vary".to_string());
        errors
    }

    /// Reasons for skipped points, each with its points.
    pub fn reasons(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for left_out in &self.left_out {
            let label = self.point(left_out.at.clone()).label;
            by_reason.entry(&left_out.reason).or_default().push(label);
        }
        by_reason.iter().map(|(reason, labels)| format!("{reason}: {}", named(labels))).collect()
    }
}

/// A valid point.
struct Checked {
    name: String,
    files: Vec<InputFile>,
    half_and_half: bool,
    load: Load,
    /// Seed and hash of each repeat.
    runs: Vec<(u64, String)>,
    /// Why the ground does not support it.
    refused: Option<GroundError>,
}

fn keys(settings: &SweepSettings<'_>) -> Result<Vec<SweepKey>, SweepError> {
    let SweepSettings { vary, set, .. } = settings;
    for (number, this) in vary.iter().enumerate() {
        if vary[..number].iter().any(|other| other.key == this.key) {
            return Err(SweepError::VariedTwice(this.key.clone()));
        }
        let same = |text: &str| text.split_once('=').is_some_and(|(key, _)| key.trim() == this.key);
        if set.iter().any(|set| same(set.text())) {
            return Err(SweepError::SetAndVaried(this.key.clone()));
        }
    }
    let known = || vary.iter().map(|vary| vary.key.clone());
    if let Some(key) = settings.about.as_ref().filter(|key| known().all(|known| known != **key)) {
        return Err(SweepError::NotVaried { key: key.clone(), known: known().collect() });
    }
    let key = |vary: &Vary| SweepKey { name: vary.key.clone(), values: vary.values.clone() };
    Ok(vary.iter().map(key).collect())
}

/// All combinations, the last key varying fastest. Stops once there are more than can be run.
fn combinations(keys: &[SweepKey]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for key in keys {
        if all.len() > RUNS_MAX {
            break;
        }
        let longer = |at: &Vec<usize>| {
            let at = at.clone();
            (0..key.values.len()).map(move |value| {
                let mut at = at.clone();
                at.push(value);
                at
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Hash of a run: equal hashes imply equal records.
pub(super) fn id(scenario: &Scenario, ground: &dyn Ground) -> String {
    let mut all = scenario.resolved.clone().into_bytes();
    if ground.name() != SIMULATOR {
        all.extend(format!("\non {}", ground.name()).into_bytes());
    }
    for file in &scenario.files {
        all.extend(format!("\n{} {}", file.name, sha256_hex(&file.bytes)).into_bytes());
    }
    sha256_hex(&all)[..20].to_string()
}

/// Groups errors, so that each is reported once with its points.
fn mistakes(wrong: &[(Point, Errors)], total: usize) -> Vec<Errors> {
    let mut told: BTreeMap<(String, String), (Errors, Vec<String>)> = BTreeMap::new();
    for (point, errors) in wrong {
        for problem in &errors.problems {
            let place = errors.source_of(problem).text[problem.span.clone()].to_string();
            let only =
                || Errors { problems: vec![problem.clone()], sources: errors.sources.clone() };
            let known = told.entry((problem.message.clone(), place));
            known.or_insert_with(|| (only(), Vec::new())).1.push(point.label.clone());
        }
    }
    let some_can_be = wrong.len() < total;
    let with_points = |(mut errors, labels): (Errors, Vec<String>)| {
        let problem = &mut errors.problems[0];
        if labels.len() < total {
            let count = labels.len();
            problem.message += &format!(" (at {count} of {total} points: {})", named(&labels));
        }
        if some_can_be {
            let asks = problem.help.ends_with('?');
            problem.help += if asks { " Or" } else { "; or" };
            problem.help += " skip such points with --skip-invalid";
        }
        errors
    };
    told.into_values().take(TOLD_MAX).map(with_points).collect()
}

/// Names the first labels and counts the rest.
fn named(labels: &[String]) -> String {
    let more = match labels.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    labels.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ") + &more
}
