//! Transfers from an access log, in common formats: their sizes and, if the log has them, their
//! times, classes and client round-trip times.

mod read;
mod taken;

pub use read::{log_format, read_access_log};

use crate::Recorded;
use knee_foreign::PassedOver;
use knee_units::{Packed, Time};
use std::collections::BTreeMap;
use std::fmt;

/// Contents of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Name of its format, for display.
    pub format: &'static str,
    /// Sizes in bytes, in the order of the lines.
    pub sizes: Packed,
    /// Time of each line since the earliest one, nanoseconds; empty unless every line has one.
    pub times_ns: Packed,
    /// Line at which the time of day goes back by hours, so that there are no times.
    pub goes_back: Option<usize>,
    /// Class of each line, as an index into `class_names`; empty if no line has one.
    pub classes: Packed,
    /// Names of the classes, in the order of their first occurrence; lines without a class have the
    /// empty name.
    pub class_names: Vec<String>,
    /// Client round-trip time of each line, nanoseconds, zero if it has none; empty if no line has
    /// one.
    pub rtts_ns: Packed,
    /// Lines that gave no size, by reason.
    pub passed_over: Vec<PassedOver>,
}

/// `Common Log Format, 1204 lines taken, 31 not: 30 without a body (first: line 4), …`.
impl fmt::Display for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not: usize = self.passed_over.iter().map(|over| over.lines).sum();
        write!(f, "{}, {} lines taken, {not} not", self.format, self.sizes.len())?;
        let reasons = self
            .passed_over
            .iter()
            .map(|over| format!("{} {} (first: line {})", over.lines, over.reason, over.first));
        match not {
            0 => Ok(()),
            _ => write!(f, ": {}", reasons.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Criteria for choosing lines of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogChoice {
    /// Class of the lines; `None` for any.
    pub class: Option<String>,
    /// Minimum round-trip time; `None` for any, even none.
    pub rtt_at_least: Option<Time>,
    /// Exclusive maximum round-trip time; `None` for any, even none.
    pub rtt_below: Option<Time>,
}

/// Why no line of a log can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// No line has a class, or none has this one.
    #[error("no line is of class \"{class}\"; {}", named_classes(.known))]
    Class {
        /// The class requested.
        class: String,
        /// The classes in the log.
        known: Vec<String>,
    },
    /// No line has a round-trip time in the range.
    #[error("no line has a client's round-trip time in this span; {}", match .seen {
        Some((least, most)) => format!("they are from {least} to {most}"),
        None => "name a column \"client_rtt_ms\"".to_string(),
    })]
    Rtt {
        /// Minimum and maximum; `None` if no line has a round-trip time.
        seen: Option<(Time, Time)>,
    },
    /// Arrivals cannot follow the log, because not every line has a time.
    #[error(
        "not every line has a time that can be read; name its column \"time\", or write an \
             arrival_interval"
    )]
    Times,
    /// Arrivals cannot follow the log, because a time of day may be that of another day.
    #[error(
        "the time of day goes back by hours in line {line}; add a column \"date\", or write an \
             arrival_interval"
    )]
    GoesBack {
        /// Number of the line, from one.
        line: usize,
    },
}

fn named_classes(classes: &[String]) -> String {
    match classes.is_empty() {
        true => "name a column \"class\"".to_string(),
        false => format!("there are {}", classes.join(", ")),
    }
}

impl AccessLog {
    /// Returns the log with only the chosen lines.
    ///
    /// # Errors
    /// [`NotChosen`] if no line matches.
    pub fn choose(self, choice: &LogChoice) -> Result<AccessLog, NotChosen> {
        if *choice == LogChoice::default() {
            return Ok(self);
        }
        let of_class: Option<u64> = match &choice.class {
            None => None,
            Some(class) => {
                let place = self.class_names.iter().position(|name| name == class);
                let known = self.class_names.iter().filter(|name| !name.is_empty()).cloned();
                let unknown = || NotChosen::Class { class: class.clone(), known: known.collect() };
                Some(place.ok_or_else(unknown)? as u64)
            }
        };
        let (least, below) = (choice.rtt_at_least, choice.rtt_below);
        let rtt = |line: usize| self.rtts_ns.get(line).filter(|rtt| *rtt > 0).map(Time::from_nanos);
        let in_span = |line: usize| {
            (least.is_none() && below.is_none())
                || rtt(line).is_some_and(|rtt| {
                    least.is_none_or(|least| rtt >= least) && below.is_none_or(|below| rtt < below)
                })
        };
        let is_chosen = |line: &usize| {
            of_class.is_none_or(|class| self.classes.get(*line) == Some(class)) && in_span(*line)
        };
        let lines = || (0..self.sizes.len()).filter(is_chosen);
        if lines().next().is_none() {
            let known = || self.rtts_ns.iter().filter(|rtt| *rtt > 0).map(Time::from_nanos);
            let seen = known().min().zip(known().max());
            return Err(NotChosen::Rtt { seen });
        }
        let of = |all: &Packed| lines().filter_map(|line| all.get(line)).collect();
        Ok(AccessLog {
            sizes: of(&self.sizes),
            times_ns: of(&self.times_ns),
            classes: of(&self.classes),
            rtts_ns: of(&self.rtts_ns),
            goes_back: self.goes_back,
            format: self.format,
            class_names: self.class_names,
            passed_over: self.passed_over,
        })
    }

    /// Returns the arrivals in order of time, each with its size. `place` receives each time since
    /// the earliest one and returns when the transfer arrives, in the same order, or `None` if it is
    /// left out.
    ///
    /// # Errors
    /// [`NotChosen::Times`] if not every line has a time; [`NotChosen::GoesBack`].
    pub fn arrivals(&self, place: impl Fn(Time) -> Option<Time>) -> Result<Recorded, NotChosen> {
        if let Some(line) = self.goes_back {
            return Err(NotChosen::GoesBack { line });
        }
        let first = self.times_ns.iter().min().ok_or(NotChosen::Times)?;
        let at = |line: u32| self.times_ns.get(line as usize).unwrap_or_default();
        let arrival = |line: u32| {
            let at = place(Time::from_nanos(at(line) - first))?;
            Some((at, self.sizes.get(line as usize)?))
        };
        // A reader takes fewer lines than that.
        let lines = 0..u32::try_from(self.sizes.len()).unwrap_or(u32::MAX);
        if lines.clone().map(at).is_sorted() {
            return Ok(lines.filter_map(arrival).collect());
        }
        let mut lines: Vec<u32> = lines.collect();
        lines.sort_by_key(|line| at(*line));
        Ok(lines.into_iter().filter_map(arrival).collect())
    }

    /// Summarizes what the lines contain besides sizes, for display: `over 2 h`, `classes: video
    /// 80, image 20`, `client RTT 38 ms in the median`; empty if there is nothing.
    pub fn more(&self) -> String {
        let mut said = Vec::new();
        if let Some(last) = self.times_ns.iter().max().filter(|last| *last > 0) {
            said.push(format!("over {}", rounded(last)));
        }
        if !self.class_names.is_empty() {
            let mut counts = vec![0_usize; self.class_names.len()];
            self.classes.iter().for_each(|class| counts[class as usize] += 1);
            let named = self.class_names.iter().zip(counts).map(|(name, count)| {
                format!("{} {count}", if name.is_empty() { "none" } else { name })
            });
            let named: Vec<String> = named.take(CLASSES_TOLD).collect();
            let more = self.class_names.len().saturating_sub(CLASSES_TOLD);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            said.push(format!("classes: {}{rest}", named.join(", ")));
        }
        if let Some(median) = self.median_rtt() {
            said.push(format!("client RTT {median} in the median"));
        }
        said.join("; ")
    }

    /// Returns the median of the round-trip times, rounded. Of rounded ones there are few.
    fn median_rtt(&self) -> Option<Time> {
        let mut counts: BTreeMap<Time, usize> = BTreeMap::new();
        for rtt in self.rtts_ns.iter().filter(|rtt| *rtt > 0) {
            *counts.entry(rounded(rtt)).or_default() += 1;
        }
        let half = counts.values().sum::<usize>() / 2;
        let mut up_to = 0;
        let reaches = |(_, count): &(&Time, &usize)| {
            up_to += **count;
            up_to > half
        };
        counts.iter().find(reaches).map(|(rtt, _)| *rtt)
    }
}

/// Maximum number of classes that are listed individually.
const CLASSES_TOLD: usize = 6;

/// Rounds nanoseconds to three digits.
fn rounded(ns: u64) -> Time {
    let mut unit = 1;
    while ns / unit >= 1000 {
        unit *= 10;
    }
    Time::from_nanos(ns.saturating_add(unit / 2) / unit * unit)
}
