//! The paths of a connection as its scheduler sees them. Whether a path is ready is
//! determined after each event on it; the rest only before a decision.

use super::sender::Subflow;
use crate::config::ReceiveWindow;
use crate::sender::Room;
use knee_multipath::sched::{PATHS_MAX, Path, PathSet, Status};
use knee_units::Time;

/// The paths as the scheduler sees them.
pub struct Views {
    pub paths: Vec<Path>,
    /// The paths that may send, as of `at`; their entries say it only during a decision.
    pub ready: PathSet,
    /// The paths that are active.
    pub active: PathSet,
    /// Time until which pacing delays the next segment of each path.
    pub paced_until: [Time; PATHS_MAX],
    /// When it was last determined which paths are ready.
    at: Time,
    /// Paths with an event since it was determined whether they are ready.
    pub stale: PathSet,
    /// Paths with an event since the rest of their entry was updated.
    pub outdated: PathSet,
    /// Whether the status of a path changed since the scheduler was informed.
    pub changed: bool,
    /// The path that was last given data, if nothing has happened since.
    pub undisturbed: Option<usize>,
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
            undisturbed: None,
        }
    }

    /// Marks every path as stale.
    pub fn doubt_all(&mut self) {
        self.stale = PathSet::first_of(self.paths.len());
    }

    /// Marks the paths as stale that pacing may let send.
    #[inline]
    pub fn doubt_paced(&mut self, now: Time) {
        for (path, until) in self.paced_until.iter().enumerate().take(self.paths.len()) {
            self.stale.insert_if(path, *until <= now);
        }
    }

    /// Marks paths that could send as stale after time has passed: their burst is
    /// over, and pacing may delay the next.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        if self.at != now {
            self.at = now;
            self.stale.0 |= self.ready.0;
        }
    }

    /// Returns the only path that is ready, if it is active and the scheduler knows that.
    #[inline]
    pub fn only_choice(&self) -> Option<usize> {
        let path = self.ready.first()?;
        let known = self.active.contains(path) && !self.changed;
        (known && self.ready.is_only(path)).then_some(path)
    }

    /// Determines whether a path may send that answers, has nothing to send before new
    /// data, and whose status is unchanged, as almost always; returns whether that is so.
    #[inline(always)]
    pub fn refresh_calm(&mut self, now: Time, path: usize, subflow: &mut Subflow) -> bool {
        let calm = self.active.contains(path) && !subflow.sender.is_urgent();
        if calm {
            self.undisturbed = None;
            self.paced_until[path] = Time::MAX;
            self.show_room(now, path, subflow);
            self.outdated.insert(path);
        }
        calm
    }

    /// Called after an ACK on a path: whether no path may send, as before, and pacing
    /// delays none of them until another time than before.
    #[inline(always)]
    pub fn still_wait(&mut self, now: Time, path: usize, subflow: &mut Subflow) -> bool {
        self.begin(now);
        let before = self.paced_until[path];
        let alone = self.stale.is_empty() && !self.changed;
        if !alone || !self.refresh_calm(now, path, subflow) {
            self.stale.insert(path);
            return false;
        }
        self.ready.is_empty() && self.paced_until[path] == before
    }

    /// Determines whether a path may send now, which may begin a burst.
    #[inline(always)]
    pub fn show_room(&mut self, now: Time, path: usize, subflow: &mut Subflow) {
        let room = subflow.sender.room(now);
        if let Room::At(at) = room {
            self.paced_until[path] = at;
        }
        self.ready.remove(path);
        self.ready.insert_if(path, room == Room::Now);
    }

    /// Updates what sending changes: in addition the window, which restarts after an
    /// idle time (RFC 2861).
    #[inline]
    pub fn show_sent(&mut self, now: Time, path: usize, subflow: &mut Subflow) {
        self.show_room(now, path, subflow);
        show_window(&mut self.paths[path], subflow);
    }

    /// Updates what ACKs change, except whether the path is ready.
    #[inline]
    pub fn show_measured(&mut self, path: usize, subflow: &Subflow, looks_ahead: bool) {
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
