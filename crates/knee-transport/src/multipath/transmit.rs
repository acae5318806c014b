//! What a connection sends, and when.

use super::mapping::Mapping;
use super::sender::MultipathSender;
use super::views::Views;
use crate::sender::{Burst, Transmit, Wait};
use crate::wire::Segment;
use knee_multipath::Assignment;
use knee_multipath::sched::{Path, Status};
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

impl MultipathSender {
    /// Returns what to send now.
    #[inline(never)]
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

    /// Returns segments of new data that successive calls of
    /// [`poll_transmit`](Self::poll_transmit) would return, and their path: as many of a
    /// burst as are certain to be sent now.
    #[inline(always)]
    pub fn poll_burst(&mut self, now: Time) -> Option<(usize, Burst)> {
        self.views.begin(now);
        while let Some(path) = self.views.stale.first() {
            if !self.refresh_calm(now, path) {
                return None;
            }
            self.views.stale.remove(path);
        }
        self.send_burst(now)
    }

    /// Returns what [`poll_transmit`](Self::poll_transmit) would say to wait for, if it is
    /// certain after [`poll_burst`](Self::poll_burst) that no path may send.
    #[inline(always)]
    pub fn poll_wait(&mut self) -> Option<Wait> {
        let Views { stale, ready, changed, .. } = &self.views;
        let full = stale.is_empty() && ready.is_empty() && !changed;
        (full && self.sending.waits_for_room()).then(|| self.note_idle())
    }

    /// Determines which paths may send, unless one of them has to send something
    /// before new data.
    fn refresh_ready(&mut self, now: Time) -> Option<(usize, Segment)> {
        self.views.begin(now);
        if !self.views.stale.is_empty() {
            self.views.undisturbed = None;
        }
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

    #[inline(always)]
    fn refresh_calm(&mut self, now: Time, path: usize) -> bool {
        let Some(subflow) = &mut self.subflows[path] else { return false };
        !self.sending.is_suspect(path) && self.views.refresh_calm(now, path, subflow)
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
        views.active.insert_if(path, view.status == Status::Active);
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
        if let Some(path) = self.views.undisturbed
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
        self.views.undisturbed = None;
        self.sending.on_paths_changed(&self.views.paths);
    }

    #[inline(never)]
    fn assign_any(&mut self, now: Time) -> Option<Assignment<()>> {
        self.settle();
        self.show_outdated();
        let assignment = self.sending.assign(now, &self.views.paths)?;
        self.views.undisturbed = Some(assignment.path);
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
        let path = match self.views.undisturbed.filter(|path| self.views.ready.contains(*path)) {
            Some(path) => path,
            None => self.views.only_choice().filter(|path| self.sending.takes(*path))?,
        };
        let (waiting, unsent) = (self.sending.same_path_bytes(path), self.sending.unsent());
        let subflow = self.subflows[path].as_mut()?;
        let burst = subflow.sender.send_mapped(now, waiting, unsent)?;
        let (chunk, offset) = self.sending.assign_run(now, path, burst.count);
        let Segment { number: segment, len, .. } = burst.first;
        let mapping = Mapping { chunk, offset, segment, count: burst.count, len };
        subflow.mappings.push(mapping, subflow.sender.first(), self.sending.acknowledged());
        self.views.undisturbed = Some(path);
        self.views.paced_until[path] = Time::MAX;
        self.sent.insert(path);
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
        let mapping = Mapping { chunk, offset, segment: segment.number, count: 1, len };
        subflow.mappings.push(mapping, subflow.sender.first(), self.sending.acknowledged());
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
        self.views.undisturbed = None;
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
        let paced_until = self.views.paced_until[..self.path_count()].iter();
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
