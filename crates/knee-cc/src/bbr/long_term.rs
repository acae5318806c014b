//! Policers: token buckets that drop what exceeds their rate (Flach et al.,
//! "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016).
//!
//! Two consecutive intervals with heavy loss and the same throughput indicate a
//! policer. Its rate, the mean of the two, then replaces the windowed maximum
//! for 48 rounds; the maximum would be too high after a bucket full of tokens.
//! Intervals begin and end with a loss, that is with an empty bucket.

use super::bandwidth::{PacketRate, RATE_SHIFT};
use super::{Bbr, Mode, UNIT};
use crate::{Connection, Sample};
use knee_units::Time;

/// Shortest interval in rounds; the longest is four times as long.
const INTERVAL_ROUNDS: u8 = 4;

/// Ratio of lost to delivered bytes from which an interval counts as lossy, in 1/256: 20 %.
const LOSS_THRESHOLD: u64 = 50;

/// Two rates are the same when they differ by at most 1/8 ...
const SAME_RATIO: u64 = (UNIT / 8) as u64;

/// ... or by 4 kbit/s, in bytes per second.
const SAME_DIFFERENCE: u64 = 500;

/// Rounds of PROBE_BW for which the policer's rate is used.
const USE_ROUNDS: u8 = 48;

/// State of the policer detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// Rate of the last lossy interval; zero if there is none.
    pub(super) bw: PacketRate,
    /// Whether the policer's rate is in use.
    pub(super) in_use: bool,
    sampling: bool,
    rounds: u8,
    start: Time,
    start_delivered: u64,
    start_lost: u64,
}

impl LongTerm {
    pub(super) fn rescale(&mut self, old_mss: u64, new_mss: u64) {
        let scaled = u64::from(self.bw) * old_mss / new_mss;
        self.bw = scaled.min(u64::from(PacketRate::MAX)) as PacketRate;
    }
}

impl Bbr {
    fn begin_interval(&mut self, connection: &Connection) {
        self.long_term.start = self.delivered_at;
        self.long_term.start_delivered = connection.delivered;
        self.long_term.start_lost = connection.lost;
        self.long_term.rounds = 0;
    }

    pub(super) fn reset_long_term(&mut self, connection: &Connection) {
        self.long_term.bw = 0;
        self.long_term.in_use = false;
        self.long_term.sampling = false;
        self.begin_interval(connection);
    }

    #[inline]
    pub(super) fn sample_long_term(&mut self, sample: &Sample, connection: &Connection) {
        if !self.config.detect_policers {
            return;
        }
        if self.long_term.in_use {
            self.use_long_term(connection);
        } else if self.long_term.sampling || sample.newly_lost > 0 {
            self.extend_interval(sample, connection);
        }
    }

    /// Counts the rounds of use; afterwards bandwidth is probed again.
    #[inline(never)]
    fn use_long_term(&mut self, connection: &Connection) {
        if self.mode == Mode::ProbeBw && self.bandwidth.round_start {
            self.long_term.rounds += 1;
            if self.long_term.rounds >= USE_ROUNDS {
                self.reset_long_term(connection);
                self.enter_probe_bw(connection.delivered);
            }
        }
    }

    fn extend_interval(&mut self, sample: &Sample, connection: &Connection) {
        if !self.long_term.sampling {
            self.begin_interval(connection);
            self.long_term.sampling = true;
        }
        if sample.app_limited {
            return self.reset_long_term(connection); // would underestimate
        }
        if self.bandwidth.round_start {
            self.long_term.rounds += 1;
        }
        if self.long_term.rounds < INTERVAL_ROUNDS {
            return;
        }
        if self.long_term.rounds > 4 * INTERVAL_ROUNDS {
            return self.reset_long_term(connection); // too long to be a policer
        }
        if sample.newly_lost > 0 {
            self.end_interval(connection);
        }
    }

    fn end_interval(&mut self, connection: &Connection) {
        let lost = connection.lost.saturating_sub(self.long_term.start_lost);
        let delivered = connection.delivered.saturating_sub(self.long_term.start_delivered);
        if delivered == 0 || (lost << 8) < LOSS_THRESHOLD * delivered {
            return;
        }
        let elapsed_ms =
            self.delivered_at.saturating_sub(self.long_term.start).as_nanos() / 1_000_000;
        if elapsed_ms == 0 {
            return;
        }
        let scaled = u128::from(delivered) << RATE_SHIFT;
        let bw = scaled / (u128::from(elapsed_ms) * 1000 * u128::from(self.mss));
        self.judge_interval(bw.min(u128::from(PacketRate::MAX)) as PacketRate, connection);
    }

    fn judge_interval(&mut self, bw: PacketRate, connection: &Connection) {
        let last = self.long_term.bw;
        if last > 0 && self.same_rate(bw, last) {
            self.long_term.bw = ((u64::from(bw) + u64::from(last)) / 2) as PacketRate;
            self.long_term.in_use = true;
            self.long_term.rounds = 0;
            self.pacing_gain = UNIT; // cause no more drops than necessary
            return;
        }
        self.long_term.bw = bw;
        self.begin_interval(connection);
    }

    fn same_rate(&self, bw: PacketRate, last: PacketRate) -> bool {
        let difference = bw.abs_diff(last);
        u64::from(difference) * u64::from(UNIT) <= SAME_RATIO * u64::from(last)
            || self.paced_bytes_per_second(difference, UNIT) <= SAME_DIFFERENCE
    }
}
