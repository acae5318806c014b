//! A bar with an estimate, on a terminal, for what takes over two seconds.

use crate::control::Control;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use knee_link::RateModel;
use knee_scenario::{Ground, Scenario};
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

/// Nothing is shown before this.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two looks at the runs.
const REFRESH: Duration = Duration::from_millis(100);
/// Steps of the bar.
const STEPS: f64 = 10_000.0;

/// What a run in real time needs before it begins, about.
pub const SELF_CHECK_S: f64 = 0.7;

/// How fast runs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as they can.
    Virtual,
    /// As time passes, one after the other.
    Real,
}

/// A bar that lives until it is dropped.
#[derive(Debug)]
pub struct Progress {
    /// Closed to end the thread.
    _alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a run is expected to take.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Where it runs: on the kernel in real time.
    pub ground: Ground,
    duration_ns: u64,
    /// What the whole run costs, compared with others.
    pub weight: f64,
}

impl Load {
    /// That of a scenario on the simulator.
    pub fn of(scenario: &Scenario) -> Load {
        Load::on(scenario, Ground::Sim)
    }

    /// That of a scenario on a ground.
    pub fn on(scenario: &Scenario, ground: Ground) -> Load {
        let duration_ns = scenario.duration.as_nanos();
        let weight = match ground {
            Ground::Kernel => duration_ns as f64,
            _ => weight(scenario),
        };
        Load { ground, duration_ns, weight }
    }
}

/// How far one run is.
#[derive(Clone, Debug)]
pub struct Tracked {
    control: Arc<Control>,
    load: Load,
}

impl Tracked {
    /// A run that `control` is in hand of.
    pub fn new(load: Load, control: Arc<Control>) -> Tracked {
        Tracked { control, load }
    }

    /// The part that is done.
    fn done(&self) -> f64 {
        (self.control.now_ns() as f64 / self.load.duration_ns.max(1) as f64).min(1.0)
    }

    /// Real time that it still takes.
    fn left_s(&self) -> f64 {
        let check = if self.control.now_ns() == 0 { SELF_CHECK_S } else { 0.0 };
        check + self.load.duration_ns as f64 / 1e9 * (1.0 - self.done())
    }
}

/// Cost grows with the packets that the fastest link carries; those of an
/// unlimited link are not known and count as for one of 100 Mbit/s.
fn weight(scenario: &Scenario) -> f64 {
    let rates = scenario.links.iter().filter_map(|link| rate_bps(&link.config.rate));
    let fastest = rates.max().unwrap_or(100_000_000);
    let seconds = scenario.duration.as_nanos() as f64 / 1e9;
    seconds * (fastest as f64 + 1e5 * scenario.flows.len() as f64)
}

/// The largest rate of a link; none: unlimited.
pub fn rate_bps(rate: &RateModel) -> Option<u64> {
    match rate {
        RateModel::Unlimited => None,
        RateModel::Constant(rate) => Some(rate.as_bits_per_second()),
        RateModel::Steps(steps) => steps.0.iter().map(|(_, rate)| rate.as_bits_per_second()).max(),
        RateModel::Trace(trace) => {
            let seconds = f64::from(*trace.opportunities_ms.last()?) / 1e3;
            Some((trace.opportunities_ms.len() as f64 * 12_000.0 / seconds) as u64)
        }
    }
}

impl Progress {
    /// Begins to watch.
    pub fn of(runs: Vec<Tracked>, pace: Pace) -> Progress {
        if runs.is_empty() || !stderr().is_terminal() {
            return Progress { _alive: None, thread: None };
        }
        let (alive, ended) = channel();
        let thread = spawn(move || watch(&runs, pace, &ended));
        Progress { _alive: Some(alive), thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self._alive.take());
        // A bar that failed is no reason to fail.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn watch(runs: &[Tracked], pace: Pace, ended: &Receiver<()>) {
    let waits = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    if !waits(PATIENCE) {
        return;
    }
    let bar = ProgressBar::new(STEPS as u64).with_style(style(pace)).with_elapsed(PATIENCE);
    let whole: f64 = runs.iter().map(|run| run.load.weight).sum();
    while waits(REFRESH) {
        let done: f64 = runs.iter().map(|run| run.load.weight * run.done()).sum();
        let finished = runs.iter().filter(|run| run.done() >= 1.0).count();
        bar.set_message(match (pace, runs.len()) {
            (Pace::Real, all) => {
                let left = seconds_left(runs.iter().map(Tracked::left_s).sum());
                format!("{finished} of {all} in real time · {left}")
            }
            (Pace::Virtual, 1) => "1 run".to_string(),
            (Pace::Virtual, all) => {
                let a_minute = finished as f64 / bar.elapsed().as_secs_f64() * 60.0;
                format!("{finished} of {all} runs, {a_minute:.0} a minute")
            }
        });
        bar.set_position((done / whole * STEPS) as u64);
    }
    bar.finish_and_clear();
}

fn style(pace: Pace) -> ProgressStyle {
    let style = ProgressStyle::with_template(match pace {
        Pace::Virtual => "{bar:32} {percent:>3} % · {msg} · {left}",
        Pace::Real => "{bar:32} {percent:>3} % · {msg}",
    });
    let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // A bar that cannot be drawn is no reason to fail.
        let _ = out.write_str(&left(state.elapsed(), state.fraction()));
    };
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

/// What is left if it goes on as it went so far.
fn left(elapsed: Duration, done: f32) -> String {
    if done <= 0.0 {
        return "no estimate yet".to_string();
    }
    seconds_left(elapsed.as_secs_f64() * f64::from((1.0 - done) / done))
}

/// Words for a time that is left.
pub fn seconds_left(seconds: f64) -> String {
    match seconds.ceil() {
        seconds if seconds < 120.0 => format!("about {seconds:.0} s left"),
        seconds => format!("about {:.0} min left", seconds / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_proportional() {
        let after = |seconds, done| left(Duration::from_secs(seconds), done);
        assert_eq!(after(10, 0.25), "about 30 s left");
        assert_eq!(after(60, 0.1), "about 9 min left");
        assert_eq!(after(60, 0.0), "no estimate yet");
        assert_eq!(after(60, 1.0), "about 0 s left");
    }
}
