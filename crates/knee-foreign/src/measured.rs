//! What a tool measured on a path: a connection that sent as fast as it could, datagrams at a rate
//! of their own, or packets of which each was answered.

use crate::error::FileError;
use crate::purpose::{Purpose, purpose};
use crate::{flent, iperf, irtt, json, ndt7, ping, ss, unpack};

/// What a file contains.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Name of the file's format, for display.
    pub format: &'static str,
    /// What was measured; a file of several tools has several.
    pub measured: Vec<Measured>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// A transfer over TCP as fast as it could go.
    Bulk(Bulk),
    /// Datagrams at a rate that the sender chose.
    Datagrams(Datagrams),
    /// Packets at intervals, each answered.
    Probes(Probes),
}

/// A transfer over TCP as fast as it could go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bulk {
    /// The sender's controller, as the kernel calls it; `None` if the file does not say.
    pub controller: Option<String>,
    /// Number of connections.
    pub streams: usize,
    /// When it began, seconds since 1970; `None` if the file does not say.
    pub begun_s: Option<f64>,
    /// Largest payload of a segment, bytes; `None` if the file does not say.
    pub segment_bytes: Option<u32>,
    /// Whether the sender was limited to a rate of its own.
    pub is_limited: bool,
    /// Time at the beginning that the tool left out, seconds.
    pub omitted_s: f64,
    /// Its intervals, one after another.
    pub intervals: Vec<Interval>,
    /// Smallest RTT that the sender saw, seconds, other than the samples of the intervals; `None` if
    /// the file does not say.
    pub rtt_min_s: Option<f64>,
}

/// An interval of a transfer, over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Its length, seconds.
    pub seconds: f64,
    /// Payload that arrived in it, bytes.
    pub bytes: u64,
    /// Payload that was retransmitted in it, bytes; `None` if the file does not say.
    pub retransmitted_bytes: Option<u64>,
    /// Smoothed RTT at its end, seconds; `None` if the file does not say.
    pub rtt_s: Option<f64>,
}

/// Datagrams at a rate that the sender chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datagrams {
    /// How long they were sent, seconds.
    pub seconds: f64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Payload of each, bytes.
    pub payload_bytes: u32,
    /// Mean difference of the transit times of neighbours (RFC 3550, section 6.4.1), seconds.
    pub jitter_s: Option<f64>,
}

/// Packets at intervals, each answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probes {
    /// Packets sent; `None` if the file does not say.
    pub sent: Option<u64>,
    /// Each answer: when, seconds since 1970, if the file says, and the RTT, seconds.
    pub answers: Vec<(Option<f64>, f64)>,
}

/// Largest number of rows of a measurement.
pub(crate) const ROWS_MAX: usize = 4_000_000;

/// Reads what a tool measured, in any of its formats, compressed by gzip or not.
///
/// # Errors
/// The line, what is wrong there, and what to write instead.
pub fn read_measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let start = unpack::text_start(bytes)?;
    if let Some(Purpose { what, advice }) = purpose(bytes).filter(|one| !one.is_measured()) {
        return Err(FileError::new(1, format!("it is {what}"), advice));
    }
    if start.first() == Some(&b'{') {
        let json::Keys(keys) = json::keys(bytes)?;
        let has = |name: &str| keys.iter().any(|key| key == name);
        return match () {
            () if has("intervals") && has("start") => iperf::measurement(bytes),
            () if has("round_trips") => irtt::measurement(bytes),
            () if has("x_values") && has("results") => flent::measurement(bytes),
            () if has("Download") || has("Upload") || has("UUID") => ndt7::measurement(bytes),
            () => Err(FileError::new(1, json::unknown(&keys), KNOWN)),
        };
    }
    if ping::is_ping(&start) {
        return ping::measurement(bytes);
    }
    if ss::is_ss(&start) {
        return ss::measurement(bytes);
    }
    Err(FileError::new(1, "it is in no format that is known here", KNOWN))
}

/// What can be read.
const KNOWN: &str = "write the name of a file of iperf3 -J, ping -D, irtt client -o, flent, NDT7, or \
                     of ss -ti with times";
