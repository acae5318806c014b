//! JSON lines: one object each.

use super::fields::{Field, More};
use super::read::{Miss, NO_BODY, NO_SIZE, NOT_A_LINE, NOT_BYTES, is_size, one_size, size_of};
use serde_json::{Map, Value};

/// Parses a line.
pub(super) fn read(line: &str) -> Result<(u64, More), Miss> {
    let object: Map<String, Value> =
        serde_json::from_str(line).map_err(|_| Miss::Over(NOT_A_LINE))?;
    let sizes: Vec<&str> = object.keys().map(String::as_str).filter(|key| is_size(key)).collect();
    let Some(key) = one_size(&sizes)? else {
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        return Err(Miss::NoKey(NO_SIZE, keys.join(", ")));
    };
    let size = match &object[key] {
        Value::String(text) => size_of(text.trim()),
        Value::Number(number) => size_of(&number.to_string()),
        Value::Null => Err(Miss::Over(NO_BODY)),
        _ => Err(Miss::Over(NOT_BYTES)),
    }?;
    let mut more = More::default();
    for (key, value) in &object {
        let Some(field) = Field::named(key) else { continue };
        match value {
            Value::String(text) => more.take(field, text),
            Value::Number(number) => more.take(field, &number.to_string()),
            _ => {}
        }
    }
    Ok((size, more))
}
