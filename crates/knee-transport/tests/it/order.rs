//! Order within one instant, and more gaps than SACK can report.

use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, State};
use knee_transport::{
    Ack, AckDetails, AckRequest, Config, Receiver, Segment, SegmentKind, Sender, Transmit,
};
use knee_units::{Ecn, Time};

const SEGMENT: u64 = 1448;

/// A window that never changes.
#[derive(Clone, Debug)]
struct Fixed(Decision);

impl Fixed {
    fn segments(count: u64) -> Box<Fixed> {
        Box::new(Fixed(Decision {
            window: count * SEGMENT,
            send_quantum: SEGMENT,
            ..Decision::default()
        }))
    }
}

impl Controller for Fixed {
    fn on_ack(&mut self, _: &Sample, _: &Connection) -> Decision {
        self.0
    }
    fn on_event(&mut self, _: Event, _: &Connection) -> Decision {
        self.0
    }
    fn decision(&self) -> Decision {
        self.0
    }
    fn state(&self) -> State {
        State::default()
    }
    fn needs(&self) -> Needs {
        Needs::default()
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

fn ack(number: u32, sack: &[(u32, u32)]) -> (Ack, AckDetails) {
    let mut details = AckDetails { sack_count: sack.len() as u8, ..AckDetails::default() };
    details.sack[..sack.len()].copy_from_slice(sack);
    (Ack { number, timestamp_echo: 100_000, ..Ack::default() }, details)
}

/// A sender with segments 0 to 19 in flight since 100 ms.
fn established() -> Sender {
    let mut sender = Sender::new(&Config::default(), Fixed::segments(20));
    sender.write(u64::MAX);
    assert_eq!(sent(&mut sender, Time::ZERO), [0], "the SYN");
    sender.on_ack(ms(100), &Ack { syn: true, ..Ack::default() }, None);
    assert_eq!(sent(&mut sender, ms(100)), (0..20).collect::<Vec<u32>>());
    sender
}

/// New data is sent, then a retransmission at the same instant. The arrival of
/// the new data says nothing about the retransmission, even though its sequence
/// number is lower: it was sent later.
#[test]
fn data_sent_before_a_retransmission_does_not_make_it_lost() {
    let mut sender = established();
    sender.on_ack(ms(200), &ack(1, &[]).0, None);
    assert_eq!(sent(&mut sender, ms(200)), [20]);
    let (acknowledgement, details) = ack(1, &[(2, 5)]);
    sender.on_ack(ms(200), &acknowledgement, Some(&details));
    let leaving = sent(&mut sender, ms(200));
    assert_eq!(leaving.first(), Some(&1), "the lost segment goes first");

    let (acknowledgement, details) = ack(1, &[(2, 21)]);
    sender.on_ack(ms(300), &acknowledgement, Some(&details));
    assert!(!sent(&mut sender, ms(300)).contains(&1), "it is still under way");

    // Data sent after it does: RFC 8985, section 6.2, step 5.
    let after = *leaving.last().expect("something left");
    assert!(after > 20);
    let (acknowledgement, details) = ack(1, &[(2, after + 1)]);
    sender.on_ack(ms(301), &acknowledgement, Some(&details));
    assert!(sent(&mut sender, ms(301)).contains(&1), "overtaken a round trip ago: lost again");
}

/// A burst ends at the controller's quantum or at the largest burst, whichever
/// is smaller; then pacing delays the next one.
#[test]
fn the_largest_burst_bounds_the_quantum() {
    for (max_burst, expected) in [(65_536, 8), (3 * SEGMENT as u32, 3), (1, 1)] {
        let mut controller = Fixed::segments(100);
        controller.0.send_quantum = 8 * SEGMENT;
        controller.0.pacing_rate = Some(knee_units::Rate::from_bits_per_second(1_000_000));
        let config = Config { max_burst, pacing: knee_transport::Pacing::On, ..Config::default() };
        let mut sender = Sender::new(&config, controller);
        sender.write(u64::MAX);
        sent(&mut sender, Time::ZERO);
        sender.on_ack(ms(100), &Ack { syn: true, ..Ack::default() }, None);
        // The first ten segments are not paced; one burst may begin after them.
        while sender.counters().sent_segments < 10 {
            sent(&mut sender, ms(100));
        }
        let mut now = ms(100);
        while let Transmit::At(next) = sender.poll_transmit(now) {
            now = next;
        }
        // The poll that ended the wait took the first segment of the burst.
        assert_eq!(sent(&mut sender, now).len() + 1, expected, "{max_burst} bytes");
    }
}

fn segment(number: u32) -> Segment {
    Segment {
        kind: SegmentKind::Data,
        number,
        len: SEGMENT as u16,
        timestamp: 0,
        retransmission: false,
        window_reduced: false,
        push: false,
        ack_request: AckRequest::NONE,
    }
}

/// Five gaps, filled in ascending order; the receiver remembers four ranges.
/// The fifth is still delivered once the data before it has arrived.
#[test]
fn a_range_too_many_for_sack_is_delivered_all_the_same() {
    let mut receiver = Receiver::new(&Config::default());
    let order = [0, 11, 9, 7, 5, 3, 1, 2, 4, 6, 8, 10];
    let delivered: u32 = order
        .iter()
        .map(|number| {
            receiver.on_segment(ms(1), &segment(*number), Ecn::NotCapable).delivered_segments
        })
        .sum();
    assert_eq!(delivered, 12);
    assert_eq!(receiver.next(), 12);
    assert_eq!(receiver.delivered_bytes(), 12 * SEGMENT);
}
