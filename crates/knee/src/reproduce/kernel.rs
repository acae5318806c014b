//! The runs of a study on the kernel, and what came of its claims there.

use super::Done;
use crate::study_record::{KernelRecord, NotRun};
use crate::{grounds, kernel};
use knee_record::{
    ClaimOutcome, Fidelity, NamedRun, NotMeasurable, RunView, Verdict, evaluate_in_study,
    outcome_of,
};
use knee_report::{Comparison, ComparisonHead};
use knee_scenario::{Claim, Ground, Measure, Study, StudyRun};

/// The runs that the kernel can make, and why it cannot make the others.
pub fn sorted(study: &Study) -> (Vec<&StudyRun>, Vec<NotRun>) {
    let (mut able, mut unable) = (Vec::new(), Vec::new());
    for run in &study.runs {
        let reason = match run.grounds.contains(&Ground::Kernel) {
            false => Some("the study has it for the simulator alone".to_string()),
            true => {
                knee_kernel::check_scenario(&run.scenario).err().map(|error| kernel::reason(&error))
            }
        };
        match reason {
            None => able.push(run),
            Some(reason) => unable.push(NotRun { name: run.name.clone(), reason }),
        }
    }
    (able, unable)
}

/// What came out of the runs of a study.
pub fn record(study: &Study, runs: &[Done<'_>], not_run: Vec<NotRun>) -> KernelRecord {
    KernelRecord {
        claims: evaluate(study, runs, &not_run),
        runs: runs.iter().map(super::run_record).collect(),
        not_run,
    }
}

/// The claims in the order in which the simulator's stand.
fn evaluate(study: &Study, runs: &[Done<'_>], not_run: &[NotRun]) -> Vec<ClaimOutcome> {
    let views: Vec<RunView<'_>> = runs.iter().map(Done::view).collect();
    let named: Vec<NamedRun<'_, '_>> = runs
        .iter()
        .zip(&views)
        .map(|(done, view)| NamedRun { name: &done.run.name, view })
        .collect();
    let over_all = study.claims.iter().map(|claim| match obstacle(claim, runs, not_run) {
        Some(reason) => outcome_of(claim, Err(NotMeasurable(reason))),
        None => evaluate_in_study(claim, &named),
    });
    over_all.chain(super::claims_of_runs(runs)).collect()
}

/// Why a claim cannot be tested: it needs a run that is not there or proves
/// nothing.
fn obstacle(claim: &Claim, runs: &[Done<'_>], not_run: &[NotRun]) -> Option<String> {
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

/// What the page of a study shows of both grounds.
pub fn tables(
    sim: &[ClaimOutcome],
    record: &KernelRecord,
    fidelities: &[(String, Fidelity)],
) -> Vec<Comparison> {
    let not_run = Comparison {
        title: "Not run on the kernel".to_string(),
        note: String::new(),
        heads: ComparisonHead::all(&["run", "why"]),
        rows: record.not_run.iter().map(|run| vec![run.name.clone(), run.reason.clone()]).collect(),
    };
    let mut tables = vec![
        grounds::claims_table(
            sim.iter().filter_map(|claim| Some((claim, partner(claim, record)?))),
        ),
        runs_table(fidelities),
    ];
    tables.extend(Some(not_run).filter(|table| !table.rows.is_empty()));
    tables
}

/// The same claim on the kernel.
pub fn partner<'k>(claim: &ClaimOutcome, record: &'k KernelRecord) -> Option<&'k ClaimOutcome> {
    let same = |other: &&ClaimOutcome| {
        (&other.id, &other.says, &other.of) == (&claim.id, &claim.says, &claim.of)
    };
    record.claims.iter().find(same)
}

fn runs_table(fidelities: &[(String, Fidelity)]) -> Comparison {
    let heads = [
        "run",
        ">goodput sim",
        ">kernel",
        ">difference",
        ">RTT sim",
        ">kernel",
        ">difference",
        ">sent again sim",
        ">kernel",
        ">difference",
        "kernel’s run",
    ];
    let row = |(name, fidelity): &(String, Fidelity)| {
        let mut row = vec![name.clone()];
        for measure in knee_record::JUDGED {
            row.extend(grounds::three(fidelity.overall(measure)));
        }
        row.push(grounds::verdict(&fidelity.kernel));
        row
    };
    Comparison {
        title: "Runs on both grounds".to_string(),
        note: "All flows of a run together; RTT: median of the smoothed RTT. A difference is the \
               simulator's value less the kernel's."
            .to_string(),
        heads: ComparisonHead::all(&heads),
        rows: fidelities.iter().map(row).collect(),
    }
}
