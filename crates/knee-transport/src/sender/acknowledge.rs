//! Processing of an ACK: scoreboard, RTT, losses, rate sample, controller,
//! timer (in the order of Linux's `tcp_ack`).

use super::{Handshake, Sender, timestamp};
use crate::rate::{Newest, measures_rtt};
use crate::scoreboard::{
    APP_LIMITED, EVER_RETRANSMITTED, LOST, PlainRun, RETRANSMISSION_OUT, SACKED, Sent,
};
use crate::wire::{Ack, AckDetails, EcnBytes};
use crate::{after, before};
use knee_cc::{Event, Recovery, Sample};
use knee_units::Time;

/// What one ACK acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The segment from which the rate sample is taken.
    pub newest: Newest,
    /// Send times of the first and last segments that are acknowledged cumulatively and
    /// unambiguously.
    pub acknowledged_sent_at: Option<(Time, Time)>,
    /// Send times of the oldest and newest segments that are newly selectively
    /// acknowledged and unambiguous.
    pub sacked_sent_at: Option<(Time, Time)>,
    /// Whether the cumulative point advanced.
    pub advanced: bool,
    /// Whether a retransmitted segment was acknowledged cumulatively.
    pub retransmitted: bool,
    /// Whether a segment that was never retransmitted and was sent before
    /// recovery began was newly acknowledged.
    pub original: bool,
    /// Segments acknowledged cumulatively and not selectively before.
    pub segments: u32,
    /// One past the highest segment selectively acknowledged before.
    pub highest_sacked: u32,
    /// Whether any segment was newly selectively acknowledged.
    pub sacked: bool,
    /// First segment outstanding before.
    pub first: u32,
    /// The lowest segment that was selectively acknowledged after a higher one and is no
    /// retransmission, or a needless one.
    pub late: Option<u32>,
    /// Whether the receiver reports a duplicate of something that was retransmitted.
    pub duplicate: bool,
    /// Whether it reports the tail loss probe as a duplicate.
    pub probe_duplicate: bool,
}

/// Results of an ACK besides its sample.
struct Learnt {
    /// The segment from which the rate sample is taken; `None` if none was acknowledged.
    newest: Option<u32>,
    /// Whether the cumulative point advanced.
    advanced: bool,
    /// Whether the timeout counts from now (RFC 6298, section 5.3).
    restarts: bool,
    /// When to check again for a loss that cannot be decided yet.
    look_again: Option<Time>,
}

impl Progress {
    /// Notes when a segment was sent that is acknowledged cumulatively and unambiguously.
    #[inline(always)]
    fn measure(&mut self, sent_at: Time) {
        let (first, _) = self.acknowledged_sent_at.unwrap_or((sent_at, sent_at));
        self.acknowledged_sent_at = Some((first, sent_at));
    }
}

impl Sender {
    /// Processes an ACK.
    #[inline]
    pub fn on_ack(&mut self, now: Time, ack: &Ack, details: Option<&AckDetails>) {
        if self.handshake != Handshake::Done {
            return self.on_syn_ack(now, ack);
        }
        // Data that was not sent yet cannot have arrived (RFC 9293, section 3.10.7.4).
        if after(ack.number, self.board.next()) {
            return;
        }
        self.timer.sent_at = Time::MAX;
        if self.busy.limited_since != Time::MAX {
            self.end_receive_limited(now);
        }
        let suspicious =
            details.is_some() || self.recovery != Recovery::Open || ack.congestion_echo;
        let suspicious = suspicious || self.probe.is_some() || self.rack.is_unsettled();
        let mut sample = Sample { prior_in_flight: self.board.in_flight(), ..Sample::default() };
        let prior_missing = self.board.missing_segments();
        let run = if suspicious { None } else { self.board.plain_run(ack.number) };
        let learnt = match run {
            Some(run) if !before(run.first, self.highest_sacked) => {
                self.take_plain(now, &run, &mut sample)
            }
            _ => match details {
                Some(details) => self.take_detailed(now, ack, details, &mut sample),
                None => self.take_any(now, ack, None, &mut sample),
            },
        };
        let Learnt { newest, advanced, restarts, look_again } = learnt;
        sample.newly_acked_segments += prior_missing - self.board.missing_segments();
        let newest = newest.map(|number| &*self.board.get(number));
        self.sampler.sample(now, newest, &self.rtt, &mut sample);
        if let Some(newest) = newest {
            let lost = self.counters.lost_bytes as u32;
            sample.lost_since_send = u64::from(lost.wrapping_sub(newest.lost));
        }
        let connection = self.connection(now);
        let decision = self.controller.on_ack(&sample, &connection);
        self.apply(decision);
        if decision.holds_back | self.alert {
            self.apply_requests(now, &decision, &connection);
        }
        if advanced {
            self.timeouts_in_a_row = 0;
            if self.board.is_empty() {
                self.end_busy(now);
            }
        }
        if restarts || look_again.is_some() {
            self.arm_after_ack(now, restarts, look_again);
        }
    }

    /// Processes an ACK for original transmissions only, without signs of loss,
    /// as almost all ACKs are: equivalent to [`take_any`](Self::take_any),
    /// without checking for each segment what holds for all.
    #[inline(always)]
    fn take_plain(&mut self, now: Time, run: &PlainRun, sample: &mut Sample) -> Learnt {
        self.board.pop_plain(run);
        self.sampler.delivered += run.bytes;
        self.rack.on_original_delivered(now, run.newest_sent_at, run.newest_order);
        self.rtt.update(now - run.oldest_sent_at, self.board.first(), self.board.next());
        sample.newly_acked = run.bytes;
        sample.rtt = Some(now - run.newest_sent_at);
        sample.ack_delayed =
            run.count == 1 && self.board.sacked_segments == 0 && run.bytes < u64::from(self.mss);
        self.update_minimum_rtt(now, sample);
        let newest = Some(run.first.wrapping_add(run.count - 1));
        Learnt { newest, advanced: true, restarts: true, look_again: None }
    }

    /// Processes an ACK with details.
    #[inline(never)]
    fn take_detailed(
        &mut self,
        now: Time,
        ack: &Ack,
        details: &AckDetails,
        sample: &mut Sample,
    ) -> Learnt {
        match self.next_sacked(ack, details) {
            Some(number) => self.take_next_sacked(now, ack, number, sample),
            None => self.take_any(now, ack, Some(details), sample),
        }
    }

    /// Processes an ACK of any kind.
    #[inline(never)]
    fn take_any(
        &mut self,
        now: Time,
        ack: &Ack,
        details: Option<&AckDetails>,
        sample: &mut Sample,
    ) -> Learnt {
        let prior_delivered = self.sampler.delivered;
        if self.board.sacked_segments == 0 {
            // Numbers from long ago would be ahead of what is outstanding again.
            self.highest_sacked = self.board.first();
            if self.recovery == Recovery::Open {
                self.rack.judge_from(self.board.first());
            }
        }
        let (first, highest_sacked) = (self.board.first(), self.highest_sacked);
        let mut progress = Progress { first, highest_sacked, ..Progress::default() };
        if let Some(details) = details {
            self.take_details(now, details, &mut progress, sample);
        }
        if let Some(late) = progress.late
            && (self.recovery != Recovery::Loss || self.undo.possible)
        {
            self.note_reordering(now, late, self.highest_sacked);
        }
        self.take_cumulative(now, ack, &mut progress);
        self.settle_reordering_window(&progress.newest);
        sample.newly_acked = self.sampler.delivered - prior_delivered;
        sample.rtt = self.measure_rtt(now, ack, &progress);
        sample.ack_delayed = self.maybe_delayed(&progress, sample);
        self.update_minimum_rtt(now, sample);
        let look_again = self.recover(now, ack, &progress, sample);
        let Progress { newest, advanced, sacked_sent_at, .. } = progress;
        let restarts =
            advanced || sacked_sent_at.is_some_and(|(oldest, _)| self.precedes_first(oldest));
        Learnt { newest: newest.number, advanced, restarts, look_again }
    }

    #[cold]
    fn on_syn_ack(&mut self, now: Time, ack: &Ack) {
        if !ack.syn || self.handshake != Handshake::SynSent {
            return;
        }
        self.handshake = Handshake::Done;
        let rtt = Time::from_micros(u64::from(timestamp(now).wrapping_sub(ack.timestamp_echo)));
        self.rtt.update(rtt, 0, 0);
        self.rtt.update_minimum(now, rtt);
        self.timer.deadline = Time::MAX;
        self.timeouts_in_a_row = 0;
        self.tell(now, Event::Established);
    }

    /// Notes that segment `late` was overtaken by all before `end`, which is one past the highest
    /// that is selectively acknowledged (`tcp_check_sack_reordering`, `tcp_highest_sack_seq`).
    #[cold]
    fn note_reordering(&mut self, now: Time, late: u32, end: u32) {
        if before(late, end) {
            self.rack.on_reordering(now, end.wrapping_sub(late));
        }
    }

    /// Notes that the hole from segment `late` on was filled by an ACK up to `acknowledged`, not by
    /// retransmissions.
    #[cold]
    pub(super) fn note_filled_hole(&mut self, now: Time, late: u32, acknowledged: u32) {
        let sacked = self.highest_sacked;
        let end = if after(sacked, acknowledged) { sacked } else { acknowledged };
        self.note_reordering(now, late, end);
    }

    /// Widens or narrows RACK's reordering window if that is due.
    #[inline]
    fn settle_reordering_window(&mut self, newest: &Newest) {
        if self.rack.is_unsettled()
            && let Some(number) = newest.number
        {
            let prior_delivered = self.board.get(number).delivered;
            self.rack.settle(prior_delivered, self.sampler.delivered);
        }
    }

    #[inline]
    fn take_cumulative(&mut self, now: Time, ack: &Ack, progress: &mut Progress) {
        let number = ack.number;
        // RACK only needs the last of consecutive original transmissions.
        let mut original = None;
        while after(number, self.board.first()) && !self.board.is_empty() {
            progress.advanced = true;
            if self.board.pop_sacked() {
                continue;
            }
            let first = self.board.first();
            let sent = self.board.pop();
            if sent.flags & !APP_LIMITED == 0 {
                if original.is_none() && before(first, progress.highest_sacked) {
                    self.note_filled_hole(now, first, number);
                }
                original = Some((sent.sent_at, sent.order));
                progress.original |= before(first, self.high);
                progress.segments += 1;
                progress.measure(sent.sent_at);
                self.deliver(first, &sent, progress);
            } else {
                if let Some((sent_at, order)) = original.take() {
                    self.rack.on_original_delivered(now, sent_at, order);
                }
                self.take_marked(now, first, &sent, ack, progress);
            }
        }
        if let Some((sent_at, order)) = original {
            self.rack.on_original_delivered(now, sent_at, order);
        }
    }

    #[inline]
    fn deliver(&mut self, number: u32, sent: &Sent, progress: &mut Progress) {
        self.sampler.delivered += u64::from(sent.len);
        progress.newest.consider(number, sent);
    }

    /// Processes the cumulative acknowledgement of a segment that was
    /// selectively acknowledged, lost or retransmitted.
    #[cold]
    fn take_marked(
        &mut self,
        now: Time,
        number: u32,
        sent: &Sent,
        ack: &Ack,
        progress: &mut Progress,
    ) {
        if measures_rtt(sent) {
            if sent.flags & SACKED == 0 {
                progress.original |= before(number, self.high);
                progress.measure(sent.sent_at);
                if before(number, progress.highest_sacked) {
                    self.note_filled_hole(now, number, ack.number);
                }
            }
        } else {
            progress.retransmitted = true;
        }
        if sent.flags & SACKED == 0 {
            progress.segments += 1;
            self.deliver(number, sent, progress);
            // RFC 8985, section 6.2, step 2: the echoed timestamp shows that the original arrived
            // (`tcp_skb_spurious_retrans`).
            let again = sent.flags & EVER_RETRANSMITTED != 0;
            let needless = again && before(ack.timestamp_echo, timestamp(sent.sent_at));
            if !needless {
                self.rack.on_delivered(now, sent, self.rtt.minimum());
            }
        }
    }

    #[inline]
    fn take_details(
        &mut self,
        now: Time,
        details: &AckDetails,
        progress: &mut Progress,
        sample: &mut Sample,
    ) {
        if details.ecn != self.arrived {
            self.take_ecn(details.ecn, sample);
        }
        if let Some(number) = details.duplicate {
            self.take_duplicate(number, progress, sample);
        }
        let [(from, to), others @ ..] = details.sack;
        let [(known_from, known_to), known_others @ ..] = self.previous_sack;
        if from == known_from && others == known_others {
            if to == known_to {
                return;
            }
            // The latest block has grown. The part reported before is known.
            self.previous_sack[0].1 = to;
            return self.take_block(now, known_to, to, &[], progress);
        }
        self.take_blocks(now, details, progress);
    }

    /// Processes blocks that differ from those of the previous ACK.
    #[inline(never)]
    fn take_blocks(&mut self, now: Time, details: &AckDetails, progress: &mut Progress) {
        let previous = std::mem::replace(&mut self.previous_sack, details.sack);
        // In ascending order, as `tcp_sacktag_write_queue` does: a block
        // reported before a lower one is not a sign of reordering.
        let mut blocks = details.sack;
        let blocks = &mut blocks[..usize::from(details.sack_count)];
        let first = self.board.first();
        // Usually the latest is the highest, and the reversed blocks are in order.
        blocks.reverse();
        sort_few(blocks, |(from, _)| from.wrapping_sub(first));
        for &mut (from, to) in blocks {
            self.take_block(now, from, to, &previous, progress);
        }
    }

    /// Updates payload counts by codepoint; an ACK that was overtaken reports nothing new.
    fn take_ecn(&mut self, told: EcnBytes, sample: &mut Sample) {
        let news = |told: u32, known: &mut u32| {
            let news = if after(told, *known) { told.wrapping_sub(*known) } else { 0 };
            *known = known.wrapping_add(news);
            u64::from(news)
        };
        let EcnBytes { ect0, ect1, ce } = &mut self.arrived;
        sample.newly_marked = news(told.ce, ce);
        sample.newly_ect = [news(told.ect0, ect0), news(told.ect1, ect1)];
        self.counters.marked_bytes += sample.newly_marked;
    }

    /// Processes a duplicate report. If the segment was retransmitted in this
    /// recovery, that was unnecessary; otherwise the network duplicated it (RFC
    /// 2883, section 5.1). A tail loss probe says nothing about RACK, which had
    /// not judged its segment lost. (`tcp_dsack_seen`)
    fn take_duplicate(&mut self, number: u32, progress: &mut Progress, sample: &mut Sample) {
        self.counters.duplicates += 1;
        progress.probe_duplicate = self.probe.is_some_and(|probe| probe.carried(number));
        // Of more duplicates than there were retransmissions nothing is believed.
        if self.counters.duplicates > self.counters.retransmitted_segments {
            return;
        }
        progress.duplicate = true;
        // A needless retransmission is delivered too.
        self.sampler.delivered += u64::from(self.mss);
        self.sampler.needless += u64::from(self.mss);
        sample.newly_acked_segments = 1;
        if !progress.probe_duplicate {
            self.rack.on_duplicate();
        }
        let (first, next) = (self.board.first(), self.board.next());
        let known = before(number, next) && !before(number, self.undo.first);
        let outstanding = before(number, next) && !before(number, first);
        let flags = if outstanding { self.board.get(number).flags } else { 0 };
        let again = before(number, first) || flags & EVER_RETRANSMITTED != 0;
        if known && again && self.undo.unconfirmed > 0 {
            self.undo.unconfirmed -= 1;
        }
        // `tcp_sacktag_one`: what was retransmitted, and had arrived, was late, and its
        // retransmission is no longer in flight.
        if flags & (EVER_RETRANSMITTED | SACKED) == EVER_RETRANSMITTED | SACKED {
            progress.late = Some(number);
            self.board.end_retransmission(number);
        }
    }

    /// Processes the part of a block that the previous ACK did not report.
    #[inline(never)]
    fn take_block(
        &mut self,
        now: Time,
        from: u32,
        to: u32,
        previous: &[(u32, u32)],
        progress: &mut Progress,
    ) {
        if previous.contains(&(from, to)) {
            return;
        }
        let mut number = if before(from, self.board.first()) { self.board.first() } else { from };
        let end = if before(to, self.board.next()) { to } else { self.board.next() };
        while before(number, end) {
            if self.board.get(number).flags & SACKED == 0 {
                self.take_sacked(now, number, progress);
                number = number.wrapping_add(1);
                continue;
            }
            let known = previous.iter().find(|(a, b)| !before(number, *a) && before(number, *b));
            number = known.map_or(number.wrapping_add(1), |(_, end)| *end);
        }
    }

    /// Returns the segment by which the latest block has grown, if an ACK says nothing
    /// else, as almost all do while there is a hole: the highest so far, which had no
    /// event since it was sent.
    #[inline(always)]
    fn next_sacked(&mut self, ack: &Ack, details: &AckDetails) -> Option<u32> {
        let [(from, to), others @ ..] = details.sack;
        let [(known_from, number), known_others @ ..] = self.previous_sack;
        let grown = from == known_from && to == number.wrapping_add(1) && others == known_others;
        let only = ack.number == self.board.first()
            && details.duplicate.is_none()
            && details.ecn == self.arrived;
        let highest = !before(number, self.highest_sacked) && !before(number, ack.number);
        let plain = highest && before(number, self.board.next()) && self.board.is_plain(number);
        (grown && only && plain).then_some(number)
    }

    /// Processes an ACK for the [next segment](Self::next_sacked) of the latest block:
    /// equivalent to [`take_any`](Self::take_any), without its checks.
    #[inline(always)]
    fn take_next_sacked(
        &mut self,
        now: Time,
        ack: &Ack,
        number: u32,
        sample: &mut Sample,
    ) -> Learnt {
        let Sent { sent_at, order, len, .. } = self.board.mark_plain_sacked(number);
        self.previous_sack[0].1 = number.wrapping_add(1);
        self.highest_sacked = number.wrapping_add(1);
        self.sampler.delivered += u64::from(len);
        self.rack.on_original_delivered(now, sent_at, order);
        self.rtt.update(now - sent_at, self.board.first(), self.board.next());
        sample.newly_acked = u64::from(len);
        sample.rtt = Some(now - sent_at);
        self.rtt.update_minimum(now, now - sent_at);
        let original = before(number, self.high);
        let newest = Newest::of(number, order);
        let progress = Progress { newest, original, sacked: true, ..Progress::default() };
        self.settle_reordering_window(&progress.newest);
        let look_again = self.recover(now, ack, &progress, sample);
        let restarts = self.precedes_first(sent_at);
        Learnt { newest: Some(number), advanced: false, restarts, look_again }
    }

    /// Whether data sent at `sent_at` left before the first outstanding segment last did. If it
    /// is reported, the timeout counts from now, as if it were acknowledged
    /// (`tcp_clean_rtx_queue`); otherwise reports of newer data would put it off for ever.
    #[inline]
    fn precedes_first(&mut self, sent_at: Time) -> bool {
        let first = self.board.first();
        sent_at < self.board.get(first).sent_at
    }

    /// Selectively acknowledges a segment if it was not before.
    #[inline]
    fn take_sacked(&mut self, now: Time, number: u32, progress: &mut Progress) {
        let before_mark = self.board.mark_sacked(number);
        progress.sacked = true;
        if measures_rtt(&before_mark) {
            progress.original |= before(number, self.high);
            let sent_at = before_mark.sent_at;
            let (oldest, newest) = progress.sacked_sent_at.unwrap_or((sent_at, sent_at));
            progress.sacked_sent_at = Some((oldest.min(sent_at), newest.max(sent_at)));
            // Below the highest delivered segment and never retransmitted: it
            // was overtaken, not lost.
            if before(number, self.highest_sacked) {
                let lower = progress.late.filter(|late| before(*late, number));
                progress.late = lower.or(Some(number));
            }
        }
        if after(number.wrapping_add(1), self.highest_sacked) {
            self.highest_sacked = number.wrapping_add(1);
        }
        debug_assert!(before_mark.flags & (LOST | RETRANSMISSION_OUT | SACKED) != SACKED);
        self.deliver(number, &before_mark, progress);
        self.rack.on_delivered(now, &before_mark, self.rtt.minimum());
    }

    /// Measures the RTT for the smoothed estimate (from the oldest segment
    /// acknowledged, so that a delayed ACK's delay counts) and for the
    /// controller (from the newest). `tcp_ack_update_rtt`.
    #[inline]
    fn measure_rtt(&mut self, now: Time, ack: &Ack, progress: &Progress) -> Option<Time> {
        let (oldest, newest) = match progress.acknowledged_sent_at {
            Some(sent_at) if !progress.retransmitted && progress.sacked_sent_at.is_none() => {
                sent_at
            }
            _ => return self.measure_ambiguous_rtt(now, ack, progress),
        };
        self.rtt.update(now - oldest, self.board.first(), self.board.next());
        Some(now - newest)
    }

    #[cold]
    fn measure_ambiguous_rtt(&mut self, now: Time, ack: &Ack, progress: &Progress) -> Option<Time> {
        if let Some((oldest, newest)) = progress.sacked_sent_at {
            let oldest = match progress.acknowledged_sent_at {
                Some((cumulative, _)) if !progress.retransmitted => cumulative,
                _ => oldest,
            };
            self.rtt.update(now - oldest, self.board.first(), self.board.next());
            return Some(now - newest);
        }
        if !progress.advanced {
            return None;
        }
        // Only retransmissions: the timestamp shows which one was received (RFC
        // 7323, section 4).
        let rtt = rtt_by_timestamp(now, ack.timestamp_echo);
        self.rtt.update(rtt, self.board.first(), self.board.next());
        Some(rtt)
    }

    /// Whether a single segment ended the data in flight, so that the receiver
    /// may have waited for a second one.
    #[inline]
    fn maybe_delayed(&self, progress: &Progress, sample: &Sample) -> bool {
        progress.segments == 1
            && progress.newest.number.is_some()
            && progress.sacked_sent_at.is_none()
            && self.board.sacked_segments == 0
            && sample.newly_acked < u64::from(self.mss)
    }

    #[inline(always)]
    fn update_minimum_rtt(&mut self, now: Time, sample: &Sample) {
        if let Some(rtt) = sample.rtt
            && !(sample.ack_delayed && rtt > self.rtt.minimum())
        {
            self.rtt.update_minimum(now, rtt);
        }
    }
}

/// Sorts a few blocks that are already in order, or nearly.
#[inline]
fn sort_few(blocks: &mut [(u32, u32)], key: impl Fn((u32, u32)) -> u32) {
    for end in 1..blocks.len() {
        let mut place = end;
        while place > 0 && key(blocks[place]) < key(blocks[place - 1]) {
            blocks.swap(place, place - 1);
            place -= 1;
        }
    }
}

/// Returns the RTT from an echoed timestamp. Linux's timestamps count milliseconds
/// (`tcp_rtt_tsopt_us`), so it may be off by up to one either way, and below the
/// true minimum; BBR's minimum RTT then lasts longer over lossy paths.
fn rtt_by_timestamp(now: Time, echo: u32) -> Time {
    let passed = timestamp(now).wrapping_sub(echo);
    let sent = now.as_micros().saturating_sub(u64::from(passed));
    Time::from_millis((now.as_micros() / 1000 - sent / 1000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::sender::Transmit;
    use knee_cc::{Init, Selection};
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    /// A sender with an open connection that sends its first 20 segments, from `first` on.
    fn sender(first: u32) -> Sender {
        let (mss, rng) = (1448, ChaCha8Rng::seed_from_u64(1));
        let init = Init { mss, mtu: 1500, initial_window: 20 * u64::from(mss), rng };
        let reno = knee_cc::build(&Selection::named("reno"), init).unwrap();
        let mut sender = Sender::new(&Config::default(), reno);
        sender.write(u64::MAX);
        let (sent, open) = (Time::from_secs(1), Time::from_millis(1100));
        assert!(matches!(sender.poll_transmit(sent), Transmit::Segment(_)));
        let timestamp_echo = sent.as_micros() as u32;
        sender.on_ack(open, &Ack { syn: true, timestamp_echo, ..Ack::default() }, None);
        sender.board.skip_to(first);
        (0..20).for_each(|_| assert!(matches!(sender.poll_transmit(open), Transmit::Segment(_))));
        sender
    }

    /// Segment numbers from before half of them were used up are ahead of the current ones: those
    /// of the last loss, or 0 if there was none.
    #[test]
    fn what_was_reported_long_ago_is_not_ahead() {
        for first in [0, (1 << 31) + 5, u32::MAX - 3] {
            let mut sender = sender(first);
            let now = Time::from_millis(1200);
            let ack = |ahead: u32| Ack { number: first.wrapping_add(ahead), ..Ack::default() };
            sender.on_ack(now, &ack(2), None);
            assert_eq!(sender.reorderings(), 0, "from {first} on");
            // The third is lost.
            let mut details = AckDetails { sack_count: 1, ..AckDetails::default() };
            details.sack[0] = (first.wrapping_add(3), first.wrapping_add(20));
            sender.on_ack(now, &ack(2), Some(&details));
            let seen = (sender.counters().lost_bytes, sender.reorderings());
            assert_eq!(seen, (1448, 0), "from {first} on");
            assert_eq!(sender.counters().recoveries, 1, "from {first} on");
        }
    }

    #[test]
    fn timestamps_count_milliseconds() {
        let rtt = |sent_us: u64, now_us: u64| {
            rtt_by_timestamp(Time::from_micros(now_us), sent_us as u32).as_micros()
        };
        assert_eq!(rtt(1_000, 121_600), 120_000);
        assert_eq!(rtt(1_900, 122_500), 121_000);
        assert_eq!(rtt(1_100, 1_200), 1_000);
        // The 32-bit clock has wrapped in between.
        let wrap = 1_u64 << 32;
        assert_eq!(rtt(wrap - 1_000, wrap + 9_500), 10_000);
    }
}
