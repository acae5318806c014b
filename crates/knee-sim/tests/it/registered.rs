//! Algorithms provided by a program: defined here, named in a scenario, and run
//! like any other.
use knee_cc::{
    Connection, Controller, Decision, Event, Loss, Needs, Sample, State, Transmission, intern_phase,
};
use knee_multipath::sched::{Place, Scheduler, View};
use knee_record::Records;
use knee_scenario::{Algorithms, Embedded, Source, parse, parse_with};
use knee_sim::{Control, SimulationError};
use knee_trials::scenario::link_and_path;
use knee_units::{Rate, Time};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Length of a monitor interval: a few round trips.
const INTERVAL: Time = Time::from_millis(300);
/// Rate of the first interval.
const FIRST_BPS: u64 = 1_000_000;

/// State of a boxed controller that the test observes.
#[derive(Debug, Default)]
struct Seen {
    sent_bytes: AtomicU64,
    lost_bytes: AtomicU64,
    woken_at: Mutex<Vec<Time>>,
}

/// Similar to PCC (Dong et al., NSDI 2018, section 3): no window; a rate for
/// each monitor interval, twice the last one until an interval has losses; then
/// half of that permanently.
#[derive(Clone, Debug)]
struct Doubling {
    rate_bps: u64,
    begun: Time,
    /// Bytes sent and lost in the interval.
    sent: u64,
    lost: u64,
    intervals: u32,
    next: Time,
    seen: Arc<Seen>,
}

impl Doubling {
    fn new(seen: Arc<Seen>) -> Doubling {
        let (begun, next) = (Time::ZERO, Time::MAX);
        Doubling { rate_bps: FIRST_BPS, begun, sent: 0, lost: 0, intervals: 0, next, seen }
    }

    fn begin(&mut self, now: Time) {
        (self.begun, self.next, self.sent, self.lost) = (now, now + INTERVAL, 0, 0);
        self.intervals += 1;
    }
}

impl Controller for Doubling {
    fn on_ack(&mut self, _: &Sample, _: &Connection) -> Decision {
        self.decision()
    }
    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        if event == Event::Established {
            self.begin(connection.now);
        }
        self.decision()
    }
    fn on_sent(&mut self, sent: &Transmission, _: &Connection) -> Decision {
        self.sent += sent.bytes;
        self.seen.sent_bytes.fetch_add(sent.bytes, Ordering::Relaxed);
        self.decision()
    }
    fn on_loss(&mut self, loss: &Loss, _: &Connection) -> Decision {
        self.seen.lost_bytes.fetch_add(loss.bytes, Ordering::Relaxed);
        if loss.sent_at >= self.begun {
            self.lost += loss.bytes;
        }
        self.decision()
    }
    fn wake_at(&self) -> Time {
        self.next
    }
    fn on_wake(&mut self, connection: &Connection) -> Decision {
        self.seen.woken_at.lock().unwrap().push(connection.now);
        if self.lost * 20 > self.sent {
            self.rate_bps /= 2;
            self.next = Time::MAX;
        } else {
            self.rate_bps *= 2;
            self.begin(connection.now);
        }
        self.decision()
    }
    fn decision(&self) -> Decision {
        Decision {
            window: Decision::NO_WINDOW,
            pacing_rate: Some(Rate::from_bits_per_second(self.rate_bps)),
            send_quantum: 1448,
            ..Decision::default()
        }
    }
    fn state(&self) -> State {
        let phase = intern_phase(&format!("interval_{}", self.intervals)).unwrap();
        State { phase, ..State::default() }
    }
    fn needs(&self) -> Needs {
        Needs { pacing: true, losses: true, sends: true, wakes: true, ..Needs::default() }
    }
}

/// Fails at a given time.
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

/// A constant window, with no state to show.
#[derive(Clone, Debug)]
struct Silent;

impl Controller for Silent {
    fn on_ack(&mut self, _: &Sample, _: &Connection) -> Decision {
        self.decision()
    }
    fn on_event(&mut self, _: Event, _: &Connection) -> Decision {
        self.decision()
    }
    fn decision(&self) -> Decision {
        Decision { window: 14_480, send_quantum: 1448, ..Decision::default() }
    }
    fn state(&self) -> State {
        State::default()
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
}

/// Sends everything on the second path.
#[derive(Debug)]
struct Second;

impl Scheduler for Second {
    fn schedule(&mut self, view: &View<'_>) -> knee_multipath::sched::Decision {
        match view.paths[1].ready && view.has_new() {
            true => knee_multipath::sched::Decision::Send(1, Place::Head),
            false => knee_multipath::sched::Decision::Wait,
        }
    }
}

fn run(flow: &str, algorithms: &Algorithms) -> Result<Records, SimulationError> {
    let way = |name: &str| link_and_path(name, "10 Mbit/s", "20 ms", "buffer = \"1 BDP\"");
    let network = ["duration = \"10 s\"\nsample_interval = \"50 ms\"\n", &way("p"), &way("q")];
    let network = network.concat();
    let text = format!("{network}[[flow]]\nname = \"f\"\n{flow}\n");
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let scenario = parse_with(&text, &source, &[], algorithms)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    knee_sim::run_to(&scenario, algorithms, &Control::default(), &mut (), None)
}

fn with_doubling() -> (Algorithms, Arc<Seen>) {
    let mut algorithms = Algorithms::default();
    let seen = Arc::<Seen>::default();
    let given = seen.clone();
    let make = move |_: &_, _| Ok(Box::new(Doubling::new(given.clone())) as Box<dyn Controller>);
    algorithms.controllers.register("doubling", make).unwrap();
    (algorithms, seen)
}

/// 1, 2, 4, 8 Mbit/s fit into 10, 16 do not: from the end of the fifth interval
/// the rate is 8, of payload, whatever the window would have been.
#[test]
fn a_controller_without_a_window_finds_its_rate_by_monitor_intervals() {
    let (algorithms, seen) = with_doubling();
    let records = run("path = \"p\"\ncc = \"doubling\"", &algorithms).unwrap();
    let at = |seconds: u64| {
        let row = records.samples.iter().find(|row| row.time_ns == seconds * 1_000_000_000);
        row.unwrap().delivered_bytes
    };
    let mbit = (at(9) - at(4)) as f64 * 8.0 / 5e6;
    assert!((mbit / 8.0 - 1.0).abs() < 0.005, "{mbit} Mbit/s");
    // The handshake takes 40 ms plus the transmission time of two small packets.
    let woken = seen.woken_at.lock().unwrap();
    assert_eq!(woken.len(), 5, "{woken:?}");
    assert!((40.0..41.0).contains(&(woken[0] - INTERVAL).as_millis_f64()), "{woken:?}");
    assert!(woken.windows(2).all(|pair| pair[1] - pair[0] == INTERVAL), "{woken:?}");
    let last = records.samples.last().unwrap();
    assert_eq!(seen.sent_bytes.load(Ordering::Relaxed), last.sent_bytes);
    assert_eq!(seen.lost_bytes.load(Ordering::Relaxed), last.lost_bytes);
    assert!(last.lost_bytes > 0);
    assert_eq!((last.phase, last.window_bytes), ("interval_5", 0));
}

/// The transport's own data is recorded whatever the controller shows: ten packets
/// in flight over 40 ms never queue for longer than their transmission time.
#[test]
fn a_controller_without_a_phase_has_rtts() {
    let mut algorithms = Algorithms::default();
    let make = |_: &_, _| Ok(Box::new(Silent) as Box<dyn Controller>);
    algorithms.controllers.register("silent", make).unwrap();
    for way in ["path = \"p\"", "paths = [\"p\", \"q\"]"] {
        let records = run(&format!("{way}\ncc = \"silent\""), &algorithms).unwrap();
        let begun: Vec<_> =
            records.samples.iter().filter(|row| row.time_ns >= 100_000_000).collect();
        assert!(begun.len() > 190);
        for row in begun {
            assert!((40_000_000..54_000_000).contains(&row.rtt_ns), "{row:?}");
            assert_eq!(row.phase, "unnamed");
        }
    }
}

/// A subflow's controller is notified and woken as well.
#[test]
fn each_path_has_its_own() {
    let (algorithms, seen) = with_doubling();
    // A path's share of a shared window is what the other leaves, independently
    // of its controller.
    let flow = "paths = [\"p\", \"q\"]\ncc = \"doubling\"\nreceive_window = \"unlimited\"";
    let records = run(flow, &algorithms).unwrap();
    for path in 0..2 {
        let of = |row: &knee_record::FlowSample| usize::from(row.path) == path;
        let rows: Vec<_> = records.path_samples.iter().filter(of).collect();
        let at = |seconds: u64| {
            rows.iter().find(|row| row.time_ns == seconds * 1_000_000_000).unwrap().delivered_bytes
        };
        let mbit = (at(9) - at(4)) as f64 * 8.0 / 5e6;
        assert!((mbit / 8.0 - 1.0).abs() < 0.005, "path {path}: {mbit} Mbit/s");
    }
    assert_eq!(seen.woken_at.lock().unwrap().len(), 10);
}

#[test]
fn a_name_is_known_where_it_is_registered() {
    let way = |name: &str| link_and_path(name, "10 Mbit/s", "20 ms", "buffer = \"1 BDP\"");
    let network = ["duration = \"10 s\"\nsample_interval = \"50 ms\"\n", &way("p"), &way("q")];
    let network = network.concat();
    let text = format!("{network}[[flow]]\npath = \"p\"\ncc = \"doubling\"\n");
    let source = Source { name: "test.toml", loader: &Embedded(&[]) };
    let errors = parse(&text, &source, &[]).unwrap_err();
    assert!(errors.to_string().contains("there is no controller \"doubling\""), "{errors}");

    let (mut algorithms, _) = with_doubling();
    let again = |_: &_, _| Err("never asked".to_owned());
    let refused = algorithms.controllers.register("doubling", again).unwrap_err();
    assert_eq!(refused.problem, "there is a controller \"doubling\" already");
    let refused = algorithms.controllers.register("bbr-low-delay", again).unwrap_err();
    assert_eq!(refused.problem, "there is a controller \"bbr-low-delay\" already");
}

#[test]
fn a_failure_ends_the_run_with_its_text_and_place() {
    let mut algorithms = Algorithms::default();
    let make = |_: &_, _| {
        Ok(Box::new(Failing { at: Time::from_secs(2), failed: false }) as Box<dyn Controller>)
    };
    algorithms.controllers.register("script", make).unwrap();
    for way in ["path = \"p\"", "paths = [\"p\", \"q\"]"] {
        let error = run(&format!("{way}\ncc = \"script\""), &algorithms).unwrap_err();
        let SimulationError::ControllerFailed { controller, flow, at, reason } = &error else {
            panic!("{error}");
        };
        assert_eq!((controller.as_str(), flow.as_str()), ("script", "f"));
        assert!((2.0..2.1).contains(&at.as_secs_f64()), "{at}");
        assert_eq!(reason, "ZeroDivisionError in line 7");
    }
}

#[test]
fn a_factory_that_refuses_ends_the_run() {
    let mut algorithms = Algorithms::default();
    let refuse = |_: &_, _| Err("the module is not installed".to_owned());
    algorithms.controllers.register("script", refuse).unwrap();
    let error = run("path = \"p\"\ncc = \"script\"", &algorithms).unwrap_err();
    assert!(error.to_string().contains("the module is not installed"), "{error}");
}

#[test]
fn a_registered_scheduler_chooses_the_paths() {
    let mut algorithms = Algorithms::default();
    let make = |_: &_, ()| Ok(Box::new(Second) as Box<dyn Scheduler>);
    algorithms.schedulers.register("second", make).unwrap();
    let flow = "paths = [\"p\", \"q\"]\ncc = \"cubic\"\nscheduler = \"second\"\n\
        reinjection = false";
    let records = run(flow, &algorithms).unwrap();
    let delivered: Vec<u64> = records.paths.iter().map(|path| path.delivered_bytes).collect();
    assert_eq!(delivered[0], 0);
    let mbit = delivered[1] as f64 * 8.0 / 10e6;
    assert!((8.5..9.6).contains(&mbit), "{mbit} Mbit/s of 10");
}
