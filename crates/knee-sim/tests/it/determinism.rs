//! The same scenario and seed give the same records; another seed gives
//! different ones wherever there is randomness, and only there.

use knee_record::Records;
use knee_scenario::{Embedded, Source, parse};
use knee_sim::Control;

/// Uses every source of randomness, on a path with a congested return.
const RANDOM: &str = r#"
name = "random"
duration = "8 s"
[link.down]
rate = "20 Mbit/s"
delay = "10 ms"
buffer = "2 BDP"
aqm = "pie"
jitter = { amount = "2 ms", reorder = true }
loss = { good_to_bad = "0.1 %", bad_to_good = "20 %" }
[link.up]
rate = "1 Mbit/s"
delay = "10 ms"
aqm = "fq-codel"
loss = "0.5 %"
[path.main]
forward = ["down"]
reverse = ["up"]
[[flow]]
name = "bbr"
cc = "bbr"
count = 3
start_jitter = "500 ms"
[[flow]]
name = "cubic"
cc = "cubic"
count = 2
[[flow]]
name = "file"
cc = "reno"
workload = { file = "2 MB" }
start = "1 s"
"#;

/// Uses no source of randomness.
const CERTAIN: &str = r#"
name = "certain"
duration = "8 s"
[link.down]
rate = "20 Mbit/s"
delay = "10 ms"
loss = { every = 700 }
[path.main]
forward = ["down"]
reverse_delay = "10 ms"
[[flow]]
name = "reno"
cc = "reno"
count = 2
[[flow]]
name = "cubic"
cc = "cubic"
"#;

fn records(text: &str, seed: u64) -> Records {
    let text = format!("seed = {seed}\n{text}");
    let source = Source { name: "scenario.toml", loader: &Embedded(&[]) };
    let scenario = parse(&text, &source, &[]).unwrap();
    knee_sim::run(&scenario, &Control::default()).unwrap()
}

#[test]
fn the_seed_decides_what_is_random() {
    let first = records(RANDOM, 1);
    assert_eq!(first, records(RANDOM, 1));
    let other = records(RANDOM, 2);
    assert_ne!(first.samples, other.samples);
    assert_ne!(first.links, other.links);
    let delivered = |records: &Records| {
        let flows = records.flows.iter();
        flows.map(|flow| flow.delivered_bytes).collect::<Vec<u64>>()
    };
    assert!(delivered(&first).iter().zip(delivered(&other)).all(|(a, b)| *a > 0 && b > 0));
    assert_ne!(delivered(&first), delivered(&other));
}

#[test]
fn the_seed_changes_nothing_that_is_certain() {
    assert_eq!(records(CERTAIN, 1), records(CERTAIN, 2));
}

/// Concurrent runs, as with `--jobs`, do not affect each other.
#[test]
fn runs_in_other_threads_change_nothing() {
    let alone = records(RANDOM, 3);
    std::thread::scope(|scope| {
        let together: Vec<_> = (0..4).map(|_| scope.spawn(|| records(RANDOM, 3))).collect();
        for run in together {
            assert_eq!(run.join().unwrap(), alone);
        }
    });
}
