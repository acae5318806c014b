//! What a link is, as the scenario says it.

use crate::aqm::Aqm;
use knee_units::{Rate, Time};
use std::sync::Arc;

/// A link: one direction of one hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How fast packets leave the queue; none: at once (a pure delay).
    pub rate: RateModel,
    /// Propagation delay, after the queue.
    pub delay: Delay,
    /// How much the queue holds, the packet in transmission not counted.
    pub buffer: Buffer,
    /// Who decides about dropping and marking.
    pub aqm: Aqm,
    /// Queue of the device below an AQM that decides when packets leave; none:
    /// the AQM hands over each packet when its transmission begins.
    pub device: Option<Device>,
    /// Random or recorded loss, on entry, before policer and queue.
    pub loss: Loss,
    /// Token bucket on entry, before the queue.
    pub policer: Option<Policer>,
    /// Spans `[from, until)` in which the link is down: what enters is lost,
    /// and so is what waits or is in transmission when one begins. What
    /// propagates arrives. Sorted, disjoint.
    pub down: Vec<(Time, Time)>,
    /// Spans `[from, until)` in which nothing is delivered: what would reach
    /// the far end in one does so when it ends, in order and at once. Sorted,
    /// disjoint.
    pub hold: Vec<(Time, Time)>,
}

impl Config {
    /// A link that only delays: what stands for a way back whose rate and
    /// queue do not matter.
    pub fn pure_delay(delay: Time) -> Config {
        Config {
            rate: RateModel::Unlimited,
            delay: Delay { base: Steps(vec![(Time::ZERO, delay)]), jitter: None },
            buffer: Buffer::Unlimited,
            aqm: Aqm::DropTail,
            device: None,
            loss: Loss::None,
            policer: None,
            down: Vec::new(),
            hold: Vec::new(),
        }
    }
}

/// A value that changes at given times: the first entry is at time zero,
/// times ascend strictly.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T>(pub Vec<(Time, T)>);

/// How fast packets leave.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// No serialisation and no queue.
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// A rate that changes at given times; zero is allowed: nothing leaves.
    Steps(Steps<Rate>),
    /// Delivery opportunities recorded from a real link.
    Trace(Arc<Trace>),
}

/// Delivery opportunities in Mahimahi's format: each lets 1500 bytes leave,
/// and the whole repeats with the period of its last timestamp.
///
/// A packet leaves when its last byte is served. What it leaves over of an
/// opportunity serves the packets behind it; an opportunity that finds the
/// queue empty is lost. An opportunity serves what entered before it, not
/// what enters in the same nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Name of the file, for messages and records.
    pub name: String,
    /// Milliseconds since the start, not descending, at least one.
    pub opportunities_ms: Vec<u32>,
    /// Where in the trace the link's time begins; below its period.
    pub offset: Time,
}

/// Propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// One-way delay, changing at given times. Order is kept across a
    /// change: a packet never overtakes the one before it.
    pub base: Steps<Time>,
    /// Random addition.
    pub jitter: Option<Jitter>,
}

/// Random addition to the delay: uniform in `[least, amount]`, for a share of the
/// packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// Largest addition, changing at given times: that of the departure counts.
    pub amount: Steps<Time>,
    /// Smallest addition, at most the largest at any time.
    pub least: Time,
    /// Probability that a packet has an addition at all, in `0.0..=1.0`; each by
    /// itself. A link layer that sends a frame again delays such a share.
    pub share: f64,
    /// Packets may overtake each other; otherwise order is kept.
    pub reorder: bool,
}

/// How much a queue holds. A packet that finds the link idle does not wait,
/// so it always passes. Any other needs room: it is dropped if the packets
/// that wait, the one in transmission not counted, and itself exceed the
/// limit. In transmission is the oldest packet that has not left, even where
/// the rate is zero or the next opportunity of a trace is not yet there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Any number of packets.
    Unlimited,
    /// IP bytes.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
}

/// Queue of a device below an AQM: the ring of descriptors of a network card.
/// The AQM hands over packets as long as the device holds less than this, the
/// packet in transmission included, so it may exceed a limit in bytes by less
/// than one packet. Nobody drops, marks or reorders what is in it.
///
/// A limit in bytes is what Linux's byte queue limits do once they have settled
/// (`dql_avail`, `lib/dynamic_queue_limits.c`); how they find their limit is
/// left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// IP bytes, at least one.
    Bytes(u64),
    /// Packets of any size, at least one; with one the device holds nothing but
    /// the packet in transmission.
    Packets(u64),
}

/// Loss that has nothing to do with the queue. Only packets that enter while
/// the link is up count.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet alone, with this probability in `0.0..=1.0`.
    Independent(f64),
    /// Every n-th packet: n, 2n, 3n …
    Periodic(u64),
    /// Two states (Gilbert 1960, Elliott 1963); all in `0.0..=1.0`. It begins
    /// good; the state decides about a packet, then it may change.
    GilbertElliott {
        /// Probability to go from good to bad, per packet.
        good_to_bad: f64,
        /// Probability to go from bad to good, per packet.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// One entry per packet, true for lost; repeats at its end.
    Recorded(Arc<[bool]>),
    /// Another process from given times on. Each begins anew: a count at zero,
    /// Gilbert and Elliott's in the good state, a record at its first entry.
    /// No process here is of steps itself.
    Steps(Steps<Loss>),
}

/// Token bucket: what finds too few tokens is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Bytes that the bucket holds, in IP bytes; it starts full.
    pub burst: u64,
}
