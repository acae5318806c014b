//! Errors of this crate.

use crate::advise::AdviseError;
use crate::compare::CompareError;
use crate::curve::CurveError;
use crate::evaluate::EvaluateError;
use crate::experiment::ExperimentError;
use crate::fidelity::GridError;
use crate::fit::FitError;
use crate::ground::{GroundError, UnknownGround};
use crate::packet_log::PacketLogError;
#[cfg(feature = "play")]
use crate::play::PlayError;
use crate::qlog::QlogError;
use crate::rank::RankError;
use crate::rehearse::RehearseError;
use crate::rerun::RerunError;
use crate::studies::StudyError;
use crate::sweep::SweepError;
use crate::train::TrainError;
use std::io;
use std::path::PathBuf;

/// Why something could not be run, stored or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid scenarios or studies, with all of their errors.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<knee_scenario::Errors>),
    /// No ground has this name.
    #[error(transparent)]
    UnknownGround(#[from] UnknownGround),
    /// A ground cannot run a scenario.
    #[error(transparent)]
    Ground(GroundError),
    /// Records could not be written or read.
    #[error(transparent)]
    Record(#[from] knee_record::Error),
    /// A page could not be rendered: a defect in Knee.
    #[error(transparent)]
    Report(#[from] knee_report::ReportError),
    /// A file or directory could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An output directory is not empty.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// An output directory is a symbolic link, or is reached through one.
    #[error("{} is a symbolic link", .0.display())]
    Link(PathBuf),
    /// The output would replace what it is made from.
    #[error("{} would be replaced", .0.display())]
    Source(PathBuf),
    /// Settings that exclude each other.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The grid cannot be run.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A scenario has no curve.
    #[error(transparent)]
    Curve(#[from] CurveError),
    /// Two directories cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Studies cannot be run.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A flow has no qlog.
    #[error(transparent)]
    Qlog(#[from] QlogError),
    /// A packet log is damaged.
    #[error(transparent)]
    PacketLog(#[from] PacketLogError),
    /// No link of a run counted what it dropped.
    #[error("{}: the links of the path are not known, nor what they dropped", .0.display())]
    NoLinks(PathBuf),
    /// A folder holds no runs whose drops could be listed.
    #[error("{} holds {what}, not the records of one scenario", path.display())]
    NoDrops {
        /// The folder.
        path: PathBuf,
        /// What it holds instead.
        what: &'static str,
    },
    /// A ranking is not possible.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// An evaluation is not possible.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// A folder cannot be run again.
    #[error(transparent)]
    Rerun(#[from] RerunError),
    /// A sweep is not possible.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// No advice can be given.
    #[error(transparent)]
    Advise(#[from] AdviseError),
    /// No path can be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A scenario cannot be played with.
    #[cfg(feature = "play")]
    #[error(transparent)]
    Play(#[from] PlayError),
    /// A rehearsal is not possible.
    #[error(transparent)]
    Rehearse(#[from] RehearseError),
    /// Training is not possible.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A point of a sweep or a run of a ranking failed.
    #[error("at {label}: {source}")]
    Point {
        /// Values of the point.
        label: String,
        /// The failure.
        source: Box<Error>,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// Requested number of threads.
        threads: usize,
        /// Reason.
        source: rayon::ThreadPoolBuildError,
    },
    /// A defect in Knee.
    #[error("{0}")]
    Defect(String),
    /// It was stopped before it began.
    #[error("it was stopped before it started")]
    Stopped,
}

impl Error {
    /// Adds the point of the sweep to an error.
    pub(crate) fn at(self, label: &str) -> Error {
        Error::Point { label: label.to_string(), source: Box::new(self) }
    }
}

impl From<GroundError> for Error {
    fn from(error: GroundError) -> Error {
        match error {
            GroundError::Samples(error) => Error::Record(error),
            other => Error::Ground(other),
        }
    }
}

impl From<knee_scenario::Errors> for Error {
    fn from(errors: knee_scenario::Errors) -> Error {
        Error::Files(vec![errors])
    }
}
