//! Whether several paths together do better than one path alone.

use super::stalls::{self, Stalls};
use super::transfers::{self, TransferTimes};
use super::{change, judged, range, repeats_in_words};
use crate::measures::measure;
use crate::view::{PathView, RunView, Window};
use crate::{FlowView, OfferedLoad, Unit, offered_in_words, with_interval};
use knee_scenario::{Measure, SizeRange, Statistic, Workload};
use knee_units::statistics::{
    Advice, Better, Interval, Judgement, Paired, WORTH_NAMING, simultaneous,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Share of the payload below which a path is reported as carrying next to nothing.
const NEXT_TO_NOTHING: f64 = 0.01;
/// A path whose last delivery is later than another's by this fraction of the whole time is
/// reported as the one that the transfer waited for.
const LATE: f64 = 0.1;

/// The measure by which a group of flows is compared, chosen by its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct PathsQuestion {
    /// Group of flows.
    pub flow: String,
    measure: Measure,
    /// Verb of the sentence: `finish in`.
    verb: &'static str,
    /// Words for a smaller and a larger value.
    change: [&'static str; 2],
    less_is_better: bool,
}

impl PathsQuestion {
    /// Chooses the measure for a workload.
    pub fn new(flow: &str, workload: &Workload) -> PathsQuestion {
        let sooner = ["sooner", "later"];
        let rate = ["less", "more"];
        let all = SizeRange::default();
        let (measure, verb, change) = match workload {
            Workload::File(_) => (Measure::CompletionTime, "finish in", sooner),
            Workload::Bursts(_) => {
                (Measure::BurstTime(Statistic::Mean), "answer a request, on average, in", sooner)
            }
            Workload::Page(_) => (Measure::PageLoadTime, "load the page in", sooner),
            Workload::Dash(_) => (Measure::VideoBitrate, "play the video at", rate),
            Workload::Mix(_) => (
                Measure::FlowCompletion(Statistic::Mean, all),
                "finish a transfer, on average, in",
                sooner,
            ),
            Workload::Bulk => (Measure::Goodput, "deliver", rate),
        };
        let less_is_better = change == sooner;
        PathsQuestion { flow: flow.to_string(), measure, verb, change, less_is_better }
    }

    /// Measures a run. Returns `None` if the measure has no value in it.
    pub fn of(&self, run: &RunView<'_>) -> Option<PathsRun> {
        let of = |what: Measure| measure(run, &what, &self.flow, Window::default()).ok();
        let first = run.flows.iter().find(|flow| flow.record.name == self.flow)?;
        let value = match of(self.measure.clone()) {
            Some(value) => value,
            None if self.is_of_transfers() => f64::INFINITY,
            // No segment arrived.
            None if self.is_video() => 0.0,
            None => return None,
        };
        let transfers = Some(()).filter(|()| self.is_of_transfers());
        Some(PathsRun {
            value,
            transfers: transfers.map(|()| transfers::times(run, &self.flow)).unwrap_or_default(),
            stalls: stalls::stalls(run, &self.flow).filter(|_| self.is_video()),
            waited_s: of(Measure::HeadOfLineBlocking),
            paths: first.paths.iter().map(|path| path_use(run, first, path)).collect(),
        })
    }

    fn better(&self) -> Better {
        if self.less_is_better { Better::Less } else { Better::More }
    }

    fn is_video(&self) -> bool {
        self.measure == Measure::VideoBitrate
    }

    fn is_of_transfers(&self) -> bool {
        matches!(self.measure, Measure::FlowCompletion(..))
    }

    /// Returns the values of each alternative, seed by seed.
    fn values(&self, alternatives: &[&[PathsRun]]) -> Vec<Vec<f64>> {
        let seeds = 0..alternatives.first().map_or(0, |runs| runs.len());
        let mut values = vec![Vec::new(); alternatives.len()];
        for seed in seeds {
            let runs = alternatives.iter().map(|runs| &runs[seed]);
            let of_seed = match self.is_of_transfers() {
                true => {
                    transfers::means(&runs.map(|run| &run.transfers).collect::<Vec<_>>()).seconds
                }
                false => runs.map(|run| run.value).collect(),
            };
            values.iter_mut().zip(of_seed).for_each(|(values, value)| values.push(value));
        }
        values
    }
}

/// One run of an alternative.
#[derive(Clone, Debug, PartialEq)]
pub struct PathsRun {
    /// Value in the unit of the measure; infinite if the event did not occur.
    pub value: f64,
    /// Mean time that a byte waited for data of another path, seconds; `None` if the ground does not
    /// know.
    pub waited_s: Option<f64>,
    /// How each path was used.
    pub paths: Vec<PathUse>,
    /// Transfers of a mix; empty for other workloads.
    pub transfers: TransferTimes,
    /// Stalls of a video; `None` for other workloads.
    pub stalls: Option<Stalls>,
}

/// Use of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathUse {
    /// Its name.
    pub name: String,
    /// Share of the payload that it carried, mean over the runs.
    pub share: f64,
    /// Median smoothed RTT, mean over the runs, seconds; null without samples.
    pub rtt_s: Option<f64>,
    /// When it delivered its last byte, mean over the runs, seconds; null if it
    /// delivered nothing.
    pub last_delivery_s: Option<f64>,
}

fn path_use(run: &RunView<'_>, flow: &FlowView<'_>, path: &PathView<'_>) -> PathUse {
    let all: u64 = flow.paths.iter().map(|path| path.record.delivered_bytes).sum();
    let mut rtts: Vec<u64> =
        path.samples.iter().map(|row| row.srtt_ns).filter(|rtt| *rtt > 0).collect();
    rtts.sort_unstable();
    let most = path.samples.iter().map(|row| row.delivered_bytes).max().filter(|most| *most > 0);
    let last = most.and_then(|most| path.samples.iter().find(|row| row.delivered_bytes == most));
    let start = flow.record.start_ns.min(run.records.end_ns);
    PathUse {
        name: path.record.name.clone(),
        share: path.record.delivered_bytes as f64 / all.max(1) as f64,
        rtt_s: rtts.get(rtts.len() / 2).map(|rtt| *rtt as f64 / 1e9),
        last_delivery_s: last.map(|row| row.time_ns.saturating_sub(start) as f64 / 1e9),
    }
}

/// An alternative over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathsOutcome {
    /// Its paths.
    pub paths: Vec<String>,
    /// The value of each seed; null if the event did not occur within the run.
    /// For a mix, the mean over the transfers that finish in any alternative;
    /// null if none does.
    pub values: Vec<Option<f64>>,
    /// Mean and 95 % interval; null if one of the values is null. For a mix,
    /// over the seeds in which a transfer finishes.
    pub interval: Option<Interval>,
    /// Transfers of a mix that finished, over all seeds; absent for other
    /// workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<u64>,
    /// How long a video stood still after it began, mean over the seeds,
    /// seconds; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_s: Option<f64>,
    /// Load that the scenario then offers to the links; absent if it has neither
    /// mixes nor requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<OfferedLoad>,
}

impl PathsOutcome {
    /// Summarises the values of the seeds; the interval is over those in `counts`.
    fn new(paths: &[String], values: &[f64], counts: &[bool]) -> PathsOutcome {
        let there = |value: &f64| Some(*value).filter(|value| value.is_finite());
        let counted: Vec<f64> = counted(values, counts).collect();
        let all = counted.iter().all(|value| value.is_finite());
        PathsOutcome {
            paths: paths.to_vec(),
            interval: Interval::new(&counted).filter(|_| all),
            values: values.iter().map(there).collect(),
            finished: None,
            stalled_s: None,
            load: Vec::new(),
        }
    }

    /// Returns what overloads a link, in words.
    fn overload(&self) -> Option<String> {
        offered_in_words(self.load.iter().filter(|load| load.is_overloaded()))
    }

    /// Returns the mean; infinite if a value is missing.
    fn mean(&self) -> f64 {
        self.interval.map_or(f64::INFINITY, |interval| interval.mean)
    }

    fn value_words(&self, unit: Unit) -> String {
        let there: Vec<f64> = self.values.iter().filter_map(|value| *value).collect();
        if let Some(interval) = self.interval.and_then(|_| Interval::new(&there)) {
            return with_interval(|value| unit.show(value), &interval);
        }
        let missing = self.values.len() - there.len();
        format!("longer than the run ({missing} of {} seeds)", self.values.len())
    }
}

/// Comparison of a group of flows over all its paths with the same over each
/// path alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathsAnswer {
    /// The group.
    pub flow: String,
    /// Name of the measure, as in claims.
    pub measure: String,
    /// Unit of the measure.
    pub unit: Unit,
    /// Result over all paths together.
    pub together: PathsOutcome,
    /// Result over each path alone.
    pub alone: Vec<PathsOutcome>,
    /// Index of the best of these.
    pub best_alone: usize,
    /// All paths together over the best path alone, in pairs of the same seed;
    /// probability and interval are corrected for the choice among all single
    /// paths.
    pub compared: Paired,
    /// All paths together, compared with the best path alone. For a mix it is
    /// `undecided` if the mean time favours one and the number of transfers that
    /// finish favours the other, and `overloaded` if a link is overloaded even
    /// with all paths together. For a video the stalls decide
    /// if they clearly differ, by 1 % of the time or more; otherwise the
    /// bitrate does.
    pub effect: Judgement,
    /// Repeats that would decide a difference of the size seen; absent unless it
    /// is undecided, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// Transfers of a mix that began, over all seeds; absent for other
    /// workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<u64>,
    /// Use of the paths when all are used together.
    pub used: Vec<PathUse>,
    /// Mean time that a byte waited at the receiver for a byte of another path,
    /// seconds; absent if the ground does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_s: Option<f64>,
    /// The result in a sentence or two.
    pub sentence: String,
}

impl PathsAnswer {
    /// Compares the runs of each alternative. All lists are in the order of the same seeds, and
    /// `alone` is in the order of `paths`. `loads` are those over all paths together, then over
    /// each alone. Returns `None` if there are no runs, or if the numbers of runs differ.
    pub fn new(
        question: &PathsQuestion,
        paths: &[String],
        together: &[PathsRun],
        alone: &[Vec<PathsRun>],
        loads: &[Vec<OfferedLoad>],
    ) -> Option<PathsAnswer> {
        if together.is_empty() || alone.iter().any(|runs| runs.len() != together.len()) {
            return None;
        }
        let runs: Vec<&[PathsRun]> =
            std::iter::once(together).chain(alone.iter().map(Vec::as_slice)).collect();
        let values = question.values(&runs);
        let (of_all, of_each) = values.split_first()?;
        let counts = seeds_that_count(question, of_all);
        let mut compared: Vec<Paired> = of_each
            .iter()
            .map(|one| {
                let pairs = counted(of_all, &counts).zip(counted(one, &counts));
                Paired::new(&pairs.collect::<Vec<_>>())
            })
            .collect::<Option<_>>()?;
        let advice = Advice::together(simultaneous(compared.iter_mut()));
        let outcome = |paths: &[String], at: usize| PathsOutcome {
            finished: question.is_of_transfers().then(|| finished_of(runs[at])),
            stalled_s: mean_stalls(runs[at], |stalls| stalls.seconds),
            load: loads.get(at).cloned().unwrap_or_default(),
            ..PathsOutcome::new(paths, &values[at], &counts)
        };
        let outcomes: Vec<PathsOutcome> = paths
            .iter()
            .enumerate()
            .map(|(at, path)| outcome(std::slice::from_ref(path), at + 1))
            .collect();
        let stalled: Vec<f64> = alone
            .iter()
            .map(|runs| mean_stalls(runs, |stalls| stalls.share).unwrap_or(0.0))
            .collect();
        let best_alone = best(&outcomes, &stalled, question.less_is_better)?;
        let by_value = judged(&compared[best_alone], question.better());
        let by_stalls = fewer_stalls(together, alone)[best_alone];
        let more_finish = more_finish(together, alone)[best_alone];
        let waited_s: Option<Vec<f64>> = together.iter().map(|run| run.waited_s).collect();
        let mut answer = PathsAnswer {
            flow: question.flow.clone(),
            measure: question.measure.name(),
            unit: Unit::of(&question.measure),
            together: outcome(paths, 0),
            alone: outcomes,
            best_alone,
            compared: compared[best_alone],
            repeats: None,
            effect: match by_stalls.differs() {
                false => transfers::joined(by_value, more_finish),
                true => by_stalls,
            },
            transfers: question.is_of_transfers().then(|| began(together)),
            used: used(together),
            waited_s: waited_s.map(|each| mean(each.into_iter())),
            sentence: String::new(),
        };
        if question.is_of_transfers() && answer.together.overload().is_some() {
            answer.effect = Judgement::Overloaded;
        }
        if answer.effect == Judgement::Undecided {
            answer.repeats = advice.to_decide(&answer.compared, WORTH_NAMING);
        }
        answer.sentence = match answer.effect {
            Judgement::Overloaded => answer.overloaded(question),
            _ if by_stalls.differs() => answer.by_stalls(question, by_value),
            effect if by_value == effect => answer.in_words(question),
            _ => answer.by_number(question, by_value),
        };
        answer.sentence += &answer.overloaded_alone();
        answer.sentence += &answer.cut_off(counted_transfers(&runs));
        answer.sentence += &answer.passed_over();
        Some(answer)
    }

    /// Returns the subject of a sentence about all paths together, and its object: `both`.
    fn all(&self) -> (String, String) {
        match self.together.paths.len() {
            2 => ("Both".to_string(), "both".to_string()),
            count => (format!("All {count}"), format!("all {count}")),
        }
    }

    /// Returns the beginning of the sentence: the values of both sides.
    fn start(&self, question: &PathsQuestion) -> String {
        let best = &self.alone[self.best_alone];
        let (all, verb, value) =
            (self.all().0, question.verb, self.together.value_words(self.unit));
        let never = |outcome: &PathsOutcome| outcome.values.iter().all(Option::is_none);
        if never(&self.together) && self.alone.iter().all(never) {
            return format!("{all} together, and each path alone, {verb} {value}");
        }
        format!(
            "{all} together {verb} {value}, compared with {} over {} alone",
            best.value_words(self.unit),
            best.paths.join(", "),
        )
    }

    /// Returns the sentence if a link is overloaded over all paths together.
    fn overloaded(&self, question: &PathsQuestion) -> String {
        let load = self.together.overload().unwrap_or_default();
        format!(
            "{}: no answer, the links are overloaded, with no steady state ({load}).",
            self.start(question)
        )
    }

    /// Returns what overloads a link over the best path alone, if nothing does over all paths
    /// together.
    fn overloaded_alone(&self) -> String {
        let best = &self.alone[self.best_alone];
        match best.overload() {
            Some(load) if self.effect != Judgement::Overloaded && self.transfers.is_some() => {
                format!(" Over {} alone the link is overloaded ({load}).", best.paths.join(", "))
            }
            _ => String::new(),
        }
    }

    /// Returns the sentence if the number of transfers that finish decides, or stands against the
    /// mean time.
    fn by_number(&self, question: &PathsQuestion, by_value: Judgement) -> String {
        let (start, both) = (self.start(question), self.all().1);
        let less = self.together.finished < self.alone[self.best_alone].finished;
        let number = if less { "fewer" } else { "more" };
        match (self.effect, change(&self.compared, question.change)) {
            (Judgement::Better, _) => format!("{start}: use {both}, {number} transfers finish."),
            (Judgement::Worse, _) => {
                format!("{start}: do not use {both}, {number} transfers finish.")
            }
            (_, by) => {
                let word = question.change[usize::from(by_value == Judgement::Worse)];
                let by = by.map_or_else(|| word.to_string(), |(by, _)| by);
                format!("{start}: it depends, together is {by}, but {number} transfers finish.")
            }
        }
    }

    /// Returns the sentence if the stalls of a video decide.
    fn by_stalls(&self, question: &PathsQuestion, by_value: Judgement) -> String {
        let (start, both) = (self.start(question), self.all().1);
        let best = &self.alone[self.best_alone];
        let alone = best.paths.join(", ");
        let long = |outcome: &PathsOutcome| {
            outcome.stalled_s.filter(|stalled_s| *stalled_s > 0.0).map(|s| Unit::Seconds.show(s))
        };
        let stalls = match long(&self.together) {
            Some(together) => format!("the video stalls for {together}"),
            None => "the video does not stall".to_string(),
        };
        let than = long(best).unwrap_or_else(|| "none".to_string());
        let bitrate = match change(&self.compared, question.change).map(|(by, _)| by) {
            _ if !by_value.differs() => String::new(),
            Some(by) if by_value == self.effect => format!(", and the bitrate is {by}"),
            Some(by) => format!(", although the bitrate is {by}"),
            None => String::new(),
        };
        let (what, reason) = match self.effect {
            Judgement::Worse => ("do not use", self.reason(&alone)),
            _ => ("use", String::new()),
        };
        format!(
            "{start}: {what} {both}: {stalls}, compared with {than} over {alone} alone{bitrate}.\
             {reason}"
        )
    }

    /// Returns which path alone has the highest bitrate of a video, if another is better because it
    /// stalls less.
    fn passed_over(&self) -> String {
        let best = &self.alone[self.best_alone];
        let highest = self.alone.iter().max_by(|a, b| a.mean().total_cmp(&b.mean()));
        let other = highest.filter(|other| other.mean() > best.mean());
        match other.and_then(|other| Some((other, other.stalled_s?))) {
            Some((other, stalled_s)) => format!(
                " Over {} alone it plays at {}, but stalls for {}.",
                other.paths.join(", "),
                self.unit.show(other.mean()),
                Unit::Seconds.show(stalled_s)
            ),
            None => String::new(),
        }
    }

    /// Returns how many transfers finished on each side, if some did not that finish elsewhere.
    fn cut_off(&self, counted: u64) -> String {
        let best = &self.alone[self.best_alone];
        let Some(((ours, theirs), began)) =
            self.together.finished.zip(best.finished).zip(self.transfers)
        else {
            return String::new();
        };
        if ours.min(theirs) == counted {
            return String::new();
        }
        format!(
            " Of {began} transfers, {ours} finish over {} together and {theirs} over {} alone; \
             where one is cut off that another alternative finishes, the time until the end of \
             the run counts.",
            self.all().1,
            best.paths.join(", ")
        )
    }

    fn in_words(&self, question: &PathsQuestion) -> String {
        let (start, both) = (self.start(question), self.all().1);
        let alone = self.alone[self.best_alone].paths.join(", ");
        let by = match change(&self.compared, question.change) {
            Some((by, Some(range))) => format!(", {by} ({range})"),
            Some((by, None)) => format!(", {by}"),
            None => String::new(),
        };
        match self.effect {
            Judgement::Better => format!("{start}: use {both}{by}."),
            Judgement::Worse => format!("{start}: do not use {both}{by}.{}", self.reason(&alone)),
            // In some seeds neither finishes, or only one does, too few to tell.
            Judgement::TooShort => format!("{start}: the run is too short to tell."),
            _ => {
                let range = range(&self.compared, question.change);
                let range = match (self.compared.is_same(), range) {
                    (false, Some(range)) => format!(", together is {range}"),
                    _ => String::new(),
                };
                let (word, open) = match self.effect {
                    Judgement::Alike => ("alike", String::new()),
                    _ => ("undecided", format!("; {}", repeats_in_words([self.repeats]))),
                };
                format!("{start}: {word}{range}{open}.{}", self.reason(&alone))
            }
        }
    }

    /// Explains why the paths together are no better: which path the others wait for.
    fn reason(&self, best: &str) -> String {
        let rest: f64 = self.used.iter().filter(|path| path.name != best).map(|p| p.share).sum();
        if rest < NEXT_TO_NOTHING {
            let share = Unit::Fraction.show((rest * 1e4).round() / 1e4);
            return format!(" The other paths carry only {share} of the payload.");
        }
        let rtt = |path: &&PathUse| path.rtt_s.unwrap_or(0.0);
        let Some(slow) = self.used.iter().max_by(|a, b| rtt(a).total_cmp(&rtt(b))) else {
            return String::new();
        };
        let others = || self.used.iter().filter(|path| path.name != slow.name);
        let busiest = others().max_by(|a, b| a.share.total_cmp(&b.share));
        let Some(fast) = others().find(|path| path.name == best).or(busiest) else {
            return String::new();
        };
        waiting(slow, fast, self.waited_s)
    }
}

/// Returns which seeds count: of a mix, those in which a transfer finishes, if there are any.
fn seeds_that_count(question: &PathsQuestion, values: &[f64]) -> Vec<bool> {
    let all = !question.is_of_transfers() || values.iter().all(|value| value.is_infinite());
    values.iter().map(|value| all || value.is_finite()).collect()
}

fn counted(values: &[f64], counts: &[bool]) -> impl Iterator<Item = f64> {
    values.iter().zip(counts).filter(|(_, counts)| **counts).map(|(value, _)| *value)
}

fn finished_of(runs: &[PathsRun]) -> u64 {
    runs.iter().map(|run| transfers::finished(&run.transfers)).sum()
}

fn began(runs: &[PathsRun]) -> u64 {
    runs.iter().map(|run| run.transfers.len() as u64).sum()
}

/// Returns the number of transfers that finish in any of the alternatives.
fn counted_transfers(alternatives: &[&[PathsRun]]) -> u64 {
    let seeds = 0..alternatives.first().map_or(0, |runs| runs.len());
    let of_seed = |seed: usize| {
        let runs = alternatives.iter().map(|runs| &runs[seed].transfers);
        transfers::means(&runs.collect::<Vec<_>>()).count
    };
    seeds.map(of_seed).sum()
}

/// Returns whether clearly more transfers finish over all paths together than over each alone.
fn more_finish(together: &[PathsRun], alone: &[Vec<PathsRun>]) -> Vec<Judgement> {
    let number = |run: &PathsRun| transfers::finished(&run.transfers);
    let counts = alone.iter().map(|runs| {
        together.iter().zip(runs).map(|(all, one)| (number(all), number(one))).collect()
    });
    transfers::effects(&counts.collect::<Vec<_>>())
}

/// Describes what the slow path carries and how long data waits for it.
fn waiting(slow: &PathUse, fast: &PathUse, waited_s: Option<f64>) -> String {
    let share = Unit::Fraction.show((slow.share * 1e3).round() / 1e3);
    let times = slow.rtt_s.zip(fast.rtt_s).map_or_else(String::new, |(slow_s, fast_s)| {
        let (slow_s, fast_s) = (Unit::Seconds.show(slow_s), Unit::Seconds.show(fast_s));
        format!(" at a median round trip of {slow_s}, not {fast_s}")
    });
    let carries = format!("{} carries {share} of the payload{times}", slow.name);
    let mut text = match waited_s.filter(|waited| *waited > 0.0) {
        Some(waited_s) => {
            let waited = Unit::Seconds.show(waited_s);
            format!(
                " Data that arrives over {} waits for {}, {waited} per byte: {carries}.",
                fast.name, slow.name
            )
        }
        None => format!(" {carries}."),
    };
    if let Some((last, done)) = slow.last_delivery_s.zip(fast.last_delivery_s)
        && last - done > LATE * last
    {
        let (last, done) = (Unit::Seconds.show(last), Unit::Seconds.show(done));
        text += &format!(" {} finishes after {done}, {} after {last}.", fast.name, slow.name);
    }
    text
}

/// Returns the alternative with the best mean, the first of equals, among those whose video stalls
/// least.
fn best(alone: &[PathsOutcome], stalled: &[f64], less_is_better: bool) -> Option<usize> {
    let least = stalled.iter().copied().fold(f64::INFINITY, f64::min);
    let cost = |outcome: &PathsOutcome| match less_is_better {
        true => outcome.mean(),
        false if outcome.mean().is_finite() => -outcome.mean(),
        false => f64::INFINITY,
    };
    let among = (0..alone.len()).filter(|at| stalled[*at] < least + stalls::NEGLIGIBLE);
    among.min_by(|a, b| cost(&alone[*a]).total_cmp(&cost(&alone[*b])))
}

fn mean_stalls(runs: &[PathsRun], of: fn(&Stalls) -> f64) -> Option<f64> {
    let each: Option<Vec<f64>> = runs.iter().map(|run| run.stalls.as_ref().map(of)).collect();
    each.map(|each| mean(each.into_iter()))
}

/// Returns whether a video stalls clearly less over all paths together than over each alone.
fn fewer_stalls(together: &[PathsRun], alone: &[Vec<PathsRun>]) -> Vec<Judgement> {
    let pairs = alone.iter().map(|runs| {
        let pairs = together.iter().zip(runs);
        pairs.filter_map(|(all, one)| all.stalls.zip(one.stalls)).collect()
    });
    stalls::effects(&pairs.collect::<Vec<_>>())
}

/// Averages the use of each path over the runs.
fn used(runs: &[PathsRun]) -> Vec<PathUse> {
    let Some(first) = runs.first() else { return Vec::new() };
    let over = |at: usize, value: fn(&PathUse) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| value(run.paths.get(at)?)).collect();
        (!values.is_empty()).then(|| mean(values.into_iter()))
    };
    let names = first.paths.iter().enumerate();
    names
        .map(|(at, path)| PathUse {
            name: path.name.clone(),
            share: over(at, |path| Some(path.share)).unwrap_or(0.0),
            rtt_s: over(at, |path| path.rtt_s),
            last_delivery_s: over(at, |path| path.last_delivery_s),
        })
        .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}
