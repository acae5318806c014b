//! PIE, RFC 8033: a proportional integral controller of the queueing delay.
//!
//! The delay is what a packet entering at the time of the update would see,
//! which the link knows exactly; it replaces the estimate by Little's law in
//! section 4.2. The implemented optional parts are ECN (5.1), de-randomisation
//! (5.4) and the cap on large steps (5.5).

use super::registry::{AQM_TIME_MAX, AqmEntry, Build, Marks, time};
use super::{Aqm, Found, OnEntry, Settings, Verdict};
use crate::config::RateModel;
use knee_units::Time;
use knee_units::random::chance;
use knee_units::registry::{Kind, Parameter};
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "pie",
    summary: "RFC 8033: drops at random on entry, as a controller of the delay says.",
    source: "RFC 8033",
    parameters: &[
        time("target", "15 ms", "target delay"),
        time("update", "15 ms", "update period"),
        Parameter {
            name: "burst",
            kind: Kind::Time { min: Time::ZERO, max: AQM_TIME_MAX },
            default: "150 ms",
            summary: "burst allowed at the start",
        },
    ],
    presets: &[],
    build: Build {
        marks: Marks::WhereAsked,
        make: |settings, place| {
            Ok(Aqm::Pie(Pie {
                target: settings.time("target"),
                update: settings.time("update"),
                burst: settings.time("burst"),
                ecn: place.ecn,
            }))
        },
    },
};

/// PIE (RFC 8033).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// Target delay, 15 ms.
    pub target: Time,
    /// Update period, 15 ms.
    pub update: Time,
    /// Burst allowed at the start, 150 ms.
    pub burst: Time,
    /// Whether to mark ECN-capable packets instead of dropping them, below 10 %
    /// drop probability.
    pub ecn: bool,
}

impl Settings for Pie {
    fn assert_possible(&self) {
        assert!(self.update > Time::ZERO, "PIE's update period is positive");
    }

    fn log(&self) -> String {
        format!(
            ",aqm=pie,target_ns={},update_ns={},burst_ns={},ecn={}",
            self.target.as_nanos(),
            self.update.as_nanos(),
            self.burst.as_nanos(),
            u8::from(self.ecn)
        )
    }
}

/// Section 4.2, for an update period of 15 ms; per second of delay.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
const REFERENCE_UPDATE_S: f64 = 0.015;
/// Bytes that may always wait: two packets of typical size (section 4.1).
const ALWAYS_WAIT_BYTES: u64 = 2 * 1500;
/// Probability above which even ECN-capable packets are dropped (5.1).
const MARK_LIMIT: f64 = 0.1;
/// Sum of the probabilities below which there is no signal (5.4) …
const ACCUMULATED_MIN: f64 = 0.85;
/// … and from which a signal is certain.
const ACCUMULATED_MAX: f64 = 8.5;

pub(crate) struct PieState {
    settings: Pie,
    alpha: f64,
    beta: f64,
    probability: f64,
    /// Sum of the probabilities since the last signal.
    accumulated: f64,
    burst_left: Time,
    old_delay: Time,
    next_update: Time,
}

impl OnEntry for PieState {
    type Settings = Pie;

    fn new(settings: &Pie, _: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> PieState {
        PieState::new(*settings)
    }

    fn judge(
        &mut self,
        found: &Found,
        start: impl Fn(Time) -> Time,
        rng: &mut ChaCha8Rng,
    ) -> Verdict {
        self.update_until(found.now, |at| start(at).saturating_sub(at));
        self.decide(found, rng)
    }
}

impl PieState {
    pub fn new(settings: Pie) -> PieState {
        // Section 4.2: half the period takes half of alpha, and adds a quarter
        // of alpha to beta; extended to any period.
        let alpha = ALPHA * settings.update.as_secs_f64() / REFERENCE_UPDATE_S;
        let beta = BETA + (ALPHA - alpha) / 2.0;
        PieState {
            settings,
            alpha,
            beta: beta.max(0.0),
            probability: 0.0,
            accumulated: 0.0,
            burst_left: settings.burst,
            old_delay: Time::ZERO,
            next_update: settings.update,
        }
    }

    /// Performs the updates due by `now`; `delay_at` returns the queueing delay
    /// at a time since the last packet entered.
    pub fn update_until(&mut self, now: Time, delay_at: impl Fn(Time) -> Time) {
        while self.next_update <= now {
            let delay = delay_at(self.next_update);
            self.update(delay);
            self.next_update += self.settings.update;
            if self.is_at_rest() && delay == Time::ZERO {
                // The queue stays empty until `now`: updates change nothing.
                let periods = now.saturating_sub(self.next_update).as_nanos();
                let periods = periods / self.settings.update.as_nanos();
                self.next_update += self.settings.update * periods;
            }
        }
    }

    /// Section 4.1, `drop_early`.
    pub fn decide(&mut self, found: &Found, rng: &mut ChaCha8Rng) -> Verdict {
        let calm = self.old_delay < self.settings.target / 2 && self.probability < 0.2;
        let burst = self.burst_left > Time::ZERO;
        if burst || calm || found.waiting_bytes <= ALWAYS_WAIT_BYTES || !self.coin(rng) {
            return Verdict::Pass;
        }
        let may_mark = self.settings.ecn && self.probability <= MARK_LIMIT;
        Verdict::signal(may_mark && found.ecn.is_capable())
    }

    /// Section 5.4: keeps signals from clustering.
    fn coin(&mut self, rng: &mut ChaCha8Rng) -> bool {
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let hit = self.accumulated >= ACCUMULATED_MIN
            && (self.accumulated >= ACCUMULATED_MAX || chance(rng, self.probability));
        if hit {
            self.accumulated = 0.0;
        }
        hit
    }

    /// Section 4.2, `calculate_drop_prob`.
    fn update(&mut self, delay: Time) {
        let seconds = |time: Time| time.as_secs_f64();
        let error = seconds(delay) - seconds(self.settings.target);
        let trend = seconds(delay) - seconds(self.old_delay);
        let mut step = (self.alpha * error + self.beta * trend) * self.scale();
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if delay == Time::ZERO && self.old_delay == Time::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_left = self.burst_left.saturating_sub(self.settings.update);
        let half = self.settings.target / 2;
        if self.probability == 0.0 && delay < half && self.old_delay < half {
            self.burst_left = self.settings.burst;
        }
        self.old_delay = delay;
    }

    /// Returns the scale: small probabilities change in small steps (section
    /// 4.2, the table).
    fn scale(&self) -> f64 {
        match self.probability {
            p if p < 0.000_001 => 1.0 / 2048.0,
            p if p < 0.000_01 => 1.0 / 512.0,
            p if p < 0.000_1 => 1.0 / 128.0,
            p if p < 0.001 => 1.0 / 32.0,
            p if p < 0.01 => 1.0 / 8.0,
            p if p < 0.1 => 1.0 / 2.0,
            _ => 1.0,
        }
    }

    fn is_at_rest(&self) -> bool {
        self.probability == 0.0
            && self.old_delay == Time::ZERO
            && self.burst_left == self.settings.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_units::Ecn;
    use rand_core::SeedableRng;

    const PIE: Pie = Pie {
        target: Time::from_millis(15),
        update: Time::from_millis(15),
        burst: Time::from_millis(150),
        ecn: true,
    };

    fn found() -> Found {
        Found { now: Time::ZERO, ecn: Ecn::Ect0, waiting_bytes: 100_000, idle: false }
    }

    /// Steps computed by hand from the table of section 4.2: p = 0, delay 115
    /// ms: (0.125 * 0.1 + 1.25 * 0.115) / 2048; then, with the same delay,
    /// 0.125 * 0.1 / 128 because 7.63e-5 is in 1e-5..1e-4.
    #[test]
    fn the_first_updates_are_those_of_the_rfc() {
        let mut pie = PieState::new(PIE);
        pie.update(Time::from_millis(115));
        assert!((pie.probability - 7.629_394_5e-5).abs() < 1e-10, "{}", pie.probability);
        pie.update(Time::from_millis(115));
        let expected = 7.629_394_5e-5 + 9.765_625e-5;
        assert!((pie.probability - expected).abs() < 1e-10, "{}", pie.probability);
    }

    #[test]
    fn a_burst_passes_for_its_allowance() {
        let mut pie = PieState::new(PIE);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        pie.probability = 0.5;
        for n in 1..=10 {
            let passes = (0..100).all(|_| pie.decide(&found(), &mut rng) == Verdict::Pass);
            assert!(passes, "before update {n}");
            pie.update(Time::from_millis(60));
        }
        assert!((0..100).any(|_| pie.decide(&found(), &mut rng) != Verdict::Pass));
    }

    #[test]
    fn marks_turn_into_drops_above_ten_percent() {
        let verdicts_at = |probability: f64| {
            let mut pie = PieState::new(PIE);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            (pie.burst_left, pie.old_delay) = (Time::ZERO, PIE.target);
            pie.probability = probability;
            (0..20_000).map(|_| pie.decide(&found(), &mut rng)).collect::<Vec<_>>()
        };
        assert!(!verdicts_at(0.09).contains(&Verdict::Drop));
        assert!(verdicts_at(0.09).contains(&Verdict::Mark));
        assert!(!verdicts_at(0.11).contains(&Verdict::Mark));
        assert!(verdicts_at(0.11).contains(&Verdict::Drop));
    }

    /// Section 5.4: no two signals are closer than 0.85 / p, none further apart
    /// than 8.5 / p.
    #[test]
    fn signals_keep_their_distance() {
        let mut pie = PieState::new(PIE);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        (pie.burst_left, pie.old_delay, pie.probability) = (Time::ZERO, PIE.target, 1.0 / 64.0);
        let mut hits = vec![];
        for n in 0..200_000 {
            if pie.decide(&found(), &mut rng) != Verdict::Pass {
                hits.push(n);
            }
        }
        let gaps: Vec<u32> = hits.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 1000);
        assert!(gaps.iter().all(|gap| (55..=544).contains(gap)), "{gaps:?}");
    }

    /// After the queue has drained, probability returns to zero and the burst
    /// allowance is restored, however long there is no packet.
    #[test]
    fn an_idle_hour_restores_the_start() {
        let mut pie = PieState::new(PIE);
        (pie.burst_left, pie.probability, pie.old_delay) = (Time::ZERO, 0.3, PIE.target);
        pie.update_until(Time::from_secs(3600), |_| Time::ZERO);
        assert_eq!(pie.probability, 0.0);
        assert_eq!(pie.burst_left, PIE.burst);
        assert!(pie.next_update > Time::from_secs(3600));
    }
}
