//! Code shared by the grounds with two hosts and an emulator between them.

use super::{Ended, GroundError, Judged, Output, Refusal};
use knee_record::{HostHealth, PathCheckRecord, ProbeRecord, Records, Verdict};
use knee_scenario::Scenario;
use knee_testbed::{Health, Observing, PathCheck, PathProbe, Played, TestbedError};
use knee_units::Time;
use std::fs::File;

/// Duration of the self-check, seconds of real time.
pub const SETUP_S: f64 = 0.7;
/// Part of the time with data to send in which the send buffer is what limits the senders: a run is
/// degraded, or invalid. On a host with time for them it is nothing, since the buffer has room for
/// every window, and a sender that is not run does not fill it.
const WAITED_DEGRADED: f64 = 0.05;
const WAITED_INVALID: f64 = 0.2;

/// Converts the output of a run.
pub fn ended(scenario: &Scenario, played: Played) -> Result<Ended, GroundError> {
    let Played { records, mut health, observed } = played;
    if let Some(observed) = observed {
        observed.capture_error.map_or(Ok(()), |error| Err(GroundError::Capture(error)))?;
        health.warnings.extend(missed(observed.missed_events));
    }
    let (mut verdict, mut reason) = health.verdict();
    if let Some((worse, why)) = senders_waited(&records) {
        verdict = verdict.max(worse);
        reason = if reason.is_empty() { why } else { format!("{reason}; {why}") };
    }
    let judged = Judged { health: Some(kept_health(scenario, &health)), verdict, reason };
    Ok(Ended { records, judged: Some(judged) })
}

/// Returns what an observer of the run has to do.
pub fn observing(output: &Output<'_>) -> Result<Option<Observing>, GroundError> {
    let capture = output.capture.as_ref().map(File::try_clone).transpose();
    let capture = capture.map_err(GroundError::Capture)?;
    Ok(capture.map(|file| Observing { capture: Some(file), ..Observing::default() }))
}

/// Warns that the observer was too slow.
fn missed(events: u64) -> Option<String> {
    (events > 0)
        .then(|| format!("the capture lacks {events} packets: the host was too slow to write them"))
}

/// Says for how much of their time senders were limited by the send buffer, if for too much: the host
/// did not run the application that fills it, and what was measured is the host.
fn senders_waited(records: &Records) -> Option<(Verdict, String)> {
    let known = records.connections.iter().filter_map(|one| {
        let limited = one.send_buffer_limited_ns?;
        Some((limited as f64, one.busy_ns? as f64))
    });
    let (limited, busy) = known.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let share = if busy > 0.0 { limited / busy } else { 0.0 };
    let verdict = match share {
        share if share > WAITED_INVALID => Verdict::Invalid,
        share if share > WAITED_DEGRADED => Verdict::Degraded,
        _ => return None,
    };
    let why = format!("the host kept senders waiting: {:.0} % of their time", 100.0 * share);
    Some((verdict, why))
}

/// Health as stored in the manifest.
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

/// Excludes the warm-up, as measures do.
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

impl From<TestbedError> for GroundError {
    fn from(error: TestbedError) -> GroundError {
        let whole = error.to_string();
        match error {
            TestbedError::Host { what, source, advice } => {
                GroundError::Host(Refusal::new(format!("cannot {what}: {source}"), advice))
            }
            TestbedError::Samples(error) => GroundError::Samples(error),
            TestbedError::Panicked => GroundError::Defect(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::ConnectionRecord;

    /// A second of data to send, and how long the send buffer limited it.
    fn verdict(limited_ms: &[Option<u64>]) -> Option<Verdict> {
        let one = |ms: &Option<u64>| ConnectionRecord {
            busy_ns: Some(1_000_000_000),
            send_buffer_limited_ns: ms.map(|ms| ms * 1_000_000),
            ..ConnectionRecord::default()
        };
        let connections = limited_ms.iter().map(one).collect();
        senders_waited(&Records { connections, ..Records::default() }).map(|found| found.0)
    }

    #[test]
    fn a_host_that_does_not_run_its_senders_proves_little() {
        assert_eq!(verdict(&[]), None);
        assert_eq!(verdict(&[None, Some(0)]), None);
        assert_eq!(verdict(&[Some(90), Some(0)]), None);
        assert_eq!(verdict(&[Some(220), Some(0), None]), Some(Verdict::Degraded));
        assert_eq!(verdict(&[Some(240)]), Some(Verdict::Invalid));
    }
}
