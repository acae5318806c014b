//! Measures of the controller's limits and their use: congestion window, slow-start threshold,
//! bytes in flight. Each is a distribution over time.

use super::{Flows, NotMeasurable};
use crate::FlowSample;
use knee_scenario::Statistic;

impl Flows<'_, '_> {
    /// Congestion window, bytes of payload. Rows without one do not count.
    pub(crate) fn congestion_window(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        self.bytes_over_time("congestion window", statistic, |row| known(row.window_bytes))
    }

    /// Slow-start threshold, bytes of payload. Rows without one do not count.
    pub(crate) fn slow_start_threshold(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        let threshold = |row: &FlowSample| known(row.slow_start_threshold_bytes);
        self.bytes_over_time("slow-start threshold", statistic, threshold)
    }

    /// Bytes that BBR has removed from the window. Rows of other controllers do not count.
    pub(crate) fn shrink(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        let removed = |row: &FlowSample| row.shrink_bytes.map(|bytes| bytes as f64);
        self.bytes_over_time("controller that removes bytes from its window", statistic, removed)
    }

    /// Payload in flight, bytes, including rows with none.
    pub(crate) fn in_flight(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        self.bytes_over_time("samples", statistic, |row| Some(row.in_flight_bytes as f64))
    }

    fn bytes_over_time(
        &self,
        what: &str,
        statistic: Statistic,
        value: impl Fn(&FlowSample) -> Option<f64>,
    ) -> Result<f64, NotMeasurable> {
        Ok(self.over_time(what, |row, _| value(row))?.statistic(statistic))
    }
}

/// In samples, zero means that there is no value.
fn known(bytes: u64) -> Option<f64> {
    (bytes > 0).then_some(bytes as f64)
}
