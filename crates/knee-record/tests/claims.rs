//! Claims: bounds, ratios, runs of a study.

mod common;

use common::{flow, records, with_link};
use knee_record::{
    LinkSample, NamedRun, NotMeasurable, Outcome, RunView, evaluate, evaluate_in_study, outcome_of,
};
use knee_scenario::{Claim, Measure};
use knee_units::Time;

fn claim(measure: Measure, of: &str) -> Claim {
    Claim {
        id: String::new(),
        says: "a sentence".to_string(),
        measure,
        of: of.to_string(),
        relative_to: None,
        at_least: None,
        at_most: None,
        from: None,
        until: None,
        source: "a study".to_string(),
        source_figure: None,
        recorded: knee_scenario::Outcome::Holds,
        finding: None,
    }
}

#[test]
fn bounds_are_inclusive() {
    let records = records(&[flow("a", 0, |t| 1e6 * t)]);
    let run = RunView::new(&records, Time::ZERO);
    let between = |at_least, at_most| {
        let claim = Claim { at_least, at_most, ..claim(Measure::Goodput, "a") };
        evaluate(&claim, &run).outcome
    };
    assert_eq!(between(Some(8e6), None), Outcome::Holds);
    assert_eq!(between(None, Some(8e6)), Outcome::Holds);
    assert_eq!(between(Some(8.001e6), None), Outcome::Fails);
    assert_eq!(between(Some(1e6), Some(7.999e6)), Outcome::Fails);
}

#[test]
fn the_window_of_a_claim_counts() {
    let records = records(&[flow("a", 0, |t| 1e6 * t.min(5.0))]);
    let run = RunView::new(&records, Time::ZERO);
    let early = Claim { until: Some(Time::from_secs(5)), ..claim(Measure::Goodput, "a") };
    let late = Claim { from: Some(Time::from_secs(5)), ..claim(Measure::Goodput, "a") };
    assert_eq!(evaluate(&early, &run).measured_text, "8 Mbit/s");
    assert_eq!(evaluate(&late, &run).measured, Some(0.0));
}

/// A recorded failure that still fails is no news; one that now holds is.
#[test]
fn agreement_with_the_record() {
    let records = records(&[flow("a", 0, |t| 1e6 * t)]);
    let run = RunView::new(&records, Time::ZERO);
    let recorded = knee_scenario::Outcome::Fails;
    let goodput = Claim { recorded, ..claim(Measure::Goodput, "a") };
    let fails = evaluate(&Claim { at_least: Some(9e6), ..goodput.clone() }, &run);
    assert!(fails.agrees && fails.outcome == Outcome::Fails);
    let holds = evaluate(&Claim { at_least: Some(7e6), ..goodput }, &run);
    assert!(!holds.agrees && holds.outcome == Outcome::Holds);
}

#[test]
fn one_run_relative_to_another() {
    let slow = records(&[flow("a", 0, |t| 1e5 * t)]);
    let fast = records(&[flow("a", 0, |t| 6.3e5 * t)]);
    let (slow, fast) = (RunView::new(&slow, Time::ZERO), RunView::new(&fast, Time::ZERO));
    let runs = [NamedRun { name: "cubic", view: &slow }, NamedRun { name: "bbr", view: &fast }];
    let relative_to = Some("cubic/a".to_string());
    let ratio = Claim {
        relative_to,
        at_least: Some(6.0),
        at_most: Some(10.0),
        ..claim(Measure::Goodput, "bbr/a")
    };
    let outcome = evaluate_in_study(&ratio, &runs);
    assert_eq!(outcome.outcome, Outcome::Holds);
    assert_eq!(outcome.measured_text, "6.3 times");
    assert_eq!(outcome.expected, "6 times to 10 times");
    let nameless = evaluate_in_study(&claim(Measure::Goodput, "a"), &runs);
    assert_eq!(nameless.outcome, Outcome::NotTestedHere);
    assert!(nameless.measured_text.contains("no run of the study"));
}

/// Nothing over nothing says nothing; something over nothing exceeds every
/// bound.
#[test]
fn ratios_to_nothing() {
    let records = records(&[flow("a", 0, |t| 1e6 * t)]);
    let records = with_link(records, |_| LinkSample::default());
    let run = RunView::new(&records, Time::ZERO);
    let to = |measure: Measure, of: &str, other: &str| {
        let relative_to = Some(other.to_string());
        evaluate(&Claim { relative_to, at_least: Some(6.0), ..claim(measure, of) }, &run)
    };
    let nothing = to(Measure::Drops, "bottleneck", "bottleneck");
    assert_eq!((nothing.outcome, nothing.measured), (Outcome::NotTestedHere, None));
    let lossless = to(Measure::RetransmitRatio, "a", "a");
    assert_eq!(lossless.outcome, Outcome::NotTestedHere);
}

/// What never comes about fails an upper bound and is told in a word.
#[test]
fn never_is_not_untested() {
    let records = records(&[flow("a", 0, |t| 3e5 * t), flow("a", 1, |t| 1e5 * t)]);
    let run = RunView::new(&records, Time::ZERO);
    let measure = Measure::ConvergenceTime { band: 0.25, hold: Time::from_secs(2) };
    let outcome = evaluate(&Claim { at_most: Some(5.0), ..claim(measure, "a") }, &run);
    assert_eq!(outcome.outcome, Outcome::Fails);
    assert_eq!((outcome.measured, outcome.measured_text.as_str()), (None, "never"));
}

#[test]
fn values_from_elsewhere_are_judged_alike() {
    let model = Claim {
        at_least: Some(0.5555),
        at_most: Some(0.5557),
        ..claim(Measure::Model("share_high".to_string()), "two-flows")
    };
    assert_eq!(outcome_of(&model, Ok(5.0 / 9.0)).outcome, Outcome::Holds);
    let unknown = outcome_of(&model, Err(NotMeasurable("no such model".to_string())));
    assert_eq!(unknown.outcome, Outcome::NotTestedHere);
    let records = records(&[flow("a", 0, |t| 1e6 * t)]);
    let by_run = evaluate(&model, &RunView::new(&records, Time::ZERO));
    assert_eq!(by_run.outcome, Outcome::NotTestedHere);
}
