//! Notifications for a controller that requests more than acknowledgements:
//! losses one by one, transmissions, wake-ups. Each number is computed by hand
//! from the transmission times.
use knee_cc::{
    Connection, Controller, Decision, Event, Loss, Needs, RecoveryPeriod, Sample, State,
    Transmission,
};
use knee_transport::{Ack, AckDetails, Config, ReceiveWindow, Sender, TimerKind, Transmit};
use knee_units::{Rate, Time};
use std::sync::{Arc, Mutex};

const SEGMENT: u64 = 1448;

/// Notifications to the controller, with [`Connection::lost`] in segments.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Loss { loss: Loss, lost: u64 },
    Event(Event),
    Sent { at_ms: u64, retransmission: bool, in_flight: u64 },
    Woken { at_ms: u64 },
}

/// Records its notifications; keeps its decision, and halves its rate when woken.
#[derive(Clone, Debug)]
struct Attentive {
    decision: Decision,
    needs: Needs,
    wake_at: Time,
    fails: bool,
    heard: Arc<Mutex<Vec<Heard>>>,
    /// Bytes and segments of each acknowledgement.
    acked: Arc<Mutex<Vec<(u64, u32)>>>,
}

impl Attentive {
    fn new(segments: u64, needs: Needs) -> Attentive {
        let window = segments * SEGMENT;
        let decision = Decision { window, send_quantum: SEGMENT, ..Decision::default() };
        let heard = Arc::default();
        let acked = Arc::default();
        Attentive { decision, needs, wake_at: Time::MAX, fails: false, heard, acked }
    }

    fn note(&self, heard: Heard) -> Decision {
        self.heard.lock().unwrap().push(heard);
        self.decision
    }
}

impl Controller for Attentive {
    fn on_ack(&mut self, sample: &Sample, _: &Connection) -> Decision {
        self.acked.lock().unwrap().push((sample.newly_acked, sample.newly_acked_segments));
        self.fails = self.needs.may_fail;
        self.decision
    }
    fn on_event(&mut self, event: Event, _: &Connection) -> Decision {
        self.note(Heard::Event(event))
    }
    fn on_loss(&mut self, loss: &Loss, connection: &Connection) -> Decision {
        self.note(Heard::Loss { loss: *loss, lost: connection.lost / SEGMENT })
    }
    fn on_sent(&mut self, sent: &Transmission, connection: &Connection) -> Decision {
        assert_eq!(sent.bytes, SEGMENT);
        self.note(Heard::Sent {
            at_ms: connection.now.as_nanos() / 1_000_000,
            retransmission: sent.retransmission,
            in_flight: connection.in_flight / SEGMENT,
        })
    }
    fn wake_at(&self) -> Time {
        self.wake_at
    }
    fn on_wake(&mut self, connection: &Connection) -> Decision {
        let half = |rate: Rate| Rate::from_bits_per_second(rate.as_bits_per_second() / 2);
        self.decision.pacing_rate = self.decision.pacing_rate.map(half);
        self.note(Heard::Woken { at_ms: connection.now.as_nanos() / 1_000_000 })
    }
    fn failure(&self) -> Option<String> {
        self.fails.then(|| "division by zero in line 7".to_owned())
    }
    fn decision(&self) -> Decision {
        self.decision
    }
    fn state(&self) -> State {
        State::default()
    }
    fn needs(&self) -> Needs {
        self.needs
    }
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Returns the numbers of the segments sent now.
fn sent(sender: &mut Sender, now: Time) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Transmit::Segment(segment) = sender.poll_transmit(now) {
        numbers.push(segment.number);
    }
    numbers
}

/// A sender whose connection opened at 100 ms, with an RTT of 100 ms.
fn open(config: &Config, controller: Attentive) -> Sender {
    let mut sender = Sender::new(config, Box::new(controller));
    sender.write(u64::MAX);
    assert_eq!(sent(&mut sender, Time::ZERO), [0], "the SYN");
    sender.on_ack(ms(100), &Ack { syn: true, ..Ack::default() }, None);
    sender
}

fn acknowledge(sender: &mut Sender, now: Time, number: u32, block: (u32, u32)) {
    let mut details = AckDetails { sack_count: 1, ..AckDetails::default() };
    details.sack[0] = block;
    sender.on_ack(now, &Ack { number, timestamp_echo: 100_000, ..Ack::default() }, Some(&details));
}

/// Sends segments 0 to 19 at 100 ms; earlier notifications to the controller are discarded.
fn twenty(needs: Needs) -> (Sender, Arc<Mutex<Vec<Heard>>>) {
    let controller = Attentive::new(20, needs);
    let heard = controller.heard.clone();
    let mut sender = open(&Config::default(), controller);
    assert_eq!(sent(&mut sender, ms(100)).len(), 20);
    heard.lock().unwrap().clear();
    (sender, heard)
}

fn losses(heard: &[Heard]) -> Vec<(Loss, u64)> {
    let loss = |heard: &Heard| match heard {
        Heard::Loss { loss, lost } => Some((*loss, *lost)),
        _ => None,
    };
    heard.iter().filter_map(loss).collect()
}

/// Loss of a first transmission at 100 ms, before anything was delivered or lost.
fn first_transmission(number: u64) -> Loss {
    Loss {
        bytes: SEGMENT,
        sent_at: ms(100),
        in_flight_at_send: (number + 1) * SEGMENT,
        ..Loss::default()
    }
}

/// Three segments beyond the first three are acknowledged selectively: the
/// first three are lost (RFC 8985, section 6.2, step 5). Each is reported with
/// the bytes in flight when it was sent, counting the losses before it, and all
/// before recovery begins.
#[test]
fn losses_are_told_one_by_one_before_recovery() {
    let (mut sender, heard) = twenty(Needs { losses: true, ..Needs::default() });
    acknowledge(&mut sender, ms(200), 0, (3, 6));
    let expected = [
        Heard::Loss { loss: first_transmission(0), lost: 1 },
        Heard::Loss { loss: first_transmission(1), lost: 2 },
        Heard::Loss { loss: first_transmission(2), lost: 3 },
        Heard::Event(Event::RecoveryStart),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}

/// One segment is too few: the reordering window of a quarter of the RTT must
/// pass (RFC 8985, section 6.2, step 4). No acknowledgement reports this loss.
#[test]
fn losses_that_the_reordering_timer_finds_are_told() {
    let (mut sender, heard) = twenty(Needs { losses: true, ..Needs::default() });
    acknowledge(&mut sender, ms(200), 0, (2, 3));
    assert_eq!(losses(&heard.lock().unwrap()), []);
    assert_eq!((sender.timer(), sender.timer_kind()), (ms(225), TimerKind::Reordering));
    sender.on_timer(ms(225));
    let expected = [(first_transmission(0), 1), (first_transmission(1), 2)];
    assert_eq!(losses(&heard.lock().unwrap()), expected);
}

/// After the losses of the first test, 0, 1, 2 are retransmitted at 200 ms,
/// with 14 segments in flight, then 20, 21, 22 are sent. No ACK arrives: the
/// timeout declares everything lost that was not selectively acknowledged.
#[test]
fn losses_that_a_timeout_declares_are_told() {
    let (mut sender, heard) = twenty(Needs { losses: true, ..Needs::default() });
    acknowledge(&mut sender, ms(200), 0, (3, 6));
    assert_eq!(sent(&mut sender, ms(200)), [0, 1, 2, 20, 21, 22]);
    heard.lock().unwrap().clear();
    assert_eq!(sender.timer_kind(), TimerKind::Retransmit);
    let due = sender.timer();
    sender.on_timer(due);
    let heard = heard.lock().unwrap();
    let told = losses(&heard);
    assert_eq!(told.len(), 3 + 14 + 3);
    let again = |number: u64| Loss {
        bytes: SEGMENT,
        sent_at: ms(200),
        in_flight_at_send: (14 + number + 1) * SEGMENT,
        delivered_at_send: 3 * SEGMENT,
        lost_at_send: 3 * SEGMENT,
        app_limited: false,
    };
    for number in 0..3 {
        assert_eq!(told[number as usize], (again(number), 3 + number + 1));
    }
    assert_eq!(told[3], (first_transmission(6), 3 + 4));
    assert_eq!(told[19], (again(5), 3 + 20));
    assert_eq!(heard.last(), Some(&Heard::Event(Event::Timeout)));
    assert_eq!(sender.counters().lost_bytes, 23 * SEGMENT);
}

/// A controller without requests gets none of these notifications.
#[test]
fn who_does_not_ask_is_not_told() {
    let (mut sender, heard) = twenty(Needs::default());
    acknowledge(&mut sender, ms(200), 0, (3, 6));
    sent(&mut sender, ms(200));
    assert_eq!(*heard.lock().unwrap(), [Heard::Event(Event::RecoveryStart)]);
}

/// Bytes in flight include the segment just sent.
#[test]
fn each_transmission_is_told() {
    let (mut sender, heard) = twenty(Needs { sends: true, ..Needs::default() });
    acknowledge(&mut sender, ms(200), 0, (3, 6));
    assert_eq!(sent(&mut sender, ms(200)), [0, 1, 2, 20, 21, 22]);
    let sent = |number: u64, retransmission| Heard::Sent {
        at_ms: 200,
        retransmission,
        in_flight: 14 + number,
    };
    let expected: Vec<Heard> = (1..=6).map(|number| sent(number, number <= 3)).collect();
    assert_eq!(heard.lock().unwrap()[1..], expected);
}

/// It is woken once, at the requested time; its decision applies at once; and
/// the wake-up does not affect the transport's own timer.
#[test]
fn a_controller_is_woken() {
    let mut controller =
        Attentive::new(20, Needs { wakes: true, pacing: true, ..Needs::default() });
    controller.wake_at = ms(130);
    controller.decision.pacing_rate = Some(Rate::from_bits_per_second(8_000_000));
    let heard = controller.heard.clone();
    let mut sender = open(&Config::default(), controller);
    sent(&mut sender, ms(100));
    assert_eq!((sender.timer(), sender.timer_kind()), (ms(130), TimerKind::Controller));
    sender.on_timer(ms(130));
    assert_eq!(heard.lock().unwrap().last(), Some(&Heard::Woken { at_ms: 130 }));
    assert_eq!(sender.pacing_rate(), Some(Rate::from_bits_per_second(4_000_000)));
    // It still returns 130 ms, which has passed. The probe timeout follows: two
    // RTTs and 2 ms after the last segment was sent (RFC 8985, section 7.2).
    assert_eq!(sender.timer_kind(), TimerKind::Probe);
    assert!(sender.timer() >= ms(302), "{:?}", sender.timer());
}

/// Without a window, pacing determines when segments are sent, and only the
/// receive window limits how many are outstanding.
#[test]
fn pacing_alone_limits_without_a_window() {
    let mut controller = Attentive::new(0, Needs { pacing: true, ..Needs::default() });
    controller.decision.window = Decision::NO_WINDOW;
    // One segment per millisecond.
    controller.decision.pacing_rate = Some(Rate::from_bits_per_second(SEGMENT * 8 * 1000));
    let receive_window = ReceiveWindow::Fixed(60 * SEGMENT);
    let mut sender = open(&Config { receive_window, ..Config::default() }, controller);
    let mut count = sent(&mut sender, ms(100)).len();
    // The first ten are not paced.
    assert_eq!(count, 11);
    for now in 101..=130 {
        count += sent(&mut sender, ms(now)).len();
    }
    assert_eq!(count, 41);
    for now in 131..=200 {
        count += sent(&mut sender, ms(now)).len();
    }
    assert_eq!(count, 60);
}

/// The caller of the sender learns of it through a timer that is due at once.
#[test]
fn a_failure_is_noticed_at_once() {
    let (mut sender, _) = twenty(Needs { may_fail: true, ..Needs::default() });
    assert_eq!(sender.failure(), None);
    sender.on_ack(ms(200), &Ack { number: 1, timestamp_echo: 100_000, ..Ack::default() }, None);
    assert_eq!((sender.timer(), sender.timer_kind()), (ms(200), TimerKind::Controller));
    sender.on_timer(ms(200));
    assert_eq!(sender.failure(), Some("division by zero in line 7"));
}

/// A copy continues independently from the same state.
#[test]
fn a_copy_of_a_sender_goes_on_alone() {
    let (mut sender, _) = twenty(Needs { losses: true, ..Needs::default() });
    let mut copy = sender.clone();
    acknowledge(&mut sender, ms(200), 0, (3, 6));
    assert_eq!(sent(&mut sender, ms(200)), [0, 1, 2, 20, 21, 22]);
    assert_eq!((copy.counters().lost_bytes, copy.in_flight()), (0, 20 * SEGMENT));
    acknowledge(&mut copy, ms(200), 0, (3, 6));
    assert_eq!(sent(&mut copy, ms(200)), [0, 1, 2, 20, 21, 22]);
}

/// The controller's needs determine how recovery ends, unless the connection is
/// configured otherwise. The second segment 0 arrives while 1 and 2 are missing:
/// QUIC's recovery is over (RFC 9002, section 7.3.2), TCP's is not (RFC 6675).
#[test]
fn recovery_ends_as_the_controller_needs_it() {
    use RecoveryPeriod::{Quic, Tcp};
    for (needed, set, ends) in
        [(Tcp, None, false), (Quic, None, true), (Quic, Some(Tcp), false), (Tcp, Some(Quic), true)]
    {
        let controller = Attentive::new(20, Needs { recovery_period: needed, ..Needs::default() });
        let heard = controller.heard.clone();
        let config = Config { recovery: set, ..Config::default() };
        let mut sender = open(&config, controller);
        sent(&mut sender, ms(100));
        acknowledge(&mut sender, ms(200), 0, (3, 6));
        assert_eq!(sent(&mut sender, ms(200))[..3], [0, 1, 2]);
        acknowledge(&mut sender, ms(300), 1, (3, 6));
        let ended = heard.lock().unwrap().contains(&Heard::Event(Event::RecoveryEnd));
        assert_eq!(ended, ends, "{needed:?} needed, {set:?} set");
    }
}

/// Segments 0 to 3 are full and 4 has ten bytes. Each counts once, with the report that shows
/// first that it arrived (Linux's `acked_sacked`).
#[test]
fn acknowledged_segments_are_counted() {
    let controller = Attentive::new(20, Needs::default());
    let acked = controller.acked.clone();
    let mut sender = Sender::new(&Config::default(), Box::new(controller));
    sender.write(4 * SEGMENT + 10);
    assert_eq!(sent(&mut sender, Time::ZERO), [0], "the SYN");
    sender.on_ack(ms(100), &Ack { syn: true, ..Ack::default() }, None);
    assert_eq!(sent(&mut sender, ms(100)), [0, 1, 2, 3, 4]);
    acknowledge(&mut sender, ms(200), 1, (3, 5));
    acknowledge(&mut sender, ms(201), 1, (3, 5));
    sender.on_ack(ms(202), &Ack { number: 5, ..Ack::default() }, None);
    let counted = acked.lock().unwrap().clone();
    assert_eq!(counted, [(2 * SEGMENT + 10, 3), (0, 0), (2 * SEGMENT, 2)]);
}
