//! What a host's own counters did between two readings.

use knee_host::{Counters, InterfaceCounters, QdiscCounters};
use std::collections::BTreeMap;

/// What the counters of a host did in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostChange {
    /// Counters of TCP and IP, by the names of `nstat`.
    pub stack: BTreeMap<String, u64>,
    /// Interfaces.
    pub interfaces: Vec<InterfaceChange>,
}

/// What the counters of an interface did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceChange {
    /// Its name.
    pub name: String,
    /// Counters of its driver, by the names of `ip -s link`.
    pub driver: BTreeMap<&'static str, u64>,
    /// Its queueing disciplines.
    pub qdiscs: Vec<QdiscChange>,
    /// Those statistics of its card, by the driver's names, that count what it did not send; `None`
    /// if the driver has no statistics.
    pub card: Option<Vec<(String, u64)>>,
}

/// What the counters of a queueing discipline did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QdiscChange {
    /// Its kind: `fq_codel`.
    pub kind: String,
    /// Its handle: `8001:`.
    pub handle: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that it dropped itself, without those that the disciplines below it dropped.
    pub drops: u64,
    /// How often a packet had to wait for the rate, or met a limit.
    pub overlimits: u64,
    /// How often a packet was put back because the interface was busy.
    pub requeues: u64,
    /// Bytes that wait at the end of the interval.
    pub backlog_bytes: u64,
    /// Packets that wait at the end of the interval.
    pub backlog_packets: u64,
}

impl HostChange {
    /// The difference between two readings.
    pub fn between(before: &Counters, now: &Counters) -> HostChange {
        let stack = now.stack.iter();
        let stack =
            stack.map(|(name, value)| (name.clone(), since(before.stack.get(name), *value)));
        let earlier =
            |one: &InterfaceCounters| before.interfaces.iter().find(|old| old.index == one.index);
        let none = InterfaceCounters::default();
        let interfaces = now.interfaces.iter();
        let interfaces = interfaces.map(|one| interface(earlier(one).unwrap_or(&none), one));
        HostChange { stack: stack.collect(), interfaces: interfaces.collect() }
    }

    /// A counter of TCP or IP; zero if the kernel lacks it.
    pub fn stack(&self, name: &str) -> u64 {
        self.stack.get(name).copied().unwrap_or(0)
    }
}

/// A counter that is smaller than before was reset, or has wrapped: what it counts now came since.
fn since(before: Option<&u64>, now: u64) -> u64 {
    now.checked_sub(before.copied().unwrap_or(0)).unwrap_or(now)
}

fn interface(before: &InterfaceCounters, now: &InterfaceCounters) -> InterfaceChange {
    let driver = now.driver.iter();
    let driver = driver.map(|(name, value)| (*name, since(before.driver.get(name), *value)));
    let earlier = before.card.as_deref().unwrap_or_default();
    let card = now.card.as_ref().map(|now| {
        let lost = now.iter().filter(|(name, _)| is_of_loss(name));
        let change = |(name, value): &(String, u64)| {
            let old = earlier.iter().find(|(old, _)| old == name);
            (name.clone(), since(old.map(|(_, value)| value), *value))
        };
        lost.map(change).collect()
    });
    InterfaceChange {
        name: now.name.clone(),
        driver: driver.collect(),
        qdiscs: qdiscs(&before.qdiscs, &now.qdiscs),
        card,
    }
}

/// Whether a statistic counts packets that a card was to send and did not. Drivers name them as they
/// like: `tx_dropped`, `tx_queue_0_drops`, `port.tx_errors`, `tx_discards_phy`. The totals of some
/// include the queues of others.
fn is_of_loss(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    let lost = ["drop", "discard", "err", "fifo", "abort"];
    has("tx") && !has("rx") && !has("xdp") && lost.into_iter().any(has)
}

fn qdiscs(before: &[QdiscCounters], now: &[QdiscCounters]) -> Vec<QdiscChange> {
    let change = |one: &QdiscCounters| {
        let is_it = |old: &&QdiscCounters| {
            (old.handle, old.parent, &old.kind) == (one.handle, one.parent, &one.kind)
        };
        let old = before.iter().find(is_it).cloned().unwrap_or_default();
        let of = |before: u32, now: u32| since(Some(&before.into()), now.into());
        QdiscChange {
            kind: one.kind.clone(),
            handle: format!("{:x}:", one.handle.0),
            sent_packets: of(old.sent_packets, one.sent_packets),
            drops: of(old.drops, one.drops),
            overlimits: of(old.overlimits, one.overlimits),
            requeues: of(old.requeues, one.requeues),
            backlog_bytes: one.backlog_bytes.into(),
            backlog_packets: one.backlog_packets.into(),
        }
    };
    let changes: Vec<QdiscChange> = now.iter().map(change).collect();
    let all = || changes.iter().zip(now);
    all()
        .map(|(change, one)| {
            // A discipline counts the drops of those below it as its own.
            let below = all().filter(|(_, other)| is_below(other, one));
            let below: u64 = below.map(|(change, _)| change.drops).sum();
            QdiscChange { drops: change.drops.saturating_sub(below), ..change.clone() }
        })
        .collect()
}

/// Whether a discipline belongs to a class of another. Those that the kernel makes have no handle of
/// their own: the first of them is the root.
fn is_below(one: &QdiscCounters, other: &QdiscCounters) -> bool {
    const ROOT: (u16, u16) = (u16::MAX, u16::MAX);
    let has_handle = other.handle.0 != 0 || other.parent == ROOT;
    one != other && one.parent != ROOT && one.parent.0 == other.handle.0 && has_handle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(kind: &str, handle: u16, parent: (u16, u16), drops: u32) -> QdiscCounters {
        QdiscCounters {
            kind: kind.to_string(),
            handle: (handle, 0),
            parent,
            drops,
            ..QdiscCounters::default()
        }
    }

    /// `tbf` counts what its `pfifo` drops, `mq` the sum of its queues: each drop has one place.
    #[test]
    fn a_drop_has_one_place() {
        let root = (u16::MAX, u16::MAX);
        let own = |qdisc: &[QdiscCounters]| {
            let none: Vec<_> =
                qdisc.iter().map(|one| QdiscCounters { drops: 0, ..one.clone() }).collect();
            let changes = qdiscs(&none, qdisc).into_iter();
            changes.map(|one| (one.kind, one.drops)).collect::<Vec<_>>()
        };
        let named = |all: &[(&str, u64)]| {
            all.iter().map(|(kind, drops)| (kind.to_string(), *drops)).collect::<Vec<_>>()
        };
        let tbf = [qdisc("tbf", 1, root, 12), qdisc("pfifo", 2, (1, 1), 9)];
        assert_eq!(own(&tbf), named(&[("tbf", 3), ("pfifo", 9)]));
        let queues = [qdisc("mq", 0, root, 7), qdisc("fq_codel", 0, (0, 2), 4)];
        let queues = queues.into_iter().chain([qdisc("fq_codel", 0, (0, 1), 3)]);
        let queues: Vec<_> = queues.collect();
        assert_eq!(own(&queues), named(&[("mq", 0), ("fq_codel", 4), ("fq_codel", 3)]));
    }

    #[test]
    fn counters_that_were_reset_count_from_zero() {
        assert_eq!([since(None, 7), since(Some(&5), 7), since(Some(&9), 7)], [7, 2, 7]);
    }

    /// Names of real drivers (`ethtool -S`): mlx5, ixgbe, ice, virtio_net, veth.
    #[test]
    fn statistics_of_loss_are_known_by_their_names() {
        for name in ["tx_dropped", "tx_discards_phy", "port.tx_errors", "tx_queue_0_drops"] {
            assert!(is_of_loss(name), "{name}");
        }
        for name in ["tx_packets", "rx_dropped", "tx0_xdp_tx_drops", "peer_ifindex", "rx_tx_err"] {
            assert!(!is_of_loss(name), "{name}");
        }
    }
}
