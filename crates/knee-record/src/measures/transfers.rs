//! Measures of the transfers of a mix. Each transfer has the same weight.

use super::{Flows, NotMeasurable, because};
use crate::TransferRecord;
use crate::distribution::Distribution;
use crate::view::{FlowView, RunView, Window};
use knee_scenario::{Measure, SizeRange, Statistic};

/// What is said of a finished transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferValue {
    /// Size over completion time, bit/s.
    Throughput,
    /// Completion time, seconds.
    Completion,
}

impl TransferValue {
    /// The value of a transfer; none: it was cut off, or took no time.
    pub fn of(self, transfer: &TransferRecord) -> Option<f64> {
        let seconds = transfer.completion_ns.filter(|time| *time > 0)? as f64 / 1e9;
        Some(match self {
            TransferValue::Throughput => 8.0 * transfer.size_bytes as f64 / seconds,
            TransferValue::Completion => seconds,
        })
    }
}

impl Flows<'_, '_> {
    /// Throughput (size over completion time, bit/s) or completion time
    /// (seconds) of the transfers that finished: distribution over those
    /// that began within their flow's span. What was cut off does not count.
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

    /// The values behind it, in the order of the records.
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
            // A file begins with its flow: no warm-up comes before it.
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

/// The transfers of a mix, or a flow with a file as one.
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

/// What a measure takes of which transfers; none: it is not of transfers.
pub(crate) fn of_transfers(measure: &Measure) -> Option<(TransferValue, SizeRange, Statistic)> {
    match measure {
        Measure::FlowThroughput(statistic, sizes) => {
            Some((TransferValue::Throughput, *sizes, *statistic))
        }
        Measure::FlowCompletion(statistic, sizes) => {
            Some((TransferValue::Completion, *sizes, *statistic))
        }
        _ => None,
    }
}

/// The values of a target's transfers that a measure condenses; see
/// [`Flows::transfers`].
pub(crate) fn transfer_values(
    run: &RunView<'_>,
    target: &str,
    window: Window,
    value: TransferValue,
    sizes: SizeRange,
) -> Result<Vec<f64>, NotMeasurable> {
    Flows::find(run, target, window)?.transfer_values(value, sizes)
}
