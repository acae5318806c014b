//! Encodes columns of numbers as short text, for embedding in the page.
//!
//! A column is rounded to a quantum (a power of ten, at most 1/1,000,000 of its largest value, at
//! least 1). Its first or second differences are written as zigzag LEB128 integers, and those bytes
//! as Base64. An evenly sampled series takes a byte or two per value.

use serde::Serialize;

/// Smallest number of steps into which the largest value of a column is divided.
const RESOLUTION: u64 = 1_000_000;

/// A column, ready to be embedded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Column {
    /// Value of one step.
    #[serde(rename = "q")]
    quantum: u64,
    /// 1 for first differences, 2 for second differences.
    #[serde(rename = "o")]
    order: u8,
    /// Base64 of zigzag LEB128.
    #[serde(rename = "d")]
    data: String,
    /// The numbers, as the page will read them.
    #[serde(skip)]
    numbers: Vec<u64>,
}

impl Column {
    /// Encodes a measured value over time. Returns `None` if all are zero, because in the records
    /// zero means that there was no value.
    pub(crate) fn values(values: &[u64]) -> Option<Column> {
        if values.iter().all(|&value| value == 0) {
            return None;
        }
        Some(Column::known(values))
    }

    /// Encodes a measured value over time, even if all are zero.
    pub(crate) fn known(values: &[u64]) -> Column {
        Column::packed(values, quantum(values), 1)
    }

    /// Encodes instants in nanoseconds, rounded to microseconds. Even spacing takes one byte per
    /// instant.
    pub(crate) fn times(nanoseconds: &[u64]) -> Column {
        Column::packed(nanoseconds, 1000, 2)
    }

    /// Encodes numbers that must not be rounded.
    pub(crate) fn exact(values: &[u64]) -> Column {
        Column::packed(values, 1, 1)
    }

    fn packed(values: &[u64], quantum: u64, order: u8) -> Column {
        let steps: Vec<i64> = values.iter().map(|value| rounded(*value, quantum)).collect();
        let numbers = steps.iter().map(|step| step.cast_unsigned().saturating_mul(quantum));
        Column { quantum, order, data: pack(&steps, order), numbers: numbers.collect() }
    }

    /// Returns the numbers as the page will read them.
    pub(crate) fn numbers(&self) -> &[u64] {
        &self.numbers
    }
}

fn quantum(values: &[u64]) -> u64 {
    let largest = values.iter().copied().max().unwrap_or(0);
    let mut quantum = 1;
    while largest / (quantum * 10) >= RESOLUTION {
        quantum *= 10;
    }
    quantum
}

fn rounded(value: u64, quantum: u64) -> i64 {
    i64::try_from(value.saturating_add(quantum / 2) / quantum).unwrap_or(i64::MAX)
}

fn pack(values: &[i64], order: u8) -> String {
    let mut bytes = Vec::with_capacity(2 * values.len());
    let (mut last, mut last_step) = (0i64, 0i64);
    for &rounded in values {
        let step = rounded - last;
        push_zigzag(&mut bytes, if order == 2 { step - last_step } else { step });
        (last, last_step) = (rounded, step);
    }
    base64(&bytes)
}

/// Appends the LEB128 encoding of the zigzag form, in which small magnitudes of either sign are
/// short.
fn push_zigzag(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Encodes as Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - chunk.len()));
        for position in 0..4 {
            if position <= chunk.len() {
                let digit = word >> (18 - 6 * position) & 0x3f;
                text.push(char::from(ALPHABET[digit as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_of_the_rfc() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    /// The example of the DWARF standard (appendix C): 128 is 0x80 0x01.
    #[test]
    fn leb128_of_the_standard() {
        let mut bytes = Vec::new();
        push_zigzag(&mut bytes, 64);
        push_zigzag(&mut bytes, -1);
        assert_eq!(bytes, [0x80, 0x01, 0x01]);
    }

    #[test]
    fn even_spacing_costs_a_byte_per_instant() {
        let times: Vec<u64> = (1..=3000).map(|row| row * 20_000_000).collect();
        let Column { data, .. } = Column::times(&times);
        assert!(data.len() <= (3000 + 10) * 4 / 3 + 4, "{}", data.len());
    }

    #[test]
    fn nothing_measured_is_no_column() {
        assert_eq!(Column::values(&[0, 0]), None);
        assert_eq!(Column::values(&[]), None);
    }
}
