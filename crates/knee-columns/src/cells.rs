//! The cells of a column in Parquet's form: the values that are present and, for a column with
//! gaps, which rows have one.

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescriptor, Type, TypePtr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit signed integers.
    Integer {
        /// Whether a row may have no value.
        nullable: bool,
    },
    /// 64-bit floats.
    Float {
        /// Whether a row may have no value.
        nullable: bool,
    },
    /// Strings; a row may have none.
    Text,
    /// True or false.
    Flag {
        /// Whether a row may have no value.
        nullable: bool,
    },
}

/// The values of the rows that have one, and for each row 1 if it has a value, otherwise 0. `None`
/// if all rows have one.
#[derive(Clone, Debug)]
pub enum Cells {
    /// 64-bit signed integers.
    Integers(Vec<i64>, Option<Vec<i16>>),
    /// 64-bit floats.
    Floats(Vec<f64>, Option<Vec<i16>>),
    /// Strings.
    Texts(Texts, Option<Vec<i16>>),
    /// True or false.
    Flags(Vec<bool>, Option<Vec<i16>>),
}

impl Kind {
    /// Declares the column `name` in a file's schema.
    pub(crate) fn declare(self, name: &str) -> Result<TypePtr, ParquetError> {
        let repetition =
            if self.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let logical = (self == Kind::Text).then_some(LogicalType::String);
        Type::primitive_type_builder(name, self.physical())
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    }

    /// Returns whether a row may have no value.
    pub fn is_nullable(self) -> bool {
        match self {
            Kind::Integer { nullable } | Kind::Float { nullable } | Kind::Flag { nullable } => {
                nullable
            }
            Kind::Text => true,
        }
    }

    fn physical(self) -> Physical {
        match self {
            Kind::Integer { .. } => Physical::INT64,
            Kind::Float { .. } => Physical::DOUBLE,
            Kind::Text => Physical::BYTE_ARRAY,
            Kind::Flag { .. } => Physical::BOOLEAN,
        }
    }

    /// Checks that a column of a file is of this kind. A nullable column is accepted for any kind:
    /// only actual gaps are an error.
    pub(crate) fn check(self, column: &ColumnDescriptor) -> Result<(), String> {
        let name = column.name();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(format!("column {name} is nested"));
        }
        let signed = LogicalType::integer(64, true);
        let logical = match (self, column.logical_type_ref()) {
            (Kind::Integer { .. }, None) => true,
            (Kind::Integer { .. }, Some(logical)) => *logical == signed,
            (Kind::Text, logical) => logical == Some(&LogicalType::String),
            (Kind::Float { .. } | Kind::Flag { .. }, logical) => logical.is_none(),
        };
        if column.physical_type() == self.physical() && logical {
            return Ok(());
        }
        let found = column.physical_type();
        let found = match column.logical_type_ref() {
            Some(logical) => format!("{found} of {logical:?}"),
            None => found.to_string(),
        };
        Err(format!("column {name} is {found}, not {}", self.physical()))
    }
}

impl Cells {
    /// Creates integers, with gaps.
    pub fn integers(values: impl Iterator<Item = Option<i64>>) -> Cells {
        let (values, present) = with_gaps(values);
        Cells::Integers(values, Some(present))
    }

    /// Creates floats, with gaps.
    pub fn floats(values: impl Iterator<Item = Option<f64>>) -> Cells {
        let (values, present) = with_gaps(values);
        Cells::Floats(values, Some(present))
    }

    /// Creates flags, with gaps.
    pub fn flags(values: impl Iterator<Item = Option<bool>>) -> Cells {
        let (values, present) = with_gaps(values);
        Cells::Flags(values, Some(present))
    }

    /// Creates strings; an empty string is a gap.
    pub fn texts<'a>(values: impl Iterator<Item = &'a str>) -> Cells {
        let mut cells = Cells::none(Kind::Text);
        values.for_each(|text| cells.add_text(text));
        cells
    }

    /// Creates the cells of a column without rows.
    pub fn none(kind: Kind) -> Cells {
        let present = kind.is_nullable().then(Vec::new);
        match kind {
            Kind::Integer { .. } => Cells::Integers(Vec::new(), present),
            Kind::Float { .. } => Cells::Floats(Vec::new(), present),
            Kind::Text => Cells::Texts(Texts::default(), present),
            Kind::Flag { .. } => Cells::Flags(Vec::new(), present),
        }
    }

    /// Adds a string, if the column is of text; an empty string is a gap.
    pub fn add_text(&mut self, text: &str) {
        let Cells::Texts(texts, Some(present)) = self else { return };
        present.push(i16::from(!text.is_empty()));
        if !text.is_empty() {
            texts.push(text);
        }
    }

    /// Removes all rows, but keeps their memory for others.
    pub fn clear(&mut self) {
        let present = match self {
            Cells::Integers(values, present) => {
                values.clear();
                present
            }
            Cells::Floats(values, present) => {
                values.clear();
                present
            }
            Cells::Texts(texts, present) => {
                *texts = Texts::default();
                present
            }
            Cells::Flags(values, present) => {
                values.clear();
                present
            }
        };
        present.iter_mut().for_each(Vec::clear);
    }

    /// Writes the cells as a column chunk.
    pub(crate) fn write(&self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let other = || ParquetError::General("the column is of another type".to_string());
        let written = match (self, writer) {
            (Cells::Integers(values, present), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, present.as_deref(), None)
            }
            (Cells::Floats(values, present), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, present.as_deref(), None)
            }
            (Cells::Texts(texts, present), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                return texts.write(present.as_deref(), writer);
            }
            (Cells::Flags(values, present), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, present.as_deref(), None)
            }
            _ => return Err(other()),
        };
        written.map(|_| ())
    }

    /// Reads the next `rows` cells of a column, which may have gaps.
    pub(crate) fn read(
        reader: &mut ColumnReader,
        column: &ColumnDescriptor,
        rows: usize,
    ) -> Result<Cells, String> {
        let name = column.name();
        let gaps = column.max_def_level() > 0;
        match reader {
            ColumnReader::Int64ColumnReader(reader) => next(reader, name, gaps, rows)
                .map(|(values, present)| Cells::Integers(values, present)),
            ColumnReader::DoubleColumnReader(reader) => next(reader, name, gaps, rows)
                .map(|(values, present)| Cells::Floats(values, present)),
            ColumnReader::ByteArrayColumnReader(reader) => next(reader, name, gaps, rows)
                .map(|(values, present)| Cells::Texts(Texts::each_once(values), present)),
            ColumnReader::BoolColumnReader(reader) => next(reader, name, gaps, rows)
                .map(|(values, present)| Cells::Flags(values, present)),
            _ => Err(format!("column {name} is of a type that no table has")),
        }
    }

    /// Returns each row's value as text, from which the same value can be parsed; empty if there is
    /// none.
    pub fn written(&self) -> Vec<String> {
        fn all<T: ToString>(values: &[T], present: &Option<Vec<i16>>) -> Vec<String> {
            each(values, present).map(|value| value.map(T::to_string).unwrap_or_default()).collect()
        }
        match self {
            Cells::Integers(values, present) => all(values, present),
            Cells::Floats(values, present) => all(values, present),
            Cells::Flags(values, present) => all(values, present),
            Cells::Texts(texts, present) => {
                let text = |place: &u32| {
                    String::from_utf8_lossy(texts.distinct[*place as usize].data()).into_owned()
                };
                all(&texts.places.iter().map(text).collect::<Vec<_>>(), present)
            }
        }
    }

    /// Returns whether each of `rows` rows has a value.
    pub fn is_whole(&self, rows: usize) -> bool {
        rows == match self {
            Cells::Integers(values, _) => values.len(),
            Cells::Floats(values, _) => values.len(),
            Cells::Texts(texts, _) => texts.places.len(),
            Cells::Flags(values, _) => values.len(),
        }
    }
}

/// Returns the value of each row.
pub fn each<'a, T>(
    values: &'a [T],
    present: &'a Option<Vec<i16>>,
) -> impl Iterator<Item = Option<&'a T>> {
    let mut left = values.iter();
    let rows = present.as_ref().map_or(values.len(), Vec::len);
    (0..rows).map(move |row| match present {
        Some(present) if present[row] == 0 => None,
        _ => left.next(),
    })
}

/// Adds zeros to integers, to be set.
pub fn more(values: &mut Vec<i64>, count: usize) -> &mut [i64] {
    let before = values.len();
    values.resize(before + count, 0);
    &mut values[before..]
}

/// Adds zeros to the marks of rows, to be set.
pub fn more_marks(marks: &mut Vec<i16>, count: usize) -> &mut [i16] {
    let before = marks.len();
    marks.resize(before + count, 0);
    &mut marks[before..]
}

fn with_gaps<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let rows = values.size_hint().0;
    let (mut there, mut present) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for value in values {
        present.push(i16::from(value.is_some()));
        there.extend(value);
    }
    (there, present)
}

type Chunk<T> = (Vec<T>, Option<Vec<i16>>);

fn next<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    name: &str,
    gaps: bool,
    rows: usize,
) -> Result<Chunk<T::T>, String> {
    let (mut values, mut present) = (Vec::new(), gaps.then(Vec::new));
    let mut read = 0;
    while read < rows {
        let (records, _, _) = reader
            .read_records(rows - read, present.as_mut(), None, &mut values)
            .map_err(|error| error.to_string())?;
        if records == 0 {
            return Err(format!("column {name} ends before the others"));
        }
        read += records;
    }
    Ok((values, present))
}

/// Rows of texts that are written at a time.
const TEXT_ROWS: usize = 1024;

/// Number of strings that are found without a search, a power of two.
const RECENT: usize = 512;

/// Strings, each distinct one once.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// The distinct strings. What was read from a file may repeat.
    pub(crate) distinct: Vec<ByteArray>,
    /// Place of each value among them.
    pub(crate) places: Vec<u32>,
    /// Places of strings, by the last digits of their addresses: most repeat as slices of the same
    /// memory.
    recent: Vec<u32>,
    all: BTreeMap<Box<[u8]>, u32>,
}

impl Texts {
    fn each_once(distinct: Vec<ByteArray>) -> Texts {
        Texts { places: (0..distinct.len() as u32).collect(), distinct, ..Texts::default() }
    }

    /// Writes the texts as a column chunk. Each value that the library takes counts its references,
    /// which takes longer than writing it, so values stay for the next batch. Texts of rows that
    /// take turns are then the same, if a batch is a number of whole turns.
    fn write(
        &self,
        present: Option<&[i16]>,
        writer: &mut ColumnWriterImpl<'_, ByteArrayType>,
    ) -> Result<(), ParquetError> {
        let rows = self.places.len();
        let text = |place: &u32| self.distinct[*place as usize].clone();
        let again = self.places.iter().skip(1).position(|place| *place == self.places[0]);
        let turn = again.map_or(rows, |place| place + 1).max(1);
        let has_gaps = present.is_some_and(|present| present.len() != rows);
        let batch = if has_gaps { rows.max(1) } else { turn * (TEXT_ROWS / turn).max(1) };
        let mut before = &self.places[..batch.min(rows)];
        let mut values: Vec<ByteArray> = before.iter().map(text).collect();
        for (number, places) in self.places.chunks(batch).enumerate() {
            for ((value, before), place) in values.iter_mut().zip(before).zip(places) {
                if before != place {
                    *value = text(place);
                }
            }
            before = places;
            let first = number * batch;
            let present = match has_gaps {
                true => present,
                false => present.map(|present| &present[first..first + places.len()]),
            };
            writer.write_batch(&values[..places.len()], present, None)?;
        }
        if rows == 0 {
            writer.write_batch(&values, present, None)?;
        }
        Ok(())
    }

    /// Returns the string of each row.
    pub fn each<'a>(
        &'a self,
        present: &'a Option<Vec<i16>>,
    ) -> impl Iterator<Item = Option<&'a [u8]>> {
        let place = each(&self.places, present);
        place.map(|place| place.map(|place| self.distinct[*place as usize].data()))
    }

    fn push(&mut self, text: &str) {
        let address = text.as_ptr().addr();
        if self.recent.is_empty() {
            self.recent.resize(RECENT, 0);
        }
        // Strings of their own have addresses that are multiples of 16.
        let recent = &mut self.recent[(address ^ address >> 4) % RECENT];
        let known = self.distinct.get(*recent as usize);
        if known.is_none_or(|known| known.data() != text.as_bytes()) {
            *recent = match self.all.get(text.as_bytes()) {
                Some(place) => *place,
                None => {
                    let place = self.distinct.len() as u32;
                    self.distinct.push(ByteArray::from(text));
                    self.all.insert(text.as_bytes().into(), place);
                    place
                }
            };
        }
        self.places.push(*recent);
    }
}
