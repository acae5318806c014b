//! Records arranged for measuring: each flow and each link with its time series, and counters at
//! any time.

use crate::{
    FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, Records, TransferRecord,
};
use knee_units::Time;
use std::collections::BTreeMap;

/// The part of a run that is measured; all of it by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start, since the start of the run.
    pub from: Option<Time>,
    /// End, since the start of the run.
    pub until: Option<Time>,
}

/// A non-empty span of time, nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub begin: u64,
    pub end: u64,
}

impl Span {
    fn new(begin: u64, end: u64) -> Option<Span> {
        (begin < end).then_some(Span { begin, end })
    }

    pub(crate) fn seconds(self) -> f64 {
        (self.end - self.begin) as f64 / 1e9
    }
}

/// A time and the two times around it at which counters are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moment {
    before: u64,
    after: u64,
    time: u64,
}

impl Moment {
    /// Returns the time itself.
    pub(crate) fn time(self) -> u64 {
        self.time
    }

    /// Interpolates a growing quantity linearly between the two known times, as counters are. If
    /// one quantity never grows faster than another, it does not appear to when both are read this
    /// way.
    pub(crate) fn read(self, value: impl Fn(u64) -> f64) -> f64 {
        let (before, after) = (value(self.before), value(self.after));
        if self.time <= self.before || self.after <= self.before {
            return before;
        }
        let part = (self.time - self.before) as f64 / (self.after - self.before) as f64;
        before + part * (after - before)
    }
}

/// Records with the rows of each flow and each link together.
#[derive(Clone, Debug)]
pub struct RunView<'a> {
    /// The records behind it.
    pub records: &'a Records,
    /// Time after a flow's start at which its measures begin.
    pub warmup: Time,
    /// The flows, in the order of the records.
    pub flows: Vec<FlowView<'a>>,
    /// The links, by index.
    pub links: Vec<LinkView<'a>>,
}

/// A flow with its time series and everything else recorded about it.
#[derive(Clone, Debug)]
pub struct FlowView<'a> {
    /// Its row in the table of flows.
    pub record: &'a FlowRecord,
    /// Its samples, ascending in time.
    pub samples: Vec<&'a FlowSample>,
    /// Its paths, when it had several.
    pub paths: Vec<PathView<'a>>,
    /// Its objects, in the order of the records.
    pub objects: Vec<&'a ObjectRecord>,
    /// Its transfers, in the order of the records.
    pub transfers: Vec<&'a TransferRecord>,
}

/// A path of a flow with its time series.
#[derive(Clone, Debug)]
pub struct PathView<'a> {
    /// Its row in the table of paths.
    pub record: &'a PathRecord,
    /// Its samples, ascending in time.
    pub samples: Vec<&'a FlowSample>,
}

/// A link with its time series.
#[derive(Clone, Debug)]
pub struct LinkView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its samples, ascending in time.
    pub samples: Vec<&'a LinkSample>,
}

impl<'a> RunView<'a> {
    /// Arranges `records`; takes time linear in the number of rows.
    pub fn new(records: &'a Records, warmup: Time) -> RunView<'a> {
        // Most flows run for most of the time, so all have about as many samples.
        let samples = records.samples.len().div_ceil(records.flows.len().max(1));
        let flows = records.flows.iter().map(|record| FlowView::new(record, samples));
        let links = records.link_names.iter().map(|name| LinkView { name, samples: Vec::new() });
        let mut view = RunView { records, warmup, flows: flows.collect(), links: links.collect() };
        view.distribute_samples();
        view.distribute_parts();
        view
    }

    /// Assigns the tables of parts of flows, which are small or empty in most runs.
    fn distribute_parts(&mut self) {
        let positions = self.positions();
        let at = |flow: u32| positions.get(&flow).copied();
        let records = self.records;
        for record in &records.paths {
            if let Some(at) = at(record.flow) {
                self.flows[at].paths.push(PathView { record, samples: Vec::new() });
            }
        }
        for sample in &records.path_samples {
            let paths = at(sample.flow).map(|at| &mut self.flows[at].paths);
            let mut paths = paths.into_iter().flatten();
            if let Some(path) = paths.find(|path| path.record.path == sample.path) {
                path.samples.push(sample);
            }
        }
        for object in &records.objects {
            if let Some(at) = at(object.flow) {
                self.flows[at].objects.push(object);
            }
        }
        for transfer in &records.transfers {
            if let Some(at) = at(transfer.flow) {
                self.flows[at].transfers.push(transfer);
            }
        }
    }

    /// Returns the position of each flow in the records, by its index in the scenario.
    fn positions(&self) -> BTreeMap<u32, usize> {
        let flows = self.records.flows.iter().enumerate();
        flows.map(|(at, row)| (row.flow, at)).collect()
    }

    fn distribute_samples(&mut self) {
        let positions = self.positions();
        for sample in &self.records.samples {
            if let Some(&at) = positions.get(&sample.flow) {
                self.flows[at].samples.push(sample);
            }
        }
        for sample in &self.records.links {
            if let Some(link) = self.links.get_mut(sample.link as usize) {
                link.samples.push(sample);
            }
        }
    }

    /// Returns the span over which a flow is measured: from `warmup` after its start to its end,
    /// clipped to `window`.
    pub(crate) fn flow_span(&self, flow: &FlowView<'_>, window: Window) -> Option<Span> {
        let warm = flow.record.start_ns.saturating_add(self.warmup.as_nanos());
        clip(warm, flow.record.end_ns, window)
    }

    /// Returns the span over which a link is measured: from `warmup` after the first flow's start
    /// to the last sample, clipped to `window`.
    pub(crate) fn link_span(&self, link: &LinkView<'_>, window: Window) -> Option<Span> {
        let starts = self.records.flows.iter().map(|flow| flow.start_ns);
        let first = starts.min().unwrap_or(0);
        let warm = first.saturating_add(self.warmup.as_nanos());
        clip(warm, link.samples.last()?.time_ns, window)
    }
}

fn clip(begin: u64, end: u64, window: Window) -> Option<Span> {
    let from = window.from.map_or(0, Time::as_nanos);
    let until = window.until.map_or(u64::MAX, Time::as_nanos);
    Span::new(begin.max(from), end.min(until))
}

impl<'a> FlowView<'a> {
    /// Creates a view to which about as many `samples` will be added.
    fn new(record: &'a FlowRecord, samples: usize) -> FlowView<'a> {
        FlowView {
            record,
            samples: Vec::with_capacity(samples),
            paths: Vec::new(),
            objects: Vec::new(),
            transfers: Vec::new(),
        }
    }

    /// Returns a counter at a time; see [`counter_at`].
    pub(crate) fn counter_at(&self, time: u64, counter: fn(&FlowSample) -> u64, total: u64) -> f64 {
        counter_at(&self.samples, self.record, time, counter, total)
    }

    /// Returns a time with the sampling times of the flow around it.
    pub(crate) fn moment(&self, time: u64) -> Moment {
        let record = self.record;
        if time <= record.start_ns || time >= record.end_ns {
            return Moment { before: time, after: time, time };
        }
        let next = self.samples.partition_point(|row| row.time_ns < time);
        let before = next.checked_sub(1).map_or(record.start_ns, |at| self.samples[at].time_ns);
        let after = self.samples.get(next).map_or(record.end_ns, |row| row.time_ns);
        Moment { before, after: after.min(record.end_ns), time }
    }

    /// Returns the new payload sent by a time and not delivered by then, bytes.
    pub(crate) fn on_its_way(&self, time: u64) -> f64 {
        let record = self.record;
        let at = |counter, total| self.counter_at(time, counter, total);
        let sent = at(|row| row.sent_bytes, record.sent_bytes);
        let again = at(|row| row.retransmitted_bytes, record.retransmitted_bytes);
        let delivered = at(|row| row.delivered_bytes, record.delivered_bytes);
        (sent - again - delivered).max(0.0)
    }

    /// Returns the payload that one path of the flow delivered within a span, bytes.
    pub(crate) fn delivered_on(&self, path: &PathView<'_>, span: Span) -> f64 {
        let total = path.record.delivered_bytes;
        let at =
            |time| counter_at(&path.samples, self.record, time, |row| row.delivered_bytes, total);
        at(span.end) - at(span.begin)
    }

    /// Returns the payload delivered in order within a span, bytes.
    pub(crate) fn delivered_in(&self, span: Span) -> f64 {
        self.counted_in(span, |row| row.delivered_bytes, self.record.delivered_bytes)
    }

    /// Returns the payload sent within a span, retransmissions included, bytes.
    pub(crate) fn sent_in(&self, span: Span) -> f64 {
        self.counted_in(span, |row| row.sent_bytes, self.record.sent_bytes)
    }

    /// Returns the payload retransmitted within a span, bytes.
    pub(crate) fn retransmitted_in(&self, span: Span) -> f64 {
        let total = self.record.retransmitted_bytes;
        self.counted_in(span, |row| row.retransmitted_bytes, total)
    }

    fn counted_in(&self, span: Span, counter: fn(&FlowSample) -> u64, total: u64) -> f64 {
        let until_end = self.counter_at(span.end, counter, total);
        until_end - self.counter_at(span.begin, counter, total)
    }

    /// Returns the whole life of the flow.
    pub(crate) fn life(&self) -> Option<Span> {
        Span::new(self.record.start_ns, self.record.end_ns)
    }

    /// Returns the samples that cover part of a span, each with the seconds that it covers.
    pub(crate) fn weighted(&self, span: Span) -> impl Iterator<Item = (&FlowSample, f64)> {
        weighted(&self.samples, span, |row| row.time_ns)
    }
}

impl LinkView<'_> {
    /// Returns a counter at a time, interpolated linearly between the start of the run (zero) and
    /// the samples; constant after the last sample.
    pub(crate) fn counter_at(&self, time: u64, counter: fn(&LinkSample) -> u64) -> f64 {
        let next = self.samples.partition_point(|row| row.time_ns < time);
        let before = match next.checked_sub(1) {
            Some(index) => (self.samples[index].time_ns, counter(self.samples[index])),
            None => (0, 0),
        };
        match self.samples.get(next) {
            Some(row) => interpolate(before, (row.time_ns, counter(row)), time),
            None => before.1 as f64,
        }
    }

    /// Returns the growth of a counter within a span.
    pub(crate) fn counted_in(&self, span: Span, counter: fn(&LinkSample) -> u64) -> f64 {
        self.counter_at(span.end, counter) - self.counter_at(span.begin, counter)
    }

    /// Returns the samples that cover part of a span, each with the seconds that it covers.
    pub(crate) fn weighted(&self, span: Span) -> impl Iterator<Item = (&LinkSample, f64)> {
        weighted(&self.samples, span, |row| row.time_ns)
    }

    /// Returns the value of a counter in the last sample.
    pub(crate) fn total(&self, counter: fn(&LinkSample) -> u64) -> u64 {
        self.samples.last().map_or(0, |row| counter(row))
    }
}

/// Returns the rows that cover part of a span, each with the seconds that it covers: the time since
/// the previous row, or since the start of the span.
fn weighted<'s, R>(
    rows: &'s [&'s R],
    span: Span,
    time: fn(&R) -> u64,
) -> impl Iterator<Item = (&'s R, f64)> {
    let first = rows.partition_point(|row| time(row) <= span.begin);
    let mut previous = span.begin;
    rows[first..].iter().map_while(move |row| {
        if previous >= span.end {
            return None;
        }
        let until = time(row).min(span.end);
        let since = until - previous;
        previous = until;
        Some((*row, since as f64 / 1e9))
    })
}

/// Returns a counter at a time, interpolated linearly between the flow's start (zero), its samples
/// and its end, where it is `total`.
fn counter_at(
    samples: &[&FlowSample],
    flow: &FlowRecord,
    time: u64,
    counter: fn(&FlowSample) -> u64,
    total: u64,
) -> f64 {
    if time >= flow.end_ns {
        return total as f64;
    }
    let next = samples.partition_point(|row| row.time_ns < time);
    let before = match next.checked_sub(1) {
        Some(index) => (samples[index].time_ns, counter(samples[index])),
        None => (flow.start_ns, 0),
    };
    let after = samples.get(next).filter(|row| row.time_ns < flow.end_ns);
    let after = after.map_or((flow.end_ns, total), |row| (row.time_ns, counter(row)));
    interpolate(before, after, time)
}

fn interpolate(before: (u64, u64), after: (u64, u64), time: u64) -> f64 {
    if time <= before.0 || after.0 <= before.0 {
        return before.1 as f64;
    }
    let part = (time - before.0) as f64 / (after.0 - before.0) as f64;
    before.1 as f64 + part * (after.1 as f64 - before.1 as f64)
}
