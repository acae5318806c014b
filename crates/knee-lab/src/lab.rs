//! Runs jobs in parallel: rayon over runs, never inside one. Runs in real time follow the others,
//! one by one.

use crate::error::Error;
use crate::ground::{Grounds, Pace};
use crate::handle::{Handle, Tracked};
use crate::job::{Job, Run, execute};
use crate::load::Load;
use knee_record::{Brought, Control, Program};
use knee_scenario::Scenario;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Runs scenarios: holds the grounds and the settings for using the machine.
#[derive(Debug)]
pub struct Lab {
    /// The available grounds.
    pub grounds: Grounds,
    /// Limit on parallel runs of those in virtual time; `None`: one per CPU.
    pub parallel: Option<u16>,
    /// Arguments of the program, for the manifests of stored runs.
    pub arguments: Vec<String>,
    /// Build of the program, for the same manifests.
    pub program: Program,
    /// Controllers and schedulers that the program provides itself, for the same manifests.
    pub brought: Classes,
    handle: Handle,
}

/// Controllers and schedulers that a program provides itself, by their names in scenarios. Clones
/// share them, so that whoever reads scenarios can add those that it finds there.
#[derive(Clone, Debug, Default)]
pub struct Classes(Arc<Mutex<BTreeMap<String, Brought>>>);

impl Classes {
    /// Adds one.
    pub fn add(&self, name: &str, class: Brought) {
        self.all().insert(name.to_string(), class);
    }

    /// Returns the one of this name.
    pub fn get(&self, name: &str) -> Option<Brought> {
        self.all().get(name).cloned()
    }

    /// Returns all.
    pub(crate) fn known(&self) -> BTreeMap<String, Brought> {
        self.all().clone()
    }

    /// Returns those that a scenario names.
    pub(crate) fn used_by(&self, scenario: &Scenario) -> BTreeMap<String, Brought> {
        let named = |name: &String| {
            scenario.flows.iter().any(|flow| {
                let scheduler = flow.multipath.as_ref().map(|several| &several.scheduler.name);
                flow.controller.name == *name || scheduler == Some(name)
            })
        };
        let all = self.all();
        let used = all.iter().filter(|(name, _)| named(name));
        used.map(|(name, class)| (name.clone(), class.clone())).collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Brought>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Lab {
    /// Creates a lab with the grounds of this build of Knee.
    fn default() -> Lab {
        Lab::new(Grounds::built_in())
    }
}

impl Lab {
    /// Creates a lab with these grounds.
    pub fn new(grounds: Grounds) -> Lab {
        Lab {
            grounds,
            parallel: None,
            arguments: Vec::new(),
            program: Program::default(),
            brought: Classes::default(),
            handle: Handle::default(),
        }
    }

    /// Returns a handle that stops this lab's runs and reports progress, for another thread or a
    /// signal handler.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Whether a handle requested a stop.
    pub fn is_stopped(&self) -> bool {
        self.handle.is_stopped()
    }

    /// Runs one job.
    ///
    /// # Errors
    /// What prevented it from running; [`Error::Stopped`] after a stop.
    pub fn run(&self, job: &Job<'_>) -> Result<Run, Error> {
        let runs = self.run_all(std::slice::from_ref(job), |_, run| Ok(run))?;
        runs.into_iter().flatten().next().ok_or(Error::Stopped)
    }

    /// Runs all jobs and passes each to `keep` with its number as soon as it ends. Returns the
    /// results of `keep` in the order of the jobs; `None` for jobs that did not start because of a
    /// stop. After a failure no further job starts.
    ///
    /// # Errors
    /// The first failure of a job or of `keep`.
    pub fn run_all<T: Send>(
        &self,
        jobs: &[Job<'_>],
        keep: impl Fn(usize, Run) -> Result<T, Error> + Sync,
    ) -> Result<Vec<Option<T>>, Error> {
        self.run_in_order(jobs, costliest_first, keep)
    }

    /// The same, with the jobs in the order that `order` returns for their loads.
    ///
    /// # Errors
    /// The first failure of a job or of `keep`.
    pub(crate) fn run_in_order<T: Send>(
        &self,
        jobs: &[Job<'_>],
        order: impl Fn(&[Load]) -> Vec<usize>,
        keep: impl Fn(usize, Run) -> Result<T, Error> + Sync,
    ) -> Result<Vec<Option<T>>, Error> {
        let loads: Vec<Load> = jobs.iter().map(|job| Load::of(job.scenario, job.ground)).collect();
        self.side_by_side(&loads, order(&loads), |index, control| {
            keep(index, execute(&jobs[index], control)?).map(Some)
        })
    }

    /// Performs pieces of work in the given order, those in real time after the others, one by one
    /// in the order of their numbers. Returns the results in the order of the numbers.
    pub(crate) fn side_by_side<T: Send>(
        &self,
        loads: &[Load],
        order: Vec<usize>,
        work: impl Fn(usize, &Control) -> Result<Option<T>, Error> + Sync,
    ) -> Result<Vec<Option<T>>, Error> {
        let controls: Vec<Arc<Control>> = loads.iter().map(|_| Arc::default()).collect();
        let (mut real, order): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|index| loads[*index].pace == Pace::Real);
        real.sort_unstable();
        let tracked = |pace: Pace| -> Vec<Tracked> {
            let all = loads.iter().zip(&controls).filter(|(load, _)| load.pace == pace);
            all.map(|(load, control)| Tracked { control: control.clone(), load: *load }).collect()
        };
        let failed = AtomicBool::new(false);
        let run = |index: usize| -> (usize, Result<Option<T>, Error>) {
            if self.is_stopped() || failed.load(Ordering::Relaxed) {
                return (index, Ok(None));
            }
            let done = work(index, &controls[index]);
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            (index, done)
        };
        let under_way = self.handle.begin(tracked(Pace::Virtual));
        let pool = self.pool(order.len())?;
        let mut ended: Vec<_> = pool.install(|| order.into_iter().par_bridge().map(run).collect());
        drop(under_way);
        let _under_way = self.handle.begin(tracked(Pace::Real));
        ended.extend(real.into_iter().map(run));
        ended.sort_by_key(|(index, _)| *index);
        ended.into_iter().map(|(_, result)| result).collect()
    }

    fn pool(&self, jobs: usize) -> Result<rayon::ThreadPool, Error> {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.parallel.map_or_else(cpus, usize::from).min(jobs.max(1));
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().map_err(|source| Error::Threads { threads, source })
    }
}

/// Sorts by cost, so that no long run is left alone at the end.
pub(crate) fn costliest_first(loads: &[Load]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|a, b| loads[*b].weight.total_cmp(&loads[*a].weight));
    order
}
