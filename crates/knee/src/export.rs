//! `knee export`.

use crate::arguments::{Export, Exported};
use crate::failure::{Ending, Failure};
use crate::out_file::OutFile;
use crate::screen;
use knee_lab::write_qlog;
use std::io::{Write, stdout};

/// Exports a run to the format of another tool.
pub fn export(arguments: &Export) -> Result<Ending, Failure> {
    let Exported::Qlog { directory, flow, out, force } = &arguments.what;
    match out {
        None => {
            let mut text = Vec::new();
            write_qlog(directory, flow, &mut text)?;
            stdout().lock().write_all(&text).or_else(screen::not_printed)?;
        }
        Some(path) => {
            let traces =
                OutFile::new(path, *force)?.write(|file| Ok(write_qlog(directory, flow, file)?))?;
            let plural = if traces == 1 { "" } else { "s" };
            screen::print(&format!("{}: {traces} connection{plural}\n", path.display()))?;
        }
    }
    Ok(Ending::Done)
}
