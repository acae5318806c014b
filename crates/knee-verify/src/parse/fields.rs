//! Numbers, lists and `key=value` pairs.

use std::str::FromStr;

pub fn number<T: FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} is `{}`, not a number", short(text)))
}

pub fn optional<T: FromStr>(name: &str, text: &str) -> Result<Option<T>, String> {
    if text.is_empty() { Ok(None) } else { number(name, text).map(Some) }
}

pub fn below(what: &str, index: usize, count: usize) -> Result<(), String> {
    if index < count { Ok(()) } else { Err(format!("{what} {index} is not in the head")) }
}

/// Returns the beginning of a text for a message, because a broken line may be long.
pub fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    let cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// The `key=value` pairs of a line.
pub struct Fields<'a>(pub Vec<&'a str>);

impl<'a> Fields<'a> {
    /// Returns the value of a key, or `None` if the key is missing.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.0.iter().filter_map(|field| field.split_once('='));
        pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub fn required(&self, key: &str) -> Result<&'a str, String> {
        self.get(key).ok_or_else(|| format!("`{key}=` is missing"))
    }

    pub fn number<T: FromStr>(&self, key: &str) -> Result<T, String> {
        number(key, self.required(key)?)
    }

    /// Parses a number that may be missing or empty.
    pub fn optional<T: FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        optional(key, self.get(key).unwrap_or_default())
    }

    pub fn flag(&self, key: &str) -> Result<bool, String> {
        match self.get(key).unwrap_or("0") {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(format!("{key} is `{}`, not 0 or 1", short(other))),
        }
    }

    /// Parses `a<separator>b;a<separator>b…`; a missing or empty list has no pairs.
    pub fn pairs(&self, key: &str, separator: char) -> Result<Vec<(u64, u64)>, String> {
        let text = self.get(key).unwrap_or_default();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        text.split(';').map(|item| pair(key, item, separator)).collect()
    }

    /// Parses a number, or its changes over time: `<time>:<value>;…` from time zero.
    pub fn steps(&self, key: &str) -> Result<Vec<(u64, u64)>, String> {
        let text = self.required(key)?;
        if !text.contains(':') {
            return Ok(vec![(0, number(key, text)?)]);
        }
        let steps = self.pairs(key, ':')?;
        let ascends = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if steps[0].0 != 0 || !ascends {
            return Err(format!("the times of {key} do not ascend from zero"));
        }
        Ok(steps)
    }
}

pub fn pair(key: &str, item: &str, separator: char) -> Result<(u64, u64), String> {
    let shape = || format!("{key} has `{}`, not <number>{separator}<number>", short(item));
    let (a, b) = item.split_once(separator).ok_or_else(shape)?;
    Ok((number(key, a)?, number(key, b)?))
}
