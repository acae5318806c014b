//! The data of a connection at the sending end, cut into packets.

use crate::ring::Ring;
use crate::runs::Runs;
use crate::source::{ENDLESS, Source};
use knee_sched::PathSet;
use knee_units::Time;
use std::ops::Range;

/// A packet's worth of data. It keeps its cut for life.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<P> {
    /// What the source calls it.
    pub piece: P,
    /// Its first byte, in the order of cutting.
    pub offset: u64,
    /// When it was given to a path last.
    pub sent_at: Time,
    /// Bytes that this path held then, with its own.
    pub queued_behind: u32,
    /// Bytes.
    pub len: u16,
    /// It was given to a path; else it waits.
    pub given: bool,
    /// The paths that were given it, those that are gone left out.
    pub sent_on: PathSet,
    /// The path that was given it last.
    pub holder: u8,
    /// A path reports it delivered.
    pub delivered: bool,
    /// It waits in the queue of what is to be sent on another path.
    pub queued: bool,
}

/// All chunks that are not released, by number.
#[derive(Clone, Debug)]
pub struct Chunks<S: Source> {
    source: S,
    ring: Ring<Chunk<S::Piece>>,
    /// The chunks that wait.
    runs: Runs,
    /// Bytes cut.
    cut: u64,
    /// Bytes cut that wait.
    waiting: u64,
    mss: u16,
}

impl<S: Source> Chunks<S> {
    pub fn new(source: S, mss: u16) -> Chunks<S> {
        Chunks { source, ring: Ring::default(), runs: Runs::default(), cut: 0, waiting: 0, mss }
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Nothing waits, and nothing that was cut is still to be released.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.source.waiting() == 0
    }

    /// Bytes that wait.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.waiting.saturating_add(self.source.waiting())
    }

    /// Number of the first chunk that waits, if there is one or it can be
    /// cut: all before it were given to paths.
    #[inline]
    pub fn head(&self) -> u64 {
        self.runs.first().unwrap_or(self.end())
    }

    #[inline]
    pub fn base(&self) -> u64 {
        self.ring.first()
    }

    #[inline]
    pub fn end(&self) -> u64 {
        self.ring.next()
    }

    /// The first chunk that is not released.
    #[inline]
    pub fn first(&self) -> Option<&Chunk<S::Piece>> {
        self.ring.get(self.ring.first())
    }

    /// A chunk that is not released.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Chunk<S::Piece>> {
        self.ring.get(number)
    }

    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk<S::Piece>> {
        self.ring.get_mut(number)
    }

    /// First byte of the chunk that waits first.
    #[inline]
    pub fn head_offset(&self) -> u64 {
        if self.runs.is_empty() {
            return self.cut;
        }
        self.get(self.head()).map_or(self.cut, |chunk| chunk.offset)
    }

    fn cut_one(&mut self) -> bool {
        let Some((piece, len)) = self.source.cut(self.mss) else { return false };
        debug_assert!(len > 0 && len <= self.mss, "a piece of {len} bytes");
        self.ring.push(Chunk {
            piece,
            offset: self.cut,
            sent_at: Time::ZERO,
            queued_behind: 0,
            len,
            given: false,
            sent_on: PathSet::default(),
            holder: 0,
            delivered: false,
            queued: false,
        });
        self.cut += u64::from(len);
        self.waiting += u64::from(len);
        self.runs.push(self.end() - 1);
        true
    }

    /// Cuts the next chunk and gives it to a path at once. Only where none that
    /// was cut waits, which is nearly always.
    #[inline(always)]
    pub fn cut_and_send(
        &mut self,
        now: Time,
        path: usize,
        held: u64,
    ) -> Option<(u64, Chunk<S::Piece>)> {
        debug_assert!(self.runs.is_empty(), "what waits goes first");
        let (piece, len) = self.source.cut(self.mss)?;
        debug_assert!(len > 0 && len <= self.mss, "a piece of {len} bytes");
        let mut sent_on = PathSet::default();
        sent_on.insert(path);
        let chunk = Chunk {
            piece,
            offset: self.cut,
            sent_at: now,
            queued_behind: with_own(held, len),
            len,
            given: true,
            sent_on,
            holder: path as u8,
            delivered: false,
            queued: false,
        };
        let number = self.end();
        self.ring.push(chunk);
        self.cut += u64::from(len);
        Some((number, chunk))
    }

    /// No chunk that was cut waits.
    #[inline]
    pub fn all_cut_sent(&self) -> bool {
        self.runs.is_empty()
    }

    /// The chunk that waits first.
    #[inline]
    pub fn first_waiting(&mut self) -> Option<u64> {
        (!self.runs.is_empty() || self.cut_one()).then(|| self.head())
    }

    /// The chunk that waits so many waiting bytes after the first; the last
    /// one if there are fewer.
    pub fn waiting_ahead(&mut self, bytes: u64) -> Option<u64> {
        self.first_waiting()?;
        let last = loop {
            let last = self.runs.last()?;
            let before = self.waiting - u64::from(self.get(last)?.len);
            if before >= bytes || !self.cut_one() {
                break last;
            }
        };
        // Mostly it is near the end of what is cut.
        let mut before = self.waiting;
        let mut found = last;
        for run in self.runs.iter().rev() {
            // A run is of one piece in bytes, too.
            let (first, end) = (self.get(run.start)?, self.get(run.end - 1)?);
            before -= end.offset + u64::from(end.len) - first.offset;
            if before + (end.offset - first.offset) < bytes {
                break;
            }
            found = self.first_from(run, first.offset + bytes.saturating_sub(before));
        }
        Some(found)
    }

    /// The first of these chunks that begins at the byte `offset` or later.
    fn first_from(&self, chunks: Range<u64>, offset: u64) -> u64 {
        let (mut low, mut high) = (chunks.start, chunks.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle) {
                Some(chunk) if chunk.offset < offset => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// The chunk that waits last of all that is written; the first one when
    /// there is no end.
    pub fn last_waiting(&mut self) -> Option<u64> {
        if self.source.waiting() >= ENDLESS {
            return self.first_waiting();
        }
        while self.cut_one() {}
        self.runs.last()
    }

    /// Notes that a chunk was given to a path that `held` so many bytes.
    #[inline]
    pub fn note_sent(&mut self, now: Time, number: u64, path: usize, held: u64) {
        let Some(chunk) = self.get_mut(number) else { return };
        chunk.queued_behind = with_own(held, chunk.len);
        let first = !std::mem::replace(&mut chunk.given, true);
        chunk.sent_on.insert(path);
        chunk.holder = path as u8;
        chunk.sent_at = now;
        if first {
            self.waiting -= u64::from(chunk.len);
            self.runs.remove(number);
        }
    }

    /// Takes out of what waits the chunks that nobody wants any more. What follows them
    /// counts as if they had never been cut.
    pub fn withdraw(&mut self, is_unwanted: impl Fn(&S::Piece) -> bool) {
        let mut gone = 0;
        for number in self.head()..self.end() {
            let Some(chunk) = self.ring.get_mut(number) else { break };
            chunk.offset -= gone;
            if !chunk.given && is_unwanted(&chunk.piece) {
                gone += u64::from(chunk.len);
                (chunk.len, chunk.given, chunk.delivered) = (0, true, true);
                self.runs.remove(number);
            }
        }
        self.cut -= gone;
        self.waiting -= gone;
    }

    /// Forgets what lies before byte `acknowledged`.
    #[inline]
    pub fn forget_before(&mut self, acknowledged: u64) {
        while let Some(chunk) = self.first() {
            if chunk.offset + u64::from(chunk.len) > acknowledged {
                break;
            }
            debug_assert!(chunk.given, "what was never sent cannot be acknowledged");
            self.ring.pop();
        }
    }

    /// Forgets the chunks before the first one that is not delivered; returns
    /// where that begins.
    pub fn forget_delivered(&mut self) -> u64 {
        while self.first().is_some_and(|chunk| chunk.delivered) {
            self.ring.pop();
        }
        self.first().map_or(self.cut, |chunk| chunk.offset)
    }
}

/// No path holds as much as does not fit.
#[inline]
fn with_own(held: u64, len: u16) -> u32 {
    u32::try_from(held + u64::from(len)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::ByteCount;
    use proptest::prelude::*;

    const MSS: u16 = 10;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u64),
        First,
        Ahead(u64),
        Last,
        Acknowledge(u64),
        /// What waits of every third piece.
        Withdraw,
    }

    /// Bytes whose pieces are numbered.
    #[derive(Default)]
    struct Numbered(ByteCount, u64);

    impl Source for Numbered {
        type Piece = u64;

        fn cut(&mut self, max: u16) -> Option<(u64, u16)> {
            let ((), len) = self.0.cut(max)?;
            self.1 += 1;
            Some((self.1 - 1, len))
        }

        fn waiting(&self) -> u64 {
            self.0.waiting()
        }
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1..120_u64).prop_map(Step::Write),
            3 => Just(Step::First),
            6 => (0..400_u64).prop_map(Step::Ahead),
            2 => Just(Step::Last),
            2 => (0..100_u64).prop_map(Step::Acknowledge),
            1 => Just(Step::Withdraw),
        ]
    }

    /// The same, chunk by chunk: for each its length and whether it waits.
    #[derive(Default)]
    struct Plain {
        chunks: Vec<(u64, bool)>,
        uncut: u64,
    }

    impl Plain {
        fn cut(&mut self) -> bool {
            let len = self.uncut.min(u64::from(MSS));
            self.uncut -= len;
            self.chunks.extend((len > 0).then_some((len, true)));
            len > 0
        }

        fn next_waiting(&mut self, from: usize) -> Option<usize> {
            let found = (from..self.chunks.len()).find(|at| self.chunks[*at].1);
            found.or_else(|| self.cut().then(|| self.chunks.len() - 1))
        }

        fn ahead(&mut self, bytes: u64) -> Option<usize> {
            let mut found = self.next_waiting(0)?;
            let mut skipped = 0;
            while skipped < bytes {
                skipped += self.chunks[found].0;
                match self.next_waiting(found + 1) {
                    Some(next) => found = next,
                    None => break,
                }
            }
            Some(found)
        }

        fn withdraw(&mut self) {
            for chunk in self.chunks.iter_mut().step_by(3).filter(|chunk| chunk.1) {
                *chunk = (0, false);
            }
        }

        fn last(&mut self) -> Option<usize> {
            while self.cut() {}
            self.chunks.iter().rposition(|chunk| chunk.1)
        }
    }

    proptest! {
        /// Whatever is written, sent and acknowledged in whatever order.
        #[test]
        fn chunks_are_found_as_by_looking_at_each(
            steps in proptest::collection::vec(any_step(), 1..300),
        ) {
            let (mut chunks, mut plain) = (Chunks::new(Numbered::default(), MSS), Plain::default());
            for step in steps {
                let (ours, theirs) = match step {
                    Step::Write(bytes) => {
                        chunks.source_mut().0.write(bytes);
                        plain.uncut += bytes;
                        (None, None)
                    }
                    Step::First => (chunks.first_waiting(), plain.next_waiting(0)),
                    Step::Ahead(bytes) => (chunks.waiting_ahead(bytes), plain.ahead(bytes)),
                    Step::Last => (chunks.last_waiting(), plain.last()),
                    Step::Acknowledge(percent) => {
                        let sent = plain.chunks.iter().take_while(|chunk| !chunk.1);
                        let sent: u64 = sent.map(|chunk| chunk.0).sum();
                        chunks.forget_before(sent * percent / 100);
                        (None, None)
                    }
                    Step::Withdraw => {
                        chunks.withdraw(|number| number % 3 == 0);
                        plain.withdraw();
                        (None, None)
                    }
                };
                prop_assert_eq!(ours, theirs.map(|at| at as u64), "{:?}", step);
                if let Some(at) = theirs {
                    plain.chunks[at].1 = false;
                    chunks.note_sent(Time::ZERO, at as u64, 0, 0);
                }
                let waiting = plain.chunks.iter().filter(|chunk| chunk.1);
                let waiting = waiting.map(|chunk| chunk.0).sum::<u64>() + plain.uncut;
                prop_assert_eq!(chunks.unsent(), waiting);
                let head = plain.chunks.iter().position(|chunk| chunk.1);
                prop_assert_eq!(chunks.head(), head.unwrap_or(plain.chunks.len()) as u64);
                let before = &plain.chunks[..head.unwrap_or(plain.chunks.len())];
                let before: u64 = before.iter().map(|chunk| chunk.0).sum();
                prop_assert_eq!(chunks.head_offset(), before);
            }
        }
    }
}
