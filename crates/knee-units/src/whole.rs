//! Whole numbers and lists in files that serde reads: errors name what is counted and the range,
//! not a type of the program.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// Deserialises a whole number of a range. `what` is what it counts, with its article: "a port".
///
/// # Errors
/// Those of the file, and a number outside of the range: `invalid value: integer `70000`, expected a
/// port from 1 to 65535`.
pub fn whole<'de, D, T>(
    from: D,
    what: &'static str,
    range: RangeInclusive<u64>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let wanted = Whole { what, range };
    let number = from.deserialize_any(&wanted)?;
    let outside = |_| D::Error::invalid_value(Unexpected::Unsigned(number), &&wanted);
    T::try_from(number).map_err(outside)
}

struct Whole {
    what: &'static str,
    range: RangeInclusive<u64>,
}

impl Visitor<'_> for &Whole {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} to {}", self.what, self.range.start(), self.range.end())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        let is_inside = self.range.contains(&number);
        let outside = || E::invalid_value(Unexpected::Unsigned(number), &self);
        is_inside.then_some(number).ok_or_else(outside)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        let negative = |_| E::invalid_value(Unexpected::Signed(number), &self);
        self.visit_u64(u64::try_from(number).map_err(negative)?)
    }
}

/// Deserialises a list. `what` describes it with an example: "a list of ports, such as [443]".
///
/// # Errors
/// Those of the file, and anything that is no list: `invalid type: integer `443`, expected a list of
/// ports, such as [443]`.
pub fn list<'de, D, T>(from: D, what: &'static str) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_any(List { what, of: PhantomData })
}

struct List<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(text: &str) -> Result<u16, String> {
        let mut from = serde_json::Deserializer::from_str(text);
        whole(&mut from, "a port", 1..=65_535).map_err(|error| error.to_string())
    }

    #[test]
    fn the_range_and_its_name_are_told() {
        assert_eq!(port("443"), Ok(443));
        assert_eq!((port("1"), port("65535")), (Ok(1), Ok(65_535)));
        for (text, found) in [
            ("0", "invalid value: integer `0`"),
            ("-1", "invalid value: integer `-1`"),
            ("70000", "invalid value: integer `70000`"),
            ("1.5", "invalid type: floating point `1.5`"),
            ("\"443\"", "invalid type: string \"443\""),
        ] {
            let error = port(text).unwrap_err();
            assert!(
                error.starts_with(&format!("{found}, expected a port from 1 to 65535")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_list_is_asked_for_with_an_example() {
        let read = |text: &str| -> Result<Vec<u16>, String> {
            let mut from = serde_json::Deserializer::from_str(text);
            list(&mut from, "a list of ports, such as [443]").map_err(|error| error.to_string())
        };
        assert_eq!(read("[1, 2]"), Ok(vec![1, 2]));
        let error = read("443").unwrap_err();
        assert!(error.contains("expected a list of ports, such as [443]"), "{error}");
    }
}
