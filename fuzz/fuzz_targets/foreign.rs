//! Files that other programs wrote about a path: reading any input gives a series or a measurement that
//! can be used, or a message with a place and a remedy.

#![no_main]

use knee_foreign::{Columns, Gap, Measured, Quantity, read_measurement, read_series};
use knee_units::Time;
use libfuzzer_sys::fuzz_target;

fn check_message(message: &str) {
    assert!(!message.contains('\n') && message.len() < 1500, "{message}");
    assert!(message.starts_with("line "), "{message}");
}

fuzz_target!(|data: &[u8]| {
    let written = Columns { time: Some("1 s"), value: Some("2 Mbit/s"), ..Columns::default() };
    let dated = Columns { time: Some("t"), value: Some("5 B / 6 ms"), gap: Gap::Zero, ..written };
    for columns in [Columns::default(), written, dated] {
        for quantity in [Quantity::Rate, Quantity::Delay, Quantity::Loss] {
            match read_series(data, quantity, &columns) {
                Ok(series) => {
                    let steps = series.steps(Time::from_secs(1), Time::ZERO, true).unwrap_or_default();
                    assert!(steps.is_sorted_by(|a, b| a.0 < b.0));
                    assert!(steps.iter().all(|(_, value)| value.is_finite() && *value >= 0.0));
                    assert!(series.mean().is_finite() && series.span() > Time::ZERO);
                }
                Err(error) => check_message(&error.to_string()),
            }
        }
    }
    match read_measurement(data) {
        Ok(read) => {
            for measured in read.measured {
                if let Measured::Bulk(bulk) = measured {
                    assert!(!bulk.intervals.is_empty());
                    assert!(bulk.intervals.iter().all(|one| one.seconds > 0.0));
                }
            }
        }
        Err(error) => check_message(&error.to_string()),
    }
});
