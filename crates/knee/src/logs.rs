//! `knee report` for access logs.

use crate::arguments::{Format, Report};
use crate::failure::{Ending, Failure};
use crate::observed::providers;
use crate::print::Print;
use crate::progress::reading;
use knee_foreign::{Purpose, purpose};
use knee_lab::Error;
use knee_lab::command::quoted;
use knee_lab::directory::REPORT;
use knee_live::{Groups, LiveError, LogReader, LogSettings};
use knee_present::Document;
use knee_record::{LogReport, MANIFEST, write_text};
use knee_report::{log_facts, log_page, log_says, log_screen, log_tables};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads the logs, prints their report, and writes its page.
pub fn report(arguments: &Report) -> Result<Ending, Failure> {
    if let Some(option) = arguments.observed.only_for_observed() {
        let what = format!("{option} is for a folder of knee observe, not for access logs");
        return Err(Failure::Usage(what, "remove it".to_string()));
    }
    let folder = folder(arguments)?;
    let report = read(arguments)?;
    let format = match arguments.markdown {
        true => Format::Markdown,
        false => arguments.observed.print.format(),
    };
    if format != Format::Text {
        document(&report, true).print(format, &report)?;
        return Ok(Ending::Done);
    }
    let page = log_page(&report, &command(arguments)).map_err(Error::from)?;
    let path = folder.join(REPORT);
    let wrong = |source| knee_record::Error::Io { action: "create", path: folder.clone(), source };
    fs::create_dir_all(&folder).map_err(wrong)?;
    write_text(&path, &page)?;
    let document = document(&report, false);
    document.words(format!("\npage     {}\n", path.display())).print(format, &report)?;
    Ok(Ending::Done)
}

/// Returns the folder of the page.
fn folder(arguments: &Report) -> Result<PathBuf, Failure> {
    let first = arguments.paths.first().and_then(|path| path.file_name()).unwrap_or_default();
    let folder = arguments.logs.out.clone().unwrap_or_else(|| Path::new("knee-out").join(first));
    if folder.join(MANIFEST).exists() {
        let what = format!("{} has the records of a run", folder.display());
        return Err(Failure::Usage(what, "write elsewhere with --out DIR".to_string()));
    }
    Ok(folder)
}

fn read(arguments: &Report) -> Result<LogReport, Failure> {
    let mut reader = LogReader::new(LogSettings {
        groups: Groups::new(arguments.logs.group.clone())?,
        providers: arguments.observed.providers.as_deref().map(providers).transpose()?,
        since_ns: arguments.logs.since.map(|since| since.0),
    });
    for path in &arguments.paths {
        let file = knee_scenario::open_file(path).map_err(|error| {
            let what = format!("cannot read {}: {error}", path.display());
            Failure::Usage(what, "write the names of access logs, or of one folder".to_string())
        })?;
        reader.read(path, reading(file, path)).map_err(|error| no_log(error, &arguments.paths))?;
    }
    Ok(reader.report())
}

/// Largest file that is looked at again.
const OTHER_BYTES_MAX: u64 = 64 << 20;

/// What a file is that is no access log.
pub fn other_purpose(path: &Path) -> Option<Purpose> {
    let mut bytes = Vec::new();
    let file = knee_scenario::open_file(path).ok()?;
    file.take(OTHER_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    purpose(&bytes)
}

/// Says of a single file of another kind what else the command takes.
fn no_log(error: LiveError, paths: &[PathBuf]) -> Failure {
    if let (LiveError::Table { path, .. }, [_]) = (&error, paths)
        && let Some(Purpose { what, advice }) = other_purpose(path)
    {
        let what = format!("{} is no access log, but {what}", path.display());
        return Failure::Usage(what, advice.replace("FILE", &path.to_string_lossy()));
    }
    match error {
        LiveError::Table { path, line: 1, problem, advice } if paths.len() == 1 => {
            let what = format!("{} is no access log: {problem}", path.display());
            let advice = format!("{advice}; or write the name of a folder with records of Knee");
            Failure::Usage(what, advice)
        }
        error => error.into(),
    }
}

/// The command that recreates the page.
fn command(arguments: &Report) -> String {
    let mut words = vec!["knee report".to_string()];
    words.extend(arguments.paths.iter().map(|path| quoted(&path.to_string_lossy())));
    let logs = &arguments.logs;
    words.extend(logs.since.iter().map(|since| format!("--since {since}")));
    let group = |group: &knee_live::Group| {
        format!("--group {}", quoted(&format!("{}={}", group.name, group.prefix)))
    };
    words.extend(logs.group.iter().map(group));
    for (option, path) in [("--providers", &arguments.observed.providers), ("--out", &logs.out)] {
        words.extend(
            path.iter().map(|path| format!("{option} {}", quoted(&path.to_string_lossy()))),
        );
    }
    words.join(" ")
}

/// The report for a terminal, a table or a pull request. What does not fit on one screen is for the
/// page, unless everything is to be shown.
fn document(report: &LogReport, everything: bool) -> Document {
    let says = log_says(report).into_iter();
    let mut document = says.fold(Document::default(), Document::said);
    document = document.said(log_facts(report).join(" · "));
    let tables = if everything { log_tables(report) } else { log_screen(report) };
    for table in tables {
        document = document.words(format!("\n{}\n", table.title)).table(table);
    }
    document
}
