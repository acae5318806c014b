//! Pages over an ideal transport: an upper bound for the gain of any scheduler.
//!
//! It knows the paths, loses nothing, and has no queue except its own. From the time when it joins,
//! each path of a connection has the window of slow start: ten packets that double every round
//! trip, used or not; no controller has more on these pages. A packet takes the path on which it
//! arrives first. On one connection, whose answers come in the order of the requests, no other
//! choice delivers any part of the stream earlier: the load time is a bound. Several connections
//! share the links, and take turns in the order in which they become able to send; another order
//! may be better by chance.

use std::collections::VecDeque;

/// A path: payload rate in bytes per second, and delay in seconds.
#[derive(Clone, Copy)]
pub struct Path {
    pub rate: f64,
    pub way: f64,
    pub rtt: f64,
}

/// Payload of a packet, and its size on the wire, bytes.
const MSS: f64 = 1448.0;
const HEADER: f64 = 52.0;
/// Packets of the initial window.
const FIRST_WINDOW: usize = 10;
/// Number of doublings after which a window limits nothing here.
const DOUBLINGS_MAX: i32 = 20;

impl Path {
    pub fn new(mbit: f64, rtt_ms: f64) -> Path {
        let rate = mbit * 1e6 / 8.0 * MSS / (MSS + HEADER);
        Path { rate, way: rtt_ms / 2000.0, rtt: rtt_ms / 1000.0 }
    }
}

/// An object: its size, and the one that it depends on.
pub struct Object {
    pub bytes: u64,
    pub after: Option<usize>,
}

/// Bytes of an object that can be sent from a given time on.
struct Waiting {
    object: usize,
    bytes: f64,
    from: f64,
}

/// A connection.
struct Connection {
    /// When each path may carry data.
    joined: Vec<f64>,
    /// Acknowledgement times of the packets sent last on each path, as many as its window can ever
    /// have held.
    sent: Vec<Vec<f64>>,
    waiting: VecDeque<Waiting>,
    /// When everything sent so far will have arrived.
    arrived: f64,
    /// Whether it is answering a request, over HTTP/1.1.
    busy: bool,
}

impl Connection {
    fn open(paths: &[Path], at: f64) -> Connection {
        let join = |number: usize| if number == 0 { 0.0 } else { paths[number].rtt };
        Connection {
            joined: (0..paths.len()).map(|number| at + paths[0].rtt + join(number)).collect(),
            sent: vec![Vec::new(); paths.len()],
            waiting: VecDeque::new(),
            arrived: 0.0,
            busy: false,
        }
    }

    /// Returns when the window of a path allows the next packet, not before `from`.
    fn room(&self, number: usize, path: &Path, from: f64) -> f64 {
        let mut at = from.max(self.joined[number]);
        loop {
            let doublings = ((at - self.joined[number]) / path.rtt + 1e-9).floor() as i32;
            let window = FIRST_WINDOW << doublings.min(DOUBLINGS_MAX);
            let sent = &self.sent[number];
            let Some(&acknowledged) = sent.len().checked_sub(window).map(|last| &sent[last]) else {
                return at;
            };
            if acknowledged <= at {
                return at;
            }
            let grows = self.joined[number] + f64::from(doublings + 1) * path.rtt;
            at = acknowledged.min(grows);
        }
    }
}

/// An arrival that a load waits for.
struct Delivery {
    at: f64,
    object: usize,
    connection: usize,
}

struct Load<'a> {
    paths: &'a [Path],
    objects: &'a [Object],
    /// Maximum number of connections with one request each, or `None` for one connection with all.
    limit: Option<usize>,
    connections: Vec<Connection>,
    /// When each link is free again.
    free: Vec<f64>,
    known: VecDeque<usize>,
    deliveries: Vec<Delivery>,
    way_back: f64,
}

/// Returns the load time of a page, in seconds. `limit` is the number of HTTP/1.1 connections, or
/// `None` for one multiplexed connection.
pub fn load_time(paths: &[Path], objects: &[Object], limit: Option<usize>) -> f64 {
    let known = (0..objects.len()).filter(|number| objects[*number].after.is_none());
    let mut load = Load {
        paths,
        objects,
        limit,
        connections: Vec::new(),
        free: vec![0.0; paths.len()],
        known: known.collect(),
        deliveries: Vec::new(),
        way_back: paths.iter().map(|path| path.rtt - path.way).fold(f64::INFINITY, f64::min),
    };
    load.ask(0.0);
    let mut end = 0.0;
    loop {
        let next = load.next_packet();
        let due = load.next_delivery();
        match (next, due) {
            (Some((start, connection, path)), due)
                if due.is_none_or(|due| start < load.deliveries[due].at) =>
            {
                load.send(start, connection, path);
            }
            (_, Some(due)) => {
                let Delivery { at, object, connection } = load.deliveries.swap_remove(due);
                end = at;
                load.connections[connection].busy = false;
                let after = |number: &usize| objects[*number].after == Some(object);
                load.known.extend((0..objects.len()).filter(after));
                load.ask(at);
            }
            (_, None) => return end,
        }
    }
}

impl Load<'_> {
    /// Requests discovered objects, as far as connections are free.
    fn ask(&mut self, now: f64) {
        while !self.known.is_empty() {
            let idle = self.connections.iter().position(|one| self.limit.is_none() || !one.busy);
            let Some(number) = idle.or_else(|| self.open(now)) else { return };
            let Some(object) = self.known.pop_front() else { return };
            let connection = &mut self.connections[number];
            connection.busy = true;
            let from = now.max(connection.joined[0]) + self.way_back;
            let bytes = self.objects[object].bytes as f64;
            connection.waiting.push_back(Waiting { object, bytes, from });
        }
    }

    fn open(&mut self, now: f64) -> Option<usize> {
        let number = self.connections.len();
        (number < self.limit.unwrap_or(1)).then(|| {
            self.connections.push(Connection::open(self.paths, now));
            number
        })
    }

    /// Returns the packet that leaves first of all connections: when, and on which path.
    fn next_packet(&self) -> Option<(f64, usize, usize)> {
        let each = (0..self.connections.len()).filter_map(|number| {
            let (start, path) = self.best_path(number)?;
            Some((start, number, path))
        });
        each.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Returns the path on which the next packet of a connection arrives first, and when it leaves
    /// there.
    fn best_path(&self, number: usize) -> Option<(f64, usize)> {
        let connection = &self.connections[number];
        let head = connection.waiting.front()?;
        let each = self.paths.iter().enumerate().map(|(index, path)| {
            let start = connection.room(index, path, head.from.max(self.free[index]));
            (start + head.bytes.min(MSS) / path.rate + path.way, start, index)
        });
        let best = each.min_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, start, index)| (start, index))
    }

    fn send(&mut self, start: f64, number: usize, index: usize) {
        let path = self.paths[index];
        let connection = &mut self.connections[number];
        let Some(head) = connection.waiting.front_mut() else { return };
        let bytes = head.bytes.min(MSS);
        head.bytes -= bytes;
        let leaves = start + bytes / path.rate;
        self.free[index] = leaves;
        connection.sent[index].push(leaves + path.rtt);
        connection.arrived = connection.arrived.max(leaves + path.way);
        if head.bytes <= 0.0 {
            let (object, at) = (head.object, connection.arrived);
            connection.waiting.pop_front();
            self.deliveries.push(Delivery { at, object, connection: number });
        }
    }

    fn next_delivery(&self) -> Option<usize> {
        let each = self.deliveries.iter().enumerate();
        each.min_by(|a, b| a.1.at.total_cmp(&b.1.at)).map(|(index, _)| index)
    }
}
