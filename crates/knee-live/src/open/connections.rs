//! Open connections, and what each did between two readings.

use crate::LiveError;
use crate::group::{Groups, kept};
use crate::observer::interned;
use knee_host::{TcpInfo, each_connection};
use std::net::SocketAddr;
use std::sync::Arc;

/// An open connection.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenConnection {
    /// The kernel's number for the socket, unique until the next boot.
    pub cookie: u64,
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address.
    pub remote: SocketAddr,
    /// Congestion controller.
    pub controller: Arc<str>,
    /// Group of the peer's address; empty if there are no groups.
    pub group: Arc<str>,
    /// `TCP_INFO` at the reading.
    pub info: TcpInfo,
    /// What it did since the reading before.
    pub change: Change,
}

impl OpenConnection {
    /// Whether the peer is on this host, as far as addresses tell.
    pub(crate) fn is_within_host(&self) -> bool {
        self.remote.ip().is_loopback() || self.remote.ip() == self.local.ip()
    }

    /// The address of its peer, as far as it is shown: the whole of it, or its prefix.
    pub fn client(&self, whole: bool) -> String {
        let address = self.remote.ip();
        if whole { address.to_string() } else { kept(address, false).to_string() }
    }

    /// Whether it sent or has sent what is not acknowledged yet.
    pub fn is_active(&self) -> bool {
        self.change != Change::default() || self.info.unacked > 0
    }
}

/// What a connection did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Payload bytes sent, including retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Packets with payload sent, including retransmissions.
    pub sent_packets: u64,
    /// Packets retransmitted, including a SYN.
    pub retransmitted_packets: u64,
    /// D-SACK blocks received: packets that arrived twice.
    pub dsacks: u64,
}

impl Change {
    /// Share of what was sent that was retransmitted; `None` if nothing was sent.
    pub fn retransmitted_ratio(&self) -> Option<f64> {
        (self.sent_bytes > 0).then(|| self.retransmitted_bytes as f64 / self.sent_bytes as f64)
    }

    /// Adds what another connection did.
    pub fn add(&mut self, other: &Change) {
        self.sent_bytes += other.sent_bytes;
        self.retransmitted_bytes += other.retransmitted_bytes;
        self.acked_bytes += other.acked_bytes;
        self.sent_packets += other.sent_packets;
        self.retransmitted_packets += other.retransmitted_packets;
        self.dsacks += other.dsacks;
    }
}

/// Counters of a connection at a reading.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent_bytes: u64,
    retransmitted_bytes: u64,
    acked_bytes: u64,
    sent_packets: u32,
    retransmitted_packets: u32,
    dsacks: u32,
}

impl Counts {
    fn of(info: &TcpInfo) -> Counts {
        Counts {
            sent_bytes: info.sent_bytes,
            retransmitted_bytes: info.retransmitted_bytes,
            acked_bytes: info.delivered_bytes(),
            sent_packets: info.sent_packets,
            retransmitted_packets: info.retransmitted_packets,
            dsacks: info.dsacks.unwrap_or(0),
        }
    }

    /// The kernel's counters of packets wrap.
    fn since(&self, before: &Counts) -> Change {
        Change {
            sent_bytes: self.sent_bytes.saturating_sub(before.sent_bytes),
            retransmitted_bytes: self
                .retransmitted_bytes
                .saturating_sub(before.retransmitted_bytes),
            acked_bytes: self.acked_bytes.saturating_sub(before.acked_bytes),
            sent_packets: self.sent_packets.wrapping_sub(before.sent_packets).into(),
            retransmitted_packets: self
                .retransmitted_packets
                .wrapping_sub(before.retransmitted_packets)
                .into(),
            dsacks: self.dsacks.wrapping_sub(before.dsacks).into(),
        }
    }
}

/// The last reading. Of each connection it keeps 48 bytes.
#[derive(Default)]
pub(crate) struct Connections {
    /// By cookie, ascending.
    before: Vec<(u64, Counts)>,
    controllers: Vec<Arc<str>>,
}

impl Connections {
    /// Reads the open connections. What one did that was not there before, it did since then.
    pub fn look(&mut self, groups: &Groups) -> Result<Vec<OpenConnection>, LiveError> {
        let Connections { before, controllers } = self;
        let mut found = Vec::with_capacity(before.len() + before.len() / 8);
        each_connection(|socket| {
            // Without `TCP_INFO` there is no connection, or only what is left of one.
            let Some(info) = socket.info else { return };
            let earlier = before.binary_search_by_key(&socket.cookie, |(cookie, _)| *cookie);
            let earlier = earlier.map_or_else(|_| Counts::default(), |at| before[at].1);
            found.push(OpenConnection {
                cookie: socket.cookie,
                local: socket.local,
                remote: socket.remote,
                controller: interned(controllers, socket.controller.unwrap_or_default()),
                group: groups.of(socket.remote.ip()),
                info,
                change: Counts::of(&info).since(&earlier),
            });
        })?;
        // A connection that moves while the kernel lists its table is listed twice.
        found.sort_by_key(|one: &OpenConnection| one.cookie);
        found.dedup_by_key(|one| one.cookie);
        before.clear();
        before.extend(found.iter().map(|one| (one.cookie, Counts::of(&one.info))));
        Ok(found)
    }
}
