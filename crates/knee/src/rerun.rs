//! `knee rerun`.

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use knee_lab::directory::{DEFAULT, unused};
use knee_lab::words::figure;
use knee_lab::{Again, Changed, FileAgain, Rerun};
use knee_present::words::NONE;
use knee_present::{Cell, Document, Table, Tone, number, text};
use std::path::PathBuf;

/// Maximum number of a summary's differing numbers to print, largest difference first.
const NUMBERS: usize = 5;

/// Repeats the runs of a folder and compares the records.
pub fn rerun(arguments: &arguments::Rerun) -> Result<Ending, Failure> {
    let lab = lab(arguments.output.jobs);
    let out = out(arguments)?;
    let mut plan = lab.plan_rerun(&arguments.directory, &out, arguments.originals)?;
    lab.keep_apart(&out, [&arguments.directory])?;
    lab.claim(&out, [&out], arguments.output.force)?;
    let rerun = watched(&lab, || lab.rerun(&mut plan))?;
    document(&rerun).print(arguments.print.format(), &rerun)?;
    Ok(match rerun.same {
        _ if lab.is_stopped() => Ending::Interrupted,
        true => Ending::Done,
        false => Ending::Differs,
    })
}

/// The output directory: `knee-out/rerun-NAME`, or the next free number.
fn out(arguments: &arguments::Rerun) -> Result<PathBuf, Failure> {
    if let Some(out) = &arguments.output.out {
        return Ok(out.clone());
    }
    let whole = arguments.directory.canonicalize();
    let name = whole.as_deref().unwrap_or(&arguments.directory).file_name();
    let name = name.unwrap_or_default().to_string_lossy();
    let directory = PathBuf::from(DEFAULT).join(format!("rerun-{name}"));
    Ok(if arguments.output.force { directory } else { unused(&directory, &[])? })
}

fn document(rerun: &Rerun) -> Document {
    let files = rerun.files.len();
    let others = rerun.files.iter().filter(|file| file.outcome != Again::Same);
    let others: Vec<&FileAgain> = others.collect();
    let document = Document::default();
    let document = match others.len() {
        0 => document.said(format!("Identical: {files} of {files} records.")),
        count => document
            .said(format!("Different: {count} of {files} records."))
            .words("\n")
            .table(differing(&others)),
    };
    let (first, again) = (&rerun.directory, &rerun.again);
    document.then(changed(rerun)).words(format!("\nfirst    {first}\nagain    {again}\n"))
}

fn differing(others: &[&FileAgain]) -> Table {
    let mut table = Table::new([
        text("record"),
        text("outcome"),
        text("number"),
        number("first"),
        number("again"),
    ])
    .called("records");
    for file in others {
        let outcome = match file.outcome {
            Again::Same => "identical",
            Again::Differs => "differs",
            Again::OnlyBefore => "not written again",
            Again::OnlyNow => "new",
        };
        let words = [Cell::from(&file.file), outcome.into()];
        let Some((first, rest)) = file.numbers.split_first() else {
            table.row_with(1, Tone::Bad, words.into_iter().chain(<[Cell; 3]>::default()));
            continue;
        };
        for (number, words) in std::iter::once((first, words))
            .chain(rest.iter().take(NUMBERS - 1).map(|number| (number, Default::default())))
        {
            let show = |value: f64| figure(&number.measure, value);
            let figures = [Cell::from(&number.measure), show(number.before), show(number.after)];
            table.row_with(1, Tone::Bad, words.into_iter().chain(figures));
        }
    }
    table
}

/// What has changed since the recorded run.
fn changed(rerun: &Rerun) -> Document {
    if rerun.changed.is_empty() {
        return match rerun.same {
            true => Document::default(),
            false => Document::default().said("Program and inputs are the same as on record."),
        };
    }
    let mut table = Table::new([text("changed"), text("on record"), text("now")]).called("changed");
    let shown = |value: &Option<String>| match value.as_deref() {
        None | Some("") => NONE.to_string(),
        Some(value) => short(value).to_string(),
    };
    let row = |one: &Changed| [one.what.clone(), shown(&one.recorded), shown(&one.now)];
    rerun.changed.iter().for_each(|one| table.row(row(one)));
    Document::default().words("\n").table(table)
}

/// Abbreviates a hash.
fn short(value: &str) -> &str {
    let is_hash = |text: &str| text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit());
    if is_hash(value) { &value[..12] } else { value }
}
