//! Rule tables: Knee's trained table against CUBIC on other seeds, and the course of a training.

use knee_cc::remycc::RuleTable;
use knee_lab::scenario::Override;
use knee_lab::{Error, Job, Lab, ScenarioText, Train, TrainError, TrainSettings};
use std::path::Path;

const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../knee-cc/tables");

fn text(name: &str) -> ScenarioText {
    ScenarioText::read(&Path::new(TABLES).join(name)).unwrap()
}

/// Goodput of all flows over their mean RTT, with a controller and a seed.
fn power(lab: &Lab, text: &ScenarioText, cc: &str, seed: u64) -> f64 {
    let set = [
        Override::new("flow.trained.cc", &format!("\"{cc}\"")),
        Override::new("seed", &seed.to_string()),
    ];
    let scenario = text.scenario(&set).unwrap();
    let run = lab.run(&Job::new(&scenario, lab.grounds.get("sim").unwrap())).unwrap();
    let all = run.summary.measures;
    all.goodput_bps.unwrap() / all.rtt_us.unwrap().mean
}

/// The table was trained with seeds 1 to 3.
#[test]
fn the_trained_table_has_more_power_than_cubic_on_other_seeds() {
    let lab = Lab::default();
    for name in ["one.toml", "two.toml", "four.toml"] {
        let text = text(name);
        for seed in 101..=105 {
            let [remy, cubic] = ["remycc", "cubic"].map(|cc| power(&lab, &text, cc, seed));
            println!("{name}, seed {seed}: {:.2} times CUBIC's power", remy / cubic);
            assert!(remy > cubic, "{name}, seed {seed}: {remy} against {cubic}");
        }
    }
}

fn short() -> Train {
    let settings = TrainSettings { seeds: 1, rounds: 2, ..TrainSettings::default() };
    Train::new(&[text("one.toml")], settings).unwrap()
}

#[test]
fn what_runs_side_by_side_changes_no_byte() {
    let trained = [1, 3].map(|jobs| {
        let mut lab = Lab::default();
        lab.parallel = Some(jobs);
        lab.train(&short(), &|_| {}).unwrap().unwrap()
    });
    assert_eq!(trained[0].table.to_string(), trained[1].table.to_string());
    assert!(trained[0].score > trained[0].score_of_cubic.unwrap());
    // The output is a valid table.
    let read = RuleTable::read(&trained[0].table.to_string()).unwrap();
    assert_eq!(read, trained[0].table);
    assert!(!trained[0].stopped);
}

/// A stop after the first of two rounds keeps that round's table and is reported.
#[test]
fn a_stop_keeps_the_best_table_so_far() {
    let lab = Lab::default();
    let trained = lab.train(&short(), &|_| lab.handle().stop()).unwrap().unwrap();
    assert!(trained.stopped);
    assert_eq!(trained.table.rules().count(), 1);
    assert!(trained.table.provenance.iter().any(|(key, _)| key == "stopped"));
    assert!(trained.score.is_finite());
}

/// A stop before the first score leaves no table, which would be worse than any other.
#[test]
fn a_stop_before_the_first_score_gives_no_table() {
    let lab = Lab::default();
    lab.handle().stop();
    assert_eq!(lab.train(&short(), &|_| {}).unwrap(), None);
}

#[test]
fn a_scenario_without_remycc_is_refused() {
    let text = ScenarioText::new(
        "other.toml",
        &std::fs::read_to_string(Path::new(TABLES).join("one.toml"))
            .unwrap()
            .replace("remycc", "cubic"),
    );
    let refused = Train::new(&[text], TrainSettings::default()).unwrap_err();
    assert!(matches!(refused, Error::Train(TrainError::NoFlow(_))), "{refused}");
}

/// A table is a file beside the scenario; an error in one names its line.
#[test]
fn a_scenario_names_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let table = std::fs::read_to_string(Path::new(TABLES).join("knee.table")).unwrap();
    let scenario = std::fs::read_to_string(Path::new(TABLES).join("one.toml")).unwrap();
    let named = scenario.replace("\"remycc\"", "{ name = \"remycc\", table = \"my.table\" }");
    let path = folder.path().join("one.toml");
    std::fs::write(&path, named).unwrap();
    let read = || ScenarioText::read(&path).unwrap().scenario(&[]);
    let missing = read().unwrap_err().problems[0].message.clone();
    assert!(missing.contains("my.table"), "{missing}");
    std::fs::write(folder.path().join("my.table"), &table).unwrap();
    let good = read().unwrap();
    assert_eq!(good.files[0].written, "my.table");
    assert!(good.resolved.contains("inputs/my.table"), "{}", good.resolved);
    let lab = Lab::default();
    let run = |scenario| lab.run(&Job::new(scenario, lab.grounds.get("sim").unwrap())).unwrap();
    let built_in = text("one.toml").scenario(&[]).unwrap();
    assert_eq!(run(&good).summary.flows, run(&built_in).summary.flows);
    std::fs::write(folder.path().join("my.table"), table.replace("rule ", "rul ")).unwrap();
    let damaged = read().unwrap_err();
    let problem = &damaged.problems[0];
    let line = table.lines().position(|line| line.trim().starts_with("rule ")).unwrap() + 1;
    assert!(problem.message.contains(&format!("line {line}")), "{}", problem.message);
    assert!(problem.help.contains("write"), "{}", problem.help);
}
