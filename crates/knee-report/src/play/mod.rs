//! The page of a scenario that is played with: its sliders, and what is drawn of one or two runs.

mod charts;
mod knee;

use crate::ReportError;
use crate::chart::style;
use crate::page::environment;
use knee_present::words::{NONE, number, percent, rate, time_us};
use knee_record::{LinkSummary, Records, Spread, Summary};
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../../assets/play.html");
const BODY: &str = include_str!("../../assets/play-body.html");
const STYLE: &str = include_str!("../../assets/report.css");
const OWN_STYLE: &str = include_str!("../../assets/play.css");
/// Groups of flows that are drawn of a run: as many as it has colours.
const GROUPS_MAX: usize = 4;
/// Names of the runs.
const NAMES: [&str; 2] = ["A", "B"];

/// A key that moves.
#[derive(Clone, Debug, Serialize)]
pub struct PlaySetting {
    /// Short name, unique on the page.
    pub name: &'static str,
    /// Name on the page.
    pub label: &'static str,
    /// Whether its values have no order, so that a list shows them.
    pub is_list: bool,
    /// Its values.
    pub steps: Vec<String>,
    /// Positions of the values that A and B begin with.
    pub starts: [usize; 2],
}

/// The scenario of a side, as a file that the page hands over.
#[derive(Clone, Debug, Serialize)]
pub struct PlayFile {
    /// `A` or `B`.
    pub name: &'static str,
    /// Name of the file.
    pub file: String,
}

/// The first flow's path.
#[derive(Clone, Debug)]
pub struct PlayPath {
    /// Name of its slowest link.
    pub link: String,
    /// Buffer of that link, IP bytes; `None` if unlimited.
    pub buffer_bytes: Option<u64>,
    /// Length of the scenario, which a run that was stopped does not reach.
    pub duration_ns: u64,
}

/// A run, finished or not.
#[derive(Clone, Debug)]
pub struct PlayRun<'a> {
    /// `A` or `B`.
    pub name: &'static str,
    /// Its records.
    pub records: &'a Records,
    /// Its summary.
    pub summary: &'a Summary,
    /// The path.
    pub path: PlayPath,
}

/// Flows of a run that are drawn together.
#[derive(Clone, Debug)]
struct Group<'a> {
    name: &'a str,
    /// Name in legends: `A, 3 × cubic`.
    label: String,
    /// Numbers of its flows.
    flows: Vec<u32>,
}

impl PlayRun<'_> {
    /// Returns the groups that are drawn.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<(&str, &str, Vec<u32>)> = Vec::new();
        for flow in &self.records.flows {
            match groups.iter_mut().find(|(name, ..)| *name == flow.name) {
                Some((.., flows)) => flows.push(flow.flow),
                None => groups.push((&flow.name, &flow.cc, vec![flow.flow])),
            }
        }
        groups.truncate(GROUPS_MAX);
        let alone = |cc: &str| groups.iter().filter(|(_, other, _)| *other == cc).count() == 1;
        let names: Vec<String> = groups
            .iter()
            .map(|(name, cc, flows)| {
                let count = match flows.len() {
                    1 => String::new(),
                    count => format!("{count} × "),
                };
                let of = if alone(cc) { String::new() } else { format!(" ({name})") };
                format!("{}, {count}{cc}{of}", self.name)
            })
            .collect();
        let named = groups.into_iter().zip(names);
        named.map(|((name, _, flows), label)| Group { name, label, flows }).collect()
    }

    fn link(&self) -> Option<&LinkSummary> {
        self.summary.links.iter().find(|link| link.name == self.path.link)
    }
}

/// Returns the page, before anything was run: the results ([`play_body`]) are put into it. `fixed`
/// says what cannot be moved; `inputs` are files that the scenario names; `compares` if B is shown
/// from the start. Its style is at `page.css` ([`play_style`]), its script at `page.js`.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn play_page(
    title: &str,
    settings: &[PlaySetting],
    fixed: &[String],
    files: &[PlayFile],
    inputs: &[String],
    compares: bool,
) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("play.html", TEMPLATE)?;
    let template = environment.get_template("play.html")?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(template.render(minijinja::context! {
        title, settings, fixed, files, inputs, compares, version,
    })?)
}

/// Returns the style of the page.
pub fn play_style() -> String {
    [STYLE, &style(), OWN_STYLE].join("\n")
}

/// A line of the table: a measure, and its values.
#[derive(Debug, Serialize)]
struct Line {
    measure: &'static str,
    values: Vec<Shown>,
}

/// A value for some groups side by side.
#[derive(Debug, Serialize)]
struct Shown {
    text: String,
    columns: usize,
}

/// Returns charts over time, the picture of the knee, and a table of one or two runs.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn play_body(runs: &[PlayRun<'_>]) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("body.html", BODY)?;
    let mut drawings: Vec<Value> =
        charts::charts(runs).into_iter().map(Value::from_safe_string).collect();
    let at = drawings.len().min(1);
    drawings.insert(at, Value::from_safe_string(knee::drawing(runs)));
    let groups: Vec<Vec<Group<'_>>> = runs.iter().map(PlayRun::groups).collect();
    let heads: Vec<&str> = groups.iter().flatten().map(|group| &*group.label).collect();
    let lines = lines(runs, &groups);
    let template = environment.get_template("body.html")?;
    Ok(template.render(minijinja::context! { drawings, heads, lines })?)
}

fn lines(runs: &[PlayRun<'_>], groups: &[Vec<Group<'_>>]) -> Vec<Line> {
    let of_groups = |measure, value: &dyn Fn(&PlayRun<'_>, &Group<'_>) -> String| {
        let all = runs.iter().zip(groups);
        let all = all.flat_map(|(run, groups)| groups.iter().map(move |group| (run, group)));
        let values = all.map(|(run, group)| Shown { text: value(run, group), columns: 1 });
        Line { measure, values: values.collect() }
    };
    let of_runs = |measure, value: &dyn Fn(&PlayRun<'_>) -> String| {
        let all = runs.iter().zip(groups);
        let shown = |(run, groups): (&PlayRun<'_>, &Vec<Group<'_>>)| Shown {
            text: value(run),
            columns: groups.len(),
        };
        Line { measure, values: all.map(shown).collect() }
    };
    let two = |spread: Option<&Spread>| {
        let time = |value: fn(&Spread) -> f64| time_us(spread.map(value));
        format!("{} · {}", time(|spread| spread.p50), time(|spread| spread.p95))
    };
    let mut lines = vec![
        of_groups("Goodput", &|run, group| rate(of_group(run, group).0)),
        of_runs("Path used", &|run| percent(run.summary.measures.capacity_share)),
        of_groups("RTT: median · 95 %", &|run, group| two(of_group(run, group).1)),
        of_runs("Queueing delay: median · 95 %", &|run| {
            two(run.link().and_then(|link| link.queueing_delay_us.as_ref()))
        }),
        of_groups("Retransmitted", &|run, group| percent(of_group(run, group).2)),
        of_runs("Power: 1 at the knee", &|run| number(run.summary.measures.power)),
    ];
    if runs.iter().any(|run| run.records.flows.len() > 1) {
        lines.push(of_runs("Fairness: Jain's index", &|run| number(run.summary.measures.jain)));
    }
    lines
}

/// Returns goodput, RTT and what is retransmitted of a group, which may be one flow.
fn of_group<'s>(
    run: &'s PlayRun<'_>,
    group: &Group<'_>,
) -> (Option<f64>, Option<&'s Spread>, Option<f64>) {
    let summary = run.summary;
    if let Some(found) = summary.groups.iter().find(|own| own.name == group.name) {
        return (found.goodput_bps, found.rtt_us.as_ref(), found.retransmit_ratio);
    }
    match summary.flows.iter().find(|own| own.name == group.name) {
        Some(flow) => (flow.goodput_bps, flow.rtt_us.as_ref(), flow.retransmit_ratio),
        None => (None, None, None),
    }
}

/// Returns the results in a sentence for each run.
pub fn play_says(runs: &[PlayRun<'_>]) -> String {
    let sentence = |run: &PlayRun<'_>| {
        let measures = &run.summary.measures;
        let base = run.summary.flows.first().map(|flow| flow.base_rtt_us);
        let rtt = measures.rtt_us.as_ref().map(|rtt| rtt.p50);
        if measures.goodput_bps.is_none() && rtt.is_none() {
            return format!("{}: nothing was measured yet.", run.name);
        }
        let used = percent(measures.capacity_share);
        let used = if used == NONE { String::new() } else { format!(", {used} of the path") };
        format!(
            "{}: {}{used}, RTT {}, {} without a queue.",
            run.name,
            rate(measures.goodput_bps),
            time_us(rtt),
            time_us(base),
        )
    };
    runs.iter().map(sentence).collect::<Vec<_>>().join(" ")
}
