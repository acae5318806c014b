//! Experiments in a network whose blocks repeat from day to day, with and without the day before as
//! a forecast. The truth is known, so wrong verdicts can be counted.

use knee_steer::{Cells, Covariate, Design, Guards, Treatment, Trial, TrialSettings, Verdict};
use knee_units::random::{exponential, normal};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Number of blocks of 20 minutes in a day, and of triples in three days.
const DAY: usize = 72;
const TRIPLES: usize = 3 * DAY / 3;
/// What shocks keep from block to block, and their size.
const MEMORY: f64 = 0.7;
const SHOCK: f64 = 0.02;

#[derive(Clone, Copy)]
struct Network {
    /// Effect of B, as a logarithm.
    effect: f64,
    /// Standard deviation of the level of a time of day, which repeats.
    daily: f64,
}

/// Draws from Student's t of three degrees of freedom.
fn t3(rng: &mut ChaCha8Rng) -> f64 {
    let squares = 2.0 * exponential(rng) + normal(rng).powi(2);
    normal(rng) / (squares / 3.0).sqrt()
}

/// The triples of one group, with the block of the day before as a forecast of each block.
fn triples(network: Network, seed: u64) -> Vec<Cells> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let design = Design::new(seed);
    let levels: Vec<f64> = (0..DAY).map(|_| network.daily * normal(&mut rng)).collect();
    let (mut shock, mut past) = (0.0, Vec::new());
    let mut all = Vec::new();
    for triple in 0..TRIPLES as u64 {
        let mut cells = Cells::default();
        let mut forecasts = [None; 2];
        for treatment in design.order("0", triple) {
            let time: usize = past.len();
            shock = MEMORY * shock + SHOCK * t3(&mut rng);
            let (tested, arm) = match treatment {
                Treatment::Control => (0.0, Some(0)),
                Treatment::Test => (1.0, Some(1)),
                Treatment::Half => (0.5, None),
            };
            let value = levels[time % DAY] + shock + tested * network.effect + 0.01 * t3(&mut rng);
            if let Some(arm) = arm {
                *[&mut cells.control, &mut cells.test][arm] = value;
                forecasts[arm] = time.checked_sub(DAY).map(|before| past[before]);
            }
            past.push(value);
        }
        cells.forecast = forecasts[1].zip(forecasts[0]).map(|(test, control)| test - control);
        all.push(cells);
    }
    all
}

fn run(network: Network, seed: u64, with_forecast: bool) -> Trial {
    let without = Network { effect: 0.0, ..network };
    let pairs = triples(without, seed ^ 0xaaaa);
    let squares: f64 = pairs.iter().take(8).map(|one| (one.test - one.control).powi(2)).sum();
    let mut trial = Trial::new(TrialSettings {
        level: 0.05,
        comparisons: 1,
        planned: TRIPLES,
        groups: 1,
        scale: (squares / 8.0).sqrt(),
        guards: Guards::default(),
        covariate: Covariate::default(),
    });
    for mut cells in triples(network, seed) {
        cells.forecast = cells.forecast.filter(|_| with_forecast);
        trial.push(&[cells], &[]);
    }
    trial
}

/// Shares of experiments that see an effect, and that see the wrong one.
fn seen(network: Network, experiments: u64, with_forecast: bool) -> (f64, f64) {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..experiments {
        match run(network, seed, with_forecast).verdict().0 {
            Verdict::More if network.effect > 0.0 => right += 1,
            Verdict::More | Verdict::Less => wrong += 1,
            Verdict::Alike | Verdict::Undecided => {}
            other => panic!("{other:?}"),
        }
    }
    (f64::from(right) / experiments as f64, f64::from(wrong) / experiments as f64)
}

/// Checked after each of 72 triples: at most 5 % plus two standard errors (0.97 points over 2,000
/// experiments), whether the days are alike or not.
#[test]
fn without_an_effect_forecasts_show_none() {
    for daily in [0.0, 0.1] {
        let network = Network { effect: 0.0, daily };
        let (_, wrong) = seen(network, 2000, true);
        println!("daily {daily}: {wrong} see an effect");
        assert!(wrong <= 0.05 + 0.0097, "{wrong} with {daily}");
    }
}

/// Where the day before explains most of the variance, more effects are seen: at least 15 points
/// more, which is over three standard errors of the difference over 300 experiments (4.1 points).
/// Where it explains nothing, none is lost: within three standard errors.
#[test]
fn forecasts_show_more_where_they_explain() {
    let network = Network { effect: 0.05, daily: 0.1 };
    let ((without, wrong), (with, more_wrong)) =
        (seen(network, 300, false), seen(network, 300, true));
    println!("daily 0.1: {without} without, {with} with forecasts");
    assert!(with >= without + 0.15, "{without} {with}");
    assert!(wrong <= 0.01 && more_wrong <= 0.01, "{wrong} {more_wrong}");
    let network = Network { effect: 0.015, daily: 0.0 };
    let ((without, _), (with, _)) = (seen(network, 300, false), seen(network, 300, true));
    println!("daily 0: {without} without, {with} with forecasts");
    assert!((0.1..0.95).contains(&without), "{without}");
    assert!(with >= without - 0.123, "{without} {with}");
}

/// The estimate is not biased by earlier blocks under B, and its intervals cover the truth: the mean
/// over 500 experiments is within three standard errors, and smaller in variance.
#[test]
fn forecasts_do_not_bias_the_effect() {
    let network = Network { effect: 0.05, daily: 0.1 };
    let (mut means, mut missed, mut used) = ([Vec::new(), Vec::new()], 0, 0);
    for seed in 0..500 {
        for (with, means) in [false, true].into_iter().zip(&mut means) {
            let trial = run(network, seed, with);
            let total = trial.total().unwrap();
            let (low, high) = total.interval.unwrap();
            missed += usize::from(with && !(low..high).contains(&0.05));
            used += usize::from(trial.covariate().remains().is_some());
            means.push(total.mean);
        }
    }
    let spread = means.map(|means| {
        let mean = means.iter().sum::<f64>() / 500.0;
        let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 499.0;
        let error = (variance / 500.0).sqrt();
        assert!((mean - 0.05).abs() < 3.0 * error, "{mean} {error}");
        variance
    });
    // Chance may hide the explanation in some, and forecasts that are not given are never used.
    assert!((450..=500).contains(&used), "{used}");
    println!("variance {spread:?}, {used} used, {missed} of 500 intervals miss");
    assert!(spread[1] < 0.8 * spread[0], "{spread:?}");
    assert!(missed <= 50, "{missed}");
}
