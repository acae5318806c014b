//! The experiment that advice asks for, on the path that explains the connections best.

use super::{SIZES, link_text, mix_text, others_text};
use crate::origin::Files;
use crate::text::ScenarioText;
use knee_advise::Path;
use std::sync::Arc;

/// An experiment in the simulator with the connections of a group.
#[derive(Clone, Debug)]
pub struct Rehearsal<'a> {
    /// Name of the group.
    pub group: &'a str,
    /// The fitted path.
    pub path: Path,
    /// Payload of connections of the group, bytes; sizes are drawn from it.
    pub sizes: &'a [u64],
    /// Mean time between the group's arrivals, seconds.
    pub interval_s: f64,
    /// The controllers: B, on trial, and A, in use.
    pub controllers: [&'a str; 2],
    /// Length of a block, seconds.
    pub block_s: f64,
    /// Initial part of a block whose transfers do not count, seconds.
    pub burn_in_s: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Rehearsal<'_> {
    /// Returns the scenario for [`Lab::rehearse`](crate::Lab::rehearse). Each of its two mixes has
    /// half of the arrivals, since a block has both, whatever their controllers.
    pub fn scenario(&self) -> ScenarioText {
        let Rehearsal { path, sizes, interval_s, controllers, block_s, burn_in_s, seed, .. } = self;
        let bytes: u64 = sizes.iter().sum();
        let mean_bytes = bytes as f64 / sizes.len().max(1) as f64;
        let process = toml::Value::from(self.group).to_string();
        let mix = mix_text(2.0 * interval_s, &format!("process = {process}, "));
        let flow = |name: &str, cc: &str| {
            let cc = toml::Value::from(cc);
            format!("[[flow]]\nname = \"{name}\"\ncc = {cc}\n{mix}")
        };
        let text = format!(
            "name = \"rehearsal\"\nseed = {seed}\nduration = \"{:.0} ms\"\nwarmup = \"{:.0} ms\"\n\
             {}{}{}{}",
            block_s * 1e3,
            burn_in_s * 1e3,
            link_text(path),
            flow("test", controllers[0]),
            flow("control", controllers[1]),
            others_text(path, mean_bytes, *block_s)
        );
        let lines: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let lines: Arc<[u8]> = lines.join("\n").into_bytes().into();
        ScenarioText::new("rehearsal.toml", &text)
            .with_files(Files::from([(SIZES.to_string(), lines)]))
    }
}
