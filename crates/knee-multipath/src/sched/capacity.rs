//! Capacity: paths get bytes in proportion to their delivery rates.
//!
//! Path i is due w_i total, where w_i is its fraction of the sum of all rates;
//! the path furthest behind takes the next packet (deficit scheduling, after
//! Shreedhar and Varghese, SIGCOMM 1995). The rate is the measured delivery
//! rate, or a window per RTT before there is one.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, PathSet, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "capacity",
    summary: "bytes in proportion to the paths' delivery rates",
    source: "deficit against a share of the rate; Shreedhar and Varghese, SIGCOMM 1995",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Capacity))
}

#[derive(Debug)]
struct Capacity;

impl Scheduler for Capacity {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if !view.has_new() {
            return Decision::Wait;
        }
        let eligible = view.eligible();
        let rates = |path: usize| i128::from(view.paths[path].throughput().as_bits_per_second());
        let sum = eligible.iter().map(rates).sum::<i128>();
        let total = total_with_next(view, eligible);
        // The deficit times the sum of rates: in integers, so that equal paths
        // tie and the first of them wins.
        let surplus =
            |path: &usize| i128::from(view.paths[*path].sent) * sum - rates(*path) * total;
        let furthest_behind = view.ready().iter().min_by_key(surplus);
        furthest_behind.map_or(Decision::Wait, |path| Decision::Send(path, Place::Head))
    }
}

/// Returns the bytes given to the paths that count, including the packet in
/// question: without it, the first would not go to the path with the largest due.
fn total_with_next(view: &View<'_>, eligible: PathSet) -> i128 {
    let sent = eligible.iter().map(|path| i128::from(view.paths[path].sent)).sum::<i128>();
    sent + i128::from(view.mss)
}
