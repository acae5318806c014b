//! Evaluations of a program's own controllers.

use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, State};
use knee_lab::scenario::Algorithms;
use knee_lab::{
    Ended, Evaluate, EvaluateBoth, EvaluateSettings, Ground, GroundError, Grounds, Lab, Output,
    Pace, Refusal, Simulator,
};
use knee_record::Control;
use knee_scenario::Scenario;
use knee_units::Time;
use std::fs;
use std::sync::Arc;

/// Sends ten packets at a time until it fails.
#[derive(Clone, Debug)]
struct Failing {
    at: Time,
    failed: bool,
}

impl Controller for Failing {
    fn on_ack(&mut self, _: &Sample, connection: &Connection) -> Decision {
        self.failed |= connection.now >= self.at;
        self.decision()
    }
    fn on_event(&mut self, _: Event, _: &Connection) -> Decision {
        self.decision()
    }
    fn failure(&self) -> Option<String> {
        self.failed.then(|| "ZeroDivisionError in line 7".to_owned())
    }
    fn decision(&self) -> Decision {
        Decision { window: 14_480, send_quantum: 1448, ..Decision::default() }
    }
    fn state(&self) -> State {
        State::default()
    }
    fn needs(&self) -> Needs {
        Needs { may_fail: true, ..Needs::default() }
    }
}

/// It fails after the end of 40 s runs but within 60 s runs: lines with the latter state the
/// reason, the others have values, and so do the standards.
#[test]
fn a_controller_that_fails_in_mid_run_could_not_be_tried() {
    let mut algorithms = Algorithms::built_in().clone();
    let make = |_: &_, _| {
        let failing = Failing { at: Time::from_micros(50_000_000), failed: false };
        Ok(Box::new(failing) as Box<dyn Controller>)
    };
    algorithms.controllers.register("failing", make).unwrap();
    let algorithms = Arc::new(algorithms);
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let settings = EvaluateSettings {
        candidate: "failing".to_string(),
        with: Vec::new(),
        sections: ["5.1.4", "5.1.5"].map(str::to_string).to_vec(),
        repeat: 2,
        quick: true,
        on: lab.grounds.get("sim").unwrap(),
        beside: Vec::new(),
        search: None,
        traces: Vec::new(),
        algorithms: Some(algorithms),
    };
    let folder = tempfile::tempdir().unwrap();
    let plan = Evaluate::new(&settings).unwrap();
    let evaluation = lab.evaluate(&plan, folder.path()).unwrap();
    let of = |section: &'static str| {
        let lines = evaluation.lines.iter();
        lines.filter(move |line| line.line.section == section)
    };
    assert_eq!((of("5.1.4").count(), of("5.1.5").count()), (2, 3));
    for line in of("5.1.4") {
        let why = line.could_not_be_tried.as_deref().unwrap();
        assert!(why.contains("ZeroDivisionError in line 7"), "{why}");
        assert!(line.seeds.iter().all(|seed| seed.candidate.is_none()));
        assert!(line.seeds.iter().all(|seed| seed.standards.iter().all(Option::is_some)));
    }
    for line in of("5.1.5") {
        assert_eq!(line.could_not_be_tried, None, "{}", line.line.title);
        assert!(line.against.iter().all(|one| one.word.is_some()), "{}", line.line.title);
    }
    assert_eq!(evaluation.runs_finished, evaluation.plan.runs_planned);
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("could not be tried: ") && page.contains("ZeroDivisionError in line 7"));
}

/// The simulator under another name, which does not support late packets.
#[derive(Debug, Default)]
struct Mirror(Simulator);

impl Ground for Mirror {
    fn name(&self) -> &str {
        "mirror"
    }
    fn summary(&self) -> &str {
        "the simulator once more"
    }
    fn pace(&self) -> Pace {
        Pace::Real
    }
    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        if scenario.name == "Some packets are late" {
            let what = "a mirror is not late".to_string();
            return Err(GroundError::Scenario(Refusal {
                what,
                advice: "be in time".to_string(),
                reason: None,
            }));
        }
        self.0.check(scenario)
    }
    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        self.0.run(scenario, control, output)
    }
}

/// An equal ground gives equal values; unsupported cases are omitted on both and listed; the real
/// time is known beforehand.
#[test]
fn two_grounds_over_the_same_cases() {
    let lab = Lab::new(Grounds::new().with(Simulator::default()).with(Mirror::default()));
    let grounds = [lab.grounds.get("sim").unwrap(), lab.grounds.get("mirror").unwrap()];
    let settings = EvaluateSettings {
        candidate: "cubic".to_string(),
        with: Vec::new(),
        sections: ["5.1.3", "6.4"].map(str::to_string).to_vec(),
        repeat: 3,
        quick: true,
        on: grounds[0],
        beside: Vec::new(),
        search: None,
        traces: Vec::new(),
        algorithms: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let both = EvaluateBoth::new(&settings, &grounds, 2).unwrap();
    // Two cases of 5.1.3 and four of 6.4 for three controllers and two seeds: five cases of 30 s
    // and one of 60 s.
    assert_eq!(both.real_time(), (36, 6.0 * 210.0));
    for directory in both.directories(folder.path()) {
        fs::create_dir_all(directory).unwrap();
    }
    let compared = lab.evaluate_both(&both, folder.path()).unwrap();
    let one = &compared.compared[0];
    assert_eq!(one.controllers, ["reno", "cubic", "bbr"]);
    // Two lines of 5.1.3 and six of 6.4, each with three pairwise comparisons.
    assert_eq!((one.pairs.len(), one.agree), (24, 24), "{:#?}", one.pairs);
    assert_eq!(one.without_value, [""; 0]);
    let kept = fs::read_to_string(folder.path().join("mirror/evaluation.json")).unwrap();
    assert_eq!(kept.matches("mirror: a mirror is not late").count(), 1, "{kept}");
}
