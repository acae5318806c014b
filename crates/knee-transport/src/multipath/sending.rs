//! The sending end of a multipath connection, above its paths.
//!
//! It needs of a path only what any datagram path can give: that it sends,
//! its RTT, window and bytes in flight, when it was last heard, and what it
//! delivered. TCP subflows are one kind of path, QUIC paths another.
//!
//! What goes first: data whose path fell silent or is gone, on another path;
//! then what the scheduler chooses; then, when nothing new may be sent,
//! reinjection of what a slower path would deliver later.

use super::chunks::Chunks;
use super::silence::Silence;
use knee_sched::{Decision, Oldest, PATHS_MAX, Path, PathSet, Place, Scheduler, Status, View};
use knee_units::Time;
use std::collections::VecDeque;

/// Outstanding packets, from the oldest on, that are looked at for one that
/// another path would deliver sooner.
const REINJECTION_SCAN: u64 = 256;

/// What a path is to be given now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The path.
    pub path: usize,
    /// Number of the packet within the connection.
    pub chunk: u64,
    /// First byte within the connection (data sequence number).
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

/// What the peer acknowledges of the connection's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataAck {
    /// Next byte of the connection expected (data ACK, RFC 8684, 3.3.2).
    pub next: u64,
    /// First byte that the shared receive window does not let through.
    pub window_end: u64,
}

/// The sending end of a connection over several paths.
pub struct Sending {
    chunks: Chunks,
    scheduler: Box<dyn Scheduler>,
    repeats_beside_new: bool,
    reinjection: bool,
    acknowledged: u64,
    window_end: u64,
    mss: u64,
    /// What paths hold that are silent or gone, oldest first.
    stranded: VecDeque<u64>,
    /// For each path, before this every packet was given to it or delivered.
    repeat_from: [u64; PATHS_MAX],
    present: PathSet,
    silence: Silence,
    /// A path whose window is to be halved.
    penalty: Option<usize>,
    /// Packets that the decision in force still gives to these paths.
    copies: Option<(u64, PathSet)>,
    counters: MultipathCounters,
}

impl Sending {
    /// A connection that has sent nothing, whose peer lets `window` bytes
    /// through at first.
    pub fn new(mss: u32, window: u64, reinjection: bool, scheduler: Box<dyn Scheduler>) -> Sending {
        Sending {
            chunks: Chunks::new(mss),
            repeats_beside_new: scheduler.repeats_beside_new(),
            scheduler,
            reinjection,
            acknowledged: 0,
            window_end: window,
            mss: u64::from(mss),
            stranded: VecDeque::new(),
            repeat_from: [0; PATHS_MAX],
            present: PathSet::default(),
            silence: Silence::default(),
            penalty: None,
            copies: None,
            counters: MultipathCounters::default(),
        }
    }

    /// The application gives so many bytes more; it never ends with
    /// `u64::MAX`.
    pub fn write(&mut self, bytes: u64) {
        self.chunks.write(bytes);
    }

    /// The application sends nothing after what was already cut.
    pub fn stop(&mut self) {
        self.chunks.stop();
    }

    /// All that was written has arrived.
    pub fn is_complete(&self) -> bool {
        self.acknowledged == self.chunks.written()
    }

    /// Bytes of the connection that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
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

    /// A path reports that a packet it was given has arrived.
    #[inline]
    pub fn on_delivered(&mut self, chunk: u64) {
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.delivered = true;
        }
    }

    /// The peer says where its data stands.
    #[inline]
    pub fn on_data_ack(&mut self, ack: DataAck) {
        self.window_end = self.window_end.max(ack.window_end);
        if ack.next > self.acknowledged {
            self.acknowledged = ack.next;
            self.chunks.forget_before(ack.next);
        }
    }

    /// When [`on_timer`](Self::on_timer) is due because of some of the paths,
    /// as they are now.
    #[inline]
    pub fn timer(&self, paths: &[Path], among: PathSet) -> Time {
        self.silence.deadline(paths, among)
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

    /// What to give to which path now; none: nothing until something
    /// changes. To be asked again after each assignment was carried out.
    #[inline]
    pub fn assign(&mut self, now: Time, paths: &[Path]) -> Option<Assignment> {
        if let Some(copy) = self.next_copy(now) {
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
        let has_new = view.has_new();
        let may_repeat = || {
            let mut ready = paths.iter().enumerate().filter(|(_, path)| path.ready);
            ready.any(|(index, _)| view.can_repeat.contains(index))
        };
        if has_new || view.is_blocked() || may_repeat() {
            let decision = self.scheduler.schedule(&view);
            if let Some(assignment) = self.carry_out(now, decision, has_new, paths) {
                return Some(assignment);
            }
            if has_new {
                return None;
            }
        }
        if self.reinjection { self.reinject(now, paths) } else { None }
    }

    #[inline]
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
        let first = self.chunks.get(self.chunks.base())?;
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

    #[inline]
    fn carry_out(
        &mut self,
        now: Time,
        decision: Decision,
        has_new: bool,
        paths: &[Path],
    ) -> Option<Assignment> {
        let ready = |path: usize| paths.get(path).is_some_and(|path| path.ready);
        match decision {
            Decision::Wait => None,
            Decision::Send(path, place) if has_new && ready(path) => {
                let number = self.at(place)?;
                Some(self.give(now, number, path))
            }
            Decision::Duplicate(set) if has_new && !set.is_empty() && set.iter().all(ready) => {
                let number = self.chunks.first_waiting()?;
                self.copies = Some((number, set));
                self.next_copy(now)
            }
            Decision::Repeat(path) if ready(path) => {
                let number = self.find_repeat(path)?;
                Some(self.give(now, number, path))
            }
            Decision::RepeatAndPenalise { path, holder } if ready(path) => {
                let number = self.find_repeat(path)?;
                self.penalty = Some(holder);
                Some(self.give(now, number, path))
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

    #[inline]
    fn next_copy(&mut self, now: Time) -> Option<Assignment> {
        let (number, mut rest) = self.copies?;
        let path = rest.iter().next()?;
        rest.0 &= !(1 << path);
        self.copies = (!rest.is_empty()).then_some((number, rest));
        Some(self.give(now, number, path))
    }

    #[inline]
    fn give(&mut self, now: Time, number: u64, path: usize) -> Assignment {
        self.silence.on_sent(now, path);
        let chunk = self.chunks.get(number).copied();
        let chunk = chunk.expect("a chunk that was found is there");
        if chunk.given {
            self.counters.reinjected_bytes += u64::from(chunk.len);
        }
        self.chunks.note_sent(now, number, path);
        Assignment { path, chunk: number, offset: chunk.offset, len: chunk.len }
    }

    /// The oldest stranded packet on the fastest path that may take it.
    #[cold]
    fn rescue(&mut self, now: Time, paths: &[Path]) -> Option<Assignment> {
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
                return Some(self.give(now, number, path));
            }
            chunk.queued = false;
            self.stranded.pop_front();
        }
        None
    }

    /// Nothing new may be sent: the fastest path with room repeats the first
    /// packet that a slower one would deliver later than it could.
    fn reinject(&mut self, now: Time, paths: &[Path]) -> Option<Assignment> {
        let fast = fastest(paths, |path| path.ready && path.is_usable())?;
        let arrival = now + paths[fast].srtt;
        let from = self.find_repeat(fast)?;
        for number in from..self.chunks.end().min(from + REINJECTION_SCAN) {
            let Some(chunk) = self.chunks.get(number) else { break };
            let outstanding = chunk.given && !chunk.delivered;
            if outstanding && !chunk.sent_on.contains(fast) {
                let slow = paths[usize::from(chunk.holder)].srtt;
                let due = chunk.sent_at + slow;
                // Overdue: it may have to be sent again there.
                let due = if due < now { now + slow } else { due };
                if arrival < due {
                    return Some(self.give(now, number, fast));
                }
            }
        }
        None
    }
}

/// The path with the lowest RTT among some.
pub fn fastest(paths: &[Path], among: impl Fn(&Path) -> bool) -> Option<usize> {
    let candidates = paths.iter().enumerate().filter(|(_, path)| among(path));
    candidates.min_by_key(|(_, path)| (path.status == Status::Backup, path.srtt)).map(|(i, _)| i)
}
