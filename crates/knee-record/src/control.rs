//! A hand on a run, whatever its ground.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Stops a run and says how far it is, from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set: the run ends early and keeps its records.
    pub stop: AtomicBool,
    /// Time of the scenario reached, nanoseconds.
    pub now_ns: AtomicU64,
}

impl Control {
    /// Asks the run to end and to keep its records.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Time of the scenario reached, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}
