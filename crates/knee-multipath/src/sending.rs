//! The sending end of a multipath connection, above its paths.
//!
//! It needs from a path only what any datagram path can provide: a way to send,
//! its RTT, window and bytes in flight, when it was last heard from, and what
//! it delivered. TCP subflows are one kind of path, QUIC paths another.
//!
//! Data whose path fell silent or is gone comes first, and is sent on another
//! path. What the scheduler chooses comes next. If nothing new may be sent,
//! data that a slower path would deliver later is reinjected.

mod reinjection;

use crate::chunks::{Chunk, Chunks};
use crate::sched::{Decision, Oldest, PATHS_MAX, Path, PathSet, Place, Scheduler, View};
use crate::silence::{Silence, SilenceRule};
use crate::source::{ByteCount, Source};
use knee_units::Time;
use reinjection::fastest;
use std::collections::VecDeque;
use std::ops::Range;

/// Packets of data released on delivery that may follow the oldest undelivered one, with it: a peer
/// that never acknowledges one would otherwise make this end remember all that follow.
const UNRELEASED_MAX: u64 = 1 << 17;
/// Smallest lateness of an acknowledgement that is possible on any path: a delayed ACK,
/// 40 ms on Linux, plus the granularity of its clock.
const ACK_LATENESS: Time = Time::from_millis(41);

/// When sent data is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// When the peer acknowledges the connection's data up to it
    /// ([`Sending::on_data_ack`]), as in MPTCP.
    Cumulative,
    /// As soon as a path reports it delivered ([`Sending::on_delivered`]): the
    /// peer keeps what it acknowledged on a path.
    OnDelivery,
}

/// Settings of the sending end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Largest packet in bytes.
    pub mss: u16,
    /// Bytes that the peer initially allows.
    pub window: u64,
    /// Whether a fast path repeats data that a slower one would deliver later.
    pub reinjection: bool,
    /// When sent data is released.
    pub release: Release,
    /// When a path counts as silent.
    pub silence: SilenceRule,
}

/// Data to be given to a path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment<P> {
    /// The path.
    pub path: usize,
    /// Number of the packet within the connection.
    pub chunk: u64,
    /// The source's name for its data.
    pub piece: P,
    /// First byte within the connection, in the order of cutting; for a source
    /// with a single stream, the data sequence number.
    pub offset: u64,
    /// Length in bytes.
    pub len: u16,
}

/// Counters of the connection, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultipathCounters {
    /// Bytes given to a path that were given to another one before.
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
    takes_only_choice: bool,
    plans_order: bool,
    reinjection: bool,
    release: Release,
    acknowledged: u64,
    window_end: u64,
    mss: u64,
    /// Packets that paths lost, or that silent or removed paths hold, in the
    /// order of detection.
    stranded: VecDeque<u64>,
    /// For each path, the number of a packet such that all before it were given to
    /// this path or delivered. Those that the path lost are in `stranded`.
    repeat_from: [u64; PATHS_MAX],
    present: PathSet,
    silence: Silence,
    /// A path whose window is to be halved.
    penalty: Option<usize>,
    /// The path to which the head of new data was last given, if the scheduler keeps to it.
    kept: Option<usize>,
    /// A packet, and the paths to which the current decision has yet to give it.
    copies: Option<(u64, PathSet)>,
    /// Possible lateness of an acknowledgement on any path.
    ack_lateness: Time,
    /// When the next packet becomes overdue, so that a path with room repeats it.
    overdue_at: Time,
    counters: MultipathCounters,
}

impl<S: Source> Sending<S> {
    /// Creates a connection that has sent nothing.
    pub fn new(settings: Settings, source: S, scheduler: Box<dyn Scheduler>) -> Sending<S> {
        Sending {
            chunks: Chunks::new(source, settings.mss),
            repeats_beside_new: scheduler.repeats_beside_new(),
            keeps_choice: scheduler.keeps_choice(),
            takes_only_choice: scheduler.takes_only_choice() && scheduler.keeps_choice(),
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
            ack_lateness: ACK_LATENESS.max(settings.silence.ack_delay + settings.silence.floor),
            overdue_at: Time::MAX,
            counters: MultipathCounters::default(),
        }
    }

    /// Returns the source of the data.
    pub fn source(&self) -> &S {
        self.chunks.source()
    }

    /// Returns the source, to give it more data.
    pub fn source_mut(&mut self) -> &mut S {
        self.chunks.source_mut()
    }

    /// Whether all data of the source has arrived and was released.
    pub fn is_complete(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the bytes before the first one still to be acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Whether new data waits but the shared window is full.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.chunks.unsent() > 0 && !self.has_new()
    }

    /// Returns the bytes written and not yet given to any path.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.chunks.unsent()
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &MultipathCounters {
        &self.counters
    }

    /// Makes a path available.
    pub fn on_path_up(&mut self, path: usize) {
        self.chunks.settle();
        self.present.insert(path);
        self.repeat_from[path] = self.chunks.base();
        self.silence.reset(path);
    }

    /// Removes a path, with all data that it held.
    pub fn on_path_down(&mut self, path: usize) {
        self.chunks.settle();
        self.present.remove(path);
        self.silence.reset(path);
        for number in self.chunks.base()..self.chunks.end() {
            self.take_from(path, number);
        }
    }

    /// Notes that a path no longer holds a packet; another one that does is its holder from now on.
    fn take_from(&mut self, path: usize, number: u64) {
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        if !chunk.sent_on.contains(path) {
            return;
        }
        chunk.sent_on.remove(path);
        if usize::from(chunk.holder) == path {
            chunk.holder = chunk.sent_on.first().map_or(chunk.holder, |other| other as u8);
        }
        self.strand(number);
    }

    /// Called when something other than data of this layer was sent on the path and
    /// asks for an answer.
    #[inline]
    pub fn on_sent(&mut self, now: Time, path: usize) {
        self.silence.on_sent(now, path);
    }

    /// Called when the path carried an acknowledgement of any kind; more data
    /// sent on it may still be waiting for one.
    #[inline]
    pub fn on_heard(&mut self, now: Time, path: usize, more_outstanding: bool) {
        self.silence.on_heard(now, path, more_outstanding);
    }

    /// Called when a path reports the arrival of a packet. Returns the source's
    /// name for its data the first time: it is no longer needed if [released on
    /// delivery](Release::OnDelivery).
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

    /// Called when a path reports that a packet is lost and that it does not
    /// retransmit it. Unless another path holds it, it is sent next, on the
    /// path that is best at that time.
    pub fn on_lost(&mut self, path: usize, chunk: u64) {
        self.take_from(path, chunk);
    }

    /// Removes unwanted pieces from the data that was cut and not yet given to
    /// a path: they use none of the peer's credit. Only for data [released on
    /// delivery](Release::OnDelivery).
    pub fn withdraw(&mut self, is_unwanted: impl Fn(&S::Piece) -> bool) {
        debug_assert_eq!(self.release, Release::OnDelivery);
        self.chunks.withdraw(is_unwanted);
        self.acknowledged = self.chunks.forget_delivered();
    }

    /// Called when the peer has all data before byte `next` (data ACK, RFC
    /// 8684, section 3.3.2).
    #[inline]
    pub fn on_data_ack(&mut self, next: u64) {
        if next > self.acknowledged {
            self.acknowledged = next;
            self.chunks.release_before(next);
        }
    }

    /// Called when the peer allows all data before byte `window_end`; it never
    /// takes credit back.
    #[inline]
    pub fn on_credit(&mut self, window_end: u64) {
        self.window_end = self.window_end.max(window_end);
    }

    /// Returns when [`on_timer`](Self::on_timer) is due because of any of the
    /// paths in their current state; [`Time::MAX`] for never.
    pub fn timer(&self, paths: &[Path]) -> Time {
        let of = |(path, view): (usize, &Path)| {
            self.timer_of(path, view.srtt, view.rtt_variation, view.in_flight)
        };
        paths.iter().enumerate().map(of).min().unwrap_or(Time::MAX)
    }

    /// Returns when [`on_timer`](Self::on_timer) is due because of a path with this RTT
    /// and these bytes in flight; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn timer_of(&self, path: usize, srtt: Time, rtt_variation: Time, in_flight: u64) -> Time {
        self.silence.deadline_of(path, srtt, rtt_variation, in_flight)
    }

    /// Detects paths that have fallen silent; the data they hold is to be sent on others.
    pub fn on_timer(&mut self, now: Time, paths: &[Path]) {
        self.chunks.settle();
        while let Some(path) = self.silence.take_silent(now, paths) {
            self.counters.suspicions += 1;
            for number in self.chunks.base()..self.chunks.end() {
                if self.chunks.get(number).is_some_and(|chunk| chunk.sent_on.contains(path)) {
                    self.strand(number);
                }
            }
        }
    }

    /// Whether the path was silent for too long and has not answered since.
    #[inline]
    pub fn is_suspect(&self, path: usize) -> bool {
        self.silence.is_suspect(path)
    }

    /// Takes the path whose window is to be halved because it holds up others, if any.
    #[inline]
    pub fn take_penalty(&mut self) -> Option<usize> {
        self.penalty.take()
    }

    /// Returns the paths that are present and answer.
    fn heard(&self) -> PathSet {
        PathSet(self.present.0 & !self.silence.suspects().0)
    }

    /// Queues a packet unless a responsive path holds it as well.
    fn strand(&mut self, number: u64) {
        let heard = self.heard();
        let Some(chunk) = self.chunks.get_mut(number) else { return };
        if !chunk.given || chunk.delivered || chunk.queued || chunk.sent_on.0 & heard.0 != 0 {
            return;
        }
        chunk.queued = true;
        self.stranded.push_back(number);
    }

    /// Returns when [`assign`](Self::assign), which had nothing to give, is to
    /// be called again although nothing changed: a packet is then overdue, and
    /// worth repeating on a path with room. [`Time::MAX`] for never.
    #[inline]
    pub fn overdue_at(&self) -> Time {
        self.overdue_at
    }

    /// Returns what to give to which path now; `None` if there is nothing until
    /// something changes, or until [`overdue_at`](Self::overdue_at). Must be
    /// called again after each assignment has been carried out.
    #[inline(always)]
    pub fn assign(&mut self, now: Time, paths: &[Path]) -> Option<Assignment<S::Piece>> {
        self.chunks.settle();
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
            Decision::Send(path, place) if paths.get(path).is_some_and(|path| path.ready) => {
                let number = self.at(place)?;
                self.give(now, number, path, paths)
            }
            decision => self.carry_out(now, decision, true, paths),
        }
    }

    /// Returns what [`assign`](Self::assign) would return, if since its last
    /// result nothing has happened except that it was carried out, and the path
    /// that it named is still ready; `None` if `assign` must be called.
    #[inline(always)]
    pub fn assign_same(&mut self, now: Time) -> Option<Assignment<S::Piece>> {
        let path = self.kept?;
        if !self.has_new() {
            return None;
        }
        // Only schedulers that look ahead use the amount that a path holds, and
        // they choose each time.
        self.give_new(now, path, 0)
    }

    /// Returns the bytes of new data for which [`assign_same`](Self::assign_same)
    /// would name this path, as long as it is ready.
    #[inline]
    pub fn same_path_bytes(&self, path: usize) -> u64 {
        if self.kept != Some(path) {
            return 0;
        }
        let let_through = self.window_end.saturating_sub(self.chunks.head_offset());
        self.chunks.unsent().min(let_through)
    }

    /// Whether [`assign`](Self::assign) would give new data to `path`, the only one that
    /// is ready, and active, as long as there is some. Then the same holds after that,
    /// as [`assign_same`](Self::assign_same) requires.
    #[inline]
    pub fn takes(&mut self, path: usize) -> bool {
        let takes = self.takes_only_choice
            && self.copies.is_none()
            && self.stranded.is_empty()
            && self.chunks.all_cut_sent();
        if takes {
            self.kept = Some(path);
            self.overdue_at = Time::MAX;
        }
        takes
    }

    /// Whether new data waits and the shared window has room for a packet of it.
    #[inline]
    fn has_new(&self) -> bool {
        let unsent = self.chunks.unsent();
        unsent > 0 && self.window_left() >= self.mss.min(unsent)
    }

    /// Returns the bytes of new data that may be given to paths now.
    #[inline]
    fn window_left(&self) -> u64 {
        let Sending { chunks, release, .. } = self;
        if *release == Release::OnDelivery
            && chunks.end() - chunks.base() >= UNRELEASED_MAX
            && chunks.first().is_some_and(|oldest| oldest.given)
        {
            return 0;
        }
        self.window_end.saturating_sub(chunks.head_offset())
    }

    /// Whether [`assign`](Self::assign) has nothing to give because no path is
    /// ready, as the caller knows. If so, this takes its place.
    #[inline]
    pub fn waits_for_room(&mut self) -> bool {
        if self.copies.is_some() {
            return false;
        }
        self.kept = None;
        self.overdue_at = Time::MAX;
        true
    }

    #[inline(always)]
    fn give_new(&mut self, now: Time, path: usize, held: u64) -> Option<Assignment<S::Piece>> {
        self.silence.on_sent(now, path);
        let (number, chunk) = self.chunks.cut_and_send(now, path, held)?;
        Some(assignment(path, number, &chunk))
    }

    /// Returns what to give while nothing new may be sent.
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
            window_left: self.window_left(),
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

    /// Called when the set of paths, or the status of one, has changed.
    pub fn on_paths_changed(&mut self, paths: &[Path]) {
        self.scheduler.on_paths_changed(paths);
    }

    #[inline]
    fn oldest(&self) -> Option<Oldest> {
        let first = self.chunks.first()?;
        (first.given && !first.delivered)
            .then(|| Oldest { holder: usize::from(first.holder), sent_on: first.sent_on })
    }

    /// Returns the oldest packet that is outstanding and was never given to this
    /// path, among those before the first waiting one.
    #[inline(always)]
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
            Decision::Duplicate(set) if has_new && !set.is_empty() && set.iter().all(ready) => {
                let number = self.chunks.first_waiting()?;
                self.copies = Some((number, set));
                self.next_copy(now, paths)
            }
            Decision::Repeat(path) if ready(path) => {
                let number = self.find_repeat(path)?;
                self.give(now, number, path, paths)
            }
            Decision::RepeatAndPenalise { path, holder } if ready(path) => {
                let number = self.find_repeat(path)?;
                self.penalty = Some(holder);
                self.give(now, number, path, paths)
            }
            // A bug in the scheduler, which its own tests exclude.
            impossible => {
                debug_assert!(false, "{impossible:?} cannot be carried out");
                None
            }
        }
    }

    /// Returns the chunk at a place, if the shared window allows it; otherwise
    /// the first one, which it does allow.
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
        rest.remove(path);
        // It may have arrived in the meantime.
        self.chunks.get(number)?;
        self.copies = (!rest.is_empty()).then_some((number, rest));
        self.give(now, number, path, paths)
    }

    #[inline]
    fn give(
        &mut self,
        now: Time,
        number: u64,
        path: usize,
        paths: &[Path],
    ) -> Option<Assignment<S::Piece>> {
        let held = paths.get(path).map_or(0, |path| path.in_flight);
        let chunk = self.chunks.send(now, number, path, held)?;
        self.silence.on_sent(now, path);
        if chunk.given {
            self.counters.reinjected_bytes += u64::from(chunk.len);
        }
        Some(assignment(path, number, &chunk))
    }

    /// Gives the oldest stranded packet to the fastest path that may take it.
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
                return self.give(now, number, path, paths);
            }
            chunk.queued = false;
            self.stranded.pop_front();
        }
        None
    }
}

impl Sending<ByteCount> {
    /// Called when a path reports the arrival of successive packets, the last of which
    /// ends at byte `end`: not necessarily at once, but before a decision that it may
    /// affect. Only for data [released](Release::Cumulative) by data ACKs.
    #[inline]
    pub fn on_delivered_run(&mut self, chunks: Range<u64>, end: u64) {
        debug_assert_eq!(self.release, Release::Cumulative);
        if end > self.acknowledged {
            self.chunks.mark_delivered(chunks);
        }
    }

    /// Makes `count` successive assignments of [`assign_same`](Self::assign_same),
    /// which must be certain: full packets. Returns the number and offset of the first.
    #[inline]
    pub fn assign_run(&mut self, now: Time, path: usize, count: u32) -> (u64, u64) {
        debug_assert!(u64::from(count) * self.mss <= self.same_path_bytes(path));
        self.silence.on_sent(now, path);
        self.chunks.cut_and_send_run(now, path, count)
    }
}

#[inline(always)]
fn assignment<P: Copy>(path: usize, number: u64, chunk: &Chunk<P>) -> Assignment<P> {
    Assignment { path, chunk: number, piece: chunk.piece, offset: chunk.offset, len: chunk.len }
}
