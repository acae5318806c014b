//! GCC against its draft and what its authors measured: alone on a link, at random loss,
//! beside a flow that fills the buffer.
use crate::pipe::{Net, Path, Seen, controller, init};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

/// Each packet is acknowledged, as feedback for each packet has it (section 3).
fn path(kbit: u64, rtt_ms: u64) -> Path {
    Path { ack_every: 1, ..Path::new(kbit * 1000, rtt_ms) }
}

fn alone(path: Path, name: &str, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(controller(name, 1), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

fn from(seen: &[Seen], second: u64) -> Vec<Seen> {
    seen.iter().filter(|s| s.now >= Time::from_secs(second)).copied().collect()
}

/// Payload in bit/s.
fn goodput(seen: &[Seen]) -> f64 {
    let (first, last) = (seen[0], seen[seen.len() - 1]);
    (last.delivered - first.delivered) as f64 * 8.0 / (last.now - first.now).as_secs_f64()
}

fn pacing(seen: &Seen) -> f64 {
    seen.decision.pacing_rate.unwrap().as_bits_per_second() as f64
}

/// Part of a link's payload, and the 95th percentile of its queue in ms.
fn settled(kbit: u64, rtt_ms: u64) -> (f64, f64) {
    let path = path(kbit, rtt_ms);
    let late = from(&alone(path, "gcc", 120), 40);
    let mut queues: Vec<f64> = late.iter().map(|s| (s.rtt - path.rtt).as_millis_f64()).collect();
    queues.sort_by(f64::total_cmp);
    let used = goodput(&late) / (path.payload_rate() * 8.0);
    let queue = queues[queues.len() * 95 / 100];
    (used, queue)
}

/// Carlucci et al. (MMSys 2016), one flow on links of 0.5 to 3 Mbit/s, 50 ms: more than
/// 80 % used, with tens of milliseconds of queue in a buffer of hundreds.
#[test]
fn alone_it_uses_the_link_with_a_short_queue() {
    for (kbit, rtt_ms) in [(500, 50), (1000, 50), (1000, 150), (1500, 50)] {
        let (used, queue) = settled(kbit, rtt_ms);
        assert!((0.8..1.0).contains(&used), "{kbit} kbit/s, {rtt_ms} ms: {used}");
        assert!(queue < 100.0, "{kbit} kbit/s, {rtt_ms} ms: {queue}");
    }
}

/// Section 5.5: 8 % in a second, so ln(1 / 0.3) / ln 1.08 = 15.6 s from 300 kbit/s to 1
/// Mbit/s, on a link that is never full.
#[test]
fn it_grows_by_8_percent_in_a_second() {
    let seen = alone(path(100_000, 50), "gcc", 60);
    let reached = seen.iter().find(|s| pacing(s) >= 1e6).unwrap().now.as_secs_f64();
    println!("1 Mbit/s after {reached:.2} s");
    // Until there are 20 packets, nothing is known of loss: 5 % in 0.77 s at the start.
    assert!((15.6..18.0).contains(&reached), "{reached}");
    assert_eq!(pacing(seen.last().unwrap()), 2e6, "the greatest rate");
}

/// Section 6: 1 % of loss, and 5 %, which are not its own, cost it nothing.
#[test]
fn little_loss_is_no_sign() {
    for every in [100, 20] {
        let path = Path { drop_every: Some(every), ..path(100_000, 50) };
        let late = from(&alone(path, "gcc", 60), 40);
        let rate = pacing(late.last().unwrap());
        println!("one in {every}: {:.0} kbit/s", rate / 1000.0);
        assert!(rate > if every == 100 { 1.99e6 } else { 0.29e6 }, "{rate}");
    }
}

/// Section 6: of each five packets one is lost; each report takes a tenth.
#[test]
fn much_loss_takes_half_of_its_part() {
    let mut net = Net::new(path(100_000, 50));
    let call = Selection::named("gcc").with("start_rate", Value::Text("2 Mbit/s".to_owned()));
    net.add(build(&call, init(1)).unwrap(), Time::ZERO, Time::MAX);
    net.run(Time::from_secs(5), |_| {});
    net.set_path(Path { drop_every: Some(5), ..path(100_000, 50) });
    let mut rates = Vec::new();
    net.run(Time::from_secs(60), |seen| rates.push(pacing(seen)));
    rates.dedup();
    // The first report has some packets from before. No report cuts another share than
    // that of a fifth of its packets: 20 to 24 packets with four or five lost.
    let steps: Vec<f64> = rates.windows(2).map(|pair| pair[1] / pair[0]).collect();
    println!("{steps:.3?}");
    let last = rates[rates.len() - 1];
    assert!(steps[2..steps.len() - 1].iter().all(|step| (0.88..0.92).contains(step)), "{steps:?}");
    assert_eq!(last, 50_000.0, "the least rate");
}

/// The purpose of the adaptive threshold (section 5.4; Carlucci et al. 2016, where a call
/// keeps a share beside TCP, and with a fixed threshold does not).
#[test]
fn it_does_not_starve_beside_cubic() {
    for buffer in [50, 100] {
        let path = Path { buffer, ..path(2000, 50) };
        let mut net = Net::new(path);
        net.add(controller("gcc", 1), Time::ZERO, Time::MAX);
        net.add(controller("cubic", 2), Time::from_secs(20), Time::MAX);
        let mut delivered = [[0_u64; 2]; 2];
        net.run(Time::from_secs(40), |s| delivered[0][s.flow] = s.delivered);
        net.run(Time::from_secs(160), |s| delivered[1][s.flow] = s.delivered);
        let [call, cubic] = [0, 1].map(|flow| (delivered[1][flow] - delivered[0][flow]) as f64);
        let share = call / (call + cubic);
        println!("{buffer} packets: {share:.3} beside CUBIC");
        assert!(share > 0.1, "{buffer} packets: {share}");
    }
}

/// Two calls share (Carlucci et al. 2016: a Jain's index near one), whoever was first. A
/// second one that comes late takes minutes where the first has come to a steady sawtooth.
#[test]
fn two_calls_share() {
    for (kbit, later) in [(1000, 30), (3000, 30), (2000, 1)] {
        let mut net = Net::new(path(kbit, 50));
        net.add(controller("gcc", 1), Time::ZERO, Time::MAX);
        net.add(controller("gcc", 2), Time::from_secs(later), Time::MAX);
        let mut delivered = [[0_u64; 2]; 2];
        net.run(Time::from_secs(90), |s| delivered[0][s.flow] = s.delivered);
        net.run(Time::from_secs(240), |s| delivered[1][s.flow] = s.delivered);
        let [a, b] = [0, 1].map(|flow| (delivered[1][flow] - delivered[0][flow]) as f64);
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        println!("{kbit} kbit/s, {later} s: {:.3} of both, Jain {jain:.3}", a / (a + b));
        assert!(jain > 0.95, "{kbit} kbit/s, {later} s: {a} {b}");
    }
}

/// All three rates the same: nothing moves it, whatever the link does.
#[test]
fn one_rate_for_all_is_constant() {
    let rate = || Value::Text("2 Mbit/s".to_owned());
    let constant = Selection::named("gcc")
        .with("start_rate", rate())
        .with("min_rate", rate())
        .with("max_rate", rate());
    let mut net = Net::new(Path { buffer: 20, ..path(1000, 50) });
    net.add(build(&constant, init(1)).unwrap(), Time::ZERO, Time::MAX);
    net.run(Time::from_secs(30), |seen| assert_eq!(pacing(seen), 2e6));
}
