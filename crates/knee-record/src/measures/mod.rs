//! Computes all measures declared in the table `knee_scenario::measures`; the submodules hold the
//! longer formulas.
//!
//! Notation: a flow f is measured over its span `[b, e]`, from `warmup` after its start to its end,
//! clipped to the window; `X(t)` is a counter, interpolated linearly between samples. A
//! distribution over time weights each sample by the time since the previous one. A group of flows
//! is measured together: sums of bytes, pooled distributions.

mod bound;
mod breaker;
mod capacity;
mod delay;
mod earlier;
mod fairness;
mod jitter;
mod multipath;
mod objects;
mod phases;
mod price;
mod startup;
mod transfers;
mod volume;
mod window;

use earlier::{objects_earlier, objects_earlier_by_rank};
pub use fairness::jain_index;
pub(crate) use objects::{is_burst, is_of_page, is_segment};
pub use transfers::{TransferValue, transfer_ratio};

use crate::Unit;
use crate::tolerance::Tolerance;
use crate::view::{FlowView, LinkView, RunView, Span, Window};
use knee_scenario::measure::Subject;
use knee_scenario::{Measure, SizeRange, Statistic};
use knee_units::Time;
use knee_units::statistics::SortedIntegers;
use std::cell::OnceCell;
use std::fmt::Display;

/// Why a measure has no value for these records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotMeasurable(pub String);

fn because<T>(reason: impl Display) -> Result<T, NotMeasurable> {
    Err(NotMeasurable(reason.to_string()))
}

/// Computes a measure of `target` over `window`, in the measure's unit
/// (bit/s, seconds, a ratio or a number).
///
/// `target` is a group of flows (`bbr`), one flow of it (`bbr[1]`), all flows (`*`), or a link.
/// Infinity means that the event that the measure waits for did not occur during the run.
///
/// # Errors
/// [`NotMeasurable`] with the reason: the target is unknown, nothing lies in the window, or the
/// target does not have this measure.
pub fn measure(
    run: &RunView<'_>,
    measure: &Measure,
    target: &str,
    window: Window,
) -> Result<f64, NotMeasurable> {
    value(measure, Found::find(run, target, window, measure.subjects())?)
}

/// The flows or the link that a target names.
enum Found<'r, 'a> {
    Flows(Flows<'r, 'a>),
    Link((&'r LinkView<'a>, &'r RunView<'a>, Window)),
}

impl<'r, 'a> Found<'r, 'a> {
    /// Resolves a target. If the measure applies to both flows and links, flows take precedence.
    fn find(
        run: &'r RunView<'a>,
        target: &str,
        window: Window,
        subjects: &[Subject],
    ) -> Result<Found<'r, 'a>, NotMeasurable> {
        let link = || Ok(Found::Link((find_link(run, target)?, run, window)));
        if subjects == [Subject::Link] {
            return link();
        }
        match Flows::find(run, target, window) {
            Ok(flows) => Ok(Found::Flows(flows)),
            Err(_) if subjects.contains(&Subject::Link) && is_link(run, target) => link(),
            Err(reason) => Err(reason),
        }
    }
}

/// A run and a target in it.
type Target<'r, 'a, 't> = (&'r RunView<'a>, &'t str);

/// A measure that has a column in the tables of sweeps.
pub(crate) struct Column {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    pub measure: Measure,
}

macro_rules! compute {
    ($(
        chapter $chapter:literal { $(
            $(#[doc = $line:literal])*
            $variant:ident $(( $($key:ident: $type:ty),+ ))?
            $({ $($(#[doc = $about:literal])* $field:ident: $field_type:ty),+ $(,)? })?
            = $name:literal, $unit:ident, $better:ident, $class:ident, $meaning:literal => {
                $(of $subject:ident |$found:pat_param| $value:expr;)+
                $(against |$pair:ident, $window:ident| $compared:expr;)?
                $(interval $interval:expr;)?
                $(column [$($cell:tt)?] $column:literal $(as $column_unit:ident)?, $title:literal;)*
                $(within [$($near:tt)?] $tolerance:expr;)?
            }
        )* }
    )* models { $($models:tt)* }) => {
        #[allow(unreachable_patterns, reason = "some measures are of all that there is")]
        fn value(measure: &Measure, found: Found<'_, '_>) -> Result<f64, NotMeasurable> {
            match measure {
                $($(Measure::$variant $(( $($key),+ ))? $({ $($field),+ })? => match found {
                    $(Found::$subject($found) => $value,)+
                    _ => because(concat!($name, " is a measure of something else")),
                },)*)*
                Measure::Model(name) => because(format!("model.{name} is computed without a run")),
            }
        }

        /// Returns the value of a measure that compares two targets itself.
        pub(crate) fn compare(
            measure: &Measure,
            targets: [Target<'_, '_, '_>; 2],
            over: Window,
        ) -> Result<f64, NotMeasurable> {
            match measure {
                $($($(Measure::$variant { .. } => {
                    let ($pair, $window) = (targets, over);
                    $compared
                })?)*)*
                _ => because("it compares nothing"),
            }
        }

        /// Returns which transfers a measure of transfers is taken over, and which value of them;
        /// `None` if its ratios have no interval.
        #[allow(unused_variables, reason = "most measures have no interval")]
        pub(crate) fn of_transfers(
            measure: &Measure,
        ) -> Option<(TransferValue, SizeRange, Statistic)> {
            match measure {
                $($(Measure::$variant $(( $($key),+ ))? $({ $($field),+ })? => {
                    let interval: &[(TransferValue, SizeRange, Statistic)] = &[$($interval)?];
                    interval.first().copied()
                })*)*
                Measure::Model(_) => None,
            }
        }

        /// Returns the columns of sweeps, in the order of the table of measures.
        pub(crate) fn columns() -> Vec<Column> {
            vec![$($($({
                let measure = Measure::$variant $($cell)?;
                let units = [$(Unit::$column_unit,)? Unit::of(&measure)];
                Column { name: $column, title: $title, unit: units[0], measure }
            },)*)*)*]
        }

        /// Number of measures that fidelity judges.
        pub(crate) const JUDGED: usize = {
            let judged: &[&str] = &[$($($({
                let _ = stringify!($tolerance);
                $name
            },)?)*)*];
            judged.len()
        };

        /// Returns the measures that fidelity judges, in the order of the table.
        pub(crate) fn judged() -> [(Measure, Tolerance); JUDGED] {
            [$($($((Measure::$variant $($near)?, $tolerance),)?)*)*]
        }
    };
}

knee_scenario::measures!(compute);

/// The flows that a target names.
pub(crate) struct Flows<'r, 'a> {
    run: &'r RunView<'a>,
    window: Window,
    /// The target as written, for messages.
    target: String,
    members: Vec<&'r FlowView<'a>>,
    /// Their RTTs, once they are asked for: several measures are functions of them.
    rtts: OnceCell<Result<SortedIntegers, NotMeasurable>>,
}

impl<'r, 'a> Flows<'r, 'a> {
    /// Returns one flow over its whole life.
    pub(crate) fn one(run: &'r RunView<'a>, flow: &'r FlowView<'a>) -> Flows<'r, 'a> {
        Flows::new(run, Window::default(), flow.record.label(), vec![flow])
    }

    /// Returns all flows over their whole lives.
    pub(crate) fn all(run: &'r RunView<'a>) -> Flows<'r, 'a> {
        Flows::new(run, Window::default(), "*".to_string(), run.flows.iter().collect())
    }

    pub(crate) fn find(
        run: &'r RunView<'a>,
        target: &str,
        window: Window,
    ) -> Result<Flows<'r, 'a>, NotMeasurable> {
        let members = run.flows.iter();
        let members: Vec<_> = members.filter(|flow| named(flow, target)).collect();
        if members.is_empty() {
            return because(format!("no flow is called {target:?}"));
        }
        Ok(Flows::new(run, window, target.to_string(), members))
    }

    fn new(
        run: &'r RunView<'a>,
        window: Window,
        target: String,
        members: Vec<&'r FlowView<'a>>,
    ) -> Flows<'r, 'a> {
        Flows { run, window, target, members, rtts: OnceCell::new() }
    }

    /// Returns the flows that were active in the window, at least one, each with its span.
    fn active(&self) -> Result<Vec<(&'r FlowView<'a>, Span)>, NotMeasurable> {
        let members = self.members.iter();
        let active: Vec<_> = members
            .filter_map(|flow| Some((*flow, self.run.flow_span(flow, self.window)?)))
            .collect();
        if active.is_empty() {
            return because(format!(
                "{} was not active in the window, after the warm-up",
                self.target
            ));
        }
        if let Some((flow, _)) = active.iter().find(|(flow, span)| cut_blindly(flow, *span)) {
            let label = flow.record.label();
            return because(format!("{label} has no samples to measure a part of it"));
        }
        Ok(active)
    }
}

/// Returns whether a span covers part of a flow without samples, about which nothing is known.
fn cut_blindly(flow: &FlowView<'_>, span: Span) -> bool {
    flow.samples.is_empty() && flow.life() != Some(span)
}

fn named(flow: &FlowView<'_>, target: &str) -> bool {
    let Some((group, rest)) = target.split_once('[') else {
        return target == "*" || flow.record.name == target;
    };
    let index = rest.strip_suffix(']').and_then(|text| text.parse().ok());
    flow.record.name == group && index == Some(flow.record.index)
}

fn is_link(run: &RunView<'_>, target: &str) -> bool {
    run.links.iter().any(|link| link.name == target)
}

fn find_link<'r, 'a>(
    run: &'r RunView<'a>,
    target: &str,
) -> Result<&'r LinkView<'a>, NotMeasurable> {
    match run.links.iter().find(|link| link.name == target) {
        Some(link) => Ok(link),
        None => because(format!("no link is called {target:?}")),
    }
}

impl LinkView<'_> {
    fn span(&self, run: &RunView<'_>, window: Window) -> Result<Span, NotMeasurable> {
        match run.link_span(self, window) {
            Some(span) => Ok(span),
            None => because(format!("link {} has no samples in the window", self.name)),
        }
    }
}
