//! How well a host kept up with a real-time run. It is part of the manifest because it varies from
//! run to run. The ground judges it; these types only store it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a real-time ground tells about its host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostHealth {
    /// How late the median packet left the emulator, microseconds.
    pub lateness_p50_us: f64,
    /// 99th percentile of that.
    pub lateness_p99_us: f64,
    /// Largest.
    pub lateness_max_us: f64,
    /// Times that the emulator stood still.
    pub stalls: u64,
    /// How long it did so together, microseconds.
    pub stalled_us: f64,
    /// Packets that entered the emulator.
    pub packets: u64,
    /// Packets that were lost outside the links.
    pub dropped_packets: u64,
    /// CPU time of the emulator over the run's duration.
    pub emulator_cpu_ratio: f64,
    /// CPU time that the hypervisor took away, of all.
    pub stolen_cpu_ratio: f64,
    /// Delay and rate of each path before the run.
    pub self_check: Vec<PathCheckRecord>,
    /// Round trips of an independent probe of each path during the run.
    pub probes: Vec<ProbeRecord>,
    /// What the host did not permit.
    pub warnings: Vec<String>,
}

/// What a path was to be before the run, and what it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathCheckRecord {
    /// Name of the path.
    pub path: String,
    /// RTT of a small packet over empty queues, by the scenario.
    pub rtt_expected_us: f64,
    /// Median RTT measured; null: no answer.
    pub rtt_us: Option<f64>,
    /// Rate of the slowest link, by the scenario; null: unlimited, or a
    /// trace.
    pub rate_expected_bps: Option<f64>,
    /// Rate measured; null: the burst did not arrive, or none was sent.
    pub rate_bps: Option<f64>,
}

/// Round trips that a probe measured beside the flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Name of the path.
    pub path: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub answered: u64,
    /// Median RTT after the warm-up, microseconds; null: no answer.
    pub rtt_p50_us: Option<f64>,
    /// 95th percentile.
    pub rtt_p95_us: Option<f64>,
}
