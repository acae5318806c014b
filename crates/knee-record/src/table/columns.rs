//! Tables in memory, column by column, for programs that pass them on. The columns are those of the
//! Parquet files.

use super::Layout;
use crate::tables::{self, Names};
use crate::{ClassSample, ConnectionRecord, Error, FlowSample, LinkSample, Records, SampleSink};
use knee_columns::{Cells, Kind, each};
use knee_scenario::Scenario;
use std::collections::BTreeMap;

/// A table: the declarations of its columns, and its rows in batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableColumns {
    /// Declarations of the columns.
    pub declared: Vec<DeclaredColumn>,
    /// Values of each column, batch by batch.
    pub batches: Vec<Vec<Values>>,
}

/// The declaration of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredColumn {
    /// Name, which ends with the unit.
    pub name: String,
    /// Type of its values.
    pub kind: ValueKind,
    /// Whether a row may have no value.
    pub nullable: bool,
}

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// 64-bit signed integers.
    Integers,
    /// 64-bit floats.
    Floats,
    /// UTF-8 strings.
    Texts,
    /// True or false.
    Flags,
}

/// The values of a column, one per row, and which of them are present; `None` if all are.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// 64-bit signed integers.
    Integers(Vec<i64>, Option<Vec<bool>>),
    /// 64-bit floats.
    Floats(Vec<f64>, Option<Vec<bool>>),
    /// True or false.
    Flags(Vec<bool>, Option<Vec<bool>>),
    /// Distinct strings, and the index of each row's string, if any.
    Texts(Vec<String>, Vec<Option<u32>>),
}

impl Values {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Values::Integers(values, _) => values.len(),
            Values::Floats(values, _) => values.len(),
            Values::Flags(values, _) => values.len(),
            Values::Texts(_, rows) => rows.len(),
        }
    }

    fn of(cells: Cells) -> Values {
        match cells {
            Cells::Integers(values, present) => {
                let (values, present) = with_all_rows(values, present);
                Values::Integers(values, present)
            }
            Cells::Floats(values, present) => {
                let (values, present) = with_all_rows(values, present);
                Values::Floats(values, present)
            }
            Cells::Flags(values, present) => {
                let (values, present) = with_all_rows(values, present);
                Values::Flags(values, present)
            }
            Cells::Texts(values, present) => {
                let mut words: Words<'_> = Words::default();
                let texts = values.each(&present);
                let rows = texts.map(|text| text.map(|text| words.number(text)));
                let rows = rows.collect();
                Values::Texts(words.texts, rows)
            }
        }
    }
}

/// Interns strings.
#[derive(Default)]
struct Words<'t> {
    texts: Vec<String>,
    numbers: BTreeMap<&'t [u8], u32>,
    last: Option<(&'t [u8], u32)>,
}

impl<'t> Words<'t> {
    fn number(&mut self, text: &'t [u8]) -> u32 {
        if let Some((last, number)) = self.last
            && last == text
        {
            return number;
        }
        let number = *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(String::from_utf8_lossy(text).into_owned());
            self.texts.len() as u32 - 1
        });
        self.last = Some((text, number));
        number
    }
}

/// Adds zeros for missing values, which Parquet leaves out.
fn with_all_rows<T: Copy + Default>(
    values: Vec<T>,
    present: Option<Vec<i16>>,
) -> (Vec<T>, Option<Vec<bool>>) {
    let Some(marks) = &present else { return (values, None) };
    if values.len() == marks.len() {
        return (values, None);
    }
    let all = each(&values, &present).map(|value| value.copied().unwrap_or_default());
    (all.collect(), Some(marks.iter().map(|mark| *mark != 0).collect()))
}

fn declared(name: &str, kind: Kind) -> DeclaredColumn {
    let nullable = kind.is_nullable();
    let kind = match kind {
        Kind::Integer { .. } => ValueKind::Integers,
        Kind::Float { .. } => ValueKind::Floats,
        Kind::Text => ValueKind::Texts,
        Kind::Flag { .. } => ValueKind::Flags,
    };
    DeclaredColumn { name: name.to_string(), kind, nullable }
}

impl TableColumns {
    /// Returns a single batch of columns that hold all rows.
    pub(crate) fn of(columns: Vec<(String, Kind, Cells)>) -> TableColumns {
        let kinds = columns.iter().map(|(name, kind, _)| declared(name, *kind)).collect();
        let values = columns.into_iter().map(|(_, _, cells)| Values::of(cells)).collect();
        TableColumns { declared: kinds, batches: vec![values] }
    }

    /// Returns the number of rows in all batches.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.first().map_or(0, Values::rows)).sum()
    }
}

/// A table that grows row by row.
struct Growing<R> {
    layout: Layout<R>,
    rows: Vec<R>,
    batches: Vec<Vec<Values>>,
}

impl<R> Growing<R> {
    fn new(layout: Layout<R>) -> Growing<R> {
        Growing { layout, rows: Vec::new(), batches: Vec::new() }
    }

    fn push(&mut self, names: &Names, row: R) {
        self.rows.push(row);
        if self.rows.len() == self.layout.group_rows {
            self.end_batch(names);
        }
    }

    fn end_batch(&mut self, names: &Names) {
        let rows = std::mem::take(&mut self.rows);
        let mut cells = self.layout.no_cells();
        self.layout.add(names, &rows, &mut cells);
        self.batches.push(cells.into_iter().map(Values::of).collect());
    }

    fn finish(mut self, names: &Names) -> TableColumns {
        if !self.rows.is_empty() {
            self.end_batch(names);
        }
        let own = self.layout.columns.iter();
        let own = own.map(|column| declared(column.name(), column.kind()));
        let derived = self.layout.derived.iter().map(|one| declared(one.name, Kind::Text));
        TableColumns { declared: own.chain(derived).collect(), batches: self.batches }
    }
}

/// The tables of a run, column by column.
#[derive(Clone, Debug, Default)]
pub struct RunTables {
    /// As `flows.parquet`.
    pub flows: TableColumns,
    /// As `samples.parquet`.
    pub samples: TableColumns,
    /// As `links.parquet`.
    pub links: TableColumns,
    /// As `classes.parquet`.
    pub classes: TableColumns,
    /// As `paths.parquet`.
    pub paths: TableColumns,
    /// As `path-samples.parquet`.
    pub path_samples: TableColumns,
    /// As `objects.parquet`.
    pub objects: TableColumns,
    /// As `connections.parquet`.
    pub connections: TableColumns,
}

/// Keeps all rows of a run in memory, however many there are.
pub struct InMemory {
    names: Names,
    samples: Growing<FlowSample>,
    path_samples: Growing<FlowSample>,
    links: Growing<LinkSample>,
    classes: Growing<ClassSample>,
    connections: Growing<ConnectionRecord>,
}

impl InMemory {
    /// Creates the tables for a run of this scenario.
    pub fn of(scenario: &Scenario) -> InMemory {
        let names = Names::of_scenario(scenario);
        InMemory {
            samples: Growing::new(tables::samples_of(&names)),
            path_samples: Growing::new(tables::path_samples_of(&names)),
            names,
            links: Growing::new(tables::links()),
            classes: Growing::new(tables::classes()),
            connections: Growing::new(tables::connections()),
        }
    }

    /// Returns the tables once the run has ended.
    pub fn finish(self, records: &Records) -> RunTables {
        let InMemory { names, samples, path_samples, links, classes, connections } = self;
        let whole = &names;
        RunTables {
            flows: all(tables::flows_of(&records.flows), &records.flows, whole),
            samples: samples.finish(whole),
            links: links.finish(whole),
            classes: classes.finish(whole),
            paths: all(tables::paths(), &records.paths, whole),
            path_samples: path_samples.finish(whole),
            objects: all(tables::objects(), &records.objects, whole),
            connections: connections.finish(whole),
        }
    }
}

fn all<R: Clone>(layout: Layout<R>, rows: &[R], names: &Names) -> TableColumns {
    let mut table = Growing::new(layout);
    rows.iter().for_each(|row| table.push(names, row.clone()));
    table.finish(names)
}

impl SampleSink for InMemory {
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.samples.push(&self.names, *row);
        Ok(())
    }

    fn path(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.path_samples.push(&self.names, *row);
        Ok(())
    }

    fn link(&mut self, row: &LinkSample) -> Result<(), Error> {
        self.links.push(&self.names, *row);
        Ok(())
    }

    fn class(&mut self, row: &ClassSample) -> Result<(), Error> {
        self.classes.push(&self.names, *row);
        Ok(())
    }

    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.connections.push(&self.names, row.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Missing values keep their rows.
    #[test]
    fn gaps_keep_their_rows() {
        let values = Values::of(Cells::integers([None, Some(7), None, Some(9)].into_iter()));
        let present = Some(vec![false, true, false, true]);
        assert_eq!(values, Values::Integers(vec![0, 7, 0, 9], present));
        let values = Values::of(Cells::texts(["b", "", "a", "b"].into_iter()));
        let words = vec!["b".to_string(), "a".to_string()];
        assert_eq!(values, Values::Texts(words, vec![Some(0), None, Some(1), Some(0)]));
    }

    /// More rows than fit in a batch stay in order, and none is lost.
    #[test]
    fn batches_hold_all_rows() {
        let mut table = Growing::new(tables::links());
        let names = Names::of(&Records::default());
        let rows = table.layout.group_rows as u64 + 10;
        for time_ns in 0..rows {
            table.push(&names, LinkSample { time_ns, ..LinkSample::default() });
        }
        let table = table.finish(&names);
        let at = table.declared.iter().position(|one| one.name == "time_ns").unwrap();
        let times = table.batches.iter().flat_map(|batch| match &batch[at] {
            Values::Integers(values, None) => values.clone(),
            other => panic!("{other:?}"),
        });
        assert!(times.eq(0..rows as i64));
        assert_eq!((table.rows() as u64, table.batches.len()), (rows, 2));
    }
}
