//! Simple controllers with one fault each: only the corresponding criterion reports it.

use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, State};
use knee_lab::scenario::Algorithms;
use knee_lab::{Evaluate, EvaluateSettings, Grounds, Lab, Simulator};
use knee_record::Evaluation;
use std::sync::Arc;

/// The fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Nothing.
    None,
    /// It ignores losses.
    IgnoresLoss,
    /// It ignores losses and timeouts.
    NeverBacksOff,
    /// It backs off at a queue of more than one packet.
    YieldsToAnyQueue,
    /// It counts each ACK as a segment, whatever it acknowledges (RFC 3465, section 2.1, says why
    /// it should not).
    CountsAcks,
}

/// RFC 5681 with windows of whole segments, except for the fault.
#[derive(Clone, Debug)]
struct Weak {
    fault: Fault,
    /// Window, segments.
    window: f64,
    threshold: f64,
}

/// Queue kept by controllers that ignore losses, segments: it does not fill the buffer.
const KEPT: f64 = 20.0;

impl Weak {
    fn queued(&self, sample: &Sample, connection: &Connection) -> Option<f64> {
        let (rtt, least) = (sample.rtt?.as_secs_f64(), connection.min_rtt.as_secs_f64());
        Some(self.window * (rtt - least) / rtt)
    }

    fn deaf(&self) -> bool {
        matches!(self.fault, Fault::IgnoresLoss | Fault::NeverBacksOff)
    }
}

impl Controller for Weak {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let acked = match self.fault {
            Fault::CountsAcks => 1.0,
            _ => sample.newly_acked as f64 / f64::from(connection.mss.max(1)),
        };
        let queued = self.queued(sample, connection).unwrap_or(0.0);
        let most = match self.fault {
            Fault::None | Fault::CountsAcks => f64::INFINITY,
            Fault::IgnoresLoss | Fault::NeverBacksOff => KEPT,
            Fault::YieldsToAnyQueue => 1.0,
        };
        if queued > most {
            self.threshold = self.window;
            self.window -= acked / self.window;
        } else if connection.window_limited && self.window < self.threshold {
            self.window += acked;
        } else if connection.window_limited {
            self.window += acked / self.window;
        }
        self.window = self.window.max(2.0);
        self.decision()
    }

    fn on_event(&mut self, event: Event, _: &Connection) -> Decision {
        match event {
            Event::RecoveryStart | Event::CongestionEcho if !self.deaf() => {
                self.threshold = (self.window / 2.0).max(2.0);
                self.window = self.threshold;
            }
            Event::Timeout if self.fault != Fault::NeverBacksOff => {
                self.threshold = (self.window / 2.0).max(2.0);
                self.window = 1.0;
            }
            _ => {}
        }
        self.decision()
    }

    fn decision(&self) -> Decision {
        let window = (self.window * 1448.0) as u64;
        Decision { window, send_quantum: 1448, ..Decision::default() }
    }

    fn state(&self) -> State {
        State::default()
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }
}

fn evaluated(fault: Fault) -> Evaluation {
    let mut algorithms = Algorithms::built_in().clone();
    let make = move |_: &_, _| {
        let weak = Weak { fault, window: 10.0, threshold: f64::INFINITY };
        Ok(Box::new(weak) as Box<dyn Controller>)
    };
    algorithms.controllers.register("weak", make).unwrap();
    let algorithms = Arc::new(algorithms);
    let lab = Lab::new(Grounds::new().with(Simulator::with_algorithms(algorithms.clone())));
    let sections = ["5.1.1", "5.1.2", "5.2.1", "5.2.2", "7.2", "7.6", "7.10"];
    let settings = EvaluateSettings {
        candidate: "weak".to_string(),
        with: Vec::new(),
        sections: sections.map(str::to_string).to_vec(),
        repeat: 3,
        quick: true,
        on: lab.grounds.get("sim").unwrap(),
        beside: Vec::new(),
        search: None,
        traces: Vec::new(),
        algorithms: Some(algorithms),
    };
    let folder = tempfile::tempdir().unwrap();
    let done = lab.evaluate(&Evaluate::new(&settings).unwrap(), folder.path()).unwrap();
    // A line without a value could not report anyone.
    for line in &done.lines {
        assert_eq!(line.could_not_be_tried, None, "{} {}", line.line.section, line.line.claim);
    }
    done
}

/// The lines that are worse than all standards, as `5.1.1 sent`.
fn named(evaluation: &Evaluation) -> Vec<String> {
    let worse = evaluation.lines.iter().filter(|line| line.worse_than_all);
    worse.map(|line| format!("{} {}", line.line.section, line.line.claim)).collect()
}

#[test]
fn nothing_is_named_of_one_without_a_fault() {
    assert_eq!(named(&evaluated(Fault::None)), [""; 0]);
}

/// It keeps sending under heavy loss and with full buffers; without any feedback it has timeouts,
/// which it obeys.
#[test]
fn ignoring_loss_is_named() {
    let found = named(&evaluated(Fault::IgnoresLoss));
    assert_among(&found, &["5.1.1 sent", "5.1.1 useful"]);
    assert_not_among(&found, &["5.1.1 unheard", "5.1.2", "5.2.1 own", "7.10 own"]);
}

#[test]
fn never_backing_off_is_named() {
    let found = named(&evaluated(Fault::NeverBacksOff));
    assert_among(&found, &["5.1.1 sent", "5.1.1 unheard", "5.1.1 useful", "7.2 breaker-trip"]);
    assert_not_among(&found, &["5.1.2", "5.2.1 own", "7.10 own"]);
}

/// Over one path and over two; it harms no other flow.
#[test]
fn starving_beside_cubic_is_named() {
    let found = named(&evaluated(Fault::YieldsToAnyQueue));
    assert_among(&found, &["5.2.1 own", "7.10 own"]);
    assert_not_among(&found, &["5.1", "5.2.1 others", "5.2.2", "7.2", "7.10 others"]);
}

/// Only ACK division reveals it; with an honest receiver, which acknowledges every second segment,
/// it is slower than others.
#[test]
fn counting_acks_is_named() {
    let found = named(&evaluated(Fault::CountsAcks));
    assert_among(&found, &["7.6 divided-gained"]);
    assert_eq!(
        found.iter().filter(|line| !line.starts_with("7.6 divided")).count(),
        0,
        "{found:?}"
    );
}

fn assert_among(found: &[String], wanted: &[&str]) {
    for wanted in wanted {
        assert!(found.iter().any(|line| line == wanted), "{wanted} is not among {found:?}");
    }
}

fn assert_not_among(found: &[String], wrong: &[&str]) {
    for wrong in wrong {
        assert!(!found.iter().any(|line| line.starts_with(wrong)), "{wrong} is among {found:?}");
    }
}
