//! Recommends a controller from finished connections: knee-advise over the packet simulator.
//! Implements `knee advise`.

mod history;
mod measured;
mod observed;
mod rehearsal;
mod told;

pub use history::History;
pub use measured::{AdvisedPath, AdvisedTransfer, TransferAdvice};
pub use observed::{Observed, ObservedGroup, Seen};
pub use rehearsal::Rehearsal;
pub use told::{
    Recommended, TrialSize, advice_says, advised_paths, advised_policy, change_words, recommended,
    retransmitted_words, trials_say,
};

use self::observed::connection;
use crate::error::Error;
use crate::ground::SIMULATOR;
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::origin::Files;
use crate::rank::Candidates;
use crate::text::ScenarioText;
use ipnet::IpNet;
use knee_advise::{
    Answer, Bounds, Class, Connection, Fit, LARGE_BYTES, Misfitting, Path, Prediction, Reason,
    RuleOfThumb, Search, SearchSettings, Statistics, Verdict, operators_rule, rule_of_thumb,
};
use knee_cc::Selection;
use knee_scenario::{Algorithms, Override, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Limit on the connections of one simulation; more add little information.
const CONNECTIONS_MAX: usize = 1500;
/// Minimum number of connections for advice.
pub(crate) const CONNECTIONS_MIN: usize = 200;
/// Limit on the length of a simulation, the longest that a scenario may have, seconds.
const DURATION_MAX_S: f64 = 4.0 * 3600.0;
/// Time after the last arrival, by its expected time, seconds.
const TAIL_S: f64 = 5.0;
/// Length of a simulation by the expected time of its last arrival: arrivals are random.
const SLACK: f64 = 1.05;
/// Number of fitted paths on which each candidate is simulated.
const FITS: usize = 12;
/// Minimum queue size: two packets, bytes.
const QUEUE_MIN: f64 = 3000.0;
/// Name of the group's flow.
const OWN: &str = "own";
/// File name of the sizes in the scenario.
const SIZES: &str = "sizes.txt";
const CLASSES: [Class; 2] = [Class::Small, Class::Large];

/// Why no advice can be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdviseError {
    /// The folder contains no records.
    #[error("there are no connections in {}", .0.display())]
    NoFiles(PathBuf),
    /// No recorded connection sent data and finished.
    #[error("no connection in it sent anything and came to its end")]
    NoConnections,
}

/// Settings of the search for advice.
#[derive(Clone, Debug)]
pub struct AdviseSettings {
    /// Controllers to compare, as written in scenarios.
    pub candidates: Candidates,
    /// Simulations of the controller in use, per group.
    pub simulations: usize,
    /// Seed of all random draws.
    pub seed: u64,
    /// Algorithms that the candidates may name, if not Knee's own.
    pub algorithms: Option<Arc<Algorithms>>,
}

/// Advice for one group of connections.
#[derive(Clone, Debug)]
pub struct Advised {
    /// The group.
    pub name: String,
    /// The controller of most of its connections.
    pub in_use: String,
    /// The same as the kernel names it.
    pub in_kernel: String,
    /// Prefixes of the clients; those of a run are unknown.
    pub prefixes: Vec<IpNet>,
    /// The host's port.
    pub port: Option<u16>,
    /// Connections under that controller.
    pub connections: usize,
    /// Number of all connections of the group, and of those of which no scan saw the controller.
    pub seen: Seen,
    /// What the best path reproduces least.
    pub misfitting: Vec<Misfitting>,
    /// The paths that fit the observations best, best first.
    pub fits: Vec<Fit>,
    /// Results by candidate and size class.
    pub classes: Vec<AdvisedClass>,
}

/// Result for one candidate and one size class.
#[derive(Clone, Debug)]
pub struct AdvisedClass {
    /// The candidate.
    pub candidate: String,
    /// Size class.
    pub class: Class,
    /// Connections of that class.
    pub connections: usize,
    /// Share of the group's bytes that these connections carry.
    pub bytes_share: f64,
    /// Answer of the rule of thumb, which needs no simulation.
    pub rule: Option<RuleOfThumb>,
    /// Answer of the rule of an operator, which needs none either.
    pub operators: Option<RuleOfThumb>,
    /// Retransmitted part of the payload that these connections sent; `None` if they sent nothing.
    pub retransmitted_now: Option<f64>,
    /// Standard deviation of the logarithm of these connections' speeds; `None` for fewer than
    /// [`SPREAD_MIN`].
    pub spread: Option<f64>,
    /// Prediction of the simulator; `None` if no path has such connections.
    pub prediction: Option<Prediction>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// What all simulations of a group have in common.
struct Stage<'g> {
    group: &'g ObservedGroup,
    sizes: Files,
    count: usize,
    seed: u64,
    algorithms: Option<Arc<Algorithms>>,
}

/// A simulated connection; of one that did not finish with its whole size, and the time until the
/// end, a lower bound of what it would have taken.
#[derive(Clone, Copy, Debug)]
struct Ran {
    connection: Connection,
    finished: bool,
}

/// Connections of a simulation, by connection number.
type Simulated = BTreeMap<u64, Ran>;

impl Lab {
    /// Fits paths to the group and simulates the candidates on them. Returns `None` if it was
    /// stopped.
    ///
    /// # Errors
    /// The first failure of a simulation.
    pub fn advise(
        &self,
        group: &ObservedGroup,
        settings: &AdviseSettings,
    ) -> Result<Option<Advised>, Error> {
        let stage = Stage::new(group, settings);
        if let Some(reason) = stage.obstacle() {
            let none = |_, _| (None, Verdict::NoAdvice(reason));
            return Ok(Some(stage.advised(Vec::new(), Vec::new(), classes(group, settings, none))));
        }
        stage.check(&settings.candidates)?;
        let base = group.base_rtt_s();
        let observed = Statistics::of(&group.connections, base, settings.seed);
        let bounds = Bounds::new(base, group.load_bps(), group.best_bps());
        let (seed, simulations) = (settings.seed, settings.simulations);
        let how = SearchSettings { seed, simulations, kept: FITS, scan: 0 };
        let mut search = Search::new(observed, bounds, how);
        let mut tried: Vec<Simulated> = Vec::new();
        loop {
            let paths = search.next_paths();
            if paths.is_empty() {
                break;
            }
            let asked: Vec<(Path, &str)> =
                paths.iter().map(|path| (*path, &*group.in_use)).collect();
            let Some(simulated) = stage.simulate(self, &asked)? else { return Ok(None) };
            let statistics = simulated.iter().map(|one| {
                let finished = one.values().filter(|one| one.finished);
                let connections: Vec<Connection> = finished.map(|one| one.connection).collect();
                Statistics::of(&connections, base, settings.seed)
            });
            search.tell(&statistics.collect::<Vec<_>>());
            tried.extend(simulated);
        }
        let misfitting = search.misfitting();
        let fits = search.fits();
        let mut asked: Vec<(Path, &str)> = Vec::new();
        for candidate in &settings.candidates.0 {
            asked.extend(fits.iter().map(|fit| (fit.path, candidate.as_str())));
        }
        let Some(answered) = stage.simulate(self, &asked)? else { return Ok(None) };
        let misfit = fits.first().map_or(f64::INFINITY, |fit| fit.misfit);
        let classes = classes(group, settings, |candidate, class| {
            let simulated = &answered[candidate * fits.len()..(candidate + 1) * fits.len()];
            let answers = fits
                .iter()
                .zip(simulated)
                .filter_map(|(fit, under)| Some((*fit, answer(&tried[fit.number], under, class)?)));
            let prediction = Prediction::new(class, &answers.collect::<Vec<_>>());
            let verdict = prediction.map_or(Verdict::Unclear, |one| one.verdict(misfit));
            (prediction, verdict)
        });
        Ok(Some(stage.advised(fits, misfitting, classes)))
    }
}

/// Builds the results by candidate and class; `of` supplies prediction and verdict of each.
fn classes(
    group: &ObservedGroup,
    settings: &AdviseSettings,
    of: impl Fn(usize, Class) -> (Option<Prediction>, Verdict),
) -> Vec<AdvisedClass> {
    let all: u64 = group.connections.iter().map(|one| one.bytes).sum();
    let of_all = |of: fn(&Connection) -> u64| group.connections.iter().map(of).sum::<u64>() as f64;
    let sent = of_all(|one| one.sent_bytes);
    let retransmitted = of_all(|one| one.retransmitted_bytes) / sent.max(1.0);
    let mut rtts: Vec<f64> = group.connections.iter().map(|one| one.rtt_min_s).collect();
    rtts.sort_by(f64::total_cmp);
    let rtt_s = rtts.get(rtts.len() / 2).copied().unwrap_or_default();
    let mut classes = Vec::new();
    for (number, candidate) in settings.candidates.0.iter().enumerate() {
        for class in CLASSES {
            let within = group.connections.iter().filter(|one| is_of(one, class));
            let bytes: u64 = within.clone().map(|one| one.bytes).sum();
            let sum = |of: fn(&Connection) -> u64| within.clone().map(of).sum::<u64>();
            let [again, sent] = [sum(|one| one.retransmitted_bytes), sum(|one| one.sent_bytes)];
            let (prediction, verdict) = of(number, class);
            classes.push(AdvisedClass {
                candidate: candidate.clone(),
                class,
                connections: within.count(),
                bytes_share: bytes as f64 / all.max(1) as f64,
                rule: rule_of_thumb(class, candidate, &group.in_use),
                operators: operators_rule(class, candidate, &group.in_use, rtt_s, retransmitted),
                retransmitted_now: (sent > 0).then(|| again as f64 / sent as f64),
                spread: speed_spread(&group.connections, |one| is_of(one, class)),
                prediction,
                verdict,
            });
        }
    }
    classes
}

/// Fewest connections whose spread says how many a trial needs.
pub const SPREAD_MIN: usize = 20;

/// Returns the standard deviation of the logarithm of the speeds of the connections that `counts`
/// names; `None` for fewer than [`SPREAD_MIN`].
pub fn speed_spread(
    connections: &[Connection],
    counts: impl Fn(&Connection) -> bool,
) -> Option<f64> {
    let counted = connections.iter().filter(|one| counts(one));
    let speeds: Vec<f64> = counted.map(|one| one.throughput_bps().ln()).collect();
    let count = speeds.len() as f64;
    let mean = speeds.iter().sum::<f64>() / count;
    let squares = speeds.iter().map(|speed| (speed - mean).powi(2)).sum::<f64>();
    (speeds.len() >= SPREAD_MIN).then(|| (squares / (count - 1.0)).sqrt())
}

fn is_of(connection: &Connection, class: Class) -> bool {
    (connection.bytes >= LARGE_BYTES) == (class == Class::Large)
}

/// Compares the connections that finished under one of the controllers at least, matched by number,
/// as the answers of `knee run` do; those that finished under neither show no difference.
fn answer(in_use: &Simulated, candidate: &Simulated, class: Class) -> Option<Answer> {
    let pairs: Vec<(&Ran, &Ran)> = in_use
        .iter()
        .filter(|(_, one)| is_of(&one.connection, class))
        .filter_map(|(number, one)| Some((one, candidate.get(number)?)))
        .filter(|(one, other)| one.finished || other.finished)
        .collect();
    let count = pairs.len() as f64;
    let cut_off = |of: &dyn Fn(&(&Ran, &Ran)) -> bool| {
        pairs.iter().filter(|pair| !of(pair)).count() as f64 / count
    };
    let retransmitted = |of: &dyn Fn(&(&Ran, &Ran)) -> Connection| {
        let all = pairs.iter().map(of);
        let (again, sent) = all.fold((0, 0), |(again, sent), one| {
            (again + one.retransmitted_bytes, sent + one.sent_bytes)
        });
        again as f64 / sent.max(1) as f64
    };
    let speed = |one: &Ran| one.connection.throughput_bps();
    let gains = pairs.iter().map(|(a, b)| (speed(b) / speed(a)).ln());
    (!pairs.is_empty()).then(|| Answer {
        gain: gains.sum::<f64>() / count,
        retransmitted: [
            retransmitted(&|pair| pair.0.connection),
            retransmitted(&|pair| pair.1.connection),
        ],
        unfinished: [cut_off(&|pair| pair.0.finished), cut_off(&|pair| pair.1.finished)],
    })
}

impl<'g> Stage<'g> {
    fn new(group: &'g ObservedGroup, settings: &AdviseSettings) -> Stage<'g> {
        let lines: Vec<String> =
            group.connections.iter().map(|one| one.bytes.to_string()).collect();
        let sizes: Arc<[u8]> = lines.join("\n").into_bytes().into();
        let in_time = ((DURATION_MAX_S - TAIL_S) / (SLACK * group.interval_s())) as usize;
        let count = group.connections.len().min(CONNECTIONS_MAX).min(in_time);
        Stage {
            group,
            sizes: Files::from([(SIZES.to_string(), sizes)]),
            count,
            seed: settings.seed,
            algorithms: settings.algorithms.clone(),
        }
    }

    fn advised(
        &self,
        fits: Vec<Fit>,
        misfitting: Vec<Misfitting>,
        classes: Vec<AdvisedClass>,
    ) -> Advised {
        let connections = self.group.connections.len();
        let ObservedGroup { name, in_use, in_kernel, prefixes, port, seen, .. } =
            self.group.clone();
        Advised {
            name,
            in_use,
            in_kernel,
            prefixes,
            port,
            connections,
            seen,
            misfitting,
            fits,
            classes,
        }
    }

    /// Why these connections cannot be simulated, if they cannot.
    fn obstacle(&self) -> Option<Reason> {
        let (count, in_use) = (self.group.connections.len(), &self.group.in_use);
        let known = &Algorithms::built_in().controllers;
        if count < CONNECTIONS_MIN {
            Some(Reason::TooFew(count))
        } else if in_use.is_empty() {
            Some(Reason::Unseen)
        } else if known.check(&Selection::named(in_use)).is_err() {
            Some(Reason::Unknown)
        } else {
            (self.count < CONNECTIONS_MIN).then_some(Reason::TooRare)
        }
    }

    /// Checks the names of the candidates, before the search for paths.
    fn check(&self, candidates: &Candidates) -> Result<(), Error> {
        let rtt_s = self.group.base_rtt_s();
        let path = Path { rate_bps: 1e6, rtt_s, loss: 0.0, buffer_bdp: 1.0, cross: 0.0 };
        candidates.0.iter().try_for_each(|candidate| self.scenario(&path, candidate).map(drop))
    }

    /// Simulates each path with its controller; `None` if it was stopped.
    fn simulate(&self, lab: &Lab, asked: &[(Path, &str)]) -> Result<Option<Vec<Simulated>>, Error> {
        let simulator = lab.grounds.get(SIMULATOR)?;
        let scenarios = asked.iter().map(|(path, cc)| self.scenario(path, cc));
        let scenarios = scenarios.collect::<Result<Vec<Scenario>, Error>>()?;
        let jobs: Vec<Job<'_>> =
            scenarios.iter().map(|scenario| Job::new(scenario, simulator)).collect();
        let ended = lab.run_all(&jobs, |_, run: Run| Ok(own_connections(&run)))?;
        Ok(if lab.is_stopped() { None } else { Some(ended.into_iter().flatten().collect()) })
    }

    fn scenario(&self, path: &Path, cc: &str) -> Result<Scenario, Error> {
        let text = scenario_text(path, self.group, self.count, self.seed);
        let text = ScenarioText::new("fit.toml", &text).with_files(self.sizes.clone());
        let text = match &self.algorithms {
            Some(algorithms) => text.with_algorithms(algorithms.clone()),
            None => text,
        };
        Ok(text.scenario(&[Override::new(&format!("flow.{OWN}.cc"), cc)])?)
    }
}

/// Writes a path as a scenario: the group's connections and the cross traffic.
fn scenario_text(path: &Path, group: &ObservedGroup, count: usize, seed: u64) -> String {
    let interval_s = group.interval_s();
    let duration_s = (interval_s * count as f64 * SLACK + TAIL_S).ceil();
    format!(
        "name = \"fit\"\nseed = {seed}\nduration = \"{duration_s} s\"\n{}\
         [[flow]]\nname = \"{OWN}\"\ncc = \"cubic\"\n{}{}",
        link_text(path),
        mix_text(interval_s, &format!("count = {count}, ")),
        others_text(path, group.mean_bytes(), duration_s)
    )
}

/// Link and path of a scenario.
fn link_text(path: &Path) -> String {
    let Path { rate_bps, rtt_s, loss, buffer_bdp, .. } = *path;
    let half_us = (rtt_s * 5e5).round();
    let buffer_bytes = (buffer_bdp * rate_bps * rtt_s / 8.0).max(QUEUE_MIN);
    format!(
        "[link.bottleneck]\nrate = \"{rate_bps:.0} bit/s\"\ndelay = \"{half_us} us\"\n\
         buffer = \"{buffer_bytes:.0} B\"\nloss = \"{:.4} %\"\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{half_us} us\"\n",
        loss * 100.0
    )
}

/// Workload of a flow with the group's sizes; `more` are further keys of the mix.
fn mix_text(interval_s: f64, more: &str) -> String {
    format!(
        "workload = {{ mix = {{ arrival_interval = \"{:.0} us\", {more}\
         sizes = {{ log = \"{SIZES}\" }} }} }}\n",
        interval_s * 1e6
    )
}

/// The cross traffic: its share of the link's rate, with transfers of the group's sizes.
fn others_text(path: &Path, mean_bytes: f64, duration_s: f64) -> String {
    let others_s = mean_bytes * 8.0 / (path.cross * path.rate_bps);
    // An interval longer than the run means no cross traffic.
    if others_s < duration_s {
        format!("[[flow]]\nname = \"others\"\ncc = \"cubic\"\n{}", mix_text(others_s, ""))
    } else {
        String::new()
    }
}

/// Connections of the first flow.
fn own_connections(run: &Run) -> Simulated {
    let own = run.records.connections.iter().filter(|row| row.flow == Some(0));
    let ran = |row: &knee_record::ConnectionRecord| {
        let finished = row.completion_ns.is_some();
        let mut connection = connection(row)?;
        if !finished {
            connection.bytes = row.size_bytes.unwrap_or(connection.bytes);
            let until_end = row.end_ns.saturating_sub(row.start_ns.unwrap_or(row.end_ns));
            connection.busy_s = connection.busy_s.max(until_end as f64 / 1e9);
        }
        Some((row.connection, Ran { connection, finished }))
    };
    own.filter_map(ran).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections with a minute between them, for half a day.
    #[test]
    fn simulations_of_rare_connections_are_as_long_as_scenarios_can_be() {
        let one = Connection {
            bytes: 50_000,
            busy_s: 0.2,
            sent_bytes: 51_000,
            retransmitted_bytes: 1_000,
            rtt_min_s: 0.04,
            srtt_s: 0.05,
            delivery_rate_bps: Some(9e6),
        };
        let group = ObservedGroup {
            name: "all".to_string(),
            in_use: "cubic".to_string(),
            in_kernel: "cubic".to_string(),
            prefixes: Vec::new(),
            port: None,
            connections: vec![one; 720],
            seen: Seen::default(),
            span_s: 43_200.0,
        };
        let settings = AdviseSettings {
            candidates: Candidates(Vec::new()),
            simulations: 20,
            seed: 1,
            algorithms: None,
        };
        let stage = Stage::new(&group, &settings);
        assert!((CONNECTIONS_MIN..720).contains(&stage.count), "{}", stage.count);
        let candidates = |name: &str| Candidates(vec![name.to_string()]);
        stage.check(&candidates("bbr")).unwrap();
        assert!(stage.check(&candidates("bbbr")).is_err());
    }
}
