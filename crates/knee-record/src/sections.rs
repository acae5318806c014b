//! The parts of a flow's summary that only some flows have: paths, page, bursts, video, transfers.

use crate::ObjectRecord;
use crate::measures::{Flows, TransferValue, is_burst, is_of_page, is_segment};
use crate::summary::{Spread, micros, seconds_to_us, us};
use crate::view::FlowView;
use knee_scenario::{SizeRange, Statistic};
use knee_units::statistics::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One path of a flow over several, from start to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSummary {
    /// Its name.
    pub name: String,
    /// Whether it is used only if no other path is active.
    pub backup: bool,
    /// Its share of the payload delivered over all paths of the flow, after the
    /// warm-up; null if nothing was delivered.
    pub share: Option<f64>,
    /// Payload bytes that its subflows delivered.
    pub delivered_bytes: u64,
    /// Payload bytes sent on it, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted on it.
    pub retransmitted_bytes: u64,
    /// Smallest RTT measured; null without measurements.
    pub rtt_min_us: Option<f64>,
    /// Largest RTT measured.
    pub rtt_max_us: Option<f64>,
    /// Propagation delay from sender to receiver.
    pub one_way_delay_us: f64,
    /// Mean rate that it allowed while the flow lasted, that of its slowest
    /// link; null if unlimited.
    pub rate_bps: Option<f64>,
    /// Time from the flow's start until it had delivered its part: until payload sent on it was last
    /// acknowledged; null if it delivered nothing.
    #[serde(default)]
    pub finish_us: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageSummary {
    /// Time from the flow's start to the arrival of the last object; null if an
    /// object did not arrive.
    pub load_us: Option<f64>,
    /// Objects requested.
    pub objects: usize,
    /// Objects that arrived.
    pub arrived: usize,
    /// Time from the flow's start to the arrival of each object; null if one
    /// did not arrive.
    pub object_us: Option<Spread>,
}

/// Requests with pauses in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstsSummary {
    /// Bursts requested.
    pub asked: usize,
    /// Bursts that arrived.
    pub arrived: usize,
    /// Time from a request to the arrival of the last byte of its answer; null
    /// if none arrived.
    pub time_us: Option<Spread>,
}

/// A video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VideoSummary {
    /// Segments that arrived.
    pub segments: usize,
    /// Mean bitrate over the media time that arrived; null if none arrived.
    pub bitrate_bps: Option<f64>,
    /// Share of the media time in each quality, from the lowest to the highest
    /// that occurred.
    pub quality_shares: Vec<f64>,
    /// Segments whose quality differs from that of the previous segment.
    pub switches: Option<f64>,
    /// Total time of stalls, without the start-up.
    pub stall_us: Option<f64>,
    /// Time from the flow's start until playback began; null if it did not
    /// begin.
    pub startup_us: Option<f64>,
}

/// Transfers of a size class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransferSummary {
    /// `all`, or the class: `100 kB to 1 MB`.
    pub name: String,
    /// Smallest size of the class; null if unbounded.
    pub at_least_bytes: Option<u64>,
    /// All sizes are below this; null if unbounded.
    pub below_bytes: Option<u64>,
    /// Transfers that began after the warm-up and finished.
    pub finished: usize,
    /// Transfers that were cut off; the values do not include them.
    pub cut_off: usize,
    /// Size over completion time; null if none finished.
    pub throughput_bps: Option<Typical>,
    /// Completion time.
    pub completion_us: Option<Typical>,
}

/// Mean and percentiles of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Typical {
    /// Arithmetic mean.
    pub mean: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Name, for people.
    pub name: &'static str,
    /// Range of sizes.
    pub sizes: SizeRange,
}

/// Size from which transfers are compared by their throughput, bytes.
const LARGE: u64 = 3_000_000;

impl SizeClass {
    /// Whether its transfers are compared by their throughput; smaller ones are by their completion
    /// time.
    pub fn is_large(&self) -> bool {
        self.sizes.at_least >= LARGE
    }
}

/// Returns the size classes of transfers, ascending and without gaps.
///
/// Below 100 kB the start of a connection determines the completion time, above 3 MB its steady
/// state: operators report completion times below, throughput above.
pub fn size_classes() -> [SizeClass; 5] {
    let class = |name, at_least, below| SizeClass { name, sizes: SizeRange { at_least, below } };
    [
        class("under 100 kB", 0, Some(100_000)),
        class("100 kB to 1 MB", 100_000, Some(1_000_000)),
        class("1 to 3 MB", 1_000_000, Some(LARGE)),
        class("3 to 30 MB", LARGE, Some(30_000_000)),
        class("30 MB and more", 30_000_000, None),
    ]
}

pub(crate) fn paths(this: &Flows<'_, '_>, flow: &FlowView<'_>) -> Option<Vec<PathSummary>> {
    let summarise = |path: &crate::PathView<'_>| {
        let record = path.record;
        let rtt = |nanos: u64| (nanos > 0).then(|| micros(nanos));
        PathSummary {
            name: record.name.clone(),
            backup: record.backup,
            share: this.path_share(&record.name).ok(),
            delivered_bytes: record.delivered_bytes,
            sent_bytes: record.sent_bytes,
            retransmitted_bytes: record.retransmitted_bytes,
            rtt_min_us: rtt(record.rtt_min_ns),
            rtt_max_us: rtt(record.rtt_max_ns),
            one_way_delay_us: micros(record.one_way_delay_ns),
            rate_bps: (record.rate_bps > 0).then_some(record.rate_bps as f64),
            finish_us: flow.finish_time(path).map(seconds_to_us),
            timeouts: record.timeouts,
            recoveries: record.recoveries,
        }
    };
    (!flow.paths.is_empty()).then(|| flow.paths.iter().map(summarise).collect())
}

pub(crate) fn page(this: &Flows<'_, '_>, flow: &FlowView<'_>) -> Option<PageSummary> {
    let objects = || flow.objects.iter().filter(|object| is_of_page(object));
    let times = this.object_times().ok()?;
    let all = times.statistic(Statistic::Max).is_finite();
    Some(PageSummary {
        load_us: us(this.page_load_time()),
        objects: objects().count(),
        arrived: objects().filter(|object| object.completed_ns.is_some()).count(),
        object_us: all.then(|| Spread::of(&times, seconds_to_us)),
    })
}

pub(crate) fn bursts(this: &Flows<'_, '_>, flow: &FlowView<'_>) -> Option<BurstsSummary> {
    let bursts = || flow.objects.iter().filter(|object| is_burst(object));
    bursts().next()?;
    Some(BurstsSummary {
        asked: bursts().count(),
        arrived: bursts().filter(|object| object.completed_ns.is_some()).count(),
        time_us: this.burst_times().ok().map(|times| Spread::of(&times, seconds_to_us)),
    })
}

pub(crate) fn video(this: &Flows<'_, '_>, flow: &FlowView<'_>) -> Option<VideoSummary> {
    let segments = flow.objects.iter().filter(|object| is_segment(object));
    let arrived: Vec<&&ObjectRecord> =
        segments.clone().filter(|row| row.completed_ns.is_some()).collect();
    let highest = arrived.iter().filter_map(|row| row.quality).max();
    let qualities = highest.map_or(0, |highest| highest.saturating_add(1).min(QUALITIES_MAX));
    segments.clone().next()?;
    Some(VideoSummary {
        segments: arrived.len(),
        bitrate_bps: this.video_bitrate().ok(),
        quality_shares: (0..qualities)
            .filter_map(|quality| this.video_quality_share(quality).ok())
            .collect(),
        switches: this.video_switches().ok(),
        stall_us: us(this.video_stall_time()),
        startup_us: us(this.video_startup_time()),
    })
}

/// Largest number of qualities; a damaged table must not create a list of billions.
const QUALITIES_MAX: u32 = 100;

pub(crate) fn transfers(this: &Flows<'_, '_>, flow: &FlowView<'_>) -> Option<Vec<TransferSummary>> {
    if flow.transfers.is_empty() {
        return None;
    }
    let all = SizeClass { name: "all", sizes: SizeRange::default() };
    let classes = [all].into_iter().chain(size_classes());
    let summaries = classes.map(|class| of_class(this, flow, class));
    Some(summaries.filter(|class| class.finished + class.cut_off > 0).collect())
}

fn of_class(this: &Flows<'_, '_>, flow: &FlowView<'_>, class: SizeClass) -> TransferSummary {
    let SizeClass { name, sizes } = class;
    let typical = |value, convert: fn(f64) -> f64| {
        Some(Typical::of(&this.transfers(value, sizes).ok()?, convert))
    };
    let finished = this.transfer_values(TransferValue::Completion, sizes);
    let cut_off = flow
        .transfers
        .iter()
        .filter(|row| sizes.contains(row.size_bytes) && row.completion_ns.is_none());
    TransferSummary {
        name: name.to_string(),
        at_least_bytes: (sizes.at_least > 0).then_some(sizes.at_least),
        below_bytes: sizes.below,
        finished: finished.map_or(0, |values| values.len()),
        cut_off: cut_off.count(),
        throughput_bps: typical(TransferValue::Throughput, |bps| bps),
        completion_us: typical(TransferValue::Completion, seconds_to_us),
    }
}

impl Typical {
    fn of(values: &Distribution, convert: fn(f64) -> f64) -> Typical {
        let value = |statistic| convert(values.statistic(statistic));
        Typical {
            mean: value(Statistic::Mean),
            p5: value(Statistic::P5),
            p50: value(Statistic::P50),
            p95: value(Statistic::P95),
        }
    }
}
