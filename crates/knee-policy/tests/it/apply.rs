//! Applying a policy, on a machine without processes and waiting.

use crate::environment::{Call, Machine, SECOND};
use knee_policy::{ApplySettings, Entry, Event, Journal, Policy, PolicyError, apply};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

fn policy(keys: &str) -> Policy {
    let text = format!(
        "name = \"edge\"\nactuator = \"route\"\n{keys}\n[[group]]\nname = \"web\"\n\
         prefixes = [\"192.0.2.0/23\"]\ncontroller = \"cubic\"\n"
    );
    Policy::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn journal() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    (folder, path)
}

/// Applies a policy; returns what was told, and how it ended.
fn applied(
    policy: &Policy,
    machine: &mut Machine,
    path: &std::path::Path,
    duration: Option<Duration>,
) -> (Vec<String>, Result<bool, PolicyError>) {
    let settings = ApplySettings { journal: path, publication: None, duration };
    let mut told = Vec::new();
    let ended = apply(policy, &settings, machine, &mut |event| {
        told.push(match event {
            Event::Applied { .. } => "applied".to_string(),
            Event::Reverted(_) => "reverted".to_string(),
            Event::RoutesChanged { .. } => "routes changed".to_string(),
            other => format!("{other:?}"),
        });
        Ok(())
    });
    (told, ended.map(|plan| plan.is_none()))
}

/// Whatever ends it: the guard is there before the first change, the actuator ends before
/// everything is reverted, and the guard is dismissed after that, with an empty journal.
#[test]
fn everything_is_reverted_whatever_ends_it() {
    let after = Some(5 * SECOND);
    for (why, policy, machine, duration) in [
        ("stopped", policy(""), Machine { stops_at: after, ..Machine::new(SECOND / 2) }, None),
        ("duration", policy(""), Machine::new(SECOND / 2), after),
        ("expired", policy("expires = 2001-09-09T01:46:45Z"), Machine::new(SECOND / 2), None),
        ("lost", policy(""), Machine { lost_at: after, ..Machine::new(SECOND / 2) }, None),
        ("refused", policy(""), Machine { refuses: true, ..Machine::new(SECOND / 2) }, None),
    ] {
        let (_folder, path) = journal();
        let mut machine = machine;
        let (told, ended) = applied(&policy, &mut machine, &path, duration);
        assert_eq!(ended.is_ok(), ["stopped", "duration", "expired"].contains(&why), "{why}");
        assert_eq!(told.last().map(String::as_str), Some("reverted"), "{why}: {told:?}");
        assert_eq!(told.contains(&"Expired".to_string()), why == "expired", "{told:?}");
        let calls = machine.calls();
        let ([Call::GuardBegun, Call::Prepared, Call::Applied(1), ..], [.., a, b, c]) =
            (&calls[..], &calls[..])
        else {
            panic!("{why}: {calls:?}");
        };
        let end = [Call::ActuatorDropped, Call::RolledBack(1), Call::GuardDismissed];
        assert_eq!([a, b, c].map(Clone::clone), end, "{why}");
        assert!(Journal::read(&path).unwrap().entries.is_empty(), "{why}");
        let now = machine.now.get();
        assert!(now <= 6 * SECOND, "{why}: {now:?}");
    }
}

/// A message that cannot be printed ends it, and everything is reverted.
#[test]
fn a_caller_that_fails_reverts_everything() {
    let (_folder, path) = journal();
    let mut machine = Machine::new(SECOND);
    let settings = ApplySettings { journal: &path, publication: None, duration: None };
    let full = || PolicyError::Lost { problem: "no output".to_string(), advice: "" };
    let ended = apply(&policy(""), &settings, &mut machine, &mut |event| match event {
        Event::Applied { .. } => Err(full()),
        _ => Ok(()),
    });
    assert!(ended.is_err_and(|error| error.to_string() == "no output"));
    let calls = machine.calls();
    assert_eq!(calls.last(), Some(&Call::GuardDismissed), "{calls:?}");
    assert!(calls.contains(&Call::RolledBack(1)), "{calls:?}");
}

/// What a killed process left is reverted before anything is changed.
#[test]
fn what_an_earlier_process_left_is_reverted_first() {
    let (_folder, path) = journal();
    let (mut left, _) = Journal::hold(&path).unwrap();
    left.write(&[Journal::begin("edge", 1).unwrap()]).unwrap();
    left.write(&[Entry::Rule { ipv6: false, table: 222, port: None }]).unwrap();
    drop(left);
    let mut machine = Machine { stops_at: Some(SECOND), ..Machine::new(SECOND) };
    let (told, ended) = applied(&policy(""), &mut machine, &path, None);
    assert!(ended.is_ok_and(|was_applied| was_applied));
    assert!(told[0].starts_with("EarlierReverted"), "{told:?}");
    assert_eq!(machine.calls()[..2], [Call::RolledBack(2), Call::GuardBegun]);
}

/// A route that appears in the host's table is steered within a second, and is told of.
#[test]
fn the_plan_follows_the_hosts_routes() {
    let (_folder, path) = journal();
    let mut machine = Machine {
        stops_at: Some(20 * SECOND),
        second_route_at: Some(10 * SECOND),
        ..Machine::new(SECOND / 10)
    };
    let (told, ended) = applied(&policy(""), &mut machine, &path, None);
    assert!(ended.is_ok());
    assert_eq!(told, ["applied", "routes changed", "reverted"]);
    let calls = machine.calls();
    let plans: Vec<&Call> = calls.iter().filter(|call| matches!(call, Call::Applied(_))).collect();
    assert_eq!(plans, [&Call::Applied(1), &Call::Applied(2)]);
    let at = calls.iter().position(|call| *call == Call::Applied(2)).unwrap();
    let Some(Call::LeaseRenewed(before)) =
        calls[..at].iter().rev().find(|call| matches!(call, Call::LeaseRenewed(_)))
    else {
        panic!("{calls:?}");
    };
    assert!((9 * SECOND..=11 * SECOND).contains(before), "{before:?}");
}

/// The lease is renewed every second as long as the policy is applied, and first of all after a
/// time in which the process did not run.
#[test]
fn the_lease_is_renewed_every_second() {
    for step in [SECOND / 10, SECOND, 25 * SECOND] {
        let (_folder, path) = journal();
        let end = 100 * step.max(SECOND);
        let mut machine = Machine { stops_at: Some(end), ..Machine::new(step) };
        applied(&policy(""), &mut machine, &path, None).1.unwrap();
        let renewals: Vec<Duration> = machine
            .calls()
            .into_iter()
            .filter_map(|call| match call {
                Call::LeaseRenewed(at) => Some(at),
                _ => None,
            })
            .collect();
        let longest = step.max(SECOND) + step;
        assert!(renewals.len() >= 90, "{step:?}: {}", renewals.len());
        assert!(renewals.windows(2).all(|pair| pair[1] - pair[0] <= longest), "{renewals:?}");
    }
    // Both are due after 40 s without running.
    let (_folder, path) = journal();
    let mut machine = Machine {
        stops_at: Some(81 * SECOND),
        second_route_at: Some(SECOND),
        ..Machine::new(40 * SECOND)
    };
    applied(&policy(""), &mut machine, &path, None).1.unwrap();
    let calls = machine.calls();
    let of = |wanted: fn(&Call) -> bool| calls.iter().position(wanted).unwrap();
    let renewed = of(|call| matches!(call, Call::LeaseRenewed(_)));
    assert!(renewed < of(|call| matches!(call, Call::Applied(2))), "{calls:?}");
}

/// A policy for clients that no route leads to changes nothing and starts no guard.
#[test]
fn nothing_to_steer_changes_nothing() {
    let (_folder, path) = journal();
    let text = "name = \"edge\"\nactuator = \"route\"\n[[group]]\nname = \"web\"\n\
                prefixes = [\"198.51.100.0/24\"]\ncontroller = \"cubic\"\n";
    let mut machine = Machine::new(SECOND);
    let (told, ended) = applied(&Policy::parse(text).unwrap(), &mut machine, &path, None);
    assert!(ended.is_ok_and(|was_applied| !was_applied));
    assert_eq!((told, machine.calls()), (Vec::new(), Vec::new()));
    assert_eq!(fs::read(&path).unwrap(), b"");
}
