//! Completion time of a perfect scheduler with the same controllers: the time from T* to this one
//! is due to congestion control, the time beyond it to scheduling.
//!
//! Path i alone, always backlogged under the same controller, delivers F_i(t) bytes by t. A file of
//! S bytes over all paths is fully acknowledged no earlier than the least t with
//!
//! ```text
//! sum of F_i(t - back_i - join_i) >= S
//! ```
//!
//! where `back` is the delay of the acknowledgement and `join` the round trip of the first path,
//! after which the others may start. F comes from runs of the same scenario with an unlimited flow
//! over one path and no receive window limit; all other flows are unchanged. A backup path carries
//! nothing.
//!
//! No scheduler finishes earlier except by chance. The bound is not strict: a path that carries
//! less may lose less.

use crate::ground::{Ground, GroundError, Output};
use knee_record::{Control, FlowSample, Records, Rows};
use knee_scenario::{Flow, Multipath, Scenario, Workload};
use knee_transport::ReceiveWindow;
use knee_units::Time;
use std::sync::atomic::Ordering;

/// Computes it for every file that finished over several paths.
///
/// # Errors
/// Errors of the ground.
pub(crate) fn fill(
    scenario: &Scenario,
    ground: &dyn Ground,
    control: &Control,
    records: &mut Records,
) -> Result<(), GroundError> {
    for row in &mut records.flows {
        let flow = row.flow as usize;
        let plan = &scenario.flows[flow];
        let Workload::File(bytes) = plan.workload else { continue };
        let (Some(_), Some(took)) = (&plan.multipath, row.completion_ns) else { continue };
        row.perfect_completion_ns =
            perfect(scenario, ground, control, flow, bytes, Time::from_nanos(took))?;
    }
    Ok(())
}

/// Rows of a curve within the completion time of the file.
const ROWS: u64 = 4000;
/// Minimum sampling interval, nanoseconds.
const INTERVAL_MIN: u64 = 100_000;

/// Completion time after the start, nanoseconds; `None` if it exceeds the scenario's duration or
/// the run was stopped.
fn perfect(
    scenario: &Scenario,
    ground: &dyn Ground,
    control: &Control,
    flow: usize,
    bytes: u64,
    took: Time,
) -> Result<Option<u64>, GroundError> {
    let plan = &scenario.flows[flow];
    let backup = plan.multipath.iter().flat_map(|multipath| &multipath.backup);
    let backup: Vec<usize> = backup.copied().collect();
    let join = scenario.one_way_delay(plan.paths[0]) + scenario.way_back(plan.paths[0]);
    // Few transfers beat a perfect scheduler, and none by much.
    let mut until = (plan.start + took + took / 2 + join * 2).min(scenario.duration);
    loop {
        let mut curves = Vec::new();
        for (position, path) in plan.paths.iter().enumerate() {
            if backup.contains(&position) {
                continue;
            }
            let alone = always_fed(scenario, flow, *path, until, took);
            let Some(rows) = run(&alone, ground, control)? else { return Ok(None) };
            let joins = if position == 0 { Time::ZERO } else { join };
            curves.push(Curve::of(&rows, plan, flow, scenario.way_back(*path) + joins));
        }
        let last = (until - plan.start).as_nanos();
        let delivered = |time: u64| curves.iter().map(|curve| curve.at(time)).sum::<f64>();
        if delivered(last) >= bytes as f64 {
            return Ok(Some(least(last, |time| delivered(time) >= bytes as f64)));
        }
        if until == scenario.duration {
            return Ok(None);
        }
        until = (until + (until - plan.start)).min(scenario.duration);
    }
}

/// The scenario with an unlimited flow over one of its paths, as a subflow.
fn always_fed(scenario: &Scenario, flow: usize, path: usize, until: Time, took: Time) -> Scenario {
    let mut alone = scenario.clone();
    alone.duration = until;
    alone.sample_interval = Time::from_nanos((took.as_nanos() / ROWS).max(INTERVAL_MIN));
    let fed = &mut alone.flows[flow];
    fed.paths = vec![path];
    fed.workload = Workload::Bulk;
    fed.after = None;
    fed.transport.receive_window = ReceiveWindow::Unlimited;
    fed.multipath = fed.multipath.take().map(|multipath| Multipath { backup: vec![], ..multipath });
    alone
}

/// Runs it and returns its samples; `None` if it was stopped.
fn run(
    scenario: &Scenario,
    ground: &dyn Ground,
    control: &Control,
) -> Result<Option<Rows<FlowSample>>, GroundError> {
    if control.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let ended = ground.run(
        scenario,
        &control.aside(),
        Output { samples: &mut (), packet_log: None, capture: None, directory: None },
    )?;
    let is_whole = !control.stop.load(Ordering::Relaxed);
    Ok(is_whole.then_some(ended.records.samples))
}

/// Data acknowledged over one path: nanoseconds since the start of the flow, and bytes, ascending.
struct Curve(Vec<(u64, u64)>);

impl Curve {
    /// Builds the curve from a run; an acknowledgement arrives `late` after the delivery.
    fn of(rows: &Rows<FlowSample>, plan: &Flow, flow: usize, late: Time) -> Curve {
        let tracks = rows.tracks().range((flow as u32, 0)..=(flow as u32, u16::MAX));
        let own = tracks.flat_map(|(_, track)| track.iter());
        let points = own.map(|row| {
            let since = Time::from_nanos(row.time_ns).saturating_sub(plan.start);
            ((since + late).as_nanos(), row.delivered_bytes)
        });
        Curve(std::iter::once((late.as_nanos(), 0)).chain(points).collect())
    }

    /// Bytes acknowledged by a time, by linear interpolation.
    fn at(&self, time: u64) -> f64 {
        let after = self.0.partition_point(|(at, _)| *at <= time);
        let Some(&(from, bytes)) = after.checked_sub(1).map(|before| &self.0[before]) else {
            return 0.0;
        };
        let Some(&(to, next)) = self.0.get(after) else { return bytes as f64 };
        bytes as f64 + (next - bytes) as f64 * (time - from) as f64 / (to - from) as f64
    }
}

/// The least time at which a monotonic predicate holds; it holds at `last`.
fn least(last: u64, is: impl Fn(u64) -> bool) -> u64 {
    let (mut before, mut by) = (0, last);
    while by - before > 1 {
        let middle = u64::midpoint(before, by);
        if is(middle) { by = middle } else { before = middle }
    }
    by
}
