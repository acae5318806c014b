//! What varies from run to run: host, time, cost, arguments.

use crate::health::HostHealth;
use crate::host::{Host, Usage};
use crate::{Cost, Records, Summary, tables};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{self, Read};

/// Schema name of `manifest.json`.
pub const SCHEMA: &str = "knee-manifest/1";

/// The build of the program that made a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Commit of its sources, hexadecimal, followed by `-modified` if they had
    /// uncommitted changes; null if it was built outside a checkout.
    pub commit: Option<String>,
    /// SHA-256 of its file, hexadecimal; null if the file could not be read.
    pub sha256: Option<String>,
    /// Cargo features of the build: `bpf`.
    pub features: Vec<String>,
    /// The compiler, as `rustc --version` prints it; null if unknown.
    pub toolchain: Option<String>,
    /// Target triple: `x86_64-unknown-linux-gnu`; null if unknown.
    pub target: Option<String>,
}

/// Identification of a controller or scheduler that a program provides itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brought {
    /// Its class.
    pub class: String,
    /// The module of the class.
    pub module: String,
    /// SHA-256 of the source of the class, hexadecimal; null if it was typed
    /// interactively.
    pub sha256: Option<String>,
}

/// Data of a run that vary from run to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// `knee-manifest/1`.
    pub schema: String,
    /// Version of Knee.
    pub version: String,
    /// The build of the program; empty if another program ran Knee's libraries.
    #[serde(default)]
    pub program: Program,
    /// Controllers and schedulers that the program provides itself, by their
    /// name in the scenario; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brought: BTreeMap<String, Brought>,
    /// Title of the scenario.
    pub name: String,
    /// Ground of the run: `sim`, `kernel`, `quic`.
    pub ground: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Release of the host's kernel.
    pub kernel: Option<String>,
    /// Model of the host's CPU.
    pub cpu: Option<String>,
    /// Command line of the run.
    pub arguments: Vec<String>,
    /// SHA-256 of each input file, hexadecimal, by its path as written.
    pub inputs: BTreeMap<String, String>,
    /// Schema names of the other files, by file name.
    pub schemas: BTreeMap<String, String>,
    /// When the run began, UTC, RFC 3339.
    pub started_at: String,
    /// CPU time of the run in user mode, seconds.
    pub user_cpu_s: f64,
    /// Elapsed time of the run, seconds.
    pub wall_s: f64,
    /// Data packets delivered in order.
    pub data_packets: u64,
    /// Events processed.
    pub events: u64,
    /// Largest resident memory of the process so far, bytes.
    pub peak_rss_bytes: u64,
    /// Whether the run was cut short; the records end at `end_ns`.
    pub interrupted: bool,
    /// When the records end, nanoseconds since the start of the run.
    pub end_ns: u64,
    /// Names of the links, by index.
    pub link_names: Vec<String>,
    /// State of the host during a run in real time; null on the simulator.
    pub health: Option<HostHealth>,
}

impl Manifest {
    /// The manifest of a run on this host.
    ///
    /// `inputs`: path as written and content of each file that was read.
    pub fn new(
        summary: &Summary,
        records: &Records,
        arguments: Vec<String>,
        inputs: &[(&str, &[u8])],
        usage: &Usage,
    ) -> Manifest {
        let host = Host::detect();
        let inputs = inputs.iter().map(|(path, content)| (path.to_string(), sha256_hex(content)));
        Manifest {
            schema: SCHEMA.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            program: Program::default(),
            brought: BTreeMap::new(),
            name: summary.name.clone(),
            ground: summary.ground.clone(),
            seed: summary.seed,
            kernel: host.kernel,
            cpu: host.cpu,
            arguments,
            inputs: inputs.collect(),
            schemas: schemas(records),
            started_at: usage.started_at.clone(),
            user_cpu_s: usage.user_cpu_s,
            wall_s: usage.wall_s,
            data_packets: records.cost.data_packets,
            events: records.cost.events,
            peak_rss_bytes: usage.peak_rss_bytes,
            interrupted: records.interrupted,
            end_ns: records.end_ns,
            link_names: records.link_names.clone(),
            health: None,
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        Cost { events: self.events, data_packets: self.data_packets }
    }
}

/// The schema of each file that is written.
fn schemas(records: &Records) -> BTreeMap<String, String> {
    [
        (crate::run::SUMMARY, crate::summary::SCHEMA, true),
        (crate::run::FLOWS, tables::FLOWS.name, true),
        (crate::run::SAMPLES, tables::SAMPLES.name, true),
        (crate::run::LINKS, tables::LINKS.name, true),
        (crate::run::CLASSES, tables::CLASSES.name, !records.classes.is_empty()),
        (crate::run::PATHS, tables::PATHS.name, !records.paths.is_empty()),
        (crate::run::PATH_SAMPLES, tables::SAMPLES.name, !records.path_samples.is_empty()),
        (crate::run::OBJECTS, tables::OBJECTS.name, !records.objects.is_empty()),
        (crate::run::CONNECTIONS, tables::CONNECTIONS.name, true),
    ]
    .into_iter()
    .filter(|(_, _, written)| *written)
    .map(|(file, schema, _)| (file.to_string(), schema.to_string()))
    .collect()
}

/// SHA-256 (FIPS 180-4) as 64 hexadecimal digits.
pub fn sha256_hex(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// SHA-256 of what a reader returns, as 64 hexadecimal digits.
///
/// # Errors
/// Those of the reader.
pub fn sha256_of(mut content: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first example of FIPS 180-4.
    #[test]
    fn sha256_of_abc() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
