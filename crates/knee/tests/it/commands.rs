//! The other commands.

use crate::common::{SMALL, complaint, expect, folder_with, json, run, texts};
use std::fs;

#[test]
fn compare_says_what_differs() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::write(at.join("b.toml"), SMALL.replace("10 Mbit/s", "20 Mbit/s")).unwrap();
    expect(at, "run a.toml b.toml --out out", 0);
    let printed = expect(at, "compare out/a out/b", 0);
    let said = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("b against a: ") && said.contains(" times"), "{said}");
    let document = expect(at, "compare out/a out/b --json", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let schema = serde_json::from_str(&expect(at, "schema comparison", 0)).unwrap();
    jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{error}"));
    let differences = document["differences"].as_array().unwrap();
    let goodput = differences.iter().find(|one| one["measure"] == "goodput_bps").unwrap();
    let relative = goodput["relative"].as_f64().unwrap();
    assert!((0.8..1.2).contains(&relative), "twice the rate, twice the goodput: {relative}");
    let all = expect(at, "compare out/a out/b --all", 0);
    let rows = all.lines().count();
    assert!(rows > differences.len() && printed.lines().count() < rows / 2, "{all}");
    let line = all.lines().find(|line| line.starts_with("goodput_bps ")).unwrap();
    assert!(line.contains("Mbit/s") && line.contains('+'), "{line}");
    let itself = expect(at, "compare out/a out/a --json", 0);
    let itself: serde_json::Value = serde_json::from_str(&itself).unwrap();
    let same = |one: &serde_json::Value| one["absolute"] == 0.0;
    assert!(itself["differences"].as_array().unwrap().iter().all(same));
}

/// Any number of runs are compared with the first; differing inputs come first.
#[test]
fn several_runs_are_compared_with_the_first() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    for rate in [10, 20, 40] {
        let rate_of = format!("--set link.bottleneck.rate={rate}Mbit/s");
        expect(at, &format!("run a.toml --out r{rate} {rate_of} --repeat 6"), 0);
    }
    let printed = expect(at, "compare r10 r20 r40", 0);
    let first = printed.lines().next().unwrap();
    assert!(first.starts_with("what differs") && first.contains("r40"), "{printed}");
    let rate = printed.lines().find(|line| line.starts_with("link.bottleneck.rate")).unwrap();
    assert!(["10 Mbit/s", "20 Mbit/s", "40 Mbit/s"].iter().all(|r| rate.contains(r)), "{rate}");
    // Only the rate and a buffer in BDP, which grows with it, differ.
    let given = printed.lines().skip(2).take_while(|line| !line.is_empty());
    let given: Vec<&str> = given.filter_map(|line| line.split("  ").next()).collect();
    assert!(given.iter().all(|key| key.starts_with("link.bottleneck.")), "{given:?}");
    let all = expect(at, "compare r10 r20 r40 --all", 0);
    let goodput = all.lines().find(|line| line.starts_with("goodput_bps")).unwrap();
    assert!(goodput.contains("(× 1.9") || goodput.contains("(× 2"), "{goodput}");
    let document = expect(at, "compare r10 r20 r40 --json", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "knee-comparisons/1");
    assert_eq!(document["comparisons"].as_array().unwrap().len(), 2);
    let schema = json(
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/comparisons.schema.json").as_ref(),
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&document), "{document}");
    // A difference of fractions is in percentage points; a ratio of fractions would mislead.
    let single = expect(at, "compare r10/repeat-1 r20/repeat-1 r40/repeat-1 --all", 0);
    for line in single.lines().filter(|line| line.contains("utilisation")) {
        assert!(line.contains(" points)") && !line.contains(" %)"), "{line}");
    }
    assert!(single.contains("link.bottleneck.utilisation"), "{single}");
    let itself = expect(at, "compare r10 r10", 0);
    assert!(itself.starts_with("The runs have the same scenario"), "{itself}");
    complaint(at, "compare r10", 2);
}

/// Repeats are compared in pairs with the same seed: twice the rate is a difference; the same
/// scenario again is none.
#[test]
fn repeats_are_compared_in_pairs() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    fs::write(at.join("b.toml"), SMALL.replace("10 Mbit/s", "20 Mbit/s")).unwrap();
    expect(at, "run a.toml b.toml --repeat 6 --out out", 0);
    let printed = expect(at, "compare out/a out/b --all", 0);
    let line = printed.lines().find(|line| line.starts_with("goodput_bps ")).unwrap();
    assert!(line.trim_end().ends_with("more"), "{line}");
    assert!(printed.contains("6 pairs of runs with the same seed"), "{printed}");
    let document = expect(at, "compare out/a out/b --json", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let schema = serde_json::from_str(&expect(at, "schema comparison", 0)).unwrap();
    jsonschema::validate(&schema, &document).unwrap_or_else(|error| panic!("{error}"));
    let goodput = document["differences"].as_array().unwrap().iter();
    let goodput = goodput.clone().find(|one| one["measure"] == "goodput_bps").unwrap();
    let (low, high) = (&goodput["compared"]["low"], &goodput["compared"]["high"]);
    let (low, high) = (low.as_f64().unwrap(), high.as_f64().unwrap());
    assert!(1.8 < low && low < high && high < 2.2, "{low} to {high}");

    fs::copy(at.join("a.toml"), at.join("same.toml")).unwrap();
    expect(at, "run same.toml --repeat 6 --out same", 0);
    let printed = expect(at, "compare out/a same --all", 0);
    assert!(!printed.contains("none seen") && printed.contains("the same"), "{printed}");

    expect(at, "run same.toml --repeat 2 --seed 90 --out other", 0);
    let said = complaint(at, "compare out/a other", 2);
    assert!(said.contains("fewer than two seeds in common"), "{said}");
    let said = complaint(at, "compare out/a out/b/repeat-1", 2);
    assert!(said.contains("a single run"), "{said}");
}

#[test]
fn what_is_no_run_is_refused() {
    let folder = folder_with("a.toml", SMALL);
    for line in ["compare . .", "report .", "report none", "compare none none"] {
        let said = complaint(folder.path(), line, 2);
        assert!(said.contains("is not a run directory"), "{line}: {said}");
    }
}

/// The scenario of `knee init` is valid and runs, and its claim holds.
#[test]
fn the_template_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let printed = expect(at, "init first.toml", 0);
    assert!(printed.contains("knee run first.toml"), "{printed}");
    assert!(expect(at, "check first.toml", 0).contains("first.toml: valid"));
    expect(at, "run first.toml", 0);
    fs::write(at.join("first.toml"), "mine").unwrap();
    let said = complaint(at, "init first.toml", 2);
    assert!(said.contains("first.toml exists") && said.contains("--force"), "{said}");
    assert_eq!(fs::read_to_string(at.join("first.toml")).unwrap(), "mine");
    expect(at, "init first.toml --force", 0);
    expect(at, "check first.toml", 0);
}

/// Every template is written under its name, overwrites nothing and runs, and its claims hold.
#[test]
fn every_template_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let help = expect(at, "init --help", 0);
    for name in ["mix", "page", "video", "two-links", "trace", "coexist", "first"] {
        assert!(help.contains(name), "{help}");
        let file = format!("{name}.toml");
        let printed = expect(at, &format!("init --template {name} {file}"), 0);
        assert!(printed.contains(&format!("{file} written")), "{printed}");
        assert!(printed.contains(&format!("run it   knee run {file}")), "{printed}");
        assert!(expect(at, &format!("check {file}"), 0).contains("valid"));
    }
    let written: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()).collect();
    let before: Vec<Vec<u8>> = written.iter().map(|path| fs::read(path).unwrap()).collect();
    for name in ["page", "trace"] {
        let said = complaint(at, &format!("init --template {name} other.toml"), 2);
        assert!(said.contains(" exists") && !at.join("other.toml").exists(), "{said}");
    }
    let after: Vec<Vec<u8>> = written.iter().map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(before, after);
    // The mix takes two minutes; a part of it suffices here.
    for name in ["page", "video", "two-links", "trace", "coexist"] {
        expect(at, &format!("run {name}.toml"), 0);
    }
    expect(at, "run mix.toml --set duration=20s", 0);
    let folder = tempfile::tempdir().unwrap();
    expect(folder.path(), "init --template page", 0);
    assert!(folder.path().join("page.toml").is_file() && folder.path().join("page.csv").is_file());
}

/// A scenario accepts a name from each list.
#[test]
fn lists_name_what_scenarios_take() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    let controllers = expect(at, "list controllers", 0);
    for part in ["bbr-low-delay", "drain_to_target", "RFC 9438", "default"] {
        assert!(controllers.contains(part), "{part} is not in\n{controllers}");
    }
    for aqm in ["codel", "fq-codel", "pie", "red"] {
        assert!(expect(at, "list aqm", 0).lines().any(|line| line.starts_with(aqm)), "{aqm}");
        let set = format!("run a.toml --out {aqm} --set link.bottleneck.aqm={aqm}");
        expect(at, &set, 0);
    }
    let keys = expect(at, "list keys", 0);
    for key in ["duration", "reverse_delay", "start_interval", "ack_every", "relative_to"] {
        assert!(keys.lines().any(|line| line.starts_with(key)), "{key} is not in\n{keys}");
    }
    assert!(expect(at, "list measures", 0).contains("queueing_delay_STAT"));
    let studies = expect(at, "list studies", 0);
    for study in ["improved-bbr", "lossy-long-path", "retransmission-cost"] {
        assert!(studies.contains(study), "{study} is not in\n{studies}");
    }
}

/// Each shell's own parser accepts its completions.
#[test]
fn shells_take_their_completions() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = expect(folder.path(), &format!("completions {shell}"), 0);
        for command in ["reproduce", "compare", "doctor"] {
            assert!(script.contains(command), "{shell} {command}");
        }
        if shell == "bash" {
            let file = folder.path().join("knee.bash");
            fs::write(&file, script).unwrap();
            let bash = std::process::Command::new("bash").arg("-n").arg(file).output().unwrap();
            assert!(bash.status.success(), "{}", texts(&bash).1);
        }
    }
}

#[test]
fn schemas_are_the_published_ones() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["summary", "manifest", "repeat", "comparison", "comparisons"] {
        let printed = expect(folder.path(), &format!("schema {name}"), 0);
        let published = format!("{}/../../schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let published = crate::common::json(published.as_ref());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), published);
    }
    for name in ["scenario", "study", "reproduce", "fidelity", "fidelity-grid"] {
        let schema = expect(folder.path(), &format!("schema {name}"), 0);
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
    }
}

#[test]
fn the_doctor_only_looks() {
    let folder = tempfile::tempdir().unwrap();
    let printed = expect(folder.path(), "doctor", 0);
    let document = expect(folder.path(), "doctor --json", 0);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["schema"], "knee-doctor/1");
    for finding in document["findings"].as_array().unwrap() {
        let what = finding["what"].as_str().unwrap();
        assert!(printed.contains(what), "{what} is not in\n{printed}");
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(printed.contains(release.trim()), "{printed}");
}

/// Help goes to standard output on request, and to standard error if an argument is missing.
#[test]
fn help_is_given_when_something_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["", "run", "compare", "report", "check", "completions"] {
        let (out, err) = texts(&run(folder.path(), line));
        assert!(out.is_empty() && err.contains("Example"), "{line}: {out}{err}");
        complaint(folder.path(), line, 2);
        let help = expect(folder.path(), &format!("{line} --help"), 0);
        assert!(help.contains("Example") && help.contains("knee"), "{line}: {help}");
    }
}
