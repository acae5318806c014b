//! DEMS: two paths work towards each other through a chunk.
//!
//! Guo, Nikravesh, Mao, Qian, Sen: "Accelerating multipath transport through
//! balanced subflow completion", MobiCom 2017. The fast path sends a chunk from
//! its head, the slow one from its tail, so that neither waits for the other's
//! packets; both should finish at the receiver at the same time:
//!
//! ```text
//! slow takes the tail only if   d_slow <= d_fast + left / rate_fast
//! ```
//!
//! with one-way delays d = srtt / 2; otherwise the fast path alone would
//! deliver the rest before a packet of the slow one arrives. Estimates are
//! never exact, so some packets around the meeting point are sent twice.
//!
//! Here a chunk is the data waiting when the last one was used up, within the
//! receiver's window and [`CHUNK_MAX`]. The amount sent twice is our own
//! interpretation: what the fast path delivers in the larger RTT variation.
//!
//! Left out: the slow path repeats nothing. It would continue backwards, but a
//! repetition always begins with the oldest packet, which for the fast path is
//! the meeting point but not for the slow one.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Path, PathSet, Place, Scheduler, View};
use knee_units::registry::{SelectionError, Settings};
use knee_units::{Rate, Time};

/// Largest chunk in bytes: the receiver must hold everything from the tail, and
/// the paper's files are no larger.
const CHUNK_MAX: u64 = 8_000_000;

pub(crate) const ENTRY: Entry = Entry {
    name: "dems",
    summary: "the fast path from the head of a chunk, the slow one from its tail",
    source: "Guo et al., MobiCom 2017",
    parameters: &[],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: Some(2) },
};

fn build(_settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Dems { beyond: 0, seen: 0, state: State::Met { to_repeat: 0 } }))
}

#[derive(Debug)]
struct Dems {
    /// Unsent bytes after the chunk.
    beyond: u64,
    /// Unsent bytes at the last call; a larger value means that data was written since.
    seen: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The paths are sending towards each other.
    Open,
    /// They have met; the fast path may repeat `to_repeat` bytes.
    Met { to_repeat: u64 },
}

impl Scheduler for Dems {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        self.account_for_writes(view.unsent);
        let ready = view.ready();
        let Some(pair) = Pair::of(view) else {
            return match ready.iter().next() {
                Some(only) if view.has_new() => Decision::Send(only, Place::Head),
                _ => Decision::Wait,
            };
        };
        if matches!(self.state, State::Open) && self.left(view) == 0 {
            self.state = State::Met { to_repeat: pair.uncertain_bytes(view) };
        }
        if let Some(repeat) = self.repeat(view, &pair, ready) {
            return repeat;
        }
        if !view.has_new() {
            return Decision::Wait;
        }
        if self.left(view) == 0 {
            self.open(view);
        }
        self.advance(view, &pair, ready)
    }
}

impl Dems {
    fn account_for_writes(&mut self, unsent: u64) {
        self.beyond += unsent.saturating_sub(self.seen);
        self.beyond = self.beyond.min(unsent);
        self.seen = unsent;
    }

    /// Returns the bytes of the chunk not yet given to a path.
    fn left(&self, view: &View<'_>) -> u64 {
        view.unsent - self.beyond
    }

    /// Starts a chunk, of whole packets unless it takes all data.
    fn open(&mut self, view: &View<'_>) {
        let fits = view.unsent.min(CHUNK_MAX).min(view.window_left);
        let size = if fits == view.unsent { fits } else { fits - fits % view.mss };
        self.beyond = view.unsent - size;
        self.state = State::Open;
    }

    fn repeat(&mut self, view: &View<'_>, pair: &Pair, ready: PathSet) -> Option<Decision> {
        let State::Met { to_repeat } = &mut self.state else { return None };
        let able = ready.contains(pair.fast) && view.can_repeat.contains(pair.fast);
        if *to_repeat == 0 || !able {
            return None;
        }
        *to_repeat = to_repeat.saturating_sub(view.mss);
        Some(Decision::Repeat(pair.fast))
    }

    fn advance(&self, view: &View<'_>, pair: &Pair, ready: PathSet) -> Decision {
        if ready.contains(pair.fast) {
            return Decision::Send(pair.fast, Place::Head);
        }
        // A third path, which no checked scenario has, is used only to keep the
        // connection from stalling.
        let Some(path) = ready.iter().find(|path| *path == pair.slow) else {
            return ready.iter().next().map_or(Decision::Wait, |path| view.wait_rather_than(path));
        };
        let left = self.left(view);
        if left > view.window_left || !pair.slow_is_in_time(view, left) {
            return view.wait_rather_than(path);
        }
        let place = match (self.beyond, left.saturating_sub(view.mss)) {
            (_, 0) => Place::Head,
            (0, _) => Place::Tail,
            (_, before) => Place::Ahead(before),
        };
        Decision::Send(path, place)
    }
}

/// The two paths by role.
struct Pair {
    fast: usize,
    slow: usize,
}

impl Pair {
    fn of(view: &View<'_>) -> Option<Pair> {
        let eligible = view.eligible();
        let fast = view.fastest(eligible)?;
        let slow = view.fastest(PathSet(eligible.0 & !(1 << fast)))?;
        Some(Pair { fast, slow })
    }

    /// Whether a packet of the slow path arrives no later than the fast path
    /// would have delivered everything left.
    fn slow_is_in_time(&self, view: &View<'_>, left: u64) -> bool {
        let (fast, slow) = (&view.paths[self.fast], &view.paths[self.slow]);
        let alone = one_way_delay(fast).saturating_add(fast.throughput().time_for(left));
        one_way_delay(slow) <= alone
    }

    fn uncertain_bytes(&self, view: &View<'_>) -> u64 {
        let (fast, slow) = (&view.paths[self.fast], &view.paths[self.slow]);
        let rate: Rate = fast.throughput();
        rate.bytes_in(fast.rtt_variation.max(slow.rtt_variation)).clamp(view.mss, CHUNK_MAX)
    }
}

fn one_way_delay(path: &Path) -> Time {
    Time::from_nanos(path.srtt.as_nanos() / 2)
}
