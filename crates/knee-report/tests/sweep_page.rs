//! The page of a sweep.

#![allow(clippy::unwrap_used, reason = "a test ends there")]

#[path = "common/dom.rs"]
mod dom;

use dom::{Element, parse};
use knee_record::{GroupMeasures, LeftOut, SweepKey, SweepRun, SweepSummary};
use knee_report::sweep_page;
use std::collections::BTreeMap;

/// Text that must not become markup, used wherever a user chooses text.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>&\"'";

/// Returns runs with one measure; infinity means that the event never occurred.
fn point(at: usize, values: &[f64]) -> (Vec<usize>, Vec<SweepRun>) {
    let run = |(value, seed): (&f64, u64)| {
        let (measures, never) = match value.is_finite() {
            true => (BTreeMap::from([("completion_s".to_string(), *value)]), Vec::new()),
            false => (BTreeMap::new(), vec!["completion_s".to_string()]),
        };
        SweepRun {
            repeat: seed,
            seed,
            groups: vec![GroupMeasures { group: "main".to_string(), measures, never }],
            ..SweepRun::default()
        }
    };
    (vec![at], values.iter().zip(1..).map(run).collect())
}

fn summary(name: &str, planned: usize) -> SweepSummary {
    let values = ["minrtt", "sctc", name].map(str::to_string).to_vec();
    SweepSummary::new(
        name,
        (format!("knee sweep {name}"), format!("knee run {name}")),
        vec![SweepKey { name: "flow.main.scheduler".to_string(), values }],
        (2, planned),
        &[point(0, &[1.0, 1.5]), point(1, &[f64::INFINITY; 2])],
        vec![LeftOut { at: vec![2], reason: name.to_string() }],
    )
}

fn embedded(elements: &[Element]) -> SweepSummary {
    let data = elements.iter().find(|element| element.attribute("id") == "data").unwrap();
    serde_json::from_str(&data.text).unwrap()
}

/// The page's script gets the contents of `sweep.json`, whatever the names contain.
#[test]
fn the_page_holds_the_summary_and_nothing_is_markup() {
    let summary = summary(HOSTILE, 4);
    let elements = parse(&sweep_page(&summary).unwrap());
    assert_eq!(embedded(&elements), summary);
    assert!(elements.iter().all(|element| element.name != "img"));
    let scripts = elements.iter().filter(|element| element.name == "script").count();
    assert_eq!(scripts, 2, "the data and the program");
    let main = &elements.iter().find(|element| element.name == "main").unwrap().text;
    assert!(main.contains(&format!("knee sweep {HOSTILE}")), "{main}");
    assert!(main.contains("1 combination left out"), "{main}");
}

/// Nothing is fetched: no element names another file, and the policy forbids it.
#[test]
fn the_page_needs_nothing_but_itself() {
    let elements = parse(&sweep_page(&summary("Plain", 4)).unwrap());
    assert!(elements.iter().all(|element| element.attribute("src").is_empty()));
    assert!(elements.iter().all(|element| element.name != "link"));
    let policy = elements.iter().find(|e| e.attribute("http-equiv") == "Content-Security-Policy");
    assert!(policy.unwrap().attribute("content").starts_with("default-src 'none'"));
}

#[test]
fn an_unfinished_sweep_says_so() {
    let said = |planned| sweep_page(&summary("Plain", planned)).unwrap().contains("not finished");
    assert!(said(6) && !said(4));
}

/// The page prints the same as the program: mean, interval, number of runs without the event. Two
/// runs of 1 s and 1.5 s have the mean 1.25 s and the standard error 0.25 s, a fifth of it. With
/// t(0.975, 1) = 12.706 the interval, on the logarithm, extends by the factor exp(0.2 × 12.706) =
/// 12.69 to either side.
#[test]
fn values_come_with_their_text_and_the_first_view() {
    let elements = parse(&sweep_page(&summary("Plain", 4)).unwrap());
    let data = elements.iter().find(|element| element.attribute("id") == "data").unwrap();
    let page = serde_json::from_str::<serde_json::Value>(&data.text).unwrap()["page"].take();
    assert_eq!(
        page["values"][0][0]["completion_s"],
        serde_json::json!(["1.25 s", "98.5 ms to 15.9 s"])
    );
    assert_eq!(page["values"][1][0]["completion_s"], serde_json::json!(["never", ""]));
    assert_eq!(page["numbers"], serde_json::json!([null]));
    let first = serde_json::json!({"measure": 0, "group": 0, "x": 0, "y": null, "compare": 0});
    assert_eq!(page["first"], first);
}
