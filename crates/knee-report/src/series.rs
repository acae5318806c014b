//! Converts records to the time series that the page embeds.

use crate::aggregate;
use crate::bands::{GroupSeries, bands};
use crate::encode::Column;
use crate::phases::{Phase, Phases, Spans};
use knee_record::{FlowRecord, FlowSample, LinkSample, Records, Track};
use knee_units::Time;
use knee_units::statistics::Thinning;
use serde::Serialize;
use std::collections::BTreeMap;

/// Largest number of flows drawn one by one; if there are more, each group is a band.
pub(crate) const FLOWS_MAX: usize = 8;
/// Largest number of flows whose series are on the page, to be drawn when selected.
const SINGLE_MAX: usize = 24;
/// Largest number of links drawn.
pub(crate) const LINKS_MAX: usize = 6;

/// The level of detail of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Detail {
    /// Rows of one time series, if there are few series.
    pub rows_max: usize,
    /// Whether the page contains the drawn charts; otherwise the script draws them when they are
    /// first visible.
    pub drawn: bool,
}

impl Detail {
    /// Returns the rows of each of `series` time series; the total is the same however many flows
    /// there are.
    fn rows(self, series: usize) -> usize {
        (self.rows_max * FLOWS_MAX / series.max(FLOWS_MAX)).max(2)
    }
}

/// What the page of one run embeds.
#[derive(Debug, Serialize)]
pub(crate) struct Embedded {
    /// End of the records, nanoseconds.
    pub end_ns: u64,
    /// Whether a link's rate changes, so that the capacity is only a mean.
    #[serde(skip)]
    pub rates_vary: bool,
    /// Flow whose controller is drawn, by its position in `flows`.
    #[serde(skip)]
    pub picked: usize,
    /// Flows shown, in their order in the scenario.
    pub flows: Vec<FlowSeries>,
    /// Groups drawn as bands, if there are many flows.
    pub groups: Vec<GroupSeries>,
    /// Legend of the phases.
    pub phases: Vec<Phase>,
    /// Flows over several paths.
    pub multipath: Vec<crate::multipath::Series>,
    /// Links shown.
    pub links: Vec<LinkSeries>,
    /// Distribution of the RTT.
    pub rtt_distribution: Option<aggregate::Distribution>,
}

/// A flow over time; times in nanoseconds. A column is missing if the flow never had such a value.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FlowSeries {
    /// Name in the legend.
    pub label: String,
    /// Time since the start of the run.
    pub time_ns: Column,
    /// Bytes delivered so far.
    pub delivered_bytes: Option<Column>,
    /// Last RTT measured.
    pub rtt_ns: Option<Column>,
    /// Congestion window.
    pub window_bytes: Option<Column>,
    /// Bytes in flight.
    pub in_flight_bytes: Option<Column>,
    /// Slow-start threshold.
    pub slow_start_threshold_bytes: Option<Column>,
    /// Controller's estimate of the bandwidth.
    pub bandwidth_estimate_bps: Option<Column>,
    /// Controller's estimate of the minimum RTT.
    pub min_rtt_estimate_ns: Option<Column>,
    /// Controller's phases.
    pub phases: Option<Spans>,
    /// RTT without queues; zero if unknown.
    pub base_rtt_ns: u64,
    /// Payload rate of a full path, the mean if it changes; zero if unknown.
    pub full_bps: u64,
    /// Bandwidth-delay product: full rate times base RTT; zero if unknown.
    pub bdp_bytes: u64,
    /// Median time between two rows, nanoseconds.
    pub interval_ns: u64,
}

/// A link over time.
#[derive(Debug, Serialize)]
pub(crate) struct LinkSeries {
    /// Name of the link.
    pub label: String,
    /// Time since the start of the run.
    pub time_ns: Column,
    /// Bytes in the queue.
    pub queue_bytes: Option<Column>,
    /// Queueing delay.
    pub queue_delay_ns: Option<Column>,
    /// Packets dropped so far by queue, AQM or policer.
    pub dropped_packets: Option<Column>,
    /// Bytes that the link has allowed so far; only if its rate changes.
    pub capacity_bytes: Option<Column>,
    /// Bytes of the capacity used so far.
    pub used_bytes: Option<Column>,
    /// Median time between two rows, nanoseconds.
    pub interval_ns: u64,
}

/// The series of a run, and the flows and links that they show.
pub(crate) struct Shown {
    /// Series to embed.
    pub embedded: Embedded,
    /// Rows of the densest series per pair of points; 1 if every sample is drawn.
    pub bucket: usize,
    /// Flows that have samples.
    pub flows_sampled: usize,
    /// Names of the links left out.
    pub links_left_out: Vec<String>,
    /// Positions of the embedded flows that are in the legend; the others are drawn when selected.
    pub alone: Vec<usize>,
}

/// Selects what the page shows from the records.
pub(crate) fn shown(records: &Records, detail: Detail) -> Shown {
    let by_flow = records.samples.tracks();
    let keys = choose(by_flow, records);
    let mut phases = Phases::default();
    let mut bucket = 1;
    let mut flows = Vec::new();
    let rows_max = detail.rows(keys.len());
    for key in &keys {
        let rows = &by_flow[key];
        let thinning = Thinning::new(rows.len(), rows_max);
        bucket = bucket.max(thinning.bucket());
        let label = label(records, *key, by_flow);
        flows.push(flow_series(rows, label, record(records, key.0), &thinning, &mut phases));
    }
    let (groups, alone) = bands(records, by_flow);
    let many = !groups.is_empty();
    let place = |key: &Key| keys.iter().position(|own| own == key);
    let alone = alone.iter().filter_map(place).collect();
    let (links, links_left_out) = link_series(records, detail);
    let embedded = Embedded {
        end_ns: records.end_ns,
        rates_vary: rates_vary(records) || records.rates.vary(Time::from_nanos(records.end_ns)),
        rtt_distribution: aggregate::rtt_distribution(records, &keys, many, by_flow),
        picked: 0,
        flows,
        groups,
        phases: phases.legend(),
        multipath: Vec::new(),
        links,
    };
    Shown { embedded, bucket, flows_sampled: by_flow.len(), links_left_out, alone }
}

/// A flow on one of its paths.
pub(crate) type Key = (u32, u16);
/// The rows of each flow.
pub(crate) type ByFlow = BTreeMap<Key, Track<FlowSample>>;

fn record(records: &Records, flow: u32) -> Option<&FlowRecord> {
    // Grounds write the rows in the order of the scenario.
    let in_place = records.flows.get(flow as usize).filter(|record| record.flow == flow);
    in_place.or_else(|| records.flows.iter().find(|record| record.flow == flow))
}

/// Chooses the flows to embed: the first of each group, then the second of each, until there are
/// [`SINGLE_MAX`].
fn choose(by_flow: &ByFlow, records: &Records) -> Vec<Key> {
    let place = |key: &Key| (record(records, key.0).map_or(0, |record| record.index), *key);
    let mut keys: Vec<Key> = by_flow.keys().copied().collect();
    keys.sort_by_cached_key(place);
    keys.truncate(SINGLE_MAX);
    keys.sort_unstable();
    keys
}

/// Returns `bbr`, or `bbr[1]` if the group has several flows, as in claims.
pub(crate) fn label(records: &Records, key: Key, by_flow: &ByFlow) -> String {
    let Some(flow) = record(records, key.0) else {
        return format!("flow {}", key.0);
    };
    let alone = records.flows.iter().filter(|other| other.name == flow.name).count() == 1;
    let name = if alone { flow.name.clone() } else { format!("{}[{}]", flow.name, flow.index) };
    let paths = by_flow.range((key.0, 0)..=(key.0, u16::MAX)).count();
    if paths == 1 { name } else { format!("{name}, path {}", key.1) }
}

pub(crate) fn flow_series(
    rows: &Track<FlowSample>,
    label: String,
    record: Option<&FlowRecord>,
    thinning: &Thinning,
    phases: &mut Phases,
) -> FlowSeries {
    let fields = FlowSample::FIELDS;
    let gauge = |field| Column::values(&thinning.gauge(&rows.column(field, 0)));
    let delivered = rows.column(fields.delivered_bytes, 0);
    let all_times = rows.times(0);
    let times = thinning.counter(&all_times);
    let base_rtt_ns =
        record.filter(|record| record.scheduler.is_empty()).map_or(0, |record| record.base_rtt_ns);
    let full_bps = record.map_or(0, full_bps);
    FlowSeries {
        label,
        bdp_bytes: bdp_bytes(full_bps, base_rtt_ns),
        delivered_bytes: Column::values(&thinning.counter(&delivered)),
        rtt_ns: gauge(fields.rtt_ns),
        window_bytes: gauge(fields.window_bytes),
        in_flight_bytes: gauge(fields.in_flight_bytes),
        slow_start_threshold_bytes: gauge(fields.slow_start_threshold_bytes),
        bandwidth_estimate_bps: gauge(fields.bandwidth_estimate_bps),
        min_rtt_estimate_ns: gauge(fields.min_rtt_estimate_ns),
        phases: phases.spans(all_times.into_iter().zip(rows.texts()), times.len().max(2)),
        base_rtt_ns,
        full_bps,
        interval_ns: usual_gap(&times),
        time_ns: Column::times(&times),
    }
}

/// Returns the bandwidth-delay product of a path.
pub(crate) fn bdp_bytes(full_bps: u64, base_rtt_ns: u64) -> u64 {
    (u128::from(full_bps) * u128::from(base_rtt_ns) / 8_000_000_000) as u64
}

/// Returns the payload rate of a full path, the mean if it changes; zero if unlimited.
pub(crate) fn full_bps(record: &FlowRecord) -> u64 {
    (record.path_rate_bps as f64 / record.header_overhead.max(1.0)) as u64
}

/// Returns whether the capacity of a link varies over time, by more than a hundredth and a packet
/// or two.
fn rates_vary(records: &Records) -> bool {
    records.links.tracks().values().any(rate_varies)
}

fn rate_varies(rows: &Track<LinkSample>) -> bool {
    let Some(last) = rows.last() else { return false };
    let mean = last.capacity_bytes as f64 / (last.time_ns as f64).max(1.0);
    let (times, bytes) = (rows.times(0), rows.column(LinkSample::FIELDS.capacity_bytes, 0));
    times.windows(2).zip(bytes.windows(2)).any(|(times, bytes)| {
        let expected = mean * (times[1] - times[0]) as f64;
        let allowed = bytes[1].saturating_sub(bytes[0]);
        (allowed as f64 - expected).abs() > 0.01 * expected + 3000.0
    })
}

/// Returns the median distance of neighbouring times; zero if there are fewer than two.
pub(crate) fn usual_gap(times: &[u64]) -> u64 {
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = gaps.len() / 2;
    if let Some(first) = gaps.first().filter(|first| gaps.iter().all(|gap| gap == *first)) {
        return *first;
    }
    if gaps.is_empty() { 0 } else { *gaps.select_nth_unstable(middle).1 }
}

/// Returns the links with the longest queues, and the names of the others.
fn link_series(records: &Records, detail: Detail) -> (Vec<LinkSeries>, Vec<String>) {
    let by_link = records.links.tracks();
    let longest: BTreeMap<u32, Option<u64>> = by_link
        .iter()
        .map(|((link, _), rows)| (*link, rows.iter().map(|row| row.queue_bytes).max()))
        .collect();
    let mut ranked: Vec<u32> = longest.keys().copied().collect();
    ranked.sort_by_key(|link| std::cmp::Reverse(longest[link]));
    let queued = ranked.iter().take_while(|link| longest[link] > Some(0)).count();
    let mut left_out = ranked.split_off(queued.min(LINKS_MAX));
    ranked.sort_unstable();
    left_out.sort_unstable();
    let name = |link: &u32| link_name(records, *link);
    let series = |link: &u32| one_link(&by_link[&(*link, 0)], name(link), detail);
    (ranked.iter().map(series).collect(), left_out.iter().map(name).collect())
}

fn link_name(records: &Records, link: u32) -> String {
    let name = records.link_names.get(link as usize).cloned();
    name.unwrap_or_else(|| format!("link {link}"))
}

fn one_link(track: &Track<LinkSample>, label: String, detail: Detail) -> LinkSeries {
    let fields = LinkSample::FIELDS;
    let rate_varies = rate_varies(track);
    let thinning = Thinning::new(track.len(), detail.rows_max);
    let all_times = track.times(0);
    let times = thinning.counter(&all_times);
    let any_counter = |field| {
        let values = track.column(field, 0);
        Column::values(&thinning.counter(&values))
    };
    let counter = |field| any_counter(field).filter(|_| rate_varies);
    LinkSeries {
        label,
        capacity_bytes: counter(fields.capacity_bytes),
        used_bytes: counter(fields.used_bytes),
        interval_ns: usual_gap(&times),
        time_ns: Column::times(&times),
        queue_bytes: Column::values(&thinning.gauge(&track.column(fields.queue_bytes, 0))),
        queue_delay_ns: Column::values(&thinning.gauge(&track.column(fields.queue_delay_ns, 0))),
        dropped_packets: any_counter(fields.dropped_packets),
    }
}
