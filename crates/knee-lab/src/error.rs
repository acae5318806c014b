//! What can go wrong, for programs to tell apart and for people to read.

use crate::advise::AdviseError;
use crate::compare::CompareError;
use crate::curve::CurveError;
use crate::evaluate::EvaluateError;
use crate::experiment::ExperimentError;
use crate::fidelity::GridError;
use crate::ground::{GroundError, UnknownGround};
use crate::qlog::QlogError;
use crate::rank::RankError;
use crate::rehearse::RehearseError;
use crate::rerun::RerunError;
use crate::studies::StudyError;
use crate::sweep::SweepError;
use crate::train::TrainError;
use std::io;
use std::path::PathBuf;

/// Why something was not run, kept or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Scenarios or studies are wrong; each with all that is.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<knee_scenario::Errors>),
    /// There is no such ground.
    #[error(transparent)]
    UnknownGround(#[from] UnknownGround),
    /// A ground cannot run a scenario.
    #[error(transparent)]
    Ground(GroundError),
    /// Records could not be written or read.
    #[error(transparent)]
    Record(#[from] knee_record::Error),
    /// A page could not be made: a mistake in Knee.
    #[error(transparent)]
    Report(#[from] knee_report::ReportError),
    /// A file or directory could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory that was to be written holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// A directory that was to be written is a link, or is reached by one.
    #[error("{} is a link to another place", .0.display())]
    Link(PathBuf),
    /// Settings do not go together.
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
    /// A ranking cannot be.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// An evaluation cannot be.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// A folder cannot be run again.
    #[error(transparent)]
    Rerun(#[from] RerunError),
    /// A sweep cannot be.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// There is nothing to give advice about.
    #[error(transparent)]
    Advise(#[from] AdviseError),
    /// Nothing can be rehearsed.
    #[error(transparent)]
    Rehearse(#[from] RehearseError),
    /// Nothing can be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A point of a sweep or a run of a ranking fails.
    #[error("at {label}: {source}")]
    Point {
        /// Its values.
        label: String,
        /// What happened.
        source: Box<Error>,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why not.
        source: rayon::ThreadPoolBuildError,
    },
    /// A mistake in Knee.
    #[error("{0}")]
    Defect(String),
    /// It was stopped before it began.
    #[error("it was stopped before it began")]
    Stopped,
}

impl Error {
    /// What happened at a point of a sweep.
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
