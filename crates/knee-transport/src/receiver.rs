//! The receiving end of a connection over one path: reassembly, selective
//! acknowledgement, delayed ACKs, ECN echo.
//!
//! Its application reads immediately and sends nothing, so that, as in Linux
//! (`tcp_cleanup_rbuf`), the end of a burst is acknowledged without delay. With
//! an application that answers (Linux's "pingpong mode") this ACK would be
//! delayed too.

use crate::ack_policy::{AckPolicy, Arrived};
use crate::ack_request::AckRequest;
use crate::config::{Acks, Config};
use crate::lies::Liar;
use crate::quick_acks::QuickAcks;
use crate::wire::{Ack, AckDetails, EcnBytes, SACK_BLOCKS_MAX, Segment, SegmentKind};
use crate::{after, before};
use knee_units::{Ecn, Time};

/// Largest number of out-of-order ranges remembered for SACK, latest first.
const RANGES_MAX: usize = 4;
/// Initial size of the ring of out-of-order segments.
const RING_MIN: usize = 64;

/// An arrival and its results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Payload bytes handed to the application, in order.
    pub delivered_bytes: u64,
    /// Segments handed to the application, in order.
    pub delivered_segments: u32,
    /// Whether an ACK is due now: call [`Receiver::make_ack`].
    pub ack_now: bool,
}

/// The receiving end. Its application reads immediately, so the offered window
/// never closes: it is the whole buffer beyond what was delivered.
#[derive(Clone, Debug)]
// As the sender is.
#[repr(align(64))]
pub struct Receiver {
    /// Next segment expected (RCV.NXT).
    next: u32,
    /// Next segment expected when the last ACK was sent.
    acknowledged: u32,
    /// Timestamp to echo (TS.Recent, RFC 7323).
    recent_timestamp: u32,
    /// Whether segments with an old timestamp are discarded (PAWS, RFC 7323, section 5): TCP does.
    paws: bool,
    /// Segments since the last ACK.
    unacknowledged: u32,
    /// Segments per ACK; zero if `policy` decides.
    ack_every: u32,
    quick_acks: QuickAcks,
    /// Decides when ACKs are due, instead of the two above. `None` for Linux's TCP.
    policy: Option<Box<AckPolicy>>,
    /// `None` if the receiver is honest.
    liar: Option<Box<Liar>>,
    ack_delay: Time,
    deadline: Time,
    /// Payload length by segment, zero for missing ones; indexed by number
    /// modulo the length.
    out_of_order: Box<[u16]>,
    /// Segments held there; not all of them need be in a remembered range.
    held: u32,
    ranges: [(u32, u32); RANGES_MAX],
    range_count: u8,
    duplicate: Option<u32>,
    /// RFC 3168: echo until the sender reports that it reduced its window.
    echo: bool,
    last_marked: bool,
    details_due: bool,
    ecn: bool,
    syn_pending: bool,
    arrived: EcnBytes,
    delivered_bytes: u64,
    delivered_segments: u64,
    marked_segments: u64,
}

impl Receiver {
    /// Creates a receiver that has received nothing.
    pub fn new(config: &Config) -> Receiver {
        let policy = AckPolicy::new(config);
        Receiver {
            next: 0,
            acknowledged: 0,
            recent_timestamp: 0,
            paws: config.acks == Acks::Tcp,
            unacknowledged: 0,
            ack_every: policy.as_ref().map_or(config.ack_every.max(1), |_| 0),
            quick_acks: QuickAcks::new(config),
            policy,
            liar: Liar::new(config.lies),
            ack_delay: config.ack_delay,
            deadline: Time::MAX,
            out_of_order: Box::default(),
            held: 0,
            ranges: Default::default(),
            range_count: 0,
            duplicate: None,
            echo: false,
            last_marked: false,
            details_due: false,
            ecn: config.ecn,
            syn_pending: false,
            arrived: EcnBytes::default(),
            delivered_bytes: 0,
            delivered_segments: 0,
            marked_segments: 0,
        }
    }

    /// Processes a segment that arrived with an ECN codepoint.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        if segment.kind == SegmentKind::Syn {
            self.syn_pending = true;
            self.quick_acks.on_syn(now);
            self.recent_timestamp = segment.timestamp;
            return Arrival { ack_now: true, ..Arrival::default() };
        }
        if self.discards(segment) {
            return self.discard(segment.number);
        }
        self.quick_acks.on_segment(now, segment.timestamp);
        let mut ack_now = self.ecn && self.take_codepoint(segment.window_reduced, segment.len, ecn);
        // RFC 7323, section 4.3: only segments that the last ACK left unacknowledged update the
        // timestamp, so that a delayed ACK echoes the oldest. No older one sets it back, and what
        // ends before the last ACK is outside the window (section 5.3, R2; `tcp_sequence`).
        let newer =
            segment.number == self.next || !before(segment.timestamp, self.recent_timestamp);
        let outside = before(segment.number.wrapping_add(1), self.acknowledged);
        if newer && !outside && !after(segment.number, self.acknowledged) {
            self.recent_timestamp = segment.timestamp;
        }
        let mut arrival = Arrival::default();
        let marking_changed = ack_now;
        if segment.number == self.next && self.held == 0 {
            self.next = self.next.wrapping_add(1);
            arrival.delivered_bytes = u64::from(segment.len);
            arrival.delivered_segments = 1;
        } else {
            arrival = self.take_out_of_order(segment.number, segment.len);
            ack_now = true;
        }
        self.delivered_bytes += arrival.delivered_bytes;
        self.delivered_segments += u64::from(arrival.delivered_segments);
        self.unacknowledged += 1;
        let due = segment.push || self.unacknowledged >= self.ack_every;
        arrival.ack_now = ack_now || due || self.quick_acks.is_quick();
        self.quick_acks.on_read(now, self.delivered_bytes);
        if arrival.ack_now && self.ack_every == 0 {
            // By value: a segment that is passed on by reference has to be in memory.
            let arrived = Arrived {
                number: segment.number,
                bytes: u32::from(segment.len),
                pushed: segment.push,
                urgent: marking_changed,
                out_of_order: ack_now,
            };
            arrival.ack_now = self.ask_policy(arrived, segment.ack_request);
        }
        if !arrival.ack_now && self.deadline == Time::MAX {
            self.deadline = now + self.ack_delay;
        }
        arrival
    }

    /// Whether a segment is discarded because its timestamp is older than the one to echo (RFC
    /// 7323, section 5.3, R1), by more than Linux's tolerance of one tick of a millisecond
    /// (`TCP_PAWS_WINDOW`). On a path that reorders these are originals: a retransmission has
    /// filled a hole below them.
    #[inline]
    pub fn discards(&self, segment: &Segment) -> bool {
        before(segment.timestamp, self.recent_timestamp)
            && self.paws
            && segment.kind == SegmentKind::Data
            && self.is_ticks_older(segment.timestamp)
    }

    #[cold]
    fn is_ticks_older(&self, timestamp: u32) -> bool {
        const TICK_US: u32 = 1000;
        let older = self.recent_timestamp.wrapping_sub(timestamp);
        older.saturating_add(timestamp % TICK_US) / TICK_US > 1
    }

    /// Answers a discarded segment at once; one that was received before is reported as a
    /// duplicate (`tcp_send_dupack`). It does not change the timestamp to echo.
    #[cold]
    fn discard(&mut self, number: u32) -> Arrival {
        if before(number, self.next) {
            self.duplicate = Some(number);
        }
        Arrival { ack_now: true, ..Arrival::default() }
    }

    /// Whether an ACK is due by rules other than Linux's.
    #[cold]
    fn ask_policy(&mut self, mut arrived: Arrived, request: AckRequest) -> bool {
        let Some(mut policy) = self.policy.take() else { return true };
        if let Some(delay) = policy.take_request(request) {
            self.ack_delay = delay;
        }
        arrived.pushed |= self.quick_acks.is_quick();
        arrived.urgent |= self.duplicate.is_some();
        let holds = |number| self.holds(number);
        let due = policy.is_due(&arrived, self.unacknowledged, self.next, holds);
        self.policy = Some(policy);
        due
    }

    /// Records the codepoint. A change between marked and unmarked is
    /// acknowledged at once (RFC 8257, section 3.2).
    #[inline(never)]
    fn take_codepoint(&mut self, window_reduced: bool, len: u16, ecn: Ecn) -> bool {
        if window_reduced {
            self.echo = false;
        }
        self.arrived.count(ecn, u32::from(len));
        let marked = ecn.is_marked();
        if marked {
            self.echo = true;
            self.details_due = true;
            self.marked_segments += 1;
        }
        std::mem::replace(&mut self.last_marked, marked) != marked
    }

    #[inline(never)]
    fn take_out_of_order(&mut self, number: u32, len: u16) -> Arrival {
        if let Some(liar) = &mut self.liar {
            if before(number, self.next) {
                liar.on_again();
            }
            if liar.lies.conceals() {
                return self.conceal(number, len);
            }
            // It has not arrived before, but fills a gap.
            if liar.lies.false_duplicates && number == self.next {
                self.duplicate = Some(number);
            }
        }
        if before(number, self.next) {
            self.duplicate = Some(number);
            return Arrival::default();
        }
        if self.holds(number) {
            self.duplicate = Some(number);
            // The block that contains it follows (RFC 2883, section 4).
            self.extend_ranges(number);
            return Arrival::default();
        }
        if number != self.next {
            self.store(number, len);
            self.extend_ranges(number);
            return Arrival::default();
        }
        let mut arrival =
            Arrival { delivered_bytes: u64::from(len), delivered_segments: 1, ack_now: true };
        self.next = self.next.wrapping_add(1);
        while self.holds(self.next) {
            let slot = self.slot(self.next);
            arrival.delivered_bytes += u64::from(std::mem::take(&mut self.out_of_order[slot]));
            arrival.delivered_segments += 1;
            self.held -= 1;
            self.next = self.next.wrapping_add(1);
        }
        self.drop_filled_ranges();
        arrival
    }

    /// Accepts a segment as if nothing were missing before it. One that others
    /// overtook arrives too late.
    #[cold]
    fn conceal(&mut self, number: u32, len: u16) -> Arrival {
        if before(number, self.next) {
            return Arrival::default();
        }
        self.next = number.wrapping_add(1);
        Arrival { delivered_bytes: u64::from(len), delivered_segments: 1, ack_now: true }
    }

    fn slot(&self, number: u32) -> usize {
        number as usize & (self.out_of_order.len() - 1)
    }

    fn holds(&self, number: u32) -> bool {
        let distance = number.wrapping_sub(self.next) as usize;
        distance < self.out_of_order.len() && self.out_of_order[self.slot(number)] != 0
    }

    fn store(&mut self, number: u32, len: u16) {
        let distance = number.wrapping_sub(self.next) as usize;
        if distance >= self.out_of_order.len() {
            self.grow(distance + 1);
        }
        let slot = self.slot(number);
        self.out_of_order[slot] = len;
        self.held += 1;
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let capacity = needed.next_power_of_two().max(RING_MIN);
        let mut ring = vec![0; capacity].into_boxed_slice();
        for distance in 0..self.out_of_order.len() {
            let number = self.next.wrapping_add(distance as u32);
            ring[number as usize & (capacity - 1)] = self.out_of_order[self.slot(number)];
        }
        self.out_of_order = ring;
    }

    /// Moves the range around `number` to the front (RFC 2018, section 4) and
    /// merges adjacent ranges.
    #[inline]
    fn extend_ranges(&mut self, number: u32) {
        let after_it = number.wrapping_add(1);
        if self.range_count > 0 && self.ranges[0].1 == number && !self.holds(after_it) {
            self.ranges[0].1 = after_it;
        } else {
            self.merge_ranges(number);
        }
    }

    fn merge_ranges(&mut self, number: u32) {
        let (mut from, mut to) = (number, number.wrapping_add(1));
        let mut kept = [(0, 0); RANGES_MAX];
        let mut count = 0;
        for &(a, b) in &self.ranges[..usize::from(self.range_count)] {
            if b == from {
                from = a;
            } else if a == to {
                to = b;
            } else if !before(number, a) && before(number, b) {
                (from, to) = (a, b);
            } else if count < RANGES_MAX - 1 {
                kept[count] = (a, b);
                count += 1;
            }
        }
        // A range dropped from the list is still held: extend to its edges.
        while from != self.next && self.holds(from.wrapping_sub(1)) {
            from = from.wrapping_sub(1);
        }
        while self.holds(to) {
            to = to.wrapping_add(1);
        }
        self.ranges[0] = (from, to);
        self.ranges[1..].copy_from_slice(&kept[..RANGES_MAX - 1]);
        self.range_count = count as u8 + 1;
    }

    fn drop_filled_ranges(&mut self) {
        let mut count = 0;
        for slot in 0..usize::from(self.range_count) {
            let range = self.ranges[slot];
            if after(range.1, self.next) {
                self.ranges[count] = range;
                count += 1;
            }
        }
        self.range_count = count as u8;
    }

    /// Returns the ACK to send now. The details are written only if there are any.
    #[inline]
    pub fn make_ack(&mut self, details: &mut AckDetails) -> (Ack, bool) {
        let has_details = self.has_details();
        if has_details {
            self.fill_details(details);
        }
        (self.make_plain_ack(), has_details)
    }

    /// Whether the next ACK has details, to be [filled in](Self::fill_details).
    #[inline]
    pub fn has_details(&self) -> bool {
        self.range_count > 0 || self.duplicate.is_some() || self.details_due
    }

    /// Returns the ACK to send now, without its details.
    #[inline]
    pub fn make_plain_ack(&mut self) -> Ack {
        self.deadline = Time::MAX;
        self.unacknowledged = 0;
        self.acknowledged = self.next;
        if !self.syn_pending {
            self.quick_acks.on_ack_sent();
        }
        let ahead = self.liar.as_mut().map_or(0, |liar| liar.claim());
        Ack {
            syn: std::mem::take(&mut self.syn_pending),
            number: self.next.wrapping_add(ahead),
            timestamp_echo: self.recent_timestamp,
            congestion_echo: self.echo,
        }
    }

    /// Returns what a liar sends before the next ACK, and how often: an ACK for
    /// a part of a segment, which does not acknowledge the segment.
    #[inline]
    pub fn parts(&self) -> Option<(Ack, u32)> {
        let liar = self.liar.as_ref()?;
        let needless = liar.lies.ack_division.saturating_sub(1);
        let ack = Ack {
            syn: false,
            number: self.acknowledged,
            timestamp_echo: self.recent_timestamp,
            congestion_echo: self.echo,
        };
        (needless > 0 && after(self.next, self.acknowledged)).then_some((ack, needless))
    }

    /// Writes the details of the ACK to send now.
    #[inline(never)]
    pub fn fill_details(&mut self, details: &mut AckDetails) {
        let duplicate = self.duplicate.take();
        let room = SACK_BLOCKS_MAX - usize::from(duplicate.is_some());
        let count = usize::from(self.range_count).min(room);
        let mut sack = [(0, 0); SACK_BLOCKS_MAX];
        sack[..count].copy_from_slice(&self.ranges[..count]);
        self.details_due = false;
        *details = AckDetails { sack, sack_count: count as u8, duplicate, ecn: self.arrived };
    }

    /// Returns when a delayed ACK is due and [`make_ack`](Self::make_ack) must
    /// be called; [`Time::MAX`] if none is.
    #[inline]
    pub fn timer(&self) -> Time {
        self.deadline
    }

    /// Returns the payload bytes handed to the application, in order.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Returns the segments handed to the application, in order.
    pub fn delivered_segments(&self) -> u64 {
        self.delivered_segments
    }

    /// Returns the segments that arrived with Congestion Experienced, including
    /// duplicates; zero if ECN was not negotiated.
    pub fn marked_segments(&self) -> u64 {
        self.marked_segments
    }

    /// Returns the next segment expected.
    pub fn next(&self) -> u32 {
        self.next
    }
}
