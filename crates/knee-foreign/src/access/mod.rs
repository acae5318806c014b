//! Access logs of web servers, proxies and delivery networks, line by line.

mod akamai;
mod common;
mod draft;
mod envoy;
mod extended;
mod haproxy;
mod json;
mod names;
mod squid;
mod syslog;
mod values;

use crate::error::{FileError, shorten};
use crate::series::PassedOver;
use crate::unpack::next_line;
use draft::{Draft, Miss, NO_SIZE, NOT_A_LINE, no_size};
use extended::Extended;
use flate2::read::MultiGzDecoder;
use json::Json;
use knee_units::{GZIP, LineError, Lines, Unpacked, foreign_format};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Cursor, Read};
use std::net::IpAddr;
use values::{NAMES_SHOWN, NO_KEY, Values};

/// When a line was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since an instant common to all lines of a log; since 1970 unless the log counts
    /// from another one.
    Instant(i64),
    /// Nanoseconds since a midnight.
    OfDay(i64),
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// 1.1 and earlier ones.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
    /// Another one, or none is logged.
    #[default]
    Unknown,
}

impl Protocol {
    /// Parses `HTTP/2.0`, `h3` and the like.
    pub fn named(text: &str) -> Protocol {
        let is = |known: &str| text.eq_ignore_ascii_case(known);
        let version = match text.get(..5).filter(|start| start.eq_ignore_ascii_case("HTTP/")) {
            Some(_) => &text[5..],
            None if is("h2") || is("h2c") => "2",
            None if is("h3") || is("quic") || text.starts_with("h3-") => "3",
            None => "",
        };
        match version.as_bytes().first() {
            Some(b'0' | b'1') => Protocol::Http1,
            Some(b'2') => Protocol::Http2,
            Some(b'3') => Protocol::Http3,
            _ => Protocol::Unknown,
        }
    }

    /// Returns its name; empty if it is not known.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "HTTP/1",
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
            Protocol::Unknown => "",
        }
    }
}

/// A transfer as a line of an access log has it. What the log lacks is `None`, or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// Number of the line, from 1.
    pub line: usize,
    /// Bytes sent to the client, above zero; with the headers where the log counts them.
    pub bytes: u64,
    /// When it began or ended, whichever the log has.
    pub at: Option<Moment>,
    /// Time from the request to the last byte, as the server saw it, nanoseconds.
    pub duration_ns: Option<u64>,
    /// Part of it that may be the server's: until the first byte, or the wait for a server behind
    /// it. Nanoseconds.
    pub server_ns: Option<u64>,
    /// The client's round-trip time, nanoseconds, above zero.
    pub rtt_ns: Option<u64>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The client's port.
    pub port: Option<u16>,
    /// Kind of the content.
    pub class: String,
    /// Version of HTTP.
    pub protocol: Protocol,
    /// Congestion controller of the connection.
    pub controller: String,
    /// Rate at which data were delivered to the client, as the transport measured it, bit/s.
    pub delivery_rate_bps: Option<f64>,
    /// Whether the line has a duration of an unknown unit, which is left out.
    pub is_without_unit: bool,
}

/// The transfers of an access log, one after the other: beside the current line nothing is kept.
///
/// Formats are recognised by content: Common and Combined Log Format, JSON lines, the extended
/// format of the W3C, HAProxy's HTTP log, Squid's native log, Envoy's default format, Akamai's
/// structured one, and separated values; compressed by gzip or not; behind the head of syslog,
/// objects behind any text, or in Docker's JSON. Blank lines, answers without a body (0 or `-`, as
/// for "not modified") and, but for separated values, lines in another format are passed over and
/// counted.
#[derive(Debug)]
pub struct AccessLines<R: Read> {
    source: Source<R>,
    format: &'static str,
    draft: Draft,
    taken: usize,
    over: BTreeMap<&'static str, PassedOver>,
    /// The first line without a key of sizes, and its keys.
    keys: Option<(usize, String)>,
}

#[derive(Debug)]
enum Source<R: Read> {
    Lines(Box<ByLine<R>>),
    Values(Box<Values<R>>),
}

/// Lines that are independent of each other.
#[derive(Debug)]
struct ByLine<R: Read> {
    /// Those that were looked at already, with their numbers.
    first: VecDeque<(usize, String)>,
    lines: Lines<R>,
    line: String,
    parser: Parser,
}

impl<R: Read> ByLine<R> {
    /// Reads the next line; returns its number, or `None` after the last.
    fn next(&mut self) -> Result<Option<usize>, FileError> {
        if let Some((number, text)) = self.first.pop_front() {
            self.line = text;
            return Ok(Some(number));
        }
        let is_there = next_line(&mut self.lines, &mut self.line)?;
        Ok(is_there.then(|| self.lines.number()))
    }
}

/// A file, decompressed if it was a gzip file.
type Unzipped<R> = Either<io::Chain<Cursor<Vec<u8>>, R>>;

/// A reader of what a gzip file contains, or of what another contains.
#[derive(Debug)]
pub enum Either<R> {
    /// Not compressed.
    Plain(R),
    /// Compressed, of any size.
    Packed(MultiGzDecoder<R>),
    /// Compressed, of a limited size.
    Limited(Unpacked<MultiGzDecoder<R>>),
}

impl<R: Read> Read for Either<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Either::Plain(reader) => reader.read(buffer),
            Either::Packed(reader) => reader.read(buffer).map_err(|error| {
                io::Error::new(error.kind(), format!("it is no whole gzip file ({error})"))
            }),
            Either::Limited(reader) => reader.read(buffer),
        }
    }
}

/// How much of a log is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it: whoever reads keeps nothing of a line.
    Whole,
    /// At most 10,000,000 lines, and 1 GiB after decompression: the lines are kept.
    Kept,
}

/// Lines at the beginning that may be damaged.
const DAMAGED_FIRST_MAX: usize = 10;

impl<R: Read> AccessLines<Unzipped<R>> {
    /// Opens a log.
    ///
    /// # Errors
    /// If it is no text, or in no format that is known.
    pub fn open(mut file: R, extent: Extent) -> Result<Self, FileError> {
        let mut start = Vec::new();
        let read = (&mut file).take(2).read_to_end(&mut start);
        read.map_err(|error| FileError::unreadable(1, &LineError::Io(error)))?;
        let is_packed = foreign_format(&start) == Some(GZIP);
        let file = Cursor::new(start).chain(file);
        let reader = match (is_packed, extent) {
            (false, _) => Either::Plain(file),
            (true, Extent::Whole) => Either::Packed(MultiGzDecoder::new(file)),
            (true, Extent::Kept) => Either::Limited(Unpacked::new(MultiGzDecoder::new(file))),
        };
        let lines = Lines::open(reader).map_err(|error| match error {
            LineError::Foreign(inner) if is_packed => {
                let problem = format!("it is {} within a gzip file", inner.name);
                FileError::new(1, problem, "decompress it once with gzip -d")
            }
            error => FileError::unreadable(1, &error),
        })?;
        AccessLines::of_lines(match extent {
            Extent::Whole => lines.of_any_number(),
            Extent::Kept => lines,
        })
    }
}

impl<R: Read> AccessLines<R> {
    fn of_lines(mut lines: Lines<R>) -> Result<Self, FileError> {
        let mut first = VecDeque::new();
        let mut line = String::new();
        let mut parser = None;
        while parser.is_none() && first.len() < DAMAGED_FIRST_MAX {
            if !next_line(&mut lines, &mut line)? {
                break;
            }
            if is_blank(&line) {
                continue;
            }
            parser = Parser::of(&line);
            first.push_back((lines.number(), std::mem::take(&mut line)));
            let is_first = first.len() == 1;
            let text = &first.back().map_or("", |(_, text)| text);
            if parser.is_none() && is_first && text.trim_start().starts_with('[') {
                let advice = "write one object per line, as jq -c '.[]' does";
                return Err(FileError::new(lines.number(), "it is a list in JSON", advice));
            }
            if parser.is_none() && is_first && values::is_begin(text) {
                break;
            }
        }
        let source = match (parser, first.front()) {
            (_, None) => {
                let advice = "write one size in bytes per line, or a log of a web server";
                return Err(FileError::new(1, "there is no line in it", advice));
            }
            (Some(parser), _) => Source::Lines(Box::new(ByLine { first, lines, line, parser })),
            (None, Some((number, text))) => {
                let values = Values::open((*number, text), lines)?;
                Source::Values(Box::new(values))
            }
        };
        let format = match &source {
            Source::Lines(by_line) => by_line.parser.format,
            Source::Values(values) => values.format,
        };
        let (draft, over) = (Draft::default(), BTreeMap::new());
        Ok(AccessLines { source, format, draft, taken: 0, over, keys: None })
    }

    /// Returns the name of the format, for display.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// Returns the lines that gave no transfer so far, by reason.
    pub fn passed_over(&self) -> Vec<PassedOver> {
        self.over.values().cloned().collect()
    }

    /// Reads the next transfer; `None` after the last.
    ///
    /// # Errors
    /// A line that cannot be read; at the end, a log of which most lines are in another format, or
    /// without transfers.
    pub fn next_transfer(&mut self) -> Result<Option<&Transfer>, FileError> {
        loop {
            let number = match &mut self.source {
                Source::Values(values) => {
                    self.draft.clear();
                    let Some(number) = values.next(&mut self.draft)? else {
                        return self.end().map(|()| None);
                    };
                    number
                }
                Source::Lines(by_line) => {
                    let Some(number) = by_line.next()? else {
                        return self.end().map(|()| None);
                    };
                    let ByLine { line, parser, .. } = &mut **by_line;
                    if is_blank(line) {
                        continue;
                    }
                    self.draft.clear();
                    if let Err(miss) = parser.read(line, &mut self.draft) {
                        self.miss(number, miss)?;
                        continue;
                    }
                    number
                }
            };
            match self.draft.finish() {
                Ok(()) => {
                    self.taken += 1;
                    self.draft.transfer.line = number;
                    return Ok(Some(&self.draft.transfer));
                }
                Err(miss) => self.miss(number, miss)?,
            }
        }
    }

    /// Notes a line that gave no transfer.
    fn miss(&mut self, number: usize, miss: Miss) -> Result<(), FileError> {
        let reason = match miss {
            Miss::Nothing => return Ok(()),
            Miss::Over(reason) => reason,
            Miss::NoKey(keys) => {
                self.keys.get_or_insert((number, keys));
                NO_SIZE
            }
            Miss::Wrong(..) => return Err(miss.error(number)),
        };
        let first = PassedOver { reason, lines: 0, first: number };
        self.over.entry(reason).or_insert(first).lines += 1;
        Ok(())
    }

    /// Checks, after the last line, that the log was one.
    fn end(&self) -> Result<(), FileError> {
        let wrong = self.over.get(NOT_A_LINE).filter(|wrong| wrong.lines > self.taken);
        if let Some(wrong) = wrong {
            let problem = format!("{} lines, from here on, are not {}", wrong.lines, self.format);
            return Err(FileError::new(wrong.first, problem, "correct or delete them"));
        }
        if self.taken > 0 {
            return Ok(());
        }
        if let Some((line, keys)) = &self.keys {
            let keys = shorten(keys, NAMES_SHOWN);
            let problem = format!("none of the keys {keys} is a size");
            return Err(FileError::new(*line, problem, NO_KEY));
        }
        Err(no_size(match &self.source {
            Source::Values(values) => values.first,
            Source::Lines(_) => 1,
        }))
    }
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_whitespace())
}

/// What is around each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Nothing,
    Syslog,
    /// Any text, or none, before an object in JSON.
    Text,
    Docker,
}

/// Reads lines of a format.
#[derive(Debug)]
struct Parser {
    around: Around,
    format: &'static str,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Json(Json),
    Extended(Extended),
    /// A format whose lines need nothing of the others.
    Text(ReadLine),
}

/// Parses a line.
type ReadLine = fn(&str, &mut Draft) -> Result<(), Miss>;

impl Parser {
    /// Returns the parser of the format of a line.
    fn of(line: &str) -> Option<Parser> {
        let line = whole(line)?;
        let of = |around, (kind, format)| Parser { around, format, kind };
        if line.starts_with('{')
            && let Some(within) = json::within_docker(line)
        {
            return Kind::of(whole(&within)?).map(|kind| of(Around::Docker, kind));
        }
        // The Common Log Format has any words before its time.
        if let Some(kind) = syslog::after_head(line).and_then(Kind::of) {
            return Some(of(Around::Syslog, kind));
        }
        if let Some(kind) = syslog::object(line).and_then(Kind::of) {
            return Some(of(Around::Text, kind));
        }
        Kind::of(line).map(|kind| of(Around::Nothing, kind))
    }

    /// Parses a line.
    fn read(&mut self, line: &str, draft: &mut Draft) -> Result<(), Miss> {
        let line = whole(line).ok_or(Miss::Over(NOT_A_LINE))?;
        let line: Cow<'_, str> = match self.around {
            Around::Nothing => line.into(),
            Around::Syslog => syslog::after_head(line).ok_or(Miss::Over(NOT_A_LINE))?.into(),
            Around::Text => syslog::object(line).ok_or(Miss::Over(NOT_A_LINE))?.into(),
            Around::Docker => json::within_docker(line).ok_or(Miss::Over(NOT_A_LINE))?,
        };
        let line = line.trim_end();
        match &mut self.kind {
            Kind::Json(json) => json.read(line, draft),
            Kind::Extended(extended) => extended.read(line, draft),
            Kind::Text(read) => read(line, draft),
        }
    }
}

/// Returns a line without white space around it, and without the NUL bytes before it that a file has
/// which was cut off while it was written; `None` if there are some within.
fn whole(line: &str) -> Option<&str> {
    let line = line.trim_start_matches('\0').trim();
    (!line.is_empty() && !line.as_bytes().contains(&0)).then_some(line)
}

impl Kind {
    fn of(line: &str) -> Option<(Kind, &'static str)> {
        if line.starts_with('{') {
            return Some((Kind::Json(Json::default()), "JSON lines"));
        }
        if Extended::is_begin(line) {
            return Some((Kind::Extended(Extended::default()), "W3C extended log format"));
        }
        if envoy::is_line(line) {
            return Some((Kind::Text(envoy::read), "Envoy's log format"));
        }
        if haproxy::is_line(line) {
            return Some((Kind::Text(haproxy::read), "HAProxy's HTTP log"));
        }
        if squid::is_line(line) {
            return Some((Kind::Text(squid::read), "Squid's native log"));
        }
        if akamai::is_line(line) {
            return Some((Kind::Text(akamai::read), "Akamai's structured log"));
        }
        common::format_of(line).map(|format| (Kind::Text(common::read), format))
    }
}

/// Instants from times of day, in the order of the lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct DayClock {
    last_ns: Option<i64>,
    midnight_ns: i64,
}

const HOUR_NS: i64 = 3_600_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Lines are written at the end of a transfer and may have its start, so they are out of order by
/// less than this; a time of day that goes back further is that of the next day.
const BACK_NS_MAX: i64 = HOUR_NS;
/// A time of day that goes back by less is ambiguous.
const NEXT_DAY_NS: i64 = 12 * HOUR_NS;

impl DayClock {
    /// Returns nanoseconds since the first midnight, and whether the time is that of a day which
    /// cannot be told: it went back by hours.
    pub fn since_midnight(&mut self, of_day_ns: i64) -> (i64, bool) {
        let Some(last) = self.last_ns else {
            self.last_ns = Some(of_day_ns);
            return (of_day_ns, false);
        };
        let at = self.midnight_ns.saturating_add(of_day_ns);
        let day_before = at - DAY_NS;
        let is_next_day = last - at >= NEXT_DAY_NS;
        if is_next_day {
            self.midnight_ns = self.midnight_ns.saturating_add(DAY_NS);
        }
        // A late line from before the last midnight.
        let is_late = self.midnight_ns > 0 && (last - day_before).abs() <= BACK_NS_MAX;
        let goes_back = !is_next_day && last - at > BACK_NS_MAX;
        let at = match is_late {
            true => day_before,
            false => self.midnight_ns.saturating_add(of_day_ns),
        };
        self.last_ns = Some(at);
        (at, goes_back)
    }
}
