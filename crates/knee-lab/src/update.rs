//! Records measured values as the expected ones. Implements `knee reproduce --record`.

use crate::error::Error;
use crate::studies::{NamedStudy, StudyError};
use crate::study_record::StudyRecords;
use knee_record::{ClaimOutcome, Outcome, write_text};
use std::fs;
use std::path::PathBuf;

/// Initial drift tolerance of a new record.
const DRIFT: &str = "drift = \"2 %\"";

/// Checks that all studies have a file to write to.
///
/// # Errors
/// [`StudyError::NotAFile`].
pub fn check_files(studies: &[NamedStudy]) -> Result<(), StudyError> {
    match studies.iter().find(|study| study.file.is_none()) {
        None => Ok(()),
        Some(study) => Err(StudyError::NotAFile(study.name.clone())),
    }
}

/// Writes measured values into the file of each study; returns the files that changed. A changed
/// outcome is not written: it needs a reason, added by hand.
///
/// # Errors
/// A file that cannot be read or written.
pub fn put_on_record(
    studies: &[NamedStudy],
    records: &StudyRecords,
) -> Result<Vec<Option<PathBuf>>, Error> {
    let update = |(study, claims): (&NamedStudy, &[ClaimOutcome])| {
        let Some(path) = &study.file else { return Ok(None) };
        let failed = |source| Error::Read { path: path.clone(), source };
        let text = fs::read_to_string(path).map_err(failed)?;
        let updated = updated(&text, &claims[..study.study.claims.len()]);
        if updated == text {
            return Ok(None);
        }
        write_text(path, &updated)?;
        Ok(Some(path.clone()))
    };
    let claims = records.studies.iter().map(|record| record.claims.as_slice());
    studies.iter().zip(claims).map(update).collect()
}

/// Replaces the values in a study's claims, which are in the same order. Leaves the rest of the
/// text unchanged.
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
