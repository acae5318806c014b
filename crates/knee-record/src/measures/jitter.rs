//! Variation of the completion times of equal transfers.

use super::transfers::TransferValue;
use super::{Flows, NotMeasurable, because};
use knee_scenario::SizeRange;

impl Flows<'_, '_> {
    /// Jitter of completion times, seconds: mean absolute difference between consecutive transfers,
    /// as RFC 3550 (section 6.4.1) defines it for packets. For transfers of one size it shows how
    /// much their times vary; for several sizes it also includes the variation of the sizes.
    pub(crate) fn completion_jitter(&self, sizes: SizeRange) -> Result<f64, NotMeasurable> {
        let times = self.transfer_values(TransferValue::Completion, sizes)?;
        let steps = times.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        match times.len() {
            0 | 1 => because(format!("fewer than two transfers of {} finished", self.target)),
            count => Ok(steps.sum::<f64>() / (count - 1) as f64),
        }
    }
}
