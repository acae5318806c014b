//! Chunks that are cut and sent together, and not yet told apart.

use super::{Chunk, Chunks};
use crate::source::{ByteCount, Source};
use knee_units::Time;
use std::ops::Range;

/// Chunks of one length that were given to a path together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst<P> {
    first: Chunk<P>,
    count: u32,
}

impl<P> Burst<P> {
    /// Returns the byte after its last one.
    #[inline]
    fn end(&self) -> u64 {
        self.first.offset + u64::from(self.count) * u64::from(self.first.len)
    }
}

impl<S: Source> Chunks<S> {
    /// Records that a path has reported chunks delivered, of which some may be released.
    #[inline]
    pub fn mark_delivered(&mut self, chunks: Range<u64>) {
        self.settle();
        for number in chunks.start.max(self.base())..chunks.end {
            if let Some(chunk) = self.ring.get_mut(number) {
                chunk.delivered = true;
            }
        }
    }

    /// Releases the chunks before byte `acknowledged`.
    #[inline]
    pub fn release_before(&mut self, acknowledged: u64) {
        self.released = acknowledged;
    }

    /// Makes every unreleased chunk accessible by number, and no other.
    #[inline]
    pub fn settle(&mut self) {
        let released = self.released;
        self.ring.pop_while(|chunk| {
            let over = chunk.offset + u64::from(chunk.len) <= released;
            debug_assert!(chunk.given || !over, "what was never sent cannot be acknowledged");
            over
        });
        if !self.bursts.is_empty() {
            self.divide_bursts();
        }
    }

    #[inline(never)]
    fn divide_bursts(&mut self) {
        self.discard_bursts();
        while let Some(Burst { first, count }) = self.bursts.pop() {
            let len = u64::from(first.len);
            self.ring
                .push_run(count, |behind| Chunk { offset: first.offset + behind * len, ..first });
        }
        let released = self.released;
        self.ring.pop_while(|chunk| chunk.offset + u64::from(chunk.len) <= released);
    }

    /// Discards the bursts that are released, if the chunks before them are gone.
    fn discard_bursts(&mut self) {
        while self.ring.is_empty()
            && let Some(burst) = self.bursts.get(self.bursts.first())
            && burst.end() <= self.released
        {
            self.ring.pass(burst.count);
            self.bursts.pop();
        }
    }
}

impl Chunks<ByteCount> {
    /// Cuts `count` full chunks and gives them to a path at once; returns the number and
    /// offset of the first. Valid only if no cut chunk waits and the source has as much.
    #[inline]
    pub fn cut_and_send_run(&mut self, now: Time, path: usize, count: u32) -> (u64, u64) {
        debug_assert!(self.runs.is_empty(), "what waits goes first");
        let (len, offset, number) = (u64::from(self.mss), self.cut, self.end());
        self.source.cut_bytes(u64::from(count) * len);
        self.cut += u64::from(count) * len;
        let first = Chunk::given(now, (), offset, self.mss, path, 0);
        if count == 1 && self.bursts.is_empty() {
            self.push(first);
        } else {
            if self.bursts.room() == 0 {
                self.make_room();
            }
            self.bursts.push(Burst { first, count });
            self.next += u64::from(count);
        }
        (number, offset)
    }

    /// Discards released bursts, so that their ring need not grow.
    #[inline(never)]
    fn make_room(&mut self) {
        let released = self.released;
        self.ring.pop_while(|chunk| chunk.offset + u64::from(chunk.len) <= released);
        self.discard_bursts();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u16 = 10;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// Sends full chunks together.
        Burst(u32),
        /// Sends one chunk, which may be looked at.
        Single,
        /// Releases a part of what was sent, per cent.
        Release(u64),
        /// A path reports chunks delivered: where they begin, per cent, and how many.
        Deliver(u64, u64),
        Settle,
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (1u32..6).prop_map(Step::Burst),
            1 => Just(Step::Single),
            3 => (0u64..=100).prop_map(Step::Release),
            1 => (0u64..=100, 1u64..9).prop_map(|(from, count)| Step::Deliver(from, count)),
            1 => Just(Step::Settle),
        ]
    }

    fn endless() -> Chunks<ByteCount> {
        let mut source = ByteCount::default();
        source.write(u64::MAX);
        Chunks::new(source, MSS)
    }

    proptest! {
        /// Bursts end as the same chunks as if each had been sent alone and seen at once.
        #[test]
        fn bursts_are_chunks(steps in proptest::collection::vec(any_step(), 1..300)) {
            let (mut ours, mut plain) = (endless(), endless());
            let mut released = 0;
            for (now, step) in (1..).map(Time::from_nanos).zip(steps) {
                match step {
                    Step::Burst(count) => {
                        let (number, offset) = ours.cut_and_send_run(now, 1, count);
                        for behind in 0..u64::from(count) {
                            let (each, chunk) = plain.cut_and_send(now, 1, 0).unwrap();
                            prop_assert_eq!(each, number + behind);
                            prop_assert_eq!(chunk.offset, offset + behind * u64::from(MSS));
                        }
                    }
                    Step::Single => {
                        let of = |chunks: &mut Chunks<ByteCount>| {
                            chunks.cut_and_send(now, 2, 0).map(|(number, chunk)| (number, chunk.offset))
                        };
                        prop_assert_eq!(of(&mut ours), of(&mut plain));
                    }
                    Step::Release(percent) => {
                        released = released.max(plain.head_offset() * percent / 100);
                        ours.release_before(released);
                        plain.release_before(released);
                        plain.settle();
                    }
                    Step::Deliver(from, count) => {
                        let from = plain.end() * from / 100;
                        let chunks = from..(from + count).min(plain.end());
                        ours.mark_delivered(chunks.clone());
                        plain.mark_delivered(chunks);
                    }
                    Step::Settle => {
                        ours.settle();
                        prop_assert_eq!(ours.base(), plain.base());
                    }
                }
                prop_assert_eq!(ours.end(), plain.end());
                prop_assert_eq!(ours.head_offset(), plain.head_offset());
                prop_assert_eq!(released == plain.head_offset(), {
                    let mut done = ours.clone();
                    done.source_mut().stop();
                    done.is_empty()
                });
            }
            ours.settle();
            prop_assert_eq!((ours.base(), ours.end()), (plain.base(), plain.end()));
            for number in 0..plain.end() {
                prop_assert_eq!(
                    format!("{:?}", ours.get(number)),
                    format!("{:?}", plain.get(number))
                );
            }
        }
    }
}
