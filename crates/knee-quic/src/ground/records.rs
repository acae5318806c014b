//! Rows from the counts of congestion controls and bundles.
//!
//! Left out over several paths: waiting for other paths at the receiver, and duplicates, so these
//! have no value.

use super::flow::{Exchange, RunningFlow};
use crate::{CongestionControl, Observed};
use knee_cc::{Decision, State};
use knee_multipath::MultipathCounters;
use knee_record::{
    ConnectionRecord, ControllerSource, FlowRecord, FlowSample, ObjectRecord, PathRecord,
};
use knee_scenario::Scenario;
use knee_units::{Rate, Time};

/// Counts of a connection, or of all of a flow, by path.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub paths: Vec<Observed>,
    paced: bool,
    pub multipath: MultipathCounters,
    /// Whether counting has ended.
    pub is_final: bool,
}

impl Counted {
    pub fn new(paths: usize) -> Counted {
        Counted { paths: vec![Observed::default(); paths], ..Counted::default() }
    }

    /// Updates the counts since the start.
    pub fn note(&mut self, controls: &[Option<CongestionControl>]) {
        for (observed, control) in self.paths.iter_mut().zip(controls) {
            if let Some(control) = control {
                *observed = control.observe();
                self.paced = control.is_paced();
            }
        }
    }

    /// Adds the counts of another connection; current values are those of the other.
    pub fn absorb(&mut self, other: &Counted) {
        for (ours, theirs) in self.paths.iter_mut().zip(&other.paths) {
            *ours = sum(ours, theirs);
        }
        self.multipath.reinjected_bytes += other.multipath.reinjected_bytes;
        self.multipath.suspicions += other.multipath.suspicions;
        self.paced |= other.paced;
    }

    /// Returns the sum over all paths.
    fn total(&self) -> Observed {
        self.paths.iter().fold(Observed::default(), |total, path| sum(&total, path))
    }
}

fn sum(one: &Observed, other: &Observed) -> Observed {
    let range = match (one.rtt_range, other.rtt_range) {
        (Some((low, high)), Some((least, most))) => Some((low.min(least), high.max(most))),
        (range, None) | (None, range) => range,
    };
    let rates = |a: Option<Rate>, b: Option<Rate>| match (a, b) {
        (Some(a), Some(b)) => {
            Some(Rate::from_bits_per_second(a.as_bits_per_second() + b.as_bits_per_second()))
        }
        (rate, None) | (None, rate) => rate,
    };
    let thresholds = [one, other].map(|seen| seen.state.slow_start_threshold);
    // A path that was never used has no current values.
    let now = if other.srtt > Time::ZERO { other } else { one };
    Observed {
        sent_packets: one.sent_packets + other.sent_packets,
        sent: one.sent + other.sent,
        delivered: one.delivered + other.delivered,
        delivered_packets: one.delivered_packets + other.delivered_packets,
        lost: one.lost + other.lost,
        lost_packets: one.lost_packets + other.lost_packets,
        recoveries: one.recoveries + other.recoveries,
        spurious_recoveries: one.spurious_recoveries + other.spurious_recoveries,
        timeouts: one.timeouts + other.timeouts,
        in_flight: one.in_flight + other.in_flight,
        window: one.window.saturating_add(other.window),
        rtt_range: range,
        decision: Decision {
            pacing_rate: rates(one.decision.pacing_rate, other.decision.pacing_rate),
            ..now.decision
        },
        state: State {
            bandwidth: rates(one.state.bandwidth, other.state.bandwidth),
            slow_start_threshold: thresholds.into_iter().flatten().reduce(u64::saturating_add),
            ..now.state
        },
        ..*now
    }
}

/// A row of a flow, or of one of its paths.
fn sample(
    flow: &RunningFlow<'_>,
    path: usize,
    now: Time,
    seen: &Observed,
    paced: bool,
) -> FlowSample {
    let bits = |rate: Option<Rate>| rate.map_or(0, Rate::as_bits_per_second);
    FlowSample {
        flow: flow.index as u32,
        path: path as u16,
        time_ns: now.as_nanos(),
        delivered_bytes: seen.delivered,
        sent_bytes: seen.sent,
        retransmitted_bytes: seen.lost,
        sent_packets: seen.sent_packets,
        lost_bytes: seen.lost,
        in_flight_bytes: seen.in_flight,
        window_bytes: seen.window,
        pacing_rate_bps: if paced { bits(seen.decision.pacing_rate) } else { 0 },
        rtt_ns: seen.rtt.as_nanos(),
        srtt_ns: seen.srtt.as_nanos(),
        bandwidth_estimate_bps: bits(seen.state.bandwidth),
        min_rtt_estimate_ns: seen.state.min_rtt.map_or(0, Time::as_nanos),
        slow_start_threshold_bytes: seen.state.slow_start_threshold.unwrap_or(0),
        shrink_bytes: seen.state.shrink,
        phase: if seen.state.phase.is_empty() { "idle" } else { seen.state.phase },
        ..FlowSample::default()
    }
}

/// Makes the row of a flow and, if it has several paths, a row for each.
pub fn samples(flow: &RunningFlow<'_>, now: Time) -> (FlowSample, Vec<FlowSample>) {
    let mut counted = flow.gone.clone();
    // Of connections that are gone only what they counted remains.
    counted.paths.iter_mut().for_each(|path| *path = path.past());
    flow.live.iter().for_each(|exchange| counted.absorb(&exchange.counted));
    let whole = sample(flow, flow.plan.paths[0], now, &counted.total(), counted.paced);
    let whole = FlowSample { delivered_bytes: flow.delivered, ..whole };
    if !flow.settings.is_multipath {
        return (whole, Vec::new());
    }
    let paths = flow.plan.paths.iter().zip(&counted.paths);
    (whole, paths.map(|(path, seen)| sample(flow, *path, now, seen, counted.paced)).collect())
}

/// Makes the row of a connection that ended at `completed`, or was cut off. One that a stop cut off
/// has an end, but no completion time.
pub fn connection(
    flow: &RunningFlow<'_>,
    exchange: &Exchange,
    completed: Option<Time>,
    end: Time,
) -> ConnectionRecord {
    let properties = flow.plan.workload.properties();
    let endless = properties.single && !properties.ends;
    let size = Some(exchange.size()).filter(|_| !endless);
    let whole = completed.filter(|_| size.is_none_or(|all| all == exchange.asked));
    let total = exchange.counted.total();
    ConnectionRecord {
        connection: exchange.number.into(),
        flow: Some(flow.index as u32),
        workload: flow.plan.workload.name().into(),
        start_ns: Some(exchange.started.as_nanos()),
        end_ns: completed.unwrap_or(end).as_nanos(),
        completion_ns: whole.map(|at| (at - exchange.started).as_nanos()),
        size_bytes: size,
        delivered_bytes: Some(exchange.delivered),
        // Before its end, only the delivered bytes are known.
        acked_bytes: Some(if exchange.over { exchange.given } else { exchange.delivered }),
        sent_bytes: Some(total.sent),
        retransmitted_bytes: Some(total.lost),
        sent_packets: Some(total.sent_packets),
        retransmitted_packets: Some(total.lost_packets),
        delivered_packets: Some(total.delivered_packets),
        rtt_min_ns: total.rtt_range.map(|(least, _)| least.as_nanos()),
        timeouts: Some(total.timeouts),
        mss_bytes: flow.settings.host.paths.first().map(|path| u64::from(path.packet)),
        cc: flow.plan.controller.name.as_str().into(),
        cc_source: ControllerSource::Scenario,
        ..state(&exchange.counted, flow.settings.is_multipath)
    }
}

/// Makes a row with the values that have no sum over paths, for a connection over one.
fn state(counted: &Counted, is_multipath: bool) -> ConnectionRecord {
    let Some(path) = counted.paths.first().filter(|_| !is_multipath) else {
        return ConnectionRecord::default();
    };
    let nanos = |time: Time| (time > Time::ZERO).then_some(time.as_nanos());
    let pacing = path.decision.pacing_rate.filter(|_| counted.paced);
    ConnectionRecord {
        srtt_ns: nanos(path.srtt),
        rttvar_ns: nanos(path.srtt).map(|_| path.rtt_variation.as_nanos()),
        delivery_rate_bps: path.rate.map(Rate::as_bits_per_second),
        window_bytes: Some(path.window).filter(|window| *window != Decision::NO_WINDOW),
        slow_start_threshold_bytes: path.state.slow_start_threshold,
        pacing_rate_bps: pacing.map(Rate::as_bits_per_second),
        ..ConnectionRecord::default()
    }
}

/// Makes the row of a flow, once all its connections are absorbed.
pub fn flow(scenario: &Scenario, flow: &RunningFlow<'_>, end: Time) -> FlowRecord {
    let (plan, total) = (flow.plan, flow.gone.total());
    let transport = &plan.transport;
    let ended = flow.completed.or(plan.stop).unwrap_or(end).min(end).max(plan.start);
    let workload = plan.workload.properties();
    // A flow that was stopped before its end has no completion time.
    let whole = workload.bytes.is_none_or(|bytes| flow.delivered >= bytes);
    let completed = flow.completed.filter(|_| workload.ends && whole);
    let (least, most) = total.rtt_range.unwrap_or_default();
    // Over one path, nothing waits for another.
    let over_one = plan.multipath.is_none().then_some(0);
    FlowRecord {
        flow: flow.index as u32,
        name: plan.name.clone(),
        index: plan.index as u32,
        cc: plan.controller.name.clone(),
        path: scenario.flow_path_names(flow.index),
        scheduler: plan.multipath.as_ref().map_or(String::new(), |m| m.scheduler.name.clone()),
        start_ns: plan.start.as_nanos(),
        end_ns: ended.as_nanos(),
        size_bytes: workload.bytes.unwrap_or(0),
        completion_ns: completed.map(|at| (at - plan.start).as_nanos()),
        delivered_bytes: flow.delivered,
        delivered_packets: flow.delivered.div_ceil(u64::from(transport.mss)),
        sent_bytes: total.sent,
        retransmitted_bytes: total.lost,
        rtt_min_ns: least.as_nanos(),
        rtt_max_ns: most.as_nanos(),
        base_rtt_ns: scenario.flow_base_rtt(flow.index).as_nanos(),
        header_overhead: f64::from(transport.mss + transport.header) / f64::from(transport.mss),
        timeouts: total.timeouts,
        recoveries: total.recoveries,
        spurious_recoveries: total.spurious_recoveries,
        reinjected_bytes: flow.gone.multipath.reinjected_bytes,
        duplicate_bytes: over_one,
        head_of_line_ns: over_one,
        reassembly_peak_bytes: over_one,
        suspicions: flow.gone.multipath.suspicions,
        ..FlowRecord::default()
    }
}

/// Makes a row for each path of a flow over several paths.
pub fn paths(scenario: &Scenario, flow: &RunningFlow<'_>) -> Vec<PathRecord> {
    let Some(multipath) = &flow.plan.multipath else { return Vec::new() };
    let one = |(place, (path, seen)): (usize, (&usize, &Observed))| {
        let (least, most) = seen.rtt_range.unwrap_or_default();
        PathRecord {
            flow: flow.index as u32,
            path: *path as u16,
            name: scenario.paths[*path].name.clone(),
            backup: multipath.backup.contains(&place),
            sent_bytes: seen.sent,
            retransmitted_bytes: seen.lost,
            delivered_bytes: seen.delivered,
            rtt_min_ns: least.as_nanos(),
            rtt_max_ns: most.as_nanos(),
            base_rtt_ns: scenario.base_rtt(*path).as_nanos(),
            one_way_delay_ns: scenario.one_way_delay(*path).as_nanos(),
            timeouts: seen.timeouts,
            recoveries: seen.recoveries,
            ..PathRecord::default()
        }
    };
    flow.plan.paths.iter().zip(&flow.gone.paths).enumerate().map(one).collect()
}

/// Makes rows for a page's objects or a video's segments.
pub fn objects(flow: &RunningFlow<'_>) -> Vec<ObjectRecord> {
    let objects = flow.application.objects().iter();
    objects.map(|object| ObjectRecord::of(flow.index, flow.plan.start, object)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/connections.md: over several paths, values that have no sum are null; the pacing rate is
    /// null if not paced, and the window of a controller without one.
    #[test]
    fn a_row_over_several_paths_has_no_current_values() {
        let rate = Rate::from_bits_per_second(1_000_000);
        let path = Observed {
            srtt: Time::from_millis(20),
            rtt_variation: Time::from_millis(1),
            rate: Some(rate),
            window: 15_000,
            decision: Decision { pacing_rate: Some(rate), ..Decision::default() },
            ..Observed::default()
        };
        let counted = |path: Observed, count| Counted {
            paths: vec![path; count],
            paced: true,
            ..Counted::default()
        };
        let several = state(&counted(path, 2), true);
        assert_eq!(several, ConnectionRecord::default());
        let one = state(&counted(path, 1), false);
        assert_eq!((one.srtt_ns, one.rttvar_ns), (Some(20_000_000), Some(1_000_000)));
        assert_eq!((one.window_bytes, one.pacing_rate_bps), (Some(15_000), Some(1_000_000)));
        let unlimited = Observed { window: Decision::NO_WINDOW, ..path };
        let unpaced = Counted { paced: false, ..counted(unlimited, 1) };
        let row = state(&unpaced, false);
        assert_eq!((row.window_bytes, row.pacing_rate_bps), (None, None));
    }
}
