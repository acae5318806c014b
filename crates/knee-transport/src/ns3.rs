//! The rate sampler of ns-3 up to 3.40 (its issue 1026), to show its effect on a
//! published figure. It uses the same records as Linux's and differs in four ways:
//!
//! - the ACK interval begins where that of the previous sample began, one ACK
//!   too early, so every sample is below the rate;
//! - an interval shorter than the minimum RTT counts like any other;
//! - the RTT given to the controller is the smoothed one;
//! - samples taken while the controller held back (PROBE_RTT) are not marked as limited.

use crate::scoreboard::{APP_LIMITED, Sent};
use knee_cc::Sample;
use knee_units::Time;

/// State in addition to Linux's records.
#[derive(Clone, Debug, Default)]
pub struct Ns3Sampler {
    /// Start of the previous sample's ACK interval.
    previous_begin: Option<Time>,
}

impl Ns3Sampler {
    /// Replaces Linux's intervals and marks.
    pub fn resample(&mut self, now: Time, sent: &Sent, sample: &mut Sample) {
        let begin = self.previous_begin.replace(sent.delivered_at).unwrap_or(sent.delivered_at);
        sample.ack_interval = now - begin;
        sample.interval = sample.send_interval.max(sample.ack_interval);
        sample.app_limited = sent.flags & APP_LIMITED != 0;
    }

    /// Replaces Linux's RTT.
    pub fn show_rtt(&self, smoothed: Time, sample: &mut Sample) {
        sample.rtt = sample.rtt.and(Some(smoothed));
    }
}
