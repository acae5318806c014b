//! Advice from what tools measured on a path: a long transfer, simulated under each controller over
//! all paths that the measurement allows.

use crate::directory::FITTED;
use crate::error::Error;
use crate::fit::{Estimate, FitSettings, MeasuredFit};
use crate::ground::SIMULATOR;
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::rank::Candidates;
use crate::text::ScenarioText;
use knee_advise::{Known, MISFIT_MAX};
use knee_record::Summary;
use knee_scenario::{Override, Scenario};
use std::path::PathBuf;

/// Seeds of each simulated transfer.
const SEEDS: u64 = 3;
/// Duration of a transfer: so many RTTs, within these bounds, seconds.
const RTTS: f64 = 100.0;
const SECONDS: [f64; 2] = [20.0, 60.0];
/// Factor by which a controller is faster or slower for certain: what `knee advise` is off by on known
/// paths with long transfers (docs/advise.md).
const CERTAIN: f64 = 1.08;
/// Buffers that are tried where nothing is known of it, BDP.
const BUFFERS_BDP: [f64; 3] = [0.5, 1.0, 4.0];
/// Values above a lower bound that are tried, as its multiples.
const ABOVE: [f64; 2] = [1.0, 4.0];
/// Smallest buffer that is tried: two packets, bytes.
const BUFFER_MIN: f64 = 3000.0;

/// Advice for a path on which tools measured.
#[derive(Clone, Debug)]
pub struct AdvisedPath {
    /// The path.
    pub fitted: MeasuredFit,
    /// Controller of the transfer that was measured; CUBIC if there was none.
    pub in_use: String,
    /// Number of paths that were tried.
    pub paths: usize,
    /// The candidates; none if there is no advice.
    pub candidates: Vec<AdvisedTransfer>,
    /// Why there is no advice, if there is none.
    pub obstacle: Option<String>,
}

/// A long transfer under a candidate, beside the same under the controller in use.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvisedTransfer {
    /// The candidate.
    pub candidate: String,
    /// Goodput over that of the controller in use: geometric mean over the paths, the least and the
    /// largest of a path.
    pub speed: [f64; 3],
    /// Median RTT under the controller in use and under the candidate, mean over the paths, seconds.
    pub rtt_s: [f64; 2],
    /// Retransmitted part of the payload, the same.
    pub retransmitted: [f64; 2],
}

/// What follows from a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferAdvice {
    /// Faster on every path that the measurement allows.
    Try,
    /// Slower on every path.
    Keep,
    /// No difference on any path that the simulator could be trusted with.
    Alike,
    /// It depends on what the measurement does not tell.
    Open,
}

impl AdvisedTransfer {
    /// What to do.
    pub fn advice(&self) -> TransferAdvice {
        let [_, least, most] = self.speed;
        match () {
            () if least > CERTAIN => TransferAdvice::Try,
            () if most < 1.0 / CERTAIN => TransferAdvice::Keep,
            () if least >= 1.0 / CERTAIN && most <= CERTAIN => TransferAdvice::Alike,
            () => TransferAdvice::Open,
        }
    }
}

/// A simulated transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    goodput_bps: f64,
    rtt_s: f64,
    retransmitted: f64,
}

/// One path that is tried, as overrides of the fitted scenario.
type Overrides = Vec<Override>;

impl Lab {
    /// Fits a path to what tools measured, and simulates a long transfer under each candidate over all
    /// paths that the measurement allows. Returns `None` if it was stopped.
    ///
    /// # Errors
    /// Those of [`Lab::fit_files`], a candidate that does not exist, or the first failure of a
    /// simulation.
    pub fn advise_files(
        &self,
        files: &[PathBuf],
        settings: &FitSettings,
        candidates: &dyn Fn(&str) -> Candidates,
    ) -> Result<Option<AdvisedPath>, Error> {
        let Some(fitted) = self.fit_files(files, settings)? else { return Ok(None) };
        let in_use = fitted.compared.as_ref().map_or("cubic", |one| one.controller.as_str());
        let in_use = in_use.to_owned();
        let obstacle = obstacle(&fitted);
        let mut advised =
            AdvisedPath { fitted, in_use, paths: 0, candidates: Vec::new(), obstacle };
        if advised.obstacle.is_some() {
            return Ok(Some(advised));
        }
        let Candidates(asked) = candidates(&advised.in_use);
        let paths = paths(&advised.fitted);
        let all: Vec<&String> = std::iter::once(&advised.in_use).chain(&asked).collect();
        let mut scenarios = Vec::new();
        for controller in &all {
            for path in &paths {
                for seed in settings.seed..settings.seed + SEEDS {
                    scenarios.push(scenario(&advised.fitted, path, controller, seed)?);
                }
            }
        }
        let simulator = self.grounds.get(SIMULATOR)?;
        let jobs: Vec<Job<'_>> =
            scenarios.iter().map(|scenario| Job::new(scenario, simulator)).collect();
        let ended = self.run_all(&jobs, |_, run: Run| Ok(transfer(&run.summary)))?;
        if self.is_stopped() {
            return Ok(None);
        }
        let ended: Vec<Transfer> = ended.into_iter().flatten().collect();
        let of: Vec<&[Transfer]> = ended.chunks(paths.len() * SEEDS as usize).collect();
        let compare = |(number, name): (usize, &String)| compared(name, of[0], of[number + 1]);
        advised.candidates = asked.iter().enumerate().map(compare).collect();
        advised.paths = paths.len();
        Ok(Some(advised))
    }
}

/// Why nothing can be said of transfers over the path, if nothing can.
fn obstacle(fitted: &MeasuredFit) -> Option<String> {
    let misfit = fitted.compared.as_ref().map_or(0.0, |one| one.misfit);
    let is_unknown = |of: &Estimate| matches!(of.figure.known, Known::Unknown | Known::AtMost);
    match () {
        () if misfit > MISFIT_MAX => {
            Some("no single path explains the transfer, so none can be simulated".to_owned())
        }
        () if is_unknown(&fitted.rate) => Some("nothing tells the path's rate".to_owned()),
        () if fitted.rtt.figure.known == Known::Unknown => {
            Some("nothing tells the path's RTT".to_owned())
        }
        () => None,
    }
}

/// Returns the paths that the measurement allows: each figure at its bounds, or where it is known
/// closely, as it is.
fn paths(fitted: &MeasuredFit) -> Vec<Overrides> {
    let bounds = |of: &Estimate| {
        let figure = of.figure;
        match figure.known {
            Known::Closely => vec![figure.best],
            Known::Between => vec![figure.low, figure.high],
            Known::AtLeast => ABOVE.map(|by| by * figure.low).to_vec(),
            Known::AtMost => vec![0.0, figure.high],
            Known::Unknown => Vec::new(),
        }
    };
    let rates = bounds(&fitted.rate);
    let rtts = match fitted.rtt.figure.known {
        Known::AtMost => vec![fitted.rtt.figure.high],
        _ => bounds(&fitted.rtt),
    };
    let losses = match fitted.loss.figure.known {
        Known::Unknown => vec![0.0],
        _ => bounds(&fitted.loss),
    };
    let mut paths = Vec::new();
    for rate in &rates {
        for rtt in &rtts {
            let bdp = rate * rtt / 8.0;
            let buffers = match fitted.buffer.figure.known {
                Known::Unknown | Known::AtMost => BUFFERS_BDP.map(|by| by * bdp).to_vec(),
                _ => bounds(&fitted.buffer),
            };
            for buffer in &buffers {
                for loss in &losses {
                    paths.push(overrides([*rate, *rtt, buffer.max(BUFFER_MIN), *loss]));
                }
            }
        }
    }
    paths
}

fn overrides([rate_bps, rtt_s, buffer_bytes, loss]: [f64; 4]) -> Overrides {
    let half = format!("{:.0} us", (rtt_s * 5e5).max(1.0));
    let duration_s = (RTTS * rtt_s).clamp(SECONDS[0], SECONDS[1]);
    [
        ("link.wire.rate", format!("{rate_bps:.0} bit/s")),
        ("link.wire.delay", half.clone()),
        ("path.main.reverse_delay", half),
        ("link.wire.buffer", format!("{buffer_bytes:.0} B")),
        ("link.wire.loss", format!("{:.4} %", 100.0 * loss)),
        ("duration", format!("{duration_s:.0} s")),
    ]
    .map(|(key, value)| Override::new(key, &value))
    .to_vec()
}

fn scenario(
    fitted: &MeasuredFit,
    path: &[Override],
    controller: &str,
    seed: u64,
) -> Result<Scenario, Error> {
    let mut set = path.to_vec();
    set.push(Override::new("flow.bulk.cc", controller));
    set.push(Override::new("seed", &seed.to_string()));
    Ok(ScenarioText::new(FITTED, &fitted.scenario).scenario(&set)?)
}

/// The transfer of a run, over all of its connections.
fn transfer(summary: &Summary) -> Transfer {
    let sum = |of: &dyn Fn(&knee_record::FlowSummary) -> f64| -> f64 {
        summary.flows.iter().map(of).sum()
    };
    let rtts = summary.flows.iter().filter_map(|flow| Some(flow.rtt_us.as_ref()?.p50));
    let (rtt_sum, count) = rtts.fold((0.0, 0_u32), |(sum, count), rtt| (sum + rtt, count + 1));
    Transfer {
        goodput_bps: sum(&|flow| flow.goodput_bps.unwrap_or(0.0)),
        rtt_s: rtt_sum / 1e6 / f64::from(count.max(1)),
        retransmitted: sum(&|flow| flow.retransmitted_bytes as f64)
            / sum(&|flow| flow.sent_bytes as f64).max(1.0),
    }
}

/// Compares a candidate with the controller in use: the same paths, with the same seeds.
fn compared(candidate: &str, in_use: &[Transfer], under: &[Transfer]) -> AdvisedTransfer {
    let seeds = SEEDS as usize;
    let gains: Vec<f64> = in_use
        .chunks(seeds)
        .zip(under.chunks(seeds))
        .map(|(now, then)| {
            let pairs = now.iter().zip(then);
            // A transfer that got nowhere counts as a byte per second.
            let gain = |(now, then): (&Transfer, &Transfer)| {
                (then.goodput_bps.max(8.0) / now.goodput_bps.max(8.0)).ln()
            };
            pairs.map(gain).sum::<f64>() / seeds as f64
        })
        .collect();
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    let most = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let both = |of: fn(&Transfer) -> f64| {
        [in_use, under].map(|all| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64)
    };
    AdvisedTransfer {
        candidate: candidate.to_owned(),
        speed: [mean, least, most].map(f64::exp),
        rtt_s: both(|one| one.rtt_s),
        retransmitted: both(|one| one.retransmitted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(least: f64, most: f64) -> TransferAdvice {
        let speed = [(least * most).sqrt(), least, most];
        let candidate = "bbr".to_owned();
        AdvisedTransfer { candidate, speed, rtt_s: [0.1; 2], retransmitted: [0.0; 2] }.advice()
    }

    #[test]
    fn advice_is_given_only_if_every_path_agrees() {
        assert_eq!(advice(1.2, 3.0), TransferAdvice::Try);
        assert_eq!(advice(0.5, 0.9), TransferAdvice::Keep);
        assert_eq!(advice(0.97, 1.03), TransferAdvice::Alike);
        assert_eq!(advice(0.97, 2.0), TransferAdvice::Open);
        assert_eq!(advice(0.5, 1.01), TransferAdvice::Open);
    }

    /// Transfers of 10 Mbit/s, over two paths with three seeds: twice as fast over one, half over the
    /// other.
    #[test]
    fn transfers_are_compared_path_by_path() {
        let of = |goodput_bps| Transfer { goodput_bps, rtt_s: 0.05, retransmitted: 0.01 };
        let now = [of(1e7); 6];
        let then = [2e7, 2e7, 2e7, 5e6, 5e6, 5e6].map(of);
        let compared = compared("bbr", &now, &then);
        let expected = [1.0, 0.5, 2.0];
        for (found, wanted) in compared.speed.iter().zip(expected) {
            assert!((found - wanted).abs() < 1e-9, "{compared:?}");
        }
    }
}
