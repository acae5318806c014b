//! Connections over several paths: whatever happens to the paths, every byte
//! arrives once and in order. The network and the bookkeeping here share no
//! code with what they check.

use knee_cc::{Init, Selection};
use knee_multipath::sched::{Recorder, Scheduler};
use knee_transport::multipath::{DataAck, MultipathReceiver, MultipathSender, MultipathTransmit};
use knee_transport::{Ack, AckDetails, Config, ReceiveWindow, Segment};
use knee_units::{Ecn, Time};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const MS: u64 = 1_000_000;

/// A path of the toy network: a rate, a delay, a loss probability, and two ways
/// of being unavailable.
#[derive(Clone, Copy)]
struct Path {
    ns_per_packet: u64,
    delay: u64,
    /// Packets lost out of 1024.
    loss: u32,
    free_at: u64,
    /// Whether it drops everything without notice.
    silent: bool,
    /// Whether the hosts know of it.
    present: bool,
    /// Subflow currently running on it.
    generation: u32,
}

enum Event {
    Segment {
        path: usize,
        generation: u32,
        segment: Segment,
    },
    Ack {
        path: usize,
        generation: u32,
        ack: Ack,
        details: Option<AckDetails>,
        data: DataAck,
    },
    /// An event on a path.
    Silence(usize, bool),
    Presence(usize, bool),
    Wake,
}

struct Network {
    paths: Vec<Path>,
    sender: MultipathSender,
    receiver: MultipathReceiver,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    next_event: u64,
    now: u64,
    rng: ChaCha8Rng,
    config: Config,
    controller: &'static str,
    /// When the earliest wake-up is queued.
    armed: u64,
    /// Data given to each subflow, by path, generation and segment number.
    given: BTreeMap<(usize, u32, u32), (u64, u64)>,
    /// Bytes that have arrived, as ranges: start to end.
    arrived: BTreeMap<u64, u64>,
    delivered: u64,
}

fn time(ns: u64) -> Time {
    Time::from_nanos(ns)
}

impl Network {
    fn new(
        paths: &[(u64, u64, u32)],
        scheduler: &str,
        controller: &'static str,
        seed: u64,
    ) -> Network {
        let scheduler = knee_multipath::sched::build(&Selection::named(scheduler)).unwrap();
        Network::with_scheduler(paths, scheduler, controller, seed)
    }

    fn with_scheduler(
        paths: &[(u64, u64, u32)],
        scheduler: Box<dyn Scheduler>,
        controller: &'static str,
        seed: u64,
    ) -> Network {
        let config = Config {
            mss: 1428,
            header: 72,
            receive_window: ReceiveWindow::Fixed(400_000),
            ..Config::default()
        };
        let path = |(rate, delay, loss): &(u64, u64, u32)| Path {
            ns_per_packet: 1500 * 8 * 1000 / rate,
            delay: *delay * MS,
            loss: *loss,
            free_at: 0,
            silent: false,
            present: false,
            generation: 0,
        };
        Network {
            paths: paths.iter().map(path).collect(),
            sender: MultipathSender::new(&config, paths.len(), true, scheduler),
            receiver: MultipathReceiver::new(&config),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_event: 0,
            now: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            config,
            controller,
            armed: u64::MAX,
            given: BTreeMap::new(),
            arrived: BTreeMap::new(),
            delivered: 0,
        }
    }

    fn at(&mut self, at: u64, event: Event) {
        self.queue.push(Reverse((at.max(self.now), self.next_event)));
        self.events.insert(self.next_event, event);
        self.next_event += 1;
    }

    /// Schedules a wake-up, unless there is an earlier one.
    fn arm(&mut self, at: Time) {
        if at == Time::MAX {
            return;
        }
        let at = at.as_nanos().max(self.now);
        if at < self.armed {
            self.armed = at;
            self.at(at, Event::Wake);
        }
    }

    fn set_present(&mut self, path: usize, present: bool) {
        if self.paths[path].present == present {
            return;
        }
        self.paths[path].present = present;
        if !present {
            self.sender.on_path_down(path);
            self.receiver.on_path_down(path);
            return;
        }
        self.paths[path].generation += 1;
        let init = Init {
            mss: self.config.mss,
            mtu: 1500,
            initial_window: 14_280,
            rng: ChaCha8Rng::seed_from_u64(self.now),
        };
        let controller = knee_cc::build(&Selection::named(self.controller), init).unwrap();
        self.sender.on_path_up(path, false, controller);
        self.receiver.on_path_up(path);
    }

    /// Returns the transit time of a packet; `None` if it is lost.
    fn cross(&mut self, path: usize, loaded: bool) -> Option<u64> {
        let lost = self.rng.next_u32() % 1024 < self.paths[path].loss;
        let now = self.now;
        let state = &mut self.paths[path];
        if state.silent || lost || !state.present {
            return None;
        }
        if !loaded {
            return Some(now + state.delay);
        }
        // A buffer of 200 packets.
        if state.free_at > now + 200 * state.ns_per_packet {
            return None;
        }
        state.free_at = state.free_at.max(now) + state.ns_per_packet;
        Some(state.free_at + state.delay)
    }

    fn pump(&mut self) {
        loop {
            match self.sender.poll_transmit(time(self.now)) {
                MultipathTransmit::Segment(path, segment) => {
                    let generation = self.paths[path].generation;
                    if let Some(mapping) = self.sender.mapping(path, segment.number)
                        && let Some((offset, len)) = mapping.data(segment.number)
                        && segment.len > 0
                    {
                        let given = self.given.entry((path, generation, segment.number));
                        let known = *given.or_insert((offset, u64::from(len)));
                        assert_eq!(known, (offset, u64::from(len)), "a mapping changed");
                    }
                    if let Some(at) = self.cross(path, true) {
                        self.at(at, Event::Segment { path, generation, segment });
                    }
                }
                MultipathTransmit::At(at) => {
                    self.arm(at);
                    break;
                }
                MultipathTransmit::Nothing => break,
            }
        }
        for path in 0..self.paths.len() {
            let due = self.sender.subflow_timer(path).min(self.receiver.timer(path));
            self.arm(due);
        }
        self.arm(self.sender.timer_of_all());
    }

    fn answer(&mut self, path: usize) {
        let mut details = AckDetails::default();
        let Some((ack, has_details)) = self.receiver.make_ack(path, &mut details) else { return };
        let details = has_details.then_some(details);
        let data = self.receiver.data_ack();
        let generation = self.paths[path].generation;
        if let Some(at) = self.cross(path, false) {
            self.at(at, Event::Ack { path, generation, ack, details, data });
        }
    }

    fn step(&mut self, event: Event) {
        let now = time(self.now);
        match event {
            Event::Silence(path, silent) => self.paths[path].silent = silent,
            Event::Presence(path, present) => self.set_present(path, present),
            Event::Segment { path, generation, segment } => {
                if !self.paths[path].present || self.paths[path].generation != generation {
                    return;
                }
                let before = self.receiver.subflow(path).unwrap().next();
                let sender = &self.sender;
                let mapping = |number| sender.mapping(path, number);
                let arrival = self.receiver.on_segment(
                    now,
                    path,
                    &segment,
                    Ecn::NotCapable,
                    || sender.slowest_rtt(),
                    mapping,
                );
                for step in 0..arrival.subflow_segments {
                    let (offset, len) = self.given[&(path, generation, before + step)];
                    self.note_arrival(offset, offset + len);
                }
                self.delivered += arrival.delivered_bytes;
                assert_eq!(self.delivered, self.in_order(), "at {now}");
                if arrival.ack_now {
                    self.answer(path);
                }
                arrival.window_updates.iter().for_each(|other| self.answer(other));
            }
            Event::Ack { path, generation, ack, details, data } => {
                if self.paths[path].present && self.paths[path].generation == generation {
                    let waits = self.sender.on_ack(now, path, &ack, details.as_ref(), data);
                    if let Some(timers) = waits {
                        assert_eq!(timers, self.sender.timers(path));
                        let next = self.sender.poll_transmit(now);
                        assert!(!matches!(next, MultipathTransmit::Segment(..)), "{next:?}");
                    }
                }
            }
            Event::Wake if self.armed == self.now => self.wake(),
            Event::Wake => {}
        }
    }

    fn wake(&mut self) {
        self.armed = u64::MAX;
        let now = time(self.now);
        for path in 0..self.paths.len() {
            if self.sender.subflow_timer(path) <= now {
                self.sender.on_subflow_timer(now, path);
            }
            if self.receiver.timer(path) <= now {
                self.answer(path);
            }
        }
        if self.sender.timer_of_all() <= now {
            self.sender.on_timer(now);
        }
        self.sender.on_pacing_timer(now);
    }

    /// Records arrived bytes, which may overlap earlier ones.
    fn note_arrival(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start, end);
        let touching: Vec<u64> = self
            .arrived
            .range(..=end)
            .filter(|(_, other_end)| **other_end >= start)
            .map(|(other, _)| *other)
            .collect();
        for other in touching {
            let other_end = self.arrived.remove(&other).unwrap();
            start = start.min(other);
            end = end.max(other_end);
        }
        self.arrived.insert(start, end);
    }

    /// Returns the bytes that have arrived without a gap from the start.
    fn in_order(&self) -> u64 {
        self.arrived.get(&0).copied().unwrap_or(0)
    }

    /// Runs until the transfer is complete; `None` if it is not by `limit`.
    fn transfer(&mut self, bytes: u64, limit: u64) -> Option<u64> {
        self.sender.write(bytes);
        self.pump();
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > limit {
                return None;
            }
            self.now = at;
            let event = self.events.remove(&number).unwrap();
            self.step(event);
            self.pump();
            if self.sender.is_complete() {
                assert_eq!(self.delivered, bytes, "complete, but not all was delivered");
                return Some(self.now);
            }
        }
        None
    }
}

/// Events on paths, with times in milliseconds.
fn path_events() -> impl Strategy<Value = Vec<(u64, usize, bool, bool)>> {
    prop::collection::vec((0u64..6000, 0usize..3, any::<bool>(), any::<bool>()), 0..12)
}

fn any_scheduler() -> impl Strategy<Value = &'static str> {
    let names: Vec<&'static str> = knee_multipath::sched::schedulers()
        .iter()
        .map(|s| s.name)
        .filter(|n| *n != "dems")
        .collect();
    prop::sample::select(names)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Paths fall silent, disappear, return, lose packets: everything arrives
    /// once and in order, and as long as one path stays, it does arrive.
    #[test]
    fn whatever_happens_to_paths_every_byte_arrives_once_and_in_order(
        events in path_events(),
        scheduler in any_scheduler(),
        controller in prop::sample::select(vec!["cubic", "bbr", "lia", "olia", "balia"]),
        loss in 0u32..40,
        seed in any::<u64>(),
    ) {
        let paths = [(10_000, 10, loss), (5_000, 40, loss), (20_000, 5, 0)];
        let mut network = Network::new(&paths, scheduler, controller, seed);
        for path in 0..3 {
            network.set_present(path, true);
        }
        for (at, path, presence, on) in events {
            // The first path never disappears permanently.
            match (presence, path) {
                (true, 1 | 2) => network.at(at * MS, Event::Presence(path, on)),
                (false, 1 | 2) => network.at(at * MS, Event::Silence(path, on)),
                _ => {
                    network.at(at * MS, Event::Silence(0, true));
                    network.at((at + 300) * MS, Event::Silence(0, false));
                }
            }
        }
        let done = network.transfer(3_000_000, 300_000 * MS);
        prop_assert!(done.is_some(), "not complete after 300 s");
    }
}

/// A scheduler that keeps to its choice is not called for each packet; a
/// recorder is. Both give the same packets on the same paths.
#[test]
fn asking_for_each_packet_changes_nothing() {
    for (controller, loss, seed) in
        [("cubic", 0, 1), ("bbr", 0, 2), ("cubic", 10, 3), ("bbr", 10, 4)]
    {
        let run = |recorded: bool| {
            let minrtt = knee_multipath::sched::build(&Selection::named("minrtt")).unwrap();
            assert!(minrtt.keeps_choice());
            let scheduler: Box<dyn Scheduler> =
                if recorded { Box::new(Recorder::new(minrtt)) } else { minrtt };
            let paths = [(10_000, 10, loss), (5_000, 40, loss), (20_000, 5, 0)];
            let mut network = Network::with_scheduler(&paths, scheduler, controller, seed);
            (0..3).for_each(|path| network.set_present(path, true));
            for (at, silent) in [(300, true), (700, false)] {
                network.at(at * MS, Event::Silence(2, silent));
            }
            let done = network.transfer(3_000_000, 60_000 * MS);
            (done.unwrap(), network.given)
        };
        assert_eq!(run(false), run(true), "{controller}, loss {loss}");
    }
}

/// A file of 5 MB over 10 and 5 Mbit/s whose first path dies at any moment and
/// never answers again: the rest takes the other path's time plus the time to
/// detect it. One and a half probe timeouts are at most 1.5 (RTT of path and
/// queue, its variation, 40 ms of delayed ACK).
#[test]
fn a_path_that_dies_never_stalls_the_connection() {
    for scheduler in ["minrtt", "round-robin", "sctc", "ecf", "blest", "redundant"] {
        for at in (0..5000).step_by(50) {
            let mut network =
                Network::new(&[(10_000, 10, 0), (5_000, 10, 0)], scheduler, "cubic", 1);
            network.set_present(0, true);
            network.set_present(1, true);
            network.at(at * MS, Event::Silence(0, true));
            let done = network.transfer(5_000_000, 60_000 * MS);
            let done = done.unwrap_or_else(|| panic!("{scheduler}, death at {at} ms: stalled"));
            // Packets have 1428 bytes of payload in 1500 bytes on the link.
            let alone = 5_000_000.0 * 1500.0 / 1428.0 * 8.0 / 5e6;
            let left = alone - (at as f64 / 1e3 * 0.9).min(alone);
            let detection = 2.0;
            let limit = at as f64 / 1e3 + detection + left;
            let took = done as f64 / 1e9;
            assert!(
                took <= limit.max(alone),
                "{scheduler}, death at {at} ms: {took} s, limit {limit} s"
            );
        }
    }
}
