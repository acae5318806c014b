//! Memory in which packets are kept from read to write.
//!
//! Packets are read one after the other into large chunks; a chunk is reused when none of its
//! packets is left. So only the kernel copies a payload, and memory grows with the bytes in flight,
//! not with the number of reads.

use crate::tun::PACKET_BYTES_MAX;

const CHUNK_BYTES: usize = 1 << 20;
/// Alignment of packets: a header touches fewer cache lines.
const ALIGNMENT: usize = 64;

/// Position of data in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub chunk: u32,
    pub start: u32,
}

#[derive(Debug, Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    current: Option<u32>,
    tail: usize,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    /// Number of references.
    held: u32,
}

impl Arena {
    /// Returns room for the largest packet.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        let current = match self.current {
            Some(current) if self.tail + PACKET_BYTES_MAX <= CHUNK_BYTES => current,
            _ => self.next_chunk(),
        };
        &mut self.chunks[current as usize].bytes[self.tail..]
    }

    /// Keeps `len` bytes of the room just returned, with one reference.
    #[inline]
    pub fn keep(&mut self, len: usize) -> Place {
        let place = Place { chunk: self.current.unwrap_or(0), start: self.tail as u32 };
        self.chunks[place.chunk as usize].held += 1;
        self.tail = (self.tail + len).next_multiple_of(ALIGNMENT);
        place
    }

    /// Adds a reference.
    #[inline]
    pub fn hold(&mut self, chunk: u32) {
        self.chunks[chunk as usize].held += 1;
    }

    /// Drops `count` references.
    #[inline]
    pub fn release(&mut self, chunk: u32, count: u32) {
        let held = &mut self.chunks[chunk as usize].held;
        *held -= count;
        if *held == 0 && self.current != Some(chunk) {
            self.free.push(chunk);
        }
    }

    #[inline]
    pub fn bytes(&self, place: Place, len: usize) -> &[u8] {
        &self.chunks[place.chunk as usize].bytes[place.start as usize..][..len]
    }

    /// Overwrites bytes that are kept.
    pub fn put(&mut self, place: Place, bytes: &[u8]) {
        let Place { chunk, start } = place;
        self.chunks[chunk as usize].bytes[start as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    #[cold]
    fn next_chunk(&mut self) -> u32 {
        if let Some(full) = self.current.take()
            && self.chunks[full as usize].held == 0
        {
            self.free.push(full);
        }
        self.tail = 0;
        let next = self.free.pop().unwrap_or_else(|| {
            let bytes = vec![0; CHUNK_BYTES].into_boxed_slice();
            self.chunks.push(Chunk { bytes, held: 0 });
            self.chunks.len() as u32 - 1
        });
        self.current = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet's bytes do not change while others come and go, and a hundred chunks' worth of
    /// packets needs the memory of a few chunks.
    #[test]
    fn chunks_are_used_anew_when_empty() {
        let mut arena = Arena::default();
        arena.room()[..3].copy_from_slice(b"abc");
        let kept = arena.keep(3);
        for round in 0..100 * (CHUNK_BYTES / 50_000) {
            arena.room()[0] = round as u8;
            let place = arena.keep(50_000);
            assert_eq!(arena.bytes(place, 1)[0], round as u8);
            arena.release(place.chunk, 1);
        }
        assert_eq!(arena.bytes(kept, 3), b"abc");
        assert!(arena.chunks.len() <= 3);
    }
}
