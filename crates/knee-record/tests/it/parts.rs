//! Tests the summary of flows over several paths, pages, videos and mixes against values calculated
//! by hand.

use crate::common::{
    Flow, MILLISECOND, SECOND, claim, close, flow, object, rates, records, transfer,
};
use knee_record::{
    FlowRecord, FlowSample, FlowSummary, ObjectRecord, Outcome, PathRecord, Records, RunView,
    Summary, TransferRecord, Window, evaluate, measure,
};
use knee_scenario::{Claim, Measure, Scenario, SizeRange, Statistic};
use knee_units::Time;
use std::sync::atomic::Ordering;

fn summary(records: &Records, warmup: Time) -> Summary {
    Summary::new(&Scenario { warmup, ..Scenario::default() }, "sim", records)
}

fn first(records: &Records) -> FlowSummary {
    summary(records, Time::ZERO).flows.remove(0)
}

/// Measures all flows, as a claim would.
fn value(records: &Records, what: Measure) -> Option<f64> {
    measure(&RunView::new(records, Time::ZERO), &what, "*", Window::default()).ok()
}

fn path(path: u16, name: &str, megabits: u64, delay_ms: u64, delivered_bytes: u64) -> PathRecord {
    PathRecord {
        path,
        name: name.to_string(),
        rate_bps: megabits * 1_000_000,
        one_way_delay_ns: delay_ms * MILLISECOND,
        delivered_bytes,
        ..PathRecord::default()
    }
}

const WIFI: &str = "rate = \"10 Mbit/s\"\ndelay = \"5 ms\"";
const LTE: &str = "rate = \"1 Mbit/s\"\ndelay = \"100 ms\"";

/// A file of 1 MB over 10 Mbit/s with 5 ms and 1 Mbit/s with 100 ms, finished after 1 s. There are
/// no headers, so the figures are those of the bound's example.
fn two_paths() -> Records {
    let file = Flow { end_s: 1.0, ..flow("file", 0, |t| 1e6 * t) };
    let mut records = records(&[file]);
    let row = &mut records.flows[0];
    row.header_overhead = 1.0;
    row.size_bytes = 1_000_000;
    row.completion_ns = Some(SECOND);
    row.scheduler = "minrtt".to_string();
    row.head_of_line_ns = Some(7 * MILLISECOND);
    row.reassembly_peak_bytes = Some(64_000);
    row.duplicate_bytes = Some(20_000);
    records.rates = rates(&[WIFI, LTE], &[&[0, 1], &[0, 1]]);
    records.paths = vec![path(0, "wifi", 10, 5, 900_000), path(1, "lte", 1, 100, 100_000)];
    records
}

#[test]
fn a_file_against_the_bound() {
    let flow = first(&two_paths());
    close(flow.completion_over_bound, 11.0 / 8.15);
    close(flow.completion_over_best_path, 1.0 / 0.805);
    close(flow.aggregation_ratio, 8.0 / 11.0);
    close(flow.head_of_line_blocking_us, 7000.0);
    close(flow.duplicate_ratio, 0.02);
    assert_eq!(flow.receive_buffer_peak_bytes, Some(64_000));
    assert_eq!(flow.scheduler.as_deref(), Some("minrtt"));
    assert_eq!(flow.completion_over_perfect, None, "none was tried");
    let mut records = two_paths();
    records.flows[0].perfect_completion_ns = Some(800_000_000);
    close(first(&records).completion_over_perfect, 1.25);
    close(value(&records, Measure::CompletionOverPerfect), 1.25);
    close(value(&records, Measure::CompletionOverBound), 11.0 / 8.15);
    close(value(&records, Measure::AggregationRatio), 8.0 / 11.0);
    close(value(&records, Measure::HeadOfLineBlocking), 0.007);
    close(value(&records, Measure::ReceiveBufferPeak), 64_000.0);
    close(value(&records, Measure::DuplicateRatio), 0.02);
    close(value(&records, Measure::PathShare("lte".to_string())), 0.1);
    assert_eq!(value(&records, Measure::PathShare("dsl".to_string())), None);
}

/// 1 MB at 11 Mbit/s takes 8/11 s, so that the tail is 3/11 s. One path is noted to finish after
/// 1.2 s, when the file was complete; of the other only samples are known: all is there after 0.6
/// s.
#[test]
fn finishing_times_and_the_tail() {
    let finish =
        |records: &Records, name: &str| value(records, Measure::PathFinishTime(name.to_string()));
    let mut records = two_paths();
    records.paths[0].finished_ns = Some(1_200_000_000);
    let samples = (1..=10).map(|at| FlowSample {
        path: 1,
        time_ns: at * 100 * MILLISECOND,
        delivered_bytes: 100_000 * at.min(6) / 6,
        ..FlowSample::default()
    });
    records.path_samples.extend(samples);
    close(finish(&records, "wifi"), 1.0);
    close(finish(&records, "lte"), 0.6);
    assert_eq!(finish(&records, "dsl"), None);
    close(value(&records, Measure::FinishSpread), 0.4);
    close(value(&records, Measure::TailDelay), 3.0 / 11.0);
    let said = first(&records).paths.unwrap();
    close(said[1].finish_us, 600_000.0);
    records.paths[1].finished_ns = Some(250 * MILLISECOND);
    close(finish(&records, "lte"), 0.25);
    records.paths[0].delivered_bytes = 0;
    assert_eq!(finish(&records, "wifi"), None, "it carried nothing");
    close(value(&records, Measure::FinishSpread), 0.0);
    records.rates = rates(&["delay = \"5 ms\"", LTE], &[&[0, 1], &[0, 1]]);
    assert_eq!(value(&records, Measure::TailDelay), None, "a path without a rate");
}

/// Two flows over the same paths: waiting times and duplicates are weighted by bytes, the peak is
/// the larger one, and each path's rate counts once.
#[test]
fn a_group_over_several_paths() {
    let mut records = two_paths();
    let second = FlowRecord {
        flow: 1,
        index: 1,
        delivered_bytes: 250_000,
        head_of_line_ns: Some(2 * MILLISECOND),
        reassembly_peak_bytes: Some(10_000),
        duplicate_bytes: Some(0),
        completion_ns: None,
        ..records.flows[0].clone()
    };
    let paths = records.paths.clone();
    records.paths.extend(paths.into_iter().map(|path| PathRecord { flow: 1, ..path }));
    records.flows.push(second);
    close(value(&records, Measure::HeadOfLineBlocking), 0.006);
    close(value(&records, Measure::DuplicateRatio), 20.0 / 1250.0);
    close(value(&records, Measure::ReceiveBufferPeak), 64_000.0);
    assert_eq!(value(&records, Measure::CompletionOverBound), Some(f64::INFINITY));
    // Without samples, goodput is taken over the whole life: 1.25 MB in 1 s.
    records.samples.clear();
    close(value(&records, Measure::AggregationRatio), 10.0 / 11.0);
}

/// Linux's MPTCP and QUIC do not tell what their receivers count: no value is not zero, which would
/// meet any bound.
#[test]
fn what_a_ground_does_not_know_is_not_measured() {
    let measures =
        [Measure::HeadOfLineBlocking, Measure::ReceiveBufferPeak, Measure::DuplicateRatio];
    let mut records = two_paths();
    let row = &mut records.flows[0];
    (row.head_of_line_ns, row.reassembly_peak_bytes, row.duplicate_bytes) = (None, None, None);
    for measure in &measures {
        assert_eq!(value(&records, measure.clone()), None, "{measure:?}");
    }
    let flow = first(&records);
    assert_eq!((flow.head_of_line_blocking_us, flow.duplicate_ratio), (None, None));
    assert_eq!(flow.receive_buffer_peak_bytes, None);
    // Over one path, nothing waits for another.
    records.paths.clear();
    for measure in &measures {
        assert_eq!(value(&records, measure.clone()), Some(0.0), "{measure:?}");
    }
}

/// Headers of a quarter leave 8 and 0.8 Mbit/s for payload.
#[test]
fn the_bound_counts_payload() {
    let mut records = two_paths();
    records.flows[0].header_overhead = 1.25;
    let expected = (8.0 + 8.0 * 0.005 + 0.8 * 0.1) / 8.8;
    close(first(&records).completion_over_bound, 1.0 / expected);
}

#[test]
fn what_never_completes_is_over_no_bound() {
    let mut records = two_paths();
    records.flows[0].completion_ns = None;
    let flow = first(&records);
    assert_eq!((flow.completion_over_bound, flow.completion_over_best_path), (None, None));
    close(flow.aggregation_ratio, 8.0 / 11.0);
}

#[test]
fn a_flow_over_one_path_has_none_of_it() {
    let flow = first(&records(&[flow("plain", 0, |t| 1e6 * t)]));
    assert_eq!(flow.scheduler, None);
    assert_eq!(flow.paths, None);
    assert_eq!(flow.aggregation_ratio, None);
    assert_eq!(flow.head_of_line_blocking_us, None);
    assert_eq!(flow.receive_buffer_peak_bytes, None);
    assert!(flow.page.is_none() && flow.video.is_none() && flow.transfers.is_none());
}

/// 9 to 1 over the whole life. The slow path delivers all its bytes in the first half, so its share
/// is zero after a warm-up of that length.
#[test]
fn shares_of_paths_are_those_after_the_warm_up() {
    let mut records = two_paths();
    let sample = |path: u16, ms: u64, delivered_bytes: u64| FlowSample {
        path,
        time_ns: ms * MILLISECOND,
        delivered_bytes,
        ..FlowSample::default()
    };
    records.path_samples = [sample(0, 500, 400_000), sample(1, 500, 100_000)].into_iter().collect();
    let shares = |warmup| {
        let flow = summary(&records, warmup).flows.remove(0);
        flow.paths.unwrap().iter().map(|path| path.share.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(shares(Time::ZERO), [0.9, 0.1]);
    assert_eq!(shares(Time::from_millis(500)), [1.0, 0.0]);
    let numbers = summary(&records, Time::ZERO).numbers();
    assert!(numbers.contains(&("flow.file[0].paths.lte.share".to_string(), 0.1)));
    assert!(!numbers.iter().any(|(name, _)| name.ends_with("rate_bps")));
}

/// An application that starts at 2 s.
fn application(objects: Vec<ObjectRecord>) -> Records {
    let mut records = records(&[Flow { start_s: 2.0, ..flow("app", 0, |t| 1e5 * t) }]);
    records.objects = objects;
    records
}

/// An object that arrived `after_ms` after the application's start, if it did.
fn arrived(number: u32, after_ms: Option<u64>) -> ObjectRecord {
    object(number, after_ms.map(|at| 2000 + at))
}

#[test]
fn a_page_is_loaded_with_its_last_object() {
    let times = [Some(300), Some(900), Some(500), Some(700)];
    let objects = (0..).zip(times).map(|(number, time)| arrived(number, time));
    let mut records = application(objects.collect());
    let page = first(&records).page.unwrap();
    close(page.load_us, 900e3);
    let spread = page.object_us.unwrap();
    close(Some(spread.mean), 600e3);
    close(Some(spread.p50), 500e3);
    assert_eq!((page.objects, page.arrived), (4, 4));
    close(value(&records, Measure::PageLoadTime), 0.9);
    close(value(&records, Measure::ObjectTime(Statistic::Max)), 0.9);
    records.objects.push(arrived(4, None));
    let page = first(&records).page.unwrap();
    assert_eq!((page.load_us, page.objects, page.arrived), (None, 5, 4));
    assert_eq!(value(&records, Measure::PageLoadTime), Some(f64::INFINITY));
    close(value(&records, Measure::ObjectTime(Statistic::P50)), 0.7);
    assert_eq!(value(&records, Measure::VideoBitrate), None);
}

/// Segments of 4 s in qualities 0, 1, 1, 2 of 1, 2 and 4 Mbit/s, and a fifth that did not arrive: 9
/// Mbit/s over four segments.
#[test]
fn a_video_by_hand() {
    let bitrates = [1_000_000, 2_000_000, 4_000_000];
    let segment = |number: u32, quality: u32, completed_ms, stalled_ms: u64| ObjectRecord {
        quality: Some(quality),
        bitrate_bps: bitrates[quality as usize],
        size_bytes: bitrates[quality as usize] * 4 / 8,
        stalled_ns: stalled_ms * MILLISECOND,
        ..arrived(number, completed_ms)
    };
    let records = application(vec![
        segment(0, 0, Some(400), 400),
        segment(1, 1, Some(800), 0),
        segment(2, 1, Some(1500), 250),
        segment(3, 2, Some(5000), 100),
        segment(4, 0, None, 30),
    ]);
    let video = first(&records).video.unwrap();
    assert_eq!(video.segments, 4);
    close(video.bitrate_bps, 2.25e6);
    assert_eq!(video.quality_shares, [0.25, 0.5, 0.25]);
    close(video.switches, 2.0);
    close(video.stall_us, 380e3);
    close(video.startup_us, 400e3);
    assert!(first(&records).page.is_none());
    close(value(&records, Measure::VideoQualityShare(2)), 0.25);
    // Not -0, which compares equal but prints its sign.
    let none = value(&records, Measure::VideoQualityShare(9)).unwrap();
    assert_eq!(none.to_bits(), 0.0_f64.to_bits());
    close(value(&records, Measure::VideoStallTime), 0.38);
    assert_eq!(value(&records, Measure::PageLoadTime), None);
}

/// Transfers of one size class at 1, 2 … 20 Mbit/s, and one that was cut off.
#[test]
fn transfers_by_class() {
    let mut records = records(&[flow("client", 0, |t| 1e6 * t)]);
    let transfer = |number: u32, size_bytes: u64, took| {
        transfer(number, size_bytes, 100 * u64::from(number), took)
    };
    let megabyte = |number: u32| {
        let seconds = 8e6 / (f64::from(number) * 1e6);
        transfer(number, 1_000_000, Some((seconds * 1e9) as u64))
    };
    records.transfers = (1..=20).map(megabyte).collect();
    records.transfers.push(transfer(21, 2_000_000, None));
    records.transfers.push(transfer(22, 99_999, Some(SECOND)));
    let classes = first(&records).transfers.unwrap();
    let names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["all", "under 100 kB", "1 to 3 MB"]);
    let counts: Vec<_> = classes.iter().map(|class| (class.finished, class.cut_off)).collect();
    assert_eq!(counts, [(21, 1), (1, 0), (20, 1)]);
    let throughput = classes[2].throughput_bps.unwrap();
    close(Some(throughput.mean), 10.5e6);
    close(Some(throughput.p5), 1e6);
    close(Some(throughput.p50), 10e6);
    close(Some(classes[2].completion_us.unwrap().p95), 4e6);
    // Transfers that begin in the warm-up do not count: numbers 1 to 10.
    let warm = summary(&records, Time::from_millis(1050)).flows.remove(0).transfers.unwrap();
    assert_eq!(warm[2].finished, 10);
}

/// 400 transfers at 1.2 times the throughput of the control's 400, otherwise equal: the claim's
/// value is 1.2, with an interval around it.
#[test]
fn test_against_control_has_an_interval() {
    let mut records = records(&[flow("control", 0, |t| 1e6 * t), flow("test", 0, |t| 1e6 * t)]);
    records.transfers = (0..800)
        .map(|number| {
            let (flow, place) = (number % 2, u64::from(number / 2));
            // 0.8 to 1.2 s, in an order without a trend.
            let time = 800 * MILLISECOND + place * 181 % 400 * MILLISECOND;
            let completion_ns = Some(if flow == 1 { time * 10 / 12 } else { time });
            let size_bytes = 5_000_000;
            TransferRecord { flow, number, completion_ns, size_bytes, ..TransferRecord::default() }
        })
        .collect();
    let sizes = SizeRange { at_least: 3_000_000, below: None };
    let claim = Claim {
        relative_to: Some("control".to_string()),
        at_least: Some(1.1),
        ..claim(Measure::FlowThroughput(Statistic::Mean, sizes), "test")
    };
    let run = RunView::new(&records, Time::ZERO);
    let outcome = evaluate(&claim, &run);
    assert_eq!(outcome.outcome, Outcome::Holds);
    close(outcome.measured, 1.2);
    let interval = outcome.interval.unwrap();
    // Times are uniform within a fifth of their mean: the relative standard deviation of a mean is
    // 0.2 / sqrt(3) / 20, that of the ratio sqrt(2) times as much, 0.8 %.
    let half = 1.96 * 1.2 * 0.0082;
    assert!((interval.high - interval.low - 2.0 * half).abs() < 0.5 * half, "{interval:?}");
    assert!(outcome.measured_text.starts_with("1.2 times (95 %: 1.1"), "{}", outcome.measured_text);
    let small = SizeRange { at_least: 0, below: Some(3_000_000) };
    let none = Claim { measure: Measure::FlowThroughput(Statistic::Mean, small), ..claim };
    let none = evaluate(&none, &run);
    assert_eq!((none.outcome, none.interval), (Outcome::NotTestedHere, None));
}

/// A flow with a file counts as one transfer: 1 MB in 1 s and in 2 s.
#[test]
fn files_are_transfers() {
    let mut records = records(&[flow("file", 0, |t| 1e5 * t), flow("file", 1, |t| 1e5 * t)]);
    for (flow, seconds) in records.flows.iter_mut().zip([1, 2]) {
        flow.size_bytes = 1_000_000;
        flow.completion_ns = Some(seconds * SECOND);
    }
    let all = SizeRange::default();
    close(value(&records, Measure::FlowThroughput(Statistic::Mean, all)), 6e6);
    close(value(&records, Measure::FlowCompletion(Statistic::Max, all)), 2.0);
}

/// An auxiliary run stops with its main run, but does not count as its progress.
#[test]
fn a_run_aside_shares_the_stop_and_nothing_else() {
    let control = knee_record::Control::default();
    let aside = control.aside();
    aside.now_ns.store(7, Ordering::Relaxed);
    assert_eq!(control.now_ns(), 0);
    control.stop();
    assert!(aside.stop.load(Ordering::SeqCst));
}
