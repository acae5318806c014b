//! Behaviour of every controller on a path whose rate falls: it notices, at any
//! RTT, and keeps using the remaining rate. Each run is reproducible from its seed.
use crate::pipe::{Net, Path, Seen, controller};
use knee_cc::controllers;
use knee_units::Time;

const FAST: u64 = 20_000_000;
const SLOW: u64 = 1_500_000;

/// All names except the controller with a constant window.
fn names() -> impl Iterator<Item = &'static str> {
    let presets = |entry: &'static knee_cc::Entry| {
        [entry.name].into_iter().chain(entry.presets.iter().map(|preset| preset.name))
    };
    controllers().iter().flat_map(presets).filter(|name| *name != "fixed")
}

/// Runs half a minute at 20 Mbit/s and then longer at 1.5, with a BDP of buffer,
/// and returns the last 30 s. At 400 ms a full buffer gives an RTT of five seconds,
/// and Vivace, which learns from one trial at a time, takes minutes.
fn run(name: &str, rtt_ms: u64) -> Vec<Seen> {
    let mut path = Path::new(FAST, rtt_ms);
    path.buffer = (path.bdp() / 1448.0) as usize + 10;
    let mut net = Net::new(path);
    net.add(controller(name, 3), Time::ZERO, Time::MAX);
    net.run(Time::from_secs(30), |_| {});
    net.set_path(Path { rate: SLOW, ..path });
    let end = if name == "vivace" { 600 } else { 120 };
    net.run(Time::from_secs(end - 30), |_| {});
    let mut late = Vec::new();
    net.run(Time::from_secs(end), |seen| late.push(*seen));
    late
}

#[test]
fn estimates_fall_with_the_rate() {
    let link = Path::new(SLOW, 10).payload_rate() * 8.0;
    for name in names() {
        for rtt_ms in [10, 100, 400] {
            let late = run(name, rtt_ms);
            let place = format!("{name}, {rtt_ms} ms");
            let bytes = late.last().unwrap().delivered - late[0].delivered;
            let used = bytes as f64 * 8.0 / 29.9 / link;
            let mean = |of: &dyn Fn(&Seen) -> f64| {
                late.iter().map(of).sum::<f64>() / late.len() as f64 / link
            };
            let bandwidth =
                |s: &Seen| s.state.bandwidth.map_or(0.0, |b| b.as_bits_per_second() as f64);
            let pacing = |s: &Seen| {
                s.decision.pacing_rate.map_or(0.0, |rate| rate.as_bits_per_second() as f64)
            };
            let (estimate, paced) = (mean(&bandwidth), mean(&pacing));
            println!("{place}: used {used:.2}, estimate {estimate:.2}, paced {paced:.2}");
            assert!(estimate < 1.3, "{place}: {estimate} of the link");
            // Copa paces at twice its window over the smallest recent RTT.
            // RemyCC is limited by its window, not by the spacing in its table.
            assert!(paced < 3.5 || name == "remycc", "{place}: {paced} of the link");
            assert!(used > 0.6, "{place}: {used}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_decisions() {
    for name in names() {
        let decisions = || run(name, 10).iter().map(|s| (s.now, s.decision)).collect::<Vec<_>>();
        assert_eq!(decisions(), decisions(), "{name}");
    }
}
