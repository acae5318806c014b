//! A hand on a run, whatever its ground.

use knee_scenario::Ground;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Stops a run and says how far it is.
#[derive(Debug)]
pub enum Control {
    /// Of a run on the simulator.
    Sim(knee_sim::Control),
    /// Of a run on the kernel.
    Kernel(knee_kernel::Control),
}

impl Control {
    /// For a run that has not begun.
    pub fn on(ground: Ground) -> Control {
        match ground {
            Ground::Kernel => Control::Kernel(knee_kernel::Control::default()),
            _ => Control::Sim(knee_sim::Control::default()),
        }
    }

    /// Asks the run to end and to keep its records.
    pub fn stop(&self) {
        self.parts().0.store(true, Ordering::SeqCst);
    }

    /// Time reached, nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.parts().1.load(Ordering::Relaxed)
    }

    /// Says that the run is over.
    pub fn ended(&self, duration_ns: u64) {
        self.parts().1.store(duration_ns, Ordering::Relaxed);
    }

    fn parts(&self) -> (&AtomicBool, &AtomicU64) {
        match self {
            Control::Sim(control) => (&control.stop, &control.now_ns),
            Control::Kernel(control) => (&control.stop, &control.now_ns),
        }
    }
}
