//! Parameters of algorithms: declared, checked and read.

use crate::registry::{SelectionError, Value, did_you_mean};
use crate::{BufferSize, Bytes, Fraction, Rate, Time};

/// A parameter that a scenario may set.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name in scenarios.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Default, as a scenario writes it; empty if it has none, or one that depends on where the
    /// algorithm is used.
    pub default: &'static str,
    /// What it does.
    pub summary: &'static str,
}

/// Kind of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// `true`, `false`, or one of these words: a named form of what the switch turns on.
    SwitchOrWord(&'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A dimensionless number in the range, bounds included.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A whole number in the range, bounds included.
    Count {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// A time with its unit, above zero and at most an hour, or `"off"`.
    DurationOrOff,
    /// A window: a whole number of packets, or a multiple of the BDP of the flow's path, each with
    /// its unit.
    Window,
    /// A time with its unit in the range, bounds included.
    Time {
        /// Shortest.
        min: Time,
        /// Longest.
        max: Time,
    },
    /// A size with its unit in the range, bounds included.
    Size {
        /// Smallest.
        min: Bytes,
        /// Largest.
        max: Bytes,
    },
    /// A data rate with its unit in the range, bounds included.
    Rate {
        /// Slowest.
        min: Rate,
        /// Fastest.
        max: Rate,
    },
    /// A fraction in per cent.
    Part,
    /// A list of `count` numbers, each in the range, bounds included.
    Numbers {
        /// Length of the list.
        count: usize,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// The contents of a file. A scenario names the file; its reader replaces the name with the
    /// contents. The default is a word that stands for contents built into the algorithm.
    File,
}

impl Kind {
    /// Describes what to write.
    pub fn describe(&self) -> String {
        match *self {
            Kind::Switch => "true or false".to_owned(),
            Kind::SwitchOrWord(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("true, false or {}", words.join(" or "))
            }
            Kind::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                words.join(" or ")
            }
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::DurationOrOff => {
                format!("a time above zero, up to \"{LONGEST}\", such as \"400 ms\", or \"off\"")
            }
            Kind::Window => format!(
                "a window of 1 to {WINDOW_PACKETS_MAX} packets, such as \"20 packets\", or of a \
                 multiple of the path's BDP, such as \"1.5 BDP\""
            ),
            Kind::Time { min, max } => format!("a time from \"{min}\" to \"{max}\""),
            Kind::Size { max, .. } if max.get() == u64::MAX => {
                "a size with its unit, such as \"10 kB\"".to_owned()
            }
            Kind::Size { min, max } => format!("a size from \"{min}\" to \"{max}\""),
            Kind::Rate { min, max } => format!("a rate from \"{min}\" to \"{max}\""),
            Kind::Part => "a part from \"0 %\" to \"100 %\"".to_owned(),
            Kind::Numbers { count, min, max } => {
                format!("a list of {count} numbers from {min} to {max}")
            }
            Kind::File => "the name of a file".to_owned(),
        }
    }

    fn read(&self, value: &Value) -> Option<Setting> {
        match (*self, value) {
            (Kind::Switch | Kind::SwitchOrWord(_), Value::Switch(on)) => Some(Setting::Switch(*on)),
            (Kind::SwitchOrWord(words) | Kind::Word(words), Value::Text(text)) => {
                words.iter().find(|word| *word == text).map(|word| Setting::Word(word))
            }
            (Kind::Number { min, max }, Value::Number(n)) => {
                (min..=max).contains(n).then_some(Setting::Number(*n))
            }
            (Kind::Count { min, max }, Value::Number(n)) => {
                let whole = n.fract() == 0.0;
                let inside = (f64::from(min)..=f64::from(max)).contains(n);
                (whole && inside).then_some(Setting::Number(*n))
            }
            (Kind::DurationOrOff, Value::Switch(false)) => Some(Setting::Duration(None)),
            (Kind::DurationOrOff, Value::Text(text)) if text == "off" => {
                Some(Setting::Duration(None))
            }
            (Kind::DurationOrOff, Value::Text(text)) => read_time(text),
            (Kind::Window, Value::Text(text)) => read_window(text),
            (Kind::Time { min, max }, Value::Text(text)) => {
                let time: Time = text.parse().ok()?;
                (min..=max).contains(&time).then_some(Setting::Duration(Some(time)))
            }
            (Kind::Size { min, max }, Value::Text(text)) => {
                let size: Bytes = text.parse().ok()?;
                (min..=max).contains(&size).then_some(Setting::Size(size))
            }
            (Kind::Rate { min, max }, Value::Text(text)) => {
                let rate: Rate = text.parse().ok()?;
                (min..=max).contains(&rate).then_some(Setting::Rate(rate))
            }
            (Kind::Part, Value::Text(text)) => {
                let part: Fraction = text.parse().ok()?;
                (0.0..=1.0).contains(&part.get()).then_some(Setting::Part(part))
            }
            (Kind::Numbers { count, min, max }, Value::Numbers(list)) => {
                let fits = list.len() == count && list.iter().all(|n| (min..=max).contains(n));
                fits.then(|| Setting::Numbers(list.clone()))
            }
            (Kind::File, Value::Text(text)) => Some(Setting::File(text.clone())),
            _ => None,
        }
    }
}

/// Longest time that a parameter accepts.
const LONGEST: Time = Time::from_secs(3600);

fn read_time(text: &str) -> Option<Setting> {
    let time: Time = text.parse().ok()?;
    (time > Time::ZERO && time <= LONGEST).then_some(Setting::Duration(Some(time)))
}

/// Largest window that a parameter accepts, in packets.
const WINDOW_PACKETS_MAX: u64 = 1_000_000;

/// Largest window that a parameter accepts, in BDP.
const WINDOW_BDP_MAX: f64 = 1000.0;

fn read_window(text: &str) -> Option<Setting> {
    let size: BufferSize = text.parse().ok()?;
    let possible = match size {
        BufferSize::Packets(packets) => (1..=WINDOW_PACKETS_MAX).contains(&packets),
        BufferSize::Bdp(times) => times > 0.0 && times <= WINDOW_BDP_MAX,
        BufferSize::Bytes(_) | BufferSize::Unlimited => false,
    };
    possible.then_some(Setting::Window(size))
}

#[derive(Clone, Debug, PartialEq)]
enum Setting {
    Switch(bool),
    Word(&'static str),
    Number(f64),
    Duration(Option<Time>),
    Window(BufferSize),
    Size(Bytes),
    Rate(Rate),
    Part(Fraction),
    Numbers(Vec<f64>),
    File(String),
    /// Not set, and without a fixed default.
    Unset,
}

/// The values of all parameters of one algorithm.
///
/// Reading a parameter that the algorithm does not declare, or as another kind than declared, is a
/// bug in the algorithm and panics; the tests of each registry build every algorithm once.
#[derive(Debug)]
pub struct Settings {
    values: Vec<(Parameter, Setting)>,
}

impl Settings {
    /// Returns all parameters with their defaults.
    pub fn defaults(parameters: &[Parameter]) -> Settings {
        Settings { values: parameters.iter().map(|p| (*p, declared_default(p))).collect() }
    }

    /// Sets a value that a preset declares.
    pub(crate) fn set_text(&mut self, name: &str, text: &str) {
        let slot = self.values.iter_mut().find(|(p, _)| p.name == name);
        let (parameter, setting) = slot.expect("a preset sets parameters of its algorithm");
        *setting = read_declared(parameter, text);
    }

    /// Sets a value that a scenario gives.
    ///
    /// # Errors
    /// If `algorithm` has no such parameter, or the value is invalid.
    pub fn set(
        &mut self,
        algorithm: &str,
        name: &str,
        value: &Value,
    ) -> Result<(), SelectionError> {
        let Some(slot) = self.values.iter().position(|(p, _)| p.name == name) else {
            return Err(self.unknown(algorithm, name));
        };
        let (parameter, setting) = &mut self.values[slot];
        *setting = parameter.kind.read(value).ok_or_else(|| SelectionError {
            parameter: Some(name.to_owned()),
            problem: format!("{name} of {algorithm} cannot be {value}"),
            advice: format!("write {}", parameter.kind.describe()),
        })?;
        Ok(())
    }

    fn unknown(&self, algorithm: &str, name: &str) -> SelectionError {
        SelectionError {
            parameter: Some(name.to_owned()),
            problem: format!("{algorithm} has no parameter \"{name}\""),
            advice: match self.values.is_empty() {
                true => "it takes no parameters".to_owned(),
                false => did_you_mean(name, self.values.iter().map(|(p, _)| p.name)),
            },
        }
    }

    fn declared(&self, name: &str) -> &(Parameter, Setting) {
        let found = self.values.iter().find(|(p, _)| p.name == name);
        found.expect("algorithms read only what they declare")
    }

    fn get(&self, name: &str) -> &Setting {
        &self.declared(name).1
    }

    /// Returns a [`Kind::Switch`], or whether a [`Kind::SwitchOrWord`] is on in any form.
    pub fn switch(&self, name: &str) -> bool {
        match self.get(name) {
            Setting::Switch(on) => *on,
            Setting::Word(_) => true,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Word`], or the word of a [`Kind::SwitchOrWord`]; `None` if that is `true` or
    /// `false`.
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.get(name) {
            Setting::Switch(_) => None,
            Setting::Word(word) => Some(word),
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns whether a parameter has the default of its declaration.
    pub fn is_default(&self, name: &str) -> bool {
        let (parameter, setting) = self.declared(name);
        *setting == declared_default(parameter)
    }

    /// Returns a [`Kind::Number`].
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Setting::Number(n) => *n,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Count`].
    pub fn count(&self, name: &str) -> u32 {
        self.number(name) as u32
    }

    /// Sets a parameter without a fixed default, unless it is already set, to a value that depends
    /// on where the algorithm is used.
    pub fn fill(&mut self, name: &str, text: &str) {
        if matches!(self.get(name), Setting::Unset) {
            self.set_text(name, text);
        }
    }

    /// Returns all parameters that are set, as a scenario writes them, in the order of their
    /// declarations.
    pub fn written(&self) -> impl Iterator<Item = (&Parameter, Value)> {
        self.values.iter().filter_map(|(parameter, setting)| {
            let value = match setting {
                Setting::Switch(on) => Value::Switch(*on),
                Setting::Word(word) => Value::Text((*word).to_owned()),
                Setting::Number(n) => Value::Number(*n),
                Setting::Duration(Some(time)) => Value::Text(time.to_string()),
                Setting::Duration(None) => Value::Text("off".to_owned()),
                Setting::Window(size) => Value::Text(size.to_string()),
                Setting::Size(size) => Value::Text(size.to_string()),
                Setting::Rate(rate) => Value::Text(rate.to_string()),
                Setting::Part(part) => Value::Text(part.to_string()),
                Setting::Numbers(list) => Value::Numbers(list.clone()),
                Setting::File(text) => Value::Text(text.clone()),
                Setting::Unset => return None,
            };
            Some((parameter, value))
        })
    }

    /// Returns a [`Kind::Size`]; `None` if it is not set.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        match self.get(name) {
            Setting::Size(size) => Some(*size),
            Setting::Unset => None,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// A [`Kind::Rate`].
    pub fn rate(&self, name: &str) -> Rate {
        match self.get(name) {
            Setting::Rate(rate) => *rate,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Part`].
    pub fn part(&self, name: &str) -> Fraction {
        match self.get(name) {
            Setting::Part(part) => *part,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Time`] that has a default.
    pub fn time(&self, name: &str) -> Time {
        self.duration(name).expect("a time with a default is always set")
    }

    /// Returns a [`Kind::Time`], or a [`Kind::DurationOrOff`]; `None` if off
    /// or not set.
    pub fn duration(&self, name: &str) -> Option<Time> {
        match self.get(name) {
            Setting::Duration(time) => *time,
            Setting::Unset => None,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Window`] in packets; `None` if it is not set, or still in BDP, which has to
    /// be converted where the path is known.
    pub fn packets(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Setting::Window(BufferSize::Packets(packets)) => Some(*packets),
            Setting::Window(_) | Setting::Unset => None,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns the windows in BDP, by the names of their parameters.
    pub fn windows_in_bdp(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.values.iter().filter_map(|(parameter, setting)| match setting {
            Setting::Window(BufferSize::Bdp(times)) => Some((parameter.name, *times)),
            _ => None,
        })
    }

    /// Returns a [`Kind::File`]: its contents, or the default.
    pub fn file(&self, name: &str) -> &str {
        match self.get(name) {
            Setting::File(text) => text,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }

    /// Returns a [`Kind::Numbers`].
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.get(name) {
            Setting::Numbers(list) => list,
            other => unreachable!("{name} is declared as {other:?}"),
        }
    }
}

fn declared_default(parameter: &Parameter) -> Setting {
    match parameter.default {
        "" => Setting::Unset,
        default => read_declared(parameter, default),
    }
}

/// Parses a default or a preset's value, in a scenario's notation.
fn read_declared(parameter: &Parameter, text: &str) -> Setting {
    let numbers = || text.split(',').map(|n| n.trim().parse()).collect::<Result<Vec<f64>, _>>();
    let value = match parameter.kind {
        Kind::Switch => Value::Switch(text == "true"),
        Kind::SwitchOrWord(_) => {
            text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Switch)
        }
        Kind::Number { .. } | Kind::Count { .. } => Value::Number(text.parse().unwrap_or(f64::NAN)),
        Kind::DurationOrOff
        | Kind::Window
        | Kind::Time { .. }
        | Kind::Size { .. }
        | Kind::Rate { .. }
        | Kind::Part
        | Kind::Word(_)
        | Kind::File => Value::Text(text.to_owned()),
        Kind::Numbers { .. } => Value::Numbers(numbers().unwrap_or_default()),
    };
    parameter.kind.read(&value).expect("declared values are of the declared kind")
}
