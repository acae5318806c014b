//! Support for controllers that request more than acknowledgements and events:
//! individual losses and transmissions, wake-ups, and reporting failure. For
//! other controllers the only cost is checking whether one is present.

use super::Sender;
use crate::ack_request::AckRequest;
use crate::scoreboard::{EVER_RETRANSMITTED, Sent};
use knee_cc::{Connection, Decision, Loss, Needs, Transmission};
use knee_units::Time;

/// State kept for such a controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Attention {
    /// Losses marked but not yet reported.
    pub lost: Vec<Sent>,
    /// When it was last woken.
    woken: Time,
    failure: Option<String>,
}

impl Attention {
    pub fn to(needs: &Needs) -> Option<Box<Attention>> {
        let Needs { losses, sends, wakes, may_fail, .. } = *needs;
        (losses || sends || wakes || may_fail).then(Box::default)
    }
}

impl Sender {
    /// Returns why the controller cannot continue; `None` if it can. The timer
    /// is due at once when it fails.
    pub fn failure(&self) -> Option<&str> {
        self.attention.as_ref()?.failure.as_deref()
    }

    /// Serves the controller's requests, right after it was called.
    #[inline]
    pub(super) fn serve_requests(&mut self, now: Time) {
        if self.attention.is_some() {
            self.ask_controller(now);
        }
    }

    /// Handles a decision if the controller holds back or did until now, or if
    /// it has requests, or if the receiver is to be asked for ACKs.
    #[cold]
    pub(super) fn apply_requests(
        &mut self,
        now: Time,
        decision: &Decision,
        connection: &Connection,
    ) {
        self.sampler.on_decision(decision, connection);
        self.alert =
            decision.holds_back || self.attention.is_some() || self.ack_frequency.is_some();
        if let Some(frequency) = &self.ack_frequency {
            let window = self.window() / u64::from(self.mss);
            self.ack_request = AckRequest::new(frequency, window, self.rtt.smoothed());
        }
        self.serve_requests(now);
    }

    #[cold]
    fn ask_controller(&mut self, now: Time) {
        let Some(attention) = &mut self.attention else { return };
        if attention.failure.is_some() {
            return;
        }
        if self.needs.may_fail {
            attention.failure = self.controller.failure();
            if attention.failure.is_some() {
                self.wake = now;
                return;
            }
        }
        if self.needs.wakes {
            let at = self.controller.wake_at();
            self.wake = if at <= attention.woken { Time::MAX } else { at.max(now) };
        }
    }

    /// Called when the controller is to be woken, or has failed.
    pub(super) fn wake_controller(&mut self, now: Time) {
        self.wake = Time::MAX;
        let Some(attention) = &mut self.attention else { return };
        attention.woken = now;
        if attention.failure.is_none() {
            let connection = self.connection(now);
            let decision = self.controller.on_wake(&connection);
            self.take(now, decision);
        }
    }

    /// Returns the queue of unreported losses, if the controller requests them.
    pub(super) fn told_losses(&mut self) -> Option<&mut Vec<Sent>> {
        let attention = self.attention.as_mut().filter(|_| self.needs.losses)?;
        Some(&mut attention.lost)
    }

    /// Reports what was marked lost since the last call.
    pub(super) fn tell_losses(&mut self, now: Time) {
        let Some(attention) = &mut self.attention else { return };
        let mut lost = std::mem::take(&mut attention.lost);
        let mut connection = self.connection(now);
        let untold: u64 = lost.iter().map(|sent| u64::from(sent.len)).sum();
        connection.lost -= untold;
        for sent in &lost {
            connection.lost += u64::from(sent.len);
            let since = (connection.lost as u32).wrapping_sub(sent.lost);
            let loss = Loss {
                bytes: u64::from(sent.len),
                sent_at: sent.sent_at,
                in_flight_at_send: u64::from(sent.in_flight),
                delivered_at_send: sent.delivered,
                lost_at_send: connection.lost - u64::from(since),
                app_limited: self.sampler.was_limited(sent),
            };
            let decision = self.controller.on_loss(&loss, &connection);
            self.take(now, decision);
        }
        lost.clear();
        if let Some(attention) = &mut self.attention {
            attention.lost = lost;
        }
    }

    /// Records a segment sent while the window is being reduced, or while the
    /// controller requests transmissions.
    #[cold]
    pub(super) fn note_sent(&mut self, now: Time, number: u32, len: u64) {
        if self.reducing {
            self.reduction.on_sent(len);
        }
        if self.needs.sends {
            self.tell_sent(now, number);
        }
    }

    fn tell_sent(&mut self, now: Time, number: u32) {
        let sent = self.board.get(number);
        let sent = Transmission {
            bytes: u64::from(sent.len),
            retransmission: sent.flags & EVER_RETRANSMITTED != 0,
        };
        let connection = self.connection(now);
        let decision = self.controller.on_sent(&sent, &connection);
        self.take(now, decision);
    }

    fn take(&mut self, now: Time, decision: Decision) {
        self.apply(decision);
        self.serve_requests(now);
    }
}
