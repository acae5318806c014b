//! ACK timing under QUIC's rules: RFC 9000, section 13.2, and the examples of
//! draft-ietf-quic-ack-frequency-10, section 6.2.1.

use knee_transport::{
    Ack, AckDetails, AckFrequency, AckRequest, Acks, Config, Receiver, Segment, SegmentKind,
};
use knee_units::{Ecn, Time};

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn segment(number: u32) -> Segment {
    Segment {
        kind: SegmentKind::Data,
        number,
        len: 1448,
        timestamp: 0,
        retransmission: false,
        window_reduced: false,
        push: false,
        ack_request: AckRequest::NONE,
    }
}

fn quic() -> Config {
    let acks = Acks::Quic;
    Config {
        acks,
        ack_delay: acks.delay(),
        quick_acks: acks.quick(),
        ecn: true,
        ..Config::default()
    }
}

struct Trial {
    receiver: Receiver,
    /// When ACKs were sent, and the next segment expected.
    acks: Vec<(Time, u32)>,
}

impl Trial {
    fn new(config: &Config) -> Trial {
        Trial { receiver: Receiver::new(config), acks: Vec::new() }
    }

    /// Whether an ACK is sent at once; delayed ones due earlier are sent first.
    fn arrives(&mut self, at: Time, segment: &Segment, ecn: Ecn) -> bool {
        if self.receiver.timer() <= at {
            self.acknowledge(self.receiver.timer());
        }
        let now = self.receiver.on_segment(at, segment, ecn).ack_now;
        if now {
            self.acknowledge(at);
        }
        now
    }

    fn acknowledge(&mut self, at: Time) {
        let (Ack { number, .. }, _) = self.receiver.make_ack(&mut AckDetails::default());
        self.acks.push((at, number));
    }

    /// Returns those of the segments, arriving a millisecond apart, that are
    /// acknowledged at once.
    fn acknowledged(&mut self, numbers: &[u32]) -> Vec<u32> {
        let at = |number: u32| ms(u64::from(number));
        let numbers = numbers.iter().copied();
        numbers.filter(|n| self.arrives(at(*n), &segment(*n), Ecn::Ect0)).collect()
    }
}

#[test]
fn one_ack_for_every_nth() {
    for every in [1, 2, 10, 40] {
        let config = Config { ack_every: every, ack_delay: ms(100), ..quic() };
        let numbers: Vec<u32> = (0..200).collect();
        let acked = Trial::new(&config).acknowledged(&numbers);
        let expected = (1..=200 / every).map(|n| n * every - 1);
        assert_eq!(acked, expected.collect::<Vec<_>>(), "every {every}");
    }
}

/// 30 kB are 20.7 segments of 1448 bytes.
#[test]
fn batches_in_bytes() {
    let config = Config { ack_every: 1000, ack_bytes: Some(30_000), ack_delay: ms(100), ..quic() };
    let numbers: Vec<u32> = (0..100).collect();
    assert_eq!(Trial::new(&config).acknowledged(&numbers), [20, 41, 62, 83]);
}

/// The first unacknowledged segment is acknowledged after 5 ms, with all up to then.
#[test]
fn batches_in_time() {
    let config = Config { ack_every: 1000, ack_delay: ms(5), ..quic() };
    let mut trial = Trial::new(&config);
    assert!(trial.acknowledged(&(0..18).collect::<Vec<_>>()).is_empty());
    assert_eq!(trial.acks, [(ms(5), 5), (ms(10), 10), (ms(15), 15)]);
}

/// RFC 9000, section 13.2.1: out-of-order packets, and those that fill the gap,
/// cause an immediate ACK.
#[test]
fn a_gap_is_told_at_once() {
    let config = Config { ack_every: 10, ..quic() };
    let acked = Trial::new(&config).acknowledged(&[0, 1, 3, 4, 2, 5, 6]);
    assert_eq!(acked, [3, 4, 2]);
}

/// TCP acknowledges the end of a burst; QUIC has no PSH.
#[test]
fn a_push_means_nothing_to_quic() {
    let pushed = Segment { push: true, ..segment(0) };
    let tcp = Config { quick_acks: 0, ack_bytes: Some(100_000), ..Config::default() };
    assert!(Trial::new(&tcp).arrives(ms(0), &pushed, Ecn::NotCapable));
    assert!(!Trial::new(&quic()).arrives(ms(0), &pushed, Ecn::NotCapable));
}

/// RFC 9000, section 13.2.1: a mark is reported at once; the draft, section
/// 6.3: only if the previous packet was not marked.
#[test]
fn a_mark_is_told_at_once() {
    let mut trial = Trial::new(&Config { ack_every: 100, ..quic() });
    let marks = [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ce];
    let told = marks
        .iter()
        .enumerate()
        .map(|(n, ecn)| trial.arrives(ms(n as u64), &segment(n as u32), *ecn));
    assert_eq!(told.collect::<Vec<_>>(), [false, false, true, false, false]);
}

fn with_threshold(reordering: u32) -> Config {
    let ack_frequency = Some(AckFrequency { per_round: 1, min_delay: ms(1), reordering });
    Config { ack_every: 1000, ack_delay: ms(1000), ack_frequency, ..quic() }
}

/// The draft's two tables: arriving packets, and those acknowledged at once.
#[test]
fn the_drafts_examples_of_the_reordering_threshold() {
    let mut three = Trial::new(&with_threshold(3));
    assert_eq!(three.acknowledged(&[0, 1, 3, 4, 5, 8, 9, 10]), [5, 9, 10]);
    let mut five = Trial::new(&with_threshold(5));
    assert_eq!(five.acknowledged(&[0, 1, 3, 5, 6, 7, 8, 9]), [7, 9]);
}

/// Section 6.2: a threshold of 0 never causes an ACK, 1 causes one for each packet out of order.
#[test]
fn a_threshold_of_zero_ignores_order() {
    let came = [0, 2, 4, 6, 1, 8, 3];
    assert!(Trial::new(&with_threshold(0)).acknowledged(&came).is_empty());
    assert_eq!(Trial::new(&with_threshold(1)).acknowledged(&came), [2, 4, 6, 1, 8, 3]);
}

/// The sender's request applies from the segment that carries it.
#[test]
fn a_request_changes_count_and_delay() {
    let frequency = AckFrequency { per_round: 4, min_delay: ms(1), reordering: 1 };
    let mut trial = Trial::new(&Config { ack_every: 2, ..with_threshold(1) });
    // 48 segments in 64 ms: one ACK for 12, or after at most 16 ms.
    let ack_request = AckRequest::new(&frequency, 48, ms(64));
    let mut acked = Vec::new();
    for number in 0..30 {
        let asks = number >= 4;
        let request = if asks { ack_request } else { AckRequest::NONE };
        let segment = Segment { ack_request: request, ..segment(number) };
        if trial.arrives(ms(u64::from(number)), &segment, Ecn::Ect0) {
            acked.push(number);
        }
    }
    assert_eq!(acked, [1, 3, 15, 27]);
    let waits = trial.receiver.timer() - ms(28);
    assert!(waits <= ms(16) && waits > ms(14), "{waits}");
}
