//! `knee report`.

use crate::arguments::Report;
use crate::failure::{Ending, Failure};
use crate::{
    answers, claims, compare, evaluate, grounds, logs, observed, rank, repeats, reproduce, run,
    screen, sweep,
};
use knee_lab::directory::REPORT;
use knee_lab::{Saved, StudyRecords, rewrite_page, saved, saved_answers};
use knee_present::Document;
use knee_record::{Summary, Verdict};
use std::path::Path;

/// Rewrites the page of a directory, whatever its contents.
pub fn report(arguments: &Report) -> Result<Ending, Failure> {
    let directory = match &arguments.paths[..] {
        [directory] if directory.is_dir() || !directory.exists() => directory,
        _ => return logs::report(arguments),
    };
    if let Some(option) = arguments.logs.given() {
        let what = format!("{option} is for access logs, and {} is a folder", directory.display());
        return Err(Failure::Usage(what, "remove it".to_string()));
    }
    if knee_live::holds_observed(directory) {
        return observed::report(directory, &arguments.observed, arguments.markdown);
    }
    if knee_live::is_begun(directory) {
        return Err(unfinished(directory));
    }
    if knee_live::holds_open(directory) {
        let what = format!("{} has open connections only, of --open", directory.display());
        let advice = "query open-*.parquet as docs/observe.md shows; knee observe without --open \
                      records connections as they end, for knee report";
        return Err(Failure::Usage(what, advice.to_string()));
    }
    if let Some(option) = arguments.observed.given() {
        let what = format!(
            "{option} requires a folder of knee observe, which {} is not",
            directory.display()
        );
        return Err(Failure::Usage(what, "remove it".to_string()));
    }
    if arguments.markdown {
        return markdown(directory);
    }
    let run = rewrite_page(directory)?;
    if let Some(run) = run.filter(|run| run.verdict != Verdict::Valid) {
        let reason = run.verdict_reason.as_deref().unwrap_or("no reason given");
        screen::say(&format!("The run is {}: {reason}.", run.verdict));
    }
    screen::print(&format!("{}\n", directory.join(REPORT).display()))?;
    Ok(Ending::Done)
}

/// The folder of a `knee observe` that has just begun.
pub fn unfinished(directory: &Path) -> Failure {
    let what = format!("no file in {} is complete yet", directory.display());
    let advice = "one appears every 15 minutes, and when knee observe ends".to_string();
    Failure::Usage(what, advice)
}

/// Prints the directory's results as Markdown, for a pull request.
fn markdown(directory: &Path) -> Result<Ending, Failure> {
    let answered = |name: &str, document| -> Result<Document, Failure> {
        let answers = saved_answers(directory)?;
        Ok(titled(name).then(answers::around(answers.as_ref(), document)))
    };
    let document = match saved(directory)? {
        Saved::Run(summary) => {
            answered(&summary.name, run::of_one(&summary))?.said(reason(&summary))
        }
        Saved::Repeats(repeats) => answered(&repeats.name, repeats::document(&repeats))?,
        Saved::Studies(records) => reproduce::document(&records, directory).said(tally(&records)),
        Saved::Sweep(summary) => titled(&summary.name).then(sweep::text::document(&summary)),
        Saved::Ranking(summary) => rank::document(&summary),
        Saved::Evaluation(evaluation) => evaluate::saved(&evaluation),
        Saved::Comparison(compared) => compare::document(&compared, false),
        Saved::Grounds(fidelity) => answered(&fidelity.name, grounds::document(&fidelity))?,
    };
    let version = env!("CARGO_PKG_VERSION");
    let end = format!("Knee {version}; knee rerun checks whether a folder is reproduced.");
    screen::print(&document.said(end).markdown(false))?;
    Ok(Ending::Done)
}

fn titled(name: &str) -> Document {
    Document::default().said(format!("{name}:"))
}

fn reason(summary: &Summary) -> String {
    let reason = summary.verdict_reason.as_ref().map(|reason| format!(", {reason}"));
    let Summary { ground, seed, verdict, .. } = summary;
    format!("On {ground}, seed {seed}: the run is {verdict}{}.", reason.unwrap_or_default())
}

fn tally(records: &StudyRecords) -> String {
    format!("{}.", claims::tally(records.claims()))
}
