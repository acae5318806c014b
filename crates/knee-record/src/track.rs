//! Time series in little memory: rows are packed, and are values again when they are read.

use crate::timed::{Field, Point, Timed};
use knee_columns::{Packed, PackedRows};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::{self, Debug};
use std::ops::Range;
use std::slice;

/// Rows of one time series, ascending in time. They are values, which are quickly read, until
/// [`Track::pack`]; then a row of a flow at one sample per millisecond takes about a dozen bytes.
#[derive(Clone)]
pub struct Track<R>(Kept<R>);

#[derive(Clone)]
enum Kept<R> {
    Values(Vec<R>),
    Packed { rows: Packed, texts: Vec<&'static str> },
}

impl<R> Default for Track<R> {
    fn default() -> Track<R> {
        Track(Kept::Values(Vec::new()))
    }
}

impl<R: Timed> Track<R> {
    /// Adds a row.
    pub fn push(&mut self, row: &R) {
        match &mut self.0 {
            Kept::Values(rows) => rows.push(*row),
            Kept::Packed { rows, texts } => row.take_apart(rows.add(), texts),
        }
    }

    /// Packs the rows, and those that will be added.
    pub fn pack(&mut self) {
        if let Kept::Values(values) = &mut self.0 {
            let values = std::mem::take(values);
            self.0 = Kept::Packed { rows: Packed::new(R::WIDTH), texts: Vec::new() };
            values.iter().for_each(|row| self.push(row));
        }
    }

    /// Drops every second row.
    pub(crate) fn thin(&mut self) {
        let rows = self.iter().step_by(2).collect();
        if let Kept::Packed { .. } = std::mem::replace(&mut self.0, Kept::Values(rows)) {
            self.pack();
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Values(rows) => rows.len(),
            Kept::Packed { rows, .. } => rows.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes that the rows take.
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Kept::Values(rows) => size_of_val(&rows[..]),
            Kept::Packed { rows, .. } => rows.bytes(),
        }
    }

    /// Returns all rows.
    pub fn iter(&self) -> TrackRows<'_, R> {
        match &self.0 {
            Kept::Values(rows) => TrackRows::Values(rows.iter()),
            Kept::Packed { rows, texts } => TrackRows::Packed { rows: rows.rows_from(0), texts },
        }
    }

    /// Returns the last row.
    pub fn last(&self) -> Option<R> {
        match &self.0 {
            Kept::Values(rows) => rows.last().copied(),
            Kept::Packed { rows, texts } => rows.last().map(|row| R::put_together(row, texts)),
        }
    }

    /// Returns the last row before a time, and the next one.
    pub fn around(&self, time_ns: u64) -> (Option<R>, Option<R>) {
        // Most counters are read at the end of their flows.
        if let Some(last) = self.last().filter(|last| last.time_ns() < time_ns) {
            return (Some(last), None);
        }
        let mut before = None;
        for row in self.since(time_ns) {
            if row.time_ns() >= time_ns {
                return (before, Some(row));
            }
            before = Some(row);
        }
        (before, None)
    }

    /// Returns the rows from the last one before a time, or from the first.
    pub fn since(&self, time_ns: u64) -> TrackRows<'_, R> {
        let number = self.last_before(time_ns);
        match &self.0 {
            Kept::Values(rows) => TrackRows::Values(rows[number..].iter()),
            Kept::Packed { rows, texts } => {
                TrackRows::Packed { rows: rows.rows_from(number), texts }
            }
        }
    }

    /// Returns the number of the last row before a time, or zero.
    pub(crate) fn last_before(&self, time_ns: u64) -> usize {
        match &self.0 {
            Kept::Values(rows) => {
                rows.partition_point(|row| row.time_ns() < time_ns).saturating_sub(1)
            }
            Kept::Packed { rows, .. } => rows.last_below(time_ns),
        }
    }

    /// Returns a field, with the time, of the last row before a time, and of the next one.
    pub(crate) fn points_around(
        &self,
        time_ns: u64,
        field: Field<R>,
    ) -> (Option<Point>, Option<Point>) {
        let point = |row: R| (row.time_ns(), (field.get)(&row));
        // Most counters are read at the end of their flows.
        if let Some(last) = self.last().filter(|last| last.time_ns() < time_ns) {
            return (Some(point(last)), None);
        }
        let number = self.last_before(time_ns);
        let times = self.within(Field::TIME, number..number + 2);
        let mut points = times.into_iter().zip(self.within(field, number..number + 2));
        let before = points.next();
        match before.filter(|(before_ns, _)| *before_ns >= time_ns) {
            Some(first) => (None, Some(first)),
            None => (before, points.next()),
        }
    }

    /// Returns the times of all rows from a number on.
    pub fn times(&self, from: usize) -> Vec<u64> {
        self.within(Field::TIME, from..self.len())
    }

    /// Returns a field of all rows from a number on, which is quicker than reading the rows.
    pub fn column(&self, field: Field<R>, from: usize) -> Vec<u64> {
        self.within(field, from..self.len())
    }

    fn within(&self, field: Field<R>, numbers: Range<usize>) -> Vec<u64> {
        match &self.0 {
            Kept::Values(rows) => {
                let count = numbers.len();
                rows.iter().skip(numbers.start).take(count).map(field.get).collect()
            }
            Kept::Packed { rows, .. } => rows.column(field.place, numbers),
        }
    }
}

impl<R: Timed> Track<R> {
    /// Returns the texts of all rows; empty ones if rows have none.
    pub fn texts(&self) -> Vec<&'static str> {
        match (&self.0, R::TEXT) {
            (Kept::Packed { rows, texts }, Some(place)) => {
                let numbers = rows.column(place, 0..rows.len()).into_iter();
                numbers
                    .map(|number| texts.get(number as usize).copied().unwrap_or_default())
                    .collect()
            }
            _ => self.iter().map(|row| row.text()).collect(),
        }
    }
}

impl<R: Timed + PartialEq> PartialEq for Track<R> {
    fn eq(&self, other: &Track<R>) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<R: Timed> FromIterator<R> for Track<R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Track<R> {
        let mut track = Track::default();
        rows.into_iter().for_each(|row| track.push(&row));
        track
    }
}

impl<R: Timed> Debug for Track<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The rows of a [`Track`].
#[derive(Clone, Debug)]
pub enum TrackRows<'t, R> {
    /// Rows that are values.
    Values(slice::Iter<'t, R>),
    /// Rows that are packed.
    Packed {
        /// The rows that are left.
        rows: PackedRows<'t>,
        /// The texts to which they refer.
        texts: &'t [&'static str],
    },
}

impl<R: Timed> Iterator for TrackRows<'_, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        match self {
            TrackRows::Values(rows) => rows.next().copied(),
            TrackRows::Packed { rows, texts } => {
                rows.next_row().map(|row| R::put_together(row, texts))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self {
            TrackRows::Values(rows) => rows.len(),
            TrackRows::Packed { rows, .. } => rows.left(),
        };
        (left, Some(left))
    }
}

/// The rows of all flows, paths, links or classes of a run. The order is that of times; rows of one
/// time are in the order of flows and paths, or links and classes.
#[derive(Clone)]
pub struct Rows<R> {
    tracks: BTreeMap<(u32, u16), Track<R>>,
}

impl<R: Timed + PartialEq> PartialEq for Rows<R> {
    fn eq(&self, other: &Rows<R>) -> bool {
        self.tracks == other.tracks
    }
}

impl<R> Default for Rows<R> {
    fn default() -> Rows<R> {
        Rows { tracks: BTreeMap::new() }
    }
}

impl<R: Timed> Rows<R> {
    /// Adds a row, which must not be earlier than the others of its series.
    pub fn push(&mut self, row: R) {
        self.tracks.entry(row.of()).or_default().push(&row);
    }

    /// Packs all rows, and those that will be added to the same series.
    pub fn pack(&mut self) {
        self.tracks.values_mut().for_each(Track::pack);
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        self.tracks.clear();
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.tracks.values().map(Track::len).sum()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// Returns the rows of each flow and path, or link and class.
    pub fn tracks(&self) -> &BTreeMap<(u32, u16), Track<R>> {
        &self.tracks
    }

    /// Returns all rows in their order.
    pub fn iter(&self) -> impl Iterator<Item = R> {
        let mut tracks: Vec<TrackRows<'_, R>> = self.tracks.values().map(Track::iter).collect();
        let mut next: Vec<Option<R>> = tracks.iter_mut().map(Iterator::next).collect();
        let times = next.iter().enumerate();
        let times = times.filter_map(|(at, row)| Some(Reverse((row.as_ref()?.time_ns(), at))));
        let mut order: BinaryHeap<Reverse<(u64, usize)>> = times.collect();
        std::iter::from_fn(move || {
            let Reverse((_, at)) = order.pop()?;
            let row = std::mem::replace(&mut next[at], tracks[at].next());
            order.extend(next[at].as_ref().map(|row| Reverse((row.time_ns(), at))));
            row
        })
    }

    /// Returns the last row in their order.
    pub fn last(&self) -> Option<R> {
        self.tracks.values().filter_map(Track::last).max_by_key(Timed::time_ns)
    }

    /// Adds all rows of a flow and path, or link and class, that has none yet.
    pub(crate) fn insert(&mut self, of: (u32, u16), track: Track<R>) {
        self.tracks.insert(of, track);
    }
}

impl<R: Timed> FromIterator<R> for Rows<R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Rows<R> {
        let mut all = Rows::default();
        all.extend(rows);
        all
    }
}

impl<R: Timed> Extend<R> for Rows<R> {
    fn extend<I: IntoIterator<Item = R>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

impl<R: Timed> Debug for Rows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
