//! The cost of delivery: bytes sent per byte delivered.

use super::volume::ratio;
use super::{Flows, NotMeasurable, because};

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
        let links = self.run.links.iter();
        let lost: u64 = links.map(|l| l.total(|row| row.dropped_packets + row.lost_packets)).sum();
        let elsewhere = (again - lost as f64).max(0.0);
        ratio(elsewhere, again, "nothing was retransmitted")
    }
}
