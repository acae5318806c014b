//! What a sweep has at each place, in a view: the value of a measure, or its ratio to
//! that of another value of the setting that is compared.

use super::numbers::numbers;
use knee_record::{
    Better, PairedScale, PointGroup, SweepMeasure, SweepPlace, SweepPoint, SweepSummary,
    SweepVerdict, Unit,
};
use std::collections::BTreeMap;

/// What is shown at once, by indices into the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub measure: usize,
    pub group: usize,
    /// The key whose values are compared.
    pub compare: usize,
    /// The value of that key which all others are divided by; none: values as they are.
    pub base: Option<usize>,
}

impl View {
    /// Its name in the page.
    pub(super) fn name(&self) -> String {
        let base = self.base.map_or_else(String::new, |base| base.to_string());
        format!("{}.{}.{}.{base}", self.measure, self.group, self.compare)
    }
}

/// What a view has at a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Value {
    /// The mean or the ratio; none: it never came about.
    pub middle: Option<f64>,
    /// Its 95 % interval.
    pub ends: Option<(f64, f64)>,
    /// The value, and what qualifies it: its interval, or in how many runs it never came
    /// about.
    pub text: [String; 2],
    /// Better than each other value of what is compared, beyond chance.
    pub best: bool,
}

/// A sweep, by its places.
pub(super) struct Readings<'s> {
    pub summary: &'s SweepSummary,
    /// Keys of which several values were tried; of none the first.
    pub axes: Vec<usize>,
    /// For each key where its values lie on an axis; none: they are names.
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

    /// The place where every key has its first value.
    pub(super) fn origin(&self) -> Vec<usize> {
        vec![0; self.summary.keys.len()]
    }

    /// All values of some keys, everything else as at a place.
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

    /// Which of the points is at a place.
    pub(super) fn number(&self, place: &[usize]) -> Option<usize> {
        self.points.get(place).copied()
    }

    /// Why no scenario can be at a place.
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

    /// What was found out about the values that a view compares.
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

    /// What a view has at a place; none: nothing.
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

    /// As a mark of an axis.
    pub(super) fn mark(&self, view: &View, value: f64) -> String {
        match view.base {
            Some(_) => times(value),
            None => self.measure(view).unit.show(value),
        }
    }
}

/// The place with another value of one key.
pub(super) fn along(place: &[usize], key: usize, value: usize) -> Vec<usize> {
    let mut other = place.to_vec();
    other[key] = value;
    other
}

/// To three decimals, as the sentence above the drawing.
pub(super) fn times(ratio: f64) -> String {
    format!("{} ×", Unit::Number.show((ratio * 1e3).round() / 1e3))
}

/// An interval in words, with its unit once; nothing where there is none, or it has no
/// width.
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
