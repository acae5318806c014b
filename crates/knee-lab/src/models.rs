//! The model of alternate probing: values for claims of studies, and for `knee model`.

use knee_cc::model::{AlternateProbing, Round, fixed_point, rounds_to_converge};
use knee_record::{ClaimOutcome, NotMeasurable, outcome_of};
use knee_report::{Probed, ProbingPicture};
use knee_scenario::{Claim, Measure, Model, ModelKind, Starts};
use knee_units::random::exponential;
use knee_units::statistics::Distribution;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Largest distance from the fixed point that counts as converged: three digits of a share.
pub const TOLERANCE: f64 = 0.001;

/// Starts whose paths a picture shows.
const PATHS_SHOWN: usize = 12;

/// BBR flows that probe in turn, from one or more starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Probing {
    /// Pacing gain while probing.
    pub gain: f64,
    /// Starts: the initial estimate of each flow, as multiples of the link; of as many flows each.
    pub starts: Vec<Vec<f64>>,
    /// Maximum number of rounds.
    pub rounds: usize,
    /// Largest distance from the fixed point that counts as converged.
    pub tolerance: f64,
}

/// Where flows from one start end.
#[derive(Clone, Debug, PartialEq)]
pub struct Converged {
    /// Initial estimates.
    pub start: Vec<f64>,
    /// First round from which every share and estimate stays within the tolerance of the fixed
    /// point; `None` if that is not within the rounds.
    pub rounds: Option<usize>,
    /// Smallest and largest share of a flow in the last round.
    pub shares: [f64; 2],
    /// Estimates after the last round.
    pub estimates: Vec<f64>,
}

/// Draws starts at which the flows together have exactly the link, each such division as likely as
/// any other.
pub fn draw_starts(flows: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = || {
        let parts: Vec<f64> = (0..flows).map(|_| exponential(&mut random)).collect();
        let whole: f64 = parts.iter().sum();
        parts.into_iter().map(|part| part / whole).collect()
    };
    (0..count).map(|_| draw()).collect()
}

impl Probing {
    /// Number of flows.
    pub fn flows(&self) -> usize {
        self.starts.first().map_or(0, Vec::len)
    }

    /// Returns the share of the prober at the fixed point, which all estimates have there.
    pub fn fixed_point(&self) -> f64 {
        fixed_point(self.flows(), self.gain)
    }

    /// Computes where the flows end, from each start.
    pub fn converge(&self) -> Vec<Converged> {
        self.starts.iter().map(|start| self.from(start)).collect()
    }

    fn from(&self, start: &[f64]) -> Converged {
        let mut last = None;
        let rounds = AlternateProbing::new(start, self.gain).take(self.rounds);
        let distances = rounds.map(|round| last.insert(round).distance(self.gain));
        let rounds = rounds_to_converge(distances, self.tolerance);
        let (shares, estimates) = last.map_or(([0.0; 2], start.to_vec()), |round: Round| {
            let all = || round.shares.iter().flatten().copied();
            let ends = [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)];
            (ends, round.estimates.last().cloned().unwrap_or_default())
        });
        Converged { start: start.to_vec(), rounds, shares, estimates }
    }

    /// Builds the picture: the paths from the first starts until they have converged, as
    /// [`Probing::converge`] found.
    pub fn picture(&self, ends: &[Converged]) -> ProbingPicture {
        let path = |end: &Converged| {
            let length = end.rounds.unwrap_or(self.rounds);
            let rounds: Vec<Round> =
                AlternateProbing::new(&end.start, self.gain).take(length.max(1)).collect();
            let flat = |of: fn(&Round) -> &Vec<Vec<f64>>| {
                rounds.iter().flat_map(|round| of(round).iter().cloned()).collect()
            };
            Probed {
                start: end.start.clone(),
                shares: flat(|round| &round.shares),
                estimates: flat(|round| &round.estimates),
            }
        };
        ProbingPicture {
            gain: self.gain,
            fixed_point: self.fixed_point(),
            paths: ends.iter().take(PATHS_SHOWN).map(path).collect(),
            starts: ends.len(),
        }
    }
}

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
    let ModelKind::AlternateProbing { gain, starts, rounds } = &model.kind;
    let starts = match starts {
        Starts::At(start) => vec![start.clone()],
        Starts::Drawn { flows, count, seed } => draw_starts(*flows, *count, *seed),
    };
    let rounds = usize::try_from(*rounds).ok()?;
    let ends = Probing { gain: *gain, starts, rounds, tolerance: TOLERANCE }.converge();
    let over = |value: fn(&Converged) -> f64, pick: fn(f64, f64) -> f64| {
        ends.iter().map(value).reduce(pick)
    };
    let part = |part: f64| {
        let rounds = ends.iter().map(|end| end.rounds.map_or(f64::INFINITY, |n| n as f64));
        let rounds = Distribution::new(rounds.map(|rounds| (rounds, 1.0)).collect())?;
        Some(rounds.percentile(part))
    };
    match what {
        "share_low" => over(|end| end.shares[0], f64::min),
        "share_high" => over(|end| end.shares[1], f64::max),
        "filter" => over(|end| end.estimates.iter().copied().fold(0.0, f64::max), f64::max),
        "rounds_to_converge" => part(0.5),
        "rounds_to_converge_p5" => part(0.05),
        "rounds_to_converge_p95" => part(0.95),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(rounds: u64) -> Model {
        let kind =
            ModelKind::AlternateProbing { gain: 1.25, starts: Starts::At(vec![0.9, 0.1]), rounds };
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
        assert_eq!(value(&model(100), "rounds_to_converge"), Some(45.0));
        assert_eq!(value(&model(2), "rounds_to_converge"), Some(f64::INFINITY));
    }

    /// Starts are on the line or plane where the link is shared out, evenly: the share of one of N
    /// flows has the mean 1/N and the variance (N - 1) / (N^2 (N + 1)).
    #[test]
    fn starts_are_drawn_evenly_over_all_divisions_of_the_link() {
        for flows in [2, 3, 7] {
            let starts = draw_starts(flows, 20_000, 5);
            let n = flows as f64;
            let mean = starts.iter().map(|start| start[0]).sum::<f64>() / starts.len() as f64;
            let squares = starts.iter().map(|start| (start[0] - 1.0 / n).powi(2));
            let variance = squares.sum::<f64>() / starts.len() as f64;
            assert!(starts.iter().all(|start| (start.iter().sum::<f64>() - 1.0).abs() < 1e-12));
            assert!((mean * n - 1.0).abs() < 0.02, "{mean}");
            let expected = (n - 1.0) / (n * n * (n + 1.0));
            assert!((variance / expected - 1.0).abs() < 0.05, "{variance}, {expected}");
            assert_eq!(starts, draw_starts(flows, 20_000, 5));
            assert_ne!(starts, draw_starts(flows, 20_000, 6));
        }
    }
}
