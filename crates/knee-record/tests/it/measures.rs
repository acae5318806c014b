//! Tests measures against values calculated by hand.

use crate::common::{
    Flow, MILLISECOND, SECOND, change, claim, close, flow, rates, records, with_link,
};
use knee_record::{
    FlowSample, LinkSample, Outcome, Records, RunView, Window, evaluate, jain_index, measure,
};
use knee_scenario::{Claim, Measure, Statistic};
use knee_units::Time;
use proptest::prelude::*;

/// 10 Mbit/s.
const FULL: f64 = 1_250_000.0;

fn value(records: &Records, what: &Measure, target: &str) -> f64 {
    value_in(records, what, target, Window::default())
}

fn value_in(records: &Records, what: &Measure, target: &str, window: Window) -> f64 {
    measure(&RunView::new(records, Time::ZERO), what, target, window).unwrap()
}

fn warm(records: &Records, what: &Measure, target: &str, warmup: Time) -> f64 {
    measure(&RunView::new(records, warmup), what, target, Window::default()).unwrap()
}

fn reason(records: &Records, what: &Measure, target: &str) -> String {
    let view = RunView::new(records, Time::ZERO);
    measure(&view, what, target, Window::default()).unwrap_err().to_string()
}

fn seconds(from: f64, until: f64) -> Window {
    Window { from: Some(Time::from_secs_f64(from)), until: Some(Time::from_secs_f64(until)) }
}

#[test]
fn goodput_of_a_constant_rate_is_that_rate_in_any_window() {
    let records = records(&[flow("a", 0, |t| FULL * t)]);
    close(value(&records, &Measure::Goodput, "a"), 10e6);
    close(value_in(&records, &Measure::Goodput, "a[0]", seconds(1.234, 5.678)), 10e6);
    close(value_in(&records, &Measure::Goodput, "a", seconds(0.01, 0.02)), 10e6);
}

#[test]
fn warm_up_is_left_out() {
    let slow_start = |t: f64| FULL * (t - 2.0).max(0.0);
    let records = records(&[flow("a", 0, slow_start)]);
    close(value(&records, &Measure::Goodput, "a"), 8e6);
    close(warm(&records, &Measure::Goodput, "a", Time::from_secs(2)), 10e6);
    // A window that begins before the end of the warm-up does not include it.
    let view = RunView::new(&records, Time::from_secs(2));
    close(measure(&view, &Measure::Goodput, "a", seconds(0.0, 10.0)).unwrap(), 10e6);
}

/// Two flows, one after the other, each at full rate for 5 s.
#[test]
fn goodput_of_a_group_is_taken_from_first_to_last() {
    let first = Flow { name: "a", index: 0, start_s: 0.0, end_s: 5.0, delivered: |t| FULL * t };
    let second = Flow { index: 1, start_s: 5.0, end_s: 10.0, ..first };
    let records = records(&[first, second]);
    close(value(&records, &Measure::Goodput, "a"), 10e6);
    close(value(&records, &Measure::Goodput, "*"), 10e6);
    close(value(&records, &Measure::Goodput, "a[1]"), 10e6);
    assert!(reason(&records, &Measure::Goodput, "a[2]").contains("a[2]"));
}

#[test]
fn throughput_counts_headers_and_retransmissions() {
    let mut records = records(&[flow("a", 0, |t| FULL * t)]);
    records.flows[0].sent_bytes *= 2;
    change(&mut records.samples, |row| {
        row.sent_bytes *= 2;
    });
    close(value(&records, &Measure::Throughput, "a"), 20e6 * 1500.0 / 1448.0);
}

#[test]
fn share_of_one_to_three() {
    let records = records(&[flow("a", 0, |t| FULL * t / 4.0), flow("b", 0, |t| FULL * t * 0.75)]);
    close(value(&records, &Measure::Share, "a"), 0.25);
    close(value(&records, &Measure::Share, "*"), 1.0);
}

/// RTT of 70, 80 … 160 ms within each second, with a base RTT of 60 ms.
fn sawtooth() -> Records {
    let mut records = records(&[flow("a", 0, |t| FULL * t)]);
    change(&mut records.samples, |row| {
        let step = (row.time_ns / (100 * MILLISECOND) - 1) % 10 + 1;
        row.rtt_ns = (60 + 10 * step) * MILLISECOND;
        row.srtt_ns = row.rtt_ns + MILLISECOND;
        row.min_rtt_estimate_ns = 61 * MILLISECOND;
        row.bandwidth_estimate_bps = step * 1_000_000;
    });
    with_link(records, |t| {
        let step = ((t * 10.0).round() as u64 - 1) % 10 + 1;
        LinkSample { queue_delay_ns: 10 * step * MILLISECOND, ..LinkSample::default() }
    })
}

/// Window of 10, 20 … 100 kB within each second, half of it in flight; a threshold only in the
/// second half of the ten seconds, and only that half counts.
#[test]
fn windows_of_a_sawtooth() {
    let mut records = sawtooth();
    let none = |measure: &Measure| reason(&records, measure, "a");
    assert!(none(&Measure::CongestionWindow(Statistic::P50)).contains("no congestion window"));
    assert!(none(&Measure::SlowStartThreshold(Statistic::P50)).contains("no slow-start threshold"));
    change(&mut records.samples, |row| {
        row.window_bytes = row.bandwidth_estimate_bps / 100;
        row.in_flight_bytes = row.window_bytes / 2;
        row.slow_start_threshold_bytes = if row.time_ns > 5 * SECOND { 50_000 } else { 0 };
    });
    let bytes = |measure: Measure| value(&records, &measure, "a");
    close(bytes(Measure::CongestionWindow(Statistic::P50)), 50_000.0);
    close(bytes(Measure::CongestionWindow(Statistic::Mean)), 55_000.0);
    close(bytes(Measure::InFlight(Statistic::Max)), 50_000.0);
    close(bytes(Measure::InFlight(Statistic::Mean)), 27_500.0);
    close(bytes(Measure::SlowStartThreshold(Statistic::Min)), 50_000.0);
}

#[test]
fn delays_of_a_sawtooth() {
    let records = sawtooth();
    let rtt = |statistic| value(&records, &Measure::Rtt(statistic), "a");
    close(rtt(Statistic::P5), 0.070);
    close(rtt(Statistic::P50), 0.110);
    close(rtt(Statistic::P95), 0.160);
    close(rtt(Statistic::Mean), 0.115);
    close(value(&records, &Measure::SmoothedRtt(Statistic::P50), "a"), 0.111);
    close(value(&records, &Measure::MinRttEstimate(Statistic::Max), "a"), 0.061);
    close(value(&records, &Measure::BandwidthEstimate(Statistic::P95), "a"), 10e6);
    for target in ["a", "bottleneck"] {
        close(value(&records, &Measure::QueueingDelay(Statistic::P50), target), 0.050);
        close(value(&records, &Measure::QueueingDelay(Statistic::Mean), target), 0.055);
        close(value(&records, &Measure::StandingQueue, target), 0.010);
    }
}

/// For a whole life, extremes come from every RTT; for a part, from the samples.
#[test]
fn extremes_come_from_the_flow_record_when_it_covers_them() {
    let records = sawtooth();
    let (least, most) = (Measure::Rtt(Statistic::Min), Measure::Rtt(Statistic::Max));
    close(value(&records, &least, "a"), 0.060);
    close(value(&records, &most, "a"), 0.200);
    close(value_in(&records, &least, "a", seconds(2.0, 4.0)), 0.070);
    close(value_in(&records, &most, "a", seconds(2.0, 4.0)), 0.160);
    close(value(&records, &Measure::QueueingDelay(Statistic::Max), "a"), 0.140);
}

/// 100 bytes in the first second with 10 of them retransmitted, then 900 with 9.
#[test]
fn retransmissions_of_the_start_apart() {
    let sent = |t: f64| 100.0 * t.min(1.0) + 100.0 * (t - 1.0).max(0.0);
    let again = |t: f64| 10.0 * t.min(1.0) + (t - 1.0).max(0.0);
    let mut records = records(&[flow("a", 0, sent)]);
    records.flows[0].retransmitted_bytes = again(10.0) as u64;
    change(&mut records.samples, |row| {
        row.retransmitted_bytes = again(row.time_ns as f64 / 1e9) as u64;
    });
    let second = Time::from_secs(1);
    close(warm(&records, &Measure::RetransmitRatioStartup, "a", second), 0.10);
    close(warm(&records, &Measure::RetransmitRatio, "a", second), 0.01);
    close(warm(&records, &Measure::RetransmitRatioTotal, "a", second), 0.019);
    assert!(reason(&records, &Measure::RetransmitRatioStartup, "a").contains("warm-up"));
}

#[test]
fn link_counters_in_a_window() {
    let records = records(&[flow("a", 0, |t| FULL * t)]);
    let records = with_link(records, |t| LinkSample {
        used_bytes: (FULL * t * 0.9) as u64,
        capacity_bytes: (FULL * t) as u64,
        dropped_packets: (t * 10.0).round() as u64,
        ..LinkSample::default()
    });
    close(value(&records, &Measure::Utilisation, "bottleneck"), 0.9);
    close(value_in(&records, &Measure::Utilisation, "bottleneck", seconds(3.05, 7.77)), 0.9);
    close(value(&records, &Measure::Drops, "bottleneck"), 100.0);
    close(value_in(&records, &Measure::Drops, "bottleneck", seconds(2.0, 5.0)), 30.0);
    assert!(reason(&records, &Measure::Drops, "a").contains("no link"));
    assert!(reason(&records, &Measure::Goodput, "bottleneck").contains("no flow"));
}

#[test]
fn jain_of_known_shares() {
    assert_eq!(jain_index(&[1.0, 1.0]), Some(1.0));
    assert_eq!(jain_index(&[1.0, 0.0]), Some(0.5));
    close(jain_index(&[1.0, 2.0, 3.0]).unwrap(), 36.0 / 42.0);
    assert_eq!(jain_index(&[0.0, 0.0]), None);
    let records = records(&[flow("a", 0, |t| 1000.0 * t), flow("a", 1, |t| 3000.0 * t)]);
    close(value(&records, &Measure::Jain, "a"), 16.0 / 20.0);
}

/// Shares of 3 to 1 until 5 s, equal afterwards. A one-second interval that begins at t < 5 s
/// deviates from the mean by 50 % times (5 s - t).
#[test]
fn convergence_of_a_sudden_change() {
    let records = records(&[
        flow("a", 0, |t| 3000.0 * t.min(5.0) + 2000.0 * (t - 5.0).max(0.0)),
        flow("a", 1, |t| 1000.0 * t.min(5.0) + 2000.0 * (t - 5.0).max(0.0)),
    ]);
    let within = |band| Measure::ConvergenceTime { band, hold: Time::from_secs(2) };
    close(value(&records, &within(0.25), "a"), 4.5);
    close(value(&records, &within(0.01), "a"), 5.0);
    close(value(&records, &within(0.60), "a") + 1.0, 1.0);
    let before = value_in(&records, &within(0.25), "a", seconds(0.0, 5.0));
    assert_eq!(before, f64::INFINITY);
    let too_long = Measure::ConvergenceTime { band: 0.25, hold: Time::from_secs(6) };
    assert_eq!(value(&records, &too_long, "a"), f64::INFINITY);
}

/// The second flow starts at 4 s and has its share immediately.
#[test]
fn convergence_counts_from_the_last_start() {
    let late = Flow { start_s: 4.0, ..flow("a", 1, |t| 2000.0 * t) };
    let records = records(&[flow("a", 0, |t| 2000.0 * t), late]);
    let measure = Measure::ConvergenceTime { band: 0.1, hold: Time::from_secs(1) };
    assert_eq!(value(&records, &measure, "a"), 0.0);
}

/// Half the path's rate until 5 s; then the goodput rises to the full rate within one second. The
/// 200 ms that begin t after 5 s average 0.5 + 0.5 (t + 100 ms), so 89 % is exceeded from t = 700
/// ms on.
#[test]
fn takeover_of_a_ramp() {
    let ramp = |t: f64| {
        let payload = FULL * 1448.0 / 1500.0;
        let climbing = (t - 5.0).clamp(0.0, 1.0);
        payload
            * (0.5 * t.min(5.0) + 0.5 * climbing + 0.25 * climbing * climbing + (t - 6.0).max(0.0))
    };
    let records = records(&[flow("a", 0, ramp)]);
    let takeover = Measure::TakeoverTime { fraction: 0.89, hold: Time::from_millis(200) };
    close(value_in(&records, &takeover, "a", seconds(5.0, 10.0)), 0.9);
    close(value_in(&records, &takeover, "a", seconds(7.0, 10.0)), 0.2);
    assert_eq!(value_in(&records, &takeover, "a", seconds(1.0, 5.0)), f64::INFINITY);
    assert!(reason(&records, &takeover, "a").contains("from"));
}

/// Whether something would still have happened is unknown only if the interruption ended the time
/// looked at.
#[test]
fn an_interruption_is_not_never() {
    let whole = records(&[flow("a", 0, |t| 3000.0 * t), flow("a", 1, |t| 1000.0 * t)]);
    let cut = Records { interrupted: true, ..whole.clone() };
    let convergence = Measure::ConvergenceTime { band: 0.1, hold: Time::from_secs(1) };
    let takeover = Measure::TakeoverTime { fraction: 0.9, hold: Time::from_secs(1) };
    for measure in [&convergence, &takeover] {
        assert_eq!(value_in(&whole, measure, "a", seconds(1.0, 100.0)), f64::INFINITY);
        assert_eq!(value_in(&cut, measure, "a", seconds(1.0, 5.0)), f64::INFINITY);
        let from = Claim { at_most: Some(60.0), ..claim(measure.clone(), "a") };
        let from = Claim { from: Some(Time::from_secs(1)), ..from };
        let outcome = |records: &Records| evaluate(&from, &RunView::new(records, Time::ZERO));
        assert_eq!(outcome(&whole).outcome, Outcome::Fails);
        assert_eq!(outcome(&cut).outcome, Outcome::NotTestedHere, "{measure:?}");
    }
    // What did happen counts.
    let fair = records(&[flow("a", 0, |t| 1000.0 * t), flow("a", 1, |t| 1000.0 * t)]);
    let fair = Records { interrupted: true, ..fair };
    assert_eq!(value(&fair, &convergence, "a"), 0.0);
}

#[test]
fn completion_time_is_the_mean_and_a_cut_off_transfer_never_completes() {
    let mut records = records(&[flow("a", 0, |t| 1000.0 * t), flow("a", 1, |t| 1000.0 * t)]);
    assert!(reason(&records, &Measure::CompletionTime, "a").contains("without an end"));
    records.flows[0].size_bytes = 10_000;
    records.flows[1].size_bytes = 10_000;
    records.flows[0].completion_ns = Some(2 * SECOND);
    assert_eq!(value(&records, &Measure::CompletionTime, "a"), f64::INFINITY);
    records.flows[1].completion_ns = Some(4 * SECOND);
    close(value(&records, &Measure::CompletionTime, "a"), 3.0);
}

/// The full rate at the base RTT is the knee; the full rate at twice the RTT has half the power.
#[test]
fn power_is_one_at_the_knee() {
    let mut records = records(&[flow("a", 0, |t| FULL * 1448.0 / 1500.0 * t)]);
    close(value(&records, &Measure::Power, "a"), 1.0);
    change(&mut records.samples, |row| {
        row.rtt_ns *= 2;
    });
    close(value(&records, &Measure::Power, "a"), 0.5);
    // Small packets that return sooner than full segments.
    change(&mut records.samples, |row| {
        row.rtt_ns /= 4;
    });
    close(value(&records, &Measure::Power, "a"), 1.0);
    records.rates = rates(&["delay = \"1 ms\""], &[&[0]]);
    assert!(reason(&records, &Measure::Power, "a").contains("no rate"));
}

/// One second of start-up, then repeatedly one sample of probe_bw_up and four of cruise.
#[test]
fn phases_are_counted_and_timed() {
    let mut records = records(&[flow("a", 0, |t| FULL * t)]);
    let mut steps = 0..;
    change(&mut records.samples, |row| {
        row.phase = match steps.next() {
            Some(0..10) => "startup",
            Some(step) if step % 5 == 0 => "probe_bw_up",
            _ => "probe_bw_cruise",
        };
    });
    let entries = |phase: &str| value(&records, &Measure::PhaseEntries(phase.to_string()), "a");
    assert_eq!(entries("startup"), 1.0);
    assert_eq!(entries("probe_bw_up"), 18.0);
    assert_eq!(entries("drain"), 0.0);
    let share = |prefix: &str| value(&records, &Measure::PhaseShare(prefix.to_string()), "a");
    close(share("probe_bw"), 0.9);
    close(share("probe_bw_up"), 0.18);
    // A controller that shows no phases has no count, not a count of zero.
    change(&mut records.samples, |row| row.phase = "");
    let measures = [Measure::PhaseEntries("drain".into()), Measure::PhaseShare("drain".into())];
    for measure in measures {
        assert!(reason(&records, &measure, "a").contains("shows no phases"));
    }
}

/// Two stays in drain, of 0.5 s and 0.3 s (the first of which leads to probe_bw_cruise), and a
/// third that has not ended. The estimates are 8 Mbit/s and 40 ms, a BDP of 40 kB; in drain the
/// pacing rate is 4 Mbit/s, the window 60 kB, and 30 and 50 kB are in flight at its end.
#[test]
fn stays_in_a_phase_are_measured() {
    let mut records = records(&[flow("a", 0, |t| FULL * t)]);
    let mut steps = 0..;
    change(&mut records.samples, |row| {
        let step = steps.next().unwrap();
        row.phase = match step {
            0..10 => "startup",
            10..15 | 40..43 | 95.. => "drain",
            15..40 => "probe_bw_cruise",
            _ => "probe_rtt",
        };
        let is_drain = row.phase == "drain";
        row.bandwidth_estimate_bps = 8_000_000;
        row.min_rtt_estimate_ns = if step < 2 { 0 } else { 40_000_000 };
        row.pacing_rate_bps = if is_drain { 4_000_000 } else { 8_000_000 };
        row.window_bytes = if is_drain { 60_000 } else { 80_000 };
        row.in_flight_bytes = if step == 14 { 30_000 } else { 50_000 };
    });
    let of = |measure: fn(String) -> Measure, phase: &str| {
        value(&records, &measure(phase.to_string()), "a")
    };
    close(of(Measure::PhaseDuration, "drain"), 0.4);
    close(of(Measure::PhaseDuration, "probe"), (2.5 + 5.2) / 2.0);
    close(of(Measure::PacingGain, "drain"), 0.5);
    close(of(Measure::WindowGain, "drain"), 1.5);
    close(of(Measure::PhaseEndInFlight, "drain"), 1.0);
    let followed = |next: &str| {
        let (phase, next) = ("drain".to_string(), next.to_string());
        value(&records, &Measure::PhaseFollowedBy { phase, next }, "a")
    };
    close(followed("probe_bw"), 0.5);
    close(followed("probe"), 1.0);
    close(followed("startup"), 0.0);
    // None of these ended, or none was there.
    let late = Measure::PhaseDuration("other".to_string());
    assert!(reason(&records, &late, "a").contains("left no phase other"));
    // Without estimates there is no gain.
    change(&mut records.samples, |row| row.bandwidth_estimate_bps = 0);
    for measure in [Measure::PacingGain, Measure::WindowGain] {
        let why = reason(&records, &measure("drain".to_string()), "a");
        assert!(why.contains("no such value"), "{why}");
    }
}

#[test]
fn a_flow_without_samples_is_measured_whole_or_not_at_all() {
    let mut records = records(&[flow("a", 0, |t| FULL * t)]);
    records.samples.clear();
    close(value(&records, &Measure::Goodput, "a"), 10e6);
    let view = RunView::new(&records, Time::from_secs(1));
    let part = measure(&view, &Measure::Goodput, "a", Window::default());
    assert!(part.unwrap_err().to_string().contains("no samples"));
    assert!(reason(&records, &Measure::Rtt(Statistic::P50), "a").contains("no RTT"));
}

/// A sender that does not tell its RTT has none; its queueing delay and power are those of the path.
/// Of one that does, what the path says changes nothing.
#[test]
fn the_path_tells_the_delay_of_a_sender_that_does_not() {
    let mut silent = records(&[flow("a", 0, |t| FULL * t)]);
    change(&mut silent.samples, |row| {
        (row.rtt_ns, row.srtt_ns, row.path_rtt_ns) = (0, 0, 75 * MILLISECOND);
    });
    (silent.flows[0].rtt_min_ns, silent.flows[0].rtt_max_ns) = (0, 0);
    close(value(&silent, &Measure::PathRtt(Statistic::P95), "a"), 0.075);
    assert!(reason(&silent, &Measure::Rtt(Statistic::P50), "a").contains("no RTT"));
    close(value(&silent, &Measure::QueueingDelay(Statistic::P50), "a"), 0.015);
    close(value(&silent, &Measure::StandingQueue, "a"), 0.015);
    let mut telling = records(&[flow("a", 0, |t| FULL * t)]);
    change(&mut telling.samples, |row| row.path_rtt_ns = 75 * MILLISECOND);
    close(value(&telling, &Measure::QueueingDelay(Statistic::P50), "a"), 0.0);
    let [slow, quick] = [&silent, &telling].map(|records| value(records, &Measure::Power, "a"));
    close(slow / quick, 60.0 / 75.0);
    let without = records(&[flow("a", 0, |t| FULL * t)]);
    assert!(reason(&without, &Measure::PathRtt(Statistic::P50), "a").contains("no path RTT"));
}

/// A transfer that ends between two samples: the next sample covers its last part.
#[test]
fn a_short_flow_is_measured_by_the_sample_after_its_end() {
    let mut records = records(&[flow("a", 0, |t| 1000.0 * t)]);
    records.flows[0].end_ns = 130 * MILLISECOND;
    let first = records.samples.iter().zip([61, 65, 99]);
    records.samples =
        first.map(|(row, rtt)| FlowSample { rtt_ns: rtt * MILLISECOND, ..row }).collect();
    let mean = value(&records, &Measure::Rtt(Statistic::Mean), "a");
    close(mean, (0.061 * 100.0 + 0.065 * 30.0) / 130.0);
    close(value(&records, &Measure::Rtt(Statistic::P99), "a"), 0.065);
}

#[test]
fn a_window_beside_the_flow_measures_nothing() {
    let records = records(&[flow("a", 0, |t| FULL * t)]);
    let view = RunView::new(&records, Time::ZERO);
    let beside = measure(&view, &Measure::Goodput, "a", seconds(10.0, 12.0));
    assert!(beside.unwrap_err().to_string().contains("not active"));
}

proptest! {
    #[test]
    fn jain_lies_between_one_nth_and_one(rates in prop::collection::vec(0.0..1e10, 1..40)) {
        let least = 1.0 / rates.len() as f64;
        if let Some(index) = jain_index(&rates) {
            prop_assert!((least - 1e-12..=1.0).contains(&index));
        }
    }

    /// The bytes delivered in adjacent windows add up.
    #[test]
    fn windows_add_up(cut_a in 0.01..4.9_f64, cut_b in 5.0..9.9_f64) {
        let records = records(&[flow("a", 0, |t| 20_000.0 * t * t)]);
        let bytes = |from: f64, until: f64| {
            value_in(&records, &Measure::Goodput, "a", seconds(from, until)) * (until - from)
        };
        let parts = bytes(0.0, cut_a) + bytes(cut_a, cut_b) + bytes(cut_b, 10.0);
        prop_assert!((parts - bytes(0.0, 10.0)).abs() < 1.0);
    }
}
