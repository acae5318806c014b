//! How well a host kept up with a real-time run. It is part of the manifest because it varies from
//! run to run. The ground judges it; these types only store it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of the host during a run in real time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostHealth {
    /// Lateness of packets that leave the emulator, median, microseconds.
    pub lateness_p50_us: f64,
    /// 99th percentile of the lateness.
    pub lateness_p99_us: f64,
    /// Largest lateness.
    pub lateness_max_us: f64,
    /// Number of times that the emulator stalled.
    pub stalls: u64,
    /// Total time of these stalls, microseconds.
    pub stalled_us: f64,
    /// Packets that entered the emulator.
    pub packets: u64,
    /// Packets that were lost outside the links.
    pub dropped_packets: u64,
    /// CPU time of the emulator over the run's duration.
    pub emulator_cpu_ratio: f64,
    /// Share of the CPU time that the hypervisor took away.
    pub stolen_cpu_ratio: f64,
    /// Delay and rate of each path before the run.
    pub self_check: Vec<PathCheckRecord>,
    /// Round-trip times of an independent probe on each path during the run.
    pub probes: Vec<ProbeRecord>,
    /// Features that the host did not permit.
    pub warnings: Vec<String>,
}

/// Expected and measured properties of a path before the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathCheckRecord {
    /// Name of the path.
    pub path: String,
    /// RTT of a small packet over empty queues, according to the scenario.
    pub rtt_expected_us: f64,
    /// Median RTT measured; null without an answer.
    pub rtt_us: Option<f64>,
    /// Rate of the slowest link, according to the scenario; null if it is
    /// unlimited or a trace.
    pub rate_expected_bps: Option<f64>,
    /// Rate measured; null if the burst did not arrive or none was sent.
    pub rate_bps: Option<f64>,
}

/// Round-trip times that a probe measured during the flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeRecord {
    /// Name of the path.
    pub path: String,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub answered: u64,
    /// Median RTT after the warm-up, microseconds; null without an answer.
    pub rtt_p50_us: Option<f64>,
    /// 95th percentile.
    pub rtt_p95_us: Option<f64>,
}
