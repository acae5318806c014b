//! The earliest that any scheduler could finish a file over several paths.

/// Lower bound T* of the completion time of a file, seconds.
///
/// `size` in bytes; each path with its payload rate in bit/s and its one-way
/// propagation delay in seconds. A path delivers nothing before its delay is
/// over and at most its rate from then on, so by time t all of them together
/// deliver at most `F(t) = sum of r_i max(0, t - d_i)` bits. T* is where F
/// reaches the size:
///
/// `T* = (8 S + sum over A of r_i d_i) / (sum over A of r_i)`,
/// A = the paths with `d_i < T*`.
///
/// An infinite rate stands for an unlimited path. Infinity, if no path has a
/// rate.
pub fn lower_bound(size: u64, paths: &[(f64, f64)]) -> f64 {
    let mut paths: Vec<(f64, f64)> =
        paths.iter().copied().filter(|(rate, _)| *rate > 0.0).collect();
    paths.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut rates, mut bits) = (0.0, 8.0 * size as f64);
    let mut earliest = f64::INFINITY;
    // A is a prefix of the paths in the order of their delays. Any other
    // prefix delivers by time t at most F(t), and so ends no earlier.
    for (rate, delay) in paths {
        if rate.is_infinite() {
            earliest = earliest.min(delay);
            break;
        }
        rates += rate;
        bits += rate * delay;
        earliest = earliest.min(bits / rates);
    }
    earliest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// T* by halving on the fluid delivery curve, which rises with t.
    fn by_bisection(size: u64, paths: &[(f64, f64)]) -> f64 {
        let delivered = |at: f64| -> f64 {
            paths.iter().map(|(rate, delay)| rate * (at - delay).max(0.0)).sum()
        };
        let (mut low, mut high) = (0.0, 1.0);
        while delivered(high) < 8.0 * size as f64 {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            let enough = delivered(middle) >= 8.0 * size as f64;
            if enough { high = middle } else { low = middle }
        }
        high
    }

    /// 1 MB over 10 Mbit/s with 5 ms and 1 Mbit/s with 100 ms:
    /// (8 Mbit + 50 kbit + 100 kbit) / 11 Mbit/s; the fast one alone takes
    /// 805 ms. 64 kB are over before the slow path delivers anything.
    #[test]
    fn fast_and_slow_path() {
        let (fast, slow) = ((10e6, 0.005), (1e6, 0.100));
        let both = lower_bound(1_000_000, &[slow, fast]);
        assert!((both - 8.15 / 11.0).abs() < 1e-12, "{both}");
        assert!((lower_bound(1_000_000, &[fast]) - 0.805).abs() < 1e-12);
        let short = lower_bound(64_000, &[slow, fast]);
        assert!((short - (0.005 + 0.0512)).abs() < 1e-12, "{short}");
    }

    #[test]
    fn paths_without_a_rate_or_without_a_limit() {
        assert_eq!(lower_bound(1000, &[]), f64::INFINITY);
        assert_eq!(lower_bound(1000, &[(0.0, 0.01)]), f64::INFINITY);
        assert_eq!(lower_bound(1000, &[(f64::INFINITY, 0.02)]), 0.02);
        // 8 kbit at 1 Mbit/s after 5 ms are there before the unlimited path
        // delivers anything.
        let early = lower_bound(1000, &[(f64::INFINITY, 0.02), (1e6, 0.005)]);
        assert!((early - 0.013).abs() < 1e-12, "{early}");
    }

    proptest! {
        #[test]
        fn equals_bisection(
            size in 1..100_000_000u64,
            paths in prop::collection::vec((1e4..1e9, 0.0..2.0), 1..7),
        ) {
            let (exact, halved) = (lower_bound(size, &paths), by_bisection(size, &paths));
            prop_assert!((exact - halved).abs() <= 1e-9 * halved, "{exact} {halved}");
        }

        #[test]
        fn one_path_more_is_never_later(
            size in 1..100_000_000u64,
            paths in prop::collection::vec((1e4..1e9, 0.0..2.0), 2..7),
        ) {
            let fewer = lower_bound(size, &paths[1..]);
            prop_assert!(lower_bound(size, &paths) <= fewer * (1.0 + 1e-12));
        }
    }
}
