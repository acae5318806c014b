//! The data of a connection at the sending end, cut into packets.

use knee_sched::PathSet;
use knee_units::Time;
use std::collections::VecDeque;

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
    /// Number of the first chunk that waits; one past the last if none does.
    head: u64,
    /// No chunk from here to the last waits.
    tail: u64,
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
            head: 0,
            tail: 0,
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
        self.head
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
        self.get(self.head).map_or(self.cut, |chunk| chunk.offset)
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
        self.tail = self.end();
        true
    }

    fn is_sent(&self, number: u64) -> bool {
        self.get(number).is_some_and(|chunk| chunk.given)
    }

    /// The chunk that waits first.
    #[inline]
    pub fn first_waiting(&mut self) -> Option<u64> {
        (self.head < self.end() || self.cut_one()).then_some(self.head)
    }

    /// The chunk that waits so many waiting bytes after the first; the last
    /// one if there are fewer.
    pub fn waiting_ahead(&mut self, bytes: u64) -> Option<u64> {
        let mut found = self.first_waiting()?;
        let mut skipped = 0;
        let mut number = found;
        while skipped < bytes {
            skipped += u64::from(self.get(number)?.len);
            number += 1;
            while self.is_sent(number) {
                number += 1;
            }
            if number == self.end() && !self.cut_one() {
                break;
            }
            found = number;
        }
        Some(found)
    }

    /// The chunk that waits last of all that is written; the first one when
    /// there is no end.
    pub fn last_waiting(&mut self) -> Option<u64> {
        if self.written == u64::MAX {
            return self.first_waiting();
        }
        while self.cut_one() {}
        while self.tail > self.head && self.is_sent(self.tail - 1) {
            self.tail -= 1;
        }
        (self.tail > self.head).then(|| self.tail - 1)
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
            while self.is_sent(self.head) {
                self.head += 1;
            }
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
        self.head = self.head.max(self.base);
    }
}
