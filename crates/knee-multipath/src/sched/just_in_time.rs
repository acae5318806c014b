//! Just in time: each path carries the packet that will be due when it arrives.
//!
//! ```text
//! D_i    = max(min_rtt_i + wait_i, (in_flight_i + mss) / capacity_i)
//! wait_i = mss srtt_i / cwnd_i, if path i is not ready, else 0
//! A_i    = D_i - min_rtt_i / 2
//! C_j(t) = 0 for t < D_j, else
//!          min(capacity_j t - in_flight_j, max(free_j, mss) + released_j(t - D_j))
//! lead_i = sum of C_j(A_i + min_rtt_j / 2), over the paths j quicker than i
//! held_i = sum of C_j(D_i), over the same
//! ```
//!
//! The next packet of path i arrives after A_i and is acknowledged after D_i: it
//! waits for the data that the path holds, or for its window and a round trip, half
//! of which is assumed for the return. The quicker of two paths is the one with the
//! smaller A. C_j(t) is the unsent data that path j will have acknowledged by t;
//! its window releases cwnd_j per srtt_j. What the quicker paths deliver before a
//! packet of path i arrives precedes it: the packet `lead` bytes after the head is
//! due on path i. Path i waits if the quicker paths deliver everything before its
//! acknowledgement, or if the shared window would be full by then. If that window
//! is tight, it moves with acknowledgements, and `held` replaces `lead`. The
//! quickest path has no lead and is never held back.
//!
//! The data that a path holds is assumed to be spread over its round trip. So with
//! known capacities and no loss, nothing waits at the receiver for longer than the
//! slower of two paths takes for a packet, once both are full. A first burst
//! arrives later than calculated, by at most a round trip (`tests/in_order.rs`).
//!
//! A path of unknown capacity counts as infinitely fast within its window, and
//! is tried with a few packets.
//!
//! This scheduler is our own; it is not in the literature.

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, PATHS_MAX, Path, PathSet, Place, Scheduler, View};
use knee_units::NANOS_PER_SECOND;
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};

const GROWTH: &str = "growth";
const AHEAD: &str = "ahead";

pub(crate) const ENTRY: Entry = Entry {
    name: "just-in-time",
    summary: "each path carries the packet that is due when it would arrive there",
    source: "this project, docs/schedulers.md",
    parameters: &[
        Parameter {
            name: GROWTH,
            kind: Kind::Switch,
            default: "false",
            summary: "foresees that a window doubles in slow start",
        },
        Parameter {
            name: AHEAD,
            kind: Kind::Switch,
            default: "true",
            summary: "a slower path carries later packets; false: the next one",
        },
    ],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    let (growth, ahead) = (settings.switch(GROWTH), settings.switch(AHEAD));
    Ok(Box::new(JustInTime { forecast: Forecast { growth }, ahead, order: Order::default() }))
}

#[derive(Debug)]
struct JustInTime {
    forecast: Forecast,
    ahead: bool,
    /// Of the current decision; kept because to clear it costs more than to fill it.
    order: Order,
}

impl Scheduler for JustInTime {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if !view.has_new() {
            return Decision::Wait;
        }
        let eligible = view.eligible();
        if let Some(path) = quickest(view, eligible).filter(|path| takes_head(&view.paths[*path])) {
            return Decision::Send(path, Place::Head);
        }
        let JustInTime { forecast, ahead, order } = self;
        order.fill(view, eligible);
        let mut first_ready = None;
        for (rank, candidate) in order.iter().enumerate() {
            let path = candidate.path;
            if !view.paths[path].ready || order.is_on_trial(view, path) {
                continue;
            }
            let quicker = &order.as_slice()[..rank];
            // Data that arrives before it, and data acknowledged before it.
            let before = forecast.brought(view, quicker, |other| candidate.arrival + other.back);
            let meanwhile = forecast.brought(view, quicker, |_| candidate.due).max(before);
            let reach = meanwhile.saturating_add(view.mss);
            // A window that will soon be full moves with the acknowledgements.
            let is_tight = view.window_left < meanwhile.saturating_mul(TIGHT);
            let lead = if is_tight { meanwhile } else { before };
            if meanwhile == 0 || meanwhile < view.unsent && reach <= view.window_left {
                let place = if *ahead && lead > 0 { Place::Ahead(lead) } else { Place::Head };
                return Decision::Send(path, place);
            }
            first_ready.get_or_insert(path);
        }
        first_ready.map_or(Decision::Wait, |path| view.wait_rather_than(path))
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn plans_order(&self) -> bool {
        true
    }
}

/// What paths will have delivered.
#[derive(Debug)]
struct Forecast {
    growth: bool,
}

impl Forecast {
    /// Returns the bytes that the `quicker` paths deliver, each acknowledged by
    /// its own time, in whole packets.
    fn brought(
        &self,
        view: &View<'_>,
        quicker: &[Candidate],
        by: impl Fn(&Candidate) -> u64,
    ) -> u64 {
        let each = quicker
            .iter()
            .map(|other| self.brings(view, &view.paths[other.path], by(other), other.due));
        // In floating point: a path with unknown capacity and a doubling window
        // delivers more than an integer can hold.
        let packets = each.sum::<f64>() / view.mss as f64;
        (packets as u64).saturating_mul(view.mss)
    }

    /// Returns C of the path at `time`; its own next packet is acknowledged at `due`.
    fn brings(&self, view: &View<'_>, path: &Path, time: u64, due: u64) -> f64 {
        if time < due {
            return 0.0;
        }
        let rounds = match path.srtt.as_nanos() {
            0 => return f64::INFINITY,
            srtt => (time - due) as f64 / srtt as f64,
        };
        let window = path.window as f64;
        let released = if self.growth && path.doubles {
            2.0 * window * (rounds.min(ROUNDS_MAX).exp2() - 1.0)
        } else {
            window * rounds
        };
        let by_window = path.free().max(view.mss) as f64 + released;
        let Some(capacity) = path.capacity else { return by_window };
        let carried = capacity.as_bits_per_second() as f64 * time as f64 / NANOS_TIMES_BITS;
        by_window.min(carried - path.in_flight as f64).max(0.0)
    }
}

/// Largest number of doublings considered.
const ROUNDS_MAX: f64 = 40.0;

/// Packets that a path may always hold before its capacity is known: two
/// consecutive ones are enough to measure it.
const TRIAL: u64 = 2;
/// A shared window is tight if it holds less than this multiple of what the
/// quicker paths deliver until a packet is acknowledged.
const TIGHT: u64 = 4;
/// Divisor of the remaining data for the amount that a path on trial may hold:
/// one with a tenth of the total rate would finish it in time.
const STAKE: u64 = 10;

/// Nanoseconds per second times bits per byte.
const NANOS_TIMES_BITS: f64 = 8.0 * NANOS_PER_SECOND as f64;

/// A path that counts, with its D.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    due: u64,
    /// Return time of its acknowledgement: half of its shortest round trip.
    back: u64,
    /// When its packet arrives.
    arrival: u64,
    path: usize,
}

impl Candidate {
    #[inline]
    fn of(view: &View<'_>, path: usize) -> Candidate {
        let due = due(view, &view.paths[path]);
        let back = view.paths[path].min_rtt.as_nanos() / 2;
        Candidate { due, back, arrival: due - back.min(due), path }
    }
}

/// The paths that count, ordered by (A, index).
#[derive(Debug, Default)]
struct Order {
    candidates: [Candidate; PATHS_MAX],
    count: usize,
}

impl Order {
    fn fill(&mut self, view: &View<'_>, among: PathSet) {
        self.count = 0;
        for path in among.iter() {
            let candidate = Candidate::of(view, path);
            // Insertion sort: there are few, and they are usually in order.
            let mut at = self.count;
            while at > 0 && self.candidates[at - 1].arrival > candidate.arrival {
                self.candidates[at] = self.candidates[at - 1];
                at -= 1;
            }
            self.candidates[at] = candidate;
            self.count += 1;
        }
    }

    /// Whether the path's capacity is unknown, another is in use, and the path
    /// holds as much as may be put at risk: if it is slow, everything waits for it.
    fn is_on_trial(&self, view: &View<'_>, path: usize) -> bool {
        let Path { capacity, in_flight, .. } = view.paths[path];
        let stake = (view.unsent.min(view.window_left) / STAKE).max(TRIAL * view.mss);
        let in_use = |other: &Path| other.capacity.is_some() || other.in_flight > in_flight;
        capacity.is_none()
            && in_flight >= stake
            && self.iter().any(|other| in_use(&view.paths[other.path]))
    }

    fn as_slice(&self) -> &[Candidate] {
        &self.candidates[..self.count]
    }

    fn iter(&self) -> std::slice::Iter<'_, Candidate> {
        self.as_slice().iter()
    }
}

/// Returns the quickest path, with the smallest (A, index).
fn quickest(view: &View<'_>, among: PathSet) -> Option<usize> {
    among.iter().min_by_key(|path| Candidate::of(view, *path).arrival)
}

/// Whether a path takes the next packet if it is the quickest; if its capacity is
/// unknown, that depends on the others.
fn takes_head(path: &Path) -> bool {
    path.ready && path.capacity.is_some()
}

/// Returns D of a path, nanoseconds.
fn due(view: &View<'_>, path: &Path) -> u64 {
    let carried = path.time_to_carry(path.in_flight + view.mss).as_nanos();
    let begins = if path.ready {
        0
    } else {
        (view.mss as f64 * path.srtt.as_nanos() as f64 / path.window.max(1) as f64) as u64
    };
    path.min_rtt.as_nanos().saturating_add(begins).max(carried)
}
