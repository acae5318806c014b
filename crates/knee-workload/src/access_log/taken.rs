//! Collects the lines of a log. What no line has costs no memory.

use super::AccessLog;
use knee_foreign::{DayClock, Moment, PassedOver, Transfer};
use knee_units::Packed;
use std::collections::BTreeMap;

/// Total length of the names of classes; more are those of a column of another kind.
const NAMES_BYTES_MAX: usize = 16 << 20;

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
    OfDay { at_ns: Packed, clock: DayClock, goes_back: Option<usize> },
    /// A line has no time, or one of another kind than the others.
    Without,
}

/// Maps signed to unsigned numbers of the same order.
fn ordered(at: i64) -> u64 {
    at.cast_unsigned() ^ (1 << 63)
}

impl Clock {
    fn add(&mut self, at: Option<Moment>, line: usize) {
        if let (Clock::Begins, Some(at)) = (&self, at) {
            *self = match at {
                Moment::Instant(_) => Clock::Dated(Packed::new()),
                Moment::OfDay(_) => {
                    let (at_ns, clock) = (Packed::new(), DayClock::default());
                    Clock::OfDay { at_ns, clock, goes_back: None }
                }
            };
        }
        match (&mut *self, at) {
            (Clock::Dated(all), Some(Moment::Instant(at))) => all.push(ordered(at)),
            (Clock::OfDay { at_ns, clock, goes_back }, Some(Moment::OfDay(of_day))) => {
                let (at, is_back) = clock.since_midnight(of_day);
                if is_back {
                    goes_back.get_or_insert(line);
                }
                at_ns.push(ordered(at));
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
    pub fn add(&mut self, transfer: &Transfer) -> Result<(), TooMuch> {
        let Transfer { line, bytes, at, rtt_ns, class, .. } = transfer;
        self.clock.add(*at, *line);
        let before = self.sizes.len();
        let zeros = || std::iter::repeat_n(0, before);
        if rtt_ns.is_some() && self.rtts_ns.is_empty() {
            self.rtts_ns = zeros().collect();
        }
        if rtt_ns.is_some() || !self.rtts_ns.is_empty() {
            self.rtts_ns.push(rtt_ns.unwrap_or(0));
        }
        if !class.is_empty() && self.names.is_empty() && before > 0 {
            self.place("");
            self.classes = zeros().collect();
        }
        if !class.is_empty() || !self.names.is_empty() {
            let place = self.place(class);
            self.classes.push(place as u64);
        }
        self.sizes.push(*bytes);
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
            let of_day = |text: &str| {
                let numbers: Option<Vec<i64>> = text.split(':').map(|n| n.parse().ok()).collect();
                let [hours, minutes, seconds] = numbers?.try_into().ok()?;
                Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000)
            };
            let at = match text.contains('T') {
                true => Some(Moment::Instant(0)),
                false => of_day(text).map(Moment::OfDay),
            };
            clock.add(at, line);
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
        // In half of them eight bytes for the time, and seven for the size.
        let add = |number: usize| {
            let at = Some(Moment::Instant([0, 9_000_000_000_000_000_000][number % 2]));
            let bytes = [1, 1_000_000_000_000_000][number % 2];
            taken.add(&Transfer { bytes, at, ..Transfer::default() }).is_err()
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
