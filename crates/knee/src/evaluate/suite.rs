//! `knee evaluate --suite`: the test cases of a document, which a controller passes or not.

use super::directory;
use crate::arguments;
use crate::claims;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::both::noun;
use knee_lab::directory::REPORT;
use knee_lab::{Lab, Reproduction, Scope, StudyRecord, StudyRecords, load_suite};
use knee_present::Document;
use knee_record::{ClaimOutcome, Outcome, Verdict};
use std::path::Path;

/// Runs the test cases of a suite with a candidate.
pub fn evaluate(
    arguments: &arguments::Evaluate,
    lab: &Lab,
    suite: &str,
    candidate: &str,
) -> Result<Ending, Failure> {
    let on = chosen(&lab.grounds, &arguments.on)?;
    let study = load_suite(suite, candidate, &arguments.with, &lab.grounds)?;
    let out = directory(arguments, &format!("{candidate}-{suite}"));
    let plan = Reproduction::new(std::slice::from_ref(&study), Scope::AllClaims, on, out.clone())?;
    lab.claim(&out, plan.directories(), arguments.output.force)?;
    let Some(records) = watched(lab, || lab.reproduce(&plan))? else {
        screen::say(&format!(
            "Stopped. Finished and partial runs are in {}; knee report shows one.",
            out.display()
        ));
        return Ok(Ending::Interrupted);
    };
    document(&records, candidate, &out).print(arguments.print.format(), &records)?;
    let all_hold = |record: &StudyRecord| record.claims.iter().all(holds);
    Ok(if records.studies.iter().all(all_hold) { Ending::Done } else { Ending::Differs })
}

fn holds(claim: &ClaimOutcome) -> bool {
    claim.outcome == Outcome::Holds
}

/// Number of the test case of a check: `4` of `4b`.
fn case(claim: &ClaimOutcome) -> &str {
    claim.id.trim_end_matches(|c: char| c.is_ascii_lowercase())
}

/// How many cases passed, and the table of all checks; those of the simulator first.
fn document(records: &StudyRecords, candidate: &str, out: &Path) -> Document {
    let mut document = Document::default();
    for record in &records.studies {
        let says = passed(candidate, "", &record.claims);
        document = document.said(says).words(format!("{}\n{}\n\n", record.title, record.source));
        document = document.table(claims::outcomes(&record.claims));
        for (ground, other) in record.beside() {
            let on = format!(" on the {}", noun(ground));
            document = document.words("\n").said(passed(candidate, &on, &other.claims));
            for run in &other.not_run {
                document = document.said(format!("Not run{on}: {}, {}.", run.name, run.reason));
            }
            let unsound = other.runs.iter().filter(|run| run.summary.verdict != Verdict::Valid);
            for run in unsound {
                let reason = run.summary.verdict_reason.as_deref().unwrap_or("no reason given");
                document = document
                    .said(format!("{} is {}{on}: {reason}.", run.name, run.summary.verdict));
            }
            let table = claims::outcomes(&other.claims);
            document = document.table(table.called(&format!("claims-{ground}")));
        }
    }
    document.words(format!(
        "\nreport   {}\nrepeat   {}\n",
        out.join(REPORT).display(),
        records.command
    ))
}

/// How many cases passed, and which did not or could not be tried.
fn passed(candidate: &str, on: &str, claims: &[ClaimOutcome]) -> String {
    let cases: Vec<&[ClaimOutcome]> =
        claims.chunk_by(|one, next| case(one) == case(next)).collect();
    let untried = |claim: &ClaimOutcome| claim.outcome == Outcome::NotTestedHere;
    let without = |wanted: bool| {
        let others = cases.iter().filter(|checks| !checks.iter().all(holds));
        let others =
            others.filter(|checks| checks.iter().all(|c| holds(c) || untried(c)) == wanted);
        others.map(|checks| case(&checks[0])).collect::<Vec<_>>()
    };
    let (failed, open) = (without(false), without(true));
    let passed = cases.len() - failed.len() - open.len();
    let named = |before: &str, cases: &[&str]| match cases {
        [] => String::new(),
        cases => format!("; {before} {}", cases.join(", ")),
    };
    format!(
        "{candidate} passes {passed} of {} test cases{on}{}{}.",
        cases.len(),
        named("not", &failed),
        named("not tried", &open)
    )
}
