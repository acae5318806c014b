//! What stands for many flows: their mean over time, and distributions.

use crate::encode::Column;
use crate::series::{FlowSeries, Grouped, Key, full_bps, label};
use knee_record::{FlowSample, Records};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Pieces into which the mean over all flows cuts the time.
const MEAN_BINS: u64 = 1000;
/// Points of a distribution.
const DISTRIBUTION_POINTS: usize = 400;

/// Sums over the flows in one piece of time.
#[derive(Clone, Copy, Default)]
struct Bin {
    rows: u64,
    rtt_rows: u64,
    delivered: u64,
    rtt: u128,
    window: u128,
    in_flight: u128,
}

/// The mean of all flows over time, over pieces of a thousandth of the run.
/// None without samples.
pub(crate) fn mean(records: &Records, flows: usize) -> Option<FlowSeries> {
    let width = records.end_ns.div_ceil(MEAN_BINS).max(1);
    let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
    let mut last: BTreeMap<Key, u64> = BTreeMap::new();
    for row in &records.samples {
        let bin = bins.entry(row.time_ns / width).or_default();
        let before = last.insert((row.flow, row.path), row.delivered_bytes).unwrap_or(0);
        bin.rows += 1;
        bin.delivered += row.delivered_bytes.saturating_sub(before);
        bin.rtt_rows += u64::from(row.rtt_ns > 0);
        bin.rtt += u128::from(row.rtt_ns);
        bin.window += u128::from(row.window_bytes);
        bin.in_flight += u128::from(row.in_flight_bytes);
    }
    if bins.is_empty() {
        return None;
    }
    Some(mean_series(&bins, width, flows, records))
}

fn mean_series(
    bins: &BTreeMap<u64, Bin>,
    width: u64,
    flows: usize,
    records: &Records,
) -> FlowSeries {
    let average = |value: fn(&Bin) -> (u128, u64)| {
        let one = |bin| {
            let (sum, count) = value(bin);
            (sum / u128::from(count.max(1))) as u64
        };
        Column::values(&bins.values().map(one).collect::<Vec<u64>>())
    };
    let mut total = 0;
    let delivered = bins.values().map(|bin| {
        total += bin.delivered;
        total / flows.max(1) as u64
    });
    let times: Vec<u64> =
        bins.keys().map(|bin| ((bin + 1) * width).min(records.end_ns.max(1))).collect();
    FlowSeries {
        label: format!("mean of all {flows} flows"),
        delivered_bytes: Column::values(&delivered.collect::<Vec<u64>>()),
        rtt_ns: average(|bin| (bin.rtt, bin.rtt_rows)),
        window_bytes: average(|bin| (bin.window, bin.rows)),
        in_flight_bytes: average(|bin| (bin.in_flight, bin.rows)),
        slow_start_threshold_bytes: None,
        bandwidth_estimate_bps: None,
        min_rtt_estimate_ns: None,
        phases: None,
        base_rtt_ns: records.flows.first().map_or(0, |flow| flow.base_rtt_ns),
        full_bps: records.flows.first().map_or(0, full_bps),
        interval_ns: width,
        time_ns: Column::times(&times),
    }
}

/// Cumulative distributions over one common axis.
#[derive(Debug, Serialize)]
pub(crate) struct Distribution {
    /// The axis, nanoseconds.
    rtt_ns: Column,
    /// The curves.
    curves: Vec<Curve>,
}

/// One cumulative distribution.
#[derive(Debug, Serialize)]
struct Curve {
    label: String,
    /// Samples at or below the axis' value, in hundred-thousandths.
    at_or_below: Column,
}

/// The distribution of the sampled RTT: of each flow shown, or of each group
/// when not all flows are. None when no RTT was measured.
pub(crate) fn rtt_distribution(
    records: &Records,
    keys: &[Key],
    by_group: bool,
    by_flow: &Grouped<'_, Key, FlowSample>,
) -> Option<Distribution> {
    let mut curves = if by_group { of_groups(records) } else { of_flows(records, keys, by_flow) };
    curves.retain(|(_, rtts)| !rtts.is_empty());
    for (_, rtts) in &mut curves {
        rtts.sort_unstable();
    }
    let low = curves.iter().map(|(_, rtts)| rtts[0]).min()?;
    let high = curves.iter().map(|(_, rtts)| rtts[rtts.len() - 1]).max()?;
    let axis = axis(low, high);
    let curve = |(label, rtts): (String, Vec<u64>)| Curve {
        label,
        at_or_below: Column::exact(&cumulative(&rtts, &axis)),
    };
    Some(Distribution {
        curves: curves.into_iter().map(curve).collect(),
        rtt_ns: Column::exact(&axis),
    })
}

/// Equal steps from just below the smallest value, where every curve is
/// zero, to the largest, where every curve is one.
fn axis(low: u64, high: u64) -> Vec<u64> {
    let first = low.saturating_sub((high - low) / DISTRIBUTION_POINTS as u64 + 1);
    let last = DISTRIBUTION_POINTS as u128;
    (0..=last).map(|point| first + (u128::from(high - first) * point / last) as u64).collect()
}

fn cumulative(sorted: &[u64], axis: &[u64]) -> Vec<u64> {
    let below = |&limit: &u64| sorted.partition_point(|&value| value <= limit) as u64;
    axis.iter().map(|limit| below(limit) * 100_000 / sorted.len() as u64).collect()
}

fn of_flows(
    records: &Records,
    keys: &[Key],
    by_flow: &Grouped<'_, Key, FlowSample>,
) -> Vec<(String, Vec<u64>)> {
    let curve = |key: &Key| {
        let rtts = by_flow[key].iter().map(|row| row.rtt_ns).filter(|&rtt| rtt > 0);
        (label(records, *key, by_flow), rtts.collect())
    };
    keys.iter().map(curve).collect()
}

fn of_groups(records: &Records) -> Vec<(String, Vec<u64>)> {
    let names: BTreeMap<u32, &str> =
        records.flows.iter().map(|flow| (flow.flow, flow.name.as_str())).collect();
    let mut curves: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in records.samples.iter().filter(|row| row.rtt_ns > 0) {
        let name = names.get(&row.flow).copied().unwrap_or("flows");
        curves.entry(name).or_default().push(row.rtt_ns);
    }
    let order: BTreeSet<&str> = curves.keys().copied().take(crate::series::FLOWS_MAX).collect();
    let named = |(name, rtts): (&str, Vec<u64>)| (format!("all of {name}"), rtts);
    curves.into_iter().filter(|(name, _)| order.contains(name)).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_runs_from_zero_to_one() {
        let sorted = [60_000_000, 70_000_000, 70_000_000, 148_000_000];
        let axis = axis(60_000_000, 148_000_000);
        let curve = cumulative(&sorted, &axis);
        assert_eq!((curve[0], curve[DISTRIBUTION_POINTS]), (0, 100_000));
        assert!(curve.is_sorted());
        // Three quarters are at or below 100 ms.
        let middle = axis.partition_point(|&rtt| rtt <= 100_000_000) - 1;
        assert_eq!(curve[middle], 75_000);
    }

    #[test]
    fn one_single_value_is_a_step() {
        let axis = axis(5, 5);
        let curve = cumulative(&[5], &axis);
        assert_eq!((curve[0], curve[DISTRIBUTION_POINTS]), (0, 100_000));
    }
}
