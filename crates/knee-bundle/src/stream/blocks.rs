//! Bytes of a stream that arrived in any order, each copied once, to its place.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Bytes of a block. Blocks begin at multiples of it, so that a peer that leaves gaps makes this
/// end allocate at most the span from the first byte held to the last, and two blocks, for each
/// stream.
const BLOCK: u64 = 1 << 15;

/// Maximum number of blocks that are kept for later.
const KEPT_MAX: usize = 8;

/// Memory of blocks that have been read, for all streams of a bundle: used again once the reader
/// has dropped what it read, instead of allocated.
#[derive(Clone, Debug, Default)]
pub struct Pool(Vec<BytesMut>);

impl Pool {
    fn take(&mut self) -> BytesMut {
        while let Some(mut block) = self.0.pop() {
            if block.try_reclaim(BLOCK as usize) {
                return block;
            }
            // The reader keeps it.
        }
        BytesMut::with_capacity(BLOCK as usize)
    }

    fn give(&mut self, block: BytesMut) {
        if self.0.len() < KEPT_MAX {
            self.0.push(block);
        }
    }
}

/// The bytes from the first one not taken to the last one written. It does not know which of them
/// have been written; its owner does.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    /// Offset of the first byte held.
    from: u64,
    /// The first begins at `from`. Each reaches to the last byte written in it; gaps are zero.
    blocks: VecDeque<BytesMut>,
}

impl Blocks {
    /// Writes bytes to their place; none may be before the first one held.
    pub(super) fn write(&mut self, mut offset: u64, mut bytes: &[u8], pool: &mut Pool) {
        while !bytes.is_empty() {
            let (block, end) = (offset / BLOCK, (offset / BLOCK + 1) * BLOCK);
            let (here, rest) = bytes.split_at(bytes.len().min((end - offset) as usize));
            self.write_block(block, offset, here, pool);
            (offset, bytes) = (end, rest);
        }
    }

    /// Writes bytes that are all in one block.
    fn write_block(&mut self, number: u64, offset: u64, bytes: &[u8], pool: &mut Pool) {
        let begin = self.from.max(number * BLOCK);
        let (at, index) = ((offset - begin) as usize, (number - self.from / BLOCK) as usize);
        if index >= self.blocks.len() {
            self.blocks.resize_with(index + 1, BytesMut::new);
        }
        let block = &mut self.blocks[index];
        // A short stream has no more than it needs.
        if block.capacity() == 0 && number > 0 {
            *block = pool.take();
        }
        if block.len() < at {
            block.resize(at, 0);
        }
        let (known, new) = bytes.split_at((block.len() - at).min(bytes.len()));
        block[at..at + known.len()].copy_from_slice(known);
        block.extend_from_slice(new);
    }

    /// Takes at most `most` bytes off the front, which must all have been written: those of the
    /// first block.
    pub(super) fn take(&mut self, most: u64, pool: &mut Pool) -> Bytes {
        let Some(first) = self.blocks.front_mut().filter(|_| most > 0) else { return Bytes::new() };
        let taken = first.split_to(most.min(first.len() as u64) as usize).freeze();
        self.from += taken.len() as u64;
        let is_empty = first.is_empty();
        if is_empty && (self.from.is_multiple_of(BLOCK) || self.blocks.len() == 1) {
            let block = self.blocks.pop_front().unwrap_or_default();
            // The first is as small as its stream.
            if self.from > BLOCK {
                pool.give(block);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The byte at an offset.
    fn byte(offset: u64) -> u8 {
        (offset * 7 + offset / 251) as u8
    }

    fn bytes(offset: u64, len: u64) -> Vec<u8> {
        (offset..offset + len).map(byte).collect()
    }

    /// A reader that asks before the first byte has come does not take the place of its block.
    #[test]
    fn asking_too_early_changes_nothing() {
        let (mut blocks, mut pool) = (Blocks::default(), Pool::default());
        blocks.write(BLOCK, &bytes(BLOCK, 100), &mut pool);
        assert!(blocks.take(0, &mut pool).is_empty());
        blocks.write(0, &bytes(0, BLOCK), &mut pool);
        assert_eq!(blocks.take(u64::MAX, &mut pool), bytes(0, BLOCK));
        assert_eq!(blocks.take(100, &mut pool), bytes(BLOCK, 100));
    }

    proptest! {
        /// Each byte comes out once, in order, as it was written, and no more is allocated than the
        /// span that is held and two blocks.
        #[test]
        fn what_is_taken_was_written(
            steps in prop::collection::vec((0..3 * BLOCK, 1..3000_u64, 0..200_000_u64), 1..60)
        ) {
            let (mut blocks, mut pool) = (Blocks::default(), Pool::default());
            let mut written = vec![false; 0];
            let mut read = 0_u64;
            let mut kept: Vec<(u64, Bytes)> = Vec::new();
            for (ahead, len, most) in steps {
                // Every third continues what was read.
                let offset = if len % 3 == 0 { read } else { read + ahead };
                blocks.write(offset, &bytes(offset, len), &mut pool);
                let end = (offset + len) as usize;
                written.resize(written.len().max(end), false);
                written[offset as usize..end].fill(true);
                let mut left = most;
                loop {
                    let there = &written[read as usize..];
                    let in_order = there.iter().take_while(|there| **there).count() as u64;
                    let taken = blocks.take(in_order.min(left), &mut pool);
                    prop_assert_eq!(taken.is_empty(), in_order.min(left) == 0);
                    if taken.is_empty() {
                        break;
                    }
                    prop_assert_eq!(&taken[..], &bytes(read, taken.len() as u64)[..]);
                    (read, left) = (read + taken.len() as u64, left - taken.len() as u64);
                    if ahead % 2 == 0 {
                        kept.push((read - taken.len() as u64, taken));
                    }
                }
                // What a reader keeps is not written over.
                for (offset, taken) in &kept {
                    prop_assert_eq!(&taken[..], &bytes(*offset, taken.len() as u64)[..]);
                }
                if ahead % 5 == 0 {
                    kept.clear();
                }
                let allocated: usize = blocks.blocks.iter().map(BytesMut::capacity).sum();
                prop_assert!(pool.0.len() <= KEPT_MAX);
                let span = written.len() as u64 - read;
                prop_assert!(allocated as u64 <= span + 2 * BLOCK, "{allocated} for {span}");
            }
        }
    }
}
