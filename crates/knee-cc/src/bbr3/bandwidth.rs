//! Rounds, and the bottleneck bandwidth: the largest delivery rate of this
//! cycle of PROBE_BW and the last (sections 5.5.1 to 5.5.6).

use super::Bbr3;
use crate::{Connection, Sample};

/// Estimate of the bottleneck bandwidth, and the round counter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidth {
    /// Delivery rate of this acknowledgement's sample, bytes per second; zero
    /// if it has no valid one.
    pub(super) sample: u64,
    /// Largest rate of the previous cycle and of the current one, bytes per second.
    cycles: [u64; 2],
    /// Packet-timed round trips so far.
    pub(super) rounds: u32,
    /// The round ends when a packet sent after this many bytes were delivered
    /// is itself delivered.
    round_end: u64,
    /// Whether this acknowledgement began a round.
    pub(super) round_start: bool,
}

impl Bandwidth {
    /// `BBR.max_bw`, bytes per second.
    #[inline]
    pub(super) fn max(&self) -> u64 {
        self.cycles[0].max(self.cycles[1])
    }

    /// `StartRound`: the round ends once all that is in flight has arrived.
    #[inline]
    pub(super) fn start_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// `AdvanceMaxBwFilter`. A cycle without a usable sample does not count:
    /// nothing is forgotten (as in Linux).
    pub(super) fn advance_cycle(&mut self) {
        if self.cycles[1] > 0 {
            self.cycles = [self.cycles[1], 0];
        }
    }
}

impl Bbr3 {
    /// Computes the delivery rate of the sample.
    #[inline]
    pub(super) fn take_rate(&mut self, sample: &Sample) {
        let interval = sample.interval.as_nanos();
        let valid = interval > 0 && sample.newly_acked > 0;
        self.bandwidth.sample = if valid {
            // The only division by a variable on the path of every ACK. Above
            // 2^34 bytes the estimate saturates.
            sample.delivered.saturating_mul(1_000_000_000) / interval
        } else {
            0
        };
    }

    /// `UpdateMaxBw` with `UpdateRound`.
    #[inline]
    pub(super) fn update_bandwidth(&mut self, sample: &Sample, connection: &Connection) {
        let bandwidth = &mut self.bandwidth;
        bandwidth.round_start = false;
        if bandwidth.sample == 0 {
            return;
        }
        if sample.prior_delivered >= bandwidth.round_end {
            bandwidth.start_round(connection.delivered);
            bandwidth.rounds = bandwidth.rounds.wrapping_add(1);
            bandwidth.round_start = true;
            self.cycle.rounds = self.cycle.rounds.saturating_add(1);
        }
        // An application-limited sample counts only if it shows the path to be
        // faster (section 5.5.4).
        if !sample.app_limited || bandwidth.sample >= bandwidth.max() {
            let newest = &mut bandwidth.cycles[1];
            *newest = bandwidth.sample.max(*newest);
        }
    }
}
