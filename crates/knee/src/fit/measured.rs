//! What tools measured.

use super::{STOPPED, cells, table};
use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::watched;
use crate::print::Print;
use crate::screen;
use knee_advise::MISFIT_MAX;
use knee_lab::command::quoted;
use knee_lab::{Compared, Estimate, FitSettings, Lab, MeasuredFit};
use knee_present::Document;
use knee_present::words::{bytes, listed, rate, time_us};
use std::path::PathBuf;

/// Finds the path that explains what tools measured on it.
pub fn fit(
    lab: &Lab,
    files: &[PathBuf],
    arguments: &arguments::Fit,
    settings: &FitSettings,
) -> Result<Ending, Failure> {
    let Some(fitted) = watched(lab, || lab.fit_files(files, settings))? else {
        screen::say(STOPPED);
        return Ok(Ending::Interrupted);
    };
    let mut document = document(&fitted);
    if let Some(out) = &arguments.out {
        let file = lab.keep_measured_fit(&fitted, out)?;
        document =
            document.words(format!("\npath     knee run {}\n", quoted(&file.to_string_lossy())));
    }
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

fn document(fitted: &MeasuredFit) -> Document {
    let mut table = table();
    let milliseconds = |seconds: f64| time_us(Some(1e6 * seconds));
    let percent = |part: f64| format!("{:.3} %", 100.0 * part);
    let mut add = |name: &str, estimate: &Estimate, shown: &dyn Fn(f64) -> String| {
        table.row(cells(name, estimate.figure, shown, &estimate.how));
    };
    add("rate", &fitted.rate, &|value| rate(Some(value)));
    add("RTT", &fitted.rtt, &milliseconds);
    add("random loss", &fitted.loss, &percent);
    add("buffer", &fitted.buffer, &|value| bytes(Some(value)));
    add("jitter", &fitted.jitter, &milliseconds);
    let read: String = fitted.read.iter().map(|line| format!("{line}\n")).collect();
    let mut document = Document::default().words(read);
    if let Some(compared) = &fitted.compared {
        document = document.said(says(compared));
    }
    document = document.words("\n").table(table);
    if !fitted.assumed.is_empty() {
        let lines: String = fitted.assumed.iter().map(|line| format!("{line}\n")).collect();
        document = document.words(format!("\nIn the scenario:\n{lines}"));
    }
    document
}

fn says(compared: &Compared) -> String {
    let Compared { controller, misfit, misfitting } = compared;
    if *misfit <= MISFIT_MAX {
        return format!(
            "One path explains the transfer under {controller}, with a misfit of {misfit:.2} (0.5 is \
             what chance alone leaves)."
        );
    }
    let off = misfitting.iter().take(2).map(|one| {
        let more = if one.errors > 0.0 { "more" } else { "less" };
        format!("{} ({more} than measured)", one.name)
    });
    format!(
        "No single path explains the transfer under {controller}: the misfit is {misfit:.2}. The best \
         one is furthest off in {}.",
        listed(&off.collect::<Vec<_>>())
    )
}
