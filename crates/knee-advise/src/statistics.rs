//! Statistics of many finished connections.

use crate::search::Compared;
use knee_units::random::below;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Properties of a finished connection that are known on every ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// Acknowledged payload, bytes.
    pub bytes: u64,
    /// Time with unsent or unacknowledged data, seconds.
    pub busy_s: f64,
    /// Payload sent, retransmissions included, bytes.
    pub sent_bytes: u64,
    /// Retransmitted payload, bytes.
    pub retransmitted_bytes: u64,
    /// Smallest RTT, seconds.
    pub rtt_min_s: f64,
    /// Smoothed RTT at the end, seconds.
    pub srtt_s: f64,
    /// Delivery rate of the last valid sample, bit/s; `None` without one.
    pub delivery_rate_bps: Option<f64>,
}

impl Connection {
    /// Payload over the time it took, bit/s.
    pub fn throughput_bps(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.busy_s
    }
}

/// Size from which a transfer is large, so that its throughput matters and not its start, bytes.
pub const LARGE_BYTES: u64 = 3_000_000;
/// Lower limits of the size classes.
const CLASSES: [u64; 4] = [0, 100_000, 1_000_000, LARGE_BYTES];
/// Minimum number of connections of a class.
const CONNECTIONS_MIN: usize = 10;
/// Statistics per class; see [`of_class`].
const PER_CLASS: usize = 8;
/// Number of bootstrap resamples for the standard errors.
const RESAMPLES: u32 = 40;
/// What the statistics of a class are, in their order.
const NAMES: [&str; PER_CLASS] = [
    "mean speed",
    "90th percentile of the speed",
    "retransmitted part",
    "part without retransmission",
    "median of the RTT at the end",
    "90th percentile of the RTT at the end",
    "90th percentile of the delivery rate",
    "10th percentile of the speed",
];
const CLASS_NAMES: [&str; CLASSES.len()] =
    ["under 100 kB", "100 kB to 1 MB", "1 to 3 MB", "3 MB and more"];
/// Differences of logarithms or shares that are negligible: a model with one bottleneck does not
/// match a path more closely than this.
const FLOORS: [f64; PER_CLASS] = [0.03, 0.03, 0.05, 0.01, 0.03, 0.03, 0.05, 0.03];

/// Statistics of connections by size class, with standard errors; `None` for classes with too few
/// connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    values: Vec<Option<[f64; 2]>>,
}

impl Statistics {
    /// Computes the statistics of these connections over an RTT without queueing, seconds.
    pub fn of(connections: &[Connection], base_rtt_s: f64, seed: u64) -> Statistics {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = Vec::with_capacity(CLASSES.len() * PER_CLASS);
        for (index, from) in CLASSES.iter().enumerate() {
            let to = CLASSES.get(index + 1).copied().unwrap_or(u64::MAX);
            let fits = |one: &&Connection| (*from..to).contains(&one.bytes);
            let class: Vec<Connection> = connections.iter().filter(fits).copied().collect();
            if class.len() < CONNECTIONS_MIN {
                values.extend([None; PER_CLASS]);
                continue;
            }
            let found = of_class(&class, base_rtt_s);
            let errors = errors(&class, base_rtt_s, &mut rng);
            values.extend(found.iter().zip(errors).map(|(value, error)| Some([*value, error])));
        }
        Statistics { values }
    }
}

impl Compared for Statistics {
    fn differences(&self, other: &Statistics) -> Vec<Option<f64>> {
        let pairs = self.values.iter().zip(&other.values).zip(FLOORS.iter().cycle());
        let each = pairs.map(|((a, b), floor)| {
            let ([a, sa], [b, sb]) = (a.as_ref()?, b.as_ref()?);
            Some((b - a) / (sa * sa + sb * sb + floor * floor).sqrt())
        });
        each.collect()
    }

    fn count(&self) -> usize {
        self.values.iter().flatten().count()
    }

    fn name(index: usize) -> String {
        format!("{}, {}", NAMES[index % PER_CLASS], CLASS_NAMES[index / PER_CLASS])
    }
}

/// Mean and 90th percentile of the log throughput; root of the retransmission ratio; share of
/// connections without retransmission; logarithms of the median and 90th percentile of smoothed
/// over base RTT, of the 90th percentile of the delivery rate, and of the 10th percentile of the
/// throughput.
fn of_class(class: &[Connection], base_rtt_s: f64) -> [f64; PER_CLASS] {
    let speeds = sorted(class.iter().map(|one| one.throughput_bps().ln()));
    let queues = sorted(class.iter().map(|one| (one.srtt_s / base_rtt_s).max(1.0).ln()));
    let rates = sorted(class.iter().filter_map(|one| one.delivery_rate_bps).map(f64::ln));
    let sent: u64 = class.iter().map(|one| one.sent_bytes).sum();
    let again: u64 = class.iter().map(|one| one.retransmitted_bytes).sum();
    let clean = class.iter().filter(|one| one.retransmitted_bytes == 0).count();
    [
        speeds.iter().sum::<f64>() / speeds.len() as f64,
        quantile(&speeds, 0.9),
        // The root keeps differences visible at 0.1 % as well as at 4 %.
        (again as f64 / sent.max(1) as f64).sqrt(),
        clean as f64 / class.len() as f64,
        quantile(&queues, 0.5),
        quantile(&queues, 0.9),
        quantile(&rates, 0.9),
        quantile(&speeds, 0.1),
    ]
}

/// Standard errors by the bootstrap over connections.
fn errors(class: &[Connection], base_rtt_s: f64, rng: &mut ChaCha8Rng) -> [f64; PER_CLASS] {
    let (mut sums, mut squares) = ([0.0; PER_CLASS], [0.0; PER_CLASS]);
    let mut resample = class.to_vec();
    for _ in 0..RESAMPLES {
        for one in &mut resample {
            *one = class[below(rng, class.len() as u64) as usize];
        }
        for (index, value) in of_class(&resample, base_rtt_s).into_iter().enumerate() {
            sums[index] += value;
            squares[index] += value * value;
        }
    }
    let count = f64::from(RESAMPLES);
    std::array::from_fn(|index| {
        let mean = sums[index] / count;
        ((squares[index] / count - mean * mean).max(0.0) * count / (count - 1.0)).sqrt()
    })
}

pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Quantile by linear interpolation; 0 without values.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{misfit, misfitting};

    /// Connections of 50 kB with a known spread of busy times.
    fn connections(count: u32) -> Vec<Connection> {
        let one = |number: u32| Connection {
            bytes: 50_000,
            busy_s: (f64::from(number % 10) * 0.1).exp(),
            sent_bytes: 50_000,
            retransmitted_bytes: if number.is_multiple_of(4) { 2_000 } else { 0 },
            rtt_min_s: 0.02,
            srtt_s: 0.03,
            delivery_rate_bps: None,
        };
        (0..count).map(one).collect()
    }

    /// The standard error of a mean is the standard deviation over the root of the count; the
    /// deviation of 0 to 0.9 in steps of 0.1 is 0.287.
    #[test]
    fn errors_are_those_of_the_formula() {
        let statistics = Statistics::of(&connections(400), 0.02, 1);
        let [mean, error] = statistics.values[0].unwrap();
        assert!((mean - (400_000.0_f64.ln() - 0.45)).abs() < 1e-9);
        assert!((error / (0.2872 / 20.0) - 1.0).abs() < 0.35, "{error}");
        let [clean, error] = statistics.values[3].unwrap();
        assert!((clean - 0.75).abs() < 1e-9);
        assert!((error / (0.75_f64 * 0.25 / 400.0).sqrt() - 1.0).abs() < 0.35, "{error}");
        // The larger classes are empty.
        assert_eq!(statistics.count(), PER_CLASS);
    }

    #[test]
    fn misfit_is_zero_for_the_same_and_grows() {
        let seen = connections(400);
        let statistics = Statistics::of(&seen, 0.02, 1);
        assert_eq!(misfit(&statistics, &statistics), 0.0);
        let slower = |factor: f64| {
            let slowed = seen.iter().map(|one| Connection { busy_s: one.busy_s * factor, ..*one });
            misfit(&statistics, &Statistics::of(&slowed.collect::<Vec<_>>(), 0.02, 1))
        };
        assert!(slower(1.1) > 0.1 && slower(2.0) > slower(1.1), "{} {}", slower(1.1), slower(2.0));
        let differences = statistics.differences(&Statistics::of(
            &seen.iter().map(|one| Connection { srtt_s: 0.3, ..*one }).collect::<Vec<_>>(),
            0.02,
            1,
        ));
        let names: Vec<String> =
            misfitting::<Statistics>(&differences, 3.0).into_iter().map(|one| one.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.contains("RTT") && name.ends_with("under 100 kB")));
        // A class that only one of them has counts as different.
        let large: Vec<Connection> =
            seen.iter().map(|one| Connection { bytes: 5_000_000, ..*one }).collect();
        assert!(misfit(&statistics, &Statistics::of(&large, 0.02, 1)) > 2.0);
    }
}
