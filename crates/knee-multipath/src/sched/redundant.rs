//! Redundant: every path carries all data.
//!
//! ReMP TCP (Frömmgen, Erbshäußer, Buchmann, Zimmermann, Wehrle: "ReMP TCP: Low
//! latency multipath TCP", ICC 2016): each path with room sends the oldest
//! unacknowledged packet that it has not sent itself, and a new one only if
//! there is none. Data acknowledged on one path need not be sent on the others,
//! so a slow path skips ahead and never holds up a fast one.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "redundant",
    summary: "every path repeats what is outstanding before it takes anything new",
    source: "Frömmgen et al., ReMP TCP, ICC 2016",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Redundant))
}

#[derive(Debug)]
struct Redundant;

impl Scheduler for Redundant {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.ready();
        // Each path decides for itself; the fastest is checked first, so that
        // new data starts on it.
        let Some(fastest) = view.fastest(ready) else { return Decision::Wait };
        let repeats = |path: &usize| view.can_repeat.contains(*path);
        if repeats(&fastest) {
            return Decision::Repeat(fastest);
        }
        if view.has_new() {
            return Decision::Send(fastest, Place::Head);
        }
        ready.iter().find(repeats).map_or(Decision::Wait, Decision::Repeat)
    }

    fn repeats_beside_new(&self) -> bool {
        true
    }
}
