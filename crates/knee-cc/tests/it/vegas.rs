//! Vegas compared with its own rule: the packets that a flow keeps in the
//! queue, counted by the pipe, are between alpha and beta.
use crate::pipe::{MSS, Net, Path, Seen, controller, init};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

/// A link of 10 Mbit/s and 40 ms, an acknowledgement for each segment.
fn path() -> Path {
    Path { ack_every: 1, ..Path::new(10_000_000, 40) }
}

/// Returns the window less what the path holds without a queue, in packets, at
/// the acknowledgements of the last seconds.
fn queued(path: Path, seen: &[Seen], from: u64) -> Vec<f64> {
    let late = seen.iter().filter(|s| s.now > Time::from_secs(from));
    late.map(|s| (s.decision.window as f64 - path.bdp()) / MSS as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn alone(selection: &Selection, path: Path, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(build(selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

/// Brakmo and Peterson, section 3.2: between alpha and beta extra packets. The
/// packet being transmitted is not in the queue, and Linux rounds down.
#[test]
fn the_queue_stays_between_alpha_and_beta() {
    for (alpha, beta) in [(2.0, 4.0), (6.0, 9.0)] {
        let selection = Selection::named("vegas")
            .with("alpha", Value::Number(alpha))
            .with("beta", Value::Number(beta));
        let queue = queued(path(), &alone(&selection, path(), 30), 10);
        let (least, most) =
            queue.iter().fold((f64::MAX, f64::MIN), |(a, b), q| (a.min(*q), b.max(*q)));
        assert!(least >= alpha - 1.0 && most <= beta + 2.0, "{least} to {most}: {alpha}, {beta}");
    }
}

/// The window of a constant path stays constant once reached.
#[test]
fn the_window_comes_to_rest() {
    let seen = alone(&Selection::named("vegas"), path(), 30);
    let late: Vec<u64> =
        seen.iter().filter(|s| s.now > Time::from_secs(20)).map(|s| s.decision.window).collect();
    assert!(late.iter().all(|window| *window == late[0]), "{late:?}");
}

/// Three flows keep three times as much, and the link is full. Their first
/// flights follow each other: a flow that begins behind another's flight counts
/// that queue as part of the path, which is Vegas's weakness.
#[test]
fn several_flows_add_up() {
    let mut net = Net::new(path());
    for seed in 0..3 {
        let start = Time::from_millis(13 * seed);
        net.add(controller("vegas", seed), start, Time::MAX);
    }
    net.run(Time::from_secs(30), |_| {});
    let mut lengths = Vec::new();
    let mut bytes = [0_u64; 3];
    let mut first = [None; 3];
    for ms in 0..10_000_u64 {
        net.run(Time::from_secs(30) + Time::from_millis(ms), |seen| {
            let start = *first[seen.flow].get_or_insert(seen.delivered);
            bytes[seen.flow] = seen.delivered - start;
        });
        lengths.push(net.queue() as f64);
    }
    let total: u64 = bytes.iter().sum();
    assert!(total as f64 > 0.97 * 10.0 * path().payload_rate(), "{bytes:?}");
    assert!((5.0..=14.0).contains(&mean(&lengths)), "{}", mean(&lengths));
}

/// Linux ends slow start at the rate that was reached, before the queue that
/// Reno would fill.
#[test]
fn slow_start_ends_before_the_queue_is_full() {
    let path = Path { buffer: 1000, ..path() };
    let seen = alone(&Selection::named("vegas"), path, 5);
    let most = seen.iter().map(|s| s.decision.window).max().unwrap() as f64;
    assert!(most < 2.5 * path.bdp(), "{:.2} BDP", most / path.bdp());
    assert_eq!(seen.last().unwrap().lost, 0);
    let reno = alone(&Selection::named("reno"), path, 5);
    assert!(reno.iter().map(|s| s.decision.window).max().unwrap() as f64 > 10.0 * path.bdp());
}

/// On loss it acts like Reno.
#[test]
fn loss_halves_the_window() {
    let path = Path { drop_every: Some(400), ..path() };
    let seen = alone(&Selection::named("vegas"), path, 20);
    let falls = seen.windows(2).filter(|pair| pair[1].lost > pair[0].lost);
    let ratios: Vec<f64> =
        falls.map(|p| p[1].decision.window as f64 / p[0].decision.window as f64).collect();
    assert!(ratios.len() > 5);
    assert!(ratios.iter().all(|r| (0.45..0.56).contains(r)), "{ratios:?}");
}
