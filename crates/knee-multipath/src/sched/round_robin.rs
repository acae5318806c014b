//! Round-robin: one packet on each path in turn.
//!
//! As in the Linux MPTCP fork (`mptcp_rr.c`, quota of one segment, limited by
//! the windows): a path without room misses its turn, and a new round starts
//! when every path with room has had a turn. So the split follows the windows
//! as soon as they fill.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Path, PathSet, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "round-robin",
    summary: "paths with room in turn, one packet each",
    source: "Linux MPTCP fork, net/mptcp/mptcp_rr.c",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(RoundRobin::default()))
}

#[derive(Debug, Default)]
struct RoundRobin {
    /// Paths that had their turn.
    served: PathSet,
}

impl Scheduler for RoundRobin {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.ready();
        if !view.has_new() || ready.is_empty() {
            return Decision::Wait;
        }
        if ready.0 & !self.served.0 == 0 {
            self.served = PathSet(self.served.0 & !ready.0);
        }
        let served = self.served;
        match ready.iter().find(|path| !served.contains(*path)) {
            Some(path) => {
                self.served.insert(path);
                Decision::Send(path, Place::Head)
            }
            None => Decision::Wait,
        }
    }

    fn on_paths_changed(&mut self, _paths: &[Path]) {
        self.served = PathSet::default();
    }
}
