//! Page of a comparison.

use super::ComparedRuns;
use crate::error::Error;
use knee_report::{ComparedPage, ComparedSeries, compared_page};

/// Time series drawn for one side.
pub(super) type SideSeries = ComparedSeries;

impl ComparedRuns {
    /// Renders the page as an HTML document.
    ///
    /// # Errors
    /// A defective template.
    pub fn page(&self) -> Result<String, Error> {
        let compared = &self.compared;
        let given = compared.given.iter().map(|given| (given.what.as_str(), &given.values[..]));
        Ok(compared_page(&ComparedPage {
            directories: &compared.directories,
            names: &compared.names,
            runs: &compared.runs,
            given: given.collect(),
            says: &compared.says,
            measures: &compared.measures,
            series: &self.series,
            command: &compared.command,
        })?)
    }
}
