//! Two bundles over links of `knee-link` with controllers of `knee-cc`, under a virtual clock.
//!
//! Below each path a `Carrier` takes the place of a QUIC connection: numbered packets, an ACK for
//! each, loss detection like the bundle's, QUIC's end of recovery (RFC 9002, section 7.3.2), a
//! pacer without bursts. Left out: the handshake, PRR, persistent congestion, probes of its own
//! (the bundle sends them), ECN.

use bytes::{Bytes, BytesMut};
use knee_bundle::{
    AckRanges, Arrivals, Bundle, BundleSettings, Class, Event, Fate, Frame, Limits, Outstanding,
    PathUse, Rtt,
};
use knee_cc::{Connection, Controller, Init, Loss, Recovery, Sample};
use knee_link::{Buffer, Config, Ecn, Link, RateModel};
use knee_multipath::CapacityMeter;
use knee_multipath::sched::{Path, Selection, Status};
use knee_units::{Rate, Time};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Maximum size of a datagram, and of the headers around it: QUIC, UDP and IPv4.
const DATAGRAM: u16 = 1350;
const AROUND: u32 = 30 + 28;

pub enum Content {
    Datagram(u64, Bytes),
    Ack(Box<AckRanges>, Time),
}

pub struct Packet {
    size: u32,
    content: Content,
}

impl knee_link::Packet for Packet {
    fn size(&self) -> u32 {
        self.size
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotCapable
    }

    fn mark(&mut self) {}

    fn clear_ecn(&mut self) {}

    fn flow_hash(&self) -> u64 {
        0
    }
}

/// State of the connection when a packet was sent.
#[derive(Clone, Copy)]
struct Stamp {
    sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    in_flight: u64,
    lost: u64,
    bytes: u64,
    app_limited: bool,
}

/// One end of a connection that carries datagrams.
pub struct Carrier {
    sent: Outstanding<Stamp>,
    rtt: Rtt,
    arrivals: Arrivals,
    pub controller: Box<dyn Controller>,
    pub delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    app_limited_until: u64,
    /// Recovery ends when a number from here on is acknowledged.
    recovery: Option<u64>,
    next_departure: Time,
    window_limited: bool,
    rate: Option<Rate>,
    capacity: CapacityMeter,
}

impl Carrier {
    /// Makes a connection whose handshake took `rtt`.
    fn new(cc: &str, seed: u64, rtt: Time) -> Carrier {
        let init = Init {
            mss: DATAGRAM.into(),
            mtu: u32::from(DATAGRAM) + AROUND,
            initial_window: 10 * u64::from(DATAGRAM),
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        let controller = knee_cc::build(&Selection::named(cc), init).unwrap();
        assert!(!controller.needs().wakes && !controller.needs().coupled, "{cc}");
        let mut carrier = Carrier {
            sent: Outstanding::default(),
            rtt: Rtt::default(),
            arrivals: Arrivals::default(),
            controller,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost: 0,
            app_limited_until: 0,
            recovery: None,
            next_departure: Time::ZERO,
            window_limited: false,
            rate: None,
            capacity: CapacityMeter::default(),
        };
        carrier.rtt.update(rtt, Time::ZERO);
        carrier.controller.on_event(knee_cc::Event::Established, &carrier.connection(Time::ZERO));
        carrier
    }

    fn connection(&self, now: Time) -> Connection {
        Connection {
            now,
            mss: DATAGRAM.into(),
            mtu: u32::from(DATAGRAM) + AROUND,
            in_flight: self.sent.in_flight(),
            delivered: self.delivered,
            lost: self.lost,
            acknowledged: self.delivered,
            sent: self.delivered + self.lost + self.sent.in_flight(),
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.min,
            reordering: 0,
            recovery: if self.recovery.is_some() { Recovery::Recovery } else { Recovery::Open },
            window_limited: self.window_limited,
            app_limited: self.app_limited_until > 0,
            paced: true,
            next_departure: self.next_departure.max(now),
        }
    }

    fn has_room(&self) -> bool {
        self.sent.in_flight() + u64::from(DATAGRAM) <= self.controller.decision().window
    }

    fn path(&self, now: Time, status: Status) -> Path {
        Path {
            status,
            ready: status != Status::Down && self.has_room() && self.next_departure <= now,
            srtt: self.rtt.smoothed,
            rtt_variation: self.rtt.variation,
            min_rtt: self.rtt.min,
            window: self.controller.decision().window,
            in_flight: self.sent.in_flight(),
            rate: self.rate,
            capacity: self.capacity.capacity(),
            doubles: matches!(self.controller.state().phase, "slow_start" | "startup"),
            ..Path::default()
        }
    }

    fn send(&mut self, now: Time, bytes: Bytes) -> Packet {
        if self.sent.in_flight() == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
            if self.delivered > 0 {
                self.controller.on_event(knee_cc::Event::SentAfterIdle, &self.connection(now));
            }
        }
        let len = bytes.len() as u64;
        let stamp = Stamp {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: self.sent.in_flight() + len,
            lost: self.lost,
            bytes: len,
            app_limited: self.app_limited_until > 0,
        };
        let number = self.sent.push(now, bytes.len() as u16, true, stamp);
        if let Some(rate) = self.controller.decision().pacing_rate {
            self.next_departure = self.next_departure.max(now) + rate.time_for(len);
        }
        self.window_limited = !self.has_room();
        let size = bytes.len() as u32 + AROUND;
        Packet { size, content: Content::Datagram(number, bytes) }
    }

    fn on_ack(&mut self, now: Time, ranges: &AckRanges, delay: Time) {
        let mut told = Vec::new();
        let prior_in_flight = self.sent.in_flight();
        let tell = |number, fate, stamp| told.push((number, fate, stamp));
        self.sent.on_ack(now, ranges, &mut self.rtt, delay, tell).unwrap();
        self.settle(now, prior_in_flight, &told);
    }

    fn on_timer(&mut self, now: Time) {
        let mut told = Vec::new();
        let prior_in_flight = self.sent.in_flight();
        let tell = |number, fate, stamp| told.push((number, fate, stamp));
        self.sent.on_loss_timer(now, &self.rtt, tell);
        self.settle(now, prior_in_flight, &told);
    }

    fn settle(&mut self, now: Time, prior_in_flight: u64, told: &[(u64, Fate, Stamp)]) {
        let mut sample = Sample { prior_in_flight, ..Sample::default() };
        let mut newest: Option<(u64, Stamp)> = None;
        let mut begins = false;
        for (number, fate, stamp) in told {
            if *fate == Fate::Lost {
                self.lost += stamp.bytes;
                sample.newly_lost += stamp.bytes;
                begins |= self.recovery.is_none_or(|from| *number >= from);
                if self.controller.needs().losses {
                    let loss = Loss {
                        bytes: stamp.bytes,
                        sent_at: stamp.sent_at,
                        in_flight_at_send: stamp.in_flight,
                        delivered_at_send: stamp.delivered,
                        lost_at_send: stamp.lost,
                        app_limited: stamp.app_limited,
                    };
                    self.controller.on_loss(&loss, &self.connection(now));
                }
                continue;
            }
            self.delivered += stamp.bytes;
            sample.newly_acked += stamp.bytes;
            sample.newly_acked_segments += 1;
            if newest.is_none_or(|(last, _)| *number > last) {
                newest = Some((*number, *stamp));
            }
        }
        if begins {
            self.recovery = Some(self.sent.next());
            self.controller.on_event(knee_cc::Event::RecoveryStart, &self.connection(now));
        }
        let Some((number, stamp)) = newest else { return };
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        self.delivered_at = now;
        self.first_sent_at = stamp.sent_at;
        let mss = u64::from(DATAGRAM);
        self.capacity.on_ack(now, self.delivered, stamp.sent_at, self.rtt.smoothed, mss);
        sample.rtt = Some(now - stamp.sent_at);
        sample.sent_at = stamp.sent_at;
        sample.prior_delivered = stamp.delivered;
        sample.delivered = self.delivered - stamp.delivered;
        sample.app_limited = stamp.app_limited;
        sample.in_flight_at_send = stamp.in_flight;
        sample.lost_since_send = self.lost - stamp.lost;
        sample.send_interval = stamp.sent_at.saturating_sub(stamp.first_sent_at);
        sample.ack_interval = now - stamp.delivered_at;
        let interval = sample.send_interval.max(sample.ack_interval);
        if interval >= self.rtt.min && interval > Time::ZERO {
            sample.interval = interval;
            self.rate = Some(Rate::over(sample.delivered, interval));
        }
        if self.recovery.is_some_and(|from| number >= from) && !begins {
            self.recovery = None;
            self.controller.on_event(knee_cc::Event::RecoveryEnd, &self.connection(now));
        }
        self.controller.on_ack(&sample, &self.connection(now));
    }
}

#[derive(Clone)]
pub struct Way {
    pub mbit: u64,
    pub one_way: Time,
    /// In bandwidth-delay products.
    pub buffer: f64,
    pub down: Vec<(Time, Time)>,
    pub loss: f64,
    pub path_use: PathUse,
}

/// Makes a link of this rate and one-way delay.
pub fn way(mbit: u64, one_way_ms: u64) -> Way {
    let one_way = Time::from_millis(one_way_ms);
    Way { mbit, one_way, buffer: 1.0, down: Vec::new(), loss: 0.0, path_use: PathUse::default() }
}

/// Two ends and the links between them.
pub struct World {
    pub now: Time,
    pub bundles: [Bundle; 2],
    pub carriers: [Vec<Carrier>; 2],
    /// From the end that sends.
    pub links: [Vec<Link<Packet>>; 2],
    pub received: u64,
    /// Messages that the server received, with their times.
    pub messages: Vec<(Time, Bytes)>,
    pub ended: bool,
}

impl World {
    pub fn new(ways: &[Way], cc: &str, scheduler: &str, window: u64) -> World {
        let link = |way: &Way, seed: u64| {
            let rate = Rate::from_bits_per_second(way.mbit * 1_000_000);
            let product = way.mbit as f64 * 1e6 * way.one_way.as_secs_f64() * 2.0 / 8.0;
            let config = Config {
                rate: RateModel::Constant(rate),
                buffer: Buffer::Bytes((product * way.buffer).max(20_000.0) as u64),
                loss: match way.loss {
                    0.0 => knee_link::Loss::None,
                    loss => knee_link::Loss::Independent(loss),
                },
                down: way.down.clone(),
                ..Config::pure_delay(way.one_way)
            };
            Link::new(config, ChaCha8Rng::seed_from_u64(seed))
        };
        let links = [0, 100].map(|seed| {
            ways.iter().zip(seed..).map(|(way, seed)| link(way, seed)).collect::<Vec<_>>()
        });
        let carriers = [0, 1].map(|end| {
            ways.iter().map(|way| Carrier::new(cc, end, way.one_way * 2)).collect::<Vec<_>>()
        });
        let limits = Limits { window, stream_window: window, streams: 16 };
        let bundles = [false, true].map(|is_server| {
            let settings = BundleSettings {
                is_server,
                datagram: DATAGRAM,
                limits,
                buffer: window * 2,
                reinjection: true,
                lateness: Time::from_millis(1),
            };
            let scheduler = knee_multipath::sched::build(&Selection::named(scheduler)).unwrap();
            let mut bundle = Bundle::new(settings, limits, scheduler);
            for (path, way) in ways.iter().enumerate() {
                bundle.on_path_up(path);
                bundle.on_use(path, way.path_use, PathUse::default());
            }
            bundle
        });
        let (now, messages) = (Time::ZERO, Vec::new());
        World { now, bundles, carriers, links, received: 0, messages, ended: false }
    }

    fn paths(&self, end: usize) -> Vec<Path> {
        let bundle = &self.bundles[end];
        let works = (0..self.carriers[end].len()).filter(|path| !bundle.is_suspect(*path));
        let cheapest = works.map(|path| bundle.path_use(path).cost).min();
        let view = |(path, carrier): (usize, &Carrier)| {
            let is_dear = cheapest.is_some_and(|cost| bundle.path_use(path).cost > cost);
            let status = match (bundle.is_suspect(path), is_dear) {
                (true, _) => Status::Suspect,
                (false, true) => Status::Backup,
                (false, false) => Status::Active,
            };
            carrier.path(self.now, status)
        };
        self.carriers[end].iter().enumerate().map(view).collect()
    }

    fn pump(&mut self, end: usize) {
        let max = vec![DATAGRAM; self.links[end].len()];
        let mut bytes = BytesMut::new();
        loop {
            let paths = self.paths(end);
            let polled = self.bundles[end].poll_datagram(self.now, &paths, &max, &mut bytes);
            let Some(path) = polled else { break };
            let packet = self.carriers[end][path].send(self.now, bytes.split().freeze());
            let _ = self.links[end][path].send(self.now, packet);
        }
        for carrier in &mut self.carriers[end] {
            if carrier.has_room() && carrier.next_departure <= self.now {
                let until = carrier.delivered + carrier.sent.in_flight();
                carrier.app_limited_until = until.max(1);
            }
        }
    }

    fn arrive(&mut self, end: usize, path: usize, packet: Packet) {
        let carrier = &mut self.carriers[end][path];
        match packet.content {
            Content::Datagram(number, bytes) => {
                let Some(number) = carrier.arrivals.number(number as u16) else { return };
                carrier.arrivals.insert(self.now, number, true);
                if let Some(Frame::Ack { delay, ranges, .. }) = carrier.arrivals.ack(self.now, 0) {
                    let ack = Packet {
                        size: 20 + AROUND,
                        content: Content::Ack(Box::new(ranges), delay),
                    };
                    let _ = self.links[end][path].send(self.now, ack);
                }
                self.bundles[end].on_datagram(self.now, path, &bytes).unwrap();
            }
            Content::Ack(ranges, delay) => {
                carrier.on_ack(self.now, &ranges, delay);
                let more = carrier.sent.in_flight() > 0;
                self.bundles[end].on_heard(self.now, path, more);
            }
        }
    }

    /// Reads everything available at the server.
    fn read(&mut self) {
        while let Some(event) = self.bundles[1].poll_event() {
            if let Event::Message { bytes, .. } = event {
                self.messages.push((self.now, bytes));
            } else if let Event::Readable(id) = event {
                while let Some(bytes) = self.bundles[1].read(id, usize::MAX) {
                    self.received += bytes.len() as u64;
                }
                self.ended |= self.bundles[1].is_read_to_end(id);
            }
        }
    }

    pub fn step(&mut self) {
        self.step_to(Time::MAX);
    }

    /// Goes to the next event, or to `until` if that is sooner.
    pub fn step_to(&mut self, until: Time) {
        (0..2).for_each(|end| self.pump(end));
        let mut at = until;
        for end in 0..2 {
            at = at.min(self.bundles[end].timer(&self.paths(end)));
            for (carrier, link) in self.carriers[end].iter().zip(&self.links[end]) {
                at = at.min(link.next_time()).min(carrier.sent.loss_at());
                if carrier.next_departure > self.now && carrier.has_room() {
                    at = at.min(carrier.next_departure);
                }
            }
        }
        assert!(at < Time::from_secs(3600), "it stands still at {:?}", self.now);
        self.now = self.now.max(at);
        for end in 0..2 {
            for path in 0..self.links[end].len() {
                while let Some(packet) = self.links[end][path].poll(self.now) {
                    self.arrive(1 - end, path, packet);
                }
                self.carriers[end][path].on_timer(self.now);
            }
            let paths = self.paths(end);
            self.bundles[end].on_timer(self.now, &paths);
        }
        self.read();
    }

    /// Sends a file over one stream from the client; returns when the server has it.
    pub fn file(mut self, bytes: u64) -> (Time, World) {
        let id = self.bundles[0].open(Class::Normal).unwrap();
        let mut left = bytes;
        let chunk = vec![7; 1 << 16];
        while !self.ended {
            while left > 0 {
                let len = left.min(chunk.len() as u64) as usize;
                let taken = self.bundles[0].write(id, &chunk[..len]) as u64;
                left -= taken;
                if left == 0 {
                    self.bundles[0].finish(id);
                }
                if taken < len as u64 {
                    break;
                }
            }
            self.step();
        }
        assert_eq!(self.received, bytes);
        (self.now, self)
    }
}

pub const WINDOW: u64 = 16 << 20;
