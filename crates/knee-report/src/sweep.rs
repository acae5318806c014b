//! The page of a sweep: one measure at a time, as a map over two settings or a chart over one,
//! drawn by the page's script from the summary.
//!
//! The script only places and colours. The text of values, the positions of settings on an axis and
//! the initial view are computed here.

use crate::ReportError;
use crate::page::{environment, json_in_html};
use crate::words;
use knee_record::{PairedScale, PointMeasure, SweepKey, SweepSummary, Unit};
use knee_units::{Bytes, Fraction, Rate, Time};
use minijinja::Value;
use serde::Serialize;
use std::collections::BTreeMap;

const TEMPLATE: &str = include_str!("../assets/sweep.html");
const STYLE: &str = include_str!("../assets/report.css");
const OWN_STYLE: &str = include_str!("../assets/sweep.css");
const SCRIPT: &str = include_str!("../assets/sweep.js");

/// Data for the script: the summary as in `sweep.json`, and how to show it.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    summary: &'a SweepSummary,
    page: Shown<'a>,
}

/// The value at a place, and its qualification: the interval, or the number of runs in which the
/// event never occurred.
type Text = [String; 2];

#[derive(Serialize)]
struct Shown<'a> {
    first: First,
    /// For each key, the positions of its values on an axis; null if they are names.
    numbers: Vec<Option<Vec<f64>>>,
    /// For each point and group, the text of each measure.
    values: Vec<Vec<BTreeMap<&'a str, Text>>>,
    /// For each verdict, place and pair, the text of the ratio; null if there is none.
    ratios: Vec<Vec<Vec<Option<Text>>>>,
}

/// The initial view: indices of a measure, a group and keys.
#[derive(Debug, PartialEq, Serialize)]
struct First {
    /// The measure that most points have.
    measure: usize,
    /// All flows, if there are several groups.
    group: usize,
    /// Horizontal axis: a key with numbers, if there is one.
    x: usize,
    /// Vertical axis; null if only one key varies.
    y: Option<usize>,
    /// Key whose values are compared: the headline's, otherwise one with names.
    compare: usize,
}

/// Returns the page of a sweep as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn sweep_page(summary: &SweepSummary) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("sweep.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, OWN_STYLE].join("\n")),
        script => Value::from_safe_string(SCRIPT.to_string()),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("origin.json"),
    };
    let sweep = Value::from_serialize(summary);
    let data = Data { summary, page: shown(summary) };
    let data = Value::from_safe_string(json_in_html(&data)?);
    let template = environment.get_template("sweep.html")?;
    Ok(template.render(minijinja::context! { sweep, data, assets })?)
}

fn shown(summary: &SweepSummary) -> Shown<'_> {
    let numbers: Vec<Option<Vec<f64>>> = summary.keys.iter().map(numbers).collect();
    let points = summary.points.iter();
    Shown {
        first: first(summary, &numbers),
        values: points
            .map(|point| point.groups.iter().map(|g| texts(summary, &g.measures)).collect())
            .collect(),
        ratios: ratios(summary),
        numbers,
    }
}

fn first(summary: &SweepSummary, numbers: &[Option<Vec<f64>>]) -> First {
    let mut axes: Vec<usize> =
        (0..summary.keys.len()).filter(|key| summary.keys[*key].values.len() > 1).collect();
    if axes.is_empty() {
        axes.push(0);
    }
    let named = |key: &usize| numbers.get(*key).is_none_or(Option::is_none);
    // A summary written before headlines existed compares names.
    let about = summary.about.filter(|key| axes.contains(key));
    let compare = about.or_else(|| axes.iter().copied().find(named)).unwrap_or(axes[0]);
    let other = |than: usize| axes.iter().copied().find(|key| *key != than);
    let numeric = axes.iter().copied().find(|key| !named(key) && *key != compare);
    let numeric = numeric.or_else(|| axes.iter().copied().find(|key| !named(key)));
    let x = numeric.or_else(|| other(compare)).unwrap_or(compare);
    let points_with = |name: &str| {
        let has = |groups: &[knee_record::PointGroup]| {
            groups.iter().any(|g| g.measures.contains_key(name))
        };
        summary.points.iter().filter(|point| has(&point.groups)).count()
    };
    let spread = summary.measures.iter().map(|measure| points_with(&measure.name)).enumerate();
    // The first of equals, which is what an application waits for.
    let most = spread.rev().max_by_key(|(_, points)| *points);
    First {
        measure: most.map_or(0, |(measure, _)| measure),
        group: summary.groups.len().saturating_sub(1),
        x,
        y: if x == compare { other(x) } else { Some(compare) },
        compare,
    }
}

/// Returns the positions of a key's values on an axis, in the base unit; `None` if one is not a
/// number, or if they are different quantities.
fn numbers(key: &SweepKey) -> Option<Vec<f64>> {
    let read: Vec<(String, f64)> =
        key.values.iter().map(|text| number(text)).collect::<Option<_>>()?;
    let same = read.windows(2).all(|pair| pair[0].0 == pair[1].0);
    same.then(|| read.into_iter().map(|(_, number)| number).collect())
}

/// Parses the kind of a quantity and its value.
fn number(text: &str) -> Option<(String, f64)> {
    let of = |what: &str, value: f64| Some((what.to_string(), value));
    if let Ok(rate) = text.parse::<Rate>() {
        return of("rate", rate.as_bits_per_second() as f64);
    }
    if let Ok(time) = text.parse::<Time>() {
        return of("time", time.as_secs_f64());
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return of("bytes", bytes.get() as f64);
    }
    if let Ok(fraction) = text.parse::<Fraction>() {
        return of("fraction", fraction.get());
    }
    // A plain number, or one with a unit of the key's own: packets, BDP.
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let unit_is_word = unit.chars().all(|c| c.is_alphabetic());
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite() && unit_is_word)?;
    of(unit, value)
}

fn texts<'a>(
    summary: &SweepSummary,
    measures: &'a BTreeMap<String, PointMeasure>,
) -> BTreeMap<&'a str, Text> {
    let text = |(name, found): (&'a String, &PointMeasure)| {
        let measure = summary.measures.iter().find(|measure| measure.name == *name)?;
        Some((name.as_str(), value(measure.unit, found)))
    };
    measures.iter().filter_map(text).collect()
}

fn value(unit: Unit, found: &PointMeasure) -> Text {
    let show = |value: f64| unit.show(value);
    let Some(interval) = found.interval else {
        return ["never".to_string(), String::new()];
    };
    let more = match (found.never, interval.low.zip(interval.high)) {
        (0, ends) => range(interval.mean, ends, show),
        (never, _) => format!("never in {never} of {}", interval.runs + never),
    };
    [show(interval.mean), more]
}

/// Formats an interval; empty if there is none, or if it has no width.
fn range(middle: f64, ends: Option<(f64, f64)>, show: impl Fn(f64) -> String) -> String {
    let wide = ends.filter(|(low, high)| high - low > middle.abs() * 1e-9);
    wide.map_or_else(String::new, |(low, high)| format!("{} to {}", show(low), show(high)))
}

fn ratios(summary: &SweepSummary) -> Vec<Vec<Vec<Option<Text>>>> {
    // Rounded to three decimals, as in the sentence above the map.
    let show = |value: f64| format!("{} ×", Unit::Number.show((value * 1e3).round() / 1e3));
    let text = |pair: &knee_record::SweepPair| {
        let of = pair.compared;
        let estimate = of.estimate.filter(|_| of.scale == PairedScale::Ratio)?;
        Some([show(estimate), range(estimate, of.low.zip(of.high), show)])
    };
    let verdicts = summary.verdicts.iter();
    verdicts
        .map(|verdict| {
            verdict.places.iter().map(|place| place.pairs.iter().map(text).collect()).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> SweepKey {
        let values = values.iter().map(|value| value.to_string()).collect();
        SweepKey { name: "link.bottleneck.x".to_string(), values }
    }

    /// Values of SI prefixes.
    #[test]
    fn values_of_one_quantity_lie_on_an_axis_whatever_their_units() {
        assert_eq!(
            numbers(&key(&["500 kbit/s", "10 Mbit/s", "1 Gbit/s"])),
            Some(vec![5e5, 1e7, 1e9])
        );
        assert_eq!(numbers(&key(&["20 ms", "2 s"])), Some(vec![0.02, 2.0]));
        assert_eq!(numbers(&key(&["0.5 BDP", "4 BDP"])), Some(vec![0.5, 4.0]));
        assert_eq!(numbers(&key(&["1", "16"])), Some(vec![1.0, 16.0]));
        assert_eq!(numbers(&key(&["0.5 %", "2 %"])), Some(vec![0.005, 0.02]));
    }

    #[test]
    fn names_and_mixed_quantities_have_no_axis() {
        assert_eq!(numbers(&key(&["bbr", "cubic"])), None);
        assert_eq!(numbers(&key(&["20 ms", "1 BDP"])), None);
        assert_eq!(numbers(&key(&["inf", "1"])), None);
    }
}
