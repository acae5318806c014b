//! Links.

use super::aqm::AqmFile;
use super::series::{DelaySeriesFile, SeriesFile, is_series};
use crate::read::{At, List, Optional, Required, Table, Value, Whole, refuse_kind, table, words};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{BufferSize, Bytes, Fraction, Rate, Time};
use schemars::JsonSchema;

/// Intervals in a row that trip a circuit breaker.
pub(crate) const INTERVALS_MAX: u64 = 1_000;

table! {
    /// One direction of one hop. A packet meets, in this order: circuit
    /// breaker, loss, policer, queue, rate, delay, hold.
    "a link" LinkFile {
        /// Transmission rate: "10 Mbit/s", steps in time, a trace in Mahimahi's
        /// format, or a table over time. Default: unlimited, without a queue.
        rate: Optional<RateFile>,
        /// One-way propagation delay: "30 ms", steps in time, or a table over
        /// time. Default: 0 s.
        delay: Optional<DelayFile>,
        /// Random addition to the delay. Default: none.
        jitter: Optional<JitterFile>,
        /// Capacity of the queue: "8 BDP", "256 kB", "200 packets",
        /// "unlimited". One BDP is the link's rate (at the start, or the mean
        /// of its trace or table) times the smallest propagation round-trip time
        /// of the paths over the link (at the start, or the least of a table).
        /// Default: "1 BDP", at least ten segments.
        buffer: Optional<BufferSize>,
        /// The AQM that drops and marks packets. Default: "drop-tail".
        aqm: Optional<AqmFile>,
        /// Whether the AQM marks ECN-capable packets instead of dropping them.
        /// Default: false.
        ecn: Optional<bool>,
        /// Queue of the device below an AQM that decides when packets leave
        /// (codel, fq-codel, dualpi2): "64 packets" like the ring of a network
        /// card, "30 kB" like byte queue limits, including the packet in
        /// transmission. Packets in it are neither dropped nor reordered.
        /// Default: the device takes a packet when its transmission begins.
        device: Optional<BufferSize>,
        /// Loss independent of the queue: "1 %" of all packets at random, every
        /// n-th, bursts, recorded, steps in time of these, or a table over time.
        /// Default: none.
        loss: Optional<LossFile>,
        /// Token bucket before the queue. Default: none.
        policer: Optional<PolicerFile>,
        /// Spans in which the link is down and loses every packet.
        down: List<DownFile>,
        /// Spans in which nothing is delivered, as when a wireless station
        /// sleeps or changes its cell. Packets that would arrive within a span
        /// arrive together at its end, in order.
        hold: List<HoldFile>,
        /// Lets nothing in once too much has been lost for too long (RFC 8084).
        /// Default: none.
        circuit_breaker: Optional<CircuitBreakerFile>,
        /// The ECN field is cleared at the far end, as by a tunnel that forgets the
        /// outer header (before RFC 6040) or by a middlebox: what entered as ECT or
        /// CE, and what the AQM marked, leaves as Not-ECT. Default: false.
        ecn_bleached: Optional<bool>,
        /// Back-pressure instead of drops (IEEE 802.3): when the queue reaches a part of
        /// the buffer, the links before it pause, until it has fallen to another.
        /// Default: none.
        pause: Optional<PauseFile>,
    }
}

table! {
    /// Parts of the buffer at which a link asks those before it to pause, and to go on.
    "a pause" PauseFile {
        /// Links before it pause once the queue reaches this part of the buffer.
        at: Required<Fraction>,
        /// They go on once it has fallen to this part; below `at`.
        until: Required<Fraction>,
    }
}

/// Transmission rate.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum RateFile {
    /// Constant.
    Constant(Rate),
    /// Changing at given times, the first at 0 s; "0 bit/s" stops the link.
    Steps(Vec<At<RateStepFile>>),
    /// Delivery opportunities recorded from a real link.
    Trace(TraceFile),
    /// Read from a file.
    Series(SeriesFile),
}

table! {
    /// A rate from a point in time on.
    "a rate step" RateStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// Rate from then on.
        rate: Required<Rate>,
    }
}

table! {
    /// A trace file in Mahimahi's format: one line per opportunity to deliver
    /// 1500 bytes, in milliseconds since the start; it repeats at its end.
    "a rate from a trace" TraceFile {
        /// Name of the file, relative to the scenario's folder.
        trace: Required<String>,
        /// Position in the trace at which the run begins: a time, such as "20
        /// s", or "random", drawn from the seed. Default: 0 s.
        offset: Optional<OffsetFile>,
    }
}

words! {
    /// A position that is not a time.
    "offset" OffsetWord {
        /// A random position, drawn from the seed by the link's name.
        Random = "random",
    }
}

/// Position in a trace at which a run begins.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum OffsetFile {
    /// Random.
    Drawn(OffsetWord),
    /// Time since its beginning.
    At(Time),
}

/// Propagation delay.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum DelayFile {
    /// Constant.
    Constant(Time),
    /// Changing at given times, the first at 0 s.
    Steps(Vec<At<DelayStepFile>>),
    /// Read from a file.
    Series(Box<DelaySeriesFile>),
}

table! {
    /// A delay from a point in time on.
    "a delay step" DelayStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// One-way delay from then on.
        delay: Required<Time>,
    }
}

table! {
    /// Random addition to the delay: uniform from zero to an amount, or normal.
    "a jitter" JitterFile {
        /// Largest addition of a uniform distribution: "5 ms", or steps in time. Default: none,
        /// required there.
        amount: Optional<AmountFile>,
        /// Smallest addition of a delayed packet; equal to `amount` for a constant one. Default: 0
        /// s.
        at_least: Optional<Time>,
        /// Share of the packets that are delayed, each drawn independently: those that a link layer
        /// retransmits, or that take another route. Default: all.
        share: Optional<Fraction>,
        /// Distribution of the addition. Default: "uniform".
        distribution: Optional<DistributionWord>,
        /// Mean of a normal distribution. Default: 0 s.
        mean: Optional<Time>,
        /// Standard deviation of a normal distribution. Default: none, required there.
        deviation: Optional<Time>,
        /// Whether packets may overtake each other. Default: false.
        reorder: Optional<bool>,
    }
}

words! {
    /// Distribution of a random delay.
    "distribution" DistributionWord {
        /// All values up to `amount` are equally likely.
        Uniform = "uniform",
        /// Normal with `mean` and `deviation`, as netem has it: what would be negative is zero, and
        /// nothing is further from the mean than four deviations.
        Normal = "normal",
    }
}

/// Largest random addition to the delay.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum AmountFile {
    /// Constant.
    Constant(Time),
    /// Changing at given times, the first at 0 s; "0 s" adds nothing.
    Steps(Vec<At<AmountStepFile>>),
}

table! {
    /// A jitter from a point in time on.
    "a jitter step" AmountStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// Largest addition from then on.
        amount: Required<Time>,
    }
}

/// Loss independent of the queue.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum LossFile {
    /// Independent loss of each packet, with this probability.
    Independent(Fraction),
    /// Another pattern.
    Table(Box<LossTable>),
    /// Changing at given times, the first at 0 s; each starts from its initial
    /// state.
    Steps(Vec<At<LossStepFile>>),
    /// Independent losses, whose probability is read from a file.
    Series(Box<SeriesFile>),
}

/// Constant loss.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum SteadyLossFile {
    /// Independent loss of each packet, with this probability.
    Independent(Fraction),
    /// Another pattern.
    Table(Box<LossTable>),
}

table! {
    /// A loss from a point in time on.
    "a loss step" LossStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// Loss from then on: "1 %", or a pattern.
        loss: Required<SteadyLossFile>,
    }
}

table! {
    /// A pattern of loss: `every`, or `file`, or `super_packets`, or Gilbert and
    /// Elliott's four probabilities.
    "a loss pattern" LossTable {
        /// Every n-th packet is lost.
        every: Optional<u64>,
        /// Name of a file with one entry per packet, relative to the
        /// scenario's folder; it repeats at its end.
        file: Optional<String>,
        /// Probability to go from the good state to the bad, per packet.
        good_to_bad: Optional<Fraction>,
        /// Probability to go from the bad state to the good, per packet.
        bad_to_good: Optional<Fraction>,
        /// Independent loss of each super-packet: packets of one flow that enter at the
        /// same time, up to 64 KiB.
        super_packets: Optional<Fraction>,
        /// Loss in the good state. Default: 0 %.
        loss_good: Optional<Fraction>,
        /// Loss in the bad state. Default: 100 %.
        loss_bad: Optional<Fraction>,
    }
}

table! {
    /// Token bucket: packets without enough tokens are dropped.
    "a policer" PolicerFile {
        /// Rate at which tokens come.
        rate: Required<Rate>,
        /// Capacity of the bucket; it starts full.
        burst: Required<Bytes>,
    }
}

table! {
    /// A span in which a link is down.
    "a down span" DownFile {
        /// Start of the span.
        from: Required<Time>,
        /// End of the span.
        until: Required<Time>,
    }
}

table! {
    /// A span in which a link delivers nothing.
    "a hold" HoldFile {
        /// Start of the span.
        from: Required<Time>,
        /// End of the span, when all held packets are delivered.
        until: Required<Time>,
    }
}

table! {
    /// A circuit breaker (RFC 8084): the packets that a link drops or loses are
    /// compared with those that enter it, interval by interval.
    "a circuit breaker" CircuitBreakerFile {
        /// Time between two readings: longer than the RTT, so that senders can
        /// answer a loss within it. Default: 5 s.
        interval: Optional<Time>,
        /// More than this part of the packets lost makes an interval congested.
        /// Default: 10 %.
        loss: Optional<Fraction>,
        /// Congested intervals in a row that trip it: from then on nothing gets
        /// in. Default: 3.
        intervals: Optional<Whole<1, INTERVALS_MAX>>,
        /// Time after which a tripped one lets packets in again: at least as long
        /// as it takes to trip. Default: not within the run.
        reset_after: Optional<Time>,
    }
}

impl Value for RateFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<RateFile> {
        match node.kind {
            Kind::Array(_) => Value::read(node, reading).map(RateFile::Steps),
            Kind::Table(_) if is_series(node) => Value::read(node, reading).map(RateFile::Series),
            Kind::Table(_) => Value::read(node, reading).map(RateFile::Trace),
            _ => Rate::read(node, reading).map(RateFile::Constant),
        }
    }
    fn write(&self) -> Node {
        match self {
            RateFile::Constant(rate) => rate.write(),
            RateFile::Steps(steps) => steps.write(),
            RateFile::Trace(trace) => trace.write(),
            RateFile::Series(series) => series.write(),
        }
    }
}

impl Value for OffsetFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<OffsetFile> {
        match node.as_str() {
            Some("random") => OffsetWord::read(node, reading).map(OffsetFile::Drawn),
            _ => Time::read(node, reading).map(OffsetFile::At),
        }
    }
    fn write(&self) -> Node {
        match self {
            OffsetFile::Drawn(word) => word.write(),
            OffsetFile::At(time) => time.write(),
        }
    }
}

impl Value for DelayFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<DelayFile> {
        match node.kind {
            Kind::Array(_) => Value::read(node, reading).map(DelayFile::Steps),
            Kind::Table(_) if !is_series(node) => {
                let help = "add table = \"…\", or write \"30 ms\"";
                reading.problem(node.span, "a delay over time needs \"table\"", help);
                None
            }
            Kind::Table(_) => {
                DelaySeriesFile::read(node, reading).map(|file| DelayFile::Series(Box::new(file)))
            }
            _ => Time::read(node, reading).map(DelayFile::Constant),
        }
    }
    fn write(&self) -> Node {
        match self {
            DelayFile::Constant(delay) => delay.write(),
            DelayFile::Steps(steps) => steps.write(),
            DelayFile::Series(series) => series.as_ref().write(),
        }
    }
}

impl Value for AmountFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<AmountFile> {
        match node.kind {
            Kind::Array(_) => Value::read(node, reading).map(AmountFile::Steps),
            _ => Time::read(node, reading).map(AmountFile::Constant),
        }
    }
    fn write(&self) -> Node {
        match self {
            AmountFile::Constant(amount) => amount.write(),
            AmountFile::Steps(steps) => steps.write(),
        }
    }
}

impl Value for LossFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<LossFile> {
        if let Kind::Array(_) = node.kind {
            return Value::read(node, reading).map(LossFile::Steps);
        }
        if is_series(node) {
            return SeriesFile::read(node, reading).map(|file| LossFile::Series(Box::new(file)));
        }
        SteadyLossFile::read(node, reading).map(|loss| match loss {
            SteadyLossFile::Independent(part) => LossFile::Independent(part),
            SteadyLossFile::Table(table) => LossFile::Table(table),
        })
    }
    fn write(&self) -> Node {
        match self {
            LossFile::Independent(part) => part.write(),
            LossFile::Table(table) => table.as_ref().write(),
            LossFile::Steps(steps) => steps.write(),
            LossFile::Series(series) => series.as_ref().write(),
        }
    }
}

impl Value for SteadyLossFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<SteadyLossFile> {
        match node.kind {
            Kind::Table(_) => {
                LossTable::read(node, reading).map(|t| SteadyLossFile::Table(Box::new(t)))
            }
            Kind::Array(_) => {
                let keys = LossTable::keys().join(", ");
                refuse_kind(node, "a loss", &format!("\"1 %\", or a table with {keys}"), reading);
                None
            }
            _ => Fraction::read(node, reading).map(SteadyLossFile::Independent),
        }
    }
    fn write(&self) -> Node {
        match self {
            SteadyLossFile::Independent(part) => part.write(),
            SteadyLossFile::Table(table) => table.as_ref().write(),
        }
    }
}
