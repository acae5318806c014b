//! How often the intervals of shares and of Jain's index cover the true mean.

use knee_units::random::{log_normal, normal};
use knee_units::statistics::Interval;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// A quantity between 0 and 1, drawn for each run.
#[derive(Clone, Copy, Debug)]
enum Drawn {
    /// Share of a flow: a normal number on the logit scale.
    Share { middle: f64, spread: f64 },
    /// Jain's index of flows whose rates are log-normal.
    Jain { flows: u32, spread: f64 },
}

const DRAWN: [Drawn; 8] = [
    Drawn::Share { middle: 0.0, spread: 0.3 },
    Drawn::Share { middle: 0.0, spread: 1.5 },
    Drawn::Share { middle: 2.0, spread: 0.5 },
    Drawn::Share { middle: 4.0, spread: 0.5 },
    Drawn::Share { middle: -3.0, spread: 0.3 },
    Drawn::Jain { flows: 2, spread: 0.6 },
    Drawn::Jain { flows: 4, spread: 0.3 },
    Drawn::Jain { flows: 10, spread: 0.5 },
];
const SUMMARIES: usize = 2000;

impl Drawn {
    fn draw(self, random: &mut ChaCha8Rng) -> f64 {
        match self {
            Drawn::Share { middle, spread } => {
                1.0 / (1.0 + (-middle - spread * normal(random)).exp())
            }
            Drawn::Jain { flows, spread } => {
                let rates: Vec<f64> = (0..flows).map(|_| log_normal(random, 1.0, spread)).collect();
                let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
                rates.iter().sum::<f64>().powi(2) / (f64::from(flows) * squares)
            }
        }
    }

    fn mean(self, random: &mut ChaCha8Rng) -> f64 {
        let draws = 100_000;
        (0..draws).map(|_| self.draw(random)).sum::<f64>() / f64::from(draws)
    }
}

/// The 2,000 summaries of each number of runs, of eight kinds of quantities, cover the truth in 93
/// to 97 % of cases, and every interval is between 0 and 1.
#[test]
fn intervals_of_bounded_quantities_cover_the_truth() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let means = DRAWN.map(|drawn| drawn.mean(&mut random));
    for runs in [2, 3, 5, 10, 40] {
        let (mut covered, mut plain) = (0, 0);
        for number in 0..SUMMARIES {
            let (drawn, mean) = (DRAWN[number % DRAWN.len()], means[number % DRAWN.len()]);
            let values: Vec<f64> = (0..runs).map(|_| drawn.draw(&mut random)).collect();
            let interval = Interval::of_parts(&values).unwrap();
            let (low, high) = (interval.low.unwrap(), interval.high.unwrap());
            assert!(0.0 <= low && low <= interval.mean, "{interval:?}");
            assert!(interval.mean <= high && high <= 1.0, "{interval:?}");
            let covers = |low: f64, high: f64| usize::from(low <= mean && mean <= high);
            covered += covers(low, high);
            let unbounded = Interval::new(&values).unwrap();
            plain += covers(unbounded.low.unwrap(), unbounded.high.unwrap());
        }
        let part = covered as f64 / SUMMARIES as f64;
        println!(
            "{runs} runs: {:.1} %, on the log scale {:.1} %",
            part * 100.0,
            plain as f64 * 100.0 / SUMMARIES as f64
        );
        assert!((0.93..=0.97).contains(&part), "{runs} runs: {part}");
    }
}

/// Values without spread have an interval without width, also at the bounds.
#[test]
fn equal_values_have_no_width() {
    for value in [0.0, 0.3, 0.999_999, 1.0] {
        let interval = Interval::of_parts(&[value; 3]).unwrap();
        assert_eq!((interval.low, interval.high), (Some(interval.mean), Some(interval.mean)));
    }
    let one_of_three = Interval::of_parts(&[1.0, 1.0, 0.99]).unwrap();
    assert!(one_of_three.low.unwrap() > 0.0 && one_of_three.high.unwrap() < 1.0);
}
