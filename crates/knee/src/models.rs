//! Claims about a study's models: numbers that are computed, not measured.

use knee_cc::model::{Round, two_flows};
use knee_record::{ClaimOutcome, NotMeasurable, outcome_of};
use knee_scenario::{Claim, Measure, Model, ModelKind};

/// A number counts as reached when it is no further away than this: three
/// digits of a share.
const TOLERANCE: f64 = 0.001;

/// Checks a claim that names a measure of a model; none for other claims.
pub fn evaluate(claim: &Claim, models: &[Model]) -> Option<ClaimOutcome> {
    let Measure::Model(what) = &claim.measure else {
        return None;
    };
    let model = models.iter().find(|model| model.name == claim.of);
    let value = model.and_then(|model| value(model, what));
    let missing = || NotMeasurable(format!("no model gives {what} of {}", claim.of));
    Some(outcome_of(claim, value.ok_or_else(missing)))
}

fn value(model: &Model, what: &str) -> Option<f64> {
    let ModelKind::AlternateProbing { gain, start, rounds } = model.kind;
    let rounds = two_flows(start, gain, usize::try_from(rounds).ok()?);
    let last = rounds.last()?;
    let [a, b] = last.first_probes;
    match what {
        "share_low" => Some(a.min(b)),
        "share_high" => Some(a.max(b)),
        "filter" => Some(last.estimates[0].max(last.estimates[1])),
        "rounds_to_converge" => Some(rounds_to_converge(&rounds, gain)),
        _ => None,
    }
}

/// The first round, counted from one, from which on every number stays at
/// the fixed point: the prober gets `g / (g + 1)`, which both filters hold,
/// the other flow the rest. Infinite when there is none.
fn rounds_to_converge(rounds: &[Round], gain: f64) -> f64 {
    let prober = gain / (gain + 1.0);
    let other = 1.0 - prober;
    let expected = [prober, other, other, prober, prober, prober];
    let away = |round: &Round| {
        let numbers = [round.first_probes, round.second_probes, round.estimates];
        let mut pairs = numbers.as_flattened().iter().zip(expected);
        pairs.any(|(number, expected)| (number - expected).abs() > TOLERANCE)
    };
    match rounds.iter().rposition(away) {
        Some(last) if last + 1 == rounds.len() => f64::INFINITY,
        Some(last) => (last + 2) as f64,
        None => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(rounds: u64) -> Model {
        let kind = ModelKind::AlternateProbing { gain: 1.25, start: [0.9, 0.1], rounds };
        Model { name: "probing".to_string(), kind }
    }

    /// The published figures for a gain of 5/4.
    #[test]
    fn published_shares() {
        for (what, expected) in [("share_low", 0.4444), ("share_high", 0.5556), ("filter", 0.5556)]
        {
            let value = value(&model(100), what).unwrap();
            assert!((value - expected).abs() < 1e-4, "{what} {value}");
        }
    }

    /// By the round that the model names it is there, one round earlier not.
    #[test]
    fn convergence_is_the_first_round_that_stays() {
        let round = value(&model(100), "rounds_to_converge").unwrap();
        assert!((2.0..60.0).contains(&round), "{round}");
        let share = |rounds: f64| value(&model(rounds as u64), "share_high").unwrap();
        let low = |rounds: f64| value(&model(rounds as u64), "filter").unwrap();
        let near = |rounds| {
            (share(rounds) - 5.0 / 9.0).abs() <= TOLERANCE
                && (low(rounds) - 5.0 / 9.0).abs() <= TOLERANCE
        };
        assert!(near(round) && near(round + 1.0));
        assert_eq!(value(&model(2), "rounds_to_converge"), Some(f64::INFINITY));
    }
}
