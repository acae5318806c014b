//! A minimal ground that shares nothing with the simulator: a request takes a fixed delay, and
//! answers leave one after the other at one rate.

// Each test file needs only a part of it.
use knee_units::Time;
use knee_workload::{Action, Application, Workload, build};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, VecDeque};

pub fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

pub fn application(workload: &Workload) -> Box<dyn Application> {
    build(workload, rng(7))
}

/// Bytes to be delivered on a connection, from a given time on.
struct Answer {
    from: Time,
    connection: u32,
    bytes_left: u64,
}

/// All answers go over one link, first come, first served, in chunks.
pub struct Link {
    bytes_per_second: u64,
    request_delay: Time,
    chunk: u64,
    /// When the rate changes, and the new rate.
    pub change: Option<(Time, u64)>,
    now: Time,
    queue: VecDeque<Answer>,
    /// Requests on each connection, in order.
    pub asked: BTreeMap<u32, Vec<u64>>,
    pub opened: u32,
    pub closed: Vec<u32>,
}

impl Link {
    pub fn new(bytes_per_second: u64, request_delay: Time, chunk: u64) -> Link {
        Link {
            bytes_per_second,
            request_delay,
            chunk,
            change: None,
            now: Time::ZERO,
            queue: VecDeque::new(),
            asked: BTreeMap::new(),
            opened: 0,
            closed: Vec::new(),
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Open { connection } => {
                assert_eq!(connection, self.opened, "numbers ascend from zero");
                self.opened += 1;
            }
            Action::Request { connection, bytes } => {
                assert!(connection < self.opened && !self.closed.contains(&connection));
                self.asked.entry(connection).or_default().push(bytes);
                let from = self.now + self.request_delay;
                self.queue.push_back(Answer { from, connection, bytes_left: bytes });
            }
            Action::Close { connection } => {
                assert!(connection < self.opened && !self.closed.contains(&connection));
                self.closed.push(connection);
            }
            Action::Push { .. } => panic!("this ground only answers requests"),
        }
    }

    /// Returns the next chunk of the oldest answer, and when it is delivered.
    fn next_chunk(&self) -> Option<(Time, u32, u64)> {
        let answer = self.queue.front()?;
        let bytes = self.chunk.min(answer.bytes_left);
        let begin = self.now.max(answer.from);
        let changed = self.change.filter(|(from, _)| begin >= *from);
        let rate = changed.map_or(self.bytes_per_second, |(_, rate)| rate);
        let span = Time::from_nanos(bytes * 1_000_000_000 / rate);
        Some((begin + span, answer.connection, bytes))
    }

    fn deliver(&mut self, application: &mut dyn Application) {
        let (at, connection, bytes) = self.next_chunk().expect("an answer is under way");
        self.now = at;
        let front = self.queue.front_mut().expect("an answer is under way");
        front.bytes_left -= bytes;
        if front.bytes_left == 0 {
            self.queue.pop_front();
        }
        application.on_delivered(at, connection, bytes);
    }

    /// Runs until the application is complete, and returns that time.
    pub fn run(&mut self, application: &mut dyn Application) -> Time {
        for _ in 0..10_000_000 {
            while let Some(action) = application.poll(self.now) {
                self.carry_out(action);
            }
            if application.is_complete() {
                assert!(self.queue.is_empty());
                return self.now;
            }
            let timer = application.timer();
            match self.next_chunk() {
                Some((at, ..)) if at <= timer => self.deliver(application),
                _ => {
                    assert!(timer < Time::MAX, "it waits for nothing");
                    assert!(timer > self.now, "it is due and does nothing");
                    self.now = timer;
                }
            }
        }
        panic!("it does not come to an end");
    }
}
