//! The state of an end as metrics. Labels contain only names of clients and interfaces, no
//! addresses or ports.

use crate::quota::CapStatus;
use crate::status::{LinkStatus, Status};
use knee_page::{Family, Sample, Samples, Unit};

type Labels = Vec<(&'static str, String)>;
/// Wraps the values of a family as gauge or counter samples.
type Kind = fn(Vec<Sample<f64>>) -> Samples;
/// Name, kind, unit, help text and value of a metric of links.
type OfLink = (&'static str, Kind, Option<Unit>, &'static str, fn(&LinkStatus) -> f64);

fn of_links() -> [OfLink; 10] {
    use Samples::{Counters, Gauges};
    [
        (
            "knee_bond_link_usable",
            Gauges,
            None,
            "1 if the link answers, 0 if it is silent.",
            |link| f64::from(u8::from(!link.silent)),
        ),
        (
            "knee_bond_link_waiting",
            Gauges,
            None,
            "1 if the link is on standby because a cheaper one works.",
            |link| f64::from(u8::from(link.backup)),
        ),
        ("knee_bond_link_rtt", Gauges, Some(Unit::Seconds), "Smoothed round-trip time.", |link| {
            link.rtt_ms / 1e3
        }),
        (
            "knee_bond_link_min_rtt",
            Gauges,
            Some(Unit::Seconds),
            "Lowest round-trip time.",
            |link| link.min_rtt_ms / 1e3,
        ),
        ("knee_bond_link_window", Gauges, Some(Unit::Bytes), "Congestion window.", |link| {
            link.window_bytes as f64
        }),
        (
            "knee_bond_link_packet",
            Gauges,
            Some(Unit::Bytes),
            "Largest UDP payload that the link carries.",
            |link| f64::from(link.packet_bytes),
        ),
        (
            "knee_bond_link_delivered",
            Counters,
            Some(Unit::Bytes),
            "Bytes of packets sent that arrived, since the link came up.",
            |link| link.sent_bytes as f64,
        ),
        (
            "knee_bond_link_received",
            Counters,
            Some(Unit::Bytes),
            "Bytes of packets received, since the link came up.",
            |link| link.received_bytes as f64,
        ),
        (
            "knee_bond_link_sent_packets",
            Counters,
            None,
            "Packets sent, since the link came up.",
            |link| link.sent_packets as f64,
        ),
        (
            "knee_bond_link_lost_packets",
            Counters,
            None,
            "Packets lost, since the link came up.",
            |link| link.lost_packets as f64,
        ),
    ]
}

/// Returns all metrics of a state.
pub fn families(status: &Status) -> Vec<Family> {
    let gauges =
        |name, unit, help, samples| Family { name, unit, help, samples: Samples::Gauges(samples) };
    let role = |value| vec![Sample { labels: vec![("role", status.role.clone())], value }];
    let mut families = vec![
        gauges(
            "knee_bond_running",
            Some(Unit::Seconds),
            "Time since its start.",
            role(status.running_s),
        ),
        gauges("knee_bond_bundles", None, "Number of bundles.", role(status.bundles.len() as f64)),
    ];
    for (name, kind, unit, help, value) in of_links() {
        let mut samples = Vec::new();
        for bundle in &status.bundles {
            samples.extend(bundle.links.iter().map(|link| {
                let labels: Labels = vec![
                    ("peer", bundle.peer.clone()),
                    ("bundle", bundle.number.to_string()),
                    ("link", link.name.clone()),
                ];
                Sample { labels, value: value(link) }
            }));
        }
        families.push(Family { name, unit, help, samples: kind(samples) });
    }
    let caps = |value: fn(&CapStatus) -> u64| {
        let one = |cap: &CapStatus| Sample {
            labels: vec![("link", cap.name.clone())],
            value: value(cap) as f64,
        };
        status.caps.iter().map(one).collect()
    };
    let used = "Bytes that a link has carried since the last reset of its cap.";
    families.push(gauges(
        "knee_bond_cap",
        Some(Unit::Bytes),
        "Cap of a link, bytes.",
        caps(|cap| cap.cap_bytes),
    ));
    families.push(gauges(
        "knee_bond_cap_used",
        Some(Unit::Bytes),
        used,
        caps(|cap| cap.used_bytes),
    ));
    families
}
