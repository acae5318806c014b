//! `knee fit` as a process.

use crate::common::{complaint, expect, folder_with};
use std::fs;

/// A flow over a link that it fills.
const FLOW: &str = r#"
name = "One flow"
duration = "4 s"
[link.wire]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"
[path.main]
forward = ["wire"]
reverse_delay = "10 ms"
[[flow]]
name = "bulk"
cc = "reno"
"#;

#[test]
fn a_path_is_written_as_a_scenario_that_runs() {
    let folder = folder_with("f.toml", FLOW);
    let at = folder.path();
    expect(at, "run f.toml --out run", 0);
    let said = expect(at, "fit run --simulations 200 --out path", 0);
    for wanted in ["One path explains what reno saw", "its queue was filled", "path/path.toml"] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
    assert!(fs::read_to_string(at.join("path/report.html")).unwrap().contains("path/fitted"));
    expect(at, "run path/path.toml --set flow.bulk.cc=bbr --out again", 0);
    assert!(complaint(at, "fit run --out path", 2).contains("--force"));
    expect(at, "fit run --simulations 50 --out path --force", 0);
    assert!(complaint(at, "fit run --out run --force", 2).contains("would be replaced"));
}

/// A link whose rate falls to a fifth in the middle looks like no link of one rate.
#[test]
fn nothing_is_said_of_a_path_that_does_not_explain_the_run() {
    let steps = "rate = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"3900 ms\", rate = \"2 Mbit/s\" }]";
    let text = FLOW.replace("rate = \"10 Mbit/s\"", steps).replace("4 s", "8 s");
    let folder = folder_with("f.toml", &text);
    let at = folder.path();
    expect(at, "run f.toml --no-alternatives --out run", 0);
    let said = expect(at, "fit run --simulations 200", 0);
    assert!(said.contains("No single path explains what reno saw"), "{said}");
    assert_eq!(said.matches("no single path explains the run").count(), 4, "{said}");
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let folder = folder_with("f.toml", FLOW);
    let at = folder.path();
    let second = "[[flow]]\nname = \"other\"\ncc = \"reno\"\n";
    let bursts = "workload = { bursts = { size = \"10 kB\", pause = \"100 ms\" } }\n";
    let link = FLOW.replace("forward = [\"wire\"]", "forward = [\"wire\", \"next\"]")
        + "[link.next]\nrate = \"9 Mbit/s\"\ndelay = \"1 ms\"\n";
    for (text, wanted) in [
        (format!("{FLOW}{second}"), "one flow that always sends"),
        (format!("{FLOW}{bursts}"), "one flow that always sends"),
        (link, "one link and a delay on the way back"),
        (FLOW.replace("4 s", "1 s"), "smaller sample_interval"),
    ] {
        fs::write(at.join("f.toml"), text).unwrap();
        expect(at, "run f.toml --no-alternatives --force --out run", 0);
        let said = complaint(at, "fit run", 2);
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
    assert!(complaint(at, "fit nowhere", 2).contains("a directory that knee run wrote"));
}
