//! The one timer: retransmission (RFC 6298), reordering and probe (RFC 8985).

use super::{DUP_THRESH, Kind, Naive, Nanos, REORDERING, RTO_MIN, State, TIMEOUT_MIN, Way};

impl Naive {
    pub(super) fn rearm_rto(&mut self, now: Nanos) {
        if self.segments.is_empty() {
            self.timer = None;
            return;
        }
        match self.timer {
            Some((Kind::Reordering | Kind::Probe, _)) => {
                let at = self.rto_started() + self.rto();
                self.deadline = at.max(now);
                self.timer = Some((Kind::Retransmission, self.deadline));
            }
            _ => self.start_rto(now),
        }
    }

    pub(super) fn start_rto(&mut self, now: Nanos) {
        self.rto_from = now;
        self.deadline = now + self.rto();
        self.timer = Some((Kind::Retransmission, self.deadline));
    }

    fn rto_started(&self) -> Nanos {
        match self.ways.rto_from {
            Way::Rfc => self.rto_from,
            _ => self.segments[0].last_sent(),
        }
    }

    /// RFC 8985, section 7.2.
    pub(super) fn schedule_probe(&mut self, now: Nanos, advancing: bool) -> bool {
        if self.segments.is_empty() || self.state != State::Open || self.probe.is_some() {
            return false;
        }
        let slack = if self.segments.len() == 1 { RTO_MIN } else { TIMEOUT_MIN };
        let running = self.timer.is_some().then_some(self.deadline);
        if advancing {
            self.rto_from = now;
        }
        let timeout = (if advancing { now } else { self.rto_started() }) + self.rto();
        let bound = match (timeout > now, self.ways.probe_bounded) {
            (true, _) => Some(timeout),
            (false, Way::Linux) => None,
            (false, _) => running,
        };
        self.deadline = bound.unwrap_or(timeout);
        let at = now + 2 * self.estimate.srtt + slack;
        self.timer = Some((Kind::Probe, bound.map_or(at, |bound| at.min(bound.max(now)))));
        true
    }

    pub(super) fn start_reordering(&mut self, now: Nanos, timeout: Nanos, restarts: bool) {
        let mut at = now + timeout;
        if restarts {
            self.deadline = now + self.rto();
        } else if let Some((Kind::Probe, at)) = self.timer {
            self.deadline = at.max(self.segments[0].last_sent() + self.rto());
        }
        if self.ways.reordering_bounded == Way::Knee {
            at = at.min(self.deadline);
        }
        self.timer = Some((Kind::Reordering, at));
    }

    pub fn on_timer(&mut self, now: Nanos) -> Kind {
        self.new_data_first = false;
        let (kind, _) = self.timer.expect("a timer runs");
        match kind {
            Kind::Reordering => {
                let before = self.in_flight();
                let timeout = self.detect_loss(now);
                let expired = self.deadline <= now && self.ways.reordering_bounded == Way::Knee;
                let again = timeout > 0 && !expired && self.ways.reordering_rearmed == Way::Rfc;
                if again {
                    self.start_reordering(now, timeout, false);
                }
                let stays = self.state == State::Recovery
                    || self.state == State::Loss && self.ways.lost_again_recovers == Way::Rfc;
                if self.in_flight() != before && !stays {
                    self.enter_recovery();
                }
                if !again {
                    self.rearm_rto(now);
                }
            }
            Kind::Probe => {
                self.probe_due = self.probe.is_none();
                if self.probe_due {
                    self.timer = None;
                } else {
                    self.rearm_rto(now);
                }
            }
            Kind::Retransmission => self.time_out(now),
        }
        kind
    }

    fn time_out(&mut self, now: Nanos) {
        self.timeouts += 1;
        let window = match self.ways.lost_on_timeout {
            Way::Rfc => self.reordering_window(),
            _ => 0,
        };
        if self.segments[0].sacked {
            panic!("the receiver reneges");
        }
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.sacked {
                continue;
            }
            if index == 0 || segment.last_sent() + self.rack_rtt + window <= now {
                self.mark(index);
            }
        }
        let new = matches!(self.state, State::Open | State::Disorder);
        // `tcp_enter_loss`: the degree of reordering was overestimated.
        if new && self.sacked_out() >= DUP_THRESH {
            self.degree = REORDERING;
        }
        if new || self.high <= self.first || (self.state == State::Loss && self.retransmits == 0) {
            self.init_undo(true);
            if self.ways.stamp_in_timeout == Way::Rfc {
                self.first_resend = None;
            }
        }
        self.state = State::Loss;
        self.high = self.next;
        self.probe = None;
        self.frto = new || self.retransmits > 0 && self.ways.frto_again == Way::Linux;
        self.retransmits += 1;
        self.backoff += 1;
        self.start_rto(now);
        self.timeout_due = true;
    }
}
