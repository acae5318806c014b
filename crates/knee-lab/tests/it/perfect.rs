//! The perfect scheduler's time against transfers with a known relation to it.

use knee_lab::record::FlowRecord;
use knee_lab::{Grounds, Job, Lab, ScenarioText, Simulator};

/// A file over 10 and 5 Mbit/s with 20 and 60 ms, started after a second.
fn text(megabytes: u64, paths: &str, flow: &str) -> ScenarioText {
    let text = format!(
        r#"
name = "A file"
duration = "60 s"
seed = 3

[link.near]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "1 BDP"

[link.far]
rate = "5 Mbit/s"
delay = "30 ms"
buffer = "2 BDP"

[path.near]
forward = ["near"]
reverse_delay = "10 ms"

[path.far]
forward = ["far"]
reverse_delay = "30 ms"

[[flow]]
name = "file"
{paths}
start = "1 s"
receive_window = "unlimited"
workload = {{ file = "{megabytes} MB" }}
{flow}
"#
    );
    ScenarioText::new("file.toml", &text)
}

fn run(text: &ScenarioText) -> FlowRecord {
    let lab = Lab::new(Grounds::new().with(Simulator::default()));
    let scenario = text.scenario(&[]).unwrap();
    let job = Job { perfect: true, ..Job::new(&scenario, lab.grounds.get("sim").unwrap()) };
    lab.run(&job).unwrap().records.flows.remove(0)
}

const BOTH: &str = "paths = [\"near\", \"far\"]";

/// The other path is only a backup: the perfect time equals the transfer's own, except for the last
/// segment, which a longer flow would not have sent alone.
#[test]
fn over_one_path_there_is_nothing_to_schedule() {
    for cc in ["reno", "cubic", "bbr"] {
        let flow = format!("cc = \"{cc}\"\nbackup = [\"far\"]");
        let file = run(&text(2, BOTH, &flow));
        let [took, perfect] = [file.completion_ns, file.perfect_completion_ns].map(Option::unwrap);
        assert!(took.abs_diff(perfect) < 3_000_000, "{cc}: {took} ns, perfect {perfect} ns");
    }
}

/// No scheduler is earlier, and the perfect time respects the bound of any controller: 2 MB over
/// the 15 Mbit/s of both paths, less the headers.
#[test]
fn no_scheduler_is_earlier() {
    for cc in ["reno", "cubic", "bbr"] {
        let mut perfect = Vec::new();
        for scheduler in ["minrtt", "ecf", "round-robin", "just-in-time", "redundant"] {
            let flow = format!("cc = \"{cc}\"\nscheduler = \"{scheduler}\"");
            let file = run(&text(2, BOTH, &flow));
            let earliest = file.perfect_completion_ns.unwrap();
            let took = file.completion_ns.unwrap();
            assert!(took as f64 >= 0.99 * earliest as f64, "{cc}, {scheduler}: {took}, {earliest}");
            assert!(earliest as f64 / 1e9 > 16.0 / 15.0 * 1500.0 / 1448.0, "{earliest}");
            perfect.push(earliest);
        }
        // The curves are sampled as finely as the transfer took.
        let (least, most) = (perfect.iter().min().unwrap(), perfect.iter().max().unwrap());
        assert!(most - least < 2_000_000, "{cc}: {perfect:?}");
    }
}

/// Only a finished file over several paths has a perfect time.
#[test]
fn there_is_none_without_a_file_that_ends() {
    let plain = run(&text(2, "path = \"near\"", "cc = \"reno\""));
    assert_eq!((plain.completion_ns.is_some(), plain.perfect_completion_ns), (true, None));
    let cut = run(&text(2000, BOTH, "cc = \"reno\""));
    assert_eq!((cut.completion_ns, cut.perfect_completion_ns), (None, None));
}
