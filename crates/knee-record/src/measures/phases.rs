//! Measures of a controller's phases.

use super::{Flows, NotMeasurable, because};
use crate::rows::FlowSample;
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

    /// Mean time, seconds, that the flows stayed in phases whose name begins with `prefix`.
    pub(crate) fn phase_duration(&self, prefix: &str) -> Result<f64, NotMeasurable> {
        let length = |stay: &Stay| Some((stay.end_ns - stay.begin_ns) as f64 / 1e9);
        self.mean_of_stays(prefix, Span::contains_both, length)
    }

    /// Fraction of the ends of phases whose name begins with `prefix`, `0..=1`, after which one
    /// follows whose name begins with `next`.
    pub(crate) fn phase_followed_by(&self, prefix: &str, next: &str) -> Result<f64, NotMeasurable> {
        let is_next = |stay: &Stay| Some(f64::from(u8::from(stay.next.starts_with(next))));
        self.mean_of_stays(prefix, Span::contains_end, is_next)
    }

    /// Bytes in flight at the end of phases whose name begins with `prefix`, in BDP of the
    /// controller's estimates.
    pub(crate) fn phase_end_in_flight(&self, prefix: &str) -> Result<f64, NotMeasurable> {
        let in_flight =
            |stay: &Stay| Some(stay.last.in_flight_bytes as f64 / estimated_bdp(&stay.last)?);
        self.mean_of_stays(prefix, Span::contains_end, in_flight)
    }

    /// Pacing rate in phases whose name begins with `prefix`, over the estimate of the bandwidth.
    pub(crate) fn pacing_gain(&self, prefix: &str) -> Result<f64, NotMeasurable> {
        self.mean_in_phase(prefix, |row| {
            let rates = [row.pacing_rate_bps, row.bandwidth_estimate_bps];
            rates.iter().all(|rate| *rate > 0).then(|| rates[0] as f64 / rates[1] as f64)
        })
    }

    /// Congestion window in phases whose name begins with `prefix`, in BDP of the controller's
    /// estimates.
    pub(crate) fn window_gain(&self, prefix: &str) -> Result<f64, NotMeasurable> {
        self.mean_in_phase(prefix, |row| Some(row.window_bytes as f64 / estimated_bdp(row)?))
    }

    /// Mean over the time that the flows spent in phases whose name begins with `prefix`.
    fn mean_in_phase(
        &self,
        prefix: &str,
        value: impl Fn(&FlowSample) -> Option<f64>,
    ) -> Result<f64, NotMeasurable> {
        self.shows_phases()?;
        let (mut sum, mut total) = (0.0, 0.0);
        for (flow, span) in self.active()? {
            for (row, time) in flow.weighted(span).filter(|(row, _)| row.phase.starts_with(prefix))
            {
                if let Some(value) = value(&row) {
                    sum += value * time;
                    total += time;
                }
            }
        }
        if total > 0.0 {
            return Ok(sum / total);
        }
        because(format!("{} shows no such value in a phase {prefix}", self.target))
    }

    /// Mean over the stays in phases whose name begins with `prefix`, of all flows.
    fn mean_of_stays(
        &self,
        prefix: &str,
        counts: impl Fn(&Span, &Stay) -> bool,
        value: impl Fn(&Stay) -> Option<f64>,
    ) -> Result<f64, NotMeasurable> {
        self.shows_phases()?;
        let (mut sum, mut count) = (0.0, 0.0);
        for (flow, span) in self.active()? {
            for value in
                stays(flow, prefix).iter().filter(|stay| counts(&span, stay)).filter_map(&value)
            {
                sum += value;
                count += 1.0;
            }
        }
        if count > 0.0 {
            return Ok(sum / count);
        }
        because(format!("{} left no phase {prefix} in the window", self.target))
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

impl Span {
    fn contains_end(&self, stay: &Stay) -> bool {
        self.begin < stay.end_ns && stay.end_ns <= self.end
    }

    fn contains_both(&self, stay: &Stay) -> bool {
        self.begin <= stay.begin_ns && self.contains_end(stay)
    }
}

/// An uninterrupted time in phases.
struct Stay {
    /// Of the first sample in them, and of the first after them.
    begin_ns: u64,
    end_ns: u64,
    /// The last sample in them.
    last: FlowSample,
    /// The phase after them.
    next: &'static str,
}

/// Stays of a flow in phases whose name begins with `prefix`, without one that has not ended.
fn stays(flow: &FlowView<'_>, prefix: &str) -> Vec<Stay> {
    let mut stays = Vec::new();
    let mut current: Option<(u64, FlowSample)> = None;
    for row in flow.samples.iter() {
        current = match (row.phase.starts_with(prefix), current) {
            (true, Some((begin_ns, _))) => Some((begin_ns, row)),
            (true, None) => Some((row.time_ns, row)),
            (false, Some((begin_ns, last))) => {
                stays.push(Stay { begin_ns, end_ns: row.time_ns, last, next: row.phase });
                None
            }
            (false, None) => None,
        };
    }
    stays
}

/// Bandwidth-delay product of the controller's estimates, bytes; `None` without both.
fn estimated_bdp(row: &FlowSample) -> Option<f64> {
    let bytes = row.bandwidth_estimate_bps as f64 * row.min_rtt_estimate_ns as f64 / 8e9;
    (bytes > 0.0).then_some(bytes)
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
