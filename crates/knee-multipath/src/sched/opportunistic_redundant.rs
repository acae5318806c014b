//! Opportunistic redundancy: sends a packet once, on all paths that have room
//! at that moment.
//!
//! No path repeats it later (Frömmgen et al., "A programming model for
//! application-defined multipath TCP scheduling", Middleware 2017). Idle paths
//! thus provide redundancy for free, while a connection that fills its windows
//! usually finds only one path with room and so aggregates.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "opportunistic-redundant",
    summary: "each packet once on all paths that have room at that moment",
    source: "Frömmgen et al., Middleware 2017",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(OpportunisticRedundant))
}

#[derive(Debug)]
struct OpportunisticRedundant;

impl Scheduler for OpportunisticRedundant {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.ready();
        match ready.iter().next() {
            Some(_) if !view.has_new() => Decision::Wait,
            Some(only) if ready.0.count_ones() == 1 => Decision::Send(only, Place::Head),
            Some(_) => Decision::Duplicate(ready),
            None => Decision::Wait,
        }
    }
}
