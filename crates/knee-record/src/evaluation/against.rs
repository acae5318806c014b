//! Compares an evaluation with an earlier one of the same cases and seeds, and reports what became
//! worse beyond noise.

use super::{Evaluation, EvaluationOutcome, EvaluationWord, judge};
use crate::Paired;
use serde::Serialize;

/// Why two evaluations cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// They have no line in common.
    #[error("the two evaluations have no line in common")]
    NoLine,
    /// A line has other cases or seeds.
    #[error("{section} {title}: the cases or seeds of the two evaluations differ")]
    OtherCases {
        /// Section of the line.
        section: String,
        /// Title of the line.
        title: String,
    },
}

/// A line that got worse.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvaluationChange {
    /// Section of RFC 9743.
    pub section: String,
    /// Title of the line.
    pub title: String,
    /// Ratio of the new value to the earlier one, paired over the seeds. `None` if the candidate
    /// can no longer be tried.
    pub ratio: Option<Paired>,
}

/// Returns the lines in which the candidate became worse: by more than the margin, and with an
/// interval that excludes equality. Lines that only one evaluation has are ignored.
///
/// # Errors
/// [`NotComparable`].
pub fn got_worse(
    now: &Evaluation,
    before: &Evaluation,
) -> Result<Vec<EvaluationChange>, NotComparable> {
    let mut worse = Vec::new();
    let mut shared = 0;
    for line in &now.lines {
        let same = |other: &&EvaluationOutcome| {
            (&other.line.section, &other.line.claim) == (&line.line.section, &line.line.claim)
        };
        let Some(earlier) = before.lines.iter().find(same) else { continue };
        shared += 1;
        worse.extend(change(line, earlier)?);
    }
    if shared == 0 { Err(NotComparable::NoLine) } else { Ok(worse) }
}

fn change(
    now: &EvaluationOutcome,
    before: &EvaluationOutcome,
) -> Result<Option<EvaluationChange>, NotComparable> {
    let (section, title) = (now.line.section.clone(), now.line.title.clone());
    let seeds = |of: &EvaluationOutcome| of.seeds.iter().map(|seed| seed.seed).collect::<Vec<_>>();
    if now.line.cases != before.line.cases || seeds(now) != seeds(before) {
        return Err(NotComparable::OtherCases { section, title });
    }
    let both = now.seeds.iter().zip(&before.seeds);
    let pairs: Vec<(f64, f64)> =
        both.filter_map(|(now, before)| now.candidate.zip(before.candidate)).collect();
    let ratio = Paired::new(&pairs);
    let fails_now = now.could_not_be_tried.is_some() && before.could_not_be_tried.is_none();
    let worse = ratio.as_ref().is_some_and(|ratio| {
        judge::word(now.line.better, now.line.alike, ratio) == EvaluationWord::Worse
    });
    Ok((fails_now || worse).then_some(EvaluationChange { section, title, ratio }))
}
