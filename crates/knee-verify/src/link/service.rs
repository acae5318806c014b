//! Service of a link: the work done until a time, and the time at which some work is done. Work is
//! counted in bit/s x ns, so nothing is rounded.

use crate::parse::Rate;

/// Work of one byte.
pub const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;
const OPPORTUNITY: u128 = 1500 * WORK_PER_BYTE;
const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// Rate of a link over time.
pub enum Service {
    Unlimited,
    Steps(Vec<Step>),
    Trace(Trace),
}

/// A span of constant rate.
pub struct Step {
    from: u64,
    rate: u64,
    /// Work done before it.
    before: u128,
}

/// Opportunities of 1500 bytes. An opportunity at T serves packets that entered before T.
pub struct Trace {
    opportunities_ms: Vec<u64>,
    offset_ns: u64,
}

impl Service {
    pub fn new(rate: &Rate) -> Service {
        match rate {
            Rate::Unlimited => Service::Unlimited,
            Rate::Steps(steps) => Service::Steps(add_up(steps)),
            Rate::Trace { opportunities_ms, offset_ns } => Service::Trace(Trace {
                opportunities_ms: opportunities_ms.clone(),
                offset_ns: *offset_ns,
            }),
        }
    }

    /// Returns the work that could be done until `time` if there were always some.
    pub fn work(&self, time: u64) -> u128 {
        match self {
            Service::Unlimited => 0,
            Service::Steps(steps) => {
                let step = &steps[steps.partition_point(|step| step.from <= time) - 1];
                step.before + u128::from(time - step.from) * u128::from(step.rate)
            }
            Service::Trace(trace) => trace.opportunities(time) * OPPORTUNITY,
        }
    }

    /// Returns the first time at which this much work can be done, or `None` for never.
    pub fn when(&self, work: u128) -> Option<u64> {
        match self {
            Service::Unlimited => Some(0),
            Service::Steps(steps) => {
                let index = steps.partition_point(|step| step.before < work).saturating_sub(1);
                let step = &steps[index];
                let rest = work - step.before.min(work);
                if rest == 0 {
                    return Some(step.from);
                }
                let span = (step.rate > 0).then(|| rest.div_ceil(u128::from(step.rate)))?;
                u64::try_from(u128::from(step.from) + span).ok()
            }
            Service::Trace(_) if work == 0 => Some(0),
            Service::Trace(trace) => trace.time(work.div_ceil(OPPORTUNITY) - 1),
        }
    }

    /// Returns when work beyond `done` that is ready at `ready` begins, or `None` for never.
    pub fn begins(&self, ready: u64, done: u128) -> Option<u64> {
        match self {
            Service::Unlimited => Some(ready),
            Service::Steps(steps) => {
                let from = ready.max(self.when(done)?);
                let index = steps.partition_point(|step| step.from <= from) - 1;
                if steps[index].rate > 0 {
                    return Some(from);
                }
                steps[index..].iter().find(|step| step.rate > 0).map(|step| step.from)
            }
            Service::Trace(trace) => trace.time(done.max(self.work(ready)) / OPPORTUNITY),
        }
    }
}

fn add_up(steps: &[(u64, u64)]) -> Vec<Step> {
    let mut list: Vec<Step> = Vec::with_capacity(steps.len());
    for &(from, rate) in steps {
        let before = list
            .last()
            .map_or(0, |last| last.before + u128::from(from - last.from) * u128::from(last.rate));
        list.push(Step { from, rate, before });
    }
    list
}

impl Trace {
    fn period_ms(&self) -> u64 {
        self.opportunities_ms.last().copied().unwrap_or(1)
    }

    fn count(&self) -> u128 {
        self.opportunities_ms.len() as u128
    }

    /// Returns the number of opportunities of the recording, repeated, up to and including `ns`.
    fn recorded(&self, ns: u64) -> u128 {
        let ms = ns / NANOS_PER_MILLISECOND;
        let (periods, rest) = (ms / self.period_ms(), ms % self.period_ms());
        let passed = self.opportunities_ms.partition_point(|at| *at <= rest);
        u128::from(periods) * self.count() + passed as u128
    }

    /// Returns the number of opportunities before the run began.
    fn skipped(&self) -> u128 {
        self.offset_ns.checked_sub(1).map_or(0, |ns| self.recorded(ns))
    }

    fn opportunities(&self, time: u64) -> u128 {
        self.recorded(time + self.offset_ns) - self.skipped()
    }

    /// Returns when an opportunity comes, by its number.
    fn time(&self, number: u128) -> Option<u64> {
        let number = number + self.skipped();
        let (periods, index) = (number / self.count(), number % self.count());
        let ms = periods * u128::from(self.period_ms())
            + u128::from(self.opportunities_ms[index as usize]);
        let ns = ms * u128::from(NANOS_PER_MILLISECOND) - u128::from(self.offset_ns);
        u64::try_from(ns).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_time_are_inverse_over_steps_with_a_pause() {
        let service = Service::new(&Rate::Steps(vec![(0, 8), (100, 0), (250, 3), (300, 7)]));
        // 800 until the pause, 150 more until 300, then 7 per nanosecond.
        assert_eq!([0, 100, 249, 300, 310].map(|t| service.work(t)), [0, 800, 800, 950, 1020]);
        let times = [0, 1, 800, 801, 803, 804, 951, 1020].map(|work| service.when(work));
        assert_eq!(times.map(|t| t.unwrap_or(0)), [0, 1, 100, 251, 251, 252, 301, 310]);
        assert_eq!(
            [(50, 0), (100, 0), (0, 800)].map(|(at, done)| service.begins(at, done)),
            [Some(50), Some(250), Some(250)]
        );
    }

    #[test]
    fn a_rate_of_zero_at_the_end_never_does_more() {
        let service = Service::new(&Rate::Steps(vec![(0, 8), (100, 0)]));
        assert_eq!(service.when(801), None);
        assert_eq!(service.begins(100, 0), None);
    }

    #[test]
    fn a_trace_repeats_and_may_begin_in_its_middle() {
        let trace = |offset_ms| {
            let offset_ns = offset_ms * NANOS_PER_MILLISECOND;
            Service::new(&Rate::Trace { opportunities_ms: vec![0, 2, 2, 5], offset_ns })
        };
        let ms = |service: &Service| {
            let times = (1..=7).map(|n| service.when(n * OPPORTUNITY).unwrap_or(0));
            times.map(|time| time / NANOS_PER_MILLISECOND).collect::<Vec<u64>>()
        };
        assert_eq!(ms(&trace(0)), [0, 2, 2, 5, 5, 7, 7]);
        assert_eq!(ms(&trace(2)), [0, 0, 3, 3, 5, 5, 8]);
        let service = trace(2);
        for n in 1..50 {
            let time = service.when(n * OPPORTUNITY).unwrap_or(0);
            assert!(service.work(time) >= n * OPPORTUNITY);
            assert!(time == 0 || service.work(time - 1) < n * OPPORTUNITY);
        }
    }
}
