//! Runs side by side: rayon over runs, never inside one. Runs in real time
//! do not share it: they come after the others, one by one.

use crate::control::Control;
use crate::directory::PACKETS;
use crate::estimate;
use crate::failure::{Failure, cannot_write};
use crate::interrupt;
use crate::kernel;
use crate::progress::{Load, Pace, Progress, Tracked};
use knee_record::{HostHealth, Meter, Recording, Records, SampleSink, Summary, Usage};
use knee_scenario::{Ground, Scenario};
use knee_sim::SimulationError;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be run.
#[derive(Debug)]
pub struct Job<'s> {
    /// The scenario, with its seed.
    pub scenario: &'s Scenario,
    /// Where.
    pub ground: Ground,
    /// Where its records are to be kept, if at all.
    pub directory: Option<&'s Path>,
    /// Also write a packet log there; of the simulator only.
    pub packet_log: bool,
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
    /// How the host kept up; of a run in real time.
    pub health: Option<HostHealth>,
    /// What has its samples already, if its records are to be kept; of the
    /// simulator.
    pub recording: Option<Recording>,
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
    estimate::warn(jobs);
    let loads: Vec<Load> = jobs.iter().map(|job| Load::on(job.scenario, job.ground)).collect();
    let order = costliest_first(&loads, 0..jobs.len());
    side_by_side(&loads, order, parallel, |index, control| {
        keep(index, execute(&jobs[index], control)?).map(Some)
    })
}

/// Does pieces of work in the given order, at most `parallel` at a time, then
/// those in real time one by one in the order of their numbers, and gives
/// what comes of all in that order; nothing for those that an interrupt kept
/// from beginning. After a failure none begins.
pub fn side_by_side<T: Send>(
    loads: &[Load],
    order: Vec<usize>,
    parallel: Option<u16>,
    work: impl Fn(usize, &Control) -> Result<Option<T>, Failure> + Sync,
) -> Result<Vec<Option<T>>, Failure> {
    let controls: Vec<Arc<Control>> =
        loads.iter().map(|load| Arc::new(Control::on(load.ground))).collect();
    interrupt::stops(&controls)?;
    let (mut real, order): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|index| loads[*index].ground == Ground::Kernel);
    real.sort_unstable();
    let tracked = |real: bool| -> Vec<Tracked> {
        let all = loads.iter().zip(&controls);
        let those = all.filter(|(load, _)| (load.ground == Ground::Kernel) == real);
        those.map(|(load, control)| Tracked::new(*load, control.clone())).collect()
    };
    let failed = AtomicBool::new(false);
    let run = |index: usize| -> (usize, Result<Option<T>, Failure>) {
        if interrupt::requested() || failed.load(Ordering::Relaxed) {
            return (index, Ok(None));
        }
        let done = work(index, &controls[index]);
        failed.fetch_or(done.is_err(), Ordering::Relaxed);
        (index, done)
    };
    let progress = Progress::of(tracked(false), Pace::Virtual);
    let mut ended: Vec<_> =
        pool(order.len(), parallel)?.install(|| order.into_iter().par_bridge().map(run).collect());
    drop(progress);
    let _progress = Progress::of(tracked(true), Pace::Real);
    ended.extend(real.into_iter().map(run));
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
pub fn costliest_first(loads: &[Load], numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut order: Vec<usize> = numbers.collect();
    order.sort_by(|a, b| loads[*b].weight.total_cmp(&loads[*a].weight));
    order
}

/// Runs a scenario on its ground.
pub fn execute(job: &Job<'_>, control: &Control) -> Result<Finished, Failure> {
    let finished = match control {
        Control::Kernel(control) => on_kernel(job, control)?,
        Control::Sim(control) => on_simulator(job, control)?,
    };
    control.ended(job.scenario.duration.as_nanos());
    Ok(finished)
}

fn on_kernel(job: &Job<'_>, control: &knee_kernel::Control) -> Result<Finished, Failure> {
    let meter = Meter::start();
    let (records, summary, health) = kernel::run(job.scenario, control)?;
    let (usage, health) = (meter.stop(), Some(health));
    Ok(Finished { records, summary, usage, health, recording: None })
}

fn on_simulator(job: &Job<'_>, control: &knee_sim::Control) -> Result<Finished, Failure> {
    let meter = Meter::start();
    let begin = |directory| Recording::begin(directory, job.scenario);
    let mut recording = job.directory.map(begin).transpose()?;
    let samples: &mut dyn SampleSink = match &mut recording {
        Some(recording) => recording,
        None => &mut (),
    };
    let records = match job.directory.filter(|_| job.packet_log) {
        None => knee_sim::run_to(job.scenario, control, samples, None)?,
        Some(directory) => run_logged(job.scenario, control, samples, &directory.join(PACKETS))?,
    };
    let usage = meter.stop();
    let summary = Summary::new(job.scenario, "sim", &records);
    Ok(Finished { records, summary, usage, health: None, recording })
}

fn run_logged(
    scenario: &Scenario,
    control: &knee_sim::Control,
    samples: &mut dyn SampleSink,
    path: &Path,
) -> Result<Records, Failure> {
    // Not over what is there: it could be a link to something else.
    let file = File::create_new(path).map_err(|error| cannot_write(path, &error))?;
    let mut log = BufWriter::with_capacity(1 << 20, file);
    knee_sim::run_to(scenario, control, samples, Some(&mut log)).map_err(|error| match error {
        SimulationError::Log(source) => cannot_write(path, &source),
        other => other.into(),
    })
}
