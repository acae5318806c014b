//! BBR flows on one link, as arithmetic: no packets and no clock, only the
//! effect of alternate probing on their maximum filters.
//!
//! The link has capacity 1. A probing flow sends `gain` times its estimate, each
//! other flow sends its own estimate; each gets a share of the link in
//! proportion to what it sends:
//! ```text
//!   share of the prober = gain m_i / (gain m_i + sum of the other m_j)
//! ```
//! In a round each of the N flows probes once. An estimate is the maximum of what the
//! flow got in the last N probes, its own and those of the others: BBR's filter
//! covers ten round trips, slightly more than the eight of a gain cycle.
//!
//! The fixed point is `gain / (gain + N - 1)` for the prober and `1 / (gain + N - 1)` for each
//! other flow, with all estimates at the former. Their sum exceeds the link
//! (1.11 for two flows and a gain of 1.25), which is why a standing queue remains.

use std::collections::VecDeque;

/// Flows that probe in turn; each item is a round, without end.
#[derive(Clone, Debug)]
pub struct AlternateProbing {
    gain: f64,
    estimates: Vec<f64>,
    /// What each flow got in the last N - 1 probes, the oldest first.
    recent: VecDeque<Vec<f64>>,
}

/// One round of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// One row for each probe, in order: the shares of the link that the flows got while that flow
    /// probed.
    pub shares: Vec<Vec<f64>>,
    /// One row for each probe: the estimates of the flows after it, as multiples of the link.
    pub estimates: Vec<Vec<f64>>,
}

impl AlternateProbing {
    /// Creates flows with these initial estimates, multiples of the link; `gain` is the pacing gain
    /// of a probe. Negative estimates count as zero, gains below one as one.
    pub fn new(start: &[f64], gain: f64) -> AlternateProbing {
        let start: Vec<f64> = start.iter().map(|estimate| estimate.max(0.0)).collect();
        let recent = vec![start.clone(); start.len().saturating_sub(1)].into();
        AlternateProbing { gain: gain.max(1.0), estimates: start, recent }
    }

    fn probe(&mut self, flow: usize) -> Vec<f64> {
        let mut shares = self.estimates.clone();
        shares[flow] *= self.gain;
        let total: f64 = shares.iter().sum();
        if total > 0.0 {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        self.recent.push_back(shares.clone());
        for (number, estimate) in self.estimates.iter_mut().enumerate() {
            *estimate = self.recent.iter().map(|shares| shares[number]).fold(0.0, f64::max);
        }
        self.recent.pop_front();
        shares
    }
}

impl Iterator for AlternateProbing {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        let flows = self.estimates.len();
        let mut round = Round { shares: Vec::new(), estimates: Vec::new() };
        for flow in 0..flows {
            round.shares.push(self.probe(flow));
            round.estimates.push(self.estimates.clone());
        }
        Some(round)
    }
}

/// Returns the share of the prober at the fixed point, which all estimates have there.
pub fn fixed_point(flows: usize, gain: f64) -> f64 {
    gain.max(1.0) * share_of_others(flows, gain)
}

/// Returns the share of each flow that does not probe, at the fixed point.
fn share_of_others(flows: usize, gain: f64) -> f64 {
    1.0 / (gain.max(1.0) + flows.saturating_sub(1) as f64)
}

impl Round {
    /// Returns the largest distance of a share, or of an estimate at the end of the round, from the
    /// fixed point for `gain`.
    pub fn distance(&self, gain: f64) -> f64 {
        let flows = self.shares.len();
        let (prober, other) = (fixed_point(flows, gain), share_of_others(flows, gain));
        let expected = |probing: usize, flow: usize| if flow == probing { prober } else { other };
        let of_shares = self.shares.iter().enumerate().flat_map(|(probing, shares)| {
            let pairs = shares.iter().enumerate();
            pairs.map(move |(flow, share)| (share - expected(probing, flow)).abs())
        });
        let last = self.estimates.last().into_iter().flatten();
        of_shares.chain(last.map(|estimate| (estimate - prober).abs())).fold(0.0, f64::max)
    }
}

/// Returns the first round, counted from one, from which no number is farther than `tolerance` from
/// the fixed point, given the distance of each round; `None` if the last round is.
pub fn rounds_to_converge(
    distances: impl IntoIterator<Item = f64>,
    tolerance: f64,
) -> Option<usize> {
    let (mut rounds, mut last_away) = (0, 0);
    for distance in distances {
        rounds += 1;
        if distance > tolerance {
            last_away = rounds;
        }
    }
    (last_away < rounds).then_some(last_away + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(start: &[f64], gain: f64, rounds: usize) -> Vec<f64> {
        let rounds = AlternateProbing::new(start, gain).take(rounds);
        rounds.map(|round| round.distance(gain)).collect()
    }

    /// Starts on a line or plane where all is shared, and elsewhere.
    const STARTS: [&[f64]; 8] = [
        &[0.99, 0.01],
        &[1.0, 0.1],
        &[0.01, 0.99],
        &[1.0, 1.0],
        &[0.2, 0.1],
        &[0.7, 0.2, 0.1],
        &[0.01, 0.01, 0.01, 0.01, 0.96],
        &[3.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
    ];

    /// Published figures for a gain of 5/4: 0.4444 and 0.5556, and both filters at the latter.
    #[test]
    fn the_published_shares_are_reached() {
        let last = AlternateProbing::new(&[0.6, 0.4], 1.25).nth(99).unwrap();
        let near = |numbers: &[f64], expected: [f64; 2]| {
            numbers.iter().zip(expected).all(|(number, expected)| (number - expected).abs() < 1e-4)
        };
        assert!(near(&last.shares[0], [0.5556, 0.4444]), "{last:?}");
        assert!(near(&last.shares[1], [0.4444, 0.5556]), "{last:?}");
        assert!(near(&last.estimates[1], [0.5556, 0.5556]), "{last:?}");
    }

    /// Where each flow ends does not depend on the start: g/(g + N - 1) while it probes.
    #[test]
    fn the_fixed_point_does_not_depend_on_the_start() {
        for gain in [1.1, 1.25, 2.0] {
            for start in STARTS {
                let last = AlternateProbing::new(start, gain).nth(1999).unwrap();
                let prober = gain / (gain + start.len() as f64 - 1.0);
                for (flow, shares) in last.shares.iter().enumerate() {
                    assert!((shares[flow] - prober).abs() < 1e-4, "{gain}, {start:?}: {shares:?}");
                }
                assert!(last.distance(gain) < 1e-4);
            }
        }
    }

    /// What the link carries is one in every probe; and no estimate is ever above it, or below what
    /// the flow gets in a probe of its own.
    #[test]
    fn each_probe_shares_the_whole_link() {
        for start in STARTS {
            for round in AlternateProbing::new(start, 1.25).take(50) {
                for (flow, shares) in round.shares.iter().enumerate() {
                    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
                    assert!(round.estimates[flow][flow] >= shares[flow]);
                }
            }
        }
    }

    /// Near the fixed point the logarithms of two estimates follow a linear map, by hand: with
    /// `k = 1/(g + 1)` a probe of the first makes `a' = k(a - b)`, one of the second
    /// `b' = k(b - a')`. Per round the larger root of `x^2 - (2k + k^2) x + k^2` is left.
    #[test]
    fn two_flows_approach_it_at_the_rate_of_the_linear_map() {
        for gain in [1.1, 1.25, 1.5] {
            let k = 1.0_f64 / (gain + 1.0);
            let (sum, product) = (2.0 * k + k * k, k * k);
            let root = (sum + (sum * sum - 4.0 * product).sqrt()) / 2.0;
            let all = distances(&[0.8, 0.2], gain, 400);
            let near = all.iter().position(|distance| *distance < 1e-6).unwrap();
            let per_round = (all[near + 20] / all[near]).powf(1.0 / 20.0);
            assert!((per_round - root).abs() < 1e-3, "{gain}: {per_round}, {root}");
        }
    }

    /// Rounds for these starts, as a reading of the source counted them with its own program.
    #[test]
    fn the_rounds_depend_on_the_start() {
        let cases = [([0.6, 0.4], 33), ([0.9, 0.1], 45), ([0.99, 0.01], 56), ([0.51, 0.49], 23)];
        for (start, rounds) in cases {
            let all = distances(&start, 1.25, 200);
            assert_eq!(rounds_to_converge(all, 0.001), Some(rounds), "{start:?}");
        }
    }

    /// Reaching the fixed point only temporarily is not convergence.
    #[test]
    fn a_round_that_leaves_again_does_not_count() {
        let (there, away) = (0.0009, 0.0011);
        let converge = |distances: &[f64]| rounds_to_converge(distances.iter().copied(), 0.001);
        assert_eq!(converge(&[there, away, there, there]), Some(3));
        assert_eq!(converge(&[there]), Some(1));
        assert_eq!(converge(&[there, away]), None);
        assert_eq!(converge(&[]), None);
    }

    #[test]
    fn nothing_sent_is_nothing_shared() {
        let round = AlternateProbing::new(&[0.0, -1.0], 1.25).next().unwrap();
        assert_eq!(round.estimates, [[0.0, 0.0], [0.0, 0.0]]);
    }
}
