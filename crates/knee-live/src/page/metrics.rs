//! Metrics since the start. Labels are groups, size classes and controllers, never addresses or
//! ports, and limited in number.

use crate::cells::{Cell, Kind};
use crate::live::Live;
use knee_page::{Family, Histogram, Sample, Samples, Unit};
use knee_record::size_classes;
use knee_units::statistics::Sketch;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Limits on groups and controllers with their own series; others are counted in [`FURTHER`].
const GROUPS_MAX: usize = 50;
const CONTROLLERS_MAX: usize = 16;
pub(super) const FURTHER: &str = "further";

/// Bucket bounds as powers of two: 16 kbit/s to 17 Gbit/s, durations of 1 ms to 134 s, and RTTs of
/// 64 µs to 1 s.
const THROUGHPUT: RangeInclusive<i32> = 14..=34;
const BUSY_US: RangeInclusive<i32> = 10..=27;
const RTT_US: RangeInclusive<i32> = 6..=20;

type Counter = (&'static str, Option<Unit>, &'static str, fn(&Cell) -> f64);

/// Sums over connections, by kind.
fn counters() -> [Counter; 7] {
    [
        ("knee_connections", None, "Connections that ended.", |cell| cell.connections as f64),
        ("knee_acked", Some(Unit::Bytes), "Payload acknowledged.", |cell| cell.acked_bytes as f64),
        ("knee_sent", Some(Unit::Bytes), "Payload sent, retransmissions included.", |cell| {
            cell.sent_bytes as f64
        }),
        ("knee_retransmitted", Some(Unit::Bytes), "Payload retransmitted.", |cell| {
            cell.retransmitted_bytes as f64
        }),
        ("knee_timeouts", None, "Retransmission timeouts, if the kernel counts them.", |cell| {
            cell.timeouts as f64
        }),
        (
            "knee_receive_limited",
            Some(Unit::Seconds),
            "Time with data to send in which the receiver's window was full.",
            |cell| cell.receive_limited_ns as f64 / 1e9,
        ),
        (
            "knee_send_buffer_limited",
            Some(Unit::Seconds),
            "Time with data to send in which the send buffer was the limit.",
            |cell| cell.send_buffer_limited_ns as f64 / 1e9,
        ),
    ]
}

pub(super) fn families(live: &Live, names: &mut Names) -> Vec<Family> {
    let (counts, cells) = live.totals();
    let by = |name: fn(&Kind) -> &Arc<str>| {
        cells.iter().map(move |(kind, cell)| (name(kind), cell.connections))
    };
    names.learn(by(|kind| &kind.group), by(|kind| &kind.controller));
    let gauge = |value| Samples::Gauges(vec![Sample { labels: Vec::new(), value }]);
    let counter = |value| Samples::Counters(vec![Sample { labels: Vec::new(), value }]);
    let mut families = vec![
        Family {
            name: "knee_observing",
            unit: Some(Unit::Seconds),
            help: "Time since the start; the sums count from there.",
            samples: gauge(counts.running.as_secs_f64()),
        },
        Family {
            name: "knee_reports",
            unit: None,
            help: "Sockets that the kernel reported.",
            samples: counter(counts.reports as f64),
        },
        Family {
            name: "knee_lost_reports",
            unit: None,
            help: "Reports dropped because the buffer was full; above 1 % of all, the figures do \
                   not represent the host.",
            samples: counter(counts.lost as f64),
        },
    ];
    let group = |kind: &Kind| names.group(&kind.group);
    let controller = |kind: &Kind| names.controller(&kind.controller);
    let sums =
        merged(&cells, |kind| (group(kind), class(kind), controller(kind), kind.arm.clone()));
    for (name, unit, help, value) in counters() {
        let sample = |((group, class, controller, arm), cell): (&SumsKey, &Cell)| {
            let mut labels = vec![
                ("group", group.clone()),
                ("class", (*class).to_string()),
                ("controller", controller.clone()),
            ];
            if !arm.is_empty() {
                labels.push(("arm", arm.to_string()));
            }
            Sample { labels, value: value(cell) }
        };
        let samples = Samples::Counters(sums.iter().map(sample).collect());
        families.push(Family { name, unit, help, samples });
    }
    let mut by = merged(&cells, |kind| (class(kind), controller(kind)));
    by.retain(|(class, _), _| *class != NO_PAYLOAD);
    let histograms = |of: fn(&Cell) -> Histogram| {
        let sample = |((class, controller), cell): (&(&'static str, String), &Cell)| Sample {
            labels: vec![("class", (*class).to_string()), ("controller", controller.clone())],
            value: of(cell),
        };
        Samples::Histograms(by.iter().map(sample).collect())
    };
    families.extend([
        Family {
            name: "knee_connection_throughput",
            unit: Some(Unit::Other("bits_per_second".to_string())),
            help: "Payload acknowledged over the time with data to send, per connection.",
            samples: histograms(|cell| histogram(&cell.throughput_bps, THROUGHPUT, 1.0)),
        },
        Family {
            name: "knee_connection_busy",
            unit: Some(Unit::Seconds),
            help: "Time with data to send or unacknowledged data, per connection.",
            samples: histograms(|cell| histogram(&cell.busy_us, BUSY_US, 1e-6)),
        },
        Family {
            name: "knee_connection_min_rtt",
            unit: Some(Unit::Seconds),
            help: "Smallest round-trip time, per connection.",
            samples: histograms(|cell| histogram(&cell.rtt_min_us, RTT_US, 1e-6)),
        },
    ]);
    families
}

/// Group, class of sizes, controller and arm. There are at most seven arms.
type SumsKey = (String, &'static str, String, Arc<str>);

/// Label of connections without payload from this end.
const NO_PAYLOAD: &str = "no payload";

fn class(kind: &Kind) -> &'static str {
    kind.class.map_or(NO_PAYLOAD, |class| size_classes()[class].name)
}

/// Names with their own series. A name keeps its series, so that no sum decreases.
#[derive(Debug, Default)]
pub(super) struct Names {
    groups: Vec<Arc<str>>,
    controllers: Vec<Arc<str>>,
}

impl Names {
    /// Adds new names while there is room, in descending order of connections.
    pub fn learn<'n>(
        &mut self,
        groups: impl Iterator<Item = (&'n Arc<str>, u64)>,
        controllers: impl Iterator<Item = (&'n Arc<str>, u64)>,
    ) {
        take_up(&mut self.groups, groups, GROUPS_MAX);
        // One more: unknown controllers have an empty name.
        take_up(&mut self.controllers, controllers, CONTROLLERS_MAX + 1);
    }

    /// Label of a group.
    pub fn group(&self, name: &str) -> String {
        bounded(name, &self.groups)
    }

    /// Label of a controller.
    pub fn controller(&self, name: &str) -> String {
        match name {
            "" => "not seen".to_string(),
            name => bounded(name, &self.controllers),
        }
    }
}

fn take_up<'n>(
    known: &mut Vec<Arc<str>>,
    names: impl Iterator<Item = (&'n Arc<str>, u64)>,
    most: usize,
) {
    let mut sums: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    for (name, connections) in names {
        *sums.entry(name).or_default() += connections;
    }
    let mut new: Vec<_> = sums.into_iter().filter(|(name, _)| !known.contains(name)).collect();
    new.sort_by_key(|(_, sum)| Reverse(*sum));
    let room = most.saturating_sub(known.len());
    known.extend(new.into_iter().take(room).map(|(name, _)| name.clone()));
}

fn bounded(name: &str, known: &[Arc<str>]) -> String {
    if known.iter().any(|one| **one == *name) { name.to_string() } else { FURTHER.to_string() }
}

fn merged<K: Ord>(cells: &BTreeMap<Kind, Cell>, key: impl Fn(&Kind) -> K) -> BTreeMap<K, Cell> {
    let mut found: BTreeMap<K, Cell> = BTreeMap::new();
    for (kind, cell) in cells {
        found.entry(key(kind)).or_default().merge(cell);
    }
    found
}

/// Buckets at powers of two, converted to a unit.
fn histogram(sketch: &Sketch, powers: RangeInclusive<i32>, unit: f64) -> Histogram {
    let edges: Vec<i32> = powers.collect();
    let mut counts = vec![0; edges.len() + 1];
    for (power, count) in sketch.by_powers_of_two() {
        counts[edges.partition_point(|edge| *edge < power)] += count;
    }
    let edges = edges.iter().map(|edge| f64::from(*edge).exp2() * unit).chain([f64::INFINITY]);
    Histogram { sum: sketch.sum() * unit, buckets: edges.zip(counts).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{Cells, Ended};
    use crate::live::{Counts, Part};
    use crate::minutes::Minute;
    use knee_page::written;
    use std::collections::BTreeSet;

    fn live(groups: usize, connections: u64) -> Live {
        let (live, mut part) = (Live::default(), Part::default());
        part.minute = Minute { unix_ns: 1, ..Minute::default() };
        for group in 0..groups {
            for number in 0..connections {
                let ended = Ended {
                    acked_bytes: 1000 << (number % 16),
                    sent_bytes: 2000 << (number % 16),
                    busy_us: 900 + 7 * number,
                    rtt_min_us: Some(20_000.0),
                    ..Ended::default()
                };
                let name = format!("g{group:03}");
                part.minute.cells.add(name.as_str().into(), "cubic".into(), "".into(), &ended);
            }
        }
        live.ended(&part, &part.minute.cells);
        live.now(Part::default(), Counts { reports: 5, lost: 2, ..Counts::default() });
        live
    }

    fn samples<'t>(text: &'t str, name: &str) -> Vec<(&'t str, f64)> {
        let own = text.lines().filter_map(|line| line.strip_prefix(name));
        own.filter(|rest| rest.starts_with(['{', ' ']))
            .map(|rest| rest.rsplit_once(' ').unwrap())
            .map(|(labels, value)| (labels, value.parse().unwrap()))
            .collect()
    }

    /// Sums equal those of the connections, and buckets contain all of them.
    #[test]
    fn metrics_add_up() {
        let text = written(families(&live(3, 40), &mut Names::default()));
        assert!(text.ends_with("# EOF\n"), "{text}");
        let sum = |name: &str| samples(&text, name).iter().map(|(_, value)| value).sum::<f64>();
        assert_eq!(sum("knee_connections_total"), 120.0);
        let acked: u64 = (0..40).map(|number: u64| 1000 << (number % 16)).sum();
        assert_eq!(sum("knee_acked_bytes_total"), 3.0 * acked as f64);
        assert_eq!((sum("knee_reports_total"), sum("knee_lost_reports_total")), (5.0, 2.0));
        let buckets = samples(&text, "knee_connection_busy_seconds_bucket");
        let within = |le: &str| {
            let own = buckets.iter().filter(|(labels, _)| labels.contains(le));
            own.map(|(_, value)| value).sum::<f64>()
        };
        assert_eq!(within("le=\"+Inf\""), 120.0);
        // Durations of 900 to 1023 µs: connections 0 to 17.
        assert_eq!(within("le=\"0.001024\""), 3.0 * 18.0);
        assert_eq!(sum("knee_connection_busy_seconds_count"), 120.0);
    }

    /// The number of labels is limited for any number of groups, and labels are stable.
    #[test]
    fn labels_are_bounded() {
        let mut names = Names::default();
        let named = |text: &str| -> BTreeSet<String> {
            let of = |(labels, _): &(&str, f64)| labels.split('"').nth(1).unwrap().to_string();
            samples(text, "knee_connections_total").iter().map(of).collect()
        };
        let first = named(&written(families(&live(20, 1), &mut names)));
        assert_eq!(first.len(), 20);
        let second = named(&written(families(&live(200, 1), &mut names)));
        assert!(first.is_subset(&second) && second.contains(FURTHER), "{second:?}");
        assert_eq!(second.len(), GROUPS_MAX + 1);
        let mut cells = Cells::default();
        cells.add("x".into(), "".into(), "".into(), &Ended::default());
        let no_group = || cells.0.iter().map(|(kind, cell)| (&kind.group, cell.connections));
        names.learn(no_group(), no_group());
        assert_eq!(names.groups.len(), GROUPS_MAX);
    }
}
