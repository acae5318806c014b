//! The tables of an interval of open connections: one definition for the terminal and the page.

use super::Look;
use super::connections::{Change, OpenConnection};
use super::host::{InterfaceChange, QdiscChange};
use knee_present::words::{bytes, count, time_us};
use knee_present::{Cell, Head, Table, number, text};
use knee_record::Unit;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Look {
    /// The active connections: those that retransmitted most first, then those that sent most.
    pub fn active(&self) -> Vec<&OpenConnection> {
        let active = self.connections.iter().filter(|one| one.is_active());
        let mut active: Vec<&OpenConnection> = active.collect();
        active.sort_by_key(|one| {
            let most = [one.change.retransmitted_bytes, one.change.sent_bytes];
            (most.map(|bytes| u64::MAX - bytes), one.cookie)
        });
        active
    }

    /// What the connections of each group did, and their number.
    pub fn groups(&self) -> BTreeMap<Arc<str>, (u64, Change)> {
        let mut groups = BTreeMap::<Arc<str>, (u64, Change)>::new();
        for one in &self.connections {
            let (connections, change) = groups.entry(one.group.clone()).or_default();
            *connections += 1;
            change.add(&one.change);
        }
        groups
    }

    /// How many connections are open, and how many of them are active in an interval of what length.
    pub fn says(&self, active: usize) -> String {
        let open = count(self.connections.len() as u64);
        let length = time_us(Some(self.length.as_secs_f64() * 1e6));
        format!("{open} connections open, {} active in {length}", count(active as u64))
    }

    /// What connections together did that have no row: `3 more: sent …`; `None` if there are none.
    pub fn says_of_others(&self, others: &[&OpenConnection]) -> Option<String> {
        let mut all = Change::default();
        others.iter().for_each(|one| all.add(&one.change));
        (!others.is_empty()).then(|| {
            format!(
                "{} more: sent {}, retransmitted {}",
                count(others.len() as u64),
                rate(self, all.sent_bytes).shown,
                Unit::Fraction.show(all.retransmitted_ratio().unwrap_or(0.0)),
            )
        })
    }

    /// A row for each of some connections; `grouped` with their groups, `whole` with the whole
    /// addresses of their clients.
    pub fn connection_table(
        &self,
        connections: &[&OpenConnection],
        grouped: bool,
        whole: bool,
    ) -> Table {
        let heads = ["client", "port", "local"].map(text).into_iter();
        let heads = heads.chain(grouped.then(|| text("group")));
        let heads = heads.chain(["cc", "state"].map(text)).chain(figures());
        let heads = heads.chain(["RTT", "smallest", "window", "unacked"].map(number));
        let mut table = Table::new(heads).called("connections");
        for one in connections {
            let told = &one.info;
            let us = |us: u32| Cell::us((us > 0).then(|| f64::from(us)));
            let window = f64::from(told.window) * f64::from(told.mss);
            let names =
                [one.client(whole), one.remote.port().to_string(), one.local.port().to_string()];
            let names = names.into_iter().map(Cell::from);
            let names = names.chain(grouped.then(|| Cell::from(&*one.group)));
            let names = names.chain([(&*one.controller).into(), told.state().into()]);
            let measured = [
                us(told.srtt_us),
                Cell::us(told.min_rtt().map(|rtt| rtt.as_nanos() as f64 / 1e3)),
                Cell::shown(bytes(Some(window)), window),
                Cell::count(told.unacked),
            ];
            table.row(names.chain(figures_of(self, &one.change)).chain(measured));
        }
        table
    }

    /// What the connections of each group did.
    pub fn group_table(&self) -> Table {
        let heads = [text("group"), number("connections")].into_iter().chain(figures());
        let mut table = Table::new(heads).called("groups");
        for (name, (connections, change)) in &self.groups() {
            let names = [Cell::from(&**name), Cell::count(*connections)];
            table.row(names.into_iter().chain(figures_of(self, change)));
        }
        table
    }

    /// Counters of the interfaces that sent or dropped anything.
    pub fn host_table(&self) -> Table {
        let texts = ["interface", "qdisc"].map(text).into_iter();
        let figures = ["sent", "qdisc drops", "overlimits", "requeues", "backlog"].into_iter();
        let figures = figures.chain(["tx_dropped", "tx_errors", "card drops"]).map(number);
        let mut table = Table::new(texts.chain(figures)).called("interfaces");
        for one in &self.host.interfaces {
            let card = card_drops(one);
            let driver = |name: &str| one.driver.get(name).copied().unwrap_or(0);
            let is_quiet = driver("tx_packets") + driver("tx_dropped") + driver("tx_errors") == 0
                && card.unwrap_or(0) == 0
                && one.qdiscs.iter().all(|qdisc| qdisc.drops == 0);
            if is_quiet {
                continue;
            }
            let of_interface = || {
                [
                    Cell::count(driver("tx_dropped")),
                    Cell::count(driver("tx_errors")),
                    card.map_or_else(|| Cell::figure(Unit::Number, None), Cell::count),
                ]
            };
            let none = || [(); 4].map(|()| Cell::figure(Unit::Number, None));
            // A queueing discipline with others below it, which sends nothing itself, is left out.
            let mut qdiscs = one.qdiscs.iter().filter(|qdisc| qdisc.sent_packets + qdisc.drops > 0);
            let first = qdiscs.next();
            let row = |qdisc: Option<&QdiscChange>, is_first: bool| {
                let name = Cell::from(if is_first { one.name.as_str() } else { "" });
                let kind = qdisc.map_or_else(|| "none".to_string(), |qdisc| qdisc.kind.clone());
                let sent = qdisc.map_or(driver("tx_packets"), |qdisc| qdisc.sent_packets);
                let counted = qdisc.map_or_else(none, |qdisc| {
                    let backlog = qdisc.backlog_bytes as f64;
                    [
                        Cell::count(qdisc.drops),
                        Cell::count(qdisc.overlimits),
                        Cell::count(qdisc.requeues),
                        Cell::shown(bytes(Some(backlog)), backlog),
                    ]
                });
                let own = if is_first { of_interface().to_vec() } else { Vec::new() };
                [name, kind.into(), Cell::count(sent)].into_iter().chain(counted).chain(own)
            };
            table.row(row(first, true));
            qdiscs.for_each(|qdisc| table.row(row(Some(qdisc), false)));
        }
        table
    }

    /// Counters of TCP and IP, in a sentence.
    pub fn stack_says(&self) -> String {
        let of = |name: &str| count(self.host.stack(name));
        let discarded = self.host.stack("IpOutDiscards") + self.host.stack("Ip6OutDiscards");
        format!(
            "TCP: {} segments sent, {} retransmitted, {} timeouts; refused by this host {}, \
             discarded by IP {}, memory pressure {}.",
            of("TcpOutSegs"),
            of("TcpRetransSegs"),
            of("TcpExtTCPTimeouts"),
            of("TcpExtTCPRetransFail"),
            count(discarded),
            of("TcpExtTCPMemoryPressures"),
        )
    }
}

fn rate(look: &Look, bytes: u64) -> Cell {
    let seconds = look.length.as_secs_f64().max(1e-9);
    Cell::figure(Unit::BitsPerSecond, Some(bytes as f64 * 8.0 / seconds))
}

/// Columns of what connections did, and their cells.
fn figures() -> impl Iterator<Item = Head> {
    ["sent", "acked", "retransmitted"].into_iter().map(number)
}

fn figures_of(look: &Look, change: &Change) -> [Cell; 3] {
    [
        rate(look, change.sent_bytes),
        rate(look, change.acked_bytes),
        Cell::figure(Unit::Fraction, change.retransmitted_ratio()),
    ]
}

/// The most that a statistic of the card counts as not sent; `None` if it has no such statistic.
fn card_drops(one: &InterfaceChange) -> Option<u64> {
    one.card.iter().flatten().map(|(_, drops)| *drops).max()
}
