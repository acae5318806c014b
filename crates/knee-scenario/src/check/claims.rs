//! Claims: the measure, its target and its bounds.

use super::bounds::{bounds, on_record};
use super::measures;
use crate::file::{ClaimFile, OutcomeWord, ScenarioFile};
use crate::measure::{Measure, Subject};
use crate::model::{Claim, Outcome, Scenario};
use crate::read::{At, List, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::Time;
use knee_units::registry::did_you_mean;
use std::collections::BTreeSet;

/// Names that a claim can refer to.
#[derive(Default)]
pub(super) struct Names {
    /// Names, each with what it refers to and the number of flows.
    pub known: Vec<(String, Subject, u64)>,
    /// Names of paths.
    pub paths: Vec<String>,
    /// Whether something with a name is broken, so that an unknown name is no evidence of a
    /// mistake.
    pub incomplete: bool,
    /// Duration of the longest run.
    pub duration: Time,
    /// Whether this is a study, which has no "all flows".
    pub study: bool,
}

impl Names {
    /// Collects the names of flow groups and links; reports names that are both.
    pub(super) fn of_scenario(
        file: &ScenarioFile,
        duration: Time,
        reading: &mut Reading<'_>,
    ) -> Names {
        let mut names = Names { duration, ..Names::default() };
        for entry in &file.flow.0 {
            let flow = entry.get();
            match flow.and_then(|flow| Some((flow.name.get()?, flow.count.get()?))) {
                Some((name, count)) => names.known.push((name.clone(), Subject::Flows, count.0)),
                None => names.incomplete = true,
            }
        }
        for (name, _) in &file.link.0 {
            if names.known.iter().any(|(flow, _, _)| *flow == name.value) {
                let message = format!("a link and a flow are both named \"{}\"", name.value);
                reading.problem(name.span, message, "write another name for one of them");
            }
            names.known.push((name.value.clone(), Subject::Link, 1));
        }
        names.paths.extend(file.path.0.iter().map(|(name, _)| name.value.clone()));
        names
    }

    /// Adds the names of one run of a study.
    pub(super) fn add_run(&mut self, run: &str, scenario: &Scenario) {
        let mut add = |name: &str, subject, count| {
            self.known.push((format!("{run}/{name}"), subject, count));
        };
        let mut flows = scenario.flows.iter().peekable();
        while let Some(flow) = flows.next() {
            if flows.peek().is_none_or(|next| next.name != flow.name) {
                add(&flow.name, Subject::Flows, flow.index as u64 + 1);
            }
        }
        add("*", Subject::Flows, 0);
        for link in &scenario.links {
            add(&link.name, Subject::Link, 1);
        }
        self.paths.extend(scenario.paths.iter().map(|path| path.name.clone()));
        self.duration = self.duration.max(scenario.duration);
    }

    /// Returns what a name refers to, or what is wrong and what to write instead.
    fn find(&self, name: &str) -> Result<Subject, (String, String)> {
        if name == "*" && !self.study {
            return Ok(Subject::Flows);
        }
        let (base, index) = match name.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
            Some((base, index)) => (base, Some(index)),
            None => (name, None),
        };
        let Some((_, subject, count)) = self.known.iter().find(|(known, _, _)| known == base)
        else {
            let what = if self.study { "run/flow, run/link or model" } else { "flow or link" };
            let known = self.known.iter().map(|(known, _, _)| known.as_str());
            return Err((format!("there is no {what} \"{base}\""), did_you_mean(base, known)));
        };
        let Some(index) = index else { return Ok(*subject) };
        match (subject, index.parse::<u64>()) {
            (Subject::Flows, Ok(index)) if index < *count => Ok(Subject::Flows),
            (Subject::Flows, _) if *count > 0 => Err((
                format!("flow \"{base}\" has no index {index}"),
                match count {
                    1 => format!("write \"{base}\": there is only one"),
                    _ => format!("write {base}[0] to {base}[{}]", count - 1),
                },
            )),
            _ => Err((format!("\"{base}\" takes no index"), format!("write \"{base}\""))),
        }
    }
}

pub(super) fn check(
    list: &mut List<ClaimFile>,
    names: &Names,
    reading: &mut Reading<'_>,
) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for entry in &mut list.0 {
        let Optional::Given(At { value: file, span }) = entry else { continue };
        if let Some(At { value, span }) = file.id.at()
            && !ids.insert(value.clone())
        {
            let message = format!("two claims have the id \"{value}\"");
            reading.problem(*span, message, "write another id");
        }
        claims.extend(check_one(file, *span, names, reading));
    }
    for entry in &list.0 {
        if let Some(finding) = entry.get().and_then(|file| file.finding.at()) {
            placeholders_are_known(finding, &ids, reading);
        }
    }
    claims
}

/// Placeholders of a conclusion for the number or the ids of claims.
const TALLY: [&str; 7] =
    ["claims", "holds", "fails", "uncertain", "untested", "holding", "failing"];

/// Returns the conclusion of a study; reports unknown placeholders.
pub(super) fn conclusion(
    entry: &Optional<String>,
    claims: &List<ClaimFile>,
    reading: &mut Reading<'_>,
) -> String {
    let Some(text) = entry.at() else { return String::new() };
    let ids: BTreeSet<&str> =
        claims.0.iter().filter_map(|claim| claim.get()?.id.get()).map(String::as_str).collect();
    for placeholder in placeholders(&text.value) {
        let name = &placeholder[1..placeholder.len() - 1];
        let id = name.strip_suffix(".outcome").unwrap_or(name);
        if !ids.contains(id) && !TALLY.contains(&name) {
            let message = format!("the conclusion names {placeholder}, but no claim has this id");
            let help = format!("write the id of a claim in braces, or one of {}", TALLY.join(", "));
            reading.problem(text.span, message, help);
        }
    }
    text.value.clone()
}

/// Returns the words in braces of a finding, including the braces: `{value}` stands for the value
/// of the claim itself, any other word for the value of the claim with this id.
pub fn placeholders(finding: &str) -> impl Iterator<Item = &str> {
    finding.match_indices('{').filter_map(|(from, _)| {
        let to = finding[from..].find('}')?;
        Some(&finding[from..=from + to])
    })
}

fn placeholders_are_known(finding: &At<String>, ids: &BTreeSet<String>, reading: &mut Reading<'_>) {
    for placeholder in placeholders(&finding.value) {
        let name = &placeholder[1..placeholder.len() - 1];
        if name != "value" && !ids.contains(name) {
            let message = format!("the finding names {placeholder}, but no claim has this id");
            let help = "write {value} for this claim's own value, or the id of a claim in braces";
            reading.problem(finding.span, message, help);
        }
    }
}

fn check_one(
    file: &mut ClaimFile,
    span: Span,
    names: &Names,
    reading: &mut Reading<'_>,
) -> Option<Claim> {
    let measure = measures::check(file, names, reading);
    let of = subject(file, span, measure.as_ref(), names, reading);
    window(file, names.duration, reading);
    let recorded = outcome(file, span, reading);
    let bounds = match &measure {
        Some(measure) => bounds(file, span, measure, recorded, reading),
        None => (None, None),
    };
    let on_record = measure.as_ref().and_then(|measure| on_record(file, measure, reading));
    Some(Claim {
        id: file.id.get().cloned().unwrap_or_default(),
        says: file.says.get().cloned()?,
        measure: measure?,
        of: of?,
        relative_to: file.relative_to.get().cloned(),
        at_least: bounds.0,
        at_most: bounds.1,
        from: file.from.get().copied(),
        until: file.until.get().copied(),
        source: file.source.get().cloned().unwrap_or_default(),
        source_figure: file.source_figure.get().cloned(),
        recorded,
        on_record,
        finding: file.finding.get().cloned(),
    })
}

fn subject(
    file: &mut ClaimFile,
    span: Span,
    measure: Option<&Measure>,
    names: &Names,
    reading: &mut Reading<'_>,
) -> Option<String> {
    if names.study && !file.of.is_given() {
        if !file.of.is_broken() {
            let help = "add of = \"run/flow\"";
            reading.problem(span, "a claim of a study needs a target", help);
        }
        return None;
    }
    let place = file.of.span().unwrap_or(file.measure.at().map_or(span, |at| at.span));
    let of = file.of.fill("*".to_string());
    fits(&of, place, file, measure, names, reading);
    if let Some(At { value, span }) = file.relative_to.at() {
        fits(value, *span, file, measure, names, reading);
    }
    Some(of)
}

/// Reports a name that is unknown or to which the measure does not apply.
fn fits(
    name: &str,
    span: Span,
    file: &ClaimFile,
    measure: Option<&Measure>,
    names: &Names,
    reading: &mut Reading<'_>,
) {
    let subject = match names.find(name) {
        Ok(subject) => subject,
        Err(_) if names.incomplete => return,
        Err((message, help)) => return reading.problem(span, message, help),
    };
    let Some(measure) = measure else { return };
    if !measure.subjects().contains(&subject) {
        let is = match subject {
            Subject::Flows => "flows",
            Subject::Link => "a link",
            Subject::Model => "a model",
        };
        let help = match measure.subjects() {
            [Subject::Link] => "write of = the name of a link",
            [Subject::Model] => "write of = the name of a model",
            _ => "write of = the name of a flow",
        };
        let measured = file.measure.get().map_or("", String::as_str);
        reading.problem(span, format!("{measured} is not a measure of {is}"), help);
    }
}

fn window(file: &ClaimFile, duration: Time, reading: &mut Reading<'_>) {
    let Some(from) = file.from.at() else { return };
    if from.value >= duration {
        let message = format!("from is {}, but the run ends at {duration}", from.value);
        reading.problem(from.span, message, format!("write a time before {duration}"));
    }
    if let Some(until) = file.until.at() {
        super::links::ordered(from.value, until, "the time that counts", reading);
    }
}

fn outcome(file: &ClaimFile, span: Span, reading: &mut Reading<'_>) -> Outcome {
    let recorded = match file.outcome.get() {
        None | Some(OutcomeWord::Holds) => Outcome::Holds,
        Some(OutcomeWord::Fails) => Outcome::Fails,
        Some(OutcomeWord::Uncertain) => Outcome::Uncertain,
        Some(OutcomeWord::NotTestedHere) => Outcome::NotTestedHere,
    };
    if recorded == Outcome::Fails && matches!(file.finding, Optional::Absent) {
        let place = file.outcome.span().unwrap_or(span);
        let help = "add finding = \"the result found instead, and its reason\"";
        reading.problem(place, "a claim that fails needs a finding", help);
    }
    recorded
}
