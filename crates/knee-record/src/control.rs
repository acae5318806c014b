//! A hand on a run, whatever its ground.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Stops a run and says how far it is, from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// Set: the run ends early and keeps its records.
    pub stop: Arc<AtomicBool>,
    /// Time of the scenario reached, nanoseconds.
    pub now_ns: AtomicU64,
}

impl Control {
    /// Controls a run that is made for another one: it ends when that one is to
    /// end, and has a progress of its own.
    pub fn aside(&self) -> Control {
        Control { stop: Arc::clone(&self.stop), ..Control::default() }
    }

    /// Asks the run to end and to keep its records.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Time of the scenario reached, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}
