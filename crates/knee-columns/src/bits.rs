//! Numbers of any number of bits, one after another, the lowest bit first, as in Parquet's
//! encodings.

/// Bytes after the last number that [`BitReader`] may look at.
pub(crate) const PADDING: usize = 16;

/// Appends numbers to bytes.
pub(crate) struct BitWriter<'b> {
    bytes: &'b mut Vec<u8>,
    /// Bits that are not in `bytes` yet.
    pending: u64,
    /// How many, less than 64.
    count: u32,
}

impl<'b> BitWriter<'b> {
    pub(crate) fn new(bytes: &'b mut Vec<u8>) -> BitWriter<'b> {
        BitWriter { bytes, pending: 0, count: 0 }
    }

    /// Appends the lowest `width` bits of a number; those above must be zero.
    #[inline]
    pub(crate) fn put(&mut self, number: u64, width: u32) {
        debug_assert!(width >= bits_of(number) && width <= 64);
        self.pending |= number << self.count;
        self.count += width;
        if self.count >= 64 {
            self.bytes.extend_from_slice(&self.pending.to_le_bytes());
            self.count -= 64;
            self.pending = number.checked_shr(width - self.count).unwrap_or(0);
        }
    }

    /// Appends what is pending; the last byte is filled with zeros.
    pub(crate) fn finish(self) {
        let bytes = self.count.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.pending.to_le_bytes()[..bytes]);
    }
}

/// Reads what [`BitWriter`] appended. At least [`PADDING`] bytes must follow.
#[derive(Clone, Debug)]
pub(crate) struct BitReader<'b> {
    bytes: &'b [u8],
    /// Number of the next bit.
    next: usize,
}

impl<'b> BitReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> BitReader<'b> {
        BitReader { bytes, next: 0 }
    }

    /// Reads a number of `width` bits, at most 64. Zero after the end.
    #[inline]
    pub(crate) fn take(&mut self, width: u32) -> u64 {
        let number = self.peek(width);
        self.skip(width as usize);
        number
    }

    /// Returns the number of `width` bits that is next.
    #[inline]
    pub(crate) fn peek(&self, width: u32) -> u64 {
        let Some(window) = self.bytes.get(self.next / 8..).and_then(<[u8]>::first_chunk) else {
            return 0;
        };
        let window: &[u8; PADDING] = window;
        let low = (u128::from_le_bytes(*window) >> (self.next % 8)) as u64;
        low & u64::MAX.checked_shr(64 - width).unwrap_or(0)
    }

    /// Passes over bits.
    #[inline]
    pub(crate) fn skip(&mut self, bits: usize) {
        self.next += bits;
    }
}

/// Returns the number of bits of a number, without leading zeros.
#[inline]
pub(crate) fn bits_of(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Maps small differences of either sign to small numbers.
#[inline]
pub(crate) fn folded(difference: u64) -> u64 {
    let signed = difference as i64;
    (signed << 1 ^ signed >> 63) as u64
}

/// Reverses [`folded`].
#[inline]
pub(crate) fn unfolded(number: u64) -> u64 {
    number >> 1 ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is read is what was written, whatever the widths.
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec((any::<u64>(), 0..=64_u32), 0..100)) {
            let cut = |(number, width): &(u64, u32)| {
                (number & u64::MAX.checked_shr(64 - width).unwrap_or(0), *width)
            };
            let numbers: Vec<(u64, u32)> = numbers.iter().map(cut).collect();
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            numbers.iter().for_each(|(number, width)| writer.put(*number, *width));
            writer.finish();
            let bits: usize = numbers.iter().map(|(_, width)| *width as usize).sum();
            prop_assert_eq!(bytes.len(), bits.div_ceil(8));
            bytes.resize(bytes.len() + PADDING, 0);
            let mut reader = BitReader::new(&bytes);
            for (number, width) in numbers {
                prop_assert_eq!(reader.take(width), number);
            }
        }
    }
}
