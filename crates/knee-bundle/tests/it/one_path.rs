//! Streams over one path that loses, reorders and duplicates, under a virtual clock: the sending
//! parts at one end, the receiving parts at the other, the wire format between them.

use bytes::Bytes;
use knee_bundle::{
    ACK_DELAY, Arrivals, Class, Fate, Frame, HEADER, Inserted, Outstanding, Piece, Pool, Reader,
    ReceiveStream, Rtt, SendStream, StreamId, Streams,
};
use knee_multipath::Source;
use knee_units::Time;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const DATAGRAM: u16 = 1200;
/// Limit of bytes in flight, in place of a controller.
const FLIGHT: u64 = 48 * 1024;
const CREDIT: u64 = 32 * 1024;

#[derive(Clone, Copy, Debug)]
struct Channel {
    one_way: Time,
    /// Maximum jitter; more than the gap between datagrams reorders them.
    jitter: Time,
    loss_percent: u64,
    duplicate_percent: u64,
}

#[derive(Clone, Copy)]
enum Content {
    Piece(Piece),
    Ping,
}

/// One end sends everything, the other one receives.
struct World {
    now: Time,
    random: ChaCha8Rng,
    channel: Channel,
    /// Datagrams in flight by arrival time and a serial number; the flag marks data.
    under_way: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    count: u64,
    streams: Streams,
    ids: Vec<StreamId>,
    sent: Outstanding<Content>,
    rtt: Rtt,
    repeat: Vec<Piece>,
    fins: BTreeSet<StreamId>,
    arrivals: Arrivals,
    receive: BTreeMap<u64, ReceiveStream>,
    pool: Pool,
    delivered: BTreeMap<u64, Vec<u8>>,
    dropped: BTreeSet<u64>,
    told_lost: BTreeSet<u64>,
    smoothed: Vec<Time>,
}

fn byte(stream: u64, at: usize) -> u8 {
    (at as u64).wrapping_mul(31 + stream).wrapping_add((at / 251) as u64) as u8
}

impl World {
    fn new(seed: u64, channel: Channel, sizes: &[usize]) -> World {
        let mut streams = Streams::default();
        streams.set_datagram(DATAGRAM);
        let (mut ids, mut fins) = (Vec::new(), BTreeSet::new());
        let (mut receive, mut delivered) = (BTreeMap::new(), BTreeMap::new());
        for (number, size) in sizes.iter().enumerate() {
            let class = [Class::Interactive, Class::Normal, Class::Bulk][number % 3];
            let id = StreamId::new(number as u64, class, false);
            let content: Vec<u8> = (0..*size).map(|at| byte(id.value(), at)).collect();
            streams.insert(id, SendStream::new(CREDIT));
            let taken = streams.change(id, |stream| stream.write(&content, u64::MAX));
            assert_eq!(taken, Some(*size));
            if streams.change(id, SendStream::finish) == Some(true) {
                fins.insert(id);
            }
            ids.push(id);
            receive.insert(id.value(), ReceiveStream::new(CREDIT));
            delivered.insert(id.value(), Vec::new());
        }
        World {
            now: Time::ZERO,
            random: ChaCha8Rng::seed_from_u64(seed),
            channel,
            under_way: BTreeMap::new(),
            count: 0,
            streams,
            ids,
            sent: Outstanding::default(),
            rtt: Rtt::default(),
            repeat: Vec::new(),
            fins,
            arrivals: Arrivals::default(),
            receive,
            pool: Pool::default(),
            delivered,
            dropped: BTreeSet::new(),
            told_lost: BTreeSet::new(),
            smoothed: Vec::new(),
        }
    }

    /// Sends a datagram, and returns whether the channel lost it.
    fn transmit(&mut self, is_data: bool, bytes: &[u8]) -> bool {
        let Channel { one_way, jitter, loss_percent, duplicate_percent } = self.channel;
        let lost = self.random.next_u64() % 100 < loss_percent;
        let copies = 1 + u64::from(self.random.next_u64() % 100 < duplicate_percent);
        for _ in 0..if lost { 0 } else { copies } {
            let extra = self.random.next_u64() % (jitter.as_nanos() + 1);
            let at = self.now + one_way + Time::from_nanos(extra);
            self.under_way.insert((at, self.count), (is_data, bytes.to_vec()));
            self.count += 1;
        }
        lost
    }

    fn send(&mut self, content: Content) {
        let low = self.sent.next() as u16;
        let mut bytes = low.to_be_bytes().to_vec();
        assert_eq!(bytes.len(), HEADER);
        match content {
            Content::Ping => {
                Frame::AckAck { path: 0, below: self.sent.settled() }.write(&mut bytes);
                Frame::Ping.write(&mut bytes);
                for id in &self.fins {
                    let offset = self.streams.get(*id).unwrap().written();
                    let stream = id.value();
                    Frame::Stream { stream, offset, fin: true, bytes: &[] }.write(&mut bytes);
                }
            }
            Content::Piece(piece) => {
                let stream = self.streams.get(piece.stream).unwrap();
                let Some(parts) = stream.bytes(piece.offset, piece.len.into()) else { return };
                let payload: Vec<u8> = parts.flatten().copied().collect();
                let fin = stream.ends_at(piece.offset + u64::from(piece.len));
                let (stream, offset) = (piece.stream.value(), piece.offset);
                Frame::Stream { stream, offset, fin, bytes: &payload }.write_last(&mut bytes);
                assert!(bytes.len() <= usize::from(DATAGRAM), "{}", bytes.len());
            }
        }
        let number = self.sent.push(self.now, bytes.len() as u16, true, content);
        if self.transmit(true, &bytes) {
            self.dropped.insert(number);
        }
    }

    fn send_all(&mut self) {
        // Ends of empty streams go with a PING, and again if it is lost.
        if self.count == 0 || !self.fins.is_empty() && self.sent.in_flight() == 0 {
            self.send(Content::Ping);
        }
        while self.sent.in_flight() + u64::from(DATAGRAM) <= FLIGHT && !self.sent.is_too_far_ahead()
        {
            let piece = self.repeat.pop().or_else(|| self.streams.cut(DATAGRAM).map(|cut| cut.0));
            let Some(piece) = piece else { break };
            let end = piece.offset + u64::from(piece.len);
            self.streams.change(piece.stream, |stream| stream.on_given(end));
            self.send(Content::Piece(piece));
        }
    }

    fn on_data(&mut self, bytes: &[u8]) {
        let low = u16::from_be_bytes([bytes[0], bytes[1]]);
        let Some(number) = self.arrivals.number(low) else { return };
        let mut reader = Reader::new(&bytes[HEADER..]);
        while let Some(frame) = Frame::read(&mut reader).unwrap() {
            match frame {
                Frame::Stream { stream, offset, fin, bytes } => {
                    let receive = self.receive.get_mut(&stream).unwrap();
                    let inserted = receive.insert(self.now, offset, bytes, fin, &mut self.pool);
                    assert!(matches!(inserted, Inserted::Taken(_)), "{inserted:?}");
                    assert!(receive.held() <= CREDIT);
                    while let Some(read) = receive.read(usize::MAX, &mut self.pool) {
                        self.delivered.get_mut(&stream).unwrap().extend_from_slice(&read);
                    }
                    receive.raise_limit(CREDIT);
                }
                Frame::AckAck { below, .. } => self.arrivals.settle(below),
                Frame::Ping => self.arrivals.hurry(self.now),
                other => panic!("{other:?}"),
            }
        }
        self.arrivals.insert(self.now, number, true);
    }

    fn acknowledge(&mut self) {
        let Some(ack) = self.arrivals.ack(self.now, 0) else { return };
        let mut bytes = Vec::new();
        ack.write(&mut bytes);
        for (stream, receive) in &self.receive {
            Frame::MaxStreamData { stream: *stream, round: 0, end: receive.limit() }
                .write(&mut bytes);
        }
        self.transmit(false, &bytes);
    }

    fn tell(&mut self, told: Vec<(u64, Fate, Content)>) {
        for (number, fate, content) in told {
            if fate == Fate::Lost {
                assert!(self.told_lost.insert(number), "{number} was lost twice");
            }
            match (fate, content) {
                (Fate::Lost, Content::Piece(piece)) => self.repeat.push(piece),
                (
                    Fate::Acknowledged | Fate::Late,
                    Content::Piece(Piece { stream, offset, len }),
                ) => {
                    self.streams.change(stream, |send| send.on_delivered(offset, len.into()));
                }
                (Fate::Lost, Content::Ping) => {}
                (_, Content::Ping) => {
                    for id in std::mem::take(&mut self.fins) {
                        self.streams.change(id, SendStream::on_fin_delivered);
                    }
                }
            }
        }
    }

    fn on_answer(&mut self, bytes: &Bytes) {
        let mut reader = Reader::new(bytes);
        while let Some(frame) = Frame::read(&mut reader).unwrap() {
            match frame {
                Frame::Ack { delay, ranges, .. } => {
                    let mut told = Vec::new();
                    let tell = |number, fate, content| told.push((number, fate, content));
                    self.sent.on_ack(self.now, &ranges, &mut self.rtt, delay, tell).unwrap();
                    self.smoothed.push(self.rtt.smoothed);
                    self.tell(told);
                }
                Frame::MaxStreamData { stream, end, .. } => {
                    let id = StreamId::read(stream).unwrap();
                    self.streams.change(id, |send| send.raise_limit(0, end));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn is_done(&self) -> bool {
        self.ids.iter().all(|id| self.streams.get(*id).unwrap().is_done())
    }

    /// Runs until everything is acknowledged, and checks what arrived.
    fn run(mut self, sizes: &[usize]) -> World {
        while !self.is_done() {
            self.send_all();
            let arrival = self.under_way.keys().next().map_or(Time::MAX, |key| key.0);
            let probe_at = self.sent.probe_at(&self.rtt, ACK_DELAY);
            let at = arrival.min(self.arrivals.due()).min(self.sent.loss_at()).min(probe_at);
            assert!(at < Time::from_secs(3600), "it stands still at {:?}", self.now);
            self.now = self.now.max(at);
            while self.under_way.keys().next().is_some_and(|key| key.0 <= self.now) {
                let (_, (is_data, bytes)) = self.under_way.pop_first().unwrap();
                if is_data {
                    self.on_data(&bytes);
                } else {
                    self.on_answer(&bytes.into());
                }
            }
            if self.arrivals.due() <= self.now {
                self.acknowledge();
            }
            let mut told = Vec::new();
            let tell = |number, fate, content| told.push((number, fate, content));
            self.sent.on_loss_timer(self.now, &self.rtt, tell);
            self.tell(told);
            if self.sent.probe_at(&self.rtt, ACK_DELAY) <= self.now {
                self.sent.on_probe();
                self.send(Content::Ping);
            }
        }
        for (id, size) in self.ids.iter().zip(sizes) {
            let delivered = &self.delivered[&id.value()];
            let expected = (0..*size).map(|at| byte(id.value(), at));
            assert!(delivered.iter().copied().eq(expected), "{} of {size}", delivered.len());
            assert!(self.receive[&id.value()].is_done());
        }
        assert_eq!(self.streams.held(), 0);
        self
    }
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..150_000_usize, 1..5)
}

/// A stream with nothing but its end, which needs a frame of its own.
#[test]
fn an_empty_stream_ends() {
    let channel = Channel {
        one_way: Time::from_millis(5),
        jitter: Time::ZERO,
        loss_percent: 30,
        duplicate_percent: 0,
    };
    for seed in 0..20 {
        World::new(seed, channel, &[0, 1]).run(&[0, 1]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Every byte arrives once and in order, and so does the end of each stream.
    #[test]
    fn each_byte_arrives_once_and_in_order(
        seed: u64, one_way in 0..100_000_u64, jitter in 0..50_000_u64,
        loss_percent in 0..40_u64, duplicate_percent in 0..20_u64, sizes in sizes(),
    ) {
        let (one_way, jitter) = (Time::from_micros(one_way), Time::from_micros(jitter));
        let channel = Channel { one_way, jitter, loss_percent, duplicate_percent };
        let world = World::new(seed, channel, &sizes).run(&sizes);
        let again = World::new(seed, channel, &sizes).run(&sizes);
        prop_assert_eq!((world.now, world.count), (again.now, again.count));
    }

    /// Without reordering, exactly the datagrams that the channel lost are declared lost.
    #[test]
    fn only_what_is_lost_counts_as_lost(
        seed: u64, one_way in 100..100_000_u64, loss_percent in 0..25_u64, sizes in sizes(),
    ) {
        let (one_way, jitter) = (Time::from_micros(one_way), Time::ZERO);
        let channel = Channel { one_way, jitter, loss_percent, duplicate_percent: 0 };
        let world = World::new(seed, channel, &sizes).run(&sizes);
        prop_assert!(world.told_lost.is_subset(&world.dropped), "{:?}", world.told_lost);
    }

    /// On a quiet path the RTT is within 3 % of the truth after each ACK.
    #[test]
    fn the_rtt_is_the_true_one(seed: u64, one_way in 100..100_000_u64, sizes in sizes()) {
        let (one_way, jitter) = (Time::from_micros(one_way), Time::ZERO);
        let channel = Channel { one_way, jitter, loss_percent: 0, duplicate_percent: 0 };
        let world = World::new(seed, channel, &sizes).run(&sizes);
        let truth = (one_way * 2).as_nanos();
        prop_assert!(world.told_lost.is_empty());
        for smoothed in world.smoothed {
            let off = smoothed.as_nanos().abs_diff(truth);
            prop_assert!(off * 100 <= truth * 3, "{} of {}", smoothed.as_nanos(), truth);
        }
    }
}
