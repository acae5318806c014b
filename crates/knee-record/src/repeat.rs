//! Repeats of a scenario with other seeds: mean, median and an interval.

use crate::{Outcome, Summary, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema name of a summary of repeats.
pub const SCHEMA: &str = "knee-repeat/1";

/// What came out of several runs that differ in their seed alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatSummary {
    /// `knee-repeat/1`.
    pub schema: String,
    /// Title of the scenario.
    pub name: String,
    /// Ground of the runs.
    pub ground: String,
    /// Seed of each run.
    pub seeds: Vec<u64>,
    /// The worst verdict among the runs.
    pub verdict: Verdict,
    /// Every number of the summaries, by its name as in
    /// `flow.bbr[0].rtt_us.p50`.
    pub measures: BTreeMap<String, Interval>,
    /// How each claim ended over the runs.
    pub claims: Vec<ClaimTally>,
}

/// A number over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Runs in which the number was there.
    pub runs: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median; of an even number of runs, the mean of the middle two.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Lower end of the 95 % confidence interval of the mean; null below two
    /// runs.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
}

/// How a claim ended over repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimTally {
    /// Short name.
    pub id: String,
    /// The sentence.
    pub says: String,
    /// Runs in which it holds.
    pub holds: usize,
    /// Runs in which it fails.
    pub fails: usize,
    /// Runs in which it was not tested.
    pub not_tested: usize,
}

impl RepeatSummary {
    /// Gathers runs of the same scenario. None without any.
    pub fn new(runs: &[Summary]) -> Option<RepeatSummary> {
        let first = runs.first()?;
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (name, value) in runs.iter().flat_map(Summary::numbers) {
            values.entry(name).or_default().push(value);
        }
        let intervals = values.into_iter();
        let intervals = intervals.filter_map(|(name, all)| Some((name, Interval::new(&all)?)));
        Some(RepeatSummary {
            schema: SCHEMA.to_string(),
            name: first.name.clone(),
            ground: first.ground.clone(),
            seeds: runs.iter().map(|run| run.seed).collect(),
            verdict: Verdict::worst(runs.iter().map(|run| run.verdict)),
            measures: intervals.collect(),
            claims: (0..first.claims.len()).map(|at| tally(runs, at)).collect(),
        })
    }
}

fn tally(runs: &[Summary], at: usize) -> ClaimTally {
    let claim = &runs[0].claims[at];
    let ended = |outcome| {
        let claims = runs.iter().filter_map(|run| run.claims.get(at));
        claims.filter(|claim| claim.outcome == outcome).count()
    };
    ClaimTally {
        id: claim.id.clone(),
        says: claim.says.clone(),
        holds: ended(Outcome::Holds),
        fails: ended(Outcome::Fails),
        not_tested: ended(Outcome::NotTestedHere),
    }
}

impl Interval {
    /// Mean `m`, and `m ± t s / sqrt(n)` with `s` the sample's standard
    /// deviation (divisor n - 1) and t the 0.975 quantile of Student's
    /// distribution with n - 1 degrees of freedom. None of no values.
    pub fn new(values: &[f64]) -> Option<Interval> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = (count > 1).then(|| {
            let freedom = count - 1;
            student_t_975(freedom) * (squares / freedom as f64 / count as f64).sqrt()
        });
        Some(Interval {
            runs: count,
            mean,
            median: (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
            min,
            max,
            low: half_width.map(|half| mean - half),
            high: half_width.map(|half| mean + half),
        })
    }
}

/// 0.975 quantiles of Student's t for 1 to 10 degrees of freedom, from the
/// usual tables.
const STUDENT_T_975: [f64; 10] =
    [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281];

/// Beyond the table: expansion in the normal quantile z around infinitely
/// many degrees of freedom (Abramowitz and Stegun 26.7.5), good to four
/// decimals from 11 on.
fn student_t_975(freedom: usize) -> f64 {
    if let Some(t) = STUDENT_T_975.get(freedom.wrapping_sub(1)) {
        return *t;
    }
    let z = 1.959_964_f64;
    let n = freedom as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles from the tables of Student's distribution.
    #[test]
    fn student_beyond_the_table() {
        for (freedom, t) in [(11, 2.2010), (15, 2.1314), (30, 2.0423), (120, 1.9799)] {
            assert!((student_t_975(freedom) - t).abs() < 2e-4, "{freedom}");
        }
    }

    /// 2, 4, 6: mean 4, s = 2, so the half width is 4.3027 * 2 / sqrt(3).
    #[test]
    fn interval_of_three() {
        let interval = Interval::new(&[6.0, 2.0, 4.0]).unwrap();
        let half = 4.3027 * 2.0 / 3.0_f64.sqrt();
        assert_eq!((interval.mean, interval.median), (4.0, 4.0));
        assert!((interval.low.unwrap() - (4.0 - half)).abs() < 1e-9);
        assert!((interval.high.unwrap() - (4.0 + half)).abs() < 1e-9);
    }

    #[test]
    fn one_run_has_no_interval() {
        let interval = Interval::new(&[3.0]).unwrap();
        assert_eq!((interval.median, interval.low, interval.high), (3.0, None, None));
        assert_eq!(Interval::new(&[]), None);
    }

    #[test]
    fn median_of_an_even_number() {
        assert_eq!(Interval::new(&[1.0, 9.0, 2.0, 4.0]).unwrap().median, 3.0);
    }
}
