//! Records measured values as the expected ones. Implements `knee reproduce --record`.

use crate::error::Error;
use crate::studies::{NamedStudy, StudyError};
use crate::study_record::StudyRecords;
use knee_record::{ClaimOutcome, Outcome, write_text};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use toml::de::DeTable;

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
    let Ok(study) = DeTable::parse(text) else { return text.to_string() };
    let written = study.get_ref().get("claim").and_then(|all| all.get_ref().as_array());
    let mut edits: Vec<Edit> = Vec::new();
    for (table, claim) in written.into_iter().flat_map(|all| all.iter()).zip(claims) {
        if let (Some(keys), true) =
            (table.get_ref().as_table(), claim.outcome != Outcome::NotTestedHere)
        {
            let place = Place { text, keys, inline: text[table.span()].starts_with('{') };
            edits.extend(place.record(claim));
        }
    }
    edits.sort_by_key(|edit| edit.at.start);
    let mut updated = text.to_string();
    // From the end, so that the places before stay as they are.
    edits.iter().rev().for_each(|edit| updated.replace_range(edit.at.clone(), &edit.with));
    updated
}

/// A part of the text, in bytes, and its replacement.
struct Edit {
    at: Range<usize>,
    with: String,
}

/// A claim in the text.
struct Place<'t> {
    text: &'t str,
    keys: &'t DeTable<'t>,
    /// Whether all of its keys are between braces.
    inline: bool,
}

impl Place<'_> {
    /// Writes the measured value, and a drift unless there is one.
    fn record(&self, claim: &ClaimOutcome) -> Vec<Edit> {
        let value = claim.unit.write(claim.measured.unwrap_or(f64::INFINITY));
        let drift = claim.measured.is_some() && !self.keys.contains_key("drift");
        let drift = drift.then_some(DRIFT);
        let Some(old) = self.keys.get("measured") else {
            let measured = format!("measured = {value}");
            return vec![self.add(std::iter::once(measured.as_str()).chain(drift))];
        };
        let after = old.span().end;
        let replaced = Edit { at: old.span(), with: value };
        std::iter::once(replaced).chain(drift.map(|drift| self.add_after(after, [drift]))).collect()
    }

    /// Adds keys before the outcome, or at the end.
    fn add<'k>(&self, keys: impl IntoIterator<Item = &'k str>) -> Edit {
        if let Some((outcome, _)) = self.keys.get_key_value("outcome").filter(|_| !self.inline) {
            let at = outcome.span().start;
            let (indent, end) = (self.indent(at), self.line_end());
            let with = keys.into_iter().map(|key| format!("{key}{end}{indent}")).collect();
            return Edit { at: at..at, with };
        }
        let last = self.keys.values().map(|value| value.span().end).max();
        self.add_after(last.unwrap_or(0), keys)
    }

    /// Adds keys after the one whose value ends there.
    fn add_after<'k>(&self, value_end: usize, keys: impl IntoIterator<Item = &'k str>) -> Edit {
        let keys = keys.into_iter();
        if self.inline {
            let with = keys.map(|key| format!(", {key}")).collect();
            return Edit { at: value_end..value_end, with };
        }
        let rest = &self.text[value_end..];
        let at = value_end + rest.find(['\r', '\n']).unwrap_or(rest.len());
        let last = self.keys.iter().find(|(_, value)| value.span().end == value_end);
        let indent = last.map_or("", |(key, _)| self.indent(key.span().start));
        let end = self.line_end();
        Edit { at: at..at, with: keys.map(|key| format!("{end}{indent}{key}")).collect() }
    }

    /// What is before a key in its line.
    fn indent(&self, key: usize) -> &str {
        let begin = self.text[..key].rfind('\n').map_or(0, |end| end + 1);
        &self.text[begin..key]
    }

    /// How lines end in this file.
    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}
