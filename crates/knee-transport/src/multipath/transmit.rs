//! What a connection sends, and when. Whether a path is ready is determined after
//! each event on it; what else the scheduler sees of it, only before a decision.

use super::sender::{Mapping, MultipathSender, Subflow};
use crate::config::ReceiveWindow;
use crate::sender::{Burst, Room, Transmit, Wait};
use crate::wire::Segment;
use knee_multipath::Assignment;
use knee_sched::{PATHS_MAX, Path, PathSet, Status};
use knee_units::Time;

/// Answer to [`MultipathSender::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathTransmit {
    /// Send this segment on this path, then poll again.
    Segment(usize, Segment),
    /// Send nothing before this time, unless an ACK arrives.
    At(Time),
    /// Send nothing until an ACK, a timer or the application.
    Nothing,
}

/// The paths as the scheduler sees them.
pub(super) struct Views {
    pub paths: Vec<Path>,
    /// The paths that may send, as of `at`; their entries say it only during a decision.
    ready: PathSet,
    /// The paths that are active.
    active: PathSet,
    /// Time until which pacing delays the next segment of each path.
    paced_until: [Time; PATHS_MAX],
    /// When it was last determined which paths are ready.
    at: Time,
    /// Paths with an event since it was determined whether they are ready.
    pub stale: PathSet,
    /// Paths with an event since the rest of their entry was updated.
    outdated: PathSet,
    /// Whether the status of a path changed since the scheduler was informed.
    changed: bool,
}

impl Views {
    /// Creates views of `paths` paths that are down.
    pub fn new(paths: usize) -> Views {
        Views {
            paths: vec![Path { status: Status::Down, ..Path::default() }; paths],
            ready: PathSet::default(),
            active: PathSet::default(),
            paced_until: [Time::MAX; PATHS_MAX],
            at: Time::ZERO,
            stale: PathSet::default(),
            outdated: PathSet::default(),
            changed: true,
        }
    }

    /// Marks every path as stale.
    pub fn doubt_all(&mut self) {
        self.stale = PathSet(u8::MAX >> (PATHS_MAX - self.paths.len()));
    }

    /// Marks the paths as stale that pacing may let send.
    pub fn doubt_paced(&mut self, now: Time) {
        for path in 0..self.paths.len() {
            if self.paced_until[path] <= now {
                self.stale.insert(path);
            }
        }
    }

    /// Marks paths that could send as stale after time has passed: their burst is
    /// over, and pacing may delay the next.
    #[inline]
    fn begin(&mut self, now: Time) {
        if self.at != now {
            self.at = now;
            self.stale.0 |= self.ready.0;
        }
    }

    /// Returns the only path that is ready, if it is active and the scheduler knows that.
    #[inline]
    fn only_choice(&self) -> Option<usize> {
        let path = self.ready.first()?;
        let known = self.active.contains(path) && !self.changed;
        (known && self.ready.is_only(path)).then_some(path)
    }

    /// Determines whether a path may send now, which may begin a burst.
    #[inline(always)]
    fn show_room(&mut self, now: Time, path: usize, subflow: &mut Subflow) {
        let room = subflow.sender.room(now);
        if let Room::At(at) = room {
            self.paced_until[path] = at;
        }
        self.ready.remove(path);
        self.ready.0 |= u8::from(room == Room::Now) << path;
    }

    /// Updates what sending changes: in addition the window, which restarts after an
    /// idle time (RFC 2861).
    #[inline]
    fn show_sent(&mut self, now: Time, path: usize, subflow: &mut Subflow) {
        self.show_room(now, path, subflow);
        show_window(&mut self.paths[path], subflow);
    }

    /// Updates what ACKs change, except whether the path is ready.
    #[inline]
    fn show_measured(&mut self, path: usize, subflow: &Subflow, looks_ahead: bool) {
        let view = &mut self.paths[path];
        let rtt = subflow.sender.rtt();
        view.srtt = rtt.smoothed();
        view.rtt_variation = rtt.deviation();
        view.min_rtt = rtt.minimum();
        view.rate = subflow.sender.delivery_rate();
        if looks_ahead {
            view.capacity = subflow.capacity.capacity();
            view.doubles = subflow.sender.doubles();
        }
        show_window(view, subflow);
        self.outdated.remove(path);
    }
}

#[inline]
fn show_window(view: &mut Path, subflow: &Subflow) {
    // Schedulers use it in calculations: no window counts as the largest receive window.
    view.window = subflow.sender.window().min(ReceiveWindow::LARGEST_BYTES);
    view.in_flight = subflow.sender.in_flight();
    view.sent = subflow.sender.counters().sent_bytes;
}

impl MultipathSender {
    /// Returns what to send now.
    pub fn poll_transmit(&mut self, now: Time) -> MultipathTransmit {
        if let Some((path, segment)) = self.refresh_ready(now) {
            return MultipathTransmit::Segment(path, segment);
        }
        match self.assign(now) {
            Some(assignment) => {
                let segment = self.send(now, &assignment);
                MultipathTransmit::Segment(assignment.path, segment)
            }
            None => match self.note_idle() {
                Wait::Until(time) => MultipathTransmit::At(time),
                Wait::ForEvent => MultipathTransmit::Nothing,
            },
        }
    }

    /// Returns the segments that successive calls of
    /// [`poll_transmit`](Self::poll_transmit) would return, and their path: as many
    /// of a burst as are certain to be sent now. Must be called again until it
    /// returns what to wait for.
    #[inline(always)]
    pub fn poll_burst(&mut self, now: Time) -> Result<(usize, Burst), Wait> {
        if let Some((path, segment)) = self.refresh_ready(now) {
            return Ok((path, Burst::of_one(segment)));
        }
        if let Some(sent) = self.send_burst(now) {
            return Ok(sent);
        }
        let Some(assignment) = self.assign(now) else { return Err(self.note_idle()) };
        Ok((assignment.path, Burst::of_one(self.send(now, &assignment))))
    }

    /// Called after an ACK on a path: whether no path may send, as before, so that all
    /// there is to wait for is what was waited for.
    #[inline(always)]
    pub(super) fn still_waits(&mut self, now: Time, path: usize) -> bool {
        self.views.begin(now);
        let before = self.views.paced_until[path];
        let alone = self.views.stale.is_empty() && !self.views.changed;
        if !alone || !self.refresh_calm(now, path) {
            self.views.stale.insert(path);
            return false;
        }
        self.views.ready.is_empty()
            && self.views.paced_until[path] == before
            && self.sending.waits_for_room()
    }

    /// Determines which paths may send, unless one of them has to send something
    /// before new data.
    #[inline(always)]
    fn refresh_ready(&mut self, now: Time) -> Option<(usize, Segment)> {
        self.views.begin(now);
        if self.views.stale.is_empty() { None } else { self.refresh_stale(now) }
    }

    #[inline]
    fn refresh_stale(&mut self, now: Time) -> Option<(usize, Segment)> {
        self.undisturbed = None;
        while let Some(path) = self.views.stale.first() {
            if !self.refresh_calm(now, path) {
                if let Some(segment) = self.poll_urgent(now, path) {
                    return Some((path, segment));
                }
                self.refresh_path(now, path);
            }
            self.views.stale.remove(path);
        }
        None
    }

    /// Determines whether a path may send that has nothing to send before new data,
    /// and whose status is unchanged, as almost always; returns whether that is so.
    #[inline(always)]
    fn refresh_calm(&mut self, now: Time, path: usize) -> bool {
        let Some(subflow) = &mut self.subflows[path] else { return false };
        let calm = self.views.active.contains(path)
            && !subflow.sender.is_urgent()
            && !self.sending.is_suspect(path);
        if calm {
            self.undisturbed = None;
            self.views.paced_until[path] = Time::MAX;
            self.views.show_room(now, path, subflow);
            self.views.outdated.insert(path);
        }
        calm
    }

    /// Returns a handshake, probe or retransmission segment of a subflow.
    #[inline(never)]
    fn poll_urgent(&mut self, now: Time, path: usize) -> Option<Segment> {
        let waits = !self.is_established() && !self.may_begin(path);
        self.views.paced_until[path] = Time::MAX;
        let subflow = self.subflows[path].as_mut()?;
        if waits {
            return None;
        }
        match subflow.sender.poll_urgent(now) {
            Transmit::Segment(segment) => {
                self.touched.insert(path);
                return Some(segment);
            }
            Transmit::At(at) => self.views.paced_until[path] = at,
            Transmit::Nothing => {}
        }
        None
    }

    /// Whether a subflow may begin its handshake. The first subflow opens the
    /// connection; the others join once it is open, or when the first is late.
    fn may_begin(&self, path: usize) -> bool {
        let first = self.subflows.iter().position(Option::is_some);
        first == Some(path) || self.first_is_late()
    }

    /// Whether the first path does not answer the handshake, so that others try as well.
    fn first_is_late(&self) -> bool {
        let first = self.subflows.iter().flatten().next();
        first.is_some_and(|subflow| subflow.sender.timeouts_in_a_row() > 0)
    }

    /// Updates the scheduler's view of a path.
    #[inline(never)]
    pub(super) fn refresh_path(&mut self, now: Time, path: usize) {
        let suspect = self.sending.is_suspect(path);
        let views = &mut self.views;
        let view = &mut views.paths[path];
        let before = view.status;
        let Some(subflow) = &mut self.subflows[path] else {
            *view = Path { status: Status::Down, ..Path::default() };
            views.changed |= before != Status::Down;
            views.ready.remove(path);
            views.active.remove(path);
            views.outdated.remove(path);
            return;
        };
        view.status = match (subflow.sender.is_established(), suspect, subflow.backup) {
            (false, ..) => Status::Down,
            (_, true, _) => Status::Suspect,
            (_, _, true) => Status::Backup,
            _ => Status::Active,
        };
        views.changed |= view.status != before;
        views.active.remove(path);
        views.active.0 |= u8::from(view.status == Status::Active) << path;
        views.show_room(now, path, subflow);
        views.show_measured(path, subflow, self.looks_ahead);
    }

    /// Returns which data to give to which path now, if any.
    #[inline(always)]
    fn assign(&mut self, now: Time) -> Option<Assignment<()>> {
        if self.views.changed {
            self.inform_scheduler();
        }
        if self.views.ready.is_empty() && self.sending.waits_for_room() {
            return None;
        }
        if let Some(path) = self.undisturbed
            && self.views.ready.contains(path)
            && let Some(same) = self.sending.assign_same(now)
        {
            return Some(same);
        }
        self.assign_any(now)
    }

    #[cold]
    fn inform_scheduler(&mut self) {
        self.show_outdated();
        self.views.changed = false;
        self.undisturbed = None;
        self.sending.on_paths_changed(&self.views.paths);
    }

    #[inline(never)]
    fn assign_any(&mut self, now: Time) -> Option<Assignment<()>> {
        self.show_outdated();
        let assignment = self.sending.assign(now, &self.views.paths)?;
        self.undisturbed = Some(assignment.path);
        Some(assignment)
    }

    #[inline]
    fn show_outdated(&mut self) {
        while let Some(path) = self.views.outdated.first() {
            match &self.subflows[path] {
                Some(subflow) => self.views.show_measured(path, subflow, self.looks_ahead),
                None => self.views.outdated.remove(path),
            }
        }
        let Views { paths, ready, .. } = &mut self.views;
        for (path, view) in paths.iter_mut().enumerate() {
            view.ready = ready.contains(path);
        }
    }

    /// Sends a burst on the path that would be assigned new data for all of it: the
    /// one that was given the last, or the only one that is ready.
    #[inline(always)]
    fn send_burst(&mut self, now: Time) -> Option<(usize, Burst)> {
        let path = match self.undisturbed.filter(|path| self.views.ready.contains(*path)) {
            Some(path) => path,
            None => self.views.only_choice().filter(|path| self.sending.takes(*path))?,
        };
        let (waiting, unsent) = (self.sending.same_path_bytes(path), self.sending.unsent());
        let subflow = self.subflows[path].as_mut()?;
        let burst = subflow.sender.send_mapped(now, waiting, unsent)?;
        let (chunk, offset) = self.sending.assign_run(now, path, burst.count);
        let len = burst.first.len;
        subflow.mappings.push_run(burst.count, |behind| Mapping {
            chunk: chunk + behind,
            offset: offset + behind * u64::from(len),
            len,
        });
        self.undisturbed = Some(path);
        self.views.paced_until[path] = Time::MAX;
        self.touched.insert(path);
        self.views.show_room(now, path, subflow);
        self.views.outdated.insert(path);
        Some((path, burst))
    }

    /// Sends what was assigned to a path.
    #[inline(never)]
    fn send(&mut self, now: Time, assignment: &Assignment<()>) -> Segment {
        let Assignment { path, chunk, offset, len, .. } = *assignment;
        let subflow = self.subflows[path].as_mut();
        let subflow = subflow.expect("a path that is ready has a subflow");
        let is_last = self.sending.unsent() == 0;
        let segment = subflow.sender.send(now, len, is_last);
        subflow.mappings.push(Mapping { chunk, offset, len });
        self.views.paced_until[path] = Time::MAX;
        self.touched.insert(path);
        // Sending changes nothing else in the view.
        self.views.show_sent(now, path, subflow);
        if let Some(holder) = self.sending.take_penalty() {
            self.penalise(now, holder);
        }
        segment
    }

    #[cold]
    fn penalise(&mut self, now: Time, holder: usize) {
        self.undisturbed = None;
        if let Some(subflow) = &mut self.subflows[holder] {
            subflow.sender.penalise(now);
            self.refresh_path(now, holder);
        }
    }

    /// Called when there is nothing to send now; returns until when,
    /// considering pacing and overdue data.
    #[inline]
    fn note_idle(&mut self) -> Wait {
        if !self.views.ready.is_empty() {
            self.tell_idle();
        }
        let paced_until = self.views.paced_until[..self.subflows.len()].iter();
        let held = paced_until.fold(self.sending.overdue_at(), |held, at| held.min(*at));
        if held == Time::MAX { Wait::ForEvent } else { Wait::Until(held) }
    }

    /// Tells the paths that are ready that there is nothing for them.
    #[inline(never)]
    fn tell_idle(&mut self) {
        let blocked = self.sending.is_blocked();
        for path in self.views.ready.iter() {
            if let Some(subflow) = &mut self.subflows[path] {
                subflow.sender.note_idle(blocked);
            }
        }
    }
}
