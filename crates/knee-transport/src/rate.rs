//! Delivery-rate estimation (draft-ietf-ccwg-bbr, "delivery rate samples"; Linux
//! `tcp_rate.c`): what was delivered between the sending of a segment and its
//! acknowledgement, over the longer of the send interval and the ACK interval.

use crate::config::Sampler;
use crate::ns3::Ns3Sampler;
use crate::rtt::RttEstimator;
use crate::scoreboard::{APP_LIMITED, EVER_RETRANSMITTED, Sent};
use knee_cc::{Connection, Decision, HeldBack, Sample};
use knee_units::{Rate, Time};

/// The connection's side of the estimator.
#[derive(Clone, Debug)]
pub struct RateSampler {
    /// Total bytes delivered, including selectively acknowledged ones and `needless` ones.
    pub delivered: u64,
    /// Bytes retransmitted needlessly, as far as the receiver reported it.
    pub needless: u64,
    /// When `delivered` last grew, or sending began again with nothing outstanding.
    delivered_at: Time,
    /// When `delivered` last grew; zero before that.
    last_delivery: Time,
    /// Send time of the segment that was acknowledged last.
    first_sent_at: Time,
    /// Value of `delivered` that ends the application-limited phase; zero if there is none.
    app_limited_until: u64,
    /// Data sent while the controller held back.
    held_back: HeldBack,
    /// Value of `delivered` that ends holding back; zero if it is not in progress.
    held_back_until: u64,
    /// Sampler with ns-3's rules, if selected.
    ns3: Option<Ns3Sampler>,
    /// Bytes and interval of the last valid sample.
    last: (u64, Time),
    /// Whether the application limited that sample.
    last_app_limited: bool,
}

/// The segment from which a sample is taken: of all that one ACK acknowledges,
/// the one sent last. The scoreboard keeps its state until more is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest {
    /// The segment; `None` if none was acknowledged.
    pub number: Option<u32>,
    /// Number of its last transmission.
    order: u32,
}

impl Newest {
    /// Creates one for the only segment that an ACK acknowledges.
    #[inline]
    pub fn of(number: u32, order: u32) -> Newest {
        Newest { number: Some(number), order }
    }

    /// Considers a newly acknowledged segment.
    #[inline]
    pub fn consider(&mut self, number: u32, sent: &Sent) {
        if self.number.is_none() || crate::after(sent.order, self.order) {
            *self = Newest { number: Some(number), order: sent.order };
        }
    }
}

impl RateSampler {
    /// Creates an estimator for a connection that has sent nothing.
    pub fn new(sampler: Sampler) -> RateSampler {
        RateSampler {
            delivered: 0,
            needless: 0,
            delivered_at: Time::ZERO,
            last_delivery: Time::ZERO,
            first_sent_at: Time::ZERO,
            app_limited_until: 0,
            held_back: HeldBack::default(),
            held_back_until: 0,
            ns3: (sampler == Sampler::Ns3V335).then(Ns3Sampler::default),
            last: (0, Time::ZERO),
            last_app_limited: false,
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

    /// Called when the application has nothing to send while the window has
    /// room: samples up to this point underestimate the path.
    pub fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Whether the application, or the controller itself, limits the rate.
    #[inline]
    pub fn app_limited(&self) -> bool {
        (self.app_limited_until | self.held_back_until) != 0
    }

    /// Whether the application, or the controller itself, limited the rate when
    /// a segment was sent.
    #[inline]
    pub fn was_limited(&self, sent: &Sent) -> bool {
        sent.flags & APP_LIMITED != 0 || self.held_back.covers(sent.delivered)
    }

    /// Records the controller's decision on an acknowledgement.
    #[inline]
    pub fn on_decision(&mut self, decision: &Decision, connection: &Connection) {
        self.held_back.note(decision, connection);
        if decision.holds_back {
            self.held_back_until = (connection.delivered + connection.in_flight).max(1);
        }
    }

    /// Fills in the rate fields of a sample (`tcp_rate_gen`). `delivered` already
    /// includes what this ACK acknowledges; `newest` was chosen from it.
    #[inline]
    pub fn sample(
        &mut self,
        now: Time,
        newest: Option<&Sent>,
        rtt: &RttEstimator,
        sample: &mut Sample,
    ) {
        if self.app_limited() {
            self.end_limits();
        }
        if sample.newly_acked > 0 {
            self.delivered_at = now;
            self.last_delivery = now;
        }
        let Some(sent) = newest else {
            if let Some(ns3) = &self.ns3 {
                ns3.show_rtt(rtt.smoothed(), sample);
            }
            return;
        };
        self.first_sent_at = sent.sent_at;
        sample.prior_delivered = sent.delivered;
        sample.delivered = self.delivered - sent.delivered;
        sample.sent_at = sent.sent_at;
        sample.app_limited = self.was_limited(sent);
        sample.in_flight_at_send = u64::from(sent.in_flight);
        sample.send_interval = sent.sent_at.saturating_sub(sent.first_sent_at);
        sample.ack_interval = now - sent.delivered_at;
        let interval = sample.send_interval.max(sample.ack_interval);
        // An interval shorter than the minimum RTT comes from a segment that
        // was retransmitted unnecessarily: its rate would be too high.
        sample.interval = if interval >= rtt.minimum() { interval } else { Time::ZERO };
        if let Some(ns3) = &mut self.ns3 {
            ns3.resample(now, sent, sample);
            ns3.show_rtt(rtt.smoothed(), sample);
        }
        self.note_rate(sample, sent.flags & APP_LIMITED != 0);
    }

    /// Ends the limited phases once all data sent in them is delivered.
    #[cold]
    fn end_limits(&mut self) {
        for until in [&mut self.app_limited_until, &mut self.held_back_until] {
            if self.delivered > *until {
                *until = 0;
            }
        }
    }

    /// Keeps the last sample; an application-limited one only if it is higher
    /// (`tcp_rate_gen`).
    #[inline]
    fn note_rate(&mut self, sample: &Sample, app_limited: bool) {
        let (bytes, interval) = self.last;
        let of = |bytes: u64, interval: Time| bytes.saturating_mul(interval.as_nanos());
        let higher = || of(sample.delivered, interval) >= of(bytes, sample.interval);
        if sample.interval > Time::ZERO && (!app_limited || higher()) {
            self.last = (sample.delivered, sample.interval);
            self.last_app_limited = app_limited;
        }
    }

    /// Returns when `delivered` last grew; zero before that.
    pub fn last_delivery(&self) -> Time {
        self.last_delivery
    }

    /// Returns the send time of the segment that was acknowledged last.
    #[inline]
    pub fn first_sent_at(&self) -> Time {
        self.first_sent_at
    }

    /// Returns the delivery rate of the last sample; `None` before the first.
    pub fn rate(&self) -> Option<Rate> {
        let (bytes, interval) = self.last;
        (interval > Time::ZERO).then(|| Rate::over(bytes, interval))
    }

    /// Whether the application limited that sample.
    pub fn rate_was_app_limited(&self) -> bool {
        self.last_app_limited
    }
}

/// Whether an acknowledged segment's RTT is unambiguous (Karn's rule).
#[inline]
pub fn measures_rtt(sent: &Sent) -> bool {
    sent.flags & EVER_RETRANSMITTED == 0
}
