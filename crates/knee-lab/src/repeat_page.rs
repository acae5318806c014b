//! Page of repeats: results over all seeds.

use crate::command;
use crate::directory::repeat;
use crate::error::Error;
use crate::page::saved_logs;
use crate::words::{is_headline, named, titled};
use knee_present::words::{NONE, capitalised};
use knee_present::{Table, number, text};
use knee_record::{Answers, HALF_AND_HALF, Interval, RepeatSummary, SUMMARY, read_run};
use knee_report::{RunPage, StudyPage, answers_section, comparison_report};
use std::path::Path;

/// Tables by the subject with which names of numbers begin.
const PARTS: [(&str, &str); 4] =
    [("group", "Groups of flows"), ("flow", "Flows"), ("link", "Links"), ("claim", "Claims")];

/// Renders the page; `command` is the command that repeats the runs. The run of the first seed, if
/// it is in `directory`, has a page of its own with its figures.
pub(crate) fn repeat_page(
    repeats: &RepeatSummary,
    answers: Option<&Answers>,
    directory: &Path,
    command: &str,
) -> Result<String, Error> {
    let mut tables: Vec<Table> = Vec::new();
    let part = |name: &str| name.split_once('.').map_or("", |(part, _)| part).to_string();
    let is_of_part = |name: &str| PARTS.iter().any(|(begin, _)| part(name) == *begin);
    tables.push(table(repeats, "All flows", |name| !is_of_part(name)));
    for (begin, title) in PARTS {
        tables.push(table(repeats, title, |name| part(name) == begin));
    }
    tables.retain(|table| !table.rows.is_empty());
    let first = directory.join(repeat(1));
    let (run, logs) = match first.join(SUMMARY).is_file() {
        true => {
            let run = read_run(&first)?;
            let logs = saved_logs(&first, &run.scenario);
            (Some(run), logs)
        }
        false => (None, Vec::new()),
    };
    if run.as_ref().is_some_and(|run| run.summary.is_half_and_half()) {
        let of_flows = |table: &&mut Table| ["Groups of flows", "Flows"].contains(&&*table.title);
        tables.iter_mut().filter(of_flows).for_each(|table| {
            table.note = format!("{}.", capitalised(HALF_AND_HALF));
        });
    }
    let again = command::of_run(&first, &[&repeats.ground]);
    let pages = run.iter().map(|run| RunPage {
        name: "first seed",
        summary: &run.summary,
        records: &run.records,
        lead: None,
        scenario: &run.scenario,
        command: &again,
        logs: &logs,
    });
    let pages: Vec<RunPage<'_>> = pages.collect();
    // What it was asked comes first, else the measures of all flows together.
    let lead = answers.map(answers_section).transpose()?;
    let headline = if lead.is_some() { String::new() } else { headline(repeats) };
    let seeds = repeats.seeds.first().zip(repeats.seeds.last());
    let seeds = seeds.map_or_else(String::new, |(first, last)| format!("{first} to {last}"));
    let left_out = repeats.left_out_words().map_or_else(String::new, |words| words + " ");
    let differing: String =
        repeats.differing_claims().into_iter().map(|words| words + " ").collect();
    let beside = answers.and_then(|found| found.beside(repeats.seeds.len()));
    let beside = beside.map_or_else(String::new, |words| words + " ");
    let about = format!(
        "{beside}{} runs on {}, seeds {seeds}; verdict: {}. {left_out}{differing}The page of each \
         run is in its folder, repeat-1 and so on.",
        repeats.seeds.len(),
        repeats.ground,
        repeats.verdict
    );
    let page = StudyPage {
        name: &repeats.name,
        title: &repeats.name,
        source: "",
        about: &about,
        conclusion: &headline,
        lead: lead.as_ref(),
        claims: &[],
        on_kernel: Vec::new(),
        runs: pages,
        command,
    };
    Ok(comparison_report(&[(page, tables)], &repeats.name, "")?)
}

/// Measures of all flows together in a sentence, each with its interval.
fn headline(repeats: &RepeatSummary) -> String {
    let said = ["goodput_bps", "rtt_us.p95", "jain", "retransmit_ratio"].map(|name| {
        let interval = repeats.measures.get(name)?;
        let show = |value: f64| named(name, value);
        let ends = interval.low.zip(interval.high).map(|(low, high)| (show(low), show(high)));
        let ends = ends.filter(|(low, high)| low != high);
        let ends = ends.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
        let runs = repeats.partial(interval);
        let runs = runs.map_or_else(String::new, |runs| format!(" in {runs} runs"));
        Some(format!("{} {}{ends}{runs}", titled(name), show(interval.mean)))
    });
    let mut said = said.into_iter().flatten().collect::<Vec<_>>().join("; ");
    if let Some(first) = said.get(..1).map(str::to_uppercase) {
        said.replace_range(..1, &first);
        let seeds = repeats.used();
        said += &format!(": means over {seeds} seeds with 95 % intervals.");
    }
    said
}

fn table(repeats: &RepeatSummary, title: &str, of: impl Fn(&str) -> bool) -> Table {
    let shown = repeats
        .measures
        .iter()
        .filter(|(name, _)| of(name) && (is_headline(name) || name.starts_with("claim.")));
    let partial = shown.clone().any(|(_, interval)| repeats.partial(interval).is_some());
    let figures = ["mean", "95 % interval of it", "median", "min", "max"].into_iter();
    // Only if some of the runs have no value.
    let figures = figures.chain(partial.then_some("in runs")).map(number);
    let rows = shown.map(|(name, interval)| {
        let runs = repeats.partial(interval).unwrap_or_else(|| "all".to_string());
        row(name, interval).into_iter().chain(partial.then_some(runs))
    });
    Table::new(std::iter::once(text("measure")).chain(figures)).titled(title).with_rows(rows)
}

fn row(name: &str, interval: &Interval) -> Vec<String> {
    let show = |value: f64| named(name, value);
    let ends = interval.low.zip(interval.high);
    vec![
        titled(name),
        show(interval.mean),
        ends.map_or(NONE.into(), |(low, high)| format!("{} to {}", show(low), show(high))),
        show(interval.median),
        show(interval.min),
        show(interval.max),
    ]
}
