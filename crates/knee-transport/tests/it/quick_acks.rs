//! Which segments are acknowledged at once, compared with a capture of Linux
//! 6.18: a bulk flow in slow start over 7 Mbit/s and 33 ms, one of five that
//! began together. Segments arrived 1.714 ms apart, in rounds of 10, 20 and 40.

use knee_transport::{Ack, AckDetails, AckRequest, Config, Receiver, Segment, SegmentKind};
use knee_units::{Ecn, Time};

/// Time between two segments, nanoseconds: 1500 bytes at 7 Mbit/s.
const SPACING_NS: u64 = 1_714_286;

/// A receiver, and for each ACK the segments that it covers.
struct Trial {
    receiver: Receiver,
    next: u32,
    acknowledged: u32,
    covered: Vec<u32>,
}

impl Trial {
    /// Creates a receiver whose handshake is done at `at`.
    fn begin(config: &Config) -> Trial {
        let receiver = Receiver::new(config);
        let mut trial = Trial { receiver, next: 0, acknowledged: 0, covered: Vec::new() };
        let syn = Segment { kind: SegmentKind::Syn, len: 0, ..segment(0, Time::ZERO) };
        trial.receiver.on_segment(one_way(), &syn, Ecn::NotCapable);
        trial.acknowledge();
        trial.covered.clear();
        trial
    }

    fn acknowledge(&mut self) {
        let (Ack { number, .. }, _) = self.receiver.make_ack(&mut AckDetails::default());
        self.covered.push(number - self.acknowledged);
        self.acknowledged = number;
    }

    /// Delivers segments one by one that were sent in pairs from `sent` on.
    fn round(&mut self, sent: Time, arrives: Time, segments: u32) -> Vec<u32> {
        self.covered.clear();
        for position in 0..segments {
            let spacing = Time::from_nanos(u64::from(position) * SPACING_NS);
            let due = self.receiver.timer();
            if due <= arrives + spacing {
                self.acknowledge();
            }
            let push = position % 2 == 1;
            let segment = Segment { push, ..segment(self.next, sent + spacing) };
            self.next += 1;
            if self.receiver.on_segment(arrives + spacing, &segment, Ecn::NotCapable).ack_now {
                self.acknowledge();
            }
        }
        self.covered.clone()
    }
}

fn one_way() -> Time {
    Time::from_micros(16_500)
}

fn segment(number: u32, sent: Time) -> Segment {
    Segment {
        kind: SegmentKind::Data,
        number,
        len: 1448,
        timestamp: sent.as_micros() as u32,
        retransmission: false,
        window_reduced: false,
        push: false,
        ack_request: AckRequest::NONE,
    }
}

/// Returns how many at the start cover one segment, and whether all others cover two.
fn ones_then_twos(covered: &[u32]) -> (usize, bool) {
    let ones = covered.iter().take_while(|segments| **segments == 1).count();
    (ones, covered[ones..].iter().all(|segments| *segments == 2))
}

/// 22 one by one, the rest in pairs; in the next round a pair, 24 one by one,
/// then pairs; in the round after that at least 54 one by one.
#[test]
fn slow_start_is_acknowledged_as_in_the_capture() {
    let ms = Time::from_millis;
    let mut trial = Trial::begin(&Config::default());
    let mut first = trial.round(ms(33), ms(50), 10);
    first.extend(trial.round(ms(66), ms(124), 20));
    assert_eq!(ones_then_twos(&first), (22, true), "{first:?}");
    let second = trial.round(ms(150), ms(297), 40);
    let (ones, then_twos) = ones_then_twos(&second[1..]);
    assert!(second[0] == 2 && then_twos, "{second:?}");
    // In the capture 19 segments were read in the RTT before; here it is 20.
    assert!((24..=30).contains(&ones), "{second:?}");
    let third = trial.round(ms(330), ms(640), 80);
    assert!(ones_then_twos(&third[1..]).0 >= 54, "{third:?}");
}

/// After a silence longer than the timeout the first 16 again, even if the
/// window cannot grow.
#[test]
fn a_silence_asks_for_quick_acks_again() {
    use knee_transport::ReceiveWindow;
    let receive_window = ReceiveWindow::Fixed(65_535);
    let mut trial = Trial::begin(&Config { receive_window, ..Config::default() });
    let ms = Time::from_millis;
    assert_eq!(ones_then_twos(&trial.round(ms(33), ms(50), 40)), (16, true));
    assert_eq!(ones_then_twos(&trial.round(ms(200), ms(220), 40)), (0, true));
    assert_eq!(ones_then_twos(&trial.round(ms(900), ms(920), 40)), (16, true));
}

/// With quick ACKs disabled, growth of the window causes none.
#[test]
fn no_quick_acks_are_none() {
    let mut trial = Trial::begin(&Config { quick_acks: 0, ..Config::default() });
    let ms = Time::from_millis;
    assert_eq!(ones_then_twos(&trial.round(ms(33), ms(50), 40)), (0, true));
}
