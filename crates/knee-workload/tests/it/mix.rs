//! Arrivals and sizes compared with the formulas of their distributions.

use crate::common::rng;
use knee_units::Time;
use knee_workload::{Action, Application, Arrivals, Mix, Sizes, Workload, build, read_access_log};

const RATE: f64 = 250.0;

fn mix(count: Option<u64>, sizes: Sizes) -> Workload {
    Workload::Mix(Mix {
        arrivals: Arrivals::Poisson { per_second: RATE },
        count,
        sizes,
        process: None,
    })
}

/// Returns time and size of each arrival, polling when it is due.
fn arrivals(workload: &Workload, seed: u64) -> Vec<(Time, u64)> {
    arrivals_of(build(workload, rng(seed)))
}

fn arrivals_of(mut application: Box<dyn Application>) -> Vec<(Time, u64)> {
    let mut found = Vec::new();
    while application.timer() < Time::MAX {
        let now = application.timer();
        let connection = found.len() as u32;
        assert_eq!(application.poll(now), Some(Action::Open { connection }));
        let Some(Action::Push { connection: same, bytes }) = application.poll(now) else {
            panic!("a transfer follows");
        };
        assert_eq!(same, connection);
        assert_eq!(application.poll(now), Some(Action::Close { connection }));
        found.push((now, bytes));
    }
    found
}

fn sizes(sizes: Sizes, count: u64) -> Vec<f64> {
    let found = arrivals(&mix(Some(count), sizes), 11);
    found.into_iter().map(|(_, bytes)| bytes as f64).collect()
}

/// The Kolmogorov-Smirnov test at the 1 % level (its asymptotic bound for more
/// than 40 samples).
fn follows(mut samples: Vec<f64>, distribution: impl Fn(f64) -> f64) {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let distance = samples.iter().enumerate().fold(0.0_f64, |distance, (index, &sample)| {
        let expected = distribution(sample);
        let (below, above) = (index as f64 / n, (index + 1) as f64 / n);
        distance.max((expected - below).abs()).max((above - expected).abs())
    });
    assert!(distance < 1.63 / n.sqrt(), "{distance} with {n} samples");
}

/// The standard normal distribution: Simpson's rule over its density.
fn normal(z: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = z / 200.0;
    let weight =
        |index: usize| [1.0, 4.0, 2.0][if [0, 200].contains(&index) { 0 } else { 2 - index % 2 }];
    let sum: f64 = (0..=200).map(|index| weight(index) * density(index as f64 * step)).sum();
    0.5 + sum * step / 3.0
}

#[test]
fn the_yardstick_is_right() {
    // From a table of the normal distribution.
    for (z, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9), (3.0, 0.998_650_1)] {
        assert!((normal(z) - share).abs() < 1e-6, "{z}: {}", normal(z));
    }
}

/// Gaps of a Poisson process are exponential, their mean is within four standard deviations, and
/// they are independent of the previous gap.
#[test]
fn arrivals_are_a_poisson_process() {
    let count = 20_000;
    let times = arrivals(&mix(Some(count), Sizes::Fixed(1)), 3);
    let mut before = Time::ZERO;
    let gaps: Vec<f64> = times
        .iter()
        .map(|&(at, _)| (at - std::mem::replace(&mut before, at)).as_secs_f64())
        .collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    assert!((mean * RATE - 1.0).abs() < 4.0 / n.sqrt(), "{mean}");
    let covariance =
        gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n;
    let correlation = covariance * RATE * RATE;
    assert!(correlation.abs() < 4.0 / n.sqrt(), "{correlation}");
    follows(gaps, |gap| 1.0 - (-RATE * gap).exp());
}

#[test]
fn log_normal_sizes_follow_the_formula() {
    let (median, sigma) = (1_000_000, 1.5);
    let max = u64::MAX / 2;
    follows(sizes(Sizes::LogNormal { median, sigma, max }, 20_000), |size| {
        normal((size / median as f64).ln() / sigma)
    });
    // With a maximum two sigma above the median, 2.275 % have the maximum.
    let max = (1e6 * (2.0 * sigma).exp()) as u64;
    let drawn = sizes(Sizes::LogNormal { median, sigma, max }, 20_000);
    assert!(drawn.iter().all(|size| *size <= max as f64));
    let share = drawn.iter().filter(|size| **size == max as f64).count() as f64 / 20_000.0;
    let deviation = (0.022_75 * 0.977_25 / 20_000.0_f64).sqrt();
    assert!((share - 0.022_75).abs() < 4.0 * deviation, "{share}");
}

#[test]
fn pareto_sizes_follow_the_formula() {
    let (min, shape, max) = (100_000, 1.2, 50_000_000_000);
    let (low, high) = (min as f64, max as f64);
    let drawn = sizes(Sizes::Pareto { min, shape, max }, 20_000);
    assert!(drawn.iter().all(|size| (low..=high).contains(size)));
    follows(drawn, |size| (1.0 - (low / size).powf(shape)) / (1.0 - (low / high).powf(shape)));
}

/// Every line of a log is equally likely, so a size on two of five lines comes twice in five times
/// (four standard deviations).
#[test]
fn observed_sizes_come_as_often_as_observed() {
    let log = "time,bytes,status\n1,700,200\n2,700,200\n3,42,200\n4,9000000,206\n5,1,200\n";
    let observed = read_access_log(log.as_bytes()).expect("well-formed").sizes;
    let drawn = sizes(Sizes::Empirical(observed.into()), 50_000);
    for (size, share) in [(700.0, 0.4), (42.0, 0.2), (9e6, 0.2), (1.0, 0.2)] {
        let found = drawn.iter().filter(|drawn| **drawn == size).count() as f64 / 50_000.0;
        let deviation = (share * (1.0 - share) / 50_000.0_f64).sqrt();
        assert!((found - share).abs() < 4.0 * deviation, "{size}: {found}");
    }
}

#[test]
fn a_seed_is_a_sequence() {
    let workload = mix(Some(500), Sizes::Pareto { min: 1000, shape: 1.3, max: 1_000_000_000 });
    assert_eq!(arrivals(&workload, 5), arrivals(&workload, 5));
    let (one, other) = (arrivals(&workload, 5), arrivals(&workload, 6));
    assert!(one.iter().zip(&other).all(|(one, other)| one.0 != other.0));
}

/// A ground that polls only every 100 ms misses nothing: the same transfers arrive, at most that
/// much later.
#[test]
fn polling_late_does_not_thin_out() {
    let workload = mix(Some(1000), Sizes::Fixed(10));
    let exact = arrivals(&workload, 9);
    let mut application = build(&workload, rng(9));
    let mut late = Vec::new();
    for beat in 0..100 {
        let now = Time::from_millis(100 * beat);
        while let Some(action) = application.poll(now) {
            late.extend(matches!(action, Action::Open { .. }).then_some(now));
        }
    }
    assert_eq!(late.len(), exact.len());
    for (late, (exact, _)) in late.iter().zip(exact) {
        assert!(*late >= exact && *late - exact < Time::from_millis(100));
    }
}

fn open_and_close(application: &mut dyn Application, now: Time) -> usize {
    std::iter::from_fn(|| application.poll(now)).count()
}

#[test]
fn it_is_complete_when_the_last_is_acknowledged() {
    let mut application = build(&mix(Some(2), Sizes::Fixed(10)), rng(1));
    assert!(!application.wants_deliveries() && application.objects().is_empty());
    assert_eq!(open_and_close(&mut *application, Time::from_secs(60)), 6);
    assert_eq!(application.timer(), Time::MAX);
    application.on_closed(Time::from_secs(61), 1);
    assert!(!application.is_complete());
    application.on_closed(Time::from_secs(61), 0);
    assert!(application.is_complete());
}

#[test]
fn told_to_stop_nothing_more_arrives() {
    let mut application = build(&mix(None, Sizes::Fixed(10)), rng(1));
    let now = application.timer();
    assert_eq!(open_and_close(&mut *application, now), 3);
    application.stop(now);
    assert_eq!(open_and_close(&mut *application, Time::from_secs(9)), 0);
    assert!(!application.is_complete() && application.timer() == Time::MAX);
    application.on_closed(Time::from_secs(9), 0);
    assert!(application.is_complete());
}

#[test]
fn bulk_and_file_ask_once() {
    let all = |application: &mut dyn Application| -> Vec<Action> {
        std::iter::from_fn(|| application.poll(Time::ZERO)).collect()
    };
    let connection = 0;
    let (open, close) = (Action::Open { connection }, Action::Close { connection });

    let mut file = build(&Workload::File(64_000), rng(0));
    assert_eq!(all(&mut *file), [open, Action::Push { connection, bytes: 64_000 }, close]);
    assert!(!file.is_complete());
    file.on_closed(Time::from_secs(1), 0);
    assert!(file.is_complete() && file.timer() == Time::MAX);

    let mut bulk = build(&Workload::Bulk, rng(0));
    assert_eq!(all(&mut *bulk), [open, Action::Push { connection, bytes: u64::MAX }]);
    assert!(!bulk.is_complete());
    bulk.stop(Time::from_secs(1));
    assert_eq!(all(&mut *bulk), [close]);
    assert!(bulk.is_complete());
}

/// Mixes with one process have the same sizes and, within a millisecond, the same arrivals; which
/// of them comes first varies.
#[test]
fn mixes_of_one_process_see_the_same_arrivals() {
    let sizes = Sizes::LogNormal { median: 30_000, sigma: 2.0, max: 1_000_000_000 };
    let shared = Workload::Mix(Mix {
        arrivals: Arrivals::Poisson { per_second: RATE },
        count: Some(1000),
        sizes,
        process: Some("clients".to_string()),
    });
    let of = |stream: u64| {
        let mut application_rng = rng(5);
        application_rng.set_stream(stream);
        arrivals_of(build(&shared, application_rng))
    };
    let (test, control) = (of(1), of(2));
    let pairs = || test.iter().zip(&control);
    assert!(pairs().all(|(test, control)| test.1 == control.1));
    let apart = |(test, control): (&(Time, u64), &(Time, u64))| {
        test.0.as_nanos().abs_diff(control.0.as_nanos())
    };
    assert!(pairs().map(apart).max() <= Some(1_000_000));
    let first = pairs().filter(|(test, control)| test.0 < control.0).count();
    // Half of a thousand, plus or minus four standard deviations.
    assert!((437..=563).contains(&first), "{first}");
}
