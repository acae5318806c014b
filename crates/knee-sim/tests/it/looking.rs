//! Observation changes nothing: in random scenarios, the packet log and the
//! sampling interval do not affect flows, transfers and links.
//!
//! `KNEE_SCENARIOS=20000 cargo test -p knee-sim --test it looking::` checks more
//! scenarios; a failure names its seed, and `KNEE_SEED=<seed>` runs that one alone.

use crate::random::{RunRows, each_seed, read, run};
use knee_record::Records;
use knee_scenario::Scenario;
use knee_sim::Control;
use knee_trials::scenario;
use knee_units::Time;
use std::collections::BTreeSet;
use std::io;

/// Scenarios in one test run.
const SCENARIOS: u64 = 200;

fn logged(scenario: &Scenario) -> Records {
    knee_sim::run_logged(scenario, &Control::default(), io::sink())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Keeps the rows at times that both have; the rest of the records does not
/// depend on the interval.
fn keep_common_times(one: &mut RunRows, other: &mut RunRows) {
    for (name, told) in &mut one.flows {
        let others = other.flows.get_mut(name).expect("it is the same scenario");
        let pairs = [
            (&mut told.samples, &mut others.samples),
            (&mut told.path_samples, &mut others.path_samples),
        ];
        for (rows, others) in pairs {
            let times = |rows: &[knee_record::FlowSample]| {
                rows.iter().map(|row| row.time_ns).collect::<BTreeSet<u64>>()
            };
            let (mine, theirs) = (times(rows), times(others));
            rows.retain(|row| theirs.contains(&row.time_ns));
            others.retain(|row| mine.contains(&row.time_ns));
        }
    }
    for (name, rows) in &mut one.links {
        let others = other.links.get_mut(name).expect("it is the same scenario");
        let times = |rows: &[knee_record::LinkSample]| {
            rows.iter().map(|row| row.time_ns).collect::<BTreeSet<u64>>()
        };
        let (mine, theirs) = (times(rows), times(others));
        rows.retain(|row| theirs.contains(&row.time_ns));
        others.retain(|row| mine.contains(&row.time_ns));
        assert!(rows.len() >= 2, "the start and the end are common");
    }
}

fn check(seed: u64) {
    let drawn = scenario::random(seed);
    let files: Vec<(&str, &[u8])> = drawn.files().collect();
    let text = drawn.text();
    let mut scenario = read(&text, &files);
    let records = run(&scenario);
    assert!(records == logged(&scenario), "KNEE_SEED={seed}: the packet log changes the run");

    let mut told = RunRows::of(&scenario, records);
    scenario.sample_interval = Time::from_nanos(1_000_000 + 7_777 * (seed % 100));
    let mut other = RunRows::of(&scenario, run(&scenario));
    keep_common_times(&mut told, &mut other);
    told.assert_same(&other, &format!("KNEE_SEED={seed}: the sampling interval"));
}

#[test]
fn packet_log_and_sampling_change_nothing() {
    each_seed(SCENARIOS, check);
}

/// Concurrent runs, as with `--jobs`, in any order.
#[test]
fn other_runs_change_nothing() {
    let all: Vec<Scenario> = (0..40)
        .map(|seed| {
            let drawn = scenario::random(seed);
            let files: Vec<(&str, &[u8])> = drawn.files().collect();
            read(&drawn.text(), &files)
        })
        .collect();
    let alone: Vec<Records> = all.iter().map(run).collect();
    let beside: Vec<Records> = std::thread::scope(|scope| {
        let started: Vec<_> = all.iter().rev().map(|one| scope.spawn(|| run(one))).collect();
        started.into_iter().map(|run| run.join().expect("the run ends")).collect()
    });
    for (seed, (one, other)) in alone.iter().zip(beside.iter().rev()).enumerate() {
        assert!(one == other, "seed {seed}");
    }
}

/// The log once kept the slots of mixes from being reused, which hid a confusion
/// of their timers: a run with the log differed from one without.
#[test]
fn the_packet_log_does_not_change_a_mix() {
    for seed in 1..=10 {
        let text = format!(
            "duration = \"10 s\"\nseed = {seed}\n\
             [link.a]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\nbuffer = \"0.5 BDP\"\n\
             loss = \"3 %\"\n[path.a]\nforward = [\"a\"]\nreverse_delay = \"20 ms\"\n\
             [[flow]]\ncc = \"cubic\"\nworkload = {{ mix = {{ arrival_interval = \"60 ms\", \
             sizes = {{ median = \"10 kB\", sigma = 1.0, max = \"1 MB\" }} }} }}\n"
        );
        let scenario = read(&text, &[]);
        assert!(run(&scenario) == logged(&scenario), "seed {seed}");
    }
}
