//! The objects of a page from a file.

use crate::dependencies::check_dependencies;
use crate::{PageFileError, PageObject};
use knee_foreign::whole_bytes;
use std::collections::BTreeMap;

const COLUMNS: [&str; 3] = ["name", "bytes", "after"];
const EXAMPLE: &str = "begin with the line name,bytes,after and write a line for each object, \
                       such as logo.png,5300,index.html style.css";

/// Reads the objects of a page from comma-separated values with the columns `name,bytes,after`. The
/// last one contains the names of the objects that must have arrived before this one is discovered,
/// separated by spaces; it is empty for objects that are requested at once.
///
/// # Errors
///
/// The first invalid line, with what to write instead; also a cycle of objects that wait for each
/// other, with the line of one of them.
pub fn read_page(text: &str) -> Result<Vec<PageObject>, PageFileError> {
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
    Ok(PageObject { name: row.name.clone(), bytes: row.bytes, after })
}

/// Returns at most 30 characters of a text.
fn shorten(text: &str) -> String {
    knee_foreign::shorten(text, 30)
}
