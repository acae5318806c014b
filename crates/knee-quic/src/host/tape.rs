//! What the schedulers of a host are asked and answer, recorded while somebody wants it.

use knee_cc::Selection;
use knee_sched::record::Trace;
use knee_sched::{Decision, Path, Recorder, Scheduler, View};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Decisions that are handed over together.
const PART: usize = 64;
/// Decisions that wait to be taken; more are counted, and lost.
const WAITING_MAX: usize = 1 << 16;

/// Where decisions wait to be taken, of one bundle.
#[derive(Clone, Debug, Default)]
pub struct Tape(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Decisions since they were last taken.
#[derive(Debug, Default)]
pub struct Waiting {
    /// What the scheduler was shown, and its answers.
    pub traces: Vec<Trace>,
    /// Decisions in them.
    rows: usize,
    /// Decisions that were lost because nobody took them.
    pub lost: u64,
}

impl Tape {
    /// Has decisions recorded from now on, or no more. The scheduler begins anew with it, so
    /// that another new one can be asked the same.
    pub fn want(&self, wanted: bool) {
        if !wanted {
            self.take();
        }
        self.0.wanted.store(wanted, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed)
    }

    /// Takes what waits.
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

/// A scheduler whose decisions go to a tape while that is wanted.
pub(super) struct Taped {
    selection: Selection,
    scheduler: Kept,
    tape: Tape,
}

enum Kept {
    Plain(Box<dyn Scheduler>),
    Recorded(Recorder<Box<dyn Scheduler>>),
}

impl Taped {
    /// A selection that could be built before.
    pub fn new(selection: &Selection, tape: Tape) -> Taped {
        let scheduler = Kept::Plain(built(selection));
        Taped { selection: selection.clone(), scheduler, tape }
    }

    fn inner(&self) -> &dyn Scheduler {
        match &self.scheduler {
            Kept::Plain(scheduler) => scheduler,
            Kept::Recorded(recorder) => recorder,
        }
    }

    fn change(&mut self, paths: &[Path]) {
        let scheduler = built(&self.selection);
        self.scheduler = if self.tape.is_wanted() {
            Kept::Recorded(Recorder::new(scheduler))
        } else {
            Kept::Plain(scheduler)
        };
        self.on_paths_changed(paths);
    }
}

#[expect(clippy::expect_used, reason = "it was built before")]
fn built(selection: &Selection) -> Box<dyn Scheduler> {
    knee_sched::build(selection).expect("it was built before")
}

impl Scheduler for Taped {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        if self.tape.is_wanted() != matches!(self.scheduler, Kept::Recorded(_)) {
            self.change(view.paths);
        }
        match &mut self.scheduler {
            Kept::Plain(scheduler) => scheduler.schedule(view),
            Kept::Recorded(recorder) => {
                let decision = recorder.schedule(view);
                if recorder.trace().len() >= PART {
                    self.tape.push(recorder.take_trace());
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
