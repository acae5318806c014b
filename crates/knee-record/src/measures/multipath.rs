//! Measures of flows over several paths: completion against the bound, aggregation, reassembly,
//! duplicates, shares.

use super::bound::{ideal_time, lower_bound};
use super::volume::ratio;
use super::{Flows, NotMeasurable, because};
use crate::FlowRecord;
use crate::rates::PathRate;
use crate::view::FlowView;

impl Flows<'_, '_> {
    /// Completion time divided by T*, the earliest time at which any scheduler could finish
    /// ([`lower_bound`]); mean over the flows. At least 1, because the completion time also
    /// includes the wait for the last acknowledgement.
    pub(crate) fn completion_over_bound(&self) -> Result<f64, NotMeasurable> {
        self.completion_over(lower_bound)
    }

    /// Completion time divided by the smallest bound of a single path; mean over the flows. A value
    /// below 1 proves that several paths helped.
    pub(crate) fn completion_over_best_path(&self) -> Result<f64, NotMeasurable> {
        self.completion_over(|start, bytes, paths| {
            let alone = paths.iter().map(|path| lower_bound(start, bytes, &[*path]));
            alone.fold(f64::INFINITY, f64::min)
        })
    }

    /// Completion time divided by that of a perfect scheduler with the same controllers
    /// ([`FlowRecord::perfect_completion_ns`]); mean over the flows.
    pub(crate) fn completion_over_perfect(&self) -> Result<f64, NotMeasurable> {
        self.completion_time()?;
        let mut sum = 0.0;
        for flow in self.on_several_paths()? {
            let Some(perfect) = flow.record.perfect_completion_ns.filter(|time| *time > 0) else {
                return because(format!("no perfect scheduler was tried for {}", self.target));
            };
            let time = flow.record.completion_ns;
            sum += time.map_or(f64::INFINITY, |time| time as f64) / perfect as f64;
        }
        Ok(sum / self.members.len() as f64)
    }

    fn completion_over(
        &self,
        bound: impl Fn(u64, f64, &[&PathRate]) -> f64,
    ) -> Result<f64, NotMeasurable> {
        self.over_files(bound, "a path without rate and delay", |record, bound| {
            let time = record.completion_ns;
            time.map_or(f64::INFINITY, |time| time as f64 / 1e9) / bound
        })
    }

    /// Mean over the flows of `value`, which gets a flow and what `bound` gives for its file and
    /// paths, seconds. A bound of zero is due to `cause`.
    fn over_files(
        &self,
        bound: impl Fn(u64, f64, &[&PathRate]) -> f64,
        cause: &str,
        value: impl Fn(&FlowRecord, f64) -> f64,
    ) -> Result<f64, NotMeasurable> {
        // Fails for the same reasons as the completion time.
        self.completion_time()?;
        let mut sum = 0.0;
        for flow in self.on_several_paths()? {
            let record = flow.record;
            let bytes = record.size_bytes as f64 * record.header_overhead.max(1.0);
            let paths = Flows::one(self.run, flow).path_rates()?;
            let bound = bound(record.start_ns, bytes, &paths);
            if bound <= LEAST_BOUND_S {
                return because(format!("{} has {cause}", self.target));
            }
            sum += value(record, bound);
        }
        Ok(sum / self.members.len() as f64)
    }

    /// Aggregation ratio, `0..=1`: [`Flows::capacity_share`] of flows over
    /// several paths.
    pub(crate) fn aggregation_ratio(&self) -> Result<f64, NotMeasurable> {
        self.on_several_paths()?;
        self.capacity_share()
    }

    /// Head-of-line blocking, seconds: time that a byte waited at the receiver for preceding data
    /// on another path, mean over all bytes from start to end.
    pub(crate) fn head_of_line_blocking(&self) -> Result<f64, NotMeasurable> {
        let mut waited = 0.0;
        for (flow, each_ns) in self.at_receiver(|record| record.head_of_line_ns)? {
            waited += each_ns as f64 * flow.delivered_bytes as f64;
        }
        Ok(ratio(waited, self.delivered_bytes(), "nothing was delivered")? / 1e9)
    }

    /// Peak of the receive buffer, bytes: the largest amount that waited at a receiver for
    /// preceding data on another path.
    pub(crate) fn receive_buffer_peak(&self) -> Result<f64, NotMeasurable> {
        let peaks = self.at_receiver(|record| record.reassembly_peak_bytes)?;
        Ok(peaks.into_iter().map(|(_, bytes)| bytes).max().unwrap_or(0) as f64)
    }

    /// Duplicate ratio: payload that the receiver got more than once over different paths, divided
    /// by the payload delivered; from start to end.
    pub(crate) fn duplicate_ratio(&self) -> Result<f64, NotMeasurable> {
        let twice = self.at_receiver(|record| record.duplicate_bytes)?;
        let twice = twice.into_iter().map(|(_, bytes)| bytes as f64).sum();
        ratio(twice, self.delivered_bytes(), "nothing was delivered")
    }

    /// Path share, `0..=1`: payload that the path `name` delivered, divided by that of all paths of
    /// the flows, within each flow's span.
    pub(crate) fn path_share(&self, name: &str) -> Result<f64, NotMeasurable> {
        self.on_several_paths()?;
        let (mut own, mut all, mut known) = (0.0, 0.0, false);
        for (flow, span) in self.active()? {
            for path in &flow.paths {
                if path.samples.is_empty() && flow.life() != Some(span) {
                    return because(format!("{} has no samples of its paths", self.target));
                }
                let bytes = flow.delivered_on(path, span);
                all += bytes;
                if path.record.name == name {
                    own += bytes;
                    known = true;
                }
            }
        }
        if !known {
            return because(format!("{} has no path {name:?}", self.target));
        }
        ratio(own, all, "nothing was delivered")
    }

    /// Time from a flow's start until the path `name` has delivered its part, seconds: t_i of the
    /// synchronous-completion study. Mean over the flows.
    pub(crate) fn path_finish_time(&self, name: &str) -> Result<f64, NotMeasurable> {
        let mut sum = 0.0;
        for flow in self.on_several_paths()? {
            let Some(path) = flow.paths.iter().find(|path| path.record.name == name) else {
                return because(format!("{} has no path {name:?}", self.target));
            };
            let Some(time) = flow.finish_time(path) else {
                return because(format!("path {name:?} of {} delivered nothing", self.target));
            };
            sum += time;
        }
        Ok(sum / self.members.len() as f64)
    }

    /// Time between the first path of a flow that has delivered its part and the last, seconds; mean
    /// over the flows.
    pub(crate) fn finish_spread(&self) -> Result<f64, NotMeasurable> {
        let mut sum = 0.0;
        for flow in self.on_several_paths()? {
            let times = || flow.paths.iter().filter_map(|path| flow.finish_time(path));
            let (first, last) = (times().reduce(f64::min), times().reduce(f64::max));
            let Some((first, last)) = first.zip(last) else {
                return because(format!("{} delivered nothing", self.target));
            };
            sum += last - first;
        }
        Ok(sum / self.members.len() as f64)
    }

    /// Tail delay T - T', seconds: completion time of a file beyond what it takes at the rates of all
    /// its paths together ([`ideal_time`]); mean over the flows.
    pub(crate) fn tail_delay(&self) -> Result<f64, NotMeasurable> {
        Ok(self.completion_time()? - self.ideal_time()?)
    }

    /// T' of [`Flows::tail_delay`], seconds; mean over the flows.
    pub(crate) fn ideal_time(&self) -> Result<f64, NotMeasurable> {
        self.over_files(ideal_time, "a path without a rate", |_, ideal| ideal)
    }

    fn on_several_paths(&self) -> Result<&[&FlowView<'_>], NotMeasurable> {
        match self.members.iter().find(|flow| flow.paths.is_empty()) {
            None => Ok(&self.members),
            Some(flow) => because(format!("{} has one path only", flow.record.label())),
        }
    }

    fn delivered_bytes(&self) -> f64 {
        self.members.iter().map(|flow| flow.record.delivered_bytes as f64).sum()
    }

    /// Returns each flow with what its receiver counted of several paths; zero over one path.
    fn at_receiver(
        &self,
        value: fn(&FlowRecord) -> Option<u64>,
    ) -> Result<Vec<(&FlowRecord, u64)>, NotMeasurable> {
        let mut all = Vec::new();
        for flow in &self.members {
            let one_path = flow.paths.is_empty().then_some(0);
            let Some(counted) = value(flow.record).or(one_path) else {
                return because(format!(
                    "this ground does not know what the receiver of {} held back or got twice",
                    flow.record.label()
                ));
            };
            all.push((flow.record, counted));
        }
        Ok(all)
    }
}

/// Smallest bound that can be divided by: bounds are found to the nanosecond.
const LEAST_BOUND_S: f64 = 1e-9;
