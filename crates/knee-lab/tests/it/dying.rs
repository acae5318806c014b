//! A controller under which a quarter of the connections die: after 900 kB they send next to nothing.

use knee_cc::{
    Connection, Controller, Decision, Event, Init, Needs, Sample, Selection, Settings, State,
};
use knee_lab::scenario::Algorithms;
use knee_units::Rate;
use std::sync::Arc;

/// Bytes after which a connection dies.
const DIES_AFTER: u64 = 900_000;

/// CUBIC, as long as it lives.
#[derive(Clone, Debug)]
struct Dying {
    within: Box<dyn Controller>,
    dies: bool,
    acked: u64,
}

impl Dying {
    fn is_dead(&self) -> bool {
        self.dies && self.acked >= DIES_AFTER
    }
}

impl Controller for Dying {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        self.acked += sample.newly_acked;
        self.within.on_ack(sample, connection);
        self.decision()
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        self.within.on_event(event, connection);
        self.decision()
    }

    fn decision(&self) -> Decision {
        let alive = self.within.decision();
        let rate = Rate::from_bits_per_second(100);
        if self.is_dead() { Decision { pacing_rate: Some(rate), ..alive } } else { alive }
    }

    fn state(&self) -> State {
        self.within.state()
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, ..self.within.needs() }
    }
}

/// Knee's algorithms with this controller, and its name.
pub fn with_dying() -> (Arc<Algorithms>, &'static str) {
    let mut algorithms = Algorithms::built_in().clone();
    let make = |_: &Settings, init: Init| {
        let mut rng = init.rng.clone();
        let within = knee_cc::build(&Selection::named("cubic"), init);
        let within = within.map_err(|error| error.to_string())?;
        let dies = knee_units::random::chance(&mut rng, 0.25);
        Ok(Box::new(Dying { within, dies, acked: 0 }) as Box<dyn Controller>)
    };
    algorithms.controllers.register("dying", make).unwrap();
    (Arc::new(algorithms), "dying")
}
