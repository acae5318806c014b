//! Paths on which packets overtake each other by a large part of an RTT.
//!
//! There the library takes packets for lost long before they arrive, and forgets them: it measures the
//! RTT by packets that overtake all others. So the bundle's acknowledgements, which remember a datagram
//! for longer than it may be late, take the place of the library's for all that is sent from then on.
//!
//! Controllers infer the path's delay from the minimum RTT, which here is that of the luckiest packet:
//! with a window of twice as many bytes as fit into it, BBR would leave most of the path unused. They
//! get the mean over [`SPAN`] as the RTT. One that paces and has measured a much lower minimum starts
//! over, because it would keep that for ten seconds.

use super::{AROUND, Inner, MIN_RTO};
use crate::ring::{Ring, Taken};
use knee_cc::{Event, Init};
use knee_transport::{RttEstimator, Sent};
use knee_units::Time;

/// Time over which the RTT is averaged, and the packets that it must have at least: enough for an error
/// of a few milliseconds where the deviation is 25.
const SPAN: Time = Time::from_millis(100);
const SPAN_PACKETS: u64 = 32;

/// Packets of a path that reorders widely.
#[derive(Debug)]
pub(super) struct Disorder {
    /// By the number of their datagram in the bundle.
    ring: Ring,
    /// Of the current span: end, sum, least and number of RTTs.
    end: Time,
    sum: Time,
    least: Time,
    count: u64,
    /// Means of the spans so far.
    means: Option<RttEstimator>,
}

impl Disorder {
    fn new() -> Disorder {
        Disorder {
            ring: Ring::default(),
            end: Time::ZERO,
            sum: Time::ZERO,
            least: Time::MAX,
            count: 0,
            means: None,
        }
    }

    /// Returns the means as RTTs, once there are any.
    pub(super) fn means(&self) -> Option<&RttEstimator> {
        self.means.as_ref()
    }

    /// Adds an RTT. At the end of a span, returns its mean and its least RTT.
    fn measure(&mut self, now: Time, rtt: Time) -> Option<(Time, Time)> {
        if self.end == Time::ZERO {
            self.end = now + SPAN;
        }
        self.sum += rtt;
        self.count += 1;
        self.least = self.least.min(rtt);
        if now < self.end || self.count < SPAN_PACKETS {
            return None;
        }
        let ended = (self.sum / self.count, self.least);
        (self.end, self.sum, self.least, self.count) = (now + SPAN, Time::ZERO, Time::MAX, 0);
        Some(ended)
    }
}

impl Inner {
    /// Begins to know packets by their datagrams; those sent before are left to the library.
    pub(super) fn follow_datagrams(&mut self) {
        if self.disorder.is_none() && self.established {
            self.flush();
            self.disorder = Some(Box::new(Disorder::new()));
            self.in_flight = self.ring.in_flight();
        }
    }

    /// Returns the RTTs that the controller sees.
    pub(super) fn shown_rtt(&self) -> &RttEstimator {
        let means = self.disorder.as_ref().and_then(|disorder| disorder.means());
        means.unwrap_or(&self.rtt)
    }

    /// Notes a packet by its datagram, if packets are known so.
    pub(super) fn on_datagram_sent(&mut self, now: Time, bytes: u16, number: u64) {
        if self.disorder.is_some() {
            let sent = self.note_sent(now, bytes);
            if let Some(disorder) = &mut self.disorder {
                disorder.ring.insert(number, sent, false);
            }
        }
    }

    /// Processes an acknowledgement of datagrams.
    pub(super) fn on_datagrams_arrived(&mut self, now: Time, numbers: &[u64]) {
        self.flush();
        self.now = now;
        for number in numbers {
            let taken =
                self.disorder.as_mut().and_then(|disorder| disorder.ring.take(*number, None));
            if let Some(taken) = taken {
                self.note_delivery(now, taken);
            }
        }
        if let Some(batch) = &mut self.batch {
            (batch.at, batch.complete) = (now, true);
        }
        self.flush();
    }

    /// Measures the RTT of a packet that arrived on such a path.
    pub(super) fn measure(&mut self, now: Time, taken: &Taken) {
        let Some(disorder) = &mut self.disorder else { return };
        let rtt = now - taken.sent.sent_at;
        let ended = disorder.measure(now, rtt);
        let next = self.counted.sent_packets as u32;
        self.rtt.update(rtt, taken.sent.order, next);
        let Some((mean, least)) = ended else { return };
        let is_first = disorder.means.is_none();
        let means = disorder.means.get_or_insert_with(|| RttEstimator::new(MIN_RTO));
        means.update_minimum(now, mean);
        if is_first && self.needs.pacing && least * 2 < mean {
            self.start_over(now);
        }
    }

    /// Makes the controller anew.
    fn start_over(&mut self, now: Time) {
        let init = Init {
            mss: self.mss,
            mtu: self.mss + AROUND,
            initial_window: self.initial_window,
            rng: self.rng.clone(),
        };
        if let Ok(controller) = knee_cc::build(&self.selection, init) {
            self.controller = controller;
            self.tell(now, Event::Established);
        }
    }

    /// Returns the packet in flight that was sent first.
    pub(super) fn oldest_sent(&mut self) -> Option<Sent> {
        let of_library = self.ring.oldest().copied();
        of_library.or_else(|| self.disorder.as_mut()?.ring.oldest().copied())
    }

    /// Declares that packet lost; `count` are the losses so far. Returns it, unless it was a probe of the
    /// MTU.
    pub(super) fn lose_oldest(&mut self, count: u64) -> Option<Sent> {
        match &mut self.disorder {
            Some(disorder) if self.ring.oldest().is_none() => disorder.ring.lose_oldest(count),
            _ => self.ring.lose_oldest(count),
        }
    }

    /// Forgets packets declared lost that were sent before `at`.
    pub(super) fn forget_lost(&mut self, at: Time) {
        self.ring.forget_lost(at);
        if let Some(disorder) = &mut self.disorder {
            disorder.ring.forget_lost(at);
        }
    }

    /// Returns the bytes in flight that are known by their datagrams.
    pub(super) fn datagrams_in_flight(&self) -> u64 {
        self.disorder.as_ref().map_or(0, |disorder| disorder.ring.in_flight())
    }
}
