//! Cost of a packet with each scheduler, relative to minRTT.

use crate::runs::{Contender, scenario_of};
use knee_sim::Control;
use std::time::Instant;

/// Runs of each scheduler; the fastest counts, because other processes only add time.
const RUNS: usize = 7;

/// Mbit/s and round-trip time in ms.
type Way = (u32, u32);

/// Title, paths, and the receive window.
const CASES: [(&str, &[Way], &str); 3] = [
    ("two equal paths, 50 Mbit/s", &[(50, 60), (50, 60)], "unlimited"),
    ("unlike paths, 50 and 10 Mbit/s", &[(50, 20), (10, 100)], "unlimited"),
    ("unlike paths, 256 KiB", &[(50, 20), (10, 100)], "256 KiB"),
];

fn text(paths: &[Way], window: &str, contender: &Contender) -> String {
    let mut text = String::from("duration = \"30 s\"\nseed = 1\nsample_interval = \"1 s\"\n");
    let mut names = Vec::new();
    for (number, (mbit, rtt_ms)) in paths.iter().enumerate() {
        let way = rtt_ms / 2;
        text += &format!(
            "[link.l{number}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"{way} ms\"\nbuffer = \"2 BDP\"\n\
             [path.p{number}]\nforward = [\"l{number}\"]\nreverse_delay = \"{way} ms\"\n"
        );
        names.push(format!("\"p{number}\""));
    }
    let Contender { scheduler, reinjection, .. } = contender;
    text + &format!(
        "[[flow]]\npaths = [{}]\nscheduler = {scheduler}\nreinjection = {reinjection}\n\
         receive_window = \"{window}\"\ncc = \"cubic\"\n",
        names.join(", ")
    )
}

/// Returns the nanoseconds of the whole simulation per delivered packet.
fn nanos_per_packet(text: &str) -> f64 {
    let scenario = scenario_of(text);
    #[expect(clippy::disallowed_methods, reason = "the cost is real time")]
    let begin = Instant::now();
    let records = knee_sim::run(&scenario, &Control::default()).expect("it runs");
    begin.elapsed().as_nanos() as f64 / records.cost.data_packets as f64
}

/// Prints the cost of a packet with each contender, absolute and relative to minRTT.
pub fn compare(contenders: &[Contender]) {
    let minrtt = Contender::read("minrtt");
    let contenders: Vec<&Contender> = std::iter::once(&minrtt).chain(contenders).collect();
    for (title, paths, window) in CASES {
        let texts: Vec<String> =
            contenders.iter().map(|contender| text(paths, window, contender)).collect();
        let mut least = vec![f64::INFINITY; texts.len()];
        // In turn, so that a busy moment affects all of them.
        for _ in 0..RUNS {
            for (least, text) in least.iter_mut().zip(&texts) {
                *least = least.min(nanos_per_packet(text));
            }
        }
        println!("{title}");
        for (contender, nanos) in contenders.iter().zip(&least) {
            println!("  {:24} {nanos:6.0} ns  {:.2}", contender.label, nanos / least[0]);
        }
        println!();
    }
}
