//! Finds the path that explains a measured connection: knee-advise over the packet simulator.
//! Implements `knee fit`.
//!
//! The run's own scenario is simulated with other values for its one link and the way back, and what
//! the sender would have seen is compared with what it saw. So a figure is known as far as it makes a
//! difference to the connection, and not otherwise.

mod measured;

pub use measured::{Compared, Estimate, MeasuredFit};

use crate::compare::compare_runs;
use crate::directory::{FITTED, REPORT};
use crate::error::Error;
use crate::experiment::{Experiment, ExperimentSettings};
use crate::ground::SIMULATOR;
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::text::ScenarioText;
use knee_advise::{
    Figure, Fit, LinkBounds, LinkPath, Misfitting, SampleInterval, Search, SearchSettings, Series,
    figures,
};
use knee_record::{FlowSample, RunView, read_run, write_text};
use knee_scenario::{Override, Reverse, Scenario};
use std::path::{Path, PathBuf};

/// Values of each figure that are tried over its whole range at the end.
const SCAN: usize = 8;
/// Fewest intervals between the samples of a run.
const SAMPLES_MIN: usize = 20;
/// Folder of the simulated run, within the output.
pub const FITTED_RUN: &str = "fitted";

/// Why no path can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Not one flow, or one whose application pauses.
    #[error("{0} does not have one flow that always sends")]
    NotOneFlow(String),
    /// The flow has several paths, or its path several links.
    #[error("the path in {0} does not have one link and a delay on the way back")]
    NotOneLink(String),
    /// Too few samples of the flow, or nothing arrived.
    #[error("{0} has too few samples of its flow")]
    TooShort(String),
    /// A file that cannot be read, why, and what to write instead.
    #[error("{0}: {1}")]
    File(String, String, String),
}

/// Settings of a fit.
#[derive(Clone, Copy, Debug)]
pub struct FitSettings {
    /// Number of simulations.
    pub simulations: usize,
    /// Seed of all random draws.
    pub seed: u64,
}

/// The path that explains a run.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The flow's controller.
    pub controller: String,
    /// Rate, bit/s.
    pub rate: Figure,
    /// RTT without queueing, seconds.
    pub rtt: Figure,
    /// Probability of random loss.
    pub loss: Figure,
    /// Queue capacity, bytes.
    pub buffer: Figure,
    /// Distance of the best path's connection from the measured one; about one half if chance alone
    /// separates them.
    pub misfit: f64,
    /// What the best path reproduces least.
    pub misfitting: Vec<Misfitting>,
    /// The scenario with that path.
    pub scenario: String,
}

/// The figures of a link, the best one, and what it reproduces least.
type FoundLink = ([Figure; 4], Fit<LinkPath>, Vec<Misfitting>);

/// A run whose path is sought.
struct Sought {
    text: ScenarioText,
    link: String,
    path: String,
    controller: String,
    /// Part of a packet that is payload.
    payload: f64,
    series: Series,
}

impl Lab {
    /// Finds the path that explains the run in a folder. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// A folder that cannot be read, a [`FitError`], or the first failure of a simulation.
    pub fn fit(&self, run: &Path, settings: &FitSettings) -> Result<Option<Fitted>, Error> {
        let sought = Sought::read(run, settings.seed)?;
        let bounds = LinkBounds::new(&sought.series, sought.payload);
        let FitSettings { simulations, seed } = *settings;
        let how = SearchSettings { seed, simulations, kept: 1, scan: SCAN };
        let found = self.search_link(
            (sought.series.clone(), bounds, how),
            &|path| sought.over(path),
            &|view| series(view, seed),
        )?;
        let Some(([rate, rtt, loss, buffer], best, misfitting)) = found else { return Ok(None) };
        Ok(Some(Fitted {
            controller: sought.controller.clone(),
            rate,
            rtt,
            loss,
            buffer,
            misfit: best.misfit,
            misfitting,
            scenario: sought.over(&best.path)?.resolved,
        }))
    }

    /// Searches for the link over which the scenarios `over` yield what was seen. Returns `None` if it
    /// was stopped.
    fn search_link(
        &self,
        (observed, bounds, how): (Series, LinkBounds, SearchSettings),
        over: &dyn Fn(&LinkPath) -> Result<Scenario, Error>,
        seen: &(dyn Fn(&RunView<'_>) -> Option<Series> + Sync),
    ) -> Result<Option<FoundLink>, Error> {
        let simulator = self.grounds.get(SIMULATOR)?;
        let mut search = Search::new(observed, bounds, how);
        loop {
            let paths = search.next_paths();
            if paths.is_empty() {
                break;
            }
            let scenarios = paths.iter().map(over);
            let scenarios = scenarios.collect::<Result<Vec<Scenario>, Error>>()?;
            let jobs: Vec<Job<'_>> =
                scenarios.iter().map(|scenario| Job::new(scenario, simulator)).collect();
            let seen =
                self.run_all(&jobs, |number, run: Run| Ok(seen(&run.view(&scenarios[number]))))?;
            if self.is_stopped() {
                return Ok(None);
            }
            let seen = seen.into_iter().map(|one| one.flatten().unwrap_or_else(Series::silent));
            search.tell(&seen.collect::<Vec<_>>());
        }
        let found = figures(&mut search);
        let misfitting = search.misfitting();
        let best = search.fits().into_iter().next();
        Ok(found.zip(best).map(|(figures, best)| (figures, best, misfitting)))
    }

    /// Writes the scenario with the path, runs it, and lays the two runs over each other on a page.
    /// Returns the scenario's file and the page.
    ///
    /// # Errors
    /// What could not be run or written.
    pub fn keep_fit(&self, run: &Path, fitted: &Fitted, out: &Path) -> Result<[PathBuf; 2], Error> {
        let file = out.join(FITTED);
        write_text(&file, &fitted.scenario)?;
        let settings = ExperimentSettings {
            alternatives: false,
            ..ExperimentSettings::on(self.grounds.get(SIMULATOR)?)
        };
        let simulated = out.join(FITTED_RUN);
        let text = ScenarioText::read(&file)?;
        let mut experiments = vec![Experiment::new(text, settings, simulated.clone())?];
        self.carry_out(&mut experiments)?;
        let sides = [run.to_path_buf(), simulated];
        self.keep_comparison(&compare_runs(&sides)?, out)?;
        Ok([file, out.join(REPORT)])
    }
}

impl Sought {
    fn read(run: &Path, seed: u64) -> Result<Sought, Error> {
        let saved = read_run(run)?;
        let text = ScenarioText::of_run(run)?;
        let scenario = text.scenario(&[])?;
        let name = run.display().to_string();
        let [flow] = &scenario.flows[..] else { return Err(FitError::NotOneFlow(name).into()) };
        let properties = flow.workload.properties();
        if !(properties.pushes && properties.single) {
            return Err(FitError::NotOneFlow(name).into());
        }
        let [path] = flow.paths[..] else { return Err(FitError::NotOneLink(name).into()) };
        let path = &scenario.paths[path];
        let ([link], Reverse::Delay(_)) = (&path.forward[..], &path.reverse) else {
            return Err(FitError::NotOneLink(name).into());
        };
        let view = RunView::new(&saved.records, scenario.warmup);
        let series = series(&view, seed).ok_or(FitError::TooShort(name))?;
        let (mss, header) = (f64::from(flow.transport.mss), f64::from(flow.transport.header));
        Ok(Sought {
            link: scenario.links[*link].name.clone(),
            path: path.name.clone(),
            controller: saved
                .summary
                .flows
                .first()
                .map_or_else(String::new, |flow| flow.cc.clone()),
            payload: mss / (mss + header),
            series,
            text,
        })
    }

    /// The run's scenario over a path.
    fn over(&self, path: &LinkPath) -> Result<Scenario, Error> {
        let LinkPath { rate_bps, rtt_s, loss, buffer_bytes } = *path;
        let half = format!("{:.0} us", (rtt_s * 5e5).max(1.0));
        let set = [
            (format!("link.{}.rate", self.link), format!("{rate_bps:.0} bit/s")),
            (format!("link.{}.delay", self.link), half.clone()),
            (format!("link.{}.buffer", self.link), format!("{buffer_bytes:.0} B")),
            (format!("link.{}.loss", self.link), format!("{:.4} %", 100.0 * loss)),
            (format!("path.{}.reverse_delay", self.path), half),
        ];
        let set = set.map(|(key, value)| Override::new(&key, &value));
        Ok(self.text.scenario(&set)?)
    }
}

/// What the sender of the first flow saw from sample to sample, from the end of the warm-up to the
/// last delivery.
fn series(view: &RunView<'_>, seed: u64) -> Option<Series> {
    let flow = view.flows.first()?;
    let from = flow.record.start_ns + view.warmup.as_nanos();
    let samples: Vec<FlowSample> =
        flow.samples.iter().filter(|sample| sample.time_ns >= from).collect();
    let last = samples.last().map_or(0, |last| last.delivered_bytes);
    let pairs = samples.windows(2).take_while(|pair| pair[0].delivered_bytes < last);
    if pairs.clone().count() < SAMPLES_MIN {
        return None;
    }
    let interval = |pair: &[FlowSample]| {
        let [before, after] = [pair[0], pair[1]];
        SampleInterval {
            seconds: (after.time_ns - before.time_ns) as f64 / 1e9,
            delivered_bytes: after.delivered_bytes - before.delivered_bytes,
            sent_bytes: after.sent_bytes - before.sent_bytes,
            retransmitted_bytes: after.retransmitted_bytes - before.retransmitted_bytes,
            rtt_s: (after.rtt_ns > 0).then_some(after.rtt_ns as f64 / 1e9),
        }
    };
    let rtt_min_s = flow.record.rtt_min_ns as f64 / 1e9;
    Series::of(&pairs.map(interval).collect::<Vec<_>>(), rtt_min_s, seed)
}
