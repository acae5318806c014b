//! A bottleneck with a queue, and flows that send through it: the minimum of a
//! network that gives a controller realistic input. It shares no code with the
//! simulator crates. Lost data is not sent again; the flow is an endless stream
//! and accepts losses as reported.
pub mod seen;

use knee_cc::{
    Connection, Controller, Decision, Event, HeldBack, Init, Loss, Recovery, Sample, Selection,
    State,
};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub const MSS: u64 = 1448;
pub const MTU: u64 = 1500;

/// The bottleneck and its path.
#[derive(Clone, Copy)]
pub struct Path {
    /// Bits per second at the bottleneck, headers included.
    pub rate: u64,
    /// Round-trip time without a queue.
    pub rtt: Time,
    /// Packets that fit in the queue.
    pub buffer: usize,
    /// Token bucket: rate in bits per second and size in bytes.
    pub policer: Option<(u64, u64)>,
    /// Packets that one acknowledgement covers.
    pub ack_every: usize,
    /// Acknowledgements arrive only at multiples of this time.
    pub ack_bunches: Option<Time>,
    /// One packet in this many is dropped.
    pub drop_every: Option<u64>,
    /// Payload bytes per second that the applications produce.
    pub application: Option<u64>,
    /// ECN-capable packets that wait longer are marked.
    pub mark_above: Option<Time>,
    /// Payload bytes that the receiver lets be in flight.
    pub receive_window: u64,
}

impl Path {
    pub fn new(rate: u64, rtt_ms: u64) -> Path {
        let rtt = Time::from_millis(rtt_ms);
        Path {
            rate,
            rtt,
            buffer: 1_000_000,
            policer: None,
            ack_every: 2,
            ack_bunches: None,
            drop_every: None,
            application: None,
            mark_above: None,
            receive_window: u64::MAX,
        }
    }

    /// Returns the payload bytes that the path holds.
    pub fn bdp(&self) -> f64 {
        self.payload_rate() * self.rtt.as_secs_f64()
    }

    /// Returns the largest rate in payload bytes per second.
    pub fn payload_rate(&self) -> f64 {
        self.rate as f64 / 8.0 * MSS as f64 / MTU as f64
    }
}

/// State observed at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub now: Time,
    pub flow: usize,
    pub rtt: Time,
    pub delivered: u64,
    pub lost: u64,
    pub in_flight: u64,
    pub recovery: Recovery,
    pub state: State,
    pub decision: Decision,
}

pub fn init(seed: u64) -> Init {
    Init {
        mss: MSS as u32,
        mtu: MTU as u32,
        initial_window: 10 * MSS,
        rng: ChaCha8Rng::seed_from_u64(seed),
    }
}

pub fn controller(name: &str, seed: u64) -> Box<dyn Controller> {
    knee_cc::build(&Selection::named(name), init(seed)).unwrap()
}

#[derive(Clone, Copy)]
struct Packet {
    number: u64,
    sent_at: Time,
    first_sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
    marked: bool,
}

struct Flow {
    controller: Box<dyn Controller>,
    held_back: HeldBack,
    stop: Time,
    next: u64,
    outstanding: VecDeque<Packet>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost: u64,
    next_departure: Time,
    timer_at: Time,
    window_limited: bool,
    /// Number of the packet that ends the round for which `window_limited` holds.
    usage_end: u64,
    recovery: Recovery,
    recovery_end: u64,
    srtt: Time,
    min_rtt: Time,
    waiting: Vec<Packet>,
    ack_timer: Time,
    /// Bytes that the application has to send, and when that was last updated.
    available: f64,
    available_at: Time,
    app_limited_until: u64,
}

impl Flow {
    /// Records for one round whether the window was the limit (`tcp_cwnd_validate`).
    fn note_window_use(&mut self, limited: bool) {
        let first = self.outstanding.front().map_or(self.next, |packet| packet.number);
        if limited || first >= self.usage_end {
            (self.window_limited, self.usage_end) = (limited, self.next);
        }
    }

    fn app_limited(&self) -> bool {
        self.app_limited_until > self.delivered
    }

    fn connection(&self, now: Time) -> Connection {
        Connection {
            now,
            mss: MSS as u32,
            mtu: MTU as u32,
            in_flight: self.outstanding.len() as u64 * MSS,
            delivered: self.delivered,
            lost: self.lost,
            // Lost data counts as acknowledged: nothing is sent again.
            acknowledged: (self.next - self.outstanding.len() as u64) * MSS,
            sent: self.next * MSS,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            reordering: 0,
            recovery: self.recovery,
            window_limited: self.window_limited,
            app_limited: self.app_limited() || self.held_back.covers(self.delivered),
            paced: self.controller.needs().pacing,
            next_departure: self.next_departure,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Start,
    Send,
    Arrive,
    AckTimer,
    Ack,
}

/// The network and its flows.
pub struct Net {
    path: Path,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, What, usize)>>,
    order: u64,
    flows: Vec<Flow>,
    /// Packets on their way to the receiver, and acknowledgements on their way
    /// back, in order.
    forward: VecDeque<Packet>,
    backward: Vec<VecDeque<Vec<Packet>>>,
    departures: VecDeque<Time>,
    link_free: Time,
    tokens: f64,
    tokens_at: Time,
}

impl Net {
    pub fn new(path: Path) -> Net {
        Net {
            path,
            now: Time::ZERO,
            events: BinaryHeap::new(),
            order: 0,
            flows: Vec::new(),
            forward: VecDeque::new(),
            backward: Vec::new(),
            departures: VecDeque::new(),
            link_free: Time::ZERO,
            tokens: path.policer.map_or(0.0, |(_, burst)| burst as f64),
            tokens_at: Time::ZERO,
        }
    }

    pub fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    pub fn add(&mut self, controller: Box<dyn Controller>, start: Time, stop: Time) {
        let flow = Flow {
            controller,
            held_back: HeldBack::default(),
            stop,
            next: 0,
            outstanding: VecDeque::new(),
            delivered: 0,
            delivered_at: start,
            first_sent_at: start,
            lost: 0,
            next_departure: Time::ZERO,
            timer_at: Time::MAX,
            window_limited: false,
            usage_end: 0,
            recovery: Recovery::Open,
            recovery_end: 0,
            srtt: self.path.rtt,
            min_rtt: self.path.rtt,
            waiting: Vec::new(),
            ack_timer: Time::MAX,
            available: 0.0,
            available_at: start,
            app_limited_until: 0,
        };
        self.flows.push(flow);
        self.backward.push(VecDeque::new());
        self.at(start, What::Start, self.flows.len() - 1);
    }

    /// Wakes the application, after a change that concerns it.
    pub fn wake(&mut self, f: usize) {
        self.flows[f].timer_at = self.now;
        self.at(self.now, What::Send, f);
    }

    /// Packets in the queue.
    pub fn queue(&self) -> usize {
        self.departures.iter().filter(|d| **d > self.now).count()
    }

    fn at(&mut self, time: Time, what: What, flow: usize) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, what, flow)));
    }

    /// Runs until `end` and passes each acknowledgement to `look`.
    pub fn run(&mut self, end: Time, mut look: impl FnMut(&Seen)) {
        while let Some(&Reverse((time, _, what, f))) = self.events.peek() {
            if time > end {
                break;
            }
            self.events.pop();
            self.now = time;
            match what {
                What::Start => {
                    let connection = self.flows[f].connection(time);
                    self.flows[f].controller.on_event(Event::Established, &connection);
                    self.send(f);
                }
                What::Send => {
                    if self.flows[f].timer_at == time {
                        self.flows[f].timer_at = Time::MAX;
                        self.send(f);
                    }
                }
                What::Arrive => self.arrive(f),
                What::AckTimer => {
                    if self.flows[f].ack_timer == time {
                        self.acknowledge(f);
                    }
                }
                What::Ack => {
                    let packets = self.backward[f].pop_front().unwrap();
                    let seen = self.take_ack(f, &packets);
                    look(&seen);
                    self.send(f);
                }
            }
        }
        self.now = end;
    }

    fn send(&mut self, f: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[f];
            if now >= flow.stop {
                return;
            }
            let decision = flow.controller.decision();
            let in_flight = flow.outstanding.len() as u64 * MSS;
            let limited = in_flight + MSS > decision.window;
            flow.note_window_use(limited);
            if limited || in_flight + MSS > self.path.receive_window {
                return;
            }
            if let Some(at) = self.application_sleeps(f) {
                let flow = &mut self.flows[f];
                flow.app_limited_until = flow.delivered + in_flight + 1;
                if flow.timer_at > at {
                    flow.timer_at = at;
                    self.at(at, What::Send, f);
                }
                return;
            }
            let flow = &mut self.flows[f];
            let paced = flow.controller.needs().pacing;
            if paced && flow.next_departure > now {
                if flow.timer_at == Time::MAX {
                    flow.timer_at = flow.next_departure;
                    let at = flow.next_departure;
                    self.at(at, What::Send, f);
                }
                return;
            }
            let burst = (decision.send_quantum / MSS).max(1);
            let mut sent = 0;
            while sent < burst
                && (self.flows[f].outstanding.len() as u64 + 1) * MSS
                    <= decision.window.min(self.path.receive_window)
                && (self.path.application.is_none() || self.flows[f].available >= MSS as f64)
            {
                self.emit(f);
                sent += 1;
            }
            let flow = &mut self.flows[f];
            if let (true, Some(rate)) = (paced, decision.pacing_rate) {
                flow.next_departure = flow.next_departure.max(now) + rate.time_for(sent * MSS);
            }
        }
    }

    /// Returns when the application will have data to send; `None` if it has some now.
    fn application_sleeps(&mut self, f: usize) -> Option<Time> {
        let rate = self.path.application?;
        let flow = &mut self.flows[f];
        let passed = (self.now - flow.available_at).as_secs_f64();
        // At most ten packets accumulate.
        flow.available = (flow.available + passed * rate as f64).min(10.0 * MSS as f64);
        flow.available_at = self.now;
        let missing = MSS as f64 - flow.available;
        let wait = || Time::from_secs_f64((missing / rate.max(1) as f64).min(3600.0));
        (missing > 0.0).then(|| self.now + wait() + Time::from_micros(1))
    }

    fn emit(&mut self, f: usize) {
        let now = self.now;
        let flow = &mut self.flows[f];
        if self.path.application.is_some() {
            flow.available -= MSS as f64;
        }
        if flow.outstanding.is_empty() {
            let connection = flow.connection(now);
            flow.controller.on_event(Event::SentAfterIdle, &connection);
            flow.first_sent_at = now;
            flow.delivered_at = now;
        }
        let packet = Packet {
            number: flow.next,
            sent_at: now,
            first_sent_at: flow.first_sent_at,
            delivered: flow.delivered,
            delivered_at: flow.delivered_at,
            in_flight: (flow.outstanding.len() as u64 + 1) * MSS,
            lost: flow.lost,
            app_limited: flow.app_limited(),
            marked: flow.controller.decision().ecn.is_capable()
                && self.path.mark_above.is_some_and(|limit| self.link_free > now + limit),
        };
        flow.next += 1;
        flow.outstanding.push_back(packet);
        while self.departures.front().is_some_and(|d| *d <= now) {
            self.departures.pop_front();
        }
        let dropped = self.path.drop_every.is_some_and(|every| packet.number % every == every - 1);
        if dropped || !self.passes_policer() || self.departures.len() > self.path.buffer {
            return; // dropped
        }
        let serialisation = Time::from_nanos(MTU * 8 * 1_000_000_000 / self.path.rate);
        self.link_free = self.link_free.max(now) + serialisation;
        self.departures.push_back(self.link_free);
        self.forward.push_back(packet);
        self.at(self.link_free, What::Arrive, f);
    }

    fn passes_policer(&mut self) -> bool {
        let Some((rate, burst)) = self.path.policer else { return true };
        let elapsed = (self.now - self.tokens_at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate as f64 / 8.0).min(burst as f64);
        self.tokens_at = self.now;
        let passes = self.tokens >= MTU as f64;
        if passes {
            self.tokens -= MTU as f64;
        }
        passes
    }

    fn arrive(&mut self, f: usize) {
        let packet = self.forward.pop_front().unwrap();
        let now = self.now;
        self.flows[f].waiting.push(packet);
        if self.flows[f].waiting.len() >= self.path.ack_every {
            self.acknowledge(f);
        } else if self.flows[f].ack_timer == Time::MAX {
            self.flows[f].ack_timer = now + Time::from_millis(40);
            self.at(now + Time::from_millis(40), What::AckTimer, f);
        }
    }

    fn acknowledge(&mut self, f: usize) {
        self.flows[f].ack_timer = Time::MAX;
        let packets = std::mem::take(&mut self.flows[f].waiting);
        self.backward[f].push_back(packets);
        let mut arrival = self.now + self.path.rtt;
        if let Some(bunch) = self.path.ack_bunches {
            let bunch = bunch.as_nanos();
            arrival = Time::from_nanos(arrival.as_nanos().div_ceil(bunch) * bunch);
        }
        self.at(arrival, What::Ack, f);
    }

    fn take_ack(&mut self, f: usize, packets: &[Packet]) -> Seen {
        let now = self.now;
        let flow = &mut self.flows[f];
        let prior_in_flight = flow.outstanding.len() as u64 * MSS;
        let newest = *packets.last().unwrap();
        flow.delivered += packets.len() as u64 * MSS;
        flow.delivered_at = now;
        flow.first_sent_at = newest.sent_at;
        let mut lost = Vec::new();
        while flow.outstanding.front().is_some_and(|p| p.number <= newest.number) {
            let gone = flow.outstanding.pop_front().unwrap();
            if !packets.iter().any(|p| p.number == gone.number) {
                lost.push(gone);
            }
        }
        tell_losses(flow, &lost, now);
        let lost = lost.len() as u64 * MSS;
        let rtt = now - newest.sent_at;
        flow.srtt = Time::from_nanos((flow.srtt.as_nanos() * 7 + rtt.as_nanos()) / 8);
        flow.min_rtt = flow.min_rtt.min(rtt);
        recover(flow, newest.number, lost, now);
        let send_interval = newest.sent_at - newest.first_sent_at;
        let ack_interval = now - newest.delivered_at;
        let sample = Sample {
            delivered: flow.delivered - newest.delivered,
            prior_delivered: newest.delivered,
            interval: send_interval.max(ack_interval),
            send_interval,
            ack_interval,
            rtt: Some(rtt),
            app_limited: newest.app_limited || flow.held_back.covers(newest.delivered),
            newly_acked: packets.len() as u64 * MSS,
            newly_acked_segments: packets.len() as u32,
            newly_lost: lost,
            prior_in_flight,
            in_flight_at_send: newest.in_flight,
            lost_since_send: flow.lost - newest.lost,
            sent_at: newest.sent_at,
            newly_marked: packets.iter().filter(|p| p.marked).count() as u64 * MSS,
            ..Sample::default()
        };
        let connection = flow.connection(now);
        let decision = flow.controller.on_ack(&sample, &connection);
        flow.held_back.note(&decision, &connection);
        Seen {
            now,
            flow: f,
            rtt,
            delivered: flow.delivered,
            lost: flow.lost,
            in_flight: connection.in_flight,
            recovery: flow.recovery,
            state: flow.controller.state(),
            decision,
        }
    }
}

/// Reports losses one by one, each counted when it is reported.
fn tell_losses(flow: &mut Flow, lost: &[Packet], now: Time) {
    for packet in lost {
        flow.lost += MSS;
        if flow.controller.needs().losses {
            let loss = Loss {
                bytes: MSS,
                sent_at: packet.sent_at,
                in_flight_at_send: packet.in_flight,
                delivered_at_send: packet.delivered,
                lost_at_send: packet.lost,
                app_limited: packet.app_limited,
            };
            let connection = flow.connection(now);
            flow.controller.on_loss(&loss, &connection);
        }
    }
}

/// One recovery per window of data, as in RFC 6582.
fn recover(flow: &mut Flow, newest: u64, lost: u64, now: Time) {
    if flow.recovery == Recovery::Recovery && newest >= flow.recovery_end {
        flow.recovery = Recovery::Open;
        let connection = flow.connection(now);
        flow.controller.on_event(Event::RecoveryEnd, &connection);
    }
    if flow.recovery == Recovery::Open && lost > 0 {
        flow.recovery = Recovery::Recovery;
        flow.recovery_end = flow.next;
        let connection = flow.connection(now);
        flow.controller.on_event(Event::RecoveryStart, &connection);
    }
}
