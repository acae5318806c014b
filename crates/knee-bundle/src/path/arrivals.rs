//! Which datagrams arrived on a path, and when that is to be told.

use crate::frame::{AckRanges, Frame, expand};
use crate::spans::Spans;
use knee_units::Time;

/// Datagrams that ask for an acknowledgement, after so many of which one is sent.
const EVERY: u32 = 8;
/// For so long it is held back otherwise.
pub const ACK_DELAY: Time = Time::from_millis(4);
/// Spans of numbers that are remembered. What lies below them counts as arrived.
const SPANS_MAX: usize = 256;

/// The receiving end of a path.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spans: Spans,
    /// Numbers below this are settled.
    settled: u64,
    /// The largest, and when it came.
    largest: Option<(u64, Time)>,
    /// Arrived since the last ACK, those that ask for one.
    owed: u32,
    /// Something arrived since the last ACK.
    has_new: bool,
    /// When an ACK must leave.
    due: Time,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals {
            spans: Spans::default(),
            settled: 0,
            largest: None,
            owed: 0,
            has_new: false,
            due: Time::MAX,
        }
    }
}

impl Arrivals {
    /// The number of a datagram, of which the low 16 bits were sent; none: it
    /// came before.
    pub fn number(&self, low: u16) -> Option<u64> {
        let number = expand(low, self.largest.map(|(number, _)| number));
        (number >= self.settled && !self.spans.contains(number)).then_some(number)
    }

    /// A datagram came and was taken.
    pub fn insert(&mut self, now: Time, number: u64, asks: bool) {
        self.spans.insert(number..number + 1);
        if self.spans.len() > SPANS_MAX
            && let Some(dropped) = self.spans.pop_first()
        {
            self.settled = dropped.end;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        }
        self.has_new = true;
        if asks {
            self.owed += 1;
            let at = if self.owed >= EVERY { now } else { now + ACK_DELAY };
            self.due = self.due.min(at);
        }
    }

    /// The peer asks for an ACK at once.
    pub fn hurry(&mut self, now: Time) {
        self.due = now;
    }

    /// The peer has no use for numbers below this.
    pub fn settle(&mut self, below: u64) {
        // It cannot settle what it has not sent.
        if self.largest.is_some_and(|(largest, _)| below <= largest + 1) {
            self.settled = self.settled.max(below);
            self.spans.remove_below(below);
        }
    }

    /// When an ACK must leave; [`Time::MAX`]: none is owed.
    pub fn due(&self) -> Time {
        self.due
    }

    /// The path is gone: nothing is owed until more arrives.
    pub fn forget_due(&mut self) {
        (self.owed, self.has_new, self.due) = (0, false, Time::MAX);
    }

    /// An ACK of all that arrived, if something did since the last one.
    pub fn ack(&mut self, now: Time, path: usize) -> Option<Frame<'static>> {
        let (_, came) = self.largest.filter(|_| self.has_new)?;
        let spans = self.spans.iter().rev().map(|span| (span.start, span.end - 1));
        let ranges = AckRanges::new(spans)?;
        (self.owed, self.has_new, self.due) = (0, false, Time::MAX);
        Some(Frame::Ack { path, delay: now - came, ranges })
    }
}
