//! Delay-aware packet scheduling (DAPS): a slow path gets the data that will be
//! due when its packets arrive.
//!
//! Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli: "DAPS: Intelligent
//! delay-aware packet scheduling for multipath transport", ICC 2014. One-way
//! delays are taken as d = srtt / 2. A plan covers one RTT of the slowest path,
//! in which path j sends ceil(rtt_max / rtt_j) windows, one per RTT; they
//! arrive at d_j, 3 d_j, 5 d_j, … The order of arrivals is the order of data:
//!
//! ```text
//! fast, window 2, d = 1        slow, window 1, d = 3
//! arrival    t = 1     t = 3     t = 3                         t = 5
//! packets    0 1       2 3       4 (sent on slow at the start) 5 6
//! ```
//!
//! The plan is a snapshot: changes of windows and RTTs are ignored until the
//! next one, which is the scheme's known weakness. The next plan begins when
//! the paths with room have sent their parts.
//!
//! Differences from its sources: the plan spans one RTT of the slowest path
//! rather than the least common multiple of the delays, which is unbounded for
//! nanoseconds. The authors' kernel module counts a window per one-way delay;
//! that puts the slow path's data twice as far ahead as necessary.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, PATHS_MAX, Path, PathSet, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "daps",
    summary: "a slow path gets the data that is due when its packets arrive",
    source: "Kuhn et al., ICC 2014",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Daps::default()))
}

#[derive(Debug, Default)]
struct Daps {
    plan: Plan,
}

impl Scheduler for Daps {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let ready = view.ready();
        if !view.has_new() || ready.is_empty() {
            return Decision::Wait;
        }
        if !ready.iter().any(|path| self.plan.has_part(path)) {
            self.plan = Plan::new(view);
        }
        let Some((packets, path)) = self.plan.next(ready) else { return Decision::Wait };
        let ahead = packets.saturating_mul(view.mss);
        // The data planned for the path must exist, and the receiver must have room for it.
        if ahead > 0 && ahead.saturating_add(view.mss) > view.unsent.min(view.window_left) {
            let answer = view.wait_rather_than(path);
            self.plan.slots[path].given += u64::from(answer != Decision::Wait);
            return answer;
        }
        self.plan.slots[path].given += 1;
        Decision::Send(path, if ahead == 0 { Place::Head } else { Place::Ahead(ahead) })
    }

    fn on_paths_changed(&mut self, _paths: &[Path]) {
        self.plan = Plan::default();
    }
}

#[derive(Debug, Default)]
struct Plan {
    /// Number of paths.
    count: usize,
    slots: [Slot; PATHS_MAX],
}

/// A path's part of the plan.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// One-way delay, ns.
    delay: u64,
    /// Packets of one window.
    window: u64,
    /// Packets of all windows sent within the plan.
    planned: u64,
    /// Packets of `planned` that were sent.
    given: u64,
}

impl Plan {
    fn new(view: &View<'_>) -> Plan {
        let eligible = view.eligible();
        let span = eligible.iter().map(|path| delay(view, path, 0)).max().unwrap_or(1);
        let mut plan = Plan { count: view.paths.len(), ..Plan::default() };
        for path in eligible.iter() {
            let (delay, window) = (delay(view, path, span), view.window_packets(path));
            let planned = window.saturating_mul(span.div_ceil(delay));
            plan.slots[path] = Slot { delay, window, planned, given: 0 };
        }
        plan
    }

    fn has_part(&self, path: usize) -> bool {
        self.slots[path].given < self.slots[path].planned
    }

    /// Returns the path in `ready` with a remaining part whose next packet is
    /// due first, with [`packets_before`](Self::packets_before) it.
    fn next(&self, ready: PathSet) -> Option<(u64, usize)> {
        let able = ready.iter().filter(|path| self.has_part(*path));
        able.map(|path| (self.packets_before(path), path)).min()
    }

    /// Returns the unsent packets that precede the path's next one.
    fn packets_before(&self, path: usize) -> u64 {
        let others = (0..self.count).filter(|other| *other != path);
        others.map(|other| self.arriving_before(other, path)).sum()
    }

    /// Returns the unsent packets of `other` that arrive before the next one of
    /// `path`. If two windows arrive together, that of the faster path comes
    /// first, as in the paper's algorithm 1.
    fn arriving_before(&self, other: usize, path: usize) -> u64 {
        let (own, theirs) = (&self.slots[path], &self.slots[other]);
        if theirs.planned == 0 {
            return 0;
        }
        let at = (2 * (own.given / own.window) + 1).saturating_mul(own.delay);
        let first_of_equals = (theirs.delay, other) < (own.delay, path);
        // Odd multiples of the delay up to `at`.
        let windows = ((if first_of_equals { at } else { at - 1 }) / theirs.delay).div_ceil(2);
        let packets = windows.saturating_mul(theirs.window).min(theirs.planned);
        packets.saturating_sub(theirs.given)
    }
}

/// Returns the one-way delay in nanoseconds; `unknown` (at least 1) without a
/// sample, which makes an unmeasured path as slow as the slowest.
fn delay(view: &View<'_>, path: usize, unknown: u64) -> u64 {
    match view.paths[path].srtt.as_nanos() / 2 {
        0 => unknown.max(1),
        delay => delay,
    }
}
