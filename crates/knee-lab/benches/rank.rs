//! Duration and page size of a ranking of all controllers over eight bundled scenarios with ten
//! seeds.
//!
//! `cargo bench --workspace --bench rank`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may panic")]

use knee_lab::{Lab, Rank, RankSettings, ScenarioText};
use std::fs;
use std::path::Path;

/// Each scenario carries at most 100,000 packets: 10 Mbit/s for two minutes, or 100 Mbit/s for ten
/// seconds.
const SCENARIOS: [&str; 8] = [
    "improved-bbr/one-flow.toml",
    "improved-bbr/two-rtts.toml",
    "improved-bbr/five-flows.toml",
    "improved-bbr/short-path.toml",
    "improved-bbr/long-path.toml",
    "improved-bbr/one-leaves.toml",
    "lossy-long-path/phases.toml",
    "retransmission-cost/lan.toml",
];

fn main() {
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let texts = SCENARIOS.map(|file| ScenarioText::read(&studies.join(file)).unwrap());
    let lab = Lab::default();
    let settings = RankSettings { repeat: 10, ..RankSettings::on(lab.grounds.get("sim").unwrap()) };
    let rank = Rank::new(&texts, &settings).unwrap();
    let out = tempfile::tempdir().unwrap();
    let ranked = lab.rank(&rank, out.path()).unwrap();
    let page = fs::metadata(out.path().join("report.html")).unwrap().len();
    println!("{}", ranked.summary.says);
    println!(
        "{} controllers, {} runs, {:.1} million packets: {:.1} s; page {:.2} MB",
        rank.ranking.candidates.len(),
        ranked.runs,
        ranked.packets as f64 / 1e6,
        ranked.wall_s,
        page as f64 / 1e6,
    );
}
