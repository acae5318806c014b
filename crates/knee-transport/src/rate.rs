//! Delivery-rate estimation (draft-ietf-ccwg-bbr, "delivery rate samples";
//! Linux `tcp_rate.c`): what was delivered between the sending of a segment
//! and its acknowledgement, over the longer of the time it took to send and
//! the time it took to acknowledge.

use crate::config::Sampler;
use crate::scoreboard::{APP_LIMITED, EVER_RETRANSMITTED, Sent};
use knee_cc::Sample;
use knee_units::{Rate, Time};

/// The connection's side of the estimator.
#[derive(Clone, Debug)]
pub struct RateSampler {
    mode: Sampler,
    /// Bytes delivered in all, selectively acknowledged ones included.
    pub delivered: u64,
    /// When `delivered` last grew.
    delivered_at: Time,
    /// When the segment was sent that was acknowledged last.
    first_sent_at: Time,
    /// `delivered` that ends the application-limited phase; zero: none.
    app_limited_until: u64,
    /// Begin of the previous sample's ACK interval; only the `ns3-3.35` mode
    /// looks at it.
    previous_begin: Option<Time>,
    /// Bytes and interval of the last sample that counts.
    last: (u64, Time),
}

/// The segment that a sample is drawn from: of all that one ACK
/// acknowledges, the one sent last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    /// Its state when it was acknowledged; none was if `valid` is false.
    pub sent: Sent,
    /// There is one.
    pub valid: bool,
}

impl Newest {
    /// Takes a newly acknowledged segment into account.
    #[inline]
    pub fn consider(&mut self, sent: &Sent) {
        if !self.valid || crate::after(sent.order, self.sent.order) {
            *self = Newest { sent: *sent, valid: true };
        }
    }
}

impl RateSampler {
    /// An estimator of a connection that has sent nothing.
    pub fn new(mode: Sampler) -> RateSampler {
        RateSampler {
            mode,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            app_limited_until: 0,
            previous_begin: None,
            last: (0, Time::ZERO),
        }
    }

    /// Stamps a segment that is being sent (`tcp_rate_skb_sent`).
    #[inline]
    pub fn on_sent(&mut self, now: Time, nothing_outstanding: bool, sent: &mut Sent) {
        if nothing_outstanding {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        sent.sent_at = now;
        sent.first_sent_at = self.first_sent_at;
        sent.delivered_at = self.delivered_at;
        sent.delivered = self.delivered;
        sent.flags &= !APP_LIMITED;
        if self.app_limited_until != 0 {
            sent.flags |= APP_LIMITED;
        }
    }

    /// The application has nothing to send while the window has room:
    /// samples up to here understate the path.
    pub fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// The application limits the rate.
    #[inline]
    pub fn app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Fills in the rate part of a sample (`tcp_rate_gen`). `delivered` has
    /// grown by what this ACK acknowledges; `newest` was drawn from it.
    #[inline]
    pub fn sample(&mut self, now: Time, newest: &Newest, min_rtt: Time, sample: &mut Sample) {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if sample.newly_acked > 0 {
            self.delivered_at = now;
        }
        if !newest.valid {
            return;
        }
        let sent = &newest.sent;
        self.first_sent_at = sent.sent_at;
        sample.prior_delivered = sent.delivered;
        sample.delivered = self.delivered - sent.delivered;
        sample.app_limited = sent.flags & APP_LIMITED != 0;
        sample.in_flight_at_send = u64::from(sent.in_flight);
        sample.send_interval = sent.sent_at.saturating_sub(sent.first_sent_at);
        let previous_begin = self.previous_begin.replace(sent.delivered_at);
        let begin = match self.mode {
            Sampler::Linux => sent.delivered_at,
            Sampler::Ns3V335 => previous_begin.unwrap_or(sent.delivered_at),
        };
        sample.ack_interval = now - begin;
        let interval = sample.send_interval.max(sample.ack_interval);
        // An interval shorter than the minimum RTT comes from a segment that
        // was retransmitted needlessly: its rate would be too high.
        let plausible = interval >= min_rtt || self.mode == Sampler::Ns3V335;
        sample.interval = if plausible { interval } else { Time::ZERO };
        self.note_rate(sample);
    }

    /// Keeps the last sample, one that the application limited only when it
    /// is higher (`tcp_rate_gen`).
    #[inline]
    fn note_rate(&mut self, sample: &Sample) {
        let (bytes, interval) = self.last;
        let of = |bytes: u64, interval: Time| bytes.saturating_mul(interval.as_nanos());
        let higher = of(sample.delivered, interval) >= of(bytes, sample.interval);
        if sample.interval > Time::ZERO && (!sample.app_limited || higher) {
            self.last = (sample.delivered, sample.interval);
        }
    }

    /// The delivery rate of the last sample; none before the first.
    pub fn rate(&self) -> Option<Rate> {
        let (bytes, interval) = self.last;
        (interval > Time::ZERO).then(|| Rate::over(bytes, interval))
    }
}

/// Whether an acknowledged segment's RTT is unambiguous (Karn's rule).
#[inline]
pub fn measures_rtt(sent: &Sent) -> bool {
    sent.flags & EVER_RETRANSMITTED == 0
}
