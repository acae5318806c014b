//! Candidates that are programs, on a ground of their name that takes no real time.

use crate::grounds::Fluid;
use knee_lab::record::Control;
use knee_lab::scenario::Scenario;
use knee_lab::{
    Ended, Evaluate, EvaluateSettings, Ground, GroundError, Grounds, Handle, KERNEL, Lab, Output,
    PROGRAMS, Pace,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const FILE: &str = r#"
name = "A stack"
duration = "15 s"

[link.a]
rate = "20 Mbit/s"
delay = "20 ms"

[path.main]
forward = ["a"]

[[flow]]
name = "stack"
path = "main"
cc = "newreno"

[flow.program]
server = ["bin/stack", "--cc={cc}", "{here}:{port}"]
client = ["bin/fetch", "{peer}:{port}", "{bytes}"]
bytes = "20 MB"
ready = "udp"
"#;

/// What the ground was asked to run, and when it is to stop the laboratory.
#[derive(Debug, Default)]
struct Asked {
    scenarios: Vec<Scenario>,
    stop: Option<(usize, Handle)>,
}

#[derive(Debug)]
struct Stage(&'static str, Arc<Mutex<Asked>>);

impl Ground for Stage {
    fn name(&self) -> &str {
        self.0
    }

    fn summary(&self) -> &str {
        "programs without processes"
    }

    fn pace(&self) -> Pace {
        Pace::Real
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
        let is_program = scenario.flows.iter().any(|flow| flow.program.is_some());
        assert_eq!(self.0 == PROGRAMS, is_program);
        assert!(output.directory.is_some(), "programs find their certificates there");
        let mut asked = self.1.lock().unwrap();
        asked.scenarios.push(scenario.clone());
        let so_far = asked.scenarios.len();
        if let Some((_, handle)) = asked.stop.as_ref().filter(|(after, _)| *after == so_far) {
            handle.stop();
        }
        drop(asked);
        Fluid::default().run(scenario, control, output)
    }
}

/// A laboratory with that ground and the kernel's, and what they are asked.
fn laboratory() -> (Lab, Arc<Mutex<Asked>>) {
    let asked = Arc::new(Mutex::new(Asked::default()));
    let [programs, kernel] = [PROGRAMS, KERNEL].map(|name| Stage(name, asked.clone()));
    (Lab::new(Grounds::new().with(programs).with(kernel)), asked)
}

fn settings<'g>(on: &'g dyn Ground, candidate: &Path, sections: &[&str]) -> EvaluateSettings<'g> {
    EvaluateSettings {
        candidate: candidate.display().to_string(),
        with: Vec::new(),
        sections: sections.iter().map(|section| section.to_string()).collect(),
        repeat: 2,
        quick: false,
        on,
        beside: Vec::new(),
        search: None,
        traces: Vec::new(),
        algorithms: None,
    }
}

fn programs(lab: &Lab) -> &dyn Ground {
    lab.grounds.get(PROGRAMS).unwrap()
}

fn written(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("stack.toml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_program_is_tried_in_twelve_short_cases_beside_the_kernels_controllers() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), FILE);
    let (lab, asked) = laboratory();
    let plan = Evaluate::new(&settings(programs(&lab), &file, &[])).unwrap();
    let evaluation = lab.evaluate(&plan, folder.path()).unwrap();
    let asked = asked.lock().unwrap();
    // Two seeds of the candidate and of Reno, CUBIC and BBR.
    assert_eq!(asked.scenarios.len(), 12 * 4 * 2);
    assert_eq!(evaluation.runs_finished, 96);
    let mut with = 0;
    for scenario in &asked.scenarios {
        assert!(scenario.duration.as_secs_f64() <= 20.0 && scenario.flows.len() <= 2);
        let flow = &scenario.flows[0];
        assert_eq!(flow.name, "candidate");
        match &flow.program {
            None => assert!(["reno", "cubic", "bbr"].contains(&flow.controller.name.as_str())),
            Some(program) => {
                with += 1;
                assert_eq!(flow.controller.name, "newreno");
                assert_eq!(program.server[1], "--cc={cc}");
                assert!(program.bytes.unwrap() > 250_000_000, "it ends within the run");
            }
        }
        assert!(scenario.flows[1..].iter().all(|flow| {
            flow.name == "candidate" || (flow.name == "standard" && flow.program.is_none())
        }));
    }
    assert_eq!(with, 24);
    let goodput = evaluation.lines.iter().find(|line| line.line.section == "6.1");
    assert!(goodput.is_none(), "6.1 has no case for programs");
    assert!(evaluation.plan.not_tried.iter().any(|one| one.section == "6.1"));
    let repeat = format!("knee evaluate {} --repeat-real 2 --on programs", file.display());
    assert_eq!(evaluation.plan.command, repeat);
}

#[test]
fn an_interrupted_evaluation_goes_on_and_ends_with_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), FILE);
    let sections = ["5.2.1", "7.5"];
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let (lab, _) = laboratory();
    let plan = Evaluate::new(&settings(programs(&lab), &file, &sections)).unwrap();
    let expected = lab.evaluate(&plan, &whole).unwrap();
    let journal = |of: &Path| of.join("made.jsonl");
    assert!(!journal(&whole).exists());

    let cut = folder.path().join("cut");
    fs::create_dir(&cut).unwrap();
    let (mut lab, asked) = laboratory();
    lab.parallel = Some(1);
    asked.lock().unwrap().stop = Some((11, lab.handle()));
    let plan = Evaluate::new(&settings(programs(&lab), &file, &sections)).unwrap();
    let part = lab.evaluate(&plan, &cut).unwrap();
    assert!(part.runs_finished < 32 && lab.is_stopped());
    // Killed while it wrote.
    let kept = fs::read_to_string(journal(&cut)).unwrap();
    fs::write(journal(&cut), &kept[..kept.len() - 20]).unwrap();

    let (lab, asked) = laboratory();
    let mut plan = Evaluate::new(&settings(programs(&lab), &file, &sections)).unwrap();
    let resumed = plan.resume(&lab.program, &cut);
    assert!((9..=10).contains(&resumed), "{resumed}");
    lab.claim(&cut, [&cut], true).unwrap();
    let ended = lab.evaluate(&plan, &cut).unwrap();
    assert_eq!(asked.lock().unwrap().scenarios.len() + resumed, 32);
    assert_eq!(ended, expected);
    assert!(!journal(&cut).exists());

    // What is of another evaluation is not taken over.
    fs::write(journal(&cut), kept).unwrap();
    let mut other = Evaluate::new(&settings(programs(&lab), &file, &sections[..1])).unwrap();
    assert_eq!(other.resume(&lab.program, &cut), 0);
    written(folder.path(), &FILE.replace("bin/fetch", "bin/other"));
    let mut other = Evaluate::new(&settings(programs(&lab), &file, &sections)).unwrap();
    assert_eq!(other.resume(&lab.program, &cut), 0);
}

#[test]
fn what_is_no_program_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let ((lab, _), built_in) = (laboratory(), Lab::default());
    let refused = |on: &str, candidate: &Path| {
        let lab = if on == PROGRAMS { &lab } else { &built_in };
        let settings = settings(lab.grounds.get(on).unwrap(), candidate, &[]);
        Evaluate::new(&settings).unwrap_err().to_string()
    };
    let file = written(folder.path(), FILE);
    let said = refused("sim", &file);
    assert!(said.contains("is a program, and the ground sim has none"), "{said}");
    let said = refused(PROGRAMS, Path::new("cubic"));
    assert!(said.contains("evaluates programs, and cubic is none"), "{said}");
    let said = refused(PROGRAMS, &folder.path().join("none.toml"));
    assert!(said.contains("none.toml: cannot be read"), "{said}");
    for (text, expected) in [
        (FILE.replace("[flow.program]", "[flow.other]"), "not one flow with programs"),
        (FILE.replace("cc = \"newreno\"", ""), "no name or no cc"),
        ("flow = [".to_string(), "stack.toml: "),
        (FILE.replace("server =", "servers ="), "server"),
    ] {
        let said = refused(PROGRAMS, &written(folder.path(), &text));
        assert!(said.contains(expected), "{said}");
    }
}
