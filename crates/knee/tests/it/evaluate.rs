//! `knee evaluate`: it reports known strengths and weaknesses, cases that cannot be tested and
//! regressions, reproducibly.

#![cfg(target_os = "linux")]

use crate::common::{complaint, json, knee};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FIXED: &str = "{ name = \"fixed\", window = \"500 packets\" }";

fn evaluated(at: &Path, candidate: &str, sections: &[&str], out: &str) -> Value {
    evaluated_with(at, candidate, &[], sections, out)
}

/// The same with further keys of the candidate's flows.
fn evaluated_with(
    at: &Path,
    candidate: &str,
    with: &[&str],
    sections: &[&str],
    out: &str,
) -> Value {
    let mut command = knee(at);
    command.args(["evaluate", candidate, "--quick", "--out", out, "--repeat", "3"]);
    for key in with {
        command.args(["--with", key]);
    }
    for section in sections {
        command.args(["--section", section]);
    }
    // With a report it exits with 1 if a criterion fails.
    let report = format!("{out}.md");
    let output = command.args(["--report", &report]).output().unwrap();
    let document = json(&at.join(out).join("evaluation.json"));
    let passes =
        |line: &Value| line["worse_than_all"] == false && line["could_not_be_tried"] == Value::Null;
    let code = i32::from(!document["lines"].as_array().unwrap().iter().all(passes));
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    check_report(at, &fs::read_to_string(at.join(report)).unwrap(), &document);
    document
}

/// A report has the sections of the document in the order of the RFC, each criterion with its
/// verdict, and commands whose scenarios exist; the first lines name the sections that fail.
fn check_report(at: &Path, report: &str, document: &Value) {
    let lines = document["lines"].as_array().unwrap();
    let heads: Vec<&str> = report.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let numbered = heads.iter().filter_map(|head| head.split_once(' '));
    let numbered: Vec<Vec<u32>> = numbered
        .map_while(|(number, _)| number.split('.').map(|part| part.parse().ok()).collect())
        .collect();
    let sections: BTreeSet<Vec<u32>> = lines
        .iter()
        .map(|line| line["section"].as_str().unwrap())
        .filter_map(|section| section.split('.').map(|part| part.parse().ok()).collect())
        .collect();
    assert!(numbered.is_sorted() && numbered.into_iter().collect::<BTreeSet<_>>() == sections);
    let verdict = report.lines().find(|line| line.starts_with("Verdict: ")).unwrap();
    for line in lines {
        let (section, title) = (line["section"].as_str().unwrap(), line["title"].as_str().unwrap());
        let fails = line["worse_than_all"] == true && line["could_not_be_tried"] == Value::Null;
        if fails {
            assert!(verdict.contains(section), "{section}: {verdict}");
        }
        let begin = report.find(&format!("## {section} ")).unwrap();
        let part = &report[begin..];
        let part = &part[..part[1..].find("\n## ").map_or(part.len(), |end| end + 1)];
        let cells: Vec<&str> = part
            .lines()
            .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
            .find(|cells| cells.get(1).is_some_and(|cell| cell.replace('\\', "") == title))
            .unwrap_or_else(|| panic!("{title} is not in {part}"));
        assert_eq!(cells[2] == "fails", fails, "{cells:?}");
    }
    for line in report.lines().filter_map(|line| line.split_once("`knee run ")) {
        let scenario = line.1.trim_end_matches('`');
        assert!(at.join(scenario).is_file(), "{scenario}");
    }
    assert!(report.contains(document["command"].as_str().unwrap()));
}

/// Verdicts of a line against Reno, CUBIC and BBR.
fn words(document: &Value, section: &str, claim: &str) -> Vec<String> {
    let lines = document["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["section"] == section && line["claim"] == claim);
    let against = line.unwrap()["against"].as_array().unwrap();
    against.iter().map(|one| one["word"].as_str().unwrap_or("none").to_string()).collect()
}

/// The same controller on the same seeds: all values are equal.
#[test]
fn cubic_by_another_name_is_alike() {
    let folder = tempfile::tempdir().unwrap();
    let document = evaluated(folder.path(), "{ name = \"cubic\" }", &[], "out");
    let lines = document["lines"].as_array().unwrap();
    assert!(lines.len() > 30, "{}", lines.len());
    for line in lines {
        assert_eq!(line["against"][1]["word"], "alike", "{line}");
        assert_eq!(line["could_not_be_tried"], Value::Null, "{line}");
    }
}

/// RFC 9743 names both in sections 5.1.2 and 5.1.3: controllers that fill any buffer, and BBR in
/// shallow buffers with several flows.
#[test]
fn known_failures_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for loss_based in ["reno", "cubic"] {
        let document = evaluated(at, loss_based, &["5.1.2"], loss_based);
        assert_eq!(words(&document, "5.1.2", "queue")[2], "worse", "{loss_based}");
    }
    let bbr = evaluated(at, "bbr", &["5.1.2", "5.1.3", "6.3"], "bbr");
    assert_eq!(words(&bbr, "5.1.2", "queue")[..2], ["better", "better"]);
    assert_eq!(words(&bbr, "6.3", "goodput"), ["alike"; 3]);
    // With the rate sampler of ns-3.35 its estimate never recovers from PROBE_RTT over a
    // short path.
    let sampled = evaluated_with(at, "bbr", &["sampler=ns3-3.35"], &["6.3"], "sampled");
    assert_eq!(words(&sampled, "6.3", "goodput"), ["worse"; 3]);
    assert_eq!(words(&bbr, "5.1.3", "resent")[..2], ["worse", "worse"]);
}

/// A window that never shrinks takes bandwidth from others and keeps sending under heavy loss;
/// Vegas, which yields to queues filled by others, starves.
#[test]
fn who_harms_and_who_starves_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let fixed = evaluated(at, FIXED, &["5.1.1", "5.1.3", "5.2.1"], "fixed");
    assert_eq!(words(&fixed, "5.1.1", "sent"), ["worse"; 3]);
    assert_eq!(words(&fixed, "5.1.3", "resent"), ["worse"; 3]);
    assert_eq!(words(&fixed, "5.2.1", "others")[..2], ["worse", "worse"]);
    // It starves others but not itself, and its retransmissions are not due to reordering.
    assert!(!words(&fixed, "5.2.1", "own").contains(&"worse".to_string()));
    let deep = evaluated(at, FIXED, &["7.7"], "reordered");
    assert!(!words(&deep, "7.7", "resent").contains(&"worse".to_string()));
    // Less than its share, but not starved.
    let polite = "{ name = \"fixed\", window = \"30 packets\" }";
    let polite = evaluated(at, polite, &["5.2.1"], "polite");
    let own = polite["lines"].as_array().unwrap().iter().find(|line| line["claim"] == "own");
    let ratio = own.unwrap()["against"][0]["ratio"]["estimate"].as_f64().unwrap();
    assert!(ratio < 0.9, "{ratio}");
    assert_eq!(words(&polite, "5.2.1", "own"), ["alike"; 3]);
    let vegas = evaluated(at, "vegas", &["5.2.1"], "vegas");
    assert_eq!(words(&vegas, "5.2.1", "own"), ["worse"; 3]);
    assert!(!words(&vegas, "5.2.1", "others").contains(&"worse".to_string()));
}

/// RTT in ms, 99th percentile, and part sent again, of the constant real-time flow beside CUBIC.
fn beside_cubic(at: &Path, out: &str, sets: &[&str]) -> (f64, f64) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../evaluation/constant.toml");
    let mut command = knee(at);
    command.args(["run", file, "--out", out, "--set", "flow.candidate.cc=cubic"]);
    for set in sets {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = json(&at.join(out).join("summary.json"));
    let claims = summary["claims"].as_array().unwrap();
    let measured = |id: &str| {
        let claim = claims.iter().find(|claim| claim["id"] == id).unwrap();
        claim["measured"].as_f64().unwrap()
    };
    (1000.0 * measured("constant-rtt"), measured("constant-resent"))
}

/// Section 5.2.2: 8 BDP of a path of 40 ms hold 320 ms, which CUBIC fills and the real-time
/// flow waits for. With a queue of its own it waits for a packet of the other and its own
/// (1.2 ms each at 10 Mbit/s).
#[test]
fn a_real_time_flow_waits_for_the_queue_that_it_shares() {
    let folder = tempfile::tempdir().unwrap();
    let deep = ["link.bottleneck.buffer=8 BDP"];
    let (rtt, _) = beside_cubic(folder.path(), "deep", &deep);
    assert!((340.0..365.0).contains(&rtt), "{rtt} ms");
    let fair = ["link.bottleneck.buffer=8 BDP", "link.bottleneck.aqm=fq-codel"];
    let (rtt, resent) = beside_cubic(folder.path(), "fair", &fair);
    assert!((41.0..44.0).contains(&rtt), "{rtt} ms");
    assert_eq!(resent, 0.0);
}

/// A window that nothing makes smaller takes rate and packets from a real-time flow; BBR, whose
/// queue is a BDP at most, leaves it a shorter one than CUBIC in a deep buffer, and makes it lose
/// more in a shallow one.
#[test]
fn what_harms_a_real_time_flow_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let fixed = evaluated(at, FIXED, &["5.2.2"], "fixed");
    for claim in ["constant-resent", "constant-rate", "call-rate"] {
        assert_eq!(words(&fixed, "5.2.2", claim), ["worse"; 3], "{claim}");
    }
    let bbr = evaluated(at, "bbr", &["5.2.2"], "bbr");
    assert_eq!(words(&bbr, "5.2.2", "constant-rtt"), ["better", "better", "alike"]);
    assert_eq!(words(&bbr, "5.2.2", "call-rtt"), ["better", "better", "alike"]);
    assert_eq!(words(&bbr, "5.2.2", "constant-resent"), ["worse", "worse", "alike"]);
}

#[test]
fn the_same_bytes_whatever_the_jobs_and_the_worst_case_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for jobs in ["1", "3"] {
        let line = "evaluate vegas --quick --section 5.1.2 --repeat 2 --out";
        crate::common::expect(at, &format!("{line} {jobs} --jobs {jobs}"), 0);
    }
    for file in ["evaluation.json", "evaluation.parquet"] {
        assert!(
            fs::read(at.join("1").join(file)).unwrap()
                == fs::read(at.join("3").join(file)).unwrap()
        );
    }
    // The stored scenario has a claim with the line's id and the table's value.
    crate::common::expect(at, "run 1/inputs/5.1.2-queue.toml --out again", 0);
    let summary = json(&at.join("again/summary.json"));
    let claims = summary["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["id"] == "queue" && claim["measured"].is_f64()));
}

/// Two traces, one of a constant rate and one that stops for every other second. The
/// candidate gets no more than the links carry, and the worst case that is kept runs again.
#[test]
fn over_recorded_links_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("links")).unwrap();
    // 1500 bytes every 3 ms: 4 Mbit/s. The other carries 6 Mbit/s in one second of two.
    let steady: String = (1..=1000).map(|number| format!("{}\n", 3 * number)).collect();
    let halting: String = (1..=500).map(|number| format!("{}\n", 2 * number)).collect();
    fs::write(at.join("links/steady.down"), steady).unwrap();
    fs::write(at.join("links/halting.down"), halting + "2000\n").unwrap();
    let line = "evaluate cubic --section 6.4 --repeat 2 --trace links/steady.down \
                --trace links/halting.down --out one";
    crate::common::expect(at, line, 0);
    let document = json(&at.join("one/evaluation.json"));
    assert!(!document["not_tried"].to_string().contains("recorded"));
    assert!(document["command"].as_str().unwrap().contains("--trace links/halting.down"));
    let lines = document["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["claim"] == "recorded-goodput").unwrap();
    // Two cases of each link, in the order of their names.
    let cases = line["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    assert!(cases[0].as_str().unwrap().contains("halting.down"));
    let most = 4e6 * 1448.0 / 1500.0;
    for seed in line["seeds"].as_array().unwrap() {
        let candidate = seed["candidate"].as_f64().unwrap();
        assert!(candidate > 0.3 * most && candidate < 1.01 * most, "{candidate}");
    }
    let worst = line["worst"]["scenario"].as_str().unwrap();
    crate::common::expect(at, &format!("run one/{worst} --out again"), 0);
    let summary = json(&at.join("again/summary.json"));
    let claims = summary["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["id"] == "recorded-goodput"));
    // Two of one name, one that is damaged, and one that is not there.
    fs::copy(at.join("links/steady.down"), at.join("steady.down")).unwrap();
    let twice = "evaluate cubic --section 6.4 --trace steady.down --trace links/steady.down";
    assert!(crate::common::complaint(at, twice, 2).contains("two traces are named steady.down"));
    fs::write(at.join("bad.down"), "5\n4\n").unwrap();
    let bad = crate::common::complaint(at, "evaluate cubic --section 6.4 --trace bad.down", 2);
    assert!(bad.contains("trace \"bad.down\" is invalid"), "{bad}");
    let none = crate::common::complaint(at, "evaluate cubic --section 6.4 --trace none.down", 2);
    assert!(none.contains("cannot read none.down"), "{none}");
}

/// For nine of ten metrics the search finds a scenario at least as bad as the worst listed one, for
/// a controller that starves and for a harmless one.
#[test]
#[ignore = "takes long: .ci/night random"]
fn a_search_finds_what_is_as_bad_as_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for candidate in ["vegas", "cubic"] {
        let line = format!("evaluate {candidate} --quick --search --out {candidate}");
        crate::common::expect(at, &line, 0);
        let document = json(&at.join(candidate).join("evaluation.json"));
        let found = document["searched"].as_array().unwrap();
        let as_bad = found.iter().filter(|one| one["as_bad_as_fixed"] == true).count();
        println!("{candidate}: as bad as the list in {as_bad} of {} metrics", found.len());
        assert!(found.len() >= 10 && 10 * as_bad >= 9 * found.len(), "{as_bad} {found:#?}");
        assert!(!document["not_tried"].to_string().contains("safecc"));
    }
}

/// The bytes do not depend on `--jobs`, and each stored scenario reproduces its value exactly.
#[test]
#[ignore = "takes long: .ci/night random"]
fn worst_cases_are_kept_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for jobs in ["1", "3"] {
        let line = "evaluate copa --quick --section 5.1.2 --repeat 2 --search 6 --out";
        crate::common::expect(at, &format!("{line} {jobs} --jobs {jobs}"), 0);
    }
    for file in ["evaluation.json", "report.html", "inputs/worst-harm.toml"] {
        let read = |jobs: &str| fs::read(at.join(jobs).join(file)).unwrap();
        assert!(read("1") == read("3"), "{file}");
    }
    let document = json(&at.join("1/evaluation.json"));
    for one in document["searched"].as_array().unwrap() {
        let (scenario, id) = (one["scenario"].as_str().unwrap(), one["id"].as_str().unwrap());
        // Exit code 1 if an event of another claim in the file never occurred.
        let scenario = format!("1/{scenario}");
        let output = knee(at).args(["run", &scenario, "--out", id]).output().unwrap();
        assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        let summary = json(&at.join(id).join("summary.json"));
        let claims = summary["claims"].as_array().unwrap();
        let claim = claims.iter().find(|claim| claim["id"] == one["claim"]).unwrap();
        let measured = match claim["measured_text"] == "never" {
            true => summary["duration_us"].as_f64().unwrap() / 1e6,
            false => claim["measured"].as_f64().unwrap(),
        };
        assert_eq!(Some(measured), one["candidate"].as_f64(), "{one}");
    }
}

/// Nothing runs, and nothing is written.
#[test]
fn an_unknown_candidate_is_an_error_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (candidate, words) in [
        ("nosuch", "there is no controller \"nosuch\""),
        ("bbr4", "did you mean"),
        ("{ name = \"fixed\", windw = \"1 BDP\" }", "has no parameter \"windw\""),
        ("mine.py:Mine", "there is no such file"),
    ] {
        let output = knee(at).args(["evaluate", candidate, "--quick"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with("error: ") && said.contains(words), "{said}");
        assert!(!at.join("knee-out").exists(), "{candidate}");
    }
    assert!(complaint(at, "evaluate reno --section 9", 2).contains("9"));
    // This program has no Python.
    fs::write(at.join("mine.py"), "").unwrap();
    let said = complaint(at, "evaluate mine.py:Mine --quick", 2);
    assert!(said.contains("written in Python") && said.contains("pip install"), "{said}");
}

/// Other grounds are compared with the simulator and never run alone.
#[test]
fn a_ground_in_real_time_needs_the_simulator_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let said = complaint(at, "evaluate reno --on kernel --section 5.1.2", 2);
    assert!(said.contains("--on sim,kernel"), "{said}");
    let said = complaint(at, "evaluate reno --on sim,kernel --section 5.1.2 --search 3", 2);
    assert!(said.contains("--search"), "{said}");
    let said = complaint(at, "evaluate reno --on sim,kernel --section 5.1.2 --report r.md", 2);
    assert!(said.contains("--report") && !at.join("r.md").exists(), "{said}");
}

/// The page has every criterion with its section, RFC number, picture and command, and no external
/// resource; `knee report` rewrites the same bytes.
#[test]
fn the_page_holds_every_criterion_and_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let document = evaluated(at, "vegas", &["5", "safecc"], "out");
    let page = fs::read_to_string(at.join("out/report.html")).unwrap();
    let lines = document["lines"].as_array().unwrap();
    let sections: BTreeSet<&str> =
        lines.iter().map(|line| line["section"].as_str().unwrap()).collect();
    let shown = page.replace("&#x27;", "'").replace("&#x2f;", "/");
    // One for each section, and one of the worst line.
    let first = usize::from(lines.iter().any(|line| line["worse_than_all"] == true));
    assert_eq!(page.matches("<svg class=\"figure\"").count(), sections.len() + first);
    for line in lines {
        let (section, claim) = (line["section"].as_str().unwrap(), line["claim"].as_str().unwrap());
        assert!(page.contains(&format!("id=\"s-{}\"", section.replace('.', "-"))), "{section}");
        assert!(shown.contains(&format!("knee run inputs/{section}-{claim}.toml")), "{line}");
        assert!(shown.contains(line["title"].as_str().unwrap()), "{line}");
    }
    // Requirements that were not tested, with the reason.
    assert!(page.contains("id=\"s-safecc\"") && page.contains("--search looks for worse ones"));
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    fs::remove_file(at.join("out/report.html")).unwrap();
    crate::common::expect(at, "report out", 0);
    assert_eq!(fs::read_to_string(at.join("out/report.html")).unwrap(), page);
}

/// The table for a draft has a row for each criterion, with the document's verdicts.
#[test]
fn an_evaluation_is_told_as_markdown() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let document = evaluated(at, "vegas", &["5.1.2", "safecc"], "out");
    let output = knee(at).args(["report", "out", "--markdown"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in document["lines"].as_array().unwrap() {
        let title = line["title"].as_str().unwrap();
        let row = text.lines().find(|row| row.starts_with(&format!("|  | {title}"))).unwrap();
        let cells: Vec<&str> = row.split(" | ").skip(2).collect();
        for (cell, one) in cells.iter().zip(line["against"].as_array().unwrap()) {
            assert!(cell.starts_with(one["word"].as_str().unwrap()), "{row}");
        }
        assert_eq!(cells.len(), 3, "{row}");
    }
    assert!(text.contains("**5.1.2 Protection against bufferbloat**"), "{text}");
    assert!(text.contains("Not tested, safecc: worst cases"), "{text}");
}

#[test]
fn what_got_worse_fails() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    evaluated(at, "bbr", &["5.1.2"], "bbr");
    let line = "--quick --section 5.1.2 --repeat 3 --against bbr/evaluation.json --out";
    // Beside an earlier evaluation, what fails in both is no reason to exit with 1.
    crate::common::expect(at, &format!("evaluate bbr {line} same --report same.md"), 0);
    let report = fs::read_to_string(at.join("same.md")).unwrap();
    assert!(report.contains("No criterion got worse."), "{report}");
    let said = complaint(at, &format!("evaluate cubic {line} cubic --report worse.md"), 1);
    assert!(said.contains("Got worse: 5.1.2 standing queue"), "{said}");
    let report = fs::read_to_string(at.join("worse.md")).unwrap();
    assert!(report.contains("| 5.1.2 | standing queue"), "{report}");
    let said = complaint(at, &format!("evaluate cubic {line} more --report worse.md"), 2);
    assert!(said.contains("worse.md exists") && !at.join("more").exists(), "{said}");
    let other = "evaluate bbr --quick --section 5.1.2 --repeat 2 --against bbr/evaluation.json";
    complaint(at, &format!("{other} --out other"), 2);
}

/// A controller that follows the BBR draft passes its test cases; one with another gain, or another
/// interval between PROBE_RTTs, fails those that are about it, and one without BBR's phases most.
#[test]
fn the_test_cases_of_the_bbr_draft() {
    let folder = tempfile::tempdir().unwrap();
    let run = |candidate: &str, out: &str| {
        let line = ["evaluate", candidate, "--suite", "bbr-draft", "--out", out];
        let output = knee(folder.path()).args(line).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), printed.lines().next().unwrap_or_default().to_string())
    };
    let first = |candidate: &str, words: &str| format!("{candidate} passes {words}.");
    let all = first("bbr3", "22 of 22 test cases");
    assert_eq!(run("bbr3", "draft"), (Some(0), all));
    let records = json(&folder.path().join("draft").join("reproduce.json"));
    let claims = records["studies"][0]["claims"].as_array().unwrap();
    assert!(claims.len() > 50 && claims.iter().all(|claim| claim["outcome"] == "holds"));
    let repeat = records["command"].as_str().unwrap();
    assert_eq!(repeat, "knee evaluate bbr3 --suite bbr-draft");
    let gain = "{ name = \"bbr3\", drain_gain = 0.35 }";
    let (code, said) = run(gain, "gain");
    assert_eq!((code, said), (Some(1), first(gain, "20 of 22 test cases; not 3, 4")));
    let interval = "{ name = \"bbr3\", probe_rtt_interval = \"10 s\" }";
    let (code, said) = run(interval, "interval");
    assert_eq!((code, said), (Some(1), first(interval, "19 of 22 test cases; not 10, 11, 20")));
    let (code, said) = run("cubic", "cubic");
    assert!(code == Some(1) && said.contains("passes 3 of 22"), "{said}");
    let said = complaint(folder.path(), "evaluate bbr3 --suite bbr-draft --quick", 2);
    assert!(said.contains("cannot be used with"), "{said}");
}
