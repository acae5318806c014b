//! `summary.json`: the results of a run. The same scenario, seed and ground give the same bytes;
//! nothing of the host or the clock is in it.

use crate::claims::{ClaimOutcome, evaluate, fill_findings};
use crate::measures::{Flows, NotMeasurable};
use crate::sections::{
    self, BurstsSummary, PageSummary, PathSummary, TransferSummary, VideoSummary,
};
use crate::stalled::Stalled;
use crate::view::{FlowView, LinkView, RunView, Window};
use crate::{LinkSample, Records};
use knee_scenario::{Scenario, Statistic};
use knee_units::statistics::Distribution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema name of `summary.json`.
pub const SCHEMA: &str = "knee-summary/1";

/// Verdict on the run itself.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The measurements can be used.
    #[default]
    Valid,
    /// The measurements can be used with the reservation given as the reason.
    Degraded,
    /// The measurements cannot be used.
    Invalid,
}

impl Verdict {
    /// Returns the worst of several verdicts; valid if there are none.
    pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        verdicts.into_iter().max().unwrap_or_default()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Verdict::Valid => "valid",
            Verdict::Degraded => "degraded",
            Verdict::Invalid => "invalid",
        })
    }
}

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// `knee-summary/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// Ground of the run: `sim`, `kernel`, `quic`.
    pub ground: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Verdict on the run itself.
    pub verdict: Verdict,
    /// Reason of the verdict.
    pub verdict_reason: Option<String>,
    /// Whether the figures are those of the host and not of the flows, so that the run counts in no
    /// comparison. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsound: bool,
    /// Duration of the run, microseconds of its own clock.
    pub duration_us: f64,
    /// Measures begin this long after a flow's start, microseconds.
    pub warmup_us: f64,
    /// Link that equal senders share in lockstep, so that the result may depend on
    /// their phase; see `send_jitter`. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockstep: Option<String>,
    /// Flows that sent for ten timeouts while nothing arrived in order. Absent if
    /// there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<Stalled>,
    /// One entry per flow.
    pub flows: Vec<FlowSummary>,
    /// One entry per link.
    pub links: Vec<LinkSummary>,
    /// One entry per group of several flows.
    #[serde(default)]
    pub groups: Vec<GroupSummary>,
    /// All flows together.
    pub measures: Measures,
    /// The scenario's claims.
    pub claims: Vec<ClaimOutcome>,
}

/// A distribution over time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Smallest value.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
    /// Arithmetic mean over time.
    pub mean: f64,
}

/// One flow. Goodput, throughput and delays are taken after the warm-up,
/// byte counts from start to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowSummary {
    /// Name of its group.
    pub name: String,
    /// Number within the group, from zero.
    pub index: u32,
    /// Controller or preset.
    pub cc: String,
    /// Name of its path.
    pub path: String,
    /// When it started, microseconds since the start of the run.
    pub start_us: f64,
    /// When it ended or was cut off.
    pub end_us: f64,
    /// Payload delivered in order over time; null if the flow ended before its
    /// warm-up.
    pub goodput_bps: Option<f64>,
    /// IP bytes sent over time.
    pub throughput_bps: Option<f64>,
    /// RTT; `min` and `max` are those of every RTT measured from start to
    /// end. Null without samples.
    pub rtt_us: Option<Spread>,
    /// Smoothed RTT.
    pub srtt_us: Option<Spread>,
    /// Base RTT and what the flow's packets waited in queues, both ways; only where the network is
    /// asked instead of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_rtt_us: Option<Spread>,
    /// RTT minus the path's RTT without queues.
    pub queueing_delay_us: Option<Spread>,
    /// Standing queue: mean, over windows of one second, of the smallest
    /// queueing delay in each.
    pub standing_queue_us: Option<f64>,
    /// The controller's estimate of the minimum RTT.
    pub min_rtt_estimate_us: Option<Spread>,
    /// RTT of a full segment over empty queues.
    pub base_rtt_us: f64,
    /// Mean rate that its paths allowed from start to end, each path at the
    /// rate of its slowest link; null if unlimited.
    pub path_rate_bps: Option<f64>,
    /// `retransmitted_bytes` over `sent_bytes`; null if nothing was sent.
    pub retransmit_ratio: Option<f64>,
    /// The same before the end of the warm-up; null without a warm-up.
    pub retransmit_ratio_startup: Option<f64>,
    /// The same after the warm-up.
    pub retransmit_ratio_steady: Option<f64>,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// Payload bytes delivered in order to the receiver's application.
    pub delivered_bytes: u64,
    /// Bytes to transfer; null if unlimited.
    pub size_bytes: Option<u64>,
    /// Time from start to the acknowledgement of the last byte; null if cut
    /// off.
    pub completion_us: Option<f64>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries.
    pub recoveries: u64,
    /// Recoveries and timeouts undone as spurious.
    pub spurious_recoveries: u64,
    /// Payload bytes reported as marked.
    pub marked_bytes: u64,
    /// Payload rate that its paths allowed, mean after the warm-up; null if
    /// unlimited.
    #[serde(default)]
    pub capacity_bps: Option<f64>,
    /// Normalised power; 1 at the knee.
    pub power: Option<f64>,
    /// Scheduler; null with one path.
    #[serde(default)]
    pub scheduler: Option<String>,
    /// Completion time over the earliest time at which any scheduler could
    /// finish a file; null without several paths or without an end.
    #[serde(default)]
    pub completion_over_bound: Option<f64>,
    /// Completion time over the smallest such bound of one path alone.
    #[serde(default)]
    pub completion_over_best_path: Option<f64>,
    /// Completion time over that of a perfect scheduler with the same
    /// controllers; null if it was not computed.
    #[serde(default)]
    pub completion_over_perfect: Option<f64>,
    /// Bytes delivered over what all paths together allowed.
    #[serde(default)]
    pub aggregation_ratio: Option<f64>,
    /// Time that a byte waited for preceding bytes of another path, mean over
    /// all bytes; null with one path.
    #[serde(default)]
    pub head_of_line_blocking_us: Option<f64>,
    /// Largest number of bytes waiting in this way.
    #[serde(default)]
    pub receive_buffer_peak_bytes: Option<u64>,
    /// Payload that arrived repeatedly over payload delivered.
    #[serde(default)]
    pub duplicate_ratio: Option<f64>,
    /// Its paths; null with one path.
    #[serde(default)]
    pub paths: Option<Vec<PathSummary>>,
    /// Result of its page.
    #[serde(default)]
    pub page: Option<PageSummary>,
    /// Result of its bursts.
    #[serde(default)]
    pub bursts: Option<BurstsSummary>,
    /// Result of its video.
    #[serde(default)]
    pub video: Option<VideoSummary>,
    /// Results of its transfers, all of them and by size class.
    #[serde(default)]
    pub transfers: Option<Vec<TransferSummary>>,
}

/// The flows of a group together, measured as in a claim about the group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Its name.
    pub name: String,
    /// Controller or preset.
    pub cc: String,
    /// Number of flows, at least two.
    pub flow_count: usize,
    /// Payload delivered in order over time.
    pub goodput_bps: Option<f64>,
    /// Bytes that it delivered over the bytes that all flows delivered.
    pub share: Option<f64>,
    /// RTT over its flows.
    pub rtt_us: Option<Spread>,
    /// Mean of the flows' standing queues.
    pub standing_queue_us: Option<f64>,
    /// Bytes retransmitted over bytes sent, from start to end.
    pub retransmit_ratio: Option<f64>,
    /// Jain's index over its flows' goodputs.
    pub jain: Option<f64>,
    /// Mean completion time; null if a flow has no end or was cut off.
    pub completion_us: Option<f64>,
}

/// One link. Utilisation, queue and delay are taken after the warm-up,
/// packet counts from start to end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// IP bytes that left over what the rate allows; null without a rate.
    pub utilisation: Option<f64>,
    /// IP bytes waiting.
    pub queue_bytes: Option<Spread>,
    /// Time that a packet entering the queue would wait.
    pub queueing_delay_us: Option<Spread>,
    /// Standing queue: mean, over windows of one second, of the smallest
    /// queueing delay in each.
    pub standing_queue_us: Option<f64>,
    /// Packets dropped by queue, AQM or policer.
    pub drops: u64,
    /// Packets lost at random, by record, or because the link was down.
    pub losses: u64,
    /// Packets marked with Congestion Experienced.
    pub marks: u64,
    /// Packets that entered the link.
    pub entered_packets: u64,
    /// IP bytes that left the link.
    pub departed_bytes: u64,
}

/// Measures of all flows together, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measures {
    /// Jain's index over the flows' goodputs.
    pub jain: Option<f64>,
    /// Goodput of all flows.
    pub goodput_bps: Option<f64>,
    /// Throughput of all flows.
    pub throughput_bps: Option<f64>,
    /// RTT over all flows.
    pub rtt_us: Option<Spread>,
    /// Queueing delay over all flows.
    pub queueing_delay_us: Option<Spread>,
    /// Mean of the flows' standing queues.
    pub standing_queue_us: Option<f64>,
    /// Bytes retransmitted over bytes sent, of all flows, from start to end.
    pub retransmit_ratio: Option<f64>,
    /// Before the end of the warm-up; null without a warm-up.
    pub retransmit_ratio_startup: Option<f64>,
    /// After the warm-up.
    pub retransmit_ratio_steady: Option<f64>,
    /// Mean completion time; null if a flow has no end or was cut off.
    pub completion_us: Option<f64>,
    /// Payload rate that the flows' paths allowed, each path counted once, mean
    /// after the warm-up; null if one of them is unlimited.
    #[serde(default)]
    pub capacity_bps: Option<f64>,
    /// Bytes that the flows delivered over what their paths allowed, headers
    /// included.
    #[serde(default)]
    pub capacity_share: Option<f64>,
    /// Normalised power; null if a path has no rate or a flow has several
    /// paths.
    pub power: Option<f64>,
    /// Packets dropped by queues, AQMs and policers of all links, from start
    /// to end; null if the links of the path are not known.
    pub drops: Option<u64>,
}

impl Summary {
    /// Measures a run.
    pub fn new(scenario: &Scenario, ground: &str, records: &Records) -> Summary {
        let run = RunView::new(records, scenario.warmup);
        let all = Flows::all(&run);
        let claims = scenario.claims.iter();
        let measured: Vec<ClaimOutcome> = claims.map(|claim| evaluate(claim, &run)).collect();
        let mut claims = measured.clone();
        fill_findings(&mut claims, &measured);
        Summary {
            schema: SCHEMA.to_string(),
            name: scenario.name.clone(),
            ground: ground.to_string(),
            seed: scenario.seed,
            verdict: match records.interrupted {
                true => Verdict::Degraded,
                false => Verdict::Valid,
            },
            unsound: false,
            verdict_reason: records.interrupted.then(|| {
                let after = crate::Unit::Seconds.show(records.end_ns as f64 / 1e9);
                format!("{INTERRUPTED} {after} of the scenario")
            }),
            duration_us: micros(records.end_ns),
            warmup_us: micros(scenario.warmup.as_nanos()),
            // Real hosts do not move in lockstep.
            lockstep: scenario.lockstep().filter(|_| ground == SIMULATOR).map(str::to_string),
            stalled: stalled(scenario, &run),
            flows: run.flows.iter().map(|flow| summarise_flow(&run, flow)).collect(),
            links: run.links.iter().map(|link| summarise_link(&run, link)).collect(),
            groups: summarise_groups(&run, &all),
            measures: summarise_all(&run, &all),
            claims,
        }
    }
}

/// The ground on which nothing is random but what the seed draws.
const SIMULATOR: &str = "sim";

/// Says that equal senders share a link in lockstep.
pub fn lockstep_in_words(link: &str) -> String {
    format!("equal senders share link \"{link}\" in lockstep; add send_jitter")
}

/// What stands above figures of several controllers within one run.
pub const HALF_AND_HALF: &str = "half and half: shows who takes from whom, not which is better";

/// How the reason of a verdict on an interrupted run begins.
const INTERRUPTED: &str = "interrupted after";

impl Summary {
    /// Returns whether the run counts as evidence beside others: it is sound, and went on to its
    /// end.
    pub fn is_evidence(&self) -> bool {
        let interrupted = |reason: &String| reason.starts_with(INTERRUPTED);
        self.is_sound() && !self.verdict_reason.as_ref().is_some_and(interrupted)
    }

    /// Returns whether the figures are those of the flows, and can be used.
    pub fn is_sound(&self) -> bool {
        self.verdict != Verdict::Invalid && !self.unsound
    }

    /// Whether transfers under several controllers share a path. What each gets then depends on the
    /// others: see [`HALF_AND_HALF`].
    pub fn is_half_and_half(&self) -> bool {
        let mixes = || self.flows.iter().filter(|flow| flow.transfers.is_some());
        mixes().any(|one| mixes().any(|other| other.path == one.path && other.cc != one.cc))
    }

    /// Returns the summary of a run with its ground's verdict. An invalid run tests no claims.
    pub fn judged(mut self, verdict: Verdict, reason: &str) -> Summary {
        let reasons = self.verdict_reason.iter().map(String::as_str).chain([reason]);
        let reasons: Vec<&str> = reasons.filter(|reason| !reason.is_empty()).collect();
        self.verdict_reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        self.verdict = self.verdict.max(verdict);
        if self.verdict == Verdict::Invalid {
            let why = format!("the run is invalid: {reason}");
            self.claims = self.claims.into_iter().map(|claim| claim.not_tested(&why)).collect();
        }
        self
    }
}

impl FlowSummary {
    /// Returns the class of all transfers of a mix; `None` for another workload.
    pub fn all_transfers(&self) -> Option<&TransferSummary> {
        self.transfers.as_ref()?.iter().find(|class| class.name == "all")
    }
}

impl Spread {
    /// Returns the statistics of a distribution, each passed through `convert`.
    pub(crate) fn of(distribution: &Distribution, convert: fn(f64) -> f64) -> Spread {
        let value = |statistic| convert(distribution.statistic(statistic));
        Spread {
            min: value(Statistic::Min),
            p5: value(Statistic::P5),
            p50: value(Statistic::P50),
            p95: value(Statistic::P95),
            p99: value(Statistic::P99),
            max: value(Statistic::Max),
            mean: value(Statistic::Mean),
        }
    }
}

type Measured<T> = Result<T, NotMeasurable>;

/// Converts seconds to microseconds.
fn spread_us(distribution: Measured<Distribution>) -> Option<Spread> {
    Some(Spread::of(&distribution.ok()?, seconds_to_us))
}

/// Converts to microseconds, rounded to the nanosecond, the resolution of times.
pub(crate) fn seconds_to_us(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}

/// Converts seconds to microseconds; `None` for infinity, which JSON lacks.
pub(crate) fn us(seconds: Measured<f64>) -> Option<f64> {
    seconds.ok().filter(|value| value.is_finite()).map(seconds_to_us)
}

pub(crate) fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

fn summarise_flow(run: &RunView<'_>, flow: &FlowView<'_>) -> FlowSummary {
    let record = flow.record;
    let this = Flows::one(run, flow);
    let several = !flow.paths.is_empty();
    FlowSummary {
        name: record.name.clone(),
        index: record.index,
        cc: record.cc.clone(),
        path: record.path.clone(),
        start_us: micros(record.start_ns),
        end_us: micros(record.end_ns),
        goodput_bps: this.goodput().ok(),
        throughput_bps: this.throughput().ok(),
        rtt_us: spread_us(this.rtt_over_time()).map(|rtt| Spread {
            min: micros(record.rtt_min_ns),
            max: micros(record.rtt_max_ns),
            ..rtt
        }),
        srtt_us: spread_us(this.smoothed_rtt_over_time()),
        path_rtt_us: spread_us(this.path_rtt_over_time()),
        queueing_delay_us: spread_us(this.queueing_delay_over_time()),
        standing_queue_us: us(this.standing_queue()),
        min_rtt_estimate_us: spread_us(this.min_rtt_estimate_over_time()),
        base_rtt_us: micros(record.base_rtt_ns),
        path_rate_bps: (record.path_rate_bps > 0).then_some(record.path_rate_bps as f64),
        retransmit_ratio: this.retransmit_ratio_total().ok(),
        retransmit_ratio_startup: this.retransmit_ratio_startup().ok(),
        retransmit_ratio_steady: this.retransmit_ratio().ok(),
        sent_bytes: record.sent_bytes,
        retransmitted_bytes: record.retransmitted_bytes,
        delivered_bytes: record.delivered_bytes,
        size_bytes: (record.size_bytes > 0).then_some(record.size_bytes),
        completion_us: record.completion_ns.map(micros),
        timeouts: record.timeouts,
        recoveries: record.recoveries,
        spurious_recoveries: record.spurious_recoveries,
        marked_bytes: record.marked_bytes,
        capacity_bps: this.capacity().ok(),
        power: this.power().ok(),
        scheduler: Some(record.scheduler.clone()).filter(|name| !name.is_empty()),
        completion_over_bound: finite(this.completion_over_bound()),
        completion_over_best_path: finite(this.completion_over_best_path()),
        completion_over_perfect: finite(this.completion_over_perfect()),
        aggregation_ratio: this.aggregation_ratio().ok(),
        head_of_line_blocking_us: us(this.head_of_line_blocking()).filter(|_| several),
        receive_buffer_peak_bytes: this
            .receive_buffer_peak()
            .ok()
            .map(|bytes| bytes as u64)
            .filter(|_| several),
        duplicate_ratio: this.duplicate_ratio().ok().filter(|_| several),
        paths: sections::paths(&this, flow),
        page: sections::page(&this, flow),
        bursts: sections::bursts(&this, flow),
        video: sections::video(&this, flow),
        transfers: sections::transfers(&this, flow),
    }
}

/// Returns the flows that stalled.
fn stalled(scenario: &Scenario, run: &RunView<'_>) -> Vec<Stalled> {
    let of = |flow: &FlowView<'_>| {
        let plan = scenario.flows.get(flow.record.flow as usize)?;
        Stalled::of(flow, plan.transport.min_rto)
    };
    run.flows.iter().filter_map(of).collect()
}

fn finite(value: Measured<f64>) -> Option<f64> {
    value.ok().filter(|value| value.is_finite())
}

/// Summarises the groups, in the order of the scenario.
fn summarise_groups(run: &RunView<'_>, all: &Flows<'_, '_>) -> Vec<GroupSummary> {
    let mut groups: Vec<GroupSummary> = Vec::new();
    // Flows of a group are adjacent.
    for flow in &run.flows {
        let name = &flow.record.name;
        if groups.last().is_some_and(|last| last.name == *name) {
            continue;
        }
        let flow_count = run.flows.iter().filter(|flow| flow.record.name == *name).count();
        let Ok(group) = Flows::find(run, name, Window::default()) else { continue };
        if flow_count < 2 {
            continue;
        }
        // What is known of all flows is not computed again.
        let these = if flow_count == run.flows.len() { all } else { &group };
        groups.push(GroupSummary {
            name: name.clone(),
            cc: flow.record.cc.clone(),
            flow_count,
            goodput_bps: these.goodput().ok(),
            share: these.share().ok(),
            rtt_us: spread_us(these.rtt_over_time()),
            standing_queue_us: us(these.standing_queue()),
            retransmit_ratio: these.retransmit_ratio_total().ok(),
            jain: these.jain().ok(),
            completion_us: us(these.completion_time()),
        });
    }
    groups
}

fn summarise_link(run: &RunView<'_>, link: &LinkView<'_>) -> LinkSummary {
    let all = Window::default();
    let spread = |value: fn(&LinkSample) -> f64| link.over_time(run, all, value);
    LinkSummary {
        name: link.name.to_string(),
        utilisation: link.utilisation(run, all).ok(),
        queue_bytes: spread(|row| row.queue_bytes as f64)
            .ok()
            .map(|queue| Spread::of(&queue, |bytes| bytes)),
        queueing_delay_us: spread_us(spread(|row| row.queue_delay_ns as f64 / 1e9)),
        standing_queue_us: us(link.standing_queue(run, all)),
        drops: link.total(|row| row.dropped_packets),
        losses: link.total(|row| row.lost_packets),
        marks: link.total(|row| row.marked_packets),
        entered_packets: link.total(|row| row.entered_packets),
        departed_bytes: link.total(|row| row.departed_bytes),
    }
}

fn summarise_all(run: &RunView<'_>, all: &Flows<'_, '_>) -> Measures {
    let drops = run.links.iter().map(|link| link.total(|row| row.dropped_packets));
    Measures {
        jain: all.jain().ok(),
        goodput_bps: all.goodput().ok(),
        throughput_bps: all.throughput().ok(),
        rtt_us: spread_us(all.rtt_over_time()),
        queueing_delay_us: spread_us(all.queueing_delay_over_time()),
        standing_queue_us: us(all.standing_queue()),
        retransmit_ratio: all.retransmit_ratio_total().ok(),
        retransmit_ratio_startup: all.retransmit_ratio_startup().ok(),
        retransmit_ratio_steady: all.retransmit_ratio().ok(),
        completion_us: us(all.completion_time()),
        capacity_bps: all.capacity().ok(),
        capacity_share: all.capacity_share().ok(),
        power: all.power().ok(),
        drops: (!run.links.is_empty()).then(|| drops.sum()),
    }
}
