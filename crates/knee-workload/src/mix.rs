//! Transfers that arrive as a Poisson process or at times from a log, each over a connection of its
//! own.
//!
//! Only the number of open transfers is kept, so a run of any length needs the same memory.

use crate::{Action, Application, Properties, Sizes};
use knee_units::random::{exponential, unit};
use knee_units::{Packed, Time};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// Completion times are recorded per transfer.
pub(crate) const PROPERTIES: Properties =
    Properties { pushes: true, single: false, transient: true, ends: false, bytes: None };

/// When transfers arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// At random, independent of each other.
    Poisson {
        /// Mean arrivals per second.
        per_second: f64,
    },
    /// At these times after the start.
    Recorded(Arc<Recorded>),
    /// With those of this mix, which its ground reports ([`Application::on_arrival`]). Each is sent
    /// once the transfer of the same number for which it waits is done.
    After(Arc<Mix>),
}

/// Arrivals of a log: times after the start, ascending, each with its size in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    times_ns: Packed,
    sizes: Packed,
}

impl Recorded {
    /// Returns their number.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Returns time and size of an arrival by its number.
    pub fn get(&self, number: usize) -> Option<(Time, u64)> {
        Some((Time::from_nanos(self.times_ns.get(number)?), self.sizes.get(number)?))
    }

    /// Iterates over them.
    pub fn iter(&self) -> impl Iterator<Item = (Time, u64)> + '_ {
        self.times_ns.iter().map(Time::from_nanos).zip(self.sizes.iter())
    }

    /// Deals the arrivals among so many parts, each to one at random. The parts depend on nothing
    /// but their number and the name of the process.
    pub fn dealt(&self, process: &str, parts: usize) -> Vec<Recorded> {
        let mut dealt = vec![Recorded::default(); parts];
        let first = stream_of(process);
        for (number, (at, size)) in self.iter().enumerate() {
            let drawn = scattered(first.wrapping_add(number as u64)) as usize % parts.max(1);
            if let Some(part) = dealt.get_mut(drawn) {
                part.push(at, size);
            }
        }
        dealt
    }

    fn push(&mut self, at: Time, size: u64) {
        self.times_ns.push(at.as_nanos());
        self.sizes.push(size);
    }
}

impl FromIterator<(Time, u64)> for Recorded {
    fn from_iter<I: IntoIterator<Item = (Time, u64)>>(arrivals: I) -> Recorded {
        let mut recorded = Recorded::default();
        arrivals.into_iter().for_each(|(at, size)| recorded.push(at, size));
        recorded
    }
}

/// Transfers that arrive one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Maximum number of arrivals; `None` for no limit but the run's duration.
    pub count: Option<u64>,
    /// Distribution of sizes, unless the arrivals include them.
    pub sizes: Sizes,
    /// Name of a shared arrival process: mixes with the same process see the same arrivals and
    /// sizes. `None` for a process of its own.
    pub process: Option<String>,
}

impl Mix {
    /// Returns the bytes of the transfers that arrive between each time and the next, times after
    /// the start in ascending order: for random arrivals, their expected number and size.
    pub fn offered_bytes(&self, times: &[Time]) -> Vec<f64> {
        match &self.arrivals {
            Arrivals::Recorded(_) => self.offered(times, |size| size.max(1) as f64),
            Arrivals::Poisson { .. } | Arrivals::After(_) => {
                let mean = self.sizes.mean();
                self.offered(times, |_| 1.0).into_iter().map(|number| number * mean).collect()
            }
        }
    }

    /// Returns the sum of a value of the transfers that arrive between each time and the next, which
    /// is one per transfer if their sizes are drawn.
    fn offered(&self, times: &[Time], value: fn(u64) -> f64) -> Vec<f64> {
        let count = self.count.unwrap_or(u64::MAX);
        match &self.arrivals {
            Arrivals::Poisson { per_second } => {
                let until = |at: Time| (per_second * at.as_secs_f64()).min(count as f64);
                times.windows(2).map(|span| until(span[1]) - until(span[0])).collect()
            }
            Arrivals::Recorded(lines) => {
                let mut sums = vec![0.0; times.len().saturating_sub(1)];
                for (at, size) in lines.iter().take(usize::try_from(count).unwrap_or(usize::MAX)) {
                    let begun = times.partition_point(|time| *time <= at);
                    if let Some(of_span) = begun.checked_sub(1).and_then(|at| sums.get_mut(at)) {
                        *of_span += value(size);
                    }
                }
                sums
            }
            Arrivals::After(other) => other.offered(times, |_| 1.0),
        }
    }
}

/// Maximum delay of a request after its arrival for mixes that share a process; each mix draws its
/// own delay. Otherwise packets of the same mix would always be first in the queue.
const LATE_MAX: Time = Time::from_millis(1);

pub(crate) struct PoissonMix {
    mix: Mix,
    /// Randomness of arrivals and sizes.
    rng: ChaCha8Rng,
    /// Randomness of the delay of each arrival, if the process is shared.
    own: Option<ChaCha8Rng>,
    /// When the next transfer arrives.
    next: Time,
    /// When it is requested.
    due: Time,
    /// Its number, which is also that of its connection.
    number: u32,
    step: Step,
    /// Arrivals of the mix whose transfers these follow.
    told: u32,
    /// Transfers that are not fully acknowledged.
    open: u32,
    stopped: bool,
}

/// Progress of the current arrival.
enum Step {
    Waiting,
    Opened,
    Pushed,
}

impl PoissonMix {
    /// Makes the application. Mixes that share a process have one key for `rng` and a stream each;
    /// arrivals and sizes come from the stream of the process.
    pub fn new(mix: Mix, mut rng: ChaCha8Rng) -> PoissonMix {
        if let Sizes::Empirical(sizes) = &mix.sizes {
            assert!(!sizes.is_empty(), "sizes are drawn from at least one");
        }
        let own = mix.process.as_ref().map(|process| {
            let own = rng.clone();
            rng.set_stream(stream_of(process));
            own
        });
        let (next, due, step) = (Time::ZERO, Time::ZERO, Step::Waiting);
        let mut mix = PoissonMix {
            mix,
            rng,
            own,
            next,
            due,
            number: 0,
            step,
            told: 0,
            open: 0,
            stopped: false,
        };
        mix.draw_arrival();
        mix
    }

    /// Draws the next arrival, relative to the last one and not to now: a ground that polls late
    /// must not thin out the arrivals.
    fn draw_arrival(&mut self) {
        self.next = match &self.mix.arrivals {
            Arrivals::Poisson { per_second } => {
                let gap = exponential(&mut self.rng) / per_second;
                self.next.saturating_add(Time::from_secs_f64(gap))
            }
            Arrivals::Recorded(lines) => {
                lines.get(self.number as usize).map_or(Time::MAX, |(at, _)| at)
            }
            // At once, when it is told.
            Arrivals::After(_) => Time::ZERO,
        };
        let late = self.own.as_mut().map_or(0.0, unit) * LATE_MAX.as_secs_f64();
        self.due = self.next.saturating_add(Time::from_secs_f64(late));
    }

    fn more_to_come(&self) -> bool {
        let all = match &self.mix.arrivals {
            Arrivals::Poisson { .. } => u64::MAX,
            Arrivals::Recorded(lines) => lines.len() as u64,
            Arrivals::After(_) => u64::from(self.told),
        };
        let count = self.mix.count.unwrap_or(u64::MAX).min(all);
        !self.stopped && u64::from(self.number) < count && self.number < u32::MAX
    }

    fn arrive(&mut self) -> Action {
        self.step = Step::Opened;
        self.open += 1;
        Action::Open { connection: self.number }
    }

    fn push(&mut self) -> Action {
        self.step = Step::Pushed;
        let recorded = match &self.mix.arrivals {
            Arrivals::Recorded(lines) => lines.get(self.number as usize).map(|(_, bytes)| bytes),
            Arrivals::Poisson { .. } | Arrivals::After(_) => None,
        };
        let bytes = recorded.unwrap_or_else(|| self.mix.sizes.draw(&mut self.rng));
        Action::Push { connection: self.number, bytes }
    }

    fn close(&mut self) -> Action {
        let connection = self.number;
        self.step = Step::Waiting;
        self.number += 1;
        self.draw_arrival();
        Action::Close { connection }
    }
}

/// Returns the FNV-1a hash of the name.
fn stream_of(process: &str) -> u64 {
    process.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns a number that looks random: SplitMix64 (Steele, Lea and Flood 2014).
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Application for PoissonMix {
    fn poll(&mut self, now: Time) -> Option<Action> {
        match self.step {
            Step::Waiting => (self.more_to_come() && now >= self.due).then(|| self.arrive()),
            Step::Opened => Some(self.push()),
            Step::Pushed => Some(self.close()),
        }
    }

    fn timer(&self) -> Time {
        if self.more_to_come() { self.due } else { Time::MAX }
    }

    fn on_arrival(&mut self) {
        self.told += 1;
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
        let told_all = self.stopped || !matches!(self.mix.arrivals, Arrivals::After(_));
        told_all && !self.more_to_come() && self.open == 0
    }
}
