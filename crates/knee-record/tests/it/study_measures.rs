//! Tests measures that studies introduced, and conclusions, against values calculated by hand.

use crate::common::{
    Flow, MILLISECOND, SECOND, change, claim, close, flow, object, records, transfer, with_link,
};
use knee_record::{
    ClaimOutcome, FlowRecord, FlowSample, LinkSample, NamedRun, Outcome, Records, RunView, Unit,
    Window, evaluate_in_study, fill_conclusion, measure,
};
use knee_scenario::{Claim, Measure, SizeRange};
use knee_units::Time;

fn value(records: &Records, what: &Measure) -> Result<f64, String> {
    let view = RunView::new(records, Time::ZERO);
    measure(&view, what, "a", Window::default()).map_err(|error| error.to_string())
}

/// 10 Mbit/s delivered and a quarter more sent: four of five bytes are useful, so the effective
/// goodput is four fifths of the goodput.
#[test]
fn each_byte_sent_has_its_price() {
    let mut records = records(&[flow("a", 0, |t| 1_250_000.0 * t)]);
    records.flows[0].sent_bytes = records.flows[0].sent_bytes / 4 * 5;
    change(&mut records.samples, |row| {
        row.sent_bytes = row.sent_bytes / 4 * 5;
    });
    close(value(&records, &Measure::UsefulRatio).unwrap(), 0.8);
    close(value(&records, &Measure::EffectiveGoodput).unwrap(), 8e6);
}

/// 20 intervals of five minutes at 1000 payload bytes per second, the first one or two of them at
/// ten times as much: the most expensive one in twenty is free. The last, begun interval does not
/// count.
#[test]
fn the_95th_percentile_of_five_minutes_is_billed() {
    let billed = |delivered: fn(f64) -> f64, end_s: f64| {
        let records = records(&[Flow { end_s, ..flow("a", 0, delivered) }]);
        value(&records, &Measure::BilledRate)
    };
    let payload = |rate: f64| rate * 1448.0 / 1500.0 / 8.0;
    let once: fn(f64) -> f64 = |t| 1000.0 * (t + 9.0 * t.min(300.0));
    let twice: fn(f64) -> f64 = |t| 1000.0 * (t + 9.0 * t.min(600.0));
    close(payload(billed(once, 6200.0).unwrap()), 1000.0);
    close(payload(billed(twice, 6200.0).unwrap()), 10_000.0);
    assert!(billed(once, 299.0).unwrap_err().contains("five minutes"));
}

#[test]
fn no_more_is_useful_than_was_sent() {
    let mut records = records(&[flow("a", 0, |t| 1_250_000.0 * t)]);
    // Data in flight at the start of the span is delivered within it.
    records.flows[0].sent_bytes /= 2;
    change(&mut records.samples, |row| row.sent_bytes /= 2);
    close(value(&records, &Measure::UsefulRatio).unwrap(), 1.0);
}

/// 1000 packets delivered and 200 retransmitted, of which the link dropped 120 and lost 30 at
/// random: a quarter was lost elsewhere.
#[test]
fn what_no_link_lost_was_lost_elsewhere() {
    let run = |again: u64, dropped: f64| {
        let mut records = records(&[flow("a", 0, |t| 144_800.0 * t)]);
        records.flows[0].retransmitted_bytes = again * 1448;
        with_link(records, |t| LinkSample {
            dropped_packets: (dropped * t) as u64,
            lost_packets: (3.0 * t) as u64,
            ..LinkSample::default()
        })
    };
    close(value(&run(200, 12.0), &Measure::LostElsewhere).unwrap(), 0.25);
    // Lost ACKs are not retransmitted.
    close(value(&run(200, 30.0), &Measure::LostElsewhere).unwrap(), 0.0);
    let nothing = value(&run(0, 12.0), &Measure::LostElsewhere).unwrap_err();
    assert!(nothing.contains("nothing was retransmitted"), "{nothing}");
    let mut unknown = run(200, 12.0);
    (unknown.links, unknown.link_names) = Default::default();
    let unknown = value(&unknown, &Measure::LostElsewhere).unwrap_err();
    assert!(unknown.contains("links of the path are not known"), "{unknown}");
    let flows = [flow("a", 0, |t| t), flow("b", 0, |t| t)];
    let two = value(&records(&flows), &Measure::LostElsewhere).unwrap_err();
    assert!(two.contains("ask for all"), "{two}");
}

/// One round of 100 ms per sample: the data in flight at one sample is acknowledged at the next.
/// `estimates` are those at the ends of the rounds, in kbit/s.
fn startup(estimates: &[u64]) -> Records {
    let mut records = records(&[Flow { end_s: 10.0, ..flow("a", 0, |t| t) }]);
    let (mut sent, mut samples) = (1000, Vec::new());
    for (round, estimate) in std::iter::once(&0).chain(estimates).enumerate() {
        samples.push(FlowSample {
            time_ns: (round as u64 + 1) * 100 * MILLISECOND,
            sent_bytes: sent,
            in_flight_bytes: 1000,
            bandwidth_estimate_bps: estimate * 1000,
            phase: if round < estimates.len() { "startup" } else { "drain" },
            ..FlowSample::default()
        });
        sent += 1001;
    }
    records.samples = samples.into_iter().collect();
    records
}

/// Doubling from 100 to 800, then 1100: the last round that grew is the one in which the path
/// filled.
#[test]
fn startup_doubles_and_then_waits_for_three_rounds() {
    let records = startup(&[100, 200, 400, 800, 1100, 1200, 1200, 1210]);
    close(value(&records, &Measure::StartupGrowth).unwrap(), 2.0);
    close(value(&records, &Measure::StartupFlatRounds).unwrap(), 3.0);
}

/// Growth in small steps is measured from the last estimate that grew by 25 %.
#[test]
fn two_small_steps_can_be_one_large_one() {
    let records = startup(&[100, 200, 240, 260, 270]);
    close(value(&records, &Measure::StartupFlatRounds).unwrap(), 1.0);
}

#[test]
fn without_startup_there_are_no_rounds() {
    let mut records = startup(&[100, 200, 400]);
    records.samples =
        records.samples.iter().map(|row| FlowSample { phase: "probe_bw", ..row }).collect();
    let said = value(&records, &Measure::StartupGrowth).unwrap_err();
    assert!(said.contains("too few rounds of STARTUP"), "{said}");
}

/// Transfers of 1 MB take 1, 2 and 4 s, one of 3 kB takes 9 s.
#[test]
fn jitter_is_the_mean_step() {
    let mut records = records(&[flow("a", 0, |t| t)]);
    let sizes = [1_000_000, 1_000_000, 3000, 1_000_000];
    for (number, (seconds, size_bytes)) in [1, 2, 9, 4].into_iter().zip(sizes).enumerate() {
        let took = Some(seconds * SECOND);
        records.transfers.push(transfer(number as u32, size_bytes, 1000 * number as u64, took));
    }
    let large = SizeRange { at_least: 1_000_000, below: None };
    close(value(&records, &Measure::CompletionJitter(large)).unwrap(), 1.5);
    let small = SizeRange { at_least: 0, below: Some(10_000) };
    assert!(value(&records, &Measure::CompletionJitter(small)).unwrap_err().contains("two"));
}

/// A page whose objects arrive at these times after its start at `start_s`.
fn page(start_s: u64, arrivals: &[Option<u64>]) -> Records {
    let mut records = records(&[flow("a", 0, |t| t)]);
    records.flows = vec![FlowRecord { start_ns: start_s * SECOND, ..records.flows.remove(0) }];
    for (number, at) in arrivals.iter().enumerate() {
        records.objects.push(object(number as u32, at.map(|at| 1000 * (start_s + at))));
    }
    records
}

fn earlier(test: &Records, control: &Records) -> ClaimOutcome {
    compared(Measure::ObjectsEarlier, test, control)
}

fn compared(measure: Measure, test: &Records, control: &Records) -> ClaimOutcome {
    let views = [test, control].map(|records| RunView::new(records, Time::ZERO));
    let runs = [("test", &views[0]), ("control", &views[1])];
    let runs = runs.map(|(name, view)| NamedRun { name, view });
    let claim = Claim {
        relative_to: Some("control/a".to_string()),
        at_least: Some(0.9),
        ..claim(measure, "test/a")
    };
    evaluate_in_study(&claim, &runs)
}

/// One object earlier, one later, a tie, and one that arrived only in the test: 2.5 of 4, each
/// counted from its page's own start.
#[test]
fn objects_are_compared_with_their_own_on_the_other_side() {
    let test = page(0, &[Some(1), Some(5), Some(3), Some(9)]);
    let control = page(1, &[Some(2), Some(4), Some(3), None]);
    let outcome = earlier(&test, &control);
    assert_eq!(outcome.measured, Some(0.625));
    assert_eq!((outcome.unit, outcome.outcome), (Unit::Fraction, Outcome::Fails));
    close(earlier(&control, &test).measured.unwrap(), 0.375);
}

/// In order of arrival: 1, 3, 5 and 9 s against 2, 3, 4 s and never. One rank is earlier, one a tie,
/// one later, and the last one earlier, whichever objects these are.
#[test]
fn by_rank_the_order_of_arrival_is_compared() {
    let test = page(0, &[Some(9), Some(5), Some(3), Some(1)]);
    let control = page(1, &[Some(2), Some(4), Some(3), None]);
    let by_rank = |one, other| compared(Measure::ObjectsEarlierByRank, one, other).measured;
    close(by_rank(&test, &control).unwrap(), 0.625);
    close(by_rank(&control, &test).unwrap(), 0.375);
    assert_eq!(by_rank(&test, &test), Some(0.5));
}

#[test]
fn equal_pages_give_a_half_and_unlike_ones_nothing() {
    let all = page(0, &[Some(1), Some(2)]);
    assert_eq!(earlier(&all, &all).measured, Some(0.5));
    let less = page(0, &[Some(1)]);
    let outcome = earlier(&all, &less);
    assert_eq!(outcome.outcome, Outcome::NotTestedHere);
    assert!(outcome.measured_text.contains("one side only"), "{}", outcome.measured_text);
}

/// Values, outcomes, counts and ids come from the claims; unknown placeholders are left alone.
#[test]
fn a_conclusion_is_filled_from_the_claims() {
    let claim = |id: &str, outcome| ClaimOutcome {
        id: id.to_string(),
        outcome,
        ..earlier(&page(0, &[Some(1)]), &page(0, &[Some(2)]))
    };
    let claims = [
        claim("A1", Outcome::Holds),
        claim("A2", Outcome::Fails),
        claim("A3", Outcome::Fails),
        claim("A4", Outcome::Uncertain),
    ];
    let filled = |text: &str| fill_conclusion(text, &claims);
    assert_eq!(
        filled("{claims}: {holds}, {fails}, {uncertain}, {untested}; {holding}; {failing}"),
        "4: 1, 2, 1, 0; A1; A2, A3"
    );
    assert_eq!(filled("{A2} {A2.outcome}, {A1.outcome}"), "100 % fails, holds");
    assert_eq!(filled("{A9} stays"), "{A9} stays");
    assert_eq!(fill_conclusion("{failing}", &claims[..1]), "none");
}
