//! The load that a scenario offers to its links: what its workloads would send, whatever is
//! carried.
//!
//! The transfers of a mix arrive whether or not earlier ones have ended, so a link can get more
//! than its rate allows; the queue of open transfers then grows until the end of the run. Requests
//! wait for the answer before, so they have a rate only if the link is idle. Bulk, files, pages and
//! video send as fast as the path allows: they have no offered load.

use crate::Unit;
use knee_link::{Capacity, Config, RateModel};
use knee_scenario::{Flow, Path, Scenario};
use knee_units::Time;
use knee_workload::{Bursts, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Part of a link's rate above which it is overloaded: headers take another 3.5 % of full packets.
const OVERLOADED: f64 = 0.95;
/// Number of parts of the whole time in which the load may differ from its mean.
const STRETCHES: u64 = 6;
/// Shortest such part: within less, the queue and a few large transfers decide.
const STRETCH_MIN: Time = Time::from_secs(10);
/// Steps in which a stretch moves over the whole time, per stretch.
const STEPS: u64 = 10;
/// Relative difference from the mean below which the busiest stretch is not worth naming.
const EVEN: f64 = 0.02;

/// The load offered to a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedLoad {
    /// Name of the link.
    pub link: String,
    /// From the start of the first mix on the link until none is left.
    pub whole: OfferedSpan,
    /// The stretch of a sixth of that, but at least 10 s, with the most load for
    /// the link's rate; absent if the load is even.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest: Option<OfferedSpan>,
    /// What requests ask for while they last, if each is answered by an idle
    /// link, bit/s; they wait, so they do not overload it.
    pub requests_bps: f64,
}

/// Load over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedSpan {
    /// Begin, seconds since the start of the run.
    pub from_s: f64,
    /// End, seconds since the start of the run.
    pub until_s: f64,
    /// Payload of the transfers that arrive, bit/s; for random arrivals, the
    /// expected number and size.
    pub offered_bps: f64,
    /// The same over what the link's rate allows, its policer included; null if
    /// nothing passes.
    pub of_rate: Option<f64>,
}

impl OfferedSpan {
    fn is_overloaded(&self) -> bool {
        self.offered_bps > 0.0 && self.of_rate.is_none_or(|part| part > OVERLOADED)
    }

    /// Compares by the part of the rate.
    fn part(&self) -> f64 {
        self.of_rate.unwrap_or(if self.offered_bps > 0.0 { f64::INFINITY } else { 0.0 })
    }
}

impl OfferedLoad {
    /// Whether the link gets more than 95 % of its rate, over the whole time or in the busiest
    /// stretch.
    pub fn is_overloaded(&self) -> bool {
        self.whole.is_overloaded() || self.busiest.is_some_and(|span| span.is_overloaded())
    }

    /// Returns the load in words: `75 Mbit/s on last-mile, 150 % of its rate`.
    pub fn in_words(&self) -> String {
        let OfferedLoad { link, whole, busiest, requests_bps } = self;
        let rate = |bps: f64| Unit::BitsPerSecond.show(bps);
        let mut words = match whole.offered_bps {
            0.0 => return format!("requests for up to {} on {link}", rate(*requests_bps)),
            bps => format!("{} on {link}, {}", rate(bps), of_rate(whole)),
        };
        if let Some(span) = busiest {
            let [from, until] = [span.from_s, span.until_s].map(|time| Unit::Seconds.show(time));
            words += &format!(" ({} from {from} to {until})", of_rate(span));
        }
        if *requests_bps > 0.0 {
            words += &format!(", besides requests for up to {}", rate(*requests_bps));
        }
        words
    }
}

/// Returns the loads in a sentence, those with the most load first; `None` without any.
pub fn offered_in_words<'l>(loads: impl IntoIterator<Item = &'l OfferedLoad>) -> Option<String> {
    let mut loads: Vec<&OfferedLoad> = loads.into_iter().collect();
    let most = |load: &OfferedLoad| load.busiest.map_or(0.0, |span| span.part());
    let most = |load: &OfferedLoad| most(load).max(load.whole.part());
    loads.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let words: Vec<String> = loads.into_iter().map(OfferedLoad::in_words).collect();
    (!words.is_empty()).then(|| format!("offered load: {}", words.join("; ")))
}

fn of_rate(span: &OfferedSpan) -> String {
    match span.of_rate {
        Some(part) if part < 0.1 => format!("{:.1} % of its rate", part * 100.0),
        Some(part) => format!("{:.0} % of its rate", part * 100.0),
        None => "while nothing passes".to_string(),
    }
}

/// Returns the load offered to each link with a rate that mixes or requests use, in the order of
/// the links.
pub fn offered_load(scenario: &Scenario) -> Vec<OfferedLoad> {
    let demands = Demands::of(scenario);
    (0..scenario.links.len()).filter_map(|link| demands.on(link)).collect()
}

/// What flows ask of the links of a scenario.
struct Demands<'s> {
    scenario: &'s Scenario,
    /// What each link allows over time.
    limits: Vec<Vec<Capacity>>,
    /// Edges of the steps in which load is counted.
    edges: Vec<Time>,
    mixes: Vec<Demand<'s>>,
    requests: Vec<(&'s Flow, Bursts)>,
}

/// A mix and the bytes that arrive in it, step by step.
struct Demand<'s> {
    flow: &'s Flow,
    bytes: Vec<f64>,
}

impl<'s> Demands<'s> {
    fn of(scenario: &'s Scenario) -> Demands<'s> {
        let stretch = stretch(scenario.duration);
        let step = (stretch.as_nanos() / STEPS).max(1);
        let steps = scenario.duration.as_nanos().div_ceil(step);
        let edges = (0..=steps).map(|at| Time::from_nanos(at * step).min(scenario.duration));
        let edges: Vec<Time> = edges.collect();
        let mut demands = Demands {
            scenario,
            limits: scenario.links.iter().map(|link| limits(&link.config)).collect(),
            mixes: Vec::new(),
            requests: Vec::new(),
            edges,
        };
        for flow in &scenario.flows {
            match &flow.workload {
                Workload::Mix(mix) => {
                    let end = demands.end(flow);
                    let since = |edge: &Time| (*edge).min(end).saturating_sub(flow.start);
                    let times: Vec<Time> = demands.edges.iter().map(since).collect();
                    demands.mixes.push(Demand { flow, bytes: mix.offered_bytes(&times) });
                }
                Workload::Bursts(bursts) => demands.requests.push((flow, *bursts)),
                _ => {}
            }
        }
        demands
    }

    fn end(&self, flow: &Flow) -> Time {
        flow.stop.unwrap_or(Time::MAX).min(self.scenario.duration).max(flow.start)
    }

    /// Returns the load of a link; `None` if it has no rate, or nothing to offer.
    fn on(&self, link: usize) -> Option<OfferedLoad> {
        let passes = |path: usize| self.scenario.paths[path].forward.contains(&link);
        let used = |flow: &Flow| used(flow).any(passes);
        let requests: f64 = self
            .requests
            .iter()
            .filter(|(flow, _)| used(flow))
            .map(|(flow, bursts)| self.requests_bps(flow, bursts) * self.share(flow, link, None))
            .sum();
        let mixes: Vec<&Demand<'_>> = self.mixes.iter().filter(|mix| used(mix.flow)).collect();
        if self.limits[link].is_empty() || (mixes.is_empty() && requests == 0.0) {
            return None;
        }
        let begin = mixes.iter().map(|mix| mix.flow.start).min().unwrap_or(Time::ZERO);
        let end = mixes.iter().map(|mix| self.end(mix.flow)).max();
        let end = end.unwrap_or(self.scenario.duration);
        let first = self.edges.partition_point(|edge| *edge <= begin).saturating_sub(1);
        let last = self.edges.partition_point(|edge| *edge < end);
        // Steps do not begin and end with the mixes.
        let span = |from: usize, to: usize| (self.edges[from].max(begin), self.edges[to].min(end));
        let over = |from: usize, to: usize| self.over(link, &mixes, from..to, span(from, to));
        let whole = over(first, last);
        let long = STEPS as usize;
        let starts = first..=last.saturating_sub(long);
        let stretches = starts.filter(|from| from + long <= last);
        let stretches = stretches.map(|from| over(from, from + long));
        let busiest = stretches.max_by(|a, b| a.part().total_cmp(&b.part()));
        let busier = |span: &OfferedSpan| span.part() > whole.part() * (1.0 + EVEN);
        Some(OfferedLoad {
            link: self.scenario.links[link].name.clone(),
            whole,
            busiest: busiest.filter(busier),
            requests_bps: requests,
        })
    }

    /// Returns the load of a link over some steps, which last for `span`.
    fn over(
        &self,
        link: usize,
        mixes: &[&Demand<'_>],
        steps: Range<usize>,
        span: (Time, Time),
    ) -> OfferedSpan {
        let bytes: f64 = mixes
            .iter()
            .map(|mix| {
                let bytes: f64 = mix.bytes[steps.clone()].iter().sum();
                bytes * self.share(mix.flow, link, Some(span))
            })
            .sum();
        let seconds = (span.1.saturating_sub(span.0)).as_secs_f64();
        let possible = self.possible(link, span);
        OfferedSpan {
            from_s: span.0.as_secs_f64(),
            until_s: span.1.as_secs_f64(),
            offered_bps: if seconds > 0.0 { 8.0 * bytes / seconds } else { 0.0 },
            of_rate: (possible > 0.0).then(|| bytes / possible),
        }
    }

    /// Returns the bytes that may leave a link; infinite without a rate.
    fn possible(&self, link: usize, (from, until): (Time, Time)) -> f64 {
        let each = self.limits[link].iter().map(|limit| limit.bytes(from, until));
        each.fold(f64::INFINITY, f64::min)
    }

    /// Returns the part of a flow's bytes that passes a link: over several paths, as if they were
    /// used in proportion to what each allows.
    fn share(&self, flow: &Flow, link: usize, span: Option<(Time, Time)>) -> f64 {
        let span = span.unwrap_or((Time::ZERO, self.scenario.duration));
        let paths: Vec<&Path> = used(flow).map(|path| &self.scenario.paths[path]).collect();
        let passes = |path: &&&Path| path.forward.contains(&link);
        if paths.len() < 2 {
            return if paths.iter().any(|path| passes(&path)) { 1.0 } else { 0.0 };
        }
        let allows = |path: &&Path| {
            let links = path.forward.iter().map(|link| self.possible(*link, span));
            // An unlimited path takes all.
            links.fold(f64::INFINITY, f64::min).clamp(1e-9, 1e18)
        };
        let all: f64 = paths.iter().map(allows).sum();
        paths.iter().filter(passes).map(allows).sum::<f64>() / all
    }

    /// Returns what a flow's requests ask for over an idle path until their number ends, bit/s.
    fn requests_bps(&self, flow: &Flow, bursts: &Bursts) -> f64 {
        let whole = (Time::ZERO, self.scenario.duration);
        let answered = used(flow).map(|path| {
            let forward = self.scenario.paths[path].forward.iter();
            let bytes = forward.map(|link| self.possible(*link, whole));
            let bytes = bytes.fold(f64::INFINITY, f64::min);
            let sent_s = bursts.size_bytes as f64 * whole.1.as_secs_f64() / bytes;
            let forward = self.scenario.one_way_delay(path);
            let empty = forward.saturating_add(self.scenario.way_back(path));
            empty.as_secs_f64() + sent_s
        });
        let cycle_s = bursts.pause.as_secs_f64() + answered.fold(f64::INFINITY, f64::min);
        let bps = 8.0 * bursts.size_bytes as f64 / cycle_s;
        if self.end(flow) > flow.start && bps.is_finite() { bps } else { 0.0 }
    }
}

/// Length of the stretches in which the load may differ from its mean.
fn stretch(duration: Time) -> Time {
    (duration / STRETCHES).max(STRETCH_MIN).min(duration)
}

/// Returns the paths that a flow uses when all is well: without its backups.
fn used(flow: &Flow) -> impl Iterator<Item = usize> {
    let backup = flow.multipath.as_ref().map_or(&[][..], |how| &how.backup);
    let places = flow.paths.iter().enumerate();
    let places = places.filter(|(position, _)| !backup.contains(position));
    places.map(|(_, path)| *path)
}

/// Returns the limits of a link: its rate, and its policer's.
fn limits(config: &Config) -> Vec<Capacity> {
    let policed = config.policer.as_ref().map(|policer| RateModel::Constant(policer.rate));
    let rates = std::iter::once(&config.rate).chain(&policed);
    rates.filter_map(|rate| Capacity::new(rate, &config.down)).collect()
}
