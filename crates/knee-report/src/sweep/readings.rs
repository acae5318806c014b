//! Values that a view of a sweep shows at each place: the measure, or its ratio to the
//! measure at another value of the compared setting.

use super::numbers::numbers;
use knee_record::{
    Better, PairedScale, PointGroup, SweepMeasure, SweepPlace, SweepPoint, SweepSummary,
    SweepVerdict, Unit,
};
use std::collections::BTreeMap;

/// The selected view, as indices into the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub measure: usize,
    pub group: usize,
    /// The key whose values are compared.
    pub compare: usize,
    /// The value of that key that the others are divided by; `None` for plain values.
    pub base: Option<usize>,
}

impl View {
    /// Returns its name in the page.
    pub(super) fn name(&self) -> String {
        let base = self.base.map_or_else(String::new, |base| base.to_string());
        format!("{}.{}.{}.{base}", self.measure, self.group, self.compare)
    }
}

/// A value of a view.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// The mean or the ratio; `None` if the event never occurred.
    pub middle: Option<f64>,
    /// Its 95 % interval.
    pub ends: Option<(f64, f64)>,
    /// The value, and its interval or the number of runs in which the event never
    /// occurred.
    pub text: [String; 2],
    /// Whether it is significantly better than every other value of the compared key.
    pub best: bool,
}

/// A sweep's results, indexed by place.
pub(super) struct Readings<'s> {
    pub summary: &'s SweepSummary,
    /// Keys with several values; the first key if none has several.
    pub axes: Vec<usize>,
    /// Positions of each key's values on an axis; `None` for names.
    pub numbers: Vec<Option<Vec<f64>>>,
    points: BTreeMap<&'s [usize], usize>,
    left_out: BTreeMap<&'s [usize], &'s str>,
    verdicts: BTreeMap<(usize, &'s str, &'s str), &'s SweepVerdict>,
}

impl<'s> Readings<'s> {
    pub(super) fn new(summary: &'s SweepSummary) -> Readings<'s> {
        let several = |key: &usize| summary.keys[*key].values.len() > 1;
        let mut axes: Vec<usize> = (0..summary.keys.len()).filter(several).collect();
        if axes.is_empty() {
            axes.push(0);
        }
        let points = summary.points.iter().enumerate();
        let left_out = summary.left_out.iter();
        let verdicts = summary.verdicts.iter();
        let of = |verdict: &'s SweepVerdict| {
            ((verdict.key, verdict.group.as_str(), verdict.measure.as_str()), verdict)
        };
        Readings {
            summary,
            axes,
            numbers: summary.keys.iter().map(numbers).collect(),
            points: points.map(|(number, point)| (point.at.as_slice(), number)).collect(),
            left_out: left_out.map(|one| (one.at.as_slice(), one.reason.as_str())).collect(),
            verdicts: verdicts.map(of).collect(),
        }
    }

    /// Returns the place where every key has its first value.
    pub(super) fn origin(&self) -> Vec<usize> {
        vec![0; self.summary.keys.len()]
    }

    /// Returns all combinations of some keys, with the other keys as in `from`.
    pub(super) fn places(&self, keys: &[usize], from: &[usize]) -> Vec<Vec<usize>> {
        let mut places = vec![from.to_vec()];
        for key in keys {
            let values = 0..self.summary.keys[*key].values.len();
            places = places
                .iter()
                .flat_map(|place| values.clone().map(|value| along(place, *key, value)))
                .collect();
        }
        places
    }

    /// Returns the number of the point at a place.
    pub(super) fn number(&self, place: &[usize]) -> Option<usize> {
        self.points.get(place).copied()
    }

    /// Returns the reason why the combination at a place is not possible.
    pub(super) fn reason(&self, place: &[usize]) -> Option<&'s str> {
        self.left_out.get(place).copied()
    }

    /// `link.a.rate = 10 Mbit/s, flow.a.cc = bbr`.
    pub(super) fn named(&self, place: &[usize], keys: &[usize]) -> String {
        let one = |key: &usize| {
            let key_of = &self.summary.keys[*key];
            format!("{} = {}", key_of.name, key_of.values[place[*key]])
        };
        keys.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn measure(&self, view: &View) -> &'s SweepMeasure {
        &self.summary.measures[view.measure]
    }

    pub(super) fn less_is_better(&self, view: &View) -> bool {
        self.measure(view).better == Better::Less
    }

    /// Returns the verdict on the values that a view compares.
    pub(super) fn verdict(&self, view: &View) -> Option<&'s SweepVerdict> {
        let group = self.summary.groups.get(view.group)?;
        let key = (view.compare, group.as_str(), self.measure(view).name.as_str());
        self.verdicts.get(&key).copied()
    }

    fn judged(&self, view: &View, place: &[usize]) -> Option<&'s SweepPlace> {
        let at = along(place, view.compare, 0);
        self.verdict(view)?.places.iter().find(|judged| judged.at == at)
    }

    fn group(&self, view: &View, place: &[usize]) -> Option<&'s PointGroup> {
        let point: &SweepPoint = &self.summary.points[self.number(place)?];
        let name = self.summary.groups.get(view.group)?;
        point.groups.iter().find(|group| group.group == *name)
    }

    /// Returns the value of a view at a place, if there is one.
    pub(super) fn value(&self, view: &View, place: &[usize]) -> Option<Value> {
        let measure = self.measure(view);
        let found = self.group(view, place)?.measures.get(&measure.name)?;
        let own = place[view.compare];
        let judged = self.judged(view, place);
        let best = judged.is_some_and(|judged| judged.best == Some(own));
        let show = |value: f64| measure.unit.show(value);
        let Some(interval) = found.interval else {
            let text = ["never".to_string(), String::new()];
            return Some(Value { middle: None, ends: None, text, best });
        };
        let Some(base) = view.base else {
            let ends = interval.low.zip(interval.high);
            let more = match found.never {
                0 => range(interval.mean, ends, show),
                never => format!("never in {never} of {}", interval.runs + never),
            };
            let text = [show(interval.mean), more];
            return Some(Value { middle: Some(interval.mean), ends, text, best });
        };
        if own == base {
            let text = [times(1.0), String::new()];
            return Some(Value { middle: Some(1.0), ends: None, text, best });
        }
        let pair = judged?.pair(own, base)?;
        let ratio = pair.estimate.filter(|_| pair.scale == PairedScale::Ratio)?;
        let ends = pair.low.zip(pair.high);
        let text = [times(ratio), range(ratio, ends, times)];
        Some(Value { middle: Some(ratio), ends, text, best })
    }

    /// Formats a value as an axis label.
    pub(super) fn mark(&self, view: &View, value: f64) -> String {
        match view.base {
            Some(_) => times(value),
            None => self.measure(view).unit.show(value),
        }
    }
}

/// Returns the place with another value of one key.
pub(super) fn along(place: &[usize], key: usize, value: usize) -> Vec<usize> {
    let mut other = place.to_vec();
    other[key] = value;
    other
}

/// Formats a ratio to three decimals, as the sentence above the drawing does.
pub(super) fn times(ratio: f64) -> String {
    format!("{} ×", Unit::Number.show((ratio * 1e3).round() / 1e3))
}

/// Formats an interval with its unit once; empty if there is no interval, or if it has
/// no width.
fn range(middle: f64, ends: Option<(f64, f64)>, show: impl Fn(f64) -> String) -> String {
    let Some((low, high)) = ends.filter(|(low, high)| high - low > middle.abs() * 1e-9) else {
        return String::new();
    };
    let (low, high) = (show(low), show(high));
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_string());
    match low.split_once(' ') {
        Some((number, _)) if unit(&low) == unit(&high) => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_its_unit_once() {
        let show = |value: f64| Unit::Seconds.show(value);
        assert_eq!(range(2.0, Some((1.0, 3.0)), show), "1 to 3 s");
        assert_eq!(range(1.0, Some((0.5, 3.0)), show), "500 ms to 3 s");
        assert_eq!(range(1.0, Some((0.5, 2.0)), times), "0.5 to 2 ×");
        assert_eq!(range(1.0, Some((1.0, 1.0)), show), "");
    }
}
