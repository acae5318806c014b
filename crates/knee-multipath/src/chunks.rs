//! The data of a connection at the sending end, cut into packets.

mod bursts;

use crate::ring::Ring;
use crate::runs::Runs;
use crate::sched::PathSet;
use crate::source::{ENDLESS, Source};
use bursts::Burst;
use knee_units::Time;
use std::ops::Range;

/// The data of one packet. Its boundaries never change.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<P> {
    /// The source's name for it.
    pub piece: P,
    /// Its first byte, in the order of cutting.
    pub offset: u64,
    /// When it was last given to a path.
    pub sent_at: Time,
    /// Bytes that this path held at that time, including its own.
    pub queued_behind: u32,
    /// Bytes.
    pub len: u16,
    /// Whether it was given to a path; otherwise it waits.
    pub given: bool,
    /// The paths to which it was given, except removed ones.
    pub sent_on: PathSet,
    /// The path to which it was last given.
    pub holder: u8,
    /// Whether a path has reported it delivered.
    pub delivered: bool,
    /// Whether it is queued for sending on another path.
    pub queued: bool,
}

/// All unreleased chunks, by number.
///
/// Most are sent in bursts and acknowledged before anything is to be decided about
/// them. So bursts are divided into chunks, and acknowledged chunks discarded, only
/// before chunks are accessed: by [`settle`](Chunks::settle).
#[derive(Clone, Debug)]
pub struct Chunks<S: Source> {
    source: S,
    ring: Ring<Chunk<S::Piece>>,
    /// Bursts whose chunks follow those in the ring.
    bursts: Ring<Burst<S::Piece>>,
    /// Number of the next chunk to be cut.
    next: u64,
    /// All chunks before this byte are released.
    released: u64,
    /// The waiting chunks.
    runs: Runs,
    /// Bytes cut.
    cut: u64,
    /// Bytes cut and waiting.
    waiting: u64,
    mss: u16,
}

impl<S: Source> Chunks<S> {
    pub fn new(source: S, mss: u16) -> Chunks<S> {
        Chunks {
            source,
            ring: Ring::default(),
            bursts: Ring::default(),
            next: 0,
            released: 0,
            runs: Runs::default(),
            cut: 0,
            waiting: 0,
            mss,
        }
    }

    pub fn source(&self) -> &S {
        &self.source
    }

    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Whether nothing waits and everything cut has been released.
    pub fn is_empty(&self) -> bool {
        let nothing_sent = self.ring.is_empty() && self.bursts.is_empty();
        (nothing_sent || self.released >= self.cut) && self.source.waiting() == 0
    }

    /// Returns the waiting bytes.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.waiting.saturating_add(self.source.waiting())
    }

    /// Returns the number of the first waiting chunk, or of the next one to be
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
        self.next
    }

    /// Returns the first unreleased chunk.
    #[inline]
    pub fn first(&self) -> Option<&Chunk<S::Piece>> {
        self.ring.get(self.ring.first())
    }

    /// Returns an unreleased chunk.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Chunk<S::Piece>> {
        self.ring.get(number)
    }

    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk<S::Piece>> {
        self.ring.get_mut(number)
    }

    /// Returns the first byte of the first waiting chunk.
    #[inline]
    pub fn head_offset(&self) -> u64 {
        if self.runs.is_empty() {
            return self.cut;
        }
        self.get(self.head()).map_or(self.cut, |chunk| chunk.offset)
    }

    #[inline(always)]
    fn push(&mut self, chunk: Chunk<S::Piece>) {
        if !self.bursts.is_empty() || self.ring.room() == 0 {
            self.settle();
        }
        self.ring.push(chunk);
        self.next += 1;
    }

    fn cut_one(&mut self) -> bool {
        let Some((piece, len)) = self.source.cut(self.mss) else { return false };
        debug_assert!(len > 0 && len <= self.mss, "a piece of {len} bytes");
        self.push(Chunk {
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

    /// Cuts the next chunk and gives it to a path at once. Valid only if no cut
    /// chunk waits, which is almost always the case.
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
        let chunk = Chunk::given(now, piece, self.cut, len, path, held);
        let number = self.end();
        self.push(chunk);
        self.cut += u64::from(len);
        Some((number, chunk))
    }

    /// Whether no cut chunk waits.
    #[inline]
    pub fn all_cut_sent(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the first waiting chunk, cutting it if necessary.
    #[inline]
    pub fn first_waiting(&mut self) -> Option<u64> {
        (!self.runs.is_empty() || self.cut_one()).then(|| self.head())
    }

    /// Returns the waiting chunk that is `bytes` waiting bytes after the first;
    /// the last one if there are fewer.
    pub fn waiting_ahead(&mut self, bytes: u64) -> Option<u64> {
        self.first_waiting()?;
        let last = loop {
            let last = self.runs.last()?;
            let before = self.waiting - u64::from(self.get(last)?.len);
            if before >= bytes || !self.cut_one() {
                break last;
            }
        };
        // Usually it is near the end of what is cut.
        let mut before = self.waiting;
        let mut found = last;
        for run in self.runs.iter().rev() {
            // The chunks of a run are also contiguous in bytes.
            let (first, end) = (self.get(run.start)?, self.get(run.end - 1)?);
            before -= end.offset + u64::from(end.len) - first.offset;
            if before + (end.offset - first.offset) < bytes {
                break;
            }
            found = self.first_from(run, first.offset + bytes.saturating_sub(before));
        }
        Some(found)
    }

    /// Returns the first of these chunks that begins at byte `offset` or later.
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

    /// Returns the last waiting chunk of everything written; the first one if
    /// the source is endless.
    pub fn last_waiting(&mut self) -> Option<u64> {
        if self.source.waiting() >= ENDLESS {
            return self.first_waiting();
        }
        while self.cut_one() {}
        self.runs.last()
    }

    /// Gives a chunk to a path that `held` that many bytes. Returns it as it was before;
    /// `None` if it was released.
    #[inline]
    pub fn send(
        &mut self,
        now: Time,
        number: u64,
        path: usize,
        held: u64,
    ) -> Option<Chunk<S::Piece>> {
        let chunk = self.ring.get_mut(number)?;
        let before = *chunk;
        chunk.queued_behind = with_own(held, chunk.len);
        chunk.given = true;
        chunk.sent_on.insert(path);
        chunk.holder = path as u8;
        chunk.sent_at = now;
        if !before.given {
            self.waiting -= u64::from(before.len);
            self.runs.remove(number);
        }
        Some(before)
    }

    /// Removes unwanted chunks from the waiting data. What follows them counts
    /// as if they had never been cut.
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

    /// Discards the chunks before the first undelivered one; returns its first byte.
    pub fn forget_delivered(&mut self) -> u64 {
        while self.first().is_some_and(|chunk| chunk.delivered) {
            self.ring.pop();
        }
        self.first().map_or(self.cut, |chunk| chunk.offset)
    }
}

/// Adds a chunk's own length. No path holds an amount that does not fit.
#[inline]
fn with_own(held: u64, len: u16) -> u32 {
    u32::try_from(held + u64::from(len)).unwrap_or(u32::MAX)
}

impl<P> Chunk<P> {
    /// Data that is cut and at once given to a path that held `held` bytes.
    #[inline(always)]
    fn given(sent_at: Time, piece: P, offset: u64, len: u16, path: usize, held: u64) -> Chunk<P> {
        let mut sent_on = PathSet::default();
        sent_on.insert(path);
        Chunk {
            piece,
            offset,
            sent_at,
            queued_behind: with_own(held, len),
            len,
            given: true,
            sent_on,
            holder: path as u8,
            delivered: false,
            queued: false,
        }
    }
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
        /// Withdraws the waiting chunks of every third piece.
        Withdraw,
    }

    /// Bytes with numbered pieces.
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

    /// A model of [`Chunks`]: a list of all chunks, each with its length and whether it waits.
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
        /// For anything written, sent and acknowledged in any order.
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
                        chunks.release_before(sent * percent / 100);
                        chunks.settle();
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
                    chunks.send(Time::ZERO, at as u64, 0, 0);
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
