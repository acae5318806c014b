//! The minimum RTT over ten seconds, and PROBE_RTT, which renews it every five
//! with half a BDP in flight (section 5.3.4).

use super::{Bbr3, MIN_WINDOW_PACKETS, Phase, UNIT};
use crate::{Connection, Sample};
use knee_units::Time;

/// Time that the minimum RTT is remembered: longer than a cycle of PROBE_RTT,
/// shorter than changes of route are apart.
const WINDOW: Time = Time::from_secs(10);

/// Time between PROBE_RTTs, if no lower RTT comes meanwhile.
const INTERVAL: Time = Time::from_secs(5);

/// Time that PROBE_RTT lasts at least, once in flight is down: so long that
/// flows of different RTT overlap.
const DURATION: Time = Time::from_millis(200);

/// BDP in flight in PROBE_RTT, in [`UNIT`]s.
const GAIN: u32 = UNIT / 2;

/// Minima of the RTT and the state of their renewal.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// `min_rtt`, the model's; [`Time::MAX`] while unknown.
    pub(super) value: Time,
    /// In microseconds, for products.
    pub(super) us: u64,
    stamp: Time,
    /// `probe_rtt_min_delay`: the least of the last five seconds.
    pub(super) recent: Time,
    recent_stamp: Time,
    /// The least of the last five seconds is older than that.
    expired: bool,
    /// End of PROBE_RTT, once in flight is down; before that [`Time::MAX`].
    done_at: Time,
    /// A round has passed with little in flight.
    round_done: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            value: Time::MAX,
            us: 0,
            stamp: Time::ZERO,
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

    /// Starts the filters with `rtt`, which may be unknown (zero).
    pub(super) fn begin(&mut self, rtt: Time, now: Time) {
        if rtt > Time::ZERO {
            self.recent = rtt;
            self.put(rtt, now);
        }
        (self.stamp, self.recent_stamp) = (now, now);
    }

    fn put(&mut self, rtt: Time, stamp: Time) {
        self.value = rtt;
        // In whole microseconds, rounded up: no BDP is zero.
        self.us = rtt.as_nanos().div_ceil(1000).max(1);
        self.stamp = stamp;
    }

    /// `UpdateMinRTT`. A delayed acknowledgement does not renew an old
    /// minimum (as in Linux).
    #[inline]
    fn update(&mut self, sample: &Sample, now: Time) {
        self.expired = now > self.recent_stamp + INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < self.recent || (self.expired && !sample.ack_delayed))
        {
            (self.recent, self.recent_stamp) = (rtt, now);
        }
        let known = self.recent != Time::MAX;
        if self.recent < self.value || (known && now > self.stamp + WINDOW) {
            self.put(self.recent, self.recent_stamp);
        }
    }
}

impl Bbr3 {
    /// `UpdateMinRTT` and `CheckProbeRTT`.
    #[inline]
    pub(super) fn update_min_rtt(&mut self, sample: &Sample, connection: &Connection) {
        self.min_rtt.update(sample, connection.now);
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
        self.cycle.stop_feedback();
        if self.full_pipe.reached {
            self.advance_filter();
        }
        self.bandwidth.start_round(connection.delivered);
    }

    /// `HandleProbeRTT`: waits for little in flight, then for the time and one
    /// round.
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

    /// `CheckProbeRTTDone` and `ExitProbeRTT`: the queue is gone, so cruising
    /// can begin at once, and the next probe is a whole wait away.
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
        self.bdp_multiple(self.bw, GAIN).max(floor)
    }
}
