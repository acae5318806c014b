//! Losses that an ACK shows, recovery from them, and whether it was a mistake (RFC 5682, 3522, 2883).

use super::{Naive, Nanos, News, PERSIST, Segment, State, Way};

impl Naive {
    /// Returns whether the timer is set for reordering, and whether a retransmission
    /// was lost.
    fn identify_loss(&mut self, now: Nanos) -> (bool, bool) {
        if self.segments.is_empty() || (!self.rack_advanced && self.ways.every_ack == Way::Linux) {
            return (false, false);
        }
        self.rack_advanced = false;
        let before = self.resent_out();
        let timeout = self.detect_loss(now);
        if timeout > 0 {
            self.start_reordering(now, timeout, self.restarts);
        }
        (timeout > 0, self.resent_out() < before)
    }

    pub(super) fn enter_recovery(&mut self) {
        if self.ways.stamp_in_recovery == Way::Rfc || !self.any_resent() {
            self.first_resend = None;
        }
        self.recoveries += 1;
        self.init_undo(false);
        if self.state != State::Recovery {
            self.high = self.next;
            self.probe = None;
        }
        self.state = State::Recovery;
    }

    pub(super) fn init_undo(&mut self, timeout: bool) {
        let linux = self.ways.probe_undo == Way::Linux && !timeout;
        let counts = |s: &&Segment| s.again && (!s.was_probe || linux) || s.probe_out && linux;
        let out = self.segments.iter().filter(counts).count() as i64;
        self.undo_from = Some(self.first);
        self.undo_left = Some(if out > 0 { out } else { -1 });
    }

    fn delayed(&self, echo: u64) -> bool {
        self.first_resend.is_none_or(|at| echo < at / 1000)
    }

    fn may_undo(&self, echo: u64) -> bool {
        self.undo_from.is_some() && (self.undo_left == Some(0) || self.delayed(echo))
    }

    fn undo(&mut self, unmark: bool) {
        if unmark {
            for segment in &mut self.segments {
                self.unmarked += u64::from(segment.lost);
                segment.lost = false;
                segment.timed |= self.ways.undone_timed == Way::Rfc;
            }
        }
        self.undone += 1;
        self.undo_from = None;
        self.rack_advanced = true;
    }

    fn keep_open(&mut self) {
        let left = self.any_lost() || self.sacked_out() > 0;
        let state = if left || self.any_resent() { State::Disorder } else { State::Open };
        if self.state != state {
            self.state = state;
            self.high = self.next;
        }
    }

    fn try_undo_recovery(&mut self, echo: u64) {
        let undo = self.may_undo(echo);
        if undo {
            self.undo(false);
        }
        if !undo || self.ways.undone_persist == Way::Rfc {
            self.persist = self.persist.saturating_sub(1);
        }
        self.state = State::Open;
    }

    fn try_undo_dsack(&mut self) -> bool {
        let may = self.undo_from.is_some() && self.undo_left == Some(0);
        if may {
            let more = u32::from(self.ways.undone_persist == Way::Linux);
            self.persist = (self.persist + more).min(PERSIST);
            self.undo(false);
        }
        may
    }

    fn try_undo_loss(&mut self, by_frto: bool, echo: u64) -> bool {
        let may = by_frto || self.may_undo(echo);
        if may {
            self.undo(true);
            if self.ways.stamp_in_loss_undo == Way::Rfc {
                self.first_resend = None;
            }
            self.retransmits = 0;
            self.state = State::Open;
        }
        may
    }

    /// Returns whether the timer is set for reordering.
    pub(super) fn alert(&mut self, now: Nanos, news: &News, echo: u64, prior_first: u32) -> bool {
        if self.state == State::Open {
            self.first_resend = None;
        } else if self.first >= self.high && self.state == State::Recovery {
            self.try_undo_recovery(echo);
        }
        let mut armed = false;
        match self.state {
            State::Recovery => {
                if news.advanced && self.undo_from.is_some() && self.delayed(echo) {
                    self.reordering_seen |= self.ways.undo_reordering == Way::Linux;
                    self.measure_reordering(Some(prior_first));
                    if self.resent_out() > 0 {
                        self.new_data_first = true;
                        return false;
                    }
                    if !self.any_resent() {
                        self.first_resend = None;
                    }
                    self.undo(true);
                    self.keep_open();
                }
                if self.try_undo_dsack() {
                    self.keep_open();
                }
                armed = self.identify_loss(now).0;
                if self.state != State::Recovery && self.any_lost() {
                    self.enter_recovery();
                }
                return armed;
            }
            State::Loss => {
                self.process_loss(news, echo);
                let (set, lost_again) = self.identify_loss(now);
                armed |= set;
                let stays = !lost_again || self.ways.lost_again_recovers == Way::Rfc;
                if self.state != State::Open && stays {
                    return armed;
                }
            }
            _ => {}
        }
        if matches!(self.state, State::Open | State::Disorder) {
            self.try_undo_dsack();
        }
        armed |= self.identify_loss(now).0;
        if self.any_lost() {
            self.enter_recovery();
        } else {
            if !self.any_resent() {
                self.first_resend = None;
            }
            self.keep_open();
        }
        armed
    }

    fn process_loss(&mut self, news: &News, echo: u64) {
        let recovered = self.first >= self.high;
        if news.advanced && self.try_undo_loss(false, echo) {
            return;
        }
        if self.frto {
            let whole = recovered && self.ways.frto_whole == Way::Rfc;
            if news.original && !whole && self.try_undo_loss(true, echo) {
                return;
            }
            if self.next > self.high {
                if news.sacked || !(news.advanced || news.dsack) {
                    self.frto = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.next;
                if self.next < self.written {
                    self.new_data_first = true;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(echo);
        }
    }

    /// RFC 8985, section 7.4.
    pub(super) fn process_probe(&mut self, number: u32, news: &News) {
        let Some((end, repeated)) = self.probe else { return };
        if number < end {
            return;
        }
        if !repeated || news.of_probe {
            self.probe = None;
        } else if number > end {
            self.probe = None;
            self.high = self.next;
            self.keep_open();
        } else if !news.advanced && !news.sacked {
            self.probe = None;
        }
    }
}
