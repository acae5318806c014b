//! Measures of a controller's phases.

use super::{Flows, NotMeasurable, because};
use crate::view::{FlowView, Span};

impl Flows<'_, '_> {
    /// Number of entries into a phase: samples in `phase` that follow a sample in another phase (or
    /// none), mean over the flows. A phase shorter than the sampling interval may be missed.
    pub(crate) fn phase_entries(&self, phase: &str) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        self.shows_phases()?;
        let entries = active.iter().map(|(flow, span)| entries(flow, *span, phase));
        Ok(entries.sum::<usize>() as f64 / active.len() as f64)
    }

    /// Fraction of the time, `0..=1`, that the flows spent in phases whose name begins with
    /// `prefix`.
    pub(crate) fn phase_share(&self, prefix: &str) -> Result<f64, NotMeasurable> {
        self.shows_phases()?;
        let (mut inside, mut total) = (0.0, 0.0);
        for (flow, span) in self.active()? {
            for (row, time) in flow.weighted(span) {
                total += time;
                if row.phase.starts_with(prefix) {
                    inside += time;
                }
            }
        }
        if total > 0.0 {
            return Ok(inside / total);
        }
        because(format!("{} has no samples in the window", self.target))
    }

    /// Fails if a controller shows no phases, as one in the kernel that reports nothing.
    fn shows_phases(&self) -> Result<(), NotMeasurable> {
        for (flow, span) in self.active()? {
            if flow.weighted(span).all(|(row, _)| row.phase.is_empty()) {
                return because(format!("the controller of {} shows no phases", self.target));
            }
        }
        Ok(())
    }
}

fn entries(flow: &FlowView<'_>, span: Span, phase: &str) -> usize {
    let mut before = "";
    let mut count = 0;
    for row in flow.samples.iter() {
        let inside = span.begin < row.time_ns && row.time_ns <= span.end;
        count += usize::from(inside && row.phase == phase && before != phase);
        before = row.phase;
    }
    count
}
