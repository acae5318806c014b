//! The objects of a page from a file.

use crate::dependencies::check_dependencies;
use crate::{PageFileError, PageObject};
use knee_foreign::{LoadedPage, Protocol, is_loaded_page, read_loaded_page, whole_bytes};
use std::collections::BTreeMap;

/// A page from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct PageFile {
    /// Its objects.
    pub objects: Vec<PageObject>,
    /// Protocol that each origin had, as far as the file says.
    pub origins: Vec<Protocol>,
    /// What was read; empty for a list of objects.
    pub read_as: String,
}

const COLUMNS: [&str; 3] = ["name", "bytes", "after"];
const EXAMPLE: &str = "begin with the line name,bytes,after and write a line for each object, \
                       such as logo.png,5300,index.html style.css; or write the name of a HAR";

/// Reads a page: what a browser recorded (HAR 1.2, or a trace of DevTools' performance panel), or
/// comma-separated values with the columns `name,bytes,after`. The last one contains the names of the
/// objects that must have arrived before this one is discovered, separated by spaces; it is empty for
/// objects that are requested at once.
///
/// # Errors
///
/// The first invalid line, with what to write instead; also a cycle of objects that wait for each
/// other, with the line of one of them.
pub fn read_page(bytes: &[u8]) -> Result<PageFile, PageFileError> {
    if is_loaded_page(bytes) {
        return read_loaded_page(bytes).map(loaded);
    }
    if let Some(format) = knee_units::foreign_format(bytes) {
        return Err(PageFileError::new(1, format!("it is {}", format.name), format.advice));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        PageFileError::new(1, "it is not valid UTF-8", "write the name of a text file")
    })?;
    if text.trim_start_matches('\u{feff}').trim_start().starts_with(['<', '#']) {
        let problem = "it is XML or a playlist, not the objects of a page";
        return Err(PageFileError::new(1, problem, EXAMPLE));
    }
    let objects = listed(text)?;
    Ok(PageFile { objects, origins: vec![Protocol::Unknown], read_as: String::new() })
}

/// Returns a page as it was recorded.
fn loaded(page: LoadedPage) -> PageFile {
    let read_as = page.to_string();
    let object = |one: knee_foreign::LoadedObject| PageObject {
        name: one.name,
        bytes: one.bytes,
        after: one.after,
        delay: one.delay,
        origin: one.origin,
    };
    PageFile {
        objects: page.objects.into_iter().map(object).collect(),
        origins: page.origins.into_iter().map(|origin| origin.protocol).collect(),
        read_as,
    }
}

/// Reads a list of objects.
fn listed(text: &str) -> Result<Vec<PageObject>, PageFileError> {
    let mut lines = knee_foreign::rows(text)?;
    let mut line = knee_foreign::Row::default();
    let first = lines.next(&mut line)?;
    check_columns(first.then_some(&line))?;
    let mut rows = Vec::new();
    while lines.next(&mut line)? {
        rows.push(row(&line)?);
    }
    if rows.is_empty() {
        return Err(PageFileError::new(1, "no object follows", EXAMPLE));
    }
    let places = places(&rows)?;
    let objects: Vec<PageObject> =
        rows.iter().map(|row| object(row, &places)).collect::<Result<_, _>>()?;
    match check_dependencies(&objects) {
        Ok(()) => Ok(objects),
        Err(cycle) => {
            let message = cycle.to_string();
            let (problem, advice) = message.split_once("; ").unwrap_or((&message, ""));
            Err(PageFileError::new(rows[cycle.objects[0]].line, problem, advice))
        }
    }
}

struct Row {
    line: usize,
    name: String,
    bytes: u64,
    after: String,
}

fn check_columns(first: Option<&knee_foreign::Row>) -> Result<(), PageFileError> {
    let Some(first) = first else {
        return Err(PageFileError::new(1, "there is no line in it", EXAMPLE));
    };
    let names: Vec<&str> = first.fields().collect();
    let same = |(name, known): (&&str, &str)| name.eq_ignore_ascii_case(known);
    if names.len() == COLUMNS.len() && names.iter().zip(COLUMNS).all(same) {
        return Ok(());
    }
    let problem = format!("\"{}\" is not name,bytes,after", first.written());
    Err(PageFileError::new(first.line, problem, EXAMPLE))
}

fn row(found: &knee_foreign::Row) -> Result<Row, PageFileError> {
    let line = found.line;
    let found: Vec<&str> = found.fields().collect();
    let [name, size, after] = found[..] else {
        let problem = format!("{} fields instead of name,bytes,after", found.len());
        let advice = "write all three, with spaces between several names in the last; \
                      an object that comes after none ends in a comma";
        return Err(PageFileError::new(line, problem, advice));
    };
    if name.is_empty() || name.contains(char::is_whitespace) {
        let problem = format!("\"{}\" is not a name", shorten(name));
        return Err(PageFileError::new(line, problem, "write one word, such as logo.png"));
    }
    let bytes = whole_bytes(line, size)?;
    if bytes == 0 {
        let problem = format!("\"{}\" has no bytes", shorten(name));
        let advice = "write at least 1: an answer has a header";
        return Err(PageFileError::new(line, problem, advice));
    }
    Ok(Row { line, name: name.to_owned(), bytes, after: after.to_owned() })
}

/// Returns the index of each name.
fn places(rows: &[Row]) -> Result<BTreeMap<&str, usize>, PageFileError> {
    let mut places = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(before) = places.insert(row.name.as_str(), place) {
            let (name, before): (_, &Row) = (shorten(&row.name), &rows[before]);
            let problem = format!("\"{name}\" stands on line {} already", before.line);
            return Err(PageFileError::new(row.line, problem, "give each object its own name"));
        }
    }
    Ok(places)
}

fn object(row: &Row, places: &BTreeMap<&str, usize>) -> Result<PageObject, PageFileError> {
    let place = |name: &str| {
        places.get(name).copied().ok_or_else(|| {
            let problem = format!(
                "\"{}\" comes after \"{}\", which is no object of the page",
                shorten(&row.name),
                shorten(name)
            );
            let advice = "write names from the first column, separated by spaces";
            PageFileError::new(row.line, problem, advice)
        })
    };
    let after = row.after.split_whitespace().map(place).collect::<Result<_, _>>()?;
    Ok(PageObject { name: row.name.clone(), bytes: row.bytes, after, ..PageObject::default() })
}

/// Returns at most 30 characters of a text.
fn shorten(text: &str) -> String {
    knee_foreign::shorten(text, 30)
}
