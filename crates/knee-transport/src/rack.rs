//! RACK: time-based loss detection (RFC 8985), with Linux's choices.
//!
//! A segment is lost when one sent later was delivered and more than an RTT plus a
//! reordering window has passed since it was sent. First transmissions are sent in
//! the order of their numbers and retransmissions in the order of one queue, so two
//! cursors replace the time-sorted list and detection costs O(1) per segment.

use crate::rtt::RttEstimator;
use crate::scoreboard::{
    EVER_RETRANSMITTED, JUDGED, LOST, RETRANSMISSION_OUT, SACKED, Scoreboard, Sent,
};
use crate::{after, before};
use knee_units::Time;
use std::collections::VecDeque;

/// Number of selectively acknowledged segments from which no reordering window
/// is granted, until reordering was seen (RFC 8985, section 6.2, step 4).
pub const DUPLICATE_THRESHOLD: u32 = 3;
/// Recoveries for which a widened reordering window persists.
const WINDOW_PERSIST: u8 = 16;
/// Largest degree of reordering: `net.ipv4.tcp_max_reordering`.
const DEGREE_MAX: u32 = 300;

/// State of RACK.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    /// Send time of the most recently sent segment that was delivered.
    sent_at: Time,
    /// Number of its transmission.
    order: u32,
    /// Its RTT.
    rtt: Time,
    /// First segment whose first transmission is not yet judged.
    cursor: u32,
    /// Retransmissions in the order of sending: segment and transmission number.
    retransmissions: VecDeque<(u32, u32)>,
    /// Whether reordering was observed on this connection.
    reordering_seen: bool,
    /// Longest distance, in segments, from a late segment to the end of the highest that overtook
    /// it.
    degree: u32,
    /// Number of instants at which reordering was observed, and the last of them.
    reorderings: u64,
    reordered_at: Time,
    /// The reordering window in quarters of the minimum RTT, less one.
    window_steps: u8,
    window_persist: u8,
    /// Whether a D-SACK was reported that has not yet widened the window.
    duplicate: bool,
    /// Bytes delivered when a D-SACK last widened the window.
    widened_at: u64,
}

/// Result of a detection pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detection {
    /// Bytes newly marked lost.
    pub lost: u64,
    /// The highest transmission among them, if there are any.
    pub newest: Option<u32>,
    /// When to check again, if a segment may still turn out lost.
    pub look_again: Option<Time>,
}

impl Detection {
    fn add(&mut self, lost: Option<Sent>) {
        let Some(sent) = lost else { return };
        self.lost += u64::from(sent.len);
        let newest = self.newest.unwrap_or(sent.order);
        self.newest = Some(if after(sent.order, newest) { sent.order } else { newest });
    }
}

/// Destinations for segments that are marked lost.
pub struct Lost<'s> {
    /// Numbers of the segments to retransmit.
    pub queue: &'s mut VecDeque<u32>,
    /// The segments as last sent, for a controller that requests them.
    pub told: Option<&'s mut Vec<Sent>>,
}

impl Rack {
    /// Records a delivered segment (RFC 8985, section 6.2, steps 1 and 2).
    ///
    /// The RFC orders transmissions by time, then by sequence number; here they
    /// are numbered, because many are sent at the same instant.
    pub fn on_delivered(&mut self, now: Time, sent: &Sent, min_rtt: Time) {
        // The ACK is for the original, not the retransmission.
        if sent.flags & EVER_RETRANSMITTED != 0 && now - sent.sent_at < min_rtt {
            return;
        }
        self.on_original_delivered(now, sent.sent_at, sent.order);
    }

    /// Records a delivered segment that was never retransmitted.
    #[inline]
    pub fn on_original_delivered(&mut self, now: Time, sent_at: Time, order: u32) {
        if self.rtt == Time::ZERO || after(order, self.order) {
            self.sent_at = sent_at;
            self.order = order;
        }
        self.rtt = now - sent_at;
    }

    /// Records that a segment arrived that was overtaken by `distance` segments, and never
    /// retransmitted, or needlessly (`tcp_check_sack_reordering`).
    #[cold]
    pub fn on_reordering(&mut self, now: Time, distance: u32) {
        self.reordering_seen = true;
        self.degree = self.degree.max(distance.min(DEGREE_MAX));
        if self.reorderings == 0 || self.reordered_at != now {
            self.reorderings += 1;
            self.reordered_at = now;
        }
    }

    /// Called when a timeout ends a state of disorder in which as many segments were selectively
    /// acknowledged as prove a loss without reordering: its degree was overestimated
    /// (`tcp_enter_loss`).
    pub fn on_timeout_in_disorder(&mut self) {
        self.degree = self.degree.min(DUPLICATE_THRESHOLD);
    }

    /// Returns how often reordering was observed; several ACKs at one instant count once.
    pub fn reorderings(&self) -> u64 {
        self.reorderings
    }

    /// Returns the degree of reordering in segments (Linux's `reordering`, which is never below
    /// three).
    #[inline]
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// Called when a retransmission was unnecessary (D-SACK), so the window was too narrow.
    /// Unlike in the RFC, this counts only once reordering was seen (`tcp_dsack_seen`).
    pub fn on_duplicate(&mut self) {
        self.duplicate |= self.reordering_seen;
    }

    /// Whether the next delivery may change the window.
    #[inline]
    pub fn is_unsettled(&self) -> bool {
        self.duplicate || (self.window_persist == 0 && self.window_steps > 0)
    }

    /// Called when data is delivered, `delivered` bytes in all; the newest of it was sent when
    /// `prior_delivered` were. A D-SACK widens the window, at most once per round, and a round ends
    /// when data is delivered that was sent after the window was widened: on a path that reorders,
    /// the RFC's round, which ends with the cumulative ACK, is longer. The window narrows when it
    /// has lasted for its recoveries (`tcp_rack_update_reo_wnd`).
    #[cold]
    pub fn settle(&mut self, prior_delivered: u64, delivered: u64) {
        let due = std::mem::take(&mut self.duplicate) && prior_delivered >= self.widened_at;
        if due {
            self.window_steps = self.window_steps.saturating_add(1);
            self.window_persist = WINDOW_PERSIST;
            self.widened_at = delivered;
        } else if self.window_persist == 0 {
            self.window_steps = 0;
        }
    }

    /// Called when a recovery is complete and was not undone (`tcp_try_undo_recovery`).
    pub fn on_recovery_end(&mut self) {
        self.window_persist = self.window_persist.saturating_sub(1);
    }

    /// Called when D-SACKs have shown that a recovery was needless: the window lasts for one more
    /// (`tcp_try_undo_dsack`).
    pub fn on_needless_recovery(&mut self) {
        self.window_persist = (self.window_persist + 1).min(WINDOW_PERSIST);
    }

    /// Records a retransmission.
    pub fn on_retransmitted(&mut self, number: u32, order: u32) {
        self.retransmissions.push_back((number, order));
    }

    /// Called when marks were taken back. Segments that a timeout had marked
    /// without RACK's judgement were skipped in the meantime: they are checked
    /// again. Linux keeps them in `tsorted_sent_queue`, from which only RACK's
    /// own mark removes a segment.
    #[cold]
    pub fn judge_again(&mut self, board: &mut Scoreboard) {
        self.cursor = board.first();
        self.retransmissions.clear();
        let mut number = board.first();
        while number != board.next() {
            let sent = board.get(number);
            if sent.flags & EVER_RETRANSMITTED != 0 {
                self.retransmissions.push_back((number, sent.order));
            }
            number = number.wrapping_add(1);
        }
        let newest = self.order;
        let by_order = |(_, order): &(u32, u32)| order.wrapping_sub(newest) as i32;
        self.retransmissions.make_contiguous().sort_unstable_by_key(by_order);
    }

    /// Notes that no segment before this one is outstanding, and none was overtaken.
    #[inline]
    pub fn judge_from(&mut self, first: u32) {
        self.cursor = first;
    }

    fn window(&self, board: &Scoreboard, rtt: &RttEstimator, in_recovery: bool) -> Time {
        if !self.reordering_seen && (in_recovery || board.sacked_segments >= DUPLICATE_THRESHOLD) {
            return Time::ZERO;
        }
        (rtt.minimum() / 4 * (u64::from(self.window_steps) + 1)).min(rtt.smoothed())
    }

    /// Whether a segment that is not yet judged was overtaken. Advances the
    /// cursor to the first transmission that may be lost.
    #[inline]
    pub fn may_find(&mut self, board: &mut Scoreboard) -> bool {
        // It may be so old that numbers have wrapped in between.
        if self.cursor.wrapping_sub(board.first()) > board.segments() {
            self.cursor = board.first();
        }
        while self.cursor != board.next() {
            let sent = board.get(self.cursor);
            if sent.flags & (SACKED | LOST | EVER_RETRANSMITTED | JUDGED) == 0 {
                if self.overtook(sent.order) {
                    return true;
                }
                break;
            }
            self.cursor = self.cursor.wrapping_add(1);
        }
        self.retransmissions.front().is_some_and(|(_, order)| self.overtook(*order))
    }

    /// Marks segments lost (RFC 8985, section 6.2, step 5) and adds each of them
    /// to `lost`, if any was [overtaken](Self::may_find).
    #[inline(never)]
    pub fn detect(
        &mut self,
        now: Time,
        board: &mut Scoreboard,
        rtt: &RttEstimator,
        in_recovery: bool,
        lost: &mut Lost<'_>,
    ) -> Detection {
        let mut found = Detection::default();
        // An overtaken segment sent more than `patience` ago is lost; one sent
        // later may be, once `patience` has passed.
        let patience = self.rtt + self.window(board, rtt, in_recovery);
        while self.cursor != board.next() {
            let sent = board.get(self.cursor);
            if sent.flags & (SACKED | LOST | EVER_RETRANSMITTED | JUDGED) == 0 {
                if !self.overtook(sent.order) {
                    break;
                }
                let sent_at = sent.sent_at;
                if sent_at + patience > now {
                    found.look_again = Some(self.last_waiting(board, sent_at) + patience);
                    break;
                }
                found.add(judge(board, self.cursor, lost));
            }
            self.cursor = self.cursor.wrapping_add(1);
        }
        self.detect_retransmissions(now, patience, board, lost, &mut found);
        found
    }

    fn detect_retransmissions(
        &mut self,
        now: Time,
        patience: Time,
        board: &mut Scoreboard,
        lost: &mut Lost<'_>,
        found: &mut Detection,
    ) {
        while let Some(&(number, order)) = self.retransmissions.front() {
            if !self.overtook(order) {
                break;
            }
            if let Some(sent_at) = waiting(board, number, order) {
                if sent_at + patience > now {
                    let again = self.last_retransmission(board, sent_at) + patience;
                    found.look_again = Some(found.look_again.map_or(again, |t| t.max(again)));
                    break;
                }
                found.add(judge(board, number, lost));
            }
            self.retransmissions.pop_front();
        }
    }

    /// Returns the send time of the latest first transmission, from the cursor on,
    /// that may still turn out lost: the timer waits for all of them.
    fn last_waiting(&self, board: &mut Scoreboard, mut last: Time) -> Time {
        let mut number = self.cursor;
        // Segments sent at the same time as the delivered one need no search.
        while last < self.sent_at && number != board.next() {
            let sent = board.get(number);
            if sent.flags & (SACKED | LOST | EVER_RETRANSMITTED | JUDGED) == 0 {
                if !self.overtook(sent.order) {
                    break;
                }
                last = sent.sent_at;
            }
            number = number.wrapping_add(1);
        }
        last
    }

    /// Returns the send time of the latest retransmission that may still turn out lost.
    fn last_retransmission(&self, board: &mut Scoreboard, mut last: Time) -> Time {
        for &(number, order) in &self.retransmissions {
            if last >= self.sent_at || !self.overtook(order) {
                break;
            }
            if let Some(sent_at) = waiting(board, number, order) {
                last = sent_at;
            }
        }
        last
    }

    /// Whether a segment sent after transmission `order` was delivered.
    fn overtook(&self, order: u32) -> bool {
        after(self.order, order)
    }

    /// Whether more than an RTT has passed since `sent_at`.
    pub fn is_overdue(&self, sent_at: Time, now: Time) -> bool {
        sent_at + self.rtt <= now
    }
}

/// Returns when the segment of retransmission `order` was sent, if that was its
/// last transmission and it may still turn out lost.
fn waiting(board: &mut Scoreboard, number: u32, order: u32) -> Option<Time> {
    let outstanding = !after(board.first(), number) && after(board.next(), number);
    let sent = board.get(number);
    let open = sent.flags & (SACKED | JUDGED) == 0;
    let marked = sent.flags & (LOST | RETRANSMISSION_OUT) == LOST;
    (outstanding && open && !marked && sent.order == order).then_some(sent.sent_at)
}

/// Marks a segment lost and queues it in order: the lowest is retransmitted
/// first (RFC 6675, section 4, NextSeg). Returns its earlier state.
fn judge(board: &mut Scoreboard, number: u32, lost: &mut Lost<'_>) -> Option<Sent> {
    let sent = board.get(number);
    sent.flags |= JUDGED;
    let sent = *sent;
    let place = lost.queue.partition_point(|other| before(*other, number));
    lost.queue.insert(place, number);
    board.mark_lost(number)?;
    if let Some(told) = &mut lost.told {
        told.push(sent);
    }
    Some(sent)
}
