//! Transfers from an access log, in common formats: their sizes and, if the log has them, their
//! times, classes and client round-trip times.

mod extended;
mod fields;
mod json;
mod read;
mod taken;

pub use read::read_access_log;

use knee_units::Time;
use std::fmt;

/// Contents of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Name of its format, for display.
    pub format: &'static str,
    /// Sizes in bytes, in the order of the lines.
    pub sizes: Vec<u64>,
    /// Time of each line since the earliest one; empty unless every line has one.
    pub times: Vec<Time>,
    /// Line at which the time of day goes back by hours, so that there are no times.
    pub goes_back: Option<usize>,
    /// Class of each line, as an index into `class_names`; empty if no line has one.
    pub classes: Vec<usize>,
    /// Names of the classes, in the order of their first occurrence; lines without a class have the
    /// empty name.
    pub class_names: Vec<String>,
    /// Client round-trip time of each line, zero if it has none; empty if no line has one.
    pub rtts: Vec<Time>,
    /// Lines that gave no size, by reason.
    pub passed_over: Vec<PassedOver>,
}

/// Lines that gave no size, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// The reason.
    pub reason: &'static str,
    /// Number of lines.
    pub lines: usize,
    /// Number of the first of them, from one.
    pub first: usize,
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
    pub fn choose(&self, choice: &LogChoice) -> Result<AccessLog, NotChosen> {
        let of_class: Option<usize> = match &choice.class {
            None => None,
            Some(class) => {
                let place = self.class_names.iter().position(|name| name == class);
                let known = self.class_names.iter().filter(|name| !name.is_empty()).cloned();
                let unknown = || NotChosen::Class { class: class.clone(), known: known.collect() };
                Some(place.ok_or_else(unknown)?)
            }
        };
        let (least, below) = (choice.rtt_at_least, choice.rtt_below);
        let in_span = |line: usize| match (least.is_some() || below.is_some(), self.rtts.get(line))
        {
            (false, _) => true,
            (true, None) => false,
            (true, Some(rtt)) => {
                *rtt > Time::ZERO
                    && least.is_none_or(|least| *rtt >= least)
                    && below.is_none_or(|below| *rtt < below)
            }
        };
        let chosen: Vec<usize> = (0..self.sizes.len())
            .filter(|line| of_class.is_none_or(|class| self.classes[*line] == class))
            .filter(|line| in_span(*line))
            .collect();
        if chosen.is_empty() {
            let known = self.rtts.iter().copied().filter(|rtt| *rtt > Time::ZERO);
            let seen = known.clone().min().zip(known.max());
            return Err(NotChosen::Rtt { seen });
        }
        fn of<T: Copy>(all: &[T], chosen: &[usize]) -> Vec<T> {
            chosen.iter().filter_map(|line| all.get(*line)).copied().collect()
        }
        Ok(AccessLog {
            sizes: of(&self.sizes, &chosen),
            times: of(&self.times, &chosen),
            classes: of(&self.classes, &chosen),
            rtts: of(&self.rtts, &chosen),
            goes_back: self.goes_back,
            format: self.format,
            class_names: self.class_names.clone(),
            passed_over: self.passed_over.clone(),
        })
    }

    /// Returns the arrivals in order of time, each with its size.
    ///
    /// # Errors
    /// [`NotChosen::Times`] if not every line has a time; [`NotChosen::GoesBack`].
    pub fn arrivals(&self) -> Result<Vec<(Time, u64)>, NotChosen> {
        if let Some(line) = self.goes_back {
            return Err(NotChosen::GoesBack { line });
        }
        if self.times.is_empty() {
            return Err(NotChosen::Times);
        }
        let mut arrivals: Vec<(Time, u64)> =
            self.times.iter().copied().zip(self.sizes.iter().copied()).collect();
        arrivals.sort_by_key(|(at, _)| *at);
        let first = arrivals.first().map_or(Time::ZERO, |(at, _)| *at);
        arrivals.iter_mut().for_each(|(at, _)| *at = at.saturating_sub(first));
        Ok(arrivals)
    }

    /// Summarizes what the lines contain besides sizes, for display: `over 2 h`, `classes: video
    /// 80, image 20`, `client RTT 38 ms in the median`; empty if there is nothing.
    pub fn more(&self) -> String {
        let mut said = Vec::new();
        if let Some(last) = self.times.iter().max().filter(|last| **last > Time::ZERO) {
            said.push(format!("over {}", rounded(*last)));
        }
        if !self.class_names.is_empty() {
            let mut counts = vec![0_usize; self.class_names.len()];
            self.classes.iter().for_each(|class| counts[*class] += 1);
            let named = self.class_names.iter().zip(counts).map(|(name, count)| {
                format!("{} {count}", if name.is_empty() { "none" } else { name })
            });
            let named: Vec<String> = named.take(CLASSES_TOLD).collect();
            let more = self.class_names.len().saturating_sub(CLASSES_TOLD);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            said.push(format!("classes: {}{rest}", named.join(", ")));
        }
        let mut rtts: Vec<Time> =
            self.rtts.iter().copied().filter(|rtt| *rtt > Time::ZERO).collect();
        rtts.sort_unstable();
        if let Some(median) = rtts.get(rtts.len() / 2) {
            said.push(format!("client RTT {} in the median", rounded(*median)));
        }
        said.join("; ")
    }
}

/// Maximum number of classes that are listed individually.
const CLASSES_TOLD: usize = 6;

/// Rounds to three digits.
fn rounded(time: Time) -> Time {
    let mut unit = 1;
    while time.as_nanos() / unit >= 1000 {
        unit *= 10;
    }
    Time::from_nanos((time.as_nanos() + unit / 2) / unit * unit)
}
