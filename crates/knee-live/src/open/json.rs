//! An interval of open connections as JSON.

use super::Look;
use super::connections::{Change, OpenConnection};
use crate::group::kept;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An interval for programs. Typed, since there may be many rows.
#[derive(Serialize)]
struct Line<'l> {
    schema: &'static str,
    unix_ns: u64,
    seconds: f64,
    connections: usize,
    rows: Vec<Row<'l>>,
    groups: Vec<Value>,
    host: Value,
    lost: Value,
}

/// An active connection. Totals are of its whole life.
#[derive(Serialize)]
struct Row<'l> {
    connection: u64,
    prefix: String,
    local_port: u16,
    remote_port: u16,
    group: &'l str,
    cc: &'l str,
    state: &'static str,
    interval: OfInterval,
    sent_bytes: u64,
    retransmitted_bytes: u64,
    acked_bytes: u64,
    retransmitted_packets: u32,
    srtt_us: Option<u32>,
    rtt_min_us: Option<u64>,
    window_bytes: u64,
    mss_bytes: u32,
    unacked_packets: u32,
    unsent_bytes: u32,
}

#[derive(Serialize)]
struct OfInterval {
    sent_bytes: u64,
    retransmitted_bytes: u64,
    acked_bytes: u64,
    retransmitted_packets: u64,
    dsacks: u64,
}

impl OfInterval {
    fn of(change: &Change) -> OfInterval {
        OfInterval {
            sent_bytes: change.sent_bytes,
            retransmitted_bytes: change.retransmitted_bytes,
            acked_bytes: change.acked_bytes,
            retransmitted_packets: change.retransmitted_packets,
            dsacks: change.dsacks,
        }
    }
}

fn row(one: &OpenConnection, prefix: String) -> Row<'_> {
    let info = &one.info;
    Row {
        connection: one.cookie,
        prefix,
        local_port: one.local.port(),
        remote_port: one.remote.port(),
        group: &one.group,
        cc: &one.controller,
        state: info.state(),
        interval: OfInterval::of(&one.change),
        sent_bytes: info.sent_bytes,
        retransmitted_bytes: info.retransmitted_bytes,
        acked_bytes: info.delivered_bytes(),
        retransmitted_packets: info.retransmitted_packets,
        srtt_us: (info.srtt_us > 0).then_some(info.srtt_us),
        rtt_min_us: info.min_rtt().map(|rtt| rtt.as_nanos() / 1000),
        window_bytes: u64::from(info.window) * u64::from(info.mss),
        mss_bytes: info.mss,
        unacked_packets: info.unacked,
        unsent_bytes: info.unsent_bytes,
    }
}

impl Look {
    /// The interval for programs, `knee-open-interval/1`; `whole` with the whole addresses of clients.
    pub fn json(&self, whole: bool) -> impl Serialize + '_ {
        line(self, whole)
    }
}

fn line(look: &Look, whole: bool) -> Line<'_> {
    let active = look.connections.iter().filter(|one| one.is_active());
    let rows = active.map(|one| row(one, kept(one.remote.ip(), whole).to_string())).collect();
    let group = |(group, (connections, change)): (&Arc<str>, &(u64, Change))| {
        let interval = OfInterval::of(change);
        json!({ "group": &**group, "connections": connections, "interval": interval })
    };
    Line {
        schema: "knee-open-interval/1",
        unix_ns: u64::try_from(look.unix.as_nanos()).unwrap_or(u64::MAX),
        seconds: look.length.as_secs_f64(),
        connections: look.connections.len(),
        rows,
        groups: look.groups().iter().map(group).collect(),
        host: host(look),
        lost: lost(look),
    }
}

fn host(look: &Look) -> Value {
    let interfaces = look.host.interfaces.iter().map(|one| {
        let qdiscs = one.qdiscs.iter().map(|qdisc| {
            json!({
                "kind": qdisc.kind,
                "handle": qdisc.handle,
                "sent_packets": qdisc.sent_packets,
                "drops": qdisc.drops,
                "overlimits": qdisc.overlimits,
                "requeues": qdisc.requeues,
                "backlog_bytes": qdisc.backlog_bytes,
                "backlog_packets": qdisc.backlog_packets,
            })
        });
        let card = one.card.as_ref();
        let card = card.map(|all| all.iter().cloned().collect::<BTreeMap<String, u64>>());
        json!({
            "name": one.name,
            "driver": one.driver,
            "qdiscs": qdiscs.collect::<Vec<_>>(),
            "card": card,
        })
    });
    json!({ "stack": look.host.stack, "interfaces": interfaces.collect::<Vec<_>>() })
}

fn lost(look: &Look) -> Value {
    let lost = &look.lost;
    let places = lost.places.iter().map(
        |(place, drops)| json!({ "kind": place.kind(), "place": place.words(), "drops": drops }),
    );
    json!({
        "sentence": lost.sentence(),
        "seconds": lost.seconds,
        "retransmitted_packets": lost.retransmitted_packets,
        "undecided_packets": lost.undecided_packets,
        "in_vain_packets": lost.in_vain_packets,
        "network_packets": lost.network_packets,
        "unexplained_packets": lost.unexplained_packets,
        "packets_per_drop": lost.packets_per_drop,
        "places": places.collect::<Vec<_>>(),
    })
}
