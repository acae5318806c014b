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
    /// Retransmitted over sent bytes after the warm-up. `retransmit_ratio`
    RetransmitRatio,
    /// Retransmitted over sent bytes before the end of the warm-up.
    /// `retransmit_ratio_startup`
    RetransmitRatioStartup,
    /// Retransmitted over sent bytes from start to end.
    /// `retransmit_ratio_total`
    RetransmitRatioTotal,
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
