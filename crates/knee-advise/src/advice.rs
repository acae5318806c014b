//! What candidates would do on the paths that were found.

use crate::search::Fit;

/// Which connections advice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Below [`LARGE_BYTES`](crate::LARGE_BYTES).
    Small,
    /// From there on.
    Large,
}

/// What a rule without any simulation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOfThumb {
    /// The candidate is likely to gain.
    Try,
    /// It is likely to lose.
    Keep,
}

/// BBR for what is large, CUBIC or Reno for what is small: in simulated and measured
/// paths alike the sign is right on nearly all. None: the rule does not speak of
/// these two.
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

/// A gain as the difference of mean logarithms of speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// Candidate less controller in use.
    pub mean: f64,
    /// The 80 % interval.
    pub low: f64,
    /// Its other end.
    pub high: f64,
}

/// What a candidate is expected to bring a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Of speed.
    pub gain: Gain,
    /// Parts of the bytes sent again: under the controller in use, and under the
    /// candidate.
    pub retransmitted: [f64; 2],
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// An experiment is likely to find a gain.
    Try,
    /// The candidate is likely to lose.
    Keep,
    /// The interval has both.
    Unclear,
    /// Nothing can be said.
    NoAdvice(Reason),
}

/// Why there is no advice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The simulator does not reproduce the connections.
    Misfit(f64),
    /// There are so few connections.
    TooFew(usize),
    /// The simulator does not have the controller in use.
    Unknown,
}

/// Above this misfit there is no advice.
const MISFIT_MAX: f64 = 1.5;
/// By how much the misfit of a path may be larger for it to have a third of the
/// weight.
const TEMPERATURE: f64 = 0.15;
/// Standard deviation of what the fits do not tell: by class, from paths that
/// were known.
const BEYOND: [f64; 2] = [0.05, 0.08];
/// Quantile of the normal distribution that leaves a tenth above.
const TENTH: f64 = 1.2816;

/// What one path says: mean logarithm of the gain, and retransmitted parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Candidate less controller in use.
    pub gain: f64,
    /// Parts of the bytes sent again under the one in use and the candidate.
    pub retransmitted: [f64; 2],
}

impl Prediction {
    /// From what the paths say that fit, each by how well it does; none: no path
    /// answers.
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
            retransmitted: [
                mean(&|answer| answer.retransmitted[0]),
                mean(&|answer| answer.retransmitted[1]),
            ],
        })
    }

    /// What follows from it, given how well the best path fits.
    pub fn verdict(&self, misfit: f64) -> Verdict {
        if misfit > MISFIT_MAX {
            return Verdict::NoAdvice(Reason::Misfit(misfit));
        }
        match self.gain {
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
        (Fit { number: 0, path, misfit }, Answer { gain, retransmitted: [0.01, 0.02] })
    }

    #[test]
    fn what_fits_better_counts_more() {
        let answers = [answer(0.3, 0.4), answer(0.3 + TEMPERATURE, 0.0), answer(30.0, -5.0)];
        let found = Prediction::new(Class::Large, &answers).unwrap();
        // One, one over e, and nothing.
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

    #[test]
    fn the_rule_of_thumb_is_that_of_the_source() {
        assert_eq!(rule_of_thumb(Class::Large, "bbr", "cubic"), Some(RuleOfThumb::Try));
        assert_eq!(rule_of_thumb(Class::Small, "bbr", "cubic"), Some(RuleOfThumb::Keep));
        assert_eq!(rule_of_thumb(Class::Small, "cubic", "bbr"), Some(RuleOfThumb::Try));
        assert_eq!(rule_of_thumb(Class::Large, "copa", "cubic"), None);
    }
}
