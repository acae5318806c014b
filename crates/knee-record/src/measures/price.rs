//! The cost of delivery: bytes sent per byte delivered.

use super::volume::ratio;
use super::{Flows, NotMeasurable, because};
use crate::view::Span;

/// Intervals over whose means transit is billed by the 95th percentile.
const BILLED_INTERVAL_NS: u64 = 300_000_000_000;

impl Flows<'_, '_> {
    /// Useful ratio, `0..=1`: payload delivered in order over payload sent,
    /// `sum of (D(e) - D(b)) / sum of (S(e) - S(b))`, limited to 1. More can be delivered than is
    /// sent while a queue empties.
    pub(crate) fn useful_ratio(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let delivered: f64 = active.iter().map(|(flow, span)| flow.delivered_in(*span)).sum();
        let sent: f64 = active.iter().map(|(flow, span)| flow.sent_in(*span)).sum();
        Ok(ratio(delivered, sent, "nothing was sent")?.min(1.0))
    }

    /// Effective goodput, bit/s: `goodput * useful ratio`. As power weighs throughput against
    /// delay, this weighs goodput against the bytes sent for it, for links on which every byte is
    /// paid for.
    pub(crate) fn effective_goodput(&self) -> Result<f64, NotMeasurable> {
        Ok(self.goodput()? * self.useful_ratio()?)
    }

    /// Rate by which a user of the 95th percentile is billed, bit/s: of the means of the IP bytes
    /// sent in whole intervals of five minutes, from the first flow's start on, the smallest that
    /// at least 95 % of them do not exceed.
    pub(crate) fn billed_rate(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let begin = active.iter().map(|(_, span)| span.begin).min().unwrap_or(0);
        let end = active.iter().map(|(_, span)| span.end).max().unwrap_or(0);
        let intervals = (end - begin) / BILLED_INTERVAL_NS;
        if intervals == 0 {
            return because("it needs at least five minutes");
        }
        let mean = |index: u64| {
            let from = begin + index * BILLED_INTERVAL_NS;
            let until = from + BILLED_INTERVAL_NS;
            let inside = active.iter().filter_map(|(flow, span)| {
                let part = Span { begin: span.begin.max(from), end: span.end.min(until) };
                (part.begin < part.end).then(|| flow.record.header_overhead * flow.sent_in(part))
            });
            8e9 * inside.sum::<f64>() / BILLED_INTERVAL_NS as f64
        };
        let mut means: Vec<f64> = (0..intervals).map(mean).collect();
        means.sort_by(f64::total_cmp);
        // Nearest rank.
        Ok(means[(95 * means.len()).div_ceil(100) - 1])
    }

    /// Fraction of the retransmitted packets that no link dropped or lost, `0..=1`, from start to
    /// end: packets that were lost elsewhere, in a stack or a network card, or retransmitted
    /// although they arrived. Defined only for all flows together, because links count packets of
    /// every flow. Retransmitted bytes are converted to packets of the flows' mean size; lost ACKs
    /// count as well.
    pub(crate) fn lost_elsewhere(&self) -> Result<f64, NotMeasurable> {
        if self.members.len() < self.run.flows.len() {
            return because("links do not tell flows apart: ask for all of them, \"*\"");
        }
        let records = || self.members.iter().map(|flow| flow.record);
        let bytes: u64 = records().map(|flow| flow.delivered_bytes).sum();
        let packets: u64 = records().map(|flow| flow.delivered_packets).sum();
        let again: u64 = records().map(|flow| flow.retransmitted_bytes).sum();
        let each = ratio(bytes as f64, packets as f64, "nothing was delivered")?;
        let again = again as f64 / each;
        if self.run.links.is_empty() {
            return because("the links of the path are not known");
        }
        let links = self.run.links.iter();
        let lost: u64 = links.map(|l| l.total(|row| row.dropped_packets + row.lost_packets)).sum();
        let elsewhere = (again - lost as f64).max(0.0);
        ratio(elsewhere, again, "nothing was retransmitted")
    }
}
