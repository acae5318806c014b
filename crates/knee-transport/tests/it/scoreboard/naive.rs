//! A sender's scoreboard in the plainest way: one list of segments, walked from end
//! to end each time. Written from RFC 8985 (RACK-TLP), 6298 (timeout), 5682 (F-RTO),
//! 3522 (Eifel) and 2883 (D-SACK), without the sender's code. Where Linux does not do
//! what they say, [`Ways`] names both ways.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Rfc,
    Linux,
    /// Neither's.
    Knee,
}

macro_rules! ways {
    ($($(#[$doc:meta])* $name:ident: $knee:ident,)*) => {
        /// How each rule is read.
        #[derive(Clone, Copy, Debug)]
        pub struct Ways { $($(#[$doc])* pub $name: Way,)* }

        impl Ways {
            /// As the sender does.
            pub const KNEE: Ways = Ways { $($name: Way::$knee,)* };

            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// The sender's ways but for one: the RFC's instead of another, else Linux's.
            pub fn but(name: &str) -> Ways {
                let mut ways = Ways::KNEE;
                $(if name == stringify!($name) {
                    ways.$name = if ways.$name == Way::Rfc { Way::Linux } else { Way::Rfc };
                    return ways;
                })*
                panic!("no way is called {name}");
            }
        }
    };
}

ways! {
    /// RFC 8985, section 6.3: lost after the RTT and the reordering window.
    /// `tcp_timeout_mark_lost`: without the window.
    lost_on_timeout: Linux,
    /// RFC 8985, section 6.2, step 2: an echo older than the retransmission tells nothing
    /// of it. `tcp_skb_spurious_retrans`: where it is acknowledged, not where it is
    /// selectively acknowledged.
    rack_echo: Linux,
    /// RFC 8985, `RACK_sent_after`, and Linux's `tcp_skb_sent_after` break ties by
    /// sequence. The sender knows the order of transmissions.
    same_instant: Knee,
    /// RFC 8985, section 6.2, step 5: losses are looked for at each ACK.
    /// `tcp_ack_is_dubious`: not at one in Open that only advances.
    plain_ack: Linux,
    /// RFC 5682, section 3.1, step 2a: an ACK that covers the recovery point decides nothing.
    /// `tcp_process_loss`: the timeout was spurious if it covers an original.
    frto_whole: Linux,
    /// RFC 8985 lets the reordering timer run beyond the retransmission timeout, Linux up
    /// to one timeout from now. The sender does not.
    reordering_bounded: Knee,
    /// RFC 8985, section 6.2, step 5: the reordering timer runs on for what is not lost yet.
    /// `tcp_rack_reo_timeout`: the next ACK or the timeout decides.
    reordering_rearmed: Rfc,
    /// RFC 6675, SetPipe: what is selectively acknowledged is not in flight.
    /// `tcp_sacktag_one`: a retransmission of what was not lost still is, and its D-SACK is
    /// expected.
    probe_sacked: Rfc,
    /// RFC 3522, section 3.2: `RetransmitTS` is that of the retransmission that begins
    /// recovery. `tcp_retrans_stamp_cleanup`: of the oldest one still out.
    stamp_in_recovery: Linux,
    /// The same at a timeout; `tcp_enter_loss` leaves `retrans_stamp`.
    stamp_in_timeout: Rfc,
    /// Whether undoing a timeout forgets `RetransmitTS`; `tcp_try_undo_loss` does not.
    stamp_in_loss_undo: Linux,
    /// RFC 8985, section 6.2: at each ACK. `tcp_ack` leaves the window and the RTT alone at
    /// an ACK below the first outstanding segment.
    old_ack: Rfc,
    /// RFC 8985, section 7: a probe is not a recovery. `tcp_init_undo`: its D-SACK is
    /// expected too.
    probe_undo: Linux,
    /// RFC 3522 asks for retransmissions that are out. `tcp_any_retrans_done` asks also
    /// whether the first segment ever was retransmitted.
    ever_resent: Rfc,
    /// RFC 8985, section 7.2: a probe is no later than the retransmission timer.
    /// `tcp_schedule_loss_probe`: after new data, than that would be if it counted from the
    /// first segment; once that time has passed, without a bound.
    probe_bounded: Knee,
    /// RFC 8985, section 6.2, step 4: any D-SACK widens the window. `tcp_dsack_seen`: after
    /// reordering was seen, and not a probe's.
    dsack_seen: Linux,
    /// The same, and `tcp_dsack_seen` ignores more D-SACKs than retransmissions.
    dsack_beyond: Linux,
    /// What is unmarked can be marked again, or (`tcp_rack_detect_loss` has taken it from
    /// the list) only when it is sent again.
    undone_timed: Linux,
    /// RFC 5682, section 3.1, step 1: not if a timeout's recovery goes on.
    /// `tcp_enter_loss`: also when the same segment times out again.
    frto_again: Linux,
    /// RFC 6675, section 5.1: recovery from a timeout goes on. `tcp_fastretrans_alert`,
    /// `FLAG_LOST_RETRANS`: fast recovery begins.
    lost_again_recovers: Rfc,
    /// RFC 8985, `Segment.lost`: all of its transmissions. `tcp_mark_skb_lost`: a probe's
    /// stays in flight.
    probe_lost: Rfc,
    /// RFC 6298, section 5.3: from the last ACK of new data. `tcp_rto_delta_us`: after
    /// another timer, from the last transmission of the first segment.
    rto_from: Linux,
    /// RFC 6298, section 5.3: at an ACK of new data. `tcp_rearm_rto`: as after another
    /// timer, if one runs.
    rto_restart: Rfc,
    /// RFC 8985, section 6.2, step 4: the round ends with SND.UNA after this ACK.
    /// `tcp_rack_update_reo_wnd`: with the delivery of what was sent after the window was
    /// widened; the window changes only when something is delivered.
    dsack_round: Linux,
    /// RFC 8985, section 6.2, step 4: each recovery that ends counts.
    /// `tcp_try_undo_recovery`: unless it is undone; `tcp_try_undo_dsack`: one more is granted.
    undone_persist: Linux,
    /// RFC 8985, section 6.2: losses are looked for at each ACK. `tcp_rack_mark_lost`: if
    /// something sent later arrived.
    every_ack: Rfc,
    /// RFC 6298, section 5.3: new data acknowledged. `tcp_clean_rtx_queue`: also
    /// selectively, if sent before the first segment was.
    sack_restarts: Linux,
    /// RFC 8985, section 6.2, step 3: only what was not retransmitted shows reordering.
    /// `tcp_try_undo_partial`: an old echo does too.
    undo_reordering: Linux,
    /// The same; `tcp_sacktag_one`: so does the D-SACK of a retransmitted segment that is
    /// selectively acknowledged.
    dsack_reordering: Linux,
    /// The same, in any state. `tcp_sacktag_write_queue`: what is selectively acknowledged
    /// shows none after a timeout that cannot be undone.
    loss_reordering: Linux,
    /// RFC 6298, section 5.1: a timer that runs goes on. `tcp_xmit_retransmit_queue`: the
    /// first segment's retransmission starts it again.
    head_restarts: Linux,
}

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
        if !is_probe {
            self.resent_numbers.push(number);
        }
        self.undo_left = self.undo_left.map(|left| left.max(0) + 1);
        self.first_resend = self.first_resend.or(Some(now));
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

    fn rearm_rto(&mut self, now: Nanos) {
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

    fn start_rto(&mut self, now: Nanos) {
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
    fn schedule_probe(&mut self, now: Nanos, advancing: bool) -> bool {
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
                    segment.probe_out = false;
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

    fn start_reordering(&mut self, now: Nanos, timeout: Nanos, restarts: bool) {
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

    fn enter_recovery(&mut self) {
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

    fn init_undo(&mut self, timeout: bool) {
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
    fn alert(&mut self, now: Nanos, news: &News, echo: u64, prior_first: u32) -> bool {
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
    fn process_probe(&mut self, number: u32, news: &News) {
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
