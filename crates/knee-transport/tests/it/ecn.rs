//! Explicit Congestion Notification from end to end: the codepoint that a
//! controller requests, the classic echo (RFC 3168), and counts by codepoint
//! (draft-ietf-tcpm-accurate-ecn).
use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, State};
use knee_transport::{Ack, AckDetails, Config, EcnBytes, Receiver, Segment, Sender, Transmit};
use knee_units::{Ecn, Time};
use std::sync::{Arc, Mutex};

const SEGMENT: u64 = 1448;

/// Sends with ECT(1) and records reports of marks.
#[derive(Clone, Debug)]
struct Scalable {
    accurate: bool,
    /// CE, ECT(0), ECT(1) in segments, for each sample that has any.
    counts: Arc<Mutex<Vec<(u64, u64, u64)>>>,
    echoes: Arc<Mutex<u32>>,
}

impl Controller for Scalable {
    fn on_ack(&mut self, sample: &Sample, _: &Connection) -> Decision {
        let [ect0, ect1] = sample.newly_ect;
        let counts = (sample.newly_marked / SEGMENT, ect0 / SEGMENT, ect1 / SEGMENT);
        if counts != (0, 0, 0) {
            self.counts.lock().unwrap().push(counts);
        }
        self.decision()
    }
    fn on_event(&mut self, event: Event, _: &Connection) -> Decision {
        *self.echoes.lock().unwrap() += u32::from(event == Event::CongestionEcho);
        self.decision()
    }
    fn decision(&self) -> Decision {
        let (window, send_quantum) = (10 * SEGMENT, SEGMENT);
        Decision { window, send_quantum, ecn: Ecn::Ect1, ..Decision::default() }
    }
    fn state(&self) -> State {
        State::default()
    }
    fn needs(&self) -> Needs {
        Needs { accurate_ecn: self.accurate, ..Needs::default() }
    }
}

/// Sends ten segments, which arrive with these codepoints.
fn ten(accurate: bool, arriving: [Ecn; 10]) -> (Scalable, AckDetails) {
    let controller = Scalable { accurate, counts: Arc::default(), echoes: Arc::default() };
    let config = Config { ecn: true, ..Config::default() };
    let mut sender = Sender::new(&config, Box::new(controller.clone()));
    let mut receiver = Receiver::new(&config);
    let ms = Time::from_millis;
    sender.write(u64::MAX);
    assert!(matches!(sender.poll_transmit(Time::ZERO), Transmit::Segment(_)), "the SYN");
    sender.on_ack(ms(100), &Ack { syn: true, ..Ack::default() }, None);
    let mut leaving: Vec<Segment> = Vec::new();
    while let Transmit::Segment(segment) = sender.poll_transmit(ms(100)) {
        assert_eq!(sender.ecn(), Ecn::Ect1, "what the controller asks for");
        leaving.push(segment);
    }
    let mut last = AckDetails::default();
    for (segment, ecn) in leaving.iter().zip(arriving) {
        if receiver.on_segment(ms(150), segment, ecn).ack_now {
            let mut details = AckDetails::default();
            let (ack, detailed) = receiver.make_ack(&mut details);
            sender.on_ack(ms(200), &ack, detailed.then_some(&details));
            last = if detailed { details } else { last };
        }
    }
    assert_eq!(sender.counters().marked_bytes, u64::from(last.ecn.ce));
    (controller, last)
}

/// The first two and the fourth keep ECT(1), a bleaching hop changes the fifth
/// to ECT(0), and the third and the sixth are marked.
const MIXED: [Ecn; 10] = [
    Ecn::Ect1,
    Ecn::Ect1,
    Ecn::Ce,
    Ecn::Ect1,
    Ecn::Ect0,
    Ecn::Ce,
    Ecn::NotCapable,
    Ecn::Ect1,
    Ecn::Ect1,
    Ecn::Ect1,
];

#[test]
fn counts_by_codepoint_reach_the_controller() {
    let (controller, last) = ten(true, MIXED);
    // Each mark updates the counts.
    assert_eq!(*controller.counts.lock().unwrap(), [(1, 0, 2), (1, 1, 1)]);
    assert_eq!(*controller.echoes.lock().unwrap(), 0);
    let segments = |count: u32| count * SEGMENT as u32;
    assert_eq!(last.ecn, EcnBytes { ect0: segments(1), ect1: segments(3), ce: segments(2) });
}

/// RFC 3168, section 6.1.2: once per window of data.
#[test]
fn the_classic_echo_comes_once_per_window() {
    let (controller, _) = ten(false, MIXED);
    assert_eq!(*controller.echoes.lock().unwrap(), 1);
    let (controller, _) = ten(false, [Ecn::Ect1; 10]);
    assert_eq!(*controller.echoes.lock().unwrap(), 0);
}
