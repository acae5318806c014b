//! Ctrl-C and its results.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, expect, folder_with, json, knee};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Hours of simulated time, which no machine finishes within a test.
fn endless() -> String {
    SMALL.replace("\"3 s\"", "\"240 min\"").replace("10 Mbit/s", "1 Gbit/s")
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until a run has started: its packet log grows.
fn wait_until_begun(child: &mut Child, log: &Path) {
    wait_until(child, log, 1);
}

/// Waits until the program's file has a number of bytes.
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
fn wait_until(child: &mut Child, file: &Path, bytes: u64) {
    while std::fs::metadata(file).map_or(0, |file| file.len()) < bytes {
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
        wait_until_begun(&mut child, &at.join("out/packets.csv.part"));
        send(&child, signal);
        let (_, err) = crate::common::texts(&child.wait_with_output().unwrap());
        assert!(err.contains("Stopping"), "{err}");
        let manifest = json(&at.join("out/manifest.json"));
        assert_eq!(manifest["interrupted"], true);
        let summary = json(&at.join("out/summary.json"));
        assert_eq!(summary["verdict"], "degraded");
        assert!(summary["verdict_reason"].as_str().unwrap().contains("interrupted"));
        assert!(at.join("out/packets.csv").is_file() && !at.join("out/packets.csv.part").exists());
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
    wait_until_begun(&mut child, &at.join("knee-out/long/packets.csv.part"));
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["verdict"], "degraded");
}

/// Two mixes of one process: one run of seconds, then its thirty alternatives.
const ASKS: &str = r#"
name = "Asks"
duration = "60 s"
[link.mile]
rate = "100 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
[path.main]
forward = ["mile"]
reverse_delay = "10 ms"
[[flow]]
name = "test"
cc = "bbr"
workload = { mix = { process = "clients", arrival_interval = "50 ms", sizes = "200 kB" } }
[[flow]]
name = "control"
cc = "cubic"
workload = { mix = { process = "clients", arrival_interval = "50 ms", sizes = "200 kB" } }
"#;

/// A stop while the alternatives run leaves the scenario's own run, which ended before them,
/// complete: its records, its page, and what is printed, which says that there is no answer.
#[test]
fn a_stop_among_the_alternatives_keeps_the_run() {
    let folder = folder_with("asks.toml", ASKS);
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "asks.toml", "--out", "out"]));
    wait_until(&mut child, &at.join("out/summary.json"), 1);
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    let (printed, err) = crate::common::texts(&output);
    assert_eq!(output.status.code(), Some(130), "{printed}{err}");
    assert!(printed.starts_with("No answer: stopped before"), "{printed}");
    assert!(printed.contains("test[0]") && printed.contains("verdict  valid"), "{printed}");
    assert_eq!(json(&at.join("out/manifest.json"))["interrupted"], false);
    assert_eq!(json(&at.join("out/summary.json"))["verdict"], "valid");
    assert!(at.join("out/report.html").is_file() && !at.join("out/answers.json").exists());
}

/// A stop during that run itself keeps what there is of it, as without a question.
#[test]
fn a_stop_before_the_alternatives_keeps_what_there_is() {
    let long = ASKS.replace("60 s", "240 min").replace("50 ms", "500 ms");
    let folder = folder_with("asks.toml", &long);
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "asks.toml", "--packet-log", "--out", "out"]));
    wait_until_begun(&mut child, &at.join("out/packets.csv.part"));
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(crate::common::texts(&output).0.contains("verdict  degraded"));
    assert_eq!(json(&at.join("out/manifest.json"))["interrupted"], true);
    assert!(at.join("out/report.html").is_file());
}

/// Number of rows, from an independent Parquet reader.
fn rows(path: &Path) -> usize {
    let file = std::fs::File::open(path).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    batches.map(|batch| batch.unwrap().num_rows()).sum()
}

/// Samples reach the disk during the run. After a stop the tables are complete and the run is
/// marked as interrupted.
#[test]
fn samples_are_written_as_the_run_goes() {
    let fine = endless().replace("seed = 5", "seed = 5\nsample_interval = \"100 us\"");
    let folder = folder_with("long.toml", &fine);
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "long.toml", "--out", "out"]));
    // More than the header of a table.
    wait_until(&mut child, &at.join("out/links.parquet.part"), 10_000);
    send(&child, Signal::SIGINT);
    let (_, err) = crate::common::texts(&child.wait_with_output().unwrap());
    assert!(err.contains("will write about") && err.contains("sample_interval"), "{err}");
    let manifest = json(&at.join("out/manifest.json"));
    assert_eq!(manifest["interrupted"], true);
    let end_ns = manifest["end_ns"].as_u64().unwrap();
    let instants = usize::try_from(end_ns.div_ceil(100_000) + 1).unwrap();
    // The first row group, of 65,536 rows, was on disk.
    assert!(instants >= 65_536, "{instants}");
    let (links, flows) =
        (rows(&at.join("out/links.parquet")), rows(&at.join("out/samples.parquet")));
    assert!(links.abs_diff(instants) <= 1, "{links} {instants}");
    assert!(flows.abs_diff(2 * instants) <= 2, "{flows} {instants}");
    expect(at, "report out", 0);
}

/// One hour at one sample per ms: in memory the rows would take 800 MB.
#[test]
#[ignore = "takes long: .ci/night random"]
fn memory_does_not_grow_with_the_length() {
    let hour = SMALL.replace("3 s", "60 min").replace("seed = 5", "sample_interval = \"1 ms\"");
    let hour = hour.replace("10 Mbit/s", "1 Mbit/s");
    let one = hour.split("\n[[flow]]\nname = \"cubic\"").next().unwrap();
    let folder = folder_with("hour.toml", one);
    let at = folder.path();
    expect(at, "run hour.toml --out out", 0);
    assert_eq!(rows(&at.join("out/samples.parquet")), 3_600_000);
    let peak = json(&at.join("out/manifest.json"))["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak < 400_000_000, "{peak}");
}

/// A killed process leaves nothing that looks like a run.
#[test]
fn a_killed_run_is_no_run() {
    let folder = folder_with("long.toml", &endless());
    let at = folder.path();
    let mut child = start(knee(at).args(["run", "long.toml", "--packet-log", "--out", "out"]));
    wait_until_begun(&mut child, &at.join("out/packets.csv.part"));
    send(&child, Signal::SIGKILL);
    child.wait().unwrap();
    assert!(!at.join("out/packets.csv").exists());
    let said = complaint(at, "report out", 2);
    assert!(said.contains("out"), "{said}");
    // Its unfinished files are in nobody's way.
    std::fs::write(at.join("small.toml"), SMALL).unwrap();
    expect(at, "run small.toml --packet-log --out out", 0);
}
