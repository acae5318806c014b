//! Two BBR flows on one link, as arithmetic: no packets and no clock, only the
//! effect of alternate probing on two maximum filters.
//!
//! The link has capacity 1. A probing flow sends `gain` times its estimate, the
//! other flow sends its own estimate; each gets a share of the link in
//! proportion to what it sends:
//! ```text
//!   share of the prober = gain m_a / (gain m_a + m_b)
//! ```
//! In a round each flow probes once. An estimate is the maximum of what the
//! flow got in the last two probes, its own and the other's: BBR's filter
//! covers ten round trips, slightly more than the eight of a gain cycle.
//!
//! The fixed point is `gain / (gain + 1)` for the prober and the rest for the
//! other flow, with both estimates at the former. Their sum exceeds the link
//! (1.11 for a gain of 1.25), which is why a standing queue remains.

/// One round of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Shares of the link that the two flows got while the first probed.
    pub first_probes: [f64; 2],
    /// Shares that they got while the second probed.
    pub second_probes: [f64; 2],
    /// Estimates of the two flows at the end of the round, as multiples of the link.
    pub estimates: [f64; 2],
}

/// Returns the trajectory of two flows that probe in turn for `rounds` rounds.
///
/// `start` are their initial estimates, `gain` is the pacing gain of a probe.
/// Negative estimates count as zero, gains below one as one.
pub fn two_flows(start: [f64; 2], gain: f64, rounds: usize) -> Vec<Round> {
    let gain = gain.max(1.0);
    let start = start.map(|estimate| estimate.max(0.0));
    // Share of each flow in the last probe; the estimates cover two probes.
    let mut last = start;
    let mut estimates = start;
    let mut probe = |flow: usize| {
        let shares = divide(estimates, flow, gain);
        estimates = [shares[0].max(last[0]), shares[1].max(last[1])];
        last = shares;
        (shares, estimates)
    };
    (0..rounds)
        .map(|_| {
            let (first_probes, _) = probe(0);
            let (second_probes, estimates) = probe(1);
            Round { first_probes, second_probes, estimates }
        })
        .collect()
}

/// Largest distance from the fixed point that counts as converged: three digits of a share.
const TOLERANCE: f64 = 0.001;

/// Returns the first round, counted from one, from which every number in
/// `rounds` stays at the fixed point for `gain`, to three digits; `None` if the
/// last round is not at the fixed point.
pub fn rounds_to_converge(rounds: &[Round], gain: f64) -> Option<usize> {
    let prober = gain.max(1.0) / (gain.max(1.0) + 1.0);
    let other = 1.0 - prober;
    let expected = [prober, other, other, prober, prober, prober];
    let away = |round: &Round| {
        let numbers = [round.first_probes, round.second_probes, round.estimates];
        let mut pairs = numbers.as_flattened().iter().zip(expected);
        pairs.any(|(number, expected)| (number - expected).abs() > TOLERANCE)
    };
    let converged = rounds.iter().rposition(away).map_or(0, |last| last + 1);
    (converged < rounds.len()).then_some(converged + 1)
}

fn divide(mut sent: [f64; 2], prober: usize, gain: f64) -> [f64; 2] {
    sent[prober] *= gain;
    let total = sent[0] + sent[1];
    if total == 0.0 { [0.0, 0.0] } else { sent.map(|s| s / total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distance of a round from the fixed point for a gain of 5/4.
    fn distance(round: &Round) -> f64 {
        let expected = [0.5556, 0.4444, 0.4444, 0.5556, 0.5556, 0.5556];
        let got = [round.first_probes, round.second_probes, round.estimates];
        let pairs = got.as_flattened().iter().zip(expected);
        pairs.map(|(got, expected)| (got - expected).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_published_shares_are_reached_by_round_34() {
        let rounds = two_flows([0.6, 0.4], 1.25, 34);
        assert!(distance(&rounds[33]) < 0.001, "{:?}", rounds[33]);
        assert!(distance(&rounds[20]) > 0.001, "{:?}", rounds[20]);
        let sum: f64 = rounds[33].estimates.iter().sum();
        assert!((sum - 1.111).abs() < 0.001, "{sum}");
    }

    #[test]
    fn the_fixed_point_does_not_depend_on_the_start() {
        for start in [[0.99, 0.01], [1.0, 0.1], [0.01, 0.99], [1.0, 1.0], [0.2, 0.1]] {
            let rounds = two_flows(start, 1.25, 100);
            assert!(distance(&rounds[99]) < 0.0001, "{start:?} {:?}", rounds[99]);
        }
    }

    /// The fixed point is gain / (gain + 1) for any gain.
    #[test]
    fn the_fixed_point_follows_the_gain() {
        for gain in [1.1, 1.2, 1.5, 2.0] {
            let last = two_flows([0.7, 0.3], gain, 400)[399];
            assert!((last.first_probes[0] - gain / (gain + 1.0)).abs() < 1e-4, "{gain} {last:?}");
        }
    }

    /// The published trajectory has converged by round 34, but not by round 21.
    #[test]
    fn convergence_is_the_first_round_that_stays() {
        let rounds = two_flows([0.6, 0.4], 1.25, 100);
        let first = rounds_to_converge(&rounds, 1.25).unwrap();
        assert!((22..=34).contains(&first), "{first}");
        assert!(distance(&rounds[first - 1]) < 0.0011, "{:?}", rounds[first - 1]);
        assert!(distance(&rounds[first - 2]) > 0.0009, "{:?}", rounds[first - 2]);
        assert_eq!(rounds_to_converge(&rounds[..first], 1.25), Some(first));
        assert_eq!(rounds_to_converge(&rounds[..first - 1], 1.25), None);
    }

    /// 5/9 and 4/9 by hand: reaching the fixed point only temporarily is not convergence.
    #[test]
    fn a_round_that_leaves_again_does_not_count() {
        let at = |prober: f64, other: f64| Round {
            first_probes: [prober, other],
            second_probes: [other, prober],
            estimates: [prober, prober],
        };
        let (there, away) = (at(0.5556, 0.4444), at(0.558, 0.442));
        assert_eq!(rounds_to_converge(&[there, away, there, there], 1.25), Some(3));
        assert_eq!(rounds_to_converge(&[there], 1.25), Some(1));
        assert_eq!(rounds_to_converge(&[there, away], 1.25), None);
        assert_eq!(rounds_to_converge(&[], 1.25), None);
    }

    #[test]
    fn nothing_sent_is_nothing_shared() {
        assert_eq!(two_flows([0.0, -1.0], 1.25, 3)[2].estimates, [0.0, 0.0]);
        assert!(two_flows([0.5, 0.5], 1.25, 0).is_empty());
    }
}
