//! The receive window shared by all paths, announced at once when it opens.

use knee_cc::{Init, Selection};
use knee_multipath::sched::PathSet;
use knee_transport::multipath::{
    DataAck, Mapping, MultipathArrival, MultipathReceiver, MultipathSender, MultipathTransmit,
};
use knee_transport::{Ack, AckDetails, AckRequest, Config, ReceiveWindow, Segment, SegmentKind};
use knee_units::{Ecn, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const MSS: u64 = 1000;
/// Segments that the window holds.
const WINDOW: u64 = 10;

fn config() -> Config {
    let receive_window = ReceiveWindow::Fixed(WINDOW * MSS);
    Config { mss: MSS as u32, receive_window, quick_acks: 0, ..Config::default() }
}

/// Three subflows, of which the last carries nothing. Segment n of a subflow
/// holds the n-th packet given to it.
struct Ends {
    receiver: MultipathReceiver,
    given: [Vec<Mapping>; 3],
    now: Time,
}

impl Ends {
    fn new() -> Ends {
        let mut receiver = MultipathReceiver::new(&config());
        for path in 0..3 {
            receiver.on_path_up(path);
        }
        let mut ends = Ends { receiver, given: Default::default(), now: Time::ZERO };
        for path in 0..3 {
            let arrival = ends.arrives(path, SegmentKind::Syn, 0);
            assert!(arrival.ack_now);
            ends.acknowledge(path);
        }
        ends
    }

    fn arrives(&mut self, path: usize, kind: SegmentKind, number: u32) -> MultipathArrival {
        let syn = kind == SegmentKind::Syn;
        let segment = Segment {
            kind,
            number,
            len: if syn { 0 } else { MSS as u16 },
            timestamp: 0,
            retransmission: false,
            window_reduced: false,
            push: false,
            ack_request: AckRequest::NONE,
        };
        let given = &self.given[path];
        let mapping = |number: u32| given.get(number as usize);
        let rtt = || Time::from_millis(10);
        self.receiver.on_segment(self.now, path, &segment, Ecn::NotCapable, rtt, mapping)
    }

    /// A packet of the connection arrives on a path.
    fn packet(&mut self, path: usize, packet: u64) -> MultipathArrival {
        let segment = self.given[path].len() as u32;
        let (offset, len) = (packet * MSS, MSS as u16);
        self.given[path].push(Mapping { chunk: packet, offset, segment, count: 1, len });
        self.arrives(path, SegmentKind::Data, segment)
    }

    fn acknowledge(&mut self, path: usize) -> DataAck {
        self.receiver.make_ack(path, &mut AckDetails::default()).unwrap();
        self.receiver.data_ack()
    }
}

/// Nine of ten packets wait for the first, which arrives on the other path: the
/// window grows from one packet to ten. A delayed ACK would keep the sender
/// waiting for 40 ms.
#[test]
fn a_window_that_opens_is_told_at_once_on_all_paths_in_use() {
    let mut ends = Ends::new();
    for packet in 1..WINDOW {
        let arrival = ends.packet(0, packet);
        assert_eq!(arrival.window_updates, PathSet::default());
        if arrival.ack_now {
            assert_eq!(ends.acknowledge(0), DataAck { next: 0, window_end: WINDOW * MSS });
        }
    }
    let filled = ends.packet(1, 0);
    assert_eq!(filled.delivered_bytes, WINDOW * MSS);
    assert!(filled.ack_now, "not after 40 ms");
    assert_eq!(filled.window_updates, PathSet(1), "the third path carries nothing");
    for path in [1, 0] {
        let told = ends.acknowledge(path);
        assert_eq!(told, DataAck { next: WINDOW * MSS, window_end: 2 * WINDOW * MSS });
    }
    assert_eq!(ends.receiver.timer(0), Time::MAX, "nothing is left to be told");
}

/// Data in order opens no more than the last ACK left open: every second
/// segment is acknowledged, on its own subflow.
#[test]
fn data_in_order_is_acknowledged_as_ever() {
    let mut ends = Ends::new();
    for packet in 0..40 {
        let arrival = ends.packet(0, packet);
        assert_eq!((arrival.ack_now, arrival.window_updates), (packet % 2 == 1, PathSet(0)));
        if arrival.ack_now {
            ends.acknowledge(0);
        }
    }
}

/// RFC 5681, section 2: an ACK that changes the window is not a duplicate. A
/// probe (RFC 8985, section 7.4.2) that repaired a loss must not count as
/// unnecessary because of one, and no controller is notified of it.
#[test]
fn a_window_update_is_no_duplicate_acknowledgement() {
    let settle = |updates: bool| {
        let scheduler =
            knee_multipath::sched::build(&knee_multipath::sched::Selection::named("minrtt"))
                .unwrap();
        let mut sender = MultipathSender::new(&config(), 1, false, scheduler);
        let init = Init {
            mss: MSS as u32,
            mtu: 1500,
            initial_window: 10 * MSS,
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        sender.on_path_up(0, false, knee_cc::build(&Selection::named("reno"), init).unwrap());
        let mut now = Time::ZERO;
        let drain = |sender: &mut MultipathSender, now: Time| {
            let mut sent = 0;
            while let MultipathTransmit::Segment(..) = sender.poll_transmit(now) {
                sent += 1;
            }
            sent
        };
        let ack = |sender: &mut MultipathSender, now: Time, number: u32, window_end: u64| {
            let ack = Ack { syn: number == 0, number, ..Ack::default() };
            let next = u64::from(number) * MSS;
            sender.on_ack(now, 0, &ack, None, DataAck { next, window_end });
        };
        assert_eq!(drain(&mut sender, now), 1);
        now += Time::from_millis(50);
        ack(&mut sender, now, 0, 10 * MSS);
        sender.write(2 * MSS);
        assert_eq!(drain(&mut sender, now), 2);
        // The last of two is repeated by a probe; then the probe's ACK arrives.
        now += Time::from_millis(50);
        ack(&mut sender, now, 1, 11 * MSS);
        now = sender.subflow_timer(0);
        sender.on_subflow_timer(now, 0);
        assert_eq!(drain(&mut sender, now), 1, "a probe");
        now += Time::from_millis(50);
        ack(&mut sender, now, 2, 12 * MSS);
        if updates {
            ack(&mut sender, now, 2, 30 * MSS);
        }
        sender.write(MSS);
        drain(&mut sender, now);
        now += Time::from_millis(50);
        ack(&mut sender, now, 3, 40 * MSS);
        sender.subflow(0).unwrap().window()
    };
    assert_eq!(settle(true), settle(false));
}
