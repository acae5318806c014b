//! Datagrams received on a path, and when an ACK of them is due.

use crate::frame::{ACK_RANGES_MAX, AckRanges, Frame, expand};
use crate::spans::Spans;
use knee_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of datagrams asking for an acknowledgement after which an ACK is sent at once.
const EVERY: u32 = 16;
/// How long an ACK is held back otherwise.
pub const ACK_DELAY: Time = Time::from_millis(4);
/// Maximum number of spans that are remembered. Numbers below them count as received.
const SPANS_MAX: usize = 256;

/// Number of late datagrams that an ACK tells in any case: those of the last two ACKs at least, since
/// one may be lost.
const LATE_MAX: usize = ACK_RANGES_MAX - 4;

/// Receiving end of a path.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spans: Spans,
    /// Numbers below this are settled.
    settled: u64,
    /// Largest number, and when it arrived.
    largest: Option<(u64, Time)>,
    /// Numbers that came last after larger ones. Where more spans are open than an ACK has room for,
    /// these would often not be told otherwise.
    late: VecDeque<u64>,
    /// Largest distance of such a number from the largest one then.
    behind: u64,
    /// Datagrams since the last ACK that ask for one.
    owed: u32,
    /// Whether anything arrived since the last ACK.
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
            late: VecDeque::new(),
            behind: 0,
            owed: 0,
            has_new: false,
            due: Time::MAX,
        }
    }
}

impl Arrivals {
    /// Returns the number of a datagram from its low 16 bits, or `None` for a duplicate.
    pub fn number(&self, low: u16) -> Option<u64> {
        let number = expand(low, self.largest.map(|(number, _)| number));
        (number >= self.settled && !self.spans.contains(number)).then_some(number)
    }

    /// Notes a datagram that arrived and was accepted.
    pub fn insert(&mut self, now: Time, number: u64, asks: bool) {
        self.spans.insert(number..number + 1);
        if self.spans.len() > SPANS_MAX
            && let Some(dropped) = self.spans.pop_first()
        {
            self.settled = dropped.end;
        }
        if self.largest.is_none_or(|(largest, _)| number > largest) {
            self.largest = Some((number, now));
        } else {
            if self.late.len() == LATE_MAX {
                self.late.pop_front();
            }
            self.late.push_back(number);
            let largest = self.largest.map_or(number, |(largest, _)| largest);
            self.behind = self.behind.max(largest - number);
        }
        self.has_new = true;
        if asks {
            self.owed += 1;
            let at = if self.owed >= EVERY { now } else { now + ACK_DELAY };
            self.due = self.due.min(at);
        }
    }

    /// Returns how far a datagram came behind the largest number, at most.
    pub fn behind(&self) -> u64 {
        self.behind
    }

    /// Makes an ACK due at once, because the peer asks for one.
    pub fn hurry(&mut self, now: Time) {
        self.due = now;
    }

    /// Forgets numbers below this, which the peer no longer needs.
    pub fn settle(&mut self, below: u64) {
        // The peer cannot settle what it has not sent.
        if self.largest.is_some_and(|(largest, _)| below <= largest + 1) {
            self.settled = self.settled.max(below);
            self.spans.remove_below(below);
            if self.spans.len() == 0 {
                // The peer gave up what arrived since the last ACK, and knows the rest.
                self.forget_due();
            }
        }
    }

    /// Returns when an ACK must leave; [`Time::MAX`] if none is owed, or nothing arrived that it
    /// could tell: a datagram that asks for one may find no room.
    pub fn due(&self) -> Time {
        if self.has_new { self.due } else { Time::MAX }
    }

    /// Owes nothing until more arrives.
    pub fn forget_due(&mut self) {
        (self.owed, self.has_new, self.due) = (0, false, Time::MAX);
    }

    /// Returns an ACK if anything arrived since the last one. If not all spans fit, it has those in
    /// which something arrived last, then the highest.
    pub fn ack(&mut self, now: Time, path: usize) -> Option<Frame<'static>> {
        let (_, came) = self.largest.filter(|_| self.has_new)?;
        let ranges = if self.spans.len() > ACK_RANGES_MAX {
            AckRanges::new(self.latest_spans())?
        } else {
            AckRanges::new(self.spans.iter().rev().map(|span| (span.start, span.end - 1)))?
        };
        (self.owed, self.has_new, self.due) = (0, false, Time::MAX);
        Some(Frame::Ack { path, delay: now - came, ranges })
    }
}

impl Arrivals {
    /// Returns as many spans as an ACK has room for, descending.
    fn latest_spans(&self) -> Vec<(u64, u64)> {
        let mut late: Vec<u64> = self.late.iter().copied().collect();
        late.sort_unstable();
        let holds = |span: &Range<u64>| {
            let at = late.partition_point(|number| *number < span.start);
            late.get(at).is_some_and(|number| *number < span.end)
        };
        let mut left = ACK_RANGES_MAX - self.spans.iter().filter(|span| holds(span)).count();
        let chosen = self.spans.iter().rev().filter(|span| {
            let is_late = holds(span);
            let fits = left > 0 && !is_late;
            left -= usize::from(fits);
            is_late || fits
        });
        chosen.map(|span| (span.start, span.end - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Datagram { number: u64, asks: bool, hurries: bool, fits: bool },
        Settle(u64),
        Ack,
        Down,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..40_u64, any::<(bool, bool, bool)>()).prop_map(
                |(number, (asks, hurries, fits))| Step::Datagram { number, asks, hurries, fits }
            ),
            2 => (0..42_u64).prop_map(Step::Settle),
            2 => Just(Step::Ack),
            1 => Just(Step::Down),
        ]
    }

    /// More spans are open than an ACK has room for.
    #[test]
    fn an_ack_tells_what_arrived_last_and_the_largest_number() {
        let (mut arrivals, now) = (Arrivals::default(), Time::from_secs(1));
        (0..200).for_each(|number| arrivals.insert(now, 2 * number, true));
        assert!(arrivals.ack(now, 0).is_some());
        arrivals.insert(now, 5, true);
        let Some(Frame::Ack { ranges, .. }) = arrivals.ack(now, 0) else { panic!("none is due") };
        let spans: Vec<_> = ranges.iter().collect();
        assert_eq!((spans.len(), spans[0], spans[31]), (ACK_RANGES_MAX, (398, 398), (4, 6)));
        assert_eq!(spans[30], (338, 338));
    }

    proptest! {
        /// An ACK that is due can be written, and is then no longer due.
        #[test]
        fn an_ack_that_is_due_says_something(steps in prop::collection::vec(step(), 0..60)) {
            let mut arrivals = Arrivals::default();
            for (at, step) in steps.into_iter().enumerate() {
                let now = Time::from_millis(at as u64);
                match step {
                    Step::Datagram { number, asks, hurries, fits } => {
                        let Some(number) = arrivals.number(number as u16) else { continue };
                        if hurries {
                            arrivals.hurry(now);
                        }
                        if fits {
                            arrivals.insert(now, number, asks || hurries);
                        }
                    }
                    Step::Settle(below) => arrivals.settle(below),
                    Step::Ack => {
                        arrivals.ack(now, 0);
                    }
                    Step::Down => arrivals.forget_due(),
                }
                if arrivals.due() < Time::MAX {
                    let mut later = arrivals.clone();
                    prop_assert!(later.ack(now, 0).is_some());
                    prop_assert_eq!(later.due(), Time::MAX);
                }
            }
        }
    }
}
