//! A controller of one's own: `cargo run --release -p knee-lab --example controller`.
//! docs/write-your-own.md goes on from here to a ranking.

#![expect(clippy::print_stdout, reason = "an example")]

use knee_cc::{Connection, Controller, Decision, Event, Init, Needs, Sample, State};
use knee_lab::record::Unit;
use knee_lab::scenario::{Algorithms, Override, template};
use knee_lab::{Grounds, Job, Lab, ScenarioText, Simulator};
use std::sync::Arc;

/// Keeps as many bytes in flight as the path delivers in one empty round trip, and a tenth more.
#[derive(Clone, Debug)]
struct Estimator {
    window: u64,
    /// Largest rate seen, bytes per second.
    rate: f64,
}

impl Controller for Estimator {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let seconds = sample.interval.as_secs_f64();
        if seconds > 0.0 {
            self.rate = self.rate.max(sample.delivered as f64 / seconds);
        }
        let product = self.rate * connection.min_rtt.as_secs_f64();
        self.window = (1.1 * product).max(4.0 * f64::from(connection.mss)) as u64;
        self.decision()
    }

    fn on_event(&mut self, _: Event, _: &Connection) -> Decision {
        self.decision()
    }

    fn decision(&self) -> Decision {
        Decision { window: self.window, send_quantum: 2 * 1448, ..Decision::default() }
    }

    fn state(&self) -> State {
        State { phase: "estimating", ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs { proportional_rate_reduction: true, ..Needs::default() }
    }
}

/// Runs it beside CUBIC.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut algorithms = Algorithms::built_in().clone();
    algorithms.controllers.register("estimator", |_: &_, init: Init| {
        Ok(Box::new(Estimator { window: init.initial_window, rate: 0.0 }) as Box<_>)
    })?;
    let algorithms = Arc::new(algorithms);
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let text = ScenarioText::new("duel.toml", template()).with_algorithms(algorithms);
    let set = ["duration=20 s", "flow.bbr.cc=estimator"].map(str::parse::<Override>);
    let scenario = text.scenario(&set.into_iter().collect::<Result<Vec<_>, _>>()?)?;
    let run = lab.run(&Job::new(&scenario, lab.grounds.get("sim")?))?;
    for flow in &run.summary.flows {
        let goodput = flow.goodput_bps.ok_or("the flow never ran")?;
        println!("{}: {}", flow.cc, Unit::BitsPerSecond.show(goodput));
    }
    Ok(())
}
