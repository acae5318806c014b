//! Delivered data packets per second of user CPU, case by case, with buffers of
//! 10 BDP and of 1, and the cost of the time series. `cargo bench -p knee-sim`.
//!
//! The machine's speed drifts, so each case runs several times, alternating
//! with the others, and the median counts; the ratios at the end are what can
//! be compared over time.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use knee_record::{Meter, Recording, SampleSink};
use knee_scenario::{Algorithms, Embedded, Override, Scenario, Source};
use knee_sim::Control;

/// Number of runs of each case.
const ROUNDS: usize = 5;

/// Case, scenario, simulated seconds, goal in millions of packets per second.
const CASES: [(&str, &str, u32, f64); 7] = [
    ("i", include_str!("../../../benches/scenarios/i.toml"), 600, 5.0),
    ("ii", include_str!("../../../benches/scenarios/ii.toml"), 60, 8.0),
    ("ii-loss", include_str!("../../../benches/scenarios/ii-loss.toml"), 60, 5.0),
    ("iii", include_str!("../../../benches/scenarios/iii.toml"), 10, 9.0),
    ("iv", include_str!("../../../benches/scenarios/iv.toml"), 10, 5.0),
    ("v", include_str!("../../../benches/scenarios/v.toml"), 10, 3.5),
    ("vi", include_str!("../../../benches/scenarios/vi.toml"), 2, 1.4),
];

/// A hundred flows over 1 Gbit/s, without duration and interval of samples.
const HUNDRED_FLOWS: &str = r#"
[link.bottleneck]
rate = "1 Gbit/s"
delay = "10 ms"
buffer = "1 BDP"
[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"
[[flow]]
cc = "bbr"
count = 100
"#;

fn scenario(text: &str, changes: &[String]) -> Scenario {
    let source = Source { name: "bench.toml", loader: &Embedded(&[]) };
    let changes: Vec<Override> =
        changes.iter().map(|change| change.parse().expect("a key and a value")).collect();
    knee_scenario::parse(text, &source, &changes).expect("the scenario is right")
}

/// Returns the millions of packets per second of user CPU.
fn speed(scenario: &Scenario) -> f64 {
    let meter = Meter::start();
    let records = knee_sim::run(scenario, &Control::default()).expect("it runs");
    records.cost.data_packets as f64 / meter.stop().user_cpu_s / 1e6
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the medians of scenarios run alternately.
fn medians(scenarios: &[Scenario]) -> Vec<f64> {
    let mut speeds = vec![Vec::new(); scenarios.len()];
    for _ in 0..ROUNDS {
        for (speeds, scenario) in speeds.iter_mut().zip(scenarios) {
            speeds.push(speed(scenario));
        }
    }
    speeds.iter_mut().map(|speeds| median(speeds)).collect()
}

fn main() {
    // With a buffer of 1 BDP, lost packets count as well.
    let with = |buffer: &str| {
        CASES.map(|(_, text, seconds, _)| {
            let buffer = format!("link.bottleneck.buffer={buffer}");
            scenario(text, &[buffer, format!("duration={seconds} s")])
        })
    };
    println!("Mpackets/CPU s   10 BDP   goal    1 BDP");
    let deep = medians(&with("10 BDP"));
    let shallow = medians(&with("1 BDP"));
    for (((name, _, _, goal), deep), shallow) in CASES.iter().zip(&deep).zip(&shallow) {
        println!("{name:<14}{deep:>9.2}{goal:>7.1}{shallow:>9.2}");
    }

    let text = CASES[1].1;
    let at_rate = |mbit: u32, seconds: u32| {
        let changes =
            [format!("link.bottleneck.rate={mbit} Mbit/s"), format!("duration={seconds} s")];
        scenario(text, &changes)
    };
    let at_flows = |count: u32| {
        let name = scenario(CASES[3].1, &[]).flows[0].name.clone();
        let changes = [format!("flow.{name}.count={count}"), "duration=10 s".to_string()];
        scenario(CASES[3].1, &changes)
    };
    let ten_thousand = scenario(
        CASES[6].1,
        &["link.bottleneck.rate=1 Gbit/s".to_string(), "duration=5 s".to_string()],
    );
    let sampled = |interval: &str| {
        let changes = [format!("sample_interval={interval}"), "duration=60 s".to_string()];
        scenario(text, &changes)
    };
    let pairs = [
        (
            "time per packet at 1 Gbit/s over 10 Mbit/s (at most 1.5)",
            at_rate(10, 600),
            at_rate(1000, 6),
        ),
        ("time per packet at 1000 flows over 10 (at most 2.5)", at_flows(10), at_flows(1000)),
        (
            "time per packet at 10,000 flows over 1, 1 Gbit/s (at most 6)",
            at_rate(1000, 6),
            ten_thousand,
        ),
        (
            "time with samples every 100 ms over none (at most 1.15)",
            sampled("60 s"),
            sampled("100 ms"),
        ),
    ];
    println!();
    for (what, base, other) in pairs {
        let speeds = medians(&[base, other]);
        println!("{what}: {:.2}", speeds[0] / speeds[1]);
    }
    println!();
    recording();
    println!();
    compare_schedulers();
}

/// Prints what sampling a hundred flows each millisecond takes, in user CPU time of simulating
/// them: taking the samples and keeping them in memory, and writing them to a file.
fn recording() {
    // Of 100 rows each millisecond, 25 whole row groups.
    let with = |interval: &str| {
        let settings = format!("duration = \"16.384 s\"\nsample_interval = \"{interval}\"\n");
        scenario(&(settings + HUNDRED_FLOWS), &[])
    };
    let (once, each) = (with("16.384 s"), with("1 ms"));
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let mut recording = Recording::begin(folder.path(), &each).expect("it can be written");
        let runs: [(&Scenario, &mut dyn SampleSink); 3] =
            [(&once, &mut ()), (&each, &mut ()), (&each, &mut recording)];
        for ((scenario, sink), times) in runs.into_iter().zip(&mut times) {
            let meter = Meter::start();
            let (algorithms, control) = (Algorithms::built_in(), Control::default());
            knee_sim::run_to(scenario, algorithms, &control, sink, None).expect("it runs");
            times.push(meter.stop().user_cpu_s);
        }
    }
    let [simulated, kept, written] = times.map(|mut times| median(&mut times));
    println!("100 flows sampled each millisecond, in user CPU time of simulating them");
    println!("taking the samples and keeping them: {:.2}", (kept - simulated) / simulated);
    println!("writing them (at most 1): {:.2}", (written - kept) / simulated);
}

/// Ratio of the time per packet to that of minRTT, for the schedulers that send
/// packets other than the next one.
fn compare_schedulers() {
    println!("time per packet over minRTT (at most 3)      Mbit/s a path");
    println!("{:<18}{:>9}{:>9}{:>9}{:>9}", "", 10, 50, 200, 1000);
    for (paths, delay) in [("like paths", "30 ms"), ("unlike paths", "5 ms")] {
        let ratios = |(mbit, seconds): (u32, u32)| {
            let with = |scheduler: &str| {
                let changes = [
                    format!("link.a.rate={mbit} Mbit/s"),
                    format!("link.b.rate={mbit} Mbit/s"),
                    format!("link.a.delay={delay}"),
                    format!("flow.flow.scheduler={scheduler}"),
                    format!("duration={seconds} s"),
                ];
                scenario(include_str!("../../../benches/scenarios/multipath.toml"), &changes)
            };
            let speeds = medians(&["minrtt", "daps", "dems"].map(with));
            [speeds[0] / speeds[1], speeds[0] / speeds[2]]
        };
        let columns = [(10, 120), (50, 40), (200, 10), (1000, 4)].map(ratios);
        for (row, scheduler) in ["daps", "dems"].iter().enumerate() {
            print!("{:<18}", format!("{scheduler}, {paths}"));
            columns.iter().for_each(|ratios| print!("{:>9.2}", ratios[row]));
            println!();
        }
    }
}
