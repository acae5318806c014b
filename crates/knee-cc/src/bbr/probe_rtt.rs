//! The minimum RTT, and PROBE_RTT, which renews it: every ten seconds all flows
//! shrink to four packets, so that the queue empties and each flow can measure
//! the path without it.
//!
//! Change `probe_exit_early`: PROBE_RTT ends with the first full round at its
//! window, when it has its sample, instead of after 200 ms. Change
//! `keep_bw_over_probe_rtt`: see [`Bandwidth::restore`]. A value kept across
//! one PROBE_RTT and not measured since is not kept across the next, or an
//! estimate would never fall if ten rounds last longer than the ten seconds
//! between two of them.
//!
//! Change `probe_rtt_gain`: PROBE_RTT shrinks to a part of the BDP (BBRProbeRTTCwndGain of
//! draft-ietf-ccwg-bbr-06, which has 0.5), and so costs half of the link for 200 ms instead of
//! nearly all of it. The part is of the current estimates: if the minimum RTT has just become
//! one that contains a queue, the window falls with it as the queue empties.
//!
//! [`Bandwidth::restore`]: super::bandwidth::Bandwidth::restore

use super::config::NO_PROBE_RTT;
use super::{Bbr, Mode};
use crate::{Connection, Sample};
use knee_units::Time;

/// Age at which the minimum RTT must be renewed.
pub(super) const WINDOW: Time = Time::from_secs(10);

/// Minimum duration of PROBE_RTT with its window in flight: long enough that
/// flows with different RTTs overlap, short enough to cost only 2 %.
const DURATION: Time = Time::from_millis(200);

/// The minimum RTT and the state of its renewal.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// In microseconds; `u32::MAX` while unknown.
    pub(super) us: u32,
    /// When it was last measured.
    pub(super) stamp: Time,
    /// End of PROBE_RTT, once in flight has fallen to its window;
    /// [`Time::MAX`] before that.
    done_at: Time,
    /// Whether a round has passed at that window.
    round_done: bool,
    /// Whether the last acknowledgement came in PROBE_RTT: samples of data sent
    /// then are worth no more than application-limited ones.
    pub(super) holds_back: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            us: u32::MAX,
            stamp: Time::ZERO,
            done_at: Time::MAX,
            round_done: false,
            holds_back: false,
        }
    }
}

impl MinRtt {
    pub(super) fn known(&self) -> Option<Time> {
        (self.us != u32::MAX).then(|| Time::from_micros(u64::from(self.us)))
    }

    /// Initialises the filter with `rtt`, which may be unknown (zero).
    pub(super) fn begin(&mut self, rtt: Time, now: Time) {
        if rtt > Time::ZERO {
            self.us = micros(rtt);
        }
        self.stamp = now;
    }
}

/// Returns whole microseconds, limited to what [`MinRtt`] can hold.
pub(super) fn micros(rtt: Time) -> u32 {
    rtt.as_micros().min(u64::from(u32::MAX - 1)) as u32
}

impl Bbr {
    #[inline]
    pub(super) fn update_min_rtt(&mut self, sample: &Sample, connection: &Connection) {
        let now = connection.now;
        let expired = now > self.min_rtt.stamp + WINDOW;
        if let Some(rtt) = sample.rtt {
            // A sample equal to the minimum does not postpone PROBE_RTT (Linux 5.11). It
            // is equal if its whole microseconds are.
            let lower = rtt < Time::from_micros(u64::from(self.min_rtt.us));
            if lower || (expired && !sample.ack_delayed) {
                if expired {
                    self.min_rtt_expired();
                }
                self.min_rtt.us = micros(rtt);
                self.min_rtt.stamp = now;
            }
        }
        let entering = expired
            && self.config.probe_rtt_gain != NO_PROBE_RTT
            && !self.idle_restart
            && self.mode != Mode::ProbeRtt;
        if entering {
            self.enter_probe_rtt();
        }
        self.min_rtt.holds_back = self.mode == Mode::ProbeRtt;
        if self.min_rtt.holds_back {
            self.hold_probe_rtt(connection);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    #[cold]
    fn enter_probe_rtt(&mut self) {
        self.mode = Mode::ProbeRtt;
        self.save_window();
        self.min_rtt.done_at = Time::MAX;
        self.bandwidth.keep();
    }

    /// Waits for the window of PROBE_RTT to be what is in flight, then for the time and one round.
    #[inline(never)]
    fn hold_probe_rtt(&mut self, connection: &Connection) {
        if self.min_rtt.done_at == Time::MAX {
            if connection.in_flight <= self.probe_rtt_window(self.bw()) {
                let duration = if self.config.probe_exit_early { Time::ZERO } else { DURATION };
                self.min_rtt.done_at = connection.now + duration;
                self.min_rtt.round_done = false;
                self.bandwidth.round_end = connection.delivered;
            }
            return;
        }
        self.min_rtt.round_done |= self.bandwidth.round_start;
        if self.min_rtt.round_done {
            self.check_probe_rtt_done(connection);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, connection: &Connection) {
        if connection.now <= self.min_rtt.done_at {
            return;
        }
        self.min_rtt.stamp = connection.now;
        self.window = self.window.max(self.prior_window);
        if self.config.keep_bw_over_probe_rtt {
            self.bandwidth.restore();
        }
        self.resume_mode(connection.delivered);
    }
}
