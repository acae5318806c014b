//! Quantities in files that programs write and in the schemas that editors read: strings with a
//! number and a unit.

use crate::{BufferSize, Bytes, Fraction, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

macro_rules! quantity {
    ($type:ident, $pattern:literal, $description:literal, [$($example:literal),+]) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": $description,
                    "pattern": $pattern,
                    "examples": [$($example),+],
                })
            }
        }
    };
}

quantity!(
    Time,
    r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|µs|ms|s|min)\s*$",
    "A time with its unit.",
    ["60 ms", "1.5 s"]
);
quantity!(
    Rate,
    r"^\s*[0-9]+(\.[0-9]+)?\s*(bit|kbit|Mbit|Gbit)/s\s*$",
    "A data rate with its unit.",
    ["10 Mbit/s", "1 Gbit/s"]
);
quantity!(
    Bytes,
    r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB|GB|GiB)\s*$",
    "A number of bytes with its unit.",
    ["1.5 MB", "64 KiB"]
);
quantity!(Fraction, r"^\s*[0-9]+(\.[0-9]+)?\s*%\s*$", "A fraction, in percent.", ["1.5 %"]);
quantity!(
    BufferSize,
    r"^\s*(unlimited|[0-9]+(\.[0-9]+)?\s*(BDP|packets?|B|kB|KiB|MB|MiB|GB|GiB))\s*$",
    "Capacity of a queue: a multiple of the bandwidth-delay product, bytes, or packets.",
    ["8 BDP", "256 kB", "200 packets"]
);
