//! The minimum RTT over `min_rtt_filter`, and PROBE_RTT, which renews it every
//! `probe_rtt_interval` with half a BDP in flight (section 5.3.4). The draft's filter of ten
//! seconds is longer than its interval of five and shorter than the time between route changes.

use super::config::Config;
use super::{Bbr3, MIN_WINDOW_PACKETS, Phase, UNIT};
use crate::{Connection, Sample};
use knee_units::Time;

/// Minimum duration of PROBE_RTT once in flight is down: long enough that flows
/// with different RTTs overlap.
const DURATION: Time = Time::from_millis(200);

/// In flight during PROBE_RTT, in BDP and units of 1/[`UNIT`].
const GAIN: u32 = UNIT / 2;

/// Minima of the RTT and the state of their renewal.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// `min_rtt`, the model's; [`Time::MAX`] while unknown.
    pub(super) value: Time,
    /// `min_rtt` in microseconds, for products.
    pub(super) us: u64,
    stamp: Time,
    /// `us` before the last sample.
    before_us: u64,
    /// The most, in microseconds, that the window of PROBE_RTT is computed from.
    probe_us: u64,
    /// `probe_rtt_min_delay`: the minimum of the last interval.
    pub(super) recent: Time,
    recent_stamp: Time,
    /// Whether `recent` is older than the interval.
    expired: bool,
    /// End of PROBE_RTT, once in flight is down; [`Time::MAX`] before that.
    done_at: Time,
    /// Whether a round has passed with the reduced amount in flight.
    round_done: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            value: Time::MAX,
            us: 0,
            stamp: Time::ZERO,
            before_us: 0,
            probe_us: u64::MAX,
            recent: Time::MAX,
            recent_stamp: Time::ZERO,
            expired: false,
            done_at: Time::MAX,
            round_done: false,
        }
    }
}

impl MinRtt {
    pub(super) fn known(&self) -> Option<Time> {
        (self.value != Time::MAX).then_some(self.value)
    }

    /// Initialises the filters with `rtt`, which may be unknown (zero).
    pub(super) fn begin(&mut self, rtt: Time, now: Time) {
        if rtt > Time::ZERO {
            self.recent = rtt;
            self.put(rtt, now);
        }
        (self.stamp, self.recent_stamp) = (now, now);
    }

    fn put(&mut self, rtt: Time, stamp: Time) {
        self.value = rtt;
        // Whole microseconds, rounded up so that no BDP is zero.
        self.us = rtt.as_nanos().div_ceil(1000).max(1);
        self.stamp = stamp;
    }

    /// `UpdateMinRTT`. A delayed acknowledgement does not renew an old
    /// minimum (as in Linux).
    #[inline]
    fn update(&mut self, sample: &Sample, now: Time, config: &Config) {
        self.expired = now > self.recent_stamp + config.probe_rtt_interval;
        if let Some(rtt) = sample.rtt
            && (rtt < self.recent || (self.expired && !sample.ack_delayed))
        {
            (self.recent, self.recent_stamp) = (rtt, now);
        }
        let known = self.recent != Time::MAX;
        self.before_us = self.us;
        if self.recent < self.value || (known && now > self.stamp + config.min_rtt_filter) {
            self.put(self.recent, self.recent_stamp);
        }
    }
}

impl Bbr3 {
    /// `UpdateMinRTT` and `CheckProbeRTT`.
    #[inline]
    pub(super) fn update_min_rtt(&mut self, sample: &Sample, connection: &Connection) {
        self.min_rtt.update(sample, connection.now, &self.config);
        let due = self.min_rtt.expired && !self.idle_restart && self.config.probe_rtt;
        if due && self.phase != Phase::ProbeRtt {
            self.enter_probe_rtt(connection);
        }
        if self.phase == Phase::ProbeRtt {
            self.hold_probe_rtt(connection);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn enter_probe_rtt(&mut self, connection: &Connection) {
        self.save_window();
        self.phase = Phase::ProbeRtt;
        self.min_rtt.done_at = Time::MAX;
        let before = self.config.probe_rtt_window_before && self.min_rtt.before_us > 0;
        self.min_rtt.probe_us = if before { self.min_rtt.before_us } else { u64::MAX };
        self.cycle.stop_feedback();
        if self.full_pipe.reached {
            self.advance_filter();
        }
        self.bandwidth.start_round(connection.delivered);
    }

    /// `HandleProbeRTT`: waits until in flight is down, then for the duration
    /// and one round.
    fn hold_probe_rtt(&mut self, connection: &Connection) {
        if self.min_rtt.done_at == Time::MAX {
            if connection.in_flight <= self.probe_rtt_window() {
                self.min_rtt.done_at = connection.now + DURATION;
                self.min_rtt.round_done = false;
                self.bandwidth.start_round(connection.delivered);
            }
            return;
        }
        self.min_rtt.round_done |= self.bandwidth.round_start;
        if self.min_rtt.round_done {
            self.check_probe_rtt_done(connection);
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`: the queue is empty, so cruising
    /// begins at once, and the next probe is a full wait away.
    pub(super) fn check_probe_rtt_done(&mut self, connection: &Connection) {
        if connection.now <= self.min_rtt.done_at {
            return;
        }
        self.min_rtt.recent_stamp = connection.now;
        self.forget_short_term();
        if self.full_pipe.reached {
            self.start_down(connection);
            self.cycle.advanced = false;
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
        self.restore_window();
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        let floor = MIN_WINDOW_PACKETS * u64::from(self.mss);
        let min_rtt_us = self.min_rtt.us.min(self.min_rtt.probe_us);
        self.bdp_multiple_of(self.bw, min_rtt_us, GAIN).max(floor)
    }
}
