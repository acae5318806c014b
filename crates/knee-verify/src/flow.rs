//! What the two ends of one flow did.

use crate::parse::FlowHead;
use crate::report::Rule;
use std::collections::{BTreeMap, VecDeque};

/// A jump in the numbers beyond this is reported, not filled in.
const GAP_FILLED: u64 = 1 << 16;

/// What an end did wrong.
pub type Fault = (Rule, String);

/// A segment sent and not yet both acknowledged and delivered.
#[derive(Clone, Copy)]
struct Segment {
    bytes: u64,
    resent: bool,
}

/// The books of a flow: what was sent, received, delivered, acknowledged.
pub struct Flow {
    pub path: usize,
    mss: u64,
    /// Segments from `first` on.
    segments: VecDeque<Segment>,
    first: u64,
    /// Cumulative acknowledgement as the sender knows it.
    acknowledged: u64,
    /// Bytes sent and not acknowledged cumulatively.
    outstanding: u64,
    /// Those of them that were sent more than once.
    resent: u64,
    /// All segments below were received.
    received: u64,
    /// Half-open ranges of segments received above that, disjoint.
    ahead: BTreeMap<u64, u64>,
    /// All segments below were delivered.
    delivered: u64,
    /// Highest cumulative acknowledgement that the receiver sent.
    promised: u64,
}

impl Flow {
    pub fn new(head: &FlowHead) -> Flow {
        Flow {
            path: head.path,
            mss: head.mss,
            segments: VecDeque::new(),
            first: 0,
            acknowledged: 0,
            outstanding: 0,
            resent: 0,
            received: 0,
            ahead: BTreeMap::new(),
            delivered: 0,
            promised: 0,
        }
    }

    fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    fn segment(&mut self, number: u64) -> &mut Segment {
        &mut self.segments[(number - self.first) as usize]
    }

    /// A segment with payload was sent.
    pub fn send(&mut self, number: u64, bytes: u64, faults: &mut Vec<Fault>) {
        if bytes > self.mss {
            let text = format!("segment {number} has {bytes} bytes, the MSS is {}", self.mss);
            faults.push((Rule::SegmentLength, text));
        }
        if number < self.acknowledged {
            let text = format!("segment {number} is sent, acknowledged is {}", self.acknowledged);
            faults.push((Rule::SendOrder, text));
        } else if number < self.next() {
            self.resend(number, bytes, faults);
        } else {
            self.send_new(number, bytes, faults);
        }
    }

    fn resend(&mut self, number: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let segment = self.segment(number);
        let (before, resent) = (segment.bytes, segment.resent);
        segment.resent = true;
        if !resent {
            self.resent += before;
        }
        if bytes != before {
            let text = format!("segment {number} had {before} bytes, now {bytes}");
            faults.push((Rule::SegmentLength, text));
        }
    }

    fn send_new(&mut self, number: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let next = self.next();
        if number > next {
            let text = format!("segment {number} is sent, the next would be {next}");
            faults.push((Rule::SendOrder, text));
            if number - next > GAP_FILLED {
                return;
            }
        }
        for missing in next..=number {
            let bytes = if missing == number { bytes } else { self.mss };
            self.segments.push_back(Segment { bytes, resent: false });
            self.outstanding += bytes;
        }
    }

    /// The sender's bytes in flight, as it states them.
    pub fn check_in_flight(&self, in_flight: i128, faults: &mut Vec<Fault>) {
        let most = self.outstanding + self.resent;
        if in_flight < 0 || in_flight > i128::from(most) {
            let text = format!(
                "{in_flight} bytes in flight; {} sent and not acknowledged, {} of them again",
                self.outstanding, self.resent
            );
            faults.push((Rule::InFlight, text));
        }
    }

    /// An ACK reached the sender.
    pub fn ack_receive(&mut self, number: u64, faults: &mut Vec<Fault>) {
        if number > self.next() {
            let text = format!("{number} is acknowledged, sent is {}", self.next());
            faults.push((Rule::Acknowledgement, text));
        }
        while self.acknowledged < number.min(self.next()) {
            let Segment { bytes, resent } = *self.segment(self.acknowledged);
            self.outstanding -= bytes;
            self.resent -= if resent { bytes } else { 0 };
            self.acknowledged += 1;
        }
        self.forget();
    }

    /// A segment with payload reached the receiver.
    pub fn receive(&mut self, number: u64) {
        // What was never sent is reported elsewhere.
        let unknown = number >= self.next();
        if unknown || number < self.received || self.has_ahead(number, number + 1) {
            return;
        }
        let mut range = (number, number + 1);
        if let Some((&from, &until)) = self.ahead.range(..number).next_back()
            && until == number
        {
            self.ahead.remove(&from);
            range.0 = from;
        }
        if let Some(until) = self.ahead.remove(&range.1) {
            range.1 = until;
        }
        if range.0 == self.received {
            self.received = range.1;
        } else {
            self.ahead.insert(range.0, range.1);
        }
    }

    fn has_ahead(&self, from: u64, until: u64) -> bool {
        self.ahead.range(..=from).next_back().is_some_and(|(_, &end)| end >= until)
    }

    /// Whether all segments of `from..until` were received.
    fn has_received(&self, from: u64, until: u64) -> bool {
        until <= self.received || self.has_ahead(from.max(self.received), until)
    }

    /// The receiver handed segments to its application.
    pub fn deliver(&mut self, first: u64, count: u64, bytes: u64, faults: &mut Vec<Fault>) {
        let until = first.saturating_add(count);
        let mut wrong = |text| faults.push((Rule::Delivery, text));
        if count == 0 || first != self.delivered {
            wrong(format!("{count} segments from {first}, the next is {}", self.delivered));
        } else if until > self.received {
            wrong(format!("segments up to {until}, received are those below {}", self.received));
        } else {
            let own: u64 = (first..until).map(|number| self.segment(number).bytes).sum();
            if own != bytes {
                wrong(format!("{bytes} bytes for segments that had {own}"));
            }
        }
        // Go on from where the log says, so that one fault is told once.
        self.delivered = self.delivered.max(until.min(self.received));
        self.forget();
    }

    /// The receiver sent an ACK.
    pub fn ack_send(&mut self, number: u64, blocks: &[(u64, u64)], faults: &mut Vec<Fault>) {
        let mut wrong = |text| faults.push((Rule::Acknowledgement, text));
        if number > self.received {
            wrong(format!("acknowledges {number}, received are those below {}", self.received));
        } else if number < self.promised {
            wrong(format!("acknowledges {number}, earlier {}", self.promised));
        }
        for &(from, until) in blocks {
            if from >= until || !self.has_received(from, until) {
                wrong(format!("SACK block {from}-{until} was not received"));
            }
        }
        self.promised = self.promised.max(number);
    }

    /// At the end of the log, or between two moments, nothing that arrived
    /// in order is held back.
    pub fn check_delivered(&self, faults: &mut Vec<Fault>) {
        if self.delivered < self.received {
            let text = format!(
                "segments {}..{} arrived in order and were not delivered",
                self.delivered, self.received
            );
            faults.push((Rule::Delivery, text));
        }
    }

    /// Drops what neither end needs any more.
    fn forget(&mut self) {
        while self.first < self.acknowledged.min(self.delivered) {
            self.segments.pop_front();
            self.first += 1;
        }
    }
}
