//! Delay-based controllers over the whole transport: alone they fill the link
//! with the queue named in their source, and beside Reno they take the share
//! that it promises.
#![allow(clippy::unwrap_used, reason = "a test ends there")]

mod common;

use common::{Dumbbell, PAYLOAD, in_parallel};
use knee_record::{RunView, Window, measure};
use knee_scenario::{Measure, Scenario};
use knee_sim::Control;
use knee_units::Time;

/// 50 Mbit/s, 40 ms, 4 BDP of buffer: 160 ms.
fn path() -> Dumbbell {
    Dumbbell::new(50.0, 40.0).buffer("4 BDP")
}

/// Packets of 1500 bytes take 0.24 ms. Copa keeps 2 of them on average and at
/// most a few (section 2.2), Vegas 2 to 4, LEDBAT++ 60 ms; with Vivace the RTT
/// does not rise. Vegas, as in Linux, comes down by one packet per round trip
/// from the end of slow start, which takes more than a minute here.
#[test]
fn alone_they_fill_the_link_with_their_own_queue() {
    let cases = [
        ("copa", 3.0, 10.0),
        ("vegas", 2.0, 90.0),
        ("vivace", 3.0, 10.0),
        ("ledbat++", 63.0, 10.0),
    ];
    in_parallel(&cases, |(name, queue_ms, settled)| {
        let run = path().flows(name, 1).lasting(settled + 50.0, *settled).run();
        let used = run.goodput() / (50.0 * PAYLOAD);
        let queue = run.median_rtt() - 40.0;
        println!("{name}: {used:.3} of the link, {queue:.1} ms");
        assert!(used > 0.9, "{name}: {used}");
        assert!(queue < *queue_ms, "{name}: {queue} ms");
        assert_eq!(run.retransmitted(), 0.0, "{name}");
    });
}

/// Copa's competitive mode keeps its share (section 3 of its paper), LEDBAT++
/// yields to at most a tenth.
#[test]
fn beside_reno_they_take_what_they_promise() {
    let cases = [("copa", 0.35, 0.65), ("ledbat++", 0.0, 0.1)];
    in_parallel(&cases, |(name, least, most)| {
        let run = path().flows(name, 1).flows("reno", 1).lasting(120.0, 20.0).run();
        let share = run.measure("f0", knee_scenario::Measure::Share);
        println!("{name}: {share:.3}");
        assert!((*least..=*most).contains(&share), "{name}: {share}");
        assert!(run.goodput() > 0.95 * 50.0 * PAYLOAD, "{name}");
    });
}

/// A call over 1 Mbit/s and 50 ms, whose receiver acknowledges every second segment as
/// any other: it uses the link with tens of milliseconds of queue (Carlucci et al., MMSys
/// 2016) in a buffer of 300, and loses nothing.
#[test]
fn a_call_uses_the_link_with_a_short_queue() {
    let run = Dumbbell::new(1.0, 50.0).buffer("6 BDP").flows("gcc", 1).lasting(120.0, 40.0).run();
    let used = run.goodput() / PAYLOAD;
    let queue = run.median_rtt() - 50.0;
    println!("gcc: {used:.3} of the link, {queue:.1} ms");
    assert!(used > 0.85, "{used}");
    // A packet takes 12 ms.
    assert!(queue < 50.0, "{queue} ms");
    assert_eq!(run.retransmitted(), 0.0);
}

/// Goodput of a run between two times, in seconds, Mbit/s.
fn goodput(scenario: &Scenario, from: f64, until: f64) -> f64 {
    let records = knee_sim::run(scenario, &Control::default()).unwrap();
    let view = RunView::new(&records, Time::ZERO);
    let [from, until] = [from, until].map(|at| Some(Time::from_secs_f64(at)));
    measure(&view, &Measure::Goodput, "*", Window { from, until }).unwrap() / 1e6
}

/// After five seconds without a link, half of it is used within half a minute. At these round-trip
/// times less than a segment is in flight when the first acknowledgements arrive, so each segment
/// follows an empty network, which is no pause of the application.
#[test]
fn after_an_outage_half_of_the_link_is_used_within_half_a_minute() {
    let cases: Vec<(&str, f64)> = ["vivace", "copa", "remycc", "ledbat++"]
        .into_iter()
        .flat_map(|name| [2.0, 10.0, 20.0, 40.0].map(|rtt| (name, rtt)))
        .collect();
    in_parallel(&cases, |(name, rtt_ms)| {
        let path = Dumbbell::new(20.0, *rtt_ms).buffer("1000 packets").flows(name, 1);
        let path = path.link("down = [{ from = \"10 s\", until = \"15 s\" }]").lasting(60.0, 0.0);
        let used = goodput(&path.scenario(), 45.0, 60.0);
        println!("{name}, {rtt_ms} ms: {used:.2} Mbit/s");
        assert!(used > 10.0, "{name}, {rtt_ms} ms: {used}");
    });
}

/// Bytes in order of two equal flows over 10 Mbit/s, as the share of the smaller one in an even
/// split, with `transport` for their ends.
fn evenness(cc: &str, transport: &str, seed: u64) -> f64 {
    let text = format!(
        "duration = \"30 s\"\nseed = {seed}\nwarmup = \"5 s\"\n[transport]\n{transport}\n\
         [link.l]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"50 packets\"\n\
         [path.main]\nforward = [\"l\"]\nreverse_delay = \"10 ms\"\n\
         [[flow]]\nname = \"a\"\ncc = {cc}\n[[flow]]\nname = \"b\"\ncc = {cc}\n"
    );
    let scenario = Dumbbell::read(&text);
    let records = knee_sim::run(&scenario, &Control::default()).unwrap();
    let view = RunView::new(&records, Time::ZERO);
    let window = Window { from: Some(Time::from_secs(5)), until: None };
    let of = |name: &str| measure(&view, &Measure::Goodput, name, window).unwrap();
    let (a, b) = (of("a"), of("b"));
    assert!(a + b > 0.85e7, "{a} {b}");
    2.0 * a.min(b) / (a + b)
}

/// Floyd and Jacobson 1992: equal senders in lockstep share a drop-tail link by their phase,
/// whatever the seed, and a random time of up to the service time of a packet at the bottleneck
/// (1.2 ms) ends that.
#[test]
fn send_jitter_ends_the_phase_effect() {
    let cc = "{ name = \"fixed\", window = \"60 packets\" }";
    let shares = |transport: &str| [1, 2, 3].map(|seed| evenness(cc, transport, seed));
    let (locked, free) = (shares(""), shares("send_jitter = \"1.2 ms\""));
    println!("{locked:?}, with jitter {free:?}");
    assert!(locked.iter().all(|share| *share == locked[0]), "{locked:?}");
    assert!(locked[0] < 0.5, "{locked:?}");
    assert!(free.iter().all(|share| *share > 0.85), "{free:?}");
}
