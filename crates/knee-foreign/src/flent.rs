//! What flent records (`.flent.gz`): series of throughput and of ping, at the same times
//! (<https://flent.org>, version 4 of its format).

use crate::error::FileError;
use crate::json;
use crate::measured::{Bulk, Interval, Measured, Measurement, Probes};
use serde::Deserialize;
use std::collections::BTreeMap;

const FLENT: &str = "flent";

#[derive(Debug, Deserialize)]
struct Document {
    x_values: Vec<f64>,
    results: BTreeMap<String, Vec<Option<f64>>>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "T0")]
    begun: Option<String>,
    #[serde(default, rename = "STEP_SIZE")]
    step_s: Option<f64>,
}

/// Reads the downloads (or, without any, the uploads) as one transfer, and each ping. What flent
/// writes of a sum or a mean is left out: its parts are there.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let Document { x_values, results, metadata } = json::document(bytes, FLENT)?;
    let step_s = metadata.step_s.filter(|step| *step > 0.0 && *step <= 60.0).or_else(|| {
        let pair = x_values.windows(2).next()?;
        Some(pair[1] - pair[0]).filter(|step| *step > 0.0)
    });
    let step_s = step_s
        .ok_or_else(|| FileError::new(1, "it has fewer than two times", "record a longer test"))?;
    let begun_s = metadata.begun.and_then(|text| {
        let at = chrono::DateTime::parse_from_rfc3339(&text).ok()?;
        Some(at.timestamp_micros() as f64 / 1e6)
    });
    let is_part = |name: &str| !["totals", "sum", "avg"].iter().any(|word| name.contains(word));
    let of = |words: &[&str]| -> Vec<&Vec<Option<f64>>> {
        let has = |name: &str| words.iter().all(|word| name.to_lowercase().contains(word));
        let named = results.iter().filter(|(name, _)| has(name) && is_part(name));
        named.map(|(_, values)| values).collect()
    };
    let downloads = Some(of(&["tcp", "download"])).filter(|all| !all.is_empty());
    let transfers = downloads.unwrap_or_else(|| of(&["tcp", "upload"]));
    let mut measured = Vec::new();
    if let Some(bulk) = bulk(&transfers, step_s, begun_s) {
        measured.push(Measured::Bulk(bulk));
    }
    for values in of(&["ping"]) {
        let at = |x: &f64| begun_s.map(|begun| begun + x);
        let answers = x_values.iter().zip(values);
        let answers = answers.filter_map(|(x, ms)| Some((at(x), (*ms)? / 1e3)));
        let answers: Vec<_> = answers.filter(|(_, rtt)| rtt.is_finite() && *rtt > 0.0).collect();
        if !answers.is_empty() {
            // A value that is missing may be a lost packet, or none that was due.
            measured.push(Measured::Probes(Probes { sent: None, answers }));
        }
    }
    match measured.is_empty() {
        false => Ok(Measurement { format: FLENT, measured }),
        true => {
            let names: Vec<&str> = results.keys().take(8).map(String::as_str).collect();
            let problem = format!("it has no series of TCP or ping, but {}", names.join(", "));
            Err(FileError::new(1, problem, "write the name of a test such as tcp_download or rrul"))
        }
    }
}

/// The sum of transfers in Mbit/s, from the first value of any to the last.
fn bulk(all: &[&Vec<Option<f64>>], step_s: f64, begun_s: Option<f64>) -> Option<Bulk> {
    let length = all.iter().map(|values| values.len()).max()?;
    let value = |values: &&Vec<Option<f64>>, at: usize| {
        values.get(at).copied().flatten().filter(|mbit| mbit.is_finite() && *mbit >= 0.0)
    };
    let sum = |at: usize| {
        let values: Vec<f64> = all.iter().filter_map(|one| value(one, at)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let sums: Vec<Option<f64>> = (0..length).map(sum).collect();
    let first = sums.iter().position(Option::is_some)?;
    let last = sums.iter().rposition(Option::is_some)?;
    // A value that is missing in between stands for the one before.
    let mut before = 0.0;
    let intervals = sums[first..=last].iter().map(|mbit| {
        before = mbit.unwrap_or(before);
        let bytes = (before * 1e6 / 8.0 * step_s) as u64;
        Interval { seconds: step_s, bytes, retransmitted_bytes: None, rtt_s: None }
    });
    Some(Bulk {
        streams: all.len(),
        begun_s: begun_s.map(|begun| begun + first as f64 * step_s),
        intervals: intervals.collect(),
        ..Bulk::default()
    })
}
