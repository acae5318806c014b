//! Earliest completion first (ECF): uses the slower path only if waiting for
//! the faster one would finish later.
//!
//! Lim, Nahum, Towsley, Gibbens: "ECF: An MPTCP path scheduler to manage
//! heterogeneous paths", CoNEXT 2017, algorithm 1. With f the fastest path, s
//! the one that minrtt would take, k the bytes not yet given to a path and
//! d = max(var_f, var_s), all windows in bytes:
//!
//! ```text
//! s = f                                           send on f
//! srtt_f (max(k, cwnd_f) + cwnd_f)                waiting for f and sending
//!   < cwnd_f (srtt_s + d) (1 + waiting beta)      all there is faster than s,
//!   and srtt_s max(k, cwnd_s)                     and s does not finish while
//!   >= cwnd_s (2 srtt_f + d)                      f frees its window: wait
//! otherwise                                       send on s
//! ```

use crate::sched::registry::{Build, Entry, Make};
use crate::sched::{Decision, Path, Place, Scheduler, View, minrtt};
use knee_units::registry::{Kind, Parameter, SelectionError, Settings};

const BETA: &str = "beta";

pub(crate) const ENTRY: Entry = Entry {
    name: "ecf",
    summary: "waits for the fastest path where that completes earlier",
    source: "Lim et al., CoNEXT 2017",
    parameters: &[Parameter {
        name: BETA,
        kind: Kind::Number { min: 0.0, max: 10.0 },
        default: "0.25",
        summary: "how much the case for waiting may weaken while it waits",
    }],
    presets: &[],
    build: Build { make: Make::BuiltIn(build), exact_paths: None },
};

fn build(settings: &Settings) -> Result<Box<dyn Scheduler>, SelectionError> {
    Ok(Box::new(Ecf { beta: settings.number(BETA), waiting: false }))
}

#[derive(Debug)]
struct Ecf {
    beta: f64,
    /// Whether the last comparison ended in waiting.
    waiting: bool,
}

impl Scheduler for Ecf {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let (true, Some(chosen)) = (view.has_new(), minrtt::choose(view)) else {
            return Decision::Wait;
        };
        let fastest = view.fastest(view.eligible()).unwrap_or(chosen);
        if chosen != fastest && self.waits(view, &view.paths[fastest], &view.paths[chosen]) {
            return view.wait_rather_than(chosen);
        }
        Decision::Send(chosen, Place::Head)
    }
}

impl Ecf {
    fn waits(&mut self, view: &View<'_>, fast: &Path, slow: &Path) -> bool {
        let unsent = view.unsent as f64;
        let (window_f, window_s) = (fast.window as f64, slow.window as f64);
        // Nanoseconds and bytes are whole numbers: their products are exact,
        // and so are the comparisons at equality.
        let (srtt_f, srtt_s) = (fast.srtt.as_nanos() as f64, slow.srtt.as_nanos() as f64);
        let margin = fast.rtt_variation.max(slow.rtt_variation).as_nanos() as f64;

        let hysteresis = if self.waiting { 1.0 + self.beta } else { 1.0 };
        let by_fast = srtt_f * (unsent.max(window_f) + window_f);
        if by_fast >= window_f * (srtt_s + margin) * hysteresis {
            self.waiting = false;
            return false;
        }
        // Algorithm 1 leaves `waiting` unchanged if only this comparison fails.
        let too_slow = srtt_s * unsent.max(window_s) >= window_s * (2.0 * srtt_f + margin);
        self.waiting |= too_slow;
        too_slow
    }
}
