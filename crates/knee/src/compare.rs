//! `knee compare`.

use crate::arguments::Compare;
use crate::failure::{Ending, Failure};
use crate::print::Print;
use crate::sweep;
use knee_lab::directory::REPORT;
use knee_lab::words::{change, figure, is_part, named};
use knee_lab::{Lab, RunsCompared};
use knee_present::words::{NONE, listed};
use knee_present::{Cell, Document, Table, number, text};
use knee_record::{
    Comparison, Difference, Judgement, Paired, PairedScale, RunIdentity, SideAgainst, TwoCompared,
    Unit,
};

/// Prints differences between runs: inputs, the measures that matter and, with `--all`, every
/// number. With `--out`, also writes a page.
pub fn compare(arguments: &Compare) -> Result<Ending, Failure> {
    let runs = knee_lab::compare_runs(&arguments.runs)?;
    let compared = &runs.compared;
    let mut document = document(compared, arguments.all);
    if arguments.all {
        document = document.words("\n").then(number_by_number(compared));
    }
    if let Some(out) = &arguments.out {
        let lab = Lab::default();
        lab.keep_apart(out, &runs.folders)?;
        lab.claim(out, [out], arguments.force)?;
        lab.keep_comparison(&runs, out)?;
        let (page, command) = (out.join(REPORT), &compared.command);
        document = document.words(format!("\nreport   {}\nrepeat   {command}\n", page.display()));
    }
    let format = arguments.print.format();
    match &compared.comparisons[..] {
        [only] => {
            let comparison = only.clone();
            let measures = compared.measures.clone();
            document.print(format, &TwoCompared { comparison, measures })?;
        }
        _ => document.print(format, compared)?,
    }
    Ok(Ending::Done)
}

/// The comparison as text: inputs, answer, the measures that matter.
pub fn document(compared: &RunsCompared, all: bool) -> Document {
    let document = given(compared);
    let said = compared.says.iter();
    let document = said.fold(document, |document, says| document.said(says));
    let note = match compared.runs.iter().any(|runs| *runs > 1) {
        true => {
            "Means with their 95 % intervals; compared with the first in pairs of the same seed, \
             all comparisons corrected together (Holm), intervals of ratios too. Alike: the \
             interval lies within 1 %. Undecided: it does not, and no difference is significant."
        }
        false => "One run each: differences may be due to chance. Run all with --repeat 5.",
    };
    let document = document.words("\n").table(measures(compared, all)).said(note);
    undecided(compared).into_iter().fold(document, Document::said)
}

/// One row for each measure and side.
fn measures(compared: &RunsCompared, all: bool) -> Table {
    let of_one_group = compared.measures.iter().all(|one| one.group == compared.measures[0].group);
    let flows = (!of_one_group).then(|| text("flows")).into_iter();
    let figures = [
        number("value").holds(None, &["", "low", "high", "never"]),
        number("against the first").holds(
            None,
            &[
                "ratio",
                "ratio_low",
                "ratio_high",
                "difference",
                "difference_low",
                "difference_high",
            ],
        ),
    ];
    let heads = flows.chain(["measure", "run"].map(text)).chain(figures).chain([text("outcome")]);
    let mut table = Table::new(heads).called("workload");
    for one in compared.measures.iter().filter(|one| all || one.first) {
        let sides = one.values.iter().zip(&one.against).zip(&compared.names);
        for ((value, against), name) in sides {
            let group = (!of_one_group).then(|| Cell::from(&one.group));
            let measure = [Cell::from(&one.measure.title), Cell::from(name)];
            let value = sweep::text::value(one.measure.unit, value.as_ref());
            let (ratio, word) = against.as_ref().map_or_else(
                || (Cell::from(NONE), Cell::from("")),
                |against| (size(one.measure.unit, against), Cell::from(against.word.word())),
            );
            let row = group.into_iter().chain(measure).chain([value, ratio, word]);
            table.row(row);
        }
    }
    table
}

/// Says how many repeats would decide what is undecided among the measures shown first.
fn undecided(compared: &RunsCompared) -> Option<String> {
    let mut needed: Vec<(&str, u64)> = Vec::new();
    for one in compared.measures.iter().filter(|one| one.first) {
        let advised = one.against.iter().flatten().filter_map(|against| against.repeats_advised);
        let Some(repeats) = advised.max() else { continue };
        match needed.iter_mut().find(|(title, _)| *title == one.measure.title) {
            Some((_, most)) => *most = repeats.max(*most),
            None => needed.push((&one.measure.title, repeats)),
        }
    }
    let named: Vec<String> =
        needed.iter().map(|(title, repeats)| format!("{title} with --repeat {repeats}")).collect();
    (!named.is_empty())
        .then(|| format!("Differences of the sizes seen would be decided for {}.", listed(&named)))
}

/// Ratio of a side to the first, or their difference, with its interval.
fn size(unit: Unit, against: &SideAgainst) -> Cell {
    let shown = against.size(unit);
    let ratio = against.compared.scale == PairedScale::Ratio;
    let parts = match ratio {
        true => ["ratio", "ratio_low", "ratio_high"],
        false => ["difference", "difference_low", "difference_high"],
    };
    let Paired { estimate, low, high, .. } = against.compared;
    let known = parts.into_iter().zip([estimate, low, high]);
    let known = known.filter_map(|(part, value)| Some((part, value?)));
    known.fold(Cell::from(shown), |cell, (part, value)| cell.with(part, value))
}

/// All numbers that both sides have.
fn number_by_number(compared: &RunsCompared) -> Document {
    match &compared.comparisons[..] {
        [] => Document::default().said("Points of a sweep have no other numbers."),
        [only] => of_two(only),
        _ => several(compared),
    }
}

/// Inputs that differ.
fn given(compared: &RunsCompared) -> Document {
    if compared.given.is_empty() {
        let same = "The runs have the same scenario, version and ground.";
        return Document::default().said(same).words("\n");
    }
    let heads = std::iter::once(text("what differs")).chain(compared.names.iter().map(text));
    let mut table = Table::new(heads).called("given");
    for given in &compared.given {
        let values = given.values.iter().map(|value| value.clone().unwrap_or_else(|| NONE.into()));
        table.row(std::iter::once(given.what.clone()).chain(values));
    }
    Document::default().table(table).words("\n")
}

/// One row for each measure that all sides have, one column for each side.
fn several(compared: &RunsCompared) -> Document {
    let heads = std::iter::once(text("measure")).chain(compared.names.iter().map(number));
    let mut table = Table::new(heads).called("measures");
    let Some((first, others)) = compared.comparisons.split_first() else {
        return Document::default();
    };
    for difference in &first.differences {
        let same = |other: &Comparison| {
            other.differences.iter().find(|found| found.measure == difference.measure).cloned()
        };
        let Some(found) = others.iter().map(same).collect::<Option<Vec<_>>>() else { continue };
        let mut row =
            vec![Cell::from(&difference.measure), figure(&difference.measure, difference.before)];
        row.extend(std::iter::once(difference).chain(&found).map(cell));
        table.row(row);
    }
    let pairs = compared.comparisons.iter().map(|one| one.pairs).min().unwrap_or(0);
    let note = match pairs {
        0 => "One run each: differences may be due to chance. Run all with --repeat 5.".to_string(),
        pairs => format!(
            "In brackets: the ratio to the first, or for fractions the difference in percentage \
             points, if the difference is significant: {pairs} pairs of runs with the same seed, \
             the comparisons with each run corrected together (Holm). Without brackets: alike \
             within 1 %, or undecided."
        ),
    };
    Document::default().table(table).said(note)
}

/// Returns whether the pairs differ, and by enough to count.
fn is_different(difference: &Difference) -> bool {
    difference.word().is_some_and(Judgement::differs)
}

/// A value with its difference from the first run.
fn cell(difference: &Difference) -> Cell {
    let value = named(&difference.measure, difference.after);
    let by = || format!("{value} ({})", change(&difference.measure, difference.absolute));
    let is_part = is_part(&difference.measure);
    let shown = match (&difference.compared, difference.relative) {
        (Some(pairs), _) if is_different(difference) => match (pairs.scale, pairs.estimate) {
            (PairedScale::Ratio, Some(ratio)) if !is_part => format!("{value} (× {ratio:.2})"),
            _ => by(),
        },
        (Some(_), _) => value,
        (None, Some(part)) if !is_part => format!("{value} ({:+.0} %)", part * 100.0),
        (None, Some(_)) if difference.absolute != 0.0 => by(),
        (None, _) => value,
    };
    let cell = Cell::shown(shown, difference.after);
    let pairs = difference.compared.filter(|pairs| pairs.scale == PairedScale::Ratio);
    let parts = pairs.map(|pairs| {
        [("ratio", pairs.estimate), ("ratio_low", pairs.low), ("ratio_high", pairs.high)]
    });
    let known = parts.into_iter().flatten().filter_map(|(part, value)| Some((part, value?)));
    known.fold(cell, |cell, (part, value)| cell.with(part, value))
}

fn of_two(comparison: &Comparison) -> Document {
    let table = match comparison.pairs {
        0 => Table::new([
            text("measure"),
            number("before"),
            number("after"),
            number("change"),
            number("relative"),
        ]),
        _ => Table::new([
            text("measure"),
            number("before"),
            number("after"),
            number("after over before"),
            text("difference"),
        ]),
    };
    let mut table = table.called("measures");
    comparison.differences.iter().for_each(|difference| match comparison.pairs {
        0 => table.row(row(difference)),
        _ => table.row(paired_row(difference)),
    });
    let identities = format!(
        "before  {}\nafter   {}\n\n",
        identity(&comparison.before, comparison.pairs),
        identity(&comparison.after, comparison.pairs),
    );
    let mut document = Document::default().words(identities).table(table);
    for (only, names) in [("before", &comparison.only_before), ("after", &comparison.only_after)] {
        if !names.is_empty() {
            document = document.said(format!("only {only}: {}", names.join(", ")));
        }
    }
    document.said(note(comparison))
}

fn note(comparison: &Comparison) -> String {
    match comparison.pairs {
        0 => {
            "One run each: differences may be due to chance. Run both with --repeat 5.".to_string()
        }
        pairs => format!(
            "{pairs} pairs of runs with the same seed; means, ratios with their 95 % intervals. A \
             difference is significant after correction for all {} comparisons (Holm).",
            comparison.comparisons
        ),
    }
}

fn identity(run: &RunIdentity, pairs: usize) -> String {
    match pairs {
        0 => format!("{} · {} · seed {}", run.name, run.ground, run.seed),
        pairs => format!("{} · {} · {pairs} runs", run.name, run.ground),
    }
}

fn row(difference: &Difference) -> [Cell; 5] {
    let show = |value: f64| figure(&difference.measure, value);
    let relative =
        difference.relative.map(|part| Cell::shown(format!("{:+.1} %", part * 100.0), part));
    [
        (&difference.measure).into(),
        show(difference.before),
        show(difference.after),
        Cell::shown(change(&difference.measure, difference.absolute), difference.absolute),
        relative.unwrap_or_else(|| NONE.into()),
    ]
}

fn paired_row(difference: &Difference) -> [Cell; 5] {
    let show = |value: f64| figure(&difference.measure, value);
    let show_ratio = |value: f64| Unit::Number.show((value * 1e3).round() / 1e3);
    let pairs = difference.compared.as_ref();
    let ratio = pairs.filter(|pairs| pairs.scale == PairedScale::Ratio).and_then(|pairs| {
        let (low, high) = pairs.low.zip(pairs.high)?;
        let estimate = pairs.estimate?;
        let shown =
            format!("{} ({} to {})", show_ratio(estimate), show_ratio(low), show_ratio(high));
        Some(Cell::shown(shown, estimate).with("low", low).with("high", high))
    });
    // More or less, since not every number has a better direction.
    let verdict = match (difference.word(), difference.repeats_advised) {
        (Some(Judgement::Better), _) => "more".to_string(),
        (Some(Judgement::Worse), _) => "less".to_string(),
        (Some(word), Some(needed)) => format!("{word}; --repeat {needed} would decide"),
        (Some(word), None) => word.to_string(),
        (None, _) => String::new(),
    };
    let ratio = ratio.unwrap_or_else(|| NONE.into());
    let measure = Cell::from(&difference.measure);
    [measure, show(difference.before), show(difference.after), ratio, verdict.into()]
}
