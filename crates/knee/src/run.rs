//! `knee run`.

use crate::arguments::{self, Run, SEED_MAX};
use crate::claims;
use crate::directory;
use crate::failure::{Ending, Failure};
use crate::figures;
use crate::grounds;
use crate::input::{ScenarioText, all_or_every_error};
use crate::interrupt;
use crate::kernel;
use crate::repeats;
use crate::screen;
use crate::workers::{Finished, Job, run_all};
use knee_record::{
    ClaimOutcome, Fidelity, Outcome as ClaimEnd, RepeatSummary, Summary, write_json,
};
use knee_scenario::{Errors, Ground, Override, Scenario};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What is to be done about one file.
struct Plan {
    text: ScenarioText,
    directory: PathBuf,
    /// One, or as many as there are repeats or grounds.
    runs: Vec<Planned>,
}

struct Planned {
    scenario: Scenario,
    ground: Ground,
    directory: PathBuf,
    command: String,
}

/// What came of one file.
struct Outcome<'p> {
    plan: &'p Plan,
    summaries: Vec<Summary>,
    /// With `--repeat`.
    repeats: Option<RepeatSummary>,
    /// With two grounds, when both have run.
    fidelity: Option<Fidelity>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    fidelity: Option<&'r Fidelity>,
}

/// Runs scenarios, keeps the records, prints what came out.
pub fn run(arguments: &Run) -> Result<Ending, Failure> {
    let on = chosen(&arguments.on)?;
    only_what_they_can(arguments, &on)?;
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let directories = directories(arguments, &texts)?;
    let plans = texts.into_iter().zip(directories).map(|(text, at)| plan(arguments, &on, text, at));
    let plans = all_or_every_error(plans)?;
    if on.contains(&Ground::Kernel) {
        let runs = plans.iter().flat_map(|plan| &plan.runs);
        kernel::check(runs.filter(|run| run.ground == Ground::Kernel).map(|run| &run.scenario))?;
    }
    let root = root(arguments);
    directory::claim(&root, plans.iter().map(|plan| &plan.directory), arguments.output.force)?;
    let outcomes = carry_out(arguments, &plans)?;
    print(arguments, &outcomes)?;
    Ok(ending(&outcomes))
}

/// The grounds that were asked for, each once, the simulator first.
pub fn chosen(words: &[arguments::Ground]) -> Result<Vec<Ground>, Failure> {
    if words.contains(&arguments::Ground::Quic) {
        let what = "the ground quic is not in this version".to_string();
        return Err(Failure::Host(what, "run on the simulator, with --on sim".to_string()));
    }
    let all = [(arguments::Ground::Sim, Ground::Sim), (arguments::Ground::Kernel, Ground::Kernel)];
    Ok(all.into_iter().filter(|(word, _)| words.contains(word)).map(|(_, ground)| ground).collect())
}

fn only_what_they_can(arguments: &Run, on: &[Ground]) -> Result<(), Failure> {
    if arguments.repeat.is_some() && on.len() > 1 {
        let what = "--repeat gives intervals on one ground".to_string();
        return Err(Failure::Usage(what, "write --on sim or --on kernel".to_string()));
    }
    if arguments.packet_log && !on.contains(&Ground::Sim) {
        let what = "only the simulator writes a packet log".to_string();
        return Err(Failure::Usage(what, "add --on sim, or leave out --packet-log".to_string()));
    }
    Ok(())
}

/// Where all of it goes.
fn root(arguments: &Run) -> PathBuf {
    arguments.output.out.clone().unwrap_or_else(|| directory::DEFAULT.into())
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

fn plan(
    arguments: &Run,
    on: &[Ground],
    text: ScenarioText,
    directory: PathBuf,
) -> Result<Plan, Errors> {
    let mut set: Vec<Override> = arguments.set.iter().map(|set| set.value.clone()).collect();
    set.extend(arguments.seed.map(seed));
    let first = text.scenario(&set)?;
    let mut scenarios = vec![(first, directory.clone())];
    if let Some(repeats) = arguments.repeat {
        scenarios[0].1 = directory.join(directory::repeat(1));
        for number in 1..repeats {
            let next = seed(repeat_seed(scenarios[0].0.seed, number));
            let set: Vec<Override> = set.iter().cloned().chain([next]).collect();
            let at = directory.join(directory::repeat(number as usize + 1));
            scenarios.push((text.scenario(&set)?, at));
        }
    }
    let planned = |(scenario, directory): (Scenario, PathBuf)| {
        let of_ground = on.iter().map(|ground| Planned {
            command: command(arguments, &text, scenario.seed, None),
            ground: *ground,
            scenario: scenario.clone(),
            directory: if on.len() > 1 {
                directory.join(grounds::word(*ground))
            } else {
                directory.clone()
            },
        });
        of_ground.collect::<Vec<_>>()
    };
    Ok(Plan { runs: scenarios.into_iter().flat_map(planned).collect(), text, directory })
}

/// Seed of a repeat, from zero: those that follow the first.
pub fn repeat_seed(first: u64, number: u64) -> u64 {
    (first + number) % (SEED_MAX + 1)
}

/// Sets the seed.
pub fn seed(seed: u64) -> Override {
    Override::new("seed", &seed.to_string())
}

/// The line that repeats a run, or all repeats of it. Where to write and how
/// many at a time is not part of it.
fn command(arguments: &Run, text: &ScenarioText, seed: u64, repeat: Option<u64>) -> String {
    let mut words = vec!["knee".to_string(), "run".to_string(), quoted(&text.name)];
    for set in &arguments.set {
        words.extend(["--set".to_string(), quoted(&set.text)]);
    }
    if arguments.on != [arguments::Ground::Sim] {
        let both = arguments.on.contains(&arguments::Ground::Sim);
        words.extend(["--on".to_string(), if both { "sim,kernel" } else { "kernel" }.to_string()]);
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
    let jobs: Vec<Job<'_>> = runs
        .iter()
        .map(|(_, run)| Job {
            scenario: &run.scenario,
            ground: run.ground,
            directory: Some(&run.directory),
            packet_log: arguments.packet_log,
        })
        .collect();
    let keep = |index: usize, mut finished: Finished| {
        let (plan, run) = runs[index];
        let inputs = plan.text.inputs(&run.scenario);
        directory::keep(&run.directory, &run.scenario, &mut finished, &inputs)?;
        directory::keep_page(&run.directory, &run.scenario, &finished, &run.command)?;
        Ok(finished.summary)
    };
    let mut summaries = run_all(&jobs, arguments.output.jobs, keep)?.into_iter();
    plans.iter().map(|plan| outcome_of_plan(arguments, plan, &mut summaries)).collect()
}

fn outcome_of_plan<'p>(
    arguments: &Run,
    plan: &'p Plan,
    summaries: &mut impl Iterator<Item = Option<Summary>>,
) -> Result<Outcome<'p>, Failure> {
    let summaries: Vec<Summary> = summaries.take(plan.runs.len()).flatten().collect();
    let repeats = arguments.repeat.and_then(|_| RepeatSummary::new(&summaries));
    if let Some(repeats) = &repeats {
        write_json(&plan.directory.join(directory::REPEAT), repeats)?;
    }
    let both = plan.runs[0].directory != plan.directory && arguments.repeat.is_none();
    let fidelity = match both && grounds::are_in(&plan.directory) {
        true => Some(grounds::compare(&plan.directory, &plan.runs[0].command)?),
        false => None,
    };
    Ok(Outcome { plan, summaries, repeats, fidelity })
}

fn print(arguments: &Run, outcomes: &[Outcome<'_>]) -> Result<(), Failure> {
    if !arguments.json {
        let texts: Vec<String> =
            outcomes.iter().filter_map(|outcome| text(arguments, outcome)).collect();
        return screen::print(&texts.join("\n"));
    }
    match outcomes {
        [Outcome { repeats: Some(repeats), .. }] => screen::print_json(repeats),
        [Outcome { fidelity: Some(fidelity), .. }] => screen::print_json(fidelity),
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
    let single = outcome.repeats.is_none() && outcome.fidelity.is_none();
    DocumentRun {
        file: &outcome.plan.text.name,
        directory: outcome.plan.directory.display().to_string(),
        summary: outcome.summaries.first().filter(|_| single),
        repeat: outcome.repeats.as_ref(),
        fidelity: outcome.fidelity.as_ref(),
    }
}

/// Nothing for a file whose turn did not come.
fn text(arguments: &Run, outcome: &Outcome<'_>) -> Option<String> {
    let Outcome { plan, summaries, repeats, fidelity } = outcome;
    let first = summaries.first()?;
    if let Some(fidelity) = fidelity {
        return Some(text_of_both(outcome, fidelity));
    }
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

/// Measures, claims and verdicts on both grounds.
fn text_of_both(outcome: &Outcome<'_>, fidelity: &Fidelity) -> String {
    let Outcome { plan, summaries, .. } = outcome;
    let title = format!("{} · sim and kernel · seed {}", fidelity.name, fidelity.seed);
    let claims = summaries.iter().map(|summary| match claims::text(&summary.claims) {
        text if text.is_empty() => text,
        text => format!("claims on {}\n{text}\n", summary.ground),
    });
    format!(
        "{title}\n\n{}\n{}sim      {}\nkernel   {}\nreport   {}\nrepeat   {}\n",
        grounds::text(fidelity),
        claims.collect::<String>(),
        grounds::verdict(&fidelity.sim),
        grounds::verdict(&fidelity.kernel),
        shown_path(&plan.directory, directory::REPORT),
        plan.runs[0].command,
    )
}

fn shown_path(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

/// Whether a claim came out differently than on record. One that a host too
/// busy for the kernel ground left untested is no news.
fn is_news(summary: &Summary) -> bool {
    let excused =
        |claim: &ClaimOutcome| summary.ground != "sim" && claim.outcome == ClaimEnd::NotTestedHere;
    summary.claims.iter().any(|claim| !claim.agrees && !excused(claim))
}

fn ending(outcomes: &[Outcome<'_>]) -> Ending {
    let mut summaries = outcomes.iter().flat_map(|outcome| &outcome.summaries);
    if interrupt::requested() {
        Ending::Interrupted
    } else if summaries.any(is_news) {
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
