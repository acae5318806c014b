//! Decodes an embedded column from the description of the format alone: Base64 (RFC 4648) of zigzag
//! LEB128 (first or second differences) times a quantum.

use serde_json::Value;

/// Returns the values of a column, and the quantum to which they were rounded.
pub fn decode(column: &Value) -> (Vec<i64>, i64) {
    let quantum = column["q"].as_i64().expect("a column has a quantum");
    let order = column["o"].as_i64().expect("a column has an order");
    let bytes = base64(column["d"].as_str().expect("a column has data"));
    let (mut values, mut value, mut step) = (Vec::new(), 0i64, 0i64);
    for change in integers(&bytes) {
        step = if order == 2 { step + change } else { change };
        value += step;
        values.push(value * quantum);
    }
    (values, quantum)
}

fn integers(bytes: &[u8]) -> Vec<i64> {
    let (mut out, mut word, mut shift) = (Vec::new(), 0u64, 0);
    for byte in bytes {
        word |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            out.push((word >> 1) as i64 ^ -((word & 1) as i64));
            (word, shift) = (0, 0);
        }
    }
    assert_eq!(shift, 0, "the last integer is cut off");
    out
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |letter: char| match letter {
        'A'..='Z' => letter as u32 - 'A' as u32,
        'a'..='z' => letter as u32 - 'a' as u32 + 26,
        '0'..='9' => letter as u32 - '0' as u32 + 52,
        '+' => 62,
        '/' => 63,
        other => panic!("{other:?} is no Base64"),
    };
    let (mut bytes, mut word, mut bits) = (Vec::new(), 0u32, 0);
    for letter in text.trim_end_matches('=').chars() {
        word = word << 6 | digit(letter);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    bytes
}
