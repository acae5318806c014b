//! The page of open connections, and their metrics.

use super::Shown;
use super::course::{OpenLive, Sums};
use super::metrics::{FURTHER, Names};
use crate::open::Change;
use knee_page::{Family, Sample, Samples, Unit};
use knee_report::{OpenPoint, ReportError, open_body, open_live};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Largest number of rows of connections; the rest is summed below them.
const ROWS: usize = 50;

pub(super) struct Open {
    live: OpenLive,
    names: Mutex<Names>,
}

impl Open {
    pub fn new(live: OpenLive) -> Open {
        Open { live, names: Mutex::default() }
    }

    fn course(&self) -> Vec<OpenPoint> {
        let course = self.live.course().into_iter();
        let points = course.map(|step| OpenPoint {
            span_s: [step.from, step.to].map(|time| time.as_secs_f64()),
            sent_bytes: step.change.sent_bytes,
            retransmitted_bytes: step.change.retransmitted_bytes,
            drops: step.drops,
        });
        points.collect()
    }
}

impl Shown for Open {
    fn body(&self) -> Result<String, ReportError> {
        let Some(look) = self.live.last() else {
            let says = ["The first interval has not ended yet.".to_string()];
            return open_body(&says, &[], &[], Vec::new());
        };
        let active = look.active();
        let shown = &active[..ROWS.min(active.len())];
        let connections = look.connection_table(shown, self.live.grouped, self.live.whole);
        let others = look.says_of_others(&active[shown.len()..]).unwrap_or_default();
        let mut tables = Vec::new();
        if !shown.is_empty() {
            let title = "Active connections: those that retransmit most first";
            tables.push(connections.titled(title).noted(others));
        }
        if self.live.grouped {
            tables.push(look.group_table().titled("By group"));
        }
        let host = look.host_table();
        if !host.rows.is_empty() {
            tables.push(host.titled("This host's interfaces").noted(look.stack_says()));
        }
        let facts = [look.says(active.len())];
        open_body(&[look.lost.sentence()], &facts, &self.course(), tables)
    }

    fn document(&self, body: &str) -> Result<String, ReportError> {
        open_live(body)
    }

    fn json(&self) -> String {
        let look = self.live.last();
        // Cannot fail: an interval contains only names and finite numbers.
        let json = look.map(|look| serde_json::to_string(&look.json(self.live.whole)));
        json.and_then(Result::ok).unwrap_or_else(|| "null".to_string())
    }

    fn metrics(&self) -> Vec<Family> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        families(&self.live.sums(), &mut names)
    }
}

type Counter = (&'static str, Option<Unit>, &'static str, fn(&Change) -> u64);

/// Sums over connections, by group and controller.
fn counters() -> [Counter; 5] {
    [
        ("knee_open_acked", Some(Unit::Bytes), "Payload acknowledged.", |did| did.acked_bytes),
        ("knee_open_sent", Some(Unit::Bytes), "Payload sent, retransmissions included.", |did| {
            did.sent_bytes
        }),
        ("knee_open_retransmitted", Some(Unit::Bytes), "Payload retransmitted.", |did| {
            did.retransmitted_bytes
        }),
        (
            "knee_open_retransmitted_packets",
            None,
            "Packets retransmitted, a SYN included.",
            |did| did.retransmitted_packets,
        ),
        ("knee_open_dsacks", None, "DSACK blocks received: packets that arrived twice.", |did| {
            did.dsacks
        }),
    ]
}

fn families(sums: &Sums, names: &mut Names) -> Vec<Family> {
    let kinds = || sums.connections.iter();
    names.learn(
        kinds().map(|((group, _), (open, _))| (group, *open)),
        kinds().map(|((_, controller), (open, _))| (controller, *open)),
    );
    // Names beyond the limit share a series.
    let mut merged = BTreeMap::<(String, String), (u64, Change)>::new();
    for ((group, controller), (open, change)) in kinds() {
        let kind = (names.group(group), names.controller(controller));
        let (all, did) = merged.entry(kind).or_default();
        *all += open;
        did.add(change);
    }
    let labels = |(group, controller): &(String, String)| {
        vec![("group", group.clone()), ("controller", controller.clone())]
    };
    let one = |value| vec![Sample { labels: Vec::new(), value }];
    let open =
        merged.iter().map(|(kind, (open, _))| Sample { labels: labels(kind), value: *open as f64 });
    let mut families = vec![
        Family {
            name: "knee_observing",
            unit: Some(Unit::Seconds),
            help: "Time since the start; the sums count from there.",
            samples: Samples::Gauges(one(sums.length.as_secs_f64())),
        },
        Family {
            name: "knee_open_connections",
            unit: None,
            help: "Connections that are open.",
            samples: Samples::Gauges(open.collect()),
        },
    ];
    families.extend(counters().map(|(name, unit, help, value)| {
        let samples = merged.iter().map(|(kind, (_, change))| Sample {
            labels: labels(kind),
            value: value(change) as f64,
        });
        Family { name, unit, help, samples: Samples::Counters(samples.collect()) }
    }));
    let of_host = [
        ("knee_host_segments", "Segments that TCP sent.", sums.segments),
        (
            "knee_host_retransmitted_segments",
            "Segments that TCP retransmitted.",
            sums.retransmitted,
        ),
        ("knee_host_timeouts", "Retransmission timeouts.", sums.timeouts),
    ];
    families.extend(of_host.map(|(name, help, sum)| Family {
        name,
        unit: None,
        help,
        samples: Samples::Counters(one(sum as f64)),
    }));
    families.push(Family {
        name: "knee_host_drops",
        unit: None,
        help: "Packets that this host dropped, by place.",
        samples: Samples::Counters(drops(sums)),
    });
    families
}

fn drops(sums: &Sums) -> Vec<Sample<f64>> {
    let sample = |place: &str, interface: &str, counter: &str, drops: u64| Sample {
        labels: vec![
            ("place", place.to_string()),
            ("interface", interface.to_string()),
            ("counter", counter.to_string()),
        ],
        value: drops as f64,
    };
    let own = sums.drops.iter().map(|(place, drops)| {
        let [interface, counter] = place.names();
        sample(place.kind(), interface, counter, *drops)
    });
    let further = sums.further_drops;
    own.chain((further > 0).then(|| sample(FURTHER, "", "", further))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open::Place;
    use knee_page::written;
    use std::time::Duration;

    /// Each sum once, with its labels; groups beyond the limit share a series and lose nothing.
    #[test]
    fn metrics_add_up() {
        let mut sums = Sums { length: Duration::from_secs(90), segments: 70, ..Sums::default() };
        for number in 0..120 {
            let kind = (format!("g{number:03}").into(), "bbr".into());
            let did = Change { sent_bytes: 1000, retransmitted_packets: 2, ..Change::default() };
            sums.connections.insert(kind, (3, did));
        }
        let place = Place::Qdisc("eth0".to_string(), "fq_codel".to_string());
        sums.drops = vec![(place, 41)];
        let mut names = Names::default();
        let text = written(families(&sums, &mut names));
        let sum = |name: &str| -> (usize, f64) {
            let own = text.lines().filter_map(|line| line.strip_prefix(name));
            let own = own.filter(|rest| rest.starts_with(['{', ' ']));
            let values = own.map(|rest| rest.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap());
            values.fold((0, 0.0), |(series, sum), value| (series + 1, sum + value))
        };
        // 50 groups, and the others together.
        assert_eq!(sum("knee_open_connections"), (51, 360.0));
        assert_eq!(sum("knee_open_sent_bytes_total"), (51, 120_000.0));
        assert_eq!(sum("knee_open_retransmitted_packets_total"), (51, 240.0));
        assert_eq!(sum("knee_observing_seconds"), (1, 90.0));
        assert_eq!(sum("knee_host_segments_total"), (1, 70.0));
        let drops =
            "knee_host_drops_total{place=\"qdisc\",interface=\"eth0\",counter=\"fq_codel\"} 41";
        assert!(text.contains(drops), "{text}");
    }
}
