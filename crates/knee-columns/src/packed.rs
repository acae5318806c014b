//! Rows of integers in little memory: each block of rows column by column, as differences.

use crate::bits::{BitReader, BitWriter, PADDING, bits_of, folded, unfolded};
use std::ops::Range;

/// Rows of a block, which can be read without those before it.
const BLOCK_ROWS: usize = 64;

/// Rows of integers, ascending in the first of them, in the order in which they were added.
///
/// A complete block holds, for each column, its first value, which rows differ from the row before,
/// and those differences, each in as many bits as the largest needs. The first column is ascending,
/// usually at even distances, so its differences are those of its steps. A time series in which a
/// third of 17 integers changes takes about a dozen bytes a row instead of 136, and single columns
/// can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    width: usize,
    blocks: Vec<Block>,
    /// The last block, at least one row unless there are no rows: places for as many rows as a block
    /// has, one after another.
    open: Vec<u64>,
    /// Number of rows.
    rows: usize,
    /// Empty, with the memory in which blocks are packed.
    scratch: Vec<u8>,
}

/// A complete block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// First integer of the first row.
    first: u64,
    bytes: Box<[u8]>,
}

impl Packed {
    /// Creates an empty list of rows of `width` integers, at least one.
    ///
    /// # Panics
    /// If `width` is zero.
    pub fn new(width: usize) -> Packed {
        assert!(width > 0, "a row has at least one integer");
        let (blocks, open, scratch) = (Vec::new(), vec![0; BLOCK_ROWS * width], Vec::new());
        Packed { width, blocks, open, rows: 0, scratch }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the bytes that the rows take, without what the allocator adds.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| size_of::<Block>() + block.bytes.len());
        blocks.sum::<usize>() + size_of_val(&self.open[..]) + self.scratch.capacity()
    }

    /// Adds a row, and returns its places, to be set: they hold any integers.
    pub fn add(&mut self) -> &mut [u64] {
        let place = self.rows % BLOCK_ROWS;
        if place == 0 && self.rows > 0 {
            let bytes = pack(&self.open, self.width, &mut self.scratch);
            self.blocks.push(Block { first: self.open[0], bytes });
        }
        self.rows += 1;
        &mut self.open[place * self.width..][..self.width]
    }

    /// Returns the rows of the last block, one after another.
    fn last_block(&self) -> &[u64] {
        &self.open[..(self.rows - self.blocks.len() * BLOCK_ROWS) * self.width]
    }

    /// Returns one column of the last block.
    fn last_of(&self, column: usize) -> impl Iterator<Item = u64> {
        self.last_block().chunks_exact(self.width).map(move |row| row[column])
    }

    /// Returns the rows from `number` on.
    pub fn rows_from(&self, number: usize) -> PackedRows<'_> {
        let number = number.min(self.rows);
        let mut rows = PackedRows { packed: self, number, block: Vec::new() };
        if !number.is_multiple_of(BLOCK_ROWS) {
            rows.unpack();
        }
        rows
    }

    /// Returns the last row.
    pub fn last(&self) -> Option<&[u64]> {
        self.last_block().chunks_exact(self.width).last()
    }

    /// Returns the number of the last row whose first integer is below `least`, or zero.
    pub fn last_below(&self, least: u64) -> usize {
        let is_open = self.rows > 0 && self.open[0] < least;
        let blocks = self.blocks.partition_point(|block| block.first < least);
        let mut firsts = Vec::new();
        let before = match is_open {
            true => {
                firsts.extend(self.last_of(0));
                self.blocks.len()
            }
            false => {
                let Some(block) = blocks.checked_sub(1) else { return 0 };
                unpack_column(&self.blocks[block].bytes, 0, &mut firsts);
                block
            }
        };
        before * BLOCK_ROWS + firsts.partition_point(|first| *first < least).saturating_sub(1)
    }

    /// Returns the integers of one column in some rows, or in as many of them as there are.
    pub fn column(&self, column: usize, rows: Range<usize>) -> Vec<u64> {
        let (begin, end) = (rows.start.min(self.rows), rows.end.min(self.rows));
        let (first, last) = (begin / BLOCK_ROWS, end.div_ceil(BLOCK_ROWS));
        let mut values = Vec::with_capacity((last - first) * BLOCK_ROWS);
        for block in &self.blocks[first.min(self.blocks.len())..last.min(self.blocks.len())] {
            unpack_column(&block.bytes, column, &mut values);
        }
        if last > self.blocks.len() {
            values.extend(self.last_of(column));
        }
        let before = first * BLOCK_ROWS;
        values.truncate(end - before);
        values.drain(..begin - before);
        values
    }
}

/// Reads the rows of a [`Packed`].
#[derive(Clone, Debug)]
pub struct PackedRows<'p> {
    packed: &'p Packed,
    /// Number of the next row.
    number: usize,
    /// Rows of its block, one after another.
    block: Vec<u64>,
}

impl PackedRows<'_> {
    /// Returns the number of rows that are left.
    pub fn left(&self) -> usize {
        self.packed.rows - self.number
    }

    /// Returns the next row, or `None` after the last.
    pub fn next_row(&mut self) -> Option<&[u64]> {
        let Packed { width, rows, .. } = self.packed;
        if self.number >= *rows {
            return None;
        }
        let place = self.number % BLOCK_ROWS;
        if place == 0 {
            self.unpack();
        }
        let row = self.block.get(place * width..(place + 1) * width)?;
        self.number += 1;
        Some(row)
    }

    /// Unpacks the block of the next row.
    fn unpack(&mut self) {
        let Packed { width, blocks, .. } = self.packed;
        match blocks.get(self.number / BLOCK_ROWS) {
            Some(block) => unpack(&block.bytes, *width, &mut self.block),
            None => {
                self.block.clear();
                self.block.extend_from_slice(self.packed.last_block());
            }
        }
    }
}

/// Packs a complete block of rows, column by column.
fn pack(rows: &[u64], width: usize, bytes: &mut Vec<u8>) -> Box<[u8]> {
    let mut writer = BitWriter::new(bytes);
    let mut column = [0; BLOCK_ROWS];
    for number in 0..width {
        let values = rows.chunks_exact(width).map(|row| row[number]);
        column.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        put_long(&mut writer, column[0]);
        // Most columns of a block stay the same, which is quickly seen.
        let all = column.iter().fold(0, |all, value| all | (value ^ column[0]));
        if all == 0 {
            writer.put(0, 1);
        } else {
            put_differences(&mut writer, &column, number == 0);
        }
    }
    writer.finish();
    bytes.resize(bytes.len() + PADDING, 0);
    let packed = bytes.as_slice().into();
    bytes.clear();
    packed
}

/// Appends whether a column changes, in which rows, and by how much, or its steps by how much.
fn put_differences(writer: &mut BitWriter<'_>, column: &[u64; BLOCK_ROWS], of_steps: bool) {
    let mut differences = [0; BLOCK_ROWS];
    for row in 1..BLOCK_ROWS {
        differences[row] = column[row].wrapping_sub(column[row - 1]);
    }
    if of_steps {
        for row in (1..BLOCK_ROWS).rev() {
            differences[row] = differences[row].wrapping_sub(differences[row - 1]);
        }
    }
    let (mut changed, mut all) = (0_u64, 0);
    for (row, difference) in differences.iter_mut().enumerate() {
        *difference = folded(*difference);
        changed |= u64::from(*difference != 0) << row;
        all |= *difference;
    }
    writer.put(u64::from(changed != 0), 1);
    if changed != 0 {
        let bits = bits_of(all);
        writer.put(changed, BLOCK_ROWS as u32);
        writer.put(u64::from(bits - 1), 6);
        while changed != 0 {
            writer.put(differences[changed.trailing_zeros() as usize], bits);
            changed &= changed - 1;
        }
    }
}

/// Unpacks all columns of a block into rows.
fn unpack(bytes: &[u8], width: usize, rows: &mut Vec<u64>) {
    rows.resize(BLOCK_ROWS * width, 0);
    let mut values = [0; BLOCK_ROWS];
    let mut reader = BitReader::new(bytes);
    for column in 0..width {
        Column::take(&mut reader, column).unpack(&mut reader, &mut values);
        let places = rows.iter_mut().skip(column).step_by(width);
        places.zip(values).for_each(|(place, value)| *place = value);
    }
}

/// Unpacks one column of a block and appends it to `values`.
fn unpack_column(bytes: &[u8], column: usize, values: &mut Vec<u64>) {
    let mut reader = BitReader::new(bytes);
    for passed in 0..column {
        Column::take(&mut reader, passed).skip(&mut reader);
    }
    let mut unpacked = [0; BLOCK_ROWS];
    Column::take(&mut reader, column).unpack(&mut reader, &mut unpacked);
    values.extend_from_slice(&unpacked);
}

/// Number of changes in a block up to which the values between them are filled in together.
const FEW: u32 = 8;

/// A column of a block, of which the differences are next.
struct Column {
    first: u64,
    /// A bit for each row that differs from the row before.
    changed: u64,
    /// Bits of a difference.
    bits: u32,
    /// Whether the differences are those of steps.
    of_steps: bool,
}

impl Column {
    fn take(reader: &mut BitReader<'_>, column: usize) -> Column {
        let first = take_long(reader);
        let (mut changed, mut bits) = (0, 0);
        if reader.take(1) != 0 {
            changed = reader.take(BLOCK_ROWS as u32);
            bits = reader.take(6) as u32 + 1;
        }
        Column { first, changed, bits, of_steps: column == 0 }
    }

    fn skip(&self, reader: &mut BitReader<'_>) {
        reader.skip((self.changed.count_ones() * self.bits) as usize);
    }

    fn unpack(self, reader: &mut BitReader<'_>, values: &mut [u64; BLOCK_ROWS]) {
        let Column { first: mut value, mut changed, bits, of_steps } = self;
        let mut step = 0_u64;
        if changed.count_ones() > FEW {
            for (row, place) in values.iter_mut().enumerate() {
                // Without branches, because changes are hard to predict.
                let is_changed = changed >> row & 1;
                let difference = unfolded(reader.peek(bits)) & is_changed.wrapping_neg();
                reader.skip((bits & (is_changed as u32).wrapping_neg()) as usize);
                step = if of_steps { step.wrapping_add(difference) } else { difference };
                value = value.wrapping_add(step);
                *place = value;
            }
            return;
        }
        let mut rest = &mut values[..];
        while !rest.is_empty() {
            let same = (changed.trailing_zeros() as usize).min(rest.len());
            let (now, later) = rest.split_at_mut(same);
            for place in now {
                value = value.wrapping_add(step);
                *place = value;
            }
            rest = later;
            changed = changed.checked_shr(same as u32).unwrap_or(0);
            if let Some((place, later)) = std::mem::take(&mut rest).split_first_mut() {
                let difference = unfolded(reader.take(bits));
                value = value.wrapping_add(step).wrapping_add(difference);
                step = if of_steps { step.wrapping_add(difference) } else { 0 };
                *place = value;
                rest = later;
                changed >>= 1;
            }
        }
    }
}

/// Appends a number of any size.
fn put_long(writer: &mut BitWriter<'_>, number: u64) {
    let bits = bits_of(number);
    writer.put(u64::from(bits), 7);
    writer.put(number, bits);
}

fn take_long(reader: &mut BitReader<'_>) -> u64 {
    let bits = reader.take(7) as u32;
    reader.take(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(rows: &[Vec<u64>]) -> Packed {
        let mut packed = Packed::new(rows.first().map_or(1, Vec::len));
        rows.iter().for_each(|row| packed.add().copy_from_slice(row));
        packed
    }

    fn unpacked(mut rows: PackedRows<'_>) -> Vec<Vec<u64>> {
        let mut all = Vec::new();
        while let Some(row) = rows.next_row() {
            all.push(row.to_vec());
        }
        all
    }

    /// Integers of any size, often as before, and large and small steps.
    fn rows() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let value = prop_oneof![Just(0), Just(7), 0..300_u64, any::<u64>(), Just(u64::MAX)];
        let row = prop::collection::vec(value, 5);
        (prop::collection::vec(row, 0..200), any::<bool>()).prop_map(|(mut rows, even)| {
            let mut firsts: Vec<u64> = rows.iter().map(|row| row[0]).collect();
            firsts.sort_unstable();
            for (number, (row, first)) in rows.iter_mut().zip(firsts).enumerate() {
                row[0] = if even { 10 * number as u64 } else { first };
            }
            rows
        })
    }

    proptest! {
        /// What is read is what was added, from any row on, and from any value of the first
        /// integer on.
        #[test]
        fn rows_come_back(rows in rows(), from in 0..210_usize, chosen in any::<prop::sample::Index>()) {
            let packed = packed(&rows);
            prop_assert_eq!(packed.len(), rows.len());
            prop_assert_eq!(packed.is_empty(), rows.is_empty());
            prop_assert_eq!(packed.last(), rows.last().map(Vec::as_slice));
            prop_assert_eq!(packed.rows_from(0).left(), rows.len());
            prop_assert_eq!(unpacked(packed.rows_from(0)), rows.clone());
            prop_assert_eq!(unpacked(packed.rows_from(from)), &rows[from.min(rows.len())..]);
            for column in 0..rows.first().map_or(1, Vec::len) {
                for count in [0, 1, 2, 70, rows.len()] {
                    let expected = rows.iter().skip(from).take(count).map(|row| row[column]);
                    let found = packed.column(column, from..from + count);
                    prop_assert_eq!(found, expected.collect::<Vec<_>>());
                }
            }
            let firsts: Vec<u64> = rows.iter().map(|row| row[0]).collect();
            let some = if firsts.is_empty() { 3 } else { *chosen.get(&firsts) };
            for least in [0, some, some.saturating_add(1), u64::MAX] {
                let at = firsts.iter().filter(|first| **first < least).count();
                prop_assert_eq!(packed.last_below(least), at.saturating_sub(1));
            }
        }
    }

    /// Even distances and integers that stay the same take nothing a row, apart from the open block
    /// and what a block adds.
    #[test]
    fn what_stays_the_same_costs_nothing() {
        let rows: Vec<Vec<u64>> = (0..6400).map(|row| vec![1_000_000 * row, 5, 1 << 40]).collect();
        let bytes = packed(&rows).bytes();
        assert!(bytes < 100 * 80 + 64 * 3 * 8, "{bytes}");
    }
}
