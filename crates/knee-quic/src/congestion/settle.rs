//! What an ACK or a timer shows, passed to the controller.

use super::detect::Undo;
use super::{Batch, Inner, lock};
use crate::recovery::Change;
use knee_cc::{Event, Loss, Peer, Sample};
use knee_transport::{Reduction, Sent};
use knee_units::Time;

impl Inner {
    /// Passes a complete ACK to the controller.
    pub(super) fn flush(&mut self) {
        if self.batch.as_ref().is_some_and(|batch| batch.complete)
            && let Some(batch) = self.batch.take()
        {
            self.settle(batch.at, Some(batch), false);
        }
    }

    /// Processes what an ACK or a timer showed, in TCP's order: recovery ends, losses, recovery
    /// begins, sample.
    pub(super) fn settle(&mut self, now: Time, batch: Option<Batch>, persistent: bool) {
        let newest = batch.as_ref().and_then(|batch| batch.newest);
        if let Some(newest) = newest {
            let rtt = now - newest.sent_at;
            if self.disorder.is_none() {
                self.rtt.update(rtt, newest.order, self.next());
            }
            self.rtt.update_minimum(now, rtt);
            self.rule.on_ack_end();
            if !self.established {
                // The handshake carries no data; the controller begins after it.
                self.losses.clear();
                return;
            }
            if self.first_flight_end == u64::MAX && self.order(&newest) >= self.first_of_data {
                self.first_flight_end = self.counted.sent_packets;
            }
            self.undo(now);
        }
        self.detect(now);
        // First, because losses of a recovery's flight prolong it.
        let next = self.counted.sent_packets;
        for index in 0..self.losses.len() {
            let order = self.order(&self.losses[index]);
            self.episode.on_lost(order, next);
        }
        if let Some(newest) = newest {
            let oldest = self.oldest();
            match self.episode.on_acknowledged(self.order(&newest), oldest, next) {
                Change::Ended => self.end_recovery(now),
                Change::Next => {
                    self.end_recovery(now);
                    self.begin_recovery(now);
                }
                Change::None | Change::Begun => {}
            }
        }
        let newly_lost = self.take_losses(now);
        if persistent {
            self.undo = Undo::default();
            self.counted.timeouts += 1;
            self.reduction = None;
            // Only the first timeout of an episode reduces the threshold, so it is reported outside
            // of the episode.
            self.tell(now, Event::Timeout);
            self.episode.on_timeout(next);
        } else if newly_lost > 0 && self.episode.begin(next) == Change::Begun {
            self.begin_recovery(now);
        }
        if let Some(batch) = batch {
            self.acknowledge(now, &batch, newly_lost);
        }
    }

    fn take_losses(&mut self, now: Time) -> u64 {
        let mut newly_lost = 0;
        let mut losses = std::mem::take(&mut self.losses);
        for sent in losses.drain(..) {
            let bytes = u64::from(sent.len);
            newly_lost += bytes;
            self.counted.lost += bytes;
            self.counted.lost_packets += 1;
            if self.needs.losses {
                let loss = Loss {
                    bytes,
                    sent_at: sent.sent_at,
                    in_flight_at_send: sent.in_flight.into(),
                    delivered_at_send: sent.delivered,
                    lost_at_send: self.counted.lost - self.lost_since(&sent),
                    app_limited: self.sampler.was_limited(&sent),
                };
                let connection = self.connection(now);
                let decision = self.controller.on_loss(&loss, &connection);
                self.apply(decision);
            }
        }
        self.losses = losses;
        newly_lost
    }

    /// Returns the bytes lost since a packet was sent.
    fn lost_since(&self, sent: &Sent) -> u64 {
        u64::from((self.counted.lost as u32).wrapping_sub(sent.lost))
    }

    fn begin_recovery(&mut self, now: Time) {
        self.counted.recoveries += 1;
        self.undo.begin();
        let prior_window = self.window();
        self.tell(now, Event::RecoveryStart);
        if self.needs.proportional_rate_reduction {
            self.reduction = Some(Reduction::start(prior_window));
        }
    }

    fn end_recovery(&mut self, now: Time) {
        self.reduction = None;
        self.tell(now, Event::RecoveryEnd);
    }

    fn acknowledge(&mut self, now: Time, batch: &Batch, newly_lost: u64) {
        let newly_acked = batch.newly_acked;
        let mut sample = Sample {
            newly_acked,
            newly_acked_segments: batch.newly_acked_packets,
            newly_lost,
            prior_in_flight: batch.prior_in_flight,
            ..Sample::default()
        };
        let means = self.disorder.as_ref().and_then(|disorder| disorder.means());
        let rtt = means.unwrap_or(&self.rtt);
        self.sampler.sample(now, batch.newest.as_ref(), rtt, &mut sample);
        if let Some(newest) = &batch.newest {
            sample.rtt = Some(self.shown_rtt().latest());
            sample.ack_delayed =
                newly_acked == u64::from(newest.len) && batch.prior_in_flight == newly_acked;
            sample.lost_since_send = self.lost_since(newest);
            let (delivered, srtt) = (self.sampler.delivered, self.rtt.smoothed());
            self.capacity.on_ack(now, delivered, newest.sent_at, srtt, self.mss.into());
        }
        if self.needs.coupled {
            self.meet_peers();
        }
        let connection = self.connection(now);
        let decision = self.controller.on_ack(&sample, &connection);
        self.apply(decision);
        self.sampler.on_decision(&decision, &connection);
        if let Some(reduction) = &mut self.reduction {
            let (in_flight, mss) = (self.in_flight, u64::from(self.mss));
            reduction.on_ack(newly_acked, in_flight, decision.window, mss, newly_lost == 0);
        }
    }

    fn meet_peers(&mut self) {
        let Some((coupling, own)) = &self.coupling else { return };
        let mut peers = lock(&coupling.0);
        peers[*own] = Peer { srtt: self.rtt.smoothed(), ..self.controller.peer() };
        self.controller.on_peers(&*peers, *own);
    }
}
