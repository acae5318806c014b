//! An experiment of knee-steer over the packet simulator, where the truth is
//! known: what `knee steer rehearse` does.
//!
//! A block is a run with a seed of its own: the same network at another time. So
//! no block leaves anything behind for the next, and burn-in is the scenario's
//! warm-up. In a half-and-half block each arrival comes twice, once under each
//! controller, as mixes of one process do: the halves are alike by construction,
//! and which client gets what is not drawn. No record is lost.

use crate::answers::{Questions, under};
use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::SIMULATOR;
use crate::job::{Job, Run, execute};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::text::ScenarioText;
use knee_record::{MixPair, size_classes};
use knee_scenario::{Override, Scenario};
use knee_statistics::Interval;
use knee_steer::{Cells, Design, HardStop, Treatment, Trial, TrialSettings};
use knee_units::Time;
use std::collections::BTreeMap;

/// Level of all verdicts together.
const LEVEL: f64 = 0.05;
/// A class of sizes with fewer transfers than this in a block, on average, is not
/// judged.
const TRANSFERS_MIN: f64 = 5.0;
/// Retransmissions may rise by this much, or by half of what A has.
const MARGIN: f64 = 0.005;
/// Windows of the hard stop: a minute, or a quarter of a short block.
const WINDOW: Time = Time::from_secs(60);

/// What is to be rehearsed.
#[derive(Clone, Debug)]
pub struct RehearseSettings {
    /// Keys of every scenario that are set otherwise.
    pub set: Vec<Override>,
    /// Of the draws, and of the first block; none: the scenario's.
    pub seed: Option<u64>,
    /// Triples of blocks.
    pub triples: u64,
    /// Pairs of blocks under A and A, from which the noise is known.
    pub calibration: u64,
    /// Pairs of runs with the same arrivals, all under A and all under B, which
    /// tell the truth.
    pub truth: u64,
}

/// Why nothing can be rehearsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RehearseError {
    /// No two controllers to choose from.
    #[error("{0} has no two mixes of one process over one path")]
    NoPair(String),
    /// No class has so many transfers that its mean means something.
    #[error("in no block are there five transfers of a size")]
    TooFew,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// The seed of its draws.
    pub seed: u64,
    /// Triples that were made: less than planned after a stop.
    pub triples: u64,
    /// Length of a block.
    pub block: Time,
    /// The part of it in which no transfer counts.
    pub burn_in: Time,
    /// By traffic and size.
    pub classes: Vec<RehearsedClass>,
    /// Classes with too few transfers.
    pub left_out: Vec<String>,
    /// The triple, from one, and the time in its block under B at which the
    /// retransmissions of a group had it stopped at once.
    pub hard_stop: Option<(u64, Time)>,
}

/// A class of traffic and size. What is measured is the speed of a transfer,
/// bytes over the time that it took; effects are differences of its logarithm.
#[derive(Clone, Debug)]
pub struct RehearsedClass {
    /// Name of the process.
    pub traffic: String,
    /// The controllers: the one that is tried, B, and the one in use, A.
    pub controllers: [String; 2],
    /// Sizes as people write them.
    pub sizes: &'static str,
    /// Transfers in a block under A, on average.
    pub transfers: f64,
    /// The experiment.
    pub trial: Trial,
    /// The mean of what it was to find, with its 95 % interval; none: not asked.
    pub truth: Option<Interval>,
}

/// Which run it is, of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    Calibration(u64, u8),
    Triple(u64, Treatment),
    Truth(u64, Treatment),
}

/// Process, and class of size.
type Key = (String, usize);

/// What a block came to; the arrays tell the halves apart: A's mix and B's.
#[derive(Debug, Default)]
struct Block {
    /// Transfers that finished, and the sum of the logarithms of their speeds.
    classes: BTreeMap<Key, [(u64, f64); 2]>,
    /// Transfers that began.
    begun: BTreeMap<Key, [u64; 2]>,
    /// Retransmitted and sent bytes, by process.
    bytes: BTreeMap<String, (u64, u64)>,
    /// The same by window and process.
    windows: BTreeMap<(String, u64), (u64, u64)>,
}

impl Block {
    fn new(run: &Run, scenario: &Scenario, pairs: &[MixPair]) -> Block {
        let mut block = Block::default();
        let (sizes, view) = (size_classes(), run.view(scenario));
        let window = window(scenario).as_nanos().max(1);
        for flow in &view.flows {
            let side = |pair: &&MixPair| {
                [&pair.control_flow, &pair.test_flow].contains(&&flow.record.name)
            };
            let Some(pair) = pairs.iter().find(side) else { continue };
            let half = usize::from(flow.record.name == pair.test_flow);
            let begin = flow.record.start_ns.saturating_add(view.warmup.as_nanos());
            for row in &flow.transfers {
                let end = row.start_ns + row.completion_ns.unwrap_or(0);
                let at = (pair.name.clone(), end / window);
                let counted = [
                    block.bytes.entry(pair.name.clone()).or_default(),
                    block.windows.entry(at).or_default(),
                ];
                for (again, sent) in counted {
                    *again += row.retransmitted_bytes;
                    *sent += row.sent_bytes;
                }
                let class = sizes.iter().position(|class| class.sizes.contains(row.size_bytes));
                let Some(class) = class.filter(|_| row.size_bytes > 0 && row.start_ns >= begin)
                else {
                    continue;
                };
                let key = (pair.name.clone(), class);
                block.begun.entry(key.clone()).or_default()[half] += 1;
                // What crosses the border of a block does not count.
                let Some(took) = row.completion_ns.filter(|ns| *ns > 0) else { continue };
                let sum = &mut block.classes.entry(key).or_default()[half];
                sum.0 += 1;
                sum.1 += (row.size_bytes as f64 * 8e9 / took as f64).ln();
            }
        }
        block
    }

    fn halves(&self, key: &Key) -> [(u64, f64); 2] {
        self.classes.get(key).copied().unwrap_or_default()
    }

    /// Mean over both halves; none without a transfer.
    fn mean(&self, key: &Key) -> Option<f64> {
        let [a, b] = self.halves(key);
        mean((a.0 + b.0, a.1 + b.1))
    }

    fn retransmitted(&self, process: &str) -> f64 {
        let (again, sent) = self.bytes.get(process).copied().unwrap_or_default();
        if sent == 0 { 0.0 } else { again as f64 / sent as f64 }
    }
}

fn mean((count, sum): (u64, f64)) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

fn window(scenario: &Scenario) -> Time {
    WINDOW.min(Time::from_nanos(scenario.duration.as_nanos() / 4))
}

/// One scenario, and its blocks.
struct Group {
    pairs: Vec<MixPair>,
    blocks: BTreeMap<Which, Block>,
}

impl Lab {
    /// Rehearses an experiment over these scenarios, each a group of clients.
    ///
    /// # Errors
    /// What is wrong with a scenario, a [`RehearseError`], the first failure of a
    /// run. None: it was stopped before there was anything to judge.
    pub fn rehearse(
        &self,
        texts: &[ScenarioText],
        settings: &RehearseSettings,
    ) -> Result<Option<Rehearsed>, Error> {
        let simulator = self.grounds.get(SIMULATOR)?;
        let mut groups = Vec::new();
        let mut runs: Vec<(usize, Which, Scenario)> = Vec::new();
        let mut first = None;
        for (number, text) in texts.iter().enumerate() {
            let scenario = text.scenario(&settings.set)?;
            let (processes, pairs) = Questions::of(&scenario).into_pairs();
            if pairs.is_empty() {
                return Err(RehearseError::NoPair(text.name.clone()).into());
            }
            let from = settings.seed.unwrap_or(scenario.seed);
            for (which, at, treatment) in plan(settings, from, number) {
                let seed = seed(repeat_seed(from, at));
                let set: Vec<Override> = settings.set.iter().cloned().chain([seed]).collect();
                let scenario = text.scenario(&set)?;
                let scenario = match treatment {
                    Treatment::Control => under(&scenario, &processes, 1),
                    Treatment::Test => under(&scenario, &processes, 0),
                    Treatment::Half => scenario,
                };
                runs.push((number, which, scenario));
            }
            groups.push(Group { pairs, blocks: BTreeMap::new() });
            first.get_or_insert(scenario);
        }
        let loads: Vec<Load> =
            runs.iter().map(|(_, _, scenario)| Load::of(scenario, simulator)).collect();
        // What is needed first comes first: a stop keeps whole triples.
        let mut order = costliest_first(&loads);
        order.sort_by_key(|index| runs[*index].1);
        let blocks = self.side_by_side(&loads, order, |index, control| {
            let (group, _, scenario) = &runs[index];
            let run = execute(&Job::new(scenario, simulator), control)?;
            let cut = run.records.interrupted;
            Ok((!cut).then(|| Block::new(&run, scenario, &groups[*group].pairs)))
        })?;
        for ((group, which, _), block) in runs.iter().zip(blocks) {
            groups[*group].blocks.extend(block.map(|block| (*which, block)));
        }
        let Some(first) = first else { return Ok(None) };
        judge(&groups, settings, &first)
    }
}

/// The runs of one scenario: what each is, the number of its seed, and what its
/// connections get. The order of a triple decides which seed serves for which.
fn plan(settings: &RehearseSettings, seed: u64, group: usize) -> Vec<(Which, u64, Treatment)> {
    let design = Design::new(seed);
    let mut all = Vec::new();
    for number in 0..settings.triples {
        for (place, treatment) in (0..).zip(design.order(&group.to_string(), number)) {
            all.push((Which::Triple(number, treatment), number * 3 + place, treatment));
        }
    }
    let mut next = settings.triples * 3;
    for number in 0..settings.calibration {
        for side in 0..2 {
            let which = Which::Calibration(number, side);
            all.push((which, next + number * 2 + u64::from(side), Treatment::Control));
        }
    }
    next += settings.calibration * 2;
    for number in 0..settings.truth {
        for treatment in [Treatment::Control, Treatment::Test] {
            all.push((Which::Truth(number, treatment), next + number, treatment));
        }
    }
    all
}

/// None: without all that comes before the first triple, and that triple, there
/// is nothing to judge by.
fn judge(
    groups: &[Group],
    settings: &RehearseSettings,
    first: &Scenario,
) -> Result<Option<Rehearsed>, Error> {
    let is_calibrated = groups.iter().all(|group| {
        (0..settings.calibration).all(|number| {
            (0..2).all(|side| group.blocks.contains_key(&Which::Calibration(number, side)))
        })
    });
    let whole = |number: u64| {
        let treatments = [Treatment::Control, Treatment::Test, Treatment::Half];
        groups.iter().all(|group| {
            treatments.iter().all(|one| group.blocks.contains_key(&Which::Triple(number, *one)))
        })
    };
    let triples = (0..settings.triples).take_while(|number| whole(*number)).count() as u64;
    if triples == 0 || !is_calibrated {
        return Ok(None);
    }
    let mut keys: Vec<(Key, [String; 2])> = Vec::new();
    for pair in groups.iter().flat_map(|group| &group.pairs) {
        for class in 0..size_classes().len() {
            let key = (pair.name.clone(), class);
            if !keys.iter().any(|known| known.0 == key) {
                keys.push((key, [pair.test.clone(), pair.control.clone()]));
            }
        }
    }
    let (judged, left_out): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|(key, _)| is_judged(groups, key, triples));
    if judged.is_empty() {
        return Err(RehearseError::TooFew.into());
    }
    let comparisons = judged.len();
    let seen = |key: &Key| transfers(groups, key, triples) > 0.0;
    let left_out = left_out.into_iter().filter(|(key, _)| seen(key));
    Ok(Some(Rehearsed {
        seed: settings.seed.unwrap_or(first.seed),
        triples,
        block: first.duration,
        burn_in: first.warmup,
        left_out: left_out.map(|(key, _)| format!("{}, {}", key.0, sizes(&key))).collect(),
        hard_stop: hard_stop(groups, triples, window(first)),
        classes: judged
            .into_iter()
            .map(|(key, controllers)| RehearsedClass {
                transfers: transfers(groups, &key, triples),
                trial: trial(groups, &key, settings, triples, comparisons),
                truth: truth(groups, &key),
                sizes: sizes(&key),
                traffic: key.0,
                controllers,
            })
            .collect(),
    }))
}

fn sizes(key: &Key) -> &'static str {
    size_classes()[key.1].name
}

/// The groups with this traffic.
fn with<'g>(groups: &'g [Group], key: &Key) -> impl Iterator<Item = &'g Group> {
    let process = key.0.clone();
    groups.iter().filter(move |group| group.pairs.iter().any(|pair| pair.name == process))
}

/// Transfers in a block under A.
fn transfers(groups: &[Group], key: &Key, triples: u64) -> f64 {
    let counts = with(groups, key).flat_map(|group| {
        (0..triples).filter_map(|number| {
            let [a, b] = group.blocks.get(&Which::Triple(number, Treatment::Control))?.halves(key);
            Some((a.0 + b.0) as f64)
        })
    });
    let counts: Vec<f64> = counts.collect();
    counts.iter().sum::<f64>() / counts.len().max(1) as f64
}

/// Whether there is enough, and a mean in every cell.
fn is_judged(groups: &[Group], key: &Key, triples: u64) -> bool {
    transfers(groups, key, triples) >= TRANSFERS_MIN
        && (0..triples)
            .all(|number| with(groups, key).all(|group| cells(group, key, number).is_some()))
}

fn cells(group: &Group, key: &Key, triple: u64) -> Option<Cells> {
    let block = |treatment| group.blocks.get(&Which::Triple(triple, treatment));
    let [control, test, half] = [Treatment::Control, Treatment::Test, Treatment::Half].map(block);
    let (control, test, half) = (control?, test?, half?);
    let [a, b] = half.halves(key);
    Some(Cells {
        control: control.mean(key)?,
        test: test.mean(key)?,
        halves: [mean(a)?, mean(b)?],
        half_counts: half.begun.get(key).copied().unwrap_or_default(),
        worse: test.retransmitted(&key.0) - control.retransmitted(&key.0),
        lost: 0.0,
    })
}

/// Pairs of blocks under A: the spread of what they differ by, and their
/// retransmissions.
fn trial(
    groups: &[Group],
    key: &Key,
    settings: &RehearseSettings,
    triples: u64,
    comparisons: usize,
) -> Trial {
    let (mut speeds, mut again, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for group in with(groups, key) {
        for number in 0..settings.calibration {
            let of = |side| group.blocks.get(&Which::Calibration(number, side));
            let (Some(one), Some(other)) = (of(0), of(1)) else { continue };
            speeds.extend(one.mean(key).zip(other.mean(key)).map(|(one, other)| one - other));
            let both = [one, other].map(|block| block.retransmitted(&key.0));
            again.push(both[0] - both[1]);
            ratios.extend(both);
        }
    }
    let spread = |values: &[f64]| {
        let squares: f64 = values.iter().map(|value| value * value).sum();
        (squares / values.len().max(1) as f64).sqrt()
    };
    let ratio = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    let mut trial = Trial::new(TrialSettings {
        level: LEVEL,
        comparisons,
        planned: settings.triples as usize,
        scale: spread(&speeds),
        guard: Some((MARGIN.max(ratio / 2.0), spread(&again))),
    });
    for number in 0..triples {
        let row: Vec<Cells> =
            with(groups, key).filter_map(|group| cells(group, key, number)).collect();
        trial.push(&row);
    }
    trial
}

/// With the same arrivals under both.
fn truth(groups: &[Group], key: &Key) -> Option<Interval> {
    let mut found = Vec::new();
    for group in with(groups, key) {
        for which in group.blocks.keys() {
            let Which::Truth(number, Treatment::Control) = which else { continue };
            let of = |treatment| group.blocks.get(&Which::Truth(*number, treatment));
            let both = of(Treatment::Test).zip(of(Treatment::Control));
            let means = both.and_then(|(test, control)| test.mean(key).zip(control.mean(key)));
            found.extend(means.map(|(test, control)| test - control));
        }
    }
    Interval::new(&found)
}

/// The first block under B in which two windows in a row retransmit far more than
/// A does.
fn hard_stop(groups: &[Group], triples: u64, window: Time) -> Option<(u64, Time)> {
    for number in 0..triples {
        for group in groups {
            let test = group.blocks.get(&Which::Triple(number, Treatment::Test))?;
            for pair in &group.pairs {
                let mut stop = HardStop::new(ratio_of_control(group, &pair.name));
                for ((process, at), (again, sent)) in &test.windows {
                    if *process == pair.name && stop.push(*again, *sent) {
                        let after = window.as_nanos() * (at + 1);
                        return Some((number + 1, Time::from_nanos(after)));
                    }
                }
            }
        }
    }
    None
}

/// Retransmitted over sent bytes in the blocks before the first triple.
fn ratio_of_control(group: &Group, process: &str) -> f64 {
    let mut all = (0, 0);
    for (which, block) in &group.blocks {
        let (again, sent) = block.bytes.get(process).copied().unwrap_or_default();
        if matches!(which, Which::Calibration(..)) {
            all = (all.0 + again, all.1 + sent);
        }
    }
    if all.1 == 0 { 0.0 } else { all.0 as f64 / all.1 as f64 }
}
