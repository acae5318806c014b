//! `knee completions`.

use crate::arguments::Completions;
use crate::failure::{Ending, Failure};
use crate::screen;

/// Prints a shell's completion script for commands and arguments.
pub fn completions(arguments: &Completions) -> Result<Ending, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::command(), "knee", &mut script);
    screen::print(&String::from_utf8_lossy(&script))?;
    Ok(Ending::Done)
}
