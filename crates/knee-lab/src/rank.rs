//! Ranks controllers over scenarios: each alone, beside itself and beside rivals, with several
//! seeds. Implements `knee rank`.

mod plan;
mod trace;

pub use plan::{Candidates, NotRanked, PlannedRank, Rank, RankSettings, scenario_files};

use crate::directory::{RANK, RANK_TABLE, REPORT};
use crate::error::Error;
use crate::job::{Job, execute_sound};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::origin;
use knee_record::{
    Competition, Control, INPUTS, Meter, RankFigure, RankFigures, RankRun, RankSummary, RankTrace,
    write_json, write_rank, write_text,
};
use knee_report::rank_page;
use std::collections::BTreeMap;
use std::path::Path;

/// Outcome of a ranking.
#[derive(Debug)]
pub struct Ranked {
    /// The summary.
    pub summary: RankSummary,
    /// Number of runs; a run beside a rival equal to the candidate is done only once.
    pub runs: usize,
    /// Data packets of these runs.
    pub packets: u64,
    /// Runs whose figures do not count, each with the reason: the host did not keep up, or a program
    /// failed or lacked the processor.
    pub unsound: Vec<String>,
    /// Elapsed time, seconds.
    pub wall_s: f64,
}

/// Why a ranking is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// Too many runs.
    #[error("{0} runs are too many")]
    TooMany(usize),
    /// A flow has several paths, for which power and fairness are not defined.
    #[error("in {file}, flow {flow} takes several paths")]
    SeveralPaths {
        /// The scenario.
        file: String,
        /// The flow group.
        flow: String,
    },
    /// A flow waits for the transfers of another, which is not in its runs.
    #[error("in {file}, flow {flow} waits for the transfers of another")]
    Waits {
        /// The scenario.
        file: String,
        /// The flow group.
        flow: String,
    },
    /// The utilisation of the path is unknown.
    #[error("in {file}, no link of the path of flow {flow} has a rate")]
    NoRate {
        /// The scenario.
        file: String,
        /// The flow group.
        flow: String,
    },
    /// No flow group has this name.
    #[error("in {file}, there is no flow {flow}")]
    NoFlow {
        /// The scenario.
        file: String,
        /// The requested name.
        flow: String,
    },
    /// The folder contains no scenario.
    #[error("{0} contains no scenario (*.toml)")]
    NoScenarios(String),
}

/// A finished run, and the throughput of its recorded link.
struct FinishedRun {
    run: RankRun,
    trace: Option<LinkThroughput>,
    packets: u64,
    /// Why its figures do not count.
    unsound: Option<String>,
}

/// Series of one run: link, bin length, capacity, throughput.
pub(crate) struct LinkThroughput {
    pub link: String,
    pub bin_s: f64,
    pub capacity_bps: Vec<u64>,
    pub throughput_bps: Vec<u64>,
}

impl Lab {
    /// Ranks, and writes table, document and page into `directory`; if stopped, for the runs so
    /// far. The directory must have been [`Lab::claim`]ed.
    ///
    /// # Errors
    /// The first failure of a run, or a file that cannot be written.
    pub fn rank(&self, rank: &Rank<'_>, directory: &Path) -> Result<Ranked, Error> {
        rank.on.check_host()?;
        let settings = rank.settings.clone();
        origin::keep(self, directory, rank.on.name(), &rank.sources, settings)?;
        let meter = Meter::start();
        let loads: Vec<Load> = rank.runs.iter().map(|run| run.load).collect();
        let mut order = costliest_first(&loads);
        order.sort_by_key(|number| rank.runs[*number].repeat);
        let made = self.side_by_side(&loads, order, |number, control| {
            make(rank, &rank.runs[number], directory, control)
        })?;
        let made: Vec<FinishedRun> = made.into_iter().flatten().collect();
        let mut ranked = Ranked {
            runs: made.len(),
            packets: made.iter().map(|made| made.packets).sum(),
            unsound: made.iter().filter_map(|made| made.unsound.clone()).collect(),
            wall_s: meter.stop().wall_s,
            summary: summary(rank, &made),
        };
        keep_cases(rank, &mut ranked.summary, directory)?;
        write(rank, &all_runs(rank, &made), &ranked.summary, directory)?;
        Ok(ranked)
    }
}

fn make(
    rank: &Rank<'_>,
    run: &PlannedRank,
    directory: &Path,
    control: &Control,
) -> Result<Option<FinishedRun>, Error> {
    let scenario = rank.scenario(run);
    let job = Job { scratch: Some(directory), ..Job::new(&scenario, rank.on) };
    let finished = execute_sound(&job, control);
    let finished = finished.map_err(|error| error.at(&rank.label(run)))?;
    if finished.records.interrupted {
        return Ok(None);
    }
    let unsound = finished.unsound().map(|why| format!("{}: {why}", rank.label(run)));
    let wanted = run.repeat == 1 && run.company == Competition::Alone && unsound.is_none();
    let trace = wanted.then(|| trace::carried(&scenario, &finished.records)).flatten();
    let figures = match &unsound {
        None => RankFigures::of(&finished.summary),
        Some(_) => RankFigures::default(),
    };
    let PlannedRank { scenario, candidate, company, repeat, seed, .. } = *run;
    Ok(Some(FinishedRun {
        run: RankRun { scenario, candidate, company, repeat, seed, figures },
        trace,
        packets: finished.records.cost.data_packets,
        unsound,
    }))
}

/// Keeps the cases in which the user's own candidates are worst as scenario files.
fn keep_cases(rank: &Rank<'_>, summary: &mut RankSummary, directory: &Path) -> Result<(), Error> {
    for (number, worst) in summary.worst.iter_mut().enumerate() {
        let company = match (worst.what, worst.rival) {
            (RankFigure::Jain, _) => Competition::Itself,
            (_, Some(rival)) => Competition::Rival(rival),
            (_, None) => Competition::Alone,
        };
        let candidates = &rank.ranking.candidates;
        let candidate = candidates.iter().position(|name| *name == worst.candidate);
        let run = rank.runs.iter().find(|run| {
            (run.scenario, Some(run.candidate), run.company) == (worst.scenario, candidate, company)
        });
        let Some(text) = run.and_then(|run| rank.case_file(run)) else { continue };
        let file = format!("{INPUTS}/worst-{}.toml", number + 1);
        write_text(&directory.join(&file), &text)?;
        worst.file = Some(file);
    }
    Ok(())
}

/// The runs in planned order. A run beside a rival equal to the candidate is taken from the
/// candidate's runs beside itself.
fn all_runs(rank: &Rank<'_>, made: &[FinishedRun]) -> Vec<RankRun> {
    let twice = made.iter().flat_map(|made| {
        let run = &made.run;
        let rivals = rank.rivals_that_are(run.candidate);
        let same = rivals.filter(|_| run.company == Competition::Itself);
        let again = same.map(|rival| RankRun { company: Competition::Rival(rival), ..run.clone() });
        std::iter::once(run.clone()).chain(again).collect::<Vec<_>>()
    });
    let mut runs: Vec<RankRun> = twice.collect();
    runs.sort_by_key(|run| (run.scenario, run.candidate, run.company, run.repeat));
    runs
}

fn summary(rank: &Rank<'_>, made: &[FinishedRun]) -> RankSummary {
    RankSummary::new(rank.ranking.clone(), &all_runs(rank, made), traces(rank, made))
}

/// Merges the series of each recorded link.
fn traces(rank: &Rank<'_>, made: &[FinishedRun]) -> Vec<RankTrace> {
    let mut traces: BTreeMap<usize, RankTrace> = BTreeMap::new();
    for FinishedRun { run, trace, .. } in made {
        let Some(carried) = trace else { continue };
        let candidates = rank.ranking.candidates.len();
        let trace = traces.entry(run.scenario).or_insert_with(|| RankTrace {
            scenario: run.scenario,
            link: carried.link.clone(),
            bin_s: carried.bin_s,
            capacity_bps: carried.capacity_bps.clone(),
            throughput_bps: vec![Vec::new(); candidates],
        });
        trace.throughput_bps[run.candidate] = carried.throughput_bps.clone();
    }
    traces.into_values().collect()
}

fn write(
    rank: &Rank<'_>,
    runs: &[RankRun],
    summary: &RankSummary,
    directory: &Path,
) -> Result<(), Error> {
    write_rank(&directory.join(RANK_TABLE), &rank.ranking, runs)?;
    write_json(&directory.join(RANK), summary)?;
    write_text(&directory.join(REPORT), &rank_page(summary)?)?;
    Ok(())
}
