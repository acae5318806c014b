//! The minimum RTT, and PROBE_RTT, which renews it: every ten seconds all flows
//! shrink to four packets, so that the queue empties and each flow can measure
//! the path without it.
//!
//! Change `probe_rtt_exit_early`: PROBE_RTT ends with the first full round at its
//! window, when it has its sample, instead of after 200 ms; with `probe_rtt_rounds` after
//! as many rounds, three in the alternative that the study of the low-delay change names. Change
//! `probe_rtt_join`: a flow whose RTT falls by an eighth below the least of the last half to whole
//! second, as it does when others have entered PROBE_RTT, enters it too if its min_rtt is at least
//! five seconds old. Without it, a flow alone in PROBE_RTT measures the queue of the others.
//! The study says that flows with a very short RTT have to enter together, not how: this is
//! Knee's way. Change
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

/// Age of the minimum RTT from which a flow joins others in PROBE_RTT.
const JOINING_AGE: Time = Time::from_secs(5);

/// Time over which the least RTT is taken that a fall is compared with, and the part of it below
/// which an RTT has fallen: 7/8.
const JOINING_SPAN: Time = Time::from_millis(500);
const FALLEN: (u64, u64) = (7, 8);

/// The least RTT of the last half to whole second, for [`JOINING_AGE`].
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// Of the span before this one, and of this one, in microseconds.
    least_us: [u32; 2],
    /// End of this one.
    end: Time,
}

impl Recent {
    /// Takes a sample; returns whether it is far below those before it.
    fn take(&mut self, rtt: Time, now: Time) -> bool {
        if now >= self.end {
            let gap = now >= self.end + JOINING_SPAN;
            self.least_us = [if gap { 0 } else { self.least_us[1] }, u32::MAX];
            self.end = now + JOINING_SPAN;
        }
        let us = micros(rtt);
        let least = u64::from(self.least_us[0].min(self.least_us[1]));
        self.least_us[1] = self.least_us[1].min(us);
        u64::from(us) * FALLEN.1 < least * FALLEN.0
    }
}

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
    /// Rounds that must still pass at that window.
    rounds_left: u16,
    /// For `probe_rtt_join`.
    recent: Recent,
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
            rounds_left: 0,
            recent: Recent { least_us: [0; 2], end: Time::ZERO },
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
        let mut expired = now > self.min_rtt.stamp + WINDOW;
        if let Some(rtt) = sample.rtt {
            if self.config.probe_rtt_join {
                let old = now >= self.min_rtt.stamp + JOINING_AGE;
                let falls = self.min_rtt.recent.take(rtt, now);
                expired |= falls && old && self.mode == Mode::ProbeBw;
            }
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

    /// Waits for the window of PROBE_RTT to be what is in flight, then for the time and the rounds.
    #[inline(never)]
    fn hold_probe_rtt(&mut self, connection: &Connection) {
        if self.min_rtt.done_at == Time::MAX {
            if connection.in_flight <= self.probe_rtt_window(self.bw()) {
                let early = self.config.probe_rtt_exit_early;
                let duration = if early { Time::ZERO } else { DURATION };
                self.min_rtt.done_at = connection.now + duration;
                self.min_rtt.rounds_left = self.config.probe_rtt_rounds;
                self.bandwidth.round_end = connection.delivered;
            }
            return;
        }
        let round = u16::from(self.bandwidth.round_start);
        self.min_rtt.rounds_left = self.min_rtt.rounds_left.saturating_sub(round);
        if self.min_rtt.rounds_left == 0 {
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
