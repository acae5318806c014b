//! Controllers ranked over scenarios: each alone, beside itself and beside
//! rivals, with several seeds: what `knee rank` does.

mod plan;
mod trace;

pub use plan::{Candidates, NotRanked, PlannedRank, Rank, RankSettings, scenario_files};

use crate::directory::{RANK, RANK_TABLE, REPORT};
use crate::error::Error;
use crate::job::{Job, execute};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::origin;
use knee_record::{
    Company, Control, Meter, RankFigures, RankRun, RankSummary, RankTrace, write_json, write_rank,
    write_text,
};
use knee_report::rank_page;
use std::collections::BTreeMap;
use std::path::Path;

/// What came of a ranking.
#[derive(Debug)]
pub struct Ranked {
    /// The answer.
    pub summary: RankSummary,
    /// Runs that were made; one beside a rival that is the candidate itself is
    /// made once.
    pub runs: usize,
    /// Data packets of these.
    pub packets: u64,
    /// Time that passed, seconds.
    pub wall_s: f64,
}

/// Why a ranking cannot be.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// It would not end.
    #[error("{0} runs are too many")]
    TooMany(usize),
    /// Power and fairness are those of flows over one path.
    #[error("in {file}, flow {flow} takes several paths")]
    SeveralPaths {
        /// The scenario.
        file: String,
        /// The group of flows.
        flow: String,
    },
    /// Nothing says how much of the path is used.
    #[error("in {file}, no link of the path of flow {flow} has a rate")]
    NoRate {
        /// The scenario.
        file: String,
        /// The group of flows.
        flow: String,
    },
    /// No group of flows is called so.
    #[error("in {file}, there is no flow {flow}")]
    NoFlow {
        /// The scenario.
        file: String,
        /// What was asked for.
        flow: String,
    },
    /// A folder holds no scenario.
    #[error("{0} holds no scenario (*.toml)")]
    NoScenarios(String),
}

/// A finished run, and what its recorded link carried.
struct Made {
    run: RankRun,
    trace: Option<Carried>,
    packets: u64,
}

/// The series of one run: link, length of a bin, capacity, throughput.
pub(crate) struct Carried {
    pub link: String,
    pub bin_s: f64,
    pub capacity_bps: Vec<u64>,
    pub throughput_bps: Vec<u64>,
}

impl Lab {
    /// Ranks, and writes table, document and page into `directory`, also of
    /// what there is after a stop. It is to be [`Lab::claim`]ed before.
    ///
    /// # Errors
    /// The first failure of a run, or that something cannot be written.
    pub fn rank(&self, rank: &Rank<'_>, directory: &Path) -> Result<Ranked, Error> {
        rank.on.check_host()?;
        let settings = rank.settings.clone();
        origin::keep(self, directory, rank.on.name(), &rank.sources, settings)?;
        let meter = Meter::start();
        let loads: Vec<Load> = rank.runs.iter().map(|run| run.load).collect();
        let mut order = costliest_first(&loads);
        order.sort_by_key(|number| rank.runs[*number].repeat);
        let made = self.side_by_side(&loads, order, |number, control| {
            make(rank, &rank.runs[number], control)
        })?;
        let made: Vec<Made> = made.into_iter().flatten().collect();
        let ranked = Ranked {
            runs: made.len(),
            packets: made.iter().map(|made| made.packets).sum(),
            wall_s: meter.stop().wall_s,
            summary: summary(rank, &made),
        };
        write(rank, &all_runs(rank, &made), &ranked.summary, directory)?;
        Ok(ranked)
    }
}

fn make(rank: &Rank<'_>, run: &PlannedRank, control: &Control) -> Result<Option<Made>, Error> {
    let scenario = rank.scenario(run);
    let finished = execute(&Job::new(&scenario, rank.on), control);
    let finished = finished.map_err(|error| error.at(&rank.label(run)))?;
    if finished.records.interrupted {
        return Ok(None);
    }
    let wanted = run.repeat == 1 && run.company == Company::Alone;
    let trace = wanted.then(|| trace::carried(&scenario, &finished.records)).flatten();
    let figures = RankFigures::of(&scenario, &finished.records, &finished.summary);
    let PlannedRank { scenario, candidate, company, repeat, seed, .. } = *run;
    Ok(Some(Made {
        run: RankRun { scenario, candidate, company, repeat, seed, figures },
        trace,
        packets: finished.records.cost.data_packets,
    }))
}

/// The runs in the order of the plan, with those beside a rival that is the
/// candidate itself, which are its runs beside itself.
fn all_runs(rank: &Rank<'_>, made: &[Made]) -> Vec<RankRun> {
    let twice = made.iter().flat_map(|made| {
        let run = &made.run;
        let rivals = rank.rivals_that_are(run.candidate);
        let same = rivals.filter(|_| run.company == Company::Itself);
        let again = same.map(|rival| RankRun { company: Company::Rival(rival), ..run.clone() });
        std::iter::once(run.clone()).chain(again).collect::<Vec<_>>()
    });
    let mut runs: Vec<RankRun> = twice.collect();
    runs.sort_by_key(|run| (run.scenario, run.candidate, run.company, run.repeat));
    runs
}

fn summary(rank: &Rank<'_>, made: &[Made]) -> RankSummary {
    RankSummary::new(rank.ranking.clone(), &all_runs(rank, made), traces(rank, made))
}

/// Those of each recorded link together.
fn traces(rank: &Rank<'_>, made: &[Made]) -> Vec<RankTrace> {
    let mut traces: BTreeMap<usize, RankTrace> = BTreeMap::new();
    for Made { run, trace, .. } in made {
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
