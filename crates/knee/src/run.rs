//! `knee run`.

use crate::arguments::{Ground, Run, SEED_MAX};
use crate::claims;
use crate::directory;
use crate::failure::{Ending, Failure};
use crate::figures;
use crate::input::{ScenarioText, all_or_every_error};
use crate::interrupt;
use crate::repeats;
use crate::screen;
use crate::workers::{Finished, Job, run_all};
use knee_record::{RepeatSummary, Summary, write_json};
use knee_scenario::{Errors, Override, Scenario};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is to be done about one file.
struct Plan {
    text: ScenarioText,
    directory: PathBuf,
    /// One, or as many as there are repeats.
    runs: Vec<Planned>,
}

struct Planned {
    scenario: Scenario,
    directory: PathBuf,
    command: String,
}

/// What came of one file.
struct Outcome<'p> {
    plan: &'p Plan,
    summaries: Vec<Summary>,
    /// With `--repeat`.
    repeats: Option<RepeatSummary>,
}

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
}

/// Runs scenarios, keeps the records, prints what came out.
pub fn run(arguments: &Run) -> Result<Ending, Failure> {
    only_known_grounds(&arguments.on)?;
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let directories = directories(arguments, &texts)?;
    let plans = texts.into_iter().zip(directories).map(|(text, at)| plan(arguments, text, at));
    let plans = all_or_every_error(plans)?;
    directory::claim(plans.iter().map(|plan| &plan.directory), arguments.output.force)?;
    let outcomes = carry_out(arguments, &plans)?;
    print(arguments, &outcomes)?;
    Ok(ending(&outcomes))
}

fn only_known_grounds(grounds: &[Ground]) -> Result<(), Failure> {
    let name = match grounds.iter().find(|ground| **ground != Ground::Sim) {
        None => return Ok(()),
        Some(Ground::Kernel) => "kernel",
        Some(_) => "quic",
    };
    let what = format!("the ground {name} is not in this version");
    Err(Failure::Host(what, "run on the simulator, with --on sim".to_string()))
}

/// One directory for each file.
fn directories(arguments: &Run, texts: &[ScenarioText]) -> Result<Vec<PathBuf>, Failure> {
    if let (Some(out), [_]) = (&arguments.output.out, texts) {
        return Ok(vec![out.clone()]);
    }
    let root = arguments.output.out.clone().unwrap_or_else(|| directory::DEFAULT.into());
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

fn plan(arguments: &Run, text: ScenarioText, directory: PathBuf) -> Result<Plan, Errors> {
    let mut set: Vec<Override> = arguments.set.iter().map(|set| set.value.clone()).collect();
    set.extend(arguments.seed.map(seed));
    let first = text.scenario(&set)?;
    let mut scenarios = vec![(first, directory.clone())];
    if let Some(repeats) = arguments.repeat {
        scenarios[0].1 = directory.join(directory::repeat(1));
        for number in 1..repeats {
            let next = seed((scenarios[0].0.seed + number) % (SEED_MAX + 1));
            let set: Vec<Override> = set.iter().cloned().chain([next]).collect();
            let at = directory.join(directory::repeat(number as usize + 1));
            scenarios.push((text.scenario(&set)?, at));
        }
    }
    let planned = |(scenario, directory): (Scenario, PathBuf)| Planned {
        command: command(arguments, &text, scenario.seed, None),
        scenario,
        directory,
    };
    Ok(Plan { runs: scenarios.into_iter().map(planned).collect(), text, directory })
}

fn seed(seed: u64) -> Override {
    Override::new("seed", &seed.to_string())
}

/// The line that repeats a run, or all repeats of it. Where to write and how
/// many at a time is not part of it.
fn command(arguments: &Run, text: &ScenarioText, seed: u64, repeat: Option<u64>) -> String {
    let mut words = vec!["knee".to_string(), "run".to_string(), quoted(&text.name)];
    for set in &arguments.set {
        words.extend(["--set".to_string(), quoted(&set.text)]);
    }
    words.extend(["--seed".to_string(), seed.to_string()]);
    words.extend(repeat.iter().flat_map(|k| ["--repeat".to_string(), k.to_string()]));
    words.join(" ")
}

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:%+,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn carry_out<'p>(arguments: &Run, plans: &'p [Plan]) -> Result<Vec<Outcome<'p>>, Failure> {
    let runs: Vec<(&Plan, &Planned)> =
        plans.iter().flat_map(|plan| plan.runs.iter().map(move |run| (plan, run))).collect();
    let log = |run: &Planned| run.directory.join(directory::PACKETS);
    let jobs: Vec<Job<'_>> = runs
        .iter()
        .map(|(_, run)| Job {
            scenario: &run.scenario,
            packet_log: arguments.packet_log.then(|| log(run)),
        })
        .collect();
    let keep = |index: usize, finished: Finished| {
        let (plan, run) = runs[index];
        let inputs = plan.text.inputs(&run.scenario);
        directory::keep(&run.directory, &run.scenario, &finished, &inputs)?;
        directory::keep_page(&run.directory, &run.scenario, &finished, &run.command)?;
        Ok(finished.summary)
    };
    let mut summaries = run_all(&jobs, arguments.output.jobs, keep)?.into_iter();
    plans.iter().map(|plan| outcome(arguments, plan, &mut summaries)).collect()
}

fn outcome<'p>(
    arguments: &Run,
    plan: &'p Plan,
    summaries: &mut impl Iterator<Item = Option<Summary>>,
) -> Result<Outcome<'p>, Failure> {
    let summaries: Vec<Summary> = summaries.take(plan.runs.len()).flatten().collect();
    let repeats = arguments.repeat.and_then(|_| RepeatSummary::new(&summaries));
    if let Some(repeats) = &repeats {
        write_json(&plan.directory.join(directory::REPEAT), repeats)?;
    }
    Ok(Outcome { plan, summaries, repeats })
}

fn print(arguments: &Run, outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    if !arguments.json {
        let texts: Vec<String> =
            outcomes.iter().filter_map(|outcome| text(arguments, outcome)).collect();
        return screen::print(&texts.join("\n"));
    }
    match outcomes {
        [Outcome { repeats: Some(repeats), .. }] => screen::print_json(repeats),
        [Outcome { summaries, repeats: None, .. }] if summaries.len() == 1 => {
            screen::print_json(&summaries[0])
        }
        outcomes => screen::print_json(&Document {
            schema: "knee-runs/1",
            runs: outcomes.iter().map(document_run).collect(),
        }),
    }
}

fn document_run<'r>(outcome: &'r Outcome<'_>) -> DocumentRun<'r> {
    let single = outcome.repeats.is_none();
    DocumentRun {
        file: &outcome.plan.text.name,
        directory: outcome.plan.directory.display().to_string(),
        summary: outcome.summaries.first().filter(|_| single),
        repeat: outcome.repeats.as_ref(),
    }
}

/// Nothing for a file whose turn did not come.
fn text(arguments: &Run, outcome: &Outcome<'_>) -> Option<String> {
    let Outcome { plan, summaries, repeats } = outcome;
    let first = summaries.first()?;
    let (body, report, verdict) = match repeats {
        Some(repeats) => (repeats::text(repeats), "repeat-1/report.html …", repeats.verdict),
        None => {
            let claims = claims::text(&first.claims);
            let body = [figures::text(first), claims].join("\n");
            (body, directory::REPORT, first.verdict)
        }
    };
    let reason = first.verdict_reason.as_ref().map(|reason| format!(", {reason}"));
    let command = command(arguments, &plan.text, first.seed, arguments.repeat);
    Some(format!(
        "{body}\nverdict  {verdict}{}\nreport   {}\nrepeat   {command}\n",
        reason.unwrap_or_default(),
        shown_path(&plan.directory, report),
    ))
}

fn shown_path(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

fn ending(outcomes: &[Outcome<'_>]) -> Ending {
    let mut claims = outcomes.iter().flat_map(|o| &o.summaries).flat_map(|summary| &summary.claims);
    if interrupt::requested() {
        Ending::Interrupted
    } else if claims.any(|claim| !claim.agrees) {
        Ending::ClaimDiffers
    } else {
        Ending::Done
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    /// What a POSIX shell makes of it is the word again.
    #[test]
    fn a_shell_reads_quoted_words_back() {
        for word in ["plain-1.toml", "a b", "it's", "$HOME", "", "x;y", "link.a.rate=20 Mbit/s"] {
            let script = format!("printf %s {}", quoted(word));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }
}
