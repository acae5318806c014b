//! Evaluations of what BBR tests observed on the pipe.
use super::{Net, Path, Seen, controller, init};
use knee_cc::{Controller, Selection, Value, build};
use knee_units::Time;
use std::ops::Range;

pub fn run(path: Path, name: &str, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(controller(name, 7), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

pub fn bandwidth(seen: &Seen) -> f64 {
    seen.state.bandwidth.map_or(0.0, |b| b.as_bits_per_second() as f64 / 8.0)
}

/// Returns the phases in order, with their first and last acknowledgement.
pub fn phases(all: &[Seen]) -> Vec<(&'static str, Seen, Seen)> {
    let mut list: Vec<(&'static str, Seen, Seen)> = Vec::new();
    for seen in all {
        match list.last_mut() {
            Some((phase, _, last)) if *phase == seen.state.phase => *last = *seen,
            _ => list.push((seen.state.phase, *seen, *seen)),
        }
    }
    list
}

/// Counts packet-timed round trips: what was in flight at the start of one is
/// delivered at its end.
pub fn round_trips<'a>(all: impl Iterator<Item = &'a Seen>) -> u32 {
    let mut ends_at = None;
    let mut rounds = 0;
    for seen in all {
        let end = *ends_at.get_or_insert(seen.delivered + seen.in_flight);
        if seen.delivered >= end {
            rounds += 1;
            ends_at = Some(seen.delivered + seen.in_flight);
        }
    }
    rounds
}

/// Returns the rounds for which a single flow on a link of 20 Mbit/s and 40 ms
/// keeps that rate after the link's rate has halved.
pub fn rounds_to_forget(controller: Box<dyn Controller>) -> u32 {
    let path = Path::new(20_000_000, 40);
    let mut net = Net::new(path);
    net.add(controller, Time::ZERO, Time::MAX);
    net.run(Time::from_secs(4), |_| {});
    let slow = Path { rate: 10_000_000, ..path };
    net.set_path(slow);
    let mut remembering = Vec::new();
    let mut forgotten = false;
    net.run(Time::from_secs(9), |seen| {
        forgotten |= bandwidth(seen) < 1.1 * slow.payload_rate();
        if !forgotten {
            remembering.push(*seen);
        }
    });
    assert!(forgotten, "the new rate is found");
    round_trips(remembering.iter())
}

/// BBR with one parameter set.
pub fn with(name: &str, value: Value) -> Selection {
    Selection::named("bbr").with(name, value)
}

pub fn several(selection: &Selection, path: Path, flows: u64, seconds: u64) -> Vec<Seen> {
    seeded(selection, path, 0..flows, seconds)
}

/// Returns what flows with these seeds saw that share a path.
pub fn seeded(selection: &Selection, path: Path, seeds: Range<u64>, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    for seed in seeds {
        net.add(build(selection, init(seed)).unwrap(), Time::ZERO, Time::MAX);
    }
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}
