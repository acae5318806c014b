//! Delay-based controllers over the whole transport: alone they fill the link
//! with the queue named in their source, and beside Reno they take the share
//! that it promises.
use crate::common::{Dumbbell, PAYLOAD, in_parallel};

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
