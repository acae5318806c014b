//! Transfers that arrive as a Poisson process, each over a connection of its
//! own.
//!
//! Nothing is kept of a transfer once it is asked for but a count of those
//! that are open, so a run of any length needs the same memory.

use crate::config::{Mix, Sizes};
use crate::random::exponential;
use crate::{Action, Application};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;

pub(crate) struct PoissonMix {
    mix: Mix,
    rng: ChaCha8Rng,
    /// When the next transfer arrives.
    next: Time,
    /// Its number, which is that of its connection.
    number: u32,
    step: Step,
    /// Transfers that are not acknowledged in full.
    open: u32,
    stopped: bool,
}

/// How far the transfer that arrives now has come.
enum Step {
    Waiting,
    Opened,
    Pushed,
}

impl PoissonMix {
    pub fn new(mix: Mix, rng: ChaCha8Rng) -> PoissonMix {
        if let Sizes::Empirical(sizes) = &mix.sizes {
            assert!(!sizes.is_empty(), "sizes are drawn from at least one");
        }
        let (next, step) = (Time::ZERO, Step::Waiting);
        let mut mix = PoissonMix { mix, rng, next, number: 0, step, open: 0, stopped: false };
        mix.draw_arrival();
        mix
    }

    /// From the last arrival and not from now: a ground that polls late must
    /// not thin out the arrivals.
    fn draw_arrival(&mut self) {
        let gap = exponential(&mut self.rng) / self.mix.arrivals_per_second;
        self.next = self.next.saturating_add(Time::from_secs_f64(gap));
    }

    fn more_to_come(&self) -> bool {
        let count = self.mix.count.unwrap_or(u64::MAX);
        !self.stopped && u64::from(self.number) < count && self.number < u32::MAX
    }

    fn arrive(&mut self) -> Action {
        self.step = Step::Opened;
        self.open += 1;
        Action::Open { connection: self.number }
    }

    fn push(&mut self) -> Action {
        self.step = Step::Pushed;
        Action::Push { connection: self.number, bytes: self.mix.sizes.draw(&mut self.rng) }
    }

    fn close(&mut self) -> Action {
        let connection = self.number;
        self.step = Step::Waiting;
        self.number += 1;
        self.draw_arrival();
        Action::Close { connection }
    }
}

impl Application for PoissonMix {
    fn poll(&mut self, now: Time) -> Option<Action> {
        match self.step {
            Step::Waiting => (self.more_to_come() && now >= self.next).then(|| self.arrive()),
            Step::Opened => Some(self.push()),
            Step::Pushed => Some(self.close()),
        }
    }

    fn timer(&self) -> Time {
        if self.more_to_come() { self.next } else { Time::MAX }
    }

    fn on_delivered(&mut self, _now: Time, _connection: u32, _bytes: u64) {}

    fn on_closed(&mut self, _now: Time, _connection: u32) {
        debug_assert!(self.open > 0, "a connection closed that was not open");
        self.open = self.open.saturating_sub(1);
    }

    fn stop(&mut self, _now: Time) {
        self.stopped = true;
    }

    fn wants_deliveries(&self) -> bool {
        false
    }

    fn is_complete(&self) -> bool {
        !self.more_to_come() && self.open == 0
    }
}
