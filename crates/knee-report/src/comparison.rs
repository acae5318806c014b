//! Tables that compare grounds, on the page of a study or of a scenario that ran on several.

use crate::page::{Page, render, study, total};
use crate::{ReportError, StudyPage};
use serde::Serialize;

/// A table with its title.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// Title.
    pub title: String,
    /// What to know before reading it; may be empty.
    pub note: String,
    /// Column heads.
    pub heads: Vec<ComparisonHead>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

/// A column head.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonHead {
    /// Its text.
    pub text: String,
    /// Whether the column contains numbers, which are right-aligned.
    pub figure: bool,
}

impl ComparisonHead {
    /// Creates column heads; those of numbers begin with `>`.
    pub fn all(heads: &[&str]) -> Vec<ComparisonHead> {
        let head = |head: &&str| ComparisonHead {
            text: head.trim_start_matches('>').to_string(),
            figure: head.starts_with('>'),
        };
        heads.iter().map(head).collect()
    }
}

/// Returns the report of studies, with tables on the page of each, as an HTML document. A single
/// study without claims has no overview page.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
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
