//! Results of an experiment's blocks, and their evaluation.

use super::timeline::{Slot, Timeline};
use knee_statistics::Sketch;
use knee_steer::{Cells, Costs, Covariate, Design, Guards, Harm, Treatment, Trial, TrialSettings};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Size classes by delivered bytes: upper limit and name.
pub const CLASSES: [(u64, &str); 4] = [
    (100_000, "under 100 kB"),
    (1_000_000, "100 kB to 1 MB"),
    (10_000_000, "1 to 10 MB"),
    (u64::MAX, "10 MB and more"),
];
/// Significance level of all verdicts together.
const LEVEL: f64 = 0.05;
/// Minimum mean number of connections of a class per block under A for a verdict.
const CONNECTIONS_MIN: f64 = 5.0;
/// Time after which the traffic of a host repeats.
const DAY: Duration = Duration::from_secs(86_400);
/// Percentile that guards compare, and the minimum number of connections in a block for it: with
/// fewer than 20 it would be the largest value.
const TAIL: f64 = 0.95;
const TAIL_MIN: u64 = 20;

/// Sums over connections of a class under one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Number of connections.
    pub count: u64,
    /// Sum of the logarithms of their rates (bit/s).
    pub ln_bps: f64,
}

impl Sums {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.ln_bps / self.count as f64)
    }
}

/// Times of connections that count, under both controllers together, for guards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// Smallest RTT of any of the group's connections, microseconds: its path without a queue. A
    /// connection's own smallest RTT would not do, since some controllers (BBR) empty the queue to
    /// measure it, and others never see it empty.
    pub rtt_min_us: Option<u32>,
    /// Final smoothed RTTs, microseconds.
    #[serde(with = "as_text")]
    pub rtt_us: Sketch,
    /// Busy times of the connections of the smallest class, microseconds.
    #[serde(with = "as_text")]
    pub small_us: Sketch,
}

/// Sketches as text: `k:count`, separated by spaces.
mod as_text {
    use knee_statistics::Sketch;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(sketch: &Sketch, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&sketch.text())
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Sketch, D::Error> {
        let text = String::deserialize(from)?;
        Sketch::parse(&text).ok_or_else(|| D::Error::custom("not the counts of a sketch"))
    }
}

/// The percentile of a block's times; `None` with too few.
fn tail(times: &Sketch) -> Option<f64> {
    times.interpolated(TAIL).filter(|_| times.count() >= TAIL_MIN)
}

/// Results of a block for one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupBlock {
    /// By class: connections under A and under B.
    pub classes: [[Sums; 2]; CLASSES.len()],
    /// Number of prefixes from which clients came, under A and under B.
    pub parts: [u64; 2],
    /// Bytes retransmitted and sent, both controllers together.
    pub bytes: [u64; 2],
    /// Their times. Blocks written before there were any have none, and are guarded by
    /// retransmissions alone.
    #[serde(default)]
    pub times: Times,
    /// Why B was stopped during the block.
    pub stopped: Option<String>,
}

/// Results of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Number from 0, including the pairs before the first triple.
    pub number: u64,
    /// Results by group, in the order of the policy.
    pub groups: Vec<GroupBlock>,
    /// Reports of connections that arrived; lost ones are in `lost`.
    pub reports: u64,
    /// Lost reports.
    pub lost: u64,
    /// Connections that got a controller; refused ones are in `refused`.
    pub given: u64,
    /// Connections whose controller the kernel refused.
    pub refused: u64,
    /// Why the block is void.
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

    /// Costs for guards, with the path's RTT without a queue, microseconds.
    fn costs(&self, rtt_min_us: Option<u32>) -> Costs {
        let queue = tail(&self.times.rtt_us).zip(rtt_min_us);
        let queue = queue.map(|(rtt, rtt_min)| rtt - f64::from(rtt_min));
        let sent = (self.bytes[1] > 0).then(|| self.retransmitted());
        Costs::new(sent, queue, tail(&self.times.small_us))
    }

    pub(super) fn mean(&self, class: usize) -> Option<f64> {
        let [a, b] = self.classes[class];
        Sums { count: a.count + b.count, ln_bps: a.ln_bps + b.ln_bps }.mean()
    }

    fn count(&self, class: usize) -> u64 {
        self.classes[class].iter().map(|sums| sums.count).sum()
    }
}

/// Costs of a group in blocks that are compared. The smallest RTT is that of all of them, so that
/// the order of the blocks does not decide which one is compared with the path without a queue.
fn costs<const N: usize>(blocks: [&GroupBlock; N]) -> [Costs; N] {
    let rtt_min_us = blocks.iter().filter_map(|block| block.times.rtt_min_us).min();
    blocks.map(|block| block.costs(rtt_min_us))
}

/// An experiment for one group and class. Effects are differences of the logarithm of a
/// connection's rate: bytes delivered over the time with data to send.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Index of the group in the policy.
    pub group: usize,
    /// Index into [`CLASSES`].
    pub class: usize,
    /// Mean number of connections in a block under A.
    pub connections: f64,
    /// The experiment.
    pub trial: Trial,
    /// Why and after how many triples the group's B was stopped early.
    pub stopped: Option<(String, u64)>,
    /// Number of triples left out: a cell without connections, or a void block.
    pub left_out: u64,
}

/// Describes a harm.
pub(crate) fn name(harm: Harm) -> String {
    match harm {
        Harm::Retransmissions => "it retransmits over 2 % and three times as much as A",
        Harm::Delay => "its round trips are twice as long as A's, and 20 ms longer",
        Harm::Completion => "its small transfers take twice as long as A's, and 20 ms longer",
    }
    .to_string()
}

/// Judges the blocks so far: calibration pairs, then whole triples. `None` before all pairs.
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
                Some(cells) => {
                    let forecast = forecast(blocks, &three, order, group, class, timeline);
                    trial.push(&[Cells { forecast, ..cells }]);
                }
                None => left_out += 1,
            }
        }
        Judged { group, class, connections, trial, stopped, left_out }
    });
    Some(each.collect())
}

/// Block by its number; usually in its place.
pub(super) fn block(blocks: &[Block], number: u64) -> Option<&Block> {
    let place = blocks.get(number as usize).filter(|block| block.number == number);
    place.or_else(|| blocks.iter().find(|block| block.number == number))
}

pub(super) fn triple_of<'b>(
    blocks: &'b [Block],
    timeline: &Timeline,
    triple: u64,
) -> Option<[&'b Block; 3]> {
    let first = 2 * timeline.calibration + 3 * triple;
    debug_assert_eq!(timeline.slot(first), Some(Slot::Triple { triple, place: 0 }));
    Some([block(blocks, first)?, block(blocks, first + 1)?, block(blocks, first + 2)?])
}

/// What the day before says about the block under B less that under A: the group's means at the same
/// time of day, whatever the controllers. `None` if it has no such blocks before the triple.
fn forecast(
    blocks: &[Block],
    three: &[&Block; 3],
    order: [Treatment; 3],
    group: usize,
    class: usize,
    timeline: &Timeline,
) -> Option<f64> {
    let day = (DAY.as_secs_f64() / timeline.block.as_secs_f64()).round() as u64;
    let of = |treatment| {
        let place = order.iter().position(|one| *one == treatment)?;
        let before = three[place].number.checked_sub(day)?;
        let block = block(blocks, before).filter(|_| before < three[0].number)?;
        block.groups[group].mean(class).filter(|_| block.void.is_none())
    };
    Some(of(Treatment::Test)? - of(Treatment::Control)?)
}

/// Cells of a triple, without a forecast; `None` if a block is void or a cell has no connection.
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
    let [of_control, of_test, _] = costs([control, test, half]);
    let worse = of_test.worse_than(&of_control);
    Some(Cells {
        control: control.mean(class)?,
        test: test.mean(class)?,
        halves: [a.mean()?, b.mean()?],
        half_counts: half.parts,
        forecast: None,
        worse,
        lost: three.iter().map(|block| block.lost_share()).fold(0.0, f64::max),
    })
}

/// Settings of a trial; the noise is estimated from pairs of blocks under A.
fn settings(
    pairs: &[[&Block; 2]],
    group: usize,
    class: usize,
    comparisons: usize,
    triples: u64,
) -> TrialSettings {
    let both = pairs.iter().map(|pair| pair.map(|block| &block.groups[group]));
    let speeds =
        both.clone().filter_map(|[one, other]| Some(one.mean(class)? - other.mean(class)?));
    let speeds: Vec<f64> = speeds.collect();
    let squares: f64 = speeds.iter().map(|one| one * one).sum();
    let costs: Vec<[Costs; 2]> = both.map(costs).collect();
    TrialSettings {
        level: LEVEL,
        comparisons,
        planned: triples as usize,
        scale: (squares / speeds.len().max(1) as f64).sqrt(),
        guards: Guards::new(&costs),
        covariate: Covariate::default(),
    }
}
