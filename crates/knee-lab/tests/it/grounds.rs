//! What a new ground needs: an implementation of [`Ground`], as in this file, and a line that
//! registers it, in [`lab`]. Experiments, studies and sweeps then find it by name.

use knee_lab::record::{
    Control, FlowRecord, FlowSample, LinkSample, Records, Verdict, read_summary,
};
use knee_lab::scenario::Scenario;
use knee_lab::{
    Ended, Error, Experiment, ExperimentError, ExperimentSettings, Ground, GroundError, Grounds,
    Job, Judged, Lab, Output, Pace, Rank, RankSettings, Refusal, Reproduction, ScenarioText, Scope,
    Sweep, SweepSettings, SweepStore, check_jobs, choose_studies,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fluid limit: all flows of a path share its rate equally from the start, without queues. One path
/// per flow.
#[derive(Debug, Default)]
pub struct Fluid {
    /// Whether to pause at half of the scenario until it is stopped.
    pub waits: bool,
}

impl Ground for Fluid {
    fn name(&self) -> &str {
        "fluid"
    }

    fn summary(&self) -> &str {
        "Equal shares without packets"
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        let several = scenario.flows.iter().find(|flow| flow.multipath.is_some());
        several.map_or(Ok(()), |flow| {
            let what = format!("flow \"{}\": a fluid has one path", flow.name);
            let refusal = Refusal::new(what, "write path = in place of paths =");
            Err(GroundError::Scenario(refusal.because("a fluid has one path")))
        })
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let end_ns = scenario.duration.as_nanos();
        let step_ns = scenario.sample_interval.as_nanos().max(1);
        let mut records = Records {
            link_names: scenario.links.iter().map(|link| link.name.clone()).collect(),
            end_ns,
            ..Records::default()
        };
        for time_ns in (0..=end_ns).step_by(step_ns as usize) {
            if control.stop.load(Ordering::Relaxed) {
                (records.end_ns, records.interrupted) = (time_ns, true);
                break;
            }
            control.now_ns.store(time_ns, Ordering::Relaxed);
            while self.waits && time_ns >= end_ns / 2 && !control.stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            for flow in 0..scenario.flows.len() {
                let sample = sample(scenario, flow, time_ns);
                output.samples.flow(&sample).map_err(GroundError::Samples)?;
                records.samples.push(sample);
            }
            for link in 0..scenario.links.len() as u32 {
                let sample = LinkSample { link, time_ns, ..LinkSample::default() };
                output.samples.link(&sample).map_err(GroundError::Samples)?;
                records.links.push(sample);
            }
        }
        let flows = 0..scenario.flows.len();
        records.flows = flows.map(|flow| row(scenario, flow, records.end_ns)).collect();
        Ok(Ended { records, judged: None })
    }
}

fn share_bps(scenario: &Scenario, flow: usize) -> u64 {
    let path = scenario.flows[flow].paths[0];
    let beside = scenario.flows.iter().filter(|flow| flow.paths.contains(&path)).count();
    scenario.path_rate(path).map_or(0, |rate| rate.as_bits_per_second()) / beside as u64
}

fn sample(scenario: &Scenario, flow: usize, time_ns: u64) -> FlowSample {
    let delivered = u128::from(share_bps(scenario, flow)) * u128::from(time_ns) / 8_000_000_000;
    let rtt_ns = rtt_ns(scenario, flow);
    FlowSample {
        flow: flow as u32,
        time_ns,
        delivered_bytes: delivered as u64,
        sent_bytes: delivered as u64,
        rtt_ns,
        srtt_ns: rtt_ns,
        ..FlowSample::default()
    }
}

fn rtt_ns(scenario: &Scenario, flow: usize) -> u64 {
    let path = scenario.flows[flow].paths[0];
    (scenario.one_way_delay(path) + scenario.way_back(path)).as_nanos()
}

fn row(scenario: &Scenario, flow: usize, end_ns: u64) -> FlowRecord {
    let last = sample(scenario, flow, end_ns);
    let of = &scenario.flows[flow];
    FlowRecord {
        flow: flow as u32,
        name: of.name.clone(),
        index: of.index as u32,
        cc: of.controller.name.clone(),
        path: scenario.paths[of.paths[0]].name.clone(),
        end_ns,
        delivered_bytes: last.delivered_bytes,
        sent_bytes: last.sent_bytes,
        rtt_min_ns: last.rtt_ns,
        rtt_max_ns: last.rtt_ns,
        base_rtt_ns: last.rtt_ns,
        ..FlowRecord::default()
    }
}

/// Registers the ground.
fn lab() -> Lab {
    Lab::new(Grounds::built_in().with(Fluid::default()))
}

/// Two flows on 10 Mbit/s.
const DUEL: &str = r#"
name = "Duel"
duration = "4 s"
warmup = "1 s"

[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"

[path.main]
forward = ["bottleneck"]
reverse_delay = "10 ms"

[[flow]]
name = "a"
cc = "reno"

[[flow]]
name = "b"
cc = "cubic"
"#;

/// One flow over two paths.
const WIDE: &str = r#"
duration = "1 s"

[link.one]
rate = "10 Mbit/s"
delay = "10 ms"

[link.two]
rate = "10 Mbit/s"
delay = "10 ms"

[path.one]
forward = ["one"]
reverse_delay = "10 ms"

[path.two]
forward = ["two"]
reverse_delay = "10 ms"

[[flow]]
paths = ["one", "two"]
cc = "reno"
"#;

fn duel() -> ScenarioText {
    ScenarioText::new("duel.toml", DUEL)
}

fn assert_half(goodput_bps: Option<f64>) {
    let goodput_bps = goodput_bps.unwrap();
    assert!((goodput_bps / 5e6 - 1.0).abs() < 1e-3, "{goodput_bps} bit/s");
}

#[test]
fn a_run_is_measured_like_any_other() {
    let lab = lab();
    let scenario = duel().scenario(&[]).unwrap();
    let run = lab.run(&Job::new(&scenario, lab.grounds.get("fluid").unwrap())).unwrap();
    assert_eq!(run.summary.ground, "fluid");
    run.summary.flows.iter().for_each(|flow| assert_half(flow.goodput_bps));
    assert_eq!(run.summary.flows[0].rtt_us.as_ref().unwrap().p50, 20_000.0);
    assert_eq!(run.summary.measures.jain, Some(1.0));
}

/// Each ground has its directory, which can be read and whose page can be rewritten.
#[test]
fn an_experiment_runs_beside_the_simulator() {
    let (lab, out) = (lab(), tempfile::tempdir().unwrap());
    let on = lab.grounds.choose(&["fluid", "sim"]).unwrap();
    let settings =
        ExperimentSettings { on, ..ExperimentSettings::on(lab.grounds.get("sim").unwrap()) };
    let directory = out.path().join("duel");
    let mut duel = Experiment::new(duel(), settings, directory.clone()).unwrap();
    lab.claim(out.path(), [&directory], false).unwrap();
    let outcomes = lab.carry_out(std::slice::from_mut(&mut duel)).unwrap();
    let grounds: Vec<&str> =
        outcomes[0].summaries.iter().map(|summary| summary.ground.as_str()).collect();
    assert_eq!(grounds, ["sim", "fluid"]);
    assert!(outcomes[0].fidelity.is_none());
    assert_eq!(read_summary(&directory.join("fluid")).unwrap(), outcomes[0].summaries[1]);
    fs::remove_file(directory.join("fluid/report.html")).unwrap();
    knee_lab::rewrite_page(&directory.join("fluid")).unwrap();
    let page = fs::read_to_string(directory.join("fluid/report.html")).unwrap();
    assert!(page.contains("--on fluid"), "the page says how to repeat it");
    // Its output can be replaced; other files are kept.
    assert!(matches!(lab.claim(out.path(), [&directory], false), Err(Error::NotEmpty(_))));
    fs::write(directory.join("fluid/notes.txt"), "mine").unwrap();
    lab.claim(out.path(), [&directory], true).unwrap();
    assert!(!directory.join("sim").exists());
    let left = fs::read_dir(directory.join("fluid")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let lab = lab();
    let experiment = |settings| Experiment::new(duel(), settings, "never".into()).map(drop);
    let one = ExperimentSettings::on(lab.grounds.get("fluid").unwrap());
    let repeated =
        ExperimentSettings { on: lab.grounds.iter().collect(), repeat: Some(2), ..one.clone() };
    let refused = experiment(repeated).unwrap_err();
    let expected = ExperimentError::RepeatsOnSeveralGrounds;
    assert!(matches!(refused, Error::Experiment(what) if what == expected), "{refused}");
    let refused = experiment(ExperimentSettings { packet_log: true, ..one.clone() });
    let refused = refused.unwrap_err();
    let expected = ExperimentError::NoPacketLog;
    assert!(matches!(refused, Error::Experiment(what) if what == expected), "{refused}");
    let refused = experiment(ExperimentSettings { capture: true, ..one }).unwrap_err();
    let expected = ExperimentError::NoCapture;
    assert!(matches!(refused, Error::Experiment(what) if what == expected), "{refused}");
}

#[test]
fn what_it_cannot_is_said_before_anything_runs() {
    let lab = lab();
    let fluid = lab.grounds.get("fluid").unwrap();
    let wide = ScenarioText::new("wide.toml", WIDE);
    let scenario = wide.scenario(&[]).unwrap();
    let refused = check_jobs(&[Job::new(&scenario, fluid)]).unwrap_err().to_string();
    assert!(refused.contains("a fluid has one path; write path ="), "{refused}");
    let vary = vec!["link.one.delay=10 ms,20 ms".parse().unwrap()];
    let refused = Sweep::new(wide, SweepSettings::on(fluid, vary)).unwrap_err().to_string();
    assert!(refused.contains("at link.one.delay=10 ms: "), "{refused}");
}

const STUDY: &str = r#"
name = "Fluids"
source = "this test"

[[run]]
name = "duel"
file = "duel.toml"
on = ["sim", "fluid"]

[[run]]
name = "wide"
file = "wide.toml"
on = ["sim", "fluid"]

[[claim]]
id = "F1"
says = "the flows share"
measure = "jain"
of = "duel/*"
at_least = 0.999
outcome = "fails"
finding = "a queue stands between them"

[[claim]]
id = "F2"
says = "two paths are wider"
measure = "goodput"
of = "wide/*"
at_least = "11 Mbit/s"
"#;

fn write_study(folder: &Path) {
    for (name, text) in [("study.toml", STUDY), ("duel.toml", DUEL), ("wide.toml", WIDE)] {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// A study can name it, and its claims are measured there too; for an unsupported run, the reason
/// is recorded.
#[test]
fn a_study_can_name_it() {
    let (lab, out) = (lab(), tempfile::tempdir().unwrap());
    let folder = out.path().join("study");
    fs::create_dir(&folder).unwrap();
    write_study(&folder);
    let studies = choose_studies(&[folder.to_str().unwrap()], &lab.grounds, 0).unwrap();
    let on = lab.grounds.choose(&["sim", "fluid"]).unwrap();
    let plan = Reproduction::new(&studies, Scope::AllClaims, on, out.path().join("out")).unwrap();
    lab.claim(out.path(), plan.directories(), false).unwrap();
    let records = lab.reproduce(&plan).unwrap().unwrap();
    assert!(records.command.contains(" --on sim,fluid "), "{}", records.command);
    let study = &records.studies[0];
    assert!(study.kernel.is_none());
    let fluid = &study.grounds["fluid"];
    let made: Vec<&str> = fluid.runs.iter().map(|run| run.directory.as_str()).collect();
    assert_eq!(made, ["study/duel/fluid"]);
    let share = fluid.partner(&study.claims[0]).unwrap();
    assert_eq!((share.measured, share.outcome.to_string().as_str()), (Some(1.0), "holds"));
    assert_eq!(fluid.not_run[0].reason, "a fluid has one path");
    let wide = fluid.partner(&study.claims[1]).unwrap();
    assert_eq!(wide.outcome.to_string(), "not tested here");
    let page = fs::read_to_string(out.path().join("out/report.html")).unwrap();
    assert!(page.contains("Claims on sim and fluid"));
    // Where it is not registered, the study's error says so at the name.
    let unknown = choose_studies(&[folder.to_str().unwrap()], &Grounds::built_in(), 0).unwrap_err();
    assert!(unknown.to_string().contains("\"fluid\""), "{unknown}");
}

/// Its runs are stored apart from those of another ground.
#[test]
fn a_sweep_goes_on_where_it_was_stopped() {
    let (lab, out) = (lab(), tempfile::tempdir().unwrap());
    let sweep = |ground: &str| {
        let vary = vec!["link.bottleneck.rate=10 Mbit/s,20 Mbit/s".parse().unwrap()];
        let settings = SweepSettings::on(lab.grounds.get(ground).unwrap(), vary);
        let sweep = Sweep::new(duel(), settings).unwrap();
        let (at, program) = (out.path().join("sweep"), "this build".to_string());
        let mut store = SweepStore::open(&lab, at, program, false).unwrap();
        lab.sweep(&sweep, &mut store).unwrap()
    };
    let first = sweep("fluid");
    assert_eq!((first.runs, first.summary.points.len()), (2, 2));
    for (point, expected) in first.summary.points.iter().zip([5e6, 10e6]) {
        let goodput = point.groups[0].measures["goodput_bps"].interval.as_ref().unwrap().mean;
        assert!((goodput / expected - 1.0).abs() < 1e-3, "{goodput}");
    }
    assert_eq!(sweep("fluid").runs, 0);
    assert_eq!(sweep("sim").runs, 2);
}

/// As [`Fluid`], but whoever uses Vegas lacks the processor.
#[derive(Debug, Default)]
struct Slow(Arc<AtomicUsize>);

impl Ground for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn summary(&self) -> &str {
        "A host that is too slow for one controller"
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn counts_up_to(&self) -> Verdict {
        Verdict::Valid
    }

    fn check(&self, _: &Scenario) -> Result<(), GroundError> {
        Ok(())
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let lacks = scenario.flows.iter().any(|flow| flow.controller.name == "vegas");
        self.0.fetch_add(usize::from(lacks), Ordering::Relaxed);
        let verdict = if lacks { Verdict::Degraded } else { Verdict::Valid };
        let judged = Judged { health: None, verdict, reason: "no processor".to_string() };
        let ended = Fluid::default().run(scenario, control, output)?;
        Ok(Ended { judged: Some(judged), ..ended })
    }
}

/// A run that the host made is tried three times, and then has no figures: neither a ranking nor a
/// sweep compares it with others, and the sweep tries it again later.
#[test]
fn what_lacked_the_processor_is_never_compared() {
    let slow = Arc::new(AtomicUsize::default());
    let lab = Lab::new(Grounds::new().with(Slow(slow.clone())));
    let out = tempfile::tempdir().unwrap();
    let ground = lab.grounds.get("slow").unwrap();
    let settings = RankSettings {
        candidates: "vegas,reno".parse().unwrap(),
        rivals: "reno".parse().unwrap(),
        ..RankSettings::on(ground)
    };
    let ranked = lab.rank(&Rank::new(&[duel()], &settings).unwrap(), out.path()).unwrap();
    let entries = ranked.summary.entries.iter();
    let compared: Vec<_> = entries.map(|entry| (&*entry.candidate, entry.jain.is_some())).collect();
    assert_eq!(compared, [("vegas", false), ("reno", true)]);
    // Alone, beside itself and beside Reno.
    assert_eq!((ranked.unsound.len(), slow.swap(0, Ordering::Relaxed)), (3, 9));
    let expected = "duel.toml, vegas alone, seed 1: no processor";
    assert!(ranked.unsound.iter().any(|why| why == expected), "{:?}", ranked.unsound);
    let run = |cc: &str| {
        let scenario = duel().scenario(&[format!("flow.a.cc={cc}").parse().unwrap()]).unwrap();
        lab.run(&Job::new(&scenario, ground)).unwrap().summary
    };
    assert!(!run("vegas").is_evidence() && run("reno").is_evidence());
    let sweep = || {
        let vary = vec!["flow.a.cc=reno,vegas".parse().unwrap()];
        let sweep = Sweep::new(duel(), SweepSettings::on(ground, vary)).unwrap();
        let (at, program) = (out.path().join("sweep"), "this build".to_string());
        let mut store = SweepStore::open(&lab, at, program, false).unwrap();
        lab.sweep(&sweep, &mut store).unwrap()
    };
    for runs in [2, 1] {
        let swept = sweep();
        assert_eq!((swept.runs, swept.summary.points.len()), (runs, 1));
        assert_eq!(swept.unsound, ["flow.a.cc=vegas, seed 1: no processor"]);
    }
}

/// A stop ends the current run with the records so far; no other starts.
#[test]
fn a_handle_watches_and_stops_it() {
    let mut lab = Lab::new(Grounds::new().with(Fluid { waits: true }));
    lab.parallel = Some(1);
    let fluid = lab.grounds.get("fluid").unwrap();
    let scenario = duel().scenario(&[]).unwrap();
    let jobs = [Job::new(&scenario, fluid), Job::new(&scenario, fluid)];
    let handle = lab.handle();
    // Half of the first of two runs.
    let is_half = |done: f64| (done - 0.25).abs() < 1e-9;
    let watcher = std::thread::spawn(move || {
        while !handle.progress().is_some_and(|progress| is_half(progress.done)) {
            std::thread::yield_now();
        }
        handle.stop();
    });
    let ended = lab.run_all(&jobs, |_, run| Ok((run.records.interrupted, run.records.end_ns)));
    watcher.join().unwrap();
    let after = scenario.duration.as_nanos() / 2 + scenario.sample_interval.as_nanos();
    assert_eq!(ended.unwrap(), [Some((true, after)), None]);
    assert_eq!(lab.handle().progress(), None);
    assert!(matches!(lab.run(&jobs[0]), Err(Error::Stopped)));
}
