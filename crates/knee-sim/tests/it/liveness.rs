//! Something happens: data goes on arriving in order, whatever the path does to it.
use crate::common::{Dumbbell, in_parallel};
use knee_scenario::Scenario;
use knee_sim::Control;

/// Controllers that follow a call's bit rate or no rule at all.
const EXEMPT: [&str; 2] = ["fixed", "gcc"];

/// When payload arrived in order, and how much; and when ACKs arrived. Seconds, bytes.
struct Story {
    delivered: Vec<(f64, u64)>,
    acknowledged: Vec<f64>,
}

impl Story {
    fn of(scenario: &Scenario) -> Story {
        let mut log = Vec::new();
        knee_sim::run_logged(scenario, &Control::default(), &mut log).unwrap();
        let mut story = Story { delivered: Vec::new(), acknowledged: Vec::new() };
        for row in String::from_utf8(log).unwrap().lines().filter(|row| !row.starts_with('#')) {
            let cells: Vec<&str> = row.split(',').collect();
            let seconds = || cells[0].parse::<f64>().unwrap() / 1e9;
            match cells[1] {
                "deliver" => story.delivered.push((seconds(), cells[7].parse().unwrap())),
                "ack_receive" => story.acknowledged.push(seconds()),
                _ => {}
            }
        }
        story
    }

    /// Returns the goodput from one second to another, Mbit/s.
    fn goodput(&self, from: f64, until: f64) -> f64 {
        let within = self.delivered.iter().filter(|(at, _)| (from..until).contains(at));
        within.map(|(_, bytes)| *bytes as f64).sum::<f64>() * 8e-6 / (until - from)
    }

    /// Returns the longest time between two deliveries in which ACKs go on arriving, and when
    /// it ends. After the last delivery it lasts until the last ACK.
    fn longest_pause(&self) -> (f64, f64) {
        let times: Vec<f64> = self.delivered.iter().map(|(at, _)| *at).collect();
        let last = *self.acknowledged.last().unwrap();
        let ends = times.iter().skip(1).copied().chain([last]);
        let pauses = times.iter().zip(ends).map(|(from, until)| {
            let before = self.acknowledged.partition_point(|at| *at < until);
            let ack = self.acknowledged[..before].last().filter(|at| *at >= from);
            (ack.map_or(0.0, |at| at - from), until)
        });
        pauses.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
    }
}

/// 5 Mbit/s, 10 ms, a queue of 10 packets, 5 ms of jitter that reorders: the queue drops, and
/// undone recoveries leave segments that RACK does not look at again. The timeout repeats them:
/// 200 ms above the smoothed RTT (RFC 6298, section 5.3), doubled once. RemyCC's table knows no
/// loss: it sends 2.5 times what the link carries, so that three of five retransmissions are
/// dropped as well.
#[test]
fn what_a_reordering_path_loses_is_sent_again() {
    let all = knee_cc::controllers().iter().map(|entry| entry.name);
    let all = all.filter(|name| !EXEMPT.contains(name));
    let cases: Vec<(&str, u64)> = all.flat_map(|name| [1, 2, 3].map(|seed| (name, seed))).collect();
    let stuck = in_parallel(&cases, |(name, seed)| {
        let path = Dumbbell::new(5.0, 10.0).buffer("10 packets").flows(name, 1).seed(*seed);
        let path = path.link("jitter = { amount = \"5 ms\", reorder = true }").lasting(20.0, 0.0);
        let story = Story::of(&path.scenario());
        let (goodput, (pause, at)) = (story.goodput(15.0, 20.0), story.longest_pause());
        println!(
            "{name:16} {seed}  {goodput:5.2} Mbit/s, longest pause {pause:.3} s until {at:.3}"
        );
        goodput < 2.0 || pause > if *name == "remycc" { 1.0 } else { 0.5 }
    });
    let stuck: Vec<_> = cases.iter().zip(&stuck).filter(|(_, stuck)| **stuck).collect();
    assert!(stuck.is_empty(), "{stuck:?}");
}

/// 200 ms of jitter for five seconds at 200 ms of RTT: each ACK leaves another hole for the
/// reordering timer to wait for, which must not put the timeout off.
#[test]
fn reordering_does_not_put_the_timeout_off() {
    let text = |seed: u64| {
        format!(
            "duration = \"40 s\"\nseed = {seed}\n\
             [link.w]\nrate = \"20 Mbit/s\"\ndelay = \"100 ms\"\nbuffer = \"200 kB\"\n\
             [link.w.jitter]\nreorder = true\namount = [{{ at = \"0 s\", amount = \"0 ms\" }}, \
             {{ at = \"10 s\", amount = \"200 ms\" }}, {{ at = \"15 s\", amount = \"0 ms\" }}]\n\
             [path.main]\nforward = [\"w\"]\nreverse_delay = \"100 ms\"\n\
             [[flow]]\nname = \"f\"\ncc = \"reno\"\n"
        )
    };
    in_parallel(&[1, 3], |seed| {
        let (pause, at) = Story::of(&Dumbbell::read(&text(*seed))).longest_pause();
        println!("seed {seed}: longest pause {pause:.3} s until {at:.3}");
        // The RTT varies between 200 and 480 ms: the timeout is up to 0.9 s (RFC 6298).
        assert!(pause < 1.1, "seed {seed}: {pause} s until {at}");
    });
}
