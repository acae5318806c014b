//! One scenario, run in the simulator: `cargo run --release -p knee-lab --example simulate`.

#![expect(clippy::print_stdout, reason = "an example")]

use knee_lab::record::Unit;
use knee_lab::scenario::{Override, template};
use knee_lab::{Job, Lab, ScenarioText};

/// Prints what each flow of the scenario that `knee init` writes gets of its link.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::default();
    // A text; ScenarioText::read takes a file. Any key can be overridden.
    let text = ScenarioText::new("duel.toml", template());
    let scenario = text.scenario(&[Override::new("link.bottleneck.rate", "20 Mbit/s")])?;
    let run = lab.run(&Job::new(&scenario, lab.grounds.get("sim")?))?;
    for flow in &run.summary.flows {
        let goodput = flow.goodput_bps.ok_or("the flow never ran")?;
        println!("{} over {}: {}", flow.name, flow.path, Unit::BitsPerSecond.show(goodput));
    }
    println!("the run is {:?}", run.summary.verdict);
    Ok(())
}
