//! Sums and distributions of connections that are alike.

use crate::row::acked_bytes;
use knee_host::TcpInfo;
use knee_record::size_classes;
use knee_statistics::Sketch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Part of the connections that may go unheard: beyond it, what is left speaks for
/// itself alone.
pub const LOST_MAX: f64 = 0.01;

/// What connections of one cell have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Group of prefixes; empty: there are no groups.
    pub group: Arc<str>,
    /// Number of the class of sizes, of [`knee_record::size_classes`], by what was
    /// acknowledged; none: this end has sent no payload.
    pub class: Option<usize>,
    /// Congestion controller; empty: it ended before a dump saw it.
    pub controller: Arc<str>,
}

/// Connections of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// How many.
    pub connections: u64,
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload sent again.
    pub retransmitted_bytes: u64,
    /// Retransmission timeouts, where the kernel counts them.
    pub timeouts: u64,
    /// Time with data to send or unacknowledged, of all.
    pub busy_ns: u64,
    /// Of it, limited by the receiver's window.
    pub receive_limited_ns: u64,
    /// Of it, limited by the send buffer.
    pub send_buffer_limited_ns: u64,
    /// Payload acknowledged over the time that it took, bit/s.
    pub throughput_bps: Sketch,
    /// Time with data to send or unacknowledged, microseconds.
    pub busy_us: Sketch,
    /// Smallest RTT, microseconds.
    pub rtt_min_us: Sketch,
}

impl Cell {
    /// Adds a connection.
    fn add(&mut self, info: &TcpInfo) {
        let acked = acked_bytes(info);
        let busy_us = info.busy_us.unwrap_or(0);
        self.connections += 1;
        self.acked_bytes += acked;
        self.sent_bytes += info.sent_bytes;
        self.retransmitted_bytes += info.retransmitted_bytes;
        self.timeouts += u64::from(info.total_timeouts.unwrap_or(0));
        self.busy_ns += busy_us * 1000;
        self.receive_limited_ns += info.receive_limited_us.unwrap_or(0) * 1000;
        self.send_buffer_limited_ns += info.send_buffer_limited_us.unwrap_or(0) * 1000;
        if busy_us > 0 && acked > 0 {
            self.throughput_bps.add(acked as f64 * 8e6 / busy_us as f64);
            self.busy_us.add(busy_us as f64);
        }
        if let Some(rtt) = info.min_rtt() {
            self.rtt_min_us.add(rtt.as_nanos() as f64 / 1e3);
        }
    }

    /// Adds the connections of another cell.
    pub fn merge(&mut self, other: &Cell) {
        self.connections += other.connections;
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

    /// Payload sent again, as a part of what was sent; none: nothing was.
    pub fn retransmission_ratio(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.retransmitted_bytes as f64 / self.sent_bytes as f64)
    }
}

/// Connections by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cells(pub BTreeMap<Kind, Cell>);

impl Cells {
    /// Adds a connection.
    pub fn add(&mut self, group: Arc<str>, controller: Arc<str>, info: &TcpInfo) {
        let acked = acked_bytes(info);
        let fits = |class: &knee_record::SizeClass| class.sizes.below.is_none_or(|at| acked < at);
        let class = (acked > 0).then(|| size_classes().iter().position(fits)).flatten();
        self.0.entry(Kind { group, class, controller }).or_default().add(info);
    }

    /// Adds what others hold.
    pub fn merge(&mut self, other: &Cells) {
        for (kind, cell) in &other.0 {
            self.0.entry(kind.clone()).or_default().merge(cell);
        }
    }
}
