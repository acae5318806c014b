//! LEDBAT++ compared with the claims of its draft: it fills an idle link with
//! a short queue, yields to Reno, and shares with other LEDBAT++ flows.
use crate::pipe::{MSS, Net, Path, Seen, controller, init};
use knee_cc::{Selection, Value, build};
use knee_units::Time;

/// 20 Mbit/s and 40 ms, with 200 ms of buffer.
fn path() -> Path {
    Path { buffer: 333, ..Path::new(20_000_000, 40) }
}

fn alone(selection: &Selection, path: Path, seconds: u64) -> Vec<Seen> {
    let mut net = Net::new(path);
    net.add(build(selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
    let mut all = Vec::new();
    net.run(Time::from_secs(seconds), |seen| all.push(*seen));
    all
}

/// Returns what each flow delivered between two times.
fn delivered(net: &mut Net, from: u64, until: u64) -> Vec<f64> {
    let mut at = [[0_u64; 2]; 8];
    net.run(Time::from_secs(from), |s| at[s.flow] = [s.delivered; 2]);
    net.run(Time::from_secs(until), |s| at[s.flow][1] = s.delivered);
    at.iter().map(|[before, after]| (after - before) as f64).collect()
}

/// Section 4.4: slowdowns take a tenth of the time, and the link is full in the
/// rest; the queue is at most slightly longer than the target of 60 ms.
#[test]
fn an_idle_link_is_filled() {
    for rtt_ms in [10, 40, 150] {
        // Without delayed acknowledgements, which could be mistaken for a queue.
        let path = Path { buffer: 1000, ack_every: 1, ..Path::new(20_000_000, rtt_ms) };
        let seen = alone(&Selection::named("ledbat++"), path, 60);
        let late: Vec<&Seen> = seen.iter().filter(|s| s.now > Time::from_secs(20)).collect();
        let bytes = late.last().unwrap().delivered - late[0].delivered;
        let share = bytes as f64 / 40.0 / path.payload_rate();
        let most = late.iter().map(|s| s.rtt).max().unwrap().saturating_sub(path.rtt);
        println!("{rtt_ms} ms: {share:.3} of the link, queue {:.1} ms", most.as_millis_f64());
        assert!(share > 0.85, "{rtt_ms} ms: {share}");
        assert!(most < Time::from_millis(80), "{rtt_ms} ms: {most:?}");
        assert_eq!(seen.last().unwrap().lost, 0);
    }
}

/// Section 1: at most a tenth of the link beside Reno, whichever came first,
/// and all of it again after Reno stops.
#[test]
fn it_gives_way_to_reno() {
    for background_first in [true, false] {
        let mut net = Net::new(path());
        let (background, reno) = if background_first { (0, 10) } else { (10, 0) };
        net.add(controller("ledbat++", 1), Time::from_secs(background), Time::MAX);
        net.add(controller("reno", 2), Time::from_secs(reno), Time::from_secs(80));
        let beside = delivered(&mut net, 20, 80);
        let share = beside[0] / (beside[0] + beside[1]);
        println!("background first {background_first}: {share:.4}");
        assert!(share <= 0.1, "background first {background_first}: {share}");
        let after = delivered(&mut net, 85, 110);
        assert!(after[0] > 0.8 * 25.0 * path().payload_rate(), "{after:?}");
    }
}

/// Section 4.4: slowdowns let a later flow measure the base RTT, so that it
/// does not push the earlier one aside.
#[test]
fn a_later_flow_gets_no_more() {
    let share = |slowdowns: bool| {
        let selection = Selection::named("ledbat++").with("slowdowns", Value::Switch(slowdowns));
        let mut net = Net::new(path());
        net.add(build(&selection, init(1)).unwrap(), Time::ZERO, Time::MAX);
        net.add(build(&selection, init(2)).unwrap(), Time::from_secs(20), Time::MAX);
        let bytes = delivered(&mut net, 60, 160);
        bytes[1] / (bytes[0] + bytes[1])
    };
    let (with, without) = (share(true), share(false));
    println!("the later flow has {with:.3}, without slowdowns {without:.3}");
    assert!((0.3..0.7).contains(&with), "{with}");
    assert!(without > 0.8, "the latecomer's advantage is gone: {without}");
}

/// Section 4.4: two segments for two round trips, then growth back to the
/// earlier window, and an interval nine times as long until the next slowdown.
#[test]
fn slowdowns_take_a_tenth_of_the_time() {
    let seen = alone(&Selection::named("ledbat++"), path(), 60);
    let mut starts = Vec::new();
    for pair in seen.windows(2) {
        let [before, after] = [pair[0], pair[1]].map(|s| s.decision.window / MSS);
        if after == 2 && before > 10 {
            starts.push((pair[1].now, before));
        }
    }
    assert!(starts.len() >= 3, "{starts:?}");
    for pair in starts[1..].windows(2) {
        let (start, before) = pair[0];
        let back = seen.iter().find(|s| s.now > start && s.decision.window / MSS >= before);
        let took = back.unwrap().now - start;
        let spaced = pair[1].0 - start;
        let ratio = spaced.as_secs_f64() / took.as_secs_f64();
        assert!((9.0..11.5).contains(&ratio), "{took:?} of {spaced:?}");
        let mut two = seen.iter().filter(|s| s.now > start && s.decision.window == 2 * MSS);
        let rest = two.rfind(|s| s.now < start + took).unwrap().now - start;
        assert!(rest >= path().rtt && rest < path().rtt * 8, "{rest:?}");
    }
}
