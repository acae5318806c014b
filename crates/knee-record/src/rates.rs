//! What the paths of a run allow over time.

use crate::Records;
use crate::view::Moment;
use knee_link::{Capacity, CircuitBreaker};
use knee_scenario::Scenario;
use knee_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What each path of a scenario allows over time, and which paths each flow uses, all by their
/// index in the scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    paths: Vec<PathRate>,
    flows: Vec<Vec<usize>>,
    breakers: Vec<Option<CircuitBreaker>>,
}

/// A path from sender to receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathRate {
    /// The links that have a rate.
    links: Vec<LinkRate>,
    /// Sum of the smallest delays of all links, nanoseconds.
    delay_ns: u64,
}

/// A link of a path.
#[derive(Clone, Debug, PartialEq)]
struct LinkRate {
    /// What the link allows while it is up and the path exists.
    capacity: Capacity,
    /// Sum of the smallest delays of the links before it, nanoseconds.
    before_ns: u64,
    /// Sum of the smallest delays of this link and those after it, nanoseconds.
    after_ns: u64,
}

impl Rates {
    /// Returns the rates of a scenario.
    pub fn of(scenario: &Scenario) -> Rates {
        Rates {
            paths: scenario.paths.iter().map(|path| PathRate::of(scenario, path)).collect(),
            flows: scenario.flows.iter().map(|flow| flow.paths.clone()).collect(),
            breakers: scenario.links.iter().map(|link| link.config.circuit_breaker).collect(),
        }
    }

    /// The circuit breaker of a link; none: it has none, or it is not known.
    pub(crate) fn breaker(&self, link: usize) -> Option<&CircuitBreaker> {
        self.breakers.get(link)?.as_ref()
    }

    /// Returns whether the capacity of a path varies over time, by more than a hundredth and a
    /// packet or two: its rate changes, it is down, or it is absent for a while.
    pub fn vary(&self, until: Time) -> bool {
        const SPANS: u64 = 64;
        let end = |number: u64| Time::from_nanos(until.as_nanos() / SPANS * number);
        self.paths.iter().any(|path| {
            let spans = (0..SPANS).map(|at| path.bytes(end(at), end(at + 1)));
            let Some(bytes) = spans.collect::<Option<Vec<f64>>>() else { return false };
            let mean = bytes.iter().sum::<f64>() / SPANS as f64;
            bytes.iter().any(|span| (span - mean).abs() > 0.01 * mean + 3000.0)
        })
    }

    /// Returns the paths of some flows, each once; `None` if one is not known.
    pub(crate) fn paths_of(&self, flows: impl Iterator<Item = u32>) -> Option<Vec<&PathRate>> {
        let mut numbers = BTreeSet::new();
        for flow in flows {
            numbers.extend(self.flows.get(flow as usize)?.iter().copied());
        }
        numbers.into_iter().map(|path| self.paths.get(path)).collect()
    }

    /// Returns the mean rate of a path between two times, which is that of its slowest link, bit/s.
    /// Zero means unlimited, as in the rows.
    fn mean_bps(&self, path: usize, from: Time, until: Time) -> u64 {
        let seconds = until.saturating_sub(from).as_secs_f64();
        let bytes = self.paths.get(path).and_then(|path| path.bytes(from, until));
        // At least 1 bit/s, because zero means unlimited.
        let bps = bytes.filter(|_| seconds > 0.0).map(|bytes| 8.0 * bytes / seconds);
        bps.map_or(0, |bps| bps.round().max(1.0) as u64)
    }

    /// Returns the joint mean rate of all paths of a flow.
    fn flow_mean_bps(&self, flow: usize, from: Time, until: Time) -> u64 {
        let paths = self.flows.get(flow).into_iter().flatten();
        let means: Vec<u64> = paths.map(|path| self.mean_bps(*path, from, until)).collect();
        if means.contains(&0) { 0 } else { means.iter().sum() }
    }
}

impl Records {
    /// Takes the rates of the paths from the scenario, and stores their means in the rows of the
    /// flows and of their paths.
    pub fn with_rates(mut self, scenario: &Scenario) -> Records {
        let rates = Rates::of(scenario);
        let mut lives = BTreeMap::new();
        for flow in &mut self.flows {
            let life = [flow.start_ns, flow.end_ns].map(Time::from_nanos);
            flow.path_rate_bps = rates.flow_mean_bps(flow.flow as usize, life[0], life[1]);
            lives.insert(flow.flow, life);
        }
        for path in &mut self.paths {
            let [start, end] = lives.get(&path.flow).copied().unwrap_or_default();
            path.rate_bps = rates.mean_bps(usize::from(path.path), start, end);
        }
        Records { rates, ..self }
    }
}

impl PathRate {
    fn of(scenario: &Scenario, path: &knee_scenario::Path) -> PathRate {
        let links = || path.forward.iter().map(|link| &scenario.links[*link].config);
        let delays: Vec<u64> = links().map(least_delay_ns).collect();
        let delay_ns = delays.iter().sum();
        let mut before_ns = 0;
        let mut limited = Vec::new();
        for (config, delay) in links().zip(&delays) {
            let outages = merged(&config.down, &path.absent);
            if let Some(capacity) = Capacity::new(&config.rate, &outages) {
                limited.push(LinkRate { capacity, before_ns, after_ns: delay_ns - before_ns });
            }
            before_ns += delay;
        }
        PathRate { links: limited, delay_ns }
    }

    /// Returns the IP bytes that the path allows between two times, limited by its slowest link;
    /// `None` if unlimited.
    fn bytes(&self, from: Time, until: Time) -> Option<f64> {
        let links = self.links.iter().map(|link| link.capacity.bytes(from, until));
        links.min_by(f64::total_cmp)
    }

    /// Returns the IP bytes that the path allows between two times, nanoseconds; infinite if
    /// unlimited.
    pub(crate) fn allowed_bytes(&self, from_ns: u64, until_ns: u64) -> f64 {
        let [from, until] = [from_ns, until_ns].map(Time::from_nanos);
        self.bytes(from, until).unwrap_or(f64::INFINITY)
    }

    /// Returns the IP bytes that the path allows between two moments, interpolated as counters are;
    /// `None` if unlimited.
    pub(crate) fn bytes_between(&self, begin: Moment, end: Moment) -> Option<f64> {
        let links = self.links.iter().map(|link| {
            let until = |time: u64| link.capacity.bytes(Time::ZERO, Time::from_nanos(time));
            end.read(until) - begin.read(until)
        });
        links.min_by(f64::total_cmp)
    }

    /// Returns the IP bytes sent from `start_ns` on that can have arrived by `at_ns`; infinite over
    /// an unlimited path.
    pub(crate) fn arrived_bytes(&self, start_ns: u64, at_ns: u64) -> f64 {
        if at_ns < start_ns.saturating_add(self.delay_ns) {
            return 0.0;
        }
        let links = self.links.iter().map(|link| {
            let from = Time::from_nanos(start_ns + link.before_ns);
            link.capacity.bytes(from, Time::from_nanos(at_ns - link.after_ns))
        });
        links.fold(f64::INFINITY, f64::min)
    }
}

/// Returns the smallest of a link's delays over time.
fn least_delay_ns(config: &knee_link::Config) -> u64 {
    let delays = config.delay.base.0.iter().map(|(_, delay)| delay.as_nanos());
    delays.min().unwrap_or(0)
}

/// Merges two lists of spans into ascending, disjoint spans.
fn merged(one: &[(Time, Time)], other: &[(Time, Time)]) -> Vec<(Time, Time)> {
    let mut spans = [one, other].concat();
    spans.sort_unstable();
    let mut merged: Vec<(Time, Time)> = Vec::new();
    for (from, until) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    merged
}
