//! What iperf3 writes with `-J`: intervals, each with what every stream transferred in it.

use crate::columns::Gap;
use crate::error::{FileError, shorten};
use crate::json;
use crate::measured::{self, Bulk, Datagrams, Measured, Measurement};
use crate::quantity::Quantity;
use crate::series::{NO_VALUE, Series, Taken};
use serde::Deserialize;

/// Name of the format.
pub(crate) const IPERF3: &str = "iperf3";

/// A test.
#[derive(Debug, Deserialize)]
pub(crate) struct Iperf {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    pub intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Start {
    #[serde(default)]
    timestamp: Timestamp,
    #[serde(default)]
    test_start: TestStart,
    tcp_mss: Option<u32>,
    tcp_mss_default: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
struct Timestamp {
    timesecs: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct TestStart {
    protocol: Option<String>,
    num_streams: Option<usize>,
    blksize: Option<u32>,
    omit: Option<f64>,
    target_bitrate: Option<f64>,
    bidir: Option<u8>,
}

#[derive(Debug, Default, Deserialize)]
struct End {
    #[serde(default)]
    sum: Part,
    #[serde(default)]
    sum_sent: Part,
    #[serde(default)]
    sum_received: Part,
    sender_tcp_congestion: Option<String>,
}

/// An interval of a test.
#[derive(Debug, Deserialize)]
pub(crate) struct Interval {
    #[serde(default)]
    pub streams: Vec<Part>,
    #[serde(default)]
    pub sum: Part,
}

/// What a stream, or all together, did in an interval.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Part {
    /// Its begin and end, seconds since the start of the test.
    pub start: Option<f64>,
    pub end: Option<f64>,
    pub bits_per_second: Option<f64>,
    bytes: Option<u64>,
    seconds: Option<f64>,
    retransmits: Option<i64>,
    #[serde(default)]
    omitted: bool,
    packets: Option<u64>,
    lost_packets: Option<i64>,
    jitter_ms: Option<f64>,
    /// Smoothed round-trip time at its end, microseconds; only of a sender over TCP.
    pub rtt: Option<f64>,
    /// Part of the packets that was lost, percent; only of UDP.
    pub lost_percent: Option<f64>,
}

impl Part {
    /// Returns the begin and the end, nanoseconds.
    fn span(&self) -> Option<(i128, i128)> {
        let ns = |seconds: f64| {
            (seconds.is_finite() && seconds < 1e9).then_some((seconds * 1e9) as i128)
        };
        Some((ns(self.start?)?, ns(self.end?)?))
    }
}

/// Reads a test over TCP or UDP.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let test: Iperf = json::document(bytes, IPERF3)?;
    if let Some(error) = &test.error {
        let problem = format!("the test failed ({})", shorten(error, 100));
        return Err(FileError::new(1, problem, "run it again"));
    }
    if test.start.test_start.bidir == Some(1) {
        let problem = "the test sent in both directions at once";
        return Err(FileError::new(1, problem, "run it without --bidir"));
    }
    let measured = match test.start.test_start.protocol.as_deref() {
        Some("UDP") => Measured::Datagrams(datagrams(&test)?),
        Some("TCP") => Measured::Bulk(bulk(test)?),
        _ => {
            let problem = "it does not say whether it is of TCP or UDP";
            return Err(FileError::new(1, problem, "use a whole file of iperf3 -J"));
        }
    };
    Ok(Measurement { format: IPERF3, measured: vec![measured] })
}

fn datagrams(test: &Iperf) -> Result<Datagrams, FileError> {
    let none = || {
        let problem = "it does not say what arrived of the datagrams";
        FileError::new(1, problem, "use a test that ran to its end")
    };
    let sum = &test.end.sum;
    let (sent, lost) = sum.packets.zip(sum.lost_packets).ok_or_else(none)?;
    let seconds = sum.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    Ok(Datagrams {
        seconds: seconds.ok_or_else(none)?,
        sent,
        lost: u64::try_from(lost).unwrap_or(0).min(sent),
        payload_bytes: test.start.test_start.blksize.ok_or_else(none)?,
        jitter_s: sum.jitter_ms.filter(|ms| ms.is_finite()).map(|ms| ms / 1e3),
    })
}

/// The sender writes to its socket in blocks, and what it has written waits there: of the first
/// intervals that part is taken which had not arrived at the end.
fn bulk(test: Iperf) -> Result<Bulk, FileError> {
    let Iperf { start, intervals, end, .. } = test;
    let segment = start.tcp_mss.or(start.tcp_mss_default).filter(|bytes| *bytes > 0);
    let written = end.sum_sent.bytes.zip(end.sum_received.bytes);
    let mut waiting = written.map_or(0, |(sent, arrived)| sent.saturating_sub(arrived));
    let interval = |one: &Interval| {
        let Part { seconds, bytes, retransmits, .. } = one.sum;
        let again = retransmits.and_then(|count| u64::try_from(count).ok());
        let bytes = bytes?;
        let still = waiting.min(bytes);
        waiting -= still;
        Some(measured::Interval {
            seconds: seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)?,
            bytes: bytes - still,
            retransmitted_bytes: again.map(|count| count * u64::from(segment.unwrap_or(1448))),
            rtt_s: one.streams.first()?.rtt.filter(|us| *us > 0.0).map(|us| us / 1e6),
        })
    };
    let kept: Vec<_> =
        intervals.iter().filter(|one| !one.sum.omitted).filter_map(interval).collect();
    if kept.is_empty() {
        let problem = "it has no interval with a number of bytes";
        return Err(FileError::new(1, problem, "use a test that ran to its end"));
    }
    Ok(Bulk {
        controller: end.sender_tcp_congestion,
        streams: start.test_start.num_streams.unwrap_or(1).max(1),
        begun_s: start.timestamp.timesecs,
        segment_bytes: segment,
        is_limited: start.test_start.target_bitrate.is_some_and(|rate| rate > 0.0),
        omitted_s: start.test_start.omit.filter(|omit| omit.is_finite()).unwrap_or(0.0),
        intervals: kept,
        rtt_min_s: None,
    })
}

/// Reads the rate of all streams, the smoothed RTT of the first, or the loss.
pub(crate) fn series(bytes: &[u8], quantity: Quantity, gap: Gap) -> Result<Series, FileError> {
    let Iperf { intervals, .. } = json::document(bytes, IPERF3)?;
    let mut taken = Taken::new(quantity, gap);
    for (number, interval) in intervals.iter().enumerate() {
        let value = match quantity {
            Quantity::Rate => interval.sum.bits_per_second,
            Quantity::Delay => interval.streams.first().and_then(|one| Some(one.rtt? / 1e6)),
            Quantity::Loss => interval.sum.lost_percent.map(|part| part / 100.0),
        };
        let value = value.filter(|value| value.is_finite());
        match (interval.sum.span(), value) {
            (Some(span), Some(value)) => taken.add_span(number + 1, span, value)?,
            _ => taken.pass_over(NO_VALUE, number + 1),
        }
    }
    taken.series(IPERF3).ok_or_else(|| {
        let problem = format!("none of {} intervals has {} with its time", intervals.len(), {
            quantity.name()
        });
        FileError::new(1, problem, "write the name of a whole file of iperf3 -J")
    })
}
