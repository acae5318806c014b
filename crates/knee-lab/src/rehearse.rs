//! Runs an experiment of knee-steer on a ground, where the truth is known: the packet simulator, or
//! real TCP between hosts in network namespaces over emulated links, or to another machine.
//! Implements `knee steer rehearse`.
//!
//! A block is a run with its own seed: the same network at another time. So no block affects the
//! next, and burn-in is the scenario's warm-up. In a half-and-half block each arrival occurs twice,
//! once under each controller, as in mixes of one process: the halves are equal by construction,
//! and the assignment of clients is not random. No record is lost. In real time a block is void if
//! the host was too busy for its run; its triple is left out.
//!
//! Transfers count if they begin after the burn-in, and a while before the end of their block
//! ([`Counted`]), whether they finish or not: one that does not is taken to finish at the end,
//! a lower bound of its completion time, as in the answers of `knee run`. So neither what is
//! compared nor the truth depends on which transfers a controller lets finish.

use crate::answers::{Questions, under};
use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::job::{Job, Run, execute};
use crate::lab::{Lab, costliest_first};
use crate::load::Load;
use crate::text::ScenarioText;
use knee_record::{MixPair, Verdict, size_classes};
use knee_scenario::{Override, Scenario};
use knee_steer::{
    Cells, Costs, Covariate, Design, Guarded, Guards, HardStop, Treatment, Trial, TrialSettings,
};
use knee_units::Time;
use knee_units::statistics::{Interval, LEVEL, Sketch};
use std::collections::BTreeMap;

/// Minimum mean number of transfers of a size class per block for a verdict.
const TRANSFERS_MIN: f64 = 5.0;
/// Percentile that guards compare, and the minimum number of samples of the queue or of transfers
/// in a block for it: with fewer than 20 it would be the largest value.
const TAIL: f64 = 0.95;
const TAIL_MIN: u64 = 20;
/// Window of the hard stop; a quarter of the block if that is shorter.
const WINDOW: Time = Time::from_secs(60);

/// Settings of a rehearsal.
#[derive(Clone, Debug)]
pub struct RehearseSettings {
    /// Name of the ground: `sim`, `kernel`, `hosts`.
    pub on: String,
    /// The controller in use (A), if a process has it; otherwise CUBIC is, or its last one.
    pub in_use: Option<String>,
    /// Keys overridden in every scenario.
    pub set: Vec<Override>,
    /// Seed of the random draws and of the first block; `None`: the scenario's.
    pub seed: Option<u64>,
    /// Number of block triples.
    pub triples: u64,
    /// Number of block pairs with A in both, which estimate the noise.
    pub calibration: u64,
    /// Number of run pairs with the same arrivals, all under A and all under B, which measure the
    /// true effect.
    pub truth: u64,
    /// Harm that stops nothing, of [`Guarded::ACCEPTABLE`].
    pub accepts: Vec<Guarded>,
}

/// Why a rehearsal is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RehearseError {
    /// No pair of controllers to compare.
    #[error("{0} does not have two mixes of one process over one path")]
    NoPair(String),
    /// No size class has enough transfers for a meaningful mean.
    #[error("no size class has five transfers in a block, and one in every block")]
    TooFew,
    /// No triple is left, because the host was too busy for a run of each.
    #[error("the host was too busy for a run of every triple")]
    Busy,
}

/// Outcome of a rehearsal.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// Seed of the random draws.
    pub seed: u64,
    /// Triples completed; fewer than planned after a stop.
    pub triples: u64,
    /// Those of them that are left out, because the host was too busy for a run in real time.
    pub void: u64,
    /// Length of a block.
    pub block: Time,
    /// Initial part of a block whose transfers do not count.
    pub burn_in: Time,
    /// Last part of a block whose transfers do not count.
    pub tail: Time,
    /// Length of a block that the transfers need, if the scenario's is shorter: three times the 95th
    /// percentile of their completion under A.
    pub block_too_short: Option<Time>,
    /// Burn-in that they need, if the scenario's is shorter: the 90th percentile.
    pub burn_in_too_short: Option<Time>,
    /// Results by traffic and size.
    pub classes: Vec<RehearsedClass>,
    /// Classes with too few transfers for a verdict.
    pub left_out: Vec<String>,
    /// The triple, from one, and the time in its block under B at which a group's retransmissions
    /// triggered the hard stop.
    pub hard_stop: Option<(u64, Time)>,
}

/// Result for a class of traffic and size. The measure is a transfer's speed, bytes over completion
/// time; effects are differences of its logarithm.
#[derive(Clone, Debug)]
pub struct RehearsedClass {
    /// Name of the process.
    pub traffic: String,
    /// The controllers: B, under test, and A, in use.
    pub controllers: [String; 2],
    /// Size range, for display.
    pub sizes: &'static str,
    /// Mean number of transfers per block under A.
    pub transfers: f64,
    /// Triples without a transfer of the class in one of the cells that are compared.
    pub left_out: u64,
    /// The experiment.
    pub trial: Trial,
    /// Mean true effect with its 95 % interval; `None` if it was not measured.
    pub truth: Option<Interval>,
}

/// Identifies a run of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    Calibration(u64, u8),
    Triple(u64, Treatment),
    Truth(u64, Treatment),
}

impl Which {
    /// The stage of the experiment, and the pair or triple within it.
    fn turn(self) -> (u8, u64) {
        match self {
            Which::Calibration(number, _) => (0, number),
            Which::Triple(number, _) => (1, number),
            Which::Truth(number, _) => (2, number),
        }
    }
}

/// A run of one scenario, as planned.
#[derive(Clone, Copy, Debug)]
struct Planned {
    which: Which,
    /// Place within its pair or triple, as drawn.
    place: u64,
    /// Number of its seed.
    seed: u64,
    treatment: Treatment,
}

impl Planned {
    /// When its turn is: by stage, pair or triple, and place.
    fn turn(&self) -> ((u8, u64), u64) {
        (self.which.turn(), self.place)
    }
}

/// Process and size class.
type Key = (String, usize);

/// The transfers of a block that count, by their begin.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// The scenario's warm-up: the burn-in.
    after: Time,
    /// Time that all have at least until the end: a tenth of the block, but at most half of what the
    /// burn-in leaves of it. It must not depend on how long transfers take, which B may change.
    tail: Time,
}

impl Counted {
    fn of(scenario: &Scenario) -> Counted {
        let part = |whole: Time, of: u64| Time::from_nanos(whole.as_nanos() / of);
        let rest = scenario.duration.saturating_sub(scenario.warmup);
        let tail = part(scenario.duration, 10).min(part(rest, 2));
        Counted { after: scenario.warmup, tail }
    }
}

/// Sums over transfers of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Half {
    /// Number of transfers.
    count: u64,
    /// Those of them that the end of the block cut off.
    unfinished: u64,
    /// Sum of their log speeds.
    ln_bps: f64,
}

impl Half {
    fn merged(self, other: Half) -> Half {
        Half {
            count: self.count + other.count,
            unfinished: self.unfinished + other.unfinished,
            ln_bps: self.ln_bps + other.ln_bps,
        }
    }

    /// Mean log speed; `None` without a transfer.
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.ln_bps / self.count as f64)
    }
}

/// Results of a block; arrays hold the halves: A's mix and B's.
#[derive(Debug, Default)]
struct Block {
    /// Transfers that count.
    classes: BTreeMap<Key, [Half; 2]>,
    /// Retransmitted and sent bytes, by process.
    bytes: BTreeMap<String, (u64, u64)>,
    /// Byte counts as above, by process and window.
    windows: BTreeMap<(String, u64), (u64, u64)>,
    /// 95th percentile of the queueing delay after the warm-up, microseconds, by process: that of
    /// the link with the largest. The emulated and simulated links report it themselves.
    delay_p95_us: BTreeMap<String, f64>,
    /// Completion times of the transfers of the smallest class, microseconds, by process.
    small_us: BTreeMap<String, Sketch>,
    /// Completion times of all transfers that count, microseconds; of those that were cut off, the
    /// time until then.
    took_us: Sketch,
    /// Whether the host was too busy for the run.
    is_void: bool,
}

impl Block {
    fn new(run: &Run, scenario: &Scenario, pairs: &[MixPair]) -> Block {
        let is_void = run.summary.verdict == Verdict::Invalid;
        let mut block = Block { is_void, ..Block::default() };
        let (sizes, view) = (size_classes(), run.view(scenario));
        let window = window(scenario).as_nanos().max(1);
        let counted = Counted::of(scenario);
        for pair in pairs {
            let links =
                view.links.iter().filter(|link| pair.links.iter().any(|name| name == link.name));
            let tails = links.filter_map(|link| {
                let mut delays = Sketch::default();
                let counted =
                    link.samples.iter().filter(|row| row.time_ns >= view.warmup.as_nanos());
                // A sketch has no zero.
                counted.for_each(|row| delays.add(row.queue_delay_ns.max(1) as f64 / 1e3));
                tail(&delays)
            });
            let longest = tails.max_by(f64::total_cmp);
            block.delay_p95_us.extend(longest.map(|delay| (pair.name.clone(), delay)));
        }
        for flow in &view.flows {
            let side = |pair: &&MixPair| {
                [&pair.control_flow, &pair.test_flow].contains(&&flow.record.name)
            };
            let Some(pair) = pairs.iter().find(side) else { continue };
            let half = usize::from(flow.record.name == pair.test_flow);
            let end_ns = flow.record.end_ns;
            let begin = flow.record.start_ns.saturating_add(counted.after.as_nanos());
            let begins = begin..=end_ns.saturating_sub(counted.tail.as_nanos());
            for row in &flow.transfers {
                let end = row.start_ns + row.completion_ns.unwrap_or(0);
                let at = (pair.name.clone(), end / window);
                let sums = [
                    block.bytes.entry(pair.name.clone()).or_default(),
                    block.windows.entry(at).or_default(),
                ];
                for (again, sent) in sums {
                    *again += row.retransmitted_bytes;
                    *sent += row.sent_bytes;
                }
                let class = sizes.iter().position(|class| class.sizes.contains(row.size_bytes));
                let counts = row.size_bytes > 0 && begins.contains(&row.start_ns);
                let Some(class) = class.filter(|_| counts) else { continue };
                let until_end = end_ns - row.start_ns;
                let took_ns = row.completion_ns.unwrap_or(until_end).max(1) as f64;
                block.took_us.add(took_ns / 1e3);
                if class == 0 {
                    let times = block.small_us.entry(pair.name.clone()).or_default();
                    times.add(took_ns / 1e3);
                }
                let one = Half {
                    count: 1,
                    unfinished: u64::from(row.completion_ns.is_none()),
                    ln_bps: (row.size_bytes as f64 * 8e9 / took_ns).ln(),
                };
                let sum = &mut block.classes.entry((pair.name.clone(), class)).or_default()[half];
                *sum = sum.merged(one);
            }
        }
        block
    }

    fn halves(&self, key: &Key) -> [Half; 2] {
        self.classes.get(key).copied().unwrap_or_default()
    }

    /// Both halves.
    fn whole(&self, key: &Key) -> Half {
        let [a, b] = self.halves(key);
        a.merged(b)
    }

    /// Mean over both halves; `None` without a transfer.
    fn mean(&self, key: &Key) -> Option<f64> {
        self.whole(key).mean()
    }

    /// Costs for guards: the unfinished transfers of this class, the others of its process.
    fn costs(&self, key: &Key) -> Costs {
        let (process, whole) = (key.0.as_str(), self.whole(key));
        let unfinished = (whole.count > 0).then(|| whole.unfinished as f64 / whole.count as f64);
        let (again, sent) = self.bytes.get(process).copied().unwrap_or_default();
        let retransmitted = (sent > 0).then(|| again as f64 / sent as f64);
        let delay = self.delay_p95_us.get(process).copied();
        Costs::new(unfinished, retransmitted, delay, self.small_us.get(process).and_then(tail))
    }
}

/// The percentile of guards; `None` with too few values.
fn tail(values: &Sketch) -> Option<f64> {
    values.interpolated(TAIL).filter(|_| values.count() >= TAIL_MIN)
}

fn window(scenario: &Scenario) -> Time {
    WINDOW.min(Time::from_nanos(scenario.duration.as_nanos() / 4))
}

/// One scenario with its blocks.
struct Group {
    pairs: Vec<MixPair>,
    blocks: BTreeMap<Which, Block>,
}

impl Lab {
    /// Rehearses an experiment over these scenarios; each stands for a group of clients.
    ///
    /// # Errors
    /// An error in a scenario, a [`RehearseError`], a ground that cannot run it or does not exist,
    /// or the first failure of a run. Returns `None` if it was stopped before any result.
    pub fn rehearse(
        &self,
        texts: &[ScenarioText],
        settings: &RehearseSettings,
    ) -> Result<Option<Rehearsed>, Error> {
        let ground = self.grounds.get(&settings.on)?;
        ground.check_host()?;
        let mut groups = Vec::new();
        let mut runs: Vec<(usize, Planned, Scenario)> = Vec::new();
        let mut first = None;
        for (number, text) in texts.iter().enumerate() {
            let scenario = text.scenario(&settings.set)?;
            let (processes, pairs) =
                Questions::of(&scenario).into_pairs(settings.in_use.as_deref());
            if pairs.is_empty() {
                return Err(RehearseError::NoPair(text.name.clone()).into());
            }
            ground.check(&scenario)?;
            let from = settings.seed.unwrap_or(scenario.seed);
            for planned in plan(settings, from, number) {
                let seed = seed(repeat_seed(from, planned.seed));
                let set: Vec<Override> = settings.set.iter().cloned().chain([seed]).collect();
                let scenario = text.scenario(&set)?;
                let scenario = match planned.treatment {
                    Treatment::Control => under(&scenario, &processes, 1),
                    Treatment::Test => under(&scenario, &processes, 0),
                    Treatment::Half => scenario,
                };
                runs.push((number, planned, scenario));
            }
            groups.push(Group { pairs, blocks: BTreeMap::new() });
            first.get_or_insert(scenario);
        }
        // Runs in real time take place in this order, the others start in it; so a stop leaves whole
        // triples. Within one the order is drawn, since a host or a path may change meanwhile.
        runs.sort_by_key(|(_, planned, _)| planned.turn());
        let loads: Vec<Load> =
            runs.iter().map(|(_, _, scenario)| Load::of(scenario, ground)).collect();
        let mut order = costliest_first(&loads);
        order.sort_by_key(|index| runs[*index].1.turn());
        let blocks = self.side_by_side(&loads, order, |index, control| {
            let (group, _, scenario) = &runs[index];
            let run = execute(&Job::new(scenario, ground), control)?;
            let cut = run.records.interrupted;
            Ok((!cut).then(|| Block::new(&run, scenario, &groups[*group].pairs)))
        })?;
        for ((group, planned, _), block) in runs.iter().zip(blocks) {
            groups[*group].blocks.extend(block.map(|block| (planned.which, block)));
        }
        let Some(first) = first else { return Ok(None) };
        judge(&groups, settings, &first)
    }
}

/// The runs of one scenario. The order that is drawn for a triple decides which seed each treatment
/// gets, and which is first; the runs of a pair that measures the truth have one seed.
fn plan(settings: &RehearseSettings, seed: u64, group: usize) -> Vec<Planned> {
    let (design, group) = (Design::new(seed), group.to_string());
    let mut all = Vec::new();
    for number in 0..settings.triples {
        for (place, treatment) in (0..).zip(design.order(&group, number)) {
            let which = Which::Triple(number, treatment);
            all.push(Planned { which, place, seed: number * 3 + place, treatment });
        }
    }
    let mut next = settings.triples * 3;
    for number in 0..settings.calibration {
        for side in 0..2 {
            let (which, place) = (Which::Calibration(number, side), u64::from(side));
            let (seed, treatment) = (next + number * 2 + place, Treatment::Control);
            all.push(Planned { which, place, seed, treatment });
        }
    }
    next += settings.calibration * 2;
    for number in 0..settings.truth {
        let order = design.order(&group, settings.triples + number);
        let pair = order.into_iter().filter(|treatment| *treatment != Treatment::Half);
        for (place, treatment) in (0..).zip(pair) {
            let which = Which::Truth(number, treatment);
            all.push(Planned { which, place, seed: next + number, treatment });
        }
    }
    all
}

/// Judges the results; `None` unless all runs before the first triple, and that triple, are
/// complete.
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
    let done = (0..settings.triples).take_while(|number| whole(*number)).count() as u64;
    if done == 0 || !is_calibrated {
        return Ok(None);
    }
    let of_triple =
        |number: u64, which: &Which| matches!(which, Which::Triple(of, _) if *of == number);
    let is_sound = |number: &u64| {
        let mut blocks = groups.iter().flat_map(|group| &group.blocks);
        !blocks.any(|(which, block)| of_triple(*number, which) && block.is_void)
    };
    let triples: Vec<u64> = (0..done).filter(is_sound).collect();
    let triples = triples.as_slice();
    if triples.is_empty() {
        return Err(RehearseError::Busy.into());
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
        keys.into_iter().partition(|(key, _)| transfers(groups, key) >= TRANSFERS_MIN);
    if judged.is_empty() {
        return Err(RehearseError::TooFew.into());
    }
    let comparisons = judged.len();
    let left_out = left_out.into_iter().filter(|(key, _)| transfers(groups, key) > 0.0);
    let (block_too_short, burn_in_too_short) = too_short(groups, first);
    Ok(Some(Rehearsed {
        seed: settings.seed.unwrap_or(first.seed),
        triples: done,
        void: done - triples.len() as u64,
        block_too_short,
        burn_in_too_short,
        block: first.duration,
        burn_in: first.warmup,
        tail: Counted::of(first).tail,
        left_out: left_out.map(|(key, _)| format!("{}, {}", key.0, sizes(&key))).collect(),
        hard_stop: hard_stop(groups, triples, window(first)),
        classes: judged
            .into_iter()
            .map(|(key, controllers)| {
                let (trial, left_out) = trial(groups, &key, settings, triples, comparisons);
                RehearsedClass {
                    transfers: transfers(groups, &key),
                    trial,
                    left_out,
                    truth: truth(groups, &key),
                    sizes: sizes(&key),
                    traffic: key.0,
                    controllers,
                }
            })
            .collect(),
    }))
}

fn sizes(key: &Key) -> &'static str {
    size_classes()[key.1].name
}

/// The groups that have this traffic.
fn with<'g>(groups: &'g [Group], key: &Key) -> impl Iterator<Item = &'g Group> {
    let process = key.0.clone();
    groups.iter().filter(move |group| group.pairs.iter().any(|pair| pair.name == process))
}

/// Mean number of transfers in a block before the first triple. Which classes are judged, and so how
/// much evidence each needs, depends on these blocks alone: what a verdict says after a triple
/// stands, whatever follows.
fn transfers(groups: &[Group], key: &Key) -> f64 {
    let blocks = with(groups, key).flat_map(|group| &group.blocks);
    let sound =
        blocks.filter(|(which, block)| matches!(which, Which::Calibration(..)) && !block.is_void);
    let counts: Vec<f64> = sound.map(|(_, block)| block.whole(key).count as f64).collect();
    counts.iter().sum::<f64>() / counts.len().max(1) as f64
}

/// Cells of a triple, and the numbers of transfers begun in the halves of its third block.
fn cells(group: &Group, key: &Key, triple: u64) -> Option<(Cells, [u64; 2])> {
    let block = |treatment| group.blocks.get(&Which::Triple(triple, treatment));
    let [control, test, half] = [Treatment::Control, Treatment::Test, Treatment::Half].map(block);
    let (control, test, half) = (control?, test?, half?);
    let [a, b] = half.halves(key);
    let cells = Cells {
        control: control.mean(key)?,
        test: test.mean(key)?,
        halves: [a.mean()?, b.mean()?],
        // Blocks are drawn independently of each other: nothing was known before.
        forecast: None,
        worse: test.costs(key).worse_than(&control.costs(key)),
        lost: 0.0,
    };
    Some((cells, [a.count, b.count]))
}

/// Builds the trial, and counts the triples that it leaves out because a group lacks a transfer in a
/// cell. Pairs of blocks under A provide the spread of differences, and that of the guarded costs.
fn trial(
    groups: &[Group],
    key: &Key,
    settings: &RehearseSettings,
    triples: &[u64],
    comparisons: usize,
) -> (Trial, u64) {
    let (mut speeds, mut costs) = (Vec::new(), Vec::new());
    for group in with(groups, key) {
        for number in 0..settings.calibration {
            let of = |side| group.blocks.get(&Which::Calibration(number, side));
            let (Some(one), Some(other)) = (of(0), of(1)) else { continue };
            if one.is_void || other.is_void {
                continue;
            }
            speeds.extend(one.mean(key).zip(other.mean(key)).map(|(one, other)| one - other));
            costs.push([one, other].map(|block| block.costs(key)));
        }
    }
    let squares: f64 = speeds.iter().map(|value: &f64| value * value).sum();
    let mut trial = Trial::new(TrialSettings {
        level: LEVEL,
        comparisons,
        planned: settings.triples as usize,
        groups: with(groups, key).count(),
        scale: (squares / speeds.len().max(1) as f64).sqrt(),
        guards: Guards::new(&costs, &settings.accepts),
        covariate: Covariate::default(),
    });
    let mut left_out = 0;
    for number in triples {
        let each: Option<Vec<_>> =
            with(groups, key).map(|group| cells(group, key, *number)).collect();
        let Some(each) = each else {
            left_out += 1;
            continue;
        };
        let (row, begun): (Vec<Cells>, Vec<[u64; 2]>) = each.into_iter().unzip();
        let halves = begun.iter().fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        trial.push(&row, &[halves]);
    }
    (trial, left_out)
}

/// Block and burn-in that the transfers under A need, each if the scenario's is shorter. On a live
/// host blocks last 10 min at least; here the transfers alone decide, since no block affects the
/// next.
fn too_short(groups: &[Group], first: &Scenario) -> (Option<Time>, Option<Time>) {
    let mut took = Sketch::default();
    for (which, block) in groups.iter().flat_map(|group| &group.blocks) {
        if matches!(which, Which::Calibration(..)) {
            took.merge(&block.took_us);
        }
    }
    let needed = |part, times: f64| {
        let us = times * took.percentile(part)?;
        Some(Time::from_nanos((us * 1e3) as u64))
    };
    (
        needed(TAIL, 3.0).filter(|block| first.duration < *block),
        needed(0.9, 1.0).filter(|burn_in| first.warmup < *burn_in),
    )
}

/// Measures the true effect, from runs with the same arrivals under both controllers. A transfer that
/// finishes in neither is cut off at the same time in both, so it contributes no difference.
fn truth(groups: &[Group], key: &Key) -> Option<Interval> {
    let mut found = Vec::new();
    for group in with(groups, key) {
        for which in group.blocks.keys() {
            let Which::Truth(number, Treatment::Control) = which else { continue };
            let of = |treatment| {
                group.blocks.get(&Which::Truth(*number, treatment)).filter(|block| !block.is_void)
            };
            let both = of(Treatment::Test).zip(of(Treatment::Control));
            let means = both.and_then(|(test, control)| test.mean(key).zip(control.mean(key)));
            found.extend(means.map(|(test, control)| test - control));
        }
    }
    Interval::new(&found)
}

/// The first block under B with two consecutive windows that retransmit far more than A.
fn hard_stop(groups: &[Group], triples: &[u64], window: Time) -> Option<(u64, Time)> {
    for number in triples {
        for group in groups {
            let test = group.blocks.get(&Which::Triple(*number, Treatment::Test))?;
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

/// Retransmitted over sent bytes in the calibration blocks.
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

#[cfg(test)]
mod tests;
