//! Sums and distributions over similar connections.

use knee_record::size_classes;
use knee_units::statistics::Sketch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum share of lost reports. Beyond it, the figures do not represent the host.
pub const LOST_MAX: f64 = 0.01;

/// Size from which a connection's throughput matters; below it, its duration does. Bytes.
pub(crate) const LARGE_BYTES: u64 = 3_000_000;

/// Contribution of one connection to a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ended {
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts; 0 if the kernel does not count them.
    pub timeouts: u64,
    /// Time with unsent or unacknowledged data.
    pub busy_us: u64,
    /// Part of it limited by the receiver's window.
    pub receive_limited_us: u64,
    /// Part of it limited by the send buffer.
    pub send_buffer_limited_us: u64,
    /// Smallest RTT; `None` if not measured.
    pub rtt_min_us: Option<f64>,
    /// Whether it left data undelivered; `None` if not known.
    pub is_unfinished: Option<bool>,
}

/// Size class, which determines the measure of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Size {
    /// Below [`LARGE_BYTES`]: the duration matters.
    Small,
    /// From [`LARGE_BYTES`]: the throughput matters.
    Large,
}

impl Size {
    /// Classifies a connection by its acknowledged payload.
    pub fn of(acked_bytes: u64) -> Size {
        if acked_bytes < LARGE_BYTES { Size::Small } else { Size::Large }
    }
}

/// Common properties of the connections in a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Group of prefixes; empty if there are no groups.
    pub group: Arc<str>,
    /// Index into [`knee_record::size_classes`], by acknowledged payload; `None` if this end sent
    /// no payload.
    pub class: Option<usize>,
    /// Congestion controller; empty if the connection ended before a dump.
    pub controller: Arc<str>,
    /// Arm of the policy or experiment; empty if not known.
    pub arm: Arc<str>,
}

impl Kind {
    /// Size of the connections; `None` if this end sent no payload.
    pub(crate) fn size(&self) -> Option<Size> {
        Some(Size::of(size_classes()[self.class?].sizes.at_least))
    }
}

/// Sums over connections of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Number of connections.
    pub connections: u64,
    /// Number of them that ended with data that the other end had not acknowledged; `None` unless
    /// it is known of all.
    pub unfinished: Option<u64>,
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload retransmitted.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts, if the kernel counts them.
    pub timeouts: u64,
    /// Total time with unsent or unacknowledged data.
    pub busy_ns: u64,
    /// Part of it limited by the receiver's window.
    pub receive_limited_ns: u64,
    /// Part of it limited by the send buffer.
    pub send_buffer_limited_ns: u64,
    /// Acknowledged payload over the time it took, bit/s.
    pub throughput_bps: Sketch,
    /// Time with unsent or unacknowledged data, microseconds.
    pub busy_us: Sketch,
    /// Smallest RTT, microseconds.
    pub rtt_min_us: Sketch,
}

impl Cell {
    /// Adds a connection with a weight.
    pub(crate) fn add(&mut self, ended: &Ended, weight: u64) {
        let unfinished = ended.is_unfinished.map(|is_unfinished| weight * u64::from(is_unfinished));
        self.count(weight, unfinished);
        self.acked_bytes += weight * ended.acked_bytes;
        self.sent_bytes += weight * ended.sent_bytes;
        self.retransmitted_bytes += weight * ended.retransmitted_bytes;
        self.timeouts += weight * ended.timeouts;
        self.busy_ns += weight * ended.busy_us * 1000;
        self.receive_limited_ns += weight * ended.receive_limited_us * 1000;
        self.send_buffer_limited_ns += weight * ended.send_buffer_limited_us * 1000;
        if ended.busy_us > 0 && ended.acked_bytes > 0 {
            let bps = ended.acked_bytes as f64 * 8e6 / ended.busy_us as f64;
            self.throughput_bps.add_many(bps, weight);
            self.busy_us.add_many(ended.busy_us as f64, weight);
        }
        if let Some(rtt) = ended.rtt_min_us {
            self.rtt_min_us.add_many(rtt, weight);
        }
    }

    /// Adds the connections of another cell.
    pub fn merge(&mut self, other: &Cell) {
        self.count(other.connections, other.unfinished);
        self.acked_bytes += other.acked_bytes;
        self.sent_bytes += other.sent_bytes;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.timeouts += other.timeouts;
        self.busy_ns += other.busy_ns;
        self.receive_limited_ns += other.receive_limited_ns;
        self.send_buffer_limited_ns += other.send_buffer_limited_ns;
        self.throughput_bps.merge(&other.throughput_bps);
        self.busy_us.merge(&other.busy_us);
        self.rtt_min_us.merge(&other.rtt_min_us);
    }

    fn count(&mut self, connections: u64, unfinished: Option<u64>) {
        self.unfinished = match (self.connections, connections) {
            (0, _) => unfinished,
            (_, 0) => self.unfinished,
            _ => self.unfinished.zip(unfinished).map(|(own, more)| own + more),
        };
        self.connections += connections;
    }

    /// Fraction of the connections that ended with undelivered data; `None` if it is not known.
    pub fn unfinished_ratio(&self) -> Option<f64> {
        let unfinished = self.unfinished? as f64;
        (self.connections > 0).then(|| unfinished / self.connections as f64)
    }

    /// Retransmitted fraction of the payload sent; `None` if nothing was sent.
    pub fn retransmission_ratio(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.retransmitted_bytes as f64 / self.sent_bytes as f64)
    }
}

/// Connections by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cells(pub BTreeMap<Kind, Cell>);

impl Cells {
    /// Adds a connection.
    pub fn add(&mut self, group: Arc<str>, controller: Arc<str>, arm: Arc<str>, ended: &Ended) {
        let acked = ended.acked_bytes;
        let fits = |class: &knee_record::SizeClass| class.sizes.below.is_none_or(|at| acked < at);
        let class = (acked > 0).then(|| size_classes().iter().position(fits)).flatten();
        self.0.entry(Kind { group, class, controller, arm }).or_default().add(ended, 1);
    }

    /// Adds the cells of another set.
    pub fn merge(&mut self, other: &Cells) {
        for (kind, cell) in &other.0 {
            self.0.entry(kind.clone()).or_default().merge(cell);
        }
    }
}
