//! DualPI2 (RFC 9332): two queues over one link, coupled so that a scalable
//! flow in one and a classic flow in the other get about the same rate.
//!
//! ```text
//!   ECT(1), CE --> [ L ] -- ramp p'L on its own delay --+-- max(p'L, k p') marks
//!                                                       |
//!   all others --> [ C ] -- PI controller p' -----------+-- p'^2 drops or marks
//! ```
//! Classic flows respond to the square of the signal to which scalable ones
//! respond, hence the square. L is served first; C is guaranteed a small share
//! of the rate. Names are those of the RFC's appendix A, whose pseudocode this
//! follows; the scheduler, which the appendix leaves open, is a weighted round
//! robin by bytes. Signals are evenly spaced (its `recur`), not random. Left
//! out: Curvy RED (appendix B), and other classifiers that put ECT(0) and other
//! packets into the low-latency queue (section 2.3).

use super::discipline::{CLASS_NAMES, ClassState, Held, Ledger, Queue, Waiting, is_within};
use super::registry::{AqmEntry, Build, Marks, Place, time};
use super::{Aqm, Settings};
use crate::config::{Buffer, RateModel};
use crate::{DropReason, Packet};
use knee_units::registry::{Kind, Parameter};
use knee_units::{Ecn, Time};
use rand_chacha::ChaCha8Rng;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "dualpi2",
    summary: "RFC 9332: a low-latency queue for ECT(1) beside a classic one, coupled.",
    source: "RFC 9332",
    parameters: &[
        time("target", "15 ms", "delay that the classic queue is held at"),
        time("update", "16 ms", "time between updates of the probability"),
        time("rtt_max", "100 ms", "largest RTT that the gains are stable for"),
        Parameter {
            name: "coupling",
            kind: Kind::Number { min: 0.1, max: 100.0 },
            default: "2",
            summary: "coupling factor k between the two queues",
        },
        time("step", "800 us", "delay of the low-latency queue at which marking begins"),
        Parameter {
            name: "range",
            kind: Kind::Time { min: Time::ZERO, max: super::registry::AQM_TIME_MAX },
            default: "400 us",
            summary: "further delay at which everything is marked",
        },
        Parameter {
            name: "classic_share",
            kind: Kind::Part,
            default: "6.25 %",
            summary: "share of the rate that the classic queue has while both wait",
        },
    ],
    presets: &[],
    build: Build { marks: Marks::Always, make: |settings, place| Ok(of(settings, place)) },
};

fn of(settings: &knee_units::registry::Settings, _place: &Place) -> Aqm {
    Aqm::DualPi2(DualPi2 {
        target: settings.time("target"),
        update: settings.time("update"),
        rtt_max: settings.time("rtt_max"),
        coupling: settings.number("coupling"),
        step: settings.time("step"),
        range: settings.duration("range").unwrap_or(Time::ZERO),
        classic_share: settings.part("classic_share").get(),
    })
}

/// DualPI2 (RFC 9332).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2 {
    /// Delay at which the classic queue is held, 15 ms.
    pub target: Time,
    /// Time between updates of the probability, 16 ms; above zero.
    pub update: Time,
    /// Largest RTT for which the gains are stable, 100 ms; above zero.
    pub rtt_max: Time,
    /// Coupling factor k, 2.
    pub coupling: f64,
    /// Delay of the low-latency queue at which its ramp begins, 800 us.
    pub step: Time,
    /// Width of the ramp, 400 us; zero for a step.
    pub range: Time,
    /// Share of the rate for the classic queue while both wait, 1/16.
    pub classic_share: f64,
}

impl Settings for DualPi2 {
    fn assert_possible(&self) {
        assert!(self.update > Time::ZERO, "DualPI2's update period is positive");
        assert!(self.rtt_max > Time::ZERO, "DualPI2's largest RTT is positive");
        assert!((0.0..=1.0).contains(&self.classic_share), "the classic share is a part");
    }

    fn log(&self) -> String {
        format!(",aqm=dualpi2,target_ns={}", self.target.as_nanos())
    }
}

/// Probability p_C up to which ECN-capable classic packets are marked; beyond
/// it they are dropped too (p_Cmax of appendix A, min(1 / k^2, 1)).
fn overload(coupling: f64) -> f64 {
    (1.0 / (coupling * coupling)).min(1.0)
}

/// The base AQM: section 4.2 and figures 3 to 6 of appendix A.
#[derive(Clone, Debug, Default)]
struct Pi {
    /// p', before squaring and coupling.
    probability: f64,
    before: Time,
    next_update: Time,
}

/// Spaces signals evenly (`recur`).
#[derive(Clone, Debug, Default)]
struct Spaced(f64);

impl Spaced {
    fn hits(&mut self, probability: f64) -> bool {
        self.0 += probability;
        let hit = self.0 > 1.0;
        if hit {
            self.0 -= 1.0;
        }
        hit
    }
}

pub(crate) struct DualPi2Queue<P> {
    settings: DualPi2,
    /// Gains per second of delay.
    alpha: f64,
    beta: f64,
    pi: Pi,
    low_latency: Waiting<P>,
    classic: Waiting<P>,
    /// Packets of both classes that have left, were dropped and were marked.
    passed: [ClassState; 2],
    marks: Spaced,
    drops: Spaced,
    /// Bytes by which the classic queue is behind its share; negative if ahead.
    owed: f64,
}

impl<P: Packet> Queue<P> for DualPi2Queue<P> {
    type Settings = DualPi2;

    fn new(settings: &DualPi2, _: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> DualPi2Queue<P> {
        let (update, rtt_max) = (settings.update.as_secs_f64(), settings.rtt_max.as_secs_f64());
        DualPi2Queue {
            settings: *settings,
            // Figure 3: alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max.
            alpha: 0.1 * update / (rtt_max * rtt_max),
            beta: 0.3 / rtt_max,
            pi: Pi { next_update: settings.update, ..Pi::default() },
            low_latency: Waiting::default(),
            classic: Waiting::default(),
            passed: CLASS_NAMES.map(|name| ClassState { name, ..ClassState::default() }),
            marks: Spaced::default(),
            drops: Spaced::default(),
            owed: 0.0,
        }
    }

    fn enqueue(
        &mut self,
        held: Held<P>,
        buffer: Buffer,
        ledger: &mut Ledger<'_, P>,
    ) -> Result<(), P> {
        self.update_until(ledger.now);
        let size = u64::from(held.packet.size());
        if !is_within(buffer, self.bytes() + size, self.packets() + 1) {
            return Err(held.packet);
        }
        // RFC 9331, section 5.1: CE may have been ECT(1).
        match held.packet.ecn() {
            Ecn::Ect1 | Ecn::Ce => self.low_latency.push(held),
            Ecn::NotCapable | Ecn::Ect0 => self.classic.push(held),
        }
        Ok(())
    }

    fn dequeue(&mut self, ledger: &mut Ledger<'_, P>) -> Option<Held<P>> {
        self.update_until(ledger.now);
        loop {
            let (packet, low_latency) = self.next()?;
            let marked = ledger.counters.marked_packets;
            let passed = match low_latency {
                true => self.judge_low_latency(packet, ledger),
                false => self.judge_classic(packet, ledger),
            };
            let class = &mut self.passed[usize::from(!low_latency)];
            class.marked_packets += ledger.counters.marked_packets - marked;
            match &passed {
                Some(held) => class.departed_bytes += u64::from(held.packet.size()),
                None => class.dropped_packets += 1,
            }
            if passed.is_some() {
                return passed;
            }
        }
    }

    fn remove(&mut self) -> Option<P> {
        self.low_latency.pop().or_else(|| self.classic.pop()).map(|held| held.packet)
    }

    fn bytes(&self) -> u64 {
        self.low_latency.bytes() + self.classic.bytes()
    }

    fn packets(&self) -> u64 {
        self.low_latency.packets() + self.classic.packets()
    }

    fn classes(&self, now: Time) -> Vec<ClassState> {
        let with = |(passed, queue): (&ClassState, &Waiting<P>)| ClassState {
            bytes: queue.bytes(),
            packets: queue.packets(),
            delay: queue.age(now),
            ..*passed
        };
        self.passed.iter().zip([&self.low_latency, &self.classic]).map(with).collect()
    }
}

impl<P: Packet> DualPi2Queue<P> {
    /// The scheduler: serves the low-latency queue, unless the classic one is owed
    /// a packet. The debt grows with what the other queue sends ahead of it.
    fn next(&mut self) -> Option<(Held<P>, bool)> {
        let waits = (self.low_latency.packets() > 0, self.classic.packets() > 0);
        let low_latency = match waits {
            (true, true) => self.owed < 1.0,
            (low_latency, _) => low_latency,
        };
        let queue = if low_latency { &mut self.low_latency } else { &mut self.classic };
        let held = queue.pop()?;
        let size = f64::from(held.packet.size());
        self.owed = match (waits, low_latency) {
            ((true, true), true) => self.owed + size * self.settings.classic_share,
            ((true, true), false) => self.owed - size * (1.0 - self.settings.classic_share),
            // No queue is kept waiting.
            _ => 0.0,
        };
        Some((held, low_latency))
    }

    /// Figure 4, the lines for the low-latency queue.
    fn judge_low_latency(
        &mut self,
        mut held: Held<P>,
        ledger: &mut Ledger<'_, P>,
    ) -> Option<Held<P>> {
        let coupled = self.settings.coupling * self.pi.probability;
        if coupled < 1.0 {
            let own = self.ramp(ledger.now.saturating_sub(held.entered));
            if self.marks.hits(own.max(coupled)) {
                mark(&mut held, ledger);
            }
            return Some(held);
        }
        // Overload: drop like the classic queue, mark the rest.
        if self.drops.hits(self.pi.probability * self.pi.probability) {
            ledger.drop(DropReason::Aqm, held.packet);
            return None;
        }
        mark(&mut held, ledger);
        Some(held)
    }

    /// Figure 4, the lines for the classic queue.
    fn judge_classic(&mut self, mut held: Held<P>, ledger: &mut Ledger<'_, P>) -> Option<Held<P>> {
        let probability = self.pi.probability * self.pi.probability;
        if !self.drops.hits(probability) {
            return Some(held);
        }
        let overloaded = probability >= overload(self.settings.coupling);
        if overloaded || !held.packet.ecn().is_capable() {
            ledger.drop(DropReason::Aqm, held.packet);
            return None;
        }
        mark(&mut held, ledger);
        Some(held)
    }

    /// p'_L, `laqm`: a ramp on the packet's own sojourn time. A queue without
    /// another packet is not marked (Th_len), so that slow links are not marked
    /// because of the transmission time of one packet.
    fn ramp(&self, sojourn: Time) -> f64 {
        let DualPi2 { step, range, .. } = self.settings;
        if sojourn <= step || self.low_latency.packets() == 0 {
            return 0.0;
        }
        let above = sojourn.saturating_sub(step).as_secs_f64();
        (above / range.as_secs_f64().max(1e-9)).min(1.0)
    }

    /// Performs the updates due by `now`: the heads of the queues have not
    /// changed since the last event.
    fn update_until(&mut self, now: Time) {
        while self.pi.next_update <= now {
            let at = self.pi.next_update;
            let delay = self.classic.age(at).max(self.low_latency.age(at));
            self.update(delay);
            self.pi.next_update += self.settings.update;
            if delay == Time::ZERO && self.pi.probability == 0.0 {
                // It stays zero until a packet enters.
                let missed = now.saturating_sub(self.pi.next_update).as_nanos();
                let periods = missed / self.settings.update.as_nanos();
                self.pi.next_update += self.settings.update * periods;
            }
        }
    }

    /// Figure 6.
    fn update(&mut self, delay: Time) {
        let error = delay.as_secs_f64() - self.settings.target.as_secs_f64();
        let trend = delay.as_secs_f64() - self.pi.before.as_secs_f64();
        let step = self.alpha * error + self.beta * trend;
        self.pi.probability = (self.pi.probability + step).clamp(0.0, 1.0);
        self.pi.before = delay;
    }
}

fn mark<P: Packet>(held: &mut Held<P>, ledger: &mut Ledger<'_, P>) {
    if held.packet.ecn() != Ecn::Ce {
        held.packet.mark();
        ledger.counters.marked_packets += 1;
    }
}
