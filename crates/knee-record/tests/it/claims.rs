//! Claims: bounds, ratios, runs of a study.

use crate::common::{claim, flow, records, with_link};
use knee_record::{
    ClaimOutcome, LinkSample, NamedRun, NotMeasurable, Outcome, Records, RunView, TransferRecord,
    evaluate, evaluate_in_study, fill_findings, outcome_of,
};
use knee_scenario::{Claim, Measure, OnRecord, SizeRange, Statistic};
use knee_units::Time;

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
    let exactly = Claim { at_least: Some(8e6), at_most: Some(8e6), ..claim(Measure::Goodput, "a") };
    assert_eq!(evaluate(&exactly, &run).expected, "exactly 8 Mbit/s");
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

/// A recorded failure that still fails agrees with the record; one that now holds does not.
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

/// Zero over zero is not measurable; anything else over zero exceeds every bound.
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

/// An event that never occurs fails an upper bound and is printed as `never`.
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

/// Two mixes with the same number of transfers. Those under test take `factor` times the control's
/// time, varied by up to `spread` in a pattern without a trend.
fn test_and_control(factor: f64, spread: f64) -> Records {
    let mut records = records(&[flow("test", 0, |t| t), flow("control", 0, |t| t)]);
    for number in 0..400_u32 {
        let arrival = u64::from(number) * crate::common::MILLISECOND;
        // Sizes over three decades: without pairs, their spread hides everything else.
        let size = 1000 * 10_u64.pow(number * 7 % 4);
        let noise = 1.0 + spread * (f64::from(number * 37 % 101) / 50.0 - 1.0);
        for (flow, factor) in [(0, factor * noise), (1, 1.0)] {
            records.transfers.push(TransferRecord {
                flow,
                number,
                start_ns: arrival + u64::from(flow) * 500_000,
                completion_ns: Some((size as f64 * factor * 1e4) as u64),
                size_bytes: size,
                delivered_bytes: size,
                ..TransferRecord::default()
            });
        }
    }
    records
}

fn completion(bounds: [f64; 2]) -> Claim {
    let sizes = SizeRange { at_least: 0, below: None };
    Claim {
        relative_to: Some("control".to_string()),
        at_least: Some(bounds[0]),
        at_most: Some(bounds[1]),
        ..claim(Measure::FlowCompletion(Statistic::Mean, sizes), "test")
    }
}

/// A claim with an interval holds if all of it is within the bounds, fails if none of it is, and is
/// otherwise uncertain.
#[test]
fn an_interval_across_a_bound_is_uncertain() {
    let records = test_and_control(1.05, 0.4);
    let run = RunView::new(&records, Time::ZERO);
    let outcome = |bounds| evaluate(&completion(bounds), &run).outcome;
    assert_eq!(outcome([0.9, 1.2]), Outcome::Holds);
    assert_eq!(outcome([0.4, 0.65]), Outcome::Fails);
    assert_eq!(outcome([0.5, 1.05]), Outcome::Uncertain);
    let uncertain =
        Claim { recorded: knee_scenario::Outcome::Uncertain, ..completion([0.5, 1.05]) };
    assert!(evaluate(&uncertain, &run).agrees);
}

/// Transfers of one process are compared in pairs: the ratio is that of each pair although sizes
/// span three decades. Transfers of different processes are not paired.
#[test]
fn transfers_of_one_process_are_compared_in_pairs() {
    let mut records = test_and_control(0.8, 0.0);
    let width = |records: &Records| {
        let run = RunView::new(records, Time::ZERO);
        let interval = evaluate(&completion([0.0, 2.0]), &run).interval.expect("it has one");
        assert!((interval.ratio - 0.8).abs() < 1e-6, "{interval:?}");
        interval.high - interval.low
    };
    assert!(width(&records) < 1e-6);
    let late = records.transfers.iter_mut().filter(|row| row.flow == 1).nth(100);
    late.expect("it is there").start_ns += 25 * crate::common::MILLISECOND;
    assert!(width(&records) > 0.1);
}

fn measured(value: f64, on_record: Option<OnRecord>) -> ClaimOutcome {
    let goodput = Claim { on_record, at_least: Some(0.0), ..claim(Measure::Goodput, "a") };
    outcome_of(&goodput, Ok(value)).against_record(&goodput)
}

#[test]
fn a_value_drifts_beyond_what_the_record_allows() {
    let on_record = |value, drift| Some(OnRecord { value, drift });
    assert!(measured(10.3e6, on_record(10e6, 0.3e6)).agrees);
    assert!(measured(9.7e6, on_record(10e6, 0.3e6)).agrees);
    let far = measured(10.31e6, on_record(10e6, 0.3e6));
    assert!(far.drifted && !far.agrees && far.outcome == far.recorded);
    assert_eq!(far.on_record.as_deref(), Some("10 Mbit/s (± 300 kbit/s)"));
    assert!(!measured(1e6, None).drifted);
    let never = f64::INFINITY;
    assert!(!measured(never, on_record(never, 0.0)).drifted);
    assert!(measured(3.0, on_record(never, 0.0)).drifted);
    assert!(measured(never, on_record(3.0, 1.0)).drifted);
}

/// A finding quotes the measured values, not values written by hand.
#[test]
fn findings_hold_the_values_measured() {
    let claim = |id: &str, finding: &str, value: f64| {
        let claim = Claim {
            id: id.to_string(),
            says: id.to_string(),
            finding: Some(finding.to_string()),
            at_least: Some(0.0),
            ..claim(Measure::CompletionTime, "a")
        };
        outcome_of(&claim, Ok(value))
    };
    let sim = [claim("A1", "{value}, not {A2}.", 24.0), claim("A2", "{value}", f64::INFINITY)];
    let mut claims = sim.to_vec();
    fill_findings(&mut claims, &sim);
    assert_eq!(claims[0].finding.as_deref(), Some("24 s, not never."));
    // On another ground, it is still the simulator's value.
    let mut elsewhere = [claim("A1", "{value}", 9.0)];
    fill_findings(&mut elsewhere, &sim);
    assert_eq!(elsewhere[0].finding.as_deref(), Some("24 s"));
}
