//! Files in JSON, by their keys.

use crate::columns::Columns;
use crate::error::{FileError, shorten};
use crate::quantity::Quantity;
use crate::series::Series;
use crate::{iperf, irtt, netem_trace, unpack};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::io::{BufReader, Read};

/// Largest file in JSON after decompression.
const BYTES_MAX: u64 = 256 << 20;
/// Keys that are looked at.
const KEYS_MAX: usize = 20;

/// Reads a document.
pub(crate) fn document<T: DeserializeOwned>(bytes: &[u8], format: &str) -> Result<T, FileError> {
    let reader = BufReader::with_capacity(1 << 16, unpack::unpacked(bytes).take(BYTES_MAX));
    let mut reader = without_mark(reader);
    let mut deserializer = serde_json::Deserializer::from_reader(&mut reader);
    T::deserialize(&mut deserializer).map_err(|error| {
        let problem =
            format!("this is no whole {format} file ({})", shorten(&error.to_string(), 120));
        FileError::new(error.line(), problem, "record it again, or use another file")
    })
}

/// Drops a byte order mark.
fn without_mark<R: Read>(mut reader: R) -> impl Read {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let mut start = Vec::new();
    // An error comes up again with the next read.
    let _ = (&mut reader).take(MARK.len() as u64).read_to_end(&mut start);
    if start == MARK {
        start.clear();
    }
    std::io::Cursor::new(start).chain(reader)
}

/// The first keys of a document.
pub(crate) struct Keys(pub Vec<String>);

/// Reads the first keys of a document.
pub(crate) fn keys(bytes: &[u8]) -> Result<Keys, FileError> {
    document(bytes, "JSON")
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Keys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = Vec::new();
                while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if keys.len() < KEYS_MAX {
                        keys.push(shorten(&key, 40));
                    }
                }
                Ok(Keys(keys))
            }
        }
        from.deserialize_map(OfMap)
    }
}

/// Reads a value over time from a document.
pub(crate) fn series(
    bytes: &[u8],
    quantity: Quantity,
    columns: &Columns<'_>,
) -> Result<Series, FileError> {
    let Keys(keys) = self::keys(bytes)?;
    let has = |name: &str| keys.iter().any(|key| key == name);
    if has("round_trips") {
        return irtt::series(bytes, quantity, columns.gap);
    }
    if has("intervals") && has("start") {
        return iperf::series(bytes, quantity, columns.gap);
    }
    if let [key] = &keys[..]
        && key.ends_with("Config")
    {
        return netem_trace::series(bytes, quantity);
    }
    Err(FileError::new(
        1,
        unknown(&keys),
        "write the name of a table with columns, or of a file of iperf3 -J, irtt or netem-trace",
    ))
}

/// What is said of a document with keys that no reader knows.
pub(crate) fn unknown(keys: &[String]) -> String {
    format!("this is JSON with the keys {}, which is not known", keys.join(", "))
}
