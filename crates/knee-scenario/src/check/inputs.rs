//! Input files of a scenario: traces, loss records, pages, manifests of videos and access logs.

use crate::model::InputFile;
use crate::read::At;
use crate::ready;
use crate::source::{Reading, beside, file_name};
use knee_foreign::{
    Columns, FileError, Manifest, Quantity, Series, is_loaded_page, join_manifests, read_manifest,
    read_series,
};
use knee_link::Trace;
use knee_units::foreign_format;
use knee_units::registry::SelectionError;
use knee_workload::{AccessLog, LogChoice, Mix, PageFile};
use std::sync::Arc;

/// Folder of a resolved scenario's input files, beside the scenario. A folder of their own keeps
/// their names from colliding with files that a run writes.
pub const INPUTS: &str = "inputs";

/// The input files, each read once, and the processes that flows share.
pub(crate) struct Inputs<'f> {
    folder: &'f str,
    pub files: Vec<InputFile>,
    /// The first mix of each named process.
    processes: Vec<(String, Mix)>,
    /// Processes that follow a log, each with the name of its file.
    followed: Vec<(String, String)>,
}

impl<'f> Inputs<'f> {
    pub(crate) fn new(folder: &'f str) -> Inputs<'f> {
        Inputs { folder, files: Vec::new(), processes: Vec::new(), followed: Vec::new() }
    }

    /// Reports a mix that differs from another one of the same process.
    pub(crate) fn share(&mut self, process: &At<String>, mix: &Mix, reading: &mut Reading<'_>) {
        match self.processes.iter().find(|(name, _)| *name == process.value) {
            None => self.processes.push((process.value.clone(), mix.clone())),
            Some((_, first)) if first == mix => {}
            Some(_) => {
                let message = format!("two mixes of the process \"{}\" differ", process.value);
                let help = "write the same arrival_interval, count and sizes, or another process";
                reading.problem(process.span, message, help);
            }
        }
    }

    /// Reads a trace, named as in the resolved scenario.
    pub(crate) fn trace(
        &mut self,
        written: &At<String>,
        reading: &mut Reading<'_>,
    ) -> Option<Trace> {
        let (name, text) = self.text(written, "trace", reading)?;
        let read = || Trace::read(&name, &text).map_err(|error| error.to_string());
        // Its name is part of it.
        let key = format!("{name} {}", self.key(written));
        let read = reading.cache.traces.get(&key, read);
        read.map_err(|error| broken("trace", written, &error, reading)).ok()
    }

    /// Reads a value over time, of which a factor is told.
    pub(crate) fn series(
        &mut self,
        written: &At<String>,
        quantity: Quantity,
        (columns, scale): (&Columns<'_>, f64),
        reading: &mut Reading<'_>,
    ) -> Option<Series> {
        let bytes = self.bytes(written, "table", reading)?;
        let read = read_series(&bytes, quantity, columns).map_err(|error| {
            let FileError { line, problem, advice } = error;
            let message = format!("table \"{}\", line {line}: {problem}", written.value);
            reading.problem(written.span, message, advice);
        });
        let series = read.ok()?;
        let name = self.add(&written.value, bytes);
        let what = match quantity {
            Quantity::Rate => "rate",
            Quantity::Delay => "delay",
            Quantity::Loss => "loss",
        };
        let told = format!("{what} in {}", series.summary(scale));
        if let Some(file) = self.files.iter_mut().find(|file| file.name == name)
            && !file.read_as.contains(&told)
        {
            let before = std::mem::take(&mut file.read_as);
            file.read_as = if before.is_empty() { told } else { format!("{before}; {told}") };
        }
        Some(series)
    }

    /// Reads a loss record.
    pub(crate) fn loss(
        &mut self,
        written: &At<String>,
        reading: &mut Reading<'_>,
    ) -> Option<Arc<[bool]>> {
        let (_, text) = self.text(written, "loss record", reading)?;
        let read = || knee_link::read_loss(&text).map_err(|error| error.to_string());
        let read = reading.cache.losses.get(&self.key(written), read);
        read.map_err(|error| broken("loss record", written, &error, reading)).ok()
    }

    /// Reads a page.
    pub(crate) fn page(
        &mut self,
        written: &At<String>,
        reading: &mut Reading<'_>,
    ) -> Option<PageFile> {
        let bytes = self.bytes(written, "page", reading)?;
        let read = || knee_workload::read_page(&bytes).map_err(|error| error.to_string());
        let read = reading.cache.pages.get(&self.key(written), read);
        let told = |error: String| match is_loaded_page(&bytes) {
            true => unusable("page", written, &error, "", reading),
            false => broken("page", written, &error, reading),
        };
        let page = read.map_err(told).ok()?;
        let name = self.add(&written.value, bytes);
        self.say(&name, &page.read_as);
        Some(page)
    }

    /// Reads the manifest of a video: of several files all together.
    pub(crate) fn manifest(
        &mut self,
        written: &[&At<String>],
        reading: &mut Reading<'_>,
    ) -> Option<Manifest> {
        let mut read = Vec::new();
        for written in written {
            let bytes = self.bytes(written, "manifest", reading)?;
            let one = || read_manifest(&bytes).map_err(|error| error.to_string());
            let one = reading.cache.manifests.get(&self.key(written), one);
            let told = |error: String| unusable("manifest", written, &error, "", reading);
            let one = one.map_err(told).ok()?;
            let name = self.add(&written.value, bytes);
            self.say(&name, &one.to_string());
            read.push(one);
        }
        let first = written.first()?;
        let joined = join_manifests(read).map_err(|error| {
            let message = format!("manifest \"{}\": {}", first.value, error.problem);
            reading.problem(first.span, message, error.advice);
        });
        joined.ok()
    }

    /// Says what was read from a file.
    fn say(&mut self, name: &str, read_as: &str) {
        if let Some(file) = self.files.iter_mut().find(|file| file.name == name) {
            file.read_as = read_as.to_owned();
        }
    }

    /// Reads a text file that a parameter names.
    pub(crate) fn file(
        &mut self,
        written: &At<String>,
        what: &str,
        reading: &mut Reading<'_>,
    ) -> Option<String> {
        self.text(written, what, reading).map(|(_, text)| text)
    }

    /// Reads the chosen lines of an access log.
    pub(crate) fn log(
        &mut self,
        written: &At<String>,
        choice: &LogChoice,
        reading: &mut Reading<'_>,
    ) -> Option<AccessLog> {
        let bytes = self.bytes(written, "access log", reading)?;
        let read = || knee_workload::read_access_log(&bytes).map_err(|error| error.to_string());
        let read = reading.cache.logs.get(&self.key(written), read);
        let log = read.map_err(|error| broken("access log", written, &error, reading)).ok()?;
        let name = self.add(&written.value, bytes);
        if let Some(file) = self.files.iter_mut().find(|file| file.name == name) {
            let more = log.more();
            let more = if more.is_empty() { more } else { format!("; {more}") };
            file.read_as = format!("{log}{more}");
        }
        let wrong = |error| broken("access log", written, &format!("{error}"), reading);
        log.choose(choice).map_err(wrong).ok()
    }

    /// Remembers that a process follows a log.
    pub(crate) fn follows(&mut self, process: &str, log: &str) {
        self.followed.push((process.to_string(), log.to_string()));
    }

    /// Adds to what is told about the log that a process follows, once.
    pub(crate) fn note_followed(&mut self, process: &str, what: &str) {
        let log = self.followed.iter().find(|(name, _)| name == process);
        if let Some((_, log)) = log.cloned() {
            self.note(&log, what);
        }
    }

    /// Adds to what is told about a file, once.
    pub(crate) fn note(&mut self, name: &str, what: &str) {
        let file = self.files.iter_mut().find(|file| file.name == name);
        if let Some(file) = file.filter(|file| !file.read_as.ends_with(what)) {
            file.read_as = format!("{}; {what}", file.read_as);
        }
    }

    /// Returns the name of a file in the resolved scenario, and its text.
    fn text(
        &mut self,
        written: &At<String>,
        what: &str,
        reading: &mut Reading<'_>,
    ) -> Option<(String, String)> {
        let bytes = self.bytes(written, what, reading)?;
        if let Some(format) = foreign_format(&bytes) {
            let message = format!("{what} \"{}\" is {}", written.value, format.name);
            reading.problem(written.span, message, format.advice);
            return None;
        }
        let Ok(text) = std::str::from_utf8(&bytes).map(str::to_string) else {
            let message = format!("{what} \"{}\" is not valid UTF-8", written.value);
            reading.problem(written.span, message, "write the name of a text file");
            return None;
        };
        Some((self.add(&written.value, bytes), text))
    }

    fn bytes(
        &self,
        written: &At<String>,
        what: &str,
        reading: &mut Reading<'_>,
    ) -> Option<Arc<[u8]>> {
        if let Some(bytes) = ready::file(&written.value) {
            return Some(bytes.into());
        }
        match reading.load(&self.key(written)) {
            Ok(bytes) => Some(bytes),
            Err(reason) => {
                let message = format!("cannot read {what} \"{}\": {reason}", written.value);
                let help = "write the name of a file, relative to the folder of this one";
                reading.problem(written.span, message, help);
                None
            }
        }
    }

    /// Returns the name by which a file is loaded.
    fn key(&self, written: &At<String>) -> String {
        beside(self.folder, &written.value)
    }

    /// Imports a class of a file; returns the controller's name.
    pub(crate) fn class(
        &mut self,
        file: &str,
        class: Option<&str>,
        reading: &mut Reading<'_>,
    ) -> Result<String, SelectionError> {
        let imported = reading.import(&beside(self.folder, file), class)?;
        self.add(file, imported.bytes);
        Ok(imported.name)
    }

    /// Adds a file; returns its name below [`INPUTS`], which is unique.
    fn add(&mut self, written: &str, bytes: Arc<[u8]>) -> String {
        if let Some(known) = self.files.iter().find(|file| file.written == written) {
            return known.name.clone();
        }
        let last = file_name(written);
        let taken = |name: &str| self.files.iter().any(|file| file.name == name);
        let numbered = (2..).map(|number| format!("{INPUTS}/{number}-{last}"));
        let free =
            std::iter::once(format!("{INPUTS}/{last}")).chain(numbered).find(|name| !taken(name));
        let name = free.unwrap_or_default();
        let (name_of_it, written) = (name.clone(), written.to_string());
        let read_as = String::new();
        self.files.push(InputFile { name: name_of_it, written, bytes, read_as });
        name
    }

    /// Returns the name of a file in the resolved scenario.
    pub(crate) fn resolved(&self, written: &str) -> String {
        let known = self.files.iter().find(|file| file.written == written);
        known.map_or_else(|| written.to_string(), |file| file.name.clone())
    }
}

/// Reports a file in which something is wrong. `error` states what, then what to write.
fn broken(what: &str, written: &At<String>, error: &str, reading: &mut Reading<'_>) {
    unusable(what, written, error, "in that file, ", reading);
}

/// Reports a file that cannot be used, once however often it is named. `error` states what is wrong,
/// then, after `place`, what to do.
fn unusable(what: &str, written: &At<String>, error: &str, place: &str, reading: &mut Reading<'_>) {
    let (problem, advice) = error.split_once("; ").unwrap_or((error, "correct the file"));
    let message = format!("{what} \"{}\" is invalid: {problem}", written.value);
    if !reading.has_told(&message) {
        reading.problem(written.span, message, format!("{place}{advice}"));
    }
}
