//! What tools measured on a path, in place of connections.

use super::candidates;
use crate::arguments;
use crate::failure::{Ending, Failure};
use crate::fit::STOPPED;
use crate::laboratory::watched;
use crate::logs::other_purpose;
use crate::print::Print;
use crate::screen;
use knee_foreign::Purpose;
use knee_lab::command::quoted;
use knee_lab::{
    AdvisedPath, AdvisedTransfer, Candidates, FITTED_RUN, FitSettings, Lab, TransferAdvice,
};
use knee_present::words::{listed, percent, time_us};
use knee_present::{Cell, Document, Table, Tone, number, text};
use std::path::{Path, PathBuf};

/// Simulations that find the path: as many as `knee fit` makes.
const SIMULATIONS: usize = 400;

/// Whether all of these are files that a tool wrote about a path.
///
/// # Errors
///
/// Some are, and others are not.
pub fn are_measured(paths: &[PathBuf]) -> Result<bool, Failure> {
    let is_measured = |path: &&PathBuf| {
        path.is_file() && other_purpose(path).as_ref().is_some_and(Purpose::is_measured)
    };
    let Some(one) = paths.iter().find(is_measured) else { return Ok(false) };
    match paths.iter().find(|path| !is_measured(path)) {
        None => Ok(true),
        Some(other) => {
            let what = format!(
                "{} is what a tool measured on a path, and {} is not",
                one.display(),
                other.display()
            );
            Err(Failure::Usage(what, "ask for advice on each kind for itself".to_string()))
        }
    }
}

/// Recommends a controller for long transfers over the path behind the files.
pub fn advise(lab: &Lab, arguments: &arguments::Advise) -> Result<Ending, Failure> {
    let by = &arguments.by;
    if by.in_use.is_some() {
        let what = "--in-use has no meaning for what tools measured".to_string();
        return Err(Failure::Usage(what, "leave it out: the files tell the controller".into()));
    }
    if let Some(out) = &arguments.out {
        lab.keep_apart(out, &arguments.paths)?;
        lab.claim(out, [out, &out.join(FITTED_RUN)], arguments.force)?;
    }
    let settings = FitSettings { simulations: SIMULATIONS, seed: by.seed };
    let of = |in_use: &str| candidates(by, in_use);
    let Some(advised) = watched(lab, || lab.advise_files(&arguments.paths, &settings, &of))? else {
        screen::say(STOPPED);
        return Ok(Ending::Interrupted);
    };
    let mut document = document(&advised);
    if let Some(out) = &arguments.out {
        document = document.words(kept(lab, &advised, out)?);
    }
    document = document.words(format!("\nrepeat   {}\n", command(arguments)));
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

/// The command that repeats the advice.
fn command(arguments: &arguments::Advise) -> String {
    let files: Vec<String> =
        arguments.paths.iter().map(|path| quoted(&path.to_string_lossy())).collect();
    let Candidates(named) = arguments.by.candidates.clone().unwrap_or(Candidates(Vec::new()));
    let candidates = match &named[..] {
        [] => String::new(),
        named => format!(" --candidates {}", named.join(",")),
    };
    format!("knee advise {}{candidates} --seed {}", files.join(" "), arguments.by.seed)
}

fn kept(lab: &Lab, advised: &AdvisedPath, out: &Path) -> Result<String, Failure> {
    let file = lab.keep_measured_fit(&advised.fitted, out)?;
    Ok(format!("\npath     knee run {}\n", quoted(&file.to_string_lossy())))
}

fn document(advised: &AdvisedPath) -> Document {
    let read: String = advised.fitted.read.iter().map(|line| format!("{line}\n")).collect();
    let document = Document::default().words(read);
    if let Some(why) = &advised.obstacle {
        let what = format!("No advice: {why}. knee fit says what the files tell.");
        return document.said(what);
    }
    let mut table = Table::new([
        text("candidate"),
        text("advice"),
        number("speed").holds(None, &["", "low", "high"]),
        number("RTT p50").holds(None, &["", "in_use"]),
        number("retransmitted").holds(None, &["", "in_use"]),
    ])
    .called("advice");
    for one in &advised.candidates {
        table.row_with(1, tone(one.advice()), row(one, &advised.in_use));
    }
    let says: Vec<String> =
        advised.candidates.iter().map(|one| sentence(one, &advised.in_use)).collect();
    let document = says.iter().fold(document, Document::said).words("\n").table(table);
    let assumed = match &advised.fitted.assumed[..] {
        [] => String::new(),
        all => format!(" What the files do not tell was varied ({}).", listed(all)),
    };
    document.said(format!(
        "Beside {}, over {} that the files allow. Speed: goodput of a long transfer, over the mean of \
         the paths, and the least and the largest of a path.{assumed} A simulated path is no experiment: \
         knee steer makes one (docs/advise.md).",
        advised.in_use,
        knee_present::words::counted(advised.paths, "path"),
    ))
}

fn sentence(one: &AdvisedTransfer, in_use: &str) -> String {
    let AdvisedTransfer { candidate, rtt_s, .. } = one;
    let [now, then] = rtt_s.map(|rtt| time_us(Some(1e6 * rtt)));
    let (_, least, most) = changes(one);
    let range = format!("{least:+.0} to {most:+.0} %");
    match one.advice() {
        TransferAdvice::Try => format!(
            "Try {candidate} for long transfers: faster than {in_use} on every path that explains the \
             measurement ({range})."
        ),
        TransferAdvice::Keep => {
            format!("Keep {in_use}: {candidate} is slower on every path ({range}).")
        }
        TransferAdvice::Alike => format!(
            "{candidate} is as fast as {in_use} ({range}); the RTT under load is {then} instead of {now}."
        ),
        TransferAdvice::Open => format!(
            "Whether {candidate} is faster than {in_use} depends on what the files do not tell ({range})."
        ),
    }
}

/// Changes of the speed, per cent: mean, least and largest.
fn changes(one: &AdvisedTransfer) -> (f64, f64, f64) {
    // Adding zero turns -0 to 0.
    let [mean, least, most] = one.speed.map(|by| (100.0 * (by - 1.0)).round() + 0.0);
    (mean, least, most)
}

fn row(one: &AdvisedTransfer, in_use: &str) -> [Cell; 5] {
    let (mean, least, most) = changes(one);
    let advice = match one.advice() {
        TransferAdvice::Try => "try it".to_string(),
        TransferAdvice::Keep => format!("keep {in_use}"),
        TransferAdvice::Alike => "as fast".to_string(),
        TransferAdvice::Open => "it depends".to_string(),
    };
    let [rtt_now, rtt_then] = one.rtt_s;
    let in_words = |seconds: f64| time_us(Some(1e6 * seconds));
    let [now, then] = one.retransmitted;
    let arrow = |now: String, then: String| format!("{now} → {then}");
    [
        one.candidate.as_str().into(),
        advice.into(),
        Cell::shown(format!("{mean:+.0} % ({least:+.0} to {most:+.0})"), one.speed[0])
            .with("low", one.speed[1])
            .with("high", one.speed[2]),
        Cell::shown(arrow(in_words(rtt_now), in_words(rtt_then)), rtt_then).with("in_use", rtt_now),
        Cell::shown(arrow(percent(Some(now)), percent(Some(then))), then).with("in_use", now),
    ]
}

fn tone(advice: TransferAdvice) -> Tone {
    match advice {
        TransferAdvice::Try => Tone::Good,
        TransferAdvice::Keep | TransferAdvice::Alike | TransferAdvice::Open => Tone::Neutral,
    }
}
