//! `knee init`.

use crate::arguments::Init;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::command::quoted;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a commented scenario.
pub fn init(arguments: &Init) -> Result<Ending, Failure> {
    let file = &arguments.file;
    if arguments.force {
        // Not over what is there: it could be a link to something else.
        let _ = fs::remove_file(file);
    }
    match create(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("{} exists", file.display());
            return Err(Failure::Usage(what, "name another file, or add --force".to_string()));
        }
        Err(error) => {
            let what = format!("cannot write {}: {error}", file.display());
            return Err(Failure::Host(what, "name another file".to_string()));
        }
        Ok(()) => {}
    }
    let next = quoted(&file.to_string_lossy());
    screen::print(&format!("{} written\nrun it   knee run {next}\n", file.display()))?;
    Ok(Ending::Done)
}

fn create(path: &Path) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(knee_scenario::template().as_bytes())
}
