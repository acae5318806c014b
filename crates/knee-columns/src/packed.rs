//! Rows of integers in little memory: each row as its difference from the row before.

/// Rows of a block, which can be read without those before it.
const BLOCK_ROWS: usize = 64;

/// Rows of integers, ascending in the first of them, in the order in which they were added.
///
/// A row is stored as a bit for each integer that is not as predicted, and the differences of
/// those. The prediction is the row before; for the first integer it is the last step once more, so
/// that rows at even distances cost nothing for it. Both numbers are in LEB128, which takes a byte
/// per seven bits. A time series in which a third of 17 integers changes takes about a dozen bytes
/// a row instead of 136.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    blocks: Vec<Block>,
    /// Rows of the last block, which is not complete.
    open: Vec<u8>,
    /// Number of rows.
    rows: usize,
    before: Before,
}

/// A complete block, or the beginning of the open one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// First integer of the first row.
    first: u64,
    /// Empty if the block is open.
    bytes: Box<[u8]>,
}

/// What the next row is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Before {
    row: Vec<u64>,
    step: u64,
}

impl Before {
    fn new(width: usize) -> Before {
        Before { row: vec![0; width], step: 0 }
    }

    fn clear(&mut self) {
        self.row.fill(0);
        self.step = 0;
    }
}

impl Packed {
    /// Creates an empty list of rows of `width` integers, at least one and at most 64.
    ///
    /// # Panics
    /// If `width` is not between one and 64.
    pub fn new(width: usize) -> Packed {
        assert!((1..=64).contains(&width), "a row has one to 64 integers, not {width}");
        Packed { blocks: Vec::new(), open: Vec::new(), rows: 0, before: Before::new(width) }
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
        blocks.sum::<usize>() + self.open.len() + size_of_val(&self.before.row[..])
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it is not as wide as the others.
    pub fn push(&mut self, row: &[u64]) {
        let before = &mut self.before;
        assert_eq!(row.len(), before.row.len(), "all rows are equally wide");
        if self.rows.is_multiple_of(BLOCK_ROWS) {
            self.blocks.push(Block { first: row[0], bytes: Box::default() });
            before.clear();
        }
        let step = row[0].wrapping_sub(before.row[0]);
        let mut changed = u64::from(step != before.step);
        for (place, (value, before)) in row.iter().zip(&before.row).enumerate().skip(1) {
            changed |= u64::from(value != before) << place;
        }
        put(&mut self.open, changed);
        if changed & 1 != 0 {
            put(&mut self.open, folded(step.wrapping_sub(before.step)));
        }
        let mut left = changed & !1;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            put(&mut self.open, folded(row[place].wrapping_sub(before.row[place])));
            left &= left - 1;
        }
        before.row.copy_from_slice(row);
        before.step = step;
        self.rows += 1;
        if self.rows.is_multiple_of(BLOCK_ROWS)
            && let Some(block) = self.blocks.last_mut()
        {
            block.bytes = self.open.as_slice().into();
            self.open.clear();
        }
    }

    /// Returns the rows from `number` on.
    pub fn rows_from(&self, number: usize) -> PackedRows<'_> {
        let block = number.min(self.rows) / BLOCK_ROWS;
        let mut rows = PackedRows {
            packed: self,
            bytes: &[],
            number: block * BLOCK_ROWS,
            before: Before::new(self.before.row.len()),
        };
        while rows.number < number && rows.next_row().is_some() {}
        rows
    }

    /// Returns the last row.
    pub fn last(&self) -> Option<&[u64]> {
        (self.rows > 0).then_some(&self.before.row)
    }

    /// Returns the rows from the last one whose first integer is below `least`, or from the first.
    pub fn rows_before(&self, least: u64) -> PackedRows<'_> {
        let block = self.block_before(least);
        let mut rows = self.rows_from(block);
        let mut below = 0;
        while rows.next_row().is_some_and(|row| row[0] < least) {
            below += 1;
        }
        self.rows_from((block + below).saturating_sub(1))
    }

    /// Returns the rows from at most a block before the last one whose first integer is below
    /// `least`, which is sooner found than that row.
    pub fn rows_near(&self, least: u64) -> PackedRows<'_> {
        self.rows_from(self.block_before(least))
    }

    /// Returns the number of the first row of the block of the last row whose first integer is
    /// below `least`.
    fn block_before(&self, least: u64) -> usize {
        let blocks = self.blocks.partition_point(|block| block.first < least);
        blocks.saturating_sub(1) * BLOCK_ROWS
    }
}

/// Reads the rows of a [`Packed`].
#[derive(Clone, Debug)]
pub struct PackedRows<'p> {
    packed: &'p Packed,
    /// What is left of the current block.
    bytes: &'p [u8],
    /// Number of the next row.
    number: usize,
    before: Before,
}

impl PackedRows<'_> {
    /// Returns the number of rows that are left.
    pub fn left(&self) -> usize {
        self.packed.rows - self.number
    }

    /// Returns the next row, or `None` after the last.
    pub fn next_row(&mut self) -> Option<&[u64]> {
        if self.number >= self.packed.rows {
            return None;
        }
        if self.number.is_multiple_of(BLOCK_ROWS) {
            let block = &self.packed.blocks[self.number / BLOCK_ROWS];
            let is_open = block.bytes.is_empty();
            self.bytes = if is_open { &self.packed.open } else { &block.bytes };
            self.before.clear();
        }
        self.number += 1;
        let Before { row, step } = &mut self.before;
        let changed = take(&mut self.bytes);
        if changed & 1 != 0 {
            *step = step.wrapping_add(unfolded(take(&mut self.bytes)));
        }
        row[0] = row[0].wrapping_add(*step);
        let mut left = changed & !1;
        while left != 0 {
            let value = &mut row[left.trailing_zeros() as usize];
            *value = value.wrapping_add(unfolded(take(&mut self.bytes)));
            left &= left - 1;
        }
        Some(row)
    }
}

/// Maps small differences of either sign to small numbers.
fn folded(difference: u64) -> u64 {
    let signed = difference as i64;
    (signed << 1 ^ signed >> 63) as u64
}

fn unfolded(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

/// Appends a number, seven bits to a byte; the highest bit says that more follow.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes what [`put`] appended from the front.
fn take(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
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
            let firsts: Vec<u64> = rows.iter().map(|row| row[0]).collect();
            let some = if firsts.is_empty() { 3 } else { *chosen.get(&firsts) };
            for least in [0, some, some.saturating_add(1), u64::MAX] {
                let at = firsts.iter().filter(|first| **first < least).count();
                let expected = &rows[at.saturating_sub(1)..];
                prop_assert_eq!(unpacked(packed.rows_before(least)), expected);
                let near = unpacked(packed.rows_near(least));
                prop_assert!((expected.len()..expected.len() + BLOCK_ROWS).contains(&near.len()));
                prop_assert_eq!(&near[near.len() - expected.len()..], expected);
            }
        }
    }

    /// Even distances and integers that stay the same take one byte a row, and what a block adds.
    #[test]
    fn what_stays_the_same_costs_a_byte() {
        let rows: Vec<Vec<u64>> = (0..6400).map(|row| vec![1_000_000 * row, 5, 1 << 40]).collect();
        let bytes = packed(&rows).bytes();
        assert!((6400..6400 + 100 * 60).contains(&bytes), "{bytes}");
    }

    #[test]
    #[should_panic(expected = "equally wide")]
    fn rows_of_another_width_are_refused() {
        packed(&[vec![1, 2], vec![3]]);
    }
}
