//! Result of a check.

use std::fmt;

/// Maximum number of violations in a report; if every packet of a log violates a rule, more would
/// add nothing.
const VIOLATIONS_KEPT: usize = 1000;

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Violations, in the order found; at most 1000.
    pub violations: Vec<Violation>,
    /// Number of violations beyond those.
    pub violations_omitted: u64,
    /// Rows read, without the head.
    pub rows: u64,
    /// Data packets sent, including handshakes and retransmissions.
    pub data_packets_sent: u64,
    /// Data packets that reached their receiver.
    pub data_packets_received: u64,
    /// ACKs sent.
    pub acks_sent: u64,
    /// ACKs that reached their sender.
    pub acks_received: u64,
    /// Segments delivered to the applications.
    pub segments_delivered: u64,
    /// Payload bytes delivered to the applications.
    pub bytes_delivered: u64,
    /// Bytes that connections over several paths delivered to their applications; their subflows
    /// count in `bytes_delivered`.
    pub data_delivered: u64,
    /// Packets of each link, by index.
    pub links: Vec<LinkCount>,
}

/// Packets of a link. `entered = left + dropped + inside`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCount {
    /// Name of the link.
    pub name: String,
    /// Packets offered to it.
    pub entered: u64,
    /// Packets that reached its far end.
    pub left: u64,
    /// Packets that it dropped.
    pub dropped: u64,
    /// Packets still inside when the log ended.
    pub inside: u64,
}

impl Report {
    /// Returns whether every rule held.
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn add(&mut self, line: u64, time_ns: u64, rule: Rule, text: String) {
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(Violation { line, time_ns, rule, text });
        } else {
            self.violations_omitted += 1;
        }
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Line of the log, from 1.
    pub line: u64,
    /// Time of the row, nanoseconds.
    pub time_ns: u64,
    /// Rule that is violated.
    pub rule: Rule,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {} ns, {}: {}", self.line, self.time_ns, self.rule, self.text)
    }
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Time never goes back.
    Time,
    /// Each packet sent gets a number above all before it.
    Identity,
    /// A packet keeps its flow, kind, segment number and size on its way.
    Unchanged,
    /// Only what entered a link leaves it or is dropped in it, and only once.
    Conservation,
    /// A packet visits the links of its path in order, without a pause in between, and arrives only
    /// after the last one.
    Path,
    /// No more leaves a link than its rate allows.
    Rate,
    /// A packet spends at least its transmission time and the delay in a link.
    Early,
    /// A packet leaves as soon as rate and delay allow: no link idles while packets wait.
    Late,
    /// Packets leave a FIFO link in the order in which they entered it.
    Fifo,
    /// The packets waiting in a queue, without the one in transmission, fit its buffer.
    Buffer,
    /// A packet is dropped if loss model, policer, outage, buffer or AQM call for it, and only
    /// then.
    Drop,
    /// A link asks those before it to pause when its queue reaches one length, and to go on when it
    /// has fallen to the other, and only then; what is paused begins no transmission.
    Pause,
    /// A packet is marked only if it is ECN-capable and the AQM had cause, and it keeps its mark;
    /// ACKs count the payload bytes that arrived marked, no more and no fewer.
    Mark,
    /// New segments are sent in the order of their numbers, and a cumulatively acknowledged segment
    /// is not sent again.
    SendOrder,
    /// A segment has the same payload each time, at most the MSS.
    SegmentLength,
    /// Only what was sent before is retransmitted, and only after a later transmission was
    /// reported or the timeout expired.
    Retransmission,
    /// A segment of a subflow carries the same data of its connection each time: data that no other
    /// segment carries, or all that one carries, and none that is acknowledged.
    Mapping,
    /// Bytes are delivered once, in order, without a gap, only after they arrived and then
    /// immediately; over several paths too.
    Delivery,
    /// An ACK names the first segment that is missing, reports only what was received, and never
    /// takes back what an earlier one acknowledged.
    Acknowledgement,
    /// Bytes in flight were sent and not yet acknowledged cumulatively; a segment counts once, and
    /// once more if it was retransmitted.
    InFlight,
    /// When a segment is sent, bytes in flight do not exceed the congestion window, and outstanding
    /// bytes do not exceed the receive window.
    Window,
    /// A burst begins only when pacing allows it.
    Pacing,
    /// A timer expires no sooner than its standard allows; only by its timer is a probe sent or a
    /// handshake repeated.
    Timeout,
    /// Outstanding data is acknowledged, sent again or times out within the timeout in force.
    Liveness,
    /// A connection ends only when it is complete.
    Completion,
    /// What has ended neither sends nor receives.
    Ended,
}

impl Rule {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Time => "time",
            Rule::Identity => "identity",
            Rule::Unchanged => "unchanged",
            Rule::Conservation => "conservation",
            Rule::Path => "path",
            Rule::Rate => "rate",
            Rule::Early => "early",
            Rule::Late => "late",
            Rule::Fifo => "fifo",
            Rule::Buffer => "buffer",
            Rule::Drop => "drop",
            Rule::Pause => "pause",
            Rule::Mark => "mark",
            Rule::SendOrder => "send_order",
            Rule::SegmentLength => "segment_length",
            Rule::Retransmission => "retransmission",
            Rule::Mapping => "mapping",
            Rule::Delivery => "delivery",
            Rule::Acknowledgement => "acknowledgement",
            Rule::InFlight => "in_flight",
            Rule::Window => "window",
            Rule::Pacing => "pacing",
            Rule::Timeout => "timeout",
            Rule::Liveness => "liveness",
            Rule::Completion => "completion",
            Rule::Ended => "ended",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
