//! Where packets were lost: the counters of the host beside what connections retransmitted.

use super::connections::OpenConnection;
use super::host::{HostChange, InterfaceChange};
use knee_record::count;
use std::collections::{BTreeMap, VecDeque};

/// Intervals over which it is decided.
const INTERVALS: usize = 5;
/// Beside drops of this host, the network is named for this share of what was lost at least: the
/// intervals of drops and of their retransmissions are not the same ones.
const SHARE_MIN: f64 = 0.1;
/// Of packets that arrive twice, receivers report most by DSACK, not all: an ACK holds one block. So
/// the network is named if what is left exceeds this share of what they reported.
const UNREPORTED: f64 = 0.25;
/// From this number of packets per drop on, it is said.
const BURST: f64 = 1.05;

/// A place on this host where packets were dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// TCP or IP, on the way out, with the counter's name.
    Stack(String),
    /// A queueing discipline: interface, and kind.
    Qdisc(String, String),
    /// The driver of an interface: interface, and counter.
    Interface(String, String),
    /// The card of an interface: interface, and statistic.
    Card(String, String),
    /// TCP or IP, on the way in, with the counter's name: of data from this host itself.
    Receipt(String),
}

impl Place {
    /// The place in words, after "lost": `in the qdisc eth0 (fq_codel)`.
    pub fn words(&self) -> String {
        match self {
            Place::Stack(counter) => format!("in the stack ({counter})"),
            Place::Qdisc(interface, kind) => format!("in the qdisc {interface} ({kind})"),
            Place::Interface(interface, counter) => {
                format!("in the interface {interface} ({counter})")
            }
            Place::Card(interface, statistic) => format!("in the card {interface} ({statistic})"),
            Place::Receipt(counter) => format!("in the stack, at receipt ({counter})"),
        }
    }

    /// Its interface, empty for the stack, and the counter or the kind of queueing discipline.
    pub fn names(&self) -> [&str; 2] {
        match self {
            Place::Stack(counter) | Place::Receipt(counter) => ["", counter],
            Place::Qdisc(interface, name)
            | Place::Interface(interface, name)
            | Place::Card(interface, name) => [interface, name],
        }
    }

    /// Its kind, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Place::Stack(_) => "stack",
            Place::Qdisc(..) => "qdisc",
            Place::Interface(..) => "interface",
            Place::Card(..) => "card",
            Place::Receipt(_) => "receipt",
        }
    }
}

/// Where packets were lost in the last intervals, as far as this host can tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lost {
    /// Length of the intervals over which drops are counted, seconds.
    pub seconds: f64,
    /// Packets retransmitted in them, by all connections of the namespace, without the first interval
    /// and the last.
    pub retransmitted_packets: u64,
    /// Packets retransmitted in the last interval, for which DSACKs may still come.
    pub undecided_packets: u64,
    /// Those of the others that had arrived before, as DSACK reports them.
    pub in_vain_packets: u64,
    /// Drops of this host, the most first.
    pub places: Vec<(Place, u64)>,
    /// Mean number of packets that a drop was of: a burst is segmented after the queues.
    pub packets_per_drop: f64,
    /// Packets that were lost where this host does not count: at least.
    pub network_packets: u64,
    /// Packets retransmitted to this host itself that no drop explains.
    pub unexplained_packets: u64,
}

/// Counters of an interval.
#[derive(Clone, Debug, Default)]
struct Interval {
    seconds: f64,
    sent: u64,
    bursts: u64,
    retransmitted: u64,
    in_vain: u64,
    /// Those of connections within this host.
    within: [u64; 2],
    drops: BTreeMap<Place, u64>,
}

/// The last intervals. Retransmissions follow drops, and a DSACK follows a retransmission. So
/// retransmissions are counted up to the interval before the last, DSACKs up to the last, and drops
/// from one earlier on.
#[derive(Default)]
pub(crate) struct Recent(VecDeque<Interval>);

impl Recent {
    /// Adds an interval, and decides.
    pub fn add(&mut self, seconds: f64, connections: &[OpenConnection], host: &HostChange) -> Lost {
        let within = within(connections);
        let segments = host.stack.get("TcpExtTCPDSACKRecvSegs").copied();
        let blocks = host.stack("TcpExtTCPDSACKRecv") + host.stack("TcpExtTCPDSACKOfoRecv");
        self.push(Interval {
            seconds,
            sent: sent(host),
            bursts: handed(host),
            retransmitted: host.stack("TcpRetransSegs"),
            in_vain: segments.unwrap_or(blocks),
            within,
            drops: drops(host, within[0] > 0),
        })
    }

    fn push(&mut self, interval: Interval) -> Lost {
        self.0.push_back(interval);
        if self.0.len() > INTERVALS + 2 {
            self.0.pop_front();
        }
        let all = || self.0.iter();
        let last = self.0.len() - 1;
        // The first of as many as there may be is only for drops.
        let first = self.0.len().saturating_sub(INTERVALS + 1);
        let settled = || all().take(last).skip(first);
        let mut places = BTreeMap::<Place, u64>::new();
        for (place, drops) in all().flat_map(|one| &one.drops) {
            *places.entry(place.clone()).or_default() += drops;
        }
        let sum = |get: fn(&Interval) -> u64| settled().map(get).sum::<u64>();
        // DSACKs up to now, of which some may be of older retransmissions.
        let vain = |get: fn(&Interval) -> u64| all().skip(first).map(get).sum::<u64>();
        let retransmitted = sum(|one| one.retransmitted);
        let in_vain = vain(|one| one.in_vain).min(retransmitted);
        let within = sum(|one| one.within[0]).min(retransmitted);
        let within_lost = within.saturating_sub(vain(|one| one.within[1]));
        let lost = retransmitted.saturating_sub(in_vain);
        let sent: u64 = all().map(|one| one.sent).sum();
        let bursts: u64 = all().map(|one| one.bursts).sum();
        let packets_per_drop = burst(sent, bursts);
        let is_outgoing = |place: &Place| !matches!(place, Place::Receipt(_));
        let dropped = |outgoing: bool| -> u64 {
            let of = places.iter().filter(|(place, _)| is_outgoing(place) == outgoing);
            let drops: u64 = of.map(|(_, drops)| drops).sum();
            (drops as f64 * packets_per_drop).ceil() as u64
        };
        let [dropped, at_receipt] = [true, false].map(dropped);
        let mut network = lost.saturating_sub(within_lost).saturating_sub(dropped);
        let beside_drops = if dropped > 0 { SHARE_MIN * lost as f64 } else { 0.0 };
        if (network as f64) < beside_drops.max(UNREPORTED * in_vain as f64) {
            network = 0;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by_key(|(_, drops)| u64::MAX - drops);
        Lost {
            seconds: all().map(|one| one.seconds).sum(),
            retransmitted_packets: retransmitted,
            undecided_packets: self.0.back().map_or(0, |one| one.retransmitted),
            in_vain_packets: in_vain,
            packets_per_drop,
            network_packets: network,
            unexplained_packets: within_lost.saturating_sub(dropped + at_receipt),
            places,
        }
    }
}

/// Segments that TCP sent, and packets that it and others handed to IP.
fn sent(host: &HostChange) -> u64 {
    host.stack("TcpOutSegs")
}

fn handed(host: &HostChange) -> u64 {
    host.stack("IpOutRequests") + host.stack("Ip6OutRequests")
}

/// Mean number of segments of a packet in the queues of this host.
fn burst(sent: u64, handed: u64) -> f64 {
    (sent as f64 / handed.max(1) as f64).max(1.0)
}

/// Packets that connections within this host retransmitted, and DSACKs of theirs.
fn within(connections: &[OpenConnection]) -> [u64; 2] {
    let within = connections.iter().filter(|one| one.is_within_host());
    within.fold([0, 0], |[again, vain], one| {
        [again + one.change.retransmitted_packets, vain + one.change.dsacks]
    })
}

/// Whether a connection within this host retransmits, so that drops at receipt concern it.
#[cfg(feature = "page")]
pub(crate) fn retransmits_within(connections: &[OpenConnection]) -> bool {
    within(connections)[0] > 0
}

/// Drops of an interval by place.
pub(crate) fn drops(host: &HostChange, within: bool) -> BTreeMap<Place, u64> {
    let mut found = BTreeMap::new();
    for one in &host.interfaces {
        interface(one, &mut found);
    }
    // What IP discards, and retransmissions that are refused: both count what a queue refuses too.
    let counted: u64 = found.values().sum();
    let counted = (counted as f64 * burst(sent(host), handed(host))).ceil() as u64;
    let counter = |name: &str, drops: u64, place: fn(String) -> Place| {
        (drops > 0).then(|| (place(name.to_string()), drops))
    };
    for name in ["TcpExtTCPRetransFail", "IpOutDiscards", "Ip6OutDiscards"] {
        let short = name.trim_start_matches("TcpExt");
        let beyond = host.stack(name).saturating_sub(counted);
        found.extend(counter(short, beyond, Place::Stack));
    }
    if within {
        let names = ["TcpInErrs", "IpInDiscards", "Ip6InDiscards", "TcpExtTCPBacklogDrop"];
        let names = names.into_iter().chain(["TcpExtTCPRcvQDrop", "TcpExtRcvPruned"]);
        for name in names.chain(["TcpExtOfoPruned", "TcpExtTCPOFODrop", "TcpExtPFMemallocDrop"]) {
            let short = name.trim_start_matches("TcpExt");
            found.extend(counter(short, host.stack(name), Place::Receipt));
        }
    }
    found
}

fn interface(one: &InterfaceChange, found: &mut BTreeMap<Place, u64>) {
    let name = || one.name.clone();
    for qdisc in one.qdiscs.iter().filter(|qdisc| qdisc.drops > 0) {
        *found.entry(Place::Qdisc(name(), qdisc.kind.clone())).or_default() += qdisc.drops;
    }
    let mut of_driver = 0;
    for counter in ["tx_dropped", "tx_errors"] {
        let drops = one.driver.get(counter).copied().unwrap_or(0);
        of_driver += drops;
        if drops > 0 {
            found.insert(Place::Interface(name(), counter.to_string()), drops);
        }
    }
    // Most statistics of the card are behind a counter of the driver, or are parts of another.
    let most = one.card.iter().flatten().max_by_key(|(_, drops)| *drops);
    if let Some((statistic, drops)) = most.filter(|(_, drops)| *drops > of_driver) {
        found.insert(Place::Card(name(), statistic.clone()), drops - of_driver);
    }
}

impl Lost {
    /// What the figures say, in one or two sentences.
    pub fn sentence(&self) -> String {
        let Lost { retransmitted_packets: again, in_vain_packets: vain, .. } = self;
        let over = format!("in the last {} s", self.seconds.round().max(1.0));
        let mut places: Vec<String> = self
            .places
            .iter()
            .map(|(place, drops)| format!("{}: {}", place.words(), packets(*drops)))
            .collect();
        if *again == 0 && !places.is_empty() {
            let refused = match self.undecided_packets {
                0 => " No connection has retransmitted a packet for it.",
                _ => "",
            };
            return format!("Dropped {over} {}.{refused}", places.join("; "));
        }
        if self.network_packets > 0 && places.is_empty() {
            let lost = packets(self.network_packets);
            places.push(format!("in the network: {lost}; nothing was dropped on this host"));
        } else if self.network_packets > 0 {
            places.push(format!("in the network: at least {}", packets(self.network_packets)));
        }
        if self.unexplained_packets > 0 {
            let lost = packets(self.unexplained_packets);
            places.push(format!("within this host, where nothing counts it: {lost}"));
        }
        let retransmitted = match (again, vain) {
            (0, _) => String::new(),
            (again, 0) => format!(" Retransmitted: {}.", packets(*again)),
            (again, vain) => format!(
                " Retransmitted: {}, {} of them in vain (DSACK).",
                packets(*again),
                count(*vain)
            ),
        };
        if places.is_empty() {
            return format!("Nothing was lost {over}.{retransmitted}");
        }
        let is_burst = self.packets_per_drop > BURST && !self.places.is_empty();
        let bursts = match is_burst {
            true => format!(
                " A packet that was dropped may be a burst, of {:.1} on average.",
                self.packets_per_drop
            ),
            false => String::new(),
        };
        format!("Lost {over} {}.{retransmitted}{bursts}", places.join("; "))
    }
}

fn packets(number: u64) -> String {
    format!("{} packet{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::host::QdiscChange;

    fn qdisc(drops: u64) -> HostChange {
        let qdisc = QdiscChange { kind: "pfifo".to_string(), drops, ..QdiscChange::default() };
        let one = InterfaceChange {
            name: "eth0".to_string(),
            qdiscs: vec![qdisc],
            ..InterfaceChange::default()
        };
        HostChange { interfaces: vec![one], ..HostChange::default() }
    }

    /// Adds a second's segments sent, packets handed to IP, retransmissions and DSACKs.
    fn stack(mut host: HostChange, [sent, bursts, again, vain]: [u64; 4]) -> HostChange {
        let names = ["TcpOutSegs", "IpOutRequests", "TcpRetransSegs", "TcpExtTCPDSACKRecvSegs"];
        let values = names.into_iter().zip([sent, bursts, again, vain]);
        host.stack.extend(values.map(|(name, value)| (name.to_string(), value)));
        host
    }

    /// What is said after seconds of the same.
    fn said(seconds: usize, host: &HostChange) -> (Lost, String) {
        let mut recent = Recent::default();
        let mut lost = Lost::default();
        (0..seconds).for_each(|_| lost = recent.add(1.0, &[], host));
        let sentence = lost.sentence();
        (lost, sentence)
    }

    #[test]
    fn nothing_lost_is_called_nothing() {
        let (_, quiet) = said(20, &stack(qdisc(0), [1000, 1000, 0, 0]));
        assert_eq!(quiet, "Nothing was lost in the last 7 s.");
        let (_, vain) = said(20, &stack(qdisc(0), [1000, 1000, 3, 3]));
        assert!(
            vain.starts_with("Nothing was lost in the last 7 s. Retransmitted: 15 packets, 15")
        );
    }

    /// Of 40 retransmissions a second 2 are in vain; no counter of the host moves.
    #[test]
    fn what_this_host_did_not_drop_the_network_lost() {
        let (lost, sentence) = said(20, &stack(qdisc(0), [1000, 1000, 40, 2]));
        // DSACKs of six seconds, since they follow.
        assert_eq!((lost.network_packets, lost.in_vain_packets), (200 - 12, 12));
        assert!(sentence.contains("in the network: 188 packets; nothing was dropped on this host"));
    }

    /// Every drop is retransmitted: the queue explains all, also at the beginning and the end.
    #[test]
    fn drops_explain_their_retransmissions() {
        let mut recent = Recent::default();
        for second in 0..30 {
            // Drops from the tenth second to the nineteenth; retransmissions one second later.
            let drops = if (10..20).contains(&second) { 40 } else { 0 };
            let again = if (11..21).contains(&second) { 40 } else { 0 };
            let lost = recent.add(1.0, &[], &stack(qdisc(drops), [1000, 1000, again, 0]));
            let sentence = lost.sentence();
            assert_eq!(lost.network_packets, 0, "second {second}: {sentence}");
            let named = sentence.contains("in the qdisc eth0 (pfifo)");
            assert_eq!(named, (10..26).contains(&second), "second {second}: {sentence}");
        }
    }

    /// A queue drops 40 a second and the network as many: both are named. If the 40 may be bursts
    /// of ten packets, they may explain everything.
    #[test]
    fn mixed_evidence_names_all_places() {
        let (lost, sentence) = said(20, &stack(qdisc(40), [1000, 1000, 80, 0]));
        // Drops of seven seconds, retransmissions of five.
        assert_eq!((lost.network_packets, lost.retransmitted_packets), (400 - 280, 400));
        assert!(sentence.contains("eth0 (pfifo): 280 packets; in the network: at least 120"));
        let (lost, sentence) = said(20, &stack(qdisc(40), [1000, 100, 80, 0]));
        assert!(lost.network_packets == 0 && sentence.contains("of 10.0 on average"), "{sentence}");
    }

    /// What a queue refuses, TCP and IP count too; what they count beyond it has another cause.
    #[test]
    fn refusals_of_a_queue_count_once() {
        let refused = |refused: u64| {
            let mut host = stack(qdisc(40), [1000, 1000, 40, 0]);
            host.stack.insert("IpOutDiscards".to_string(), 30);
            host.stack.insert("TcpExtTCPRetransFail".to_string(), refused);
            drops(&host, false).into_iter().map(|(place, drops)| (place.kind(), drops))
        };
        assert!(refused(40).eq([("qdisc", 40)]));
        assert!(refused(47).eq([("stack", 7), ("qdisc", 40)]));
    }

    /// Data that a connection within this host sent and its other end refused at receipt explain what
    /// it retransmits; where no such connection retransmits, those drops are of others' data.
    #[test]
    fn drops_at_receipt_concern_connections_within_the_host() {
        let mut host = stack(HostChange::default(), [1000, 1000, 40, 0]);
        let refused = [("TcpInErrs", 4), ("TcpExtTCPRcvQDrop", 36)];
        host.stack.extend(refused.map(|(name, drops)| (name.to_string(), drops)));
        let named = drops(&host, true).into_iter().map(|(place, drops)| (place.words(), drops));
        let receipt = |counter: &str| format!("in the stack, at receipt ({counter})");
        assert!(named.eq([(receipt("TCPRcvQDrop"), 36), (receipt("TcpInErrs"), 4)]));
        assert!(drops(&host, false).is_empty());

        // All within the host, half of them, and all of them with half of the drops.
        let expected = [
            ([40, 0], 1, [0, 0], "at receipt (TCPRcvQDrop): 252 packets"),
            ([20, 0], 1, [100, 0], "in the network: at least 100 packets"),
            ([40, 0], 2, [0, 60], "where nothing counts it: 60 packets"),
            ([0, 0], 1, [200, 0], "in the network: 200 packets; nothing was dropped on this host"),
        ];
        for (within, part, [network, unexplained], words) in expected {
            let mut recent = Recent::default();
            let mut lost = Lost::default();
            for _ in 0..20 {
                let mut drops = drops(&host, within[0] > 0);
                drops.values_mut().for_each(|drops| *drops /= part);
                let (sent, bursts, retransmitted) = (1000, 1000, 40);
                let seconds = 1.0;
                let in_vain = 0;
                lost = recent.push(Interval {
                    seconds,
                    sent,
                    bursts,
                    retransmitted,
                    in_vain,
                    within,
                    drops,
                });
            }
            let found = [lost.network_packets, lost.unexplained_packets];
            assert_eq!(found, [network, unexplained], "{}", lost.sentence());
            assert!(lost.sentence().contains(words), "{}", lost.sentence());
        }
    }

    /// The local queue tells TCP of a drop, which sends the packet later for the first time.
    #[test]
    fn drops_without_retransmissions_are_named() {
        let (_, sentence) = said(3, &stack(qdisc(40), [1000, 1000, 0, 0]));
        assert!(sentence.contains("qdisc eth0 (pfifo): 120 packets. No connection"), "{sentence}");
    }

    /// A card's total and a part of it count once; what its driver's counter has, not again.
    #[test]
    fn a_card_counts_once() {
        let statistic = |name: &str, drops| (name.to_string(), drops);
        let card = vec![statistic("tx_dropped", 9), statistic("tx_queue_0_drops", 5)];
        let one = InterfaceChange {
            name: "eth0".to_string(),
            driver: [("tx_dropped", 2)].into(),
            card: Some(card),
            ..InterfaceChange::default()
        };
        let mut found = BTreeMap::new();
        interface(&one, &mut found);
        let expected = [("interface", 2), ("card", 7)];
        assert!(
            found.iter().map(|(place, drops)| (place.kind(), *drops)).eq(expected),
            "{found:?}"
        );
    }
}
