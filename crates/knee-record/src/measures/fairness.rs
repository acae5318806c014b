//! Measures of how flows share capacity: Jain's index, convergence, takeover.

use super::{Flows, NotMeasurable, because};
use crate::counters::Delivered;
use crate::view::{Moment, Span};
use knee_units::Time;

/// Interval over which goodput is averaged to judge convergence: longer than a probing cycle,
/// shorter than a user's patience.
const AVERAGING_NS: u64 = 1_000_000_000;

impl<'a> Flows<'_, 'a> {
    /// Jain's index, `1/n..=1`: `(sum of x)^2 / (n * sum of x^2)` over the
    /// goodputs x of the n flows, each over its own span. (Jain, Chiu, Hawe,
    /// DEC-TR-301, 1984.)
    pub(crate) fn jain(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let rates: Vec<f64> =
            active.iter().map(|(flow, span)| flow.delivered_in(*span) / span.seconds()).collect();
        match jain_index(&rates) {
            Some(index) => Ok(index),
            None => because("nothing was delivered"),
        }
    }

    /// Convergence time, seconds: from the last start of these flows (or the start of the window,
    /// if later) to the first moment t such that in every second within `[t, t + hold]` each flow's
    /// goodput is within `band` of the mean of all, `|x - m| <= band * m`. If the hold time is
    /// under a second, goodput is averaged over the hold time instead. The moments tried are the
    /// start and the sampling times. Infinite if the flows do not converge.
    pub(crate) fn convergence_time(&self, band: f64, hold: Time) -> Result<f64, NotMeasurable> {
        if self.members.len() < 2 {
            return because("convergence takes at least two flows");
        }
        let span = self.common_span()?;
        if span.end - span.begin < hold.as_nanos() {
            return because("the flows run together for less than the hold time");
        }
        let stretch = AVERAGING_NS.min(hold.as_nanos()).max(1);
        let moments = self.moments(span);
        let flows = self.delivered();
        let fair = |moment: u64| fair_within(&flows, moment, stretch, band);
        let settled = first_lasting(&moments, span.end, hold.as_nanos(), stretch, fair);
        self.unless_cut_off(since(span.begin, settled), span.end)
    }

    /// Takeover time, seconds: from the start of the window to the end of the first interval of
    /// length `hold` in which the joint goodput of these flows reaches `fraction` of what their
    /// paths allow, headers excluded. Intervals start with the window or at a sampling time.
    /// Infinite if there is no such interval.
    pub(crate) fn takeover_time(&self, fraction: f64, hold: Time) -> Result<f64, NotMeasurable> {
        let Some(from) = self.window.from.map(Time::as_nanos) else {
            return because("takeover is measured from a given time: the claim needs `from`");
        };
        let hold = hold.as_nanos().max(1);
        let until = self.window.until.map_or(u64::MAX, Time::as_nanos);
        let end = until.min(self.run.records.end_ns);
        let overhead = self.members[0].record.header_overhead.max(1.0);
        let first = self.members[0];
        // Returns the reason if the capacity is not known.
        self.allowed_bytes(Moment::default(), Moment::default())?;
        let flows = self.delivered();
        let reached = |moment: &u64| {
            let span = Span { begin: *moment, end: moment.saturating_add(hold) };
            let bytes: f64 = flows.iter().map(|flow| flow.within(span)).sum();
            let allowed = self.allowed_bytes(first.moment(span.begin), first.moment(span.end));
            allowed.is_ok_and(|some| some > 0.0 && overhead * bytes >= fraction * some)
        };
        let moments = self.moments(Span { begin: from, end });
        let mut moments = moments.iter();
        let first = moments.find(|moment| moment.saturating_add(hold) <= end && reached(moment));
        self.unless_cut_off(since(from, first.map(|moment| moment + hold)), end)
    }

    /// Fails if the value is infinite and an interruption of the run ended the time looked at.
    fn unless_cut_off(&self, value: f64, end: u64) -> Result<f64, NotMeasurable> {
        let whole = end < self.run.records.end_ns;
        if whole { Ok(value) } else { self.unless_interrupted(value) }
    }

    /// Returns the time within the window during which all flows run. The warm-up is ignored.
    fn common_span(&self) -> Result<Span, NotMeasurable> {
        let from = self.window.from.map_or(0, Time::as_nanos);
        let until = self.window.until.map_or(u64::MAX, Time::as_nanos);
        let starts = self.members.iter().map(|flow| flow.record.start_ns);
        let ends = self.members.iter().map(|flow| flow.record.end_ns);
        let begin = starts.fold(from, u64::max);
        let end = ends.fold(until, u64::min);
        if begin >= end {
            return because(format!("the flows of {} never run together", self.target));
        }
        Ok(Span { begin, end })
    }

    fn delivered(&self) -> Vec<Delivered<'a>> {
        self.members.iter().map(|flow| flow.delivered()).collect()
    }

    /// Returns the start of a span and the sampling times within it.
    fn moments(&self, span: Span) -> Vec<u64> {
        let times = self.members.iter().flat_map(|flow| flow.samples.iter());
        let times = times.map(|row| row.time_ns);
        let mut moments: Vec<u64> = times
            .filter(|time| span.begin < *time && *time < span.end)
            .chain([span.begin])
            .collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}

/// Computes Jain's index of `rates`; `None` if all are zero.
pub fn jain_index(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    (squares > 0.0).then(|| (sum * sum / (rates.len() as f64 * squares)).min(1.0))
}

fn fair_within(flows: &[Delivered<'_>], begin: u64, stretch: u64, band: f64) -> bool {
    let span = Span { begin, end: begin + stretch };
    let bytes: Vec<f64> = flows.iter().map(|flow| flow.within(span)).collect();
    let mean = bytes.iter().sum::<f64>() / bytes.len() as f64;
    // A tolerance of a tenth of a byte, because interpolation rounds.
    let fair = |bytes: &f64| (bytes - mean).abs() <= band * mean + 0.1;
    mean > 0.0 && bytes.iter().all(fair)
}

/// Returns the first moment from which `good` holds for every stretch within the next `hold`, all
/// of it before `end`.
fn first_lasting(
    moments: &[u64],
    end: u64,
    hold: u64,
    stretch: u64,
    good: impl Fn(u64) -> bool,
) -> Option<u64> {
    let mut since = None;
    for &moment in moments {
        if moment + stretch > end || !good(moment) {
            since = None;
            continue;
        }
        let first = *since.get_or_insert(moment);
        if moment + stretch >= first + hold {
            return Some(first);
        }
    }
    None
}

fn since(begin: u64, moment: Option<u64>) -> f64 {
    moment.map_or(f64::INFINITY, |moment| (moment - begin) as f64 / 1e9)
}
