//! Exit codes and the ways in which a command ends.

use crate::{problems, screen};

/// Invalid arguments, an invalid scenario, a directory without a run.
pub const USAGE: u8 = 2;
/// The host lacks something: space, permission, a ground.
const HOST: u8 = 3;
/// A defect in Knee.
pub const INTERNAL: u8 = 4;
/// Exit code for SIGINT, as in shells: 128 plus the signal number.
pub const INTERRUPTED: u8 = 130;

/// Ending of a command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Success.
    Done,
    /// A claim, or the bytes of a record, differ from the recorded ones.
    Differs,
    /// Stopped by the user; results so far are kept.
    Interrupted,
    /// A command that Knee ran ended with this code.
    Code(u8),
}

impl Ending {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Differs => 1,
            Ending::Interrupted => INTERRUPTED,
            Ending::Code(code) => code,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Invalid input, directly or indirectly: the problem and the remedy.
    Usage(String, String),
    /// Invalid files.
    Files(Vec<knee_scenario::Errors>),
    /// The host lacks something: the problem and the remedy.
    Host(String, String),
    /// A defect in Knee.
    Internal(String),
    /// Stopped by the user before there was a result.
    Interrupted,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(..) | Failure::Files(_) => USAGE,
            Failure::Host(..) => HOST,
            Failure::Internal(_) => INTERNAL,
            Failure::Interrupted => INTERRUPTED,
        }
    }

    /// Prints the failure to standard error.
    pub fn tell(&self) {
        match self {
            Failure::Usage(what, advice) | Failure::Host(what, advice) => {
                screen::complain(&format!("{what}; {advice}"));
            }
            Failure::Files(files) => files.iter().for_each(problems::show),
            Failure::Internal(what) => {
                screen::complain(&format!("{what}; this is a bug in Knee, please report it"));
            }
            // Said when it was pressed.
            Failure::Interrupted => {}
        }
    }
}
