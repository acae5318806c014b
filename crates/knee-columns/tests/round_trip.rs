//! What is written is what Parquet's own reader reads, whatever the encoding chosen.

use knee_columns::{Cells, Kind, Reader, Writer, each};
use proptest::prelude::*;

const KINDS: [(&str, Kind); 7] = [
    ("series", Kind::Integer { nullable: false }),
    ("integer", Kind::Integer { nullable: false }),
    ("gaps", Kind::Integer { nullable: true }),
    ("float", Kind::Float { nullable: false }),
    ("float_gaps", Kind::Float { nullable: true }),
    ("text", Kind::Text),
    ("flag", Kind::Flag { nullable: true }),
];

/// A row of a table: the series, and a number of which the cells are made.
type Row = (i64, Option<i64>);

/// Rows that repeat or differ, close together and far apart, with long runs and without.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let number = prop_oneof![
        Just(None),
        Just(Some(7)),
        (0..40_i64).prop_map(Some),
        (1_000_000..1_010_000_i64).prop_map(Some),
        any::<i64>().prop_map(Some),
    ];
    let piece = (0..5_i64, number, 1..40_usize);
    prop::collection::vec(piece, 1..120).prop_map(|pieces| {
        let rows = pieces
            .into_iter()
            .flat_map(|(series, number, count)| std::iter::repeat_n((series, number), count));
        rows.collect()
    })
}

fn cells(rows: &[Row]) -> Vec<Cells> {
    let whole = || rows.iter().map(|row| row.1.unwrap_or(-1));
    let texts: Vec<String> =
        rows.iter().map(|row| row.1.map_or_else(String::new, |one| one.to_string())).collect();
    vec![
        Cells::Integers(rows.iter().map(|row| row.0).collect(), None),
        Cells::Integers(whole().collect(), None),
        Cells::integers(rows.iter().map(|row| row.1)),
        Cells::Floats(whole().map(|one| one as f64 / 3.0).collect(), None),
        Cells::floats(rows.iter().map(|row| row.1.map(|one| one as f64))),
        Cells::texts(texts.iter().map(String::as_str)),
        Cells::flags(rows.iter().map(|row| row.1.map(|one| one % 2 == 0))),
    ]
}

/// Returns the cells of a column, one text per row.
fn shown(cells: &Cells) -> Vec<String> {
    match cells {
        Cells::Integers(values, present) => {
            each(values, present).map(|one| format!("{one:?}")).collect()
        }
        Cells::Floats(values, present) => {
            each(values, present).map(|one| format!("{:?}", one.map(|one| one.to_bits()))).collect()
        }
        Cells::Texts(values, present) => {
            values.each(present).map(|one| format!("{one:?}")).collect()
        }
        Cells::Flags(values, present) => {
            each(values, present).map(|one| format!("{one:?}")).collect()
        }
    }
}

proptest! {
    #[test]
    fn cells_come_back(groups in prop::collection::vec(rows(), 1..3)) {
        let file = tempfile::tempfile().unwrap();
        let mut writer = Writer::create(file.try_clone().unwrap(), ("key", "value"), &KINDS).unwrap();
        for rows in &groups {
            writer.write(&mut cells(rows).iter()).unwrap();
        }
        writer.close().unwrap();
        let reader = Reader::open(file).unwrap();
        prop_assert_eq!(reader.note("key"), Some("value"));
        prop_assert_eq!(reader.groups(), groups.len());
        let places: Vec<usize> =
            KINDS.iter().map(|(name, kind)| reader.find(name, *kind).unwrap()).collect();
        for (number, rows) in groups.iter().enumerate() {
            let mut group = reader.group(number, &places).unwrap();
            prop_assert_eq!(group.rows, rows.len());
            for (column, written) in cells(rows).iter().enumerate() {
                let read = group.next(column, rows.len()).unwrap();
                prop_assert_eq!(shown(&read), shown(written), "column {}", KINDS[column].0);
            }
        }
    }
}
