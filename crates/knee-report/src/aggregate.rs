//! Distributions of sampled values.

use crate::encode::Column;
use crate::series::{ByFlow, Key, label};
use knee_record::{FlowSample, Records};
use knee_units::statistics::cumulative;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Number of points of a distribution.
const DISTRIBUTION_POINTS: usize = 400;

/// Cumulative distributions over a common axis.
#[derive(Debug, Serialize)]
pub(crate) struct Distribution {
    /// The axis, nanoseconds.
    pub rtt_ns: Column,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// One cumulative distribution.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub label: String,
    /// Fraction of samples at or below the axis' value, in hundred-thousandths.
    pub at_or_below: Column,
}

/// Returns the distribution of the sampled RTT for each flow shown, or for each group if not all
/// flows are shown. `None` if no RTT was measured.
pub(crate) fn rtt_distribution(
    records: &Records,
    keys: &[Key],
    by_group: bool,
    by_flow: &ByFlow,
) -> Option<Distribution> {
    distribution_of(if by_group { of_groups(records) } else { of_flows(records, keys, by_flow) })
}

/// Returns the distributions of labelled lists of RTTs, nanoseconds.
pub(crate) fn distribution_of(mut curves: Vec<(String, Vec<u64>)>) -> Option<Distribution> {
    curves.retain(|(_, rtts)| !rtts.is_empty());
    let low = curves.iter().filter_map(|(_, rtts)| rtts.iter().min()).min().copied()?;
    let high = curves.iter().filter_map(|(_, rtts)| rtts.iter().max()).max().copied()?;
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

/// Returns equal steps from just below the smallest value, where every curve is zero, to the
/// largest, where every curve is one.
fn axis(low: u64, high: u64) -> Vec<u64> {
    let first = low.saturating_sub((high - low) / DISTRIBUTION_POINTS as u64 + 1);
    let last = DISTRIBUTION_POINTS as u128;
    (0..=last).map(|point| first + (u128::from(high - first) * point / last) as u64).collect()
}

fn of_flows(records: &Records, keys: &[Key], by_flow: &ByFlow) -> Vec<(String, Vec<u64>)> {
    let curve = |key: &Key| {
        let mut rtts = by_flow[key].column(FlowSample::FIELDS.rtt_ns, 0);
        rtts.retain(|rtt| *rtt > 0);
        (label(records, *key, by_flow), rtts)
    };
    keys.iter().map(curve).collect()
}

fn of_groups(records: &Records) -> Vec<(String, Vec<u64>)> {
    let names: BTreeMap<u32, &str> =
        records.flows.iter().map(|flow| (flow.flow, flow.name.as_str())).collect();
    let mut curves: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for ((flow, _), rows) in records.samples.tracks() {
        let name = names.get(flow).copied().unwrap_or("flows");
        let rtts = rows.column(FlowSample::FIELDS.rtt_ns, 0).into_iter();
        curves.entry(name).or_default().extend(rtts.filter(|rtt| *rtt > 0));
    }
    curves.retain(|_, rtts| !rtts.is_empty());
    let order: BTreeSet<&str> = curves.keys().copied().take(crate::series::FLOWS_MAX).collect();
    let named = |(name, rtts): (&str, Vec<u64>)| (format!("all of {name}"), rtts);
    curves.into_iter().filter(|(name, _)| order.contains(name)).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_runs_from_zero_to_one() {
        let values = [70_000_000, 60_000_000, 148_000_000, 70_000_000];
        let axis = axis(60_000_000, 148_000_000);
        let curve = cumulative(&values, &axis);
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
