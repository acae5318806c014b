//! One offline HTML file from records: the page of a run, and the report of
//! studies with a page for each study and each of its runs.
//!
//! The file needs nothing but itself: style, script and the time series are
//! in it, and a content security policy forbids the browser to fetch anything. The same input gives the same
//! bytes. Whatever comes from a scenario is escaped.
//!
//! What this crate never does: read anything but records, run anything,
//! measure differently than `knee-record` does.

mod aggregate;
mod answers;
mod applications;
mod bands;
mod chart;
mod charts;
mod columns;
mod compared;
mod comparison;
mod curve;
mod drawing;
mod encode;
mod evaluation;
mod figures;
mod fitted;
mod mix;
mod multipath;
mod observed;
mod page;
mod phases;
mod plane;
mod plot;
mod rank;
mod ratio_scale;
mod read_log;
mod scatter;
mod sentence;
mod series;
mod sweep;
mod tables;
mod thin;
mod words;

pub use compared::{ComparedFigure, ComparedPage, ComparedSeries, compared_page, compared_svg};
pub use comparison::{Comparison, ComparisonHead, comparison_report};
pub use curve::{Curve, CurvePoint, curve_svg};
pub use evaluation::{
    evaluation_cases, evaluation_figures, evaluation_page, evaluation_size, evaluation_values,
};
pub use observed::{
    ObservedFigure, ObservedTable, observed_body, observed_live, observed_page, observed_says,
    observed_style, observed_tables, observed_warning,
};
pub use page::{run_page, study_report};
pub use plot::{Figure, Plot, PlotError, plot_svg};
pub use rank::{rank_numbers, rank_page, rank_plane_svg, rank_table};
pub use read_log::ReadLog;
pub use sweep::sweep_page;

use knee_record::{Answers, ClaimOutcome, Records, Summary};

/// What the page of one run is made of.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// Name of the run in its study; empty for a scenario of its own.
    pub name: &'a str,
    /// What came out.
    pub summary: &'a Summary,
    /// The rows behind it.
    pub records: &'a Records,
    /// What its alternatives came to, if it was asked.
    pub answers: Option<&'a Answers>,
    /// The resolved scenario, TOML.
    pub scenario: &'a str,
    /// The command line that repeats the run.
    pub command: &'a str,
    /// The access logs that its scenario names.
    pub logs: &'a [ReadLog],
}

/// What the pages of one study are made of.
#[derive(Clone, Debug)]
pub struct StudyPage<'a> {
    /// Short name, such as `improved-bbr`.
    pub name: &'a str,
    /// Title; may equal the name.
    pub title: &'a str,
    /// Where its claims stand: a citation; may be empty.
    pub source: &'a str,
    /// What is studied, for the reader; may be empty.
    pub about: &'a str,
    /// What came of it, in a paragraph; may be empty.
    pub conclusion: &'a str,
    /// The study's claims, with what came of them.
    pub claims: &'a [ClaimOutcome],
    /// What came of each of them on the kernel; empty: nothing ran there.
    pub on_kernel: Vec<Option<&'a ClaimOutcome>>,
    /// Its runs, in the order in which they are to be read.
    pub runs: Vec<RunPage<'a>>,
    /// The command line that repeats the study.
    pub command: &'a str,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template of this crate is wrong.
    #[error("cannot fill the report's template: {0:#}")]
    Template(#[from] minijinja::Error),
    /// Data of the page cannot be written as JSON.
    #[error("cannot write the report's data: {0}")]
    Data(#[from] serde_json::Error),
}
