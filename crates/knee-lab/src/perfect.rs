//! When a perfect scheduler would have been done, with the same controllers:
//! what is beyond T* up to here is congestion control, what is beyond this is
//! scheduling.
//!
//! Path i alone, always fed by the same controller, delivers F_i(t) bytes by
//! t. Over all paths a file of S bytes is acknowledged at the earliest at the
//! least t with
//!
//! ```text
//! sum of F_i(t - back_i - join_i) >= S
//! ```
//!
//! where `back` is the way of the acknowledgement and `join` the round trip of
//! the first path, after which the others may begin. F comes from runs of the
//! same scenario in which the flow goes over one path without an end and
//! without a limit of its receiver; all other flows are as they were. A backup
//! path carries nothing.
//!
//! No scheduler without luck is earlier. It is not a strict bound: a path that
//! is fed less may lose less.

use crate::ground::{Ground, GroundError, Output};
use knee_record::{Control, FlowSample, Records};
use knee_scenario::{Flow, Multipath, Scenario, Workload};
use knee_transport::ReceiveWindow;
use knee_units::Time;
use std::sync::atomic::Ordering;

/// Finds it for every file that went over several paths to its end.
///
/// # Errors
/// Those of the ground.
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

/// Rows of a curve up to the time that the file took.
const ROWS: u64 = 4000;
/// Samples are not closer, nanoseconds.
const INTERVAL_MIN: u64 = 100_000;

/// After the start, nanoseconds; none: not within the scenario's duration, or
/// stopped before that.
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
    // Few are quicker than a perfect scheduler, and none by much.
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

/// The scenario with one flow over one of its paths, as a subflow, without end.
fn always_fed(scenario: &Scenario, flow: usize, path: usize, until: Time, took: Time) -> Scenario {
    let mut alone = scenario.clone();
    alone.duration = until;
    alone.sample_interval = Time::from_nanos((took.as_nanos() / ROWS).max(INTERVAL_MIN));
    let fed = &mut alone.flows[flow];
    fed.paths = vec![path];
    fed.workload = Workload::Bulk;
    fed.transport.receive_window = ReceiveWindow::Unlimited;
    fed.multipath = fed.multipath.take().map(|multipath| Multipath { backup: vec![], ..multipath });
    alone
}

/// Its samples; none: it was stopped.
fn run(
    scenario: &Scenario,
    ground: &dyn Ground,
    control: &Control,
) -> Result<Option<Vec<FlowSample>>, GroundError> {
    if control.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let ended =
        ground.run(scenario, &control.aside(), Output { samples: &mut (), packet_log: None })?;
    let is_whole = !control.stop.load(Ordering::Relaxed);
    Ok(is_whole.then_some(ended.records.samples))
}

/// What one path has acknowledged: nanoseconds since the flow began and bytes,
/// ascending.
struct Curve(Vec<(u64, u64)>);

impl Curve {
    /// What was delivered in a run is acknowledged `late` after that.
    fn of(rows: &[FlowSample], plan: &Flow, flow: usize, late: Time) -> Curve {
        let own = rows.iter().filter(|row| row.flow as usize == flow);
        let points = own.map(|row| {
            let since = Time::from_nanos(row.time_ns).saturating_sub(plan.start);
            ((since + late).as_nanos(), row.delivered_bytes)
        });
        Curve(std::iter::once((late.as_nanos(), 0)).chain(points).collect())
    }

    /// Bytes by a time, along straight lines.
    fn at(&self, time: u64) -> f64 {
        let after = self.0.partition_point(|(at, _)| *at <= time);
        let Some(&(from, bytes)) = after.checked_sub(1).map(|before| &self.0[before]) else {
            return 0.0;
        };
        let Some(&(to, next)) = self.0.get(after) else { return bytes as f64 };
        bytes as f64 + (next - bytes) as f64 * (time - from) as f64 / (to - from) as f64
    }
}

/// The least time up to `last`, at which it is, that something is so.
fn least(last: u64, is: impl Fn(u64) -> bool) -> u64 {
    let (mut before, mut by) = (0, last);
    while by - before > 1 {
        let middle = u64::midpoint(before, by);
        if is(middle) { by = middle } else { before = middle }
    }
    by
}
