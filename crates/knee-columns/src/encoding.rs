//! Chooses how a column chunk is encoded, from a sample of its values.
//!
//! Rows of several series take turns, and most columns repeat what they had in the turn before.
//! The compression finds that in values as they are, in less time than a dictionary, which must
//! look up each value, and in about as much space.

use crate::Cells;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    DEFAULT_WRITE_BATCH_SIZE, EnabledStatistics, WriterProperties, WriterPropertiesPtr,
};
use std::sync::Arc;

/// Maximum size of a dictionary. Values that do not fit are written as they are.
const DICTIONARY_BYTES_MAX: usize = 16 << 10;
/// Rows of a page, so that its memory is taken at once: the batches of the library's default size
/// that reach its limit, 20,000.
const PAGE_ROWS: usize = 20 * DEFAULT_WRITE_BATCH_SIZE;
/// Values of a chunk that are looked at. A turn of more series than half as many is not seen to
/// repeat.
const SAMPLE: usize = 4096;
/// Values that must repeat together for the compression to gain as much as from a dictionary.
const TOGETHER: u32 = 4;
/// The same if there are few different values, which repeat by chance.
const FEW_TOGETHER: u32 = 16;
/// Number of different integers that are few.
const FEW: usize = 64;
/// Number of places for what the sample had, a power of two.
const PLACES: usize = 1 << PLACES_LOG2;
const PLACES_LOG2: u32 = 12;

/// How a column chunk is encoded before it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// Values as they are, for those that mostly repeat together.
    Plain,
    /// Differences, for integers that differ.
    Differences,
    /// Places in a dictionary, for all else.
    Dictionary,
}

/// The settings of each choice. Nothing of the host or the clock is in them.
pub(crate) struct Encodings {
    plain: WriterPropertiesPtr,
    differences: WriterPropertiesPtr,
    dictionary: WriterPropertiesPtr,
    plain_texts: WriterPropertiesPtr,
    texts: WriterPropertiesPtr,
}

impl Encodings {
    pub(crate) fn new() -> Encodings {
        let with = |encoding| settings(Some(encoding), EnabledStatistics::Chunk);
        Encodings {
            plain: with(Encoding::PLAIN),
            differences: with(Encoding::DELTA_BINARY_PACKED),
            dictionary: settings(None, EnabledStatistics::Chunk),
            // Comparing texts would take as long as writing them.
            plain_texts: settings(Some(Encoding::PLAIN), EnabledStatistics::None),
            texts: settings(None, EnabledStatistics::None),
        }
    }

    /// Returns the settings for a chunk of these cells.
    pub(crate) fn of(&self, cells: &Cells) -> WriterPropertiesPtr {
        let chosen = match (choose(cells), cells) {
            (Choice::Plain, Cells::Texts(..)) => &self.plain_texts,
            (Choice::Plain, _) => &self.plain,
            (Choice::Differences, _) => &self.differences,
            (Choice::Dictionary, Cells::Texts(..)) => &self.texts,
            (Choice::Dictionary, _) => &self.dictionary,
        };
        chosen.clone()
    }
}

/// Returns settings for an encoding, or for a dictionary.
fn settings(encoding: Option<Encoding>, statistics: EnabledStatistics) -> WriterPropertiesPtr {
    // The size of a dictionary is looked at after each batch.
    let batch_rows = if encoding.is_some() { PAGE_ROWS } else { DEFAULT_WRITE_BATCH_SIZE };
    let settings = WriterProperties::builder()
        .set_write_batch_size(batch_rows)
        .set_compression(Compression::LZ4_RAW)
        .set_dictionary_enabled(encoding.is_none())
        .set_dictionary_page_size_limit(DICTIONARY_BYTES_MAX)
        .set_statistics_enabled(statistics)
        .set_encoding(encoding.unwrap_or(Encoding::PLAIN));
    Arc::new(settings.build())
}

fn choose(cells: &Cells) -> Choice {
    match cells {
        Cells::Integers(values, _) => {
            let values = middle(values);
            let repeats = |together| repeats(together, values.len(), |at| values[at] as u64);
            if repeats(FEW_TOGETHER) {
                Choice::Plain
            } else if are_few(values) {
                Choice::Dictionary
            } else if repeats(TOGETHER) {
                Choice::Plain
            } else {
                Choice::Differences
            }
        }
        Cells::Texts(texts, _) => {
            let places = middle(&texts.places);
            let repeats = repeats(FEW_TOGETHER, places.len(), |at| u64::from(places[at]));
            if repeats { Choice::Plain } else { Choice::Dictionary }
        }
        Cells::Floats(..) | Cells::Flags(..) => Choice::Dictionary,
    }
}

/// Returns whether there are few different values.
fn are_few(values: &[i64]) -> bool {
    let mut different = Vec::with_capacity(FEW);
    values.iter().all(|value| {
        different.contains(value)
            || different.len() < FEW && {
                different.push(*value);
                true
            }
    })
}

/// Returns the values in the middle, which are more like the others than the first ones are.
fn middle<T>(values: &[T]) -> &[T] {
    let around = values.len().saturating_sub(SAMPLE) / 2;
    &values[around..values.len() - around]
}

/// Returns whether most values are the last of some that were `together` before.
fn repeats(together: u32, count: usize, value: impl Fn(usize) -> u64) -> bool {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    // The values together are the digits of a number, of which the first leaves at each step.
    let first_factor = FACTOR.wrapping_pow(together);
    let mut seen = vec![0; PLACES];
    let (mut number, mut known) = (0_u64, 0);
    for at in 0..count {
        number = number.wrapping_mul(FACTOR).wrapping_add(value(at));
        if let Some(first) = at.checked_sub(together as usize) {
            number = number.wrapping_sub(value(first).wrapping_mul(first_factor));
        }
        let mixed = number.wrapping_mul(FACTOR);
        let before = &mut seen[(mixed >> (u64::BITS - PLACES_LOG2)) as usize];
        known += usize::from(*before == mixed);
        *before = mixed;
    }
    2 * known > count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: impl Fn(i64) -> i64) -> Choice {
        choose(&Cells::Integers((0..20_000).map(value).collect(), None))
    }

    /// Pseudorandom numbers.
    fn noise(row: i64) -> i64 {
        let mixed = row.wrapping_add(1).wrapping_mul(0x5851_F42D_4C95_7F2D);
        (mixed ^ mixed >> 29).wrapping_mul(0x14_0576_57CA_5A9B) >> 20
    }

    #[test]
    fn each_shape_has_its_encoding() {
        assert_eq!(of(|_| 7), Choice::Plain);
        assert_eq!(of(|row| noise(row % 100)), Choice::Plain, "turns of a hundred series");
        assert_eq!(of(|row| 1_000_000 * row), Choice::Differences);
        assert_eq!(of(|row| noise(row) % 9), Choice::Dictionary);
        assert_eq!(of(|row| noise(row).rem_euclid(1 << 20)), Choice::Differences);
        let texts = ["up", "down", "", "cruise"];
        let cells = |number: fn(usize) -> usize| {
            choose(&Cells::texts((0..20_000).map(|row| texts[number(row) % 4])))
        };
        assert_eq!(cells(|row| row / 1000), Choice::Plain);
        assert_eq!(cells(|row| noise(row as i64) as usize), Choice::Dictionary);
    }
}
