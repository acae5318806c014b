//! What blocks say in which nothing was changed: whether the method sees effects that are not there,
//! and how many triples it needs.

use super::block::Block;
use super::judge::{judge, triple_of};
use super::timeline::Timeline;
use knee_steer::{Design, Verdict, triples_needed};

/// Result of a check of the method on blocks under one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Number of random labellings.
    pub labellings: u64,
    /// Those in which any group and class had an effect, which is a false one.
    pub seen: u64,
    /// Those that a guard stopped in any group, which is a false stop.
    pub stopped: u64,
}

/// Judges the blocks under many random labels, those of the seeds from 0 on, as if some had been
/// under B. At most 5 % of them have an effect, and two standard errors more by chance, whatever the
/// blocks are like: more is a fault in the method, not in the traffic. `None` before the first triple.
///
/// The blocks must be observed: those of an experiment with an effect have one.
pub fn check(
    blocks: &[Block],
    timeline: &Timeline,
    groups: &[String],
    labellings: u64,
) -> Option<Checked> {
    triple_of(blocks, timeline, 0)?;
    let mut checked = Checked { labellings, ..Checked::default() };
    for seed in 0..labellings {
        let judged = judge(&[blocks], timeline, &Design::new(seed), groups, &[])?;
        let verdicts: Vec<Verdict> = judged.iter().map(|judged| judged.trial.verdict().0).collect();
        let seen = |verdict: &Verdict| matches!(verdict, Verdict::More | Verdict::Less);
        let stopped = |verdict: &Verdict| matches!(verdict, Verdict::Stopped(_));
        checked.seen += u64::from(verdicts.iter().any(seen));
        checked.stopped += u64::from(verdicts.iter().any(stopped));
    }
    Some(checked)
}

/// How much the blocks of triples differ without a cause, for a group and class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the difference of two blocks of a triple: of the logarithm of the rate.
    pub deviation: f64,
    /// Number of triples with all three blocks.
    pub triples: u64,
}

impl Noise {
    /// Returns the number of triples that show a change of the rate by this part (0.05: 5 %) with
    /// power 0.8; see [`triples_needed`].
    pub fn triples_for(&self, change: f64) -> u64 {
        triples_needed(self.deviation, change.ln_1p())
    }
}

/// Noise of a group and class, from all pairs of blocks of each triple; `None` without a triple.
pub fn noise(blocks: &[Block], timeline: &Timeline, group: usize, class: usize) -> Option<Noise> {
    let (mut squares, mut triples) = (0.0, 0);
    for three in (0..timeline.triples).map_while(|number| triple_of(blocks, timeline, number)) {
        let mean = |block: &Block| block.groups[group].mean(class).filter(|_| block.void.is_none());
        let [Some(a), Some(b), Some(c)] = three.map(mean) else { continue };
        squares += ((a - b).powi(2) + (b - c).powi(2) + (c - a).powi(2)) / 3.0;
        triples += 1;
    }
    let deviation = (squares / triples as f64).sqrt();
    (triples > 0).then_some(Noise { deviation, triples })
}
