//! Random scenarios, each checked by a program that shares no code with the
//! simulator: `knee-verify` reads the packet log and reports what is impossible
//! in any network.
//!
//! `KNEE_SCENARIOS=100000 cargo test --release -p knee-sim --test it invariants::`
//! checks more of them; a failure names its seed, and `KNEE_SEED=<seed>` runs that
//! one alone. `KNEE_SCENARIOS=10000 cargo test -p knee-sim --test it
//! every_controller` runs each controller, preset, switch and word in that many.

use crate::random::{each_seed, read};
use knee_cc::{Kind, RecoveryPeriod, Selection, Value};
use knee_record::Records;
use knee_scenario::Flow;
use knee_sim::Control;
use knee_transport::{Lies, ReceiveWindow};
use knee_trials::scenario;
use knee_units::Time;
use knee_verify::Report;
use knee_workload::Workload;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scenarios in one test run.
const SCENARIOS: u64 = 200;

fn check(seed: u64, recovery: Option<RecoveryPeriod>) {
    check_with(seed, |flow| flow.transport.recovery = recovery, "");
}

/// Checks a scenario; `what` describes the change of each flow, for messages.
fn check_with(seed: u64, change: impl Fn(&mut Flow), what: &str) {
    let random = scenario::random(seed);
    let files: Vec<(&str, &[u8])> = random.files().collect();
    let mut scenario = read(&random.text(), &files);
    scenario.flows.iter_mut().for_each(change);
    let mut log = Vec::new();
    let records = knee_sim::run_logged(&scenario, &Control::default(), &mut log)
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed} {what}: {error}"));
    let report = knee_verify::check(log.as_slice())
        .unwrap_or_else(|error| panic!("KNEE_SEED={seed} {what}: {error}"));
    assert!(
        report.violations.is_empty(),
        "KNEE_SEED={seed} {what}\n{}\n{:#?}",
        random.text(),
        &report.violations[..report.violations.len().min(5)]
    );
    assert_same_story(&records, &report, seed);
}

/// The log and the records agree. The log contains what each subflow delivered,
/// counting data that arrived on two paths twice, and what their connections
/// delivered.
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

/// With random delays of the sending hosts.
#[test]
fn they_do_so_with_send_jitter() {
    let jitter = Time::from_millis(2);
    each_seed(SCENARIOS / 8, |seed| check_with(seed, |flow| flow.send_jitter = jitter, "jitter"));
}

/// Makes bulk flows over one path lie, with a small receive window.
fn lie(flow: &mut Flow, lies: Lies) {
    if flow.multipath.is_none() && flow.workload == Workload::Bulk {
        flow.transport.lies = lies;
        flow.transport.receive_window = ReceiveWindow::Fixed(60_000);
    }
}

#[test]
fn receivers_that_lie_leave_them_be() {
    let honest = Lies::default();
    let kinds = [
        Lies { conceal_loss: true, ..honest },
        Lies { ack_ahead: 7, ..honest },
        Lies { ack_division: 4, ..honest },
        Lies { false_duplicates: true, ..honest },
        Lies { ack_ahead: 30, ack_division: 3, false_duplicates: true, conceal_loss: true },
    ];
    each_seed(SCENARIOS / 2, |seed| {
        let lies = kinds[seed as usize % kinds.len()];
        check_with(seed, |flow| lie(flow, lies), &format!("{lies:?}"));
    });
}

/// Returns each controller, each preset, each switch inverted, and each word.
fn every_controller() -> Vec<Selection> {
    let mut all = Vec::new();
    // A constant window responds to nothing.
    for entry in knee_cc::controllers().iter().filter(|entry| entry.name != "fixed") {
        all.push(Selection::named(entry.name));
        all.extend(entry.presets.iter().map(|preset| Selection::named(preset.name)));
        for parameter in entry.parameters.iter().filter(|one| matches!(one.kind, Kind::Switch)) {
            let other = Value::Switch(parameter.default != "true");
            all.push(Selection::named(entry.name).with(parameter.name, other));
        }
        for parameter in entry.parameters {
            let (Kind::SwitchOrWord(words) | Kind::Word(words)) = parameter.kind else { continue };
            for word in words.iter().filter(|word| **word != parameter.default) {
                let text = |text: &str| Value::Text(text.to_owned());
                let mut selection = Selection::named(entry.name).with(parameter.name, text(word));
                if *word == "careful-resume" {
                    selection = selection.with("saved_window", text("300 packets"));
                }
                all.push(selection);
            }
        }
    }
    all
}

/// If a packet finds a full DualPI2 in the same nanosecond in which an opportunity
/// of a trace makes it drop another, the log reports the new packet first.
#[test]
fn a_full_queue_and_a_late_drop_at_one_time() {
    let copa = Selection::named("copa");
    check_with(4649, |flow| flow.controller = copa.clone(), "copa");
}

/// A path that had room for a burst when a segment timed out, in the same nanosecond, sends that
/// segment apart from the burst.
#[test]
fn a_timeout_and_room_for_a_burst_at_one_time() {
    let window = Selection::named("bbr").with("window_machine", Value::Switch(true));
    check_with(1088, |flow| flow.controller = window.clone(), "bbr by its window");
}

/// A timeout waits for as long as pacing holds back the next segment, which may be its whole time at
/// the pacing rate: only the sender knows how much of it is forgiven.
#[test]
fn a_timeout_that_waits_for_a_segment_that_is_paced_in_full() {
    let gcc = Selection::named("gcc");
    check_with(8759, |flow| flow.controller = gcc.clone(), "gcc");
}

/// All flows of a scenario have the same controller, and each controller gets
/// the same number of scenarios.
#[test]
fn every_controller_obeys_them() {
    let (all, next) = (every_controller(), AtomicUsize::new(0));
    let check_next = || {
        while let Some(selection) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let what = format!("{selection:?}");
            each_seed(SCENARIOS / 8, |seed| {
                check_with(seed, |flow| flow.controller = selection.clone(), &what);
            });
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(check_next))));
}
