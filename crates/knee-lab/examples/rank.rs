//! Which controller is best on a path: `cargo run --release -p knee-lab --example rank`.

#![expect(clippy::print_stdout, reason = "an example")]

use knee_lab::{Candidates, Lab, Rank, RankSettings, ScenarioText};

const PATH: &str = r#"
duration = "10 s"

[link.cable]
rate = "20 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[path.main]
forward = ["cable"]
reverse_delay = "10 ms"

[[flow]]
name = "mine"
path = "main"
cc = "cubic"
"#;

/// Ranks three controllers on this path, alone and beside CUBIC, with three seeds each.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::default();
    let settings = RankSettings {
        candidates: Candidates(["bbr", "copa", "cubic"].map(String::from).to_vec()),
        rivals: "cubic".parse()?,
        repeat: 3,
        ..RankSettings::on(lab.grounds.get("sim")?)
    };
    let rank = Rank::new(&[ScenarioText::new("path.toml", PATH)], &settings)?;
    let out = std::env::temp_dir().join("knee-example-rank");
    lab.claim(&out, [&out], true)?;
    let ranked = lab.rank(&rank, &out)?;
    println!("{}", ranked.summary.says);
    for entry in &ranked.summary.entries {
        let power = entry.power.as_ref().ok_or("no run")?;
        println!("{:6} power {:.2}", entry.candidate, power.mean);
    }
    println!("the page is {}", out.join("report.html").display());
    Ok(())
}
