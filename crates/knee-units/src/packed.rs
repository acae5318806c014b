//! Long lists of whole numbers, packed in memory.

/// Number of values in a block.
const BLOCK: usize = 256;

/// A list of whole numbers. Each block of them takes as many bytes per value as the span of its
/// values needs, from none to eight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    blocks: Vec<Block>,
    /// Values of the last block, which is not full.
    rest: Vec<u64>,
    /// Bytes of the full blocks.
    held: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    least: u64,
    /// Differences from the least, little-endian.
    bytes: Box<[u8]>,
}

impl Block {
    fn new(values: &[u64]) -> Block {
        let least = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        let width = (u64::BITS - (most - least).leading_zeros()).div_ceil(8) as usize;
        let mut bytes = Vec::with_capacity(width * values.len());
        for value in values {
            bytes.extend_from_slice(&(value - least).to_le_bytes()[..width]);
        }
        Block { least, bytes: bytes.into() }
    }

    fn get(&self, at: usize) -> u64 {
        let width = self.bytes.len() / BLOCK;
        let mut difference = [0; 8];
        difference[..width].copy_from_slice(&self.bytes[at * width..][..width]);
        self.least + u64::from_le_bytes(difference)
    }
}

impl Packed {
    /// Creates an empty list.
    pub fn new() -> Packed {
        Packed::default()
    }

    /// Adds a value at the end.
    pub fn push(&mut self, value: u64) {
        self.rest.push(value);
        if self.rest.len() == BLOCK {
            let block = Block::new(&self.rest);
            self.held += size_of::<Block>() + block.bytes.len();
            self.blocks.push(block);
            self.rest.clear();
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value at a place, or `None` beyond the end.
    pub fn get(&self, at: usize) -> Option<u64> {
        match self.blocks.get(at / BLOCK) {
            Some(block) => Some(block.get(at % BLOCK)),
            None => self.rest.get(at - self.blocks.len() * BLOCK).copied(),
        }
    }

    /// Iterates over the values in their order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let full = self.blocks.iter().flat_map(|block| (0..BLOCK).map(|at| block.get(at)));
        full.chain(self.rest.iter().copied())
    }

    /// Returns the last value.
    pub fn last(&self) -> Option<u64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Subtracts a number, which no value is below, from every value.
    pub fn subtract(&mut self, number: u64) {
        self.blocks.iter_mut().for_each(|block| block.least -= number);
        self.rest.iter_mut().for_each(|value| *value -= number);
    }

    /// Returns the bytes that the values take.
    pub fn held(&self) -> usize {
        self.held + self.rest.len() * size_of::<u64>()
    }
}

impl FromIterator<u64> for Packed {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Packed {
        let mut packed = Packed::new();
        values.into_iter().for_each(|value| packed.push(value));
        packed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_values_read_back(
            values in prop::collection::vec((any::<u64>(), 0_u32..64), 0..1000)
        ) {
            let values: Vec<u64> = values.iter().map(|(value, bits)| value >> bits).collect();
            let packed: Packed = values.iter().copied().collect();
            prop_assert_eq!(packed.len(), values.len());
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), &values[..]);
            let each = (0..values.len()).filter_map(|at| packed.get(at));
            prop_assert_eq!(each.collect::<Vec<_>>(), &values[..]);
            prop_assert_eq!(packed.get(values.len()), None);
            prop_assert_eq!(packed.last(), values.last().copied());
            let least = values.iter().copied().min().unwrap_or(0);
            let mut less = packed;
            less.subtract(least);
            prop_assert!(less.iter().eq(values.iter().map(|value| value - least)));
        }
    }

    /// Ten million equal values take a megabyte, and digits a byte each.
    #[test]
    fn values_take_what_their_span_needs() {
        let equal: Packed = (0..1 << 16).map(|_| 1_000_000).collect();
        assert!(equal.held() <= (1 << 16) / 8, "{}", equal.held());
        let digits: Packed = (0..1 << 16).map(|at| 1_000_000 + at % 10).collect();
        assert!(digits.held() <= (1 << 16) * 9 / 8, "{}", digits.held());
    }
}
