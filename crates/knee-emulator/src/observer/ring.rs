//! A bounded ring of blocks of events between the emulator and the watcher.
//!
//! Full blocks go one way and empty ones back, over two bounded channels. Neither end waits: the
//! emulator counts what finds no empty block as missed.

use super::Event;
use knee_units::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

/// Size of a block, bytes of packets. It holds at least one packet of any size.
const BLOCK_BYTES: usize = 1 << 17;
/// Number of events of a block.
const BLOCK_EVENTS: usize = 1 << 10;
/// Maximum number of blocks, which are made when needed: 38 MB. At 1 Gbit/s, with acknowledgements
/// for every second packet, they hold a second of first bytes.
const BLOCKS_MAX: usize = 256;
/// Maximum time that an event waits in a block that is not full.
const WAIT_MAX: Time = Time::from_millis(100);

/// Some events, and the bytes of their packets one after another.
#[derive(Debug)]
pub struct Block {
    pub events: Vec<Event>,
    pub bytes: Vec<u8>,
}

impl Block {
    fn new() -> Block {
        Block { events: Vec::with_capacity(BLOCK_EVENTS), bytes: Vec::with_capacity(BLOCK_BYTES) }
    }

    /// Iterates over the events, each with the kept bytes of its packet.
    pub fn iter(&self) -> impl Iterator<Item = (&Event, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.events.iter().map(move |event| {
            let (bytes, behind) = rest.split_at(event.kept as usize);
            rest = behind;
            (event, bytes)
        })
    }
}

/// The emulator has ended, and everything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// The end that writes.
#[derive(Debug)]
pub struct Writer {
    full: SyncSender<Block>,
    empty: Receiver<Block>,
    current: Option<Block>,
    made: usize,
    missed: Arc<AtomicU64>,
}

/// The end that reads.
#[derive(Debug)]
pub struct Reader {
    full: Receiver<Block>,
    empty: SyncSender<Block>,
    missed: Arc<AtomicU64>,
}

/// Makes a ring.
pub fn ring() -> (Writer, Reader) {
    let (full, from_writer) = sync_channel(BLOCKS_MAX);
    let (empty, from_reader) = sync_channel(BLOCKS_MAX);
    let missed = Arc::default();
    let writer =
        Writer { full, empty: from_reader, current: None, made: 0, missed: Arc::clone(&missed) };
    (writer, Reader { full: from_writer, empty, missed })
}

impl Writer {
    /// Returns a block with room for an event and so many bytes; without one, the event counts as
    /// missed.
    pub fn room(&mut self, bytes: usize) -> Option<&mut Block> {
        let is_full = self.current.as_ref().is_some_and(|block| {
            block.events.len() == BLOCK_EVENTS || block.bytes.len() + bytes > BLOCK_BYTES
        });
        if is_full {
            self.send();
        }
        if self.current.is_none() {
            self.current = self.next_block();
        }
        if self.current.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        self.current.as_mut()
    }

    /// Sends a block that is not full if its first event has waited for long enough.
    pub fn hand_over(&mut self, now: Time) {
        let first = self.current.as_ref().and_then(|block| block.events.first());
        if first.is_some_and(|first| now.saturating_sub(first.at) >= WAIT_MAX) {
            self.send();
        }
    }

    fn send(&mut self) {
        // There is room for all blocks; the watcher is gone only if it panicked.
        if let Some(block) = self.current.take() {
            let _ = self.full.try_send(block);
        }
    }

    fn next_block(&mut self) -> Option<Block> {
        self.empty.try_recv().ok().or_else(|| {
            let is_allowed = self.made < BLOCKS_MAX;
            self.made += usize::from(is_allowed);
            is_allowed.then(Block::new)
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.send();
    }
}

impl Reader {
    /// Returns the next block, or `None` if there is none now.
    pub fn next(&self) -> Result<Option<Block>, Closed> {
        match self.full.try_recv() {
            Ok(block) => Ok(Some(block)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Closed),
        }
    }

    /// Returns a block that was read.
    pub fn give_back(&self, mut block: Block) {
        block.events.clear();
        block.bytes.clear();
        // The emulator may have ended.
        let _ = self.empty.try_send(block);
    }

    /// Returns the number of events that found no room.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Happened;
    use super::*;

    fn event(number: u64, kept: u32) -> Event {
        let at = Time::from_nanos(number);
        Event { happened: Happened::Left(0), at, entered: at, size: kept, kept }
    }

    fn tell(writer: &mut Writer, number: u64, bytes: usize) -> bool {
        let Some(block) = writer.room(bytes) else { return false };
        block.events.push(event(number, bytes as u32));
        block.bytes.extend(std::iter::repeat_n(number as u8, bytes));
        true
    }

    /// Every event arrives once, in order and with its own bytes, or counts as missed; the writer
    /// never has more blocks than allowed, and goes on once the reader has caught up.
    #[test]
    fn events_arrive_in_order_or_count_as_missed() {
        let (mut writer, reader) = ring();
        let mut told = Vec::new();
        let mut missed = 0;
        for number in 0..2 * (BLOCKS_MAX * BLOCK_EVENTS) as u64 {
            let kept = [120, 40, 1][number as usize % 3];
            if tell(&mut writer, number, kept) { told.push(number) } else { missed += 1 }
        }
        assert!(missed > 0 && writer.made == BLOCKS_MAX);
        let mut read = Vec::new();
        let mut read_all = |reader: &Reader| {
            while let Ok(Some(block)) = reader.next() {
                for (event, bytes) in block.iter() {
                    assert!(bytes.len() as u32 == event.kept);
                    assert!(bytes.iter().all(|byte| *byte == event.at.as_nanos() as u8));
                    read.push(event.at.as_nanos());
                }
                reader.give_back(block);
            }
        };
        read_all(&reader);
        assert!(tell(&mut writer, 1 << 30, 120));
        told.push(1 << 30);
        drop(writer);
        read_all(&reader);
        assert_eq!(reader.next().unwrap_err(), Closed);
        assert_eq!((read, reader.missed()), (told, missed));
    }

    /// An event in a block that does not fill up arrives after the longest wait.
    #[test]
    fn a_single_event_does_not_wait_for_others() {
        let (mut writer, reader) = ring();
        tell(&mut writer, 7, 40);
        writer.hand_over(Time::from_millis(99));
        assert!(reader.next().unwrap().is_none());
        writer.hand_over(Time::from_millis(101));
        assert_eq!(reader.next().unwrap().unwrap().events, [event(7, 40)]);
    }
}
