//! In what a candidate is worst: the figure and the case in which it is farthest behind the others.

use super::summary::{RankEntry, RankPlace, Ranking};
use crate::fidelity::median;
use crate::{Interval, Unit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Factor below which nothing is worth naming.
const LEAST: f64 = 1.1;
/// Added to retransmitted fractions and shares, so that a difference between almost none and none
/// is small.
const FLOOR: f64 = 0.001;

/// The case in which a candidate is worst, compared with the median of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankWorst {
    /// The candidate.
    pub candidate: String,
    /// What is worst.
    pub what: RankFigure,
    /// Number of the scenario.
    pub scenario: usize,
    /// Number of the rival beside which it is; null if alone, or beside itself for
    /// Jain's index.
    pub rival: Option<usize>,
    /// Its mean.
    pub value: f64,
    /// Median of the means of the others.
    pub others: f64,
    /// How many times worse.
    pub factor: f64,
    /// Scenario file of this case, in the folder of the ranking, for `knee run`;
    /// null if it cannot be written.
    pub file: Option<String>,
}

/// A figure in which candidates are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankFigure {
    /// Fraction of the path that is used alone.
    Used,
    /// Mean RTT alone, over that of the empty path.
    Delay,
    /// Bytes retransmitted alone, over bytes sent.
    Retransmitted,
    /// Jain's index beside itself.
    Jain,
    /// Share that it gets beside a rival.
    Share,
    /// Share that it leaves to a rival.
    Left,
}

impl RankFigure {
    /// How many times worse one value is than another.
    fn factor(self, value: f64, others: f64) -> f64 {
        match self {
            RankFigure::Delay => value / others,
            RankFigure::Retransmitted => (value + FLOOR) / (others + FLOOR),
            RankFigure::Used | RankFigure::Jain => others / value.max(FLOOR),
            RankFigure::Share | RankFigure::Left => (others + FLOOR) / (value + FLOOR),
        }
    }
}

/// Finds it; `None` if the candidate is nowhere a tenth worse than the median of the others.
pub(super) fn worst(
    ranking: &Ranking,
    entries: &[RankEntry],
    candidate: &str,
) -> Option<RankWorst> {
    let own = entries.iter().find(|entry| entry.candidate == candidate)?;
    let others: Vec<&RankEntry> =
        entries.iter().filter(|entry| entry.candidate != candidate).collect();
    let mut found: Vec<RankWorst> = Vec::new();
    for scenario in 0..ranking.scenarios.len() {
        let mut compare = |what: RankFigure, rival: Option<usize>| {
            let of = |entry: &RankEntry| value(entry.places.get(scenario)?, what, rival);
            let value = of(own)?;
            let others = median(others.iter().filter_map(|entry| of(entry)).collect())?;
            let factor = what.factor(value, others);
            let candidate = candidate.to_string();
            let file = None;
            let one = RankWorst { candidate, what, scenario, rival, value, others, factor, file };
            factor.is_finite().then(|| found.push(one))
        };
        use RankFigure::{Delay, Jain, Left, Retransmitted, Share, Used};
        for what in [Used, Delay, Retransmitted, Jain] {
            compare(what, None);
        }
        for rival in 0..ranking.rivals.len() {
            compare(Share, Some(rival));
            compare(Left, Some(rival));
        }
    }
    let worst = found.into_iter().max_by(|a, b| a.factor.total_cmp(&b.factor));
    worst.filter(|worst| worst.factor >= LEAST)
}

fn value(place: &RankPlace, what: RankFigure, rival: Option<usize>) -> Option<f64> {
    let interval: Option<Interval> = match what {
        RankFigure::Used => place.used,
        RankFigure::Delay => place.delay,
        RankFigure::Retransmitted => place.retransmit_ratio,
        RankFigure::Jain => place.jain,
        RankFigure::Share | RankFigure::Left => *place.takes.get(rival?)?,
    };
    let mean = interval?.mean;
    Some(if what == RankFigure::Left { 1.0 - mean } else { mean })
}

impl RankWorst {
    /// Describes it: `Worst is its share beside cubic: 4.05 %, against 40.9 % for the others
    /// (median)`.
    pub fn words(&self, ranking: &Ranking) -> String {
        let part = |value: f64| Unit::Fraction.show(value);
        let times = |value: f64| format!("{value:.2} times");
        let number = |value: f64| Unit::Number.show(value);
        let both = |show: &dyn Fn(f64) -> String| (show(self.value), show(self.others));
        let rival = self.rival.map_or("", |rival| ranking.rivals[rival].as_str());
        let (what, (value, others)) = match self.what {
            RankFigure::Used => ("its use of the path, alone".to_string(), both(&part)),
            RankFigure::Delay => {
                ("its mean RTT over the empty path's, alone".to_string(), both(&times))
            }
            RankFigure::Retransmitted => {
                ("its bytes retransmitted, alone".to_string(), both(&part))
            }
            RankFigure::Jain => {
                ("its fairness beside itself (Jain's index)".to_string(), both(&number))
            }
            RankFigure::Share => (format!("its share beside {rival}"), both(&part)),
            RankFigure::Left => (format!("what it leaves to {rival}"), both(&part)),
        };
        let place = match ranking.scenarios.len() {
            1 => String::new(),
            _ => format!(", in {}", ranking.scenarios[self.scenario].file),
        };
        format!("Worst is {what}{place}: {value}, against {others} for the others (median)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of the others' share is worse than twice their retransmissions.
    #[test]
    fn figures_are_compared_by_their_factors() {
        let share = RankFigure::Share.factor(0.05, 0.5);
        let again = RankFigure::Retransmitted.factor(0.02, 0.01);
        assert!(share > 9.0 && share < 10.0 && again > 1.8 && again < 2.0, "{share} {again}");
        assert!(RankFigure::Left.factor(0.053, 0.5) > 9.0);
        assert!(RankFigure::Retransmitted.factor(0.000_01, 0.0) < LEAST);
        assert_eq!(RankFigure::Delay.factor(3.0, 1.5), 2.0);
        assert_eq!(RankFigure::Used.factor(0.25, 0.5), 2.0);
    }
}
