//! Events of one connection or subflow.

use crate::packet_log::{BYTES, DETAIL, ID, IN_FLIGHT, NUMBER, OFFSET, PACING, Row, WINDOW};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// State of a connection while its packet log is read.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The events as JSON.
    events: Vec<String>,
    /// Number of transmissions so far, and so the next packet number.
    sent: u64,
    /// Packet number and departure time, by the packet's id in the log.
    under_way: BTreeMap<u64, (u64, u64)>,
    /// First byte and packet number of the last transmission, by segment.
    segments: BTreeMap<u64, (u64, u64)>,
    /// Bytes in all segments so far.
    bytes: u64,
    /// Packet number and departure time of arrived packets, in order of arrival.
    arrived: Vec<(u64, u64)>,
    /// Number of packets that had arrived when an acknowledgement left, by its id.
    acks: BTreeMap<u64, usize>,
    /// Number of arrivals known to the sender, and number of acknowledgements that it received.
    known: usize,
    acks_received: u64,
    min_rtt_ns: Option<u64>,
    metrics: Metrics,
}

/// Metrics of the last event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Metrics {
    in_flight: u64,
    window: Option<u64>,
    pacing: Option<u64>,
}

impl Connection {
    /// Processes a row of this connection; `None` if the row lacks a number.
    pub(super) fn take(&mut self, row: &Row<'_>) -> Option<()> {
        match row.event {
            "send" => self.send(row),
            "receive" => {
                let left = self.under_way.remove(&row.number(ID)?);
                self.arrived.extend(left);
                Some(())
            }
            "ack_send" => {
                self.acks.insert(row.number(ID)?, self.arrived.len());
                Some(())
            }
            "ack_receive" => self.ack_receive(row),
            "timeout" => {
                let data = json!({ "event_type": "expired", "timer_type": "pto" });
                self.add(row.at_ns, "recovery:loss_timer_updated", data);
                Some(())
            }
            _ => Some(()),
        }
    }

    fn send(&mut self, row: &Row<'_>) -> Option<()> {
        let (id, segment, payload) = (row.number(ID)?, row.number(NUMBER)?, row.number(BYTES)?);
        let number = self.sent;
        self.sent += 1;
        self.under_way.insert(id, (number, row.at_ns));
        if row.cells[DETAIL] == "syn" {
            let header = json!({ "packet_type": "initial", "packet_number": number });
            let data = json!({ "header": header, "raw": { "length": 0, "payload_length": 0 },
                "frames": [{ "frame_type": "ping" }] });
            self.add(row.at_ns, "transport:packet_sent", data);
            return self.tell(row);
        }
        let before = self.segments.get(&segment).copied();
        let offset = match (row.number(OFFSET), before) {
            (Some(offset), _) | (None, Some((offset, _))) => offset,
            (None, None) => self.bytes,
        };
        if before.is_none() {
            self.bytes += payload;
        }
        // The log does not record when the loss was declared; it was now at the latest.
        if let (Some((_, lost)), "again") = (before, row.cells[DETAIL]) {
            let data = json!({ "header": { "packet_type": "1RTT", "packet_number": lost } });
            self.add(row.at_ns, "recovery:packet_lost", data);
        }
        self.segments.insert(segment, (offset, number));
        let frame = json!({ "frame_type": "stream", "stream_id": 0, "offset": offset,
            "length": payload });
        let data = json!({
            "header": { "packet_type": "1RTT", "packet_number": number },
            "raw": { "length": payload, "payload_length": payload },
            "frames": [frame],
        });
        self.add(row.at_ns, "transport:packet_sent", data);
        self.tell(row)
    }

    /// Emits the sender's metrics that have changed.
    fn tell(&mut self, row: &Row<'_>) -> Option<()> {
        let now = Metrics {
            in_flight: row.number(IN_FLIGHT)?,
            window: row.number(WINDOW),
            pacing: row.number(PACING),
        };
        let mut data = json!({});
        if now.in_flight != self.metrics.in_flight {
            data["bytes_in_flight"] = json!(now.in_flight);
        }
        if now.window != self.metrics.window {
            data["congestion_window"] = json!(now.window);
        }
        if let Some(pacing) = now.pacing.filter(|_| now.pacing != self.metrics.pacing) {
            data["pacing_rate"] = json!(pacing);
        }
        if now != self.metrics && data.as_object().is_some_and(|data| !data.is_empty()) {
            self.add(row.at_ns, "recovery:metrics_updated", data);
        }
        self.metrics = now;
        Some(())
    }

    fn ack_receive(&mut self, row: &Row<'_>) -> Option<()> {
        let in_flight = row.number(IN_FLIGHT)?;
        let upto = self.acks.remove(&row.number(ID)?).unwrap_or(0);
        let news = self.arrived.get(self.known..upto).unwrap_or_default();
        let newest = news.iter().max().copied();
        let mut numbers: Vec<u64> = news.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        self.known = self.known.max(upto);
        let mut data = json!({ "header": {
            "packet_type": "1RTT", "packet_number": self.acks_received,
        } });
        self.acks_received += 1;
        data["frames"] = match ranges(&numbers) {
            none if none.is_empty() => json!([{ "frame_type": "ping" }]),
            ranges => json!([{ "frame_type": "ack", "ack_delay": 0.0, "acked_ranges": ranges }]),
        };
        self.add(row.at_ns, "transport:packet_received", data);
        let mut data = json!({ "bytes_in_flight": in_flight });
        self.metrics.in_flight = in_flight;
        if let Some((_, left_ns)) = newest {
            let rtt_ns = row.at_ns.saturating_sub(left_ns);
            let min_ns = self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns));
            self.min_rtt_ns = Some(min_ns);
            data["latest_rtt"] = json!(rtt_ns as f64 / 1e6);
            data["min_rtt"] = json!(min_ns as f64 / 1e6);
        }
        self.add(row.at_ns, "recovery:metrics_updated", data);
        Some(())
    }

    fn add(&mut self, at_ns: u64, name: &str, data: Value) {
        let (ms, below) = (at_ns / 1_000_000, at_ns % 1_000_000);
        self.events.push(format!(r#"{{"time":{ms}.{below:06},"name":"{name}","data":{data}}}"#));
    }

    /// Writes the connection as a qlog trace; `number` is its number in the packet log.
    pub(super) fn write(&self, out: &mut dyn Write, number: u32) -> io::Result<()> {
        write!(out, r#"{{"vantage_point":{{"name":"connection {number}","type":"server"}},"#)?;
        write!(
            out,
            r#""common_fields":{{"time_format":"relative","reference_time":0.0}},"events":["#
        )?;
        for (at, event) in self.events.iter().enumerate() {
            out.write_all(if at == 0 { b"\n" } else { b",\n" })?;
            out.write_all(event.as_bytes())?;
        }
        out.write_all(b"\n]}")
    }
}

/// Converts ascending numbers to inclusive ranges.
fn ranges(numbers: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last[1] + 1 == *number => last[1] = *number,
            _ => ranges.push([*number, *number]),
        }
    }
    ranges
}
