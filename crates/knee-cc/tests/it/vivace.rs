//! PCC Vivace compared with the claims of its paper: the rate of greatest utility
//! on a fixed link, convergence of two flows, and little harm from random loss.
use crate::pipe::{Net, Path, Seen, controller};
use knee_units::Time;

fn path() -> Path {
    Path { buffer: 300, ack_every: 1, ..Path::new(20_000_000, 40) }
}

fn alone(path: Path, seconds: u64, seed: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(controller("vivace", seed), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

/// Returns the fraction of the link's payload rate used, after `from` seconds.
fn share(seen: &[Seen], path: &Path, from: u64) -> f64 {
    let late: Vec<&Seen> = seen.iter().filter(|s| s.now > Time::from_secs(from)).collect();
    let (first, last) = (late[0], late[late.len() - 1]);
    let seconds = (last.now - first.now).as_secs_f64();
    (last.delivered - first.delivered) as f64 / seconds / path.payload_rate()
}

/// Section 3.1: the utility of a lone sender is greatest at the rate of the link;
/// the base rate stays within a probe and a step of it.
#[test]
fn a_lone_flow_finds_the_rate_of_the_link() {
    for (mbit, rtt_ms) in [(5, 100), (20, 40), (100, 20)] {
        let path = Path { buffer: 1000, ..Path { ..Path::new(mbit * 1_000_000, rtt_ms) } };
        let seen = alone(Path { ack_every: 1, ..path }, 60, 1);
        let link = path.payload_rate() * 8.0 / 1e6;
        let late: Vec<f64> = seen
            .iter()
            .filter(|s| s.now > Time::from_secs(20))
            .map(|s| s.state.bandwidth.unwrap().as_bits_per_second() as f64 / 1e6)
            .collect();
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        let used = share(&seen, &path, 20);
        println!("{mbit} Mbit/s, {rtt_ms} ms: base {:.3}, used {used:.3}", mean / link);
        assert!((0.85..1.1).contains(&(mean / link)), "{mbit} Mbit/s: {mean} of {link}");
        assert!(used > 0.85, "{mbit} Mbit/s: {used}");
    }
}

/// The slope of the RTT keeps the queue short.
#[test]
fn the_queue_stays_short() {
    let seen = alone(path(), 60, 1);
    let mut rtts: Vec<Time> =
        seen.iter().filter(|s| s.now > Time::from_secs(20)).map(|s| s.rtt).collect();
    rtts.sort();
    let p95 = rtts[rtts.len() * 95 / 100] - path().rtt;
    println!("95 % of the queue: {:.1} ms", p95.as_millis_f64());
    assert!(p95 < Time::from_millis(40), "{p95:?}");
}

/// Section 3.2, theorem 1: two senders reach a fair share, however they began.
#[test]
fn two_flows_converge() {
    let mut net = Net::new(path());
    net.add(controller("vivace", 1), Time::ZERO, Time::MAX);
    net.add(controller("vivace", 2), Time::from_secs(20), Time::MAX);
    let mut at = [[0_u64; 2]; 2];
    net.run(Time::from_secs(100), |s| at[0][s.flow] = s.delivered);
    net.run(Time::from_secs(200), |s| at[1][s.flow] = s.delivered);
    let [a, b] = [0, 1].map(|f| (at[1][f] - at[0][f]) as f64);
    let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
    println!("{:.3} of both, Jain {jain:.3}", a / (a + b));
    assert!(jain > 0.9, "{a} {b}");
    assert!(a + b > 0.8 * 100.0 * path().payload_rate(), "{a} {b}");
}

/// Section 3.1: with a penalty of 11.35 random loss is tolerated as long as it
/// costs less than the rate gains; 2 % does not halve the rate here, and slows
/// Reno down to a small fraction.
#[test]
fn random_loss_is_borne() {
    let path = Path { drop_every: Some(100), ..path() };
    let used = share(&alone(path, 60, 1), &path, 10);
    let mut net = Net::new(path);
    net.add(controller("reno", 1), Time::ZERO, Time::MAX);
    let mut reno = Vec::new();
    net.run(Time::from_secs(60), |seen| reno.push(*seen));
    let reno = share(&reno, &path, 10);
    println!("vivace {used:.3}, reno {reno:.3}");
    assert!(used > 2.0 * reno, "{used}, reno {reno}");
}

/// The same seed gives the same decisions, another seed different ones.
#[test]
fn it_draws_from_its_own_stream() {
    let end = |seed| alone(path(), 10, seed).last().unwrap().delivered;
    assert_eq!(end(1), end(1));
    assert_ne!(end(1), end(2));
}
