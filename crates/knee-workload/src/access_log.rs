//! Sizes of transfers from an access log, in the formats that people have.

use crate::csv::{AccessLogError, BYTES_MAX, Row, bytes, rows, shorten};
use csv::StringRecord;
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// What logs of web servers and delivery networks call the size of an answer,
/// compared without regard to case: the names of nginx, of the W3C's extended
/// log format, and plain words.
const SIZE_COLUMNS: [&str; 8] = [
    "bytes",
    "size",
    "sc-bytes",
    "bytes_sent",
    "body_bytes_sent",
    "response_bytes",
    "response_size",
    "object_size",
];

const NO_COLUMN: &str =
    "name the column of sizes \"bytes\", or write one number per line and nothing else";
const NO_BODY: &str = "without a body";
const NOT_A_LINE: &str = "not in this format";
const NO_SIZE: &str = "without a size";
const TOO_LARGE: &str = "beyond any size (1 PB)";

/// A compressed log is read so far: 1 GiB.
const UNPACKED_MAX: u64 = 1 << 30;
/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What was read of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Its format, for people.
    pub format: &'static str,
    /// Sizes in bytes, in the order of the lines.
    pub sizes: Vec<u64>,
    /// Lines that gave none, by the reason.
    pub passed_over: Vec<PassedOver>,
}

/// Lines that gave no size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub lines: usize,
    /// The first of them, from one.
    pub first: usize,
}

/// `Common Log Format, 1204 lines taken, 31 not: 30 without a body (first: line 4), …`.
impl fmt::Display for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not: usize = self.passed_over.iter().map(|over| over.lines).sum();
        write!(f, "{}, {} lines taken, {not} not", self.format, self.sizes.len())?;
        let reasons = self
            .passed_over
            .iter()
            .map(|over| format!("{} {} (first: line {})", over.lines, over.reason, over.first));
        match not {
            0 => Ok(()),
            _ => write!(f, ": {}", reasons.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Reads the sizes in an access log, compressed by gzip or not:
///
/// - the Common Log Format of NCSA httpd and Apache, and the Combined one, which
///   has the referrer and the agent behind it;
/// - JSON lines, an object each, with a key such as `bytes`;
/// - comma-separated values under a row of names of which one is `bytes`,
///   `size`, `sc-bytes` or the like, or one number per line.
///
/// Answers without a body (0 or `-`, as for "not modified") are passed over, and
/// so are blank lines; in the first two formats also lines that are not in the
/// format, as long as most are.
///
/// # Errors
///
/// The first line that is wrong, with what to write instead.
pub fn read_access_log(content: &[u8]) -> Result<AccessLog, AccessLogError> {
    let unpacked;
    let content = match content.starts_with(&GZIP) {
        true => {
            unpacked = unpack(content)?;
            &unpacked[..]
        }
        false => content,
    };
    // Agents and addresses may be in any encoding; sizes are digits.
    let text = String::from_utf8_lossy(content);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match text.lines().find(|line| !line.trim().is_empty()) {
        Some(line) if line.trim_start().starts_with('{') => by_line("JSON lines", text, json),
        Some(line) if common(line) != Err(NOT_A_LINE) => by_line(format_of(line), text, common),
        _ => comma_separated(text),
    }
}

fn unpack(content: &[u8]) -> Result<Vec<u8>, AccessLogError> {
    let mut unpacked = Vec::new();
    let wrong = |problem: String, advice: &str| Err(AccessLogError::new(1, problem, advice));
    match MultiGzDecoder::new(content).take(UNPACKED_MAX + 1).read_to_end(&mut unpacked) {
        Err(error) => wrong(format!("it is no whole gzip file ({error})"), "compress it again"),
        Ok(_) if unpacked.len() as u64 > UNPACKED_MAX => {
            wrong("it is larger than 1 GiB unpacked".into(), "take a part of it")
        }
        Ok(_) => Ok(unpacked),
    }
}

/// The size on a line, or why there is none.
type Found = Result<u64, &'static str>;

/// A format of lines that stand for themselves.
fn by_line(
    format: &'static str,
    text: &str,
    read: fn(&str) -> Found,
) -> Result<AccessLog, AccessLogError> {
    let mut sizes = Vec::new();
    let mut over: BTreeMap<&'static str, PassedOver> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        match read(line) {
            Ok(size) => sizes.push(size),
            Err(reason) => {
                let first = PassedOver { reason, lines: 0, first: number };
                over.entry(reason).or_insert(first).lines += 1;
            }
        }
    }
    let wrong = over.get(NOT_A_LINE).filter(|wrong| wrong.lines > sizes.len());
    if let Some(wrong) = wrong {
        let problem = format!("{} lines, from here on, are not {format}", wrong.lines);
        return Err(AccessLogError::new(wrong.first, problem, "correct or delete them"));
    }
    if sizes.is_empty() {
        let problem = "from here on there is no size above 0".into();
        return Err(AccessLogError::new(1, problem, "add at least one"));
    }
    Ok(AccessLog { format, sizes, passed_over: over.into_values().collect() })
}

fn size_of(digits: &str) -> Found {
    match digits {
        "-" | "0" => Err(NO_BODY),
        digits if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) => Err(NO_SIZE),
        digits => match digits.parse() {
            Ok(0) => Err(NO_BODY),
            Ok(size) if size <= BYTES_MAX => Ok(size),
            _ => Err(TOO_LARGE),
        },
    }
}

/// `host ident user [time] "request" status bytes`, and what follows
/// (<https://httpd.apache.org/docs/2.4/logs.html#common>).
fn common(line: &str) -> Found {
    let fields = |line: &str| -> Option<String> {
        let (who, rest) = line.split_once(" [")?;
        let (_, rest) = rest.split_once("] \"")?;
        let rest = after_quoted(rest)?;
        let mut fields = rest.split_whitespace();
        let (status, size) = (fields.next()?, fields.next()?);
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        (who.split_whitespace().count() >= 3 && is_status).then(|| size.to_string())
    };
    match fields(line).as_deref().map(size_of) {
        None | Some(Err(NO_SIZE)) => Err(NOT_A_LINE),
        Some(found) => match found {
            // The format itself is told by a line without a body, too.
            Err(reason) => Err(reason),
            Ok(size) => Ok(size),
        },
    }
}

/// What follows a quoted text; a quote in it has a backslash before it.
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

fn json(line: &str) -> Found {
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|_| NOT_A_LINE)?;
    let is_size = |key: &str| SIZE_COLUMNS.iter().any(|known| key.eq_ignore_ascii_case(known));
    let (_, value) = object.iter().find(|(key, _)| is_size(key)).ok_or(NO_SIZE)?;
    match value {
        serde_json::Value::String(text) => size_of(text),
        serde_json::Value::Number(number) => size_of(&number.to_string()),
        serde_json::Value::Null => Err(NO_BODY),
        _ => Err(NO_SIZE),
    }
}

fn comma_separated(text: &str) -> Result<AccessLog, AccessLogError> {
    let mut rows = rows(text)?;
    let Some(Row { line, fields: columns }) = rows.next().transpose()? else {
        return Err(AccessLogError::new(1, "there is no line in it".into(), NO_COLUMN));
    };
    let named = columns.len() > 1 || !is_number(&columns[0]);
    let column = if named { column_of_sizes(line, &columns)? } else { 0 };
    let (mut sizes, mut over) = (Vec::new(), PassedOver { reason: NO_BODY, lines: 0, first: 0 });
    let mut take = |line: usize, found: &StringRecord| -> Result<(), AccessLogError> {
        count_fields(line, found.len(), columns.len())?;
        let size = if &found[column] == "-" { 0 } else { bytes(line, &found[column])? };
        match size {
            0 => {
                over.first = if over.lines == 0 { line } else { over.first };
                over.lines += 1;
            }
            size => sizes.push(size),
        }
        Ok(())
    };
    if !named {
        take(line, &columns)?;
    }
    for row in rows {
        let row = row?;
        take(row.line, &row.fields)?;
    }
    if sizes.is_empty() {
        let problem = "from here on there is no size above 0".into();
        return Err(AccessLogError::new(line, problem, "add at least one"));
    }
    let format = if named { "comma-separated values" } else { "one size per line" };
    let passed_over = Some(over).filter(|over| over.lines > 0).into_iter().collect();
    Ok(AccessLog { format, sizes, passed_over })
}
/// A number or what is meant as one: not the name of a column.
fn is_number(field: &str) -> bool {
    field == "-" || field.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
}

fn column_of_sizes(line: usize, columns: &StringRecord) -> Result<usize, AccessLogError> {
    let is_size = |name: &str| SIZE_COLUMNS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let mut places = (0..columns.len()).filter(|&place| is_size(&columns[place]));
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(one), Some(other)) => {
            let (one, other) = (&columns[one], &columns[other]);
            let problem = format!("\"{one}\" and \"{other}\" could both be the sizes");
            Err(AccessLogError::new(line, problem, "rename the one that is not meant"))
        }
        (None, _) => {
            let problem = format!(
                "none of the columns \"{}\" is a size",
                shorten(&columns.iter().collect::<Vec<_>>().join(","))
            );
            Err(AccessLogError::new(line, problem, NO_COLUMN))
        }
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
