//! How often each word is said, by the true difference and the number of repeats.

use knee_units::random::normal;
use knee_units::statistics::{Better, Judgement, Paired};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::collections::BTreeMap;

const DIFFERENCES: [f64; 5] = [0.0, 0.01, 0.02, 0.05, 0.2];
const REPEATS: [usize; 4] = [2, 5, 10, 40];
const COMPARISONS: usize = 1000;
const WORDS: [Judgement; 4] =
    [Judgement::Better, Judgement::Alike, Judgement::Undecided, Judgement::Worse];

/// Parts of the comparisons for which each word was said.
type Said = BTreeMap<Judgement, f64>;

/// Judges comparisons of two alternatives whose pairs differ by `difference`, with log-normal noise.
fn said(
    random: &mut ChaCha8Rng,
    difference: f64,
    repeats: usize,
    (spread, margin): (f64, f64),
) -> Said {
    let mut said = Said::new();
    for _ in 0..COMPARISONS {
        let pair = |random: &mut ChaCha8Rng| {
            let common = (0.3 * normal(random)).exp();
            (common * (1.0 + difference) * (spread * normal(random)).exp(), common)
        };
        let pairs: Vec<(f64, f64)> = (0..repeats).map(|_| pair(random)).collect();
        let word = Paired::new(&pairs).unwrap().judge(Better::More, margin);
        *said.entry(word).or_default() += 1.0 / COMPARISONS as f64;
    }
    said
}

/// *Better* and *worse* are wrong in at most 5 % of comparisons (plus three standard errors), whatever
/// the spread; where the spread allows it, a difference of 20 % is found in 95 % of comparisons with
/// 40 repeats, and no difference is *alike* in 80 %. `--nocapture` prints the table.
#[test]
fn words_are_rarely_wrong() {
    let mut random = ChaCha8Rng::seed_from_u64(48);
    // Spread of the pairs and margin; whether 40 repeats show that there is no difference.
    for (spread, margin, shows_none) in
        [(0.015, 0.01, true), (0.05, 0.01, false), (0.2, 0.01, false), (0.15, 0.1, true)]
    {
        println!("\npairs spread by {} %, margin {} %", spread * 100.0, margin * 100.0);
        println!("difference  repeats   better    alike undecided    worse");
        for difference in DIFFERENCES {
            for repeats in REPEATS {
                let said = said(&mut random, difference, repeats, (spread, margin));
                let part = |word: Judgement| said.get(&word).copied().unwrap_or(0.0);
                let row = WORDS.map(|word| format!("{:>9.1}", part(word) * 100.0));
                println!("{:>8} %  {repeats:>7}{}", difference * 100.0, row.join(""));
                let most = 0.05 + 3.0 * (0.05 * 0.95 / COMPARISONS as f64).sqrt();
                let wrong = match difference > 0.0 {
                    true => part(Judgement::Worse),
                    false => part(Judgement::Better) + part(Judgement::Worse),
                };
                assert!(wrong <= most, "{difference}, {repeats} repeats: {wrong}");
                if difference > margin {
                    assert!(part(Judgement::Alike) <= most, "{difference}, {repeats} repeats");
                }
                if (difference, repeats) == (0.2, 40) {
                    assert!(part(Judgement::Better) >= 0.95, "{said:?}");
                }
                if (difference, repeats) == (0.0, 40) && shows_none {
                    assert!(part(Judgement::Alike) >= 0.8, "{said:?}");
                }
            }
        }
    }
}
