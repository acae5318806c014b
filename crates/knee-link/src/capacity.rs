//! The amount that a link's rate allows over time.

use crate::config::{RateModel, Trace};
use crate::server::{NANOS_PER_MILLISECOND, OPPORTUNITY_BYTES, Server, period};
use knee_units::{NANOS_PER_SECOND, Rate, Time};
use std::sync::Arc;

/// The amount that a rate allows to leave, integrated over time; zero during outages.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    curve: Curve,
    /// Outages, each with the work lost in the earlier ones; ascending, disjoint.
    outages: Vec<(Time, Time, u128)>,
}

/// Work is counted in bit/s x ns.
#[derive(Clone, Debug, PartialEq)]
enum Curve {
    /// Start time of each rate, the rate, and the possible work before it.
    Steps(Vec<(Time, Rate, u128)>),
    Trace(Arc<Trace>),
}

const WORK_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

impl Capacity {
    /// Creates the capacity of a rate with outages `[from, until)`, which are
    /// ascending and disjoint; `None` for an unlimited rate.
    pub fn new(rate: &RateModel, outages: &[(Time, Time)]) -> Option<Capacity> {
        let curve = match rate {
            RateModel::Unlimited => return None,
            RateModel::Constant(rate) => Curve::of_steps(&[(Time::ZERO, *rate)]),
            RateModel::Steps(steps) => Curve::of_steps(&steps.0),
            RateModel::Trace(trace) => Curve::Trace(trace.clone()),
        };
        let mut lost = 0;
        let with_cost = |&(from, until): &(Time, Time)| {
            let before = lost;
            lost += curve.work(until) - curve.work(from);
            (from, until, before)
        };
        let outages = outages.iter().map(with_cost).collect();
        Some(Capacity { curve, outages })
    }

    /// Returns the whole bytes that could leave after `from` and until `until`,
    /// if there were always some.
    pub fn whole_bytes(&self, from: Time, until: Time) -> u64 {
        (self.work_between(from, until) / WORK_PER_BYTE) as u64
    }

    /// Returns the bytes that could leave after `from` and until `until`, including
    /// the fraction of the last one.
    pub fn bytes(&self, from: Time, until: Time) -> f64 {
        self.work_between(from, until) as f64 / WORK_PER_BYTE as f64
    }

    /// Returns the whole bytes used of what could leave until `now`: those of
    /// `accepted` packets that have left, and the transmitted part of the one
    /// in transmission. Between two times it never grows by more than
    /// [`whole_bytes`](Self::whole_bytes).
    pub(crate) fn used_bytes(&self, now: Time, accepted: u64, server: &Server) -> u64 {
        let (end, spare) = server.end();
        let possible = self.work_between(Time::ZERO, now);
        let accepted = u128::from(accepted) * WORK_PER_BYTE;
        let waiting = match end {
            // Some will never leave, so it is unknown when the rest does.
            Time::MAX => return accepted.min(possible).div_euclid(WORK_PER_BYTE) as u64,
            end if end < now => 0,
            end => (self.curve.work(end) - self.curve.work(now)).saturating_add_signed(-spare),
        };
        let missed = possible.saturating_sub(accepted.saturating_sub(waiting));
        (possible / WORK_PER_BYTE).saturating_sub(missed / WORK_PER_BYTE) as u64
    }

    fn work_between(&self, from: Time, until: Time) -> u128 {
        self.work(until).saturating_sub(self.work(from))
    }

    fn work(&self, until: Time) -> u128 {
        let begun = self.outages.partition_point(|(from, _, _)| *from < until);
        let lost = self.outages[..begun].last().map_or(0, |(from, to, before)| {
            before + self.curve.work(until.min(*to)) - self.curve.work(*from)
        });
        self.curve.work(until) - lost
    }
}

impl Curve {
    fn of_steps(steps: &[(Time, Rate)]) -> Curve {
        let mut pieces: Vec<(Time, Rate, u128)> = Vec::with_capacity(steps.len());
        for (from, rate) in steps {
            let before = pieces.last().map_or(0, |piece| work_of(piece, *from));
            pieces.push((*from, *rate, before));
        }
        Curve::Steps(pieces)
    }

    /// Returns the work possible until a time, ignoring outages.
    fn work(&self, until: Time) -> u128 {
        match self {
            Curve::Steps(pieces) => {
                let begun = pieces.partition_point(|(from, _, _)| *from <= until);
                pieces[..begun].last().map_or(0, |piece| work_of(piece, until))
            }
            Curve::Trace(trace) => {
                opportunities(trace, until) * u128::from(OPPORTUNITY_BYTES) * WORK_PER_BYTE
            }
        }
    }
}

fn work_of((from, rate, before): &(Time, Rate, u128), until: Time) -> u128 {
    let span = until.saturating_sub(*from).as_nanos();
    before + u128::from(rate.as_bits_per_second()) * u128::from(span)
}

/// Returns the opportunities of a trace from its start up to and including `until`.
fn opportunities(trace: &Trace, until: Time) -> u128 {
    let (until, period) = (until.saturating_add(trace.offset).as_nanos(), period(trace));
    let (repetitions, rest) = (until / period, until % period);
    let passed = |limit_ns: u64| {
        let limit_ms = limit_ns / NANOS_PER_MILLISECOND;
        trace.opportunities_ms.partition_point(|ms| u64::from(*ms) <= limit_ms) as u128
    };
    u128::from(repetitions) * trace.opportunities_ms.len() as u128 + passed(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Steps;

    fn capacity(rate: RateModel, down: Vec<(Time, Time)>) -> Capacity {
        Capacity::new(&rate, &down).expect("it has a rate")
    }

    #[test]
    fn steps_and_outages() {
        let ms = Time::from_millis;
        let rate = |bytes| Rate::from_bytes_per_second(bytes);
        let steps = Steps(vec![(ms(0), rate(1000)), (ms(500), rate(0)), (ms(700), rate(4000))]);
        let down = vec![(ms(100), ms(200)), (ms(600), ms(800))];
        let capacity = capacity(RateModel::Steps(steps), down);
        let at = |t| capacity.whole_bytes(Time::ZERO, ms(t));
        // 100 until 100 ms; again from 200 to 500: 400; from 800: 4 per ms.
        let expected = [(50, 50), (150, 100), (450, 350), (600, 400), (790, 400), (900, 800)];
        for (t, bytes) in expected {
            assert_eq!(at(t), bytes, "at {t} ms");
        }
    }

    fn trace(offset_ms: u64) -> Trace {
        let (name, offset) = ("test".into(), Time::from_millis(offset_ms));
        Trace { name, opportunities_ms: vec![0, 2, 2, 5], offset }
    }

    #[test]
    fn traces_count_each_opportunity_once() {
        let trace = trace(0);
        let capacity = capacity(RateModel::Trace(Arc::new(trace)), vec![]);
        let at = |t| capacity.whole_bytes(Time::ZERO, Time::from_millis(t)) / 1500;
        // 0 2 2 5 5 7 7 10 10 …: the first finds no packet that was ready before.
        let by_time: Vec<u64> = [0, 1, 2, 4, 5, 6, 7, 9, 10].map(at).into();
        assert_eq!(by_time, [0, 0, 2, 2, 4, 4, 6, 6, 8]);
    }

    /// From 4 ms: 5 5 7 7 10 10 …, with an outage from 2 to 5.
    #[test]
    fn a_trace_begins_at_its_offset() {
        let ms = Time::from_millis;
        let rate = RateModel::Trace(Arc::new(trace(4)));
        let at = |capacity: &Capacity, t| capacity.whole_bytes(Time::ZERO, ms(t)) / 1500;
        let whole = capacity(rate.clone(), vec![]);
        assert_eq!([0, 1, 2, 3, 6].map(|t| at(&whole, t)), [0, 2, 2, 4, 6]);
        let cut = capacity(rate, vec![(ms(2), ms(5))]);
        assert_eq!([0, 1, 2, 3, 6].map(|t| at(&cut, t)), [0, 2, 2, 2, 4]);
        assert_eq!(cut.bytes(ms(2), ms(6)), 3000.0);
    }
}
