//! A comparison described in sentences.

use super::{ComparedWord, MeasureCompared, SideAgainst};
use crate::Unit;
use knee_statistics::PairedScale;

/// Largest number of groups and of measures in a sentence.
const GROUPS_MAX: usize = 3;
const MEASURES_MAX: usize = 3;

/// Returns one sentence for each side except the first, which the others are compared with.
pub fn compared_in_words(names: &[String], measures: &[MeasureCompared]) -> Vec<String> {
    let Some((first, others)) = names.split_first() else { return Vec::new() };
    let groups = groups(measures);
    let sentence = |(number, name): (usize, &String)| {
        let of_group = |group: &&str| {
            let own = measures.iter().filter(|one| one.group == *group && one.first);
            let said = own.filter_map(|one| Some(said(one, one.against[number].as_ref()?)));
            let said: Vec<String> = said.take(MEASURES_MAX).collect();
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

/// Formats a comparison: `goodput 1.1 times (1.05 to 1.15), better`.
fn said(one: &MeasureCompared, against: &SideAgainst) -> String {
    let title = &one.measure.title;
    let size = against.size(one.measure.unit);
    match against.word {
        ComparedWord::OneRun => format!("{title} {size}"),
        word => format!("{title} {size}, {word}"),
    }
}

impl SideAgainst {
    /// Returns the ratio to the first side with its interval, `1.1 times (1.05 to 1.15)`, or the
    /// difference in the measure's unit if a value is zero.
    pub fn size(&self, unit: Unit) -> String {
        let compared = &self.compared;
        let Some(estimate) = compared.estimate else {
            let (more, less, pairs) = (compared.more, compared.less, compared.pairs);
            return format!("more in {more} and less in {less} of {pairs} runs");
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

/// Formats a difference; fractions differ by percentage points.
fn difference(unit: Unit, value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    let shown = unit.show(value);
    match shown.strip_suffix(" %") {
        Some(points) => format!("{sign}{points} points"),
        None => format!("{sign}{shown}"),
    }
}
