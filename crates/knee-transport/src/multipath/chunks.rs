//! The data of a connection at the sending end, cut into packets.

use super::runs::Runs;
use knee_sched::PathSet;
use knee_units::Time;
use std::collections::VecDeque;
use std::ops::Range;

/// A packet's worth of data. It keeps its cut for life.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Its first byte.
    pub offset: u64,
    /// When it was given to a path last.
    pub sent_at: Time,
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

/// All chunks that are not acknowledged, by number.
#[derive(Clone, Debug)]
pub struct Chunks {
    ring: VecDeque<Chunk>,
    /// Number of the first chunk in the ring.
    base: u64,
    /// The chunks that wait.
    runs: Runs,
    /// Bytes cut.
    cut: u64,
    /// Bytes written; `u64::MAX`: no end.
    written: u64,
    /// Bytes cut that wait.
    waiting: u64,
    mss: u64,
}

impl Chunks {
    pub fn new(mss: u32) -> Chunks {
        Chunks {
            ring: VecDeque::new(),
            base: 0,
            runs: Runs::default(),
            cut: 0,
            written: 0,
            waiting: 0,
            mss: u64::from(mss),
        }
    }

    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Nothing is sent after what was cut.
    pub fn stop(&mut self) {
        self.written = self.cut;
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that wait.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.waiting + (self.written - self.cut)
    }

    /// Number of the first chunk that waits, if there is one or it can be
    /// cut: all before it were given to paths.
    #[inline]
    pub fn head(&self) -> u64 {
        self.runs.first().unwrap_or(self.end())
    }

    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// A chunk that is not acknowledged.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Chunk> {
        self.ring.get(number.checked_sub(self.base)? as usize)
    }

    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Chunk> {
        self.ring.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// First byte of the chunk that waits first.
    #[inline]
    pub fn head_offset(&self) -> u64 {
        self.get(self.head()).map_or(self.cut, |chunk| chunk.offset)
    }

    fn cut_one(&mut self) -> bool {
        let len = self.mss.min(self.written - self.cut);
        if len == 0 {
            return false;
        }
        self.ring.push_back(Chunk {
            offset: self.cut,
            sent_at: Time::ZERO,
            len: len as u16,
            given: false,
            sent_on: PathSet::default(),
            holder: 0,
            delivered: false,
            queued: false,
        });
        self.cut += len;
        self.waiting += len;
        self.runs.push(self.end() - 1);
        true
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
        let mut left = bytes;
        for run in self.runs.iter() {
            // A run is of one piece in bytes, too.
            let (first, end) = (self.get(run.start)?, self.get(run.end - 1)?);
            let wanted = first.offset + left;
            if wanted <= end.offset {
                return Some(self.first_from(run, wanted));
            }
            left = wanted.saturating_sub(end.offset + u64::from(end.len));
        }
        Some(last)
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
        if self.written == u64::MAX {
            return self.first_waiting();
        }
        while self.cut_one() {}
        self.runs.last()
    }

    /// Notes that a chunk was given to a path.
    #[inline]
    pub fn note_sent(&mut self, now: Time, number: u64, path: usize) {
        let Some(chunk) = self.get_mut(number) else { return };
        let first = !std::mem::replace(&mut chunk.given, true);
        chunk.sent_on.insert(path);
        chunk.holder = path as u8;
        chunk.sent_at = now;
        if first {
            self.waiting -= u64::from(chunk.len);
            self.runs.remove(number);
        }
    }

    /// Forgets what lies before byte `acknowledged`.
    #[inline]
    pub fn forget_before(&mut self, acknowledged: u64) {
        while let Some(chunk) = self.ring.front() {
            if chunk.offset + u64::from(chunk.len) > acknowledged {
                break;
            }
            debug_assert!(chunk.given, "what was never sent cannot be acknowledged");
            self.ring.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 10;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write(u64),
        First,
        Ahead(u64),
        Last,
        Acknowledge(u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1..120_u64).prop_map(Step::Write),
            3 => Just(Step::First),
            6 => (0..400_u64).prop_map(Step::Ahead),
            2 => Just(Step::Last),
            2 => (0..100_u64).prop_map(Step::Acknowledge),
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
            let len = self.uncut.min(MSS);
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
            let (mut chunks, mut plain) = (Chunks::new(MSS as u32), Plain::default());
            for step in steps {
                let (ours, theirs) = match step {
                    Step::Write(bytes) => {
                        chunks.write(bytes);
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
                };
                prop_assert_eq!(ours, theirs.map(|at| at as u64), "{:?}", step);
                if let Some(at) = theirs {
                    plain.chunks[at].1 = false;
                    chunks.note_sent(Time::ZERO, at as u64, 0);
                }
                let waiting = plain.chunks.iter().filter(|chunk| chunk.1);
                let waiting = waiting.map(|chunk| chunk.0).sum::<u64>() + plain.uncut;
                prop_assert_eq!(chunks.unsent(), waiting);
                let head = plain.chunks.iter().position(|chunk| chunk.1);
                prop_assert_eq!(chunks.head(), head.unwrap_or(plain.chunks.len()) as u64);
            }
        }
    }
}
