//! Page of repeats: results over all seeds.

use crate::error::Error;
use crate::words::{is_headline, named, titled};
use knee_present::words::NONE;
use knee_present::{Table, number, text};
use knee_record::{Answers, Interval, MixAnswer, RepeatSummary};
use knee_report::{StudyPage, comparison_report};

/// Tables by the subject with which names of numbers begin.
const PARTS: [(&str, &str); 4] =
    [("group", "Groups of flows"), ("flow", "Flows"), ("link", "Links"), ("claim", "Claims")];

/// Renders the page; `command` is the command that repeats the runs.
pub(crate) fn repeat_page(
    repeats: &RepeatSummary,
    answers: Option<&Answers>,
    command: &str,
) -> Result<String, Error> {
    let mut tables: Vec<Table> =
        answers.and_then(|answers| answers.mix.as_ref()).map(mix).into_iter().collect();
    let part = |name: &str| name.split_once('.').map_or("", |(part, _)| part).to_string();
    let is_of_part = |name: &str| PARTS.iter().any(|(begin, _)| part(name) == *begin);
    tables.push(table(repeats, "All flows", |name| !is_of_part(name)));
    for (begin, title) in PARTS {
        tables.push(table(repeats, title, |name| part(name) == begin));
    }
    tables.retain(|table| !table.rows.is_empty());
    // What it was asked comes first, else the measures of all flows together.
    let sentences = answers.map_or_else(|| headline(repeats), sentences);
    let seeds = repeats.seeds.first().zip(repeats.seeds.last());
    let seeds = seeds.map_or_else(String::new, |(first, last)| format!("{first} to {last}"));
    let left_out = repeats.left_out_words().map_or_else(String::new, |words| words + " ");
    let about = format!(
        "{} runs on {}, seeds {seeds}; verdict: {}. {left_out}The page of each run is in \
         its folder, repeat-1 and so on.",
        repeats.seeds.len(),
        repeats.ground,
        repeats.verdict
    );
    let page = StudyPage {
        name: &repeats.name,
        title: &repeats.name,
        source: "",
        about: &about,
        conclusion: &sentences,
        claims: &[],
        on_kernel: Vec::new(),
        runs: Vec::new(),
        command,
    };
    Ok(comparison_report(&[(page, tables)], &repeats.name, "")?)
}

fn sentences(answers: &Answers) -> String {
    let paths = answers.paths.iter().map(|answer| answer.sentence.as_str());
    let mixes = answers.mix.iter().flat_map(|mix| mix.sentences.iter().map(String::as_str));
    paths.chain(mixes).collect::<Vec<_>>().join("\n")
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

fn mix(answer: &MixAnswer) -> Table {
    let heads = [
        text("traffic"),
        text("objects"),
        number("ratio (95 % interval)"),
        text("outcome"),
        number("retransmitted"),
        number("half and half"),
    ];
    let row = |class: &knee_record::MixClass| {
        let word = class.effect.word().to_string();
        let (pair, sizes) = (class.pair.clone(), class.sizes.clone());
        vec![pair, sizes, class.ratio(), word, class.again(), class.split_ratio()]
    };
    Table::new(heads)
        .titled("Which controller for which traffic")
        .noted(
            "First controller over second: all transfers under the first compared with all \
             under the second. Completion time below 3 MB, throughput from 3 MB on.",
        )
        .with_rows(answer.classes.iter().map(row))
}
