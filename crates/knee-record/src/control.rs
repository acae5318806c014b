//! Control of a run from another thread, on any ground.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Stops a run and reports its progress, from another thread.
#[derive(Debug, Default)]
pub struct Control {
    /// If set, the run ends early and keeps its records.
    pub stop: Arc<AtomicBool>,
    /// Time reached in the scenario, nanoseconds.
    pub now_ns: AtomicU64,
}

impl Control {
    /// Returns the control of an auxiliary run: it stops with this run and has its own progress.
    pub fn aside(&self) -> Control {
        Control { stop: Arc::clone(&self.stop), ..Control::default() }
    }

    /// Asks the run to end and keep its records.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Returns the time reached in the scenario, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}
