//! `knee fit`.

mod measured;

use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use crate::screen;
use knee_advise::{Figure, Known, MISFIT_MAX};
use knee_lab::command::quoted;
use knee_lab::{FitSettings, Fitted, Lab};
use knee_present::words::{bytes, rate, time_us};
use knee_present::{Cell, Document, Table, number, text};
use std::path::Path;

pub const STOPPED: &str = "Stopped before the search was over: there is no result.";

/// Finds the path that explains a run, or what tools measured.
pub fn fit(arguments: &arguments::Fit) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let settings =
        FitSettings { simulations: usize::from(arguments.simulations), seed: arguments.seed };
    if let Some(out) = &arguments.out {
        lab.keep_apart(out, &arguments.files)?;
        lab.claim(out, [out, &out.join(knee_lab::FITTED_RUN)], arguments.force)?;
    }
    match &arguments.files[..] {
        [run] if run.is_dir() => of_run(&lab, run, arguments, &settings),
        files => measured::fit(&lab, files, arguments, &settings),
    }
}

fn of_run(
    lab: &Lab,
    run: &Path,
    arguments: &arguments::Fit,
    settings: &FitSettings,
) -> Result<Ending, Failure> {
    let Some(fitted) = watched(lab, || lab.fit(run, settings))? else {
        screen::say(STOPPED);
        return Ok(Ending::Interrupted);
    };
    let mut document = document(&fitted);
    if let Some(out) = &arguments.out {
        let [file, page] = lab.keep_fit(run, &fitted, out)?;
        document = document.words(format!(
            "\npath     knee run {}\nreport   {}\n",
            quoted(&file.to_string_lossy()),
            page.display()
        ));
    }
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

/// The table of the figures of a path.
fn table() -> Table {
    Table::new([
        text("of the path"),
        number("best").holds(None, &["", "low", "high"]),
        text("between"),
        text("how it is known"),
    ])
    .called("path")
}

fn document(fitted: &Fitted) -> Document {
    let mut table = table();
    let explained = fitted.misfit <= MISFIT_MAX;
    let unknown = match explained {
        true => "it makes no difference to this connection",
        false => "no single path explains the run",
    };
    // What the best path says of a run that it does not explain is nothing.
    let said = |figure: &Figure| match explained {
        true => *figure,
        false => Figure { known: Known::Unknown, ..*figure },
    };
    let milliseconds = |seconds: f64| time_us(Some(1e6 * seconds));
    let percent = |part: f64| format!("{:.3} %", 100.0 * part);
    table.row(row(
        "rate",
        said(&fitted.rate),
        &|value| rate(Some(value)),
        [
            "its queue was filled",
            "its queue was never filled: a faster link would show the same",
            "",
            unknown,
        ],
    ));
    table.row(row(
        "RTT",
        said(&fitted.rtt),
        &milliseconds,
        ["its queue was empty at times", "", "", unknown],
    ));
    table.row(row(
        "random loss",
        said(&fitted.loss),
        &percent,
        [
            "more is retransmitted than the queue drops",
            "",
            "no more is retransmitted than the queue drops",
            unknown,
        ],
    ));
    table.row(row(
        "buffer",
        said(&fitted.buffer),
        &|value| bytes(Some(value)),
        [
            "it was filled, and dropped",
            "it was never full: a larger one would show the same",
            "a smaller one would show the same",
            unknown,
        ],
    ));
    Document::default().said(says(fitted)).words("\n").table(table).said(
        "Between: the paths over which the connection would look nearly as it did (99 %). Misfit: \
         about 0.5 is what chance alone leaves. The model has one link with a constant rate, a \
         drop-tail queue and independent losses, and no other traffic.",
    )
}

/// A figure; `known` says how it is known closely, from below and from above, and why it is not.
fn row(name: &str, figure: Figure, shown: &dyn Fn(f64) -> String, known: [&str; 4]) -> [Cell; 4] {
    let [closely, at_least, at_most, unknown] = known;
    let how = match figure.known {
        Known::Closely => closely,
        Known::Between => "only between these",
        Known::AtLeast => at_least,
        Known::AtMost => at_most,
        Known::Unknown => unknown,
    };
    cells(name, figure, shown, how)
}

/// The cells of a figure, and how it is known.
fn cells(name: &str, figure: Figure, shown: &dyn Fn(f64) -> String, how: &str) -> [Cell; 4] {
    let Figure { best, low, high, .. } = figure;
    let bounds = match figure.known {
        Known::Closely | Known::Between => format!("{} to {}", shown(low), shown(high)),
        Known::AtLeast => format!("at least {}", shown(low)),
        Known::AtMost => format!("at most {}", shown(high)),
        Known::Unknown => "unknown".to_owned(),
    };
    let best = match figure.known {
        Known::Closely => Cell::shown(shown(best), best),
        _ => Cell::default(),
    };
    let best = match figure.known {
        Known::Closely | Known::Between => best.with("low", low).with("high", high),
        Known::AtLeast => best.with("low", low),
        Known::AtMost => best.with("high", high),
        Known::Unknown => best,
    };
    [name.into(), best, bounds.into(), how.into()]
}

fn says(fitted: &Fitted) -> String {
    let Fitted { controller, misfit, misfitting, .. } = fitted;
    if *misfit <= MISFIT_MAX {
        return format!("One path explains what {controller} saw, with a misfit of {misfit:.2}.");
    }
    let off = misfitting.iter().take(2).map(|one| {
        let more = if one.errors > 0.0 { "more" } else { "less" };
        format!("{} ({more} than measured)", one.name)
    });
    let off: Vec<String> = off.collect();
    format!(
        "No single path explains what {controller} saw: the misfit is {misfit:.2}. The best one is \
         furthest off in {}.",
        knee_present::words::listed(&off)
    )
}
