//! `rank.json`: the result of a ranking.

use super::gather::{ByRepeat, Runs, seeds_matter};
use super::worst::{RankWorst, worst};
use super::{Competition, RankFigures, RankRun, words};
use crate::{Error, Interval, Judgement, Paired};
use knee_units::statistics::{Advice, Better, WORTH_NAMING, holm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Largest number of the user's own candidates that get sentences of their own.
pub(super) const OWN_MAX: usize = 3;
/// Schema name of `rank.json`.
pub(crate) const SCHEMA: &str = "knee-rank/1";

/// Settings of the ranking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// Command that repeats the ranking.
    pub command: String,
    /// Controllers that are ranked, as given.
    pub candidates: Vec<String>,
    /// Controllers beside which each candidate runs.
    pub rivals: Vec<String>,
    /// Scenarios over which they are ranked.
    pub scenarios: Vec<RankScenario>,
    /// Seeds of each run.
    pub repeats: u64,
    /// Those of the candidates that Knee has not under such a name: written by the
    /// user, or with settings.
    #[serde(default)]
    pub own: Vec<String>,
    /// Runs planned.
    pub runs_planned: usize,
}

/// A scenario of a ranking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankScenario {
    /// Its title.
    pub name: String,
    /// Its file, as given.
    pub file: String,
    /// The group of flows that the candidates replace.
    pub flow: String,
    /// Other groups of flows, which are left out.
    pub left_out: Vec<String>,
}

/// Results of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankSummary {
    /// `knee-rank/1`.
    pub schema: String,
    /// Settings of the ranking.
    #[serde(flatten)]
    pub ranking: Ranking,
    /// Number of runs that the results include; fewer than planned after an interrupt.
    pub runs_finished: usize,
    /// The answer in a few sentences.
    pub says: String,
    /// Whether a seed changes anything in these scenarios.
    pub seeds_matter: bool,
    /// Number of comparisons of all candidates with each other, for which the
    /// probabilities are corrected together: the first is chosen by the same runs.
    pub comparisons: usize,
    /// In what each of the user's own candidates is worst.
    #[serde(default)]
    pub worst: Vec<RankWorst>,
    /// One entry per candidate, the one with the most power first.
    pub entries: Vec<RankEntry>,
    /// Recorded links: capacity and throughput of each candidate alone, with
    /// the first seed.
    pub traces: Vec<RankTrace>,
}

/// Result of a candidate. Means over all scenarios, with their intervals over
/// the seeds; null if it has no such value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankEntry {
    /// Controller, as given.
    pub candidate: String,
    /// Power alone, geometric mean over the scenarios; 1 at the knee.
    pub power: Option<Interval>,
    /// How its power compares with that of the first. The first itself is better if
    /// it is better than each other one, undecided if it is against one of them, and
    /// alike otherwise.
    pub word: Judgement,
    /// Repeats that would decide a difference of the size seen in 80 % of cases;
    /// null unless its word is undecided, or if that is unknown.
    #[serde(default)]
    pub repeats_advised: Option<u64>,
    /// Its power compared with that of the first, in pairs of the same seed;
    /// null for the first.
    pub against_first: Option<Paired>,
    /// Alone: fraction of the path's capacity that was delivered, `0..=1`,
    /// geometric mean over the scenarios.
    pub used: Option<Interval>,
    /// Alone: mean RTT over that of the empty path, geometric mean over the
    /// scenarios. Power is `used` over this.
    #[serde(default)]
    pub delay: Option<Interval>,
    /// Alone: 95th percentile of the RTT over the RTT of the empty path,
    /// geometric mean over the scenarios.
    pub stretch: Option<Interval>,
    /// Whether no candidate uses more of the path at a smaller mean RTT.
    pub on_front: bool,
    /// Whether the seed changes anything in its runs alone.
    #[serde(default = "yes")]
    pub random: bool,
    /// Alone: bytes retransmitted over bytes sent.
    pub retransmit_ratio: Option<Interval>,
    /// Beside itself: Jain's index.
    pub jain: Option<Interval>,
    /// Its share beside each rival; a half is fair.
    pub takes: Vec<Option<Interval>>,
    /// For each seed, `used` and `delay` over all scenarios, for the chart.
    pub overall: Vec<[f64; 2]>,
    /// Results in each scenario.
    pub places: Vec<RankPlace>,
}

/// A candidate alone in one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankPlace {
    /// For each seed goodput, bit/s, and mean RTT, seconds.
    pub points: Vec<[f64; 2]>,
    /// Power; 1 at the knee.
    pub power: Option<Interval>,
    /// Fraction of the path's capacity that was delivered, `0..=1`.
    #[serde(default)]
    pub used: Option<Interval>,
    /// Mean RTT over that of the empty path.
    #[serde(default)]
    pub delay: Option<Interval>,
    /// Payload rate that the path allowed, bit/s.
    pub capacity_bps: Option<f64>,
    /// RTT of the empty path, seconds.
    pub base_rtt_s: Option<f64>,
    /// Bytes retransmitted over bytes sent.
    pub retransmit_ratio: Option<Interval>,
    /// Jain's index beside itself.
    pub jain: Option<Interval>,
    /// Its share beside each rival; a half is fair.
    pub takes: Vec<Option<Interval>>,
}

/// A recorded link and its throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankTrace {
    /// Number of the scenario.
    pub scenario: usize,
    /// Name of the link.
    pub link: String,
    /// Length of a bin, seconds.
    pub bin_s: f64,
    /// Capacity of the link, bin by bin, IP bit/s.
    pub capacity_bps: Vec<u64>,
    /// Throughput of the link, bin by bin, IP bit/s, in the order of the
    /// candidates; empty if the run is missing.
    pub throughput_bps: Vec<Vec<u64>>,
}

impl RankSummary {
    /// Summarises all finished runs.
    pub fn new(ranking: Ranking, runs: &[RankRun], traces: Vec<RankTrace>) -> RankSummary {
        let power = |candidate: usize| {
            let runs = Runs { all: runs, candidate, scenarios: ranking.scenarios.len() };
            runs.geometric(Competition::Alone, |figures| figures.power)
        };
        let mut all: Vec<(RankEntry, ByRepeat)> = (0..ranking.candidates.len())
            .map(|candidate| (entry(&ranking, runs, candidate), power(candidate)))
            .collect();
        all.sort_by(|(a, _), (b, _)| by_power(b).total_cmp(&by_power(a)));
        let seeds_matter = seeds_matter(runs);
        let comparisons = compare(&mut all);
        let mut entries: Vec<RankEntry> = all.into_iter().map(|(entry, _)| entry).collect();
        judge(&mut entries, &Advice::together(comparisons));
        front(&mut entries);
        let own = ranking.own.iter().take(OWN_MAX);
        let worst = own.filter_map(|own| worst(&ranking, &entries, own)).collect();
        let mut summary = RankSummary {
            schema: SCHEMA.to_string(),
            ranking,
            runs_finished: runs.len(),
            says: String::new(),
            seeds_matter,
            comparisons,
            worst,
            entries,
            traces,
        };
        summary.says = words::says(&summary);
        summary
    }
}

fn by_power(entry: &RankEntry) -> f64 {
    entry.power.map_or(-1.0, |power| power.mean)
}

fn over(values: &ByRepeat) -> Option<Interval> {
    Interval::new(&values.values().copied().collect::<Vec<_>>())
}

/// Condenses shares and Jain's index.
fn over_parts(values: &ByRepeat) -> Option<Interval> {
    Interval::of_parts(&values.values().copied().collect::<Vec<_>>())
}

fn yes() -> bool {
    true
}

fn entry(ranking: &Ranking, all: &[RankRun], candidate: usize) -> RankEntry {
    let runs = Runs { all, candidate, scenarios: ranking.scenarios.len() };
    let (alone, itself) = (Competition::Alone, Competition::Itself);
    let used = runs.geometric(alone, |figures| figures.capacity_share);
    let delay = runs.geometric(alone, RankFigures::delay);
    let both = used.iter().filter_map(|(repeat, used)| Some([*used, *delay.get(repeat)?]));
    RankEntry {
        candidate: ranking.candidates[candidate].clone(),
        power: over(&runs.geometric(alone, |figures| figures.power)),
        word: Judgement::Undecided,
        repeats_advised: None,
        against_first: None,
        overall: both.collect(),
        used: over_parts(&used),
        delay: over(&delay),
        stretch: over(&runs.geometric(alone, RankFigures::stretch)),
        on_front: false,
        random: !runs.nothing_is_random(alone),
        retransmit_ratio: over_parts(&runs.mean(alone, |figures| figures.retransmit_ratio)),
        jain: over_parts(&runs.mean(itself, |figures| figures.jain)),
        takes: takes(runs, ranking),
        places: (0..ranking.scenarios.len()).map(|at| place(ranking, all, candidate, at)).collect(),
    }
}

fn takes(runs: Runs<'_>, ranking: &Ranking) -> Vec<Option<Interval>> {
    let rivals = (0..ranking.rivals.len()).map(Competition::Rival);
    rivals.map(|rival| over_parts(&runs.mean(rival, |figures| figures.share))).collect()
}

fn place(ranking: &Ranking, all: &[RankRun], candidate: usize, at: usize) -> RankPlace {
    let here: Vec<RankRun> = all.iter().filter(|run| run.scenario == at).cloned().collect();
    let runs = Runs { all: &here, candidate, scenarios: 1 };
    let alone = || runs.with(Competition::Alone).map(|run| run.figures);
    RankPlace {
        points: alone().filter_map(|f| Some([f.goodput_bps?, f.delay()? * f.base_rtt_s])).collect(),
        power: over(&runs.mean(Competition::Alone, |figures| figures.power)),
        used: over_parts(&runs.mean(Competition::Alone, |figures| figures.capacity_share)),
        delay: over(&runs.mean(Competition::Alone, RankFigures::delay)),
        capacity_bps: alone().find_map(|figures| figures.capacity_bps),
        base_rtt_s: alone().next().map(|figures| figures.base_rtt_s),
        retransmit_ratio: over_parts(
            &runs.mean(Competition::Alone, |figures| figures.retransmit_ratio),
        ),
        jain: over_parts(&runs.mean(Competition::Itself, |figures| figures.jain)),
        takes: takes(runs, ranking),
    }
}

/// Compares each candidate with the first, in pairs of the same seed. The first is the one with the
/// most power in these very runs, so the probabilities are corrected for the comparisons of all
/// candidates with each other. A difference between two candidates whose runs alone do not depend on
/// the seed is not due to chance.
fn compare(all: &mut [(RankEntry, ByRepeat)]) -> usize {
    let certain: Vec<bool> = all.iter().map(|(entry, _)| !entry.random).collect();
    let mut compared: Vec<(usize, usize, Paired)> = Vec::new();
    for (other, (_, power)) in all.iter().enumerate() {
        for (first, (_, more)) in all[..other].iter().enumerate() {
            let pairs = power.iter().filter_map(|(repeat, own)| Some((*own, *more.get(repeat)?)));
            let Some(paired) = Paired::new(&pairs.collect::<Vec<_>>()) else { continue };
            let certain = certain[first] && certain[other];
            let paired = if certain { paired.without_chance() } else { paired };
            compared.push((first, other, paired));
        }
    }
    let comparisons = holm(compared.iter_mut().map(|(.., paired)| paired));
    for (_, other, paired) in compared.into_iter().filter(|(first, ..)| *first == 0) {
        all[other].0.against_first = Some(paired);
    }
    comparisons
}

/// Judges each candidate. One that may lead only by chance is not called better.
fn judge(entries: &mut [RankEntry], advice: &Advice) {
    let Some((first, others)) = entries.split_first_mut() else { return };
    for entry in others.iter_mut() {
        let Some(paired) = &entry.against_first else { continue };
        entry.word = paired.judge(Better::More, WORTH_NAMING);
        if entry.word == Judgement::Undecided {
            entry.repeats_advised = advice.to_decide(paired, WORTH_NAMING);
        }
    }
    let any = |word: Judgement| others.iter().any(|entry| entry.word == word);
    first.word = match () {
        () if others.is_empty() || any(Judgement::Undecided) => Judgement::Undecided,
        () if any(Judgement::Alike) => Judgement::Alike,
        () => Judgement::Better,
    };
}

/// Marks the candidates that no other dominates. A candidate dominates another if it uses as much of
/// the path at no more delay, within what counts as none, and is better in one of the two by more.
fn front(entries: &mut [RankEntry]) {
    let at = |entry: &RankEntry| Some((entry.used?.mean, entry.delay?.mean));
    let points: Vec<Option<(f64, f64)>> = entries.iter().map(at).collect();
    for (entry, own) in entries.iter_mut().zip(&points) {
        let others = points.iter().flatten();
        entry.on_front = own.is_some_and(|own| !others.into_iter().any(|o| dominates(*o, own)));
    }
}

fn dominates((used, delay): (f64, f64), own: (f64, f64)) -> bool {
    let more = used > own.0 * (1.0 - WORTH_NAMING);
    let sooner = delay < own.1 * (1.0 + WORTH_NAMING);
    let clearly = used > own.0 * (1.0 + WORTH_NAMING) || delay < own.1 * (1.0 - WORTH_NAMING);
    more && sooner && clearly
}

/// Reads `rank.json`.
///
/// # Errors
/// If the file is missing, damaged, or of another version.
pub fn read_rank(path: &Path) -> Result<RankSummary, Error> {
    crate::run::read_json(path, SCHEMA)
}
