//! A setting varied: `cargo run --release -p knee-lab --example sweep`. Run again, it goes on where it
//! was stopped.

#![expect(clippy::print_stdout, reason = "an example")]

use knee_lab::record::Unit;
use knee_lab::scenario::{Override, template};
use knee_lab::{Lab, ScenarioText, Sweep, SweepSettings, SweepStore};

/// Prints what BBR gets beside CUBIC over buffers of a quarter to four BDP.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::default();
    let vary = vec!["link.bottleneck.buffer=0.25..4 BDP step x2".parse()?];
    let settings = SweepSettings {
        set: vec![Override::new("duration", "10 s")],
        ..SweepSettings::on(lab.grounds.get("sim")?, vary)
    };
    let sweep = Sweep::new(ScenarioText::new("duel.toml", template()), settings)?;
    let out = std::env::temp_dir().join("knee-example-sweep");
    let mut store = SweepStore::open(&lab, out, knee_lab::program_hash()?, true)?;
    for point in &lab.sweep(&sweep, &mut store)?.summary.points {
        let buffer = &sweep.keys[0].values[point.at[0]];
        let bbr = point.groups.iter().find(|group| group.group == "bbr").ok_or("no flow")?;
        let goodput = bbr.measures["goodput_bps"].interval.as_ref().ok_or("never")?.mean;
        println!("{buffer:9} {}", Unit::BitsPerSecond.show(goodput));
    }
    Ok(())
}
