//! Variable-length integers (RFC 9000, section 16), and a reader that never reads beyond its end.

use bytes::BufMut;

/// Largest integer that can be encoded: 62 bits.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Writes an integer in 1, 2, 4 or 8 bytes.
///
/// # Panics
/// If it has more than 62 bits.
pub fn put_varint(into: &mut impl BufMut, value: u64) {
    match value {
        0..=0x3f => into.put_u8(value as u8),
        0x40..=0x3fff => into.put_u16(value as u16 | 0x4000),
        0x4000..=0x3fff_ffff => into.put_u32(value as u32 | 0x8000_0000),
        0x4000_0000..=VARINT_MAX => into.put_u64(value | 0xc000_0000_0000_0000),
        _ => panic!("{value} has more than 62 bits"),
    }
}

/// Returns the length of an encoded integer, bytes.
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// Begins at the first byte.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { rest: bytes }
    }

    /// Returns whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next `count` bytes, or `None` if there are fewer.
    pub fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Reads everything that is left.
    pub fn take_rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads two bytes in network byte order.
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Reads a variable-length integer. As RFC 9000 allows, the encoding may be longer than needed.
    pub fn varint(&mut self) -> Option<u64> {
        let first = *self.rest.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let value = bytes.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (66 - 8 * bytes.len())))
    }
}
