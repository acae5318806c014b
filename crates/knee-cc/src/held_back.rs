//! Marks the data that was sent while the controller held back, for rate samplers.

use crate::{Connection, Decision};

/// The data that was sent while its controller held back
/// ([`Decision::holds_back`]), identified by the bytes delivered when it was
/// sent. Only the latest such period is kept.
#[derive(Clone, Copy, Debug)]
pub struct HeldBack {
    from: u64,
    to: u64,
    going_on: bool,
}

impl Default for HeldBack {
    fn default() -> HeldBack {
        HeldBack { from: u64::MAX, to: 0, going_on: false }
    }
}

impl HeldBack {
    /// Records what the controller decided on an acknowledgement: the period
    /// lasts until what is now in flight is delivered (`tp->app_limited =
    /// tp->delivered + tcp_packets_in_flight(tp)` in Linux).
    #[inline]
    pub fn note(&mut self, decision: &Decision, connection: &Connection) {
        if decision.holds_back | self.going_on {
            self.go_on(decision.holds_back, connection);
        }
    }

    #[cold]
    fn go_on(&mut self, holds_back: bool, connection: &Connection) {
        if holds_back {
            if !self.going_on {
                self.from = connection.delivered;
            }
            self.to = connection.delivered + connection.in_flight;
        }
        self.going_on = holds_back;
    }

    /// Whether the data sent when `delivered` bytes had been delivered
    /// ([`Sample::prior_delivered`](crate::Sample)) was held back.
    #[inline]
    pub fn covers(&self, delivered: u64) -> bool {
        delivered <= self.to && self.from <= delivered
    }
}
