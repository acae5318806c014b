//! The evaluation's criteria: `evaluation/criteria.toml` and its scenarios, embedded in the
//! program.

use super::space::Knob;
use crate::error::Error;
use knee_record::Better;
use knee_scenario::{Embedded, Loader};
use serde::Deserialize;

/// All files below `evaluation/` at build time.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/evaluation.rs"));
}

/// The page whose objects some scenarios request.
pub(super) const REQUESTS: &str = "requests.csv";

/// Contents of `criteria.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Criteria {
    #[serde(rename = "section")]
    pub sections: Vec<Section>,
    pub not_tried: Vec<Missing>,
    pub search: Bounds,
}

/// Search space and metrics of the worst-case search.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub knobs: Vec<Knob>,
    pub metrics: Vec<Searched>,
}

/// A metric whose worst case is searched for: a claim of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Searched {
    pub id: String,
    pub title: String,
    pub file: String,
    pub claim: String,
    pub better: Better,
    pub floor: f64,
    /// Sections with whose lines for the same claim the worst case is compared.
    pub like: Vec<String>,
    /// Keys and values; `{rate}` stands for the value of the knob `rate`.
    pub set: Vec<String>,
}

/// A section of RFC 9743.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Section {
    pub number: String,
    pub title: String,
    pub asks: String,
    /// Flow groups that the candidate replaces, in cases that have them.
    #[serde(default = "candidate_alone")]
    pub flows: Vec<String>,
    pub lines: Vec<Line>,
    pub cases: Vec<Case>,
    /// Cases over each recorded link that is given; `{trace}` in what is set is
    /// the name of its file.
    #[serde(default)]
    pub recorded: Vec<Case>,
}

/// A measure: a claim of the section's scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub claim: String,
    pub title: String,
    pub better: Better,
    pub alike: f64,
    pub floor: f64,
    /// What a value within the margin means, if not that the two are alike.
    #[serde(default)]
    pub within: Option<String>,
}

/// A scenario with its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub file: String,
    pub set: Vec<String>,
    /// Whether `--quick` includes it.
    #[serde(default)]
    pub quick: bool,
    /// Whether it is one of those in which the candidate may be a program, which are tried only
    /// with one: short, and with few processes.
    #[serde(default)]
    pub programs: bool,
}

/// A requirement that is not tested yet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Missing {
    pub section: String,
    pub what: String,
    pub why: String,
    /// Option with which the requirement is tested.
    #[serde(default)]
    pub unless: Option<Extension>,
}

/// An option with which an evaluation tests more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Extension {
    /// A search for worst cases.
    Search,
    /// A recorded link.
    Trace,
}

fn candidate_alone() -> Vec<String> {
    vec!["candidate".to_string()]
}

/// Label of a case, for display: the scenario's title and its settings.
pub(super) fn label(title: &str, set: &[String]) -> String {
    let short = |set: &String| {
        let (key, value) = set.split_once('=').unwrap_or((set, ""));
        let parts = key.rsplitn(3, '.').collect::<Vec<_>>();
        let named = ["link", "path"].contains(parts.last().unwrap_or(&key));
        let key = match (named, parts.as_slice()) {
            (true, [last, ..]) => last,
            (false, [last, group, "flow"]) => return format!("{group}.{last} = {value}"),
            _ => key,
        };
        format!("{key} = {value}")
    };
    let all: Vec<String> = set.iter().map(short).collect();
    if all.is_empty() { title.to_string() } else { format!("{title}: {}", all.join(", ")) }
}

impl Criteria {
    /// Parses the embedded criteria.
    pub fn built_in() -> Result<Criteria, Error> {
        let text = text("criteria.toml")?;
        toml::from_str(&text).map_err(|error| Error::Defect(format!("criteria.toml: {error}")))
    }
}

/// Reads an embedded file as text.
pub(super) fn text(name: &str) -> Result<String, Error> {
    let bytes = Embedded(embedded::FILES).load(name);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
    text.map_err(|reason| Error::Defect(format!("evaluation/{name}: {reason}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// A ratio to zero says nothing. RTTs, completion times, the time of requests and Jain's index
    /// are never zero.
    #[test]
    fn measures_that_can_be_zero_have_a_floor() {
        let never_zero = |claim: &str| {
            ["rtt", "slowest", "time"].iter().any(|end| claim.ends_with(end))
                || ["jain", "typical", "incast"].contains(&claim)
        };
        for section in &Criteria::built_in().unwrap().sections {
            for line in section.lines.iter().filter(|line| line.floor == 0.0) {
                assert!(never_zero(&line.claim), "{} {}", section.number, line.claim);
            }
        }
    }
}
