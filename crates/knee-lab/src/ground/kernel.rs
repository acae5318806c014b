//! The ground "kernel": `knee-kernel`.

use super::{Ended, Ground, GroundError, Judged, KERNEL, Output, Pace, Refusal};
use knee_kernel::KernelError;
use knee_record::{Control, HostHealth, PathCheckRecord, ProbeRecord};
use knee_scenario::Scenario;
use knee_testbed::{Health, PathCheck, PathProbe, TestbedError};
use knee_units::Time;

/// Linux's TCP over an emulator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Ground for Kernel {
    fn name(&self) -> &str {
        KERNEL
    }

    fn summary(&self) -> &str {
        "Linux's TCP over an emulator"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    /// That of its self-check.
    fn setup_s(&self) -> f64 {
        0.7
    }

    /// Enters a user namespace where that is what allows networks of one's
    /// own; the system lets only a process of one thread do so.
    fn prepare_process(&self) {
        let _ = knee_testbed::enter_user_namespace();
    }

    fn check_host(&self) -> Result<(), GroundError> {
        Ok(knee_testbed::check_host()?)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_kernel::check_scenario(scenario)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let (records, health) = knee_kernel::run(scenario, control)?;
        // Its samples come from several threads and are in order at the end.
        let sink = output.samples;
        let kept = records.samples.iter().try_for_each(|row| sink.flow(row));
        let kept = kept.and_then(|()| records.path_samples.iter().try_for_each(|r| sink.path(r)));
        let kept = kept.and_then(|()| records.links.iter().try_for_each(|row| sink.link(row)));
        let kept = kept.and_then(|()| records.classes.iter().try_for_each(|r| sink.class(r)));
        let mut connections = records.connections.iter();
        let kept = kept.and_then(|()| connections.try_for_each(|row| sink.connection(row)));
        kept.map_err(GroundError::Samples)?;
        let (verdict, reason) = health.verdict();
        let judged = Judged { health: kept_health(scenario, &health), verdict, reason };
        Ok(Ended { records, judged: Some(judged) })
    }
}

/// What the manifest keeps.
fn kept_health(scenario: &Scenario, health: &Health) -> HostHealth {
    let emulator = &health.emulator;
    let late = |share| micros(emulator.lateness.at(share));
    HostHealth {
        lateness_p50_us: late(0.5),
        lateness_p99_us: late(0.99),
        lateness_max_us: micros(emulator.lateness.max()),
        stalls: emulator.stalls,
        stalled_us: micros(emulator.stalled),
        packets: emulator.packets,
        dropped_packets: health.tun_dropped_packets + emulator.refused_packets,
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

/// Said where it is not so already.
const BPF: &str = if cfg!(feature = "bpf") {
    "load its module, "
} else {
    "load its module, build Knee with --features bpf, "
};

/// Controllers of Knee that are in no release of Linux, and not in BPF here.
const LINUX_LACKS: [&str; 7] = ["balia", "copa", "ledbat++", "lia", "olia", "prague", "vivace"];

/// How a controller that the kernel has not loaded could come into it.
fn way_to_load(name: &str) -> &'static str {
    match name {
        _ if LINUX_LACKS.contains(&name) => "",
        _ if name.starts_with("bbr") && !name.starts_with("bbr3") || name == "fixed" => BPF,
        _ => "load its module, ",
    }
}

impl From<KernelError> for GroundError {
    fn from(error: KernelError) -> GroundError {
        let whole = error.to_string();
        match error {
            KernelError::Testbed(error) => error.into(),
            KernelError::Controller { flow, name, available } => GroundError::Host(
                Refusal::new(
                    format!("flow \"{flow}\": this kernel has no controller \"{name}\""),
                    format!(
                        "choose one of {available}, {}or run on sim{}",
                        way_to_load(&name),
                        if LINUX_LACKS.contains(&name.as_str()) {
                            ": no release of Linux has it"
                        } else {
                            ""
                        }
                    ),
                )
                .because(format!("the kernel has no controller {name}")),
            ),
            KernelError::Unsupported { place, problem, advice } => {
                let what = format!("{place}: {problem}");
                GroundError::Scenario(Refusal::new(what.clone(), advice).because(what))
            }
            KernelError::Flow { .. } => GroundError::Host(Refusal::new(whole, "run it again")),
        }
    }
}

impl From<TestbedError> for GroundError {
    fn from(error: TestbedError) -> GroundError {
        let whole = error.to_string();
        match error {
            TestbedError::Host { what, source, advice } => {
                GroundError::Host(Refusal::new(format!("cannot {what}: {source}"), advice))
            }
            TestbedError::Panicked => GroundError::Defect(whole),
        }
    }
}
