//! The report of studies with tables beside their claims, such as those that compare grounds.

use crate::page::{Page, render, study, total};
use crate::{ReportError, StudyPage};
use knee_present::Table;

/// Returns the report of studies, with tables on the page of each, as an HTML document. A single
/// study without claims has no overview page.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn comparison_report(
    studies: &[(StudyPage<'_>, Vec<Table>)],
    title: &str,
    command: &str,
) -> Result<String, ReportError> {
    let numbered = studies.iter().enumerate();
    let pages = numbered.map(|(index, (page, comparisons))| {
        let study = study(index, page)?;
        Ok::<_, ReportError>(study.comparing(comparisons.clone()))
    });
    let pages = pages.collect::<Result<Vec<_>, _>>()?;
    let overview = !matches!(studies, [(only, _)] if only.claims.is_empty());
    render(&Page {
        title: title.to_string(),
        command: command.to_string(),
        overview,
        run: None,
        tally: total(&pages),
        studies: pages,
    })
}
