//! Measures of the transfers of a mix, each with the same weight.

use super::{Flows, NotMeasurable, because};
use crate::TransferRecord;
use crate::view::{FlowView, RunView, Window};
use knee_scenario::{SizeRange, Statistic};
use knee_units::statistics::Distribution;
use knee_units::statistics::{RatioInterval, bootstrap_ratio, bootstrap_ratio_of_pairs};
use std::collections::BTreeMap;

/// Value of a finished transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferValue {
    /// Size over completion time, bit/s.
    Throughput,
    /// Completion time, seconds.
    Completion,
}

impl TransferValue {
    /// Returns the value of a transfer; `None` if it was cut off or took no time.
    pub fn of(self, transfer: &TransferRecord) -> Option<f64> {
        let seconds = transfer.completion_ns.filter(|time| *time > 0)? as f64 / 1e9;
        Some(match self {
            TransferValue::Throughput => 8.0 * transfer.size_bytes as f64 / seconds,
            TransferValue::Completion => seconds,
        })
    }
}

impl Flows<'_, '_> {
    /// Throughput (size over completion time, bit/s) or completion time (seconds): distribution
    /// over the finished transfers that began within their flow's span. Transfers that were cut off
    /// do not count.
    pub(crate) fn transfers(
        &self,
        value: TransferValue,
        sizes: SizeRange,
    ) -> Result<Distribution, NotMeasurable> {
        let values = self.transfer_values(value, sizes)?;
        match Distribution::new(values.into_iter().map(|value| (value, 1.0)).collect()) {
            Some(values) => Ok(values),
            None => because(format!("no transfer of {} of this size finished", self.target)),
        }
    }

    /// Returns the values of that distribution, in the order of the records.
    pub(crate) fn transfer_values(
        &self,
        value: TransferValue,
        sizes: SizeRange,
    ) -> Result<Vec<f64>, NotMeasurable> {
        let mut values = Vec::new();
        for flow in &self.members {
            let transfers = transfers_of(flow);
            if transfers.is_empty() {
                return because(format!("{} has no transfers", flow.record.label()));
            }
            let Some(span) = self.run.flow_span(flow, self.window) else { continue };
            // A file begins with its flow, so a warm-up does not apply.
            let whole = flow.transfers.is_empty() && self.window == Window::default();
            let counts = transfers.iter().filter(|row| {
                let began = whole || (span.begin..span.end).contains(&row.start_ns);
                began && sizes.contains(row.size_bytes)
            });
            values.extend(counts.filter_map(|row| value.of(row)));
        }
        Ok(values)
    }
}

/// Returns the transfers of a mix, or the file of a flow as a single transfer.
fn transfers_of(flow: &FlowView<'_>) -> Vec<TransferRecord> {
    let record = flow.record;
    if !flow.transfers.is_empty() || record.size_bytes == 0 {
        return flow.transfers.iter().map(|row| **row).collect();
    }
    vec![TransferRecord {
        start_ns: record.start_ns,
        completion_ns: record.completion_ns,
        size_bytes: record.size_bytes,
        ..TransferRecord::default()
    }]
}

/// Largest difference between the start times of two transfers of one process: a real-time ground
/// is occasionally late.
const APART_MAX_NS: u64 = 20_000_000;

/// Pairs the transfers of two targets, flow by flow and by number, and returns their values in
/// order of arrival. Returns `None` if a pair differs in size or in its start relative to the
/// flow's start: the transfers then belong to different processes.
fn transfer_pairs(
    targets: [(&RunView<'_>, &str); 2],
    window: Window,
    value: TransferValue,
    sizes: SizeRange,
) -> Option<Vec<(f64, f64)>> {
    let [(test, ours), (control, theirs)] = targets;
    let test = Flows::find(test, ours, window).ok()?;
    let control = Flows::find(control, theirs, window).ok()?;
    if test.members.len() != control.members.len() {
        return None;
    }
    let mut pairs = Vec::new();
    for (ours, theirs) in test.members.iter().zip(&control.members) {
        let spans = [test.run.flow_span(ours, window)?, control.run.flow_span(theirs, window)?];
        let partners: BTreeMap<u64, &TransferRecord> =
            theirs.transfers.iter().map(|row| (u64::from(row.number), *row)).collect();
        let mut both: Vec<[&TransferRecord; 2]> = ours
            .transfers
            .iter()
            .filter_map(|row| Some([*row, *partners.get(&u64::from(row.number))?]))
            .collect();
        both.sort_by_key(|[row, _]| row.number);
        let starts = [ours.record.start_ns, theirs.record.start_ns];
        if both.is_empty() || !both.iter().all(|pair| is_pair(*pair, starts)) {
            return None;
        }
        let counts = both.into_iter().filter(|pair| {
            let mut began = pair.iter().zip(&spans);
            began.all(|(row, span)| (span.begin..span.end).contains(&row.start_ns))
                && sizes.contains(pair[0].size_bytes)
        });
        pairs.extend(counts.filter_map(|[a, b]| Some((value.of(a)?, value.of(b)?))));
    }
    Some(pairs)
}

fn is_pair([a, b]: [&TransferRecord; 2], [from_a, from_b]: [u64; 2]) -> bool {
    let (a_after, b_after) = (a.start_ns.abs_diff(from_a), b.start_ns.abs_diff(from_b));
    a.size_bytes == b.size_bytes && a_after.abs_diff(b_after) <= APART_MAX_NS
}

/// Returns the ratio of a statistic of two targets' transfers, test over control: in pairs if both
/// have the same process, otherwise as two samples.
pub fn transfer_ratio(
    targets: [(&RunView<'_>, &str); 2],
    window: Window,
    value: TransferValue,
    sizes: SizeRange,
    statistic: Statistic,
) -> Option<RatioInterval> {
    if let Some(pairs) = transfer_pairs(targets, window, value, sizes) {
        return bootstrap_ratio_of_pairs(&pairs, statistic);
    }
    let values = |(run, target): (&RunView<'_>, &str)| {
        Flows::find(run, target, window).ok()?.transfer_values(value, sizes).ok()
    };
    let [test, control] = targets.map(values);
    bootstrap_ratio(&test?, &control?, statistic)
}
