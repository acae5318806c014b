//! Recording and replay of decisions: the views passed to a scheduler and its
//! decisions, to be inspected, stored, and compared with those of a changed
//! scheduler.

mod text;

pub use text::TraceError;

use crate::sched::{Decision, Oldest, Path, PathSet, Scheduler, View};
use knee_units::Time;
use std::ops::Range;

/// A scheduler whose decisions are recorded.
#[derive(Debug)]
pub struct Recorder<S> {
    scheduler: S,
    trace: Trace,
}

impl<S: Scheduler> Recorder<S> {
    /// Records the decisions of `scheduler` from now on.
    pub fn new(scheduler: S) -> Recorder<S> {
        Recorder { scheduler, trace: Trace::default() }
    }

    /// Returns the recording so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Takes the recording so far. Recording continues; the parts taken, in
    /// order, form one record.
    pub fn take_trace(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }
}

impl<S: Scheduler> Scheduler for Recorder<S> {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let decision = self.scheduler.schedule(view);
        self.trace.push_asked(view, decision);
        decision
    }

    fn on_paths_changed(&mut self, paths: &[Path]) {
        self.trace.push_changed(paths);
        self.scheduler.on_paths_changed(paths);
    }

    fn repeats_beside_new(&self) -> bool {
        self.scheduler.repeats_beside_new()
    }

    /// Each decision must be recorded.
    fn keeps_choice(&self) -> bool {
        false
    }

    fn looks_ahead(&self) -> bool {
        self.scheduler.looks_ahead()
    }

    fn plans_order(&self) -> bool {
        self.scheduler.plans_order()
    }
}

/// All calls to a scheduler, in order, with its decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    rows: Vec<Row>,
    /// The paths of all rows, concatenated: no allocation per row.
    paths: Vec<Path>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    paths: Range<usize>,
    kind: RowKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RowKind {
    /// [`Scheduler::schedule`].
    Asked { shown: Shown, decision: Decision },
    /// [`Scheduler::on_paths_changed`].
    Changed,
}

/// A [`View`] without its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    now: Time,
    mss: u64,
    unsent: u64,
    window_left: u64,
    outstanding: u64,
    oldest: Option<Oldest>,
    can_repeat: PathSet,
}

/// The first decision that differs from the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Row of the trace, counted from zero.
    pub row: usize,
    /// The time in the view.
    pub now: Time,
    /// The recorded decision.
    pub recorded: Decision,
    /// The new decision.
    pub answered: Decision,
}

impl Trace {
    /// Returns the number of rows: decisions, and changes of the set of paths.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the decisions with their views, in order.
    pub fn decisions(&self) -> impl Iterator<Item = (View<'_>, Decision)> {
        self.rows.iter().filter_map(|row| match &row.kind {
            RowKind::Asked { shown, decision } => Some((self.view(shown, row), *decision)),
            RowKind::Changed => None,
        })
    }

    fn push_asked(&mut self, view: &View<'_>, decision: Decision) {
        let shown = Shown {
            now: view.now,
            mss: view.mss,
            unsent: view.unsent,
            window_left: view.window_left,
            outstanding: view.outstanding,
            oldest: view.oldest,
            can_repeat: view.can_repeat,
        };
        self.push(RowKind::Asked { shown, decision }, view.paths);
    }

    fn push_changed(&mut self, paths: &[Path]) {
        self.push(RowKind::Changed, paths);
    }

    fn push(&mut self, kind: RowKind, paths: &[Path]) {
        let start = self.paths.len();
        self.paths.extend_from_slice(paths);
        self.rows.push(Row { paths: start..self.paths.len(), kind });
    }

    fn view<'t>(&'t self, shown: &Shown, row: &Row) -> View<'t> {
        View {
            now: shown.now,
            mss: shown.mss,
            unsent: shown.unsent,
            window_left: shown.window_left,
            outstanding: shown.outstanding,
            oldest: shown.oldest,
            can_repeat: shown.can_repeat,
            paths: &self.paths[row.paths.clone()],
        }
    }
}

/// Replays the trace on `scheduler` and returns the first decision that differs
/// from the recorded one, if any. The scheduler should be new, as the recorded
/// one was.
pub fn replay(trace: &Trace, scheduler: &mut dyn Scheduler) -> Option<Difference> {
    for (index, row) in trace.rows.iter().enumerate() {
        let RowKind::Asked { shown, decision } = &row.kind else {
            scheduler.on_paths_changed(&trace.paths[row.paths.clone()]);
            continue;
        };
        let answered = scheduler.schedule(&trace.view(shown, row));
        if answered != *decision {
            let recorded = *decision;
            return Some(Difference { row: index, now: shown.now, recorded, answered });
        }
    }
    None
}
