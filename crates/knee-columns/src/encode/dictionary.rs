//! Numbers as places in a list of the distinct ones.

use crate::bits::{BitWriter, bits_of};

/// The distinct numbers of a column, in the order in which they first occur, and for each number its
/// place among them.
pub(crate) struct Dictionary {
    pub distinct: Vec<u64>,
    pub places: Vec<u32>,
}

/// Which series each row of a table belongs to. A row of a series is most often as the last one.
#[derive(Default)]
pub(crate) struct SeriesOfRows {
    /// Number of the series of each row; empty if there is only one.
    pub rows: Vec<u32>,
    /// Number of series.
    pub count: usize,
}

impl Dictionary {
    /// Collects the distinct numbers. `present` says which rows have a number.
    pub(crate) fn of(
        values: impl ExactSizeIterator<Item = u64> + Clone,
        present: Option<&[i16]>,
        series: &SeriesOfRows,
    ) -> Dictionary {
        let first = values.clone().next();
        if first.is_some_and(|first| values.clone().all(|value| value == first)) {
            let places = vec![0; values.len()];
            return Dictionary { distinct: first.into_iter().collect(), places };
        }
        let with_values: Vec<u32>;
        let series_of_values = match present {
            Some(present) if present.len() > values.len() => {
                let rows = series.rows.iter().zip(present);
                with_values = rows.filter(|(_, there)| **there != 0).map(|(row, _)| *row).collect();
                &with_values
            }
            _ => &series.rows,
        };
        let mut known = Known::new();
        let mut places = Vec::with_capacity(values.len());
        // The last number of each series, and its place.
        let mut last = vec![(0, NONE); series.count.max(1)];
        let mut take = |value, last: &mut (u64, u32)| {
            if last.0 != value || last.1 == NONE {
                *last = (value, known.place(value));
            }
            last.1
        };
        if series_of_values.is_empty() {
            places.extend(values.map(|value| take(value, &mut last[0])));
        } else {
            let values = values.zip(series_of_values);
            places.extend(values.map(|(value, series)| take(value, &mut last[*series as usize])));
        }
        Dictionary { distinct: known.distinct, places }
    }

    /// Returns the bits of a place.
    pub(crate) fn width(&self) -> u32 {
        bits_of(self.distinct.len().saturating_sub(1) as u64)
    }
}

/// No place.
const NONE: u32 = u32::MAX;

/// Distinct numbers, found by their hashes.
struct Known {
    distinct: Vec<u64>,
    /// Places in `distinct`, plus one, or zero; at most half of them are taken, a power of two.
    slots: Vec<u32>,
}

impl Known {
    fn new() -> Known {
        Known { distinct: Vec::new(), slots: vec![0; 64] }
    }

    fn place(&mut self, value: u64) -> u32 {
        let mut slot = self.slot(value);
        loop {
            match self.slots[slot].checked_sub(1) {
                Some(place) if self.distinct[place as usize] == value => return place,
                Some(_) => slot = (slot + 1) & (self.slots.len() - 1),
                None => break,
            }
        }
        let place = self.distinct.len() as u32;
        self.distinct.push(value);
        self.slots[slot] = place + 1;
        if self.distinct.len() * 2 > self.slots.len() {
            self.grow();
        }
        place
    }

    /// Returns where the search for a number begins.
    fn slot(&self, value: u64) -> usize {
        // Fibonacci hashing: 2^64 over the golden ratio.
        let hash = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        for (place, value) in self.distinct.iter().enumerate() {
            let mut slot = self.slot(*value);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = place as u32 + 1;
        }
    }
}

/// Numbers of a group that is packed.
const GROUP: usize = 8;

/// Appends numbers of `width` bits in Parquet's hybrid of run lengths and packed bits: as a run if
/// at least eight in a row are equal.
pub(crate) fn hybrid(numbers: &[u32], width: u32, bytes: &mut Vec<u8>) {
    let equal = |group: &[u32]| group.len() == GROUP && group.iter().all(|one| *one == group[0]);
    let mut rest = numbers;
    while !rest.is_empty() {
        let groups = rest.chunks(GROUP).take_while(|group| !equal(group)).count();
        let (packed, after) = rest.split_at((groups * GROUP).min(rest.len()));
        if groups > 0 {
            length(((groups as u64) << 1) | 1, bytes);
            let mut writer = BitWriter::new(bytes);
            packed.iter().for_each(|number| writer.put(u64::from(*number), width));
            for _ in packed.len()..groups * GROUP {
                writer.put(0, width);
            }
            writer.finish();
        }
        rest = after;
        if let Some(first) = rest.first() {
            let run = rest.iter().take_while(|number| *number == first).count();
            length((run as u64) << 1, bytes);
            bytes.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            rest = &rest[run..];
        }
    }
}

/// Appends a number in LEB128: seven bits to a byte; the highest bit says that more follow.
pub(crate) fn length(mut number: u64, bytes: &mut Vec<u8>) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
