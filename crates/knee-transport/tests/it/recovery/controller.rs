//! A controller simple enough to follow by hand.

use super::notation::SEGMENT;
use knee_cc::{Connection, Controller, Decision, Event, Needs, Recovery, Sample, State};
use knee_units::Rate;

/// Keeps its window, except that it halves when recovery begins and after a
/// timeout, from which it recovers by slow start; it is fully restored if that
/// was a mistake. RFC 5681 without growth beyond the threshold.
#[derive(Clone, Debug)]
pub struct Halving {
    decision: Decision,
    threshold: u64,
    before: u64,
    /// Whether it responds to loss, by proportional rate reduction.
    reacts: bool,
    /// Whether recovery has not ended since the last timeout.
    timed_out: bool,
}

impl Halving {
    pub fn new(segments: u64, reacts: bool, pacing_rate: Option<Rate>) -> Box<Halving> {
        let window = segments * SEGMENT;
        let decision =
            Decision { window, pacing_rate, send_quantum: SEGMENT, ..Decision::default() };
        let (threshold, before) = (window, window);
        Box::new(Halving { decision, threshold, before, reacts, timed_out: false })
    }

    fn reduce(&mut self) {
        self.before = self.decision.window;
        self.threshold = (self.decision.window / SEGMENT / 2).max(2) * SEGMENT;
    }
}

impl Controller for Halving {
    fn on_ack(&mut self, sample: &Sample, _: &Connection) -> Decision {
        if self.decision.window < self.threshold {
            let grown = self.decision.window + sample.newly_acked;
            self.decision.window = grown.min(self.threshold);
        }
        self.decision
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        match event {
            _ if !self.reacts => {}
            Event::RecoveryStart | Event::CongestionEcho => {
                self.reduce();
                self.decision.window = self.threshold;
            }
            Event::Timeout => {
                if connection.recovery != Recovery::Loss {
                    self.reduce();
                }
                self.timed_out = true;
                self.decision.window = connection.in_flight + SEGMENT;
            }
            Event::RecoveryEnd => {
                let by_slow_start = std::mem::take(&mut self.timed_out);
                let window = if by_slow_start { self.decision.window } else { self.threshold };
                self.decision.window = window;
            }
            Event::SpuriousRecovery => {
                self.timed_out = false;
                self.decision.window = self.before.max(self.decision.window);
                self.threshold = self.before;
            }
            _ => {}
        }
        self.decision
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        State::default()
    }

    fn needs(&self) -> Needs {
        Needs { proportional_rate_reduction: self.reacts, ..Needs::default() }
    }
}
