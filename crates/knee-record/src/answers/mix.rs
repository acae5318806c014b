//! Which controller suits which traffic: compares all transfers under one controller with all under
//! another, for the same arrivals and sizes, by size class.

mod words;

use super::transfers::joined;
use super::{judged, repeats_in_words};
use crate::measures::TransferValue;
use crate::sections::{SizeClass, size_classes};
use crate::view::{RunView, Window};
use crate::{OfferedLoad, TransferRecord, Unit, capitalised, count, listed, offered_in_words};
use knee_scenario::Statistic;
use knee_units::Time;
use knee_units::statistics::{Advice, Better, Judgement, Paired, WORTH_NAMING, simultaneous};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Mean number of transfers per seed below which a size class is merged with its neighbour.
const TRANSFERS_MIN: f64 = 5.0;
/// Part of the transfers of a class from which on the sentence says that they were cut off.
const MANY_CUT_OFF: f64 = 0.1;
/// Largest difference between the arrivals of two mixes of one process.
const APART_MAX_NS: u64 = 1_000_000;
/// Number of size classes.
const CLASSES: usize = 5;

/// Two mixes of one process over the same path: the one under test, and the
/// control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixPair {
    /// Name of the process.
    pub name: String,
    /// Group of flows whose controller is under test.
    pub test_flow: String,
    /// The other group.
    pub control_flow: String,
    /// The controller under test.
    pub test: String,
    /// The other controller.
    pub control: String,
    /// All groups of the process, three or more if it has further controllers
    /// under test; empty if there are only the two above.
    #[serde(default)]
    pub flows: Vec<String>,
    /// Links that both groups pass.
    pub links: Vec<String>,
}

impl MixPair {
    /// All groups of the process.
    pub(crate) fn all_flows(&self) -> Vec<&str> {
        match self.flows.is_empty() {
            true => vec![&self.test_flow, &self.control_flow],
            false => self.flows.iter().map(String::as_str).collect(),
        }
    }
}

/// Results of one seed for one pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MixSeed {
    /// All transfers under test against all under control.
    classes: [Tally; CLASSES],
    /// One run with half of the transfers under each controller: the two halves.
    split: [Tally; CLASSES],
    /// Queueing delay of the longest queue on the path, 95th percentile, seconds.
    queue_s: [f64; 2],
}

/// Sums over the transfers of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    /// Transfers that finished on both sides.
    both: Sums,
    /// Those that finished on one side; where they were cut off, with the time until the end, a
    /// lower bound of the completion time.
    one: Sums,
    /// Transfers that finished on each side.
    finished: [u64; 2],
    /// Transfers that the end of the run cut off.
    cut_off: [u64; 2],
    sent_bytes: [u64; 2],
    again_bytes: [u64; 2],
}

/// Sums over pairs of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    pairs: u64,
    completion_s: [f64; 2],
    throughput_bps: [f64; 2],
}

impl Sums {
    fn merged(self, other: Sums) -> Sums {
        let sum = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        Sums {
            pairs: self.pairs + other.pairs,
            completion_s: sum(self.completion_s, other.completion_s),
            throughput_bps: sum(self.throughput_bps, other.throughput_bps),
        }
    }
}

/// A transfer and the end of its flow.
#[derive(Clone, Copy)]
struct Row<'r> {
    record: &'r TransferRecord,
    end_ns: u64,
}

impl Row<'_> {
    fn finished(&self) -> bool {
        TransferValue::Completion.of(self.record).is_some()
    }

    /// Returns the record, as if a transfer that was cut off had finished at the end.
    fn at_most(&self) -> TransferRecord {
        let until_end = self.end_ns.saturating_sub(self.record.start_ns).max(1);
        let completion_ns = self.record.completion_ns.filter(|time| *time > 0);
        TransferRecord { completion_ns: completion_ns.or(Some(until_end)), ..*self.record }
    }
}

impl MixSeed {
    /// Compares the two halves of `halves`, the run as configured, and the two runs of `all`, in
    /// which every transfer is under test or under control.
    pub fn new(pair: &MixPair, halves: &RunView<'_>, all: [&RunView<'_>; 2]) -> MixSeed {
        let flows = [pair.test_flow.as_str(), pair.control_flow.as_str()];
        let mut seed = MixSeed::default();
        for flow in pair.all_flows() {
            // Every group of the process: each of these runs has a single controller.
            let [test, control] = all.map(|run| transfers(run, flow));
            add(&mut seed.classes, &test, &control);
        }
        let [test, control] = flows.map(|flow| transfers(halves, flow));
        add(&mut seed.split, &test, &control);
        seed.queue_s = all.map(|run| longest_queue_s(run, &pair.links));
        seed
    }
}

/// Returns the transfers of a group that begin after its warm-up, by flow and number.
fn transfers<'r>(run: &'r RunView<'_>, group: &str) -> BTreeMap<(u32, u32), Row<'r>> {
    let mut found = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| flow.record.name == group) {
        let begin = Time::from_nanos(flow.record.start_ns).saturating_add(run.warmup);
        let counts = flow.transfers.iter().filter(|row| row.start_ns >= begin.as_nanos());
        let end_ns = flow.record.end_ns;
        found.extend(
            counts.map(|row| ((flow.record.index, row.number), Row { record: row, end_ns })),
        );
    }
    found
}

fn add(
    classes: &mut [Tally; CLASSES],
    test: &BTreeMap<(u32, u32), Row<'_>>,
    control: &BTreeMap<(u32, u32), Row<'_>>,
) {
    let sizes = size_classes();
    for (key, ours) in test {
        // Transfers of the same process have the same size and arrive together, unless they share
        // the lines of a log.
        let size = ours.record.size_bytes;
        let is_pair = |row: &&Row<'_>| {
            let apart_ns = row.record.start_ns.abs_diff(ours.record.start_ns);
            row.record.size_bytes == size && apart_ns <= APART_MAX_NS
        };
        let Some(theirs) = control.get(key).filter(is_pair) else { continue };
        let class = sizes.iter().position(|class| class.sizes.contains(size));
        if let Some(tally) = class.and_then(|class| classes.get_mut(class)) {
            tally.add([*ours, *theirs]);
        }
    }
}

/// Returns the largest 95th percentile of the queueing delay among `links`, seconds.
fn longest_queue_s(run: &RunView<'_>, links: &[String]) -> f64 {
    let delays = links.iter().filter_map(|link| {
        let found = run.links.iter().find(|view| view.name == link)?;
        let whole = Window::default();
        let spread = found.over_time(run, whole, |row| row.queue_delay_ns as f64 / 1e9).ok()?;
        Some(spread.statistic(Statistic::P95))
    });
    delays.fold(0.0, f64::max)
}

impl Tally {
    fn add(&mut self, rows: [Row<'_>; 2]) {
        let finished = rows.map(|row| row.finished());
        let values = [TransferValue::Completion, TransferValue::Throughput]
            .map(|value| rows.map(|row| value.of(&row.at_most()).unwrap_or_default()));
        let [completion_s, throughput_bps] = values;
        let pair = Sums { pairs: 1, completion_s, throughput_bps };
        match finished {
            [true, true] => self.both = self.both.merged(pair),
            [false, false] => {}
            _ => self.one = self.one.merged(pair),
        }
        for (side, row) in rows.iter().enumerate() {
            self.finished[side] += u64::from(finished[side]);
            self.cut_off[side] += u64::from(row.record.completion_ns.is_none());
            self.sent_bytes[side] += row.record.sent_bytes;
            self.again_bytes[side] += row.record.retransmitted_bytes;
        }
    }

    fn merged(self, other: Tally) -> Tally {
        let whole = |a: [u64; 2], b: [u64; 2]| [a[0] + b[0], a[1] + b[1]];
        Tally {
            both: self.both.merged(other.both),
            one: self.one.merged(other.one),
            finished: whole(self.finished, other.finished),
            cut_off: whole(self.cut_off, other.cut_off),
            sent_bytes: whole(self.sent_bytes, other.sent_bytes),
            again_bytes: whole(self.again_bytes, other.again_bytes),
        }
    }

    /// Returns the pairs that finished on both sides, or on at least one.
    fn sums(&self, with_one: bool) -> Sums {
        if with_one { self.both.merged(self.one) } else { self.both }
    }

    /// Number of transfers on each side.
    fn began(&self) -> u64 {
        self.finished[0] + self.cut_off[0]
    }
}

/// First and last size class of a row of the answer.
type Range = (usize, usize);
/// All size classes.
const ALL: Range = (0, CLASSES - 1);

/// The answer to which controller suits which traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixAnswer {
    /// The pairs that were compared.
    pub pairs: Vec<MixPair>,
    /// One row per pair and size class.
    pub classes: Vec<MixClass>,
    /// Delay of the longest queue on the path of each pair, 95th percentile,
    /// seconds: the delay that other traffic meets there, with all under test
    /// and with all under control; mean over the seeds.
    pub queue_s: Vec<[f64; 2]>,
    /// How far the mean time of each pair's transfers differs from seed to seed of
    /// the scenario itself: standard deviation over mean; null if it is not
    /// known.
    #[serde(default)]
    pub noise: Vec<Option<f64>>,
    /// Pairs on whose path a link is overloaded: there is no verdict about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overloaded: Vec<String>,
    /// Advice for each pair, with the evidence for it.
    pub sentences: Vec<String>,
}

/// Comparison of one size class of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixClass {
    /// Name of the pair.
    pub pair: String,
    /// `under 100 kB`, `1 to 3 MB`.
    pub sizes: String,
    /// Smallest size; null if unbounded.
    pub at_least_bytes: Option<u64>,
    /// All sizes are below this; null if unbounded.
    pub below_bytes: Option<u64>,
    /// Transfers that finished on both sides, over all seeds.
    pub transfers: u64,
    /// Transfers that finished on one side only and are compared as well: on the
    /// other side with the time until the end of the run. Zero unless one side
    /// finishes clearly more, or none finished on both.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub on_one_side: u64,
    /// Transfers that the end of the run cut off, under test and under control.
    pub cut_off: [u64; 2],
    /// Transfers that finished, test over control, in pairs of the same seed;
    /// present if one side finishes clearly more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Paired>,
    /// Whether throughput is compared instead of completion time.
    pub throughput: bool,
    /// Mean of the transfers compared, under test and under control, bit/s or
    /// seconds: the geometric mean over the seeds, so that one over the other is
    /// the ratio.
    pub means: [f64; 2],
    /// Test over control, in pairs of the same seed; probability and interval
    /// are corrected for all classes together.
    pub compared: Paired,
    /// How the test compares with the control; `undecided` also if `compared`
    /// favours one and `finished` the other.
    pub effect: Judgement,
    /// Repeats that would decide a difference of the size seen; absent unless it
    /// is undecided, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// Bytes retransmitted over bytes sent, under test and under control.
    pub retransmitted: [f64; 2],
    /// Half of the transfers under each controller in one run, test over
    /// control: shows which one takes bandwidth from the other.
    pub split: Option<Paired>,
}

impl MixAnswer {
    /// Summarises the seeds; each `seeds[k]` is in the order of `pairs`. Returns `None` if there
    /// are no transfers.
    pub fn new(
        pairs: Vec<MixPair>,
        seeds: &[Vec<MixSeed>],
        load: &[OfferedLoad],
    ) -> Option<MixAnswer> {
        let of_pair =
            |at: usize| -> Vec<&MixSeed> { seeds.iter().filter_map(|seed| seed.get(at)).collect() };
        let began: Vec<u64> =
            (0..pairs.len()).map(|at| over(&of_pair(at), ALL, classes_of).began()).collect();
        if began.iter().all(|began| *began == 0) {
            return None;
        }
        let mut classes: Vec<MixClass> = Vec::new();
        let ranges = (0..pairs.len()).flat_map(|at| {
            let ranges = ranges_of(&of_pair(at));
            ranges.into_iter().map(move |range| (at, range))
        });
        let ranges: Vec<(usize, Range)> = ranges.collect();
        let finished = clearly_more(ranges.iter().map(|(at, range)| (of_pair(*at), *range)));
        for ((at, range), finished) in ranges.into_iter().zip(finished) {
            classes.extend(row(&pairs[at], &of_pair(at), range, finished));
        }
        let all = classes.iter_mut().map(|class: &mut MixClass| &mut class.compared);
        let advice = Advice::together(simultaneous(all));
        classes.iter_mut().for_each(|class| class.effect = joined(class.by_value(), class.more()));
        let queue_s = (0..pairs.len()).map(|at| mean_queues(seeds, at)).collect();
        let overloads: Vec<Option<String>> =
            pairs.iter().map(|pair| overload(pair, load)).collect();
        let over = pairs.iter().zip(&overloads).filter(|(_, overload)| overload.is_some());
        let overloaded: Vec<String> = over.map(|(pair, _)| pair.name.clone()).collect();
        for class in classes.iter_mut().filter(|class| overloaded.contains(&class.pair)) {
            class.effect = Judgement::Overloaded;
        }
        let noise = (0..pairs.len()).map(|at| noise(&of_pair(at))).collect();
        let sentences = Vec::new();
        for class in classes.iter_mut().filter(|class| class.effect == Judgement::Undecided) {
            class.repeats = advice.to_decide(&class.compared, WORTH_NAMING);
        }
        let mut answer = MixAnswer { pairs, classes, queue_s, noise, overloaded, sentences };
        answer.sentences = began
            .iter()
            .zip(overloads)
            .enumerate()
            .map(|(at, (began, overload))| match overload {
                Some(overload) => answer.overloaded_words(at, seeds.len(), &overload),
                None => answer.said(at, seeds.len(), *began),
            })
            .collect();
        Some(answer)
    }

    /// Returns what the ratios are of: `bbr over cubic`.
    pub fn over(&self) -> String {
        let names = |pair: &MixPair| format!("{} over {}", pair.test, pair.control);
        match self.pairs.split_first() {
            Some((first, rest)) if rest.iter().all(|pair| names(pair) == names(first)) => {
                names(first)
            }
            _ => "the controller under test over the control".to_string(),
        }
    }

    /// Returns the sentences about pairs without a verdict, which come before the figures, and those
    /// about the others, which come after them.
    pub fn before_and_after(&self) -> [Vec<&str>; 2] {
        let said = self.pairs.iter().zip(&self.sentences);
        let (before, after): (Vec<_>, Vec<_>) =
            said.partition(|(pair, _)| self.overloaded.contains(&pair.name));
        [before, after]
            .map(|said| said.into_iter().map(|(_, sentence)| sentence.as_str()).collect())
    }

    /// Returns the sentence about a pair on an overloaded path: the load, and what was carried.
    fn overloaded_words(&self, at: usize, seeds: usize, overload: &str) -> String {
        let pair = &self.pairs[at];
        let rows: Vec<&MixClass> =
            self.classes.iter().filter(|class| class.pair == pair.name).collect();
        let cut_off: String = rows.iter().map(|row| row.cut_off_words(pair)).collect();
        format!(
            "{}: no answer: overloaded, {overload}. Transfers arrive faster than they can leave \
             and pile up until the end of the run, so its length decides which of them finish. \
             Fewer arrivals (a longer arrival_interval, a lower speed of a log) or a faster link \
             are needed for an answer; shown is what was carried.{cut_off}{} This is based on \
             {seeds} seeds.",
            pair.name,
            self.cost(at, &rows)
        )
    }

    /// Returns the sentence about a pair with `began` transfers on each side.
    fn said(&self, at: usize, seeds: usize, began: u64) -> String {
        let MixPair { name, test, control, .. } = &self.pairs[at];
        match (self.classes.iter().any(|class| class.pair == *name), began) {
            (true, _) => self.advice(at, seeds),
            (false, 0) => format!("{name}: no transfer begins after the warm-up."),
            (false, _) => format!(
                "{name}: the run is too short to tell: none of {began} transfers finishes within \
                 it, neither under {test} nor under {control}. This is based on {seeds} seeds."
            ),
        }
    }

    /// Returns the advice for a pair and the evidence for it.
    fn advice(&self, at: usize, seeds: usize) -> String {
        let pair = &self.pairs[at];
        let rows: Vec<&MixClass> =
            self.classes.iter().filter(|class| class.pair == pair.name).collect();
        let named = |effect: Judgement| -> String {
            let rows = rows.iter().filter(|row| row.effect == effect && !row.contradicts());
            listed(&rows.map(|row| row.in_words()).collect::<Vec<_>>())
        };
        let [better, worse] = [Judgement::Better, Judgement::Worse].map(named);
        let [alike, undecided] = [Judgement::Alike, Judgement::Undecided].map(named);
        let MixPair { test, control, .. } = pair;
        let decided = !better.is_empty() || !worse.is_empty();
        let what = match (better.is_empty(), worse.is_empty()) {
            (true, true) if !alike.is_empty() => {
                format!("{test} and {control} are alike for {alike}")
            }
            (true, true) if !undecided.is_empty() => {
                format!("undecided between {test} and {control} for {undecided}")
            }
            (true, true) => format!("neither {test} nor {control} is better in every respect"),
            (false, true) => format!("use {test}: it is better for {better}"),
            (true, false) => format!("keep {control}: {test} is worse for {worse}"),
            (false, false) => {
                format!("it depends on the size: {test} is better for {better}, worse for {worse}")
            }
        };
        let mut rest = String::new();
        if decided && !alike.is_empty() {
            rest += &format!(" Alike for {alike}.");
        }
        if (decided || !alike.is_empty()) && !undecided.is_empty() {
            rest += &format!(" Undecided for {undecided}.");
        }
        if !undecided.is_empty() {
            let open = rows.iter().filter(|row| row.effect == Judgement::Undecided);
            let repeats = repeats_in_words(open.map(|row| row.repeats));
            rest += &format!(" {}.", capitalised(&repeats));
        }
        let cut_off: String = rows.iter().map(|row| row.cut_off_words(pair)).collect();
        let transfers = count(rows.iter().map(|row| row.number()).sum());
        format!(
            "{}: {what}.{rest}{cut_off}{} This is based on {seeds} seeds, all {test} \
             against all {control} with the same arrivals and sizes: {transfers} transfers on \
             each side.",
            pair.name,
            self.cost(at, &rows)
        )
    }

    /// Returns what the controller under test costs: retransmissions, and queueing for other
    /// traffic.
    fn cost(&self, at: usize, rows: &[&MixClass]) -> String {
        let MixPair { test, control, .. } = &self.pairs[at];
        let most = rows.iter().max_by(|a, b| {
            let more = |row: &MixClass| row.retransmitted[0] - row.retransmitted[1];
            more(a).abs().total_cmp(&more(b).abs())
        });
        let Some(most) = most else { return String::new() };
        let [again, theirs] = most.retransmitted.map(|part| Unit::Fraction.show(round_part(part)));
        let [queue, their_queue] = self.queue_s[at].map(|delay| Unit::Seconds.show(delay));
        format!(
            " {test} retransmits {again} ({}), {control} {theirs}; the longest queue that other \
             traffic meets on the path is {queue} against {their_queue} (95th percentile).",
            most.sizes
        )
    }
}

/// Rounds a fraction to a hundredth of a per cent.
fn round_part(part: f64) -> f64 {
    (part * 1e4).round() / 1e4
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn mean_queues(seeds: &[Vec<MixSeed>], at: usize) -> [f64; 2] {
    [0, 1].map(|side| {
        let values: Vec<f64> =
            seeds.iter().filter_map(|seed| Some(seed.get(at)?.queue_s[side])).collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    })
}

/// Returns how far the mean time of transfers differs between seeds of the scenario itself.
fn noise(seeds: &[&MixSeed]) -> Option<f64> {
    let each = seeds.iter().map(|seed| over(&[*seed], ALL, |seed| &seed.split).both);
    let each = each.filter(|sums| sums.pairs > 0);
    let means: Vec<f64> =
        each.map(|sums| sums.completion_s.iter().sum::<f64>() / (2 * sums.pairs) as f64).collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let squares: f64 = means.iter().map(|value| (value - mean).powi(2)).sum();
    (means.len() > 1 && mean > 0.0).then(|| (squares / (count - 1.0)).sqrt() / mean)
}

/// Returns what overloads the links of a pair, in words.
fn overload(pair: &MixPair, load: &[OfferedLoad]) -> Option<String> {
    let over = load.iter().filter(|load| load.is_overloaded() && pair.links.contains(&load.link));
    offered_in_words(over)
}

/// Returns the size classes of a pair, merged where one has too few transfers.
fn ranges_of(seeds: &[&MixSeed]) -> Vec<Range> {
    let all: Vec<Tally> =
        (0..CLASSES).map(|class| over(seeds, (class, class), classes_of)).collect();
    ranges(&all, TRANSFERS_MIN * seeds.len() as f64)
}

fn over(seeds: &[&MixSeed], (first, last): Range, of: fn(&MixSeed) -> &[Tally; CLASSES]) -> Tally {
    let tallies = seeds.iter().flat_map(|seed| &of(seed)[first..=last]);
    tallies.fold(Tally::default(), |sum, tally| sum.merged(*tally))
}

fn classes_of(seed: &MixSeed) -> &[Tally; CLASSES] {
    &seed.classes
}

/// Compares the numbers of transfers that finish, for each range of a pair's sizes; `None` if
/// neither side clearly finishes more.
fn clearly_more<'s>(
    ranges: impl Iterator<Item = (Vec<&'s MixSeed>, Range)>,
) -> Vec<Option<Paired>> {
    let mut compared: Vec<Option<Paired>> = ranges
        .map(|(seeds, range)| {
            let each = seeds.iter().map(|seed| over(&[*seed], range, classes_of));
            let each = each.filter(|tally| tally.began() > 0);
            let counts = each.map(|tally| tally.finished.map(|count| count as f64).into());
            Paired::new(&counts.collect::<Vec<(f64, f64)>>())
        })
        .collect();
    simultaneous(compared.iter_mut().flatten());
    let clear = |compared: &Paired| judged(compared, Better::More).differs();
    compared.into_iter().map(|compared| compared.filter(clear)).collect()
}

/// Merges neighbouring size classes until each has `enough` transfers that finished; classes
/// compared by the same value are merged first.
fn ranges(all: &[Tally], enough: f64) -> Vec<Range> {
    let split = size_classes().iter().position(SizeClass::is_large);
    let mut ranges: Vec<Range> = (0..all.len())
        .filter(|class| all[*class].began() > 0)
        .map(|class| (class, class))
        .collect();
    let pairs = |(first, last): Range| -> f64 {
        all[first..=last].iter().map(|tally| tally.sums(true).pairs as f64).sum()
    };
    let large = |range: Range| split.is_some_and(|split| range.0 >= split);
    for beyond in [false, true] {
        while let Some(poor) = ranges.iter().position(|range| pairs(*range) < enough) {
            let allowed = |other: usize| beyond || large(ranges[other]) == large(ranges[poor]);
            let before = poor.checked_sub(1).filter(|other| allowed(*other));
            let after = Some(poor + 1).filter(|other| *other < ranges.len() && allowed(*other));
            // Merge with the smaller neighbour, to keep the classes as fine as possible.
            let few = |other: &usize| pairs(ranges[*other]) as u64;
            let Some(other) = before.into_iter().chain(after).min_by_key(few) else { break };
            let (low, high) = (poor.min(other), poor.max(other));
            ranges[low] = (ranges[low].0, ranges[high].1);
            ranges.remove(high);
        }
    }
    ranges
}

fn row(
    pair: &MixPair,
    seeds: &[&MixSeed],
    range: Range,
    finished: Option<Paired>,
) -> Option<MixClass> {
    let sizes = size_classes();
    let (first, last) = (sizes[range.0].sizes, sizes[range.1].sizes);
    let throughput = sizes[range.0].is_large();
    let whole = over(seeds, range, classes_of);
    let with_one = finished.is_some() || whole.both.pairs == 0;
    let values = |sums: &Sums| if throughput { sums.throughput_bps } else { sums.completion_s };
    let each_seed = |of: fn(&MixSeed) -> &[Tally; CLASSES]| -> Vec<(f64, f64)> {
        let each = seeds.iter().map(|seed| over(&[*seed], range, of).sums(with_one));
        let each = each.filter(|sums| sums.pairs > 0);
        let mean = |sums: Sums| values(&sums).map(|sum| sum / sums.pairs as f64).into();
        each.map(mean).collect()
    };
    let compared = |of: fn(&MixSeed) -> &[Tally; CLASSES]| Paired::new(&each_seed(of));
    let sums = whole.sums(with_one);
    Some(MixClass {
        pair: pair.name.clone(),
        sizes: size_words(first.at_least, last.below),
        at_least_bytes: (first.at_least > 0).then_some(first.at_least),
        below_bytes: last.below,
        transfers: whole.both.pairs,
        on_one_side: sums.pairs - whole.both.pairs,
        cut_off: whole.cut_off,
        finished,
        throughput,
        means: means(&each_seed(classes_of)),
        compared: compared(classes_of)?,
        effect: Judgement::Undecided,
        repeats: None,
        retransmitted: [0, 1]
            .map(|side| whole.again_bytes[side] as f64 / whole.sent_bytes[side].max(1) as f64),
        split: compared(|seed| &seed.split),
    })
}

/// Returns the geometric mean of each side; the arithmetic one if a value is zero.
fn means(pairs: &[(f64, f64)]) -> [f64; 2] {
    let count = pairs.len().max(1) as f64;
    let side = |values: Vec<f64>| match values.iter().all(|value| *value > 0.0) {
        true => (values.iter().map(|value| value.ln()).sum::<f64>() / count).exp(),
        false => values.iter().sum::<f64>() / count,
    };
    [pairs.iter().map(|pair| pair.0).collect(), pairs.iter().map(|pair| pair.1).collect()].map(side)
}

/// Describes a size range: `under 100 kB`, `100 kB to 1 MB`, `1 to 3 MB`, `30 MB and more`.
fn size_words(at_least: u64, below: Option<u64>) -> String {
    let show = |size: u64| Unit::Bytes.show(size as f64);
    match (at_least, below) {
        (0, None) => "all sizes".to_string(),
        (0, Some(below)) => format!("under {}", show(below)),
        (at_least, None) => format!("{} and more", show(at_least)),
        (at_least, Some(below)) => {
            let (from, to) = (show(at_least), show(below));
            match (from.split_once(' '), to.split_once(' ')) {
                (Some((number, unit)), Some((_, same))) if unit == same => {
                    format!("{number} to {to}")
                }
                _ => format!("{from} to {to}"),
            }
        }
    }
}
