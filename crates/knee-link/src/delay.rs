//! Propagation delay: constant, in steps, with jitter.

use crate::config::{Delay, Jitter, Steps};
use crate::random::up_to;
use knee_units::Time;
use rand_chacha::ChaCha8Rng;

pub(crate) struct Propagation {
    base: Steps<Time>,
    /// Index of the step in force.
    step: usize,
    jitter: Option<Jitter>,
    /// No packet arrives earlier, unless jitter reorders.
    earliest: Time,
}

impl Propagation {
    pub fn new(delay: &Delay) -> Propagation {
        let base = delay.base.clone();
        Propagation { base, step: 0, jitter: delay.jitter, earliest: Time::ZERO }
    }

    /// When a packet arrives that departs at `departure`, which never
    /// descends. A step applies to what departs from then on.
    pub fn arrival(&mut self, departure: Time, rng: &mut ChaCha8Rng) -> Time {
        let addition = self.jitter.map_or(0, |jitter| up_to(rng, jitter.amount.as_nanos()));
        let addition = Time::from_nanos(addition);
        let plain = departure.saturating_add(self.base_at(departure));
        if self.reorders() {
            self.earliest = self.earliest.max(plain);
            return self.earliest.saturating_add(addition);
        }
        self.earliest = self.earliest.max(plain.saturating_add(addition));
        self.earliest
    }

    pub fn reorders(&self) -> bool {
        self.jitter.is_some_and(|jitter| jitter.reorder)
    }

    /// Starts anew behind a packet that arrives at `last`: those that were
    /// to depart after it never do. Where jitter reorders, arrivals say
    /// nothing about the delay in force, and the bound is given up.
    pub fn restart(&mut self, last: Time) {
        self.step = 0;
        self.earliest = if self.reorders() { Time::ZERO } else { last };
    }

    fn base_at(&mut self, departure: Time) -> Time {
        let steps = &self.base.0;
        while steps.get(self.step + 1).is_some_and(|(from, _)| *from <= departure) {
            self.step += 1;
        }
        steps[self.step].1
    }
}
