//! The capacity of the flows' paths over the measured span.

use super::{Flows, NotMeasurable, because};
use crate::rates::PathRate;
use crate::view::{FlowView, Moment, Span};

impl<'r> Flows<'r, '_> {
    /// Returns the mean payload rate that the paths of the flows allowed from the earliest start to
    /// the latest end, each path counted once, bit/s.
    pub(crate) fn capacity(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let (begin, end) = moments(&active);
        let overhead = self.members[0].record.header_overhead.max(1.0);
        let seconds = Span { begin: begin.time(), end: end.time() }.seconds();
        Ok(8.0 * self.allowed_bytes(begin, end)? / overhead / seconds)
    }

    /// Returns the fraction of the possible delivery that was delivered within the flows' spans,
    /// `0..=1`, headers included. Possible is what their paths allowed between the earliest start
    /// and the latest end, each path counted once, plus what was already in flight at each start.
    pub(crate) fn capacity_share(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let (begin, end) = moments(&active);
        let (mut delivered, mut possible) = (0.0, self.allowed_bytes(begin, end)?);
        for (flow, span) in &active {
            let overhead = flow.record.header_overhead.max(1.0);
            delivered += overhead * flow.delivered_in(*span);
            possible += overhead * flow.on_its_way(span.begin);
        }
        match possible > 0.0 {
            true => Ok(delivered / possible),
            false => because(format!("the paths of {} allowed nothing", self.target)),
        }
    }

    /// Returns the IP bytes that the paths of the flows allow, each path counted once.
    pub(super) fn allowed_bytes(&self, begin: Moment, end: Moment) -> Result<f64, NotMeasurable> {
        let paths = self.path_rates()?;
        let bytes = paths.iter().map(|path| path.bytes_between(begin, end));
        match bytes.sum::<Option<f64>>() {
            Some(bytes) => Ok(bytes),
            None => because(format!("a path of {} has no rate", self.target)),
        }
    }

    /// Returns the paths of the flows, each once.
    pub(super) fn path_rates(&self) -> Result<Vec<&'r PathRate>, NotMeasurable> {
        let flows = self.members.iter().map(|flow| flow.record.flow);
        match self.run.records.rates.paths_of(flows) {
            Some(paths) => Ok(paths),
            None => because(format!("the rates of the paths of {} are not known", self.target)),
        }
    }
}

/// Returns the earliest start and the latest end, each interpolated as its flow's counters are.
fn moments(active: &[(&FlowView<'_>, Span)]) -> (Moment, Moment) {
    let first = active.iter().min_by_key(|(_, span)| span.begin);
    let last = active.iter().max_by_key(|(_, span)| span.end);
    let begin = first.map(|(flow, span)| flow.moment(span.begin));
    let end = last.map(|(flow, span)| flow.moment(span.end));
    (begin.unwrap_or_default(), end.unwrap_or_default())
}
