//! What irtt records (`irtt client -o FILE`): a packet at each interval, and when it came back.

use crate::columns::Gap;
use crate::error::FileError;
use crate::json;
use crate::measured::{Measured, Measurement, Probes};
use crate::quantity::Quantity;
use crate::series::{NO_VALUE, Series, Taken};
use serde::Deserialize;

/// Name of the format.
pub(crate) const IRTT: &str = "irtt";

/// What the client recorded; times are nanoseconds.
#[derive(Debug, Deserialize)]
pub(crate) struct Irtt {
    pub round_trips: Vec<RoundTrip>,
}

/// A packet and its answer.
#[derive(Debug, Deserialize)]
pub(crate) struct RoundTrip {
    /// "false", or "true", "true_up", "true_down".
    #[serde(default)]
    pub lost: String,
    timestamps: Timestamps,
    #[serde(default)]
    delay: Delay,
}

#[derive(Debug, Deserialize)]
struct Timestamps {
    client: Client,
}

#[derive(Debug, Deserialize)]
struct Client {
    send: Stamp,
}

#[derive(Debug, Deserialize)]
struct Stamp {
    #[serde(default)]
    wall: Option<i64>,
    #[serde(default)]
    monotonic: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct Delay {
    #[serde(default)]
    rtt: Option<i64>,
}

impl RoundTrip {
    /// Returns when the packet was sent, nanoseconds since some instant.
    pub fn sent_ns(&self) -> Option<i64> {
        let send = &self.timestamps.client.send;
        send.monotonic.or(send.wall)
    }

    /// Returns the round-trip time, nanoseconds; `None` if the packet or its answer was lost.
    pub fn rtt_ns(&self) -> Option<i64> {
        self.delay.rtt.filter(|rtt| *rtt > 0 && !self.is_lost())
    }

    /// Returns whether the packet or its answer was lost.
    pub fn is_lost(&self) -> bool {
        self.lost.starts_with("true")
    }
}

/// Reads the packets.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let Irtt { round_trips } = json::document(bytes, IRTT)?;
    if round_trips.is_empty() {
        return Err(FileError::new(1, "no packet was sent", "write the name of another file"));
    }
    let answer = |trip: &RoundTrip| {
        let at = trip.timestamps.client.send.wall.map(|ns| ns as f64 / 1e9);
        Some((at, trip.rtt_ns()? as f64 / 1e9))
    };
    let answers = round_trips.iter().filter_map(answer).collect();
    let sent = round_trips.iter().filter(|trip| trip.is_lost() || trip.rtt_ns().is_some()).count();
    let probes = Probes { sent: Some(sent as u64), answers };
    Ok(Measurement { format: IRTT, measured: vec![Measured::Probes(probes)] })
}

/// Reads the round-trip times.
pub(crate) fn series(bytes: &[u8], quantity: Quantity, gap: Gap) -> Result<Series, FileError> {
    if quantity != Quantity::Delay {
        let problem = format!("irtt records round-trip times, not {}", quantity.name());
        return Err(FileError::new(1, problem, "use it for a delay, with scale = 0.5"));
    }
    let Irtt { round_trips } = json::document(bytes, IRTT)?;
    let mut taken = Taken::new(quantity, gap);
    for (number, trip) in round_trips.iter().enumerate() {
        match (trip.sent_ns(), trip.rtt_ns()) {
            (Some(at), Some(rtt)) => taken.add(number + 1, i128::from(at), rtt as f64 / 1e9)?,
            _ => taken.pass_over(NO_VALUE, number + 1),
        }
    }
    let none = || FileError::new(1, "no packet came back", "write the name of another file");
    taken.series(IRTT).ok_or_else(none)
}
