//! A line while it is read: its fields, in the notations of servers, become a [`Transfer`].

use super::names::{Field, Program, Span, Unit, are_together};
use super::{Moment, Protocol, Transfer};
use crate::error::FileError;
use crate::instant::{At, calendar, day, epoch};
use crate::size::{NotASize, size};
use std::net::{IpAddr, SocketAddr};

pub(super) const NO_BODY: &str = "without a body";
pub(super) const NOT_A_LINE: &str = "not in this format";
pub(super) const NO_SIZE: &str = "without a size";
const NOT_BYTES: &str = "whose size is no whole number of bytes";
const TOO_LARGE: &str = "beyond any size (1 PB)";

/// Longest class or controller that is kept; a longer text is one of another kind.
const WORD_BYTES_MAX: usize = 200;
/// Longest span within a transfer that is believed: a year.
const SPAN_NS_MAX: f64 = 3.2e16;

/// Why a line gives no transfer.
#[derive(Debug)]
pub(super) enum Miss {
    /// It says nothing about transfers.
    Nothing,
    /// It is passed over, for this reason.
    Over(&'static str),
    /// It is passed over because it has none of the keys of sizes, but these.
    NoKey(String),
    /// The log cannot be read: what is wrong, and what to write instead.
    Wrong(String, &'static str),
}

impl Miss {
    /// Returns the error for a line that makes a log unreadable.
    pub fn error(self, line: usize) -> FileError {
        match self {
            Miss::Wrong(problem, advice) => FileError::new(line, problem, advice),
            _ => no_size(line),
        }
    }
}

/// The error of a log without transfers.
pub(super) fn no_size(line: usize) -> FileError {
    FileError::new(line, "from here on there is no size above 0", "add at least one")
}

impl From<NotASize> for Miss {
    fn from(why: NotASize) -> Miss {
        Miss::Over(match why {
            NotASize::NoBody => NO_BODY,
            NotASize::Missing => NO_SIZE,
            NotASize::NotBytes => NOT_BYTES,
            NotASize::TooLarge => TOO_LARGE,
        })
    }
}

/// The last time that was read. Most lines have that of the line before.
#[derive(Debug, Default)]
struct LastTime {
    text: String,
    moment: Option<Moment>,
}

impl LastTime {
    fn parse(&mut self, text: &str) -> Option<Moment> {
        if self.text != text {
            self.text.clear();
            self.text.push_str(text);
            self.moment = moment(text);
        }
        self.moment
    }
}

/// Parses an instant in the notations of servers.
pub(super) fn moment(text: &str) -> Option<Moment> {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    let nanos = |at: i128| i64::try_from(at).ok();
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return nanos(epoch(text)?).map(Moment::Instant);
    }
    match calendar(text)? {
        At::Instant(at) => nanos(at).map(Moment::Instant),
        At::OfDay(at) => nanos(at).map(Moment::OfDay),
    }
}

/// What is known of a line so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub transfer: Transfer,
    sizes: Vec<(usize, Result<u64, NotASize>)>,
    time: Option<(u8, Moment)>,
    end: Option<Moment>,
    /// Days since 1970.
    date: Option<i64>,
    sending_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    upstream_ns: Option<u64>,
    /// Duration without a unit.
    bare: Option<f64>,
    program: Option<Program>,
    last: LastTime,
}

/// Length of a day, nanoseconds.
const DAY_NS: i64 = 86_400_000_000_000;

impl Draft {
    /// Forgets the line before.
    pub fn clear(&mut self) {
        let Draft { transfer, sizes, last, .. } = self;
        let (mut class, mut controller) =
            (std::mem::take(&mut transfer.class), std::mem::take(&mut transfer.controller));
        class.clear();
        controller.clear();
        let mut sizes = std::mem::take(sizes);
        sizes.clear();
        let last = std::mem::take(last);
        let transfer = Transfer { class, controller, ..Transfer::default() };
        *self = Draft { transfer, sizes, last, ..Draft::default() };
    }

    /// Notes the text of a field.
    pub fn take(&mut self, field: Field, text: &str) {
        let text = text.trim();
        if let Field::Size(name) = field {
            self.sizes.push((name, size(text)));
            return;
        }
        if text.is_empty() || text == "-" {
            return;
        }
        match field {
            Field::Time { rank } => self.take_time(rank, text),
            Field::End => self.end = self.last.parse(text),
            Field::Date => match day(text) {
                Some(days) => self.date = Some(days),
                None => self.take_time(3, text),
            },
            Field::Class => word(&mut self.transfer.class, text),
            Field::Controller => word(&mut self.transfer.controller, text),
            Field::Client => self.take_client(text),
            Field::Port => self.transfer.port = text.parse().ok().filter(|port| *port > 0),
            Field::Protocol => self.transfer.protocol = Protocol::named(text),
            Field::Request => self.take_request(text),
            Field::DeliveryRate { unit_bps } => {
                let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
                self.transfer.delivery_rate_bps = rate.map(|rate| rate * unit_bps);
            }
            Field::Span(span, unit) => self.take_span(span, unit, text),
            Field::Sign(program) => self.program = Some(program),
            Field::Size(_) => {}
        }
    }

    /// Notes that a key without a value, or with one of another kind, tells whose log it is.
    pub fn sign(&mut self, field: Field) {
        match field {
            Field::Sign(program) => self.program = Some(program),
            Field::Size(name) => self.sizes.push((name, Err(NotASize::NoBody))),
            _ => {}
        }
    }

    /// Notes a size of another kind than text or number.
    pub fn no_size(&mut self, name: usize) {
        self.sizes.push((name, Err(NotASize::NotBytes)));
    }

    pub fn take_time(&mut self, rank: u8, text: &str) {
        if self.time.is_none_or(|(known, _)| rank < known)
            && let Some(moment) = self.last.parse(text)
        {
            self.time = Some((rank, moment));
        }
    }

    /// Notes the client: an address, or one with its port; of several in a list the first.
    pub fn take_client(&mut self, text: &str) {
        let text = text.split(',').next().unwrap_or_default().trim();
        if let Ok(address) = text.parse::<IpAddr>() {
            self.transfer.client = Some(address.to_canonical());
        } else if let Ok(both) = text.parse::<SocketAddr>() {
            self.transfer.client = Some(both.ip().to_canonical());
            self.transfer.port = Some(both.port());
        } else if let Some((address, port)) = text.rsplit_once(':')
            && let (Ok(address), Ok(port)) = (address.parse::<IpAddr>(), port.parse())
        {
            // HAProxy writes addresses of IPv6 without brackets.
            self.transfer.client = Some(address.to_canonical());
            self.transfer.port = Some(port);
        }
    }

    /// Notes a request, which ends in its protocol.
    pub fn take_request(&mut self, text: &str) {
        if let Some((_, protocol)) = text.rsplit_once(' ') {
            self.transfer.protocol = Protocol::named(protocol);
        }
    }

    fn take_span(&mut self, span: Span, unit: Unit, text: &str) {
        let nanos = match unit {
            // What several servers behind it took, one after the other.
            Unit::Nanos(unit) if span == Span::Upstream || span == Span::FirstByte => {
                let parts = text.split([',', ' ', ':']).filter_map(|part| part.parse::<f64>().ok());
                parts.reduce(|sum, part| sum + part).map(|sum| sum * unit)
            }
            Unit::Nanos(unit) => text.parse::<f64>().ok().map(|value| value * unit),
            Unit::Written => with_unit(text),
            Unit::OfProgram => match text.parse::<f64>() {
                Ok(value) => {
                    self.bare = Some(value);
                    return;
                }
                Err(_) => with_unit(text),
            },
        };
        if let Some(nanos) = nanos {
            self.span(span, nanos);
        }
    }

    /// Notes a span in nanoseconds.
    pub fn span(&mut self, span: Span, nanos: f64) {
        if !(0.0..SPAN_NS_MAX).contains(&nanos) {
            return;
        }
        let nanos = nanos.round() as u64;
        match span {
            Span::Whole => self.transfer.duration_ns = Some(nanos),
            Span::Sending => self.sending_ns = Some(nanos),
            Span::FirstByte => self.first_byte_ns = Some(nanos),
            Span::Upstream => self.upstream_ns = Some(nanos),
            Span::Rtt => self.transfer.rtt_ns = Some(nanos).filter(|nanos| *nanos > 0),
        }
    }

    /// Whether a field of sizes was seen.
    pub fn has_size(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// Returns the names of two sizes that could both be meant, by their numbers.
    pub fn ambiguous(&self) -> Option<(usize, usize)> {
        let pairs = self.sizes.iter().zip(self.sizes.iter().skip(1));
        let mut pairs = pairs.map(|((one, _), (other, _))| (*one, *other));
        pairs.find(|(one, other)| !are_together(*one, *other))
    }

    /// Completes the transfer.
    pub fn finish(&mut self) -> Result<(), Miss> {
        let best = self.sizes.iter().filter_map(|(_, size)| size.ok()).max();
        self.transfer.bytes = match (best, self.sizes.first()) {
            (Some(bytes), _) => bytes,
            (None, Some((_, Err(why)))) => return Err((*why).into()),
            _ => return Err(Miss::Over(NO_SIZE)),
        };
        self.transfer.at = self.at();
        if self.transfer.duration_ns.is_none() {
            self.transfer.duration_ns = self.duration_ns();
        }
        let server = self.first_byte_ns.or(self.upstream_ns);
        let most = self.transfer.duration_ns.unwrap_or(u64::MAX);
        self.transfer.server_ns = server.map(|server| server.min(most));
        self.transfer.is_without_unit = self.bare.is_some() && self.transfer.duration_ns.is_none();
        Ok(())
    }

    /// Returns the time: that of a day is the one of the column of dates, if there is one.
    fn at(&self) -> Option<Moment> {
        match (self.time?.1, self.date) {
            (Moment::OfDay(at), Some(days)) => {
                days.checked_mul(DAY_NS)?.checked_add(at).map(Moment::Instant)
            }
            (time, _) => Some(time),
        }
    }

    /// Returns the duration that other fields give.
    fn duration_ns(&self) -> Option<u64> {
        if let (Some(value), Some(program)) = (self.bare, self.program) {
            let nanos = value * program.unit_ns();
            return (0.0..SPAN_NS_MAX).contains(&nanos).then(|| nanos.round() as u64);
        }
        if let Some(sending) = self.sending_ns {
            return sending.checked_add(self.first_byte_ns.unwrap_or(0));
        }
        match (self.time, self.end) {
            (Some((_, Moment::Instant(from))), Some(Moment::Instant(to))) => {
                u64::try_from(to.checked_sub(from)?).ok()
            }
            _ => None,
        }
    }
}

fn word(kept: &mut String, text: &str) {
    if text.len() <= WORD_BYTES_MAX && kept.is_empty() {
        kept.push_str(text);
    }
}

/// Parses a number with its unit, such as `38 ms` or `0.25s`; returns nanoseconds.
pub(super) fn with_unit(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let unit_ns = match unit.trim() {
        "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" | "μs" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|number| number * unit_ns)
}
