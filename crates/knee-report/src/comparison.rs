//! Tables that set grounds side by side, on the page of a study or of a
//! scenario that ran on several.

use crate::page::{Page, render, study, total};
use crate::{ReportError, StudyPage};
use serde::Serialize;

/// A table with its title.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Title.
    pub title: String,
    /// What to know before reading it; can be empty.
    pub note: String,
    /// Heads of the columns.
    pub heads: Vec<ComparisonHead>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonHead {
    /// Its text.
    pub text: String,
    /// Figures are set flush right.
    pub figure: bool,
}

impl ComparisonHead {
    /// Heads of columns; those of figures begin with `>`.
    pub fn all(heads: &[&str]) -> Vec<ComparisonHead> {
        let head = |head: &&str| ComparisonHead {
            text: head.trim_start_matches('>').to_string(),
            figure: head.starts_with('>'),
        };
        heads.iter().map(head).collect()
    }
}

/// The report of studies with tables on the page of each, as an HTML
/// document. A single one without claims has no overview before it.
///
/// # Errors
/// [`ReportError`], when a template of this crate is wrong.
pub fn comparison_report(
    studies: &[(StudyPage<'_>, Vec<Comparison>)],
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
