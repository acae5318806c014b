//! What delivery costs: bytes sent for bytes delivered.

use super::volume::ratio;
use super::{Flows, NotMeasurable};

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
}
