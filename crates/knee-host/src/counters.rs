//! Counters of what a host sends and drops: of TCP and IP, of its interfaces, of their queueing
//! disciplines and of their cards, in the namespace of the calling thread. No privilege is needed.

use crate::HostError;
use crate::interface::Routing;
use crate::system::{ethtool_statistics, socket_of};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, Stats64};
use netlink_packet_route::tc::{
    TcAttribute, TcHandle, TcMessage, TcStats, TcStats2, TcStatsBasic, TcStatsQueue,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;

/// Counters that are read, by their group and name in `/proc/net/snmp` and `/proc/net/netstat`.
const STACK: [(&str, &str); 23] = [
    ("Tcp", "OutSegs"),
    ("Tcp", "RetransSegs"),
    ("Tcp", "InErrs"),
    ("Ip", "OutRequests"),
    ("Ip", "OutDiscards"),
    ("Ip", "OutNoRoutes"),
    ("Ip", "InDiscards"),
    ("TcpExt", "TCPRetransFail"),
    ("TcpExt", "TCPDSACKRecv"),
    ("TcpExt", "TCPDSACKOfoRecv"),
    ("TcpExt", "TCPDSACKRecvSegs"),
    ("TcpExt", "TCPTimeouts"),
    ("TcpExt", "TCPLossProbes"),
    ("TcpExt", "TCPBacklogDrop"),
    ("TcpExt", "TCPRcvQDrop"),
    ("TcpExt", "RcvPruned"),
    ("TcpExt", "OfoPruned"),
    ("TcpExt", "TCPOFODrop"),
    ("TcpExt", "PFMemallocDrop"),
    ("TcpExt", "TCPMemoryPressures"),
    ("TcpExt", "TCPAbortOnMemory"),
    ("TcpExt", "TCPWqueueTooBig"),
    ("TcpExt", "TCPSpuriousRtxHostQueues"),
];
/// The same of IPv6, by their names in `/proc/net/snmp6`.
const STACK_IPV6: [&str; 4] =
    ["Ip6OutRequests", "Ip6OutDiscards", "Ip6OutNoRoutes", "Ip6InDiscards"];

/// Counters of a namespace. All count from the boot, or from the creation of what they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Counters of TCP and IP, by the names of `nstat` (RFC 4022, RFC 4293, and Linux's own). One
    /// that the kernel lacks is missing.
    pub stack: BTreeMap<String, u64>,
    /// The interfaces, ordered by index.
    pub interfaces: Vec<InterfaceCounters>,
}

/// Counters of an interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceCounters {
    /// Index of the interface.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Counters of its driver (`struct rtnl_link_stats64`), by their names there.
    pub driver: BTreeMap<&'static str, u64>,
    /// Its queueing disciplines that count, in the order of the kernel.
    pub qdiscs: Vec<QdiscCounters>,
    /// Statistics of its card by the driver's names, as of `ethtool -S`; `None` if the driver has
    /// none.
    pub card: Option<Vec<(String, u64)>>,
}

/// Counters of a queueing discipline (tc(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QdiscCounters {
    /// Its kind: `pfifo_fast`, `fq`.
    pub kind: String,
    /// Its own handle, and that of its parent: major and minor.
    pub handle: (u16, u16),
    /// See above.
    pub parent: (u16, u16),
    /// Packets sent.
    pub sent_packets: u32,
    /// Packets dropped, including by the disciplines below it. A packet may be a burst that is still
    /// to be segmented.
    pub drops: u32,
    /// How often a packet had to wait for the rate, or met a limit.
    pub overlimits: u32,
    /// How often a packet was put back because the interface was busy.
    pub requeues: u32,
    /// Bytes that wait now.
    pub backlog_bytes: u32,
    /// Packets that wait now.
    pub backlog_packets: u32,
}

/// Reads the counters of a namespace.
pub struct CounterReader {
    routing: Routing,
    socket: OwnedFd,
}

impl CounterReader {
    /// Opens connections to the kernel in the namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// If the host is out of sockets.
    pub fn open() -> Result<CounterReader, HostError> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let socket = socket_of(libc::AF_INET, kind, 0)
            .map_err(|source| HostError::call("open a socket", source))?;
        Ok(CounterReader { routing: Routing::open()?, socket })
    }

    /// Reads all counters; call it on a thread of the same namespace.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn read(&mut self) -> Result<Counters, HostError> {
        let interfaces = self.interfaces()?;
        Ok(Counters { stack: stack()?, interfaces })
    }

    fn interfaces(&mut self) -> Result<Vec<InterfaceCounters>, HostError> {
        let mut found = BTreeMap::new();
        let links = RouteNetlinkMessage::GetLink(LinkMessage::default());
        for message in self.routing.listed(links)? {
            let RouteNetlinkMessage::NewLink(message) = message else { continue };
            let mut one = InterfaceCounters { index: message.header.index, ..Default::default() };
            for attribute in &message.attributes {
                match attribute {
                    LinkAttribute::IfName(name) => one.name.clone_from(name),
                    LinkAttribute::Stats64(stats) => one.driver.extend(driver(stats)),
                    LinkAttribute::CarrierDownCount(count) => {
                        one.driver.insert("carrier_down_count", u64::from(*count));
                    }
                    _ => {}
                }
            }
            one.card = ethtool_statistics(&self.socket, &one.name).ok();
            found.insert(one.index, one);
        }
        let qdiscs = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        for message in self.routing.listed(qdiscs)? {
            let RouteNetlinkMessage::NewQueueDiscipline(message) = message else { continue };
            let index = u32::try_from(message.header.index).unwrap_or(0);
            if let Some(one) = found.get_mut(&index) {
                one.qdiscs.extend(qdisc(&message));
            }
        }
        Ok(found.into_values().collect())
    }
}

/// Reads the counters of TCP and IP.
fn stack() -> Result<BTreeMap<String, u64>, HostError> {
    let read = |name: &str| {
        // Not `/proc/net`, which is that of the process's first thread.
        fs::read_to_string(format!("/proc/thread-self/net/{name}")).map_err(|source| {
            HostError::refused(format!("read /proc/net/{name}"), source, "mount /proc")
        })
    };
    let mut found = BTreeMap::new();
    pairs(&read("snmp")?, &mut found);
    pairs(&read("netstat")?, &mut found);
    // A kernel without IPv6 lacks it.
    if let Ok(text) = read("snmp6") {
        for line in text.lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(value)) = (words.next(), words.next())
                && STACK_IPV6.contains(&name)
                && let Ok(value) = value.parse()
            {
                found.insert(name.to_owned(), value);
            }
        }
    }
    Ok(found)
}

/// Reads lines in pairs: names, and their values.
fn pairs(text: &str, found: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(heads), Some(values)) = (lines.next(), lines.next()) {
        let heads = heads.split_whitespace();
        for (head, value) in heads.clone().zip(values.split_whitespace()).skip(1) {
            let group = heads.clone().next().unwrap_or_default().trim_end_matches(':');
            if STACK.contains(&(group, head))
                && let Ok(value) = value.parse()
            {
                found.insert(format!("{group}{head}"), value);
            }
        }
    }
}

fn driver(stats: &Stats64) -> [(&'static str, u64); 10] {
    [
        ("tx_packets", stats.tx_packets),
        ("tx_bytes", stats.tx_bytes),
        ("tx_dropped", stats.tx_dropped),
        ("tx_errors", stats.tx_errors),
        ("tx_carrier_errors", stats.tx_carrier_errors),
        ("tx_fifo_errors", stats.tx_fifo_errors),
        ("rx_packets", stats.rx_packets),
        ("rx_dropped", stats.rx_dropped),
        ("rx_errors", stats.rx_errors),
        ("rx_missed_errors", stats.rx_missed_errors),
    ]
}

/// The counters of a queueing discipline; `None` if it has no queue, or is for packets that arrive.
fn qdisc(message: &TcMessage) -> Option<QdiscCounters> {
    let pair = |handle: TcHandle| (handle.major, handle.minor);
    let mut one = QdiscCounters {
        handle: pair(message.header.handle),
        parent: pair(message.header.parent),
        ..QdiscCounters::default()
    };
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => one.kind.clone_from(kind),
            // Older, and of fewer values.
            TcAttribute::Stats(TcStats { packets, drops, overlimits, .. }) => {
                (one.sent_packets, one.drops, one.overlimits) = (*packets, *drops, *overlimits);
            }
            TcAttribute::Stats2(all) => {
                for stats in all {
                    match stats {
                        TcStats2::Basic(TcStatsBasic { packets, .. }) => {
                            one.sent_packets = *packets;
                        }
                        TcStats2::Queue(TcStatsQueue {
                            qlen,
                            backlog,
                            drops,
                            requeues,
                            overlimits,
                            ..
                        }) => {
                            (one.drops, one.overlimits) = (*drops, *overlimits);
                            one.requeues = *requeues;
                            (one.backlog_bytes, one.backlog_packets) = (*backlog, *qlen);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    (!matches!(one.kind.as_str(), "" | "noqueue" | "ingress")).then_some(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as `nstat` has them; unknown ones, and values below zero, are left out.
    #[test]
    fn counters_have_the_names_of_nstat() {
        let text = "Tcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 340 12\n\
                    TcpExt: TCPDSACKRecv RcvPruned New\nTcpExt: 3 -1 9\nIp: OutDiscards\nIp: 7\n";
        let mut found = BTreeMap::new();
        pairs(text, &mut found);
        let expected = [("IpOutDiscards", 7), ("TcpExtTCPDSACKRecv", 3), ("TcpOutSegs", 340)];
        let expected = expected.into_iter().chain([("TcpRetransSegs", 12)]);
        assert!(
            found.iter().map(|(name, value)| (name.as_str(), *value)).eq(expected),
            "{found:?}"
        );
    }
}
