//! The main measures of a group of flows: those with a column in the table of measures.

use super::GroupMeasures;
use crate::measures::{Column, columns, measure};
use crate::view::{RunView, Window};
use crate::{Interval, Records, Summary, Unit};
use knee_scenario::{Measure, measure};
use knee_units::Time;
use knee_units::statistics::Better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measure of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepMeasure {
    /// Column of the table; the name ends with the unit.
    pub name: String,
    /// Title.
    pub title: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Which value is better.
    pub better: Better,
}

impl SweepMeasure {
    /// Returns the statistics of several values, with an interval within the bounds of the measure.
    pub(crate) fn interval(&self, values: &[f64]) -> Option<Interval> {
        match self.unit == Unit::Fraction || self.name == "jain" {
            true => Interval::of_parts(values),
            false => Interval::new(values),
        }
    }
}

/// Returns all measures of a sweep, in the order of the table's columns.
pub fn sweep_measures() -> Vec<SweepMeasure> {
    let measure = |column: Column| SweepMeasure {
        name: column.name.to_string(),
        title: column.title.to_string(),
        unit: column.unit,
        better: match column.measure.declared().better {
            measure::Better::More => Better::More,
            measure::Better::Less | measure::Better::Neither => Better::Less,
        },
    };
    sorted_columns().into_iter().map(measure).collect()
}

/// Returns the columns: first what an application waits for, then rates, then delays and losses.
fn sorted_columns() -> Vec<Column> {
    let mut columns = columns();
    columns.sort_by_key(|column| column.measure.declared().class);
    columns
}

/// Measures every group of flows of a run, from `warmup` after the start of each flow. If there are
/// several groups, all flows together come last.
pub fn group_measures(records: &Records, summary: &Summary, warmup: Time) -> Vec<GroupMeasures> {
    let view = RunView::new(records, warmup);
    let columns = sorted_columns();
    let mut groups: Vec<(String, usize)> = Vec::new();
    for flow in &summary.flows {
        match groups.iter_mut().find(|(group, _)| *group == flow.name) {
            Some((_, flows)) => *flows += 1,
            None => groups.push((flow.name.clone(), 1)),
        }
    }
    if groups.len() > 1 {
        groups.push(("*".to_string(), summary.flows.len()));
    }
    let group = |(group, flows)| of_group(&view, &columns, group, flows);
    groups.into_iter().map(group).collect()
}

fn of_group(view: &RunView<'_>, columns: &[Column], group: String, flows: usize) -> GroupMeasures {
    let mut found = GroupMeasures { group, measures: BTreeMap::new(), never: Vec::new() };
    for column in columns {
        // Fairness needs at least two flows.
        if column.measure == Measure::Jain && flows < 2 {
            continue;
        }
        match measure(view, &column.measure, &found.group, Window::default()) {
            Ok(value) if value.is_finite() => {
                found.measures.insert(column.name.to_string(), value);
            }
            Ok(_) if column.measure == Measure::CompletionTime && endless(view, &found.group) => {}
            // Redundant: the completion time over the bound of all paths is infinite as well.
            Ok(_) if column.measure == Measure::CompletionOverBestPath => {}
            Ok(_) => found.never.push(column.name.to_string()),
            Err(_) => {}
        }
    }
    found
}

/// Returns whether a flow has no end: it did not fail to reach one.
fn endless(view: &RunView<'_>, group: &str) -> bool {
    let members = view.flows.iter().map(|flow| flow.record);
    let mut members = members.filter(|flow| group == "*" || flow.name == group);
    members.any(|flow| flow.size_bytes == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every column has a better direction, so that it can be sorted by it.
    #[test]
    fn every_column_has_a_better_way() {
        for column in columns() {
            let better = column.measure.declared().better;
            assert!(better != measure::Better::Neither, "{}", column.name);
        }
    }

    /// Column names end with their unit, as everywhere in the records.
    #[test]
    fn names_end_in_their_unit() {
        for SweepMeasure { name, unit, .. } in sweep_measures() {
            let fits = match unit {
                Unit::BitsPerSecond => name.ends_with("_bps"),
                Unit::Seconds => name.ends_with("_s"),
                _ => !name.ends_with("_s") && !name.ends_with("_bps"),
            };
            assert!(fits, "{name}");
        }
    }
}
