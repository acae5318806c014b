//! `knee evaluate --suite`: the test cases of a document, which a controller passes or not.

use super::directory;
use crate::arguments;
use crate::claims;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::directory::REPORT;
use knee_lab::{Lab, Reproduction, Scope, StudyRecord, StudyRecords, load_suite};
use knee_present::Document;
use knee_record::{ClaimOutcome, Outcome};
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

/// How many cases passed, and the table of all checks.
fn document(records: &StudyRecords, candidate: &str, out: &Path) -> Document {
    let mut document = Document::default();
    for record in &records.studies {
        let cases: Vec<&[ClaimOutcome]> =
            record.claims.chunk_by(|one, next| case(one) == case(next)).collect();
        let failed: Vec<&str> = cases
            .iter()
            .filter(|checks| !checks.iter().all(holds))
            .map(|checks| case(&checks[0]))
            .collect();
        let passed = cases.len() - failed.len();
        let others = match failed.as_slice() {
            [] => String::new(),
            failed => format!("; not {}", failed.join(", ")),
        };
        document = document
            .said(format!("{candidate} passes {passed} of {} test cases{others}.", cases.len()))
            .words(format!("{}\n{}\n\n", record.title, record.source))
            .table(claims::outcomes(&record.claims));
    }
    document.words(format!(
        "\nreport   {}\nrepeat   {}\n",
        out.join(REPORT).display(),
        records.command
    ))
}
