//! A comparison described in sentences.

use super::{MeasureCompared, SideAgainst};
use crate::Unit;
use knee_units::statistics::PairedScale;

/// Largest number of groups and of measures in a sentence.
const GROUPS_MAX: usize = 3;
const MEASURES_MAX: usize = 3;
/// What better values may cost: named wherever it differs.
const COST: &str = "retransmit_ratio";

/// Returns one sentence for each side except the first, which the others are compared with.
pub fn compared_in_words(names: &[String], measures: &[MeasureCompared]) -> Vec<String> {
    let Some((first, others)) = names.split_first() else { return Vec::new() };
    let groups = groups(measures);
    let sentence = |(number, name): (usize, &String)| {
        let of_group = |group: &&str| {
            let own = measures.iter().filter(|one| one.group == *group && one.first);
            let own = own.filter_map(|one| Some((one, one.against[number].as_ref()?)));
            let shown = own.enumerate().filter(|(place, (one, against))| {
                *place < MEASURES_MAX || one.measure.name == COST && may_differ(against)
            });
            let said: Vec<String> = shown.map(|(_, (one, against))| said(one, against)).collect();
            let whose = match (groups.len(), *group) {
                (1, _) => String::new(),
                (_, "*") => "all flows: ".to_string(),
                (_, group) => format!("{group}: "),
            };
            (!said.is_empty()).then(|| format!("{whose}{}", said.join(", ")))
        };
        let parts: Vec<String> = groups.iter().filter_map(of_group).collect();
        match parts.is_empty() {
            true => format!("{name} and {first} have no measure in common."),
            false => format!("{name} against {first}: {}.", parts.join("; ")),
        }
    };
    others.iter().enumerate().map(|(at, name)| sentence((at + 1, name))).collect()
}

/// Returns the groups one by one if there are few, otherwise all flows together.
fn groups(measures: &[MeasureCompared]) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for one in measures {
        if !groups.contains(&one.group.as_str()) {
            groups.push(&one.group);
        }
    }
    let single = groups.iter().filter(|group| **group != "*").count();
    match single {
        0 => groups,
        1..=GROUPS_MAX => groups.into_iter().filter(|group| *group != "*").collect(),
        _ => vec!["*"],
    }
}

/// Whether two values differ beyond chance, or in the one run of each.
fn may_differ(against: &SideAgainst) -> bool {
    let one_run = against.compared.pairs < 2 && !against.compared.is_same();
    against.word.differs() || one_run
}

/// Formats a comparison: `goodput 1.1 times (1.05 to 1.15), better`.
fn said(one: &MeasureCompared, against: &SideAgainst) -> String {
    let title = &one.measure.title;
    let size = against.size(one.measure.unit);
    let sized = match size.split_once(" times") {
        // What was sent again three times would be something else.
        Some((times, ends)) if one.measure.name == COST => {
            format!("{times} times as many {title}{ends}")
        }
        _ => format!("{title} {size}"),
    };
    match against.compared.pairs {
        // The note says that one run each decides nothing.
        0 | 1 => sized,
        _ => format!("{sized}, {}", against.word),
    }
}

impl SideAgainst {
    /// Returns the ratio to the first side with its interval, `1.1 times (1.05 to 1.15)`, or the
    /// difference in the measure's unit if a value is zero.
    pub fn size(&self, unit: Unit) -> String {
        let compared = &self.compared;
        let Some(estimate) = compared.estimate else {
            let (more, less, pairs) = (compared.more, compared.less, compared.pairs);
            let [higher, lower] = match unit {
                Unit::Seconds => ["longer", "shorter"],
                _ => ["higher", "lower"],
            };
            return format!("{higher} in {more} and {lower} in {less} of {pairs} runs");
        };
        let ratio = compared.scale == PairedScale::Ratio;
        let show = |value: f64| match ratio {
            true => Unit::Number.show((value * 1e3).round() / 1e3),
            false => difference(unit, value),
        };
        let ends = compared.low.zip(compared.high).map(|(low, high)| (show(low), show(high)));
        let shown = show(estimate);
        let ends = match ends {
            Some((low, high)) if low != high => format!(" ({low} to {high})"),
            _ => String::new(),
        };
        format!("{shown}{}{ends}", if ratio { " times" } else { "" })
    }
}

/// Formats a difference; that of two fractions is given in percentage points.
fn difference(unit: Unit, value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    let shown = unit.show(value);
    match shown.strip_suffix(" %") {
        Some(points) => format!("{sign}{points} points"),
        None => format!("{sign}{shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compared::{Side, SideRun, compare_sides};
    use crate::sweep::GroupMeasures;
    use std::collections::BTreeMap;

    /// Runs with the same first three measures and their own part of bytes sent again.
    fn side(name: &str, sent_again: &[f64]) -> Side {
        let run = |(at, again): (usize, &f64)| {
            let values = [
                ("completion_s", 2.0),
                ("goodput_bps", 8e6),
                ("rtt_p95_s", 0.05),
                ("retransmit_ratio", *again),
            ];
            let measures = values.iter().map(|(name, value)| (name.to_string(), *value));
            let measures: BTreeMap<String, f64> = measures.collect();
            let group = GroupMeasures { group: "a".to_string(), measures, never: Vec::new() };
            SideRun { seed: at as u64, groups: vec![group] }
        };
        Side { name: name.to_string(), runs: sent_again.iter().enumerate().map(run).collect() }
    }

    fn said(first: &[f64], second: &[f64]) -> String {
        let sides = [side("first", first), side("second", second)];
        let names = ["first", "second"].map(str::to_string);
        compared_in_words(&names, &compare_sides(&sides)).remove(0)
    }

    /// The fourth measure is named where it is what a better value costs.
    #[test]
    fn what_is_sent_again_is_named_where_it_differs() {
        let more = said(&[0.01, 0.011, 0.012, 0.009], &[0.03, 0.033, 0.036, 0.027]);
        assert!(more.contains("goodput") && more.contains("RTT"), "{more}");
        assert!(
            more.contains("3 times as many bytes retransmitted") && more.ends_with("worse."),
            "{more}"
        );
        let from_none = said(&[0.0; 4], &[0.02; 4]);
        assert!(from_none.contains("retransmitted +2 points, worse"), "{from_none}");
        let same = said(&[0.01, 0.012, 0.011], &[0.01, 0.012, 0.011]);
        assert!(!same.contains("retransmitted"), "{same}");
    }

    /// One run each proves nothing, but tells its values.
    #[test]
    fn one_run_each_tells_what_was_sent_again() {
        assert!(said(&[0.01], &[0.02]).contains("2 times as many bytes retransmitted"));
        assert!(!said(&[0.01], &[0.01]).contains("retransmitted"));
    }
}
