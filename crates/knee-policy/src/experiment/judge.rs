//! Evaluation of an experiment's blocks, of one host or of the hosts of a site.
//!
//! Hosts with the same policy draw the same orders. So without an effect, the difference of any host
//! is as likely to be positive as negative, but those of all hosts change their signs together: they
//! are one bet, on their mean. Its weights are the connections before the first triple, which no
//! treatment has changed.

use super::block::{Block, CLASSES, GroupBlock, guarded};
use super::timeline::{Slot, Timeline};
use knee_steer::{
    Cells, Costs, Covariate, Design, Guarded, Guards, Treatment, Trial, TrialSettings,
};
use knee_units::statistics::LEVEL;
use std::collections::BTreeMap;
use std::time::Duration;

/// Minimum mean number of connections of a class per block under A for a verdict.
const CONNECTIONS_MIN: f64 = 5.0;
/// Minimum number of pairs for an estimate of the noise.
const PAIRS_MIN: u64 = 2;
/// Time after which the traffic of a host repeats.
const DAY: Duration = Duration::from_secs(86_400);

/// An experiment for one group and class. Effects are differences of the logarithm of a
/// connection's rate: bytes delivered over the time with data to send.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Index of the group in the policy.
    pub group: usize,
    /// Index into [`CLASSES`].
    pub class: usize,
    /// Mean number of connections in a block under A, of all hosts.
    pub connections: f64,
    /// The experiment.
    pub trial: Trial,
    /// How the group's B was stopped early.
    pub stopped: Option<Stopped>,
    /// Number of triples left out: a cell without connections, or a void block, on each host.
    pub left_out: u64,
}

/// An early end of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The reason.
    pub why: String,
    /// In which triple, from 1.
    pub triple: u64,
    /// Index of the first host that stopped it.
    pub host: usize,
}

/// A host's blocks, with its pairs of blocks before the first triple of which none is void.
struct Host<'b> {
    blocks: &'b [Block],
    pairs: Vec<Option<[&'b Block; 2]>>,
}

impl Host<'_> {
    /// Why a group's B was stopped in a triple, if all or only some of its blocks are there.
    fn stopped(&self, timeline: &Timeline, triple: u64, group: usize) -> Option<String> {
        let first = 2 * timeline.calibration + 3 * triple;
        let mut blocks = (first..first + 3).filter_map(|number| block(self.blocks, number));
        blocks.find_map(|block| block.groups[group].stopped.clone())
    }
}

/// Triple of a host, with the host's weights in the class and in the group.
struct Three<'b> {
    host: usize,
    weights: [f64; 2],
    blocks: &'b [Block],
    three: [&'b Block; 3],
}

/// Judges the blocks so far of each host: calibration pairs, then whole triples. A host without pairs
/// has no part in it, except that it may have stopped B. `accepts` are harms that stop nothing.
/// `None` before the last pair.
pub fn judge(
    hosts: &[&[Block]],
    timeline: &Timeline,
    design: &Design,
    groups: &[String],
    accepts: &[Guarded],
) -> Option<Vec<Judged>> {
    let before = 2 * timeline.calibration;
    let last = hosts.iter().filter_map(|blocks| blocks.last()).map(|block| block.number).max()?;
    let is_there = |number: &u64| hosts.iter().any(|blocks| pair_of(blocks, *number).is_some());
    let pairs = (0..timeline.calibration).filter(is_there).count() as u64;
    // On a site, pairs that all hosts have missed do not come again.
    if pairs < timeline.calibration && (pairs < PAIRS_MIN || last < before) {
        return None;
    }
    let sound = |pair: &[&Block; 2]| pair.iter().all(|block| block.void.is_none());
    let pairs_of = |blocks| {
        let pairs = (0..timeline.calibration).map(|number| pair_of(blocks, number).filter(sound));
        pairs.collect()
    };
    let hosts: Vec<Host<'_>> =
        hosts.iter().map(|blocks| Host { blocks, pairs: pairs_of(blocks) }).collect();
    let mut judged = Vec::new();
    for group in 0..groups.len() {
        let all: Vec<[f64; CLASSES.len()]> =
            hosts.iter().map(|host| connections(host, group)).collect();
        for class in 0..CLASSES.len() {
            let weights: Vec<[f64; 2]> =
                all.iter().map(|counts| [counts[class], counts.iter().sum()]).collect();
            if weights.iter().map(|[of_class, _]| of_class).sum::<f64>() >= CONNECTIONS_MIN {
                judged.push((group, class, weights));
            }
        }
    }
    let comparisons = judged.len();
    let each = judged.into_iter().map(|(group, class, weights)| {
        let (settings, costs) = settings(&hosts, &weights, (group, class), comparisons, timeline);
        let guards = Guards::new(&costs, accepts);
        let mut trial = Trial::new(TrialSettings { guards, ..settings });
        let (mut left_out, mut stopped) = (0, None);
        for triple in (0..timeline.triples).take_while(|triple| before + 3 * triple <= last) {
            let threes =
                hosts.iter().zip(&weights).enumerate().filter_map(|(at, (host, weights))| {
                    let three = triple_of(host.blocks, timeline, triple)?;
                    Some(Three { host: at, weights: *weights, blocks: host.blocks, three })
                });
            let mut threes: Vec<Three<'_>> = threes.collect();
            stopped = hosts.iter().enumerate().find_map(|(at, host)| {
                let why = host.stopped(timeline, triple, group)?;
                Some(Stopped { why, triple: triple + 1, host: at })
            });
            if stopped.is_some() {
                break;
            }
            threes.retain(|one| one.weights[0] > 0.0);
            if threes.is_empty() {
                continue;
            }
            threes.retain(|one| one.three.iter().all(|block| block.void.is_none()));
            let order = design.order(&groups[group], triple);
            match cells(&threes, order, (group, class), timeline, hosts.len()) {
                Some((cells, halves)) => trial.push(&[cells], &halves),
                None => left_out += 1,
            }
        }
        let connections = weights.iter().map(|[of_class, _]| of_class).sum();
        Judged { group, class, connections, trial, stopped, left_out }
    });
    Some(each.collect())
}

/// Groups, by index, in which a guard of any class is certain that B does harm, with the reason to
/// stop it: B is to be stopped in these groups.
pub fn certain_harm(judged: &[Judged]) -> BTreeMap<usize, String> {
    let mut harmed = BTreeMap::new();
    for one in judged {
        let stopped = one.trial.guards().each().find(|(_, guard)| guard.has_stopped());
        if let Some((harm, _)) = stopped {
            harmed.entry(one.group).or_insert_with(|| guarded(harm));
        }
    }
    harmed
}

/// Mean numbers of connections in a host's blocks before the first triple, by class.
fn connections(host: &Host<'_>, group: usize) -> [f64; CLASSES.len()] {
    let blocks = || host.pairs.iter().flatten().flatten();
    let count = |class| blocks().map(|block| block.groups[group].count(class) as f64).sum::<f64>();
    std::array::from_fn(|class| count(class) / blocks().count().max(1) as f64)
}

/// Mean with weights; `None` if they are all zero.
fn mean(values: &[(f64, f64)]) -> Option<f64> {
    let all: f64 = values.iter().map(|(weight, _)| weight).sum();
    (all > 0.0).then(|| values.iter().map(|(weight, value)| weight / all * value).sum())
}

/// Block by its number, of blocks in ascending order.
fn block(blocks: &[Block], number: u64) -> Option<&Block> {
    let place = blocks.binary_search_by_key(&number, |block| block.number);
    place.ok().map(|at| &blocks[at])
}

fn pair_of(blocks: &[Block], pair: u64) -> Option<[&Block; 2]> {
    Some([block(blocks, 2 * pair)?, block(blocks, 2 * pair + 1)?])
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

/// Costs of a group in blocks that are compared. The smallest RTT is that of all of them, so that
/// the order of the blocks does not decide which one is compared with the path without a queue.
fn costs<const N: usize>(blocks: [&GroupBlock; N], class: usize) -> [Costs; N] {
    let rtt_min_us = blocks.iter().filter_map(|block| block.times.rtt_min_us).min();
    blocks.map(|block| block.costs(class, rtt_min_us))
}

/// What the day before says about the block under B less that under A: the group's means at the same
/// time of day, whatever the controllers. `None` if it has no such blocks before the triple.
fn forecast(
    one: &Three<'_>,
    order: [Treatment; 3],
    (group, class): (usize, usize),
    timeline: &Timeline,
) -> Option<f64> {
    let day = (DAY.as_secs_f64() / timeline.block.as_secs_f64()).round() as u64;
    let of = |treatment| {
        let place = order.iter().position(|one| *one == treatment)?;
        let before = one.three[place].number.checked_sub(day)?;
        let block = block(one.blocks, before).filter(|_| before < one.three[0].number)?;
        block.groups[group].mean(class).filter(|_| block.void.is_none())
    };
    Some(of(Treatment::Test)? - of(Treatment::Control)?)
}

/// Cells of a triple of sound blocks, and each host's numbers of clients in the halves; `None` if on
/// every host a cell has no connection.
fn cells(
    threes: &[Three<'_>],
    order: [Treatment; 3],
    (group, class): (usize, usize),
    timeline: &Timeline,
    hosts: usize,
) -> Option<(Cells, Vec<[u64; 2]>)> {
    let at = |treatment| order.iter().position(|one| *one == treatment);
    let places = [at(Treatment::Control)?, at(Treatment::Test)?, at(Treatment::Half)?];
    // Means under A, under B, of A's half and of B's half, of the hosts that have all four.
    let means = |one: &Three<'_>| {
        let [control, test, half] = places.map(|place| &one.three[place].groups[group]);
        let [a, b] = half.classes[class];
        Some([control.mean(class)?, test.mean(class)?, a.mean()?, b.mean()?])
    };
    let with: Vec<(&Three<'_>, [f64; 4])> =
        threes.iter().filter_map(|one| Some((one, means(one)?))).collect();
    let over = |value: &dyn Fn(&Three<'_>, &[f64; 4]) -> f64| {
        mean(
            &with
                .iter()
                .map(|(one, means)| (one.weights[0], value(one, means)))
                .collect::<Vec<_>>(),
        )
    };
    let [control, test, a, b] = [0, 1, 2, 3].map(|index| over(&|_, means| means[index]));
    let forecasts: Option<Vec<(f64, f64)>> = with
        .iter()
        .map(|(one, _)| Some((one.weights[0], forecast(one, order, (group, class), timeline)?)))
        .collect();
    let costs = with.iter().map(|(one, _)| {
        let [control, test, _] = costs(places.map(|place| &one.three[place].groups[group]), class);
        (one.weights[1], [control, test])
    });
    let [of_control, of_test] = Costs::mean(&costs.collect::<Vec<_>>());
    let mut halves = vec![[0; 2]; hosts];
    for (one, _) in &with {
        halves[one.host] = one.three[places[2]].groups[group].parts;
    }
    let lost = with.iter().flat_map(|(one, _)| one.three.map(Block::lost_share));
    let cells = Cells {
        control: control?,
        test: test?,
        halves: [a?, b?],
        forecast: forecasts.and_then(|each| mean(&each)),
        worse: of_test.worse_than(&of_control),
        lost: lost.fold(0.0, f64::max),
    };
    Some((cells, halves))
}

/// Settings of a trial without guards, and what pairs of blocks under A cost, from which those are
/// made; the pairs also say how large the noise is.
fn settings(
    hosts: &[Host<'_>],
    weights: &[[f64; 2]],
    (group, class): (usize, usize),
    comparisons: usize,
    timeline: &Timeline,
) -> (TrialSettings, Vec<[Costs; 2]>) {
    let (mut speeds, mut pairs) = (Vec::new(), Vec::new());
    for number in 0..timeline.calibration as usize {
        let sound = || {
            hosts.iter().zip(weights).filter_map(|(host, weights)| {
                Some((weights, host.pairs[number]?.map(|block| &block.groups[group])))
            })
        };
        let each = sound().filter_map(|(weights, [one, other])| {
            Some((weights[0], one.mean(class)? - other.mean(class)?))
        });
        speeds.extend(mean(&each.collect::<Vec<_>>()));
        let each = sound().map(|(weights, pair)| (weights[1], costs(pair, class)));
        let each: Vec<_> = each.collect();
        if !each.is_empty() {
            pairs.push(Costs::mean(&each));
        }
    }
    let squares: f64 = speeds.iter().map(|one| one * one).sum();
    let settings = TrialSettings {
        level: LEVEL,
        comparisons,
        planned: timeline.triples as usize,
        groups: 1,
        scale: (squares / speeds.len().max(1) as f64).sqrt(),
        guards: Guards::default(),
        covariate: Covariate::default(),
    };
    (settings, pairs)
}
