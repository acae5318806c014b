//! Compares an evaluation with an earlier one of the same cases and seeds, and reports what became
//! worse beyond noise.

use super::{Evaluation, EvaluationOutcome, EvaluationPlan, judge};
use crate::{Judgement, Paired, Unit};
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
    /// Unit of the measure.
    pub unit: Unit,
    /// Ratio of the new value to the earlier one, paired over the seeds. `None` if the candidate
    /// can no longer be tried.
    pub ratio: Option<Paired>,
}

/// Returns the lines in which the candidate became worse: by more than the margin, and with an
/// interval that excludes equality and allows for the number of lines. Lines that only one
/// evaluation has are ignored.
///
/// # Errors
/// [`NotComparable`].
pub fn got_worse(
    now: &Evaluation,
    before: &Evaluation,
) -> Result<Vec<EvaluationChange>, NotComparable> {
    let mut shared = Vec::new();
    for line in &now.lines {
        let same = |other: &&EvaluationOutcome| {
            (&other.line.section, &other.line.claim) == (&line.line.section, &line.line.claim)
        };
        let Some(earlier) = before.lines.iter().find(same) else { continue };
        shared.push((line, earlier, change((line, &now.plan), (earlier, &before.plan))?));
    }
    if shared.is_empty() {
        return Err(NotComparable::NoLine);
    }
    let about = shared.iter().map(|(now, _, ratio)| ((now.line.better, now.line.alike), *ratio));
    let decided = judge::words(about.collect());
    let worse = shared.into_iter().zip(decided).filter_map(|((now, before, _), (word, ratio))| {
        let fails_now = now.could_not_be_tried.is_some() && before.could_not_be_tried.is_none();
        (fails_now || word == Some(Judgement::Worse)).then(|| EvaluationChange {
            section: now.line.section.clone(),
            title: now.line.title.clone(),
            unit: now.line.unit,
            ratio: ratio.filter(|_| !fails_now),
        })
    });
    Ok(worse.collect())
}

/// The new values over the earlier ones, over the seeds that both have: either may have further
/// ones, of a line that would have been worse than all.
fn change(
    (now, plan): (&EvaluationOutcome, &EvaluationPlan),
    (before, earlier): (&EvaluationOutcome, &EvaluationPlan),
) -> Result<Option<Paired>, NotComparable> {
    let seeds = |of: &EvaluationOutcome, plan: &EvaluationPlan| {
        let planned = of.seeds.iter().take(plan.repeats as usize);
        planned.map(|seed| seed.seed).collect::<Vec<_>>()
    };
    if now.line.cases != before.line.cases || seeds(now, plan) != seeds(before, earlier) {
        let (section, title) = (now.line.section.clone(), now.line.title.clone());
        return Err(NotComparable::OtherCases { section, title });
    }
    let both = now.seeds.iter().zip(&before.seeds);
    let pairs: Vec<(f64, f64)> =
        both.filter_map(|(now, before)| now.candidate.zip(before.candidate)).collect();
    Ok(Paired::new(&pairs))
}
