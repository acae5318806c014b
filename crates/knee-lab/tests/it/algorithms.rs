//! A program's own controller, by name in a scenario and in a sweep.

use knee_cc::{Selection, Value};
use knee_lab::record::Unit;
use knee_lab::scenario::Algorithms;
use knee_lab::{
    Error, Grounds, Job, Lab, ScenarioText, Simulator, Sweep, SweepSettings, SweepStore,
    program_hash,
};
use std::sync::Arc;

const PACKETS: f64 = 7.0;

/// Always seven packets in flight.
fn with_seven() -> Arc<Algorithms> {
    let mut algorithms = Algorithms::built_in().clone();
    let factory = |_: &_, init| {
        let window = Value::Text(format!("{PACKETS} packets"));
        let fixed = Selection::named("fixed").with("window", window);
        knee_cc::build(&fixed, init).map_err(|error| error.to_string())
    };
    algorithms.controllers.register("seven", factory).unwrap();
    Arc::new(algorithms)
}

/// One flow alone on a path.
fn text() -> ScenarioText {
    let text = r#"
name = "Seven packets"
duration = "10 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "30 ms"
buffer = "1 BDP"

[path.main]
forward = ["bottleneck"]
reverse_delay = "30 ms"

[[flow]]
name = "flow"
path = "main"
cc = "seven"
"#;
    ScenarioText::new("seven.toml", text)
}

/// Throughput of that window over an RTT of 60 ms, plus the serialisation at 10 Mbit/s of the one
/// to four packets for which an ACK waits.
#[test]
fn it_runs_by_its_name() {
    let algorithms = with_seven();
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let sim = lab.grounds.get("sim").unwrap();
    let scenario = text().with_algorithms(algorithms).scenario(&[]).unwrap();
    let run = lab.run(&Job::new(&scenario, sim)).unwrap();
    let flow = &run.summary.flows[0];
    let goodput = flow.goodput_bps.unwrap();
    let after = |packets: f64| PACKETS * 1448.0 * 8.0 / (0.06 + packets * 1500.0 * 8.0 / 10e6);
    assert!((after(4.0)..after(1.0)).contains(&goodput), "{goodput}");
}

/// Without the algorithms the name is unknown, and the error lists the known ones.
#[test]
fn it_is_unknown_to_others() {
    let errors = text().scenario(&[]).unwrap_err();
    let problem = &errors.problems[0];
    assert!(problem.message.contains("seven"), "{}", problem.message);
}

#[test]
fn a_sweep_varies_it() {
    let algorithms = with_seven();
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let sim = lab.grounds.get("sim").unwrap();
    let vary = vec!["flow.flow.cc=bbr,seven".parse().unwrap()];
    let text = text().with_algorithms(algorithms);
    let sweep = Sweep::new(text, SweepSettings::on(sim, vary)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let hash = program_hash().unwrap();
    let mut store = SweepStore::open(&lab, folder.path().join("out"), hash, true).unwrap();
    let swept: Result<_, Error> = lab.sweep(&sweep, &mut store);
    let points = swept.unwrap().summary.points;
    let goodput = |at: usize| {
        let group = points[at].groups.iter().find(|group| group.group == "flow").unwrap();
        group.measures["goodput_bps"].interval.as_ref().unwrap().mean
    };
    assert_eq!(points.len(), 2);
    assert!(goodput(0) > 2.0 * goodput(1), "{}", Unit::BitsPerSecond.show(goodput(1)));
}
