//! Runs side by side: rayon over runs, never inside one.

use crate::failure::{Failure, cannot_write};
use crate::interrupt;
use crate::progress::{Progress, Tracked, weight};
use knee_record::{Meter, Records, Summary, Usage};
use knee_scenario::Scenario;
use knee_sim::{Control, SimulationError};
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::fs::{File, create_dir_all};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be run.
#[derive(Debug)]
pub struct Job<'s> {
    /// The scenario, with its seed.
    pub scenario: &'s Scenario,
    /// Where to write the packet log, if at all.
    pub packet_log: Option<PathBuf>,
}

/// A run that ended or was stopped.
#[derive(Debug)]
pub struct Finished {
    /// The rows.
    pub records: Records,
    /// What came out.
    pub summary: Summary,
    /// What it took of the host.
    pub usage: Usage,
}

/// Runs all jobs, at most `parallel` at a time, and hands each to `keep` with
/// its number as soon as it is finished. Gives what `keep` makes of them, in
/// the order of the jobs whatever the order of their ends; nothing for jobs
/// that an interrupt kept from beginning. After a failure no job begins.
pub fn run_all<T: Send>(
    jobs: &[Job<'_>],
    parallel: Option<u16>,
    keep: impl Fn(usize, Finished) -> Result<T, Failure> + Sync,
) -> Result<Vec<Option<T>>, Failure> {
    let controls: Vec<Arc<Control>> = jobs.iter().map(|_| Arc::default()).collect();
    interrupt::stops(&controls)?;
    let runs = jobs.iter().zip(&controls);
    let _progress =
        Progress::of(runs.map(|(job, c)| Tracked::new(job.scenario, c.clone())).collect());
    let failed = AtomicBool::new(false);
    let run = |index: usize| -> (usize, Result<Option<T>, Failure>) {
        if interrupt::requested() || failed.load(Ordering::Relaxed) {
            return (index, Ok(None));
        }
        let finished = execute(&jobs[index], &controls[index]);
        let kept = finished.and_then(|finished| keep(index, finished)).map(Some);
        failed.fetch_or(kept.is_err(), Ordering::Relaxed);
        (index, kept)
    };
    let mut ended: Vec<_> = pool(jobs.len(), parallel)?
        .install(|| costliest_first(jobs).into_iter().par_bridge().map(run).collect());
    ended.sort_by_key(|(index, _)| *index);
    ended.into_iter().map(|(_, result)| result).collect()
}

fn pool(jobs: usize, parallel: Option<u16>) -> Result<rayon::ThreadPool, Failure> {
    let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = parallel.map_or_else(cpus, usize::from).min(jobs.max(1));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|error| {
        Failure::Host(format!("cannot start {threads} threads: {error}"), "use --jobs 1".into())
    })
}

/// So that no long run is left to run alone at the end.
fn costliest_first(jobs: &[Job<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by(|a, b| weight(jobs[*b].scenario).total_cmp(&weight(jobs[*a].scenario)));
    order
}

fn execute(job: &Job<'_>, control: &Control) -> Result<Finished, Failure> {
    let meter = Meter::start();
    let records = match &job.packet_log {
        None => knee_sim::run(job.scenario, control)?,
        Some(path) => run_logged(job.scenario, control, path)?,
    };
    let usage = meter.stop();
    control.now_ns.store(job.scenario.duration.as_nanos(), Ordering::Relaxed);
    let summary = Summary::new(job.scenario, "sim", &records);
    Ok(Finished { records, summary, usage })
}

fn run_logged(scenario: &Scenario, control: &Control, path: &Path) -> Result<Records, Failure> {
    let run = knee_sim::run_logged(scenario, control, new_file(path)?);
    run.map_err(|error| match error {
        SimulationError::Log(source) => cannot_write(path, &source),
        other => other.into(),
    })
}

fn new_file(path: &Path) -> Result<BufWriter<File>, Failure> {
    if let Some(folder) = path.parent() {
        create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    }
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}
