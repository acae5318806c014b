//! Transfers from an access log, in common formats: their sizes and, if the log has them, their
//! times, classes and client round-trip times.

mod fields;

use crate::csv::{AccessLogError, BYTES_MAX, Row, bytes, rows, shorten};
use csv::StringRecord;
use fields::{Field, More, instant};
use flate2::read::MultiGzDecoder;
use knee_units::Time;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

/// Names of the size column in logs of web servers and delivery networks, compared
/// case-insensitively: those of nginx, of the W3C's extended log format, and plain words.
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

/// Maximum size of a log after decompression: 1 GiB.
const UNPACKED_MAX: u64 = 1 << 30;
/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Contents of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Name of its format, for display.
    pub format: &'static str,
    /// Sizes in bytes, in the order of the lines.
    pub sizes: Vec<u64>,
    /// Time of each line since the earliest one; empty unless every line has one.
    pub times: Vec<Time>,
    /// Class of each line, as an index into `class_names`; empty if no line has one.
    pub classes: Vec<usize>,
    /// Names of the classes, in the order of their first occurrence; lines without a class have the
    /// empty name.
    pub class_names: Vec<String>,
    /// Client round-trip time of each line, zero if it has none; empty if no line has one.
    pub rtts: Vec<Time>,
    /// Lines that gave no size, by reason.
    pub passed_over: Vec<PassedOver>,
}

/// Lines that gave no size, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The reason.
    pub reason: &'static str,
    /// Number of lines.
    pub lines: usize,
    /// Number of the first of them, from one.
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

/// Criteria for choosing lines of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogChoice {
    /// Class of the lines; `None` for any.
    pub class: Option<String>,
    /// Minimum round-trip time; `None` for any, even none.
    pub rtt_at_least: Option<Time>,
    /// Exclusive maximum round-trip time; `None` for any, even none.
    pub rtt_below: Option<Time>,
}

/// Why no line of a log can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// No line has a class, or none has this one.
    #[error("no line is of class \"{class}\"; {}", named_classes(.known))]
    Class {
        /// The class requested.
        class: String,
        /// The classes in the log.
        known: Vec<String>,
    },
    /// No line has a round-trip time in the range.
    #[error("no line has a client's round-trip time in this span; {}", match .seen {
        Some((least, most)) => format!("they are from {least} to {most}"),
        None => "name a column \"client_rtt_ms\"".to_string(),
    })]
    Rtt {
        /// Minimum and maximum; `None` if no line has a round-trip time.
        seen: Option<(Time, Time)>,
    },
    /// Arrivals cannot follow the log, because not every line has a time.
    #[error(
        "not every line has a time that can be read; name its column \"time\", or write an \
             arrival_interval"
    )]
    Times,
}

fn named_classes(classes: &[String]) -> String {
    match classes.is_empty() {
        true => "name a column \"class\"".to_string(),
        false => format!("there are {}", classes.join(", ")),
    }
}

impl AccessLog {
    /// Returns the log with only the chosen lines.
    ///
    /// # Errors
    /// [`NotChosen`] if no line matches.
    pub fn choose(&self, choice: &LogChoice) -> Result<AccessLog, NotChosen> {
        let of_class: Option<usize> = match &choice.class {
            None => None,
            Some(class) => {
                let place = self.class_names.iter().position(|name| name == class);
                let known = self.class_names.iter().filter(|name| !name.is_empty()).cloned();
                let unknown = || NotChosen::Class { class: class.clone(), known: known.collect() };
                Some(place.ok_or_else(unknown)?)
            }
        };
        let (least, below) = (choice.rtt_at_least, choice.rtt_below);
        let in_span = |line: usize| match (least.is_some() || below.is_some(), self.rtts.get(line))
        {
            (false, _) => true,
            (true, None) => false,
            (true, Some(rtt)) => {
                *rtt > Time::ZERO
                    && least.is_none_or(|least| *rtt >= least)
                    && below.is_none_or(|below| *rtt < below)
            }
        };
        let chosen: Vec<usize> = (0..self.sizes.len())
            .filter(|line| of_class.is_none_or(|class| self.classes[*line] == class))
            .filter(|line| in_span(*line))
            .collect();
        if chosen.is_empty() {
            let known = self.rtts.iter().copied().filter(|rtt| *rtt > Time::ZERO);
            let seen = known.clone().min().zip(known.max());
            return Err(NotChosen::Rtt { seen });
        }
        fn of<T: Copy>(all: &[T], chosen: &[usize]) -> Vec<T> {
            chosen.iter().filter_map(|line| all.get(*line)).copied().collect()
        }
        Ok(AccessLog {
            sizes: of(&self.sizes, &chosen),
            times: of(&self.times, &chosen),
            classes: of(&self.classes, &chosen),
            rtts: of(&self.rtts, &chosen),
            format: self.format,
            class_names: self.class_names.clone(),
            passed_over: self.passed_over.clone(),
        })
    }

    /// Returns the arrivals in order of time, each with its size.
    ///
    /// # Errors
    /// [`NotChosen::Times`] if not every line has a time.
    pub fn arrivals(&self) -> Result<Vec<(Time, u64)>, NotChosen> {
        if self.times.is_empty() {
            return Err(NotChosen::Times);
        }
        let mut arrivals: Vec<(Time, u64)> =
            self.times.iter().copied().zip(self.sizes.iter().copied()).collect();
        arrivals.sort_by_key(|(at, _)| *at);
        let first = arrivals.first().map_or(Time::ZERO, |(at, _)| *at);
        arrivals.iter_mut().for_each(|(at, _)| *at = at.saturating_sub(first));
        Ok(arrivals)
    }

    /// Summarizes what the lines contain besides sizes, for display: `over 2 h`, `classes: video
    /// 80, image 20`, `client RTT 38 ms in the median`; empty if there is nothing.
    pub fn more(&self) -> String {
        let mut said = Vec::new();
        if let Some(last) = self.times.iter().max().filter(|last| **last > Time::ZERO) {
            said.push(format!("over {}", rounded(*last)));
        }
        if !self.class_names.is_empty() {
            let mut counts = vec![0_usize; self.class_names.len()];
            self.classes.iter().for_each(|class| counts[*class] += 1);
            let named = self.class_names.iter().zip(counts).map(|(name, count)| {
                format!("{} {count}", if name.is_empty() { "none" } else { name })
            });
            let named: Vec<String> = named.take(CLASSES_TOLD).collect();
            let more = self.class_names.len().saturating_sub(CLASSES_TOLD);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            said.push(format!("classes: {}{rest}", named.join(", ")));
        }
        let mut rtts: Vec<Time> =
            self.rtts.iter().copied().filter(|rtt| *rtt > Time::ZERO).collect();
        rtts.sort_unstable();
        if let Some(median) = rtts.get(rtts.len() / 2) {
            said.push(format!("client RTT {} in the median", rounded(*median)));
        }
        said.join("; ")
    }
}

/// Maximum number of classes that are listed individually.
const CLASSES_TOLD: usize = 6;

/// Rounds to three digits.
fn rounded(time: Time) -> Time {
    let mut unit = 1;
    while time.as_nanos() / unit >= 1000 {
        unit *= 10;
    }
    Time::from_nanos((time.as_nanos() + unit / 2) / unit * unit)
}

/// Reads the transfers in an access log, optionally compressed by gzip:
///
/// - the Common Log Format of NCSA httpd and Apache, and the Combined one, which appends referrer
///   and user agent;
/// - JSON lines, one object each, with a key such as `bytes`;
/// - comma-separated values under a row of names, one of which is `bytes`, `size`, `sc-bytes` or
///   the like, or one number per line.
///
/// Skips blank lines and answers without a body (0 or `-`, as for "not modified"); in the first two
/// formats also lines that do not match the format, if most do.
///
/// # Errors
///
/// The first invalid line, with what to write instead.
pub fn read_access_log(content: &[u8]) -> Result<AccessLog, AccessLogError> {
    let unpacked;
    let content = match content.starts_with(&GZIP) {
        true => {
            unpacked = unpack(content)?;
            &unpacked[..]
        }
        false => content,
    };
    // User agents and addresses may be in any encoding; sizes are digits.
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

/// Size and other fields of a line, or why there is no size.
type Found = Result<(u64, More), &'static str>;

/// Lines taken so far.
#[derive(Default)]
struct Taken {
    sizes: Vec<u64>,
    at_ns: Vec<Option<i128>>,
    classes: Vec<usize>,
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    rtts: Vec<Time>,
}

impl Taken {
    fn add(&mut self, size: u64, more: More) {
        self.sizes.push(size);
        self.at_ns.push(more.at_ns);
        self.rtts.push(more.rtt.unwrap_or(Time::ZERO));
        let name = more.class.unwrap_or_default();
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        self.classes.push(place);
    }

    fn log(self, format: &'static str, passed_over: Vec<PassedOver>) -> AccessLog {
        let Taken { sizes, at_ns, mut classes, mut names, mut rtts, .. } = self;
        let at: Option<Vec<i128>> = at_ns.into_iter().collect();
        let at = at.unwrap_or_default();
        let first = at.iter().copied().min().unwrap_or(0);
        let since = |at: i128| Time::from_nanos(u64::try_from(at - first).unwrap_or(u64::MAX));
        if names.iter().all(String::is_empty) {
            (classes, names) = (Vec::new(), Vec::new());
        }
        if rtts.iter().all(|rtt| *rtt == Time::ZERO) {
            rtts = Vec::new();
        }
        let times = at.into_iter().map(since).collect();
        AccessLog { format, sizes, times, classes, class_names: names, rtts, passed_over }
    }
}

/// Reads a format whose lines are independent of each other.
fn by_line(
    format: &'static str,
    text: &str,
    read: fn(&str) -> Found,
) -> Result<AccessLog, AccessLogError> {
    let mut taken = Taken::default();
    let mut over: BTreeMap<&'static str, PassedOver> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        match read(line) {
            Ok((size, more)) => taken.add(size, more),
            Err(reason) => {
                let first = PassedOver { reason, lines: 0, first: number };
                over.entry(reason).or_insert(first).lines += 1;
            }
        }
    }
    let wrong = over.get(NOT_A_LINE).filter(|wrong| wrong.lines > taken.sizes.len());
    if let Some(wrong) = wrong {
        let problem = format!("{} lines, from here on, are not {format}", wrong.lines);
        return Err(AccessLogError::new(wrong.first, problem, "correct or delete them"));
    }
    if taken.sizes.is_empty() {
        let problem = "from here on there is no size above 0".into();
        return Err(AccessLogError::new(1, problem, "add at least one"));
    }
    Ok(taken.log(format, over.into_values().collect()))
}

fn size_of(digits: &str) -> Result<u64, &'static str> {
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

/// Parses `host ident user [time] "request" status bytes`, and ignores what follows
/// (<https://httpd.apache.org/docs/2.4/logs.html#common>).
fn common(line: &str) -> Found {
    let fields = |line: &str| -> Option<(String, Option<i128>)> {
        let (who, rest) = line.split_once(" [")?;
        let (time, rest) = rest.split_once("] \"")?;
        let rest = after_quoted(rest)?;
        let mut fields = rest.split_whitespace();
        let (status, size) = (fields.next()?, fields.next()?);
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        let whole = who.split_whitespace().count() >= 3 && is_status;
        whole.then(|| (size.to_string(), instant(time)))
    };
    let Some((size, at_ns)) = fields(line) else { return Err(NOT_A_LINE) };
    match size_of(&size) {
        Err(NO_SIZE) => Err(NOT_A_LINE),
        // A line without a body also identifies the format.
        found => Ok((found?, More { at_ns, ..More::default() })),
    }
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

fn json(line: &str) -> Found {
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(line).map_err(|_| NOT_A_LINE)?;
    let is_size = |key: &str| SIZE_COLUMNS.iter().any(|known| key.eq_ignore_ascii_case(known));
    let (_, value) = object.iter().find(|(key, _)| is_size(key)).ok_or(NO_SIZE)?;
    let size = match value {
        serde_json::Value::String(text) => size_of(text),
        serde_json::Value::Number(number) => size_of(&number.to_string()),
        serde_json::Value::Null => Err(NO_BODY),
        _ => Err(NO_SIZE),
    }?;
    let mut more = More::default();
    for (key, value) in &object {
        let Some(field) = Field::named(key) else { continue };
        match value {
            serde_json::Value::String(text) => more.take(field, text),
            serde_json::Value::Number(number) => more.take(field, &number.to_string()),
            _ => {}
        }
    }
    Ok((size, more))
}

fn comma_separated(text: &str) -> Result<AccessLog, AccessLogError> {
    let mut rows = rows(text)?;
    let Some(Row { line, fields: columns }) = rows.next().transpose()? else {
        return Err(AccessLogError::new(1, "there is no line in it".into(), NO_COLUMN));
    };
    let named = columns.len() > 1 || !is_number(&columns[0]);
    let column = if named { column_of_sizes(line, &columns)? } else { 0 };
    let fields: Vec<(usize, Field)> = match named {
        true => {
            columns.iter().enumerate().filter_map(|(at, n)| Some((at, Field::named(n)?))).collect()
        }
        false => Vec::new(),
    };
    let mut taken = Taken::default();
    let mut over = PassedOver { reason: NO_BODY, lines: 0, first: 0 };
    let mut take = |line: usize, found: &StringRecord| -> Result<(), AccessLogError> {
        count_fields(line, found.len(), columns.len())?;
        let size = if &found[column] == "-" { 0 } else { bytes(line, &found[column])? };
        match size {
            0 => {
                over.first = if over.lines == 0 { line } else { over.first };
                over.lines += 1;
            }
            size => {
                let mut more = More::default();
                fields.iter().for_each(|(at, field)| more.take(*field, &found[*at]));
                taken.add(size, more);
            }
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
    if taken.sizes.is_empty() {
        let problem = "from here on there is no size above 0".into();
        return Err(AccessLogError::new(line, problem, "add at least one"));
    }
    let format = if named { "comma-separated values" } else { "one size per line" };
    Ok(taken.log(format, Some(over).filter(|over| over.lines > 0).into_iter().collect()))
}
/// Returns whether a field is, or is meant as, a number rather than the name of a column.
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
