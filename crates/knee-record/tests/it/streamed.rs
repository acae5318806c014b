//! Measures are computed from rows that may be packed, one row after the other. Here they are
//! compared with the same quantities computed from a plain list of rows, and the memory is counted.

use crate::common::{MILLISECOND, flow, records};
use knee_record::{
    ClassSample, FlowSample, LinkSample, Records, RunView, Series, Timed, Track, Window, measure,
};
use knee_scenario::{Measure, Statistic};
use knee_units::Time;
use proptest::prelude::*;

/// Returns rows of a flow with gaps of some nanoseconds to some milliseconds.
fn rows() -> impl Strategy<Value = Vec<FlowSample>> {
    let gap = prop_oneof![4 => Just(MILLISECOND), 1 => 1..5 * MILLISECOND];
    let rtt =
        prop_oneof![1 => Just(0), 2 => Just(61 * MILLISECOND), 2 => 60_000_000..90_000_000_u64];
    let row = (gap, rtt, 0..20_000_u64, any::<bool>());
    prop::collection::vec(row, 1..400).prop_map(|rows| {
        let (mut time_ns, mut delivered_bytes) = (0, 0);
        let row = |(gap, rtt_ns, more, first): (u64, u64, u64, bool)| {
            time_ns += gap;
            delivered_bytes += more;
            let phase = if first { "startup" } else { "drain" };
            FlowSample { time_ns, delivered_bytes, rtt_ns, phase, ..FlowSample::default() }
        };
        rows.into_iter().map(row).collect()
    })
}

/// Returns records of one flow with these rows, which ends a little later than the last.
fn of(rows: &[FlowSample]) -> Records {
    let mut records = records(&[flow("a", 0, |_| 0.0)]);
    let last = rows[rows.len() - 1];
    records.flows[0].end_ns = last.time_ns + MILLISECOND;
    records.flows[0].delivered_bytes = last.delivered_bytes + 1000;
    records.samples = rows.iter().copied().collect();
    records
}

/// Returns the bytes delivered by a time, by a scan over all rows.
fn delivered(rows: &[FlowSample], records: &Records, time: u64) -> f64 {
    let flow = &records.flows[0];
    let end = (flow.end_ns, flow.delivered_bytes);
    if time >= end.0 {
        return end.1 as f64;
    }
    let mut before = (0, 0);
    for point in rows.iter().map(|row| (row.time_ns, row.delivered_bytes)).chain([end]) {
        if point.0 >= time {
            let part = (time - before.0) as f64 / (point.0 - before.0) as f64;
            return before.1 as f64 + part * (point.1 as f64 - before.1 as f64);
        }
        before = point;
    }
    unreachable!("the flow has not ended")
}

/// Returns the weighted nearest-rank percentile of the RTT within a span, by a scan over all rows.
fn rtt(rows: &[FlowSample], begin: u64, end: u64, fraction: f64) -> Option<f64> {
    let mut pairs = Vec::new();
    let mut since = begin;
    for row in rows.iter().filter(|row| row.time_ns > begin) {
        let until = row.time_ns.min(end);
        if row.rtt_ns > 0 && until > since {
            pairs.push((row.rtt_ns as f64 / 1e9, (until - since) as f64 / 1e9));
        }
        since = until;
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let reached = |(_, weight): &&(f64, f64)| {
        sum += weight;
        sum >= fraction * total * (1.0 - 1e-12)
    };
    Some(pairs.iter().find(reached)?.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Over any window, goodput and percentiles of the RTT are those of the plain list, to the bit.
    #[test]
    fn measures_are_those_of_the_whole_rows(
        rows in rows(),
        from in 0.0..1.0_f64,
        until in 0.0..1.1_f64,
        is_packed in any::<bool>(),
    ) {
        let mut records = of(&rows);
        if is_packed {
            records.samples.pack();
        }
        let life = records.flows[0].end_ns;
        let at = |part: f64| (part * life as f64) as u64;
        let (begin, end) = (at(from.min(until)), at(from.max(until)).min(life));
        prop_assume!(begin < end);
        let window =
            Window { from: Some(Time::from_nanos(begin)), until: Some(Time::from_nanos(end)) };
        let run = RunView::new(&records, Time::ZERO);
        let value = |asked: Measure| measure(&run, &asked, "a", window);
        let bytes = delivered(&rows, &records, end) - delivered(&rows, &records, begin);
        let goodput = value(Measure::Goodput).unwrap();
        let expected = 8.0 * bytes / ((end - begin) as f64 / 1e9);
        prop_assert!((goodput - expected).abs() <= 1e-9 * expected, "{goodput} {expected}");
        for (statistic, fraction) in
            [(Statistic::P5, 0.05), (Statistic::P50, 0.5), (Statistic::P95, 0.95)]
        {
            let found = value(Measure::Rtt(statistic)).ok();
            prop_assert_eq!(found, rtt(&rows, begin, end, fraction));
        }
    }

    /// Rows come back as they were, as do those around any time, packed or not.
    #[test]
    fn rows_come_back(rows in rows(), part in 0.0..1.1_f64, is_packed in any::<bool>()) {
        let mut track: Track<FlowSample> = rows.iter().copied().collect();
        if is_packed {
            track.pack();
        }
        prop_assert_eq!(track.iter().collect::<Vec<_>>(), rows.clone());
        prop_assert_eq!(track.last(), rows.last().copied());
        let time = (part * rows[rows.len() - 1].time_ns as f64) as u64;
        let next = rows.partition_point(|row| row.time_ns < time);
        let before = next.checked_sub(1).map(|at| rows[at]);
        prop_assert_eq!(track.around(time), (before, rows.get(next).copied()));
        let since: Vec<FlowSample> = track.since(time).collect();
        prop_assert_eq!(since, rows[next.saturating_sub(1)..].to_vec());
    }
}

/// Each field of each kind of row has a place of its own.
#[test]
fn every_field_comes_back() {
    let flow = FlowSample {
        flow: 1,
        path: 2,
        time_ns: 3,
        delivered_bytes: 4,
        sent_bytes: 5,
        retransmitted_bytes: 6,
        sent_packets: 7,
        lost_bytes: 8,
        in_flight_bytes: 9,
        window_bytes: 10,
        pacing_rate_bps: 11,
        rtt_ns: 12,
        srtt_ns: 13,
        path_rtt_ns: 17,
        bandwidth_estimate_bps: 14,
        min_rtt_estimate_ns: 15,
        slow_start_threshold_bytes: 16,
        shrink_bytes: Some(0),
        reassembly_bytes: u64::MAX,
        phase: "drain",
    };
    let link = LinkSample {
        link: 1,
        time_ns: 2,
        queue_bytes: 3,
        queue_packets: 4,
        queue_delay_ns: 5,
        departed_bytes: 6,
        used_bytes: 7,
        capacity_bytes: 8,
        entered_packets: 9,
        dropped_packets: 10,
        lost_packets: 11,
        marked_packets: u64::MAX,
    };
    let class = ClassSample {
        link: 1,
        class: 2,
        name: "classic",
        time_ns: 3,
        queue_bytes: 4,
        queue_packets: 5,
        queue_delay_ns: 6,
        departed_bytes: 7,
        dropped_packets: 8,
        marked_packets: u64::MAX,
    };
    comes_back(flow);
    comes_back(link);
    comes_back(class);
}

fn comes_back<R: Timed + PartialEq>(row: R) {
    let values: Track<R> = [row, row].into_iter().collect();
    let mut packed = values.clone();
    packed.pack();
    assert_eq!(packed, values);
    packed.push(&row);
    assert_eq!(packed.iter().collect::<Vec<_>>(), [row, row, row]);
}

/// A hundred flows that each deliver a packet in two of three milliseconds, and see another RTT with
/// it: 200,000 rows have to fit into 4 MB, of 29 MB as values.
#[test]
fn a_row_takes_little_memory() {
    let mut series = Series::default();
    let steps = 2000;
    for step in 1..=steps {
        for flow in 0..100 {
            let packets = (2 * step + flow) / 3;
            series.push(&FlowSample {
                flow: flow as u32,
                time_ns: step * MILLISECOND,
                delivered_bytes: 1448 * packets,
                sent_bytes: 1448 * (packets + 20),
                sent_packets: packets + 20,
                in_flight_bytes: 1448 * (20 + packets % 3),
                window_bytes: 60_000,
                pacing_rate_bps: 10_000_000 + packets / 20,
                rtt_ns: 40 * MILLISECOND + packets * 7919 % MILLISECOND,
                srtt_ns: 40 * MILLISECOND + packets * 104_729 % 100_000,
                bandwidth_estimate_bps: 9_900_000 + packets / 20,
                min_rtt_estimate_ns: 40 * MILLISECOND,
                phase: "probe_bw",
                ..FlowSample::default()
            });
        }
    }
    let rows = series.into_rows();
    assert_eq!(rows.len() as u64, 100 * steps);
    let bytes: usize = rows.tracks().values().map(Track::bytes).sum();
    assert!(bytes < 20 * rows.len(), "{} bytes a row", bytes as f64 / rows.len() as f64);
}
