//! `knee reproduce --record`: the values measured become those on record.

use crate::failure::Failure;
use crate::screen;
use crate::studies::NamedStudy;
use crate::study_record::{StudyRecord, StudyRecords};
use knee_record::{ClaimOutcome, Outcome, write_text};
use std::fs;

/// The drift allowed that a new record begins with.
const DRIFT: &str = "drift = \"2 %\"";

/// Refuses studies that have no file.
pub fn check(studies: &[NamedStudy]) -> Result<(), Failure> {
    match studies.iter().find(|study| study.file.is_none()) {
        None => Ok(()),
        Some(study) => {
            let what = format!("{} is in the program, not in a file", study.name);
            let advice = format!("name its folder: knee reproduce studies/{} --record", study.name);
            Err(Failure::Usage(what, advice))
        }
    }
}

/// Writes what was measured into the file of each study.
pub fn all(studies: &[NamedStudy], records: &StudyRecords) -> Result<(), Failure> {
    for (study, record) in studies.iter().zip(&records.studies) {
        let Some(path) = &study.file else { continue };
        let text = fs::read_to_string(path).map_err(|error| {
            let what = format!("cannot read {}: {error}", path.display());
            Failure::Host(what, "make it readable".to_string())
        })?;
        let updated = updated(&text, &record.claims[..study.study.claims.len()]);
        if updated != text {
            write_text(path, &updated)?;
            screen::say(&format!("{}: values on record written.", path.display()));
        }
        tell_outcomes(record);
    }
    Ok(())
}

/// An outcome that differs wants its reason written by hand.
fn tell_outcomes(record: &StudyRecord) {
    let other = record.claims.iter().filter(|claim| claim.outcome != claim.recorded);
    for claim in other {
        let (id, outcome) = (&claim.id, claim.outcome);
        screen::say(&format!("{}: write outcome = \"{outcome}\" for {id}, and why.", record.name));
    }
}

/// The text of a study with these values in its claims, which are in the
/// same order. All else stays as it was written.
fn updated(text: &str, claims: &[ClaimOutcome]) -> String {
    let mut blocks: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if line.starts_with("[[") {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    let mut claims = claims.iter();
    let mut lines: Vec<String> = Vec::new();
    for block in blocks {
        let is_claim = block.first().is_some_and(|line| line.trim_end() == "[[claim]]");
        match is_claim.then(|| claims.next()).flatten() {
            Some(claim) if claim.outcome != Outcome::NotTestedHere => {
                lines.extend(with_record(&block, claim));
            }
            _ => lines.extend(block.iter().map(|line| line.to_string())),
        }
    }
    lines.join("\n") + "\n"
}

fn with_record(block: &[&str], claim: &ClaimOutcome) -> Vec<String> {
    let value = claim.unit.write(claim.measured.unwrap_or(f64::INFINITY));
    let measured = format!("measured = {value}");
    let is_key = |line: &str, key: &str| {
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let mut lines: Vec<String> = block.iter().map(|line| line.to_string()).collect();
    if let Some(old) = lines.iter_mut().find(|line| is_key(line, "measured")) {
        *old = measured;
        return lines;
    }
    let text = |line: &String| !line.trim().is_empty() && !line.starts_with('#');
    let last = lines.iter().rposition(text).unwrap_or(0);
    let at = lines.iter().position(|line| is_key(line, "outcome")).unwrap_or(last + 1);
    let drift = claim.measured.map(|_| DRIFT.to_string());
    lines.splice(at..at, std::iter::once(measured).chain(drift));
    lines
}
