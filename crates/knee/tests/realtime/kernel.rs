//! The ground "kernel" from the command line. These tests need root and
//! /dev/net/tun; where the host lacks one, they say so and count as ignored,
//! or fail when `KNEE_REQUIRE_ROOT_TESTS` is set, as in CI. `main` lists them.

use crate::common::{SMALL, complaint, expect, folder_with, json, knee, run, texts};
use knee_trials::namespaces::{Leftovers, entries, namespaces_in_use, namespaces_of, soon};
use knee_trials::{Pauses, Skipped, Trial, alone, trials, turn};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A kernel run in progress: past its self-check, in its own namespaces, without other runs.
struct Running {
    child: Child,
    namespaces: BTreeSet<PathBuf>,
    before: Leftovers,
}

impl Running {
    fn start(folder: &Path, out: &str) -> Running {
        let before = Leftovers::now();
        let mut command = knee(folder);
        command.args(["run", "a.toml", "--on", "kernel", "--out", out]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let made = || namespaces_of(&process);
        let ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        let settled = soon(|| made().len() == 2 || ended(&mut child));
        if !settled || ended(&mut child) {
            let made = made();
            child.kill().unwrap();
            let (printed, complaint) = texts(&child.wait_with_output().unwrap());
            panic!("two hosts are two namespaces: {made:?}\n{printed}\n{complaint}");
        }
        std::thread::park_timeout(Duration::from_millis(1500));
        let children = entries(&process.join("task")).into_iter();
        let children = children.filter_map(|task| fs::read_to_string(task.join("children")).ok());
        assert_eq!(children.collect::<String>(), "", "it needs no tool");
        Running { namespaces: made(), child, before }
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for its end and checks that it left nothing behind.
    fn end(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        assert!(soon(|| namespaces_in_use().is_disjoint(&self.namespaces)));
        assert_eq!(Leftovers::now(), self.before);
        (output.status.code(), texts(&output).0)
    }
}

fn a_run_leaves_its_records_and_nothing_else() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SMALL);
    let (code, printed) = Running::start(folder.path(), "out").end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("verdict  ") && printed.contains("--on kernel"), "{printed}");
    let out = folder.path().join("out");
    let (manifest, summary) = (json(&out.join("manifest.json")), json(&out.join("summary.json")));
    assert_eq!((&manifest["ground"], &summary["ground"]), (&"kernel".into(), &"kernel".into()));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(manifest["kernel"], release.trim());
    // A round trip of 20 ms, before and during the run.
    let health = &manifest["health"];
    let check = health["self_check"][0]["rtt_us"].as_f64().unwrap();
    assert!((20_000.0..60_000.0).contains(&check), "{check}");
    assert!(health["probes"][0]["answered"].as_u64().unwrap() > 50, "{health}");
    assert!(out.join("report.html").is_file());
    expect(folder.path(), "report out", 0);
    Ok(())
}

fn an_interrupted_run_keeps_what_there_is_and_leaves_nothing_else() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", &SMALL.replace("\"3 s\"", "\"60 s\""));
    let running = Running::start(folder.path(), "out");
    running.send(Signal::SIGINT);
    assert_eq!(running.end().0, Some(130));
    let manifest = json(&folder.path().join("out/manifest.json"));
    assert_eq!(manifest["interrupted"], true);
    assert!(manifest["end_ns"].as_u64().unwrap() < 60_000_000_000);
    Ok(())
}

fn a_killed_run_leaves_nothing_that_the_next_one_minds() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", &SMALL.replace("\"3 s\"", "\"60 s\""));
    let running = Running::start(folder.path(), "out");
    running.send(Signal::SIGKILL);
    assert_eq!(running.end().0, None);
    expect(folder.path(), "run a.toml --on kernel --set duration=1s --out out --force", 0);
    Ok(())
}

fn two_grounds_are_compared() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let printed = expect(at, "run a.toml --on sim,kernel --out out", 0);
    for word in
        ["goodput", "smoothed RTT, median", "retransmitted", "tolerance", "probe", "kernel  "]
    {
        assert!(printed.contains(word), "{word} is not in\n{printed}");
    }
    let fidelity = json(&at.join("out/fidelity.json"));
    let measures = fidelity["measures"].as_array().unwrap();
    let all = |name: &str| {
        let of_all = |one: &&serde_json::Value| one["of"] == "*" && one["measure"] == name;
        measures.iter().find(of_all).unwrap_or_else(|| panic!("{name}"))
    };
    // Its values are those of the summaries.
    for ground in ["sim", "kernel"] {
        let summary = json(&at.join("out").join(ground).join("summary.json"));
        assert_eq!(all("goodput")[ground], summary["measures"]["goodput_bps"], "{ground}");
        let ratio = &summary["measures"]["retransmit_ratio"];
        assert_eq!(&all("retransmit_ratio_total")[ground], ratio, "{ground}");
        assert_eq!(fidelity[ground]["verdict"], summary["verdict"]);
    }
    let page = fs::read_to_string(at.join("out/report.html")).unwrap();
    assert!(page.contains("The simulator against the kernel"));
    // It includes both run pages with their plots.
    assert_eq!(page.matches("class=\"series\"").count(), 2);
    expect(at, "run a.toml --on sim,kernel --out out --force", 0);
    Ok(())
}

const STUDY: &str = r#"
name = "Study"
source = "nobody"

[[run]]
name = "plain"
file = "a.toml"
on = ["sim", "kernel"]

[[run]]
name = "eager"
file = "a.toml"
set = { "transport.initial_window" = 40 }
on = ["sim", "kernel"]

[[claim]]
id = "K1"
says = "the link is not outrun"
measure = "goodput"
of = "plain/*"
at_most = "10 Mbit/s"

[[claim]]
id = "K2"
says = "a larger first window delivers as much"
measure = "goodput"
of = "eager/*"
relative_to = "plain/*"
at_least = 0.5
"#;

/// Each claim has its outcome on both grounds; settings that the kernel lacks are not tested there,
/// with a reason.
fn a_study_on_both_grounds() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::create_dir(at.join("study")).unwrap();
    fs::rename(at.join("a.toml"), at.join("study/a.toml")).unwrap();
    fs::write(at.join("study/study.toml"), STUDY).unwrap();
    let printed = expect(at, "reproduce ./study --on sim,kernel --out out", 0);
    assert!(printed.contains("not on the kernel: eager"), "{printed}");
    let document = json(&at.join("out/reproduce.json"));
    let study = &document["studies"][0];
    let outcomes = |claims: &serde_json::Value| -> Vec<String> {
        let claims = claims.as_array().unwrap().iter();
        claims.map(|claim| claim["outcome"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(outcomes(&study["claims"]), ["holds", "holds"]);
    let kernel = &study["kernel"];
    let run = &kernel["runs"][0]["summary"];
    let expected = if run["verdict"] == "invalid" { "not tested here" } else { "holds" };
    assert_eq!(outcomes(&kernel["claims"]), [expected, "not tested here"]);
    let why = kernel["claims"][1]["measured_text"].as_str().unwrap();
    assert!(why.contains("eager was not run") && why.contains("initial_window"), "{why}");
    assert!(at.join("out/study/plain/fidelity.json").is_file());
    let page = fs::read(at.join("out/report.html")).unwrap();
    expect(at, "report out", 0);
    assert!(page == fs::read(at.join("out/report.html")).unwrap(), "the page comes out again");
    // One that was interrupted goes on: what ran in real time is there, and nothing else changes.
    let manifest = at.join("out/study/plain/kernel/manifest.json");
    let before = fs::read(&manifest).unwrap();
    fs::remove_file(at.join("out/reproduce.json")).unwrap();
    fs::remove_dir_all(at.join("out/study/plain/sim")).unwrap();
    let again = expect(at, "reproduce ./study --on sim,kernel --out out", 0);
    assert_eq!(again, printed);
    assert_eq!(fs::read(&manifest).unwrap(), before);
    assert!(page == fs::read(at.join("out/report.html")).unwrap(), "the page comes out again");
    // One that has ended, and one of another scenario, do not.
    complaint(at, "reproduce ./study --on sim,kernel --out out", 2);
    fs::remove_file(at.join("out/reproduce.json")).unwrap();
    fs::write(at.join("study/a.toml"), SMALL.replace("10 ms", "11 ms")).unwrap();
    let said = complaint(at, "reproduce ./study --on sim,kernel --out out", 2);
    assert!(said.contains("not empty"), "{said}");
    fs::write(at.join("study/a.toml"), SMALL).unwrap();
    // Without the kernel the document has no entry for it.
    expect(at, "reproduce ./study --out sim", 0);
    assert!(json(&at.join("sim/reproduce.json"))["studies"][0].get("kernel").is_none());
    Ok(())
}

/// One cell of eight seconds; afterwards nothing is pending.
fn the_grid_goes_on_where_it_stopped() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = tempfile::tempdir().unwrap();
    let cell = "reno-5mbit-10ms-0.5bdp-loss0-1flow";
    let line = format!("fidelity --repeat 2 --cells {cell} --out out");
    let begun = run(folder.path(), &line);
    assert_eq!(begun.status.code(), Some(0), "{:?}", texts(&begun));
    let out = folder.path().join("out");
    let grid = json(&out.join("fidelity.json"));
    assert_eq!((&grid["schema"], &grid["planned"]), (&"knee-fidelity-grid/2".into(), &1.into()));
    let schema = expect(folder.path(), "schema fidelity-grid", 0);
    let schema = serde_json::from_str(&schema).unwrap();
    jsonschema::validate(&schema, &grid).unwrap_or_else(|error| panic!("{error}"));
    let invalid = grid["invalid"].as_array().unwrap().len();
    assert_eq!(grid["compared"].as_u64().unwrap() + invalid as u64, 1);
    assert!(fs::read_to_string(out.join("fidelity.md")).unwrap().contains(cell));
    let runs = grid["cells"][0]["kernel_runs"].as_array().unwrap().clone();
    let void: Vec<bool> = runs.iter().map(|verdict| verdict == "invalid").collect();
    assert_eq!(void.len(), 2);
    let one = grid["cells"][0]["fidelity"]["measures"][0].clone();
    assert_eq!(one["kernel_range"].is_array(), void.contains(&false), "{one}");
    assert_eq!(one["noise"].is_number(), !void.contains(&true), "{one}");
    let begun =
        |run: &str| json(&out.join(cell).join(run).join("manifest.json"))["started_at"].clone();
    let first = ["kernel", "kernel-2"].map(begun);
    let (_, said) = texts(&run(folder.path(), &line));
    let again = void.iter().filter(|void| **void).count();
    assert!(said.contains(&format!("{again} runs on the kernel")), "{said}");
    let second = ["kernel", "kernel-2"].map(begun);
    for number in 0..2 {
        assert_eq!(first[number] == second[number], !void[number], "run {number}");
    }
    Ok(())
}

/// An invalid trace is rejected before any run, and a device is not read endlessly.
fn a_trace_of_ones_own_must_be_one() -> Result<(), Skipped> {
    let folder = folder_with("words", "not a number\n");
    for (trace, why) in [("words", "words"), ("/dev/zero", "regular file"), ("none", "none")] {
        let line = format!("fidelity --extended --cells recorded --trace {trace}");
        let said = complaint(folder.path(), &line, 2);
        assert!(said.contains(why) && said.contains("Mahimahi"), "{said}");
    }
    Ok(())
}

fn one_ground_at_a_time_for_what_only_one_can() -> Result<(), Skipped> {
    let folder = folder_with("a.toml", SMALL);
    let said = complaint(folder.path(), "run a.toml --on sim,kernel --repeat 2", 2);
    assert!(said.contains("--repeat") && said.contains("--on kernel"), "{said}");
    let said = complaint(folder.path(), "run a.toml --on kernel --packet-log", 2);
    assert!(said.contains("--on sim"), "{said}");
    Ok(())
}

fn what_the_kernel_cannot_be_set_to_is_said_before_anything_runs() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let folder = folder_with("a.toml", SMALL);
    let line = "run a.toml --on sim,kernel --set transport.initial_window=40";
    assert!(complaint(folder.path(), line, 2).contains("leave it at 10"));
    let line = "run a.toml --on kernel --set flow.bbr.cc=olia";
    assert!(complaint(folder.path(), line, 3).contains("no controller \"olia\""));
    assert!(!folder.path().join("knee-out").exists());
    Ok(())
}

/// The user `nobody` runs it in a user namespace if the host permits that; otherwise the error
/// gives advice.
fn without_privileges_it_runs_or_says_what_to_do() -> Result<(), Skipped> {
    const NOBODY: u32 = 65_534;
    let _alone = alone(Pauses::Any);
    let folder = folder_with("a.toml", SMALL);
    let mut command = knee(folder.path());
    command.args(["run", "a.toml", "--on", "kernel", "--out", "out"]).uid(NOBODY).gid(NOBODY);
    std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY))
        .map_err(|error| Skipped::lack(format!("the host lacks root, to be nobody ({error})")))?;
    // The program may be unreadable for other users, even in CI.
    let output = command
        .output()
        .map_err(|error| Skipped(format!("nobody cannot start the program ({error})")))?;
    let (_, said) = texts(&output);
    if output.status.code() == Some(3) {
        assert!(said.contains("run as root") || said.contains("/dev/net/tun"), "{said}");
        return Ok(());
    }
    let manifest = fs::metadata(folder.path().join("out/manifest.json")).unwrap_or_else(|error| {
        panic!("{error}: {said}");
    });
    assert_eq!(manifest.uid(), NOBODY);
    assert!(output.status.success() || said.contains("invalid"), "{said}");
    Ok(())
}

/// A rehearsal over real TCP: each block is a run in its own namespaces, and a scenario that the
/// kernel cannot run is refused before the first one.
fn an_experiment_is_rehearsed() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let flow = |name: &str, cc: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\npath = \"main\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ \
             arrival_interval = \"300 ms\", process = \"all\", sizes = {{ median = \"200 kB\", \
             sigma = 0.1, max = \"400 kB\" }} }} }}\n"
        )
    };
    let scenario = format!(
        "name = \"mix\"\nduration = \"3 s\"\nwarmup = \"10 ms\"\nsample_interval = \"50 ms\"\n\
         [link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"2 BDP\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"10 ms\"\n{}{}",
        flow("tested", "reno"),
        flow("usual", "cubic")
    );
    let folder = folder_with("a.toml", &scenario);
    let before = Leftovers::now();
    let line = "steer rehearse a.toml --on kernel --triples 2 --calibration 2 --truth 1";
    let output = run(folder.path(), line);
    let (printed, said) = texts(&output);
    if said.contains("too busy") {
        return Err(Skipped(said));
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(printed.contains("reno (B) against cubic (A): 2 triples"), "{printed}");
    assert!(printed.contains("100 kB to 1 MB  too short: 2 of 2 triples"), "{printed}");
    // 200 kB take 80 ms at least, so nine in ten more than the burn-in.
    assert!(printed.contains("--set warmup="), "{printed}");
    assert!(soon(|| Leftovers::now() == before));
    let line = format!("{line} --set transport.initial_window=40");
    assert!(complaint(folder.path(), &line, 2).contains("leave it at 10"));
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![
        a_run_leaves_its_records_and_nothing_else,
        an_interrupted_run_keeps_what_there_is_and_leaves_nothing_else,
        a_killed_run_leaves_nothing_that_the_next_one_minds,
        a_trace_of_ones_own_must_be_one,
        one_ground_at_a_time_for_what_only_one_can,
        what_the_kernel_cannot_be_set_to_is_said_before_anything_runs,
        without_privileges_it_runs_or_says_what_to_do;
        nightly:
        an_experiment_is_rehearsed,
        the_grid_goes_on_where_it_stopped,
        a_study_on_both_grounds,
        two_grounds_are_compared
    ]
}
