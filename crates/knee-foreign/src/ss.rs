//! What `ss -ti` writes in a loop, with the time before each: `while sleep 0.1; do date +%s.%N; ss
//! -tin dst 192.0.2.1; done`. Each snapshot has a line with the addresses of a connection, and one
//! with what the kernel knows of it.

use crate::error::FileError;
use crate::instant::{At, calendar, decimal_ns};
use crate::measured::{Bulk, Interval, Measured, Measurement, ROWS_MAX};
use crate::unpack::{lines, next_line};
use std::collections::BTreeMap;

const SS: &str = "ss -ti";

/// States of connections that are open.
const STATES: [&str; 4] = ["ESTAB", "CLOSE-WAIT", "FIN-WAIT-1", "FIN-WAIT-2"];

/// Returns whether a file looks like it.
pub(crate) fn is_ss(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.lines().any(|line| STATES.iter().any(|state| line.trim_start().starts_with(state)))
        || text.lines().any(|line| line.contains(" rto:") && line.contains(" rtt:"))
}

/// What a snapshot says of a connection.
#[derive(Clone, Debug, PartialEq)]
struct Snapshot {
    at_ns: i128,
    acked: u64,
    retransmitted: u64,
    rtt_s: Option<f64>,
    rtt_min_s: Option<f64>,
    segment: Option<u32>,
    controller: Option<String>,
    app_limited: bool,
}

/// Parses what the kernel knows of a connection.
fn snapshot(line: &str, at_ns: i128) -> Option<Snapshot> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let of = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix(':'));
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    let ms = |text: &str| number(text).filter(|ms| *ms > 0.0).map(|ms| ms / 1e3);
    let segment: Option<u32> = of("mss").and_then(|text| text.parse().ok());
    let again = of("bytes_retrans").and_then(|text| text.parse().ok());
    // The second number of `retrans:0/7` counts segments since the beginning.
    let segments = || of("retrans")?.split_once('/')?.1.parse::<u64>().ok();
    let controller = words.iter().find(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let is_name =
        |word: &&&str| !word.contains(':') && !["ts", "sack", "ecn", "ecnseen"].contains(word);
    Some(Snapshot {
        at_ns,
        acked: of("bytes_acked")?.parse().ok()?,
        retransmitted: again.unwrap_or_else(|| {
            segments().unwrap_or(0).saturating_mul(u64::from(segment.unwrap_or(1448)))
        }),
        rtt_s: of("rtt").and_then(|text| ms(text.split('/').next()?)),
        rtt_min_s: of("minrtt").and_then(ms),
        segment,
        controller: controller
            .into_iter()
            .chain(words.iter())
            .find(|word| {
                is_name(word) && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            })
            .map(|word| word.to_string()),
        app_limited: words.contains(&"app_limited"),
    })
}

/// Parses a line that is nothing but a time.
fn time(line: &str) -> Option<i128> {
    let text = line.trim().trim_matches(['[', ']', '#', ' ']);
    if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['-', '/', ':']) {
        return match calendar(text)? {
            At::Instant(at) | At::OfDay(at) => Some(at),
        };
    }
    let digits = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let at = decimal_ns(text, 1_000_000_000).filter(|_| digits)?;
    // Whole milliseconds or finer, if it would be after the year 5000.
    Some(match at {
        at if at < 100_000_000_000_000_000_000 => at,
        at if at < 100_000_000_000_000_000_000_000 => at / 1000,
        at => at / 1_000_000_000,
    })
}

/// Reads the connection over which most was sent.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let mut lines = lines(bytes)?;
    let (mut line, mut at, mut name) = (String::new(), None, String::new());
    let mut all: BTreeMap<String, Vec<Snapshot>> = BTreeMap::new();
    let (mut rows, mut without_time) = (0, None);
    while next_line(&mut lines, &mut line)? {
        if let Some(time) = time(&line) {
            at = Some(time);
        } else if line.contains("rto:") {
            rows += 1;
            if rows > ROWS_MAX {
                let problem = format!("there are more than {ROWS_MAX} snapshots");
                return Err(FileError::new(lines.number(), problem, "use a part of it"));
            }
            match at {
                Some(at) => {
                    if let Some(one) = snapshot(&line, at) {
                        all.entry(name.clone()).or_default().push(one);
                    }
                }
                None => without_time = without_time.or(Some(lines.number())),
            }
        } else if !line.trim().is_empty() {
            name = line.split_whitespace().skip(3).take(2).collect::<Vec<_>>().join(" ");
        }
    }
    let sent = |snapshots: &&Vec<Snapshot>| snapshots.last().map_or(0, |last| last.acked);
    let Some(snapshots) = all.values().max_by_key(sent) else {
        return Err(match without_time {
            Some(line) => FileError::new(
                line,
                "the snapshots have no times",
                "write the time before each, as in while sleep 0.1; do date +%s.%N; ss -tin; done",
            ),
            None => FileError::new(1, "no connection has sent anything", "record the sender's end"),
        });
    };
    let interval = |pair: &[Snapshot]| {
        let [before, after] = [&pair[0], &pair[1]];
        let seconds = (after.at_ns - before.at_ns) as f64 / 1e9;
        Some(Interval {
            seconds: Some(seconds).filter(|seconds| *seconds > 0.0 && *seconds < 1e6)?,
            bytes: after.acked.checked_sub(before.acked)?,
            retransmitted_bytes: Some(after.retransmitted.saturating_sub(before.retransmitted)),
            rtt_s: after.rtt_s,
        })
    };
    let intervals: Vec<Interval> = snapshots.windows(2).filter_map(interval).collect();
    if intervals.is_empty() {
        let problem = "no connection is in two snapshots";
        return Err(FileError::new(1, problem, "record it for longer"));
    }
    let last = snapshots.last();
    let limited = snapshots.iter().filter(|one| one.app_limited).count();
    let bulk = Bulk {
        controller: last.and_then(|last| last.controller.clone()),
        streams: 1,
        begun_s: snapshots.first().map(|first| first.at_ns as f64 / 1e9),
        segment_bytes: last.and_then(|last| last.segment),
        is_limited: limited > snapshots.len() / 2,
        intervals,
        rtt_min_s: last.and_then(|last| last.rtt_min_s),
        ..Bulk::default()
    };
    Ok(Measurement { format: SS, measured: vec![Measured::Bulk(bulk)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_what_the_kernel_knows() {
        let line = "\t cubic wscale:7,7 rto:204 rtt:3.5/1.2 mss:1448 cwnd:10 bytes_sent:20000 \
                    bytes_retrans:1448 bytes_acked:12345 minrtt:3.1 app_limited";
        let one = snapshot(line, 5).unwrap();
        assert_eq!((one.acked, one.retransmitted, one.segment), (12_345, 1448, Some(1448)));
        assert_eq!((one.rtt_s, one.rtt_min_s), (Some(0.0035), Some(0.0031)));
        assert_eq!((one.controller.as_deref(), one.app_limited), (Some("cubic"), true));
        assert_eq!(snapshot("\t cubic rto:204", 5), None);
    }

    #[test]
    fn times_stand_alone_on_their_line() {
        assert_eq!(time("1773309601.5"), Some(1_773_309_601_500_000_000));
        assert_eq!(time("[1773309601]"), Some(1_773_309_601_000_000_000));
        assert_eq!(time("1773309601500"), Some(1_773_309_601_500_000_000));
        assert_eq!(time("2026-03-12T10:00:01Z"), Some(1_773_309_601_000_000_000));
        for other in ["ESTAB 0 0", "", "cubic rto:204", "-"] {
            assert_eq!(time(other), None, "{other}");
        }
    }
}
