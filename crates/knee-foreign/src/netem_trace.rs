//! Traces of netem-trace and rattan: typed pieces of bandwidth, delay or loss, each with its
//! duration (<https://docs.rs/netem-trace>), with or without the crate's feature `human`.

use crate::columns::Gap;
use crate::error::{FileError, shorten};
use crate::json;
use crate::quantity::Quantity;
use crate::series::{Series, Taken};
use serde::Deserialize;
use serde_json::Value;

/// Name of the format.
const NETEM_TRACE: &str = "netem-trace JSON";
/// Pieces that are expanded at most.
const PIECES_MAX: usize = 1_000_000;
/// Depth of patterns within patterns.
const DEPTH_MAX: usize = 16;

/// A piece of a trace.
#[derive(Debug, Deserialize)]
enum Piece {
    #[serde(rename = "StaticBwConfig")]
    StaticBw { bw: Value, duration: Value },
    #[serde(rename = "RepeatedBwPatternConfig")]
    RepeatedBwPattern { pattern: Vec<Piece>, count: u64 },
    #[serde(rename = "TraceBwConfig")]
    TraceBw { pattern: Vec<(Value, Vec<Value>)> },
    #[serde(rename = "StaticDelayConfig")]
    StaticDelay { delay: Value, duration: Value },
    #[serde(rename = "RepeatedDelayPatternConfig")]
    RepeatedDelayPattern { pattern: Vec<Piece>, count: u64 },
    #[serde(rename = "StaticLossConfig")]
    StaticLoss { loss: Vec<f64>, duration: Value },
    #[serde(rename = "RepeatedLossPatternConfig")]
    RepeatedLossPattern { pattern: Vec<Piece>, count: u64 },
}

/// Reads the pieces of one kind. A pattern that repeats for ever is read once: the table repeats.
pub(crate) fn series(bytes: &[u8], quantity: Quantity) -> Result<Series, FileError> {
    let piece: Piece = json::document(bytes, NETEM_TRACE)?;
    let mut reading =
        Reading { quantity, at_ns: 0, pieces: 0, taken: Taken::new(quantity, Gap::Hold) };
    reading.take(&piece, 0)?;
    let none = || FileError::new(1, "the trace is empty", "write the name of another file");
    reading.taken.series(NETEM_TRACE).ok_or_else(none)
}

struct Reading {
    quantity: Quantity,
    at_ns: i128,
    pieces: usize,
    taken: Taken,
}

impl Reading {
    fn take(&mut self, piece: &Piece, depth: usize) -> Result<(), FileError> {
        match piece {
            Piece::StaticBw { bw, duration } => {
                self.add(Quantity::Rate, rate(bw), span(duration), (bw, duration))
            }
            Piece::StaticDelay { delay, duration } => {
                let value = span(delay).map(|ns| ns as f64 / 1e9);
                self.add(Quantity::Delay, value, span(duration), (delay, duration))
            }
            Piece::StaticLoss { loss, duration } => match loss[..] {
                [] => self.add(Quantity::Loss, Some(0.0), span(duration), (duration, duration)),
                [loss] => {
                    self.add(Quantity::Loss, Some(loss), span(duration), (duration, duration))
                }
                _ => {
                    let problem = "a loss that depends on the packets before is not read";
                    let advice =
                        "write { good_to_bad = \"1 %\", bad_to_good = \"30 %\" } for bursts";
                    Err(FileError::new(1, problem, advice))
                }
            },
            Piece::TraceBw { pattern } => {
                for (duration, rates) in pattern {
                    for bw in rates {
                        self.add(Quantity::Rate, rate(bw), span(duration), (bw, duration))?;
                    }
                }
                Ok(())
            }
            Piece::RepeatedBwPattern { pattern, count }
            | Piece::RepeatedDelayPattern { pattern, count }
            | Piece::RepeatedLossPattern { pattern, count } => {
                if depth == DEPTH_MAX {
                    let problem = format!("patterns are nested deeper than {DEPTH_MAX}");
                    return Err(FileError::new(1, problem, "write fewer within each other"));
                }
                if pattern.is_empty() {
                    return Ok(());
                }
                for _ in 0..(*count).max(1) {
                    self.count_piece()?;
                    pattern.iter().try_for_each(|piece| self.take(piece, depth + 1))?;
                }
                Ok(())
            }
        }
    }

    fn count_piece(&mut self) -> Result<(), FileError> {
        self.pieces += 1;
        match self.pieces > PIECES_MAX {
            true => {
                let problem = format!("the trace has more than {PIECES_MAX} pieces");
                Err(FileError::new(1, problem, "write a smaller count"))
            }
            false => Ok(()),
        }
    }

    fn add(
        &mut self,
        quantity: Quantity,
        value: Option<f64>,
        span_ns: Option<i128>,
        written: (&Value, &Value),
    ) -> Result<(), FileError> {
        self.count_piece()?;
        if quantity != self.quantity {
            let (is, wanted) = (quantity.name(), self.quantity.name());
            let problem = format!("the trace is {is}, not {wanted}");
            return Err(FileError::new(1, problem, format!("use it for {is}")));
        }
        let wrong = |what: &str, value: &Value| {
            let problem = format!("\"{}\" is no {what}", shorten(&value.to_string(), 40));
            FileError::new(1, problem, "write it as netem-trace does")
        };
        let value = value.filter(|value| self.quantity.is_possible(*value));
        let value = value.ok_or_else(|| wrong("value", written.0))?;
        let span_ns = span_ns.ok_or_else(|| wrong("duration", written.1))?;
        if span_ns > 0 {
            let until = self.at_ns + span_ns;
            self.taken.add_span(1, (self.at_ns, until), value)?;
            self.at_ns = until;
        }
        Ok(())
    }
}

/// Parses a bandwidth, bit/s: `{"gbps":0,"bps":12000000}`, with mbps or kbps beside it, or "12Mbps".
fn rate(value: &Value) -> Option<f64> {
    if let Value::Object(parts) = value {
        let part = |name: &str| parts.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        let known = ["gbps", "mbps", "kbps", "bps"];
        let only = parts.keys().all(|key| known.contains(&key.as_str()));
        let sum = part("gbps") * 1e9 + part("mbps") * 1e6 + part("kbps") * 1e3 + part("bps");
        return (only && !parts.is_empty()).then_some(sum);
    }
    let units =
        [("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3), ("bps", 1.0), ("gib/s", 1024f64.powi(3))];
    sum(value.as_str()?, &units)
}

/// Parses a duration, nanoseconds: `{"secs":1,"nanos":0}`, or "1s 500ms".
fn span(value: &Value) -> Option<i128> {
    if let Value::Object(parts) = value {
        let secs = parts.get("secs").and_then(Value::as_u64)?;
        let nanos = parts.get("nanos").map_or(Some(0), Value::as_u64)?;
        return Some(i128::from(secs) * 1_000_000_000 + i128::from(nanos));
    }
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("sec", 1e9),
        ("m", 60e9),
        ("min", 60e9),
        ("h", 3600e9),
    ];
    sum(value.as_str()?, &units).map(|ns| ns as i128)
}

/// Adds numbers with units, such as `1s 500ms`, whose units may be in any case.
fn sum(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (mut rest, mut total) = (text.trim(), None);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end =
            rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
        let unit = rest[..end].to_lowercase();
        let size = units.iter().find(|(known, _)| *known == unit)?.1;
        total = Some(total.unwrap_or(0.0) + number * size);
        rest = rest[end..].trim_start();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_notations_of_the_crate_are_read() {
        assert_eq!(rate(&json!({"gbps": 1, "bps": 500})), Some(1e9 + 500.0));
        assert_eq!(rate(&json!({"gbps": 0, "mbps": 12})), Some(12e6));
        assert_eq!(rate(&json!("12Mbps")), Some(12e6));
        assert_eq!(rate(&json!("1Gbps 500Mbps")), Some(1.5e9));
        assert_eq!(span(&json!({"secs": 1, "nanos": 5})), Some(1_000_000_005));
        assert_eq!(span(&json!("1s 500ms")), Some(1_500_000_000));
        for wrong in [json!("12"), json!("Mbps"), json!(12), json!({}), json!({"x": 1})] {
            assert_eq!(rate(&wrong), None, "{wrong}");
        }
    }
}
