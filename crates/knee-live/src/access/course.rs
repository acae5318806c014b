//! Transfers over time, in steps that grow with the span: a log is read once, and its span is not
//! known before.

use crate::cells::Size;
use knee_foreign::Transfer;
use knee_record::{LogCourse, LogPoint};
use knee_units::statistics::Sketch;
use std::collections::BTreeMap;

/// Lengths of a step, seconds; beyond them each is twice the one before.
const STEPS_S: [i64; 8] = [1, 10, 60, 300, 900, 3600, 6 * 3600, 24 * 3600];
/// A course has fewer steps.
const POINTS_MAX: i64 = 240;

/// Sums over the transfers of a step.
#[derive(Clone, Debug, Default)]
struct Step {
    transfers: u64,
    bytes: u64,
    throughput_bps: Sketch,
    time_us: Sketch,
}

/// Transfers by steps of time.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Number of the length of a step.
    length: u32,
    /// Steps by their number.
    steps: BTreeMap<i64, Step>,
}

/// Returns the length of a step by its number, seconds.
fn length_s(number: u32) -> i64 {
    let last = STEPS_S.len() as u32 - 1;
    STEPS_S[number.min(last) as usize] << number.saturating_sub(last).min(20)
}

impl Course {
    /// Adds a transfer at a time in seconds.
    pub fn add(&mut self, at_s: i64, one: &Transfer) {
        let key = at_s.div_euclid(length_s(self.length));
        let step = self.steps.entry(key).or_default();
        step.transfers += 1;
        step.bytes = step.bytes.saturating_add(one.bytes);
        if let Some(duration) = one.duration_ns.filter(|duration| *duration > 0) {
            match Size::of(one.bytes) {
                Size::Large => {
                    step.throughput_bps.add(one.bytes as f64 * 8e9 / duration as f64);
                }
                Size::Small => step.time_us.add(duration as f64 / 1e3),
            }
        }
        while self.span() >= POINTS_MAX {
            self.coarsen();
        }
    }

    /// Returns the number of steps from the first to the last.
    fn span(&self) -> i64 {
        let ends = self.steps.first_key_value().zip(self.steps.last_key_value());
        ends.map_or(0, |((first, _), (last, _))| last - first)
    }

    /// Merges steps into those of the next length.
    fn coarsen(&mut self) {
        let before = length_s(self.length);
        self.length += 1;
        let now = length_s(self.length);
        let mut steps: BTreeMap<i64, Step> = BTreeMap::new();
        for (key, step) in std::mem::take(&mut self.steps) {
            let merged = steps.entry((key * before).div_euclid(now)).or_default();
            merged.transfers += step.transfers;
            merged.bytes = merged.bytes.saturating_add(step.bytes);
            merged.throughput_bps.merge(&step.throughput_bps);
            merged.time_us.merge(&step.time_us);
        }
        self.steps = steps;
    }

    pub fn points(&self) -> LogCourse {
        let step_s = length_s(self.length);
        let points = self.steps.iter().map(|(key, step)| LogPoint {
            unix_s: key * step_s,
            transfers: step.transfers,
            bytes: step.bytes,
            throughput_bps: step.throughput_bps.interpolated(0.5),
            time_us: step.time_us.interpolated(0.5),
        });
        LogCourse { step_s: step_s.unsigned_abs(), points: points.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the order of the times, the steps are few and nothing is lost.
    #[test]
    fn steps_grow_with_the_span() {
        let one = Transfer { bytes: 5, duration_ns: Some(1000), ..Transfer::default() };
        for (times, step_s) in [
            (&[100, 101, 339][..], 1),
            (&[100, 340], 10),
            (&[340, 100], 10),
            (&[0, 1_000_000], 3 * 3600),
            (&[-5, 90_000_000_000], 86_400 << 13),
        ] {
            let mut course = Course::default();
            times.iter().for_each(|at| course.add(*at, &one));
            let points = course.points();
            let transfers: u64 = points.points.iter().map(|point| point.transfers).sum();
            assert_eq!(transfers, times.len() as u64);
            assert!(points.points.is_sorted_by(|a, b| a.unix_s < b.unix_s));
            let step = points.step_s as i64;
            let span = points.points[points.points.len() - 1].unix_s - points.points[0].unix_s;
            assert!(span / step < POINTS_MAX, "{points:?}");
            assert!(points.points.iter().all(|point| {
                times.iter().any(|at| (point.unix_s..point.unix_s + step).contains(at))
            }));
            if step_s < 3600 {
                assert_eq!(points.step_s, step_s, "{times:?}");
            }
        }
    }
}
