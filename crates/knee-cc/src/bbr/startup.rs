//! STARTUP and DRAIN: finds the bandwidth in about log2(BDP) rounds, then
//! drains the queue that this built.

use super::bandwidth::PacketRate;
use super::{Bbr, Mode, UNIT};
use crate::Connection;

/// Growth that shows that the pipe was not yet full: 5/4, in 1/256.
const GROWTH: u64 = (UNIT * 5 / 4) as u64;

/// Rounds without growth after which the pipe counts as full. Three: the
/// receive window may open in the first and be filled in the second, and the
/// higher rate shows in the third; this also bridges radio noise.
const ROUNDS: u8 = 3;

/// Whether STARTUP has filled the pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) reached: bool,
    /// Rounds without growth.
    pub(super) rounds: u8,
    /// Bandwidth from which growth is measured.
    pub(super) bw: PacketRate,
}

impl FullPipe {
    pub(super) fn rescale(&mut self, old_mss: u64, new_mss: u64) {
        let scaled = u64::from(self.bw) * old_mss / new_mss;
        self.bw = scaled.min(u64::from(PacketRate::MAX)) as PacketRate;
    }
}

impl Bbr {
    #[inline]
    pub(super) fn check_full_pipe(&mut self, app_limited: bool) {
        if self.full_pipe.reached || !self.bandwidth.round_start || app_limited {
            return;
        }
        let max = self.bandwidth.max();
        if u64::from(max) >= (u64::from(self.full_pipe.bw) * GROWTH) >> 8 {
            self.full_pipe.bw = max;
            self.full_pipe.rounds = 0;
            return;
        }
        self.full_pipe.rounds += 1;
        self.full_pipe.reached = self.full_pipe.rounds >= ROUNDS;
    }

    #[inline(never)]
    pub(super) fn check_drain(&mut self, connection: &Connection) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            let pipe = self.in_flight_target(self.bandwidth.max(), UNIT);
            self.threshold = pipe;
        }
        if self.mode == Mode::Drain {
            let in_network = self.in_network(connection.in_flight, connection);
            if in_network <= self.in_flight_target(self.bandwidth.max(), UNIT) {
                self.enter_probe_bw(connection.delivered);
            }
        }
    }
}
