//! Values of keys: words, numbers, lists and quantities.

use super::{Value, refuse_kind};
use crate::source::Reading;
use crate::tree::{Kind, Node};
use knee_units::{BufferSize, Bytes, Fraction, ParseError, Rate, Time};

impl Value for String {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let text = node.as_str().map(str::to_string);
        if text.is_none() {
            refuse_kind(node, "a string", "it in double quotes", reading);
        }
        text
    }
    fn write(&self) -> Node {
        Node::text(self)
    }
}

impl Value for bool {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<bool> {
        if let Kind::Bool(value) = node.kind {
            return Some(value);
        }
        refuse_kind(node, "true or false", "true or false, without quotes", reading);
        None
    }
    fn write(&self) -> Node {
        Node::new(Kind::Bool(*self))
    }
}

/// A whole number with limits given by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> std::fmt::Display for Whole<LEAST, MOST> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<const LEAST: u64, const MOST: u64> Value for Whole<LEAST, MOST> {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self> {
        match node.kind {
            Kind::Integer(number) if number < 0 || number > i128::from(i64::MAX) => {
                let message =
                    format!("expected a whole number from {LEAST} to {MOST}, found {number}");
                reading.problem(node.span, message, "write a number in this range");
                None
            }
            _ => u64::read(node, reading).map(Whole),
        }
    }
    fn write(&self) -> Node {
        self.0.write()
    }
}

impl<const LEAST: u64, const MOST: u64> schemars::JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        u64::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        u64::json_schema(generator)
    }
}

impl Value for u64 {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<u64> {
        match node.kind {
            // The upper limit of TOML's integers: what is written must be readable again.
            Kind::Integer(number) if (0..=i128::from(i64::MAX)).contains(&number) => {
                u64::try_from(number).ok()
            }
            Kind::Integer(_) => {
                let message = "expected a whole number from 0 to 9223372036854775807";
                reading.problem(node.span, message, "write a number in this range");
                None
            }
            _ => {
                let wanted = "a whole number without a unit";
                let message = format!(
                    "expected {wanted}, found {}",
                    match node.kind {
                        Kind::Float(_) => "a fractional number",
                        ref other => other.describe(),
                    }
                );
                reading.problem(node.span, message, "write it without quotes, such as 10");
                None
            }
        }
    }
    fn write(&self) -> Node {
        Node::new(Kind::Integer(i128::from(*self)))
    }
}

impl Value for f64 {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<f64> {
        match node.kind {
            Kind::Float(number) if number.is_finite() => Some(number),
            Kind::Integer(number) => Some(number as f64),
            Kind::Float(_) => {
                reading.problem(
                    node.span,
                    "expected a finite number",
                    "write a number such as 1.25",
                );
                None
            }
            _ => {
                refuse_kind(
                    node,
                    "a number without a unit",
                    "it without quotes, such as 1.25",
                    reading,
                );
                None
            }
        }
    }
    fn write(&self) -> Node {
        Node::new(Kind::Float(*self))
    }
}

impl<T: Value> Value for Vec<T> {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Vec<T>> {
        let Kind::Array(items) = &node.kind else {
            refuse_kind(node, "a list", "it in brackets: […]", reading);
            return None;
        };
        // Read every item before failing, to report all problems.
        let read: Vec<Option<T>> = items.iter().map(|item| T::read(item, reading)).collect();
        read.into_iter().collect()
    }
    fn write(&self) -> Node {
        Node::new(Kind::Array(self.iter().map(Value::write).collect()))
    }
}

/// Reads a quantity: a string with a number and a unit.
fn quantity<T>(node: &Node, reading: &mut Reading<'_>) -> Option<T>
where
    T: std::str::FromStr<Err = ParseError>,
{
    let text = match &node.kind {
        Kind::String(text) => text.clone(),
        // A bare number: parsing fails with an error that says what to write instead.
        Kind::Integer(number) => number.to_string(),
        Kind::Float(number) => number.to_string(),
        _ => {
            // Parsing an empty text fails with an error that names what is wanted.
            if let Some(ParseError::NoNumber { wanted, example, .. }) = "".parse::<T>().err() {
                refuse_kind(node, wanted, &format!("\"{example}\""), reading);
            }
            return None;
        }
    };
    let parsed = text.parse::<T>();
    if let Err(error) = &parsed {
        reading.problem(node.span, error.message(), error.help());
    }
    parsed.ok()
}

macro_rules! quantities {
    ($($type:ident),*) => {$(
        impl Value for $type {
            fn read(node: &Node, reading: &mut Reading<'_>) -> Option<$type> {
                quantity(node, reading)
            }
            fn write(&self) -> Node {
                Node::text(self.to_string())
            }
        }
    )*};
}
quantities!(Time, Rate, Bytes, Fraction, BufferSize);
