//! Measures of delay: RTT, queueing delay, standing queue.

use super::{Flows, NotMeasurable, because};
use crate::counters::Covering;
use crate::timed::Field;
use crate::view::{LinkView, RunView, Span, Window};
use crate::{FlowRecord, FlowSample, LinkSample};
use knee_scenario::Statistic;
use knee_units::statistics::{Distribution, SortedIntegers, Weighted, WeightedIntegers};

/// Length of the windows over which the standing queue is taken.
const STANDING_WINDOW_NS: u64 = 1_000_000_000;

impl Flows<'_, '_> {
    /// RTT, seconds: distribution over time of the last RTT measured. The minimum and maximum are
    /// taken over every RTT measured if the flows are measured from start to end, otherwise over
    /// the samples.
    pub(crate) fn rtt(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        if let Some(extreme) = self.extreme_rtt(statistic, |rtt, _| rtt)? {
            return Ok(extreme);
        }
        Ok(self.rtt_over_time()?.statistic(statistic))
    }

    /// RTT of the path, seconds: base RTT and what the last packets in both directions waited in
    /// queues, distribution over time.
    pub(crate) fn path_rtt(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        Ok(self.path_rtt_over_time()?.statistic(statistic))
    }

    pub(crate) fn path_rtt_over_time(&self) -> Result<Distribution, NotMeasurable> {
        let times = self.integers("path RTT", FlowSample::FIELDS.path_rtt_ns)?;
        Ok(times.distribution(&in_seconds))
    }

    pub(crate) fn rtt_over_time(&self) -> Result<Distribution, NotMeasurable> {
        Ok(self.rtts()?.distribution(&in_seconds))
    }

    /// Returns the RTTs, nanoseconds, weighted by time.
    fn rtts(&self) -> Result<&SortedIntegers, NotMeasurable> {
        let rtts = self.rtts.get_or_init(|| self.integers("RTT", FlowSample::FIELDS.rtt_ns));
        rtts.as_ref().map_err(Clone::clone)
    }

    /// Returns the distribution over time of a function of the RTT, nanoseconds, that does not
    /// descend. Of a flow whose sender does not tell its RTT, that of the path.
    fn of_rtts(
        &self,
        value: fn(u64, &FlowRecord) -> Option<f64>,
    ) -> Result<Distribution, NotMeasurable> {
        let active = self.active()?;
        let record = active[0].0.record;
        let same = active.iter().all(|(flow, _)| flow.record.base_rtt_ns == record.base_rtt_ns);
        let measured = active.iter().all(|(flow, _)| flow.record.rtt_min_ns > 0);
        if same && measured && record.base_rtt_ns > 0 {
            let value = |rtt| value(rtt, record).unwrap_or_default();
            return Ok(self.rtts()?.distribution(&value));
        }
        let mut weighted = Weighted::default();
        for (flow, span) in active {
            flow.round_trips(span).runs(|rtt, seconds, count| {
                if let Some(value) = value(rtt, flow.record) {
                    weighted.add_times(value, seconds, count);
                }
            });
        }
        self.known("RTT", Distribution::of(weighted))
    }

    /// Returns a field, in which zero means that there is no value, weighted by time.
    fn integers(
        &self,
        what: &str,
        field: Field<FlowSample>,
    ) -> Result<SortedIntegers, NotMeasurable> {
        let mut weighted = WeightedIntegers::default();
        for (flow, span) in self.active()? {
            flow.covering(span, field).add_to(&mut weighted);
        }
        self.known(what, weighted.sorted())
    }

    fn known<T>(&self, what: &str, found: Option<T>) -> Result<T, NotMeasurable> {
        match found {
            Some(found) => Ok(found),
            None => because(format!("{} has no {what} in the window", self.target)),
        }
    }

    /// Smoothed RTT, seconds: distribution over time.
    pub(crate) fn smoothed_rtt(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        Ok(self.smoothed_rtt_over_time()?.statistic(statistic))
    }

    pub(crate) fn smoothed_rtt_over_time(&self) -> Result<Distribution, NotMeasurable> {
        let times = self.integers("smoothed RTT", FlowSample::FIELDS.srtt_ns)?;
        Ok(times.distribution(&in_seconds))
    }

    /// The controller's estimate of the minimum RTT, seconds: distribution
    /// over time.
    pub(crate) fn min_rtt_estimate(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        Ok(self.min_rtt_estimate_over_time()?.statistic(statistic))
    }

    pub(crate) fn min_rtt_estimate_over_time(&self) -> Result<Distribution, NotMeasurable> {
        let field = FlowSample::FIELDS.min_rtt_estimate_ns;
        Ok(self.integers("estimate of the minimum RTT", field)?.distribution(&in_seconds))
    }

    /// The controller's estimate of the bandwidth, payload, bit/s:
    /// distribution over time.
    pub(crate) fn bandwidth_estimate(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        let field = FlowSample::FIELDS.bandwidth_estimate_bps;
        let rates = self.integers("estimate of the bandwidth", field)?;
        Ok(rates.distribution(&|rate| rate as f64).statistic(statistic))
    }

    /// Queueing delay of flows that each use one path, seconds: `max(0, RTT - base RTT)`,
    /// distribution over time. Minimum and maximum are taken as for the RTT.
    pub(crate) fn queueing_delay(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        self.each_over_one_path()?;
        if let Some(extreme) = self.extreme_rtt(statistic, above_base)? {
            return Ok(extreme);
        }
        Ok(self.queueing_delay_over_time()?.statistic(statistic))
    }

    pub(crate) fn queueing_delay_over_time(&self) -> Result<Distribution, NotMeasurable> {
        self.each_over_one_path()?;
        self.of_rtts(|rtt, record| Some(above_base(in_seconds(rtt), record)))
    }

    /// Fails for flows over several paths, which have no single base RTT.
    fn each_over_one_path(&self) -> Result<(), NotMeasurable> {
        match self.members.iter().find(|flow| !flow.paths.is_empty()) {
            None => Ok(()),
            Some(flow) => because(format!(
                "{} goes over several paths, each with an empty RTT of its own; measure the \
                 queue of a link instead",
                flow.record.name
            )),
        }
    }

    /// RTT divided by the base RTT, distribution over time. At least 1: packets smaller than the full
    /// segments of the base RTT can return sooner.
    pub(crate) fn relative_rtt(&self) -> Result<Distribution, NotMeasurable> {
        self.each_over_one_path()?;
        self.of_rtts(|rtt, record| Some((in_seconds(rtt) / seconds(record.base_rtt_ns)?).max(1.0)))
    }

    /// Standing queue, seconds: mean over one-second windows of the smallest queueing delay in
    /// each; for a group, the mean over its flows. Windows follow one another from b; a last window
    /// that e cuts short counts only if there is no other.
    pub(crate) fn standing_queue(&self) -> Result<f64, NotMeasurable> {
        self.each_over_one_path()?;
        let active = self.active()?;
        let standing = active.iter().filter_map(|(flow, span)| {
            flow.standing(*span, || {
                let rtts = flow.round_trips(*span);
                mean_of_minima(&rtts, *span, false, |rtt| above_base(in_seconds(rtt), flow.record))
            })
        });
        let standing: Vec<f64> = standing.collect();
        if standing.is_empty() {
            return because(format!("{} has no RTT samples in the window", self.target));
        }
        Ok(standing.iter().sum::<f64>() / standing.len() as f64)
    }

    pub(super) fn over_time(
        &self,
        what: &str,
        value: impl Fn(&FlowSample, &FlowRecord) -> Option<f64>,
    ) -> Result<Distribution, NotMeasurable> {
        let mut weighted = Weighted::default();
        for (flow, span) in self.active()? {
            for (row, time) in flow.weighted(span) {
                value(&row, flow.record).into_iter().for_each(|value| weighted.add(value, time));
            }
        }
        self.known(what, Distribution::of(weighted))
    }

    /// Returns the extreme over every RTT measured, not only the sampled ones. It is known only for
    /// whole lifetimes.
    fn extreme_rtt(
        &self,
        statistic: Statistic,
        value: impl Fn(f64, &FlowRecord) -> f64,
    ) -> Result<Option<f64>, NotMeasurable> {
        let active = self.active()?;
        if active.iter().any(|(flow, span)| flow.life() != Some(*span)) {
            return Ok(None);
        }
        let extremes = |rtt: fn(&FlowRecord) -> u64| {
            let records = active.iter().map(|(flow, _)| flow.record);
            let known = records.filter_map(move |record| Some((seconds(rtt(record))?, record)));
            known.map(|(rtt, record)| value(rtt, record)).collect::<Vec<_>>()
        };
        Ok(match statistic {
            Statistic::Min => {
                extremes(|record| record.rtt_min_ns).into_iter().min_by(f64::total_cmp)
            }
            Statistic::Max => {
                extremes(|record| record.rtt_max_ns).into_iter().max_by(f64::total_cmp)
            }
            _ => None,
        })
    }
}

impl LinkView<'_> {
    /// Queueing delay of a link, seconds: the time that an arriving packet would wait, distribution
    /// over time.
    pub(crate) fn queueing_delay(
        &self,
        run: &RunView<'_>,
        window: Window,
        statistic: Statistic,
    ) -> Result<f64, NotMeasurable> {
        let delays = self.over_time(run, window, |row| row.queue_delay_ns as f64 / 1e9)?;
        Ok(delays.statistic(statistic))
    }

    pub(crate) fn over_time(
        &self,
        run: &RunView<'_>,
        window: Window,
        value: impl Fn(&LinkSample) -> f64,
    ) -> Result<Distribution, NotMeasurable> {
        let mut weighted = Weighted::default();
        let rows = self.weighted(self.span(run, window)?);
        rows.for_each(|(row, time)| weighted.add(value(&row), time));
        match Distribution::of(weighted) {
            Some(distribution) => Ok(distribution),
            None => because(format!("link {} has no samples in the window", self.name)),
        }
    }

    /// Standing queue of a link, seconds: computed as for a flow, from the link's own delay.
    pub(crate) fn standing_queue(
        &self,
        run: &RunView<'_>,
        window: Window,
    ) -> Result<f64, NotMeasurable> {
        let span = self.span(run, window)?;
        let delays = Covering::new(&self.samples, span, LinkSample::FIELDS.queue_delay_ns);
        match mean_of_minima(&delays, span, true, in_seconds) {
            Some(mean) => Ok(mean),
            None => because(format!("link {} has no samples in the window", self.name)),
        }
    }
}

fn in_seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Converts nanoseconds to seconds; zero in a row means that there is no value.
fn seconds(nanos: u64) -> Option<f64> {
    (nanos > 0).then_some(in_seconds(nanos))
}

fn above_base(rtt: f64, record: &FlowRecord) -> f64 {
    (rtt - record.base_rtt_ns as f64 / 1e9).max(0.0)
}

/// Returns the mean over the windows of `span` of the smallest delay in each, given how to convert
/// values to seconds, which must not descend, and whether zero is a value. Windows without a value
/// do not count.
fn mean_of_minima(
    values: &Covering,
    span: Span,
    zero: bool,
    delay: impl Fn(u64) -> f64,
) -> Option<f64> {
    let whole = (span.end - span.begin) / STANDING_WINDOW_NS;
    let windows = usize::try_from(whole.max(1)).ok()?;
    let minima = values.minima(STANDING_WINDOW_NS, windows, zero);
    let minima: Vec<f64> = minima.into_iter().flatten().map(delay).collect();
    (!minima.is_empty()).then(|| minima.iter().sum::<f64>() / minima.len() as f64)
}
