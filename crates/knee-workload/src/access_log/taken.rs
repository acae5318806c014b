//! Collects the lines of a log. What no line has costs no memory.

use super::fields::{At, DAY, More};
use super::{AccessLog, PassedOver};
use knee_units::Time;
use std::collections::BTreeMap;

/// Total length of the names of classes; more are those of a column of another kind.
const NAMES_BYTES_MAX: usize = 16 << 20;

const HOUR: i64 = 3_600_000_000_000;
/// Lines are written at the end of a transfer and may have its start, so they are out of order by
/// less than this; a time of day that goes back further is that of the next day.
const BACK_MAX: i64 = HOUR;
/// A time of day that goes back by less is ambiguous.
const NEXT_DAY: i64 = 12 * HOUR;

/// Lines taken so far.
#[derive(Default)]
pub(super) struct Taken {
    pub sizes: Vec<u64>,
    clock: Clock,
    classes: Vec<usize>,
    names: Vec<String>,
    names_bytes: usize,
    places: BTreeMap<String, usize>,
    rtts: Vec<Time>,
}

/// Times of the lines, nanoseconds since an instant common to all.
#[derive(Default)]
enum Clock {
    /// No line yet.
    #[default]
    Begins,
    /// Each line has its date.
    Dated(Vec<i64>),
    /// Each line has a time of day only.
    OfDay { at_ns: Vec<i64>, midnight: i64, goes_back: Option<usize> },
    /// A line has no time, or one of another kind than the others.
    Without,
}

impl Clock {
    fn add(&mut self, at: Option<At>, line: usize) {
        match (&mut *self, at) {
            (Clock::Begins, Some(At::Instant(at))) => *self = Clock::Dated(vec![at]),
            (Clock::Begins, Some(At::OfDay(at))) => {
                *self = Clock::OfDay { at_ns: vec![at], midnight: 0, goes_back: None };
            }
            (Clock::Dated(all), Some(At::Instant(at))) => all.push(at),
            (Clock::OfDay { at_ns, midnight, goes_back }, Some(At::OfDay(of_day))) => {
                let last = at_ns.last().copied().unwrap_or(0);
                let at = *midnight + of_day;
                let day_before = at - DAY;
                if last - at >= NEXT_DAY {
                    *midnight += DAY;
                } else if last - at > BACK_MAX {
                    goes_back.get_or_insert(line);
                }
                // A late line from before the last midnight.
                let is_late = *midnight > 0 && (last - day_before).abs() <= BACK_MAX;
                at_ns.push(if is_late { day_before } else { *midnight + of_day });
            }
            _ => *self = Clock::Without,
        }
    }

    /// Returns the times since the earliest one, and the line at which they go back.
    fn times(self) -> (Vec<Time>, Option<usize>) {
        let at_ns = match self {
            Clock::OfDay { goes_back: Some(line), .. } => return (Vec::new(), Some(line)),
            Clock::Dated(at_ns) | Clock::OfDay { at_ns, .. } => at_ns,
            Clock::Begins | Clock::Without => Vec::new(),
        };
        let first = at_ns.iter().copied().min().unwrap_or(0);
        let since = |at: i64| Time::from_nanos(at.abs_diff(first));
        (at_ns.into_iter().map(since).collect(), None)
    }
}

impl Taken {
    /// Adds a line. Fails if the names of its classes take too much memory.
    pub fn add(&mut self, line: usize, size: u64, more: More) -> Result<(), &'static str> {
        self.clock.add(more.at(), line);
        let before = self.sizes.len();
        if more.rtt.is_some() && self.rtts.is_empty() {
            self.rtts = vec![Time::ZERO; before];
        }
        if more.rtt.is_some() || !self.rtts.is_empty() {
            self.rtts.push(more.rtt.unwrap_or(Time::ZERO));
        }
        if more.class.is_some() && self.names.is_empty() && before > 0 {
            self.place("");
            self.classes = vec![0; before];
        }
        if more.class.is_some() || !self.names.is_empty() {
            let place = self.place(more.class.as_deref().unwrap_or_default());
            self.classes.push(place);
        }
        self.sizes.push(size);
        match self.names_bytes > NAMES_BYTES_MAX {
            true => Err("there are too many different classes"),
            false => Ok(()),
        }
    }

    /// Returns the number of a class.
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.places.insert(name.to_string(), self.names.len());
        // Held twice, with what a string and a node of the tree need.
        self.names_bytes += 2 * name.len() + 96;
        self.names.push(name.to_string());
        self.names.len() - 1
    }

    pub fn log(self, format: &'static str, passed_over: Vec<PassedOver>) -> AccessLog {
        let Taken { sizes, clock, classes, names, rtts, .. } = self;
        let (times, goes_back) = clock.times();
        AccessLog {
            format,
            sizes,
            times,
            goes_back,
            classes,
            class_names: names,
            rtts,
            passed_over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of each line since the first, for times of day.
    fn seconds(texts: &[&str]) -> Result<Vec<u64>, usize> {
        let mut clock = Clock::default();
        for (text, line) in texts.iter().zip(1..) {
            let mut more = More::default();
            more.take(super::super::fields::Field::Time, text);
            clock.add(more.at(), line);
        }
        let (times, goes_back) = clock.times();
        let seconds = times.iter().map(|at| at.as_nanos() / 1_000_000_000).collect();
        goes_back.map_or(Ok(seconds), Err)
    }

    #[test]
    fn times_of_day_go_on_past_midnight_in_the_order_of_the_file() {
        assert_eq!(
            seconds(&["23:59:58", "23:59:59", "00:00:01", "00:00:02"]),
            Ok(vec![0, 1, 3, 4])
        );
        // A late line from before midnight, and two nights.
        assert_eq!(
            seconds(&["23:59:58", "00:00:01", "23:59:59", "00:00:02"]),
            Ok(vec![0, 3, 1, 4])
        );
        let days = ["23:00:00", "01:00:00", "12:30:00", "23:30:00", "00:30:00"];
        assert_eq!(seconds(&days), Ok(vec![0, 7200, 48_600, 88_200, 91_800]));
        assert_eq!(seconds(&["10:00:01", "10:00:00"]), Ok(vec![1, 0]), "out of order");
    }

    #[test]
    fn a_time_of_day_that_goes_back_by_hours_gives_no_times() {
        assert_eq!(seconds(&["20:00:00", "20:00:01", "09:00:00"]), Err(3));
    }

    #[test]
    fn times_of_different_kinds_are_no_times() {
        assert_eq!(seconds(&["10:00:00", "2024-03-01T10:00:01Z"]), Ok(vec![]));
        assert_eq!(seconds(&["10:00:00", "-", "10:00:01"]), Ok(vec![]));
    }
}
