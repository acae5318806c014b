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
    /// Rows of the last block, one after another, at least one unless there are no rows.
    open: Vec<u64>,
    /// Number of rows.
    rows: usize,
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
        Packed { width, blocks: Vec::new(), open: Vec::new(), rows: 0 }
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
        blocks.sum::<usize>() + size_of_val(&self.open[..])
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it is not as wide as the others.
    pub fn push(&mut self, row: &[u64]) {
        assert_eq!(row.len(), self.width, "all rows are equally wide");
        if self.open.len() == BLOCK_ROWS * self.width {
            self.blocks.push(Block { first: self.open[0], bytes: pack(&self.open, self.width) });
            self.open.clear();
        }
        self.open.extend_from_slice(row);
        self.rows += 1;
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
        self.open.rchunks_exact(self.width).next()
    }

    /// Returns the number of the last row whose first integer is below `least`, or zero.
    pub fn last_below(&self, least: u64) -> usize {
        let is_open = self.open.first().is_some_and(|first| *first < least);
        let blocks = self.blocks.partition_point(|block| block.first < least);
        let mut firsts = Vec::new();
        let before = match is_open {
            true => {
                firsts.extend(self.open.iter().step_by(self.width));
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
            values.extend(self.open.iter().skip(column).step_by(self.width));
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
    /// Rows of its block, unless it is in the open one.
    block: Vec<u64>,
}

impl PackedRows<'_> {
    /// Returns the number of rows that are left.
    pub fn left(&self) -> usize {
        self.packed.rows - self.number
    }

    /// Returns the next row, or `None` after the last.
    pub fn next_row(&mut self) -> Option<&[u64]> {
        let Packed { width, blocks, open, rows } = self.packed;
        if self.number >= *rows {
            return None;
        }
        let place = self.number % BLOCK_ROWS;
        if place == 0 {
            self.unpack();
        }
        let is_open = self.number / BLOCK_ROWS >= blocks.len();
        let rows = if is_open { open } else { &self.block };
        let row = rows.get(place * width..(place + 1) * width)?;
        self.number += 1;
        Some(row)
    }

    /// Unpacks the block of the next row.
    fn unpack(&mut self) {
        let Packed { width, blocks, .. } = self.packed;
        if let Some(block) = blocks.get(self.number / BLOCK_ROWS) {
            unpack(&block.bytes, *width, &mut self.block);
        }
    }
}

/// Packs the rows of a complete block.
fn pack(rows: &[u64], width: usize) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(rows.len() * 2);
    let mut writer = BitWriter::new(&mut bytes);
    let mut differences = [0; BLOCK_ROWS];
    for column in 0..width {
        let mut before = rows[column];
        let (mut step, mut changed, mut all) = (0_u64, 0_u64, 0);
        for (row, values) in rows.chunks_exact(width).enumerate() {
            let difference = values[column].wrapping_sub(before);
            let unexpected = folded(difference.wrapping_sub(step));
            before = values[column];
            step = if column == 0 { difference } else { 0 };
            changed |= u64::from(unexpected != 0) << row;
            all |= unexpected;
            differences[row] = unexpected;
        }
        put_long(&mut writer, rows[column]);
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
    writer.finish();
    bytes.resize(bytes.len() + PADDING, 0);
    bytes.into()
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
        rows.iter().for_each(|row| packed.push(row));
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

    #[test]
    #[should_panic(expected = "equally wide")]
    fn rows_of_another_width_are_refused() {
        packed(&[vec![1, 2], vec![3]]);
    }
}
