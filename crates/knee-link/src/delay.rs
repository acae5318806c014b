//! Propagation delay: constant, in steps, with jitter; and spans in which
//! nothing is delivered.

use crate::config::{Config, Jitter, Normal, Steps};
use knee_units::Time;
use knee_units::random::{chance, normal, up_to};
use rand_chacha::ChaCha8Rng;

pub(crate) struct Propagation {
    base: Walk,
    /// Whether packets overtake each other when the base falls.
    reorder: bool,
    jitter: Option<Addition>,
    /// Spans in which nothing is delivered.
    hold: Vec<(Time, Time)>,
    /// No packet arrives before this time, unless jitter reorders.
    earliest: Time,
}

impl Propagation {
    pub fn new(config: &Config) -> Propagation {
        Propagation {
            base: Walk::new(&config.delay.base),
            reorder: config.delay.reorder,
            jitter: config.delay.jitter.as_ref().map(Addition::new),
            hold: config.hold.clone(),
            earliest: Time::ZERO,
        }
    }

    /// Returns when a packet arrives that departs at `departure`, which never
    /// decreases. A step applies to packets that depart from then on.
    pub fn arrival(&mut self, departure: Time, rng: &mut ChaCha8Rng) -> Time {
        let jitter = self.jitter.as_mut();
        let addition = jitter.map_or(Time::ZERO, |jitter| jitter.draw(departure, rng));
        let plain = departure.saturating_add(self.base.at(departure));
        if self.reorder {
            return self.released(plain.saturating_add(addition));
        }
        if self.reorders() {
            self.earliest = self.earliest.max(plain);
            return self.released(self.earliest.saturating_add(addition));
        }
        self.earliest = self.earliest.max(plain.saturating_add(addition));
        self.released(self.earliest)
    }

    pub fn reorders(&self) -> bool {
        self.reorder || self.jitter.as_ref().is_some_and(|jitter| jitter.reorder)
    }

    /// Starts over after a packet that arrives at `last`: later packets never
    /// depart. If jitter reorders, arrivals say nothing about the current
    /// delay, and the bound is dropped.
    pub fn restart(&mut self, last: Time) {
        self.base.step = 0;
        if let Some(jitter) = &mut self.jitter {
            jitter.amount.step = 0;
        }
        self.earliest = if self.reorders() { Time::ZERO } else { last };
    }

    /// Returns when a packet is delivered that could be at `arrival`.
    fn released(&self, arrival: Time) -> Time {
        let begun = self.hold.partition_point(|(from, _)| *from <= arrival);
        self.hold[..begun].last().map_or(arrival, |(_, until)| arrival.max(*until))
    }
}

/// Random addition to the delay.
struct Addition {
    amount: Walk,
    least: Time,
    share: f64,
    normal: Option<Normal>,
    reorder: bool,
}

impl Addition {
    fn new(jitter: &Jitter) -> Addition {
        let Jitter { ref amount, least, share, normal, reorder } = *jitter;
        Addition { amount: Walk::new(amount), least, share, normal, reorder }
    }

    /// Draws the addition of a packet. With a share of 1 no number is drawn for the share.
    fn draw(&mut self, departure: Time, rng: &mut ChaCha8Rng) -> Time {
        let amount = self.amount.at(departure);
        if self.share < 1.0 && !chance(rng, self.share) {
            return Time::ZERO;
        }
        if let Some(Normal { mean, deviation }) = self.normal {
            let addition = mean.as_nanos() as f64 + deviation.as_nanos() as f64 * normal(rng);
            // The conversion makes zero of what is negative.
            return Time::from_nanos(addition as u64).min(amount).max(self.least);
        }
        let range = amount.saturating_sub(self.least);
        self.least + Time::from_nanos(up_to(rng, range.as_nanos()))
    }
}

/// Steps queried at non-decreasing times.
struct Walk {
    steps: Steps<Time>,
    /// Index of the current step.
    step: usize,
}

impl Walk {
    fn new(steps: &Steps<Time>) -> Walk {
        Walk { steps: steps.clone(), step: 0 }
    }

    fn at(&mut self, time: Time) -> Time {
        let steps = &self.steps.0;
        while steps.get(self.step + 1).is_some_and(|(from, _)| *from <= time) {
            self.step += 1;
        }
        steps[self.step].1
    }
}
