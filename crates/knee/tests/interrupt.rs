//! Ctrl-C, and what is left after it.

#![cfg(target_os = "linux")]

mod common;

use common::{SMALL, complaint, expect, folder_with, json, knee};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Hours of simulated time: no machine is done with it within a test.
fn endless() -> String {
    SMALL.replace("\"3 s\"", "\"240 min\"").replace("10 Mbit/s", "1 Gbit/s")
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until a run has begun: its packet log grows.
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
fn wait_until_begun(child: &mut Child, log: &Path) {
    while std::fs::metadata(log).map_or(0, |log| log.len()) == 0 {
        let ended = child.try_wait().expect("it can be asked");
        assert!(ended.is_none(), "it ended by itself: {ended:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(id), signal).expect("it can be signalled");
}

#[test]
fn what_there_is_is_kept_and_marked() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = folder_with("long.toml", &endless());
        let at = folder.path();
        let mut child = start(knee(at).args(["run", "long.toml", "--packet-log", "--out", "out"]));
        wait_until_begun(&mut child, &at.join("out/packets.csv"));
        send(&child, signal);
        let (_, err) = common::texts(&child.wait_with_output().unwrap());
        assert!(err.contains("Stopping"), "{err}");
        let manifest = json(&at.join("out/manifest.json"));
        assert_eq!(manifest["interrupted"], true);
        let summary = json(&at.join("out/summary.json"));
        assert_eq!(summary["verdict"], "degraded");
        assert!(summary["verdict_reason"].as_str().unwrap().contains("interrupted"));
        std::fs::remove_file(at.join("out/report.html")).unwrap();
        expect(at, "report out", 0);
        let report = std::fs::read_to_string(at.join("out/report.html")).unwrap();
        assert!(report.contains("interrupted"));
    }
}

#[test]
fn exit_code_of_an_interrupted_run() {
    let folder = folder_with("long.toml", &endless());
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "long.toml", "--packet-log", "--json"]));
    wait_until_begun(&mut child, &at.join("knee-out/long/packets.csv"));
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["verdict"], "degraded");
}

/// Killed outright: nothing passes for a run.
#[test]
fn a_killed_run_is_no_run() {
    let folder = folder_with("long.toml", &endless());
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "long.toml", "--packet-log", "--out", "out"]));
    wait_until_begun(&mut child, &at.join("out/packets.csv"));
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    let said = complaint(at, "report out", 2);
    assert!(said.contains("out"), "{said}");
}
