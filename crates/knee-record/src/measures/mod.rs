//! All measures, each defined once. docs/measures.md has the same formulas.
//!
//! Notation: a flow f is measured over its span `[b, e]`, from `warmup`
//! after its start to its end, clipped to the window; `X(t)` is a counter,
//! interpolated linearly between samples. A distribution over time weighs
//! each sample with the time since the sample before it. A group of flows
//! is measured together: sums of bytes, pooled distributions.

mod bound;
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

pub(crate) use earlier::objects_earlier;
pub use fairness::jain_index;
pub(crate) use objects::{is_of_page, is_segment};
pub(crate) use transfers::of_transfers;
pub use transfers::{TransferValue, transfer_ratio};

use crate::view::{FlowView, LinkView, RunView, Span, Window};
use knee_scenario::Measure;
use std::fmt::Display;

/// Why a measure has no value on these records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotMeasurable(pub String);

fn because<T>(reason: impl Display) -> Result<T, NotMeasurable> {
    Err(NotMeasurable(reason.to_string()))
}

/// Computes a measure of `target` over `window`, in the measure's unit
/// (bit/s, seconds, a ratio or a number).
///
/// `target` is a group of flows (`bbr`), one flow of it (`bbr[1]`), all flows
/// (`*`), or a link. Infinity says that what the measure waits for did not
/// come about during the run.
///
/// # Errors
/// [`NotMeasurable`] with the reason: unknown target, nothing in the window,
/// or a measure that the target does not have.
pub fn measure(
    run: &RunView<'_>,
    measure: &Measure,
    target: &str,
    window: Window,
) -> Result<f64, NotMeasurable> {
    let flows = || Flows::find(run, target, window);
    match measure {
        Measure::Goodput => flows()?.goodput(),
        Measure::Throughput => flows()?.throughput(),
        Measure::Utilisation => find_link(run, target)?.utilisation(run, window),
        Measure::Share => flows()?.share(),
        Measure::Rtt(statistic) => flows()?.rtt(*statistic),
        Measure::SmoothedRtt(statistic) => flows()?.smoothed_rtt(*statistic),
        Measure::MinRttEstimate(statistic) => flows()?.min_rtt_estimate(*statistic),
        Measure::BandwidthEstimate(statistic) => flows()?.bandwidth_estimate(*statistic),
        Measure::QueueingDelay(statistic) => match flows() {
            Err(_) if is_link(run, target) => {
                find_link(run, target)?.queueing_delay(run, window, *statistic)
            }
            flows => flows?.queueing_delay(*statistic),
        },
        Measure::StandingQueue => match flows() {
            Err(_) if is_link(run, target) => find_link(run, target)?.standing_queue(run, window),
            flows => flows?.standing_queue(),
        },
        Measure::RetransmitRatio => flows()?.retransmit_ratio(),
        Measure::RetransmitRatioStartup => flows()?.retransmit_ratio_startup(),
        Measure::RetransmitRatioTotal => flows()?.retransmit_ratio_total(),
        Measure::UsefulRatio => flows()?.useful_ratio(),
        Measure::EffectiveGoodput => flows()?.effective_goodput(),
        Measure::LostElsewhere => flows()?.lost_elsewhere(),
        Measure::Drops => find_link(run, target)?.drops(run, window),
        Measure::Jain => flows()?.jain(),
        Measure::ConvergenceTime { band, hold } => flows()?.convergence_time(*band, *hold),
        Measure::TakeoverTime { fraction, hold } => flows()?.takeover_time(*fraction, *hold),
        Measure::CompletionTime => flows()?.completion_time(),
        Measure::Power => flows()?.power(),
        Measure::PhaseEntries(phase) => flows()?.phase_entries(phase),
        Measure::PhaseShare(phase) => flows()?.phase_share(phase),
        Measure::StartupGrowth => flows()?.startup_growth(),
        Measure::StartupFlatRounds => flows()?.startup_flat_rounds(),
        Measure::CompletionOverBound => flows()?.completion_over_bound(),
        Measure::AggregationRatio => flows()?.aggregation_ratio(),
        Measure::HeadOfLineBlocking => flows()?.head_of_line_blocking(),
        Measure::ReceiveBufferPeak => Ok(flows()?.receive_buffer_peak()),
        Measure::DuplicateRatio => flows()?.duplicate_ratio(),
        Measure::PathShare(path) => flows()?.path_share(path),
        Measure::PageLoadTime => flows()?.page_load_time(),
        Measure::ObjectTime(statistic) => flows()?.object_time(*statistic),
        Measure::ObjectsEarlier => because("it needs another page to compare with"),
        Measure::VideoBitrate => flows()?.video_bitrate(),
        Measure::VideoQualityShare(quality) => flows()?.video_quality_share(*quality),
        Measure::VideoSwitches => flows()?.video_switches(),
        Measure::VideoStallTime => flows()?.video_stall_time(),
        Measure::VideoStartupTime => flows()?.video_startup_time(),
        Measure::FlowThroughput(statistic, sizes) => {
            Ok(flows()?.transfers(TransferValue::Throughput, *sizes)?.statistic(*statistic))
        }
        Measure::FlowCompletion(statistic, sizes) => {
            Ok(flows()?.transfers(TransferValue::Completion, *sizes)?.statistic(*statistic))
        }
        Measure::CompletionJitter(sizes) => flows()?.completion_jitter(*sizes),
        Measure::Model(name) => because(format!("model.{name} is computed without a run")),
    }
}

/// The flows that a target names.
pub(crate) struct Flows<'r, 'a> {
    run: &'r RunView<'a>,
    window: Window,
    /// As the target was written, for messages.
    target: String,
    members: Vec<&'r FlowView<'a>>,
}

impl<'r, 'a> Flows<'r, 'a> {
    /// One flow over all of its time.
    pub(crate) fn one(run: &'r RunView<'a>, flow: &'r FlowView<'a>) -> Flows<'r, 'a> {
        Flows { run, window: Window::default(), target: flow.record.label(), members: vec![flow] }
    }

    /// All flows over all of their time.
    pub(crate) fn all(run: &'r RunView<'a>) -> Flows<'r, 'a> {
        Flows {
            run,
            window: Window::default(),
            target: "*".to_string(),
            members: run.flows.iter().collect(),
        }
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
        Ok(Flows { run, window, target: target.to_string(), members })
    }

    /// The flows that were active in the window, each with its span, at
    /// least one.
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

/// Without samples nothing is known about a part of a flow's life.
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
