//! Offline HTML files from records: the page of a run, and the report of studies with a page for
//! each study and each of its runs.
//!
//! A file contains everything it needs: style, script and time series. A content security policy
//! forbids the browser to fetch anything. The same input gives the same bytes. Text from a scenario
//! is escaped.
//!
//! This crate never reads anything but records, never runs anything, and never measures differently
//! than `knee-record`.

mod advice;
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
mod finish;
mod fitted;
mod logs;
mod mix;
mod multipath;
mod observed;
mod page;
mod phases;
mod plane;
mod play;
mod plot;
mod probing;
mod rank;
mod ratio_scale;
mod read_log;
mod scatter;
mod sentence;
mod series;
mod steering;
mod sweep;
mod tables;
mod words;

pub use advice::{AdvicePage, AdviceRow, AdviceWord, advice_page};
pub use answers::answers_section;
pub use compared::{ComparedFigure, ComparedPage, ComparedSeries, compared_page, compared_svg};
pub use comparison::comparison_report;
pub use curve::{Curve, CurveGround, CurvePoint, curve_svg};
pub use evaluation::{
    evaluation_anchor, evaluation_cases, evaluation_figures, evaluation_order, evaluation_page,
    evaluation_says, evaluation_seeds, evaluation_size, evaluation_values, evaluation_word,
    evaluation_worst,
};
pub use logs::{log_facts, log_page, log_says, log_screen, log_tables};
pub use observed::{
    OpenPoint, observed_body, observed_live, observed_page, observed_says, observed_style,
    observed_tables, observed_warning, open_body, open_live,
};
pub use page::{run_page, study_report};
pub use play::{
    PlayFile, PlayPath, PlayRun, PlaySetting, play_body, play_page, play_says, play_style,
};
pub use plot::{Figure, Mark, MarkError, Plot, PlotError, plot_svg};
pub use probing::{Probed, ProbingPicture, probing_svg};
pub use rank::{rank_data, rank_page, rank_plane_svg, rank_table};
pub use read_log::ReadLog;
pub use steering::{SteeringGroup, SteeringPage, SteeringRow, SteeringStage, steering_page};
pub use sweep::{sweep_page, sweep_svg};

use knee_record::{ClaimOutcome, Records, Summary};

/// Input of the page of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunPage<'a> {
    /// Name of the run in its study; empty for a single scenario.
    pub name: &'a str,
    /// Summary of the results.
    pub summary: &'a Summary,
    /// The records behind the summary.
    pub records: &'a Records,
    /// What stands above the results, such as the answers to the questions of its scenario.
    pub lead: Option<&'a Section>,
    /// The resolved scenario, TOML.
    pub scenario: &'a str,
    /// The command line that repeats the run.
    pub command: &'a str,
    /// The access logs that its scenario uses.
    pub logs: &'a [ReadLog],
}

/// A section of a page as HTML, made by this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section(String);

/// Input of the pages of a study.
#[derive(Clone, Debug)]
pub struct StudyPage<'a> {
    /// Short name, such as `improved-bbr`.
    pub name: &'a str,
    /// Title; may be equal to the name.
    pub title: &'a str,
    /// Where its claims are found: a citation; may be empty.
    pub source: &'a str,
    /// What the study is about; may be empty.
    pub about: &'a str,
    /// Conclusion, as a paragraph; may be empty.
    pub conclusion: &'a str,
    /// What stands above it, such as the answers to the questions of repeats.
    pub lead: Option<&'a Section>,
    /// The study's claims with their outcomes.
    pub claims: &'a [ClaimOutcome],
    /// Outcome of each of them on the kernel; empty if nothing ran there.
    pub on_kernel: Vec<Option<&'a ClaimOutcome>>,
    /// Its runs, in reading order.
    pub runs: Vec<RunPage<'a>>,
    /// The command line that repeats the study.
    pub command: &'a str,
}

/// Why a report could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template of this crate is invalid.
    #[error("cannot fill the report's template: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The page's data cannot be written as JSON.
    #[error("cannot write the report's data: {0}")]
    Data(#[from] serde_json::Error),
}
