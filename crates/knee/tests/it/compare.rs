//! `knee compare`: points of sweeps, sentences, and the page.

use crate::common::{SMALL, complaint, expect, folder_with, json};
use serde_json::Value;
use std::fs;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn measure<'d>(document: &'d Value, group: &str, name: &str) -> &'d Value {
    let mut all = document["measures"].as_array().unwrap().iter();
    all.find(|one| one["group"] == group && one["name"] == name).unwrap()
}

/// A sweep's folder selects all its points, `@KEY=VALUE` some of them; the values are the sweep's.
#[test]
fn points_of_a_sweep_are_compared() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "sweep a.toml --vary flow.bbr.cc=bbr,reno,cubic --repeat 4 --out sw", 0);
    let all = parsed(&expect(at, "compare sw --format json", 0));
    assert_eq!(all["names"], serde_json::json!(["bbr", "reno", "cubic"]));
    assert_eq!(all["given"][0]["what"], "flow.bbr.cc");
    assert_eq!(all["given"].as_array().unwrap().len(), 1, "{}", all["given"]);
    let swept = json(&at.join("sw/sweep.json"));
    for (point, name) in ["bbr", "reno", "cubic"].iter().enumerate() {
        let groups = swept["points"][point]["groups"].as_array().unwrap();
        let group = groups.iter().find(|group| group["group"] == "bbr").unwrap();
        let mean = &group["measures"]["goodput_bps"]["interval"]["mean"];
        let compared = measure(&all, "bbr", "goodput_bps");
        assert_eq!(&compared["values"][point]["interval"]["mean"], mean, "{name}");
        assert_eq!(compared["by_run"][point].as_array().unwrap().len(), 4);
    }
    let two = parsed(&expect(at, "compare sw@cc=reno sw@flow.bbr.cc=bbr --format json", 0));
    assert_eq!(two["names"], serde_json::json!(["reno", "bbr"]));
    assert_eq!(two["directories"][1], "sw@flow.bbr.cc=bbr");
    let said = complaint(at, "compare sw@cc=reno sw@cc=vegas", 2);
    assert!(said.contains("no point with cc=vegas"), "{said}");
    assert!(said.contains("sw@flow.bbr.cc=bbr|reno|cubic"), "{said}");
    assert!(complaint(at, "compare sw@cc=reno", 2).contains("at least two runs"));

    // A point against runs of the same scenario: equal values, so no difference; and the same
    // measures, among them those that need the rates of the paths.
    expect(at, "run a.toml --set flow.bbr.cc=reno --repeat 4 --out runs", 0);
    let mixed = parsed(&expect(at, "compare sw@cc=reno runs --format json", 0));
    assert_eq!(mixed["given"], serde_json::json!([]));
    assert_eq!(measure(&mixed, "bbr", "power")["by_run"][0].as_array().unwrap().len(), 4);
    for one in mixed["measures"].as_array().unwrap() {
        let missing = |side: usize| -> Vec<bool> {
            one["by_run"][side].as_array().unwrap().iter().map(Value::is_null).collect()
        };
        assert_eq!(missing(0), missing(1), "{one}");
        let word = &one["against"][1]["word"];
        assert!(word.is_null() || word == "alike", "{one}");
    }
    assert!(complaint(at, "compare sw@cc=reno runs/repeat-1", 2).contains("a single run"));
}

/// A flow without a name is named after its controller and stays the same flow.
#[test]
fn a_flow_that_bears_its_controllers_name_is_one_flow() {
    let text = SMALL.replace("name = \"bbr\"\n", "");
    assert_ne!(text, SMALL);
    let folder = folder_with("a.toml", &text);
    let at = folder.path();
    for cc in ["bbr", "reno"] {
        expect(at, &format!("run a.toml --set flow.bbr.cc={cc} --out {cc}"), 0);
    }
    let two = parsed(&expect(at, "compare bbr reno --out c --format json", 0));
    assert!(two["measures"].is_array());
    let given = json(&at.join("c/comparison.json"))["given"].clone();
    let what: Vec<&str> =
        given.as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["flow.bbr.cc", "flow.bbr.name"]);
}

/// Twice the link rate is twice the goodput, and better, in the terminal and on the page.
#[test]
fn the_answer_is_in_the_terminal_and_on_the_page() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    for rate in [10, 20] {
        let set = format!("--set link.bottleneck.rate={rate}Mbit/s --repeat 5");
        expect(at, &format!("run a.toml --out r{rate} {set}"), 0);
    }
    let printed = expect(at, "compare r10 r20 --out c", 0);
    let whole = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("r20 against r10: "), "{printed}");
    assert!(printed.contains("c/report.html"), "{printed}");
    let document = json(&at.join("c/comparison.json"));
    let goodput = measure(&document, "*", "goodput_bps");
    let ratio = goodput["against"][1]["estimate"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    assert_eq!(goodput["against"][1]["word"], "better");
    let page = fs::read_to_string(at.join("c/report.html")).unwrap();
    let sentence = document["says"][0].as_str().unwrap();
    let spaced = page.replace('\u{a0}', " ");
    assert!(spaced.contains(sentence), "{sentence}");
    assert!(whole.contains(sentence), "{sentence}");
    for chart in ["data-chart=\"rate\"", "data-chart=\"rtt\"", "data-chart=\"distribution\""] {
        assert!(page.contains(chart), "{chart}");
    }
    // Rewriting the page, and a folder that is not empty.
    expect(at, "report c", 0);
    assert!(fs::read_to_string(at.join("c/report.html")).unwrap() == page);
    assert!(complaint(at, "compare r10 r20 --out c", 2).contains("not empty"));
    expect(at, "compare r10 r20 --out c --force", 0);
    assert!(expect(at, "report c --markdown", 0).contains(sentence));
}

/// Two repeats each in which nothing is random differ with certainty, in both answers.
#[test]
fn without_chance_differences_are_certain() {
    let constant = SMALL.replace("loss = \"0.1 %\"\n", "");
    // Two that start together would share the link in lockstep, which is not certain.
    let constant = constant.replace("cc = \"bbr\"", "cc = \"cubic\"\nstart = \"100 ms\"");
    let folder = folder_with("a.toml", &constant);
    let at = folder.path();
    expect(at, "run a.toml --repeat 2 --out a", 0);
    expect(at, "run a.toml --repeat 2 --set link.bottleneck.rate='20Mbit/s' --out b", 0);
    let document = parsed(&expect(at, "compare a b --format json", 0));
    let differences = document["differences"].as_array().unwrap();
    let differ = differences.iter().map(|one| &one["compared"]);
    let differ: Vec<&Value> = differ.filter(|one| one["more"] != one["less"]).collect();
    assert!(!differ.is_empty());
    assert!(differ.iter().all(|one| one["p_value"] == 0.0), "{differ:?}");
    let goodput = measure(&document, "bbr", "goodput_bps");
    assert_eq!(goodput["against"][1]["word"], "better");
}

/// Runs that were invalid or interrupted are no evidence; of what is left out, the answer says so.
#[test]
fn runs_that_cannot_be_used_are_left_out() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --repeat 4 --out a", 0);
    expect(at, "run a.toml --repeat 4 --set flow.bbr.cc=reno --out b", 0);
    let spoil = |run: &str, verdict: &str, reason: &str| {
        let path = at.join(run).join("summary.json");
        let mut summary = json(&path);
        summary["verdict"] = verdict.into();
        summary["verdict_reason"] = reason.into();
        fs::write(path, summary.to_string()).unwrap();
    };
    spoil("b/repeat-1", "invalid", "the host was too busy");
    spoil("b/repeat-3", "degraded", "interrupted after 1 s of the scenario");
    let printed = expect(at, "compare a b --all", 0);
    assert!(printed.contains("Left out: 2 runs of b, invalid or interrupted."), "{printed}");
    let document = parsed(&expect(at, "compare a b --format json", 0));
    assert_eq!(document["pairs"], 2);
    let goodput = measure(&document, "bbr", "goodput_bps");
    assert_eq!(goodput["by_run"][1].as_array().unwrap().len(), 2);
    let said = complaint(at, "compare a/repeat-1 b/repeat-1", 2);
    assert!(said.contains("too busy") && said.contains("run it again"), "{said}");
    spoil("b/repeat-2", "invalid", "the host was too busy");
    let said = complaint(at, "compare a b", 2);
    assert!(said.contains("Left out: 3 runs of b") && said.contains("run them again"), "{said}");
    // A single run that was cut short can be looked at, and proves nothing.
    expect(at, "compare a/repeat-3 b/repeat-3", 0);
}

/// Sets of one repeat each are single runs.
#[test]
fn one_repeat_each_is_one_run_each() {
    let folder = folder_with("a.toml", SMALL);
    let at = folder.path();
    expect(at, "run a.toml --repeat 1 --out a", 0);
    expect(at, "run a.toml --repeat 1 --set flow.bbr.cc=reno --out b", 0);
    for line in ["compare a b", "compare a b/repeat-1", "compare a/repeat-1 b"] {
        let document = parsed(&expect(at, &format!("{line} --format json"), 0));
        assert_eq!(document["pairs"], 0, "{line}");
        assert!(!document["differences"].as_array().unwrap().is_empty(), "{line}");
    }
}
