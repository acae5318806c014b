//! A sender's scoreboard in the plainest way: one list of segments, walked from end
//! to end each time. Written from RFC 8985 (RACK-TLP), 6298 (timeout), 5682 (F-RTO),
//! 3522 (Eifel) and 2883 (D-SACK), without the sender's code. Where Linux does not do
//! what they say, [`Ways`] names both ways.

mod recovery;
mod timer;
mod ways;

pub use ways::{Way, Ways};

pub type Nanos = u64;

const MS: Nanos = 1_000_000;
/// Duplicate threshold (RFC 5681).
const DUP_THRESH: usize = 3;
/// Recoveries without a D-SACK after which the reordering window is small again
/// (RFC 8985, section 6.2, step 4).
const PERSIST: u32 = 16;
/// `TCP_TIMEOUT_MIN`.
const TIMEOUT_MIN: Nanos = 2_000_000;
/// Linux's smallest timeout, which is also its largest delay of an ACK.
const RTO_MIN: Nanos = 200_000_000;
const RTO_MAX: Nanos = 120_000_000_000;
/// `net.ipv4.tcp_reordering` and `net.ipv4.tcp_max_reordering`.
const REORDERING: u32 = 3;
const MAX_REORDERING: u32 = 300;

#[derive(Clone, Debug)]
pub struct Segment {
    pub number: u32,
    pub bytes: u64,
    /// Times of its transmissions.
    sent: Vec<Nanos>,
    /// Its place in the order of all transmissions.
    order: u64,
    sacked: bool,
    /// The transmissions before the last retransmission are lost.
    lost: bool,
    /// A retransmission is on its way.
    again: bool,
    /// A probe of it is out although it arrived.
    probe_out: bool,
    /// It was last sent as a probe.
    was_probe: bool,
    /// Not marked since it was last sent: `Segment.xmit_ts` is not infinite.
    timed: bool,
    /// Segments delivered when it was last sent, duplicates included.
    delivered_before: u64,
}

impl Segment {
    fn end(&self) -> u32 {
        self.number + 1
    }

    fn last_sent(&self) -> Nanos {
        *self.sent.last().expect("it was sent")
    }

    fn retransmitted(&self) -> bool {
        self.sent.len() > 1
    }
}

#[derive(Clone, Debug, Default)]
pub struct Acknowledgement {
    pub number: u32,
    pub blocks: Vec<(u32, u32)>,
    pub duplicate: Option<u32>,
    /// In microseconds.
    pub echo: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    Disorder,
    Recovery,
    Loss,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Reordering,
    Probe,
    Retransmission,
}

/// What the estimator says after an event.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub srtt: Nanos,
    pub rto: Nanos,
}

/// What an ACK brought.
#[derive(Default)]
struct News {
    advanced: bool,
    sacked: bool,
    dsack: bool,
    /// A segment below the recovery point that was never retransmitted.
    original: bool,
    of_probe: bool,
    retransmitted_acked: bool,
    /// The lowest segment that a D-SACK shows to have been late.
    late_duplicate: Option<u32>,
    last_acked: Option<Nanos>,
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
}

#[derive(Debug)]
pub struct Naive {
    pub ways: Ways,
    pub segments: Vec<Segment>,
    pub first: u32,
    pub next: u32,
    /// Segments the application has written.
    pub written: u32,
    pub delivered_bytes: u64,
    /// Segments delivered, needless ones included (`tcp_dsack_seen`).
    pub delivered: u64,
    pub lost_bytes: u64,
    pub resent_bytes: u64,
    pub state: State,
    /// `RecoveryPoint`.
    high: u32,
    pub recoveries: u64,
    pub timeouts: u64,
    pub probes: u64,
    /// Segments that no longer counted as lost when a reduction was undone.
    pub unmarked: u64,
    pub undone: u64,
    pub timer: Option<(Kind, Nanos)>,
    estimate: Estimate,
    /// When the retransmission timer was last started.
    rto_from: Nanos,
    /// When the retransmission timer was last due.
    deadline: Nanos,
    backoff: u32,
    /// RTT samples with their times.
    samples: Vec<(Nanos, Nanos)>,
    rack_rtt: Nanos,
    /// The smallest RTT before, or with, this ACK.
    rack_min_rtt: Nanos,
    rack_sent: Option<(Nanos, u64)>,
    transmissions: u64,
    rack_advanced: bool,
    fack: u32,
    reordering_seen: bool,
    /// Degree of reordering (Linux's `reordering`).
    pub degree: u32,
    mult: u64,
    persist: u32,
    dsack_round: Option<u32>,
    dsack_pending: bool,
    dsack_delivered: u64,
    dsacks: u64,
    resent: u64,
    /// End of the probe's episode, and whether it repeated a segment.
    probe: Option<(u32, bool)>,
    pub probe_due: bool,
    pub timeout_due: bool,
    undo_from: Option<u32>,
    undo_left: Option<i64>,
    first_resend: Option<Nanos>,
    frto: bool,
    /// What was retransmitted, without probes.
    resent_numbers: Vec<u32>,
    pub new_data_first: bool,
    /// This ACK restarts the retransmission timer.
    restarts: bool,
    retransmits: u32,
}

impl Naive {
    pub fn new(ways: Ways, written: u32, now: Nanos, rtt: Nanos, estimate: Estimate) -> Naive {
        Naive {
            ways,
            segments: Vec::new(),
            first: 0,
            next: 0,
            written,
            delivered_bytes: 0,
            delivered: 0,
            lost_bytes: 0,
            resent_bytes: 0,
            state: State::Open,
            high: 0,
            recoveries: 0,
            timeouts: 0,
            probes: 0,
            unmarked: 0,
            undone: 0,
            timer: None,
            estimate,
            rto_from: now,
            deadline: Nanos::MAX,
            backoff: 0,
            samples: vec![(now, rtt)],
            rack_rtt: 0,
            rack_min_rtt: rtt,
            rack_sent: None,
            transmissions: 0,
            rack_advanced: false,
            fack: 0,
            reordering_seen: false,
            degree: REORDERING,
            mult: 1,
            persist: 0,
            dsack_round: None,
            dsack_pending: false,
            dsack_delivered: 0,
            dsacks: 0,
            resent: 0,
            probe: None,
            probe_due: false,
            timeout_due: false,
            undo_from: None,
            undo_left: None,
            first_resend: None,
            frto: false,
            resent_numbers: Vec::new(),
            new_data_first: false,
            restarts: false,
            retransmits: 0,
        }
    }

    pub fn min_rtt(&self) -> Nanos {
        self.samples.iter().map(|sample| sample.1).min().expect("the SYN's")
    }

    fn rto(&self) -> Nanos {
        (self.estimate.rto << self.backoff).min(RTO_MAX)
    }

    pub fn in_flight(&self) -> u64 {
        let mut bytes = 0;
        for segment in &self.segments {
            if !segment.sacked && !segment.lost {
                bytes += segment.bytes;
            }
            if segment.again {
                bytes += segment.bytes;
            }
        }
        bytes
    }

    pub fn lowest_to_send_again(&self) -> Option<u32> {
        let found = self.segments.iter().find(|s| s.lost && !s.again && !s.sacked);
        found.map(|segment| segment.number)
    }

    pub fn bytes(&self, number: u32) -> u64 {
        let found = self.segments.iter().find(|segment| segment.number == number);
        found.map_or(0, |segment| segment.bytes)
    }

    fn any_lost(&self) -> bool {
        self.segments.iter().any(|s| s.lost)
    }

    fn resent_out(&self) -> usize {
        self.segments.iter().filter(|s| s.again).count()
    }

    fn sacked_out(&self) -> usize {
        self.segments.iter().filter(|s| s.sacked).count()
    }

    fn any_resent(&self) -> bool {
        let head = self.segments.first().is_some_and(Segment::retransmitted);
        self.resent_out() > 0 || head && self.ways.ever_resent == Way::Linux
    }

    pub fn on_new(&mut self, now: Nanos, bytes: u64, is_probe: bool) {
        let (number, idle) = (self.next, self.segments.is_empty());
        let (sacked, lost, again) = (false, false, false);
        let sent = vec![now];
        self.transmissions += 1;
        let order = self.transmissions;
        self.segments.push(Segment {
            number,
            bytes,
            sent,
            order,
            sacked,
            lost,
            again,
            probe_out: false,
            was_probe: false,
            timed: true,
            delivered_before: self.delivered,
        });
        self.next += 1;
        if is_probe {
            self.probed(now, false);
            return;
        }
        let starts = idle || matches!(self.timer, Some((Kind::Probe, _)));
        if !self.schedule_probe(now, false) && starts {
            self.rearm_rto(now);
        }
    }

    pub fn on_again(&mut self, now: Nanos, number: u32, is_probe: bool) {
        self.resent += 1;
        // RFC 3522, section 3.2, step 2 speaks of the retransmission that a reduction came with;
        // nor do Linux's `undo_retrans` and `retrans_stamp` count a probe.
        if !is_probe {
            self.resent_numbers.push(number);
            self.undo_left = self.undo_left.map(|left| left.max(0) + 1);
            self.first_resend = self.first_resend.or(Some(now));
        }
        let head = number == self.first;
        let segment = self.segments.iter_mut().find(|s| s.number == number).expect("outstanding");
        segment.sent.push(now);
        self.transmissions += 1;
        segment.order = self.transmissions;
        segment.delivered_before = self.delivered;
        segment.again = true;
        segment.was_probe = is_probe;
        segment.timed = true;
        self.resent_bytes += segment.bytes;
        if is_probe {
            self.probed(now, true);
        } else if head
            && self.ways.head_restarts == Way::Linux
            && !matches!(self.timer, Some((Kind::Reordering, _)))
        {
            self.start_rto(now);
        } else if head && self.ways.head_restarts == Way::Linux {
            self.rto_from = now;
            self.deadline = now + self.rto();
        }
    }

    /// RFC 8985, section 7.3.
    fn probed(&mut self, now: Nanos, repeated: bool) {
        self.probe = Some((self.next, repeated));
        self.probes += 1;
        self.probe_due = false;
        self.start_rto(now);
    }

    /// RFC 8985, section 6.2, step 2, for one segment.
    fn rack_update(&mut self, now: Nanos, segment: &Segment, echo: u64, check_echo: bool) {
        let sent = segment.last_sent();
        let rtt = now - sent;
        if segment.retransmitted() {
            if check_echo && echo < sent / 1000 {
                return;
            }
            if rtt < self.rack_min_rtt {
                return;
            }
        }
        self.rack_advanced = true;
        self.rack_rtt = rtt;
        if self.rack_sent.is_none_or(|last| self.place(segment) > last) {
            self.rack_sent = Some(self.place(segment));
        }
    }

    /// `RACK_sent_after`.
    fn place(&self, segment: &Segment) -> (Nanos, u64) {
        match self.ways.same_instant {
            Way::Rfc | Way::Linux => (segment.last_sent(), u64::from(segment.end())),
            Way::Knee => (segment.last_sent(), segment.order),
        }
    }

    /// RFC 8985, section 6.2, step 3, for one segment.
    fn detect_reordering(&mut self, segment: &Segment, sacked: bool) {
        let in_loss = self.state == State::Loss && self.undo_from.is_none();
        let counts = !(sacked && in_loss) || self.ways.loss_reordering == Way::Rfc;
        if segment.end() > self.fack {
            self.fack = segment.end();
        } else if segment.end() < self.fack && !segment.retransmitted() && counts {
            self.reordering_seen = true;
        }
    }

    /// One past the highest segment that is selectively acknowledged, or else the first
    /// outstanding one (`tcp_highest_sack_seq`).
    fn highest_sacked(&self) -> u32 {
        self.segments.iter().rfind(|s| s.sacked).map_or(self.first, Segment::end)
    }

    /// Linux's degree of reordering (`tcp_check_sack_reordering`): the distance from the lowest
    /// late segment to what overtook it.
    fn measure_reordering(&mut self, late: Option<u32>) {
        let (Some(late), highest) = (late, self.highest_sacked()) else { return };
        if late < highest {
            self.degree = self.degree.max((highest - late).min(MAX_REORDERING));
        }
    }

    pub fn on_ack(&mut self, now: Nanos, ack: &Acknowledgement, estimate: Estimate) {
        let mut news = News { advanced: ack.number > self.first, ..News::default() };
        let (prior_first, old) = (self.first, ack.number < self.first);
        let prior_highest = self.highest_sacked();
        self.new_data_first = false;
        self.restarts = false;
        if news.advanced {
            self.retransmits = 0;
        }
        if let Some(number) = ack.duplicate {
            self.on_dsack(number, prior_first, &mut news);
        }
        let is_held = |s: &Segment| ack.blocks.iter().any(|b| (b.0..b.1).contains(&s.number));
        let mut acked = Vec::new();
        let mut sacked = Vec::new();
        for segment in &self.segments {
            if segment.number < ack.number {
                news.retransmitted_acked |= segment.retransmitted();
            }
            if !segment.sacked && is_held(segment) {
                sacked.push(segment.clone());
            } else if !segment.sacked && segment.number < ack.number {
                acked.push(segment.clone());
            }
        }
        news.sacked = !sacked.is_empty();
        let measured = |s: &&Segment| !s.retransmitted();
        news.first_sacked = sacked.iter().find(measured).map(Segment::last_sent);
        news.last_sacked = sacked.iter().rfind(measured).map(Segment::last_sent);
        news.last_acked = acked.iter().rfind(measured).map(Segment::last_sent);

        let late = |s: &&Segment| !s.retransmitted() && s.number < prior_highest;
        let late_sacked = sacked.iter().find(late).map(|s| s.number);
        let late_acked = acked.iter().find(late).map(|s| s.number);
        let newest = acked.iter().chain(&sacked).max_by_key(|s| s.order);
        let delivered_before = newest.map(|s| s.delivered_before);

        // RFC 8985, section 6.2, step 1.
        let ignored = old && self.ways.old_ack == Way::Linux;
        let sample = if ignored { None } else { self.measure(now, ack.echo, &news) };
        if let Some(sample) = sample {
            self.samples.push((now, sample));
            self.samples.retain(|s| now - s.0 <= 300_000_000_000);
            self.backoff = 0;
            self.estimate = estimate;
        }
        self.rack_min_rtt = self.min_rtt();
        // Step 2.
        for segment in &sacked {
            self.rack_update(now, segment, ack.echo, self.ways.rack_echo == Way::Rfc);
        }
        for segment in &acked {
            self.rack_update(now, segment, ack.echo, true);
        }
        // Step 3.
        for (segment, sacked) in
            acked.iter().map(|s| (s, false)).chain(sacked.iter().map(|s| (s, true)))
        {
            self.detect_reordering(segment, sacked);
            news.original |= !segment.retransmitted() && segment.end() <= self.high;
            self.delivered += 1;
            self.delivered_bytes += segment.bytes;
        }
        for segment in &mut self.segments {
            if !segment.sacked && is_held(segment) {
                let out = segment.again && !segment.lost;
                let stays = self.ways.probe_sacked != Way::Rfc;
                segment.probe_out = out && (segment.was_probe || stays);
                segment.again = out && stays;
                segment.lost = false;
                segment.sacked = true;
            }
        }
        if self.state != State::Loss || self.undo_from.is_some() {
            let duplicate = news.late_duplicate;
            self.reordering_seen |= duplicate.is_some() && self.ways.dsack_reordering == Way::Linux;
            self.measure_reordering(duplicate.into_iter().chain(late_sacked).min());
        }
        if ignored {
            self.alert(now, &news, ack.echo, prior_first);
            return;
        }
        self.segments.retain(|s| s.number >= ack.number);
        self.first = self.first.max(ack.number);
        self.measure_reordering(late_acked);
        let head_sent = self.segments.first().map(Segment::last_sent);
        let sack_restarts = self.ways.sack_restarts == Way::Linux;
        let restart = news.advanced
            || sack_restarts
                && news
                    .first_sacked
                    .is_some_and(|first| head_sent.is_some_and(|head| first < head));
        self.restarts = restart;
        self.update_window_round(delivered_before);
        self.process_probe(ack.number, &news);
        let dubious = self.ways.plain_ack == Way::Rfc
            || !news.advanced
            || news.sacked
            || news.dsack
            || self.state != State::Open;
        let armed = dubious && self.alert(now, &news, ack.echo, prior_first);
        if restart && !armed && !self.schedule_probe(now, true) {
            if self.ways.rto_restart == Way::Rfc {
                self.timer = None;
            }
            self.rearm_rto(now);
        }
    }

    fn on_dsack(&mut self, number: u32, prior_first: u32, news: &mut News) {
        self.dsacks += 1;
        if self.probe.is_some_and(|(end, _)| end == number + 1) {
            news.of_probe = true;
        }
        if self.dsacks > self.resent && self.ways.dsack_beyond == Way::Linux {
            return;
        }
        if self.reordering_seen && !news.of_probe || self.ways.dsack_seen == Way::Rfc {
            self.dsack_pending = true;
        }
        news.dsack = true;
        self.delivered += 1;
        let counts = self.undo_from.is_some_and(|from| number + 1 > from);
        let outstanding = self.segments.iter_mut().find(|s| s.number == number);
        let resent = match outstanding {
            Some(segment) => {
                let was = segment.retransmitted();
                if segment.sacked {
                    news.late_duplicate = was.then_some(number);
                    segment.again = false;
                    // `tcp_init_undo` counts a probe until an ACK goes beyond it.
                    segment.probe_out &= self.probe.is_some_and(|(end, _)| end == number + 1);
                }
                was
            }
            None => number < prior_first,
        };
        let resent = match self.ways.probe_undo {
            Way::Linux => resent,
            _ if number < prior_first => true,
            _ => self.resent_numbers.contains(&number),
        };
        if counts && resent {
            self.undo_left = self.undo_left.map(|left| if left > 0 { left - 1 } else { left });
        }
    }

    /// The sample of the smallest RTT: RFC 6298, section 3 (Karn's algorithm), and
    /// RFC 7323, section 4.1, with a clock of milliseconds.
    fn measure(&self, now: Nanos, echo: u64, news: &News) -> Option<Nanos> {
        let acked = news.last_acked.filter(|_| !news.retransmitted_acked);
        let sacked = news.last_sacked;
        let by_echo = || news.advanced.then(|| (now / MS - echo / 1000).max(1) * MS);
        sacked.or(acked).map(|sent| now - sent).or_else(by_echo)
    }

    /// RFC 8985, section 6.2, step 4, its first half. Of what this ACK delivers, the segment sent
    /// last was sent when so many were delivered.
    fn update_window_round(&mut self, delivered_before: Option<u64>) {
        if self.ways.dsack_round == Way::Rfc {
            if self.dsack_round.is_some_and(|round| self.first >= round) {
                self.dsack_round = None;
            }
            if std::mem::take(&mut self.dsack_pending) && self.dsack_round.is_none() {
                self.dsack_round = Some(self.next);
                self.mult += 1;
                self.persist = PERSIST;
            } else if self.persist == 0 {
                self.mult = 1;
            }
            return;
        }
        let Some(before) = delivered_before else { return };
        if std::mem::take(&mut self.dsack_pending) && before >= self.dsack_delivered {
            self.mult = (self.mult + 1).min(255);
            self.dsack_delivered = self.delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.mult = 1;
        }
    }

    /// RFC 8985, section 6.2, step 4, its second half.
    fn reordering_window(&self) -> Nanos {
        if !self.reordering_seen {
            if matches!(self.state, State::Recovery | State::Loss) {
                return 0;
            }
            if self.sacked_out() >= DUP_THRESH {
                return 0;
            }
        }
        (self.mult * (self.min_rtt() / 4)).min(self.estimate.srtt)
    }

    /// RFC 8985, section 6.2, step 5. Returns how long it takes until the last of those
    /// that may be lost is.
    fn detect_loss(&mut self, now: Nanos) -> Nanos {
        let window = self.reordering_window();
        let Some(rack_sent) = self.rack_sent else { return 0 };
        let mut timeout = 0;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.sacked || !segment.timed || (segment.lost && !segment.again) {
                continue;
            }
            if rack_sent > self.place(segment) {
                let lost_at = segment.last_sent() + self.rack_rtt + window;
                if lost_at <= now {
                    self.mark(index);
                    self.segments[index].timed = false;
                } else {
                    timeout = timeout.max(lost_at - now);
                }
            }
        }
        timeout
    }

    fn mark(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if !segment.lost || segment.again {
            self.lost_bytes += segment.bytes;
        }
        if segment.lost || self.ways.probe_lost == Way::Rfc {
            segment.again = false;
        }
        segment.lost = true;
    }
}
