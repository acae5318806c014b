//! Monitors and stops runs from another thread.

use crate::ground::Pace;
use crate::load::Load;
use knee_record::Control;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle to everything that a [`crate::Lab`] runs. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Handle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    under_way: Mutex<Vec<Tracked>>,
}

/// A run with its load, started or not.
#[derive(Clone, Debug)]
pub(crate) struct Tracked {
    pub control: Arc<Control>,
    pub load: Load,
}

/// Progress of the current batch of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Whether their time is virtual or real.
    pub pace: Pace,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs that have ended.
    pub finished: usize,
    /// Fraction of the total work that is done, 0 to 1.
    pub done: f64,
    /// Remaining real time, seconds; only for runs in real time, since others cannot be predicted.
    pub left_s: Option<f64>,
}

impl Handle {
    /// Asks the current runs to end and keep their records; no other run starts.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.locked(|runs| runs.iter().for_each(|run| run.control.stop()));
    }

    /// Whether [`Handle::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Progress of the current runs; `None` if nothing is running.
    pub fn progress(&self) -> Option<Progress> {
        self.locked(|runs| {
            let pace = runs.first()?.load.pace;
            let whole: f64 = runs.iter().map(|run| run.load.weight).sum();
            let done: f64 = runs.iter().map(|run| run.load.weight * run.done()).sum();
            Some(Progress {
                pace,
                runs: runs.len(),
                finished: runs.iter().filter(|run| run.done() >= 1.0).count(),
                done: done / whole,
                left_s: (pace == Pace::Real).then(|| runs.iter().map(Tracked::left_s).sum()),
            })
        })
    }

    /// Registers these runs as current until the returned guard is dropped.
    pub(crate) fn begin(&self, runs: Vec<Tracked>) -> UnderWay<'_> {
        self.locked(|under_way| *under_way = runs);
        UnderWay(self)
    }

    fn locked<T>(&self, f: impl FnOnce(&mut Vec<Tracked>) -> T) -> T {
        f(&mut self.shared.under_way.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Guard of the runs that a handle tracks.
#[derive(Debug)]
pub(crate) struct UnderWay<'h>(&'h Handle);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.locked(Vec::clear);
    }
}

impl Tracked {
    /// Fraction that is done.
    fn done(&self) -> f64 {
        (self.control.now_ns() as f64 / self.load.duration_ns.max(1) as f64).min(1.0)
    }

    /// Remaining real time, seconds.
    fn left_s(&self) -> f64 {
        let setup = if self.control.now_ns() == 0 { self.load.setup_s } else { 0.0 };
        setup + self.load.duration_ns as f64 / 1e9 * (1.0 - self.done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked(duration_ns: u64, now_ns: u64) -> Tracked {
        let control = Arc::new(Control::default());
        control.now_ns.store(now_ns, Ordering::Relaxed);
        let load = Load { pace: Pace::Real, duration_ns, setup_s: 0.5, weight: duration_ns as f64 };
        Tracked { control, load }
    }

    /// Ten seconds of work: one run has done four of its six, the other has not begun.
    #[test]
    fn progress_is_the_sum_of_all_runs() {
        let handle = Handle::default();
        assert_eq!(handle.progress(), None);
        let under_way =
            handle.begin(vec![tracked(6_000_000_000, 4_000_000_000), tracked(4_000_000_000, 0)]);
        let progress = handle.clone().progress().unwrap();
        assert_eq!((progress.runs, progress.finished), (2, 0));
        assert!((progress.done - 0.4).abs() < 1e-9, "{progress:?}");
        assert!((progress.left_s.unwrap() - 6.5).abs() < 1e-9, "{progress:?}");
        drop(under_way);
        assert_eq!(handle.progress(), None);
    }

    #[test]
    fn a_stop_reaches_every_run() {
        let handle = Handle::default();
        let runs = vec![tracked(1, 0), tracked(1, 0)];
        let controls: Vec<Arc<Control>> = runs.iter().map(|run| run.control.clone()).collect();
        let _under_way = handle.begin(runs);
        handle.clone().stop();
        assert!(handle.is_stopped());
        assert!(controls.iter().all(|control| control.stop.load(Ordering::SeqCst)));
    }
}
