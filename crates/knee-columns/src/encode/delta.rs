//! Parquet's encoding `DELTA_BINARY_PACKED`: differences of neighbours, in as few bits as the
//! largest of each 32 needs.

use super::dictionary::length;
use crate::bits::{BitWriter, bits_of, folded};

/// Differences of a block, which has a smallest difference of its own.
const BLOCK: usize = 128;
/// Differences of a part of a block, which has a width of its own.
const PART: usize = 32;

/// Returns the encoding of some numbers.
pub(crate) fn delta(values: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 3);
    length(BLOCK as u64, &mut bytes);
    length((BLOCK / PART) as u64, &mut bytes);
    length(values.len() as u64, &mut bytes);
    let first = values.first().copied().unwrap_or_default();
    length(folded(first as u64), &mut bytes);
    let mut differences = [0_i64; BLOCK];
    let mut before = first;
    for values in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        for (difference, value) in differences.iter_mut().zip(values) {
            *difference = value.wrapping_sub(before);
            before = *value;
        }
        block(&differences[..values.len()], &mut bytes);
    }
    bytes
}

/// Appends a block. Parts without differences have no bytes, and the last is filled with zeros.
fn block(differences: &[i64], bytes: &mut Vec<u8>) {
    let least = differences.iter().copied().min().unwrap_or_default();
    length(folded(least as u64), bytes);
    let above = |difference: &i64| difference.wrapping_sub(least) as u64;
    let mut widths = [0; BLOCK / PART];
    for (width, part) in widths.iter_mut().zip(differences.chunks(PART)) {
        *width = bits_of(part.iter().map(above).fold(0, |all, one| all | one));
    }
    bytes.extend(widths.map(|width| width as u8));
    let mut writer = BitWriter::new(bytes);
    for (width, part) in widths.into_iter().zip(differences.chunks(PART)) {
        part.iter().for_each(|difference| writer.put(above(difference), width));
        for _ in part.len()..PART {
            writer.put(0, width);
        }
    }
    writer.finish();
}
