//! The earliest time at which any scheduler could finish a file over several paths.

use crate::rates::PathRate;

/// Returns a lower bound T* of the completion time of a file, seconds.
///
/// By a time t, a path has delivered at most what each of its links allows between two times: the
/// arrival at the link of data sent at the file's start, and the last departure that still arrives
/// by t. T* is the time at which all paths together reach the size, `bytes` including headers. Over
/// paths with constant rates r and one-way delays d,
///
/// `T* = (8 S + sum over A of r_i d_i) / (sum over A of r_i)`,
/// A = the paths with `d_i < T*`.
///
/// Infinite if the paths never reach the size.
pub(crate) fn lower_bound(start_ns: u64, bytes: f64, paths: &[&PathRate]) -> f64 {
    earliest(|time_ns| {
        let arrived = paths.iter().map(|path| path.arrived_bytes(start_ns, start_ns + time_ns));
        arrived.sum::<f64>() >= bytes
    })
}

/// Returns the time T' that a file takes at the rates of all its paths together, seconds: the least
/// for which they allow `bytes`, headers included, from its start on. Without any delay, unlike
/// [`lower_bound`]. Infinite if the paths never allow it.
pub(crate) fn ideal_time(start_ns: u64, bytes: f64, paths: &[&PathRate]) -> f64 {
    earliest(|time_ns| {
        let allowed = paths.iter().map(|path| path.allowed_bytes(start_ns, start_ns + time_ns));
        allowed.sum::<f64>() >= bytes
    })
}

/// Returns the least time from which on something is so, seconds.
fn earliest(enough: impl Fn(u64) -> bool) -> f64 {
    let Some(high) = (0..HORIZON_LOG2).map(|power| 1 << power).find(|time| enough(*time)) else {
        return f64::INFINITY;
    };
    let (mut low, mut high) = (0, high);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    high as f64 / 1e9
}

/// Upper limit of the search: 2^62 ns, about 146 years.
const HORIZON_LOG2: u32 = 63;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rates;
    use knee_scenario::{Embedded, Source, parse};
    use proptest::prelude::*;

    /// Returns T* of paths whose links are given as lines of TOML.
    fn bound_of(start_ns: u64, bytes: f64, links: &[String]) -> f64 {
        let mut text = "duration = \"10 s\"\n".to_string();
        for (number, link) in links.iter().enumerate() {
            text += &format!(
                "[link.l{number}]\n{link}\n[path.p{number}]\nforward = [\"l{number}\"]\n\
                 reverse_delay = \"1 ms\"\n[[flow]]\nname = \"f{number}\"\n\
                 path = \"p{number}\"\ncc = \"reno\"\n"
            );
        }
        let source = Source { name: "bound.toml", loader: &Embedded(&[]) };
        let rates = Rates::of(&parse(&text, &source, &[]).expect("it is a scenario"));
        let paths = rates.paths_of(0..links.len() as u32).expect("they are known");
        lower_bound(start_ns, bytes, &paths)
    }

    /// Link with a rate in bit/s and a delay in microseconds.
    fn link((rate, delay): &(u64, u64)) -> String {
        format!("rate = \"{rate} bit/s\"\ndelay = \"{delay} us\"")
    }

    /// Computes T* of constant rates from the formula: A is a prefix of the paths in the order of
    /// their delays, and no other prefix ends earlier.
    fn by_formula(bytes: f64, paths: &[(u64, u64)]) -> f64 {
        let mut paths = paths.to_vec();
        paths.sort_by_key(|path| path.1);
        let (mut rates, mut bits, mut earliest) = (0.0, 8.0 * bytes, f64::INFINITY);
        for (rate, delay) in paths {
            rates += rate as f64;
            bits += rate as f64 * delay as f64 / 1e6;
            earliest = earliest.min(bits / rates);
        }
        earliest
    }

    #[track_caller]
    fn close(bound: f64, expected: f64) {
        assert!((bound - expected).abs() < 3e-9, "{bound} is not {expected}");
    }

    /// 1 MB over 10 Mbit/s with 5 ms and 1 Mbit/s with 100 ms: (8 Mbit + 50 kbit + 100 kbit) / 11
    /// Mbit/s; the fast path alone takes 805 ms. 64 kB arrive before the slow path delivers
    /// anything.
    #[test]
    fn fast_and_slow_path() {
        let [fast, slow] = [(10_000_000, 5_000), (1_000_000, 100_000)].map(|path| link(&path));
        let both = [slow.clone(), fast.clone()];
        close(bound_of(0, 1e6, &both), 8.15 / 11.0);
        close(bound_of(7_777, 1e6, &[fast]), 0.805);
        close(bound_of(0, 64_000.0, &both), 0.005 + 0.0512);
    }

    #[test]
    fn paths_without_a_rate_or_without_a_limit() {
        assert_eq!(lower_bound(0, 1000.0, &[]), f64::INFINITY);
        let [unlimited, early] = ["delay = \"20 ms\"".to_string(), link(&(1_000_000, 5_000))];
        close(bound_of(0, 1e9, std::slice::from_ref(&unlimited)), 0.02);
        // 8 kbit at 1 Mbit/s after 5 ms arrive before the unlimited path delivers anything.
        close(bound_of(0, 1000.0, &[unlimited, early]), 0.013);
        let ends =
            "rate = [{ at = \"0 s\", rate = \"8 kbit/s\" }, { at = \"2 s\", rate = \"0 bit/s\" }]";
        close(bound_of(0, 2000.0, &[ends.to_string()]), 2.0);
        assert_eq!(bound_of(0, 2001.0, &[ends.to_string()]), f64::INFINITY);
    }

    /// 1 kB/s, 10 kB/s from 2 s on, down from 3 to 5 s: of a file that starts at 1 s, 1 kB has left
    /// by 2 s, 11 kB by 3 s, and the last of 15 kB at 5.4 s.
    #[test]
    fn steps_and_outages_count_from_the_start_of_the_file() {
        let link = "rate = [{ at = \"0 s\", rate = \"8 kbit/s\" }, { at = \"2 s\", rate = \"80 kbit/s\" }]\n\
                    delay = \"50 ms\"\ndown = [{ from = \"3 s\", until = \"5 s\" }]";
        let bound = |bytes| bound_of(1_000_000_000, bytes, &[link.to_string()]);
        close(bound(1000.0), 1.05);
        close(bound(11_000.0), 2.05);
        close(bound(15_000.0), 4.45);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn equals_the_formula_where_rates_are_constant(
            bytes in 1..100_000_000u64,
            start_ns in 0..1_000_000_000u64,
            paths in prop::collection::vec((10_000..1_000_000_000u64, 0..500_000u64), 1..6),
        ) {
            let links: Vec<String> = paths.iter().map(link).collect();
            let bound = bound_of(start_ns, bytes as f64, &links);
            let expected = by_formula(bytes as f64, &paths);
            prop_assert!((bound - expected).abs() <= 2e-9 + 1e-9 * expected, "{bound} {expected}");
            if paths.len() > 1 {
                prop_assert!(bound <= bound_of(start_ns, bytes as f64, &links[1..]));
            }
        }
    }
}
