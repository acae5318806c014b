//! A run's folder, written and read: `cargo run --release -p knee-lab --example records`.

#![expect(clippy::print_stdout, reason = "an example")]

use knee_lab::record::read_run;
use knee_lab::scenario::{Override, template};
use knee_lab::{Experiment, ExperimentSettings, Lab, ScenarioText};

/// Keeps a run with its tables and its page, and computes from its rows when each flow first had
/// half of the link.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::default();
    let out = std::env::temp_dir().join("knee-example-records");
    let settings = ExperimentSettings {
        set: vec![Override::new("duration", "10 s")],
        alternatives: false,
        ..ExperimentSettings::on(lab.grounds.get("sim")?)
    };
    let text = ScenarioText::new("duel.toml", template());
    let experiment = Experiment::new(text, settings, out.clone())?;
    lab.claim(&out, [&out], true)?;
    lab.carry_out(&mut [experiment])?;

    // samples.parquet, flows.parquet and the others; pyarrow, DuckDB and Polars open them as well.
    let run = read_run(&out)?;
    for flow in &run.records.flows {
        let rows: Vec<_> = run.records.samples.iter().filter(|row| row.flow == flow.flow).collect();
        let rate = |pair: &[knee_lab::record::FlowSample]| {
            let bytes = pair[1].delivered_bytes - pair[0].delivered_bytes;
            bytes as f64 * 8e9 / (pair[1].time_ns - pair[0].time_ns) as f64
        };
        let half = rows.windows(2).find(|pair| rate(pair) > 5e6);
        match half {
            Some(pair) => println!("{} after {:.1} s", flow.name, pair[1].time_ns as f64 / 1e9),
            None => println!("{} never", flow.name),
        }
    }
    Ok(())
}
