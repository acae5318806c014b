//! Predictions for candidates on the fitted paths.

use crate::search::Fit;

/// Size class of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Below [`LARGE_BYTES`](crate::LARGE_BYTES).
    Small,
    /// From that size.
    Large,
}

/// RTT up to which the operator's rule takes clients for its own sites, seconds: what its test bed
/// has between sites, where those of clients are at 50 ms.
pub const SITES_RTT_S: f64 = 0.015;
/// Retransmitted part from which the operator's rule calls retransmissions many. The report gives
/// no figure: it compares two networks. This one is Knee's.
pub const MANY_RETRANSMITTED: f64 = 0.01;

/// Answer of a rule that needs no simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOfThumb {
    /// The candidate is likely to gain.
    Try,
    /// It is likely to lose.
    Keep,
}

/// Rule of thumb: BBR for large transfers, CUBIC or Reno for small ones, whatever the path. The sign
/// is right on nearly all paths, simulated and measured. `None` if the rule does not cover these two
/// controllers.
pub fn rule_of_thumb(class: Class, candidate: &str, in_use: &str) -> Option<RuleOfThumb> {
    let is_bbr = |name: &str| name.starts_with("bbr");
    let by_loss = |name: &str| ["cubic", "reno"].contains(&name);
    let gains = match class {
        Class::Large if is_bbr(candidate) && by_loss(in_use) => true,
        Class::Small if by_loss(candidate) && is_bbr(in_use) => true,
        Class::Large if by_loss(candidate) && is_bbr(in_use) => false,
        Class::Small if is_bbr(candidate) && by_loss(in_use) => false,
        _ => return None,
    };
    Some(if gains { RuleOfThumb::Try } else { RuleOfThumb::Keep })
}

/// The rule of a large delivery network (an operator's report on BBR, 2020): CUBIC inside and between
/// sites, where RTT and loss are low; BBR for large objects to clients where much is retransmitted;
/// CUBIC for everything else. `rtt_s` is the smallest RTT of the group's median connection in seconds,
/// `retransmitted` the part of the group's payload. `None` if the rule does not cover these two
/// controllers.
pub fn operators_rule(
    class: Class,
    candidate: &str,
    in_use: &str,
    rtt_s: f64,
    retransmitted: f64,
) -> Option<RuleOfThumb> {
    let is_bbr = |name: &str| name.starts_with("bbr");
    let to_clients = rtt_s > SITES_RTT_S;
    let wants_bbr = to_clients && class == Class::Large && retransmitted >= MANY_RETRANSMITTED;
    let gains = match (is_bbr(candidate), candidate) {
        (true, _) if in_use == "cubic" => wants_bbr,
        (false, "cubic") if is_bbr(in_use) => !wants_bbr,
        _ => return None,
    };
    Some(if gains { RuleOfThumb::Try } else { RuleOfThumb::Keep })
}

/// Gain as the difference of mean log speeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Candidate minus controller in use.
    pub mean: f64,
    /// Lower bound of the 80 % interval.
    pub low: f64,
    /// Upper bound of the 80 % interval.
    pub high: f64,
}

/// Expected effect of a candidate on a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Gain in speed.
    pub gain: Gain,
    /// Retransmission ratios of the controller in use and of the candidate, both simulated.
    pub retransmitted: [f64; 2],
    /// Shares of connections that do not finish under the controller in use and under the
    /// candidate, of those that finish under one of them.
    pub unfinished: [f64; 2],
}

/// Recommendation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// An experiment is likely to find a gain.
    Try,
    /// The candidate is likely to lose.
    Keep,
    /// The interval includes both.
    Unclear,
    /// No statement is possible.
    NoAdvice(Reason),
}

/// Why there is no advice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The simulator does not reproduce the connections.
    Misfit(f64),
    /// Too few connections.
    TooFew(usize),
    /// So rare that a simulation of enough of them would take too long.
    TooRare,
    /// The simulator lacks the controller in use.
    Unknown,
    /// The controller of most connections was not seen.
    Unseen,
}

/// Maximum misfit of paths that explain what was observed.
pub const MISFIT_MAX: f64 = 1.5;
/// Increase of a path's misfit that reduces its weight by a factor of e.
const TEMPERATURE: f64 = 0.15;
/// Standard deviation of the error beyond the spread of the fits, by class; measured on known
/// paths.
const BEYOND: [f64; 2] = [0.05, 0.08];
/// 90 % quantile of the normal distribution.
const TENTH: f64 = 1.2816;

/// Share of connections that a candidate may leave unfinished beyond those of the controller in
/// use.
const UNFINISHED_MORE: f64 = 0.01;

/// Result on one path: mean log gain, retransmission ratios, and shares of unfinished connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Candidate minus controller in use.
    pub gain: f64,
    /// Retransmission ratios of the controller in use and of the candidate.
    pub retransmitted: [f64; 2],
    /// Shares of unfinished connections under each, of those that finish under one.
    pub unfinished: [f64; 2],
}

impl Prediction {
    /// Averages the results of the paths, weighted by fit; `None` without results.
    pub fn new(class: Class, answers: &[(Fit, Answer)]) -> Option<Prediction> {
        let best = answers.iter().map(|(fit, _)| fit.misfit).fold(f64::INFINITY, f64::min);
        let weight = |fit: &Fit| (-(fit.misfit - best) / TEMPERATURE).exp();
        let total: f64 = answers.iter().map(|(fit, _)| weight(fit)).sum();
        if answers.is_empty() {
            return None;
        }
        let mean = |of: &dyn Fn(&Answer) -> f64| {
            answers.iter().map(|(fit, answer)| weight(fit) * of(answer)).sum::<f64>() / total
        };
        let gain = mean(&|answer| answer.gain);
        let between = mean(&|answer| (answer.gain - gain).powi(2));
        let beyond = BEYOND[class as usize];
        let half = TENTH * (between + beyond * beyond).sqrt();
        Some(Prediction {
            gain: Gain { mean: gain, low: gain - half, high: gain + half },
            retransmitted: [0, 1].map(|at| mean(&|answer| answer.retransmitted[at])),
            unfinished: [0, 1].map(|at| mean(&|answer| answer.unfinished[at])),
        })
    }

    /// Whether the candidate leaves clearly more connections unfinished.
    pub fn leaves_more_unfinished(&self) -> bool {
        let [now, then] = self.unfinished;
        then > now + UNFINISHED_MORE
    }

    /// The verdict, given the misfit of the best path.
    pub fn verdict(&self, misfit: f64) -> Verdict {
        if misfit > MISFIT_MAX {
            return Verdict::NoAdvice(Reason::Misfit(misfit));
        }
        match self.gain {
            // What finishes faster for leaving more unfinished is no gain.
            Gain { low, .. } if low > 0.0 && self.leaves_more_unfinished() => Verdict::Unclear,
            _ if self.leaves_more_unfinished() => Verdict::Keep,
            Gain { low, .. } if low > 0.0 => Verdict::Try,
            Gain { high, .. } if high < 0.0 => Verdict::Keep,
            _ => Verdict::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Path;

    fn answer(misfit: f64, gain: f64) -> (Fit, Answer) {
        let path = Path { rate_bps: 1e7, rtt_s: 0.02, loss: 0.0, buffer_bdp: 1.0, cross: 0.0 };
        (
            Fit { number: 0, path, misfit },
            Answer { gain, retransmitted: [0.01, 0.02], unfinished: [0.0; 2] },
        )
    }

    #[test]
    fn what_fits_better_counts_more() {
        let answers = [answer(0.3, 0.4), answer(0.3 + TEMPERATURE, 0.0), answer(30.0, -5.0)];
        let found = Prediction::new(Class::Large, &answers).unwrap();
        // Weights: 1, 1/e and 0.
        assert!((found.gain.mean - 0.4 / (1.0 + (-1.0_f64).exp())).abs() < 1e-6, "{found:?}");
        assert_eq!(found.retransmitted, [0.01, 0.02]);
        assert!(Prediction::new(Class::Large, &[]).is_none());
    }

    #[test]
    fn verdicts_follow_the_interval_and_the_misfit() {
        let verdict = |gain: f64, misfit: f64| {
            Prediction::new(Class::Small, &[answer(0.3, gain)]).unwrap().verdict(misfit)
        };
        assert_eq!(verdict(0.3, 0.3), Verdict::Try);
        assert_eq!(verdict(-0.3, 0.3), Verdict::Keep);
        assert_eq!(verdict(0.01, 0.3), Verdict::Unclear);
        assert_eq!(verdict(0.3, 9.0), Verdict::NoAdvice(Reason::Misfit(9.0)));
    }

    /// Neither decides against the other.
    #[test]
    fn what_leaves_more_unfinished_is_not_worth_trying() {
        let verdict = |gain: f64, unfinished: [f64; 2]| {
            let (fit, answer) = answer(0.3, gain);
            let answers = [(fit, Answer { unfinished, ..answer })];
            Prediction::new(Class::Large, &answers).unwrap().verdict(0.3)
        };
        assert_eq!(verdict(0.3, [0.0, 0.25]), Verdict::Unclear);
        assert_eq!(verdict(0.01, [0.0, 0.25]), Verdict::Keep);
        assert_eq!(verdict(0.3, [0.2, 0.205]), Verdict::Try);
    }

    #[test]
    fn the_operator_takes_bbr_for_large_objects_to_clients_that_lose_much() {
        use RuleOfThumb::{Keep, Try};
        for (class, candidate, in_use, rtt_s, retransmitted, answer) in [
            (Class::Large, "bbr", "cubic", 0.05, 0.02, Some(Try)),
            (Class::Large, "bbr", "cubic", 0.05, 0.001, Some(Keep)),
            (Class::Small, "bbr", "cubic", 0.05, 0.02, Some(Keep)),
            // Between sites and inside them.
            (Class::Large, "bbr3", "cubic", 0.015, 0.02, Some(Keep)),
            (Class::Large, "bbr", "cubic", 0.001, 0.0, Some(Keep)),
            (Class::Large, "cubic", "bbr", 0.05, 0.02, Some(Keep)),
            (Class::Large, "cubic", "bbr", 0.015, 0.0, Some(Try)),
            (Class::Small, "cubic", "bbr", 0.05, 0.02, Some(Try)),
            (Class::Large, "copa", "cubic", 0.05, 0.02, None),
            (Class::Large, "bbr", "bbr3", 0.05, 0.02, None),
        ] {
            let given = operators_rule(class, candidate, in_use, rtt_s, retransmitted);
            assert_eq!(given, answer, "{class:?} {candidate} {in_use} {rtt_s} {retransmitted}");
        }
    }

    #[test]
    fn the_rule_of_thumb_goes_by_the_size() {
        assert_eq!(rule_of_thumb(Class::Large, "bbr", "cubic"), Some(RuleOfThumb::Try));
        assert_eq!(rule_of_thumb(Class::Small, "bbr", "cubic"), Some(RuleOfThumb::Keep));
        assert_eq!(rule_of_thumb(Class::Small, "cubic", "bbr"), Some(RuleOfThumb::Try));
        assert_eq!(rule_of_thumb(Class::Large, "copa", "cubic"), None);
    }
}
