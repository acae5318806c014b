//! Records arranged for measuring: each flow and each link with its time series, and counters at
//! any time.

use crate::counters::{Covering, Delivered, counter_at, interpolate, weighted};
use crate::timed::Field;
use crate::track::Track;
use crate::{
    FlowRecord, FlowSample, LinkSample, ObjectRecord, PathRecord, Records, TransferRecord,
};
use knee_units::Time;
use std::borrow::Cow;
use std::cell::OnceCell;
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
    pub samples: Cow<'a, Track<FlowSample>>,
    /// Its paths, when it had several.
    pub paths: Vec<PathView<'a>>,
    /// Its objects, in the order of the records.
    pub objects: Vec<&'a ObjectRecord>,
    /// Its transfers, in the order of the records.
    pub transfers: Vec<&'a TransferRecord>,
    /// Standing queue over the span for which it was asked first, seconds: several measures are made
    /// of it.
    standing: OnceCell<(Span, Option<f64>)>,
}

/// A path of a flow with its time series.
#[derive(Clone, Debug)]
pub struct PathView<'a> {
    /// Its row in the table of paths.
    pub record: &'a PathRecord,
    /// Its samples, ascending in time.
    pub samples: Cow<'a, Track<FlowSample>>,
}

/// A link with its time series.
#[derive(Clone, Debug)]
pub struct LinkView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its samples, ascending in time.
    pub samples: Cow<'a, Track<LinkSample>>,
}

impl<'a> RunView<'a> {
    /// Arranges `records`.
    pub fn new(records: &'a Records, warmup: Time) -> RunView<'a> {
        let flows = records.flows.iter().map(FlowView::new);
        let links =
            records.link_names.iter().map(|name| LinkView { name, samples: Cow::default() });
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
                self.flows[at].paths.push(PathView { record, samples: Cow::default() });
            }
        }
        for ((flow, number), track) in records.path_samples.tracks() {
            let paths = at(*flow).map(|at| &mut self.flows[at].paths);
            let mut paths = paths.into_iter().flatten();
            if let Some(path) = paths.find(|path| path.record.path == *number) {
                path.samples = Cow::Borrowed(track);
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
        for ((flow, _), track) in self.records.samples.tracks() {
            if let Some(&at) = positions.get(flow) {
                join(&mut self.flows[at].samples, track);
            }
        }
        for ((link, _), track) in self.records.links.tracks() {
            if let Some(link) = self.links.get_mut(*link as usize) {
                link.samples = Cow::Borrowed(track);
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
    fn new(record: &'a FlowRecord) -> FlowView<'a> {
        FlowView {
            record,
            samples: Cow::default(),
            paths: Vec::new(),
            objects: Vec::new(),
            transfers: Vec::new(),
            standing: OnceCell::new(),
        }
    }

    /// Returns a counter at a time; see [`counter_at`].
    pub(crate) fn counter_at(&self, time: u64, counter: Field<FlowSample>, total: u64) -> f64 {
        counter_at(&self.samples, self.record, time, counter, total)
    }

    /// Returns a time with the sampling times of the flow around it.
    pub(crate) fn moment(&self, time: u64) -> Moment {
        let record = self.record;
        if time <= record.start_ns || time >= record.end_ns {
            return Moment { before: time, after: time, time };
        }
        let (before, after) = self.samples.points_around(time, FlowSample::FIELDS.time_ns);
        let before = before.map_or(record.start_ns, |(before_ns, _)| before_ns);
        let after = after.map_or(record.end_ns, |(after_ns, _)| after_ns);
        Moment { before, after: after.min(record.end_ns), time }
    }

    /// Returns the new payload sent by a time and not delivered by then, bytes.
    pub(crate) fn on_its_way(&self, time: u64) -> f64 {
        let record = self.record;
        let fields = FlowSample::FIELDS;
        let at = |counter, total| self.counter_at(time, counter, total);
        let sent = at(fields.sent_bytes, record.sent_bytes);
        let again = at(fields.retransmitted_bytes, record.retransmitted_bytes);
        let delivered = at(fields.delivered_bytes, record.delivered_bytes);
        (sent - again - delivered).max(0.0)
    }

    /// Returns the payload that one path of the flow delivered within a span, bytes.
    pub(crate) fn delivered_on(&self, path: &PathView<'_>, span: Span) -> f64 {
        let total = path.record.delivered_bytes;
        let at = |time| {
            counter_at(&path.samples, self.record, time, FlowSample::FIELDS.delivered_bytes, total)
        };
        at(span.end) - at(span.begin)
    }

    /// Returns the payload delivered in order, for reading it at many times.
    pub(crate) fn delivered(&self) -> Delivered<'a> {
        let bytes = self.samples.column(FlowSample::FIELDS.delivered_bytes, 0);
        let points = self.samples.times(0).into_iter().zip(bytes);
        Delivered::new(self.record, points.collect())
    }

    /// Returns the payload delivered in order within a span, bytes.
    pub(crate) fn delivered_in(&self, span: Span) -> f64 {
        self.counted_in(span, FlowSample::FIELDS.delivered_bytes, self.record.delivered_bytes)
    }

    /// Returns the payload sent within a span, retransmissions included, bytes.
    pub(crate) fn sent_in(&self, span: Span) -> f64 {
        self.counted_in(span, FlowSample::FIELDS.sent_bytes, self.record.sent_bytes)
    }

    /// Returns the payload retransmitted within a span, bytes.
    pub(crate) fn retransmitted_in(&self, span: Span) -> f64 {
        let total = self.record.retransmitted_bytes;
        self.counted_in(span, FlowSample::FIELDS.retransmitted_bytes, total)
    }

    fn counted_in(&self, span: Span, counter: Field<FlowSample>, total: u64) -> f64 {
        let until_end = self.counter_at(span.end, counter, total);
        until_end - self.counter_at(span.begin, counter, total)
    }

    /// Returns the whole life of the flow.
    pub(crate) fn life(&self) -> Option<Span> {
        Span::new(self.record.start_ns, self.record.end_ns)
    }

    /// Returns when a path had delivered its part, seconds from the flow's start: when payload sent
    /// on it was last acknowledged; where the ground did not note that, at the first sample with all
    /// that it delivered. At most the flow's end, after which only copies arrive. `None` if it
    /// delivered nothing.
    pub(crate) fn finish_time(&self, path: &PathView<'_>) -> Option<f64> {
        let PathRecord { delivered_bytes, finished_ns, .. } = *path.record;
        let FlowRecord { start_ns, end_ns, .. } = *self.record;
        let sampled = || path.samples.iter().find(|row| row.delivered_bytes >= delivered_bytes);
        let finished = finished_ns.or_else(|| Some(sampled()?.time_ns)).unwrap_or(end_ns);
        let time = finished.min(end_ns).saturating_sub(start_ns) as f64 / 1e9;
        (delivered_bytes > 0).then_some(time)
    }

    /// Returns the samples that cover part of a span, each with the seconds that it covers.
    pub(crate) fn weighted(&self, span: Span) -> impl Iterator<Item = (FlowSample, f64)> {
        weighted(&self.samples, span)
    }

    /// Returns the standing queue over a span, which `compute` computes.
    pub(crate) fn standing(&self, span: Span, compute: impl Fn() -> Option<f64>) -> Option<f64> {
        let (of, standing) = self.standing.get_or_init(|| (span, compute()));
        if *of == span { *standing } else { compute() }
    }

    /// Returns a field of the samples that cover part of a span.
    pub(crate) fn covering(&self, span: Span, field: Field<FlowSample>) -> Covering {
        Covering::new(&self.samples, span, field)
    }

    /// Returns the RTTs of the samples that cover part of a span: those of the path if the sender
    /// does not tell its own.
    pub(crate) fn round_trips(&self, span: Span) -> Covering {
        let own = self.covering(span, FlowSample::FIELDS.rtt_ns);
        if self.record.rtt_min_ns > 0 || own.has_values() {
            return own;
        }
        self.covering(span, FlowSample::FIELDS.path_rtt_ns)
    }
}

impl LinkView<'_> {
    /// Returns a counter at a time, interpolated linearly between the start of the run (zero) and
    /// the samples; constant after the last sample.
    pub(crate) fn counter_at(&self, time: u64, counter: fn(&LinkSample) -> u64) -> f64 {
        let (before, after) = self.samples.around(time);
        let before = before.map_or((0, 0), |row| (row.time_ns, counter(&row)));
        match after {
            Some(row) => interpolate(before, (row.time_ns, counter(&row)), time),
            None => before.1 as f64,
        }
    }

    /// Returns the growth of a counter within a span.
    pub(crate) fn counted_in(&self, span: Span, counter: fn(&LinkSample) -> u64) -> f64 {
        self.counter_at(span.end, counter) - self.counter_at(span.begin, counter)
    }

    /// Returns the samples that cover part of a span, each with the seconds that it covers.
    pub(crate) fn weighted(&self, span: Span) -> impl Iterator<Item = (LinkSample, f64)> {
        weighted(&self.samples, span)
    }

    /// Returns the value of a counter in the last sample.
    pub(crate) fn total(&self, counter: fn(&LinkSample) -> u64) -> u64 {
        self.samples.last().map_or(0, |row| counter(&row))
    }
}

/// Adds the rows of a track, ordered by time.
fn join<'a>(all: &mut Cow<'a, Track<FlowSample>>, track: &'a Track<FlowSample>) {
    if all.is_empty() {
        *all = Cow::Borrowed(track);
        return;
    }
    let mut rows: Vec<FlowSample> = all.iter().chain(track.iter()).collect();
    rows.sort_by_key(|row| row.time_ns);
    *all = Cow::Owned(rows.into_iter().collect());
}
