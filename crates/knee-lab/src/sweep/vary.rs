//! Parses `--vary key=values`: a list or a range.

use knee_units::{RangeError, steps};
use std::str::FromStr;

/// A key with the values to vary over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The text as typed.
    pub text: String,
    /// The key in `--set` syntax.
    pub key: String,
    /// At least one value, each in `--set` syntax.
    pub values: Vec<String>,
}

/// Limit on the number of values; more would be a mistake.
const VALUES_MAX: usize = 1_000;

/// Why a text is not a valid [`Vary`], with the correction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaryError {
    /// Missing key or value.
    #[error("\"{0}\" is not a key with values: write flow.main.cc=bbr,cubic")]
    NoValues(String),
    /// The seed cannot be varied, since repeats have their own seeds.
    #[error("the seed varies from repeat to repeat: write --repeat K")]
    Seed,
    /// Invalid range.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// Unclosed bracket or quote.
    #[error("a bracket or quote is not closed in \"{0}\": close it")]
    Open(String),
    /// Empty value.
    #[error("a value is empty in \"{0}\": write a,b,c")]
    Empty(String),
    /// A value occurs twice, which would repeat a run.
    #[error("{key} has the value {value} twice")]
    Twice {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
}

impl FromStr for Vary {
    type Err = VaryError;
    /// Parses `key=a,b,c` and `key=1..10 Mbit/s step 1 Mbit/s`; the error states the correction.
    fn from_str(text: &str) -> Result<Vary, VaryError> {
        let Some((key, values)) = text.split_once('=').filter(|(key, _)| !key.trim().is_empty())
        else {
            return Err(VaryError::NoValues(text.to_string()));
        };
        let key = key.trim().to_string();
        if key == "seed" {
            return Err(VaryError::Seed);
        }
        let values = match steps(values, VALUES_MAX)? {
            Some(values) => each_once(&key, values)?,
            None => list_of_values(&key, values)?,
        };
        Ok(Vary { text: text.to_string(), key, values })
    }
}

/// Parses `a,b,c`, the values of `key`.
pub(crate) fn list_of_values(key: &str, text: &str) -> Result<Vec<String>, VaryError> {
    each_once(key, list(text)?)
}

fn each_once(key: &str, values: Vec<String>) -> Result<Vec<String>, VaryError> {
    match (1..values.len()).find(|at| values[..*at].contains(&values[*at])) {
        Some(twice) => Err(VaryError::Twice { key: key.to_string(), value: values[twice].clone() }),
        None => Ok(values),
    }
}

/// Splits at commas outside of brackets, braces and quotes.
fn list(text: &str) -> Result<Vec<String>, VaryError> {
    let (mut values, mut value) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0i32, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(std::mem::take(&mut value));
                continue;
            }
            _ => {}
        }
        value.push(c);
    }
    values.push(value);
    if depth != 0 || quote.is_some() {
        return Err(VaryError::Open(text.to_string()));
    }
    let values: Vec<String> = values.iter().map(|value| unquoted(value.trim())).collect();
    match values.iter().any(String::is_empty) {
        true => Err(VaryError::Empty(text.to_string())),
        false => Ok(values),
    }
}

/// Removes quotes that the value does not need.
fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.filter(|inner| !inner.is_empty() && !inner.contains(['"', '\\']));
    let looks_else = |text: &str| {
        text.starts_with(|c: char| "[{'-+.0123456789".contains(c)) && !text.contains(' ')
            || matches!(text, "true" | "false")
    };
    inner.filter(|inner| !looks_else(inner)).unwrap_or(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Vary>().unwrap_or_else(|error| panic!("{text}: {error}")).values
    }

    fn refusal(text: &str) -> String {
        text.parse::<Vary>().expect_err(text).to_string()
    }

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        assert_eq!(values("flow.main.cc=bbr, cubic"), ["bbr", "cubic"]);
        assert_eq!(values(r#"flow.main.paths=["a"],["a","b"]"#), [r#"["a"]"#, r#"["a","b"]"#]);
        assert_eq!(
            values(r#"flow.main.workload={ file = "1 MB" },bulk,{ page = { http = "2" } }"#),
            [r#"{ file = "1 MB" }"#, "bulk", r#"{ page = { http = "2" } }"#]
        );
        assert_eq!(values(r#"name="a, b",c"#), ["a, b", "c"]);
        assert_eq!(values("link.a.trace=../up.txt,../down.txt"), ["../up.txt", "../down.txt"]);
    }

    #[test]
    fn ranges_are_exact_and_end_in_time() {
        let rates = values("link.a.rate=1..10 Mbit/s step 3 Mbit/s");
        assert_eq!(rates, ["1 Mbit/s", "4 Mbit/s", "7 Mbit/s", "10 Mbit/s"]);
        assert_eq!(values("l=0.1..0.3 % step 0.1 %"), ["0.1 %", "0.2 %", "0.3 %"]);
        assert_eq!(values("d=20 ms..100 ms step x2"), ["20 ms", "40 ms", "80 ms"]);
        assert_eq!(values("d=1..4 ms step x1.5"), ["1 ms", "1.5 ms", "2.25 ms", "3.375 ms"]);
        assert_eq!(values("flow.main.count=1..3 step 1"), ["1", "2", "3"]);
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, part) in [
            ("flow.main.cc", "flow.main.cc=bbr,cubic"),
            ("a=1..10 Mbit/s", "there is no step"),
            ("a=1..10 Mbit/s step 1 kbit/s", "units differ"),
            ("a=10..1 ms step 1 ms", "never reaches the end"),
            ("a=0..8 ms step x2", "never reaches the end"),
            ("a=1..8 ms step 0 ms", "never reaches the end"),
            ("a=0..1 s step 0.0001 s", "larger step"),
            ("a=b,,c", "empty"),
            ("a=[1,2", "is not closed"),
            ("a=b,b", "twice"),
            ("seed=1,2", "--repeat"),
        ] {
            let said = refusal(text);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
