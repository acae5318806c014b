//! Measures a path with constant windows. Implements `knee curve`.

use crate::error::Error;
use crate::experiment::check_jobs;
use crate::ground::{Ground, KERNEL, QUIC, SIMULATOR};
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::studies::built_in_scenario;
use crate::text::ScenarioText;
use knee_link::{Buffer, RateModel};
use knee_record::{NotMeasurable, Verdict, Window, measure};
use knee_report::{CurveGround, CurvePoint};
use knee_scenario::{Errors, Link, Measure, Override, Scenario, Statistic};

/// Scenario used when no file is given.
const BUILT_IN: &str = "improved-bbr/fixed-window.toml";

/// Windows, in BDP up to the knee, and beyond it in buffers above one BDP. They end soon after a
/// full buffer: at one loss in eight packets, timeouts dominate.
const BELOW: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const ABOVE: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.95, 1.03, 1.06];
/// Buffer assumed for an unlimited one, BDP.
const UNLIMITED_BDP: f64 = 1.0;

/// The path as seen by its only flow.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePath {
    /// Name of its slowest link.
    pub bottleneck: String,
    /// Rate of that link, bit/s.
    pub rate_bps: f64,
    /// Bandwidth-delay product of that rate and the RTT without queueing, bytes.
    pub bdp_bytes: f64,
    /// Buffer of that link, bytes; `None` if unlimited.
    pub buffer_bytes: Option<f64>,
    /// A full segment with its header, bytes.
    pub segment_bytes: f64,
}

/// Result of one window on one ground.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the ground.
    pub ground: String,
    /// Window, rate and RTT.
    pub point: CurvePoint,
    /// Fraction of the bytes that were retransmitted.
    pub lost: f64,
    /// Verdict on the run.
    pub verdict: Verdict,
}

/// Why a scenario has no curve.
#[derive(Debug, thiserror::Error)]
pub enum CurveError {
    /// It has more than one flow.
    #[error("the scenario has more than one flow")]
    SeveralFlows,
    /// The flow's window is not constant.
    #[error("the scenario has a flow with another controller")]
    NotFixed,
    /// The flow has several paths.
    #[error("the scenario has a flow over several paths")]
    SeveralPaths,
    /// The path has no known constant rate.
    #[error("the scenario has no link with a constant rate")]
    NoConstantRate,
    /// The simulator is not among the grounds; the others are compared with it.
    #[error("other grounds are compared with the simulator, which is missing")]
    WithoutSimulator,
    /// A run was too short.
    #[error("a window of {window_bytes} B has no result: {reason}")]
    Nothing {
        /// The window, bytes.
        window_bytes: f64,
        /// The value that is missing.
        reason: NotMeasurable,
    },
}

/// The plan of a path's curve: one run for each window and ground.
#[derive(Debug)]
pub struct Curve<'g> {
    /// Title of the scenario.
    pub name: String,
    /// The measured path.
    pub path: CurvePath,
    on: Vec<&'g dyn Ground>,
    /// Windows, packets.
    windows: Vec<u64>,
    scenarios: Vec<Scenario>,
}

impl<'g> Curve<'g> {
    /// Plans the curve of a scenario with one flow of controller `fixed`; `None` uses the scenario
    /// of the study improved-bbr.
    ///
    /// # Errors
    /// All errors in the scenario, a [`CurveError`], or what a ground or this host lacks.
    pub fn new(text: Option<&ScenarioText>, on: Vec<&'g dyn Ground>) -> Result<Curve<'g>, Error> {
        if !on.iter().any(|ground| ground.name() == SIMULATOR) {
            return Err(CurveError::WithoutSimulator.into());
        }
        let first = scenario(text, None)?;
        let path = path(&first)?;
        let windows = windows(&path);
        let scenarios = windows.iter().map(|packets| scenario(text, Some(*packets)));
        let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
        let curve = Curve { name: first.name, path, on, windows, scenarios };
        check_jobs(&curve.jobs())?;
        Ok(curve)
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let of_ground = |ground: &&'g dyn Ground| {
            let ground = *ground;
            self.scenarios.iter().map(move |scenario| Job::new(scenario, ground))
        };
        self.on.iter().flat_map(of_ground).collect()
    }

    /// Names of the grounds other than the simulator, in the order of their runs.
    pub fn others(&self) -> impl Iterator<Item = &'g str> {
        self.on.iter().map(|ground| ground.name()).filter(|name| *name != SIMULATOR)
    }

    /// Builds the chart of the measurements.
    pub fn picture(&self, measured: &[Measured]) -> knee_report::Curve {
        let other = |name: &str, points| {
            let title = match name {
                KERNEL => "Linux TCP",
                QUIC => "QUIC",
                other => other,
            };
            CurveGround { title: title.to_string(), points }
        };
        let on_ground = |name: &str| {
            let those = measured.iter().filter(|one| one.ground == name);
            those.map(|one| one.point).collect()
        };
        knee_report::Curve {
            name: self.name.clone(),
            bdp_bytes: self.path.bdp_bytes,
            buffer_bytes: self.path.buffer_bytes,
            sim: on_ground(SIMULATOR),
            others: self.others().map(|name| other(name, on_ground(name))).collect(),
        }
    }
}

impl Lab {
    /// Runs the scenario with each window. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// The first failure of a run.
    pub fn curve(&self, curve: &Curve<'_>) -> Result<Option<Vec<Measured>>, Error> {
        let jobs = curve.jobs();
        let measured = self.run_all(&jobs, |index, run| {
            let window = curve.windows[index % curve.windows.len()] as f64;
            of_run(&curve.path, &jobs[index], window * curve.path.segment_bytes, &run)
        })?;
        Ok((!self.is_stopped()).then(|| measured.into_iter().flatten().collect()))
    }
}

fn scenario(text: Option<&ScenarioText>, packets: Option<u64>) -> Result<Scenario, Error> {
    let read = |set: &[Override]| -> Result<Scenario, Errors> {
        match text {
            Some(text) => text.scenario(set),
            None => built_in_scenario(BUILT_IN, set),
        }
    };
    let plain = read(&[])?;
    let [flow] = &plain.flows[..] else { return Err(CurveError::SeveralFlows.into()) };
    if flow.controller.name != "fixed" {
        return Err(CurveError::NotFixed.into());
    }
    let Some(packets) = packets else { return Ok(plain) };
    let value = format!("{{ name = \"fixed\", window = \"{packets} packets\" }}");
    Ok(read(&[Override::new(&format!("flow.{}.cc", flow.name), &value)])?)
}

fn path(scenario: &Scenario) -> Result<CurvePath, CurveError> {
    let flow = &scenario.flows[0];
    let [at] = flow.paths[..] else {
        return Err(CurveError::SeveralPaths);
    };
    let Some((link, rate_bps)) = bottleneck(scenario, at) else {
        return Err(CurveError::NoConstantRate);
    };
    let segment_bytes = f64::from(flow.transport.mss + flow.transport.header);
    let rtt = scenario.one_way_delay(at) + scenario.way_back(at);
    let bdp_bytes = rate_bps / 8.0 * rtt.as_secs_f64();
    let buffer_bytes = match link.config.buffer {
        Buffer::Unlimited => None,
        Buffer::Bytes(bytes) => Some(bytes as f64),
        Buffer::Packets(packets) => Some(packets as f64 * segment_bytes),
    };
    let bottleneck = link.name.clone();
    Ok(CurvePath { bottleneck, rate_bps, bdp_bytes, buffer_bytes, segment_bytes })
}

/// The slowest link of a path with its rate; `None` if a rate varies, which no single curve can
/// show.
fn bottleneck(scenario: &Scenario, path: usize) -> Option<(&Link, f64)> {
    let links = scenario.paths[path].forward.iter().map(|link| &scenario.links[*link]);
    let mut slowest: Option<(&Link, f64)> = None;
    for link in links {
        let bps = match &link.config.rate {
            RateModel::Unlimited => continue,
            RateModel::Constant(rate) => rate.as_bits_per_second() as f64,
            RateModel::Steps(_) | RateModel::Trace(_) => return None,
        };
        if slowest.is_none_or(|(_, least)| bps < least) {
            slowest = Some((link, bps));
        }
    }
    slowest
}

/// Distinct windows, packets.
fn windows(path: &CurvePath) -> Vec<u64> {
    let above = path.buffer_bytes.unwrap_or(UNLIMITED_BDP * path.bdp_bytes);
    let below = BELOW.iter().map(|times| times * path.bdp_bytes);
    let bytes = below.chain(ABOVE.iter().map(|times| path.bdp_bytes + times * above));
    let packets = bytes.map(|bytes| (bytes / path.segment_bytes).round() as u64);
    let mut packets: Vec<u64> = packets.filter(|packets| *packets > 0).collect();
    packets.dedup();
    packets
}

fn of_run(
    path: &CurvePath,
    job: &Job<'_>,
    window_bytes: f64,
    run: &Run,
) -> Result<Measured, Error> {
    let view = run.view(job.scenario);
    let value = |what: Measure, of: &str| {
        measure(&view, &what, of, Window::default())
            .map_err(|reason| CurveError::Nothing { window_bytes, reason })
    };
    let delivered_bps = value(Measure::Utilisation, &path.bottleneck)? * path.rate_bps;
    let rtt_s = value(Measure::SmoothedRtt(Statistic::P50), "*")?;
    let point = CurvePoint { window_bytes, delivered_bps, rtt_s };
    let lost = value(Measure::RetransmitRatio, "*")?;
    let ground = job.ground.name().to_string();
    Ok(Measured { ground, point, lost, verdict: run.summary.verdict })
}
