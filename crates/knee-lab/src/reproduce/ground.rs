//! Runs of a study on a ground, and the outcomes of its claims there.

use super::{Done, Scope, claims_of_runs, run_record};
use crate::ground::{Ground, SIMULATOR};
use crate::study_record::{GroundRecord, NotRun};
use knee_record::{
    ClaimOutcome, NamedRun, NotMeasurable, RunView, Verdict, evaluate_in_study, outcome_of,
};
use knee_scenario::{Claim, Measure, Study, StudyRun};

/// Separates the runs that a ground supports from the others, with the reasons.
pub(super) fn sorted<'s>(
    study: &'s Study,
    ground: &dyn Ground,
) -> (Vec<&'s StudyRun>, Vec<NotRun>) {
    let (mut able, mut unable) = (Vec::new(), Vec::new());
    for run in &study.runs {
        let reason = match run.grounds.iter().any(|name| name == ground.name()) {
            false if run.grounds == [SIMULATOR] => {
                Some("the study defines it only for the simulator".to_string())
            }
            false => Some(format!("the study defines it only for {}", run.grounds.join(", "))),
            true => ground.check(&run.scenario).err().map(|error| error.reason()),
        };
        match reason {
            None => able.push(run),
            Some(reason) => unable.push(NotRun { name: run.name.clone(), reason }),
        }
    }
    (able, unable)
}

/// Records the results of a study's runs.
pub(super) fn record(
    (study, scope): (&Study, Scope),
    runs: &[&Done<'_>],
    not_run: Vec<NotRun>,
) -> GroundRecord {
    GroundRecord {
        claims: evaluate((study, scope), runs, &not_run),
        runs: runs.iter().map(|done| run_record(done)).collect(),
        not_run,
    }
}

/// Evaluates the claims, in the simulator's order.
fn evaluate(
    (study, scope): (&Study, Scope),
    runs: &[&Done<'_>],
    not_run: &[NotRun],
) -> Vec<ClaimOutcome> {
    let views: Vec<RunView<'_>> = runs.iter().map(|done| done.view()).collect();
    let named: Vec<NamedRun<'_, '_>> = runs
        .iter()
        .zip(&views)
        .map(|(done, view)| NamedRun { name: &done.run.name, view })
        .collect();
    let over_all = scope.claims(study).map(|claim| match obstacle(claim, runs, not_run) {
        Some(reason) => outcome_of(claim, Err(NotMeasurable(reason))),
        None => evaluate_in_study(claim, &named),
    });
    over_all.chain(claims_of_runs(runs)).collect()
}

/// Why a claim cannot be tested: it needs a run that is missing or invalid.
fn obstacle(claim: &Claim, runs: &[&Done<'_>], not_run: &[NotRun]) -> Option<String> {
    if matches!(claim.measure, Measure::Model(_)) {
        return Some("it is computed without a ground".to_string());
    }
    let targets = std::iter::once(&claim.of).chain(&claim.relative_to);
    let names = targets.filter_map(|target| Some(target.split_once('/')?.0));
    names.into_iter().find_map(|name| {
        let missing = not_run.iter().find(|run| run.name == name);
        let missing = missing.map(|run| format!("{name} was not run: {}", run.reason));
        missing.or_else(|| {
            let done = runs.iter().find(|done| done.run.name == name)?;
            let summary = &done.finished.summary;
            let reason = summary.verdict_reason.as_deref().unwrap_or("no reason given");
            (summary.verdict == Verdict::Invalid)
                .then(|| format!("the run {name} is invalid: {reason}"))
        })
    })
}
