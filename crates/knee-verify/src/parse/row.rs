//! The rows of a log.

use super::fields::{below, number, optional, pair, short};
use super::head::Head;
use std::fmt;

/// Data or acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// Reason that a link gives for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Loss,
    Down,
    Policer,
    Queue,
    Aqm,
    Breaker,
}

/// Why a segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    Syn,
    New,
    /// Retransmission, because it was declared lost.
    Again,
    /// Tail loss probe, a new or repeated segment; neither congestion window nor pacing hold it
    /// back.
    Probe,
}

/// Purpose of a sender's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Handshake.
    Syn,
    Probe,
    Retransmission,
}

/// A packet as named in a row about a link.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub flow: u64,
    pub kind: Kind,
    pub id: u64,
    pub number: Option<u64>,
    pub bytes: Option<u64>,
    /// It may be marked, or is.
    pub ecn_capable: bool,
    /// Whether it carries Congestion Experienced.
    pub marked: bool,
}

/// A segment that a sender puts on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub flow: u64,
    pub id: u64,
    pub number: u64,
    pub bytes: u64,
    /// Bytes in flight afterwards.
    pub in_flight: i128,
    /// Congestion window in force.
    pub window: u64,
    /// Pacing rate, bit/s, or `None` if not paced.
    pub pacing: Option<u64>,
    /// Maximum number of segments of its burst.
    pub burst: u64,
    /// First byte within the connection, for a subflow's segment.
    pub offset: Option<u64>,
    pub ecn_capable: bool,
    pub repeat: Repeat,
}

/// An ACK that a receiver puts on the wire.
#[derive(Debug)]
pub struct AckSend {
    pub flow: u64,
    pub id: u64,
    /// Next segment expected.
    pub number: u64,
    /// SACK blocks.
    pub blocks: Vec<(u64, u64)>,
    /// Payload bytes that arrived with Congestion Experienced, modulo 2^32, if it counts them.
    pub marked: Option<u32>,
    pub data: Option<DataAck>,
}

/// Event of a row.
#[derive(Debug)]
pub enum Event {
    Send(Send),
    Enter {
        link: usize,
        packet: Seen,
        bytes: u64,
    },
    Drop {
        link: usize,
        packet: Seen,
        reason: Reason,
    },
    Leave {
        link: usize,
        packet: Seen,
    },
    /// A link asks those before it to pause, or to go on.
    Pause {
        link: usize,
        pause: bool,
    },
    Receive {
        packet: Seen,
        /// Whether the receiver discards it.
        old: bool,
    },
    /// A packet reached an end that is gone.
    Discard {
        packet: Seen,
    },
    Deliver {
        flow: u64,
        first: u64,
        segments: u64,
        bytes: u64,
    },
    /// A connection over several paths delivers bytes to its application.
    DeliverData {
        connection: u64,
        offset: u64,
        bytes: u64,
    },
    AckSend(AckSend),
    AckReceive {
        packet: Seen,
        number: u64,
        in_flight: i128,
    },
    Timeout {
        flow: u64,
        what: Timeout,
    },
    /// All data written has been acknowledged.
    Complete {
        flow: u64,
        bytes: u64,
    },
    /// The ends of a flow or connection are gone.
    End {
        flow: u64,
    },
}

impl Event {
    /// Returns the flow or connection concerned, if any.
    pub fn flow(&self) -> Option<u64> {
        Some(match self {
            Event::Pause { .. } => return None,
            Event::Send(send) => send.flow,
            Event::AckSend(ack) => ack.flow,
            Event::Enter { packet, .. }
            | Event::Drop { packet, .. }
            | Event::Leave { packet, .. }
            | Event::Receive { packet, .. }
            | Event::Discard { packet }
            | Event::AckReceive { packet, .. } => packet.flow,
            Event::Deliver { flow, .. }
            | Event::Timeout { flow, .. }
            | Event::Complete { flow, .. }
            | Event::End { flow } => *flow,
            Event::DeliverData { connection, .. } => *connection,
        })
    }
}

/// Data acknowledgement of a connection, carried by an ACK of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct DataAck {
    /// Next byte expected.
    pub next: u64,
    /// Bytes that the shared window allows from there on, or `None` if unlimited.
    pub window: Option<u64>,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    pub time: u64,
    pub event: Event,
}

const COLUMNS: usize = 15;

impl Row {
    pub fn parse(line: &str, head: &Head) -> Result<Row, String> {
        let mut fields = [""; COLUMNS];
        let mut count = 0;
        for field in line.split(',') {
            *fields.get_mut(count).ok_or(format!("more than {COLUMNS} columns"))? = field;
            count += 1;
        }
        if count != COLUMNS {
            return Err(format!("{count} columns instead of {COLUMNS}"));
        }
        let cells = Cells { fields, links: head.links.len() };
        Ok(Row { time: number("time_ns", fields[0])?, event: cells.event()? })
    }
}

/// The cells of a row.
struct Cells<'a> {
    fields: [&'a str; COLUMNS],
    links: usize,
}

impl Cells<'_> {
    fn event(&self) -> Result<Event, String> {
        Ok(match self.fields[1] {
            "send" => Event::Send(self.send()?),
            "enter" => {
                Event::Enter { link: self.link()?, packet: self.seen()?, bytes: self.bytes()? }
            }
            "drop" => {
                Event::Drop { link: self.link()?, packet: self.seen()?, reason: self.reason()? }
            }
            "leave" => Event::Leave { link: self.link()?, packet: self.seen()? },
            "pause" => Event::Pause { link: self.link()?, pause: true },
            "resume" => Event::Pause { link: self.link()?, pause: false },
            "receive" => Event::Receive { packet: self.seen()?, old: self.detail() == "old" },
            "discard" => Event::Discard { packet: self.seen()? },
            "deliver" => Event::Deliver {
                flow: self.flow()?,
                first: self.number()?,
                segments: number("detail", self.detail())?,
                bytes: self.bytes()?,
            },
            "deliver_data" => Event::DeliverData {
                connection: self.flow()?,
                offset: number("offset", self.fields[12])?,
                bytes: self.bytes()?,
            },
            "ack_send" => Event::AckSend(AckSend {
                flow: self.flow()?,
                id: self.id()?,
                number: self.number()?,
                blocks: self.blocks()?,
                marked: optional("ecn", self.fields[13])?,
                data: self.data_ack()?,
            }),
            "ack_receive" => Event::AckReceive {
                packet: self.seen()?,
                number: self.number()?,
                in_flight: self.in_flight()?,
            },
            "timeout" => Event::Timeout { flow: self.flow()?, what: self.timeout()? },
            "complete" => Event::Complete { flow: self.flow()?, bytes: self.bytes()? },
            "end" => Event::End { flow: self.flow()? },
            other => return Err(format!("unknown event `{}`", short(other))),
        })
    }

    fn send(&self) -> Result<Send, String> {
        Ok(Send {
            flow: self.flow()?,
            id: self.id()?,
            number: self.number()?,
            bytes: self.bytes()?,
            in_flight: self.in_flight()?,
            window: number("window", self.fields[9])?,
            pacing: optional("pacing_bps", self.fields[10])?,
            burst: number("burst", self.fields[11])?,
            offset: optional("offset", self.fields[12])?,
            ecn_capable: !self.ecn()?.is_empty(),
            repeat: match self.detail() {
                "syn" => Repeat::Syn,
                "new" => Repeat::New,
                "again" => Repeat::Again,
                "probe" => Repeat::Probe,
                other => return Err(unknown("send", other)),
            },
        })
    }

    fn seen(&self) -> Result<Seen, String> {
        let kind = match self.fields[4] {
            "data" => Kind::Data,
            "ack" => Kind::Ack,
            other => return Err(format!("kind is `{}`, not data or ack", short(other))),
        };
        Ok(Seen {
            flow: self.flow()?,
            kind,
            id: self.id()?,
            number: optional("number", self.fields[6])?,
            bytes: optional("bytes", self.fields[7])?,
            ecn_capable: !self.ecn()?.is_empty(),
            marked: self.ecn()? == "ce",
        })
    }

    fn flow(&self) -> Result<u64, String> {
        number("flow", self.fields[3])
    }

    fn link(&self) -> Result<usize, String> {
        let link = number("link", self.fields[2])?;
        below("link", link, self.links)?;
        Ok(link)
    }

    fn id(&self) -> Result<u64, String> {
        number("id", self.fields[5])
    }

    fn number(&self) -> Result<u64, String> {
        number("number", self.fields[6])
    }

    fn bytes(&self) -> Result<u64, String> {
        number("bytes", self.fields[7])
    }

    fn in_flight(&self) -> Result<i128, String> {
        number("in_flight", self.fields[8])
    }

    fn ecn(&self) -> Result<&str, String> {
        match self.fields[13] {
            known @ ("" | "ect" | "ect1" | "ce") => Ok(known),
            other => Err(format!("ecn is `{}`, not ect or ce", short(other))),
        }
    }

    fn detail(&self) -> &str {
        self.fields[14]
    }

    fn reason(&self) -> Result<Reason, String> {
        Ok(match self.detail() {
            "loss" => Reason::Loss,
            "down" => Reason::Down,
            "policer" => Reason::Policer,
            "queue" => Reason::Queue,
            "aqm" => Reason::Aqm,
            "breaker" => Reason::Breaker,
            other => return Err(unknown("drop", other)),
        })
    }

    fn timeout(&self) -> Result<Timeout, String> {
        Ok(match self.detail() {
            "syn" => Timeout::Syn,
            "probe" => Timeout::Probe,
            "rto" => Timeout::Retransmission,
            other => return Err(unknown("timeout", other)),
        })
    }

    fn data_ack(&self) -> Result<Option<DataAck>, String> {
        let window = optional("window", self.fields[9])?;
        let next = optional("offset", self.fields[12])?;
        Ok(next.map(|next| DataAck { next, window }))
    }

    fn blocks(&self) -> Result<Vec<(u64, u64)>, String> {
        if self.detail().is_empty() {
            return Ok(Vec::new());
        }
        self.detail().split(';').map(|text| pair("detail", text, '-')).collect()
    }
}

fn unknown(event: &str, detail: &str) -> String {
    format!("detail of {event} is `{}`, which nobody knows", short(detail))
}
