//! Acknowledgement rules other than the default ones of Linux's TCP: QUIC's
//! rules, counting bytes as well as segments, and the sender's requests.

use crate::ack_request::AckRequest;
use crate::config::{Acks, Config};
use crate::{after, before};
use knee_units::Time;

/// A segment's arrival, as input to the decision about its ACK.
pub(crate) struct Arrived {
    pub number: u32,
    pub bytes: u32,
    /// Whether Linux would acknowledge it at once, because it ends a burst or
    /// because of quick ACKs.
    pub pushed: bool,
    /// Whether it is a duplicate, or the codepoint changes.
    pub urgent: bool,
    /// Whether it is out of order or fills a gap.
    pub out_of_order: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    acks: Acks,
    every: u32,
    bytes: u32,
    reordering: u32,
    min_delay: Time,
    asked: AckRequest,
    /// Payload bytes since the last ACK.
    waiting: u32,
    /// Highest segment that arrived, and the highest when the last ACK was sent.
    highest: Option<u32>,
    reported: Option<u32>,
}

impl AckPolicy {
    /// Creates the policy, or returns `None` if the rules are those of Linux's TCP.
    pub fn new(config: &Config) -> Option<Box<AckPolicy>> {
        let Config { acks, ack_every, ack_bytes, ack_frequency, .. } = *config;
        let plain = acks == Acks::Tcp && ack_bytes.is_none() && ack_frequency.is_none();
        (!plain).then(|| {
            Box::new(AckPolicy {
                acks,
                every: ack_every.max(1),
                bytes: ack_bytes.unwrap_or(u32::MAX),
                reordering: ack_frequency.map_or(1, |frequency| frequency.reordering),
                min_delay: ack_frequency.map_or(Time::ZERO, |frequency| frequency.min_delay),
                asked: AckRequest::NONE,
                waiting: 0,
                highest: None,
                reported: None,
            })
        })
    }

    /// Returns how long an ACK may be delayed, if the sender has changed its request.
    pub fn take_request(&mut self, request: AckRequest) -> Option<Time> {
        if request == self.asked {
            return None;
        }
        self.asked = request;
        self.every = request.packets()?;
        Some(request.delay().max(self.min_delay))
    }

    /// Whether an ACK is due now; `waiting` segments, including this one, are
    /// not yet acknowledged. `holds` states which segments have arrived beyond
    /// `next`, the next expected.
    pub fn is_due(
        &mut self,
        arrived: &Arrived,
        waiting: u32,
        next: u32,
        holds: impl Fn(u32) -> bool,
    ) -> bool {
        if waiting == 1 {
            self.waiting = 0;
            self.reported = self.highest;
        }
        self.waiting = self.waiting.saturating_add(arrived.bytes);
        let highest = self.highest.filter(|highest| before(arrived.number, *highest));
        self.highest = Some(highest.unwrap_or(arrived.number));
        let pushed = arrived.pushed && self.acks == Acks::Tcp;
        let due = waiting >= self.every || self.waiting >= self.bytes || pushed;
        due || arrived.urgent || (arrived.out_of_order && self.tells_of_a_gap(next, holds))
    }

    /// Whether an ACK now would let the sender detect a lost segment that the
    /// previous ACK did not (section 6.2 of the draft: the largest unacknowledged
    /// less the smallest unreported missing is at least the threshold).
    fn tells_of_a_gap(&self, next: u32, holds: impl Fn(u32) -> bool) -> bool {
        let (Some(highest), threshold) = (self.highest, self.reordering) else { return false };
        if threshold <= 1 {
            return threshold == 1;
        }
        // Excludes what an ACK has already reported, and what is no longer missing.
        let told = self.reported.map_or(next, |reported| reported.wrapping_sub(threshold - 1));
        let mut missing = if before(told, next) { next } else { told };
        let last = highest.wrapping_sub(threshold);
        while !after(missing, last) {
            if !holds(missing) {
                return true;
            }
            missing = missing.wrapping_add(1);
        }
        false
    }
}
