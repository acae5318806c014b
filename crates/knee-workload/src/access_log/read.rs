//! Recognises the format of a log and reads its lines, one at a time.

use super::extended::Extended;
use super::fields::{At, Field, More, instant};
use super::taken::{Taken, TooMuch};
use super::{AccessLog, PassedOver, json};
use crate::csv::{
    AccessLogError, CsvError, NotASize, Row, Rows, bytes, next_line, shorten_to, size,
};
use flate2::read::MultiGzDecoder;
use knee_units::{GZIP, LineError, Lines, Unpacked, foreign_format};
use std::collections::BTreeMap;
use std::io::Read;

/// Names of the size column in logs of web servers and delivery networks, compared
/// case-insensitively: plain words, and those of the W3C's extended log format, nginx, Cloudflare,
/// Fastly and Traefik.
const SIZE_COLUMNS: [&str; 11] = [
    "bytes",
    "size",
    "sc-bytes",
    "bytes_sent",
    "body_bytes_sent",
    "response_bytes",
    "response_size",
    "object_size",
    "EdgeResponseBytes",
    "response_body_size",
    "DownstreamContentSize",
];

/// What to do without a known name of sizes; names all of [`SIZE_COLUMNS`].
macro_rules! rename {
    ($what:literal) => {
        concat!(
            "rename the ",
            $what,
            " of sizes to \"bytes\" (also known: size, sc-bytes, bytes_sent, body_bytes_sent, ",
            "response_bytes, response_size, object_size, EdgeResponseBytes, response_body_size, ",
            "DownstreamContentSize)"
        )
    };
}
const NO_KEY: &str = rename!("key");
const NO_COLUMN: &str =
    concat!(rename!("column"), ", or write one number per line and nothing else");
const NO_LINE: &str = "write one size in bytes per line, or a log of a web server";
pub(super) const NO_BODY: &str = "without a body";
pub(super) const NOT_A_LINE: &str = "not in this format";
pub(super) const NO_SIZE: &str = "without a size";
pub(super) const NOT_BYTES: &str = "whose size is no whole number of bytes";
const TOO_LARGE: &str = "beyond any size (1 PB)";

/// Number of characters for the names of columns in a message.
const NAMES_SHOWN: usize = 64;

/// Why a line gives no transfer.
pub(super) enum Miss {
    /// It says nothing about transfers.
    Nothing,
    /// It is passed over, for this reason.
    Over(&'static str),
    /// It is passed over for this reason; these are its keys.
    NoKey(&'static str, String),
    /// The log cannot be read: what is wrong, and what to write instead.
    Wrong(String, &'static str),
}

/// Size and other fields of a line, or why there is none.
type Found = Result<(u64, More), Miss>;

/// Reads the transfers in an access log, optionally compressed by gzip:
///
/// - the Common Log Format of NCSA httpd and Apache, and the Combined one, which appends referrer
///   and user agent;
/// - JSON lines, one object each, with a key such as `bytes`;
/// - the extended log format of the W3C, as CloudFront and IIS write it;
/// - values separated by commas, tabs or semicolons under a row of names, one of which is `bytes`,
///   `size`, `sc-bytes` or the like, or one number per line.
///
/// Skips blank lines and answers without a body (0 or `-`, as for "not modified"); in the first
/// three formats also lines that do not match the format, if most do. Reads line by line: beside
/// the transfers only one line is in memory, of at most 4 MiB. The transfers take at most 48 MiB and
/// four times the size of the file.
///
/// # Errors
///
/// The first invalid line, with what to write instead; more than 10,000,000 lines.
pub fn read_access_log(content: &[u8]) -> Result<AccessLog, AccessLogError> {
    if foreign_format(content) != Some(GZIP) {
        let lines = Lines::open(content);
        let lines = lines.map_err(|error| CsvError::unreadable(1, &error))?;
        return read(lines, Taken::of_file(content.len()));
    }
    match Lines::open(Unpacked::new(MultiGzDecoder::new(content))) {
        Ok(lines) => read(lines, Taken::of_file(content.len())),
        Err(LineError::Foreign(inner)) => {
            let problem = format!("it is {} within a gzip file", inner.name);
            Err(AccessLogError::new(1, problem, "decompress it once with gzip -d"))
        }
        Err(error) => Err(CsvError::unreadable(1, &error)),
    }
}

/// Returns the name of the format if a text begins like an access log.
pub fn log_format(text: &str) -> Option<&'static str> {
    const TRIED_BYTES: usize = 1 << 16;
    // Whole lines.
    let start = text.get(..TRIED_BYTES).and_then(|start| Some(&start[..start.rfind('\n')?]));
    read_access_log(start.unwrap_or(text).as_bytes()).ok().map(|log| log.format)
}

fn read<R: Read>(mut lines: Lines<R>, taken: Taken) -> Result<AccessLog, AccessLogError> {
    let mut first = String::new();
    while first.trim().is_empty() {
        if !next_line(&mut lines, &mut first)? {
            return Err(AccessLogError::new(1, "there is no line in it".into(), NO_LINE));
        }
    }
    match first.trim_start() {
        line if line.starts_with('{') => by_line("JSON lines", first, lines, taken, json::read),
        line if line.starts_with('[') => {
            let problem = "it is a list in JSON".to_string();
            let advice = "write one object per line, as jq -c '.[]' does";
            Err(AccessLogError::new(lines.number(), problem, advice))
        }
        line if line.starts_with("#Version") || line.starts_with("#Fields") => {
            extended(first, lines, taken)
        }
        line if line.starts_with("#Software") => extended(first, lines, taken),
        line if common_fields(line).is_some() => {
            by_line(format_of(line), first, lines, taken, common)
        }
        _ => separated(&first, lines, taken),
    }
}

fn extended<R: Read>(
    first: String,
    lines: Lines<R>,
    taken: Taken,
) -> Result<AccessLog, AccessLogError> {
    let mut extended = Extended::default();
    by_line("W3C extended log format", first, lines, taken, |line| extended.read(line))
}

/// Reads a format whose lines are independent of each other.
fn by_line<R: Read>(
    format: &'static str,
    mut line: String,
    mut lines: Lines<R>,
    mut taken: Taken,
    mut read: impl FnMut(&str) -> Found,
) -> Result<AccessLog, AccessLogError> {
    let mut over: BTreeMap<&'static str, PassedOver> = BTreeMap::new();
    let mut keys: Option<(usize, String)> = None;
    let mut is_there = true;
    while is_there {
        let number = lines.number();
        let mut pass = |reason| {
            let first = PassedOver { reason, lines: 0, first: number };
            over.entry(reason).or_insert(first).lines += 1;
        };
        match read(&line) {
            _ if line.trim().is_empty() => {}
            Ok((size, more)) => add(&mut taken, number, size, more)?,
            Err(Miss::Nothing) => {}
            Err(Miss::Over(reason)) => pass(reason),
            Err(Miss::NoKey(reason, names)) => {
                keys.get_or_insert((number, names));
                pass(reason);
            }
            Err(Miss::Wrong(problem, advice)) => {
                return Err(AccessLogError::new(number, problem, advice));
            }
        }
        is_there = next_line(&mut lines, &mut line)?;
    }
    let wrong = over.get(NOT_A_LINE).filter(|wrong| wrong.lines > taken.sizes.len());
    if let Some(wrong) = wrong {
        let problem = format!("{} lines, from here on, are not {format}", wrong.lines);
        return Err(AccessLogError::new(wrong.first, problem, "correct or delete them"));
    }
    if let (true, Some((line, keys))) = (taken.sizes.is_empty(), keys) {
        let keys = shorten_to(&keys, NAMES_SHOWN);
        let problem = format!("none of the keys {keys} is a size");
        return Err(AccessLogError::new(line, problem, NO_KEY));
    }
    if taken.sizes.is_empty() {
        return Err(no_size(1));
    }
    Ok(taken.log(format, over.into_values().collect()))
}

fn no_size(line: usize) -> AccessLogError {
    AccessLogError::new(line, "from here on there is no size above 0".into(), "add at least one")
}

fn add(taken: &mut Taken, line: usize, size: u64, more: More) -> Result<(), AccessLogError> {
    taken.add(line, size, more).map_err(|too_much| {
        let (problem, advice) = match too_much {
            TooMuch::Classes => (
                "there are too many different classes",
                "rename that column, so that it is not taken for the class",
            ),
            TooMuch::Lines => (
                "the lines up to here take too much memory for a file of this size",
                "use a part of it",
            ),
        };
        AccessLogError::new(line, problem.into(), advice)
    })
}

pub(super) fn size_of(text: &str) -> Result<u64, Miss> {
    size(text).map_err(|why| {
        Miss::Over(match why {
            NotASize::NoBody => NO_BODY,
            NotASize::Missing => NO_SIZE,
            NotASize::NotBytes => NOT_BYTES,
            NotASize::TooLarge => TOO_LARGE,
        })
    })
}

/// Parses `host ident user [time] "request" status bytes`, and ignores what follows
/// (<https://httpd.apache.org/docs/2.4/logs.html#common>).
fn common(line: &str) -> Found {
    let (size, at) = common_fields(line).ok_or(Miss::Over(NOT_A_LINE))?;
    match size {
        Ok(size) => Ok((size, More::of_time(at))),
        // A line without a body also identifies the format.
        Err(NotASize::NoBody) => Err(Miss::Over(NO_BODY)),
        Err(_) => Err(Miss::Over(TOO_LARGE)),
    }
}

/// Size and time of a line in the Common Log Format; `None` if it is not one.
fn common_fields(line: &str) -> Option<(Result<u64, NotASize>, Option<At>)> {
    let (who, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let rest = after_quoted(rest)?;
    let mut fields = rest.split_whitespace();
    let (status, size_field) = (fields.next()?, fields.next()?);
    let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    let size = size(size_field);
    let is_size = !matches!(size, Err(NotASize::NotBytes | NotASize::Missing));
    let whole = who.split_whitespace().count() >= 3 && is_status && is_size;
    whole.then(|| (size, instant(time)))
}

/// Returns what follows a quoted text, in which quotes are escaped by backslashes.
fn after_quoted(text: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return text.get(at + 1..),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

fn format_of(line: &str) -> &'static str {
    match line.matches('"').count() > 2 {
        true => "Combined Log Format",
        false => "Common Log Format",
    }
}

/// Separators of values, the most frequent first, with the name of the format.
const SEPARATORS: [(char, &str); 3] = [
    (',', "comma-separated values"),
    ('\t', "tab-separated values"),
    (';', "semicolon-separated values"),
];

fn separated<R: Read>(
    first: &str,
    lines: Lines<R>,
    mut taken: Taken,
) -> Result<AccessLog, AccessLogError> {
    let count = |(separator, _): &&(char, &str)| first.matches(*separator).count();
    // Of equal ones the last is taken.
    let (separator, name) = SEPARATORS.iter().rev().max_by_key(count).unwrap_or(&SEPARATORS[0]);
    let mut rows = Rows::new(lines, *separator);
    let mut row = Row::default();
    rows.split(first, &mut row).map_err(|error| {
        let problem = format!("it is in no format that is known here ({})", error.problem);
        let advice = "write comma-separated values with a column \"bytes\", JSON lines, or the \
                      Common Log Format";
        AccessLogError::new(error.line, problem, advice)
    })?;
    let (line, count) = (row.line, row.len());
    let named = count > 1 || !is_number(row.field(0));
    let columns = match named {
        true => {
            let names: Vec<&str> = row.fields().collect();
            let wrong = |miss| match miss {
                Miss::Wrong(problem, advice) => AccessLogError::new(line, problem, advice),
                _ => no_size(line),
            };
            Columns::named(&names).map_err(wrong)?
        }
        false => Columns { size: 0, fields: Vec::new() },
    };
    let mut over = PassedOver { reason: NO_BODY, lines: 0, first: 0 };
    let mut is_there = !named || rows.next(&mut row)?;
    while is_there {
        count_fields(row.line, row.len(), count)?;
        let field = row.field(columns.size);
        match if field == "-" { 0 } else { bytes(row.line, field)? } {
            0 => {
                over.first = if over.lines == 0 { row.line } else { over.first };
                over.lines += 1;
            }
            size => {
                let mut more = More::default();
                columns.fields.iter().for_each(|(at, field)| more.take(*field, row.field(*at)));
                add(&mut taken, row.line, size, more)?;
            }
        }
        is_there = rows.next(&mut row)?;
    }
    if taken.sizes.is_empty() {
        return Err(no_size(line));
    }
    let format = if named { name } else { "one size per line" };
    Ok(taken.log(format, Some(over).filter(|over| over.lines > 0).into_iter().collect()))
}

/// Returns whether a field is, or is meant as, a number rather than the name of a column.
fn is_number(field: &str) -> bool {
    field == "-" || field.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
}

/// Where the fields of a line stand.
pub(super) struct Columns {
    pub size: usize,
    pub fields: Vec<(usize, Field)>,
}

impl Columns {
    /// Finds the columns by their names.
    pub fn named(names: &[&str]) -> Result<Columns, Miss> {
        let sizes: Vec<&str> = names.iter().copied().filter(|name| is_size(name)).collect();
        let Some(size) = one_size(&sizes)? else {
            let names = shorten_to(&names.join(","), NAMES_SHOWN);
            return Err(Miss::Wrong(
                format!("none of the columns \"{names}\" is a size"),
                NO_COLUMN,
            ));
        };
        let place = names.iter().position(|name| *name == size);
        let named = names.iter().enumerate();
        let fields = named.filter_map(|(at, name)| Some((at, Field::named(name)?))).collect();
        Ok(Columns { size: place.unwrap_or(0), fields })
    }
}

/// Returns whether a column or key of this name has the sizes.
pub(super) fn is_size(name: &str) -> bool {
    SIZE_COLUMNS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns the one name of sizes; fails if there are several.
pub(super) fn one_size<'n>(sizes: &[&'n str]) -> Result<Option<&'n str>, Miss> {
    match sizes {
        [one, other, ..] => {
            let problem = format!("\"{one}\" and \"{other}\" could both be the sizes");
            Err(Miss::Wrong(problem, "rename the one that is not meant"))
        }
        _ => Ok(sizes.first().copied()),
    }
}

fn count_fields(line: usize, found: usize, wanted: usize) -> Result<(), AccessLogError> {
    if found == wanted {
        return Ok(());
    }
    let problem = format!("{found} fields where the first line has {wanted}");
    let advice = "complete or delete the line; put fields that contain a comma in quotes";
    Err(AccessLogError::new(line, problem, advice))
}
