//! What delivery costs: bytes sent for bytes delivered.

use super::volume::ratio;
use super::{Flows, NotMeasurable, because};

impl Flows<'_, '_> {
    /// Useful ratio, `0..=1`: payload delivered in order over payload sent,
    /// `sum of (D(e) - D(b)) / sum of (S(e) - S(b))`, at most 1. More can
    /// arrive than is sent when a queue empties.
    pub(crate) fn useful_ratio(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let delivered: f64 = active.iter().map(|(flow, span)| flow.delivered_in(*span)).sum();
        let sent: f64 = active.iter().map(|(flow, span)| flow.sent_in(*span)).sum();
        Ok(ratio(delivered, sent, "nothing was sent")?.min(1.0))
    }

    /// Effective goodput, bit/s: goodput over the bytes sent for each byte
    /// delivered, `goodput * useful ratio`. As power weighs throughput against
    /// delay, it weighs goodput against what is paid for it, where each byte
    /// sent has its price.
    pub(crate) fn effective_goodput(&self) -> Result<f64, NotMeasurable> {
        Ok(self.goodput()? * self.useful_ratio()?)
    }

    /// Part of the packets sent again that no link dropped or lost, `0..=1`,
    /// from start to end: lost elsewhere, in a stack or a network card, or sent
    /// again though they arrived. Of all flows together, because links count
    /// packets of every flow. A packet is what the flows' packets held on
    /// average; what a link lost of ACKs counts as well.
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
        ratio(elsewhere, again, "nothing was sent again")
    }
}
