//! What all tables have in common: separators, headers, times, gaps, and how a run goes through
//! them.

use knee_foreign::{Columns, Gap, Quantity, Series, read_series};
use knee_units::Time;
use proptest::prelude::*;
use std::io::Write;

pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn columns<'c>(time: &'c str, value: &'c str) -> Columns<'c> {
    Columns { time: Some(time), value: Some(value), ..Columns::default() }
}

fn rate(text: &[u8], time: &str, value: &str) -> Series {
    let read = read_series(text, Quantity::Rate, &columns(time, value));
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn of_run(series: &Series, seconds: u64, offset: u64, repeats: bool) -> Vec<(u64, f64)> {
    let (duration, offset) = (Time::from_secs(seconds), Time::from_secs(offset));
    let steps = series.steps(duration, offset, repeats).expect("few");
    steps.into_iter().map(|(at, rate)| (at.as_nanos() / 1_000_000_000, rate)).collect()
}

/// The same rows, however they are written.
#[test]
fn rows_are_the_same_in_every_notation() {
    let expected = rate(b"t,r\n0,1\n1,2\n2,4\n", "t s", "r Mbit/s");
    for (text, time, value) in [
        ("t;r\r\n0;1\r\n1;2\r\n2;4", "t s", "r Mbit/s"),
        ("\u{feff}t\tr\n0\t1\n1\t2\n2\t4\n\n", "t s", "r Mbit/s"),
        ("# a drive\nt  r\n0  1\n1  2\n2  4\n", "t s", "r Mbit/s"),
        ("#t r\n0 1\n1 2\n2 4\n", "t s", "r Mbit/s"),
        ("0 1\n1 2\n2 4\n", "1 s", "2 Mbit/s"),
        ("t,r\n0,1\n1,2\n2,4\n", "1 s", "2 Mbit/s"),
        ("t,r Mbit/s\n0,1\n1,2\n2,4\n", "T s", "r Mbit/s"),
        ("\"t\",\"r, all\"\n\"0\",\"1\"\n1,2\n2,4\n", "t s", "r, all Mbit/s"),
        ("x,r,t\n9,1e6,0\n9,2e6,1000\n9,4e6,2e3\n", "t ms", "r bit/s"),
        ("t,r\n1700000000.5,1\n1700000001.5,2\n1700000002.5,4\n", "t s", "r Mbit/s"),
        (
            "t,r\n2026-03-12T23:59:59Z,1\n2026-03-13T00:00:00Z,2\n2026-03-13T01:00:01+01:00,4\n",
            "t",
            "r Mbit/s",
        ),
        ("t,r\n23:59:59,1\n00:00:00,2\n00:00:01,4\n", "t", "r Mbit/s"),
        ("t,r\n0,125000\n1,250000\n2,500000\n", "t s", "r B/s"),
        ("# one\nt,r\n# two\n0,1\n1,2\n# three\n2,4\n", "t s", "r Mbit/s"),
    ] {
        for bytes in [text.as_bytes().to_vec(), packed(text.as_bytes())] {
            let series = rate(&bytes, time, value);
            assert_eq!(of_run(&series, 9, 0, false), of_run(&expected, 9, 0, false), "{text:?}");
            assert_eq!(series.span(), expected.span(), "{text:?}");
        }
    }
}

#[test]
fn a_run_goes_through_the_table_from_its_offset_and_begins_again() {
    let series = rate(b"t,r\n0,1\n1,2\n2,2\n3,0\n", "t s", "r bit/s");
    assert_eq!(series.span(), Time::from_secs(4));
    let whole = [(0, 1.0), (1, 2.0), (3, 0.0)];
    assert_eq!(of_run(&series, 4, 0, true), whole);
    assert_eq!(of_run(&series, 100, 0, false), whole);
    assert_eq!(of_run(&series, 6, 0, true), [(0, 1.0), (1, 2.0), (3, 0.0), (4, 1.0), (5, 2.0)]);
    assert_eq!(of_run(&series, 4, 2, true), [(0, 2.0), (1, 0.0), (2, 1.0), (3, 2.0)]);
    assert_eq!(of_run(&series, 9, 3, false), [(0, 0.0)]);
    assert_eq!((series.mean(), series.range()), (1.25, (0.0, 2.0)));
}

#[test]
fn a_gap_holds_the_value_or_is_zero() {
    let text = b"t,r\n0,1\n1,2\n6,3\n7,4\n";
    let with = |gap| {
        let columns = Columns { gap, ..columns("t s", "r bit/s") };
        read_series(text, Quantity::Rate, &columns).unwrap()
    };
    let held = with(Gap::Hold);
    assert_eq!(of_run(&held, 20, 0, false), [(0, 1.0), (1, 2.0), (6, 3.0), (7, 4.0)]);
    let zero = with(Gap::Zero);
    let expected = [(0, 1.0), (1, 2.0), (2, 0.0), (6, 3.0), (7, 4.0), (8, 0.0)];
    assert_eq!(of_run(&zero, 20, 0, false), expected);
    assert_eq!(zero.mean() * 8.0, 1.0 + 2.0 + 3.0 + 4.0);
}

#[test]
fn the_last_of_two_rows_of_the_same_time_counts() {
    let series = rate(b"t,r\n0,1\n1,2\n1,5\n2,1\n", "t s", "r bit/s");
    assert_eq!(of_run(&series, 3, 0, false), [(0, 1.0), (1, 5.0), (2, 1.0)]);
    assert_eq!(
        series.summary(1.0),
        "comma-separated values, 4 rows over 3 s: 1 bit/s to 5 bit/s, \
        2 bit/s in the mean; 1 rows replaced by one of the same time (first: line 4)"
    );
}

/// A table of a nanosecond, repeated for hours, and one with more steps than a run may have.
#[test]
fn repeating_is_bounded() {
    let series = rate(b"t,r\n0,1\n1,2\n", "t ns", "r bit/s");
    assert_eq!(series.steps(Time::from_secs(3600), Time::ZERO, true), None);
    let constant = rate(b"t,r\n0,1\n1,1\n", "t ns", "r bit/s");
    let steps = constant.steps(Time::from_secs(3600), Time::ZERO, true);
    assert_eq!(steps, Some(vec![(Time::ZERO, 1.0)]));
}

proptest! {
    /// Whatever the rows: steps ascend from zero, none repeats the value before it, and each is the
    /// value of the last row at that position of the table.
    #[test]
    fn a_step_is_the_last_row_at_its_place(
        apart in proptest::collection::vec(1_u64..50, 1..30),
        values in proptest::collection::vec(0_u64..5, 30),
        offset in 0_u64..400,
        duration in 1_u64..2_000,
        repeats: bool,
    ) {
        let mut at = 0;
        let mut rows = Vec::new();
        for (apart, value) in apart.iter().zip(&values) {
            rows.push((at, *value));
            at += apart;
        }
        let text: String = rows.iter().map(|(at, value)| format!("{at} {value}\n")).collect();
        let series = rate(text.as_bytes(), "1 ms", "2 bit/s");
        let span = series.span().as_nanos() / 1_000_000;
        let offset = offset % span;
        let ms = Time::from_millis;
        let steps = series.steps(ms(duration), ms(offset), repeats).unwrap();
        prop_assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
        prop_assert_eq!(steps[0].0, Time::ZERO);
        for time in 0..duration {
            let position = offset + time;
            let position = if repeats { position % span } else { position };
            let expected = rows.iter().rfind(|(at, _)| *at <= position).unwrap().1;
            let found = steps.iter().rfind(|(at, _)| *at <= ms(time)).unwrap().1;
            prop_assert_eq!(found, expected as f64);
        }
    }

    /// Any bytes give a series or a message of one line.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for quantity in [Quantity::Rate, Quantity::Delay, Quantity::Loss] {
            for columns in [Columns::default(), columns("1 s", "2 ms"), columns("t", "v %")] {
                if let Err(error) = read_series(&bytes, quantity, &columns) {
                    let message = error.to_string();
                    prop_assert!(!message.contains('\n') && message.len() < 1500, "{}", message);
                }
            }
        }
    }

    /// The same for what is nearly a table.
    #[test]
    fn nearly_tables_are_read_or_refused(text in "([0-9.,;\t\" #a-c:{}\\[\\]-]{0,12}\r?\n){0,9}") {
        for columns in [columns("1 s", "2 Mbit/s"), columns("a", "b Mbit/s"), Columns::default()] {
            if let Err(error) = read_series(text.as_bytes(), Quantity::Rate, &columns) {
                let message = error.to_string();
                prop_assert!(!message.contains('\n') && message.len() < 1500, "{}", message);
            }
        }
    }
}
