//! The page of a comparison: settings in which the sides differ, each side against the first by the
//! relevant measures, and all sides in one plane and over time.

mod forest;
mod series;

pub use series::ComparedSeries;

use crate::ReportError;
use crate::chart::{Chart, style};
use crate::drawing::{Drawing, WIDTH};
use crate::fitted::Fitted;
use crate::page::{CHART_SCRIPT, SCRIPT, STYLE, environment, json_in_html};
use crate::scatter::{Mark, Words, scatter};
use crate::words;
use knee_present::words::{NONE, rate, time_us};
use knee_present::{Table, text};
use knee_record::{Judgement, MeasureCompared, PointMeasure, SideAgainst, Unit};
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/compared.html");
const OWN_STYLE: &str = include_str!("../assets/rank.css");

/// Input of the comparison page.
#[derive(Clone, Debug)]
pub struct ComparedPage<'a> {
    /// The compared runs as they can be typed; the first is the baseline.
    pub directories: &'a [String],
    /// Short names of the sides.
    pub names: &'a [String],
    /// Number of runs of each side.
    pub runs: &'a [usize],
    /// Settings that differ, with the value of each side.
    pub given: Vec<(&'a str, &'a [Option<String>])>,
    /// Sentences with the result.
    pub says: &'a [String],
    /// Measures of each group of flows.
    pub measures: &'a [MeasureCompared],
    /// Runs over time, for sides that have records.
    pub series: &'a [ComparedSeries],
    /// Command that repeats the comparison.
    pub command: &'a str,
}

/// Data that the page embeds for its script.
#[derive(Serialize)]
struct Data<'a> {
    #[serde(flatten)]
    of: &'a crate::series::Embedded,
    charts: &'a [Chart],
}

/// Returns the page of a comparison as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn compared_page(page: &ComparedPage<'_>) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("compared.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), OWN_STYLE].join("\n")),
        script => Value::from_safe_string([CHART_SCRIPT, SCRIPT].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("manifest.json"),
    };
    let (embedded, charts) = series::drawn(page.series);
    let draw = |chart: &Chart| {
        let svg = Value::from_safe_string(chart.svg(&embedded, true));
        minijinja::context! { name => chart.name, title => title(&chart.name), svg }
    };
    let drawings: Vec<Value> = charts.iter().map(draw).collect();
    let data = Value::from_safe_string(json_in_html(&Data { of: &embedded, charts: &charts })?);
    let first = first_looked_at(page.measures);
    let context = minijinja::context! {
        assets, drawings, data,
        names => page.names,
        says => page.says,
        command => page.command,
        sides => sides(page),
        repeats => page.runs.iter().any(|runs| *runs > 1),
        given => given(page),
        forest => Fitted::new(|narrow| forest::drawing(page.names, &first, narrow)),
        plane => Fitted::new(|narrow| plane(page.names, page.measures, narrow)),
        tables => tables(page),
        left_out => page.names.len() - page.series.len(),
    };
    Ok(environment.get_template("compared.html")?.render(context)?)
}

/// Largest number of groups drawn one by one; if there are more, all flows are drawn together.
const GROUPS_MAX: usize = 3;

/// Returns the measures shown first: those of the groups if there are few, otherwise those of all
/// flows together.
fn first_looked_at(measures: &[MeasureCompared]) -> Vec<&MeasureCompared> {
    let mut groups: Vec<&str> = measures.iter().map(|one| one.group.as_str()).collect();
    groups.dedup();
    groups.retain(|group| *group != "*");
    let single = (1..=GROUPS_MAX).contains(&groups.len());
    let wanted = |one: &&MeasureCompared| one.first && (one.group != "*") == single;
    measures.iter().filter(wanted).collect()
}

/// A figure of a comparison that can be a separate file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ComparedFigure {
    /// Goodput over RTT.
    DelayThroughput,
    /// Each side against the first, measure by measure.
    Against,
}

/// Returns a figure of the comparison page as an SVG file in a palette for print, `pixels` wide.
/// `None` if there is nothing to draw.
pub fn compared_svg(
    names: &[String],
    measures: &[MeasureCompared],
    figure: ComparedFigure,
    pixels: f64,
) -> Option<String> {
    let first = first_looked_at(measures);
    let drawing = match figure {
        ComparedFigure::DelayThroughput => plane(names, measures, false),
        ComparedFigure::Against => forest::drawing(names, &first, false),
    };
    Some(drawing?.file(pixels))
}

fn title(chart: &str) -> &'static str {
    match chart {
        "rate" => "Goodput",
        "rtt" => "Round-trip time",
        _ => "Distribution of the RTT",
    }
}

/// Returns colour, name, directory and number of runs of each side.
fn sides(page: &ComparedPage<'_>) -> Vec<Value> {
    let all = page.names.iter().zip(page.directories).zip(page.runs).enumerate();
    let side = |(at, ((name, directory), runs))| {
        let colour = crate::scatter::colour(at);
        minijinja::context! { colour, name, directory, runs }
    };
    all.map(side).collect()
}

fn given(page: &ComparedPage<'_>) -> Table {
    let heads = std::iter::once(text("what differs")).chain(page.names.iter().map(text));
    let row = |(what, values): &(&str, &[Option<String>])| {
        let values = values.iter().map(|value| value.clone().unwrap_or_else(|| NONE.to_string()));
        std::iter::once(what.to_string()).chain(values).collect::<Vec<_>>()
    };
    Table::new(heads).with_rows(page.given.iter().map(row))
}

/// Draws goodput over the 95th percentile of the RTT, all flows of a side together.
fn plane(names: &[String], measures: &[MeasureCompared], narrow: bool) -> Option<Drawing> {
    let of = |name: &str| {
        let own = measures.iter().filter(|one| one.measure.name == name);
        let (all, groups): (Vec<_>, Vec<_>) = own.partition(|one| one.group == "*");
        all.first().or(groups.first()).copied()
    };
    let (goodput, rtt) = (of("goodput_bps")?, of("rtt_p95_s")?);
    let all = names.iter().zip(goodput.by_run.iter().zip(&rtt.by_run)).enumerate();
    let marks = all.map(|(place, (name, (rates, delays)))| {
        let points = delays.iter().zip(rates);
        let points =
            points.filter_map(|(delay, rate)| Some((delay.as_ref()? * 1e3, rate.as_ref()? / 1e6)));
        Mark { place, name, strong: place == 0, points: points.collect() }
    });
    let marks: Vec<Mark<'_>> = marks.filter(|mark| !mark.points.is_empty()).collect();
    let words = Words {
        label: "goodput over RTT, all flows of each together".to_string(),
        x: "RTT, 95th percentile (ms)".to_string(),
        y: "goodput (Mbit/s)".to_string(),
        title: &|name, (x, y)| {
            format!("{name}: {} at {}", rate(Some(y * 1e6)), time_us(Some(x * 1e3)))
        },
    };
    let size = if narrow { [400.0, 340.0] } else { [WIDTH, 400.0] };
    if marks.len() < 2 { None } else { scatter(size, &marks, None, &words) }
}

/// All measures of one group of flows.
#[derive(Serialize)]
struct OfGroup {
    group: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    measure: String,
    cells: Vec<Cell>,
}

/// The value of a side, and how it compares with the first.
#[derive(Serialize)]
struct Cell {
    value: String,
    against: String,
    word: String,
    /// Class in the style sheet: `better`, `worse` or empty.
    class: &'static str,
}

fn tables(page: &ComparedPage<'_>) -> Vec<OfGroup> {
    let mut tables: Vec<OfGroup> = Vec::new();
    let all_zero =
        |one: &&MeasureCompared| one.by_run.iter().flatten().all(|value| *value == Some(0.0));
    for one in page.measures.iter().filter(|one| !all_zero(one)) {
        let group = if one.group == "*" { "All flows" } else { &one.group };
        let cells = one
            .values
            .iter()
            .zip(&one.against)
            .map(|(value, against)| cell(one.measure.unit, value.as_ref(), against.as_ref()));
        let row = Row { measure: one.measure.title.clone(), cells: cells.collect() };
        match tables.iter_mut().find(|table| table.group == group) {
            Some(table) => table.rows.push(row),
            None => tables.push(OfGroup { group: group.to_string(), rows: vec![row] }),
        }
    }
    tables
}

fn cell(unit: Unit, value: Option<&PointMeasure>, against: Option<&SideAgainst>) -> Cell {
    let words = against.map(|against| (against.word.to_string(), class(against.word)));
    let (word, class) = words.unwrap_or_default();
    let against = against.map_or_else(String::new, |against| against.size(unit));
    Cell {
        value: value.map_or_else(|| NONE.to_string(), |value| shown(unit, value)),
        against,
        word,
        class,
    }
}

fn class(word: Judgement) -> &'static str {
    match word {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        _ => "",
    }
}

/// Returns the mean with its interval, or the number of runs in which the event never occurred.
fn shown(unit: Unit, value: &PointMeasure) -> String {
    let Some(interval) = value.interval else { return unit.show(f64::INFINITY) };
    let mean = unit.show(interval.mean);
    let wide = |(low, high): &(f64, f64)| high - low > interval.mean.abs() * 1e-9;
    match (value.never, interval.low.zip(interval.high).filter(wide)) {
        (0, Some((low, high))) => format!("{mean} ({} to {})", unit.show(low), unit.show(high)),
        (0, None) => mean,
        (never, _) => format!("{mean}, never in {never} of {}", interval.runs + never),
    }
}
