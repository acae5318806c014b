//! Synchronous completion (SCTC): all paths finish their queued data at the same time.
//!
//! Path i delivers s_i packets in t_i = ceil(s_i / cwnd_i) rtt_i, so a partly
//! filled last window costs a whole RTT. The total time is the largest t_i;
//! minimising it over the shares is an integer problem, solved greedily, one
//! packet at a time:
//!
//! ```text
//! R1 = packets not yet sent, R2 = free windows of all paths, in packets
//! R1 >= R2   every window fills anyway: the highest rate cwnd_i / rtt_i
//! R1 <  R2   the tail: the path that finishes first, smallest t'_i + rtt_i,
//!            with t'_i = floor(s_i / cwnd_i) rtt_i for its whole windows
//! ```
//!
//! The paper leaves open what s_i is, and for how long R1, cwnd_i and rtt_i
//! hold. Three readings, none of which takes all of its text:
//!
//! | reading | takes | leaves out |
//! | --- | --- | --- |
//! | packet by packet, the default | the listing: R1, R2 and both rules anew for each packet, over the paths with room; s_i is what path i holds | cycles; that cwnd_i is the window still free (only R2 is) |
//! | `cycle` | the model: what is unsent when a cycle begins is its task, cwnd_i (all of it free then) and rtt_i hold until it has arrived, what is written meanwhile waits; s_i is what path i is given in the cycle | R1 and R2 anew for each packet |
//! | `plan` | the goal alone: no path takes a packet that would end later than all the others | both rules; it may leave a path with room idle |
//!
//! *Packet by packet*: a path with room holds less than a window, so its t'_i is
//! zero and the tail goes to the lowest RTT; t'_i is above zero only on a path
//! that is ready although its window has just shrunk below what it holds.
//!
//! *In cycles* (`cycle = true`): shares in proportion to the rates, in whole
//! windows, leave n' = n - sum of floor(s_i / cwnd_i) cwnd_i packets, each of which
//! goes to the smallest t'_i + rtt_i. Whole windows so given end by T', the others
//! in the order of their ends, so that the shares are those of the least T with
//!
//! ```text
//! sum of floor(T / rtt_i) cwnd_i >= n
//! ```
//!
//! A path without an RTT sample has no share. The task has arrived when nothing is in
//! flight on the paths that count. A path that comes or goes ends the cycle early; what the
//! others hold then is the beginning of their shares. The paper's task is its
//! send buffer; with `send_buffer = true` a task is at most two windows of all paths,
//! otherwise it is all that the application has written, a whole file.
//!
//! *Planned* (`plan = true`): the integer problem is solved at each decision,
//! where the data that each path holds is the beginning of its share:
//!
//! ```text
//! share_i(t) = max(0, floor(t / rtt_i) cwnd_i - held_i)
//! T          = least t for which the sum of share_i(t) is all that waits
//! ```
//!
//! A path sends only if it has a share at T, the highest rate first; a path
//! without a share would finish later than all the others, and waits. This
//! interpretation is our own; the paper gives the model and the greedy rules.

mod cycle;

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, PathSet, Place, Scheduler, View};
use cycle::Cycle;
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};
use std::cmp::Ordering;

const PLAN: &str = "plan";
const CYCLE: &str = "cycle";
const SEND_BUFFER: &str = "send_buffer";

/// Largest number of windows that a plan looks ahead. Beyond that, a path
/// without a share is slower than the others by this factor.
const STEPS_MAX: usize = 4096;

pub(crate) const ENTRY: Entry = Entry {
    name: "sctc",
    summary: "the paths finish their shares of what is queued at the same time",
    source: "synchronous-completion study, scheduling rules (studies/synchronous-completion)",
    parameters: &[
        Parameter {
            name: PLAN,
            kind: Kind::Switch,
            default: "false",
            summary: "solves the model at each decision, and waits for a path that has no share",
        },
        Parameter {
            name: CYCLE,
            kind: Kind::Switch,
            default: "false",
            summary: "divides what is unsent at once, and nothing more until it has arrived",
        },
        Parameter {
            name: SEND_BUFFER,
            kind: Kind::Switch,
            default: "false",
            summary: "a cycle divides at most two windows of all paths, as Linux buffers them",
        },
    ],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    let [plan, cycle, buffer] = [PLAN, CYCLE, SEND_BUFFER].map(|name| settings.switch(name));
    let refused = |parameter: &str, problem, advice| {
        Err(SelectionError { parameter: Some(parameter.to_owned()), problem, advice })
    };
    if plan && cycle {
        let problem = format!("{PLAN} and {CYCLE} of sctc are two readings");
        return refused(CYCLE, problem, format!("remove {PLAN} or {CYCLE}"));
    }
    if buffer && !cycle {
        let problem = format!("{SEND_BUFFER} of sctc needs {CYCLE}");
        return refused(SEND_BUFFER, problem, format!("write {CYCLE} = true as well"));
    }
    Ok(Box::new(match (plan, cycle) {
        (true, _) => Sctc::Planned,
        (_, true) => Sctc::InCycles(Box::new(Cycle::new(buffer))),
        _ => Sctc::ByPacket,
    }))
}

/// The reading.
#[derive(Debug)]
enum Sctc {
    ByPacket,
    InCycles(Box<Cycle>),
    Planned,
}

impl Scheduler for Sctc {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if !view.has_new() {
            return Decision::Wait;
        }
        match self {
            Sctc::ByPacket => by_packet(view),
            Sctc::InCycles(cycle) => cycle.schedule(view),
            Sctc::Planned => planned(view),
        }
    }
}

fn by_packet(view: &View<'_>) -> Decision {
    let is_tail = unsent(view) < free(view);
    let path = if is_tail { first_done(view) } else { highest_rate(view, view.ready()) };
    path.map_or(Decision::Wait, |path| Decision::Send(path, Place::Head))
}

/// Returns R1; the last, short packet counts as one.
fn unsent(view: &View<'_>) -> u64 {
    view.unsent.div_ceil(view.mss)
}

/// Returns R2. A path that pacing holds back still has free window: it will
/// fill it within this round.
fn free(view: &View<'_>) -> u64 {
    view.eligible().iter().map(|path| view.paths[path].free() / view.mss).sum()
}

fn highest_rate(view: &View<'_>, among: PathSet) -> Option<usize> {
    let rate = |path: usize| (view.paths[path].window, view.paths[path].srtt.as_nanos());
    // The last of equal maxima would win; the rule is the lowest index.
    among.iter().min_by(|a, b| faster(rate(*a), rate(*b)))
}

/// Orders two paths by window / RTT, the higher rate first; by cross-multiplication, which is
/// exact. A path without an RTT sample has no rate and is last.
fn faster((window_a, rtt_a): (u64, u64), (window_b, rtt_b): (u64, u64)) -> Ordering {
    let product = |window: u64, rtt: u64| u128::from(window) * u128::from(rtt);
    match (rtt_a, rtt_b) {
        (0, 0) => window_b.cmp(&window_a),
        (0, _) => Ordering::Greater,
        (_, 0) => Ordering::Less,
        _ => product(window_b, rtt_a).cmp(&product(window_a, rtt_b)),
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

/// Returns the ready path of highest rate among those with a share of the plan.
fn planned(view: &View<'_>) -> Decision {
    let ready = view.ready();
    let Some(quickest) = highest_rate(view, ready) else { return Decision::Wait };
    match highest_rate(view, with_a_share(view, ready)) {
        Some(path) => Decision::Send(path, Place::Head),
        None => view.wait_rather_than(quickest),
    }
}

/// Returns the paths of `ready` with a share when all finish as early as possible.
/// If no path has an RTT sample, planning is impossible: returns all of them.
fn with_a_share(view: &View<'_>, ready: PathSet) -> PathSet {
    let rtt = |path: usize| view.paths[path].srtt.as_nanos();
    let planned = || view.eligible().iter().filter(|path| rtt(*path) > 0);
    let share = |path: usize, time: u64| {
        let held = view.paths[path].in_flight.div_ceil(view.mss);
        (time / rtt(path)).saturating_mul(view.window_packets(path)).saturating_sub(held)
    };
    let mut time = 0_u64;
    for _ in 0..STEPS_MAX {
        // Shares grow only at the end of a round trip.
        let ends = planned().map(|path| (time / rtt(path)).saturating_add(1) * rtt(path));
        let Some(next) = ends.min() else { return ready };
        time = next;
        let mut chosen = PathSet::default();
        for path in ready.iter().filter(|path| rtt(*path) > 0 && share(*path, time) > 0) {
            chosen.insert(path);
        }
        let all = planned().fold(0_u64, |sum, path| sum.saturating_add(share(path, time)));
        // Shares only grow: once all have one, more time changes nothing.
        if all >= unsent(view) || chosen == ready {
            return chosen;
        }
    }
    ready
}
