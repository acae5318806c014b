//! Rows of a run from snapshots; counts continue where a link came up again.

use super::snapshot::{LinkSnapshot, Snapshot};
use knee_record::{FlowRecord, FlowSample, PathRecord, Records};
use knee_scenario::Scenario;
use std::collections::BTreeMap;

/// Direction of the traffic; the records describe the one that carried more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Sent by the recorded end.
    Out,
    /// Received by the recorded end.
    In,
}

/// Shots of one link, `None` while it was not up.
#[derive(Debug, Default)]
pub struct Course {
    pub snapshots: Vec<Option<LinkSnapshot>>,
}

/// Returns the course of each link, by name.
pub fn courses(snapshots: &[Snapshot]) -> BTreeMap<String, Course> {
    let mut courses: BTreeMap<String, Course> = BTreeMap::new();
    for (index, snapshot) in snapshots.iter().enumerate() {
        for link in &snapshot.links {
            let course = courses.entry(link.name.clone()).or_default();
            course.snapshots.resize(index, None);
            course.snapshots.push(Some(link.clone()));
        }
    }
    courses.values_mut().for_each(|course| course.snapshots.resize(snapshots.len(), None));
    courses
}

impl Course {
    /// Returns a count by snapshot over the whole recording, starting at zero. A count that restarts
    /// means that the link came up again.
    pub fn count(&self, of: impl Fn(&LinkSnapshot) -> u64) -> Vec<u64> {
        let (mut total, mut last) = (0, None);
        let each = self.snapshots.iter().map(|snapshot| {
            if let Some(now) = snapshot.as_ref().map(&of) {
                total += match last {
                    Some(last) if now >= last => now - last,
                    Some(_) => now,
                    None => 0,
                };
                last = Some(now);
            }
            total
        });
        each.collect()
    }

    /// Returns the bytes of packets carried in one direction, by snapshot.
    pub fn carried(&self, direction: Direction) -> Vec<u64> {
        match direction {
            Direction::Out => self.count(|link| link.delivered),
            Direction::In => self.count(|link| link.received),
        }
    }

    /// Returns the lowest RTT, ns.
    pub fn min_rtt_ns(&self) -> u64 {
        let seen = self.snapshots.iter().flatten().map(|link| link.min_rtt_ns);
        seen.filter(|rtt| *rtt > 0).min().unwrap_or(0)
    }
}

/// Returns the bytes carried in both directions.
pub fn carried(snapshots: &[Snapshot]) -> u64 {
    let total = |course: &Course, direction| course.carried(direction).last().copied().unwrap_or(0);
    courses(snapshots)
        .values()
        .map(|course| total(course, Direction::Out) + total(course, Direction::In))
        .sum()
}

/// Returns the direction that carried more.
pub fn direction(courses: &BTreeMap<String, Course>) -> Direction {
    let total = |direction| -> u64 {
        courses.values().filter_map(|course| course.carried(direction).last().copied()).sum()
    };
    if total(Direction::Out) > total(Direction::In) { Direction::Out } else { Direction::In }
}

/// Returns the records of a run whose scenario has a path for each link. One flow stands for all
/// traffic in the direction that carried more. If that is inbound, losses and windows are known
/// only to the other end, and are zero here.
pub fn records(snapshots: &[Snapshot], scenario: &Scenario) -> Records {
    let courses = courses(snapshots);
    let direction = direction(&courses);
    let mut records = Records::default();
    let mut whole = vec![FlowSample::default(); snapshots.len()];
    for (name, course) in &courses {
        let path = scenario.paths.iter().position(|path| path.name == *name).unwrap_or(0);
        let rows = rows(snapshots, course, path as u16, direction);
        whole.iter_mut().zip(&rows).for_each(|(whole, row)| {
            whole.add(row);
            // The RTT of the flow is that of its fastest link.
            let faster = row.srtt_ns > 0 && (whole.srtt_ns == 0 || row.srtt_ns < whole.srtt_ns);
            if faster {
                (whole.rtt_ns, whole.srtt_ns) = (row.rtt_ns, row.srtt_ns);
            }
        });
        let last = rows.last().copied().unwrap_or_default();
        records.paths.push(PathRecord {
            path: path as u16,
            name: name.clone(),
            sent_bytes: last.sent_bytes,
            retransmitted_bytes: last.retransmitted_bytes,
            delivered_bytes: last.delivered_bytes,
            rtt_min_ns: course.min_rtt_ns(),
            rtt_max_ns: rows.iter().map(|row| row.rtt_ns).max().unwrap_or(0),
            base_rtt_ns: scenario.base_rtt(path).as_nanos(),
            one_way_delay_ns: scenario.one_way_delay(path).as_nanos(),
            ..PathRecord::default()
        });
        records.path_samples.extend(rows);
    }
    for (row, snapshot) in whole.iter_mut().zip(snapshots) {
        (row.time_ns, row.phase) = (snapshot.time_ns, PHASE);
    }
    records.end_ns = snapshots.last().map_or(0, |snapshot| snapshot.time_ns);
    records.link_names = scenario.links.iter().map(|link| link.name.clone()).collect();
    let last = whole.last().copied().unwrap_or_default();
    let plan = scenario.flows.first();
    records.flows.push(FlowRecord {
        name: plan.map(|plan| plan.name.clone()).unwrap_or_default(),
        cc: plan.map(|plan| plan.controller.name.clone()).unwrap_or_default(),
        path: scenario.flow_path_names(0),
        scheduler: plan
            .and_then(|plan| plan.multipath.as_ref())
            .map_or(String::new(), |multipath| multipath.scheduler.name.clone()),
        end_ns: records.end_ns,
        delivered_bytes: last.delivered_bytes,
        sent_bytes: last.sent_bytes,
        retransmitted_bytes: last.retransmitted_bytes,
        rtt_min_ns: records.paths.iter().map(|path| path.rtt_min_ns).min().unwrap_or(0),
        rtt_max_ns: records.paths.iter().map(|path| path.rtt_max_ns).max().unwrap_or(0),
        base_rtt_ns: scenario.flow_base_rtt(0).as_nanos(),
        header_overhead: 1.0,
        ..FlowRecord::default()
    });
    records.samples.extend(whole);
    records
}

/// Each connection's controller has phases of its own, which are not recorded here.
const PHASE: &str = "bond";

fn rows(
    snapshots: &[Snapshot],
    course: &Course,
    path: u16,
    direction: Direction,
) -> Vec<FlowSample> {
    let delivered = course.carried(direction);
    let sent = course.count(|link| link.sent);
    let lost = course.count(|link| link.lost);
    let packets = course.count(|link| link.sent_packets);
    let row = |(index, snapshot): (usize, &Snapshot)| {
        let now = course.snapshots[index].clone().unwrap_or_default();
        let row = FlowSample {
            path,
            time_ns: snapshot.time_ns,
            delivered_bytes: delivered[index],
            sent_bytes: delivered[index],
            rtt_ns: now.rtt_ns,
            srtt_ns: now.srtt_ns,
            min_rtt_estimate_ns: now.min_rtt_ns,
            phase: PHASE,
            ..FlowSample::default()
        };
        if direction == Direction::In {
            return row;
        }
        FlowSample {
            sent_bytes: sent[index],
            retransmitted_bytes: lost[index],
            lost_bytes: lost[index],
            sent_packets: packets[index],
            in_flight_bytes: now.in_flight,
            window_bytes: now.window,
            pacing_rate_bps: now.pacing_bps,
            bandwidth_estimate_bps: now.bandwidth_bps,
            ..row
        }
    };
    snapshots.iter().enumerate().map(row).collect()
}
