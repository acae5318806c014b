//! `knee export`.

use crate::arguments::{Export, Exported};
use crate::failure::{Ending, Failure};
use crate::out_file::OutFile;
use crate::screen;
use knee_lab::write_qlog;
use knee_present::words::count;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Exports a run to the format of another tool.
pub fn export(arguments: &Export) -> Result<Ending, Failure> {
    match &arguments.what {
        Exported::Qlog { directory, flow, out, force } => {
            let traces =
                write_to(out.as_ref(), *force, |out| Ok(write_qlog(directory, flow, out)?))?;
            print_count(out.as_ref(), traces as u64, "connection")?;
        }
        Exported::Csv { directory, table, out, force } => {
            let file = file_of(directory, table)?;
            let write = |out: &mut dyn Write| {
                knee_record::write_csv(directory, &file, out)
                    .map_err(|error| Failure::from(knee_lab::Error::from(error)))
            };
            let rows = write_to(out.as_ref(), *force, write)?;
            print_count(out.as_ref(), rows, "row")?;
        }
    }
    Ok(Ending::Done)
}

/// Writes to a file or, if there is none, to the standard output.
fn write_to<T>(
    out: Option<&PathBuf>,
    force: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(path) = out {
        return OutFile::new(path, force)?.write(write);
    }
    let mut out = Printed { out: BufWriter::new(stdout().lock()), is_closed: false };
    let done = write(&mut out)?;
    out.flush().or_else(screen::not_printed)?;
    Ok(done)
}

/// Says what was written to a file.
fn print_count(out: Option<&PathBuf>, number: u64, noun: &str) -> Result<(), Failure> {
    let Some(path) = out else { return Ok(()) };
    let plural = if number == 1 { "" } else { "s" };
    screen::print(&format!("{}: {} {noun}{plural}\n", path.display(), count(number)))
}

/// Returns the file of a table of a directory.
fn file_of(directory: &Path, table: &str) -> Result<String, Failure> {
    const ENDING: &str = ".parquet";
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut there: Vec<String> =
        names.filter_map(|name| name.strip_suffix(ENDING).map(str::to_string)).collect();
    there.sort();
    if there.iter().any(|name| name == table) {
        return Ok(format!("{table}{ENDING}"));
    }
    let what = format!("{} has no table {table}", directory.display());
    let advice = match there.is_empty() {
        true => "name the directory of a run".to_string(),
        false => format!("write --table with one of {}", there.join(", ")),
    };
    Err(Failure::Usage(what, advice))
}

/// The standard output, which a reader may close before everything is written.
struct Printed<W> {
    out: W,
    is_closed: bool,
}

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        self.out.write(bytes).or_else(|error| self.pass_over(error).map(|()| bytes.len()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        self.out.flush().or_else(|error| self.pass_over(error))
    }
}

impl<W> Printed<W> {
    fn pass_over(&mut self, error: std::io::Error) -> std::io::Result<()> {
        self.is_closed |= error.kind() == std::io::ErrorKind::BrokenPipe;
        if self.is_closed { Ok(()) } else { Err(error) }
    }
}
