//! `knee evaluate`.

mod grounds;
mod rfc9743;
mod suite;

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, watched};
use crate::out_file::OutFile;
use crate::print::Print;
use crate::screen;
use knee_lab::command::quoted;
use knee_lab::directory::{DEFAULT, EVALUATION, EVALUATION_TABLE, REPORT};
use knee_lab::report::{
    evaluation_anchor, evaluation_cases, evaluation_figures as figures, evaluation_says,
    evaluation_seeds, evaluation_size, evaluation_values, evaluation_word, evaluation_worst,
};
use knee_lab::{
    Error, Evaluate, EvaluateSettings, PROGRAMS, Pace, SEARCH_SCENARIOS, SIMULATOR, evaluate_seeds,
};
use knee_present::words::NONE;
use knee_present::{Cell, Document, Head, Table, Tone, number, text};
use knee_record::{
    Evaluation, EvaluationAgainst, EvaluationChange, EvaluationOutcome, got_worse, read_evaluation,
};
use knee_scenario::load_file;
use std::path::{Path, PathBuf};

/// Evaluates a candidate against the criteria of RFC 9743.
pub fn evaluate(arguments: &arguments::Evaluate) -> Result<Ending, Failure> {
    let [candidate] = arguments.candidate.0.as_slice() else {
        let advice = "name one; knee rank compares several";
        return Err(Failure::Usage("several candidates".to_string(), advice.to_string()));
    };
    let lab = lab(arguments.output.jobs);
    if let Some(name) = &arguments.suite {
        return suite::evaluate(arguments, &lab, name, candidate);
    }
    // Read before files are replaced: it may be in the output folder.
    let before = arguments.against.as_deref().map(read_evaluation).transpose();
    let before = before.map_err(Error::from)?;
    let grounds = chosen(&lab.grounds, &arguments.on)?;
    let on = match grounds.as_slice() {
        [one] if one.name() == PROGRAMS => *one,
        _ => lab.grounds.get(SIMULATOR).map_err(Error::from)?,
    };
    let settings = EvaluateSettings {
        candidate: candidate.clone(),
        with: arguments.with.clone(),
        sections: arguments.section.clone(),
        repeat: match on.pace() {
            Pace::Real => arguments.repeat_real,
            Pace::Virtual => arguments.repeat.unwrap_or(evaluate_seeds(arguments.quick)),
        },
        quick: arguments.quick,
        on,
        beside: Vec::new(),
        search: arguments
            .search
            .map(|given| given.map_or(SEARCH_SCENARIOS, |scenarios| scenarios as usize)),
        traces: arguments.trace.iter().map(|path| read(path)).collect::<Result<_, _>>()?,
        algorithms: None,
    };
    let force = arguments.output.force;
    let report = arguments.report.as_deref().map(|path| OutFile::new(path, force)).transpose()?;
    let directory = directory(arguments, candidate);
    if grounds.iter().any(|ground| ground.name() != on.name()) {
        return grounds::evaluate(arguments, &lab, settings, &grounds, &directory);
    }
    if settings.search.is_some() && on.pace() == Pace::Real {
        let advice = "remove --search".to_string();
        return Err(Failure::Usage("a search takes thousands of runs".to_string(), advice));
    }
    let mut plan = Evaluate::new(&settings)?;
    let resumed = if force { 0 } else { plan.resume(&lab.program, &directory) };
    lab.claim(&directory, [&directory], force || resumed > 0)?;
    if on.pace() == Pace::Real {
        grounds::say_how_long(plan.order().len(), plan.real_time_s(), resumed, &directory);
    }
    let evaluation = watched(&lab, || lab.evaluate(&plan, &directory))?;
    document(&evaluation, &directory).print(arguments.print.format(), &evaluation)?;
    if lab.is_stopped() {
        return Ok(Ending::Interrupted);
    }
    if let Some(why) = failed(&evaluation) {
        let what = format!("{candidate} could not be tried in any run: {why}");
        return Err(Failure::Usage(what, "correct the controller".to_string()));
    }
    let worse = before.map(|before| worse_than(&evaluation, &before)).transpose()?;
    if let Some(report) = &report {
        let worse = worse.as_deref();
        let text = rfc9743::markdown(&evaluation, &lab.program, &directory, worse);
        report.write_bytes(text.as_bytes())?;
    }
    let is_good = match &worse {
        Some(worse) => say_worse(worse),
        None => report.is_none() || rfc9743::passes(&evaluation),
    };
    Ok(if is_good { Ending::Done } else { Ending::Differs })
}

/// Why every line failed; `None` if one has a value.
fn failed(evaluation: &Evaluation) -> Option<&str> {
    let mut whys = evaluation.lines.iter().map(|line| line.could_not_be_tried.as_deref());
    let first = whys.next()??;
    whys.all(|why| why.is_some()).then_some(first)
}

/// A recorded link: its name as typed, and its bytes.
fn read(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let typed = path.to_string_lossy().into_owned();
    let bytes = load_file(path).map_err(|reason| {
        let what = format!("cannot read {typed}: {reason}");
        Failure::Usage(what, "name a file in Mahimahi's format".to_string())
    })?;
    Ok((typed, bytes))
}

fn directory(arguments: &arguments::Evaluate, candidate: &str) -> PathBuf {
    let below = || {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
        let words = candidate.split(|c| !plain(c)).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-");
        PathBuf::from(DEFAULT).join(format!("evaluate-{name}"))
    };
    arguments.output.out.clone().unwrap_or_else(below)
}

/// What got worse since an earlier evaluation.
fn worse_than(now: &Evaluation, before: &Evaluation) -> Result<Vec<EvaluationChange>, Failure> {
    let (own, earlier) = (&now.plan.candidate, &before.plan.candidate);
    if own != earlier {
        screen::say(&format!("The earlier evaluation is of {earlier}, not of {own}."));
    }
    got_worse(now, before).map_err(|error| {
        let advice = "evaluate both with the same version, sections, --repeat and --quick";
        Failure::Usage(error.to_string(), advice.to_string())
    })
}

/// Says what got worse; returns whether nothing did.
fn say_worse(worse: &[EvaluationChange]) -> bool {
    if worse.is_empty() {
        screen::say("No criterion got worse.");
    }
    for one in worse {
        screen::say(&format!("Got worse: {} {}: {}", one.section, one.title, change(one)));
    }
    worse.is_empty()
}

/// The new value over the earlier one.
fn change(one: &EvaluationChange) -> String {
    let size = one.ratio.as_ref();
    size.map_or("could not be tried".to_string(), |ratio| evaluation_size(one.unit, ratio))
}

fn document(evaluation: &Evaluation, directory: &Path) -> Document {
    let plan = &evaluation.plan;
    let shown = |name: &str| directory.join(name).display().to_string();
    let mut document = lead(evaluation, directory).then(criteria(evaluation));
    if !evaluation.searched.is_empty() {
        let as_bad = evaluation.searched.iter().filter_map(|found| found.as_bad_as_fixed);
        let (with, as_bad) = (as_bad.clone().count(), as_bad.filter(|as_bad| *as_bad).count());
        let told = format!(
            "Worst cases by search: at least as bad as the worst case above in {as_bad} of {with} \
             metrics."
        );
        document = document.table(searched(evaluation)).words("\n").said(told);
    }
    for line in evaluation.worst_lines().into_iter().skip(1) {
        document = worst(document, evaluation, line, directory);
    }
    let missing = plan.not_tried.iter().map(|one| format!("{} {}", one.section, one.what));
    let missing: Vec<String> = missing.collect();
    if !missing.is_empty() {
        document = document.said(format!("Not tested yet: {}.", missing.join("; ")));
    }
    document.words(format!(
        "\nruns     {} of {}\nreport   {}\ndocument {}\ndataset  {}\nrepeat   {}\n",
        evaluation.runs_finished,
        plan.runs_planned,
        shown(REPORT),
        shown(EVALUATION),
        shown(EVALUATION_TABLE),
        plan.command,
    ))
}

/// A stored evaluation, for a draft: the table of all criteria, then each section with its runs,
/// all values and the candidate's worst cases.
pub fn saved(evaluation: &Evaluation) -> Document {
    let plan = &evaluation.plan;
    let mut document = Document::default().said(evaluation_says(evaluation)).words("\n");
    document = document.then(criteria(evaluation));
    let mut heads = vec![text("measure"), number("candidate")];
    heads.extend(plan.standards.iter().map(number));
    heads.extend(["worst at", "again, in this folder"].map(text));
    for asked in &plan.asks {
        let mut table = Table::new(heads.clone());
        let lines = evaluation.lines.iter();
        for line in lines.filter(|line| line.line.section == asked.section) {
            let worst = line.worst.as_ref();
            let mut cells = vec![line.line.title.clone()];
            cells.extend(evaluation_values(line));
            cells.push(worst.map_or_else(String::new, |worst| worst.case.clone()));
            cells.push(worst.map_or_else(String::new, |at| plan.run_command(&at.scenario)));
            table.row(cells);
        }
        let cases = evaluation_cases(evaluation, &asked.section).join("; ");
        document = document
            .table(table.called(&format!("{} {}", asked.section, asked.title)))
            .said(format!("{} Run: {cases}.", asked.asks));
    }
    if !evaluation.searched.is_empty() {
        document = document.table(searched(evaluation));
    }
    for one in &plan.not_tried {
        let (section, what, why) = (&one.section, &one.what, &one.why);
        document = document.said(format!("Not tested, {section}: {what}: {why}."));
    }
    document.said(format!("Again: {}", plan.command))
}

/// The worst case of each metric that the search found.
fn searched(evaluation: &Evaluation) -> Table {
    let plan = &evaluation.plan;
    let mut heads = vec![text("worst by search"), number("candidate")];
    heads.extend(plan.standards.iter().map(number));
    heads.extend([number("ratio"), number("of the cases above"), text("knee run")]);
    let mut table = Table::new(heads).called("searched");
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| NONE.to_string(), figures);
    for found in &evaluation.searched {
        let show = |value: f64| found.unit.show(value);
        let mut cells = vec![found.title.clone()];
        cells.push(found.candidate.map_or_else(|| NONE.to_string(), show));
        let standards = found.standards.iter().map(|value| show(*value));
        let none = std::iter::repeat(NONE.to_string());
        cells.extend(standards.chain(none).take(plan.standards.len()));
        cells.extend([ratio(found.ratio), ratio(found.fixed_ratio), found.scenario.clone()]);
        table.row(cells);
    }
    table
}

/// What is worst about the candidate, and the command and the picture that show it.
fn lead(evaluation: &Evaluation, directory: &Path) -> Document {
    let document = Document::default().said(evaluation_says(evaluation));
    let worst = evaluation.worst_lines();
    let Some((line, case)) = worst.first().and_then(|line| Some((line, line.worst.as_ref()?)))
    else {
        return document.words("\n");
    };
    let run = directory.join(&case.scenario);
    let page = directory.join(REPORT);
    let section = evaluation_anchor(&line.line.section);
    let run = evaluation.plan.run_command(&quoted(&run.display().to_string()));
    document.words(format!("shows    {run}\npicture  {}#{section}\n\n", page.display()))
}

/// The candidate's results by criterion, and requirements that were not tested.
fn criteria(evaluation: &Evaluation) -> Document {
    let plan = &evaluation.plan;
    let standards = plan.standards.iter().map(text);
    let mut table = Table::new(["§", "criterion"].map(text).into_iter().chain(standards));
    for asked in &plan.asks {
        let blank = plan.standards.iter().map(|_| String::new());
        table.row([asked.section.clone(), asked.title.clone()].into_iter().chain(blank));
        let lines = evaluation.lines.iter();
        for line in lines.filter(|line| line.line.section == asked.section) {
            add(&mut table, line);
        }
    }
    let table = table.called("criteria").with_data(data(evaluation));
    let head = format!(
        "{} against {}: its values over theirs, with the interval over {} that decides the word.",
        plan.candidate,
        plan.standards.join(", "),
        evaluation_seeds(evaluation)
    );
    let mut document = Document::default().said(head).words("\n").table(table).words("\n");
    for line in evaluation.lines.iter() {
        if let Some(why) = &line.could_not_be_tried {
            let (section, title) = (&line.line.section, &line.line.title);
            document = document.said(format!("{section} {title} could not be tried: {why}"));
        }
    }
    document
}

fn add(table: &mut Table, line: &EvaluationOutcome) {
    let standards = line.against.iter().map(|one| cell(line, one));
    let title = match line.worse_than_all {
        true => format!("{}: worse than all", line.line.title),
        false => line.line.title.clone(),
    };
    let cells: Vec<String> = [String::new(), title].into_iter().chain(standards).collect();
    let tone = if line.worse_than_all { Tone::Bad } else { Tone::Neutral };
    table.row_with(1, tone, cells);
}

fn cell(line: &EvaluationOutcome, one: &EvaluationAgainst) -> String {
    let word = evaluation_word(line, one);
    let tried = one.word.is_some() && line.could_not_be_tried.is_none();
    match one.ratio.as_ref().filter(|_| tried) {
        Some(ratio) => format!("{word} {}", evaluation_size(line.line.unit, ratio)),
        None => word,
    }
}

/// Adds a line in which the candidate is worse than all, with the command that shows it.
fn worst(
    document: Document,
    evaluation: &Evaluation,
    line: &EvaluationOutcome,
    directory: &Path,
) -> Document {
    let (section, title) = (&line.line.section, &line.line.title);
    let size = evaluation_worst(evaluation, line);
    let Some(worst) = &line.worst else {
        return document.said(format!("{section} {title}: {size}."));
    };
    let scenario = quoted(&directory.join(&worst.scenario).display().to_string());
    document
        .said(format!("{section} {title}: {size}, most in \"{}\".", worst.case))
        .words(format!("  {}\n", evaluation.plan.run_command(&scenario)))
}

/// One row for each line and standard, for programs.
fn data(evaluation: &Evaluation) -> Table {
    let heads = [
        "section",
        "line",
        "title",
        "standard",
        "word",
        "ratio",
        "ratio_low",
        "ratio_high",
        "worse_than_all",
        "could_not_be_tried",
        "worst_case",
    ];
    let rows = evaluation.lines.iter().flat_map(|line| {
        line.against.iter().map(move |one| {
            let ratio = one.ratio.as_ref();
            let why = line.could_not_be_tried.as_deref();
            [
                Cell::from(&line.line.section),
                Cell::from(&line.line.claim),
                Cell::from(&line.line.title),
                Cell::from(&one.standard),
                one.word.map_or_else(String::new, |word| word.to_string()).into(),
                Cell::plain(ratio.and_then(|ratio| ratio.estimate)),
                Cell::plain(ratio.and_then(|ratio| ratio.low)),
                Cell::plain(ratio.and_then(|ratio| ratio.high)),
                line.worse_than_all.to_string().into(),
                why.unwrap_or_default().into(),
                line.worst.as_ref().map_or("", |worst| &worst.case).into(),
            ]
        })
    });
    Table::new(heads.map(Head::column)).with_rows(rows)
}
