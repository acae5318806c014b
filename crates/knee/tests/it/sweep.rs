//! `knee sweep`: planned runs, output, resumption, refusals.

#![cfg(target_os = "linux")]

use crate::common::{SMALL, complaint, expect, folder_with, json, knee, texts};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use knee_record::{SweepKey, SweepRun, SweepSummary};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

/// One connection over three paths.
const THREE_PATHS: &str = r#"
name = "Three paths"
duration = "5 s"

[link.a]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"

[link.b]
rate = "5 Mbit/s"
delay = "30 ms"
buffer = "2 BDP"

[path.a]
forward = ["a"]
reverse_delay = "10 ms"

[path.b]
forward = ["b"]
reverse_delay = "30 ms"

[path.c]
forward = ["b"]
reverse_delay = "50 ms"

[[flow]]
name = "main"
paths = ["a", "b", "c"]
scheduler = "minrtt"
cc = "cubic"
workload = { file = "500 kB" }
"#;

fn sweep(at: &Path, arguments: &[&str]) -> Output {
    knee(at).arg("sweep").args(arguments).output().expect("the program starts")
}

fn succeeds(at: &Path, arguments: &[&str]) -> (String, String) {
    let output = sweep(at, arguments);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}{err}");
    (out, err)
}

fn refused(at: &Path, arguments: &[&str]) -> String {
    let output = sweep(at, arguments);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{out}{err}");
    // The text, independent of line breaks.
    err.replace(['|', '^'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Name and bytes of each run's file. They include CPU time, so a repeated run differs.
fn kept(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(directory.join("runs")) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let whole = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let name = |path: &Path| path.file_name().expect("it has one").to_string_lossy().into_owned();
    whole.map(|path| (name(&path), fs::read(&path).expect("it can be read"))).collect()
}

/// Every combination runs once per repeat, as `knee run` does with the same settings and seed.
#[test]
fn every_combination_is_run() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let vary = ["a.toml", "--vary", "link.bottleneck.rate=4..8 Mbit/s step 4 Mbit/s"];
    let more = ["--vary", "flow.bbr.cc=bbr,reno,cubic", "--repeat", "2", "--json"];
    let (printed, err) = succeeds(at, &[vary.as_slice(), &more].concat());
    assert!(err.contains("12 runs in"), "{err}");
    let directory = at.join("knee-out/sweep-a");
    assert_eq!(printed, fs::read_to_string(directory.join("sweep.json")).unwrap());
    let schema = serde_json::from_str(&expect(at, "schema sweep", 0)).unwrap();
    let document = json(&directory.join("sweep.json"));
    jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{error}"));
    let points = document["points"].as_array().unwrap();
    let places: Vec<_> = points.iter().map(|point| point["at"].to_string()).collect();
    assert_eq!(places, ["[0,0]", "[0,1]", "[0,2]", "[1,0]", "[1,1]", "[1,2]"]);
    assert!(points.iter().all(|point| point["seeds"] == serde_json::json!([5, 6])));
    assert_eq!(document["groups"], serde_json::json!(["bbr", "cubic", "*"]));

    let by_hand = |seed: u64| {
        let run = knee(at)
            .args(["run", "a.toml", "--set", "link.bottleneck.rate=8 Mbit/s", "--json"])
            .args(["--set", "flow.bbr.cc=reno", "--force", "--seed", &seed.to_string()])
            .output()
            .unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        summary["flows"][0]["goodput_bps"].as_f64().unwrap()
    };
    let group = &points[4]["groups"][0];
    assert_eq!(group["group"], "bbr");
    let goodput = &group["measures"]["goodput_bps"]["interval"];
    let mean = (by_hand(5) + by_hand(6)) / 2.0;
    assert!((goodput["mean"].as_f64().unwrap() - mean).abs() < 1e-6 * mean, "{goodput} {mean}");
    assert!(goodput["low"].as_f64().unwrap() < mean && mean < goodput["high"].as_f64().unwrap());
}

/// One row per run and group; settings as text and, if they are quantities, as numbers.
#[test]
fn the_dataset_can_be_queried() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    succeeds(at, &["a.toml", "--vary", "link.bottleneck.rate=4 Mbit/s,500 kbit/s", "--out", "o"]);
    let file = fs::File::open(at.join("o/sweep.parquet")).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = batches.map(Result::unwrap).next().unwrap();
    // Two runs, each with two groups and all flows.
    assert_eq!(batch.num_rows(), 6);
    let floats = |name: &str| {
        let column = batch.column_by_name(name).unwrap_or_else(|| panic!("{name}"));
        column.as_primitive::<Float64Type>().clone()
    };
    assert_eq!(floats("link.bottleneck.rate_bps").values(), &[4e6, 4e6, 4e6, 5e5, 5e5, 5e5]);
    let goodput = floats("goodput_bps");
    let (first, second, all) = (goodput.value(0), goodput.value(1), goodput.value(2));
    assert!((first + second - all).abs() < 1.0 && all < 4e6, "{first} {second} {all}");
    assert!(floats("completion_s").is_null(0), "bulk flows have no end");
    let seeds = batch.column_by_name("seed").unwrap().as_primitive::<Int64Type>();
    assert!(seeds.values().iter().all(|seed| *seed == 5));
}

/// After a kill, the same command continues, repeats no finished run, and produces the bytes of an
/// uninterrupted sweep.
#[test]
#[allow(clippy::disallowed_methods, reason = "waits for another process")]
fn a_killed_sweep_goes_on() {
    let long = SMALL.replace("\"3 s\"", "\"60 s\"");
    let folder = folder_with("a.toml", &long);
    let at = folder.path();
    let arguments = ["a.toml", "--vary", "link.bottleneck.rate=60..100 Mbit/s step 20 Mbit/s"];
    let arguments = [arguments.as_slice(), &["--repeat", "4", "--jobs", "1"]].concat();
    let mut child = knee(at)
        .arg("sweep")
        .args(&arguments)
        .args(["--out", "killed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let killed = at.join("killed");
    while kept(&killed).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(2));
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let before = kept(&killed);
    assert!((2..12).contains(&before.len()), "{} of 12 runs were there", before.len());
    // All points of the first repeat come first.
    let repeats = before.values().map(|run| {
        let run: serde_json::Value = serde_json::from_slice(run).unwrap();
        run["repeat"].as_u64().unwrap()
    });
    assert!(repeats.filter(|repeat| *repeat == 1).count() >= before.len().min(3));

    let (_, err) = succeeds(at, &[arguments.as_slice(), &["--out", "killed"]].concat());
    assert!(err.contains(&format!("{} of 12 runs exist already", before.len())), "{err}");
    let after = kept(&killed);
    assert_eq!(after.len(), 12);
    assert!(before.iter().all(|(name, bytes)| after[name] == *bytes));
    let parallel = ["--out", "whole", "--jobs", "2"];
    succeeds(at, &[&arguments[..5], &parallel].concat());
    for name in ["sweep.parquet", "sweep.json", "report.html"] {
        let read = |out: &str| fs::read(at.join(out).join(name)).unwrap();
        assert!(read("killed") == read("whole"), "{name}");
    }
}

#[test]
fn what_changed_is_done_again() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let arguments = ["a.toml", "--vary", "flow.bbr.cc=bbr,reno", "--out", "o"];
    succeeds(at, &arguments);
    let first = kept(&at.join("o"));
    let (_, err) = succeeds(at, &arguments);
    assert!(err.contains("2 of 2 runs exist already"), "{err}");
    assert_eq!(kept(&at.join("o")), first);
    // A comment does not change a run.
    fs::write(at.join("a.toml"), format!("# a comment\n{SMALL}")).unwrap();
    succeeds(at, &arguments);
    assert_eq!(kept(&at.join("o")), first);
    fs::write(at.join("a.toml"), SMALL.replace("10 ms", "11 ms")).unwrap();
    let (_, err) = succeeds(at, &arguments);
    assert!(err.contains("2 of 2 runs are repeated: the scenario"), "{err}");
    // An additional value: only its run is new.
    let more = ["a.toml", "--vary", "flow.bbr.cc=bbr,reno,cubic", "--out", "o"];
    let (_, err) = succeeds(at, &more);
    assert!(err.contains("2 of 3 runs exist already") && err.contains("1 run in"), "{err}");
    let (_, err) = succeeds(at, &[more.as_slice(), &["--force"]].concat());
    assert!(err.contains("3 runs in") && kept(&at.join("o")).len() == 3, "{err}");
    fs::remove_file(at.join("o/report.html")).unwrap();
    expect(at, "report o", 0);
    assert!(fs::read_to_string(at.join("o/report.html")).unwrap().contains("flow.bbr.cc"));
}

/// Results of another sweep are not replaced; without `--out` the folder gets a number.
#[test]
fn another_sweep_goes_elsewhere() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::write(at.join("b.toml"), SMALL.replace("10 ms", "20 ms")).unwrap();
    fs::write(at.join("same.toml"), SMALL).unwrap();
    let one = "sweep a.toml --vary flow.bbr.cc=bbr,reno";
    expect(at, &format!("{one} --out o"), 0);
    let first = fs::read(at.join("o/sweep.json")).unwrap();
    let others = [
        "sweep a.toml --vary link.bottleneck.buffer='1BDP','2BDP'",
        "sweep b.toml --vary flow.bbr.cc=bbr,reno",
        "sweep a.toml --vary flow.bbr.cc=bbr,reno --set flow.cubic.cc=reno",
    ];
    for other in others {
        let said = complaint(at, &format!("{other} --out o"), 2);
        assert!(said.contains("o contains another sweep") && said.contains("--force"), "{said}");
        assert!(fs::read(at.join("o/sweep.json")).unwrap() == first, "{other}");
    }
    let (_, err) = succeeds(at, &["same.toml", "--vary", "flow.bbr.cc=bbr,reno", "--out", "o"]);
    assert!(err.contains("2 of 2 runs exist already"), "{err}");
    expect(at, &format!("{} --out o --force", others[0]), 0);
    for (line, name) in [(one, "sweep-a"), (others[0], "sweep-a-2"), (one, "sweep-a")] {
        let printed = expect(at, line, 0);
        assert!(printed.contains(&format!("knee-out/{name}/report.html")), "{printed}");
    }
    let first = fs::read(at.join("knee-out/sweep-a/sweep.json")).unwrap();
    let printed = expect(at, &format!("{} --force", others[0]), 0);
    assert!(printed.contains("knee-out/sweep-a-2/report.html"), "{printed}");
    assert!(fs::read(at.join("knee-out/sweep-a/sweep.json")).unwrap() == first);
    // The same file under another name, although it has changed.
    fs::write(at.join("a.toml"), SMALL.replace("10 ms", "20 ms")).unwrap();
    let printed = expect(at, &one.replace("a.toml", "./a.toml"), 0);
    assert!(printed.contains("knee-out/sweep-a/report.html"), "{printed}");
}

/// Results of another program do not count as finished.
#[test]
fn runs_of_another_build_are_done_again() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let arguments = ["a.toml", "--vary", "flow.bbr.cc=bbr,reno", "--out", "o"];
    succeeds(at, &arguments);
    let (name, bytes) = kept(&at.join("o")).pop_first().unwrap();
    let mut run: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    run["program"] = "0".repeat(64).into();
    fs::write(at.join("o/runs").join(name), run.to_string()).unwrap();
    let (_, err) = succeeds(at, &arguments);
    assert!(err.contains("1 of 2 runs are repeated: another build"), "{err}");
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    for (vary, parts) in [
        ("flow.bbr.cx=bbr,cubic", ["has no key \"cx\"", "did you mean \"cc\"?"]),
        ("flow.bbrr.cc=bbr,cubic", ["there is no flow \"bbrr\"", "did you mean \"bbr\"?"]),
        ("flow.bbr.cc=bbr,cubci", ["at 1 of 2 points: flow.bbr.cc=cubci", "\"cubic\""]),
        (
            "link.bottleneck.rate=1..5 step 1",
            ["Mbit/s", "at 1 of 5 points: link.bottleneck.rate=5"],
        ),
    ] {
        let said = refused(at, &["a.toml", "--vary", vary]);
        assert!(parts.iter().all(|part| said.contains(part)), "{vary}: {said}");
    }
    let twice = ["a.toml", "--vary", "flow.bbr.cc=bbr,reno", "--set", "flow.bbr.cc=bbr"];
    assert!(refused(at, &twice).contains("both set and varied"));
    assert!(!at.join("knee-out").exists());
    fs::create_dir(at.join("mine")).unwrap();
    fs::write(at.join("mine/notes.txt"), "keep").unwrap();
    let said = complaint(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno --out mine", 2);
    assert!(said.contains("not empty"), "{said}");
}

/// A scheduler for two paths does not work on three.
#[test]
fn impossible_points_are_named_or_left_out() {
    let folder = folder_with("a.toml", THREE_PATHS);
    let at = folder.path();
    let paths = r#"flow.main.paths=["a","b"],["a","b","c"]"#;
    let arguments = ["a.toml", "--vary", "flow.main.scheduler=minrtt,dems", "--vary", paths];
    let said = refused(at, &arguments);
    assert!(said.contains("at 1 of 4 points") && said.contains("--skip-invalid"), "{said}");
    assert!(said.contains(r#"flow.main.scheduler=dems flow.main.paths=["a","b","c"]"#), "{said}");
    assert!(!at.join("knee-out").exists());
    let (_, err) = succeeds(at, &[arguments.as_slice(), &["--skip-invalid"]].concat());
    assert!(err.contains("1 of 4 points are left out") && err.contains("exactly 2 paths"), "{err}");
    let document = json(&at.join("knee-out/sweep-a/sweep.json"));
    assert_eq!(document["runs_finished"], 3);
    assert_eq!(document["left_out"][0]["at"], serde_json::json!([1, 1]));
    let completion = |point: usize| {
        let measures = &document["points"][point]["groups"][0]["measures"];
        measures["completion_s"]["interval"]["mean"].as_f64().unwrap()
    };
    // 500 kB over at most 15 Mbit/s.
    assert!((0..3).all(|point| (0.26..5.0).contains(&completion(point))), "{}", completion(0));
}

/// The same controller under two names: both share the run of each seed.
#[test]
fn one_controller_under_two_names_is_the_same() {
    let folder = folder_with("a.toml", SMALL);
    let names = r#"flow.bbr.cc=reno,{ name = "reno" }"#;
    let (printed, err) = succeeds(folder.path(), &["a.toml", "--vary", names, "--repeat", "3"]);
    assert!(err.contains("3 runs in"), "{err}");
    assert!(printed.contains("Goodput: the same with flow.bbr.cc = reno and"), "{printed}");
    assert!(!printed.contains("best with"), "{printed}");
}

/// The time to answer a request is a measure of sweeps and comparisons.
#[test]
fn bursts_are_measured() {
    let bursts = "cc = \"cubic\"\nworkload = { bursts = { size = \"20 kB\", pause = \"50 ms\" } }";
    let folder = folder_with("a.toml", &SMALL.replacen("cc = \"cubic\"", bursts, 1));
    let at = folder.path();
    let vary = ["a.toml", "--vary", "link.bottleneck.rate=4 Mbit/s,8 Mbit/s", "--out", "o"];
    let (printed, _) = succeeds(at, &vary);
    let head = printed.lines().find(|line| line.starts_with("link.bottleneck.rate")).unwrap();
    assert!(head.contains("burst time"), "{printed}");
    assert!(printed.contains("cubic: Time to answer a request, mean: "), "{printed}");
    assert!(!printed.contains("bbr: Time to answer"), "{printed}");
    let document = json(&at.join("o/sweep.json"));
    let time = &document["points"][0]["groups"][1]["measures"]["burst_time_s"]["interval"]["mean"];
    expect(at, "run a.toml --set link.bottleneck.rate=4Mbit/s --out run", 0);
    let summary = json(&at.join("run/summary.json"));
    let expected = summary["flows"][1]["bursts"]["time_us"]["mean"].as_f64().unwrap() / 1e6;
    assert!((time.as_f64().unwrap() - expected).abs() < 1e-8, "{time} is not {expected}");
    expect(at, "run a.toml --out other", 0);
    let compared = expect(at, "compare run other", 0);
    assert!(compared.contains("time to answer a request, mean"), "{compared}");
}

/// A key with more values than are compared is named, whether it is the only one or the one that
/// was asked about.
#[test]
fn too_many_values_are_told() {
    let folder = folder_with("a.toml", &SMALL.replace("3 s", "200 ms"));
    let at = folder.path();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "The 11 values of link.bottleneck.rate are too many to compare each with every \
                other one; the table and the report have the figures. For answers, give at most \
                10 values.";
    let rates = ["a.toml", "--vary", "link.bottleneck.rate=1..11 Mbit/s step 1 Mbit/s"];
    let (printed, _) = succeeds(at, &rates);
    assert!(words(&printed).contains(told), "{printed}");
    let both = [rates.as_slice(), &["--vary", "flow.bbr.cc=bbr,reno"]].concat();
    let (printed, _) = succeeds(at, &both);
    assert!(printed.contains("Goodput: ") && !words(&printed).contains(told), "{printed}");
    let about = ["--for", "link.bottleneck.rate", "--out", "about"];
    let (printed, _) = succeeds(at, &[both.as_slice(), &about].concat());
    assert!(printed.contains("Goodput: ") && words(&printed).contains(told), "{printed}");
}

/// Real runs that differ only in seed, assigned to two names at random, 200 times: at most 5 % plus
/// two standard errors find a winner.
#[test]
fn seeds_alone_rarely_make_a_winner() {
    let folder = folder_with("a.toml", &SMALL.replace("3 s", "1 s").replace("0.1 %", "1 %"));
    let at = folder.path();
    succeeds(at, &["a.toml", "--vary", "flow.bbr.cc=reno", "--repeat", "60"]);
    let runs = kept(&at.join("knee-out/sweep-a")).into_values();
    let runs: Vec<SweepRun> = runs.map(|text| SweepRun::read(&text).unwrap()).collect();
    assert_eq!(runs.len(), 60);
    let (repeats, sweeps) = (5, 200);
    let wrong = (0..sweeps).filter(|sweep| winner_among(&runs, repeats, *sweep)).count() as f64;
    let most = 0.05 + 2.0 * (0.05 * 0.95 / sweeps as f64).sqrt();
    assert!(wrong / sweeps as f64 <= most, "{wrong} of {sweeps}");
}

/// Whether a sweep over two names finds a winner; `number` determines the assignment of runs.
fn winner_among(runs: &[SweepRun], repeats: usize, number: u64) -> bool {
    let mut state = number;
    let mut deal: Vec<usize> = (0..runs.len()).collect();
    for last in (1..deal.len()).rev() {
        // Knuth's MMIX generator, whose upper bits are random enough for this.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        deal.swap(last, (state >> 33) as usize % (last + 1));
    }
    let name = |value: usize| {
        let drawn = deal.iter().skip(value * repeats).take(repeats).zip(1..);
        let run = |(from, seed): (&usize, u64)| SweepRun { seed, ..runs[*from].clone() };
        (vec![value], drawn.map(run).collect::<Vec<_>>())
    };
    let values = ["one", "other"].map(str::to_string).to_vec();
    let keys = vec![SweepKey { name: "flow.bbr.cc".to_string(), values }];
    let points = [name(0), name(1)];
    let command = (String::new(), String::new());
    let summary = SweepSummary::new("", command, keys, (repeats as u64, 0), &points, Vec::new());
    let mut places = summary.verdicts.iter().flat_map(|verdict| &verdict.places);
    places.any(|place| place.best.is_some())
}

/// The headline is about the last varied key whose values are names, or the requested one, on the
/// page too. Groups of one flow have no fairness column.
#[test]
fn the_headline_is_about_the_key_whose_values_are_names() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let (cc, rate) = ("flow.bbr.cc=bbr,reno", "link.bottleneck.rate=10 Mbit/s,20 Mbit/s");
    let line = ["a.toml", "--repeat", "2", "--vary", cc, "--vary", rate];
    let (out, _) = succeeds(at, &[&line[..], &["--out", "last"]].concat());
    let heading = out.lines().find(|line| line.contains("goodput")).unwrap();
    assert!(!heading.contains("jain"), "{heading}");
    let sweep = json(&at.join("last/sweep.json"));
    assert_eq!(sweep["about"], 0);
    let about = |out: &str, sweep: &serde_json::Value, key: usize| {
        let verdicts = sweep["verdicts"].as_array().unwrap();
        let of_key = verdicts.iter().filter(|verdict| verdict["key"] == key);
        of_key.filter(|v| out.contains(v["says"].as_str().unwrap())).count()
    };
    assert!(about(&out.replace('\n', " "), &sweep, 0) > 0, "{out}");
    let asked = ["--for", "link.bottleneck.rate", "--out", "named"];
    let (out, _) = succeeds(at, &[&line[..], &asked].concat());
    let sweep = json(&at.join("named/sweep.json"));
    assert_eq!(sweep["about"], 1);
    assert!(about(&out.replace('\n', " "), &sweep, 1) > 0, "{out}");
    assert!(sweep["command"].as_str().unwrap().contains("--for link.bottleneck.rate"));
    let refused = refused(at, &[&line[..], &["--for", "flow.bbr.ccc"]].concat());
    assert!(refused.contains("flow.bbr.cc, link.bottleneck.rate"), "{refused}");
}
