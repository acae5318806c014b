//! A ground that keeps the tables of its runs, and holds the interpreter during runs that call it.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use knee_lab::record::{
    ClassSample, ConnectionRecord, Control, Error, FlowSample, InMemory, LinkSample, RunTables,
    SampleSink,
};
use knee_lab::scenario::Scenario;
use knee_lab::{Ended, Ground, GroundError, Output, Pace};
use pyo3::prelude::*;

/// Slot for the tables of the last run.
pub type Kept = Arc<Mutex<Option<RunTables>>>;

/// From which schedulers in Python get their randomness: the seed of the run, and their number
/// within it.
#[derive(Default)]
pub struct RunSeed {
    seed: AtomicU64,
    made: AtomicU64,
}

impl RunSeed {
    /// Begins a run: nothing depends on what earlier ones made.
    fn begin(&self, seed: u64) {
        self.seed.store(seed, Ordering::Relaxed);
        self.made.store(0, Ordering::Relaxed);
    }

    /// Returns the seed of the next scheduler.
    pub fn next_scheduler(&self) -> String {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        format!("{} scheduler {number}", self.seed.load(Ordering::Relaxed))
    }
}

/// A ground with additional effects.
pub struct WithEffects<G> {
    /// The wrapped ground.
    pub inner: G,
    /// Whether runs use controllers or schedulers in Python. A run then holds the interpreter, so
    /// that calls need not acquire it.
    pub attached: bool,
    /// Where to keep the tables, if anywhere.
    pub kept: Option<Kept>,
    /// Receives the seed of the run.
    pub seed: Arc<RunSeed>,
}

impl<G> fmt::Debug for WithEffects<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("attached", &self.attached).finish_non_exhaustive()
    }
}

impl<G: Ground> Ground for WithEffects<G> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn summary(&self) -> &str {
        self.inner.summary()
    }

    fn pace(&self) -> Pace {
        self.inner.pace()
    }

    fn setup_s(&self) -> f64 {
        self.inner.setup_s()
    }

    fn writes_packet_log(&self) -> bool {
        self.inner.writes_packet_log()
    }

    fn captures(&self) -> bool {
        self.inner.captures()
    }

    fn check_host(&self) -> Result<(), GroundError> {
        self.inner.check_host()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        self.inner.check(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        self.seed.begin(scenario.seed);
        let Some(kept) = &self.kept else { return self.go(scenario, control, output) };
        let Output { samples, packet_log, capture, directory } = output;
        let mut both = Both { first: samples, second: InMemory::of(scenario) };
        // A separate borrow, as short as that of the samples.
        let packet_log: Option<&mut dyn Write> = match packet_log {
            Some(log) => Some(&mut *log),
            None => None,
        };
        let output = Output { samples: &mut both, packet_log, capture, directory };
        let ended = self.go(scenario, control, output)?;
        let tables = both.second.finish(&ended.records);
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(tables);
        Ok(ended)
    }
}

impl<G: Ground> WithEffects<G> {
    fn go(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        if !self.attached {
            return self.inner.run(scenario, control, output);
        }
        Python::attach(|_| self.inner.run(scenario, control, output))
    }
}

/// Passes every row to two sinks.
struct Both<'s> {
    first: &'s mut dyn SampleSink,
    second: InMemory,
}

impl SampleSink for Both<'_> {
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.first.flow(row).and_then(|()| self.second.flow(row))
    }

    fn path(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.first.path(row).and_then(|()| self.second.path(row))
    }

    fn link(&mut self, row: &LinkSample) -> Result<(), Error> {
        self.first.link(row).and_then(|()| self.second.link(row))
    }

    fn class(&mut self, row: &ClassSample) -> Result<(), Error> {
        self.first.class(row).and_then(|()| self.second.class(row))
    }

    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.first.connection(row).and_then(|()| self.second.connection(row))
    }
}
