//! The head of a log: links, paths and flows.

use super::fields::{Fields, below, number, short};
use std::collections::BTreeMap;

const FORMAT: &str = "# knee-packet-log/3";
const COLUMNS: &str = "time_ns,event,link,flow,kind,id,number,bytes,in_flight,window,\
                       pacing_bps,burst,offset,ecn,detail";

/// Rate at which packets leave a link.
#[derive(Clone, Debug)]
pub enum Rate {
    Unlimited,
    /// Rate in bit/s from the given times on.
    Steps(Vec<(u64, u64)>),
    /// Opportunities of 1500 bytes, in milliseconds; the last one is the period of repetition. The
    /// run begins at `offset_ns`.
    Trace {
        opportunities_ms: Vec<u64>,
        offset_ns: u64,
    },
}

/// Limit of a queue.
#[derive(Clone, Copy, Debug)]
pub enum Buffer {
    Unlimited,
    Bytes(u64),
    Packets(u64),
}

/// AQM, which decides about drops and marks.
#[derive(Clone, Copy, Debug)]
pub enum Aqm {
    DropTail,
    Codel { target: u64, interval: u64, ecn: bool },
    DualPi2,
    FqCodel { target: u64, interval: u64, ecn: bool },
    Pie { target: u64, update: u64, burst: u64, ecn: bool },
    Red { min: f64, max: f64, weight: f64, ecn: bool },
    Threshold(u64),
}

/// Loss before the queue.
#[derive(Clone, Debug)]
pub enum Loss {
    None,
    /// Random: any packet may be lost.
    Random,
    /// Random: any packet may be lost, with all of its flow that enter with it.
    SuperPackets,
    /// Packets n, 2n, 3n …
    Every(u64),
    /// One entry per packet, repeated.
    Recorded(Vec<bool>),
    /// A different loss from the given times on; each restarts the packet count.
    Steps(Vec<(u64, Loss)>),
}

/// A token bucket before the queue.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    pub rate: u64,
    pub burst: u64,
}

/// A circuit breaker around a link (RFC 8084).
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    pub interval: u64,
    /// Part of the packets that may go missing in an interval.
    pub loss: f64,
    /// Intervals in a row that trip it.
    pub intervals: u64,
    /// Nanoseconds after which it lets packets in again; none: never.
    pub reset: Option<u64>,
}

/// A link as described in the head. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Link {
    pub name: String,
    pub rate: Rate,
    /// Propagation delay from the given times on.
    pub delay: Vec<(u64, u64)>,
    /// Maximum jitter from the given times on.
    pub jitter: Vec<(u64, u64)>,
    /// Minimum jitter of a packet that has any.
    pub jitter_least: u64,
    /// Share of the packets that have jitter.
    pub jitter_share: f64,
    /// Whether packets may overtake each other.
    pub reorder: bool,
    /// Whether they do so when the propagation delay falls; otherwise only by jitter.
    pub delay_reorder: bool,
    pub buffer: Buffer,
    pub aqm: Aqm,
    /// Limit of the device below the AQM, including the packet in transmission; if absent, it holds
    /// only that one.
    pub device: Option<Buffer>,
    pub loss: Loss,
    pub policer: Option<Policer>,
    /// Spans in which the link is down.
    pub down: Vec<(u64, u64)>,
    /// Spans in which it delivers nothing.
    pub hold: Vec<(u64, u64)>,
    pub breaker: Option<Breaker>,
    /// Nothing keeps its ECN codepoint.
    pub ecn_bleached: bool,
    /// Lengths of the queue, in the unit of its buffer, at which it asks the links before it to
    /// pause, and to go on.
    pub pause: Option<(u64, u64)>,
    /// Whether a link behind it may ask it.
    pub pausable: bool,
}

impl Link {
    fn parse(fields: &Fields) -> Result<Link, String> {
        Ok(Link {
            name: fields.0.first().unwrap_or(&"").to_string(),
            rate: rate(fields)?,
            delay: fields.steps("delay_ns")?,
            jitter: fields
                .get("jitter_ns")
                .map_or(Ok(vec![(0, 0)]), |_| fields.steps("jitter_ns"))?,
            jitter_least: fields.optional("jitter_least_ns")?.unwrap_or(0),
            jitter_share: share(fields)?,
            reorder: fields.flag("reorder")?,
            delay_reorder: fields.flag("delay_reorder")?,
            buffer: buffer(fields)?,
            aqm: aqm(fields)?,
            device: device(fields)?,
            loss: loss(fields)?,
            policer: policer(fields)?,
            down: spans("down_ns", fields)?,
            hold: spans("hold_ns", fields)?,
            breaker: breaker(fields)?,
            ecn_bleached: fields.flag("ecn_bleached")?,
            pause: pause(fields)?,
            pausable: false,
        })
    }

    /// Whether it begins a transmission only when it may, so that departures are not known at entry.
    pub fn holds(&self) -> bool {
        self.pausable || self.pause.is_some()
    }

    pub fn delay_min(&self) -> u64 {
        self.delay.iter().map(|(_, delay)| *delay).min().unwrap_or(0)
    }

    pub fn delay_max(&self) -> u64 {
        let most = |steps: &[(u64, u64)]| steps.iter().map(|(_, value)| *value).max().unwrap_or(0);
        let held = self.hold.iter().map(|(from, until)| until - from).max().unwrap_or(0);
        most(&self.delay) + most(&self.jitter) + held
    }
}

fn share(fields: &Fields) -> Result<f64, String> {
    let share = fields.optional("jitter_share")?.unwrap_or(1.0);
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(format!("jitter_share is {share}, not from 0 to 1")),
    }
}

fn rate(fields: &Fields) -> Result<Rate, String> {
    if let Some(trace) = fields.get("trace_ms") {
        let list = trace.split(';').map(|ms| number("trace_ms", ms));
        let opportunities_ms = list.collect::<Result<Vec<u64>, String>>()?;
        if !opportunities_ms.is_sorted() || opportunities_ms.last() == Some(&0) {
            return Err("the times of trace_ms do not ascend to a period".to_string());
        }
        let offset_ns = fields.optional("trace_offset_ns")?.unwrap_or(0);
        return Ok(Rate::Trace { opportunities_ms, offset_ns });
    }
    if fields.required("rate_bps")?.is_empty() {
        return Ok(Rate::Unlimited);
    }
    Ok(Rate::Steps(fields.steps("rate_bps")?))
}

fn buffer(fields: &Fields) -> Result<Buffer, String> {
    match (fields.optional("buffer_bytes")?, fields.optional("buffer_packets")?) {
        (None, None) => Ok(Buffer::Unlimited),
        (Some(bytes), None) => Ok(Buffer::Bytes(bytes)),
        (None, Some(packets)) => Ok(Buffer::Packets(packets)),
        _ => Err("a buffer has bytes or packets, not both".to_string()),
    }
}

fn aqm(fields: &Fields) -> Result<Aqm, String> {
    let target = || fields.number("target_ns");
    let interval = || fields.number("interval_ns");
    let ecn = fields.flag("ecn")?;
    Ok(match fields.get("aqm").unwrap_or("drop-tail") {
        "drop-tail" => Aqm::DropTail,
        "codel" => Aqm::Codel { target: target()?, interval: interval()?, ecn },
        "fq-codel" => Aqm::FqCodel { target: target()?, interval: interval()?, ecn },
        "pie" => Aqm::Pie {
            target: target()?,
            update: at_least_one("update_ns", fields.number("update_ns")?)?,
            burst: fields.number("burst_ns")?,
            ecn,
        },
        "red" => Aqm::Red {
            min: fields.number("min_bytes")?,
            max: fields.number("max_bytes")?,
            weight: fields.number("weight")?,
            ecn,
        },
        "threshold" => Aqm::Threshold(target()?),
        "dualpi2" => Aqm::DualPi2,
        other => return Err(format!("aqm is `{}`, which nobody knows", short(other))),
    })
}

fn loss(fields: &Fields) -> Result<Loss, String> {
    let text = fields.get("loss").unwrap_or("none");
    if !text.contains('@') {
        return steady_loss(text);
    }
    let step = |step: &str| {
        let (at, loss) = step.split_once('@').ok_or("a step of loss lacks its time")?;
        Ok((number("loss", at)?, steady_loss(loss)?))
    };
    let steps = text.split(';').map(step).collect::<Result<Vec<(u64, Loss)>, String>>()?;
    if steps[0].0 != 0 || !steps.is_sorted_by(|a, b| a.0 < b.0) {
        return Err("the times of loss do not ascend from zero".to_string());
    }
    Ok(Loss::Steps(steps))
}

fn steady_loss(text: &str) -> Result<Loss, String> {
    Ok(match text.split_once(':') {
        None if text == "none" => Loss::None,
        None if text == "random" => Loss::Random,
        None if text == "super-packets" => Loss::SuperPackets,
        Some(("every", n)) => Loss::Every(at_least_one("loss", number("loss", n)?)?),
        Some(("recorded", bits)) if !bits.is_empty() => {
            Loss::Recorded(bits.chars().map(|bit| bit == '1').collect())
        }
        _ => return Err(format!("loss is `{}`, which nobody knows", short(text))),
    })
}

fn at_least_one(name: &str, value: u64) -> Result<u64, String> {
    if value > 0 { Ok(value) } else { Err(format!("{name} is zero")) }
}

fn policer(fields: &Fields) -> Result<Option<Policer>, String> {
    let pairs = fields.pairs("policer", ':')?;
    Ok(pairs.first().map(|&(rate, burst)| Policer { rate, burst }))
}

fn breaker(fields: &Fields) -> Result<Option<Breaker>, String> {
    let Some(text) = fields.get("breaker") else { return Ok(None) };
    let parts: Vec<&str> = text.split(':').collect();
    let (interval, loss, intervals, reset) = match parts[..] {
        [interval, loss, intervals] => (interval, loss, intervals, None),
        [interval, loss, intervals, reset] => (interval, loss, intervals, Some(reset)),
        _ => return Err(format!("breaker is `{}`, not three numbers or four", short(text))),
    };
    let positive = |text| at_least_one("breaker", number("breaker", text)?);
    Ok(Some(Breaker {
        interval: positive(interval)?,
        loss: number("breaker", loss)?,
        intervals: positive(intervals)?,
        reset: reset.map(positive).transpose()?,
    }))
}

fn pause(fields: &Fields) -> Result<Option<(u64, u64)>, String> {
    let pairs = fields.pairs("pause", ':')?;
    match pairs.first() {
        Some((at, until)) if until >= at => Err("a pause ends above where it begins".to_string()),
        first => Ok(first.copied()),
    }
}

fn device(fields: &Fields) -> Result<Option<Buffer>, String> {
    let positive = |key| {
        let number = fields.optional(key)?;
        number.map(|number| at_least_one(key, number)).transpose()
    };
    match (positive("device_bytes")?, positive("device_packets")?) {
        (None, None) => Ok(None),
        (Some(bytes), None) => Ok(Some(Buffer::Bytes(bytes))),
        (None, Some(packets)) => Ok(Some(Buffer::Packets(packets))),
        _ => Err("a device has bytes or packets, not both".to_string()),
    }
}

fn spans(key: &str, fields: &Fields) -> Result<Vec<(u64, u64)>, String> {
    let spans = fields.pairs(key, '-')?;
    let ordered = spans.iter().all(|(from, until)| from < until)
        && spans.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    if ordered { Ok(spans) } else { Err(format!("the spans of {key} are not in order")) }
}

/// Indexes of the links in each direction.
#[derive(Debug)]
pub struct Path {
    pub forward: Vec<usize>,
    pub reverse: Vec<usize>,
    /// Number of the tunnel that carries it.
    pub tunnel: Option<u64>,
}

impl Path {
    fn parse(fields: &Fields) -> Result<Path, String> {
        let links = |key| {
            let list = fields.required(key)?.split(';');
            list.map(|link| number(key, link)).collect::<Result<Vec<usize>, String>>()
        };
        let tunnel = fields.optional("tunnel")?;
        Ok(Path { forward: links("forward")?, reverse: links("reverse")?, tunnel })
    }
}

/// A flow, which has segment numbers of its own: a connection over one path, or a subflow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub path: usize,
    pub mss: u64,
    /// Maximum of outstanding bytes; if absent, it has no limit of its own.
    pub receive_window: Option<u64>,
    /// Minimum difference between the retransmission timeout and the RTT.
    pub rto_min: u64,
    /// Maximum burst, bytes.
    pub burst: Option<u64>,
    /// Connection over several paths that it belongs to.
    pub connection: Option<u64>,
    /// Whether the receiver acknowledges missing segments below received ones.
    pub conceals: bool,
    /// Maximum number of segments that it acknowledges beyond the received ones.
    pub ack_ahead: u64,
    /// Whether it also sends ACKs for parts of a segment.
    pub divides_acks: bool,
    /// Largest delay of a packet before it enters its first link.
    pub send_jitter: u64,
}

impl Flow {
    fn parse(fields: &Fields) -> Result<Flow, String> {
        Ok(Flow {
            path: fields.number("path")?,
            mss: at_least_one("mss", fields.number("mss")?)?,
            receive_window: fields.optional("receive_window")?,
            rto_min: fields.optional("rto_min_ns")?.unwrap_or(0),
            burst: fields.optional("burst_bytes")?,
            connection: fields.optional("connection")?,
            conceals: fields.flag("conceals")?,
            ack_ahead: fields.optional("ack_ahead")?.unwrap_or(0),
            divides_acks: fields.flag("divides_acks")?,
            send_jitter: fields.optional("send_jitter_ns")?.unwrap_or(0),
        })
    }
}

/// A connection over several paths.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Initial receive window, bytes; if absent, unlimited.
    pub receive_window: Option<u64>,
}

/// A flow or connection that a line opens.
pub enum Opened {
    Flow(u64, Flow),
    Connection(u64, Connection),
}

/// The head, and the flows and connections that lines among the rows open.
#[derive(Debug, Default)]
pub struct Head {
    pub links: Vec<Link>,
    pub paths: Vec<Path>,
    /// Flows and connections opened in the head.
    pub flows: BTreeMap<u64, Flow>,
    pub connections: BTreeMap<u64, Connection>,
    /// Last number; flows and connections share their numbers, which ascend.
    last_number: Option<u64>,
}

impl Head {
    /// Finds the links just before those that ask for pauses, which they may pause.
    pub fn find_pausable(&mut self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.links.len()];
        let rows = self.paths.iter().flat_map(|path| [&path.forward, &path.reverse]);
        for pair in rows.flat_map(|row| row.windows(2)) {
            let (first, link) = (pair[0], pair[1]);
            if self.links[link].pause.is_some() && !before[link].contains(&first) {
                before[link].push(first);
                self.links[first].pausable = true;
            }
        }
        before
    }

    pub fn check_format(line: &str) -> Result<(), String> {
        if line == FORMAT {
            return Ok(());
        }
        Err(format!("expected `{FORMAT}`, found `{}`", short(line)))
    }

    /// Parses a line of the head, without its `# `.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let mut fields = line.split(',');
        let what = fields.next().unwrap_or_default();
        let index = fields.next().unwrap_or_default();
        let fields = Fields(fields.collect());
        match what {
            "link" => push(what, index, &mut self.links, Link::parse(&fields)?),
            "path" => push(what, index, &mut self.paths, Path::parse(&fields)?),
            _ => {
                match self.opened(what, index, &fields)? {
                    Opened::Flow(number, flow) => drop(self.flows.insert(number, flow)),
                    Opened::Connection(number, connection) => {
                        self.connections.insert(number, connection);
                    }
                }
                Ok(())
            }
        }
    }

    fn opened(&mut self, what: &str, index: &str, fields: &Fields) -> Result<Opened, String> {
        let opened = match what {
            "flow" => Opened::Flow(number("index", index)?, Flow::parse(fields)?),
            "connection" => {
                let receive_window = fields.optional("receive_window")?;
                Opened::Connection(number("index", index)?, Connection { receive_window })
            }
            _ => {
                let what = short(what);
                return Err(format!("expected link, path, flow or connection, found `{what}`"));
            }
        };
        let (Opened::Flow(number, _) | Opened::Connection(number, _)) = &opened;
        if self.last_number.is_some_and(|last| *number <= last) {
            return Err(format!("{what} {number} is not numbered above all before it"));
        }
        self.last_number = Some(*number);
        Ok(opened)
    }

    /// Parses a line among the rows that opens a flow or connection, without its `# `.
    pub fn open(&mut self, line: &str) -> Result<Opened, String> {
        let mut fields = line.split(',');
        let what = fields.next().unwrap_or_default();
        if !matches!(what, "flow" | "connection") {
            let line = short(line);
            return Err(format!("among the rows only flows and connections begin, found `{line}`"));
        }
        let index = fields.next().unwrap_or_default();
        let opened = self.opened(what, index, &Fields(fields.collect()))?;
        if let Opened::Flow(_, flow) = &opened {
            below("path", flow.path, self.paths.len())?;
        }
        Ok(opened)
    }

    /// Ends the head at the line with the names of the columns.
    pub fn finish(&self, columns: &str) -> Result<(), String> {
        if columns != COLUMNS {
            return Err(format!("expected `{COLUMNS}`, found `{}`", short(columns)));
        }
        for path in &self.paths {
            for &link in path.forward.iter().chain(&path.reverse) {
                below("link", link, self.links.len())?;
            }
        }
        self.flows.values().try_for_each(|flow| below("path", flow.path, self.paths.len()))
    }
}

fn push<T>(what: &str, index: &str, list: &mut Vec<T>, value: T) -> Result<(), String> {
    let index: usize = number("index", index)?;
    if index != list.len() {
        return Err(format!("expected {what} {}, found {index}", list.len()));
    }
    list.push(value);
    Ok(())
}
