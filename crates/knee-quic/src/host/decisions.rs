//! Records the questions to the schedulers of a host, and their answers, on request.

use knee_cc::Selection;
use knee_multipath::sched::record::Trace;
use knee_multipath::sched::{Decision, Path, Recorder, Scheduler, View};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions that are passed on together.
const PART: usize = 64;
/// Maximum number of waiting decisions; more are counted and lost.
const WAITING_MAX: usize = 1 << 16;

/// Queue of recorded decisions of one bundle.
#[derive(Clone, Debug, Default)]
pub struct DecisionQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Decisions since the last call of [`DecisionQueue::take`].
#[derive(Debug, Default)]
pub struct Waiting {
    /// What the scheduler was shown, and its answers.
    pub traces: Vec<Trace>,
    /// Number of decisions in them.
    rows: usize,
    /// Number of decisions lost because nobody took them.
    pub lost: u64,
}

impl DecisionQueue {
    /// Starts or stops recording. A recording begins with a new scheduler, so that another new one
    /// can be asked the same.
    pub fn want(&self, wanted: bool) {
        if !wanted {
            self.take();
        }
        self.0.wanted.store(wanted, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed)
    }

    /// Takes the waiting decisions.
    pub fn take(&self) -> Waiting {
        std::mem::take(&mut self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, trace: Trace) {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.rows >= WAITING_MAX {
            waiting.lost += trace.len() as u64;
        } else {
            waiting.rows += trace.len();
            waiting.traces.push(trace);
        }
    }
}

/// A scheduler whose decisions are put into a queue on request.
pub(super) struct RecordingScheduler {
    selection: Selection,
    scheduler: Kept,
    decisions: DecisionQueue,
}

enum Kept {
    Plain(Box<dyn Scheduler>),
    Recorded(Recorder<Box<dyn Scheduler>>),
}

impl RecordingScheduler {
    /// Makes the scheduler of a selection that has been built before.
    pub fn new(selection: &Selection, decisions: DecisionQueue) -> RecordingScheduler {
        let scheduler = Kept::Plain(built(selection));
        RecordingScheduler { selection: selection.clone(), scheduler, decisions }
    }

    fn inner(&self) -> &dyn Scheduler {
        match &self.scheduler {
            Kept::Plain(scheduler) => scheduler,
            Kept::Recorded(recorder) => recorder,
        }
    }

    fn change(&mut self, paths: &[Path]) {
        let scheduler = built(&self.selection);
        self.scheduler = if self.decisions.is_wanted() {
            Kept::Recorded(Recorder::new(scheduler))
        } else {
            Kept::Plain(scheduler)
        };
        self.on_paths_changed(paths);
    }
}

#[expect(clippy::expect_used, reason = "it was built before")]
fn built(selection: &Selection) -> Box<dyn Scheduler> {
    knee_multipath::sched::build(selection).expect("it was built before")
}

impl Scheduler for RecordingScheduler {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if self.decisions.is_wanted() != matches!(self.scheduler, Kept::Recorded(_)) {
            self.change(view.paths);
        }
        match &mut self.scheduler {
            Kept::Plain(scheduler) => scheduler.schedule(view),
            Kept::Recorded(recorder) => {
                let decision = recorder.schedule(view);
                if recorder.trace().len() >= PART {
                    self.decisions.push(recorder.take_trace());
                }
                decision
            }
        }
    }

    fn on_paths_changed(&mut self, paths: &[Path]) {
        match &mut self.scheduler {
            Kept::Plain(scheduler) => scheduler.on_paths_changed(paths),
            Kept::Recorded(recorder) => recorder.on_paths_changed(paths),
        }
    }

    fn repeats_beside_new(&self) -> bool {
        self.inner().repeats_beside_new()
    }

    fn keeps_choice(&self) -> bool {
        self.inner().keeps_choice()
    }

    fn looks_ahead(&self) -> bool {
        self.inner().looks_ahead()
    }

    fn plans_order(&self) -> bool {
        self.inner().plans_order()
    }
}
