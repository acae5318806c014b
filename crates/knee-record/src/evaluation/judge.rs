//! Turns values into judgements: better, alike, worse.

use super::{
    EvaluationAgainst, EvaluationLine, EvaluationOutcome, EvaluationRow, EvaluationSeed, WorstCase,
};
use crate::{Better, Judgement, Paired};
use knee_units::statistics::false_discovery;
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
        EvaluationAgainst { standard: standard.clone(), word: None, ratio }
    };
    let against: Vec<EvaluationAgainst> = standards.iter().enumerate().map(against).collect();
    let why = |row: &&&EvaluationRow| row.controller == 0 && row.value.is_err();
    let failed = rows.iter().filter(why).min_by_key(|row| (row.case, row.repeat));
    EvaluationOutcome {
        line: line.clone(),
        worse_than_all: false,
        could_not_be_tried: failed.and_then(|row| row.value.as_ref().err().cloned()),
        worst: worst(line, &candidate, &others),
        against,
        seeds,
    }
}

/// Decides all lines. Those against one standard are corrected together. A candidate that is a
/// standard itself is worse than all if it is worse than all others.
pub(super) fn decide(candidate: &str, lines: &mut [EvaluationOutcome]) {
    let standards = lines.first().map_or(0, |line| line.against.len());
    for at in 0..standards {
        let compared = lines.iter().map(|line| line.against[at].ratio);
        let about = lines.iter().map(|line| (line.line.better, line.line.alike));
        let decided = words(about.zip(compared).collect());
        for (line, (word, ratio)) in lines.iter_mut().zip(decided) {
            (line.against[at].word, line.against[at].ratio) = (word, ratio);
        }
    }
    let worse = |one: &EvaluationAgainst| one.word == Some(Judgement::Worse);
    for line in lines {
        let others: Vec<_> = line.against.iter().filter(|one| one.standard != candidate).collect();
        line.worse_than_all = !others.is_empty() && others.into_iter().all(worse);
    }
}

/// Decides comparisons that are made together. Each has the interval that decides it: its own if it
/// lies within the margin, otherwise that which allows for the number of comparisons.
pub(super) fn words(
    all: Vec<((Better, f64), Option<Paired>)>,
) -> Vec<(Option<Judgement>, Option<Paired>)> {
    let mut corrected: Vec<Option<Paired>> = all.iter().map(|(_, ratio)| *ratio).collect();
    false_discovery(corrected.iter_mut().flatten());
    let decide = |(((better, alike), own), corrected): (_, Option<Paired>)| {
        let (Some(own), Some(corrected)): (Option<Paired>, _) = (own, corrected) else {
            return (None, None);
        };
        let alone = Paired { p_corrected: corrected.p_corrected, ..own };
        match alone.judge(better, alike) {
            Judgement::Alike => (Some(Judgement::Alike), Some(alone)),
            _ => (Some(corrected.judge(better, alike)), Some(corrected)),
        }
    };
    all.into_iter().zip(corrected).map(decide).collect()
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
    let harm = |log: f64| if line.better == Better::More { -log } else { log };
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
            better: Better::Less,
            alike: 0.1,
            floor: 0.0,
            within: None,
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

    /// Of forty lines against one standard in which nothing differs but by chance, one has an
    /// interval that excludes equality. Alone it would be worse.
    #[test]
    fn one_line_of_many_is_not_worse_by_its_own_interval() {
        let noise = [(1.20, 1.0), (0.85, 1.0), (1.18, 1.0)];
        let odd = [(1.30, 1.0), (1.25, 1.0), (1.40, 1.0)];
        let compared = |pairs: &[(f64, f64)]| ((Better::Less, 0.1), Paired::new(pairs));
        let alone = words(vec![compared(&odd)]);
        assert_eq!(alone[0].0, Some(Judgement::Worse));
        let mut many = vec![compared(&noise); 39];
        many.push(compared(&odd));
        let (word, ratio) = words(many).pop().unwrap();
        assert_eq!(word, Some(Judgement::Undecided));
        assert!(ratio.unwrap().low.unwrap() < 1.0);
        // A difference that is far beyond the noise stands among many.
        let mut many = vec![compared(&noise); 39];
        many.push(compared(&[(11.0, 1.0), (11.1, 1.0), (11.05, 1.0)]));
        assert_eq!(words(many).pop().unwrap().0, Some(Judgement::Worse));
    }

    /// A line that is alike keeps its own interval, which lies within the margin, however many
    /// others there are.
    #[test]
    fn a_line_is_alike_by_its_own_interval() {
        let same = [(1.02, 1.0), (0.99, 1.0), (1.01, 1.0)];
        let compared = ((Better::Less, 0.1), Paired::new(&same));
        for (word, ratio) in words(vec![compared; 100]) {
            assert_eq!(word, Some(Judgement::Alike));
            assert_eq!(ratio.unwrap().low, compared.1.unwrap().low);
        }
    }
}
