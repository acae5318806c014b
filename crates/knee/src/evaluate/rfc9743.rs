//! `knee evaluate --report`: an evaluation as a document in the order of RFC 9743, for people who
//! were not there.

use knee_lab::command::quoted;
use knee_lab::report::{
    evaluation_cases, evaluation_order, evaluation_says, evaluation_size, evaluation_values,
    evaluation_word,
};
use knee_present::words::counted;
use knee_present::{Document, Table, text};
use knee_record::{Evaluation, EvaluationChange, EvaluationOutcome, Program, SectionAsks};
use std::path::Path;

/// Whether a line speaks for the candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    Fails,
    NotTried,
}

impl Verdict {
    fn of(line: &EvaluationOutcome) -> Verdict {
        match (&line.could_not_be_tried, line.worse_than_all) {
            (Some(_), _) => Verdict::NotTried,
            (None, true) => Verdict::Fails,
            (None, false) => Verdict::Passes,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Verdict::Passes => "passes",
            Verdict::Fails => "fails",
            Verdict::NotTried => "could not be tried",
        }
    }
}

/// Whether no criterion fails, and all could be tried.
pub fn passes(evaluation: &Evaluation) -> bool {
    evaluation.lines.iter().all(|line| Verdict::of(line) == Verdict::Passes)
}

/// Returns the report, Markdown. `directory` has the evaluation's files; `worse` is what got worse
/// since an earlier evaluation, if there is one.
pub fn markdown(
    evaluation: &Evaluation,
    program: &Program,
    directory: &Path,
    worse: Option<&[EvaluationChange]>,
) -> String {
    let plan = &evaluation.plan;
    let mut sections: Vec<&SectionAsks> = plan.asks.iter().collect();
    sections.sort_by_key(|asked| evaluation_order(&asked.section));
    let mut report = format!("# {} against RFC 9743\n\n", plan.candidate);
    report += &Document::default()
        .said(evaluation_says(evaluation))
        .said(verdict(evaluation))
        .said(meaning(evaluation))
        .table(overview(evaluation, &sections))
        .markdown(false);
    if let Some(worse) = worse {
        report += "\n## Since the earlier evaluation\n\n";
        report += &since(worse).markdown(false);
    }
    for asked in &sections {
        report += &format!("\n## {} {}\n\n", asked.section, asked.title);
        report += &section(evaluation, asked).markdown(false);
        report += &worst_cases(evaluation, &asked.section, directory);
    }
    report += "\n## The worst cases that a search found\n\n";
    report += &match plan.search {
        None => "Not searched for: add `--search`.\n".to_string(),
        Some(scenarios) => Document::default()
            .said(format!("{} were tried.", counted(scenarios, "random scenario")))
            .table(super::searched(evaluation))
            .markdown(false),
    };
    report += "\n## What could not be tried\n\n";
    report += &not_tried(evaluation).markdown(false);
    report + "\n## To repeat it\n\n" + &repeat(evaluation, program, directory)
}

fn verdict(evaluation: &Evaluation) -> String {
    let of = |verdict| evaluation.lines.iter().filter(move |line| Verdict::of(line) == verdict);
    let all = counted(evaluation.lines.len(), "criterion");
    let all = all.replace("criterions", "criteria");
    let untried = match of(Verdict::NotTried).count() {
        0 => String::new(),
        count => format!(" {count} could not be tried."),
    };
    let mut failed: Vec<&str> = of(Verdict::Fails).map(|line| line.line.section.as_str()).collect();
    let count = failed.len();
    failed.sort_by_key(|section| evaluation_order(section));
    failed.dedup();
    match count {
        0 => format!("Verdict: none of {all} fails.{untried}"),
        _ => format!("Verdict: {count} of {all} fail, in {}.{untried}", failed.join(", ")),
    }
}

fn meaning(evaluation: &Evaluation) -> String {
    let plan = &evaluation.plan;
    format!(
        "A criterion fails if the candidate is worse there than each of {} on the same seeds, beyond \
         the margin and beyond chance. The sections are those of RFC 9743, which leaves the judgement \
         to people: this is evidence for it. Runs on {}, {}{}.",
        plan.standards.join(", "),
        plan.ground,
        knee_lab::report::evaluation_seeds(evaluation),
        if plan.quick { ", only the most informative cases of each section" } else { "" },
    )
}

fn of_section<'e>(
    evaluation: &'e Evaluation,
    section: &'e str,
) -> impl Iterator<Item = &'e EvaluationOutcome> {
    evaluation.lines.iter().filter(move |line| line.line.section == section)
}

/// How many criteria of each section pass and fail.
fn overview(evaluation: &Evaluation, sections: &[&SectionAsks]) -> Table {
    let all = [Verdict::Passes, Verdict::Fails, Verdict::NotTried];
    let heads = ["§", "section"].into_iter().chain(all.map(Verdict::word));
    let mut table = Table::new(heads.map(text));
    for asked in sections {
        let count = |verdict: Verdict| {
            let lines = of_section(evaluation, &asked.section);
            match lines.filter(|line| Verdict::of(line) == verdict).count() {
                0 => String::new(),
                count => count.to_string(),
            }
        };
        let cells = [asked.section.clone(), asked.title.clone()];
        table.row(cells.into_iter().chain(all.map(count)));
    }
    table
}

fn since(worse: &[EvaluationChange]) -> Document {
    if worse.is_empty() {
        return Document::default().said("No criterion got worse.");
    }
    let mut table = Table::new(["§", "got worse", "now over then"].map(text));
    for one in worse {
        table.row([one.section.clone(), one.title.clone(), super::change(one)]);
    }
    Document::default().table(table)
}

/// A section: what it asks for, the values of each controller, and how they compare.
fn section(evaluation: &Evaluation, asked: &SectionAsks) -> Document {
    let plan = &evaluation.plan;
    let heads = ["criterion", "verdict", &plan.candidate].map(text).into_iter();
    let heads = heads.chain(plan.standards.iter().map(text));
    let over = plan.standards.iter().map(|standard| text(format!("over {standard}")));
    let mut table = Table::new(heads.chain(over));
    for line in of_section(evaluation, &asked.section) {
        let mut cells = vec![line.line.title.clone(), Verdict::of(line).word().to_string()];
        cells.extend(evaluation_values(line));
        cells.extend(line.against.iter().map(|one| {
            let size = one.ratio.as_ref().filter(|_| line.could_not_be_tried.is_none());
            let size = size.map(|ratio| evaluation_size(line.line.unit, ratio));
            format!("{}, {}", size.unwrap_or_default(), evaluation_word(line, one))
                .trim_start_matches(", ")
                .to_string()
        }));
        table.row(cells);
    }
    let cases = evaluation_cases(evaluation, &asked.section).join("; ");
    Document::default().said(&*asked.asks).table(table).said(format!("Run: {cases}."))
}

/// The case in which each criterion that fails is farthest behind, as a command.
fn worst_cases(evaluation: &Evaluation, section: &str, directory: &Path) -> String {
    let failed = of_section(evaluation, section).filter(|line| Verdict::of(line) == Verdict::Fails);
    let shown = failed.filter_map(|line| {
        let worst = line.worst.as_ref().filter(|worst| !worst.scenario.is_empty())?;
        let file = quoted(&directory.join(&worst.scenario).display().to_string());
        let command = evaluation.plan.run_command(&file);
        Some(format!("- {}: worst in \"{}\": `{command}`\n", line.line.title, worst.case))
    });
    let shown: String = shown.collect();
    if shown.is_empty() { shown } else { format!("\n{shown}") }
}

/// Requirements without a test, and criteria without a value, with the reasons.
fn not_tried(evaluation: &Evaluation) -> Document {
    let mut table = Table::new(["§", "what", "why"].map(text));
    let without = evaluation.lines.iter().filter_map(|line| {
        let why = line.could_not_be_tried.as_ref()?;
        Some([&line.line.section, &line.line.title, why])
    });
    let missing = evaluation.plan.not_tried.iter().map(|one| [&one.section, &one.what, &one.why]);
    let mut all: Vec<[&String; 3]> = without.chain(missing).collect();
    if all.is_empty() {
        return Document::default().said("Nothing.");
    }
    all.sort_by_key(|[section, ..]| evaluation_order(section));
    all.into_iter().for_each(|cells| table.row(cells.map(String::as_str)));
    Document::default().table(table)
}

/// The command, and the program with which it gives the same values to the bit.
fn repeat(evaluation: &Evaluation, program: &Program, directory: &Path) -> String {
    let plan = &evaluation.plan;
    let known = |name: &str, value: &Option<String>| {
        value.as_ref().map_or_else(String::new, |value| format!("- {name}: {value}\n"))
    };
    let features = match program.features.as_slice() {
        [] => "none".to_string(),
        several => several.join(", "),
    };
    let brought = plan.brought.as_ref().map_or_else(String::new, |class| {
        format!("- the candidate: class {} of {}\n", class.class, class.module)
            + &known("SHA-256 of its source", &class.sha256)
    });
    format!(
        "    {}\n\nThe same program gives the same values to the bit, with any number of \
         processors: compare `evaluation.json`. It was\n\n- Knee {}\n{}{}- features: {features}\n{}{}{brought}\n\
         {} of {} runs. Each case is a scenario in `{}`.\n",
        plan.command,
        env!("CARGO_PKG_VERSION"),
        known("commit", &program.commit),
        known("SHA-256 of the program", &program.sha256),
        known("compiler", &program.toolchain),
        known("target", &program.target),
        evaluation.runs_finished,
        plan.runs_planned,
        directory.join(knee_record::INPUTS).display(),
    )
}
