//! The page of a sweep: one measure at a time as a map over two settings, or a chart over
//! one.
//!
//! All that the page can show is drawn here. The page's script puts into place what was
//! chosen: a map, and a view's cells in it, or a view's chart.

mod chart;
mod map;
mod numbers;
mod readings;

use crate::ReportError;
use crate::chart::style;
use crate::drawing::{Drawing, escaped};
use crate::page::{CHART_SCRIPT, SCRIPT, STYLE, environment, json_in_html};
use crate::words;
use knee_present::words::{capitalised, quoted};
use knee_record::{SweepMeasure, SweepSummary};
use map::Shades;
use minijinja::Value;
use readings::{Readings, View, times};
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/sweep.html");
const OWN_STYLE: &str = include_str!("../assets/sweep.css");
/// What is in the drawings of a sweep alone.
const FIGURE_STYLE: &str = include_str!("../assets/sweep-figure.css");
const OWN_SCRIPT: &str = include_str!("../assets/sweep.js");
/// In place of a cell's outline: no value and no unit has it.
const OUTLINE_SIGN: &str = "~";
/// Between the maps of a file of its own.
const BETWEEN: f64 = 34.0;

/// What the page shows at first: indices of a measure, a group and keys.
#[derive(Debug, PartialEq)]
struct First {
    /// The one that most points have.
    measure: usize,
    /// The one that is varied; else all flows, where there are several groups.
    group: usize,
    /// To the right: numbers, if some key has them.
    x: usize,
    /// Downwards; none: one key alone varies.
    y: Option<usize>,
    /// Whose values are compared: those that the headline is about, else names.
    compare: usize,
}

impl First {
    fn view(&self) -> View {
        let First { measure, group, compare, .. } = *self;
        View { measure, group, compare, base: None }
    }
}

/// Something to choose from.
#[derive(Serialize)]
struct Choice {
    label: &'static str,
    name: String,
    /// Shown where the values of this key are compared; none: always.
    compare: Option<usize>,
    options: Vec<(String, String)>,
    chosen: String,
}

/// What the script holds until it is chosen, by its name.
#[derive(Serialize)]
struct Held {
    kind: &'static str,
    name: String,
    markup: Value,
}

/// A view: in words, its legend, and its drawing or the contents of its cells.
struct Shown {
    says: String,
    legend: String,
    drawn: Drawn,
}

enum Drawn {
    Chart(Option<Box<Drawing>>),
    /// By the number of the point.
    Cells(Vec<String>),
}

/// What is told of a point that was chosen.
#[derive(Serialize)]
struct Point {
    name: String,
    runs: usize,
    command: String,
}

/// The page of a sweep as an HTML document.
///
/// # Errors
/// [`ReportError`], when a template of this crate is wrong.
pub fn sweep_page(summary: &SweepSummary) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("sweep.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), FIGURE_STYLE, OWN_STYLE].join("\n")),
        script => Value::from_safe_string([CHART_SCRIPT, SCRIPT, OWN_SCRIPT].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("origin.json"),
    };
    let sweep = Value::from_serialize(summary);
    let readings = Readings::new(summary);
    let there = !summary.points.is_empty() && !summary.measures.is_empty();
    let context = match there {
        false => minijinja::context! { sweep, assets, there },
        true => {
            let first = first(&readings);
            let shown = shown(&readings, &first.view());
            let charts = charts(&readings, &first, &shown);
            let says = shown.says.clone();
            let legend = Value::from_safe_string(shown.legend);
            let points: Vec<Point> = points(&readings);
            let points = Value::from_safe_string(json_in_html(&points)?);
            minijinja::context! {
                sweep, assets, there, outline => map::OUTLINE, says, legend, points,
                map => first.y.is_some(),
                zooms => first.y.is_none() && charts.contains("data-frame"),
                charts => Value::from_safe_string(charts.clone()),
                choices => choices(&readings, &first),
                held => held(&readings, &first),
            }
        }
    };
    Ok(environment.get_template("sweep.html")?.render(context)?)
}

/// A sweep as its page shows it, in a palette for print: an SVG file so many `pixels`
/// wide. `measure` is the name of a column; none: the one that the page shows at first.
/// `group` likewise.
///
/// # Errors
/// What there is instead.
pub fn sweep_svg(
    summary: &SweepSummary,
    (measure, group): (Option<&str>, Option<&str>),
    pixels: f64,
) -> Result<String, String> {
    if summary.points.is_empty() || summary.measures.is_empty() {
        return Err("no run of this sweep has ended".to_string());
    }
    let readings = Readings::new(summary);
    let first = first(&readings);
    let mut view = first.view();
    if let Some(measure) = measure {
        let names = summary.measures.iter().map(|one| one.name.as_str());
        view.measure = place(names, measure, "measure")?;
    }
    if let Some(group) = group {
        view.group = place(summary.groups.iter().map(String::as_str), group, "group of flows")?;
    }
    let nothing = || format!("no run has {}", readings.measure(&view).title);
    let drawing = match (shown(&readings, &view).drawn, first.y) {
        (Drawn::Cells(cells), Some(y)) => all_maps(&readings, [first.x, y], &cells),
        (Drawn::Chart(Some(drawing)), _) => *drawing,
        _ => return Err(nothing()),
    };
    Ok(drawing.styled_file(pixels, FIGURE_STYLE))
}

fn place<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
    wanted: &str,
    what: &str,
) -> Result<usize, String> {
    names.clone().position(|name| name == wanted).ok_or_else(|| {
        let known = names.collect::<Vec<_>>().join(", ");
        format!("this sweep has no {what} {wanted}: it has {known}")
    })
}

fn first(readings: &Readings<'_>) -> First {
    let Readings { summary, axes, numbers, .. } = readings;
    let named = |key: &usize| numbers.get(*key).is_none_or(Option::is_none);
    // A page that was written before there was a headline compares names.
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
    // Of equally many the first, which is what an application waits for.
    let most = spread.rev().max_by_key(|(_, points)| *points);
    let measure = most.map_or(0, |(measure, _)| measure);
    let has_it = |group: &String| {
        let name = summary.measures.get(measure).map(|measure| measure.name.as_str());
        let groups = summary.points.iter().flat_map(|point| &point.groups);
        groups
            .filter(|one| one.group == *group)
            .any(|one| name.is_some_and(|name| one.measures.contains_key(name)))
    };
    let named = |name: &str| summary.groups.iter().position(|group| group == name && has_it(group));
    let varied = summary.varied_group().and_then(named);
    // All flows together have no page load time: then a group that has one.
    let all = summary.groups.iter().position(|group| group == "*" && has_it(group));
    let last = || summary.groups.iter().rposition(has_it);
    First {
        measure,
        group: varied.or(all).or_else(last).unwrap_or(summary.groups.len().saturating_sub(1)),
        x,
        y: if x == compare { other(x) } else { Some(compare) },
        compare,
    }
}

/// Whether some two values of a key are compared.
fn is_compared(readings: &Readings<'_>, key: usize) -> bool {
    readings.summary.verdicts.iter().any(|verdict| verdict.key == key)
}

fn choices(readings: &Readings<'_>, first: &First) -> Vec<Choice> {
    let Readings { summary, axes, .. } = readings;
    let numbered = |names: &mut dyn Iterator<Item = (usize, &str)>| -> Vec<(String, String)> {
        names.map(|(number, name)| (number.to_string(), name.to_string())).collect()
    };
    let choice = |label, name: &str, options, chosen: usize| Choice {
        label,
        name: name.to_string(),
        compare: None,
        options,
        chosen: chosen.to_string(),
    };
    let measures = &mut summary.measures.iter().map(|one| one.title.as_str()).enumerate();
    let all =
        |group: &'_ str| if group == "*" { "all flows".to_string() } else { group.to_string() };
    let groups: Vec<String> = summary.groups.iter().map(|group| all(group)).collect();
    let groups = &mut groups.iter().map(String::as_str).enumerate();
    let mut choices = vec![
        choice("measure", "measure", numbered(measures), first.measure),
        choice("flows", "group", numbered(groups), first.group),
    ];
    let keys = || axes.iter().map(|key| (*key, summary.keys[*key].name.as_str()));
    if let Some(y) = first.y {
        choices.push(choice("to the right", "x", numbered(&mut keys()), first.x));
        choices.push(choice("downwards", "y", numbered(&mut keys()), y));
    }
    choices.push(choice("compare", "compare", numbered(&mut keys()), first.compare));
    for key in axes.iter().copied().filter(|key| is_compared(readings, *key)) {
        let values = &mut summary.keys[key].values.iter().map(String::as_str).enumerate();
        let mut options = vec![(String::new(), "nothing: values".to_string())];
        options.extend(numbered(values));
        choices.push(Choice {
            label: "relative to",
            name: format!("base-{key}"),
            compare: Some(key),
            options,
            chosen: String::new(),
        });
    }
    choices
}

/// All views, and all maps where there are two settings or more.
fn held(readings: &Readings<'_>, first: &First) -> Vec<Held> {
    let Readings { summary, axes, .. } = readings;
    let mut all = Vec::new();
    let safe = Value::from_safe_string;
    if first.y.is_some() {
        for x in axes.iter().copied() {
            for y in axes.iter().copied().filter(|y| *y != x) {
                let markup = safe(maps(readings, [x, y], &|_| String::new()));
                all.push(Held { kind: "map", name: format!("{x}.{y}"), markup });
            }
        }
    }
    for measure in 0..summary.measures.len() {
        for group in 0..summary.groups.len() {
            for compare in axes.iter().copied() {
                let view = View { measure, group, compare, base: None };
                let compared = readings.verdict(&view).is_some();
                let values = 0..summary.keys[compare].values.len();
                let bases = values.map(Some).filter(|_| compared);
                for base in std::iter::once(None).chain(bases) {
                    let view = View { base, ..view };
                    let markup = safe(shown(readings, &view).lines());
                    all.push(Held { kind: "view", name: view.name(), markup });
                }
            }
        }
    }
    all
}

impl Shown {
    /// As the page holds it: a line in words, the legend in one, and what is drawn. The
    /// outline of cells, which are most of a page, is a sign that the script replaces.
    fn lines(&self) -> String {
        let drawn = match &self.drawn {
            Drawn::Cells(cells) => cells.join("\n").replace(map::OUTLINE, OUTLINE_SIGN),
            Drawn::Chart(Some(drawing)) => drawing.inline(),
            Drawn::Chart(None) => String::new(),
        };
        [&escaped(&words::unbroken(&self.says)), &self.legend, &drawn]
            .map(String::as_str)
            .join("\n")
    }
}

fn shown(readings: &Readings<'_>, view: &View) -> Shown {
    let Readings { summary, axes, .. } = readings;
    let places = readings.places(axes, &readings.origin());
    let values: Vec<_> = places
        .iter()
        .filter_map(|place| readings.value(view, place))
        .filter_map(|value| Some((value.middle?, value)))
        .collect();
    let middles: Vec<f64> = values.iter().map(|(middle, _)| *middle).collect();
    let shades = Shades::new(readings, view, &middles);
    let drawn = match axes.as_slice() {
        [only] => Drawn::Chart(chart::drawing(readings, view, *only).map(Box::new)),
        _ => {
            let points = summary.points.iter();
            let cell = |at: &[usize]| map::cell(readings.value(view, at).as_ref(), &shades);
            Drawn::Cells(points.map(|point| cell(&point.at)).collect())
        }
    };
    let text = |wanted: f64| {
        let found = values.iter().find(|(middle, _)| *middle == wanted);
        found.map_or_else(String::new, |(_, value)| value.text[0].clone())
    };
    let ramp = match &shades {
        _ if axes.len() == 1 || values.is_empty() => None,
        Shades::Values { low, high, .. } if low >= high => None,
        Shades::Values { low, high, .. } => Some((text(*low), "up", text(*high))),
        Shades::Ratios { reach, less_is_better } => {
            let class = if *less_is_better { "less" } else { "more" };
            Some((times((-reach).exp()), class, times(reach.exp())))
        }
    };
    Shown { says: says(readings, view), legend: legend(readings, view, ramp, &middles), drawn }
}

/// What was found out about the values that are compared, in words.
fn says(readings: &Readings<'_>, view: &View) -> String {
    let SweepMeasure { title, .. } = readings.measure(view);
    let key = &readings.summary.keys[view.compare].name;
    readings.verdict(view).map_or_else(
        || format!("{}: no two values of {key} are compared.", capitalised(title)),
        |verdict| verdict.says.clone(),
    )
}

fn legend(
    readings: &Readings<'_>,
    view: &View,
    ramp: Option<(String, &str, String)>,
    middles: &[f64],
) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some((low, class, high)) = ramp {
        let [low, high] = [low, high].map(|text| escaped(&text));
        parts.push(format!("<span class=\"ramp\">{low} <i class=\"{class}\"></i> {high}</span>"));
    }
    let less = if readings.less_is_better(view) { "less" } else { "more" };
    let relative = match view.base {
        Some(_) if readings.axes.len() > 1 => ": blue is better than the reference, orange worse",
        _ => "",
    };
    parts.push(format!("<span>{less} is better{relative}</span>"));
    if is_compared(readings, view.compare) {
        parts.push(format!(
            "<span>★ best {}, everything else being equal; no star: tied or undecided</span>",
            escaped(&readings.summary.keys[view.compare].name)
        ));
    }
    if middles.is_empty() {
        let title = escaped(&readings.measure(view).title);
        parts.push(format!("<span>no run has {title}</span>"));
    }
    parts.concat()
}

/// What the page has at first.
fn charts(readings: &Readings<'_>, first: &First, shown: &Shown) -> String {
    match (&shown.drawn, first.y) {
        (Drawn::Cells(cells), Some(y)) => {
            maps(readings, [first.x, y], &|point| cells[point].clone())
        }
        (Drawn::Chart(Some(drawing)), _) => drawing.inline(),
        _ => String::new(),
    }
}

/// The settings that neither axis has, at all of their values.
fn facets(readings: &Readings<'_>, used: [usize; 2]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let keys: Vec<usize> =
        readings.axes.iter().copied().filter(|key| !used.contains(key)).collect();
    let places = readings.places(&keys, &readings.origin());
    (keys, places)
}

/// A map for each combination of the settings that neither axis has.
fn maps(readings: &Readings<'_>, used: [usize; 2], contents: &dyn Fn(usize) -> String) -> String {
    let (keys, places) = facets(readings, used);
    let (width, height) = map::size(readings, used);
    let map = |place: &Vec<usize>| {
        let name = readings.named(place, &keys);
        let mut drawing = Drawing::sized(width, height, "a map of values");
        map::draw(&mut drawing, 0.0, readings, (place, used), contents);
        let heading = match name.is_empty() {
            true => String::new(),
            false => format!("<h3>{}</h3>", escaped(&name)),
        };
        format!(
            "<section class=\"facet\">{heading}<div class=\"map\">{}</div></section>\n",
            drawing.inline_as_it_is()
        )
    };
    places.iter().map(map).collect()
}

/// The same in one drawing, one below the other.
fn all_maps(readings: &Readings<'_>, used: [usize; 2], cells: &[String]) -> Drawing {
    let (keys, places) = facets(readings, used);
    let (width, height) = map::size(readings, used);
    let head = if keys.is_empty() { 0.0 } else { BETWEEN };
    let whole = (height + head) * places.len() as f64;
    let mut drawing = Drawing::sized(width, whole, "maps of values");
    for (number, place) in places.iter().enumerate() {
        let top = number as f64 * (height + head);
        if !keys.is_empty() {
            drawing.words("title", "start", (4.0, top + 20.0), readings.named(place, &keys));
        }
        let contents = |point: usize| cells[point].clone();
        map::draw(&mut drawing, top + head, readings, (place, used), &contents);
    }
    drawing
}

fn points(readings: &Readings<'_>) -> Vec<Point> {
    let SweepSummary { keys, points, command_of_a_run, .. } = readings.summary;
    let point = |point: &knee_record::SweepPoint| {
        let settings = keys.iter().zip(&point.at).map(|(key, value)| {
            format!("--set {}", quoted(&format!("{}={}", key.name, key.values[*value])))
        });
        let settings = settings.collect::<Vec<_>>().join(" ");
        let seed = point.seeds.first().map_or_else(String::new, |seed| format!(" --seed {seed}"));
        Point {
            name: readings.named(&point.at, &readings.axes),
            runs: point.seeds.len(),
            command: format!("{command_of_a_run} {settings}{seed}"),
        }
    };
    points.iter().map(point).collect()
}
