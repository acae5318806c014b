//! Synchronous completion (SCTC): all paths finish what is queued at the same
//! time.
//!
//! Path i delivers s_i packets in t_i = ceil(s_i / cwnd_i) rtt_i, so a
//! part-filled last window costs a whole RTT. The whole takes the largest
//! t_i; which shares minimise it is an integer problem, solved greedily, one
//! packet at a time:
//!
//! ```text
//! R1 = packets not yet sent, R2 = free windows of all paths, in packets
//! R1 >= R2   every window fills anyway: the highest rate cwnd_i / rtt_i
//! R1 <  R2   the tail: the path that finishes first, smallest t'_i + rtt_i,
//!            with t'_i = floor(held_i / cwnd_i) rtt_i for what it holds
//! ```
//!
//! A path with room holds less than a window, so its t'_i is zero and the
//! tail goes where the RTT is lowest; it is more than zero only on a path
//! that is ready although its window has just shrunk below what it holds.

use crate::registry::{Build, Entry, Make};
use crate::{Decision, Path, Place, Scheduler, View};
use knee_registry::{SelectionError, Settings};
use std::cmp::Ordering;

pub(crate) const ENTRY: Entry = Entry {
    name: "sctc",
    summary: "the paths finish their shares of what is queued at the same time",
    source: "synchronous-completion study, scheduling rules (studies/synchronous-completion)",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Sctc))
}

#[derive(Debug)]
struct Sctc;

impl Scheduler for Sctc {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if !view.has_new() {
            return Decision::Wait;
        }
        let path = if unsent(view) >= free(view) { highest_rate(view) } else { first_done(view) };
        path.map_or(Decision::Wait, |path| Decision::Send(path, Place::Head))
    }
}

/// R1; the last, short packet counts as one.
fn unsent(view: &View<'_>) -> u64 {
    view.unsent.div_ceil(view.mss)
}

/// R2. A path that pacing holds back has free window all the same: it will
/// fill it within this round.
fn free(view: &View<'_>) -> u64 {
    view.eligible().iter().map(|path| view.paths[path].free() / view.mss).sum()
}

fn highest_rate(view: &View<'_>) -> Option<usize> {
    // Of equals the last maximum would win; the rule is the lowest index.
    let by_rate = |a: &usize, b: &usize| compare_rates(&view.paths[*b], &view.paths[*a]);
    view.ready().iter().min_by(by_rate)
}

/// Compares cwnd / rtt by cross-multiplication, which is exact. Without an
/// RTT sample there is no rate: such a path comes last.
fn compare_rates(a: &Path, b: &Path) -> Ordering {
    let product = |window: u64, srtt: u64| u128::from(window) * u128::from(srtt);
    match (a.srtt.as_nanos(), b.srtt.as_nanos()) {
        (0, 0) => a.window.cmp(&b.window),
        (0, _) => Ordering::Less,
        (_, 0) => Ordering::Greater,
        (rtt_a, rtt_b) => product(a.window, rtt_b).cmp(&product(b.window, rtt_a)),
    }
}

fn first_done(view: &View<'_>) -> Option<usize> {
    let finish = |path: &usize| {
        let held = view.paths[*path].in_flight / view.mss;
        let windows = held / view.window_packets(*path);
        let srtt = view.paths[*path].srtt.as_nanos();
        (srtt == 0, u128::from(windows + 1) * u128::from(srtt))
    };
    view.ready().iter().min_by_key(finish)
}
