//! Tests the conclusions of rankings: how often they call a candidate worse where all are the same,
//! and whether they find one that is.
//!
//! `KNEE_RANKINGS=2000` raises the number of rankings tried.

use knee_record::{
    Competition, Judgement, RankFigures, RankRun, RankScenario, RankSummary, Ranking,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

fn rankings() -> u64 {
    std::env::var("KNEE_RANKINGS").map_or(400, |text| text.parse().unwrap())
}

/// Standard normal value (Box and Muller).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let mut unit = || ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-2.0 * unit().ln()).sqrt() * (2.0 * std::f64::consts::PI * unit()).cos()
}

/// A ranking of candidates whose power varies by 5 % around the same value; that of the last one is
/// lower by `factor`.
fn ranking(number: u64, candidates: usize, repeats: u64, factor: f64) -> RankSummary {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let mut runs = Vec::new();
    for repeat in 1..=repeats {
        let common = 0.3 * normal(&mut random);
        for candidate in 0..candidates {
            let factor = if candidate + 1 == candidates { factor } else { 1.0 };
            let power = factor * 0.5 * (common + 0.05 * normal(&mut random)).exp();
            let figures = RankFigures { power: Some(power), ..RankFigures::default() };
            let (company, seed) = (Competition::Alone, repeat);
            runs.push(RankRun { scenario: 0, candidate, company, repeat, seed, figures });
        }
    }
    let ranking = Ranking {
        candidates: (0..candidates).map(|number| format!("candidate-{number}")).collect(),
        scenarios: vec![RankScenario::default()],
        repeats,
        ..Ranking::default()
    };
    RankSummary::new(ranking, &runs, Vec::new())
}

fn calls_any_worse(summary: &RankSummary) -> bool {
    summary.entries.iter().any(|entry| entry.word == Judgement::Worse)
}

/// The first is chosen by the same runs that the others are compared in: at most 5 % of the
/// rankings, plus two standard errors, call any of the same candidates worse than it.
#[test]
fn the_same_controller_under_several_names_is_rarely_worse() {
    for (candidates, repeats) in [(2, 5), (3, 10), (10, 5), (10, 10)] {
        let wrong = (0..rankings())
            .filter(|number| calls_any_worse(&ranking(*number, candidates, repeats, 1.0)))
            .count() as f64;
        let part = wrong / rankings() as f64;
        let most = 0.05 + 2.0 * (0.05 * 0.95 / rankings() as f64).sqrt();
        println!("{candidates} candidates, {repeats} repeats: {part}");
        assert!(part <= most, "{candidates} candidates, {repeats} repeats: {part}");
    }
}

/// One that has 20 % less power is found among ten.
#[test]
fn a_worse_candidate_is_found() {
    let finds = |number: &u64| {
        let summary = ranking(*number, 10, 10, 0.8);
        let last = summary.entries.last().unwrap();
        (last.candidate.as_str(), last.word) == ("candidate-9", Judgement::Worse)
    };
    let found = (0..100).filter(finds).count();
    assert!(found >= 95, "{found} of 100");
}
