//! Claims about a study's models: values that are computed, not measured.

use knee_cc::model::{rounds_to_converge, two_flows};
use knee_record::{ClaimOutcome, NotMeasurable, outcome_of};
use knee_scenario::{Claim, Measure, Model, ModelKind};

/// Checks a claim about a model's measure; `None` for other claims.
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
        "rounds_to_converge" => {
            Some(rounds_to_converge(&rounds, gain).map_or(f64::INFINITY, |round| round as f64))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(rounds: u64) -> Model {
        let kind = ModelKind::AlternateProbing { gain: 1.25, start: [0.9, 0.1], rounds };
        Model { name: "probing".to_string(), kind }
    }

    /// Published figures for a gain of 5/4.
    #[test]
    fn published_shares() {
        for (what, expected) in [("share_low", 0.4444), ("share_high", 0.5556), ("filter", 0.5556)]
        {
            let value = value(&model(100), what).unwrap();
            assert!((value - expected).abs() < 1e-4, "{what} {value}");
        }
    }

    /// Two rounds are too few to converge: the value exceeds any bound of a claim.
    #[test]
    fn a_model_that_does_not_converge_takes_forever() {
        let round = value(&model(100), "rounds_to_converge").unwrap();
        assert!((3.0..60.0).contains(&round), "{round}");
        assert_eq!(value(&model(2), "rounds_to_converge"), Some(f64::INFINITY));
    }
}
