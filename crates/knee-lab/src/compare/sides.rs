//! Sides of a comparison: runs, sets of repeats and points of sweeps, by name.

use super::CompareError;
use crate::directory::{REPEAT, SWEEP, repeat};
use crate::error::Error;
use crate::experiment::seed;
use crate::origin::{Origin, OriginSettings};
use crate::sweep::{RunOfPoint, TABLE, run_of_point};
use crate::text::ScenarioText;
use knee_record::{
    Records, Side, SideRun, Summary, SweepKey, SweepSummary, group_measures, read_run, read_sweep,
    read_sweep_runs,
};
use knee_scenario::{Override, Scenario};
use knee_units::Time;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a name refers to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// Folder of a run.
    Run(PathBuf),
    /// Folder of a set of repeats.
    Repeats(PathBuf),
    /// A point of a sweep.
    Point(Box<PointOf>),
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PointOf {
    /// Folder of the sweep.
    pub directory: PathBuf,
    /// Varied keys and the point's values.
    pub settings: Vec<(String, String)>,
    /// Index of the value of each key.
    at: Vec<usize>,
}

impl Source {
    /// The name as the user can type it.
    pub fn typed(&self) -> String {
        match self {
            Source::Run(path) | Source::Repeats(path) => path.display().to_string(),
            Source::Point(point) => {
                let settings = point.settings.iter().map(|(key, value)| format!("@{key}={value}"));
                format!("{}{}", point.directory.display(), settings.collect::<String>())
            }
        }
    }
}

/// Resolves names: the folder of a run or of repeats, the folder of a sweep (all of its points), or
/// `SWEEP@KEY=VALUE` (the points with that value).
pub(super) fn sources(names: &[PathBuf]) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for name in names {
        match sweep_of(name) {
            Some((directory, wanted)) => {
                let points = points(&directory, &wanted)?.into_iter();
                sources.extend(points.map(|point| Source::Point(Box::new(point))));
            }
            None if name.join(REPEAT).is_file() => sources.push(Source::Repeats(name.clone())),
            None => sources.push(Source::Run(name.clone())),
        }
    }
    Ok(sources)
}

/// Splits a name into a sweep's folder and the requested settings.
fn sweep_of(name: &Path) -> Option<(PathBuf, Vec<String>)> {
    if name.join(SWEEP).is_file() {
        return Some((name.to_path_buf(), Vec::new()));
    }
    if name.is_dir() {
        return None;
    }
    let text = name.to_str()?;
    let mut folders = text.match_indices('@').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let found = folders.rfind(|(folder, _)| Path::new(folder).join(SWEEP).is_file());
    found.map(|(folder, rest)| {
        (PathBuf::from(folder), rest.split('@').map(str::to_string).collect())
    })
}

fn points(directory: &Path, wanted: &[String]) -> Result<Vec<PointOf>, Error> {
    let sweep = read_sweep(&directory.join(SWEEP))?;
    let wanted: Vec<(usize, usize)> =
        wanted.iter().map(|text| setting(directory, &sweep, text)).collect::<Result<_, _>>()?;
    let chosen = sweep
        .points
        .iter()
        .filter(|point| wanted.iter().all(|(key, value)| point.at.get(*key) == Some(value)));
    let point = |at: &Vec<usize>| {
        let values = sweep.keys.iter().zip(at);
        let settings = values.map(|(key, value)| (key.name.clone(), key.values[*value].clone()));
        PointOf { directory: directory.to_path_buf(), settings: settings.collect(), at: at.clone() }
    };
    let points: Vec<PointOf> = chosen.map(|point_of| point(&point_of.at)).collect();
    match points.is_empty() {
        true => Err(no_point(directory, &sweep, "these values together")),
        false => Ok(points),
    }
}

/// Resolves `flow.mine.cc=bbr` to key and value; an unambiguous suffix of the key suffices.
fn setting(directory: &Path, sweep: &SweepSummary, text: &str) -> Result<(usize, usize), Error> {
    let missing = || no_point(directory, sweep, text);
    let (name, value) = text.split_once('=').ok_or_else(missing)?;
    let named = |key: &SweepKey| key.name == name || key.name.ends_with(&format!(".{name}"));
    let keys: Vec<usize> = (0..sweep.keys.len()).filter(|at| named(&sweep.keys[*at])).collect();
    let [key] = keys[..] else { return Err(missing()) };
    let value = sweep.keys[key].values.iter().position(|known| known == value);
    Ok((key, value.ok_or_else(missing)?))
}

fn no_point(directory: &Path, sweep: &SweepSummary, wanted: &str) -> Error {
    let known = sweep.keys.iter().map(|key| format!("{}={}", key.name, key.values.join("|")));
    let (sweep, wanted) = (directory.display().to_string(), wanted.to_string());
    CompareError::NoPoint { sweep, wanted, known: known.collect() }.into()
}

/// Measurements of one side, and the records of its first run if they are kept.
pub(crate) struct Found {
    pub side: Side,
    /// Records of the run, or of the first repeat.
    pub records: Option<Records>,
    /// Summary of each run; empty for a sweep's point, which keeps none.
    pub summaries: Vec<Summary>,
    /// Number of repeats that are left out: they were invalid or interrupted.
    pub left_out: usize,
}

impl Source {
    /// Reads what is stored for this source.
    pub fn read(&self, name: String) -> Result<Found, Error> {
        match self {
            Source::Run(path) => of_runs(name, std::slice::from_ref(path)),
            Source::Repeats(path) => {
                let folders = (1..).map(|number| path.join(repeat(number)));
                let folders: Vec<PathBuf> = folders.take_while(|folder| folder.is_dir()).collect();
                of_runs(name, &folders)
            }
            Source::Point(point) => point.read(name),
        }
    }
}

fn of_runs(name: String, folders: &[PathBuf]) -> Result<Found, Error> {
    let mut found = Found {
        side: Side { name: name.clone(), runs: Vec::new() },
        records: None,
        summaries: Vec::new(),
        left_out: 0,
    };
    let mut why = "it has none".to_string();
    for folder in folders {
        let saved = read_run(folder)?;
        // An interrupted run beside no others is no evidence of a difference anyway.
        if !saved.summary.is_sound() || (folders.len() > 1 && !saved.summary.is_evidence()) {
            found.left_out += 1;
            why = saved.summary.verdict_reason.unwrap_or(why);
            continue;
        }
        let warmup = Time::from_secs_f64(saved.summary.warmup_us / 1e6);
        let records = with_rates(folder, saved.records);
        let groups = group_measures(&records, &saved.summary, warmup);
        found.side.runs.push(SideRun { seed: saved.summary.seed, groups });
        found.summaries.push(saved.summary);
        found.records.get_or_insert(records);
    }
    if found.summaries.is_empty() {
        return Err(CompareError::NoEvidence(name, why).into());
    }
    Ok(found)
}

/// Adds the rates of the paths, which are in no file, from the scenario beside the records. A run
/// with a controller that this program does not know goes without the measures that need them, and
/// so does a run without links, whose path the scenario only supposes.
pub fn with_rates(folder: &Path, records: Records) -> Records {
    if records.link_names.is_empty() {
        return records;
    }
    let text = ScenarioText::of_run(folder).ok();
    match text.and_then(|text| text.scenario(&[]).ok()) {
        Some(scenario) => records.with_rates(&scenario),
        None => records,
    }
}

impl PointOf {
    /// Reads the point's runs, which the sweep's table identifies.
    fn read(&self, name: String) -> Result<Found, Error> {
        let sweep = read_sweep(&self.directory.join(SWEEP))?;
        let rows = read_sweep_runs(&self.directory.join(TABLE), &sweep.keys)?;
        let own = rows.iter().filter(|row| row.at == self.at);
        let mut runs = Vec::new();
        for row in own {
            let RunOfPoint { seed, groups } = run_of_point(&self.directory, &row.run)?;
            runs.push(SideRun { seed, groups });
        }
        let side = Side { name, runs };
        Ok(Found { side, records: None, summaries: Vec::new(), left_out: 0 })
    }

    /// The point's settings, and the version and ground of the sweep.
    pub fn settings(&self) -> Result<BTreeMap<String, String>, Error> {
        let origin = Origin::read(&self.directory)?;
        let mut given: BTreeMap<String, String> = self.settings.iter().cloned().collect();
        given.insert("version".to_string(), origin.version);
        given.insert("ground".to_string(), origin.ground);
        Ok(given)
    }

    /// The point's scenario, from the copy that the sweep keeps.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        let origin = Origin::read(&self.directory)?;
        let texts = origin.texts(&self.directory)?;
        let OriginSettings::Sweep { set, seed: first, .. } = &origin.settings else {
            return Err(Error::Defect("the origin of a sweep does not describe one".to_string()));
        };
        let mut all: Vec<Override> = Vec::new();
        for text in set {
            let parsed = text.parse::<Override>();
            all.push(parsed.map_err(|_| Error::Defect(format!("{text} is not a valid setting")))?);
        }
        all.extend(self.settings.iter().map(|(key, value)| Override::new(key, value)));
        all.extend(first.map(seed));
        let text = texts.first().ok_or_else(|| Error::Defect("a sweep of nothing".to_string()))?;
        Ok(text.scenario(&all)?)
    }
}

/// Short names that distinguish the sources: the last components of their paths, and for points the
/// values that differ.
pub(super) fn names(sources: &[Source]) -> Vec<String> {
    let varies = |key: &str| {
        let values = sources.iter().map(|source| match source {
            Source::Point(point) => {
                point.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        });
        let mut values: Vec<Option<&String>> = values.collect();
        values.dedup();
        values.len() > 1
    };
    let paths = sources.iter().map(|source| source.folder().display().to_string());
    let paths: Vec<String> = paths.collect();
    let short = shortened(&paths);
    let several = short.iter().any(|name| *name != short[0]);
    let name = |(source, folder): (&Source, &String)| match source {
        Source::Point(point) => {
            let values = point.settings.iter().filter(|(key, _)| varies(key));
            let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
            match (values.is_empty(), several) {
                (true, _) => folder.clone(),
                (false, true) => format!("{folder}: {}", values.join(", ")),
                (false, false) => values.join(", "),
            }
        }
        _ => folder.clone(),
    };
    sources.iter().zip(&short).map(name).collect()
}

impl Source {
    /// The folder of the run, the repeats or the sweep.
    pub fn folder(&self) -> &Path {
        match self {
            Source::Run(path) | Source::Repeats(path) => path,
            Source::Point(point) => &point.directory,
        }
    }
}

/// Paths without their common leading folders.
fn shortened(paths: &[String]) -> Vec<String> {
    let parts: Vec<Vec<&str>> =
        paths.iter().map(|path| path.trim_end_matches('/').split('/').collect()).collect();
    let shortest = parts.iter().map(Vec::len).min().unwrap_or(0);
    let same = |at: &usize| parts.iter().all(|path| path[*at] == parts[0][*at]);
    let common = (0..shortest.saturating_sub(1)).take_while(same).count();
    parts.iter().map(|path| path[common..].join("/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_short_as_they_can_be() {
        let of = |paths: &[&str]| {
            let runs = paths.iter().map(|path| Source::Run(path.into()));
            names(&runs.collect::<Vec<_>>())
        };
        assert_eq!(of(&["knee-out/a", "knee-out/b/"]), ["a", "b"]);
        assert_eq!(of(&["x/a/repeat-1", "x/b/repeat-1"]), ["a/repeat-1", "b/repeat-1"]);
        assert_eq!(of(&["a", "a"]), ["a", "a"]);
        assert_eq!(of(&["a", "x/a"]), ["a", "x/a"]);
    }

    #[test]
    fn points_are_called_by_what_varies() {
        let point = |cc: &str| {
            let settings = [("flow.a.cc", cc), ("link.b.buffer", "1 BDP")];
            let settings = settings.map(|(key, value)| (key.to_string(), value.to_string()));
            let directory = PathBuf::from("knee-out/sweep");
            Source::Point(Box::new(PointOf {
                directory,
                settings: settings.into(),
                at: vec![0, 0],
            }))
        };
        assert_eq!(names(&[point("bbr"), point("reno")]), ["bbr", "reno"]);
        assert_eq!(
            names(&[Source::Run("knee-out/x".into()), point("reno")]),
            ["x", "sweep: reno, 1 BDP"]
        );
        let typed = point("bbr").typed();
        assert_eq!(typed, "knee-out/sweep@flow.a.cc=bbr@link.b.buffer=1 BDP");
    }
}
