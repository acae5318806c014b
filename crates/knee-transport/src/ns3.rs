//! The rate sampler of ns-3 up to 3.40 (its issue 1026), to show what a
//! published figure owes to it. It stands on the same notes as Linux's and
//! differs in four things:
//!
//! - the ACK interval begins where that of the previous sample began, one ACK
//!   too early, so every sample falls short of the rate;
//! - an interval shorter than the minimum RTT counts like any other;
//! - the RTT given to the controller is the smoothed one;
//! - nobody tells it that the controller holds back (PROBE_RTT), so samples
//!   taken then are not marked as limited.

use knee_cc::Sample;
use knee_units::Time;

/// What it remembers beside Linux's notes.
#[derive(Clone, Debug, Default)]
pub struct Ns3Sampler {
    /// Begin of the previous sample's ACK interval.
    previous_begin: Option<Time>,
}

impl Ns3Sampler {
    /// Puts its intervals in place of Linux's; the right one begins at `begin`.
    pub fn resample(&mut self, now: Time, begin: Time, sample: &mut Sample) {
        let earlier = self.previous_begin.replace(begin).unwrap_or(begin);
        sample.ack_interval = now - earlier;
        sample.interval = sample.send_interval.max(sample.ack_interval);
    }
}
