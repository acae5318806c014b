//! The page of connections as they end: the report of the last hour.

use super::Shown;
use super::metrics::{self, Names};
use crate::live::{Live, LiveReport};
use knee_page::Family;
use knee_record::ObservedReport;
use knee_report::{ReportError, observed_body, observed_live};
use std::sync::{Mutex, PoisonError};

pub(super) struct Ended {
    live: Live,
    report: Mutex<LiveReport>,
    names: Mutex<Names>,
}

impl Ended {
    pub fn new(live: Live) -> Ended {
        Ended { report: Mutex::new(LiveReport::new(live.clone())), live, names: Mutex::default() }
    }

    fn report(&self) -> ObservedReport {
        // A report that panicked starts again from the current state.
        self.report.lock().unwrap_or_else(PoisonError::into_inner).report()
    }
}

impl Shown for Ended {
    fn body(&self) -> Result<String, ReportError> {
        observed_body(&self.report())
    }

    fn document(&self, body: &str) -> Result<String, ReportError> {
        observed_live(body)
    }

    fn json(&self) -> String {
        // Cannot fail: a report contains only names and finite numbers.
        serde_json::to_string(&self.report()).unwrap_or_default()
    }

    fn metrics(&self) -> Vec<Family> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        metrics::families(&self.live, &mut names)
    }
}
