//! Many comparisons made together, of which several may be real: a limit on the part of those called
//! different that are not.

use crate::statistics::{LEVEL, Paired};

/// Corrects comparisons so that of those that [differ](Paired::differs) at most one in twenty is
/// expected to be chance (Benjamini and Hochberg, "Controlling the false discovery rate", Journal of
/// the Royal Statistical Society B 57, 1995). If none of them is real, the probability that any
/// differs is at most one in twenty. The intervals agree with that (Benjamini and Yekutieli, "False
/// discovery rate-adjusted multiple confidence intervals for selected parameters", Journal of the
/// American Statistical Association 100, 2005): of n comparisons of which k differ, each has the
/// interval for k n-ths of 5 %. Comparisons in which nothing differs do not count. Returns the number
/// of comparisons.
pub fn false_discovery<'c>(comparisons: impl IntoIterator<Item = &'c mut Paired>) -> usize {
    let mut all: Vec<&mut Paired> = Vec::new();
    for compared in comparisons {
        compared.p_corrected = compared.p_value;
        if !compared.is_same() && compared.p_value.is_some() {
            all.push(compared);
        }
    }
    all.sort_by(|a, b| a.p_value.unwrap_or(1.0).total_cmp(&b.p_value.unwrap_or(1.0)));
    let count = all.len();
    let (mut least, mut differing): (f64, usize) = (1.0, 0);
    for (at, compared) in all.iter_mut().enumerate().rev() {
        let rank = at + 1;
        least = least.min(compared.p_value.unwrap_or(1.0) * count as f64 / rank as f64);
        compared.p_corrected = Some(least);
        if least < LEVEL {
            differing = differing.max(rank);
        }
    }
    let level = LEVEL * differing.max(1) as f64 / count.max(1) as f64;
    all.into_iter().for_each(|compared| compared.set_level(level));
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(p: f64) -> Paired {
        let compared = Paired::new(&[(2.0, 1.0), (2.2, 1.0), (1.8, 1.0)]).unwrap();
        Paired { p_value: Some(p), ..compared }
    }

    /// The procedure by hand: 0.01, 0.02 and 0.03 are at most 1, 2 and 3 quarters of 5 %, 0.2 is not
    /// at most all of it.
    #[test]
    fn as_many_differ_as_their_ranks_allow() {
        let mut all = [with(0.02), with(0.2), with(0.03), with(0.01)];
        assert_eq!(false_discovery(&mut all), 4);
        assert_eq!(all.map(|one| one.differs()), [true, false, true, true]);
        assert_eq!((all[2].p_corrected.unwrap() * 1e9).round(), 4e7);
        // One alone would have to be below a quarter of 5 %.
        let mut all = [with(0.02), with(0.2), with(0.3), with(0.4)];
        false_discovery(&mut all);
        assert!(all.iter().all(|one| !one.differs()));
    }

    /// An interval excludes equality exactly where the comparison differs, and one comparison alone
    /// keeps its own.
    #[test]
    fn intervals_agree_with_what_differs() {
        let pairs = [
            [(1.10, 1.0), (1.12, 1.0), (1.08, 1.0), (1.11, 1.0)],
            [(1.10, 1.0), (0.95, 1.0), (1.30, 1.0), (1.15, 1.0)],
            [(1.30, 1.0), (1.20, 1.0), (1.10, 1.0), (1.25, 1.0)],
            [(0.70, 1.0), (0.99, 1.0), (0.80, 1.0), (0.75, 1.0)],
        ];
        let mut all: Vec<Paired> = pairs.iter().map(|p| Paired::new(p).unwrap()).collect();
        let alone = all[0];
        false_discovery(&mut all);
        for one in &all {
            let excludes = one.low.unwrap() > 1.0 || one.high.unwrap() < 1.0;
            assert_eq!(excludes, one.differs(), "{one:?}");
        }
        let mut one = [alone];
        false_discovery(&mut one);
        assert!((one[0].low.unwrap() - alone.low.unwrap()).abs() < 1e-12);
    }
}
