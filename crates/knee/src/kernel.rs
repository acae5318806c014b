//! The ground "kernel" as the command line uses it.

use crate::failure::Failure;
use knee_kernel::{Health, KernelError, PathCheck, PathProbe};
use knee_record::{HostHealth, PathCheckRecord, ProbeRecord, Records, Summary};
use knee_scenario::Scenario;
use knee_units::Time;

/// Runs a scenario; what came out is judged by how the host kept up.
pub fn run(
    scenario: &Scenario,
    control: &knee_kernel::Control,
) -> Result<(Records, Summary, HostHealth), Failure> {
    let (records, health) = knee_kernel::run(scenario, control)?;
    let (verdict, reason) = health.verdict();
    let summary = Summary::new(scenario, "kernel", &records).judged(verdict, &reason);
    Ok((records, summary, kept(scenario, &health)))
}

/// Says so before anything runs when the host or its kernel cannot do it.
pub fn check<'s>(scenarios: impl IntoIterator<Item = &'s Scenario>) -> Result<(), Failure> {
    knee_kernel::check_host()?;
    scenarios.into_iter().try_for_each(|scenario| Ok(knee_kernel::check_scenario(scenario)?))
}

/// What the manifest keeps.
fn kept(scenario: &Scenario, health: &Health) -> HostHealth {
    let late = |share| micros(health.lateness.at(share));
    HostHealth {
        lateness_p50_us: late(0.5),
        lateness_p99_us: late(0.99),
        lateness_max_us: micros(health.lateness.max()),
        stalls: health.stalls,
        stalled_us: micros(health.stalled),
        packets: health.packets,
        dropped_packets: health.tun_dropped_packets + health.refused_packets,
        emulator_cpu_ratio: health.cpu,
        stolen_cpu_ratio: health.stolen,
        self_check: health.self_check.iter().map(|check| kept_check(scenario, check)).collect(),
        probes: health.probes.iter().map(|probe| kept_probe(scenario, probe)).collect(),
        warnings: health.warnings.clone(),
    }
}

fn kept_check(scenario: &Scenario, check: &PathCheck) -> PathCheckRecord {
    let rate = |rate: knee_units::Rate| rate.as_bits_per_second() as f64;
    PathCheckRecord {
        path: scenario.paths[check.path].name.clone(),
        rtt_expected_us: micros(check.rtt_expected),
        rtt_us: check.rtt.map(micros),
        rate_expected_bps: check.rate_expected.map(rate),
        rate_bps: check.rate.map(rate),
    }
}

/// As measures do, it leaves out the warm-up.
fn kept_probe(scenario: &Scenario, probe: &PathProbe) -> ProbeRecord {
    let begin = scenario.flows.iter().map(|flow| flow.start).min().unwrap_or_default();
    let warm = begin + scenario.warmup;
    let round_trips = probe.round_trips.iter().filter(|(sent_at, _)| *sent_at >= warm);
    let steady = PathProbe { round_trips: round_trips.copied().collect(), ..*probe };
    ProbeRecord {
        path: scenario.paths[probe.path].name.clone(),
        sent: probe.sent,
        answered: probe.round_trips.len() as u64,
        rtt_p50_us: steady.rtt_at(0.5).map(micros),
        rtt_p95_us: steady.rtt_at(0.95).map(micros),
    }
}

fn micros(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Why the kernel cannot run a scenario, as a claim says it.
pub fn reason(error: &KernelError) -> String {
    match error {
        KernelError::Controller { name, .. } => format!("the kernel has no controller {name}"),
        KernelError::Unsupported { place, problem, .. } => format!("{place}: {problem}"),
        other => other.to_string(),
    }
}

/// Said where it is not so already.
const BPF: &str = if cfg!(feature = "bpf") { "" } else { "build Knee with --features bpf, " };

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Failure {
        match error {
            KernelError::Host { what, source, advice } => {
                Failure::Host(format!("cannot {what}: {source}"), advice.to_string())
            }
            KernelError::Controller { flow, name, available } => Failure::Host(
                format!("flow \"{flow}\": this kernel has no controller \"{name}\""),
                format!(
                    "choose one of {available}, load its module, {}or run on sim",
                    if name.starts_with("bbr") || name == "fixed" { BPF } else { "" }
                ),
            ),
            KernelError::Unsupported { place, problem, advice } => {
                Failure::Usage(format!("{place}: {problem}"), advice)
            }
            error @ KernelError::Flow { .. } => {
                Failure::Host(error.to_string(), "run it again".to_string())
            }
            error @ KernelError::Panicked => Failure::Internal(error.to_string()),
        }
    }
}
