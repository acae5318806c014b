//! How a command ends, and with which exit code.

use crate::{problems, screen};
use knee_record::Error as RecordError;
use knee_sim::SimulationError;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

/// Wrong arguments, a wrong scenario, a directory that is no run.
pub const USAGE: u8 = 2;
/// The host lacks something: space, permission, a ground.
const HOST: u8 = 3;
/// A mistake in Knee.
pub const INTERNAL: u8 = 4;
/// As shells have it for SIGINT: 128 and the signal's number.
pub const INTERRUPTED: u8 = 130;

/// A command that did what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All is as it should be.
    Done,
    /// A claim did not come out as on record.
    ClaimDiffers,
    /// Stopped by hand; what there was is kept.
    Interrupted,
}

impl Ending {
    /// The exit code.
    pub fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Ending::Done => 0,
            Ending::ClaimDiffers => 1,
            Ending::Interrupted => INTERRUPTED,
        })
    }
}

/// Why a command did not do what it was told.
#[derive(Debug)]
pub enum Failure {
    /// What was typed, or what it led to, cannot be: what is wrong, and what
    /// to do.
    Usage(String, String),
    /// Files are wrong.
    Files(Vec<knee_scenario::Errors>),
    /// The host lacks something: what, and what to do.
    Host(String, String),
    /// A mistake in Knee.
    Internal(String),
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::Usage(..) | Failure::Files(_) => USAGE,
            Failure::Host(..) => HOST,
            Failure::Internal(_) => INTERNAL,
        })
    }

    /// Says it on the standard error.
    pub fn tell(&self) {
        match self {
            Failure::Usage(what, advice) | Failure::Host(what, advice) => {
                screen::complain(&format!("{what}; {advice}"));
            }
            Failure::Files(files) => files.iter().for_each(problems::show),
            Failure::Internal(what) => {
                screen::complain(&format!("{what}; this is a mistake in Knee, please report it"));
            }
        }
    }
}

/// That `path` cannot be written below an output directory.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Host(format!("cannot write {}: {error}", path.display()), elsewhere(error))
}

/// What to do about a file that cannot be written.
fn elsewhere(error: &io::Error) -> String {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    let free = if full.contains(&error.kind()) { "free some space, or " } else { "" };
    format!("{free}write elsewhere with --out DIR")
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        let what = error.to_string();
        match error {
            RecordError::Io { action: "read", .. } => {
                Failure::Host(what, "make it readable".to_string())
            }
            RecordError::Io { source, .. } => Failure::Host(what, elsewhere(&source)),
            RecordError::NotARun { .. } => {
                Failure::Usage(what, "name a directory that knee run wrote".to_string())
            }
            RecordError::Unfinished { .. }
            | RecordError::Missing { .. }
            | RecordError::Schema { .. }
            | RecordError::Malformed { .. } => {
                Failure::Usage(what, "run its scenario again".to_string())
            }
        }
    }
}

impl From<SimulationError> for Failure {
    fn from(error: SimulationError) -> Failure {
        let what = error.to_string();
        match error {
            SimulationError::Samples(error) => error.into(),
            SimulationError::Log(source) => Failure::Host(what, elsewhere(&source)),
            SimulationError::TooLarge { .. } | SimulationError::Controller(_) => {
                Failure::Usage(what, "change the scenario".to_string())
            }
        }
    }
}

impl From<knee_report::ReportError> for Failure {
    fn from(error: knee_report::ReportError) -> Failure {
        Failure::Internal(error.to_string())
    }
}
