//! `knee model`: rounds and shares against the formula, the picture, and refusals.

use crate::common::{complaint, expect, folder_with};
use serde_json::Value;
use std::fs;

fn starts(printed: &str) -> Vec<Value> {
    let printed: Value = serde_json::from_str(printed).expect("JSON");
    printed["tables"]["starts"].as_array().expect("a table").clone()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} is not in {row}"))
}

/// Each flow ends at g/(g + N - 1) while it probes and at 1/(g + N - 1) otherwise, from any start.
#[test]
fn the_flows_end_where_the_formula_says() {
    let folder = folder_with("unused", "");
    for (number_of_flows, gain) in [(2_u32, 1.25), (3, 1.25), (6, 1.5)] {
        let line = format!(
            "model --flows {number_of_flows} --gain {gain} --starts 4 --format json --force"
        );
        let rows = starts(&expect(folder.path(), &line, 0));
        assert_eq!(rows.len(), 4);
        let other = 1.0 / (gain + f64::from(number_of_flows) - 1.0);
        for row in &rows {
            assert!((number(row, "smallest_share") - other).abs() < 1e-3, "{row}");
            assert!((number(row, "largest_share") - gain * other).abs() < 1e-3, "{row}");
            let sum = f64::from(number_of_flows) * gain * other;
            assert!((number(row, "sum_of_estimates") - sum).abs() < 1e-3, "{row}");
            assert!(number(row, "rounds_to_fairness") >= 1.0, "{row}");
        }
    }
}

/// Counts for these starts that another program made, and a seed draws the same starts again.
#[test]
fn the_rounds_are_those_of_the_start() {
    let folder = folder_with("unused", "");
    let line = "model --start 0.9,0.1 --start 0.99,0.01 --start 0.51,0.49 --format json";
    let rows = starts(&expect(folder.path(), line, 0));
    let rounds: Vec<f64> = rows.iter().map(|row| number(row, "rounds_to_fairness")).collect();
    assert_eq!(rounds, [45.0, 56.0, 23.0]);
    let drawn = |seed: u32| {
        expect(folder.path(), &format!("model --flows 3 --seed {seed} --format csv --force"), 0)
    };
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
    let few = expect(folder.path(), "model --start 0.9,0.1 --rounds 5 --force", 0);
    assert!(few.contains("Within 5 rounds no start is fair."), "{few}");
    let once = expect(folder.path(), "model --start 0.5556,0.5556 --tolerance 0.2 --force", 0);
    assert!(once.contains("It is fair after one round."), "{once}");
    let line = "model --start 0.9,0.1 --rounds 5 --format json --force";
    assert!(starts(&expect(folder.path(), line, 0))[0]["rounds_to_fairness"].is_null());
}

#[test]
fn the_picture_has_the_format_of_its_ending() {
    let folder = folder_with("unused", "");
    let at = folder.path();
    let printed = expect(at, "model", 0);
    assert!(printed.contains("picture  model.svg"), "{printed}");
    let svg = fs::read_to_string(at.join("model.svg")).expect("it was written");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    // Starts are above all paths.
    assert!(svg.rfind("<title>probe ") < svg.find("<title>start: "));
    let said = complaint(at, "model", 2);
    assert!(said.contains("model.svg exists") && said.contains("--force"), "{said}");
    if cfg!(feature = "png") {
        expect(at, "model --out a.png --width 1200", 0);
        let png = fs::read(at.join("a.png")).expect("it was written");
        let width = u32::from_be_bytes(png[16..20].try_into().expect("a PNG has a size"));
        assert_eq!((&png[..4], width), (&b"\x89PNG"[..], 1200));
    }
    let said = complaint(at, "model --out a.gif", 2);
    assert!(said.contains("a.gif does not end in .svg, .pdf or .png"), "{said}");
    // That of `knee model` is the format of its table.
    assert!(said.contains("change the name") && !said.contains("--format"), "{said}");
}

/// Each refusal says what to write instead; nothing is written.
#[test]
fn impossible_starts_are_refused() {
    let folder = folder_with("unused", "");
    let refused = |options: &str| {
        let said = complaint(folder.path(), &format!("model {options}"), 2);
        assert!(!folder.path().join("model.svg").exists(), "{options}");
        said
    };
    assert!(refused("--start 0.9").contains("such as 0.9,0.1"));
    assert!(refused("--start 0.9,0").contains("above 0"));
    assert!(refused("--start 0.9,0.1 --start 0.5,0.3,0.2").contains("the same number of values"));
    assert!(refused("--start 0.9,0.1 --flows 3").contains("cannot be used with"));
    assert!(refused("--gain 1").contains("write a number from 1.001 to 10"));
    assert!(refused("--flows 51").contains("51"));
}
