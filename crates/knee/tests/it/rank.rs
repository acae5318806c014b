//! `knee rank`: output, reproducibility, interrupts, refusals.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, expect, folder_with, json, knee, texts};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Candidate, company, goodput and repeat of each row.
fn rows(path: &Path) -> Vec<(String, String, f64, i64)> {
    let file = fs::File::open(path).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let text = |name: &str, at: usize| {
            batch.column_by_name(name).unwrap().as_string::<i32>().value(at).to_string()
        };
        for at in 0..batch.num_rows() {
            let goodput = batch.column_by_name("goodput_bps").unwrap();
            let repeat = batch.column_by_name("repeat").unwrap();
            rows.push((
                text("candidate", at),
                text("company", at),
                goodput.as_primitive::<Float64Type>().value(at),
                repeat.as_primitive::<Int64Type>().value(at),
            ));
        }
    }
    rows
}

/// Three candidates in four companies with two seeds; the unranked group is reported.
#[test]
fn a_row_for_each_run_whatever_the_jobs() {
    let folder = folder_with("small.toml", SMALL);
    let at = folder.path();
    let line = "rank small.toml --cc bbr,cubic,reno --repeat 2";
    let (out, err) = texts(&crate::common::run(at, &format!("{line} --jobs 1 --out one")));
    assert!(err.contains("flow bbr is ranked; left out: cubic"), "{err}");
    assert!(out.contains("24 of 24"), "{out}");
    // Two of the candidates are rivals, with two seeds.
    let said = err.replace('\n', " ");
    assert!(said.contains("20 runs in ") && said.contains(" 4 of them count twice"), "{err}");
    expect(at, &format!("{line} --jobs 3 --out three"), 0);
    for file in ["rank.json", "rank.parquet", "report.html"] {
        let bytes = |of: &str| fs::read(at.join(of).join(file)).unwrap();
        assert!(bytes("one") == bytes("three"), "{file}");
    }
    let rows = rows(&at.join("one/rank.parquet"));
    let all: BTreeSet<(&str, &str, i64)> =
        rows.iter().map(|row| (row.0.as_str(), row.1.as_str(), row.3)).collect();
    assert_eq!((rows.len(), all.len()), (24, 24), "{all:?}");
    // A flow gets less than the link, and two flows share it.
    assert!(rows.iter().all(|row| row.2 > 0.0 && row.2 < 10e6), "{rows:?}");
    // The document's mean equals that of the rows.
    let document = json(&at.join("one/rank.json"));
    let entry = document["entries"].as_array().unwrap();
    let reno = entry.iter().find(|entry| entry["candidate"] == "reno").unwrap();
    let points = reno["places"][0]["points"].as_array().unwrap();
    let alone: Vec<f64> =
        rows.iter().filter(|row| row.0 == "reno" && row.1 == "alone").map(|row| row.2).collect();
    assert_eq!(points.iter().map(|p| p[0].as_f64().unwrap()).collect::<Vec<_>>(), alone);
    // The page can be rewritten from the document.
    let page = fs::read(at.join("one/report.html")).unwrap();
    expect(at, "report one", 0);
    assert!(fs::read(at.join("one/report.html")).unwrap() == page);
}

/// A folder selects its scenarios, but not `study.toml`.
#[test]
fn folders_are_searched() {
    let folder = folder_with("b.toml", SMALL);
    let at = folder.path();
    fs::create_dir(at.join("all")).unwrap();
    fs::copy(at.join("b.toml"), at.join("all/b.toml")).unwrap();
    fs::copy(at.join("b.toml"), at.join("all/a.toml")).unwrap();
    fs::write(at.join("all/study.toml"), "no scenario").unwrap();
    expect(at, "rank all --cc reno,cubic --against cubic --out out", 0);
    let document = json(&at.join("out/rank.json"));
    let files: Vec<&str> = document["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scenario| scenario["file"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["all/a.toml", "all/b.toml"]);
    fs::create_dir(at.join("empty")).unwrap();
    assert!(complaint(at, "rank empty --out no", 2).contains("contains no scenario"));
}

/// An unsuitable file in a folder is skipped and reported; named directly, it is refused.
#[test]
fn one_file_that_cannot_be_ranked_leaves_the_others() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::create_dir(at.join("all")).unwrap();
    fs::copy(at.join("a.toml"), at.join("all/a.toml")).unwrap();
    let unlimited = SMALL.replace("rate = \"10 Mbit/s\"", "").replace("buffer", "# buffer");
    fs::write(at.join("all/b.toml"), unlimited).unwrap();
    fs::write(at.join("all/c.toml"), "no scenario").unwrap();
    let output = crate::common::run(at, "rank all --cc reno,cubic --against cubic --out out");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(
        err.contains("Left out: all/b.toml (") && err.contains("Left out: all/c.toml ("),
        "{err}"
    );
    assert!(out.contains("knee rank all/a.toml "), "{out}");
    assert_eq!(json(&at.join("out/rank.json"))["scenarios"].as_array().unwrap().len(), 1);
    complaint(at, "rank all/a.toml all/b.toml --cc reno,cubic --out no", 2);
    fs::remove_file(at.join("all/a.toml")).unwrap();
    complaint(at, "rank all --cc reno,cubic --out none", 2);
}

/// No controller delivers more over a recorded link than its capacity plus the initial queue; and
/// controllers whose runs do not depend on the seed differ, as Reno's 0.19 from Copa's 0.45.
#[test]
fn a_recorded_link_is_used_up_to_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    expect(at, "init --template trace", 0);
    expect(at, "rank trace.toml --cc reno,copa,cubic,bbr --repeat 3 --out out", 0);
    let document = json(&at.join("out/rank.json"));
    let entries = document["entries"].as_array().unwrap();
    for entry in entries {
        let used = entry["used"]["mean"].as_f64().unwrap();
        assert!((0.5..=1.0).contains(&used), "{}: {used}", entry["candidate"]);
    }
    let power = |entry: &serde_json::Value| entry["power"]["mean"].as_f64().unwrap();
    let reno = entries.iter().find(|entry| entry["candidate"] == "reno").unwrap();
    assert!(power(&entries[0]) > 1.5 * power(reno));
    assert_eq!((&entries[0]["word"], &reno["word"]), (&"better".into(), &"worse".into()));
}

/// Whether the process of this file (proc(5)) has a handler for a signal; it must not have ended.
fn catches(status: &str, signal: Signal) -> bool {
    let text = fs::read_to_string(status).unwrap();
    let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    caught & (1 << (signal as u32 - 1)) != 0
}

/// Finished runs are kept, and the result is marked as partial.
#[test]
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
fn an_interrupt_keeps_what_there_is() {
    let folder = folder_with("long.toml", &SMALL.replace("3 s", "60 s"));
    let at = folder.path();
    let arguments =
        ["rank", "long.toml", "--cc", "reno,cubic", "--repeat", "10000", "--out", "out"];
    let mut command = knee(at);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    // A program that does not listen yet is killed by the signal, whenever a busy host gets there.
    while !catches(&status, Signal::SIGINT) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{err}");
    let document = json(&at.join("out/rank.json"));
    let finished = document["runs_finished"].as_u64().unwrap();
    assert!(finished < document["runs_planned"].as_u64().unwrap(), "{out}");
    assert_eq!(rows(&at.join("out/rank.parquet")).len() as u64, finished);
    assert!(fs::read_to_string(at.join("out/report.html")).unwrap().contains("interrupted"));
}

/// The numbers of the CSV table equal those of the document exactly; a controller containing a
/// comma stays one field.
#[test]
fn tables_can_be_read_back() {
    let folder = folder_with("small.toml", SMALL);
    let at = folder.path();
    let odd = r#"{ name = "cubic", c = 0.3, beta = 0.6 }"#;
    let rank = |format: &str, out: &str| {
        let cc = format!("reno,{odd}");
        let line = ["rank", "small.toml", "--cc", &cc, "--repeat", "2", "--format", format];
        let output = knee(at).args(line).args(["--out", out]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        texts(&output).0
    };
    let printed = rank("csv", "a");
    let mut reader = csv::Reader::from_reader(printed.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let column = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let document = json(&at.join("a/rank.json"));
    let entries = document["entries"].as_array().unwrap();
    assert_eq!(rows.len(), entries.len());
    for (row, entry) in rows.iter().zip(entries) {
        assert_eq!(row[0], *entry["candidate"].as_str().unwrap());
        let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert_eq!(number("power"), entry["power"]["mean"].as_f64().unwrap());
        assert_eq!(number("power_low"), entry["power"]["low"].as_f64().unwrap());
        assert_eq!(number("jain_high"), entry["jain"]["high"].as_f64().unwrap());
        assert_eq!(number("share_beside_bbr"), entry["takes"][1]["mean"].as_f64().unwrap());
    }
    assert!(rows.iter().any(|row| row[0] == *odd), "{printed}");
    let markdown = rank("markdown", "b");
    let lines: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), 4, "{markdown}");
    let cells = |line: &str| line.matches(" |").count();
    assert!(lines.iter().all(|line| cells(line) == cells(lines[0])), "{markdown}");
    assert_eq!(
        rank("json", "c").trim(),
        fs::read_to_string(at.join("c/rank.json")).unwrap().trim()
    );
}

/// A mistake in a list of controllers is placed in that list, not in a key that nobody wrote.
#[test]
fn mistakes_in_lists_of_controllers_are_placed_there() {
    let folder = folder_with("small.toml", SMALL);
    for (line, place, marked) in [
        ("rank small.toml --cc nosuch,bbr", "--cc:1:1\n", "nosuch"),
        ("rank small.toml --cc bbr --against nosuch", "--against:1:1\n", "nosuch"),
        ("rank small.toml --cc {name=\"bbr\",nosuch=1}", "--cc:1:13\n", "nosuch=1"),
    ] {
        let said = complaint(folder.path(), line, 2);
        assert!(said.contains(place) && said.contains(marked), "{said}");
        assert!(!said.contains("flow.") && !said.contains("--set"), "{said}");
        assert!(!said.contains('…'), "{said}");
    }
}
