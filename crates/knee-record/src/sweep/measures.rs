//! The main measures of a group of flows. Each is one that claims or
//! summaries have; where a summary has it of single flows only, the group's
//! is the mean over its flows.

use super::GroupMeasures;
use crate::view::{RunView, Window};
use crate::{Records, Summary, Unit, measure};
use knee_scenario::measure::SizeRange;
use knee_scenario::{Measure, Scenario, Statistic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which of two values one would rather have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The larger one.
    More,
    /// The smaller one.
    Less,
}

/// A measure of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepMeasure {
    /// Column of the table; a unit stands at its end.
    pub name: String,
    /// For people.
    pub title: String,
    /// Of its values.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
}

/// Where a value comes from.
enum Source {
    /// A measure that claims can name.
    Claim(Measure),
    /// Mean of a number of the flows' summaries.
    Mean(&'static str),
}

type Declared = (&'static str, &'static str, Unit, Better, Source);

const ALL_SIZES: SizeRange = SizeRange { at_least: 0, below: None };

/// In the order of the table: what an application waits for, then rates,
/// then delays and losses.
#[rustfmt::skip]
const MEASURES: [Declared; 22] = {
    use Better::{Less, More};
    use Source::{Claim, Mean};
    use Statistic::{P5, P50, P95};
    use Unit::{BitsPerSecond, Fraction, Number, Ratio, Seconds};
    [
        ("completion_s", "completion time", Seconds, Less, Claim(Measure::CompletionTime)),
        ("completion_over_bound", "completion over the earliest possible", Ratio, Less, Claim(Measure::CompletionOverBound)),
        ("completion_over_best_path", "completion over the best path alone", Ratio, Less, Mean("completion_over_best_path")),
        ("page_load_s", "page load time", Seconds, Less, Claim(Measure::PageLoadTime)),
        ("video_bitrate_bps", "video bitrate", BitsPerSecond, More, Claim(Measure::VideoBitrate)),
        ("video_stall_s", "video stalled for", Seconds, Less, Claim(Measure::VideoStallTime)),
        ("video_startup_s", "video started after", Seconds, Less, Claim(Measure::VideoStartupTime)),
        ("video_switches", "changes of quality", Number, Less, Claim(Measure::VideoSwitches)),
        ("transfer_completion_p50_s", "completion of transfers, median", Seconds, Less, Claim(Measure::FlowCompletion(P50, ALL_SIZES))),
        ("transfer_completion_p95_s", "completion of transfers, 95th percentile", Seconds, Less, Claim(Measure::FlowCompletion(P95, ALL_SIZES))),
        ("transfer_throughput_p5_bps", "throughput of transfers, 5th percentile", BitsPerSecond, More, Claim(Measure::FlowThroughput(P5, ALL_SIZES))),
        ("goodput_bps", "goodput", BitsPerSecond, More, Claim(Measure::Goodput)),
        ("aggregation_ratio", "delivered, of what all paths allowed", Fraction, More, Claim(Measure::AggregationRatio)),
        ("jain", "fairness within the group (Jain's index)", Number, More, Claim(Measure::Jain)),
        ("rtt_p50_s", "RTT, median", Seconds, Less, Claim(Measure::Rtt(P50))),
        ("rtt_p95_s", "RTT, 95th percentile", Seconds, Less, Claim(Measure::Rtt(P95))),
        ("queueing_delay_p95_s", "queueing delay, 95th percentile", Seconds, Less, Claim(Measure::QueueingDelay(P95))),
        ("standing_queue_s", "standing queue", Seconds, Less, Claim(Measure::StandingQueue)),
        ("head_of_line_blocking_s", "waiting for another path, mean", Seconds, Less, Claim(Measure::HeadOfLineBlocking)),
        ("retransmit_ratio", "bytes sent again", Fraction, Less, Claim(Measure::RetransmitRatioTotal)),
        ("duplicate_ratio", "bytes received more than once", Fraction, Less, Claim(Measure::DuplicateRatio)),
        ("power", "power (1 at the knee)", Number, More, Claim(Measure::Power)),
    ]
};

/// All measures of a sweep, in the order of the table's columns.
pub fn sweep_measures() -> Vec<SweepMeasure> {
    let measure = |(name, title, unit, better, _): &Declared| SweepMeasure {
        name: name.to_string(),
        title: title.to_string(),
        unit: *unit,
        better: *better,
    };
    MEASURES.iter().map(measure).collect()
}

/// Every group of a run; of several, all flows together last.
pub(super) fn of_groups(
    scenario: &Scenario,
    records: &Records,
    summary: &Summary,
) -> Vec<GroupMeasures> {
    let view = RunView::new(records, scenario.warmup);
    let numbers: BTreeMap<String, f64> = summary.numbers().into_iter().collect();
    let mut members: Vec<(String, Vec<String>)> = Vec::new();
    for flow in &summary.flows {
        let label = format!("flow.{}[{}]", flow.name, flow.index);
        match members.iter_mut().find(|(group, _)| *group == flow.name) {
            Some((_, labels)) => labels.push(label),
            None => members.push((flow.name.clone(), vec![label])),
        }
    }
    if members.len() > 1 {
        let all: Vec<String> = members.iter().flat_map(|(_, labels)| labels.clone()).collect();
        members.push(("*".to_string(), all));
    }
    let group = |(group, labels): (String, Vec<String>)| of_group(&view, &numbers, group, &labels);
    members.into_iter().map(group).collect()
}

fn of_group(
    view: &RunView<'_>,
    numbers: &BTreeMap<String, f64>,
    group: String,
    labels: &[String],
) -> GroupMeasures {
    let mut found = GroupMeasures { group, measures: BTreeMap::new(), never: Vec::new() };
    for (name, _, _, _, source) in &MEASURES {
        let value = match source {
            // One flow is always as fast as itself.
            Source::Claim(Measure::Jain) if labels.len() < 2 => None,
            Source::Claim(what) => measure(view, what, &found.group, Window::default()).ok(),
            Source::Mean(field) => {
                mean(labels.iter().map(|label| numbers.get(&format!("{label}.{field}"))))
            }
        };
        match value {
            Some(value) if value.is_finite() => {
                found.measures.insert(name.to_string(), value);
            }
            Some(_) if *name == "completion_s" && endless(view, &found.group) => {}
            Some(_) => found.never.push(name.to_string()),
            None => {}
        }
    }
    found
}

/// A flow without an end was not kept from reaching it.
fn endless(view: &RunView<'_>, group: &str) -> bool {
    let members = view.flows.iter().map(|flow| flow.record);
    let mut members = members.filter(|flow| group == "*" || flow.name == group);
    members.any(|flow| flow.size_bytes == 0)
}

/// None when a flow lacks the number: a mean over the rest would flatter.
fn mean<'n>(values: impl Iterator<Item = Option<&'n f64>>) -> Option<f64> {
    let values: Vec<f64> = values.map(Option::<&f64>::copied).collect::<Option<_>>()?;
    Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_gives_no_mean() {
        assert_eq!(mean([Some(&1.0), Some(&4.0)].into_iter()), Some(2.5));
        assert_eq!(mean([Some(&1.0), None].into_iter()), None);
    }

    /// Columns say their unit at their end, as everywhere in the records.
    #[test]
    fn names_end_in_their_unit() {
        for (name, _, unit, _, _) in &MEASURES {
            let fits = match unit {
                Unit::BitsPerSecond => name.ends_with("_bps"),
                Unit::Seconds => name.ends_with("_s"),
                _ => !name.ends_with("_s") && !name.ends_with("_bps"),
            };
            assert!(fits, "{name}");
        }
    }
}
