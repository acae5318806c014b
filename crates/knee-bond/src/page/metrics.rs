//! The state of an end as OpenMetrics (RFC draft-ietf-opsawg-openmetrics, text format 1.0).
//! Its labels are names of clients and interfaces alone: no address, no port.

use crate::status::{LinkStatus, Status};
use std::fmt::Write;

/// The media type.
pub const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One family: its name, its type, its unit, what it means, and its value of a link.
struct Family {
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    help: &'static str,
    value: fn(&LinkStatus) -> f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Counter,
    Gauge,
}

const LINKS: [Family; 10] = [
    Family {
        name: "knee_bond_link_usable",
        kind: Kind::Gauge,
        unit: "",
        help: "1 where the link answers, 0 where it is silent.",
        value: |link| f64::from(u8::from(!link.silent)),
    },
    Family {
        name: "knee_bond_link_waiting",
        kind: Kind::Gauge,
        unit: "",
        help: "1 where the link waits because a cheaper one works.",
        value: |link| f64::from(u8::from(link.backup)),
    },
    Family {
        name: "knee_bond_link_rtt_seconds",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "Smoothed round-trip time.",
        value: |link| link.rtt_ms / 1e3,
    },
    Family {
        name: "knee_bond_link_min_rtt_seconds",
        kind: Kind::Gauge,
        unit: "seconds",
        help: "Lowest round-trip time.",
        value: |link| link.min_rtt_ms / 1e3,
    },
    Family {
        name: "knee_bond_link_window_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        help: "Congestion window.",
        value: |link| link.window_bytes as f64,
    },
    Family {
        name: "knee_bond_link_packet_bytes",
        kind: Kind::Gauge,
        unit: "bytes",
        help: "Largest packet that the link carries, as UDP's payload.",
        value: |link| f64::from(link.packet_bytes),
    },
    Family {
        name: "knee_bond_link_delivered_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes of packets sent that arrived, since the link came up.",
        value: |link| link.sent_bytes as f64,
    },
    Family {
        name: "knee_bond_link_received_bytes",
        kind: Kind::Counter,
        unit: "bytes",
        help: "Bytes of packets received, since the link came up.",
        value: |link| link.received_bytes as f64,
    },
    Family {
        name: "knee_bond_link_sent_packets",
        kind: Kind::Counter,
        unit: "",
        help: "Packets sent, since the link came up.",
        value: |link| link.sent_packets as f64,
    },
    Family {
        name: "knee_bond_link_lost_packets",
        kind: Kind::Counter,
        unit: "",
        help: "Packets lost of these.",
        value: |link| link.lost_packets as f64,
    },
];

/// All of a state.
pub fn metrics(status: &Status) -> String {
    let mut text = String::new();
    let role = [("role", status.role.as_str())];
    family(&mut text, "knee_bond_running_seconds", Kind::Gauge, "seconds", "Since its start.");
    sample(&mut text, "knee_bond_running_seconds", "", &role, status.running_s);
    family(&mut text, "knee_bond_bundles", Kind::Gauge, "", "Bundles that there are.");
    sample(&mut text, "knee_bond_bundles", "", &role, status.bundles.len() as f64);
    for Family { name, kind, unit, help, value } in &LINKS {
        family(&mut text, name, *kind, unit, help);
        let suffix = if *kind == Kind::Counter { "_total" } else { "" };
        for bundle in &status.bundles {
            for link in &bundle.links {
                let labels = [("peer", bundle.peer.as_str()), ("link", link.name.as_str())];
                sample(&mut text, name, suffix, &labels, value(link));
            }
        }
    }
    family(&mut text, "knee_bond_cap_bytes", Kind::Gauge, "bytes", "What a link may carry.");
    for cap in &status.caps {
        let labels = [("link", cap.name.as_str())];
        sample(&mut text, "knee_bond_cap_bytes", "", &labels, cap.cap_bytes as f64);
    }
    let help = "What a link has carried since the last reset of its cap.";
    family(&mut text, "knee_bond_cap_used_bytes", Kind::Gauge, "bytes", help);
    for cap in &status.caps {
        let labels = [("link", cap.name.as_str())];
        sample(&mut text, "knee_bond_cap_used_bytes", "", &labels, cap.used_bytes as f64);
    }
    text.push_str("# EOF\n");
    text
}

fn family(text: &mut String, name: &str, kind: Kind, unit: &str, help: &str) {
    let kind = if kind == Kind::Counter { "counter" } else { "gauge" };
    // Writing to a string does not fail, here and below.
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}");
}

fn sample(text: &mut String, name: &str, suffix: &str, labels: &[(&str, &str)], value: f64) {
    let labels: Vec<String> =
        labels.iter().map(|(label, of)| format!("{label}=\"{}\"", escaped(of))).collect();
    let _ = writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(","));
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
