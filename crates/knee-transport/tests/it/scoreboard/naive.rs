//! The expected state of a sender, from the text of RFC 8985, 6675 and 2883
//! with Linux's choices: a plain list of segments, searched from end to end. It
//! shares no code with the sender and does not use its marks.

/// Microseconds.
pub type Micros = u64;

/// An outstanding segment.
#[derive(Clone, Debug)]
pub struct Segment {
    pub number: u32,
    pub bytes: u64,
    /// Time and transmission number of the last transmission.
    sent_at: Micros,
    order: u64,
    /// Bytes delivered when it was last sent.
    delivered: u64,
    sacked: bool,
    pub lost: bool,
    /// Whether a retransmission is in flight.
    pub again: bool,
    ever_again: bool,
    /// Whether RACK has marked the last transmission lost: Linux judges it once
    /// (`tcp_rack_detect_loss` removes it from the list), even if the mark is
    /// taken back.
    judged: bool,
}

/// An ACK as it arrives.
#[derive(Clone, Debug, Default)]
pub struct Acknowledgement {
    pub number: u32,
    pub blocks: Vec<(u32, u32)>,
    pub duplicate: Option<u32>,
    pub echo: Micros,
}

/// State reported by the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    pub in_recovery: bool,
    pub in_loss: bool,
    pub recoveries: u64,
    pub timeouts: u64,
    pub undone: u64,
    pub min_rtt_ns: u64,
    pub srtt_ns: u64,
    pub rto_ns: u64,
}

/// The most recently sent segment among those delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    newest: Option<u64>,
    rtt: Micros,
    /// One past the highest segment selectively acknowledged.
    highest: u32,
    reordering: bool,
    steps: u64,
    persist: u32,
    /// Whether a duplicate was reported that has not yet widened the window.
    duplicate: bool,
    /// Bytes delivered when the window was last widened.
    widened_at: u64,
}

#[derive(Debug, Default)]
pub struct Naive {
    pub segments: Vec<Segment>,
    pub first: u32,
    pub next: u32,
    pub delivered_bytes: u64,
    pub lost_bytes: u64,
    pub resent_bytes: u64,
    /// Segments sent again, and those reported as duplicates.
    resent: u64,
    duplicates: u64,
    /// Bytes of duplicates, which count as delivered (Linux: `tcp_dsack_seen`).
    duplicate_bytes: u64,
    transmissions: u64,
    rack: Rack,
    /// RecoveryPoint.
    high: u32,
    /// Next segment when a probe was sent, and whether it repeated the last one.
    probe: Option<(u32, bool)>,
    /// When the first retransmission for the reduction that may be undone was sent.
    undo: Option<Option<Micros>>,
    first_again: Option<Micros>,
    timeouts_in_a_row: u32,
    /// When the retransmission timer was started, and the longest timeout since. (RFC 6298 keeps
    /// the one it was started with; Linux's `tcp_rto_delta_us` takes the present one.)
    started: Micros,
    rto_ns: u64,
}

impl Naive {
    pub fn on_new(&mut self, now: Micros, bytes: u64, rto_ns: u64) {
        self.transmissions += 1;
        // RFC 6298, section 5.1: started if it is not running.
        if self.segments.is_empty() {
            self.start_timer(now, rto_ns);
        }
        self.segments.push(Segment {
            number: self.next,
            bytes,
            sent_at: now,
            order: self.transmissions,
            delivered: self.counted_bytes(),
            sacked: false,
            lost: false,
            again: false,
            ever_again: false,
            judged: false,
        });
        self.next += 1;
    }

    pub fn on_again(&mut self, now: Micros, number: u32, rto_ns: u64) {
        self.transmissions += 1;
        // Linux: `tcp_xmit_retransmit_queue` (RFC 6298, section 5.6, only after a timeout).
        if number == self.first {
            self.start_timer(now, rto_ns);
        }
        let (order, delivered) = (self.transmissions, self.counted_bytes());
        let segment = self.segment(number);
        segment.sent_at = now;
        segment.order = order;
        segment.delivered = delivered;
        segment.again = true;
        segment.ever_again = true;
        segment.judged = false;
        self.resent += 1;
        self.resent_bytes += self.segment(number).bytes;
        self.first_again = self.first_again.or(Some(now));
        if let Some(stamp) = &mut self.undo {
            *stamp = stamp.or(Some(now));
        }
    }

    pub fn on_probe(&mut self, now: Micros, repeated: bool, rto_ns: u64) {
        // RFC 8985, section 7.3: the timer is armed from when the probe was sent.
        self.start_timer(now, rto_ns);
        self.probe = Some((self.next, repeated));
    }

    fn start_timer(&mut self, now: Micros, rto_ns: u64) {
        (self.started, self.rto_ns) = (now, rto_ns);
    }

    /// Returns when the retransmission timer expires at the latest.
    pub fn timeout_by_ns(&self) -> u64 {
        self.started * 1000 + self.rto_ns
    }

    fn segment(&mut self, number: u32) -> &mut Segment {
        let found = self.segments.iter_mut().find(|segment| segment.number == number);
        found.expect("only what is outstanding is sent again")
    }

    /// RFC 6675, NextSeg rule 1.
    pub fn lowest_to_send_again(&self) -> Option<u32> {
        let waits = |segment: &&Segment| segment.lost && !segment.again && !segment.sacked;
        self.segments.iter().find(waits).map(|segment| segment.number)
    }

    /// RFC 6675, SetPipe.
    pub fn in_flight(&self) -> u64 {
        let copies = |s: &Segment| u64::from(!s.sacked && !s.lost) + u64::from(s.again);
        self.segments.iter().map(|segment| segment.bytes * copies(segment)).sum()
    }

    /// Processes an ACK; the sender was in the state `before`, and then in `after`.
    pub fn on_ack(&mut self, now: Micros, ack: &Acknowledgement, before: View, after: View) {
        let prior_first = self.first;
        let highest = self.rack.highest;
        let mut late = self.take_duplicate(ack);
        let mut newest = None;
        let (any_sacked, sacked) =
            self.take_blocks(now, ack, before.min_rtt_ns, &mut late, &mut newest);
        // Linux: `tcp_sacktag_write_queue` looks at reordering unless in Loss that is not undone.
        let top = (self.rack.highest.max(1) - 1).max(ack.number);
        if late.is_some_and(|late| late < top) && (!before.in_loss || self.undo.is_some()) {
            self.rack.reordering = true;
        }
        self.take_cumulative(now, ack, highest, before.min_rtt_ns, &mut newest);
        if let Some((_, delivered)) = newest {
            self.settle_window(delivered);
        }
        let advanced = self.first > prior_first;
        let sacked_before_first = self.segments.first().zip(sacked);
        let sacked_before_first =
            sacked_before_first.is_some_and(|(first, oldest)| oldest < first.sent_at);
        // RFC 6298, sections 5.2 and 5.3: new data acknowledged. Linux also takes the report of
        // data that was sent before the first segment was last sent (`tcp_clean_rtx_queue`).
        if advanced || sacked_before_first {
            self.start_timer(now, after.rto_ns);
        }
        self.rto_ns = self.rto_ns.max(after.rto_ns);
        let sacked = any_sacked;
        self.end_probe(ack, advanced, sacked);

        let recovering = before.in_recovery || before.in_loss;
        let ended = recovering && self.first >= self.high;
        let undone = after.undone > before.undone;
        let delayed = self.undo.is_some_and(|stamp| stamp.is_none_or(|stamp| ack.echo < stamp));
        let partial = before.in_recovery && !ended && advanced && delayed;
        let retransmitting = self.segments.iter().any(|segment| segment.again);
        if partial {
            self.rack.reordering = true;
            assert_eq!(undone, !retransmitting, "a delayed original fills a hole");
        }
        // Linux: `tcp_try_undo_recovery` counts what is not undone, and `tcp_try_undo_dsack` counts
        // one more.
        if ended && !undone {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        if undone && !ended && !partial && !before.in_loss {
            self.rack.persist = (self.rack.persist + 1).min(16);
        }
        if undone {
            self.undo = None;
            if !ended && (before.in_loss || partial) {
                self.segments.iter_mut().for_each(|segment| segment.lost = false);
            }
        }
        let still = recovering && !ended && !undone;
        let anything = self.segments.iter().any(|segment| segment.sacked);
        if (anything || still) && (undone || !partial) {
            self.detect(now, still, after);
        }
        if advanced {
            self.timeouts_in_a_row = 0;
        }
        self.note_recovery(before, after);
    }

    fn note_recovery(&mut self, before: View, after: View) {
        if after.recoveries > before.recoveries {
            self.high = self.next;
            self.probe = None;
            let out = self.segments.iter().any(|segment| segment.again);
            if !out {
                self.first_again = None;
            }
            self.undo = Some(self.first_again);
        }
    }

    /// Bytes delivered, duplicates included.
    fn counted_bytes(&self) -> u64 {
        self.delivered_bytes + self.duplicate_bytes
    }

    /// Returns the segment if it had arrived above a hole and was sent again: it was late.
    fn take_duplicate(&mut self, ack: &Acknowledgement) -> Option<u32> {
        let number = ack.duplicate?;
        let of_probe = self.probe.is_some_and(|(high, _)| high == number + 1);
        self.rack.duplicate |= self.rack.reordering && !of_probe;
        self.duplicates += 1;
        if self.duplicates <= self.resent {
            self.duplicate_bytes += 1448;
        }
        let known = self.segments.iter().any(|s| s.number == number && s.sacked && s.ever_again);
        known.then_some(number)
    }

    /// Linux: `tcp_rack_update_reo_wnd`, for an ACK that delivers data; the newest of it was sent
    /// when `delivered` bytes were. (RFC 8985, section 6.2, step 4: once per round of SND.UNA.)
    fn settle_window(&mut self, delivered: u64) {
        if std::mem::take(&mut self.rack.duplicate) && delivered >= self.rack.widened_at {
            self.rack.steps += 1;
            self.rack.persist = 16;
            self.rack.widened_at = self.counted_bytes();
        } else if self.rack.persist == 0 {
            self.rack.steps = 0;
        }
    }

    /// Returns whether anything was newly reported, and when the oldest segment of it that was
    /// sent once left.
    fn take_blocks(
        &mut self,
        now: Micros,
        ack: &Acknowledgement,
        min_rtt_ns: u64,
        late: &mut Option<u32>,
        newest: &mut Option<(u64, u64)>,
    ) -> (bool, Option<Micros>) {
        let (mut any, mut oldest) = (false, None::<Micros>);
        let mut numbers: Vec<u32> = ack.blocks.iter().flat_map(|&(a, b)| a..b).collect();
        numbers.sort_unstable();
        for number in numbers {
            let place = self.segments.iter().position(|s| s.number == number && !s.sacked);
            let Some(place) = place else { continue };
            any = true;
            let segment = self.segments[place].clone();
            if !segment.ever_again && number < self.rack.highest {
                *late = Some(late.map_or(number, |late| late.min(number)));
            }
            if !segment.ever_again {
                oldest = Some(oldest.map_or(segment.sent_at, |at| at.min(segment.sent_at)));
            }
            self.rack.highest = self.rack.highest.max(number + 1);
            *newest = (*newest).max(Some((segment.order, segment.delivered)));
            self.delivered(now, &segment, min_rtt_ns, false);
            let kept = &mut self.segments[place];
            (kept.sacked, kept.lost, kept.again) = (true, false, false);
        }
        (any, oldest)
    }

    fn take_cumulative(
        &mut self,
        now: Micros,
        ack: &Acknowledgement,
        highest: u32,
        min_rtt_ns: u64,
        newest: &mut Option<(u64, u64)>,
    ) {
        while self.segments.first().is_some_and(|segment| segment.number < ack.number) {
            let segment = self.segments.remove(0);
            self.first = segment.number + 1;
            if !segment.sacked {
                // Overtaken by segments that earlier ACKs reported.
                self.rack.reordering |= !segment.ever_again && segment.number < highest;
                *newest = (*newest).max(Some((segment.order, segment.delivered)));
                // RFC 8985, section 6.2, step 2: the timestamp is older than the retransmission.
                let original = ack.echo < segment.sent_at;
                self.delivered(now, &segment, min_rtt_ns, original);
            }
        }
    }

    fn delivered(&mut self, now: Micros, segment: &Segment, min_rtt_ns: u64, original: bool) {
        self.delivered_bytes += segment.bytes;
        let rtt = now - segment.sent_at;
        if segment.ever_again && (original || rtt * 1000 < min_rtt_ns) {
            return;
        }
        self.rack.rtt = rtt;
        self.rack.newest = self.rack.newest.max(Some(segment.order));
    }

    fn end_probe(&mut self, ack: &Acknowledgement, advanced: bool, sacked: bool) {
        let Some((high, repeated)) = self.probe else { return };
        let reported = ack.duplicate.is_some_and(|number| number + 1 == high);
        let done = !repeated || reported || ack.number > high || !(advanced || sacked);
        if ack.number >= high && done {
            self.probe = None;
        }
    }

    /// RFC 8985, section 6.2, step 5, over all segments.
    fn detect(&mut self, now: Micros, recovering: bool, view: View) {
        let sacked = self.segments.iter().filter(|segment| segment.sacked).count();
        let steps = self.rack.steps + 1;
        let mut window_ns = (view.min_rtt_ns / 4 * steps).min(view.srtt_ns);
        if !self.rack.reordering && (recovering || sacked >= 3) {
            window_ns = 0;
        }
        let Some(newest) = self.rack.newest else { return };
        for segment in &mut self.segments {
            // "Skip ones marked lost but not yet retransmitted".
            let candidate = !segment.judged && (!segment.lost || segment.again);
            let overtaken = segment.order < newest;
            let due_ns = (segment.sent_at + self.rack.rtt) * 1000 + window_ns;
            let overdue = due_ns <= now * 1000;
            if !segment.sacked && candidate && overtaken && overdue {
                self.lost_bytes += segment.bytes;
                (segment.lost, segment.again, segment.judged) = (true, false, true);
            }
        }
    }

    /// Processes the reordering timer.
    pub fn on_reordering_timer(&mut self, now: Micros, before: View, after: View) {
        self.detect(now, before.in_recovery || before.in_loss, after);
        self.note_recovery(before, after);
    }

    /// Processes the retransmission timer (RFC 8985, section 6.3).
    pub fn on_timeout(&mut self, now: Micros, before: View, after: View) {
        // RFC 6298, sections 5.5 and 5.6: twice the timeout from now on.
        self.start_timer(now, after.rto_ns);
        let recovering = before.in_recovery || before.in_loss;
        let anew = !recovering
            || self.first >= self.high
            || (before.in_loss && self.timeouts_in_a_row == 0);
        if anew {
            self.first_again = None;
            self.undo = Some(None);
        }
        self.timeouts_in_a_row += 1;
        self.high = self.next;
        self.probe = None;
        let (first, rtt) = (self.first, self.rack.rtt);
        for segment in &mut self.segments {
            let recent = segment.number != first && segment.sent_at + rtt > now;
            if segment.sacked || recent {
                continue;
            }
            if !segment.lost || segment.again {
                self.lost_bytes += segment.bytes;
            }
            (segment.lost, segment.again) = (true, false);
        }
    }
}
