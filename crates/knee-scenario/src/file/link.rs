//! Links.

use super::aqm::AqmFile;
use crate::read::{At, List, Optional, Required, Table, Value, refuse_kind, table, words};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{BufferSize, Bytes, Fraction, Rate, Time};
use schemars::JsonSchema;

table! {
    /// One direction of one hop. A packet meets, in this order: loss,
    /// policer, queue, rate, delay, hold.
    "a link" LinkFile {
        /// How fast packets leave: "10 Mbit/s", steps in time, or a trace
        /// in Mahimahi's format. Default: at once, without a queue.
        rate: Optional<RateFile>,
        /// One-way propagation delay: "30 ms", or steps in time.
        /// Default: 0 s.
        delay: Optional<DelayFile>,
        /// Random addition to the delay. Default: none.
        jitter: Optional<JitterFile>,
        /// How much the queue holds: "8 BDP", "256 kB", "200 packets",
        /// "unlimited". One BDP is the link's rate (at the start, or the
        /// mean of its trace) times the smallest propagation round-trip time
        /// of the paths over the link. Default: "1 BDP", at least ten
        /// segments.
        buffer: Optional<BufferSize>,
        /// Who decides about dropping and marking. Default: "drop-tail".
        aqm: Optional<AqmFile>,
        /// The AQM marks ECN-capable packets instead of dropping them.
        /// Default: false.
        ecn: Optional<bool>,
        /// Queue of the device below an AQM that decides when packets leave
        /// (codel, fq-codel, dualpi2): "64 packets" as a network card's ring,
        /// "30 kB" as byte queue limits, the packet in transmission included.
        /// Nobody drops or reorders in it. Default: a packet is handed over when
        /// its transmission begins.
        device: Optional<BufferSize>,
        /// Loss that has nothing to do with the queue: "1 %" of all packets
        /// at random, every n-th, bursts, recorded, or steps in time of these.
        /// Default: none.
        loss: Optional<LossFile>,
        /// Token bucket before the queue. Default: none.
        policer: Optional<PolicerFile>,
        /// Spans in which the link is down and loses everything.
        down: List<DownFile>,
        /// Spans in which nothing is delivered, as when a station of a
        /// wireless network sleeps or changes its cell: what would reach the
        /// far end does so when the span ends, in order and at once.
        hold: List<HoldFile>,
    }
}

/// How fast packets leave.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum RateFile {
    /// Always the same.
    Constant(Rate),
    /// Changing at given times, the first at 0 s; "0 bit/s" stops the link.
    Steps(Vec<At<RateStepFile>>),
    /// Delivery opportunities recorded from a real link.
    Trace(TraceFile),
}

table! {
    /// A rate from a point in time on.
    "a rate step" RateStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// How fast from then on.
        rate: Required<Rate>,
    }
}

table! {
    /// A trace file in Mahimahi's format: one line per opportunity to deliver
    /// 1500 bytes, in milliseconds since the start; it repeats at its end.
    "a rate from a trace" TraceFile {
        /// Name of the file, relative to the scenario's folder.
        trace: Required<String>,
        /// Where in it the run begins: a time, such as "20 s", or "random",
        /// drawn from the seed. Default: 0 s.
        offset: Optional<OffsetFile>,
    }
}

words! {
    /// A place that is not a time.
    "offset" OffsetWord {
        /// Anywhere in the trace, drawn from the seed by the link's name.
        Random = "random",
    }
}

/// Where in a trace a run begins.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum OffsetFile {
    /// Drawn.
    Drawn(OffsetWord),
    /// So long after its beginning.
    At(Time),
}

/// Propagation delay.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum DelayFile {
    /// Always the same.
    Constant(Time),
    /// Changing at given times, the first at 0 s.
    Steps(Vec<At<DelayStepFile>>),
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
    /// Random addition to the delay, uniform from zero to an amount.
    "a jitter" JitterFile {
        /// Largest addition: "5 ms", or steps in time.
        amount: Required<AmountFile>,
        /// Smallest addition of a packet that has one; as much as `amount`: each is as late. Default: 0 s.
        at_least: Optional<Time>,
        /// Part of the packets that have an addition, each drawn by itself: those that a link layer sends again, or that take another way. Default: all.
        share: Optional<Fraction>,
        /// Packets may overtake each other. Default: false.
        reorder: Optional<bool>,
    }
}

/// Largest random addition to the delay.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum AmountFile {
    /// Always the same.
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

/// Loss that has nothing to do with the queue.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum LossFile {
    /// Each packet alone, with this probability.
    Independent(Fraction),
    /// Another pattern.
    Table(Box<LossTable>),
    /// Changing at given times, the first at 0 s; each begins anew.
    Steps(Vec<At<LossStepFile>>),
}

/// Loss without changes.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum SteadyLossFile {
    /// Each packet alone, with this probability.
    Independent(Fraction),
    /// Another pattern.
    Table(Box<LossTable>),
}

table! {
    /// A loss from a point in time on.
    "a loss step" LossStepFile {
        /// When, since the start of the run.
        at: Required<Time>,
        /// What is lost from then on: "1 %", or a pattern.
        loss: Required<SteadyLossFile>,
    }
}

table! {
    /// A pattern of loss: `every`, or `file`, or Gilbert and Elliott's four
    /// probabilities.
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
        /// Loss in the good state. Default: 0 %.
        loss_good: Optional<Fraction>,
        /// Loss in the bad state. Default: 100 %.
        loss_bad: Optional<Fraction>,
    }
}

table! {
    /// Token bucket: what finds too few tokens is dropped.
    "a policer" PolicerFile {
        /// Rate at which tokens come.
        rate: Required<Rate>,
        /// What the bucket holds; it starts full.
        burst: Required<Bytes>,
    }
}

table! {
    /// A span in which a link is down.
    "a down span" DownFile {
        /// From this time on.
        from: Required<Time>,
        /// Until before this time.
        until: Required<Time>,
    }
}

table! {
    /// A span in which a link delivers nothing.
    "a hold" HoldFile {
        /// From this time on.
        from: Required<Time>,
        /// Until this time, when all that was held is delivered.
        until: Required<Time>,
    }
}

impl Value for RateFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<RateFile> {
        match node.kind {
            Kind::Array(_) => Value::read(node, reading).map(RateFile::Steps),
            Kind::Table(_) => Value::read(node, reading).map(RateFile::Trace),
            _ => Rate::read(node, reading).map(RateFile::Constant),
        }
    }
    fn write(&self) -> Node {
        match self {
            RateFile::Constant(rate) => rate.write(),
            RateFile::Steps(steps) => steps.write(),
            RateFile::Trace(trace) => trace.write(),
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
            _ => Time::read(node, reading).map(DelayFile::Constant),
        }
    }
    fn write(&self) -> Node {
        match self {
            DelayFile::Constant(delay) => delay.write(),
            DelayFile::Steps(steps) => steps.write(),
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
