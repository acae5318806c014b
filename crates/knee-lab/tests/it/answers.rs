//! Answers about a program's own controller.

use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, Selection, State};
use knee_lab::scenario::Algorithms;
use knee_lab::{Grounds, Lab, ScenarioText, Simulator};
use knee_record::{Answers, Judgement};
use knee_units::Rate;
use rand_core::Rng as _;
use std::sync::Arc;

/// CUBIC, but a quarter of the connections stop after 900 kB.
#[derive(Clone, Debug)]
struct Dying {
    inner: Box<dyn Controller>,
    dies: bool,
    dead: bool,
}

const LAST: u64 = 900_000;

impl Dying {
    fn decided(&self, decision: Decision) -> Decision {
        let stopped = Rate::from_bits_per_second(1000);
        Decision { pacing_rate: self.dead.then_some(stopped), ..decision }
    }
}

impl Controller for Dying {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.dead = self.dies && connection.delivered >= LAST;
        let decision = self.inner.on_ack(sample, connection);
        self.decided(decision)
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        let decision = self.inner.on_event(event, connection);
        self.decided(decision)
    }

    fn decision(&self) -> Decision {
        self.decided(self.inner.decision())
    }

    fn state(&self) -> State {
        self.inner.state()
    }

    fn needs(&self) -> Needs {
        // Unpaced until it dies.
        Needs { pacing: true, ..self.inner.needs() }
    }
}

fn answers(duration: &str, sizes: &str) -> Answers {
    let mut algorithms = Algorithms::built_in().clone();
    let make = |_: &_, mut init: knee_cc::Init| {
        let dies = init.rng.next_u32().is_multiple_of(4);
        let inner = knee_cc::build(&Selection::named("cubic"), init);
        let inner = inner.map_err(|error| error.to_string())?;
        Ok(Box::new(Dying { inner, dies, dead: false }) as Box<dyn Controller>)
    };
    algorithms.controllers.register("dying", make).unwrap();
    let algorithms = Arc::new(algorithms);
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let flow = |name: &str, cc: &str| {
        format!(
            "[[flow]]\nname = \"{name}\"\ncc = \"{cc}\"\nworkload = {{ mix = {{ process = \"all\", \
             arrival_interval = \"1 s\", sizes = {sizes} }} }}\n"
        )
    };
    let text = format!(
        "duration = \"{duration}\"\n[link.mile]\nrate = \"50 Mbit/s\"\ndelay = \"15 ms\"\nbuffer = \
         \"1 BDP\"\n[path.main]\nforward = [\"mile\"]\nreverse_delay = \"15 ms\"\n{}{}",
        flow("test", "dying"),
        flow("control", "cubic")
    );
    let text = ScenarioText::new("dying.toml", &text).with_algorithms(algorithms);
    lab.answer(&text, &[], 1).unwrap().unwrap()
}

/// What dies leaves the link to the others, so that the transfers that finish take less time. The
/// answer is that it is worse all the same, and how many do not finish.
#[test]
fn a_controller_of_which_a_quarter_dies_is_worse() {
    let answers = answers("40 s", "\"1200 kB\"");
    let mix = answers.mix.unwrap();
    let [class] = &mix.classes[..] else { panic!("{:?}", mix.classes) };
    let [ours, theirs] = class.cut_off.map(|count| count as f64);
    let all = class.transfers as f64 + ours;
    assert!(
        (0.18..0.32).contains(&(ours / all)) && theirs / all < 0.05,
        "{ours} {theirs} of {all}"
    );
    assert_eq!(class.effect, Judgement::Worse, "{}", mix.sentences[0]);
    assert!(mix.sentences[0].contains(": keep cubic: dying is worse for "), "{}", mix.sentences[0]);
    let counts = format!("cuts off {ours} transfers under dying and {theirs} under cubic");
    assert!(mix.sentences[0].contains(&counts), "{}", mix.sentences[0]);
}

/// Nothing dies below 900 kB.
#[test]
fn small_transfers_of_the_same_controller_are_alike() {
    let mix = answers("20 s", "\"300 kB\"").mix.unwrap();
    assert_eq!(mix.classes[0].effect, Judgement::Alike, "{}", mix.sentences[0]);
    assert_eq!(mix.classes[0].compared.estimate, Some(1.0));
}
