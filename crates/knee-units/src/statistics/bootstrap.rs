//! Confidence intervals for the comparison of two samples: the percentile bootstrap (Efron,
//! "Bootstrap methods: another look at the jackknife", Annals of Statistics 7(1), 1979; Efron and
//! Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13).

use crate::statistics::Statistic;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of resamples.
const RESAMPLES: usize = 2000;
/// Fixed seed, so that the same samples always give the same interval.
const SEED: u64 = 0x6b6e_6565;
/// Fraction of the resampled ratios on each side of the interval.
const TAIL: f64 = 0.025;

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioInterval {
    /// The statistic of the test group over that of the control group.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Returns the ratio of a statistic of two samples with its 95 % percentile bootstrap interval:
/// 2000 times, each sample is resampled with replacement to its own size, and the ratio of the
/// resamples is taken; the interval extends from the 2.5th to the 97.5th percentile of these
/// ratios.
///
/// The values of a sample must be independent of each other. For small samples the interval is too
/// narrow; from about a hundred values on, its coverage is close to nominal. Returns `None` if a
/// sample has fewer than two values or the statistic of the control group is not positive.
pub fn bootstrap_ratio(
    test: &[f64],
    control: &[f64],
    statistic: Statistic,
) -> Option<RatioInterval> {
    let (test, control) = (Sample::new(test, statistic)?, Sample::new(control, statistic)?);
    let ratio = test.value() / control.value();
    if !ratio.is_finite() || control.value() <= 0.0 {
        return None;
    }
    let mut counts = vec![0; test.sorted.len().max(control.sorted.len())];
    let mut of_draws = |sample: &Sample, random: &mut ChaCha8Rng| {
        let size = sample.sorted.len();
        sample.of_draws((0..size).map(|_| below(random.next_u32(), size)), &mut counts)
    };
    Some(interval(ratio, |random| of_draws(&test, random) / of_draws(&control, random)))
}

/// Returns the ratio of a statistic with its interval for pairs of test and control values, in
/// order of occurrence. Pairs are drawn in blocks of neighbours, because neighbours met the same
/// queues; the length of a block is the cube root of the number of pairs (Kuensch, "The jackknife
/// and the bootstrap for general stationary observations", Annals of Statistics 17(3), 1989).
pub fn bootstrap_ratio_of_pairs(
    pairs: &[(f64, f64)],
    statistic: Statistic,
) -> Option<RatioInterval> {
    let (test, control): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (test, control) = (Sample::new(&test, statistic)?, Sample::new(&control, statistic)?);
    let ratio = test.value() / control.value();
    if !ratio.is_finite() || control.value() <= 0.0 {
        return None;
    }
    let size = pairs.len();
    let block = (size as f64).cbrt().ceil() as usize;
    let (mut draws, mut counts) = (vec![0; size], vec![0; size]);
    Some(interval(ratio, |random| {
        for block in draws.chunks_mut(block) {
            let first = below(random.next_u32(), size);
            block.iter_mut().zip(0..).for_each(|(draw, next)| *draw = (first + next) % size);
        }
        let of = |sample: &Sample, counts: &mut [u32]| {
            sample.of_draws(draws.iter().map(|draw| sample.place[*draw]), counts)
        };
        of(&test, &mut counts) / of(&control, &mut counts)
    }))
}

/// Returns the ratio with the percentiles of the ratios that `draw` returns.
fn interval(ratio: f64, mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) -> RatioInterval {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| draw(&mut random)).collect();
    ratios.sort_by(f64::total_cmp);
    let rank = |part: f64| ratios[((part * RESAMPLES as f64) as usize).min(RESAMPLES - 1)];
    RatioInterval { ratio, low: rank(TAIL), high: rank(1.0 - TAIL) }
}

/// A sample to draw from.
struct Sample {
    sorted: Vec<f64>,
    /// Index in `sorted` of each value.
    place: Vec<usize>,
    /// Rank of the statistic, from zero; `None` for the mean.
    rank: Option<usize>,
}

impl Sample {
    fn new(values: &[f64], statistic: Statistic) -> Option<Sample> {
        if values.len() < 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut place = vec![0; values.len()];
        order.iter().enumerate().for_each(|(at, value)| place[*value] = at);
        let rank = fraction(statistic).map(|part| {
            // Nearest rank, as in `Distribution`.
            let rank = (part * values.len() as f64 * (1.0 - 1e-12)).ceil() as usize;
            rank.clamp(1, values.len()) - 1
        });
        Some(Sample { sorted: order.into_iter().map(|at| values[at]).collect(), place, rank })
    }

    fn value(&self) -> f64 {
        match self.rank {
            Some(rank) => self.sorted[rank],
            None => self.sorted.iter().sum::<f64>() / self.sorted.len() as f64,
        }
    }

    /// Returns the statistic of values drawn with replacement, given as indices in `sorted`, as
    /// many as the sample has. `counts` is a scratch buffer.
    fn of_draws(&self, draws: impl Iterator<Item = usize>, counts: &mut [u32]) -> f64 {
        let size = self.sorted.len();
        let Some(rank) = self.rank else {
            return draws.map(|at| self.sorted[at]).sum::<f64>() / size as f64;
        };
        // Finds the drawn value of a rank without sorting.
        counts[..size].fill(0);
        draws.for_each(|at| counts[at] += 1);
        let mut passed = 0;
        let reached = counts[..size].iter().position(|count| {
            passed += *count as usize;
            passed > rank
        });
        self.sorted[reached.unwrap_or(size - 1)]
    }
}

/// Maps a random word to a number below `size`, which is far below 2^32: the bias of the product is
/// at most `size / 2^32`.
fn below(word: u32, size: usize) -> usize {
    ((u64::from(word) * size as u64) >> 32) as usize
}

fn fraction(statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Min => Some(0.0),
        Statistic::P5 => Some(0.05),
        Statistic::P50 => Some(0.50),
        Statistic::P95 => Some(0.95),
        Statistic::P99 => Some(0.99),
        Statistic::Max => Some(1.0),
        Statistic::Mean => None,
    }
}
