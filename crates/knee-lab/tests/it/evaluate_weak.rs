//! Simple controllers with one fault each: only the corresponding criterion reports it.

use knee_cc::{Connection, Controller, Decision, Event, Needs, Recovery, Sample, State};
use knee_lab::report::evaluation_says;
use knee_lab::scenario::{Algorithms, Scenario};
use knee_lab::{
    Ended, Evaluate, EvaluateSettings, Ground, GroundError, Grounds, Lab, Output, Pace, Simulator,
    evaluate_seeds,
};
use knee_record::{Control, Evaluation};
use knee_units::Time;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Nothing.
    None,
    /// It ignores losses.
    IgnoresLoss,
    /// It ignores losses and timeouts.
    NeverBacksOff,
    /// It ignores timeouts.
    IgnoresTimeout,
    /// It halves its window at each ACK that reports a loss, not once in a round trip.
    HalvesOnEveryLoss,
    /// It backs off at a queue of more than one packet.
    YieldsToAnyQueue,
    /// It counts each ACK as a segment, whatever it acknowledges (RFC 3465, section 2.1, says why
    /// it should not).
    CountsAcks,
    /// After its first timeout its window stays at two segments.
    PinnedByShock,
    /// Losses that turn out to be spurious are not undone.
    TakesSpuriousForLoss,
    /// Its window also grows while the application limits what is sent (RFC 7661).
    GrowsUnused,
    /// After a pause it sends what its window was before (RFC 5681, section 4.1).
    BurstsAfterIdle,
}

/// RFC 5681 with windows of whole segments, the undoing of spurious reductions (RFC 4015), and the
/// restart after a pause, except for the fault.
#[derive(Clone, Debug)]
struct Weak {
    fault: Fault,
    /// Window, segments.
    window: f64,
    threshold: f64,
    /// Window and threshold before the last reduction.
    before: (f64, f64),
    /// Largest window, segments.
    most: f64,
    /// Time of the last ACK.
    heard: Time,
}

/// Initial window, segments (RFC 6928).
const INITIAL: f64 = 10.0;

/// Pause after which the window is that of a new connection: about the smallest timeout.
const PAUSE: Time = Time::from_millis(250);

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

    fn reduce(&mut self) {
        self.before = (self.window, self.threshold);
        self.threshold = (self.window / 2.0).max(2.0);
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
            Fault::IgnoresLoss | Fault::NeverBacksOff => KEPT,
            Fault::YieldsToAnyQueue => 1.0,
            _ => f64::INFINITY,
        };
        let grows = connection.window_limited || self.fault == Fault::GrowsUnused;
        if queued > most {
            self.threshold = self.window;
            self.window -= acked / self.window;
        } else if self.fault == Fault::HalvesOnEveryLoss && sample.newly_lost > 0 {
            self.reduce();
            self.window = self.threshold;
        } else if grows && self.window < self.threshold {
            self.window += acked;
        } else if grows {
            self.window += acked / self.window;
        }
        self.window = self.window.clamp(2.0, self.most);
        self.heard = connection.now;
        self.decision()
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        let idle = connection.now.saturating_sub(self.heard);
        let paused = connection.app_limited && idle > PAUSE;
        match event {
            Event::RecoveryStart | Event::CongestionEcho if !self.deaf() => {
                self.reduce();
                self.window = self.threshold;
            }
            Event::Timeout
                if !matches!(self.fault, Fault::NeverBacksOff | Fault::IgnoresTimeout) =>
            {
                // Else it is a further timeout of one episode of loss.
                if connection.recovery == Recovery::Open {
                    self.reduce();
                }
                self.window = 1.0;
                if self.fault == Fault::PinnedByShock {
                    self.most = 2.0;
                }
            }
            Event::SpuriousRecovery if self.fault != Fault::TakesSpuriousForLoss => {
                self.window = self.window.max(self.before.0);
                self.threshold = self.before.1;
            }
            Event::SentAfterIdle if paused && self.fault != Fault::BurstsAfterIdle => {
                self.threshold = self.threshold.max(0.75 * self.window);
                self.window = self.window.min(INITIAL);
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

/// The simulator. Runs of the controllers that `weak` is compared with are the same for each
/// fault: they are made once. Their samples, which no criterion reads, are not repeated.
#[derive(Debug)]
struct RunsOnce(Simulator);

static RUNS: Mutex<BTreeMap<String, Ended>> = Mutex::new(BTreeMap::new());

impl Ground for RunsOnce {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn summary(&self) -> &str {
        self.0.summary()
    }

    fn pace(&self) -> Pace {
        self.0.pace()
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        self.0.check(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let run = format!("{scenario:?}");
        if run.contains("\"weak\"") {
            return self.0.run(scenario, control, output);
        }
        if let Some(ended) = RUNS.lock().unwrap().get(&run) {
            return Ok(ended.clone());
        }
        let ended = self.0.run(scenario, control, output)?;
        RUNS.lock().unwrap().insert(run, ended.clone());
        Ok(ended)
    }
}

fn evaluated(fault: Fault) -> Evaluation {
    evaluated_in(fault, &["5.1.1", "5.1.2", "5.2.1", "5.2.2", "7.2", "7.6", "7.10"])
}

fn evaluated_in(fault: Fault, sections: &[&str]) -> Evaluation {
    let mut algorithms = Algorithms::built_in().clone();
    let make = move |_: &_, _| {
        let weak = Weak {
            fault,
            window: INITIAL,
            threshold: f64::INFINITY,
            before: (INITIAL, f64::INFINITY),
            most: f64::INFINITY,
            heard: Time::ZERO,
        };
        Ok(Box::new(weak) as Box<dyn Controller>)
    };
    algorithms.controllers.register("weak", make).unwrap();
    let algorithms = Arc::new(algorithms);
    let lab =
        Lab::new(Grounds::new().with(RunsOnce(Simulator::with_algorithms(algorithms.clone()))));
    let settings = EvaluateSettings {
        candidate: "weak".to_string(),
        with: Vec::new(),
        sections: sections.iter().map(ToString::to_string).collect(),
        repeat: evaluate_seeds(true),
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
#[ignore = "takes long: .ci/night random"]
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

/// What a path and an application do to a flow for a while.
const CHANGES: [&str; 3] = ["6.4", "7.7", "7.8"];

#[test]
fn no_change_is_named_of_one_without_a_fault() {
    assert_eq!(named(&evaluated_in(Fault::None, &CHANGES)), [""; 0]);
}

/// Its goodput names it as well, where an outage is a part of the run, or where slow start ends in
/// a timeout because packets overtake each other (7.7).
#[test]
fn a_window_that_a_shock_pins_is_named() {
    let found = named(&evaluated_in(Fault::PinnedByShock, &CHANGES));
    assert_among(&found, &["7.8 regained"]);
    assert_not_among(&found, &["6.4", "7.8 burst", "7.8 idle", "7.8 requests"]);
}

#[test]
fn taking_late_packets_for_lost_ones_is_named() {
    let found = named(&evaluated_in(Fault::TakesSpuriousForLoss, &CHANGES));
    assert_among(&found, &["7.7 late-goodput"]);
    assert_not_among(&found, &["6.4", "7.8"]);
}

#[test]
fn growth_while_application_limited_is_named() {
    let found = named(&evaluated_in(Fault::GrowsUnused, &CHANGES));
    assert_among(&found, &["7.8 requests-resent"]);
    assert_not_among(&found, &["6.4", "7.7", "7.8 regained"]);
}

#[test]
fn a_burst_after_a_pause_is_named() {
    let found = named(&evaluated_in(Fault::BurstsAfterIdle, &CHANGES));
    assert_among(&found, &["7.8 idle-resent"]);
    assert_not_among(&found, &["6.4", "7.7", "7.8 regained", "7.8 requests"]);
}

/// Sections in which each planted fault shows, besides others in which it may.
const PLANTED: [&str; 6] = ["5.1.1", "5.1.2", "5.1.3", "6.3", "7.5", "7.8"];

/// The line or the case that the fault is about comes first, of all that are worse than all.
#[test]
fn the_first_sentence_names_the_fault() {
    let first = |fault: Fault| evaluation_says(&evaluated_in(fault, &PLANTED));
    for (fault, words) in [
        (Fault::IgnoresTimeout, "5.1.1, rate sent while all feedback is lost"),
        (Fault::GrowsUnused, "after growth while application-limited"),
        (Fault::BurstsAfterIdle, "after a pause"),
        (Fault::HalvesOnEveryLoss, "7.5, goodput"),
    ] {
        let says = first(fault);
        let worst = says.split(". ").next().unwrap_or_default();
        assert!(
            worst.starts_with("weak is worst in") && worst.contains(words),
            "{fault:?}: {says}"
        );
        // Where the figures in the sentence do not give its ratio, it says what is missing.
        if let Fault::GrowsUnused = fault {
            let [times, own, others, floor] = figures(&says);
            assert!((times / ((own + floor) / (others + floor)) - 1.0).abs() < 0.05, "{says}");
        }
    }
    let says = first(Fault::None);
    assert!(says.starts_with("None of ") && says.contains(" shows weak worse than "), "{says}");
}

/// Of "N times reno's (A % against B %, F % added to both)": N, A, B and F.
fn figures(says: &str) -> [f64; 4] {
    let (_, rest) = says.split_once(": ").unwrap();
    let (sentence, _) = rest.split_once(" added to both)").unwrap_or_else(|| panic!("{says}"));
    let numbers = sentence.split([' ', '(']).filter_map(|word| word.parse().ok());
    numbers.collect::<Vec<f64>>().try_into().unwrap_or_else(|_| panic!("{says}"))
}

/// The same over all sections.
#[test]
#[ignore = "takes long: .ci/night random"]
fn the_first_sentence_of_a_whole_evaluation_names_the_fault() {
    let first = |fault: Fault| evaluation_says(&evaluated_in(fault, &[]));
    for (fault, words) in [
        (Fault::IgnoresTimeout, "5.1.1"),
        (Fault::GrowsUnused, "application-limited"),
        (Fault::BurstsAfterIdle, "after a pause"),
        (Fault::HalvesOnEveryLoss, "goodput"),
    ] {
        let says = first(fault);
        println!("{fault:?}: {says}");
        assert!(says.starts_with("weak is worst in") && says.contains(words), "{fault:?}: {says}");
    }
    let says = first(Fault::None);
    println!("{says}");
    assert!(says.starts_with("None of "), "{says}");
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
