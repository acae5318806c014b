//! Sources of texts, and the record of what was read and what is wrong with it.

use crate::algorithms::{Algorithms, ClassFile};
use crate::cache::FileCache;
use crate::error::{Errors, Problem, SourceText};
use crate::tree::Span;
use knee_units::foreign_format;
use knee_units::registry::SelectionError;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Finds the files that a scenario or a study names.
pub trait Loader {
    /// Returns the bytes of the file that the scenario calls `name`: a path with `/` between its
    /// parts, relative to the folder of the first file read.
    ///
    /// # Errors
    /// Why the file cannot be read, as part of a sentence.
    fn load(&self, name: &str) -> Result<Vec<u8>, String>;

    /// Returns the bytes of a file of Python that the scenario names, and where it is on disk, if it
    /// is there.
    ///
    /// # Errors
    /// Why the file cannot be read, as part of a sentence.
    fn load_class(&self, name: &str) -> Result<(Vec<u8>, Option<PathBuf>), String> {
        Ok((self.load(name)?, None))
    }
}

/// Files in a folder of this machine.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Loader for Folder {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        load_file(&self.0.join(name))
    }
}

/// Returns the bytes of an input file.
///
/// # Errors
/// Why it cannot be read, as part of a sentence.
pub fn load_file(path: &Path) -> Result<Vec<u8>, String> {
    read_file(path, FILE_BYTES_MAX).map_err(|error| reason(&error))
}

/// Returns the text of a scenario or study.
///
/// # Errors
/// Why it cannot be read, as part of a sentence.
pub fn load_text(path: &Path) -> Result<String, String> {
    text(read_file(path, TEXT_BYTES_MAX).map_err(|error| reason(&error))?)
}

/// Returns the bytes of a file as text without a byte order mark.
///
/// # Errors
/// Why it is no text, as part of a sentence.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(format) = foreign_format(&bytes) {
        return Err(format!("it is {}; {}", format.name, format.advice));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_string())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// Largest input file; a larger one is a mistake.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Largest scenario or study; a larger file is of another kind.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Reads a regular file of at most `bytes_max` bytes, a multiple of 1 MiB. Pipes, which may block
/// for ever, and devices, which may have no end, are not opened.
///
/// # Errors
/// If it is not a regular file, or the error of the system.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_open(open_file(path)?, bytes_max)
}

/// Reads an open file of at most `bytes_max` bytes, a multiple of 1 MiB.
///
/// # Errors
/// If it is larger, or the error of the system.
pub fn read_open(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let what = format!("it is larger than {} MiB", bytes_max >> 20);
        io::Error::new(ErrorKind::FileTooLarge, what)
    };
    if file.metadata()?.len() > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The length that the system reports can be wrong: for /proc it is zero.
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Reads a regular file of UTF-8 text; see [`read_file`].
///
/// # Errors
/// Those of [`read_file`], and if it is not UTF-8.
pub fn read_text_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_open_text(open_file(path)?, bytes_max)
}

/// Reads an open file of UTF-8 text; see [`read_open`].
///
/// # Errors
/// Those of [`read_open`], and if it is not UTF-8.
pub fn read_open_text(file: File, bytes_max: u64) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read_open(file, bytes_max)?).map_err(not_utf8)
}

/// Opens a regular file; see [`read_file`].
///
/// # Errors
/// If it is not a regular file, or the error of the system.
pub fn open_file(path: &Path) -> io::Result<File> {
    // Opening a device may have an effect.
    check_regular(&fs::metadata(path)?)?;
    // It may be another one by now. Opening a pipe would wait for its other end (fifo(7)).
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(about: &Metadata) -> io::Result<()> {
    let what = match about.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "it is a folder",
        _ => "it is not a regular file, but a pipe, a device or similar; write it to a file",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// Opens a regular file of a folder, unless it leads out of the folder; see [`inside`]. It is the open
/// file that is checked, which nobody can replace any more.
///
/// # Errors
/// Those of [`inside`] and [`open_file`].
pub fn open_inside(folder: &Path, name: &Path) -> io::Result<File> {
    let file = open_file(&inside(folder, name)?)?;
    // The system says where an open file is (proc(5)).
    let place = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match (real(folder), place) {
        (Ok(folder), Ok(place)) if !place.starts_with(&folder) => Err(leads_out()),
        _ => Ok(file),
    }
}

/// Returns the bytes of an input file in a folder; see [`open_inside`].
///
/// # Errors
/// Why it cannot be read, as part of a sentence.
pub fn load_inside(folder: &Path, name: &Path) -> Result<Vec<u8>, String> {
    let file = open_inside(folder, name).map_err(|error| reason(&error))?;
    read_open(file, FILE_BYTES_MAX).map_err(|error| reason(&error))
}

/// Returns the path of `name` in `folder`, unless it leads out of the folder: a folder from somebody
/// else may hold links to any file of this machine. What is not there has a path as well.
///
/// # Errors
/// If `name` has other parts than names, or a link leads out.
pub fn inside(folder: &Path, name: &Path) -> io::Result<PathBuf> {
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        let what = "its name points outside the folder";
        return Err(io::Error::new(ErrorKind::InvalidInput, what));
    }
    let path = folder.join(name);
    match (real(folder), fs::canonicalize(&path)) {
        (Ok(folder), Ok(place)) if !place.starts_with(&folder) => Err(leads_out()),
        _ => Ok(path),
    }
}

fn leads_out() -> io::Error {
    let what = "it is a link that leads out of its folder; copy the file there instead";
    io::Error::new(ErrorKind::InvalidInput, what)
}

/// Returns the path of a folder without links; the empty path is that of this process.
fn real(folder: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

/// Describes frequent errors in the same words on every system.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_string(),
        ErrorKind::PermissionDenied => "permission denied".to_string(),
        _ => error.to_string(),
    }
}

/// Files compiled into a program: name and bytes of each.
#[derive(Clone, Copy, Debug)]
pub struct Embedded<'f>(pub &'f [(&'f str, &'f [u8])]);

impl Loader for Embedded<'_> {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map(|(_, bytes)| bytes.to_vec()).ok_or_else(|| "there is no such file".to_string())
    }
}

/// The origin of a text that was read elsewhere.
#[derive(Clone, Copy)]
pub struct Source<'l> {
    /// Name of the file, for messages; its input files are looked up in its folder.
    pub name: &'l str,
    /// Finds the input files.
    pub loader: &'l dyn Loader,
}

/// Everything collected while reading a scenario or a study.
pub(crate) struct Reading<'l> {
    loader: &'l dyn Loader,
    /// Algorithms that may be named.
    pub(crate) algorithms: &'l Algorithms,
    texts: Vec<(usize, SourceText)>,
    problems: Vec<(Span, String, String)>,
    /// Problems that are not kept.
    more: usize,
    /// What was read before and now.
    pub(crate) cache: &'l FileCache,
    grounds: Vec<String>,
}

impl<'l> Reading<'l> {
    pub(crate) fn new(
        loader: &'l dyn Loader,
        algorithms: &'l Algorithms,
        cache: &'l FileCache,
    ) -> Reading<'l> {
        let (texts, problems) = (Vec::new(), Vec::new());
        Reading { loader, algorithms, texts, problems, more: 0, cache, grounds: Vec::new() }
    }

    /// Adds grounds that a study can name in addition to those of this version.
    pub(crate) fn with_grounds(mut self, grounds: &[&str]) -> Reading<'l> {
        self.grounds = grounds.iter().map(|name| name.to_string()).collect();
        self
    }

    /// Returns those grounds.
    pub(crate) fn grounds(&self) -> &[String] {
        &self.grounds
    }

    /// Adds a text and returns the place of its first byte. A file that is read twice keeps its
    /// place, so that its problems are reported once.
    pub(crate) fn add_text(&mut self, name: &str, text: &str) -> usize {
        let same = |(_, known): &&(usize, SourceText)| known.name == name && known.text == text;
        if let Some((base, _)) = self.texts.iter().find(same) {
            return *base;
        }
        // One byte between two texts, so that the end of one is not the start of the next.
        let base = self.texts.last().map_or(0, |(base, last)| base + last.text.len() + 1);
        self.texts.push((base, SourceText { name: name.to_string(), text: text.to_string() }));
        base
    }

    /// Reports a problem. The words may quote the file, so they are reduced to one line of limited
    /// length. Only the first [`PROBLEMS_MAX`] are kept.
    pub(crate) fn problem(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.problems.len() == PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        self.problems.push((
            span,
            one_line(&message.into(), MESSAGE_MAX),
            one_line(&help.into(), HELP_MAX),
        ));
    }

    /// Returns whether a problem was reported in these words, at any place.
    pub(crate) fn has_told(&self, message: &str) -> bool {
        let line = one_line(message, MESSAGE_MAX);
        self.problems.iter().any(|(_, told, _)| *told == line)
    }

    /// Returns the number of problems so far.
    pub(crate) fn problem_count(&self) -> usize {
        self.problems.len()
    }

    /// Returns the bytes of a file.
    pub(crate) fn load(&self, name: &str) -> Result<Arc<[u8]>, String> {
        self.cache.bytes.get(name, || Ok(self.loader.load(name)?.into()))
    }

    /// Imports the class of a file, and returns it.
    pub(crate) fn import(
        &mut self,
        name: &str,
        class: Option<&str>,
    ) -> Result<ClassFile, SelectionError> {
        let load = || {
            let (bytes, place) = self.loader.load_class(name)?;
            Ok((bytes.into(), place))
        };
        let loaded = self.cache.classes.get(name, load);
        let (bytes, place) = loaded.map_err(|reason| SelectionError {
            parameter: None,
            problem: format!("cannot read the controller in {name}: {reason}"),
            advice: "write FILE.py:CLASS, with a file of the folder in which you are or of the \
                     scenario's"
                .to_string(),
        })?;
        let file = ClassFile::new(name, class, bytes, place);
        self.algorithms.import(file.clone())?;
        Ok(file)
    }

    /// Returns the result if there were no problems.
    pub(crate) fn finish<T>(mut self, result: Option<T>) -> Result<T, Errors> {
        match result {
            Some(result) if self.problems.is_empty() => Ok(result),
            _ => {
                self.problems.sort_by_key(|(span, _, _)| span.start);
                self.problems.dedup();
                if let (more @ 1.., Some((span, ..))) = (self.more, self.problems.last()) {
                    let (last, help) = (*span, "correct these first".to_string());
                    self.problems.push((last, format!("there are {more} more problems"), help));
                }
                let problems = self.problems.iter().map(|problem| self.place(problem)).collect();
                let sources = self.texts.into_iter().map(|(_, source)| source).collect();
                Err(Errors { problems, sources })
            }
        }
    }

    fn place(&self, (span, message, help): &(Span, String, String)) -> Problem {
        let after = self.texts.partition_point(|(base, _)| *base <= span.start);
        let source = after.saturating_sub(1);
        let (base, text) = &self.texts[source];
        let start = floor_char(&text.text, span.start - base);
        let end = floor_char(&text.text, span.end.saturating_sub(*base).max(start));
        Problem { source, span: start..end, message: message.clone(), help: help.clone() }
    }
}

/// Number of problems that are reported; a file with more of them is of another kind.
const PROBLEMS_MAX: usize = 1000;
/// Largest number of characters of a message, which may quote the file.
const MESSAGE_MAX: usize = 400;
/// Largest number of characters of a help, which may list a hundred names.
const HELP_MAX: usize = 8_000;

fn one_line(sentence: &str, characters: usize) -> String {
    let mut line = String::new();
    for c in sentence.chars().take(characters) {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    if sentence.chars().nth(characters).is_some() {
        line.push('…');
    }
    line
}

/// Returns the nearest place at or before `at` where a character begins.
fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Joins `folder` and `name`, as written in a file in `folder`; an absolute name stays as it is.
pub(crate) fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() || name.starts_with('/') {
        name.to_string()
    } else {
        format!("{folder}/{name}")
    }
}

/// Returns the folder part of a file's name; empty if it has none.
pub(crate) fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns a file's name without its folder, on any host.
pub fn file_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}
