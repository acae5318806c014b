//! `knee export`.

use crate::advice::cannot_write;
use crate::arguments::{Export, Exported};
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::write_qlog;
use std::fs::{self, File};
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

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
            let traces = to_file(path, *force, |file| Ok(write_qlog(directory, flow, file)?))?;
            let plural = if traces == 1 { "" } else { "s" };
            screen::print(&format!("{}: {traces} connection{plural}\n", path.display()))?;
        }
    }
    Ok(Ending::Done)
}

/// Writes a file completely or not at all.
fn to_file<T>(
    path: &Path,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if path.exists() && !force {
        let what = format!("{} exists", path.display());
        return Err(Failure::Usage(what, "name another file, or add --force".to_string()));
    }
    if force {
        // Never overwrite in place: the file could be a link.
        let _ = fs::remove_file(path);
    }
    let file = File::create_new(path).map_err(|error| cannot_write(path, &error))?;
    let mut file = BufWriter::new(file);
    let done = write(&mut file).and_then(|done| {
        file.flush().map_err(|error| cannot_write(path, &error))?;
        Ok(done)
    });
    if done.is_err() {
        let _ = fs::remove_file(path);
    }
    done
}
