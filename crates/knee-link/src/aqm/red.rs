//! Random Early Detection: S. Floyd, V. Jacobson, "Random Early Detection
//! Gateways for Congestion Avoidance", 1993, with the "gentle" ramp above the
//! upper threshold that Floyd recommended in 2000.
//!
//! average < min: pass · min to max: probability 0 to `max_probability` · max
//! to 2 max: `max_probability` to 1 · above: drop, even with ECN (RFC 3168,
//! section 7). The queue is measured in bytes; all packets count alike.

use super::registry::{AqmEntry, Build, Marks};
use super::{Aqm, Found, OnEntry, Settings, Verdict};
use crate::capacity::Capacity;
use crate::config::{Buffer, RateModel};
use knee_units::random::chance;
use knee_units::registry::{Kind, Parameter, SelectionError};
use knee_units::{Bytes, Time};
use rand_chacha::ChaCha8Rng;

/// The defaults are those of tc-red(8): the upper threshold is a quarter of the
/// buffer, the lower one a third of that, 2 %.
pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "red",
    summary: "Floyd and Jacobson 1993, gentle.",
    source: "S. Floyd, V. Jacobson, \"Random Early Detection Gateways for Congestion Avoidance\", \
             1993",
    parameters: &[
        threshold(
            "min_threshold",
            "average queue below which nothing is dropped, default a third of max_threshold",
        ),
        threshold(
            "max_threshold",
            "average queue at which max_probability is reached, default a quarter of the buffer",
        ),
        Parameter {
            name: "max_probability",
            kind: Kind::Part,
            default: "2 %",
            summary: "drop probability at the upper threshold",
        },
        Parameter {
            name: "weight",
            kind: Kind::Number { min: 1e-9, max: 1.0 },
            default: "0.002",
            summary: "weight of the newest queue length in the average",
        },
    ],
    presets: &[],
    build: Build {
        marks: Marks::WhereAsked,
        make: |settings, place| {
            let held = match place.buffer {
                Buffer::Bytes(bytes) => Some(bytes),
                Buffer::Packets(packets) => Some(packets.saturating_mul(place.mtu)),
                Buffer::Unlimited => None,
            };
            if let Some(bytes) = held {
                settings.fill("max_threshold", &Bytes::new(bytes / 4).to_string());
            }
            let Some(max) = settings.size("max_threshold") else {
                return Err(SelectionError {
                    parameter: None,
                    problem: "red needs thresholds in an unlimited buffer".to_owned(),
                    advice: "write { name = \"red\", min_threshold = \"10 kB\", max_threshold = \
                             \"30 kB\" }"
                        .to_owned(),
                });
            };
            settings.fill("min_threshold", &Bytes::new(max.get() / 3).to_string());
            let min = settings.size("min_threshold").unwrap_or_default();
            if min >= max {
                return Err(SelectionError {
                    parameter: Some("min_threshold".to_owned()),
                    problem: "the lower threshold must be below the upper one".to_owned(),
                    advice: format!("write less than {max}"),
                });
            }
            Ok(Aqm::Red(Red {
                min_threshold_bytes: min.get(),
                max_threshold_bytes: max.get(),
                max_probability: settings.part("max_probability").get(),
                weight: settings.number("weight"),
                ecn: place.ecn,
            }))
        },
    },
};

const fn threshold(name: &'static str, summary: &'static str) -> Parameter {
    let kind = Kind::Size { min: Bytes::new(0), max: Bytes::new(u64::MAX) };
    Parameter { name, kind, default: "", summary }
}

/// RED (Floyd and Jacobson 1993), "gentle": from the upper threshold to twice
/// its value, the probability rises to 1; beyond that everything is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Average queue below which nothing is dropped, in bytes.
    pub min_threshold_bytes: u64,
    /// Average queue at which `max_probability` is reached, in bytes.
    pub max_threshold_bytes: u64,
    /// Drop probability at the upper threshold.
    pub max_probability: f64,
    /// Weight of the newest queue length in the average, 0.002.
    pub weight: f64,
    /// Whether to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Settings for Red {
    fn assert_possible(&self) {
        let thresholds = self.min_threshold_bytes < self.max_threshold_bytes;
        assert!(thresholds, "RED's thresholds ascend");
    }

    fn log(&self) -> String {
        format!(
            ",aqm=red,min_bytes={},max_bytes={},weight={},ecn={}",
            self.min_threshold_bytes,
            self.max_threshold_bytes,
            self.weight,
            u8::from(self.ecn)
        )
    }
}

/// Packet size for computing how many packets an idle link could have sent.
const TYPICAL_PACKET: u64 = 1500;

pub(crate) struct RedState {
    settings: Red,
    /// Capacity without outages; `None` if unlimited.
    capacity: Option<Capacity>,
    average_bytes: f64,
    /// Packets since the last one marked or dropped.
    count: u64,
    busy_until: Time,
}

impl OnEntry for RedState {
    type Settings = Red;

    fn new(settings: &Red, rate: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> RedState {
        RedState::new(*settings, rate.clone())
    }

    fn judge(&mut self, found: &Found, _: impl Fn(Time) -> Time, rng: &mut ChaCha8Rng) -> Verdict {
        self.decide(found, rng)
    }

    fn busy_until(&mut self, departure: Time) {
        self.busy_until = departure;
    }

    fn cut_off(&mut self, start: Time) {
        self.busy_until = self.busy_until.min(start);
    }
}

impl RedState {
    pub fn new(settings: Red, rate: RateModel) -> RedState {
        let capacity = Capacity::new(&rate, &[]);
        RedState { settings, capacity, average_bytes: 0.0, count: 0, busy_until: Time::ZERO }
    }

    pub fn decide(&mut self, found: &Found, rng: &mut ChaCha8Rng) -> Verdict {
        self.update_average(found);
        let probability = self.probability();
        if probability <= 0.0 {
            self.count = 0;
            return Verdict::Pass;
        }
        // Makes the distance between two signals uniform in 1 to 1/probability
        // (section 7 of the paper).
        let passed = self.count as f64 * probability;
        self.count += 1;
        if passed < 1.0 && !chance(rng, probability / (1.0 - passed)) {
            return Verdict::Pass;
        }
        self.count = 0;
        Verdict::signal(self.settings.ecn && found.ecn.is_capable() && probability < 1.0)
    }

    /// Returns the probability of a signal, before correction for the packets passed.
    fn probability(&self) -> f64 {
        let Red { max_probability, .. } = self.settings;
        let min = self.settings.min_threshold_bytes as f64;
        let max = self.settings.max_threshold_bytes as f64;
        let average = self.average_bytes;
        if average < max {
            max_probability * (average - min) / (max - min)
        } else {
            (max_probability + (1.0 - max_probability) * (average - max) / max).min(1.0)
        }
    }

    fn update_average(&mut self, found: &Found) {
        let keep = 1.0 - self.settings.weight;
        if found.idle {
            // As if packets had arrived at an empty queue during that time.
            let possible = |capacity: &Capacity| capacity.whole_bytes(self.busy_until, found.now);
            let missed = self.capacity.as_ref().map_or(0, possible) / TYPICAL_PACKET;
            self.average_bytes *= keep.powi(missed.min(i32::MAX as u64) as i32);
        } else {
            self.average_bytes *= keep;
            self.average_bytes += self.settings.weight * found.waiting_bytes as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_units::Ecn;
    use knee_units::Rate;
    use rand_core::SeedableRng;

    const RED: Red = Red {
        min_threshold_bytes: 30_000,
        max_threshold_bytes: 90_000,
        max_probability: 0.1,
        weight: 0.002,
        ecn: true,
    };

    /// Returns the share of signals with a constant queue, and whether they were drops.
    fn signals(waiting_bytes: u64, packets: usize) -> (f64, bool) {
        let rate = RateModel::Constant(Rate::from_bits_per_second(10_000_000));
        let mut red = RedState::new(RED, rate);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let found = Found { now: Time::ZERO, ecn: Ecn::Ect0, waiting_bytes, idle: false };
        for _ in 0..20_000 {
            red.decide(&found, &mut rng);
        }
        let verdicts: Vec<_> = (0..packets).map(|_| red.decide(&found, &mut rng)).collect();
        let hits = verdicts.iter().filter(|verdict| **verdict != Verdict::Pass).count();
        (hits as f64 / packets as f64, verdicts.contains(&Verdict::Drop))
    }

    #[test]
    fn nothing_happens_below_the_lower_threshold() {
        assert_eq!(signals(29_999, 50_000), (0.0, false));
    }

    /// With distances uniform in 1..=1/p the mean distance is (1/p + 1)/2 (the
    /// paper's equation for its second method).
    #[test]
    fn signals_are_linear_between_the_thresholds_and_gentle_above() {
        let points = [(45_000, 0.025), (60_000, 0.05), (89_999, 0.1), (108_000, 0.28)];
        for (bytes, p) in points {
            let (share, drops) = signals(bytes, 200_000);
            // The process itself rounds 1/p up to whole packets.
            let expected = 2.0 / (1.0 / p + 1.0);
            assert!((share / expected - 1.0).abs() < 0.07, "{bytes}: {share}, not {expected}");
            assert!(!drops, "ECN-capable packets are marked");
        }
    }

    #[test]
    fn beyond_twice_the_upper_threshold_everything_is_dropped() {
        assert_eq!(signals(200_000, 1000), (1.0, true));
    }

    /// The average is an exponential filter with a time constant of 1/weight
    /// packets, and idle time counts as packets that found an empty queue.
    #[test]
    fn the_average_follows_slowly_and_decays_when_idle() {
        let rate = Rate::from_bits_per_second(12_000_000);
        let mut red = RedState::new(RED, RateModel::Constant(rate));
        let mut found =
            Found { now: Time::ZERO, ecn: Ecn::NotCapable, waiting_bytes: 20_000, idle: false };
        for _ in 0..500 {
            red.update_average(&found);
        }
        let expected = 20_000.0 * (1.0 - (-1.0_f64).exp());
        assert!((red.average_bytes / expected - 1.0).abs() < 0.01);
        // 1000 packets of 1500 bytes take a second at 12 Mbit/s.
        (found.now, found.idle) = (Time::from_secs(3), true);
        red.busy_until(Time::from_secs(2));
        red.update_average(&found);
        let expected = expected * (-2.0_f64).exp();
        assert!((red.average_bytes / expected - 1.0).abs() < 0.01, "{}", red.average_bytes);
        // An outage does not end idle time: 2000 more packets, not 1000.
        red.busy_until(Time::from_secs(3));
        red.cut_off(Time::from_secs(4));
        found.now = Time::from_secs(5);
        red.update_average(&found);
        let expected = expected * (-4.0_f64).exp();
        assert!((red.average_bytes / expected - 1.0).abs() < 0.02, "{}", red.average_bytes);
    }
}
