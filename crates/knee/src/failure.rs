//! How a command ends, and with which exit code.

use crate::{problems, screen};

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
    /// A claim, or the bytes of a record, did not come out as on record.
    Differs,
    /// Stopped by hand; what there was is kept.
    Interrupted,
}

impl Ending {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Ending::Done => 0,
            Ending::Differs => 1,
            Ending::Interrupted => INTERRUPTED,
        }
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
    pub fn code(&self) -> u8 {
        match self {
            Failure::Usage(..) | Failure::Files(_) => USAGE,
            Failure::Host(..) => HOST,
            Failure::Internal(_) => INTERNAL,
        }
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
