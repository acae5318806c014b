//! Both ends of a flow.

use crate::parse::{self, AckSend, Repeat};
use crate::ranges::Ranges;
use crate::report::Rule;
use std::collections::VecDeque;

/// Largest jump in the numbers that is filled in as well as reported.
const GAP_FILLED: u64 = 1 << 16;

/// Granularity of timestamps.
const TIMESTAMP_TICK: u64 = 1_000_000;

/// What an end did wrong.
pub type Fault = (Rule, String);

/// A segment sent and not yet both acknowledged and delivered.
#[derive(Clone, Copy)]
struct Segment {
    bytes: u64,
    /// Time of the last transmission, and its number within the flow.
    sent_at: u64,
    order: u64,
    resent: bool,
    /// When the packet that brought it first had left.
    arrived: Option<u64>,
    /// Whether the sender knows that it arrived although others before it did not.
    reported: bool,
    /// First byte within the connection over several paths.
    offset: Option<u64>,
}

/// What an ACK told its sender.
#[derive(Clone, Copy, Default)]
pub struct News {
    /// Whether it acknowledges anything new.
    pub progress: bool,
    /// The largest RTT that it may have measured.
    pub rtt: Option<u64>,
    /// Whether it reports data that was sent once, before the first outstanding segment last was.
    pub older: bool,
}

impl News {
    fn measure(&mut self, rtt: u64) {
        self.rtt = self.rtt.max(Some(rtt));
    }
}

/// State of a flow: what was sent, received, delivered, acknowledged.
pub struct Flow {
    pub head: parse::Flow,
    /// Packets in flight.
    pub under_way: u64,
    /// Whether its ends are gone.
    pub has_ended: bool,
    /// Whether all data was said to be acknowledged.
    is_complete: bool,
    /// Number of transmissions.
    transmissions: u64,
    /// Number of them before the last retransmission timeout.
    timed_out: u64,
    /// Number of the latest transmission that an ACK reported to have arrived, as far as the
    /// sender can tell: plus one, zero for none.
    overtaken: u64,
    /// Segments from `first` on.
    segments: VecDeque<Segment>,
    first: u64,
    /// Cumulative acknowledgement as the sender knows it.
    acknowledged: u64,
    /// Bytes sent and not acknowledged cumulatively.
    outstanding: u64,
    /// Those of them that were retransmitted.
    resent: u64,
    /// Whether, since nothing was outstanding, something may have been lost or was retransmitted.
    disturbed: bool,
    /// Whether an ACK since the last progress had SACK blocks.
    reported: bool,
    /// Whether, since nothing was outstanding, something was retransmitted.
    repeated: bool,
    /// When the handshake that arrived first had left.
    pub opened: Option<u64>,
    /// When the packet sent last of those received had left.
    newest: u64,
    received: Ranges,
    /// All segments below this were delivered.
    delivered: u64,
    delivered_bytes: u64,
    /// Highest cumulative acknowledgement that the receiver sent.
    promised: u64,
    /// Payload bytes that arrived with Congestion Experienced, and how many of them the ACKs have
    /// counted.
    marked: u64,
    marked_counted: u64,
}

impl Flow {
    pub fn new(head: parse::Flow) -> Flow {
        Flow {
            head,
            under_way: 0,
            has_ended: false,
            is_complete: false,
            transmissions: 0,
            timed_out: 0,
            overtaken: 0,
            segments: VecDeque::new(),
            first: 0,
            acknowledged: 0,
            outstanding: 0,
            resent: 0,
            disturbed: false,
            reported: false,
            repeated: false,
            opened: None,
            newest: 0,
            received: Ranges::default(),
            delivered: 0,
            delivered_bytes: 0,
            promised: 0,
            marked: 0,
            marked_counted: 0,
        }
    }

    /// Ends the flow, and forgets the state of its ends.
    pub fn end(&mut self) {
        let (head, under_way) = (self.head.clone(), self.under_way);
        *self = Flow { under_way, has_ended: true, ..Flow::new(head) };
    }

    fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    fn segment(&mut self, number: u64) -> &mut Segment {
        &mut self.segments[(number - self.first) as usize]
    }

    /// Checks a segment with payload that is sent.
    pub fn send(&mut self, time: u64, send: &parse::Send, faults: &mut Vec<Fault>) {
        let (number, bytes) = (send.number, send.bytes);
        if self.acknowledged == self.next() {
            (self.disturbed, self.repeated) = (false, false);
        }
        self.repeated |= matches!(send.repeat, Repeat::Again | Repeat::Probe);
        self.disturbed |= self.repeated;
        self.check_repetition(send, faults);
        if send.repeat == Repeat::New && number < self.next() {
            let text = format!("segment {number} is sent as new, the next is {}", self.next());
            faults.push((Rule::SendOrder, text));
        }
        if bytes > self.head.mss {
            let text = format!("segment {number} has {bytes} bytes, the MSS is {}", self.head.mss);
            faults.push((Rule::SegmentLength, text));
        }
        if number < self.acknowledged {
            let text = format!("segment {number} is sent, acknowledged is {}", self.acknowledged);
            faults.push((Rule::SendOrder, text));
        } else if number < self.next() {
            self.resend(time, send, faults);
        } else {
            self.send_new(time, send, faults);
        }
        self.transmissions += 1;
        self.check_window(faults);
    }

    /// Checks that a retransmission was sent before, and that a transmission after its last one
    /// was reported (RFC 8985, section 6.2), or the timeout has expired since.
    fn check_repetition(&mut self, send: &parse::Send, faults: &mut Vec<Fault>) {
        let number = send.number;
        if send.repeat != Repeat::Again || number < self.acknowledged {
            return;
        }
        let text = if number >= self.next() {
            format!("segment {number} is retransmitted, but was never sent")
        } else {
            let order = self.segment(number).order;
            if order < self.timed_out || order + 1 < self.overtaken {
                return;
            }
            format!(
                "segment {number} is retransmitted without a timeout or a report of a later one"
            )
        };
        faults.push((Rule::Retransmission, text));
    }

    fn resend(&mut self, time: u64, send: &parse::Send, faults: &mut Vec<Fault>) {
        let (number, bytes) = (send.number, send.bytes);
        let segment = self.segment(number);
        let (before, resent) = (segment.bytes, segment.resent);
        if segment.offset != send.offset {
            let text = format!("segment {number} carries other data than before");
            faults.push((Rule::Mapping, text));
        }
        let order = self.transmissions;
        let segment = self.segment(number);
        segment.resent = true;
        segment.sent_at = time;
        segment.order = order;
        if !resent {
            self.resent += before;
        }
        if bytes != before {
            let text = format!("segment {number} had {before} bytes, now {bytes}");
            faults.push((Rule::SegmentLength, text));
        }
    }

    fn send_new(&mut self, time: u64, send: &parse::Send, faults: &mut Vec<Fault>) {
        let (number, bytes) = (send.number, send.bytes);
        let next = self.next();
        if send.offset.is_some() != self.head.connection.is_some() {
            let text = format!("segment {number} has the offset {:?}", send.offset);
            faults.push((Rule::Mapping, text));
        }
        if number > next {
            let text = format!("segment {number} is sent, the next would be {next}");
            faults.push((Rule::SendOrder, text));
            if number - next > GAP_FILLED {
                return;
            }
        }
        for missing in next..=number {
            let bytes = if missing == number { bytes } else { self.head.mss };
            let offset = send.offset;
            self.segments.push_back(Segment {
                bytes,
                sent_at: time,
                order: self.transmissions,
                resent: false,
                arrived: None,
                reported: false,
                offset,
            });
            self.outstanding += bytes;
        }
    }

    /// Checks that the receive window covers the outstanding bytes.
    fn check_window(&self, faults: &mut Vec<Fault>) {
        if self.head.receive_window.is_some_and(|window| self.outstanding > window) {
            let text = format!(
                "{} bytes are outstanding, the receiver lets {} through",
                self.outstanding,
                self.head.receive_window.unwrap_or(0)
            );
            faults.push((Rule::Window, text));
        }
    }

    /// Checks the bytes in flight that the sender states.
    pub fn check_in_flight(&self, in_flight: i128, faults: &mut Vec<Fault>) {
        let most = i128::from(self.outstanding + self.resent);
        let least = if self.disturbed { 0 } else { most };
        if in_flight < least || in_flight > most {
            let text = format!(
                "{in_flight} bytes in flight; {} sent and not acknowledged, {} of them again",
                self.outstanding, self.resent
            );
            faults.push((Rule::InFlight, text));
        }
    }

    /// Notes a retransmission timeout: outstanding segments may be lost.
    pub fn on_timeout(&mut self) {
        self.disturbed = true;
        self.timed_out = self.transmissions;
    }

    /// Checks the end of a flow whose data is said to be acknowledged.
    pub fn complete(&mut self, bytes: u64, faults: &mut Vec<Fault>) {
        self.is_complete = true;
        let whole = self.delivered_bytes == bytes;
        if self.outstanding > 0 || !(whole || self.head.conceals) {
            let text = format!(
                "complete with {bytes} bytes; {} were delivered and {} are outstanding",
                self.delivered_bytes, self.outstanding
            );
            faults.push((Rule::Delivery, text));
        }
    }

    /// Processes an ACK that reached the sender at `time`, with its SACK blocks.
    pub fn ack_receive(
        &mut self,
        time: u64,
        number: u64,
        blocks: &[(u64, u64)],
        faults: &mut Vec<Fault>,
    ) -> News {
        let mut news = News::default();
        let (before, selective) = (self.acknowledged, !blocks.is_empty());
        self.disturbed |= selective;
        if number > self.next() && self.head.ack_ahead > 0 {
            // The sender must not believe it; its bytes in flight show whether it does.
            return news;
        }
        self.report(time, blocks, &mut news);
        if number > self.next() {
            let text = format!("{number} is acknowledged, sent is {}", self.next());
            faults.push((Rule::Acknowledgement, text));
        }
        while self.acknowledged < number.min(self.next()) {
            let segment = *self.segment(self.acknowledged);
            let Segment { bytes, resent, order, .. } = segment;
            self.overtaken = self.overtaken.max(order + 1);
            if !segment.reported {
                news.measure(time - segment.arrived.unwrap_or(segment.sent_at));
            }
            self.outstanding -= bytes;
            self.resent -= if resent { bytes } else { 0 };
            self.acknowledged += 1;
        }
        self.forget();
        let progress = self.acknowledged > before;
        self.reported = selective || (self.reported && !progress);
        news.progress = progress;
        news
    }

    /// Notes the segments that an ACK reports beyond a gap.
    fn report(&mut self, time: u64, blocks: &[(u64, u64)], news: &mut News) {
        let first_sent_at = self.first_sent_at().unwrap_or(0);
        for &(from, until) in blocks {
            for number in from.max(self.acknowledged)..until.min(self.next()) {
                let order = self.segment(number).order;
                self.overtaken = self.overtaken.max(order + 1);
                let segment = self.segment(number);
                if std::mem::replace(&mut segment.reported, true) || segment.resent {
                    continue;
                }
                let (sent_at, arrived) = (segment.sent_at, segment.arrived);
                news.measure(time - arrived.unwrap_or(sent_at));
                news.older |= sent_at < first_sent_at;
            }
        }
    }

    /// Whether anything is outstanding.
    pub fn is_waiting(&self) -> bool {
        self.acknowledged < self.next()
    }

    /// Whether a segment was not sent before.
    pub fn is_new(&self, number: u64) -> bool {
        number >= self.next()
    }

    /// Whether a segment is the first outstanding one.
    pub fn is_first(&self, number: u64) -> bool {
        number == self.acknowledged
    }

    /// Returns when the first outstanding segment was last sent, or `None` if none is outstanding.
    pub fn first_sent_at(&mut self) -> Option<u64> {
        let number = self.acknowledged;
        (number < self.next()).then(|| self.segment(number).sent_at)
    }

    /// Returns when the first outstanding segment was last sent, if a reordering timer may run: an
    /// ACK with SACK blocks arrived since the last progress, or something was retransmitted since
    /// nothing was outstanding.
    pub fn reordered_since(&mut self) -> Option<u64> {
        if self.reported || self.repeated { self.first_sent_at() } else { None }
    }

    /// Notes a segment with payload that reached the receiver: its number, payload and mark.
    /// `sent_at` is when it had left.
    pub fn receive(&mut self, (number, bytes, marked): (u64, u64, bool), sent_at: u64) {
        self.newest = self.newest.max(sent_at);
        self.marked += if marked { bytes } else { 0 };
        // A segment that was never sent is reported elsewhere.
        if number < self.next() {
            if number >= self.first {
                self.segment(number).arrived.get_or_insert(sent_at);
            }
            self.received.add(number, number + 1);
        }
    }

    /// Checks a segment that its receiver discards as old: the timestamp to echo must be newer by
    /// more than a tick of a millisecond (RFC 7323, section 5.3; Linux's `TCP_PAWS_WINDOW`).
    pub fn discard(&self, sent_at: u64, faults: &mut Vec<Fault>) {
        if self.newest <= sent_at + TIMESTAMP_TICK {
            let text = format!(
                "a segment sent at {sent_at} ns is discarded as old, the newest received was sent \
                 at {} ns",
                self.newest
            );
            faults.push((Rule::Delivery, text));
        }
    }

    /// Checks segments that the receiver delivers to its application, or a subflow to its
    /// connection. Returns their ranges in the connection.
    pub fn deliver(
        &mut self,
        (first, count, bytes): (u64, u64, u64),
        faults: &mut Vec<Fault>,
    ) -> Vec<(u64, u64)> {
        let until = first.saturating_add(count);
        // Missing segments before it will never be delivered.
        if self.head.conceals && first > self.delivered && self.received.holds(first, until) {
            self.received.add(self.delivered, first);
            self.delivered = first;
        }
        let received = self.received.next();
        let mut data = Vec::new();
        let mut wrong = |text| faults.push((Rule::Delivery, text));
        if count == 0 || first != self.delivered {
            wrong(format!("{count} segments from {first}, the next is {}", self.delivered));
        } else if until > received {
            wrong(format!("segments up to {until}, received are those below {received}"));
        } else {
            let mut own = 0;
            for number in first..until {
                let Segment { bytes, offset, .. } = *self.segment(number);
                own += bytes;
                data.extend(offset.map(|offset| (offset, offset + bytes)));
            }
            if own != bytes {
                wrong(format!("{bytes} bytes for segments that had {own}"));
            }
        }
        // Continue from what the log says, so that a fault is reported once.
        self.delivered = self.delivered.max(until.min(received));
        self.delivered_bytes += bytes;
        self.forget();
        data
    }

    /// Checks an ACK that the receiver sends.
    pub fn ack_send(&mut self, ack: &AckSend, faults: &mut Vec<Fault>) {
        let (number, blocks) = (ack.number, &ack.blocks);
        let mut wrong = |text| faults.push((Rule::Acknowledgement, text));
        let received = self.received.next();
        // An ACK of a part of a segment acknowledges what the one before did, and tells no more.
        let is_part = self.head.divides_acks && number == self.promised && blocks.is_empty();
        if number > received + self.head.ack_ahead {
            wrong(format!("acknowledges {number}, received are those below {received}"));
        } else if number < self.promised {
            wrong(format!("acknowledges {number}, earlier {}", self.promised));
        } else if number < received && !is_part {
            wrong(format!("acknowledges {number}, received are all below {received}"));
        }
        for &(from, until) in blocks {
            if from >= until || !self.received.holds(from, until) {
                wrong(format!("SACK block {from}-{until} was not received"));
            }
        }
        // An optimistic receiver may retract what it acknowledged before it arrived.
        let promised = if self.head.ack_ahead > 0 { number.min(received) } else { number };
        self.promised = self.promised.max(promised);
        if !is_part {
            self.check_marks(ack.marked, faults);
        }
    }

    /// Checks the bytes that an ACK says arrived marked, modulo 2^32: all of them. One that says
    /// nothing must have nothing new to say.
    fn check_marks(&mut self, counted: Option<u32>, faults: &mut Vec<Fault>) {
        let known = counted.unwrap_or(self.marked_counted as u32);
        if known != self.marked as u32 {
            let text =
                format!("counts {known} marked bytes, {} arrived with a mark", self.marked as u32);
            faults.push((Rule::Mark, text));
            // Continue from what the log says, so that a fault is reported once.
            self.marked = counted.map_or(self.marked, u64::from);
        }
        self.marked_counted = self.marked;
    }

    /// Checks that a connection which ends is complete. A subflow may end before.
    pub fn check_complete(&self, faults: &mut Vec<Fault>) {
        if !self.is_complete && self.head.connection.is_none() {
            faults.push((Rule::Completion, "it ends and is not complete".to_string()));
        }
    }

    /// Checks, before time moves on, that no segments in order are held back.
    pub fn check_delivered(&mut self, faults: &mut Vec<Fault>) {
        if self.head.conceals && self.received.has_gaps() {
            let text = "segments arrived beyond a gap and were not delivered".to_string();
            faults.push((Rule::Delivery, text));
        }
        let received = self.received.next();
        if self.delivered < received {
            let text = format!(
                "segments {}..{received} arrived in order and were not delivered",
                self.delivered
            );
            faults.push((Rule::Delivery, text));
            self.delivered = received;
            self.forget();
        }
    }

    /// Forgets segments that neither end needs any more.
    fn forget(&mut self) {
        while self.first < self.acknowledged.min(self.delivered) {
            self.segments.pop_front();
            self.first += 1;
        }
    }
}
