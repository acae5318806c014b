//! A connection that lasts: what its sender saw from interval to interval, and the link that explains
//! it.

use crate::path::{LOSS, NONE_BELOW, Point, between};
use crate::search::{Compared, Search, Space};
use crate::statistics::{quantile, sorted};
use knee_units::random::below;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// What the sender saw in a part of a connection's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleInterval {
    /// Its length, seconds.
    pub seconds: f64,
    /// Payload acknowledged in it, bytes.
    pub delivered_bytes: u64,
    /// Payload sent in it, retransmissions included, bytes.
    pub sent_bytes: u64,
    /// Payload retransmitted in it, bytes.
    pub retransmitted_bytes: u64,
    /// RTT at its end, seconds; `None` before the first measurement.
    pub rtt_s: Option<f64>,
}

impl SampleInterval {
    fn rate_bps(&self) -> f64 {
        self.delivered_bytes as f64 * 8.0 / self.seconds
    }
}

/// A bottleneck without cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkPath {
    /// Rate of the link, bit/s.
    pub rate_bps: f64,
    /// RTT without queueing, seconds.
    pub rtt_s: f64,
    /// Probability of random loss.
    pub loss: f64,
    /// Queue capacity, bytes.
    pub buffer_bytes: f64,
}

/// Bounds of the search for a [`LinkPath`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkBounds {
    rate_bps: f64,
    rtt_s: f64,
    /// Lowest RTT that is tried, as a part of the highest.
    rtt_part: f64,
    buffer_bytes: [f64; 2],
}

/// Lowest rate that is tried, as a part of what was delivered on average, and the highest as a
/// multiple of the lowest. Short intervals may deliver more than the link carries, when a hole is
/// filled.
const RATE_PART: f64 = 0.98;
const RATE_RANGE: f64 = 30.0;
/// Lowest RTT without queueing that is tried, as a part of the smallest measured.
const RTT_PART: f64 = 0.5;
/// The same where only smoothed RTTs are known, and the uncertainty of one that was measured.
const SMOOTHED_PART: f64 = 0.05;
const KNOWN: f64 = 0.01;
/// Smallest queue; the smallest and largest as multiples of what the connection saw queued; and how
/// large the largest is at least, BDP of the lowest rate.
const QUEUE_MIN: f64 = 1600.0;
const QUEUE: [f64; 2] = [0.3, 10.0];
const QUEUE_BDP: f64 = 4.0;

impl LinkBounds {
    /// Derives the bounds from a connection over packets whose payload is `payload` of their size.
    pub fn new(series: &Series, payload: f64) -> LinkBounds {
        let rate_bps = RATE_PART * series.rate_bps / payload;
        let queued = (series.rtt_max_s - series.rtt_min_s) * rate_bps / 8.0;
        let [least, most] = QUEUE.map(|times| (times * queued).max(QUEUE_MIN));
        let bdp = rate_bps * series.rtt_min_s / 8.0;
        let buffer_bytes = [least, most.max(QUEUE_BDP * bdp).max(10.0 * QUEUE_MIN)];
        LinkBounds { rate_bps, rtt_s: series.rtt_min_s, rtt_part: RTT_PART, buffer_bytes }
    }

    /// Derives the bounds from a connection of which only smoothed RTTs were recorded: the queue may
    /// not have been empty in any of them. `rtt_s` is the RTT without queueing, if it is known.
    pub fn of_smoothed(series: &Series, payload: f64, rtt_s: Option<f64>) -> LinkBounds {
        let (rtt_s, rtt_part) = match rtt_s {
            Some(known) => (known * (1.0 + KNOWN), (1.0 - KNOWN) / (1.0 + KNOWN)),
            None => (series.rtt_min_s, SMOOTHED_PART),
        };
        let rate_bps = RATE_PART * series.rate_bps / payload;
        let queued = (series.rtt_max_s - rtt_s * rtt_part).max(0.0) * rate_bps / 8.0;
        let bdp = rate_bps * series.rtt_max_s / 8.0;
        let least = (QUEUE[0] * queued).max(QUEUE_MIN);
        let most = (QUEUE[1] * queued).max(QUEUE_BDP * bdp).max(10.0 * QUEUE_MIN);
        LinkBounds { rate_bps, rtt_s, rtt_part, buffer_bytes: [least, most] }
    }
}

impl Space for LinkBounds {
    type Path = LinkPath;

    /// Rates near the lowest and RTTs near the measured one have more room than others: most
    /// connections of interest fill their path at some time, and leave it empty at another.
    fn path(&self, point: &Point) -> LinkPath {
        let [rate, rtt, loss, buffer] = *point;
        let above = |part: f64| (part - NONE_BELOW) / (1.0 - NONE_BELOW);
        LinkPath {
            rate_bps: self.rate_bps * (1.0 + (RATE_RANGE - 1.0) * rate.powi(3)),
            rtt_s: self.rtt_s * (1.0 - (1.0 - self.rtt_part) * rtt.powi(2)),
            loss: if loss < NONE_BELOW { 0.0 } else { between(LOSS, above(loss)) },
            buffer_bytes: between(self.buffer_bytes, buffer),
        }
    }
}

/// Number of statistics of a series.
const COUNT: usize = 12;
/// What they are, in their order.
const NAMES: [&str; COUNT] = [
    "mean rate",
    "90th percentile of the rate",
    "10th percentile of the rate",
    "smallest RTT",
    "10th percentile of the RTT",
    "median of the RTT",
    "90th percentile of the RTT",
    "largest RTT",
    "retransmitted part",
    "part of the intervals with a retransmission",
    "mean rate of the second half over the first",
    "median RTT of the second half over the first",
];
/// Differences that are negligible: of logarithms, but for those about retransmissions.
const FLOORS: [f64; COUNT] =
    [0.01, 0.02, 0.05, 0.005, 0.02, 0.02, 0.02, 0.03, 0.003, 0.03, 0.05, 0.05];
/// Parts of a series that are drawn anew for its standard errors: several intervals each, because
/// what follows each other is alike.
const BLOCKS: usize = 10;
const BLOCKS_MIN: usize = 4;
const RESAMPLES: u32 = 40;

/// Statistics of a connection that lasts, with standard errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Each with its standard error; `None` where nothing was delivered.
    values: Option<[[f64; 2]; COUNT]>,
    rate_bps: f64,
    rtt_min_s: f64,
    rtt_max_s: f64,
}

impl Series {
    /// Fewest intervals with an RTT of which statistics are made.
    pub const INTERVALS_MIN: usize = 2 * BLOCKS_MIN;

    /// A connection over which nothing arrives: as far from each other one as can be.
    pub fn silent() -> Series {
        Series { values: None, rate_bps: 0.0, rtt_min_s: 0.0, rtt_max_s: 0.0 }
    }

    /// Computes the statistics of intervals and the smallest RTT of all, seconds; `None` if there are
    /// too few intervals, or if nothing was delivered.
    pub fn of(intervals: &[SampleInterval], rtt_min_s: f64, seed: u64) -> Option<Series> {
        let measured: Vec<SampleInterval> =
            intervals.iter().filter(|one| one.rtt_s.is_some()).copied().collect();
        let delivered: u64 = measured.iter().map(|one| one.delivered_bytes).sum();
        if measured.len() < Series::INTERVALS_MIN || delivered == 0 {
            return None;
        }
        let found = of_intervals(&measured, rtt_min_s);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut sums, mut squares) = ([0.0; COUNT], [0.0; COUNT]);
        // An even number, half of them from each half.
        let blocks = (measured.len() / 4 * 2).clamp(BLOCKS_MIN, BLOCKS);
        let length = measured.len() / blocks;
        let halves = measured.split_at(measured.len() / 2);
        for _ in 0..RESAMPLES {
            let mut drawn = |from: &[SampleInterval]| -> Vec<SampleInterval> {
                let drawn = (0..blocks / 2).flat_map(|_| {
                    let first = below(&mut rng, (from.len() - length + 1) as u64) as usize;
                    from[first..first + length].iter().copied()
                });
                drawn.collect()
            };
            // What belongs to one half stays there: a path that changes in between must show.
            let blocks = [drawn(halves.0), drawn(halves.1)].concat();
            let values = of_intervals(&blocks, rtt_min_s);
            for (index, value) in values.into_iter().enumerate() {
                sums[index] += value;
                squares[index] += value * value;
            }
        }
        let count = f64::from(RESAMPLES);
        let values = std::array::from_fn(|index| {
            let mean = sums[index] / count;
            let variance = (squares[index] / count - mean * mean).max(0.0) * count / (count - 1.0);
            [found[index], variance.sqrt()]
        });
        let [rate_bps, _, _, rtt_min, _, _, _, rtt_max, ..] = found.map(f64::exp);
        let values = Some(values);
        Some(Series { values, rate_bps, rtt_min_s: rtt_min, rtt_max_s: rtt_max })
    }
}

impl Compared for Series {
    fn differences(&self, other: &Series) -> Vec<Option<f64>> {
        let (Some(one), Some(other)) = (self.values, other.values) else {
            return vec![None; COUNT];
        };
        let pairs = one.into_iter().zip(other).zip(FLOORS);
        let each = pairs.map(|(([a, sa], [b, sb]), floor)| {
            Some((b - a) / (sa * sa + sb * sb + floor * floor).sqrt())
        });
        each.collect()
    }

    fn count(&self) -> usize {
        self.values.map_or(0, |values| values.len())
    }

    fn name(index: usize) -> String {
        NAMES[index].to_string()
    }
}

/// The statistics in the order of [`NAMES`]; rates and RTTs as logarithms, the retransmitted part as
/// its root, so that 0.1 % and 4 % are told apart alike.
fn of_intervals(intervals: &[SampleInterval], rtt_min_s: f64) -> [f64; COUNT] {
    // The logarithm of no rate at all would outweigh everything.
    let mean: f64 = {
        let bytes: u64 = intervals.iter().map(|one| one.delivered_bytes).sum();
        bytes as f64 * 8.0 / intervals.iter().map(|one| one.seconds).sum::<f64>()
    };
    let rates = sorted(intervals.iter().map(SampleInterval::rate_bps));
    let rate = |part| quantile(&rates, part).max(0.01 * mean).ln();
    let rtts = sorted(intervals.iter().filter_map(|one| one.rtt_s));
    let rtt = |part| quantile(&rtts, part).ln();
    let sent: u64 = intervals.iter().map(|one| one.sent_bytes).sum();
    let again: u64 = intervals.iter().map(|one| one.retransmitted_bytes).sum();
    let with = intervals.iter().filter(|one| one.retransmitted_bytes > 0).count();
    let (first, second) = intervals.split_at(intervals.len() / 2);
    let delivered = |half: &[SampleInterval]| {
        let bytes: u64 = half.iter().map(|one| one.delivered_bytes).sum();
        (bytes.max(1) as f64 / half.len() as f64).ln()
    };
    let median = |half: &[SampleInterval]| {
        quantile(&sorted(half.iter().filter_map(|one| one.rtt_s)), 0.5).ln()
    };
    [
        mean.max(1.0).ln(),
        rate(0.9),
        rate(0.1),
        rtt_min_s.ln(),
        rtt(0.1),
        rtt(0.5),
        rtt(0.9),
        rtt(0.98),
        (again as f64 / sent.max(1) as f64).sqrt(),
        with as f64 / intervals.len() as f64,
        delivered(second) - delivered(first),
        median(second) - median(first),
    ]
}

/// What a measurement says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It lies close to that of the best path.
    Closely,
    /// It lies between the bounds, which are far apart.
    Between,
    /// It is not less than the lower bound: more would have been measured alike.
    AtLeast,
    /// It is not more than the upper bound: less would have been measured alike.
    AtMost,
    /// Nothing.
    Unknown,
}

/// A figure of the path, with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// That of the best path.
    pub best: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// What is known.
    pub known: Known,
}

/// Half of the 95 % point of the chi-squared distribution with as many degrees of freedom as there are
/// statistics: what chance alone leaves of the sum of losses.
const CHANCE: f64 = 10.5;
/// Half of the 99 % point with one degree of freedom: a path that explains the series worse than the
/// best by more is excluded, if chance is not enough.
const SUPPORT: f64 = 3.32;
/// Ratio of the bounds up to which a figure is closely known, in the order of the figures: a rate of
/// loss is seldom known better than by a factor.
const CLOSE: [f64; 4] = [1.5, 1.5, 4.0, 2.0];
/// Part of a range next to a border: a figure that may lie there has no bound on that side.
const BORDER: f64 = 0.15;

/// The rate (bit/s), the RTT without queueing (seconds), the loss and the buffer (bytes), each between
/// the smallest and largest of all paths that explain the series nearly as well as the best.
pub fn figures(search: &mut Search<LinkBounds, Series>) -> Option<[Figure; 4]> {
    let (points, paths): (Vec<Point>, Vec<LinkPath>) =
        search.supported(CHANCE, SUPPORT).into_iter().unzip();
    let figures_of = |path: &LinkPath| {
        let LinkPath { rate_bps, rtt_s, loss, buffer_bytes } = *path;
        [rate_bps, rtt_s, loss, buffer_bytes]
    };
    let paths: Vec<[f64; 4]> = paths.iter().map(figures_of).collect();
    let best = paths.first()?;
    Some(std::array::from_fn(|index| {
        let values = paths.iter().map(|path| path[index]);
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        let place = points.iter().map(|point| point[index]);
        let least = place.clone().fold(1.0, f64::min);
        let most = place.fold(0.0, f64::max);
        // The order of the coordinates is that of the figures.
        let known = match index {
            0 if most > 1.0 - BORDER => Known::AtLeast,
            2 if least < NONE_BELOW && most > 1.0 - BORDER => Known::Unknown,
            2 if least < NONE_BELOW => Known::AtMost,
            3 if least < BORDER && most > 1.0 - BORDER => Known::Unknown,
            3 if most > 1.0 - BORDER => Known::AtLeast,
            3 if least < BORDER && low <= QUEUE_MIN * 1.5 => Known::AtMost,
            _ if high <= CLOSE[index] * low => Known::Closely,
            // A queue that overflowed is closely known. The others were full once at most, by a chance
            // that simulations need not repeat.
            3 => Known::AtLeast,
            _ => Known::Between,
        };
        Figure { best: best[index], low, high, known }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::misfit;

    /// Fifty intervals of 100 ms at 8 Mbit/s, whose RTT goes up and down.
    fn intervals() -> Vec<SampleInterval> {
        let one = |number: u32| SampleInterval {
            seconds: 0.1,
            delivered_bytes: 100_000,
            sent_bytes: 101_000,
            retransmitted_bytes: if number % 10 == 9 { 1000 } else { 0 },
            rtt_s: Some(0.02 + 0.002 * f64::from(number % 10)),
        };
        (0..50).map(one).collect()
    }

    #[test]
    fn statistics_are_those_of_the_formula() {
        let series = Series::of(&intervals(), 0.02, 1).unwrap();
        let values = series.values.unwrap();
        let value = |index: usize| values[index][0];
        assert!((value(0) - 8e6_f64.ln()).abs() < 1e-9);
        assert!((value(3) - 0.02_f64.ln()).abs() < 1e-9);
        assert!((value(5) - 0.029_f64.ln()).abs() < 1e-9);
        assert!((value(8) - (5.0 * 1000.0 / (50.0 * 101_000.0_f64)).sqrt()).abs() < 1e-9);
        assert!((value(9) - 0.1).abs() < 1e-9);
        assert!((series.rtt_max_s - 0.038).abs() < 1e-3, "{}", series.rtt_max_s);
        assert!(value(10).abs() < 1e-9 && value(11).abs() < 0.1);
        // All intervals have one rate: nothing is uncertain about it.
        assert_eq!(values[0][1], 0.0);
        assert!(values[5][1] > 0.0);
        assert_eq!(misfit(&series, &series), 0.0);
        assert!(misfit(&series, &Series::silent()) > 3.0);
    }

    #[test]
    fn too_little_has_no_statistics() {
        let all = intervals();
        assert!(Series::of(&all[..Series::INTERVALS_MIN - 1], 0.02, 1).is_none());
        let silent: Vec<SampleInterval> =
            all.iter().map(|one| SampleInterval { delivered_bytes: 0, ..*one }).collect();
        assert!(Series::of(&silent, 0.02, 1).is_none());
        let without_rtt: Vec<SampleInterval> =
            all.iter().map(|one| SampleInterval { rtt_s: None, ..*one }).collect();
        assert!(Series::of(&without_rtt, 0.02, 1).is_none());
    }

    /// A search over a model without a simulator: the RTT grows with what is queued, up to the buffer.
    fn seen_over(path: &LinkPath) -> Series {
        let one = |number: u32| {
            let queued = path.buffer_bytes * 8.0 / path.rate_bps * f64::from(number % 20) / 19.0;
            let lost = number % 20 == 19 || f64::from(number % 97) / 97.0 < 30.0 * path.loss;
            SampleInterval {
                seconds: 0.1,
                delivered_bytes: (path.rate_bps * 0.1 / 8.0) as u64,
                sent_bytes: (path.rate_bps * 0.1 / 8.0) as u64,
                retransmitted_bytes: if lost { 3000 } else { 0 },
                rtt_s: Some(path.rtt_s + queued),
            }
        };
        Series::of(&(0..200).map(one).collect::<Vec<_>>(), path.rtt_s, 1).unwrap()
    }

    #[test]
    fn a_path_that_was_filled_is_found() {
        let hidden = LinkPath { rate_bps: 30e6, rtt_s: 0.05, loss: 0.004, buffer_bytes: 150_000.0 };
        let series = seen_over(&hidden);
        let settings = crate::SearchSettings { seed: 1, simulations: 400, kept: 1, scan: 8 };
        let mut search = Search::new(series.clone(), LinkBounds::new(&series, 1.0), settings);
        loop {
            let paths = search.next_paths();
            if paths.is_empty() {
                break;
            }
            search.tell(&paths.iter().map(seen_over).collect::<Vec<_>>());
        }
        let [rate, rtt, _, buffer] = figures(&mut search).unwrap();
        assert!((rate.best / 30e6).ln().abs() < 0.03, "{rate:?}");
        assert!((rtt.best / 0.05).ln().abs() < 0.03, "{rtt:?}");
        assert!((buffer.best / 150_000.0).ln().abs() < 0.1, "{buffer:?}");
        for (figure, truth) in [(rate, 30e6), (rtt, 0.05), (buffer, 150_000.0)] {
            assert_eq!(figure.known, Known::Closely, "{figure:?}");
            assert!(figure.low <= truth * 1.01 && truth * 0.99 <= figure.high, "{figure:?}");
        }
    }
}
