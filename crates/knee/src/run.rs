//! `knee run`.

use crate::arguments::Run;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, warn, watched};
use crate::{claims, figures, grounds, repeats, screen};
use knee_lab::directory::{DEFAULT, REPORT};
use knee_lab::words::verdict;
use knee_lab::{
    Experiment, ExperimentOutcome, ExperimentSettings, Job, ScenarioText, all_or_every_error,
    check_jobs,
};
use knee_record::{Fidelity, RepeatSummary, Summary, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is printed about several files.
#[derive(Serialize)]
struct Document<'r> {
    /// `knee-runs/1`.
    schema: &'static str,
    /// In the order of the files.
    runs: Vec<DocumentRun<'r>>,
}

#[derive(Serialize)]
struct DocumentRun<'r> {
    file: &'r str,
    directory: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'r Summary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<&'r RepeatSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fidelity: Option<&'r Fidelity>,
}

/// Runs scenarios, keeps the records, prints what came out.
pub fn run(arguments: &Run) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let on = chosen(&lab.grounds, &arguments.on)?;
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let directories = directories(arguments, &texts)?;
    let settings = ExperimentSettings {
        set: arguments.set.clone(),
        seed: arguments.seed,
        repeat: arguments.repeat,
        on,
        packet_log: arguments.packet_log,
    };
    let experiments = texts.into_iter().zip(directories);
    let experiments = experiments.map(|(text, at)| Experiment::new(text, settings.clone(), at));
    let experiments = all_or_every_error(experiments)?;
    let jobs: Vec<Job<'_>> = experiments.iter().flat_map(Experiment::jobs).collect();
    check_jobs(&jobs)?;
    let claimed = experiments.iter().map(|experiment| &experiment.directory);
    lab.claim(&root(arguments), claimed, arguments.output.force)?;
    warn(&jobs);
    let outcomes = watched(&lab, || lab.carry_out(&experiments))?;
    let all: Vec<(&Experiment<'_>, &ExperimentOutcome)> =
        experiments.iter().zip(&outcomes).collect();
    print(arguments, &all)?;
    Ok(if lab.is_stopped() {
        Ending::Interrupted
    } else if outcomes.iter().all(ExperimentOutcome::is_as_recorded) {
        Ending::Done
    } else {
        Ending::ClaimDiffers
    })
}

/// Where all of it goes.
fn root(arguments: &Run) -> PathBuf {
    arguments.output.out.clone().unwrap_or_else(|| DEFAULT.into())
}

/// One directory for each file.
fn directories(arguments: &Run, texts: &[ScenarioText]) -> Result<Vec<PathBuf>, Failure> {
    if let (Some(out), [_]) = (&arguments.output.out, texts) {
        return Ok(vec![out.clone()]);
    }
    let root = root(arguments);
    let mut all: Vec<PathBuf> = Vec::new();
    for text in texts {
        let directory = root.join(text.stem());
        if all.contains(&directory) {
            let what = format!("two scenarios would be written to {}", directory.display());
            let advice = "run them one by one, each with its --out DIR".to_string();
            return Err(Failure::Usage(what, advice));
        }
        all.push(directory);
    }
    Ok(all)
}

fn print(arguments: &Run, all: &[(&Experiment<'_>, &ExperimentOutcome)]) -> Result<(), Failure> {
    if !arguments.json {
        let texts: Vec<String> = all
            .iter()
            .filter_map(|(experiment, outcome)| text(arguments, experiment, outcome))
            .collect();
        return screen::print(&texts.join("\n"));
    }
    match all {
        [(_, ExperimentOutcome { repeats: Some(repeats), .. })] => screen::print_json(repeats),
        [(_, ExperimentOutcome { fidelity: Some(fidelity), .. })] => screen::print_json(fidelity),
        [(_, ExperimentOutcome { summaries, repeats: None, .. })] if summaries.len() == 1 => {
            screen::print_json(&summaries[0])
        }
        all => screen::print_json(&Document {
            schema: "knee-runs/1",
            runs: all.iter().flat_map(|(one, outcome)| document_runs(one, outcome)).collect(),
        }),
    }
}

/// One, but for several grounds that are not compared: one of each.
fn document_runs<'r>(
    experiment: &'r Experiment<'_>,
    outcome: &'r ExperimentOutcome,
) -> Vec<DocumentRun<'r>> {
    let ExperimentOutcome { summaries, repeats, fidelity } = outcome;
    let document = |directory: &Path, summary| DocumentRun {
        file: &experiment.text.name,
        directory: directory.display().to_string(),
        summary,
        repeat: repeats.as_ref(),
        fidelity: fidelity.as_ref(),
    };
    if repeats.is_some() || fidelity.is_some() || summaries.is_empty() {
        return vec![document(&experiment.directory, None)];
    }
    let each = summaries.iter();
    each.map(|summary| document(&directory_of(experiment, summary), Some(summary))).collect()
}

/// Where the run of a ground is.
fn directory_of(experiment: &Experiment<'_>, summary: &Summary) -> PathBuf {
    let job = experiment.jobs().find(|job| job.ground.name() == summary.ground);
    let directory = job.and_then(|job| job.directory.map(Path::to_path_buf));
    directory.unwrap_or_else(|| experiment.directory.clone())
}

/// Nothing for a file whose turn did not come.
fn text(
    arguments: &Run,
    experiment: &Experiment<'_>,
    outcome: &ExperimentOutcome,
) -> Option<String> {
    let ExperimentOutcome { summaries, repeats, fidelity } = outcome;
    let first = summaries.first()?;
    if let Some(fidelity) = fidelity {
        return Some(text_of_both(experiment, outcome, fidelity));
    }
    let command = experiment.command(first.seed, arguments.repeat);
    if let Some(repeats) = repeats {
        let report = shown_path(&experiment.directory, "repeat-1/report.html …");
        let verdict = with_reason(repeats.verdict, first);
        return Some(text_of_one(&repeats::text(repeats), &verdict, &report, &command));
    }
    let texts = summaries.iter().map(|summary| {
        let body = [figures::text(summary), claims::text(&summary.claims)].join("\n");
        let report = shown_path(&directory_of(experiment, summary), REPORT);
        text_of_one(&body, &with_reason(summary.verdict, summary), &report, &command)
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}

fn with_reason(verdict: Verdict, summary: &Summary) -> String {
    let reason = summary.verdict_reason.as_ref().map(|reason| format!(", {reason}"));
    format!("{verdict}{}", reason.unwrap_or_default())
}

fn text_of_one(body: &str, verdict: &str, report: &str, command: &str) -> String {
    format!("{body}\nverdict  {verdict}\nreport   {report}\nrepeat   {command}\n")
}

/// Measures, claims and verdicts on both grounds.
fn text_of_both(
    experiment: &Experiment<'_>,
    outcome: &ExperimentOutcome,
    fidelity: &Fidelity,
) -> String {
    let title = format!("{} · sim and kernel · seed {}", fidelity.name, fidelity.seed);
    let claims = outcome.summaries.iter().map(|summary| match claims::text(&summary.claims) {
        text if text.is_empty() => text,
        text => format!("claims on {}\n{text}\n", summary.ground),
    });
    format!(
        "{title}\n\n{}\n{}sim      {}\nkernel   {}\nreport   {}\nrepeat   {}\n",
        grounds::text(fidelity),
        claims.collect::<String>(),
        verdict(&fidelity.sim),
        verdict(&fidelity.kernel),
        shown_path(&experiment.directory, REPORT),
        experiment.command(fidelity.seed, None),
    )
}

fn shown_path(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}
