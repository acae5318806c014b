//! Random scenarios, each checked by a program that shares no code with the
//! simulator: `knee-verify` reads the packet log and knows what no network
//! can do.
//!
//! `KNEE_SCENARIOS=100000 cargo test --release -p knee-sim --test invariants`
//! checks more of them; a failure names its seed, and `KNEE_SEED=<seed>` runs
//! that one alone.

mod random;

use knee_cc::RecoveryPeriod;
use knee_record::Records;
use knee_sim::Control;
use knee_trials::scenario;
use knee_verify::Report;
use random::{each_seed, read};

/// Scenarios in one test run.
const SCENARIOS: u64 = 1000;

fn check(seed: u64, recovery: Option<RecoveryPeriod>) {
    let random = scenario::random(seed);
    let files: Vec<(&str, &[u8])> = random.files().collect();
    let mut scenario = read(&random.text(), &files);
    scenario.flows.iter_mut().for_each(|flow| flow.transport.recovery = recovery);
    let mut log = Vec::new();
    let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log)
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed}: {error}"));
    let report = knee_verify::check(log.as_slice())
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed}: {error}"));
    assert!(
        report.violations.is_empty(),
        "KNEE_SEED={seed}\n{}\n{:#?}",
        random.text(),
        &report.violations[..report.violations.len().min(5)]
    );
    assert_same_story(&records, &report, seed);
}

/// The log and the records tell the same story. The log tells what each
/// subflow delivered, twice what came over two, and what their connections
/// made of it.
fn assert_same_story(records: &Records, report: &Report, seed: u64) {
    let several = |flow: &&knee_record::FlowRecord| !flow.scheduler.is_empty();
    let (several, single): (Vec<_>, Vec<_>) = records.flows.iter().partition(several);
    let single: u64 = single.iter().map(|flow| flow.delivered_bytes).sum();
    let subflows: u64 = records.paths.iter().map(|path| path.delivered_bytes).sum();
    let data: u64 = several.iter().map(|flow| flow.delivered_bytes).sum();
    assert_eq!(report.bytes_delivered, single + subflows, "KNEE_SEED={seed}");
    assert_eq!(report.data_delivered, data, "KNEE_SEED={seed}");
    assert_eq!(report.segments_delivered, records.cost.data_packets, "KNEE_SEED={seed}");
}

#[test]
fn random_scenarios_obey_the_rules_of_any_network() {
    each_seed(SCENARIOS, |seed| check(seed, None));
}

#[test]
fn they_do_so_with_the_recovery_of_quic() {
    each_seed(SCENARIOS / 4, |seed| check(seed, Some(RecoveryPeriod::Quic)));
}
