//! What a link's rate would have allowed.

use crate::config::{Config, RateModel, Steps, Trace};
use crate::server::{NANOS_PER_MILLISECOND, OPPORTUNITY_BYTES, period};
use knee_units::{NANOS_PER_SECOND, Rate, Time};

/// Bytes that could have left from the start until `until`, were there
/// always some; what the link is down does not count. Zero: unlimited.
pub(crate) fn capacity_bytes(config: &Config, until: Time) -> u64 {
    let up = capacity_work(&config.rate, until);
    let down: u128 = (config.down.iter())
        .map(|&(from, to)| {
            let until_end = capacity_work(&config.rate, to.min(until));
            until_end - capacity_work(&config.rate, from.min(until))
        })
        .sum();
    ((up - down) / WORK_PER_BYTE) as u64
}

/// Bytes that a rate allows between two times, outages ignored.
pub(crate) fn possible_bytes(rate: &RateModel, from: Time, until: Time) -> u64 {
    let work = capacity_work(rate, until).saturating_sub(capacity_work(rate, from));
    (work / WORK_PER_BYTE) as u64
}

const WORK_PER_BYTE: u128 = 8 * NANOS_PER_SECOND as u128;

/// The same in bit/s x ns, outages ignored.
fn capacity_work(rate: &RateModel, until: Time) -> u128 {
    match rate {
        RateModel::Unlimited => 0,
        RateModel::Constant(rate) => work(*rate, until),
        RateModel::Steps(steps) => steps_work(steps, until),
        RateModel::Trace(trace) => {
            let opportunities = opportunities(trace, until);
            opportunities * u128::from(OPPORTUNITY_BYTES) * WORK_PER_BYTE
        }
    }
}

fn work(rate: Rate, span: Time) -> u128 {
    u128::from(rate.as_bits_per_second()) * u128::from(span.as_nanos())
}

fn steps_work(steps: &Steps<Rate>, until: Time) -> u128 {
    let ends = steps.0.iter().skip(1).map(|(from, _)| *from).chain([Time::MAX]);
    (steps.0.iter().zip(ends))
        .map(|((from, rate), to)| work(*rate, to.min(until).saturating_sub(*from)))
        .sum()
}

/// Opportunities up to and including `until`.
fn opportunities(trace: &Trace, until: Time) -> u128 {
    let period = period(trace);
    let (repetitions, rest) = (until.as_nanos() / period, until.as_nanos() % period);
    let passed = |limit_ns: u64| {
        let limit_ms = limit_ns / NANOS_PER_MILLISECOND;
        trace.opportunities_ms.partition_point(|ms| u64::from(*ms) <= limit_ms) as u128
    };
    u128::from(repetitions) * trace.opportunities_ms.len() as u128 + passed(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Aqm, Buffer, Delay, Loss};
    use std::sync::Arc;

    fn config(rate: RateModel, down: Vec<(Time, Time)>) -> Config {
        let delay = Delay { base: Steps(vec![(Time::ZERO, Time::ZERO)]), jitter: None };
        let (buffer, aqm, loss) = (Buffer::Unlimited, Aqm::DropTail, Loss::None);
        Config { rate, delay, buffer, aqm, loss, policer: None, down }
    }

    #[test]
    fn steps_and_outages() {
        let ms = Time::from_millis;
        let rate = |bytes| Rate::from_bytes_per_second(bytes);
        let steps = Steps(vec![(ms(0), rate(1000)), (ms(500), rate(0)), (ms(700), rate(4000))]);
        let down = vec![(ms(100), ms(200)), (ms(600), ms(800))];
        let config = config(RateModel::Steps(steps), down);
        let at = |t| capacity_bytes(&config, ms(t));
        // 100 until 100 ms; again from 200 to 500: 400; from 800: 4 a ms.
        let expected = [(50, 50), (150, 100), (450, 350), (600, 400), (790, 400), (900, 800)];
        for (t, bytes) in expected {
            assert_eq!(at(t), bytes, "at {t} ms");
        }
    }

    #[test]
    fn traces_count_each_opportunity_once() {
        let trace = Trace { name: "test".into(), opportunities_ms: vec![0, 2, 2, 5] };
        let config = config(RateModel::Trace(Arc::new(trace)), vec![]);
        let at = |t| capacity_bytes(&config, Time::from_millis(t)) / 1500;
        // 0 2 2 5 5 7 7 10 10 …
        let by_time: Vec<u64> = [0, 1, 2, 4, 5, 6, 7, 9, 10].map(at).into();
        assert_eq!(by_time, [1, 1, 3, 3, 5, 5, 7, 7, 9]);
    }
}
