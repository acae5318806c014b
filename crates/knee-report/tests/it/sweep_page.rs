//! The page of a sweep.

use crate::common::dom::{Element, parse};
use knee_record::{GroupMeasures, LeftOut, SweepKey, SweepRun, SweepSummary};
use knee_report::{sweep_page, sweep_svg};
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

/// What the page holds for its script, by kind and name.
fn held<'e>(elements: &'e [Element], kind: &str, name: &str) -> &'e str {
    let found = elements.iter().find(|element| {
        element.attribute("data-kind") == kind && element.attribute("data-name") == name
    });
    &found.unwrap_or_else(|| panic!("{kind} {name}")).text
}

/// A sweep that was interrupted before its first run ended.
#[test]
fn a_page_without_points_says_so() {
    let keys = vec![SweepKey { name: "flow.a.cc".to_string(), values: vec!["bbr".to_string()] }];
    let commands = ("knee sweep".to_string(), "knee run".to_string());
    let summary = SweepSummary::new("empty", commands, keys, (2, 2), &[], Vec::new());
    let page = sweep_page(&summary).unwrap();
    assert!(page.contains("No run has ended yet.") && page.contains("0 of 2 runs"), "{page}");
}

/// The page's script gets the contents of `sweep.json`, whatever the names contain.
#[test]
fn names_are_never_markup() {
    let elements = parse(&sweep_page(&summary(HOSTILE, 4)).unwrap());
    assert!(elements.iter().all(|element| element.name != "img"));
    let scripts = elements.iter().filter(|element| element.name == "script");
    // The program, and data that no browser runs.
    let run = scripts.filter(|script| script.attribute("type").is_empty());
    assert_eq!(run.count(), 1);
    let main = &elements.iter().find(|element| element.name == "main").unwrap().text;
    assert!(main.contains(&format!("knee sweep {HOSTILE}")), "{main}");
    assert!(main.contains("1 combination left out"), "{main}");
    let points = elements.iter().find(|element| element.attribute("id") == "points").unwrap();
    let points: serde_json::Value = serde_json::from_str(&points.text).unwrap();
    let command = format!("knee run {HOSTILE} --set flow.main.scheduler=minrtt --seed 1");
    assert_eq!(points[0]["command"], command);
}

/// All flows together have no completion time here, only one of the groups has: the first
/// view is of that group, and shows its values.
#[test]
fn the_first_view_has_values() {
    let with_all = |(at, mut runs): (Vec<usize>, Vec<SweepRun>)| {
        for run in &mut runs {
            let goodput = BTreeMap::from([("goodput_bps".to_string(), 1e6)]);
            let all =
                GroupMeasures { group: "*".to_string(), measures: goodput, never: Vec::new() };
            run.groups.push(all);
        }
        (at, runs)
    };
    let values = ["minrtt", "sctc"].map(str::to_string).to_vec();
    let summary = SweepSummary::new(
        "Mixed",
        ("knee sweep a".to_string(), "knee run a".to_string()),
        vec![SweepKey { name: "flow.main.scheduler".to_string(), values }],
        (2, 4),
        &[with_all(point(0, &[1.0, 1.5])), with_all(point(1, &[2.0, 2.5]))],
        Vec::new(),
    );
    let svg = sweep_svg(&summary, (Some("completion_s"), None), 600.0).unwrap();
    assert_eq!(svg.matches("<rect class=\"bar").count(), 2, "{svg}");
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
    let page = sweep_page(&summary("Plain", 4)).unwrap();
    let elements = parse(&page);
    let view = held(&elements, "view", "0.0.0.");
    assert!(view.contains(">1.25 s 98.5 ms to 15.9 s</text>"), "{view}");
    assert!(view.contains(">never</text>") && view.contains(">not possible</text>"), "{view}");
    // That view is on the page without any script, line by line.
    let (_, drawn) = view.split_once("<svg").unwrap();
    assert_eq!(page.matches(drawn.trim_end()).count(), 2);
    let chosen: Vec<&Element> = elements
        .iter()
        .filter(|element| element.name == "option" && element.attributes.contains_key("selected"))
        .collect();
    let chosen: Vec<&str> = chosen.iter().map(|option| option.attribute("value")).collect();
    // Measure, flows, the setting that is compared, and relative to nothing.
    assert_eq!(chosen, ["0", "0", "0", ""]);
}

/// Three settings of two values each: a point for each combination, with `value` of it.
fn three(value: impl Fn(&[usize]) -> f64) -> SweepSummary {
    let key = |name: &str, values: [&str; 2]| {
        let values = values.map(str::to_string).to_vec();
        SweepKey { name: name.to_string(), values }
    };
    let keys = vec![
        key("link.a.rate", ["1 Mbit/s", "2 Mbit/s"]),
        key("flow.main.cc", ["bbr", "cubic"]),
        key("link.a.buffer", ["1 BDP", "2 BDP"]),
    ];
    let places = (0..8).map(|number: usize| vec![number >> 2, number >> 1 & 1, number & 1]);
    let runs: Vec<(Vec<usize>, Vec<SweepRun>)> =
        places.map(|at| (at.clone(), point(0, &[value(&at); 2]).1)).collect();
    let commands = ("knee sweep".to_string(), "knee run".to_string());
    SweepSummary::new("Three", commands, keys, (2, 16), &runs, Vec::new())
}

/// Every choice is drawn beforehand: a map for each two settings, a view for each setting
/// that is compared and each value as the reference. A cell has the value of its own
/// point in all maps.
#[test]
fn every_choice_is_there() {
    // 1 s more for each step of the first key, 2 s for the second, 4 s for the third.
    let seconds = |at: &[usize]| 1.0 + at[0] as f64 + 2.0 * at[1] as f64 + 4.0 * at[2] as f64;
    let elements = parse(&sweep_page(&three(seconds)).unwrap());
    let names = |kind: &str| -> Vec<String> {
        let all = elements.iter().filter(|element| element.name == "script");
        let all = all.filter(|element| element.attribute("data-kind") == kind);
        all.map(|element| element.attribute("data-name").to_string()).collect()
    };
    assert_eq!(names("map"), ["0.1", "0.2", "1.0", "1.2", "2.0", "2.1"]);
    let views: Vec<String> = (0..3)
        .flat_map(|compare| ["", "0", "1"].map(|base| format!("0.0.{compare}.{base}")))
        .collect();
    assert_eq!(names("view"), views);
    let cells: Vec<&str> = held(&elements, "view", "0.0.1.").lines().skip(2).collect();
    let ratios: Vec<&str> = held(&elements, "view", "0.0.1.0").lines().skip(2).collect();
    for (number, (cell, ratio)) in cells.iter().zip(&ratios).enumerate() {
        let at = [number >> 2, number >> 1 & 1, number & 1];
        let told = format!("{} s</text>", seconds(&at));
        assert!(cell.contains(&told), "{number}: {cell}");
        // Against the first controller at the same rate and buffer.
        let times = seconds(&at) / seconds(&[at[0], 0, at[2]]);
        let told = format!("{} ×</text>", (times * 1e3).round() / 1e3);
        assert!(ratio.contains(&told), "{number}: {ratio}, not {told}");
        // Less time is better: what takes longer is not blue.
        assert_eq!(ratio.contains("\"worse"), times > 1.0, "{ratio}");
    }
    // Two maps beside each other, as the third setting has two values; a cell each.
    for name in names("map") {
        let map = held(&elements, "map", &name);
        assert_eq!((map.matches("<h3>").count(), map.matches("data-point").count()), (2, 8));
    }
}

/// A file has all maps with their cells filled, and what it does not have is told.
#[test]
fn a_file_has_all_maps_and_stands_by_itself() {
    let sweep = three(|at| 1.0 + at[0] as f64);
    let svg = sweep_svg(&sweep, (Some("completion_s"), None), 600.0).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("width=\"600\""));
    assert!(!svg.contains("var(") && !svg.contains("data-"), "{svg}");
    assert_eq!(svg.matches("<g class=\"cell\"").count(), 8);
    assert_eq!(svg.matches(">1 s</text>").count(), 4);
    let unknown = sweep_svg(&sweep, (Some("speed"), None), 600.0).unwrap_err();
    assert!(unknown.contains("it has completion_s"), "{unknown}");
    let none = SweepSummary { points: Vec::new(), ..sweep };
    assert!(sweep_svg(&none, (None, None), 600.0).unwrap_err().contains("no run"));
}
