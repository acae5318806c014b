//! What M-Lab publishes of a test by NDT7: snapshots of `TCP_INFO` at the server
//! (<https://www.measurementlab.net/tests/ndt/ndt7/>).

use crate::error::FileError;
use crate::json;
use crate::measured::{Bulk, Interval, Measured, Measurement};
use serde::Deserialize;

const NDT7: &str = "NDT7";

#[derive(Debug, Deserialize)]
struct Archive {
    #[serde(default, rename = "Download")]
    download: Option<Direction>,
}

#[derive(Debug, Deserialize)]
struct Direction {
    #[serde(default, rename = "ServerMeasurements")]
    server: Vec<Snapshot>,
}

#[derive(Debug, Deserialize)]
struct Snapshot {
    #[serde(default, rename = "TCPInfo")]
    tcp: Option<TcpInfo>,
    #[serde(default, rename = "BBRInfo")]
    bbr: Option<serde::de::IgnoredAny>,
}

/// Times are microseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
struct TcpInfo {
    #[serde(rename = "ElapsedTime")]
    elapsed: u64,
    #[serde(rename = "BytesAcked")]
    acked: u64,
    #[serde(default, rename = "BytesRetrans")]
    retransmitted: u64,
    #[serde(rename = "RTT")]
    rtt: u64,
    #[serde(default, rename = "MinRTT")]
    rtt_min: u64,
    #[serde(default, rename = "SndMSS")]
    segment: u32,
}

/// Reads the download, of which the server saw everything.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let Archive { download } = json::document(bytes, NDT7)?;
    let none = || {
        let problem = "it has no snapshots of TCPInfo of a download";
        FileError::new(1, problem, "write the name of a file with a download at the server")
    };
    let snapshots = download.ok_or_else(none)?.server;
    let is_bbr = snapshots.iter().any(|one| one.bbr.is_some());
    let all: Vec<TcpInfo> = snapshots.iter().filter_map(|one| one.tcp).collect();
    let seconds = |us: u64| us as f64 / 1e6;
    let interval = |pair: &[TcpInfo]| {
        let [before, after] = [pair[0], pair[1]];
        let (bytes, again) = (after.acked.checked_sub(before.acked), after.retransmitted);
        Some(Interval {
            seconds: seconds(after.elapsed.checked_sub(before.elapsed).filter(|us| *us > 0)?),
            bytes: bytes?,
            retransmitted_bytes: Some(again.saturating_sub(before.retransmitted)),
            rtt_s: (after.rtt > 0).then(|| seconds(after.rtt)),
        })
    };
    let intervals: Vec<Interval> = all.windows(2).filter_map(interval).collect();
    let last = all.last().filter(|_| !intervals.is_empty()).ok_or_else(none)?;
    let bulk = Bulk {
        controller: is_bbr.then(|| "bbr".to_string()),
        streams: 1,
        segment_bytes: Some(last.segment).filter(|bytes| *bytes > 0),
        omitted_s: all.first().map_or(0.0, |first| seconds(first.elapsed)),
        intervals,
        rtt_min_s: Some(last.rtt_min).filter(|us| *us > 0).map(seconds),
        ..Bulk::default()
    };
    Ok(Measurement { format: NDT7, measured: vec![Measured::Bulk(bulk)] })
}
