//! The text of a log: its head and its rows.

use std::fmt;
use std::io;
use std::str::FromStr;

const FORMAT: &str = "# knee-packet-log/1";
const COLUMNS: &str = "time_ns,event,link,flow,kind,id,number,bytes,detail";

/// Why a log could not be checked.
#[derive(Debug)]
pub enum LogError {
    /// It could not be read.
    Io(io::Error),
    /// A line is not as the format says.
    Malformed {
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl LogError {
    pub(crate) fn at(line: u64, what: String) -> LogError {
        LogError::Malformed { line, what }
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> LogError {
        LogError::Io(error)
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Io(error) => write!(f, "the log cannot be read: {error}"),
            LogError::Malformed { line, what } => write!(f, "line {line}: {what}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogError::Io(error) => Some(error),
            LogError::Malformed { .. } => None,
        }
    }
}

/// A link as the head describes it.
#[derive(Clone, Debug)]
pub struct LinkHead {
    pub name: String,
    /// Constant rate, bit/s; none: not constant, or unlimited.
    pub rate: Option<u64>,
    /// Smallest delay, nanoseconds.
    pub delay: u64,
    /// Largest delay, nanoseconds; the same as `delay` when it is constant.
    pub delay_max: u64,
    pub fifo: bool,
    /// Bytes that may wait.
    pub buffer: Option<u64>,
}

/// Link indexes there and back.
#[derive(Debug)]
pub struct PathHead {
    pub forward: Vec<usize>,
    pub reverse: Vec<usize>,
}

/// A flow as the head describes it.
#[derive(Debug)]
pub struct FlowHead {
    pub path: usize,
    pub mss: u64,
}

/// What stands before the rows.
#[derive(Debug, Default)]
pub struct Head {
    pub links: Vec<LinkHead>,
    pub paths: Vec<PathHead>,
    pub flows: Vec<FlowHead>,
}

impl Head {
    pub fn check_format(line: &str) -> Result<(), String> {
        if line == FORMAT { Ok(()) } else { Err(format!("expected `{FORMAT}`, found `{line}`")) }
    }

    /// Takes up a line of the head, without its `# `.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let mut fields = line.split(',');
        let what = fields.next().unwrap_or_default();
        let index: usize = number("index", fields.next().unwrap_or_default())?;
        let fields: Vec<&str> = fields.collect();
        let expected = match what {
            "link" => push(&mut self.links, link_head(&fields)?),
            "path" => push(&mut self.paths, path_head(&fields)?),
            "flow" => push(&mut self.flows, flow_head(&fields)?),
            _ => return Err(format!("expected link, path or flow, found `{what}`")),
        };
        if index != expected {
            return Err(format!("expected {what} {expected}, found {index}"));
        }
        Ok(())
    }

    /// Takes up a flow that begins after the head, without its `# `.
    pub fn add_flow(&mut self, line: &str) -> Result<(), String> {
        if !line.starts_with("flow,") {
            return Err(format!("among the rows only flows begin, found `{line}`"));
        }
        self.add(line)?;
        self.flows.last().map_or(Ok(()), |flow| below("path", flow.path, self.paths.len()))
    }

    /// Ends the head at the line with the names of the columns.
    pub fn finish(&self, columns: &str) -> Result<(), String> {
        if columns != COLUMNS {
            return Err(format!("expected `{COLUMNS}`, found `{columns}`"));
        }
        for path in &self.paths {
            for &link in path.forward.iter().chain(&path.reverse) {
                below("link", link, self.links.len())?;
            }
        }
        self.flows.iter().try_for_each(|flow| below("path", flow.path, self.paths.len()))
    }
}

fn push<T>(list: &mut Vec<T>, value: T) -> usize {
    list.push(value);
    list.len() - 1
}

fn link_head(fields: &[&str]) -> Result<LinkHead, String> {
    let delay = number("delay_ns", value(fields, "delay_ns")?)?;
    // Present only where the delay varies.
    let delay_max = value(fields, "delay_max_ns").unwrap_or_default();
    let delay_max = optional("delay_max_ns", delay_max)?.unwrap_or(delay);
    if delay_max < delay {
        return Err(format!("delay_max_ns={delay_max} is below delay_ns={delay}"));
    }
    Ok(LinkHead {
        name: fields.first().unwrap_or(&"").to_string(),
        rate: optional("rate_bps", value(fields, "rate_bps")?)?,
        delay,
        delay_max,
        fifo: value(fields, "fifo")? == "1",
        buffer: optional("buffer_bytes", value(fields, "buffer_bytes")?)?,
    })
}

fn path_head(fields: &[&str]) -> Result<PathHead, String> {
    let links = |key| {
        let list = value(fields, key)?;
        list.split(';').map(|link| number(key, link)).collect::<Result<Vec<usize>, String>>()
    };
    Ok(PathHead { forward: links("forward")?, reverse: links("reverse")? })
}

fn flow_head(fields: &[&str]) -> Result<FlowHead, String> {
    Ok(FlowHead {
        path: number("path", value(fields, "path")?)?,
        mss: number("mss", value(fields, "mss")?)?,
    })
}

fn value<'a>(fields: &[&'a str], key: &str) -> Result<&'a str, String> {
    let pairs = fields.iter().filter_map(|field| field.split_once('='));
    let found = pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next();
    found.ok_or_else(|| format!("`{key}=` is missing"))
}

/// Data or acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Ack,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Data => "data",
            Kind::Ack => "ack",
        })
    }
}

/// A packet as a row about a link names it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub flow: usize,
    pub kind: Kind,
    pub id: u64,
    pub number: Option<u64>,
    pub bytes: Option<u64>,
}

/// What a row says.
#[derive(Debug)]
pub enum Event {
    Send {
        flow: usize,
        id: u64,
        number: u64,
        bytes: u64,
        in_flight: i128,
    },
    Enter {
        link: usize,
        packet: Seen,
        bytes: u64,
    },
    /// `went_down`: because the link did, whatever the packet was doing.
    Drop {
        link: usize,
        packet: Seen,
        went_down: bool,
    },
    Leave {
        link: usize,
        packet: Seen,
    },
    Receive {
        packet: Seen,
    },
    Deliver {
        flow: usize,
        first: u64,
        segments: u64,
        bytes: u64,
    },
    AckSend {
        flow: usize,
        id: u64,
        number: u64,
        blocks: Vec<(u64, u64)>,
    },
    AckReceive {
        packet: Seen,
        number: u64,
        in_flight: i128,
    },
}

/// A row.
#[derive(Debug)]
pub struct Row {
    pub time: u64,
    pub event: Event,
}

impl Row {
    pub fn parse(line: &str, head: &Head) -> Result<Row, String> {
        let mut fields = [""; 9];
        let mut count = 0;
        for field in line.split(',') {
            *fields.get_mut(count).ok_or("more than 9 columns")? = field;
            count += 1;
        }
        if count != fields.len() {
            return Err(format!("{count} columns instead of {}", fields.len()));
        }
        let [time, event, link, flow, kind, id, number_, bytes, detail] = fields;
        let cells = Cells { link, flow, kind, id, number: number_, bytes, detail, head };
        Ok(Row { time: number("time_ns", time)?, event: cells.event(event)? })
    }
}

/// The cells of a row after the time.
struct Cells<'a> {
    link: &'a str,
    flow: &'a str,
    kind: &'a str,
    id: &'a str,
    number: &'a str,
    bytes: &'a str,
    detail: &'a str,
    head: &'a Head,
}

impl Cells<'_> {
    fn event(&self, event: &str) -> Result<Event, String> {
        Ok(match event {
            "send" => Event::Send {
                flow: self.flow()?,
                id: number("id", self.id)?,
                number: self.number()?,
                bytes: self.bytes()?,
                in_flight: number("detail", self.detail)?,
            },
            "enter" => {
                Event::Enter { link: self.link()?, packet: self.seen()?, bytes: self.bytes()? }
            }
            "drop" => Event::Drop {
                link: self.link()?,
                packet: self.seen()?,
                went_down: self.detail == "down",
            },
            "leave" => Event::Leave { link: self.link()?, packet: self.seen()? },
            "receive" => Event::Receive { packet: self.seen()? },
            "deliver" => Event::Deliver {
                flow: self.flow()?,
                first: self.number()?,
                segments: number("detail", self.detail)?,
                bytes: self.bytes()?,
            },
            "ack_send" => Event::AckSend {
                flow: self.flow()?,
                id: number("id", self.id)?,
                number: self.number()?,
                blocks: self.blocks()?,
            },
            "ack_receive" => Event::AckReceive {
                packet: self.seen()?,
                number: self.number()?,
                in_flight: number("detail", self.detail)?,
            },
            _ => return Err(format!("unknown event `{event}`")),
        })
    }

    fn seen(&self) -> Result<Seen, String> {
        let kind = match self.kind {
            "data" => Kind::Data,
            "ack" => Kind::Ack,
            other => return Err(format!("kind is `{other}`, not data or ack")),
        };
        Ok(Seen {
            flow: self.flow()?,
            kind,
            id: number("id", self.id)?,
            number: optional("number", self.number)?,
            bytes: optional("bytes", self.bytes)?,
        })
    }

    fn flow(&self) -> Result<usize, String> {
        let flow = number("flow", self.flow)?;
        below("flow", flow, self.head.flows.len())?;
        Ok(flow)
    }

    fn link(&self) -> Result<usize, String> {
        let link = number("link", self.link)?;
        below("link", link, self.head.links.len())?;
        Ok(link)
    }

    fn number(&self) -> Result<u64, String> {
        number("number", self.number)
    }

    fn bytes(&self) -> Result<u64, String> {
        number("bytes", self.bytes)
    }

    fn blocks(&self) -> Result<Vec<(u64, u64)>, String> {
        if self.detail.is_empty() {
            return Ok(Vec::new());
        }
        let block = |text: &str| {
            let (from, until) = text.split_once('-').ok_or(format!("`{text}` is no SACK block"))?;
            Ok((number("detail", from)?, number("detail", until)?))
        };
        self.detail.split(';').map(block).collect()
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} is `{text}`, not a number"))
}

fn optional<T: FromStr>(name: &str, text: &str) -> Result<Option<T>, String> {
    if text.is_empty() { Ok(None) } else { number(name, text).map(Some) }
}

fn below(what: &str, index: usize, count: usize) -> Result<(), String> {
    if index < count { Ok(()) } else { Err(format!("{what} {index} is not in the head")) }
}
