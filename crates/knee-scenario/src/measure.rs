//! The measures that a claim can name. Their formulas stand in
//! `knee-record`, which must compute each of them.

use knee_units::Time;

/// A number computed from records.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Payload delivered in order over time, bit/s. `goodput`
    Goodput,
    /// IP bytes sent over time, retransmissions and headers included,
    /// bit/s. `throughput`
    Throughput,
    /// Of a link: IP bytes that left it over what its rate allows, `0..=1`.
    /// `utilisation`
    Utilisation,
    /// Goodput of these flows over that of all flows, `0..=1`. `share`
    Share,
    /// RTT as the sender measured it, seconds. `rtt_p50`, `rtt_mean` …
    Rtt(Statistic),
    /// Smoothed RTT, seconds. `smoothed_rtt_p50` …
    SmoothedRtt(Statistic),
    /// RTT less the path's RTT without queues, seconds; of a link: the delay
    /// of its queue. `queueing_delay_p95` …
    QueueingDelay(Statistic),
    /// The queue that never drains: mean over windows of one second of the
    /// smallest queueing delay in each, seconds. `standing_queue`
    StandingQueue,
    /// Estimate of the minimum RTT that the controller holds, seconds.
    /// `min_rtt_estimate_p50` …
    MinRttEstimate(Statistic),
    /// Estimate of the bottleneck's bandwidth that the controller holds,
    /// payload, bit/s. `bandwidth_estimate_min` …
    BandwidthEstimate(Statistic),
    /// Retransmitted over sent bytes after the warm-up. `retransmit_ratio`
    RetransmitRatio,
    /// Retransmitted over sent bytes before the end of the warm-up.
    /// `retransmit_ratio_startup`
    RetransmitRatioStartup,
    /// Retransmitted over sent bytes from start to end.
    /// `retransmit_ratio_total`
    RetransmitRatioTotal,
    /// Payload delivered over payload sent, `0..=1`. `useful_ratio`
    UsefulRatio,
    /// Goodput over the bytes sent for each byte delivered, bit/s.
    /// `effective_goodput`
    EffectiveGoodput,
    /// Part of the packets sent again that no link lost, `0..=1`.
    /// `lost_elsewhere`
    LostElsewhere,
    /// Packets that a link dropped because of its queue, its AQM or its
    /// policer. `drops`
    Drops,
    /// Jain's index over the flows' goodputs, `1/n..=1`. `jain`
    Jain,
    /// Time from the last start of these flows until each one's goodput
    /// stays within `band` of its fair share for `hold`, seconds.
    /// `convergence_time` with `band = "25 %"`, `hold = "2 s"`
    ConvergenceTime {
        /// Allowed deviation from the fair share, as a fraction of it.
        band: f64,
        /// How long it must last.
        hold: Time,
    },
    /// Time from the claim's `from` until the flows' goodput over `hold`
    /// first reaches `fraction` of the path's rate, seconds.
    /// `takeover_time` with `fraction = "90 %"`, `hold = "200 ms"`
    TakeoverTime {
        /// Part of the path's rate that must be reached.
        fraction: f64,
        /// Time over which goodput is averaged.
        hold: Time,
    },
    /// From start until the last byte is acknowledged, seconds; the mean
    /// over the flows. `completion_time`
    CompletionTime,
    /// Kleinrock's power, normalised: utilisation of the path by goodput
    /// over (mean RTT over base RTT); 1 at the knee. `power`
    Power,
    /// Times that the controller entered a phase. `phase_entries` with
    /// `phase = "probe_bw_up"`
    PhaseEntries(String),
    /// Part of the time spent in phases whose name begins so, `0..=1`.
    /// `phase_share` with `phase = "probe_bw"`
    PhaseShare(String),
    /// Growth of the bandwidth estimate in a round of STARTUP, as long as the
    /// path is not full. `startup_growth`
    StartupGrowth,
    /// Rounds at the end of STARTUP that brought less than 25 % of growth.
    /// `startup_flat_rounds`
    StartupFlatRounds,
    /// Completion time over T*, the least that the paths allow: with constant
    /// rates r `(8 S + sum of r d) / sum of r` over those paths whose one-way
    /// delay d is below T*. `completion_over_bound`
    CompletionOverBound,
    /// What was delivered over what all paths together allowed, `0..=1`.
    /// `aggregation_ratio`
    AggregationRatio,
    /// Time that a byte waited at the receiver for earlier ones from another
    /// path, mean over the bytes, seconds. `head_of_line_blocking`
    HeadOfLineBlocking,
    /// The most bytes that ever waited so. `receive_buffer_peak`
    ReceiveBufferPeak,
    /// Bytes that came more than once, by several paths, over all that came,
    /// `0..=1`. `duplicate_ratio`
    DuplicateRatio,
    /// Bytes that a path delivered over those of all paths, `0..=1`.
    /// `path_share` with `path = "lte"`
    PathShare(String),
    /// From the first request until the last object is complete, seconds.
    /// `page_load_time`
    PageLoadTime,
    /// From the flow's start until an object is complete, over the objects,
    /// seconds. `object_time_p50` …
    ObjectTime(Statistic),
    /// Part of a page's objects that arrived earlier than with the flows that
    /// the claim is relative to, `0..=1`. `objects_earlier`
    ObjectsEarlier,
    /// Mean bitrate of the video's segments, bit/s. `video_bitrate`
    VideoBitrate,
    /// Media time in a quality over all, `0..=1`; the lowest is 0.
    /// `video_quality_share` with `quality = 2`
    VideoQualityShare(u32),
    /// Segments of another quality than the one before.
    /// `video_switches`
    VideoSwitches,
    /// How long playback stood still after its start, seconds.
    /// `video_stall_time`
    VideoStallTime,
    /// From the first request until playback starts, seconds.
    /// `video_startup_time`
    VideoStartupTime,
    /// Size over completion time of each finished transfer, over the
    /// transfers, bit/s. `flow_throughput_p5` …, with or without
    /// `size_at_least = "3 MB"`, `size_below = "10 MB"`
    FlowThroughput(Statistic, SizeRange),
    /// Completion time of each finished transfer, over the transfers,
    /// seconds. `flow_completion_p95` …, with or without the same.
    FlowCompletion(Statistic, SizeRange),
    /// Mean distance between the completion times of transfers that follow
    /// each other, seconds. `flow_completion_jitter`, with or without the same.
    CompletionJitter(SizeRange),
    /// A number that a study's model computes. Of alternate probing:
    /// `model.share_low`, `model.share_high` (the flows' parts of the link
    /// at the end), `model.filter` (what the bandwidth filters hold at the
    /// end), `model.rounds_to_converge`; the variant holds what follows the
    /// point.
    Model(String),
}

/// Transfers by their size: all of them by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeRange {
    /// None is smaller than so many bytes.
    pub at_least: u64,
    /// All are smaller than so many bytes; none: there is no bound.
    pub below: Option<u64>,
}

impl SizeRange {
    /// Whether a transfer of so many bytes counts.
    pub fn contains(self, bytes: u64) -> bool {
        bytes >= self.at_least && self.below.is_none_or(|below| bytes < below)
    }
}

/// How a distribution is condensed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Smallest value.
    Min,
    /// 5th percentile.
    P5,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest value.
    Max,
    /// Arithmetic mean over time.
    Mean,
}

/// What a measure's values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A part of a whole, `0..=1`.
    Fraction,
    /// A number without a unit.
    Number,
}

/// What a measure is taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows.
    Flows,
    /// A link.
    Link,
    /// A model of a study.
    Model,
}

const STATISTICS: [(&str, Statistic); 7] = [
    ("min", Statistic::Min),
    ("p5", Statistic::P5),
    ("p50", Statistic::P50),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("max", Statistic::Max),
    ("mean", Statistic::Mean),
];

/// Measures that need nothing but their name.
const PLAIN: [(&str, Measure); 29] = [
    ("goodput", Measure::Goodput),
    ("throughput", Measure::Throughput),
    ("utilisation", Measure::Utilisation),
    ("share", Measure::Share),
    ("standing_queue", Measure::StandingQueue),
    ("retransmit_ratio", Measure::RetransmitRatio),
    ("retransmit_ratio_startup", Measure::RetransmitRatioStartup),
    ("retransmit_ratio_total", Measure::RetransmitRatioTotal),
    ("useful_ratio", Measure::UsefulRatio),
    ("effective_goodput", Measure::EffectiveGoodput),
    ("lost_elsewhere", Measure::LostElsewhere),
    ("drops", Measure::Drops),
    ("jain", Measure::Jain),
    ("completion_time", Measure::CompletionTime),
    ("power", Measure::Power),
    ("startup_growth", Measure::StartupGrowth),
    ("startup_flat_rounds", Measure::StartupFlatRounds),
    ("completion_over_bound", Measure::CompletionOverBound),
    ("aggregation_ratio", Measure::AggregationRatio),
    ("head_of_line_blocking", Measure::HeadOfLineBlocking),
    ("receive_buffer_peak", Measure::ReceiveBufferPeak),
    ("duplicate_ratio", Measure::DuplicateRatio),
    ("page_load_time", Measure::PageLoadTime),
    ("objects_earlier", Measure::ObjectsEarlier),
    ("video_bitrate", Measure::VideoBitrate),
    ("video_switches", Measure::VideoSwitches),
    ("video_stall_time", Measure::VideoStallTime),
    ("video_startup_time", Measure::VideoStartupTime),
    ("flow_completion_jitter", Measure::CompletionJitter(SizeRange { at_least: 0, below: None })),
];

type OfStatistic = fn(Statistic) -> Measure;

/// Measures that are distributions: `rtt_p50`.
const DISTRIBUTIONS: [(&str, OfStatistic); 8] = [
    ("rtt", Measure::Rtt),
    ("smoothed_rtt", Measure::SmoothedRtt),
    ("queueing_delay", Measure::QueueingDelay),
    ("min_rtt_estimate", Measure::MinRttEstimate),
    ("bandwidth_estimate", Measure::BandwidthEstimate),
    ("object_time", Measure::ObjectTime),
    ("flow_throughput", |statistic| Measure::FlowThroughput(statistic, SizeRange::default())),
    ("flow_completion", |statistic| Measure::FlowCompletion(statistic, SizeRange::default())),
];

/// Measures with parameters, and which they need.
pub(crate) const PARAMETERS: [(&str, &[&str]); 6] = [
    ("convergence_time", &["band", "hold"]),
    ("takeover_time", &["fraction", "hold"]),
    ("phase_entries", &["phase"]),
    ("phase_share", &["phase"]),
    ("path_share", &["path"]),
    ("video_quality_share", &["quality"]),
];

/// What a model computes.
const OF_MODELS: [&str; 4] = ["share_low", "share_high", "filter", "rounds_to_converge"];

impl Measure {
    /// The names of all measures, as a claim writes them.
    pub fn names() -> Vec<String> {
        let plain = PLAIN.iter().map(|(name, _)| name.to_string());
        let distributions = DISTRIBUTIONS.iter().flat_map(|(name, _)| {
            STATISTICS.iter().map(move |(statistic, _)| format!("{name}_{statistic}"))
        });
        let parameters = PARAMETERS.iter().map(|(name, _)| name.to_string());
        let models = OF_MODELS.iter().map(|name| format!("model.{name}"));
        plain.chain(distributions).chain(parameters).chain(models).collect()
    }

    /// The measure of a name, if it needs no parameters.
    pub(crate) fn plain(name: &str) -> Option<Measure> {
        let plain = PLAIN.iter().find(|(known, _)| *known == name);
        let model = || OF_MODELS.iter().find(|known| name.strip_prefix("model.") == Some(known));
        plain
            .map(|(_, measure)| measure.clone())
            .or_else(|| distribution(name))
            .or_else(|| model().map(|known| Measure::Model(known.to_string())))
    }

    /// What its values are in.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Goodput
            | Measure::EffectiveGoodput
            | Measure::Throughput
            | Measure::BandwidthEstimate(_)
            | Measure::VideoBitrate
            | Measure::FlowThroughput(..) => Unit::BitsPerSecond,
            Measure::Rtt(_)
            | Measure::SmoothedRtt(_)
            | Measure::QueueingDelay(_)
            | Measure::StandingQueue
            | Measure::MinRttEstimate(_)
            | Measure::ConvergenceTime { .. }
            | Measure::TakeoverTime { .. }
            | Measure::CompletionTime
            | Measure::HeadOfLineBlocking
            | Measure::PageLoadTime
            | Measure::ObjectTime(_)
            | Measure::VideoStallTime
            | Measure::VideoStartupTime
            | Measure::FlowCompletion(..)
            | Measure::CompletionJitter(_) => Unit::Seconds,
            Measure::ReceiveBufferPeak => Unit::Bytes,
            Measure::Utilisation
            | Measure::Share
            | Measure::RetransmitRatio
            | Measure::RetransmitRatioStartup
            | Measure::RetransmitRatioTotal
            | Measure::UsefulRatio
            | Measure::LostElsewhere
            | Measure::ObjectsEarlier
            | Measure::PhaseShare(_)
            | Measure::AggregationRatio
            | Measure::DuplicateRatio
            | Measure::PathShare(_)
            | Measure::VideoQualityShare(_) => Unit::Fraction,
            Measure::Drops
            | Measure::Jain
            | Measure::Power
            | Measure::PhaseEntries(_)
            | Measure::StartupGrowth
            | Measure::StartupFlatRounds
            | Measure::CompletionOverBound
            | Measure::VideoSwitches
            | Measure::Model(_) => Unit::Number,
        }
    }

    /// Whether it compares two targets itself: then its value is not divided
    /// by that of what the claim is relative to, and the claim must name one.
    pub fn compares(&self) -> bool {
        matches!(self, Measure::ObjectsEarlier)
    }

    /// What it can be taken of.
    pub fn subjects(&self) -> &'static [Subject] {
        match self {
            Measure::Utilisation | Measure::Drops => &[Subject::Link],
            Measure::QueueingDelay(_) | Measure::StandingQueue => &[Subject::Flows, Subject::Link],
            Measure::Model(_) => &[Subject::Model],
            _ => &[Subject::Flows],
        }
    }
}

fn distribution(name: &str) -> Option<Measure> {
    let (base, statistic) = name.rsplit_once('_')?;
    let (_, statistic) = STATISTICS.iter().find(|(known, _)| *known == statistic)?;
    let (_, measure) = DISTRIBUTIONS.iter().find(|(known, _)| *known == base)?;
    Some(measure(*statistic))
}
