//! The page of `knee steer auto`: what was decided for each group of connections, stage by stage.

use crate::ReportError;
use crate::chart::style;
use crate::page::{SCRIPT, STYLE, environment};
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/steering.html");
const OWN_STYLE: &str = include_str!("../assets/rank.css");
/// Reasons are sentences, which may break.
const WHY: &str = ".scroll table.compared tbody td.why { white-space: normal; min-width: 16em }";

/// Input of the page.
#[derive(Clone, Debug)]
pub struct SteeringPage<'a> {
    /// Sentences with the result.
    pub says: &'a [String],
    /// The groups.
    pub groups: &'a [SteeringGroup],
    /// The stages that have ended.
    pub stages: &'a [SteeringStage],
    /// The policy, if there is one.
    pub policy: Option<&'a str>,
    /// Command that goes on.
    pub command: &'a str,
}

/// What was decided for a group.
#[derive(Clone, Debug, Serialize)]
pub struct SteeringGroup {
    /// Its name.
    pub name: String,
    /// The controller in use.
    pub in_use: String,
    /// The candidate that was tried; empty without one.
    pub candidate: String,
    /// The decision in a few words.
    pub decision: String,
    /// Whether the group gets the candidate.
    pub is_changed: bool,
    /// The reason.
    pub why: String,
    /// By class of sizes.
    pub rows: Vec<SteeringRow>,
}

/// Evidence for a class of sizes, in words; empty where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SteeringRow {
    /// The candidate.
    pub candidate: String,
    /// The sizes.
    pub objects: String,
    /// Expected change of the speed.
    pub expected: String,
    /// Result of the rehearsal.
    pub rehearsed: String,
    /// Result of the experiment.
    pub measured: String,
}

/// A stage that has ended.
#[derive(Clone, Debug, Serialize)]
pub struct SteeringStage {
    /// Its name.
    pub name: String,
    /// When it ended; empty if that is not known.
    pub ended: String,
    /// What was done.
    pub done: String,
    /// The decision for each group, with its reason.
    pub reasons: Vec<String>,
    /// Its tables as text; empty if there are none.
    pub evidence: String,
}

/// Returns the page as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn steering_page(page: &SteeringPage<'_>) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("steering.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), OWN_STYLE, WHY].join("\n")),
        script => Value::from_safe_string(SCRIPT.to_string()),
        version => env!("CARGO_PKG_VERSION"),
    };
    let context = minijinja::context! {
        assets,
        says => page.says,
        groups => page.groups,
        stages => page.stages,
        policy => page.policy,
        command => page.command,
    };
    Ok(environment.get_template("steering.html")?.render(context)?)
}
