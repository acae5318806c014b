//! The flows that programs had, by their five-tuple.

use knee_record::ConnectionRecord;
use knee_testbed::{FiveTuple, Flow, FlowTable, Observed, Volume};
use knee_units::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// All flows of a run, each direction for itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Name and version of the format.
    pub schema: &'static str,
    /// Events of packets that the observer missed because the host was too slow: if there are any,
    /// the numbers below are too small.
    pub missed_events: u64,
    /// The flows, in the order in which they began.
    pub flows: Vec<TrafficFlow>,
}

/// Packets with one five-tuple. Bytes are IP bytes unless stated otherwise; times are nanoseconds
/// since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficFlow {
    /// `tcp`, `udp`, or the number of another IP protocol.
    pub protocol: String,
    /// Address and port from which its packets came.
    pub source: String,
    /// Address and port to which they went.
    pub destination: String,
    /// When its first packet entered.
    pub first_ns: u64,
    /// When its last packet entered, left or was dropped.
    pub last_ns: u64,
    /// Packets that entered the links.
    pub entered_packets: u64,
    /// Their bytes.
    pub entered_bytes: u64,
    /// Packets that arrived at the other host.
    pub left_packets: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Packets that links dropped.
    pub dropped_packets: u64,
    /// The same by link.
    pub dropped_packets_at: BTreeMap<String, u64>,
    /// Packets that arrived with Congestion Experienced.
    pub marked_packets: u64,
    /// Transport payload that entered, bytes.
    pub payload_bytes: u64,
    /// TCP payload that entered again, bytes; absent for other protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_bytes: Option<u64>,
    /// Median time that a packet waited in queues; absent if none arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_p50_ns: Option<u64>,
    /// 95th percentile of the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing_p95_ns: Option<u64>,
    /// Median RTT of a QUIC connection by its spin bit (RFC 9000, section 17.4), seen where its packets
    /// enter; absent for other protocols, and for connections that do not spin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spin_rtt_p50_ns: Option<u64>,
}

impl Traffic {
    /// Lists what an observer saw; `links` are the names of the links in order.
    pub fn of(observed: &Observed, links: &[String]) -> Traffic {
        let flow = |(five, flow)| {
            let row = TrafficFlow::of(five, flow, links);
            let spin = observed.flows.spin_rtt(five).map(Time::as_nanos);
            TrafficFlow { spin_rtt_p50_ns: spin, ..row }
        };
        let flows = observed.flows.iter().map(flow);
        let mut flows: Vec<TrafficFlow> = flows.collect();
        flows.sort_by_key(|flow| flow.first_ns);
        Traffic { schema: "knee-traffic/1", missed_events: observed.missed_events, flows }
    }
}

impl TrafficFlow {
    fn of(five: &FiveTuple, flow: &Flow, links: &[String]) -> TrafficFlow {
        let name = |link: &usize| links.get(*link).cloned().unwrap_or_default();
        let queueing = |share| flow.queueing.at(share).map(|delay| delay.as_nanos());
        TrafficFlow {
            protocol: match five.protocol {
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                other => other.to_string(),
            },
            source: five.source.to_string(),
            destination: five.destination.to_string(),
            first_ns: flow.first.as_nanos(),
            last_ns: flow.last.as_nanos(),
            entered_packets: flow.entered.packets,
            entered_bytes: flow.entered.bytes,
            left_packets: flow.left.packets,
            left_bytes: flow.left.bytes,
            dropped_packets: flow.dropped.packets,
            dropped_packets_at: flow
                .dropped_packets_at
                .iter()
                .map(|(link, packets)| (name(link), *packets))
                .collect(),
            marked_packets: flow.marked_packets,
            payload_bytes: flow.payload_bytes,
            retransmitted_bytes: flow.retransmitted_bytes,
            queueing_p50_ns: queueing(0.5),
            queueing_p95_ns: queueing(0.95),
            spin_rtt_p50_ns: None,
        }
    }
}

/// Returns a row for each TCP connection, from the end that sent more; what only its kernel knows is
/// absent.
pub fn connections(observed: &Observed) -> Vec<ConnectionRecord> {
    let sent = |five: &FiveTuple| observed.flows.get(five).map_or(0, |flow| flow.payload_bytes);
    let rows = rows_of(observed, |five| {
        let back = five.reversed();
        five.is_tcp()
            && ((sent(five), *five) > (sent(&back), back) || observed.flows.get(&back).is_none())
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns a row for each five-tuple that is chosen, in the order in which they ended.
pub fn rows_of(
    observed: &Observed,
    is_chosen: impl Fn(&FiveTuple) -> bool,
) -> Vec<(FiveTuple, ConnectionRecord)> {
    let chosen = observed.flows.iter().filter(|(five, _)| is_chosen(five));
    let mut flows: Vec<(&FiveTuple, &Flow)> = chosen.collect();
    flows.sort_by_key(|(_, flow)| flow.last);
    let row = |(number, (five, flow)): (usize, (&FiveTuple, &Flow))| {
        let back = observed.flows.get(&five.reversed());
        let row = ConnectionRecord {
            connection: number as u64,
            start_ns: Some(flow.first.as_nanos()),
            end_ns: flow.last.as_nanos(),
            acked_bytes: back.and_then(|back| acknowledged(flow, back)),
            received_bytes: Some(back.map_or(0, |back| back.payload_bytes)),
            sent_bytes: Some(flow.payload_bytes),
            retransmitted_bytes: flow.retransmitted_bytes,
            sent_packets: Some(flow.data_packets),
            marked_packets: Some(flow.marked_packets),
            local_port: Some(five.source.port()),
            remote_port: Some(five.destination.port()),
            ..ConnectionRecord::default()
        };
        (*five, row)
    };
    flows.into_iter().enumerate().map(row).collect()
}

/// Returns the payload of one direction that packets of the other acknowledged, without its FIN.
fn acknowledged(flow: &Flow, back: &Flow) -> Option<u64> {
    let sent_once = flow.payload_bytes - flow.retransmitted_bytes?;
    Some(back.acknowledged_bytes?.min(sent_once))
}

/// What the server of a flow has sent, over all of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// When the first packet of all entered, from either end; `None` before the first answer.
    pub first: Option<Time>,
    /// Payload acknowledged over TCP; for other protocols payload that arrived, retransmissions and
    /// the transport's own headers included, which are encrypted.
    pub delivered: u64,
    /// Payload sent.
    pub sent: u64,
    /// Payload retransmitted; for other protocols what links dropped, since such data is sent again.
    pub retransmitted: u64,
    /// Packets with payload.
    pub packets: u64,
    /// Packets that arrived with Congestion Experienced.
    pub marked_packets: u64,
    /// What the last packets in both directions waited in queues; `None` before the first answer.
    pub queueing: Option<Time>,
}

impl FlowCounters {
    /// Sums up the flows that come from this port.
    pub fn of(table: &FlowTable, port: u16) -> FlowCounters {
        let mut sum = FlowCounters::default();
        let mut last = Time::ZERO;
        for (five, flow) in table.iter().filter(|(five, _)| five.source.port() == port) {
            sum.sent += flow.payload_bytes;
            sum.packets += flow.data_packets;
            sum.marked_packets += flow.marked_packets;
            let back = table.get(&five.reversed());
            let begin = back.map(|back| back.first.min(flow.first));
            sum.first = [sum.first, begin].into_iter().flatten().min();
            let both = flow.queueing_last.zip(back.and_then(|back| back.queueing_last));
            if let Some(both) = both.filter(|_| flow.last >= last) {
                (sum.queueing, last) = (Some(both.0 + both.1), flow.last);
            }
            if let Some(retransmitted) = flow.retransmitted_bytes {
                sum.retransmitted += retransmitted;
                sum.delivered += back.and_then(|back| acknowledged(flow, back)).unwrap_or(0);
            } else {
                let headers = flow.entered.bytes - flow.payload_bytes;
                let header = headers / flow.entered.packets.max(1);
                let payload = |some: Volume| some.bytes.saturating_sub(header * some.packets);
                sum.retransmitted += payload(flow.dropped);
                sum.delivered += payload(flow.left);
            }
        }
        sum
    }
}
