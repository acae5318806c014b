//! Configuration of a link, as given in the scenario.

use crate::aqm::Aqm;
use knee_units::{Rate, Time};
use std::sync::Arc;

/// A link: one direction of one hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate at which packets leave the queue; unlimited for a pure delay.
    pub rate: RateModel,
    /// Propagation delay, after the queue.
    pub delay: Delay,
    /// Size of the queue, the packet in transmission not counted.
    pub buffer: Buffer,
    /// The discipline that decides about dropping and marking.
    pub aqm: Aqm,
    /// Queue of the device below an AQM that decides when packets leave; with
    /// `None` the AQM hands over each packet when its transmission begins.
    pub device: Option<Device>,
    /// Random or recorded loss, on entry, before policer and queue.
    pub loss: Loss,
    /// Token bucket on entry, before the queue.
    pub policer: Option<Policer>,
    /// Spans `[from, until)` in which the link is down: entering packets are
    /// lost, and so are those waiting or in transmission when a span begins.
    /// Propagating packets arrive. Sorted, disjoint.
    pub down: Vec<(Time, Time)>,
    /// Spans `[from, until)` in which nothing is delivered: packets that would
    /// reach the far end in a span do so when it ends, in order and all at
    /// once. Sorted, disjoint.
    pub hold: Vec<(Time, Time)>,
    /// Lets nothing in once too much has been lost for too long.
    pub circuit_breaker: Option<CircuitBreaker>,
    /// What arrives at the far end is Not-ECT, whatever it was when it entered and
    /// whatever the AQM made of it.
    pub ecn_bleached: bool,
    /// Asks the links before it to pause when the queue fills; only with a rate, a limited
    /// drop-tail queue and no device.
    pub pause: Option<Pause>,
    /// Whether a link behind it may [pause](crate::Link::pause) it; only with a rate, a queue that is
    /// drop-tail or decides on leaving, and no device. Then a packet counts as waiting
    /// until its transmission begins.
    pub pausable: bool,
}

impl Config {
    /// Creates a link that only delays: for a return direction whose rate and
    /// queue do not matter.
    pub fn pure_delay(delay: Time) -> Config {
        Config {
            rate: RateModel::Unlimited,
            delay: Delay::steady(Steps(vec![(Time::ZERO, delay)])),
            buffer: Buffer::Unlimited,
            aqm: Aqm::DropTail,
            device: None,
            loss: Loss::None,
            policer: None,
            down: Vec::new(),
            hold: Vec::new(),
            circuit_breaker: None,
            ecn_bleached: false,
            pause: None,
            pausable: false,
        }
    }
}

/// A value that changes at given times: the first entry is at time zero, and
/// times strictly ascend.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps<T>(pub Vec<(Time, T)>);

/// Rate at which packets leave.
#[derive(Clone, Debug, PartialEq)]
pub enum RateModel {
    /// No serialisation and no queue.
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// A rate that changes at given times; at zero nothing leaves.
    Steps(Steps<Rate>),
    /// Delivery opportunities recorded from a real link.
    Trace(Arc<Trace>),
}

/// Delivery opportunities in Mahimahi's format: each lets 1500 bytes leave, and
/// the sequence repeats with the period of its last timestamp.
///
/// A packet leaves when its last byte is served. The rest of an opportunity
/// serves the packets behind it; an opportunity that finds the queue empty is
/// lost. An opportunity serves packets that entered before it, not those that
/// enter in the same nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Name of the file, for messages and records.
    pub name: String,
    /// Milliseconds since the start, not descending, at least one.
    pub opportunities_ms: Vec<u32>,
    /// Position in the trace at which the link's time begins; below its period.
    pub offset: Time,
}

/// Propagation delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Delay {
    /// One-way delay, changing at given times.
    pub base: Steps<Time>,
    /// Whether a packet may overtake the one before it when the delay falls;
    /// otherwise order is kept across a change.
    pub reorder: bool,
    /// Random addition.
    pub jitter: Option<Jitter>,
}

impl Delay {
    /// Creates a delay without a random addition, which keeps order.
    pub fn steady(base: Steps<Time>) -> Delay {
        Delay { base, reorder: false, jitter: None }
    }
}

/// Random addition to the delay, for a share of the packets: uniform in `[least, amount]`, or normal
/// and cut off at both.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// Largest addition, changing at given times; its value at departure applies.
    pub amount: Steps<Time>,
    /// Smallest addition, at most the largest at any time.
    pub least: Time,
    /// Probability that a packet has an addition at all, in `0.0..=1.0`;
    /// independent for each packet. A link layer that retransmits frames delays
    /// such a share.
    pub share: f64,
    /// The normal distribution; `None` for a uniform one.
    pub normal: Option<Normal>,
    /// Whether packets may overtake each other; otherwise order is kept.
    pub reorder: bool,
}

/// A normal distribution. A draw below zero counts as zero, as in Linux's netem, which sends such
/// a packet at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Normal {
    /// Mean before anything is cut off.
    pub mean: Time,
    /// Standard deviation before anything is cut off.
    pub deviation: Time,
}

impl Normal {
    /// Returns the largest addition: four deviations above the mean, where netem's table ends
    /// (`normal.dist` of iproute2).
    pub fn largest(&self) -> Time {
        self.mean.saturating_add(self.deviation * 4)
    }
}

/// Size of a queue. A packet that finds the link idle does not wait, so it
/// always passes. Any other needs room: it is dropped if it and the waiting
/// packets, not counting the one in transmission, exceed the limit. In
/// transmission is the oldest packet that has not left, even if the rate is
/// zero or the next opportunity of a trace is still ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Any number of packets.
    Unlimited,
    /// IP bytes.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
}

/// Queue of a device below an AQM: the descriptor ring of a network card. The
/// AQM hands over packets as long as the device holds less than this, the
/// packet in transmission included, so it may exceed a limit in bytes by less
/// than one packet. Packets in it are not dropped, marked or reordered.
///
/// A limit in bytes matches the behaviour of Linux's byte queue limits once
/// they have settled (`dql_avail`, `lib/dynamic_queue_limits.c`); how they find
/// their limit is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// IP bytes, at least one.
    Bytes(u64),
    /// Packets of any size, at least one; with one the device holds only the
    /// packet in transmission.
    Packets(u64),
}

/// Loss that is independent of the queue. Only packets that enter while the
/// link is up count.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// No loss.
    None,
    /// Independent for each packet, with this probability in `0.0..=1.0`.
    Independent(f64),
    /// Independent for each super-packet, with this probability in `0.0..=1.0`: packets of one flow
    /// that enter one after another at the same time, up to 64 KiB of IP bytes, are lost together, as
    /// by `tc netem` on a host that leaves it to its card to cut segments.
    SuperPackets(f64),
    /// Every n-th packet: n, 2n, 3n …
    Periodic(u64),
    /// Two states (Gilbert 1960, Elliott 1963); all values in `0.0..=1.0`. The
    /// initial state is good; the state applies to a packet, then it may change.
    GilbertElliott {
        /// Probability of changing from good to bad, per packet.
        good_to_bad: f64,
        /// Probability of changing from bad to good, per packet.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// One entry per packet, true for lost; repeats at its end.
    Recorded(Arc<[bool]>),
    /// Different processes from given times. Each starts fresh: a count at
    /// zero, Gilbert and Elliott's in the good state, a record at its first
    /// entry. None of them may itself be `Steps`.
    Steps(Steps<Loss>),
}

/// Token bucket: packets that find too few tokens are dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Rate at which tokens are added.
    pub rate: Rate,
    /// Size of the bucket in IP bytes; initially full.
    pub burst: u64,
}

/// Lengths of the queue at which a link asks those before it to pause, and to go on: IP bytes, or
/// packets if its buffer is in packets. The packet in transmission does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// At this length or more they pause; above zero.
    pub at: u64,
    /// At this length or less they go on; below [`at`](Self::at).
    pub until: u64,
}

/// Circuit breaker (RFC 8084) around the link. A meter at the entry counts the
/// packets that enter, one at the far end those that are missing; both are read
/// at the end of each interval, an event at that moment included. In the
/// missing are counted those that the link dropped or lost during the interval:
/// what is under way when it ends is neither.
///
/// RFC 8084 leaves all numbers to the operator (section 4); the scenario says
/// what Knee's defaults are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CircuitBreaker {
    /// Length of an interval, above zero; the first begins at time zero.
    pub interval: Time,
    /// An interval in which more than this part of what entered goes missing is
    /// congested; `0.0..=1.0`. One in which nothing entered is not.
    pub loss: f64,
    /// Congested intervals in a row, at least one, that trip it: from then on it
    /// drops what enters. What has entered is delivered.
    pub intervals: u32,
    /// So long after it has tripped, above zero, it lets packets in again and
    /// its intervals begin anew; none: it stays tripped.
    pub reset_after: Option<Time>,
}
