//! JSON lines: one object each, whose fields may be one level deeper, as Caddy and Google write
//! them.

use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::Field;
use super::values::two_known_sizes;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Keys that are remembered.
const KEYS_MAX: usize = 512;

/// Reads lines, and remembers what their keys are.
#[derive(Debug, Default)]
pub(super) struct Json {
    known: BTreeMap<String, Option<Field>>,
    /// Whether a line without a size was seen.
    has_told: bool,
}

impl Json {
    /// Parses a line.
    pub fn read(&mut self, line: &str, draft: &mut Draft) -> Result<(), Miss> {
        let mut deserializer = serde_json::Deserializer::from_str(line);
        let object = Object { json: self, draft, depth: 0 };
        let read = object.deserialize(&mut deserializer).and_then(|()| deserializer.end());
        read.map_err(|_| Miss::Over(NOT_A_LINE))?;
        if let Some(two) = draft.ambiguous() {
            return Err(two_known_sizes(two));
        }
        if draft.has_size() {
            return Ok(());
        }
        let keys = match std::mem::replace(&mut self.has_told, true) {
            true => String::new(),
            false => keys(line),
        };
        Err(Miss::NoKey(keys))
    }

    fn field(&mut self, key: &str) -> Option<Field> {
        if let Some(field) = self.known.get(key) {
            return *field;
        }
        let field = Field::named(key);
        if self.known.len() < KEYS_MAX {
            self.known.insert(key.to_string(), field);
        }
        field
    }
}

fn keys(line: &str) -> String {
    let object: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    object.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The line within a line of Docker's JSON log
/// (<https://docs.docker.com/engine/logging/drivers/json-file/>).
pub(super) fn within_docker(line: &str) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Docker<'l> {
        #[serde(borrow)]
        log: Cow<'l, str>,
        #[serde(borrow)]
        stream: Cow<'l, str>,
    }
    let docker: Docker<'_> = serde_json::from_str(line).ok()?;
    ["stdout", "stderr"].contains(&&*docker.stream).then_some(docker.log)
}

/// An object of a line.
struct Object<'a> {
    json: &'a mut Json,
    draft: &'a mut Draft,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Object { json, draft, depth } = self;
        while let Some(field) = map.next_key_seed(Key(json))? {
            match field {
                Some(field) => map.next_value_seed(Scalar { field, json, draft, depth })?,
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// A key of an object.
struct Key<'a>(&'a mut Json);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<Field>;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Field>, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<Field>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Option<Field>, E> {
        Ok(self.0.field(key))
    }
}

/// A value that counts.
struct Scalar<'a> {
    field: Field,
    json: &'a mut Json,
    draft: &'a mut Draft,
    depth: u8,
}

impl Scalar<'_> {
    /// Notes that it is no text and no number.
    fn other(self) {
        match self.field {
            Field::Size(name) => self.draft.no_size(name),
            field => self.draft.sign(field),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Scalar<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Scalar<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.draft.take(self.field, text);
        Ok(())
    }
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.draft.take(self.field, &number.to_string());
        Ok(())
    }
    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.draft.take(self.field, &number.to_string());
        Ok(())
    }
    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.draft.take(self.field, &number.to_string());
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        self.draft.sign(self.field);
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.other();
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.other();
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.field == Field::Request && self.depth == 0 {
            return Object { json: self.json, draft: self.draft, depth: 1 }.visit_map(map);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.other();
        Ok(())
    }
}
