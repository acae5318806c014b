//! Sums over round trips, for controllers that are called once per round trip.

use knee_cc::{Connection, Sample};
use knee_units::Time;

/// The current round. It ends with the first acknowledgement of data sent after it began (as BBR
/// counts rounds).
#[derive(Clone, Debug, Default)]
pub struct Round {
    ends_at: u64,
    /// Sums of the round so far, bytes.
    acked: u64,
    lost: u64,
    marked: u64,
    /// Minimum RTT of the round.
    rtt: Option<Time>,
}

impl Round {
    /// Adds an acknowledgement. At the end of the round returns the sums of bytes, the minimum RTT,
    /// and the rest of the last sample.
    #[inline]
    pub fn add(&mut self, sample: &Sample, connection: &Connection) -> Option<Sample> {
        self.acked += sample.newly_acked;
        self.lost += sample.newly_lost;
        self.marked += sample.newly_marked;
        self.rtt = match (self.rtt, sample.rtt) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        if sample.prior_delivered < self.ends_at {
            return None;
        }
        let sums = Sample {
            newly_acked: self.acked,
            newly_lost: self.lost,
            newly_marked: self.marked,
            rtt: self.rtt,
            ..*sample
        };
        *self = Round { ends_at: connection.delivered, ..Round::default() };
        Some(sums)
    }
}
