//! Collects the lines of a log. What no line has costs no memory.

use super::fields::{At, DAY, More};
use super::{AccessLog, PassedOver};
use knee_units::{Packed, Time};
use std::collections::BTreeMap;

/// Total length of the names of classes; more are those of a column of another kind.
const NAMES_BYTES_MAX: usize = 16 << 20;

const HOUR: i64 = 3_600_000_000_000;
/// Lines are written at the end of a transfer and may have its start, so they are out of order by
/// less than this; a time of day that goes back further is that of the next day.
const BACK_MAX: i64 = HOUR;
/// A time of day that goes back by less is ambiguous.
const NEXT_DAY: i64 = 12 * HOUR;

/// Memory of the lines of a log: this, and [`HELD_PER_BYTE`] for each byte of the file. A file that is
/// not compressed needs less, and one that is needs more only if it unpacks to many times its size.
const HELD_MAX: usize = 48 << 20;
const HELD_PER_BYTE: usize = 4;

/// Lines taken so far.
#[derive(Default)]
pub(super) struct Taken {
    pub sizes: Packed,
    clock: Clock,
    classes: Packed,
    names: Vec<String>,
    names_bytes: usize,
    places: BTreeMap<String, usize>,
    rtts_ns: Packed,
    held_max: usize,
}

/// Times of the lines, nanoseconds since an instant common to all, in the form of [`ordered`].
#[derive(Default)]
enum Clock {
    /// No line yet.
    #[default]
    Begins,
    /// Each line has its date.
    Dated(Packed),
    /// Each line has a time of day only.
    OfDay { at_ns: Packed, last: i64, midnight: i64, goes_back: Option<usize> },
    /// A line has no time, or one of another kind than the others.
    Without,
}

/// Maps signed to unsigned numbers of the same order.
fn ordered(at: i64) -> u64 {
    at.cast_unsigned() ^ (1 << 63)
}

impl Clock {
    fn add(&mut self, at: Option<At>, line: usize) {
        match (&mut *self, at) {
            (Clock::Begins, Some(At::Instant(at))) => {
                *self = Clock::Dated([ordered(at)].into_iter().collect());
            }
            (Clock::Begins, Some(At::OfDay(at))) => {
                let at_ns = [ordered(at)].into_iter().collect();
                *self = Clock::OfDay { at_ns, last: at, midnight: 0, goes_back: None };
            }
            (Clock::Dated(all), Some(At::Instant(at))) => all.push(ordered(at)),
            (Clock::OfDay { at_ns, last, midnight, goes_back }, Some(At::OfDay(of_day))) => {
                let at = *midnight + of_day;
                let day_before = at - DAY;
                if *last - at >= NEXT_DAY {
                    *midnight += DAY;
                } else if *last - at > BACK_MAX {
                    goes_back.get_or_insert(line);
                }
                // A late line from before the last midnight.
                let is_late = *midnight > 0 && (*last - day_before).abs() <= BACK_MAX;
                *last = if is_late { day_before } else { *midnight + of_day };
                at_ns.push(ordered(*last));
            }
            _ => *self = Clock::Without,
        }
    }

    /// Returns the times since the earliest one, and the line at which they go back.
    fn times_ns(self) -> (Packed, Option<usize>) {
        let mut at_ns = match self {
            Clock::OfDay { goes_back: Some(line), .. } => return (Packed::new(), Some(line)),
            Clock::Dated(at_ns) | Clock::OfDay { at_ns, .. } => at_ns,
            Clock::Begins | Clock::Without => Packed::new(),
        };
        let first = at_ns.iter().min().unwrap_or(0);
        at_ns.subtract(first);
        (at_ns, None)
    }

    fn held(&self) -> usize {
        match self {
            Clock::Dated(at_ns) | Clock::OfDay { at_ns, .. } => at_ns.held(),
            Clock::Begins | Clock::Without => 0,
        }
    }
}

/// Why the lines of a log take too much memory.
pub(super) enum TooMuch {
    Classes,
    Lines,
}

impl Taken {
    /// Begins with the lines of a file of this size.
    pub fn of_file(bytes: usize) -> Taken {
        let held_max = HELD_MAX.saturating_add(bytes.saturating_mul(HELD_PER_BYTE));
        Taken { held_max, ..Taken::default() }
    }

    /// Adds a line. Fails if the lines take too much memory.
    pub fn add(&mut self, line: usize, size: u64, more: More) -> Result<(), TooMuch> {
        self.clock.add(more.at(), line);
        let before = self.sizes.len();
        let zeros = || std::iter::repeat_n(0, before);
        if more.rtt.is_some() && self.rtts_ns.is_empty() {
            self.rtts_ns = zeros().collect();
        }
        if more.rtt.is_some() || !self.rtts_ns.is_empty() {
            self.rtts_ns.push(more.rtt.map_or(0, Time::as_nanos));
        }
        if more.class.is_some() && self.names.is_empty() && before > 0 {
            self.place("");
            self.classes = zeros().collect();
        }
        if more.class.is_some() || !self.names.is_empty() {
            let place = self.place(more.class.as_deref().unwrap_or_default());
            self.classes.push(place as u64);
        }
        self.sizes.push(size);
        match self.names_bytes > NAMES_BYTES_MAX {
            true => Err(TooMuch::Classes),
            false if self.held() > self.held_max => Err(TooMuch::Lines),
            false => Ok(()),
        }
    }

    /// Returns the bytes that the lines take, but for the names of their classes.
    fn held(&self) -> usize {
        let Taken { sizes, clock, classes, rtts_ns, .. } = self;
        sizes.held() + clock.held() + classes.held() + rtts_ns.held()
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
        let Taken { sizes, clock, classes, names, rtts_ns, .. } = self;
        let (times_ns, goes_back) = clock.times_ns();
        AccessLog {
            format,
            sizes,
            times_ns,
            goes_back,
            classes,
            class_names: names,
            rtts_ns,
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
        let (times_ns, goes_back) = clock.times_ns();
        let seconds = times_ns.iter().map(|at| at / 1_000_000_000).collect();
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

    /// A compressed file must not unpack to lines that fill the memory, whatever they hold.
    #[test]
    fn lines_take_a_bounded_amount_of_memory() {
        const HELD_MAX: usize = 100_000;
        let mut taken = Taken { held_max: HELD_MAX, ..Taken::default() };
        let line = |number: usize| {
            let mut more = More::default();
            let time = if number.is_multiple_of(2) { "0" } else { "9000000000" };
            more.take(super::super::fields::Field::Time, time);
            more
        };
        // In half of them eight bytes for the time, and seven for the size.
        let add = |number: usize| {
            let size = [1, 1_000_000_000_000_000][number % 2];
            taken.add(number, size, line(number)).is_err()
        };
        let refused = (0..100_000).position(add).unwrap();
        assert!((HELD_MAX / 16..HELD_MAX / 12).contains(&refused), "{refused}");
        assert!(taken.held() < HELD_MAX + 16 * 256);
    }

    #[test]
    fn times_of_different_kinds_are_no_times() {
        assert_eq!(seconds(&["10:00:00", "2024-03-01T10:00:01Z"]), Ok(vec![]));
        assert_eq!(seconds(&["10:00:00", "-", "10:00:01"]), Ok(vec![]));
    }
}
