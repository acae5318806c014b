//! Tests the bootstrap interval against distributions whose ratio is known.

use knee_record::bootstrap_ratio;
use knee_scenario::Statistic;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Uniform in (0, 1).
fn unit(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn exponential(random: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * unit(random).ln()
}

/// Pareto with shape 3: mean 1.5, median 2^(1/3) times the smallest value.
fn pareto(random: &mut ChaCha8Rng, smallest: f64) -> f64 {
    smallest * unit(random).powf(-1.0 / 3.0)
}

/// Draws a value from a distribution with the given scale.
type Draw = fn(&mut ChaCha8Rng, f64) -> f64;

/// Returns the fraction of 200 experiments in which the interval contains the true ratio.
fn coverage(draw: Draw, size: usize, statistic: Statistic, ratio: f64) -> f64 {
    let experiments = 200;
    let covered = (0..experiments).filter(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(*seed);
        let test: Vec<f64> = (0..size).map(|_| draw(&mut random, ratio)).collect();
        let control: Vec<f64> = (0..size).map(|_| draw(&mut random, 1.0)).collect();
        let interval = bootstrap_ratio(&test, &control, statistic).unwrap();
        interval.low <= ratio && ratio <= interval.high
    });
    covered.count() as f64 / experiments as f64
}

/// The nominal coverage is 95 %. The binomial standard deviation over 200 experiments is 1.5 %;
/// three of them are allowed on either side. The two groups differ in scale, so mean, median and
/// 5th percentile all have the same ratio.
#[test]
fn it_covers_the_true_ratio_as_often_as_it_says() {
    let cases: [(Draw, Statistic); 3] =
        [(pareto, Statistic::Mean), (exponential, Statistic::P50), (pareto, Statistic::P5)];
    for (draw, statistic) in cases {
        let covered = coverage(draw, 200, statistic, 1.07);
        assert!((0.904..=0.996).contains(&covered), "{statistic:?}: {covered}");
    }
}

/// For means of large samples the interval is known: the relative variance of the mean of n
/// exponential values is 1/n, that of the ratio 2/n; the half width is 1.96 times its root.
#[test]
fn its_width_is_that_of_the_normal_limit() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut sample = || (0..4000).map(|_| exponential(&mut random, 1.0)).collect::<Vec<f64>>();
    let interval = bootstrap_ratio(&sample(), &sample(), Statistic::Mean).unwrap();
    let half = 1.96 * (2.0_f64 / 4000.0).sqrt();
    let relative = (interval.high - interval.low) / 2.0 / interval.ratio / half;
    assert!((0.93..1.07).contains(&relative), "{relative}");
    assert!(interval.low < interval.ratio && interval.ratio < interval.high);
}

#[test]
fn values_that_are_all_the_same_leave_no_doubt() {
    for statistic in [Statistic::Mean, Statistic::P5, Statistic::Max] {
        let interval = bootstrap_ratio(&[6.0; 50], &[4.0; 30], statistic).unwrap();
        assert_eq!((interval.low, interval.ratio, interval.high), (1.5, 1.5, 1.5));
    }
}

#[test]
fn the_same_samples_give_the_same_interval() {
    let (test, control) = ([1.0, 2.0, 5.0, 9.0], [2.0, 3.0, 4.0]);
    let interval = || bootstrap_ratio(&test, &control, Statistic::Mean).unwrap();
    assert_eq!(interval(), interval());
    // No resampled ratio can lie outside 1/4 to 9/2.
    assert!(interval().low >= 0.25 && interval().high <= 4.5);
}

#[test]
fn too_little_gives_no_interval() {
    assert_eq!(bootstrap_ratio(&[1.0], &[1.0, 2.0], Statistic::Mean), None);
    assert_eq!(bootstrap_ratio(&[1.0, 2.0], &[], Statistic::P50), None);
    assert_eq!(bootstrap_ratio(&[1.0, 2.0], &[0.0, 0.0], Statistic::Mean), None);
}
