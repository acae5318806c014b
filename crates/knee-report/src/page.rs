//! Converts the input to the template's context, and renders the template.

use crate::chart::{Chart, style};
use crate::charts::charts;
use crate::figures::{self, Figure, Names};
use crate::plane::{Plane, plane};
use crate::series::{Detail, Embedded, shown};
use crate::tables;
use crate::words::{self, slug};
use crate::{ReportError, RunPage, StudyPage, applications, mix, multipath, read_log, sentence};
use knee_present::Table;
use knee_present::words::{NONE, counted, number, percent, rate, time_us};
use knee_record::{ClaimOutcome, HALF_AND_HALF, Outcome, RunView, Verdict};
use knee_units::{Time, is_hidden, printable};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, escape_formatter};
use serde::Serialize;
use std::collections::BTreeMap;

/// Detail of the page of one run.
const ONE_RUN: Detail = Detail { rows_max: 8000, drawn: true };
/// Detail of a report with many runs.
const MANY_RUNS: Detail = Detail { rows_max: 2000, drawn: false };

const TEMPLATE: &str = include_str!("../assets/report.html");
pub(crate) const STYLE: &str = include_str!("../assets/report.css");
pub(crate) const SCRIPT: &str = include_str!("../assets/report.js");
/// Draws charts for the script above.
pub(crate) const CHART_SCRIPT: &str = include_str!("../assets/chart.js");

/// Everything the template shows.
#[derive(Serialize)]
pub(crate) struct Page {
    pub title: String,
    /// Command under the overview's title; empty on the page of one run.
    pub command: String,
    /// Whether there is an overview page of all claims, as the first page.
    pub overview: bool,
    pub studies: Vec<Study>,
    /// The run, on the page of one run.
    pub run: Option<Run>,
    pub tally: Tally,
}

#[derive(Serialize)]
pub(crate) struct Study {
    id: String,
    title: String,
    source: String,
    about: String,
    conclusion: String,
    /// Section above the conclusion.
    lead: Option<Value>,
    claims: Vec<Claim>,
    /// Test against control, if claims compare them.
    compared: Option<applications::Shown>,
    tally: Tally,
    comparisons: Vec<Table>,
    /// Whether some run has several flows, so that fairness applies.
    shared: bool,
    runs: Vec<Run>,
    command: String,
}

#[derive(Serialize)]
pub(crate) struct Run {
    id: String,
    /// Name in the study; empty for a single scenario.
    name: String,
    /// Title of the scenario.
    title: String,
    /// Section above the results.
    lead: Option<Value>,
    result: String,
    /// What to know about the figures of several controllers; empty otherwise.
    half_and_half: String,
    verdict: &'static str,
    verdict_reason: String,
    facts: Vec<String>,
    headline: Headline,
    claims: Vec<Claim>,
    groups: Table,
    flows: Table,
    links: Table,
    /// Charts as SVG, by name.
    drawings: BTreeMap<String, Value>,
    flow_figures: Vec<Figure>,
    controller_figures: Vec<Figure>,
    link_figures: Vec<Figure>,
    /// Flows over several paths.
    multipath: Vec<multipath::Strips>,
    /// Labels of the flows over several paths that are not drawn.
    multipath_left_out: Vec<String>,
    /// Pages, videos and mixes.
    applications: Vec<applications::Shown>,
    links_left_out: Vec<String>,
    distribution: Figure,
    plane: Option<Plane>,
    /// Labels of the flows whose controller can be shown.
    pick: Vec<String>,
    /// Whether single flows are drawn when selected.
    single: bool,
    notes: Vec<String>,
    scenario: String,
    command: String,
    /// Time series, JSON without `<`.
    series: Value,
}

/// Data that the page embeds for a run.
#[derive(Serialize)]
struct Series<'a> {
    #[serde(flatten)]
    of: &'a Embedded,
    /// Charts drawn from the data.
    charts: &'a [Chart],
}

/// A run in one row, for the list of a study's runs.
#[derive(Serialize)]
struct Headline {
    goodput: String,
    rtt: String,
    rtt_p95: String,
    sent_again: String,
    jain: String,
}

#[derive(Clone, Serialize)]
struct Claim {
    id: String,
    anchor: String,
    says: String,
    of: String,
    /// Page of the run it refers to; empty if none.
    run: String,
    source: String,
    source_figure: String,
    expected: String,
    measured: String,
    outcome: String,
    /// Class in the style sheet: `holds`, `fails`, `uncertain` or `untested`.
    class: &'static str,
    /// The recorded outcome, or the recorded value if that has drifted, when it differs from this
    /// one.
    recorded: Option<String>,
    finding: String,
    /// Measured value and outcome on the kernel.
    on_kernel: Option<[String; 2]>,
}

#[derive(Default, Serialize)]
pub(crate) struct Tally {
    claims: usize,
    holds: usize,
    fails: usize,
    uncertain: usize,
    untested: usize,
    news: usize,
}

/// Returns the page of one run as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn run_page(page: &RunPage<'_>) -> Result<String, ReportError> {
    let run = run("run".to_string(), page, ONE_RUN)?;
    render(&Page {
        title: run.title.clone(),
        command: String::new(),
        overview: false,
        studies: Vec::new(),
        tally: tally(&run.claims),
        run: Some(run),
    })
}

/// Returns the report of studies as an HTML document: an overview of all claims, a page for each
/// study and one for each run.
///
/// `command` is the command that repeats everything.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn study_report(studies: &[StudyPage<'_>], command: &str) -> Result<String, ReportError> {
    let numbered = studies.iter().enumerate();
    let studies: Vec<Study> =
        numbered.map(|(index, page)| study(index, page)).collect::<Result<_, _>>()?;
    render(&Page {
        title: "Studies: claims and results".to_string(),
        command: command.to_string(),
        overview: true,
        tally: total(&studies),
        studies,
        run: None,
    })
}

/// Returns the tally of all claims of the studies.
pub(crate) fn total(studies: &[Study]) -> Tally {
    let mut all = Tally::default();
    studies.iter().for_each(|study| all.add(&study.tally));
    all
}

pub(crate) fn render(page: &Page) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("report.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style()].join("\n")),
        script => Value::from_safe_string([CHART_SCRIPT, SCRIPT].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("manifest.json"),
    };
    let template = environment.get_template("report.html")?;
    Ok(template.render(minijinja::context! { page, assets })?)
}

pub(crate) fn study(index: usize, page: &StudyPage<'_>) -> Result<Study, ReportError> {
    let id = format!("study-{index}-{}", slug(page.name));
    let run_id = |number: usize, name: &str| format!("run-{index}-{number}-{}", slug(name));
    let numbered = page.runs.iter().enumerate();
    let mut runs: Vec<Run> = numbered
        .map(|(number, page)| run(run_id(number, page.name), page, MANY_RUNS))
        .collect::<Result<_, _>>()?;
    let mut claims = claims(&id, page.claims, &runs);
    for (claim, kernel) in claims.iter_mut().zip(&page.on_kernel) {
        claim.on_kernel = kernel.map(|one| [one.measured_text.clone(), one.outcome.to_string()]);
    }
    for run in &mut runs {
        let own = claims.iter().filter(|claim| claim.run == run.id);
        run.claims = own
            .enumerate()
            .map(|(index, claim)| claim.at(format!("{}-claim-{index}", run.id)))
            .collect();
    }
    Ok(Study {
        title: if page.title.is_empty() { page.name } else { page.title }.to_string(),
        source: page.source.to_string(),
        about: page.about.to_string(),
        conclusion: page.conclusion.to_string(),
        lead: page.lead.map(|section| Value::from_safe_string(section.0.clone())),
        tally: tally(&claims),
        compared: mix::of_claims(page.claims),
        command: page.command.to_string(),
        comparisons: Vec::new(),
        shared: runs.iter().any(|run| run.headline.jain != NONE),
        claims,
        runs,
        id,
    })
}

fn run(id: String, page: &RunPage<'_>, detail: Detail) -> Result<Run, ReportError> {
    let (summary, records) = (page.summary, page.records);
    let mut shown = shown(records, detail);
    let (paths, strips, multipath_left_out) = multipath::shown(summary, records, detail);
    shown.embedded.multipath = paths;
    let all = charts(&shown);
    let names: Names<'_> = all.iter().map(|chart| chart.name.as_str()).collect();
    let svg = |chart: &Chart| Value::from_safe_string(chart.svg(&shown.embedded, detail.drawn));
    let drawings = all.iter().map(|chart| (chart.name.clone(), svg(chart))).collect();
    let labels: Vec<String> = shown.embedded.flows.iter().map(|flow| flow.label.clone()).collect();
    let plane = plane(summary, &labels);
    let series = json_in_html(&Series { of: &shown.embedded, charts: &all })?;
    let series = Value::from_safe_string(series);
    Ok(Run {
        name: page.name.to_string(),
        title: summary.name.clone(),
        lead: page.lead.map(|section| Value::from_safe_string(section.0.clone())),
        result: sentence::result(summary),
        half_and_half: match summary.is_half_and_half() {
            true => format!("One run, {HALF_AND_HALF}."),
            false => String::new(),
        },
        verdict: match summary.verdict {
            Verdict::Valid => "valid",
            Verdict::Degraded => "degraded",
            Verdict::Invalid => "invalid",
        },
        verdict_reason: summary.verdict_reason.clone().unwrap_or_default(),
        facts: facts(page),
        headline: headline(page),
        claims: claims(&id, &summary.claims, &[]),
        groups: tables::groups(summary, records),
        flows: tables::flows(summary),
        links: tables::links(summary),
        drawings,
        flow_figures: figures::of_flows(&names),
        controller_figures: figures::of_controllers(&names),
        link_figures: figures::of_links(&shown, &names),
        multipath: strips,
        multipath_left_out,
        applications: of_applications(page),
        links_left_out: shown.links_left_out.clone(),
        distribution: figures::distribution(&names),
        plane,
        pick: labels,
        single: !shown.embedded.groups.is_empty(),
        notes: figures::left_out(&shown),
        scenario: page.scenario.to_string(),
        command: page.command.to_string(),
        series,
        id,
    })
}

/// Largest number of drawings of each kind.
const DRAWINGS_MAX: usize = 8;

/// Returns pages, videos and mixes, then the access logs behind them.
fn of_applications(page: &RunPage<'_>) -> Vec<applications::Shown> {
    let (summary, records) = (page.summary, page.records);
    let run = RunView::new(records, Time::from_micros(summary.warmup_us as u64));
    let flows = || run.flows.iter().zip(&summary.flows);
    let pages = flows().filter_map(|(flow, said)| applications::waterfall(flow, said));
    let videos = flows().filter_map(|(flow, said)| applications::timeline(flow, said));
    let mut shown: Vec<_> = pages.take(DRAWINGS_MAX).collect();
    shown.extend(videos.take(DRAWINGS_MAX));
    shown.extend(mix::heat_maps(&run).into_iter().take(DRAWINGS_MAX));
    shown.extend(mix::comparisons(&run).into_iter().take(DRAWINGS_MAX));
    shown.extend(page.logs.iter().map(|log| read_log::shown(log, &run)).take(DRAWINGS_MAX));
    shown
}

/// Returns an environment for the templates of this crate. It makes hidden characters in names
/// visible.
pub(crate) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("unbroken", words::unbroken);
    environment.add_filter("held", held);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            let shown = printable(text, |c| matches!(c, '\n' | '\r' | '\t'));
            escape_formatter(out, state, &Value::from(shown.as_ref()))
        }
        _ => escape_formatter(out, state, value),
    });
    environment
}

/// Escapes markup that a script element holds until its page is opened, so that nothing in it ends
/// that element or begins a script within a script. `report.js` removes the backslashes.
fn held(markup: &str) -> Value {
    let kept = markup.replace("<script", "<\\script").replace("</script", "<\\/script");
    Value::from_safe_string(kept.replace("<!--", "<\\!--"))
}

/// Returns JSON that cannot end its script element: `<` only occurs within strings, where it is
/// written as an escape. Control characters are made visible: the page shows a backslash and a
/// number.
pub(crate) fn json_in_html(value: &impl Serialize) -> Result<String, ReportError> {
    let json = serde_json::to_string(value)?;
    let mut shown = String::with_capacity(json.len());
    let mut rest = json.chars();
    while let Some(c) = rest.next() {
        match c {
            '<' => shown.push_str("\\u003c"),
            // serde_json writes \u only for control characters.
            '\\' => match rest.next() {
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    let digits = digits.trim_start_matches('0');
                    shown.push_str(&format!("\\\\u{{{digits}}}"));
                }
                other => shown.extend(std::iter::once(c).chain(other)),
            },
            c if is_hidden(c) => shown.push_str(&format!("\\{}", c.escape_unicode())),
            c => shown.push(c),
        }
    }
    Ok(shown)
}

fn facts(page: &RunPage<'_>) -> Vec<String> {
    let summary = page.summary;
    let mut facts = vec![
        format!("ground {}", summary.ground),
        format!("seed {}", summary.seed),
        format!("{} long", time_us(Some(summary.duration_us))),
        counted(summary.flows.len(), "flow"),
        counted(summary.links.len(), "link"),
    ];
    if summary.warmup_us > 0.0 {
        facts.push(format!("measured from {} after each start", time_us(Some(summary.warmup_us))));
    }
    facts
}

fn headline(page: &RunPage<'_>) -> Headline {
    let measures = &page.summary.measures;
    Headline {
        goodput: rate(measures.goodput_bps),
        rtt: time_us(measures.rtt_us.map(|rtt| rtt.p50)),
        rtt_p95: time_us(measures.rtt_us.map(|rtt| rtt.p95)),
        sent_again: percent(measures.retransmit_ratio),
        jain: number(measures.jain.filter(|_| page.summary.flows.len() > 1)),
    }
}

fn claims(page: &str, outcomes: &[ClaimOutcome], runs: &[Run]) -> Vec<Claim> {
    let numbered = outcomes.iter().enumerate();
    numbered.map(|(index, outcome)| claim(format!("{page}-claim-{index}"), outcome, runs)).collect()
}

fn claim(anchor: String, outcome: &ClaimOutcome, runs: &[Run]) -> Claim {
    let speaks_of =
        |run: &&Run| outcome.of.split_once('/').is_some_and(|(name, _)| name == run.name);
    Claim {
        anchor,
        id: outcome.id.clone(),
        says: outcome.says.clone(),
        of: outcome.of.clone(),
        run: runs.iter().find(speaks_of).map_or_else(String::new, |run| run.id.clone()),
        source: outcome.source.clone(),
        source_figure: outcome.source_figure.clone().unwrap_or_default(),
        expected: outcome.expected.clone(),
        measured: outcome.measured_text.clone(),
        outcome: outcome.outcome.to_string(),
        class: match outcome.outcome {
            Outcome::Holds => "holds",
            Outcome::Fails => "fails",
            Outcome::Uncertain => "uncertain",
            Outcome::NotTestedHere => "untested",
        },
        recorded: (!outcome.agrees).then(|| match &outcome.on_record {
            Some(value) if outcome.outcome == outcome.recorded => value.clone(),
            _ => outcome.recorded.to_string(),
        }),
        finding: outcome.finding.clone().unwrap_or_default(),
        on_kernel: None,
    }
}

fn tally(claims: &[Claim]) -> Tally {
    let of = |class: &str| claims.iter().filter(|claim| claim.class == class).count();
    Tally {
        claims: claims.len(),
        holds: of("holds"),
        fails: of("fails"),
        uncertain: of("uncertain"),
        untested: of("untested"),
        news: claims.iter().filter(|claim| claim.recorded.is_some()).count(),
    }
}

impl Study {
    /// Adds tables before the study's claims.
    pub(crate) fn comparing(self, comparisons: Vec<Table>) -> Study {
        Study { comparisons, ..self }
    }
}

impl Claim {
    /// Returns the same claim for another place in the report, where it needs no link to its run.
    fn at(&self, anchor: String) -> Claim {
        Claim { anchor, run: String::new(), ..self.clone() }
    }
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.claims += other.claims;
        self.holds += other.holds;
        self.fails += other.fails;
        self.uncertain += other.uncertain;
        self.untested += other.untested;
        self.news += other.news;
    }
}
