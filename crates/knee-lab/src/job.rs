//! A single run: its settings and its result.

use crate::directory::{CAPTURE, PACKETS};
use crate::error::Error;
use crate::ground::{Ended, Ground, GroundError, Output, Pace};
use crate::perfect;
use knee_record::{
    Control, HostHealth, Meter, Part, Recording, Records, RunView, SampleSink, SavedRun, Summary,
    Usage,
};
use knee_scenario::Scenario;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'s> {
    /// The scenario, with its seed.
    pub scenario: &'s Scenario,
    /// The ground.
    pub ground: &'s dyn Ground,
    /// Directory for its records as they are produced, if any.
    pub directory: Option<&'s Path>,
    /// Folder for what the ground writes itself, in place of `directory`.
    pub scratch: Option<&'s Path>,
    /// Whether to write a packet log there, if the ground supports it.
    pub packet_log: bool,
    /// Whether to capture packets there, if the ground supports it.
    pub capture: bool,
    /// Whether to find when a perfect scheduler would have finished, for files over several paths,
    /// by further runs on a ground with virtual time.
    pub perfect: bool,
}

impl<'s> Job<'s> {
    /// A run that leaves nothing on disk.
    pub fn new(scenario: &'s Scenario, ground: &'s dyn Ground) -> Job<'s> {
        Job {
            scenario,
            ground,
            directory: None,
            scratch: None,
            packet_log: false,
            capture: false,
            perfect: false,
        }
    }

    /// A run that is stored; see [`crate::Lab::keep`].
    pub fn kept(scenario: &'s Scenario, ground: &'s dyn Ground, directory: &'s Path) -> Job<'s> {
        Job { directory: Some(directory), ..Job::new(scenario, ground) }
    }
}

/// A run that ended or was stopped.
#[derive(Debug)]
pub struct Run {
    /// The rows.
    pub records: Records,
    /// Summary of the run.
    pub summary: Summary,
    /// Resources that it used on the host.
    pub usage: Usage,
    /// How the host kept up; only for a run in real time.
    pub health: Option<HostHealth>,
    /// Recording that already holds the samples, if the run is stored.
    pub recording: Option<Recording>,
}

impl From<SavedRun> for Run {
    /// What the run used and how the host kept up stays in its manifest.
    fn from(saved: SavedRun) -> Run {
        let SavedRun { manifest, records, summary, .. } = saved;
        let usage = Usage::default();
        Run { records, summary, usage, health: manifest.health, recording: None }
    }
}

impl Run {
    /// Says why its figures do not count in a comparison: what was measured is the host, or a program
    /// failed. `None` if they do.
    pub(crate) fn unsound(&self) -> Option<String> {
        let reason = self.summary.verdict_reason.clone();
        let why = || reason.unwrap_or_else(|| "the host was too busy".to_string());
        (!self.summary.is_sound()).then(why)
    }

    /// View of the records that measures use.
    pub fn view(&self, scenario: &Scenario) -> RunView<'_> {
        RunView::new(&self.records, scenario.warmup)
    }
}

/// Attempts at a run in real time before it is given up.
pub(crate) const TRIES: usize = 3;

/// Runs a scenario on its ground, and again if the host did not keep up.
pub(crate) fn execute_sound(job: &Job<'_>, control: &Control) -> Result<Run, Error> {
    let mut run = execute(job, control)?;
    for _ in 1..TRIES {
        if run.unsound().is_none() || run.records.interrupted {
            break;
        }
        run = execute(job, control)?;
    }
    Ok(run)
}

/// Runs a scenario on its ground.
pub(crate) fn execute(job: &Job<'_>, control: &Control) -> Result<Run, Error> {
    let Job { scenario, ground, directory, scratch, packet_log, capture, perfect } = *job;
    let meter = Meter::start();
    let mut recording = directory.map(|at| Recording::begin(at, scenario)).transpose()?;
    let mut nowhere = ();
    let samples: &mut dyn SampleSink = match &mut recording {
        Some(recording) => recording,
        None => &mut nowhere,
    };
    let path = directory.filter(|_| packet_log && ground.writes_packet_log());
    let path = path.map(|directory| directory.join(PACKETS));
    let not_logged = |source| Error::Write { path: path.clone().unwrap_or_default(), source };
    let (part, file) = path.as_deref().map(Part::create).transpose()?.unzip();
    let mut log = file.map(|file| BufWriter::with_capacity(1 << 20, file));
    let packet_log = log.as_mut().map(|log| log as &mut dyn Write);
    let captured = directory.filter(|_| capture && ground.captures());
    let captured = captured.map(|directory| directory.join(CAPTURE));
    let not_captured = |source| Error::Write { path: captured.clone().unwrap_or_default(), source };
    let (capture_part, capture) = captured.as_deref().map(Part::create).transpose()?.unzip();
    let output = Output { samples, packet_log, capture, directory: scratch.or(directory) };
    let ended = ground.run(scenario, control, output);
    let Ended { mut records, judged } = ended.map_err(|error| match error {
        GroundError::PacketLog(source) => not_logged(source),
        GroundError::Capture(source) => not_captured(source),
        other => other.into(),
    })?;
    log.as_mut().map_or(Ok(()), Write::flush).map_err(not_logged)?;
    if let Some(recording) = &mut recording {
        part.into_iter().chain(capture_part).for_each(|part| recording.add(part));
    }
    if perfect && ground.pace() == Pace::Virtual {
        perfect::fill(scenario, ground, control, &mut records)?;
    }
    let usage = meter.stop();
    control.now_ns.store(scenario.duration.as_nanos(), Ordering::Relaxed);
    let mut summary = Summary::new(scenario, ground.name(), &records);
    if let Some(judged) = &judged {
        summary = summary.judged(judged.verdict, &judged.reason);
        summary.unsound = summary.verdict > ground.counts_up_to();
    }
    let health = judged.and_then(|judged| judged.health);
    Ok(Run { records, summary, usage, health, recording })
}
