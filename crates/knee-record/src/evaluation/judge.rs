//! Turns values into judgements: better, alike, worse.

use super::{
    EvaluationAgainst, EvaluationLine, EvaluationOutcome, EvaluationRow, EvaluationSeed,
    EvaluationWord, LineBetter, WorstCase,
};
use crate::{Paired, PairedScale};
use std::collections::BTreeMap;

/// Values of one controller: seed, then case.
type Values = BTreeMap<u64, BTreeMap<usize, f64>>;

pub(super) fn outcome(
    line: &EvaluationLine,
    standards: &[String],
    rows: &[&EvaluationRow],
) -> EvaluationOutcome {
    let values = |controller: usize| values(line, rows, controller);
    let candidate = values(0);
    let others: Vec<Values> = (1..=standards.len()).map(values).collect();
    let seeds: BTreeMap<u64, u64> = rows.iter().map(|row| (row.repeat, row.seed)).collect();
    let seeds: Vec<EvaluationSeed> = seeds
        .into_values()
        .map(|seed| EvaluationSeed {
            seed,
            candidate: over_cases(line, &candidate, seed),
            standards: others.iter().map(|other| over_cases(line, other, seed)).collect(),
        })
        .collect();
    let against = |(at, standard): (usize, &String)| {
        let pairs = seeds.iter().filter_map(|seed| seed.candidate.zip(seed.standards[at]));
        let ratio = Paired::new(&pairs.collect::<Vec<_>>());
        let word = ratio.as_ref().map(|ratio| word(line.better, line.alike, ratio));
        EvaluationAgainst { standard: standard.clone(), word, ratio }
    };
    let against: Vec<EvaluationAgainst> = standards.iter().enumerate().map(against).collect();
    let worse = |one: &EvaluationAgainst| one.word == Some(EvaluationWord::Worse);
    let why = |row: &&&EvaluationRow| row.controller == 0 && row.value.is_err();
    let failed = rows.iter().filter(why).min_by_key(|row| (row.case, row.repeat));
    EvaluationOutcome {
        line: line.clone(),
        worse_than_all: !against.is_empty() && against.iter().all(worse),
        could_not_be_tried: failed.and_then(|row| row.value.as_ref().err().cloned()),
        worst: worst(line, &candidate, &others),
        against,
        seeds,
    }
}

fn values(line: &EvaluationLine, rows: &[&EvaluationRow], controller: usize) -> Values {
    let mut found = Values::new();
    for row in rows.iter().filter(|row| row.controller == controller) {
        if let Ok(value) = row.value {
            found.entry(row.seed).or_default().insert(row.case, value + line.floor);
        }
    }
    found
}

/// Returns the geometric mean, in which a given ratio has the same weight in every case. A seed
/// that lacks a case has none: means over different cases cannot be compared.
fn over_cases(line: &EvaluationLine, values: &Values, seed: u64) -> Option<f64> {
    let cases = values.get(&seed).filter(|cases| cases.len() == line.cases.len())?;
    let logs: f64 = cases.values().map(|value| value.ln()).sum();
    Some((logs / cases.len() as f64).exp())
}

/// Judges a ratio. A difference counts if it exceeds the margin and its interval excludes equality.
/// If the estimate is within the margin, the two are alike; if the interval includes equality but
/// extends beyond the margin, the result is unclear.
pub(super) fn word(better: LineBetter, alike: f64, ratio: &Paired) -> EvaluationWord {
    if ratio.is_same() {
        return EvaluationWord::Alike;
    }
    let (Some(estimate), Some(low), Some(high)) = (ratio.estimate, ratio.low, ratio.high) else {
        return EvaluationWord::Unclear;
    };
    let margin = alike.ln_1p();
    let none = if ratio.scale == PairedScale::Ratio { 1.0 } else { 0.0 };
    // On the difference scale (a value is zero and has no floor), any difference counts.
    let is_ratio = ratio.scale == PairedScale::Ratio;
    let far = |value: f64| !is_ratio || value.ln().abs() > margin;
    let sure = low > none || high < none;
    match (sure, far(estimate)) {
        (true, true) if (estimate > none) == (better == LineBetter::More) => EvaluationWord::Better,
        (true, true) => EvaluationWord::Worse,
        (true, false) => EvaluationWord::Alike,
        (false, _) if far(low) || far(high) => EvaluationWord::Unclear,
        (false, _) => EvaluationWord::Alike,
    }
}

fn worst(line: &EvaluationLine, candidate: &Values, others: &[Values]) -> Option<WorstCase> {
    let log_ratio = |case: usize| {
        let logs = candidate.iter().flat_map(|(seed, cases)| {
            let own = cases.get(&case);
            let others = others.iter().filter_map(|other| other.get(seed)?.get(&case));
            others.filter_map(move |other| Some((own? / other).ln()))
        });
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    let harm = |log: f64| if line.better == LineBetter::More { -log } else { log };
    let cases = (0..line.cases.len()).filter_map(|case| Some((case, log_ratio(case)?)));
    // The first of equals.
    let (number, log) = cases.min_by(|a, b| harm(b.1).total_cmp(&harm(a.1)))?;
    Some(WorstCase {
        number,
        case: line.cases[number].clone(),
        ratio: log.exp(),
        scenario: String::new(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> EvaluationWord {
        word(LineBetter::Less, 0.1, &Paired::new(pairs).unwrap())
    }

    /// Ratios of 2 within 1 %: t of two degrees of freedom is 4.303, so that the
    /// interval is 2 ± 2.5 %. Ratios of 1.05 are as certain, but within 10 %.
    /// Ratios of 0.5, 1 and 2 have an interval from 0.18 to 5.6.
    #[test]
    fn a_difference_is_sure_and_beyond_the_margin() {
        assert_eq!(of(&[(2.0, 1.0), (1.98, 1.0), (2.02, 1.0)]), EvaluationWord::Worse);
        assert_eq!(of(&[(1.0, 2.0), (1.0, 1.98), (1.0, 2.02)]), EvaluationWord::Better);
        assert_eq!(of(&[(1.05, 1.0), (1.051, 1.0), (1.049, 1.0)]), EvaluationWord::Alike);
        assert_eq!(of(&[(0.5, 1.0), (1.0, 1.0), (2.0, 1.0)]), EvaluationWord::Unclear);
        assert_eq!(of(&[(3.0, 3.0), (4.0, 4.0)]), EvaluationWord::Alike);
        assert_eq!(of(&[(3.0, 2.0)]), EvaluationWord::Unclear);
    }

    fn row(case: usize, controller: usize, value: Result<f64, String>) -> EvaluationRow {
        EvaluationRow { line: 0, case, controller, repeat: 1, seed: 7, value }
    }

    /// 2 and 8 have the geometric mean 4. The candidate has twice the standard's value in the first
    /// case and eight times in the second.
    #[test]
    fn cases_count_by_their_ratio() {
        let line = EvaluationLine {
            section: "5.1.2".to_string(),
            section_title: String::new(),
            claim: "queue".to_string(),
            title: String::new(),
            unit: crate::Unit::Seconds,
            better: LineBetter::Less,
            alike: 0.1,
            floor: 0.0,
            cases: vec!["a".to_string(), "b".to_string()],
        };
        let mut rows = vec![row(0, 0, Ok(2.0)), row(1, 0, Ok(8.0))];
        rows.extend([row(0, 1, Ok(1.0)), row(1, 1, Ok(1.0))]);
        let standards = ["cubic".to_string()];
        let all = outcome(&line, &standards, &rows.iter().collect::<Vec<_>>());
        assert!((all.seeds[0].candidate.unwrap() - 4.0).abs() < 1e-12);
        let worst = all.worst.unwrap();
        assert_eq!((worst.number, worst.case.as_str()), (1, "b"));
        assert!((worst.ratio - 8.0).abs() < 1e-12);
        rows[1].value = Err("it failed".to_string());
        let part = outcome(&line, &standards, &rows.iter().collect::<Vec<_>>());
        assert_eq!(part.could_not_be_tried.as_deref(), Some("it failed"));
        assert_eq!((part.seeds[0].candidate, part.against[0].word), (None, None));
    }
}
