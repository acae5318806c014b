//! `knee run`.

use crate::arguments::{Format, Run};
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, to_host, warn, watched};
use crate::print::Print;
use crate::{answers, claims, figures, grounds, repeats, screen};
use knee_lab::directory::{DEFAULT, REPORT, unused};
use knee_lab::words::verdict;
use knee_lab::{
    Experiment, ExperimentOutcome, ExperimentSettings, HOSTS, Job, ScenarioText,
    all_or_every_error, check_jobs,
};
use knee_present::Document;
use knee_record::{
    Fidelity, HALF_AND_HALF, RepeatSummary, Stalled, Summary, Verdict, offered_in_words,
    offered_load,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// JSON output for several files.
#[derive(Serialize)]
struct Runs<'r> {
    /// `knee-runs/1`.
    schema: &'static str,
    /// Runs in the order of the files.
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

/// Runs scenarios, stores the records, and prints the results.
pub fn run(arguments: &Run) -> Result<Ending, Failure> {
    let mut lab = lab(arguments.output.jobs);
    lab.grounds = to_host(lab.grounds, &arguments.on, arguments.host.as_deref())?;
    let on = chosen(&lab.grounds, &arguments.on)?;
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let directories = directories(arguments, &texts)?;
    let settings = ExperimentSettings {
        set: arguments.set.clone(),
        seed: arguments.seed,
        repeat: arguments.repeat,
        on,
        packet_log: arguments.packet_log,
        capture: arguments.capture,
        alternatives: !arguments.no_alternatives,
    };
    let experiments = texts.into_iter().zip(directories);
    let experiments = experiments.map(|(text, at)| Experiment::new(text, settings.clone(), at));
    let mut experiments = all_or_every_error(experiments)?;
    let jobs: Vec<Job<'_>> = experiments.iter().flat_map(Experiment::jobs).collect();
    check_jobs(&jobs)?;
    let claimed = experiments.iter().map(|experiment| &experiment.directory);
    lab.claim(&root(arguments), claimed, arguments.output.force)?;
    warn(&jobs);
    let outcomes = watched(&lab, || lab.carry_out(&mut experiments))?;
    let all: Vec<(&Experiment<'_>, &ExperimentOutcome)> =
        experiments.iter().zip(&outcomes).collect();
    print(arguments, &all)?;
    Ok(if lab.is_stopped() {
        Ending::Interrupted
    } else if outcomes.iter().all(ExperimentOutcome::is_as_recorded) {
        Ending::Done
    } else {
        Ending::Differs
    })
}

/// Root of the output directories.
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
        if texts.iter().filter(|other| other.stem() == text.stem()).count() > 1 {
            let what =
                format!("two scenarios have the same output folder, {}", directory.display());
            let advice = "run them one by one, each with its --out DIR".to_string();
            return Err(Failure::Usage(what, advice));
        }
        // Keeps earlier results, unless the user named the directory.
        let is_named = arguments.output.out.is_some() || arguments.output.force;
        all.push(if is_named { directory } else { unused(&directory, &all)? });
    }
    Ok(all)
}

fn print(arguments: &Run, all: &[(&Experiment<'_>, &ExperimentOutcome)]) -> Result<(), Failure> {
    let format = arguments.print.format();
    if format != Format::Json {
        let documents = all.iter();
        let documents = documents.filter_map(|(one, outcome)| document(arguments, one, outcome));
        let joined = documents.reduce(|all, next| all.words("\n").then(next));
        return joined.unwrap_or_default().print_without_json(format);
    }
    match all {
        [(_, ExperimentOutcome { repeats: Some(repeats), .. })] => screen::print_json(repeats),
        [(_, ExperimentOutcome { fidelity: Some(fidelity), .. })] => screen::print_json(fidelity),
        [(_, ExperimentOutcome { summaries, repeats: None, .. })] if summaries.len() == 1 => {
            screen::print_json(&summaries[0])
        }
        all => screen::print_json(&Runs {
            schema: "knee-runs/1",
            runs: all.iter().flat_map(|(one, outcome)| document_runs(one, outcome)).collect(),
        }),
    }
}

/// Usually one document; one for each ground if grounds are not compared.
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

/// Directory of the run on a ground.
fn directory_of(experiment: &Experiment<'_>, summary: &Summary) -> PathBuf {
    let job = experiment.jobs().find(|job| job.ground.name() == summary.ground);
    let directory = job.and_then(|job| job.directory.map(Path::to_path_buf));
    directory.unwrap_or_else(|| experiment.directory.clone())
}

/// Returns the results of a scenario; `None` if its run did not start.
fn document(
    arguments: &Run,
    experiment: &Experiment<'_>,
    outcome: &ExperimentOutcome,
) -> Option<Document> {
    let ExperimentOutcome { summaries, repeats, fidelity } = outcome;
    let first = summaries.first()?;
    let whole = |document: Document| {
        Some(match &experiment.lacks_process {
            _ if experiment.is_unanswered() => answers::stopped().then(document),
            Some(reason) => answers::none(reason).then(document),
            None => answers::around(experiment.answers.as_ref(), document),
        })
    };
    if let Some(fidelity) = fidelity {
        return whole(of_both(experiment, outcome, fidelity));
    }
    let command = experiment.command(first.seed, arguments.repeat);
    let read = read_as(experiment) + &load(experiment);
    let end = |verdict: &str, stalled: Vec<String>, directory: &Path| {
        let report = shown_path(directory, REPORT);
        let warnings = stalled.iter().map(|words| screen::wrapped(&format!("warning  {words}")));
        let warnings: String = warnings.collect();
        format!("\n{read}verdict  {verdict}\n{warnings}report   {report}\nrepeat   {command}\n")
    };
    if let Some(repeats) = repeats {
        let worst = summaries.iter().find(|run| run.verdict == repeats.verdict).unwrap_or(first);
        let verdict = with_reason(repeats.verdict, worst);
        let half_and_half = match first.is_half_and_half() {
            true => Document::default().said(format!("Each run is {HALF_AND_HALF}.")).words("\n"),
            false => Document::default(),
        };
        let beside =
            experiment.answers.as_ref().and_then(|found| found.beside(repeats.seeds.len()));
        let beside = beside.map(|words| Document::default().said(words).words("\n"));
        let document = beside.unwrap_or_default().then(half_and_half);
        let document = document.then(repeats::document(repeats));
        let stalled = repeats.stalled_words().into_iter().collect();
        return whole(document.words(end(&verdict, stalled, &experiment.directory)));
    }
    let each = summaries.iter().map(|summary| {
        let verdict = with_reason(summary.verdict, summary);
        let stalled = summary.stalled.iter().map(Stalled::in_words).collect();
        let end = end(&verdict, stalled, &directory_of(experiment, summary));
        of_one(summary).words(end)
    });
    whole(each.reduce(|all, next| all.words("\n").then(next))?)
}

/// Results of a run: figures and claims.
pub fn of_one(summary: &Summary) -> Document {
    figures::document(summary).words("\n").then(claims::document(&summary.claims))
}

fn with_reason(verdict: Verdict, summary: &Summary) -> String {
    let reason = summary.verdict_reason.as_ref().map(|reason| format!(", {reason}"));
    format!("{verdict}{}", reason.unwrap_or_default())
}

/// How the files named by a scenario were interpreted.
fn read_as(experiment: &Experiment<'_>) -> String {
    let files = experiment.jobs().next().map(|job| &job.scenario.files);
    let told = files.into_iter().flatten().filter(|file| !file.read_as.is_empty());
    told.map(|file| screen::wrapped(&format!("read     {}: {}", file.written, file.read_as)))
        .collect()
}

/// The load that a scenario without an answer offers to its links; the answer says it itself.
fn load(experiment: &Experiment<'_>) -> String {
    // Between two machines the links of the scenario are not those of the path.
    let first = experiment.jobs().find(|job| job.ground.name() != HOSTS);
    let scenario = first.filter(|_| experiment.answers.is_none());
    let words = scenario.and_then(|job| offered_in_words(&offered_load(job.scenario)));
    words.map_or_else(String::new, |words| {
        screen::wrapped(&words.replacen("offered load: ", "load     ", 1))
    })
}

/// Measures, claims and verdicts on all grounds.
fn of_both(
    experiment: &Experiment<'_>,
    outcome: &ExperimentOutcome,
    fidelity: &Fidelity,
) -> Document {
    let grounds: Vec<&str> = fidelity.all().map(|one| one.ground.as_str()).collect();
    let further: String =
        grounds[..grounds.len() - 1].iter().map(|one| format!(", {one}")).collect();
    let last = grounds[grounds.len() - 1];
    let Fidelity { name, seed, .. } = fidelity;
    let title = format!("{name} · sim{further} and {last} · seed {seed}\n\n");
    let mut document = Document::default().words(title);
    document = document.then(grounds::document(fidelity)).words("\n");
    if let Some(answers) = experiment.answers.as_ref().filter(|found| found.mix.is_some()) {
        document = document.then(answers::noise(answers)).words("\n");
    }
    for summary in outcome.summaries.iter().filter(|summary| !summary.claims.is_empty()) {
        document = document.words(format!("claims on {}\n", summary.ground));
        document = document.then(claims::document(&summary.claims)).words("\n");
    }
    document = document.words(format!("sim      {}\n", verdict(&fidelity.sim)));
    for one in fidelity.all() {
        document = document.words(format!("{:<9}{}\n", one.ground, verdict(&one.kernel)));
    }
    for summary in &outcome.summaries {
        for stalled in &summary.stalled {
            let words = format!("warning  on {}: {}", summary.ground, stalled.in_words());
            document = document.words(screen::wrapped(&words));
        }
    }
    document.words(format!(
        "report   {}\nrepeat   {}\n",
        shown_path(&experiment.directory, REPORT),
        experiment.command(fidelity.seed, None),
    ))
}

fn shown_path(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_lab::scenario::Scenario;
    use knee_lab::{Ended, Ground, GroundError, Grounds, Lab, Output, Pace, Simulator};
    use knee_present::Layout;
    use knee_record::Control;

    /// The simulator under the name of a ground that it is compared with.
    #[derive(Debug, Default)]
    struct Twin(Simulator);

    impl Ground for Twin {
        fn name(&self) -> &str {
            "kernel"
        }

        fn summary(&self) -> &str {
            "A second simulator"
        }

        fn pace(&self) -> Pace {
            Pace::Virtual
        }

        fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
            self.0.check(scenario)
        }

        fn run(
            &self,
            scenario: &Scenario,
            control: &Control,
            output: Output<'_>,
        ) -> Result<Ended, GroundError> {
            self.0.run(scenario, control, output)
        }
    }

    /// The timeout of 220 ms is doubled up to 120 s: ten of them pass after some five minutes.
    #[test]
    fn a_stall_is_told_with_its_ground() {
        let text = "duration = \"400 s\"\n[link.wire]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
                    down = [{ from = \"10 s\", until = \"400 s\" }]\n\
                    [path.main]\nforward = [\"wire\"]\nreverse_delay = \"10 ms\"\n\
                    [[flow]]\nname = \"f\"\ncc = \"reno\"\n";
        let folder = tempfile::tempdir().unwrap();
        let lab = Lab::new(Grounds::new().with(Simulator::default()).with(Twin::default()));
        let [sim, twin] = ["sim", "kernel"].map(|name| lab.grounds.get(name).unwrap());
        let settings = ExperimentSettings { on: vec![sim, twin], ..ExperimentSettings::on(sim) };
        let text = ScenarioText::new("dead.toml", text);
        let experiment = Experiment::new(text, settings, folder.path().join("out")).unwrap();
        let mut experiments = [experiment];
        let outcomes = lab.carry_out(&mut experiments).unwrap();
        let fidelity = outcomes[0].fidelity.as_ref().unwrap();
        let said = of_both(&experiments[0], &outcomes[0], fidelity)
            .text(Layout { width: 120, colour: false });
        for ground in ["sim", "kernel"] {
            let warning = format!("warning  on {ground}: flow f[0] sent for 1");
            assert_eq!(said.matches(&warning).count(), 1, "{said}");
        }
    }
}
