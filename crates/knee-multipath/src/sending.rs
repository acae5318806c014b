//! The sending end of a multipath connection, above its paths.
//!
//! It needs of a path only what any datagram path can give: that it sends,
//! its RTT, window and bytes in flight, when it was last heard, and what it
//! delivered. TCP subflows are one kind of path, QUIC paths another.
//!
//! What goes first: data whose path fell silent or is gone, on another path;
//! then what the scheduler chooses; then, when nothing new may be sent,
//! reinjection of what a slower path would deliver later.

use crate::chunks::{Chunk, Chunks};
use crate::silence::{Silence, SilenceRule};
use crate::source::Source;
use knee_sched::{Decision, Oldest, PATHS_MAX, Path, PathSet, Place, Scheduler, Status, View};
use knee_units::Time;
use std::collections::VecDeque;

/// Outstanding packets, from the oldest on, that are looked at for one that
/// another path would deliver sooner.
const REINJECTION_SCAN: u64 = 256;
/// For so long an acknowledgement may be late on any path: a delayed ACK, 40 ms
/// on Linux, and the grain of its clock.
const ACK_LATENESS: Time = Time::from_millis(41);

/// When what was sent is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// When the peer acknowledges the connection's data up to there
    /// ([`Sending::on_data_ack`]), as in MPTCP.
    Cumulative,
    /// As soon as a path reports it delivered ([`Sending::on_delivered`]): the
    /// peer keeps what it acknowledged on a path.
    OnDelivery,
}

/// What the sending end of a connection is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes of a packet.
    pub mss: u16,
    /// Bytes that the peer lets through at first.
    pub window: u64,
    /// A fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// When what was sent is let go.
    pub release: Release,
    /// When a path counts as silent.
    pub silence: SilenceRule,
}

/// What a path is to be given now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<P> {
    /// The path.
    pub path: usize,
    /// Number of the packet within the connection.
    pub chunk: u64,
    /// What the source calls its data.
    pub piece: P,
    /// First byte within the connection, in the order of cutting; for a source
    /// of one stream the data sequence number.
    pub offset: u64,
    /// Bytes.
    pub len: u16,
}

/// What the connection counts, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultipathCounters {
    /// Bytes given to a path that another was given before.
    pub reinjected_bytes: u64,
    /// Paths found silent.
    pub suspicions: u64,
}

/// The sending end of a connection over several paths.
pub struct Sending<S: Source> {
    chunks: Chunks<S>,
    scheduler: Box<dyn Scheduler>,
    repeats_beside_new: bool,
    keeps_choice: bool,
    plans_order: bool,
    reinjection: bool,
    release: Release,
    acknowledged: u64,
    window_end: u64,
    mss: u64,
    /// What paths lost, or hold that are silent or gone, in the order in which
    /// that was found.
    stranded: VecDeque<u64>,
    /// For each path, before this every packet was given to it or delivered.
    /// What it lost stays behind: it is stranded.
    repeat_from: [u64; PATHS_MAX],
    present: PathSet,
    silence: Silence,
    /// A path whose window is to be halved.
    penalty: Option<usize>,
    /// The path that was given the head of new data last, if the scheduler
    /// keeps to it.
    kept: Option<usize>,
    /// Packets that the decision in force still gives to these paths.
    copies: Option<(u64, PathSet)>,
    /// When a packet becomes overdue that a path with room would repeat then.
    overdue_at: Time,
    counters: MultipathCounters,
}

impl<S: Source> Sending<S> {
    /// A connection that has sent nothing.
    pub fn new(settings: Settings, source: S, scheduler: Box<dyn Scheduler>) -> Sending<S> {
        Sending {
            chunks: Chunks::new(source, settings.mss),
            repeats_beside_new: scheduler.repeats_beside_new(),
            keeps_choice: scheduler.keeps_choice(),
            plans_order: scheduler.plans_order(),
            scheduler,
            reinjection: settings.reinjection,
            release: settings.release,
            acknowledged: 0,
            window_end: settings.window,
            mss: u64::from(settings.mss),
            stranded: VecDeque::new(),
            repeat_from: [0; PATHS_MAX],
            present: PathSet::default(),
            silence: Silence::new(settings.silence),
            penalty: None,
            kept: None,
            copies: None,
            overdue_at: Time::MAX,
            counters: MultipathCounters::default(),
        }
    }

    /// Where the data comes from.
    pub fn source(&self) -> &S {
        self.chunks.source()
    }

    /// The same, to be given more.
    pub fn source_mut(&mut self) -> &mut S {
        self.chunks.source_mut()
    }

    /// All that the source had has arrived and was let go.
    pub fn is_complete(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes before the first that is still to be acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// New data waits, but the shared window is full.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        let unsent = self.chunks.unsent();
        let left = self.window_end.saturating_sub(self.chunks.head_offset());
        unsent > 0 && left < self.mss.min(unsent)
    }

    /// Bytes written and not yet given to any path.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.chunks.unsent()
    }

    /// Counters since the start.
    pub fn counters(&self) -> &MultipathCounters {
        &self.counters
    }

    /// A path can be used from now on.
    pub fn on_path_up(&mut self, path: usize) {
        self.present.insert(path);
        self.repeat_from[path] = self.chunks.base();
        self.silence.reset(path);
    }

    /// A path is gone, with all that it held.
    pub fn on_path_down(&mut self, path: usize) {
        self.present.0 &= !(1 << path);
        self.silence.reset(path);
        for number in self.chunks.base()..self.chunks.end() {
            if let Some(chunk) = self.chunks.get_mut(number)
                && chunk.sent_on.contains(path)
            {
                chunk.sent_on.0 &= !(1 << path);
                self.strand(number);
            }
        }
    }

    /// The path carried an acknowledgement, of whatever kind; more that was
    /// sent on it may still be waiting for one.
    #[inline]
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        self.silence.on_heard(now, path, more_outstanding);
    }

    /// A path reports that a packet it was given has arrived. Returns what the
    /// source calls its data, the first time: it is needed no more if
    /// [released on delivery](Release::OnDelivery).
    #[inline]
    pub fn on_delivered(&mut self, chunk: u64) -> Option<S::Piece> {
        let chunk = self.chunks.get_mut(chunk).filter(|chunk| chunk.given && !chunk.delivered)?;
        chunk.delivered = true;
        let piece = chunk.piece;
        if self.release == Release::OnDelivery {
            self.acknowledged = self.chunks.forget_delivered();
        }
        Some(piece)
    }

    /// A path reports that a packet it was given is lost and that it does not
    /// send it again itself. Unless another path holds it, it goes next, on
    /// whatever path is best then.
    pub fn on_lost(&mut self, path: usize, chunk: u64) {
        if let Some(lost) = self.chunks.get_mut(chunk)
            && lost.sent_on.contains(path)
        {
            lost.sent_on.0 &= !(1 << path);
            self.strand(chunk);
        }
    }

    /// Takes out of what was cut and given to no path the pieces that nobody wants any
    /// more: they take nothing of the peer's credit. Only for what is [released on
    /// delivery](Release::OnDelivery).
    pub fn withdraw(&mut self, is_unwanted: impl Fn(&S::Piece) -> bool) {
        debug_assert_eq!(self.release, Release::OnDelivery);
        self.chunks.withdraw(is_unwanted);
        self.acknowledged = self.chunks.forget_delivered();
    }

    /// The peer has all data before the byte `next` (data ACK, RFC 8684,
    /// section 3.3.2).
    #[inline]
    pub fn on_data_ack(&mut self, next: u64) {
        if next > self.acknowledged {
            self.acknowledged = next;
            self.chunks.forget_before(next);
        }
    }

    /// The peer lets all data before the byte `window_end` through; what it
    /// once let through it does not take back.
    #[inline]
    pub fn on_credit(&mut self, window_end: u64) {
        self.window_end = self.window_end.max(window_end);
    }

    /// When [`on_timer`](Self::on_timer) is due because of any of the paths, as
    /// they are now; [`Time::MAX`]: never.
    pub fn timer(&self, paths: &[Path]) -> Time {
        (0..paths.len()).map(|path| self.timer_of(path, paths)).min().unwrap_or(Time::MAX)
    }

    /// The same because of one of them.
    #[inline]
    pub fn timer_of(&self, path: usize, paths: &[Path]) -> Time {
        self.silence.deadline_of(path, paths).unwrap_or(Time::MAX)
    }

    /// Looks for paths that have fallen silent; what they hold is to be sent
    /// on others.
    pub fn on_timer(&mut self, now: Time, paths: &[Path]) {
        while let Some(path) = self.silence.take_silent(now, paths) {
            self.counters.suspicions += 1;
            for number in self.chunks.base()..self.chunks.end() {
                if self.chunks.get(number).is_some_and(|chunk| chunk.sent_on.contains(path)) {
                    self.strand(number);
                }
            }
        }
    }

    /// The path was silent for too long and has not answered since.
    #[inline]
    pub fn is_suspect(&self, path: usize) -> bool {
        self.silence.is_suspect(path)
    }

    /// A path whose window is to be halved now because it holds others up.
    #[inline]
    pub fn take_penalty(&mut self) -> Option<usize> {
        self.penalty.take()
    }

    /// Paths that are there and answer.
    fn heard(&self) -> PathSet {
        PathSet(self.present.0 & !self.silence.suspects().0)
    }

    /// Queues a packet unless a path that is heard holds it as well.
    fn strand(&mut self, number: u64) {
        let heard = self.heard();
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        if !chunk.given || chunk.delivered || chunk.queued || chunk.sent_on.0 & heard.0 != 0 {
            return;
        }
        chunk.queued = true;
        self.stranded.push_back(number);
    }

    /// When [`assign`](Self::assign), which had nothing to give, is to be asked
    /// again although nothing changed: a packet is overdue then, and worth
    /// repeating on a path with room. [`Time::MAX`]: never.
    #[inline]
    pub fn overdue_at(&self) -> Time {
        self.overdue_at
    }

    /// What to give to which path now; none: nothing until something changes,
    /// or until [`overdue_at`](Self::overdue_at). To be asked again after each
    /// assignment was carried out.
    #[inline(always)]
    pub fn assign(&mut self, now: Time, paths: &[Path]) -> Option<Assignment<S::Piece>> {
        self.kept = None;
        self.overdue_at = Time::MAX;
        if self.copies.is_some()
            && let Some(copy) = self.next_copy(now, paths)
        {
            return Some(copy);
        }
        if !paths.iter().any(|path| path.ready) {
            return None;
        }
        if !self.stranded.is_empty()
            && let Some(assignment) = self.rescue(now, paths)
        {
            return Some(assignment);
        }
        let view = self.view(now, paths);
        if !view.has_new() {
            return self.assign_again(&view);
        }
        match self.scheduler.schedule(&view) {
            Decision::Wait => None,
            Decision::Send(path, Place::Head)
                if self.chunks.all_cut_sent() && paths.get(path).is_some_and(|path| path.ready) =>
            {
                self.kept = self.keeps_choice.then_some(path);
                self.give_new(now, path, paths[path].in_flight)
            }
            decision => self.carry_out(now, decision, true, paths),
        }
    }

    /// What [`assign`](Self::assign) would answer, if since its last answer
    /// nothing happened but that it was carried out, and the path that it named
    /// is still ready; none: `assign` must be asked.
    #[inline(always)]
    pub fn assign_same(&mut self, now: Time) -> Option<Assignment<S::Piece>> {
        let path = self.kept?;
        let (unsent, offset) = (self.chunks.unsent(), self.chunks.head_offset());
        if unsent == 0 || self.window_end.saturating_sub(offset) < self.mss.min(unsent) {
            return None;
        }
        // Only schedulers that look ahead ask how much a path holds, and they
        // choose anew each time.
        self.give_new(now, path, 0)
    }

    /// Bytes of new data for which [`assign_same`](Self::assign_same) would name
    /// this path, as long as it is ready.
    #[inline]
    pub fn same_path_bytes(&self, path: usize) -> u64 {
        if self.kept != Some(path) {
            return 0;
        }
        let let_through = self.window_end.saturating_sub(self.chunks.head_offset());
        self.chunks.unsent().min(let_through)
    }

    #[inline(always)]
    fn give_new(&mut self, now: Time, path: usize, held: u64) -> Option<Assignment<S::Piece>> {
        self.silence.on_sent(now, path);
        let (number, chunk) = self.chunks.cut_and_send(now, path, held)?;
        Some(assignment(path, number, &chunk))
    }

    /// What to give while nothing new may be sent.
    #[inline(never)]
    fn assign_again(&mut self, view: &View<'_>) -> Option<Assignment<S::Piece>> {
        let (now, paths) = (view.now, view.paths);
        let mut ready = paths.iter().enumerate().filter(|(_, path)| path.ready);
        if view.is_blocked() || ready.any(|(index, _)| view.can_repeat.contains(index)) {
            let decision = self.scheduler.schedule(view);
            if let Some(assignment) = self.carry_out(now, decision, false, paths) {
                return Some(assignment);
            }
        }
        if self.reinjection { self.reinject(now, paths, view.is_blocked()) } else { None }
    }

    #[inline(always)]
    fn view<'p>(&mut self, now: Time, paths: &'p [Path]) -> View<'p> {
        let head_offset = self.chunks.head_offset();
        let mut view = View {
            now,
            mss: self.mss,
            unsent: self.chunks.unsent(),
            window_left: self.window_end.saturating_sub(head_offset),
            outstanding: head_offset - self.acknowledged.min(head_offset),
            oldest: self.oldest(),
            can_repeat: PathSet::default(),
            paths,
        };
        if self.repeats_beside_new || !view.has_new() {
            for index in 0..paths.len() {
                if self.find_repeat(index).is_some() {
                    view.can_repeat.insert(index);
                }
            }
        }
        view
    }

    /// The set of paths, or the status of one, is not what it was.
    pub fn on_paths_changed(&mut self, paths: &[Path]) {
        self.scheduler.on_paths_changed(paths);
    }

    #[inline]
    fn oldest(&self) -> Option<Oldest> {
        let first = self.chunks.first()?;
        (first.given && !first.delivered)
            .then(|| Oldest { holder: usize::from(first.holder), sent_on: first.sent_on })
    }

    /// The oldest packet outstanding, among those before the first that
    /// waits, which a path was never given.
    #[inline]
    fn find_repeat(&mut self, path: usize) -> Option<u64> {
        let from = &mut self.repeat_from[path];
        *from = (*from).max(self.chunks.base());
        while *from < self.chunks.head() {
            match self.chunks.get(*from) {
                Some(chunk) if chunk.delivered || chunk.sent_on.contains(path) => *from += 1,
                _ => return Some(*from),
            }
        }
        None
    }

    #[inline(never)]
    fn carry_out(
        &mut self,
        now: Time,
        decision: Decision,
        has_new: bool,
        paths: &[Path],
    ) -> Option<Assignment<S::Piece>> {
        let ready = |path: usize| paths.get(path).is_some_and(|path| path.ready);
        match decision {
            Decision::Wait => None,
            Decision::Send(path, place) if has_new && ready(path) => {
                let number = self.at(place)?;
                Some(self.give(now, number, path, paths))
            }
            Decision::Duplicate(set) if has_new && !set.is_empty() && set.iter().all(ready) => {
                let number = self.chunks.first_waiting()?;
                self.copies = Some((number, set));
                self.next_copy(now, paths)
            }
            Decision::Repeat(path) if ready(path) => {
                let number = self.find_repeat(path)?;
                Some(self.give(now, number, path, paths))
            }
            Decision::RepeatAndPenalise { path, holder } if ready(path) => {
                let number = self.find_repeat(path)?;
                self.penalty = Some(holder);
                Some(self.give(now, number, path, paths))
            }
            // A scheduler's mistake: its own tests forbid it.
            impossible => {
                debug_assert!(false, "{impossible:?} cannot be carried out");
                None
            }
        }
    }

    /// The chunk at a place, if the shared window lets it through; else the
    /// first one, which it does.
    #[inline]
    fn at(&mut self, place: Place) -> Option<u64> {
        let wanted = match place {
            Place::Head => self.chunks.first_waiting(),
            Place::Tail => self.chunks.last_waiting(),
            Place::Ahead(bytes) => self.chunks.waiting_ahead(bytes),
        }?;
        let chunk = self.chunks.get(wanted)?;
        let fits = chunk.offset + u64::from(chunk.len) <= self.window_end;
        if fits { Some(wanted) } else { self.chunks.first_waiting() }
    }

    #[cold]
    fn next_copy(&mut self, now: Time, paths: &[Path]) -> Option<Assignment<S::Piece>> {
        let (number, mut rest) = self.copies.take()?;
        let path = rest.iter().next()?;
        rest.0 &= !(1 << path);
        // It may have arrived meanwhile.
        self.chunks.get(number)?;
        self.copies = (!rest.is_empty()).then_some((number, rest));
        Some(self.give(now, number, path, paths))
    }

    #[inline]
    fn give(
        &mut self,
        now: Time,
        number: u64,
        path: usize,
        paths: &[Path],
    ) -> Assignment<S::Piece> {
        self.silence.on_sent(now, path);
        let chunk = self.chunks.get(number).copied();
        let chunk = chunk.expect("a chunk that was found is there");
        if chunk.given {
            self.counters.reinjected_bytes += u64::from(chunk.len);
        }
        let held = paths.get(path).map_or(0, |path| path.in_flight);
        self.chunks.note_sent(now, number, path, held);
        assignment(path, number, &chunk)
    }

    /// The oldest stranded packet on the fastest path that may take it.
    #[cold]
    fn rescue(&mut self, now: Time, paths: &[Path]) -> Option<Assignment<S::Piece>> {
        while let Some(&number) = self.stranded.front() {
            let heard = self.heard();
            let Some(chunk) = self.chunks.get_mut(number) else {
                self.stranded.pop_front();
                continue;
            };
            let found = chunk.delivered || chunk.sent_on.0 & heard.0 != 0;
            if !found {
                let path = fastest(paths, |path| path.ready && path.is_usable())?;
                chunk.queued = false;
                self.stranded.pop_front();
                return Some(self.give(now, number, path, paths));
            }
            chunk.queued = false;
            self.stranded.pop_front();
        }
        None
    }

    /// Nothing new may be sent: the fastest path with room repeats the first
    /// packet that a slower one would deliver later than it could. A packet
    /// that should have been acknowledged already, but not for longer than an
    /// acknowledgement may be late, has most likely arrived: it is left alone.
    ///
    /// One that waits behind what its path held will be late if the path turned
    /// out to be slow since: it counts as overdue from the moment at which that
    /// is known.
    ///
    /// A scheduler that plans the order has given the slower paths what is due
    /// when they bring it. What is not acknowledged when it is due contradicts
    /// its plan, and is not left alone where a copy comes before the latest
    /// acknowledgement. A window that is full is planned too: then only the
    /// first packet, for which all wait, is repeated before it is due.
    fn reinject(
        &mut self,
        now: Time,
        paths: &[Path],
        is_blocked: bool,
    ) -> Option<Assignment<S::Piece>> {
        let fast = fastest(paths, |path| path.ready && path.is_usable())?;
        let view = &paths[fast];
        let takes =
            (view.srtt + view.rtt_variation).max(view.time_to_carry(view.in_flight + self.mss));
        let arrival = now + takes;
        let from = self.find_repeat(fast)?;
        let first = self.chunks.base();
        for number in from..self.chunks.end().min(from + REINJECTION_SCAN) {
            let Some(chunk) = self.chunks.get(number) else { break };
            let outstanding = chunk.given && !chunk.delivered;
            if outstanding && !chunk.sent_on.contains(fast) {
                let slow = &paths[usize::from(chunk.holder)];
                let lateness = (slow.rtt_variation * 4).max(ACK_LATENESS);
                let behind = slow.time_to_carry(u64::from(chunk.queued_behind));
                let foreseen = behind >= slow.srtt * 2;
                let due = chunk.sent_at + if foreseen { behind } else { slow.srtt };
                let overdue = due + lateness;
                let sooner = if now >= overdue {
                    // It may have to be sent again there.
                    takes < slow.srtt
                } else if self.plans_order && (now >= due || is_blocked && number == first) {
                    arrival < overdue
                } else {
                    let is_planned = self.plans_order && is_blocked && !foreseen;
                    now <= due && !is_planned && arrival < due
                };
                if sooner {
                    return Some(self.give(now, number, fast, paths));
                }
                if now < overdue && takes < slow.srtt {
                    let again = if self.plans_order && now < due { due } else { overdue };
                    self.overdue_at = self.overdue_at.min(again);
                }
            }
        }
        None
    }
}

#[inline(always)]
fn assignment<P: Copy>(path: usize, number: u64, chunk: &Chunk<P>) -> Assignment<P> {
    Assignment { path, chunk: number, piece: chunk.piece, offset: chunk.offset, len: chunk.len }
}

/// The path with the lowest RTT among some, or with the least to carry first. A backup is
/// one only where no other is left, be that ready or not.
fn fastest(paths: &[Path], among: impl Fn(&Path) -> bool) -> Option<usize> {
    let waits = paths.iter().any(|path| path.status == Status::Active);
    let may = |path: &Path| !(waits && path.status == Status::Backup);
    let candidates = paths.iter().enumerate().filter(|(_, path)| may(path) && among(path));
    let takes = |path: &Path| path.srtt.max(path.time_to_carry(path.in_flight));
    candidates.min_by_key(|(_, path)| takes(path)).map(|(i, _)| i)
}
