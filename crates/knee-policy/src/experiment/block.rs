//! What the blocks of an experiment came to, and what is to be made of them.

use super::timeline::{Slot, Timeline};
use knee_steer::{Cells, Design, Harm, Treatment, Trial, TrialSettings};
use serde::{Deserialize, Serialize};

/// Classes by what a connection had delivered: up to where, in bytes, and the name.
pub const CLASSES: [(u64, &str); 4] = [
    (100_000, "under 100 kB"),
    (1_000_000, "100 kB to 1 MB"),
    (10_000_000, "1 to 10 MB"),
    (u64::MAX, "10 MB and more"),
];
/// Level of all verdicts together.
const LEVEL: f64 = 0.05;
/// A class with fewer connections than this in a block under A, on average, is not judged.
const CONNECTIONS_MIN: f64 = 5.0;
/// Retransmissions may rise by this much, or by half of what A has.
const MARGIN: f64 = 0.005;

/// Connections of a class under one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// How many.
    pub count: u64,
    /// Sum of the logarithms of their rates, in bit/s.
    pub ln_bps: f64,
}

impl Sums {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.ln_bps / self.count as f64)
    }
}

/// What a block came to for one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupBlock {
    /// By class, those under A and those under B.
    pub classes: [[Sums; 2]; CLASSES.len()],
    /// Parts of the clients that came, under A and under B.
    pub parts: [u64; 2],
    /// Bytes retransmitted and sent, both controllers together.
    pub bytes: [u64; 2],
    /// Why B was stopped in it.
    pub stopped: Option<String>,
}

/// What a block came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// From 0, with the pairs before the first triple.
    pub number: u64,
    /// In the order of the policy.
    pub groups: Vec<GroupBlock>,
    /// Connections that were told of, and those that were not.
    pub reports: u64,
    /// See `reports`.
    pub lost: u64,
    /// Connections that were given a controller, and those for which the kernel refused.
    pub given: u64,
    /// See `given`.
    pub refused: u64,
    /// Why it does not count.
    pub void: Option<String>,
}

impl Block {
    fn lost_share(&self) -> f64 {
        let all = self.reports + self.lost;
        if all == 0 { 0.0 } else { self.lost as f64 / all as f64 }
    }
}

impl GroupBlock {
    fn retransmitted(&self) -> f64 {
        let [again, sent] = self.bytes;
        if sent == 0 { 0.0 } else { again as f64 / sent as f64 }
    }

    fn mean(&self, class: usize) -> Option<f64> {
        let [a, b] = self.classes[class];
        Sums { count: a.count + b.count, ln_bps: a.ln_bps + b.ln_bps }.mean()
    }

    fn count(&self, class: usize) -> u64 {
        self.classes[class].iter().map(|sums| sums.count).sum()
    }
}

/// An experiment with one group and class. Effects are differences of the logarithm of
/// the rate of a connection: bytes delivered over the time in which it had some to send.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Index of the group in the policy.
    pub group: usize,
    /// Index into [`CLASSES`].
    pub class: usize,
    /// Connections in a block under A, on average.
    pub connections: f64,
    /// The experiment.
    pub trial: Trial,
    /// Why its group's B was stopped at once, and after how many triples.
    pub stopped: Option<(String, u64)>,
    /// Triples that do not count for it: without a connection in one of the cells, or
    /// with a block that is void.
    pub left_out: u64,
}

/// How a block is told of harm.
pub(crate) fn name(harm: Harm) -> String {
    match harm {
        Harm::Retransmissions => "it retransmits over 2 % and three times what A does",
        Harm::Delay => "its round trips are twice as long as A's, and 20 ms longer",
        Harm::Completion => "its small transfers take twice as long as A's, and 20 ms longer",
    }
    .to_string()
}

/// Judges what there is: pairs before, then whole triples. None before all pairs.
pub fn judge(
    blocks: &[Block],
    timeline: &Timeline,
    design: &Design,
    groups: &[String],
) -> Option<Vec<Judged>> {
    let pairs: Vec<[&Block; 2]> = (0..timeline.calibration)
        .filter_map(|pair| Some([block(blocks, 2 * pair)?, block(blocks, 2 * pair + 1)?]))
        .collect();
    if (pairs.len() as u64) < timeline.calibration {
        return None;
    }
    let sound: Vec<[&Block; 2]> =
        pairs.into_iter().filter(|pair| pair.iter().all(|one| one.void.is_none())).collect();
    let mut judged = Vec::new();
    for group in 0..groups.len() {
        for class in 0..CLASSES.len() {
            let counts =
                sound.iter().flatten().map(|block| block.groups[group].count(class) as f64);
            let connections = counts.sum::<f64>() / (2 * sound.len()).max(1) as f64;
            if connections >= CONNECTIONS_MIN {
                judged.push((group, class, connections));
            }
        }
    }
    let comparisons = judged.len();
    let each = judged.into_iter().map(|(group, class, connections)| {
        let settings = settings(&sound, group, class, comparisons, timeline.triples);
        let (mut trial, mut left_out, mut stopped) = (Trial::new(settings), 0, None);
        for triple in 0..timeline.triples {
            let Some(three) = triple_of(blocks, timeline, triple) else { break };
            let order = design.order(&groups[group], triple);
            let harm = three.iter().find_map(|block| block.groups[group].stopped.clone());
            if let Some(harm) = harm {
                stopped = Some((harm, triple + 1));
                break;
            }
            match cells(&three, order, group, class) {
                Some(cells) => trial.push(&[cells]),
                None => left_out += 1,
            }
        }
        Judged { group, class, connections, trial, stopped, left_out }
    });
    Some(each.collect())
}

fn block(blocks: &[Block], number: u64) -> Option<&Block> {
    blocks.iter().find(|block| block.number == number)
}

fn triple_of<'b>(blocks: &'b [Block], timeline: &Timeline, triple: u64) -> Option<[&'b Block; 3]> {
    let first = 2 * timeline.calibration + 3 * triple;
    debug_assert_eq!(timeline.slot(first), Some(Slot::Triple { triple, place: 0 }));
    Some([block(blocks, first)?, block(blocks, first + 1)?, block(blocks, first + 2)?])
}

/// None: a block is void, or a cell has no connection.
fn cells(three: &[&Block; 3], order: [Treatment; 3], group: usize, class: usize) -> Option<Cells> {
    if three.iter().any(|block| block.void.is_some()) {
        return None;
    }
    let of = |treatment| {
        let place = order.iter().position(|one| *one == treatment)?;
        Some(&three[place].groups[group])
    };
    let (control, test) = (of(Treatment::Control)?, of(Treatment::Test)?);
    let half = of(Treatment::Half)?;
    let [a, b] = half.classes[class];
    Some(Cells {
        control: control.mean(class)?,
        test: test.mean(class)?,
        halves: [a.mean()?, b.mean()?],
        half_counts: half.parts,
        worse: test.retransmitted() - control.retransmitted(),
        lost: three.iter().map(|block| block.lost_share()).fold(0.0, f64::max),
    })
}

/// The noise is what pairs of blocks under A differ by.
fn settings(
    pairs: &[[&Block; 2]],
    group: usize,
    class: usize,
    comparisons: usize,
    triples: u64,
) -> TrialSettings {
    let spread = |differences: Vec<f64>| {
        let squares: f64 = differences.iter().map(|one| one * one).sum();
        (squares / differences.len().max(1) as f64).sqrt()
    };
    let both = pairs.iter().map(|pair| pair.map(|block| &block.groups[group]));
    let speeds =
        both.clone().filter_map(|[one, other]| Some(one.mean(class)? - other.mean(class)?));
    let again = both.clone().map(|[one, other]| one.retransmitted() - other.retransmitted());
    let ratios: Vec<f64> = both.flatten().map(GroupBlock::retransmitted).collect();
    let ratio = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    TrialSettings {
        level: LEVEL,
        comparisons,
        planned: triples as usize,
        scale: spread(speeds.collect()),
        guard: Some((MARGIN.max(ratio / 2.0), spread(again.collect()))),
    }
}
