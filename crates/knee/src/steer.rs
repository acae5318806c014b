//! `knee steer`.

use crate::arguments::{Rehearse, Steer, SteerAction};
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use crate::screen;
use crate::{experiment, guard, host_default, policy, signed};
use knee_lab::{RehearseSettings, Rehearsed, RehearsedClass, ScenarioText, all_or_every_error};
use knee_present::words::time_us;
use knee_present::{Cell, Document, Mood, Table, number, text};
use knee_statistics::Interval;
use knee_steer::{Effect, Guarded, Verdict};

/// Carries out an action.
pub fn steer(arguments: &Steer) -> Result<Ending, Failure> {
    match &arguments.action {
        SteerAction::Rehearse(arguments) => rehearse(arguments),
        SteerAction::Plan(arguments) => policy::plan(arguments),
        SteerAction::Apply(arguments) => policy::apply(arguments),
        SteerAction::Run(arguments) => experiment::run(arguments),
        SteerAction::Judge(arguments) => experiment::judge_files(arguments),
        SteerAction::Keys(arguments) => signed::keys(arguments),
        SteerAction::Sign(arguments) => signed::sign(arguments),
        SteerAction::Status(arguments) => policy::status(arguments),
        SteerAction::Rollback(arguments) => policy::roll_back(arguments),
        SteerAction::Host(arguments) => host_default::host(arguments),
        SteerAction::Guard(arguments) => guard::guard(&arguments.path),
    }
}

/// Rehearses an experiment.
fn rehearse(arguments: &Rehearse) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let settings = RehearseSettings {
        on: arguments.on.clone(),
        set: arguments.set.clone(),
        seed: arguments.seed,
        triples: arguments.triples,
        calibration: arguments.calibration,
        truth: arguments.truth,
    };
    let Some(rehearsed) = watched(&lab, || lab.rehearse(&texts, &settings))? else {
        screen::say("Stopped before the first triple: there is no result.");
        return Ok(Ending::Interrupted);
    };
    document(&rehearsed, arguments.triples).print_tables(arguments.print.format())?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

fn document(rehearsed: &Rehearsed, planned: u64) -> Document {
    let Rehearsed { seed, triples, block, burn_in, classes, .. } = rehearsed;
    let mut pairs: Vec<String> = Vec::new();
    for class in classes {
        let pair = format!("{} (B) against {} (A)", class.controllers[0], class.controllers[1]);
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let length = |time: knee_units::Time| time_us(Some(time.as_nanos() as f64 / 1e3));
    let of = if triples == &planned { String::new() } else { format!(" of {planned}") };
    let title = format!(
        "{}: {triples}{of} triples of blocks of {}, burn-in {}, seed {seed}",
        pairs.join(", "),
        length(*block),
        length(*burn_in)
    );
    let mut table = Table::new([
        text("traffic"),
        text("objects"),
        text("verdict"),
        number("evidence"),
        number("B minus A"),
        number("truth"),
        number("half and half"),
        number("neighbours"),
    ])
    .called("classes");
    for class in classes {
        table.row_with(2, mood(class.trial.verdict().0), row(class));
    }
    let threshold = classes.first().map_or(0.0, |class| class.trial.threshold());
    let legend = format!(
        "Speed of a transfer: size over completion time, geometric mean. B minus A: all under B \
         compared with all under A. Half and half: result of a split of the connections; \
         neighbours: loss of those that keep A beside B. From 16 triples on with intervals that \
         are valid at any time. An effect is significant with evidence of {threshold:.0} or more. \
         Truth: the same arrivals under each, 95 % interval."
    );
    let document = Document::default().words(screen::wrapped(&title) + "\n").table(table);
    let document = document.said(legend).words("\n");
    let document = classes.iter().fold(document, |all, class| all.said(sentence(class)));
    let document = rehearsed.hard_stop.iter().fold(document, |all, (triple, time)| {
        all.said(format!(
            "On a live host triple {triple} would have been stopped {} into its block under B: \
             two consecutive windows retransmitted over 2 % and three times as much as A.",
            length(*time)
        ))
    });
    let document = rehearsed.too_short.iter().fold(document, |all, (block, burn_in)| {
        all.said(format!(
            "Blocks are too short for these transfers: write --set duration={} and --set warmup={} \
             or more.",
            written(*block),
            written(*burn_in)
        ))
    });
    let document = match rehearsed.void {
        0 => document,
        void => document.said(format!(
            "{void} of {triples} triples are left out: the host was too busy for a run."
        )),
    };
    let left_out = &rehearsed.left_out;
    match left_out.is_empty() {
        true => document,
        false => document
            .said(format!("Too few transfers in a block for a result: {}.", left_out.join("; "))),
    }
}

/// A time as a key takes it, rounded up: whole seconds from one second on.
fn written(time: knee_units::Time) -> String {
    match time.as_nanos().div_ceil(1_000_000) {
        ms if ms < 1000 => format!("{ms}ms"),
        ms => format!("{}s", ms.div_ceil(1000)),
    }
}

fn row(class: &RehearsedClass) -> [Cell; 8] {
    let (verdict, after) = class.trial.verdict();
    [
        class.traffic.as_str().into(),
        class.sizes.into(),
        word(verdict).into(),
        Cell::shown(evidence(class.trial.evidence()), class.trial.evidence())
            .with("after", after as f64),
        effect(class.trial.total()),
        class.truth.map_or_else(Cell::default, |truth| {
            let Interval { mean, low, high, .. } = truth;
            change(mean, low.zip(high))
        }),
        effect(class.trial.naive()),
        effect(class.trial.neighbours()),
    ]
}

/// Formats a verdict.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::More => "B is faster",
        Verdict::Less => "B is slower",
        Verdict::NoEffect => "no effect",
        Verdict::Stopped(Guarded::Retransmissions) => "stopped: retransmissions",
        Verdict::Stopped(Guarded::Delay) => "stopped: queueing delay",
        Verdict::Stopped(Guarded::Completion) => "stopped: small transfers",
        Verdict::RecordsLost => "invalid: records lost",
        Verdict::UnlikeHalves => "invalid: unlike halves",
    }
}

/// Colour of a verdict.
pub fn mood(verdict: Verdict) -> Mood {
    match verdict {
        Verdict::More => Mood::Good,
        Verdict::NoEffect => Mood::Neutral,
        _ => Mood::Bad,
    }
}

/// Formats an e-value.
pub fn evidence(value: f64) -> String {
    if value < 1e4 { format!("{value:.1}") } else { format!("{value:.0e}") }
}

/// Formats an effect as a change in per cent.
pub fn effect(effect: Option<Effect>) -> Cell {
    effect.map_or_else(Cell::default, |Effect { mean, interval }| change(mean, interval))
}

/// Formats a difference of logarithms as a change in per cent.
pub fn change(mean: f64, interval: Option<(f64, f64)>) -> Cell {
    let per_cent = |value: f64| 100.0 * value.exp_m1();
    let shown = |value: f64| match per_cent(value) {
        small if small.abs() < 9.95 => format!("{small:+.1}"),
        large => format!("{large:+.0}"),
    };
    let text = match interval {
        Some((low, high)) => format!("{} % ({} to {})", shown(mean), shown(low), shown(high)),
        None => format!("{} %", shown(mean)),
    };
    let cell = Cell::shown(text, per_cent(mean));
    match interval {
        Some((low, high)) => cell.with("low", per_cent(low)).with("high", per_cent(high)),
        None => cell,
    }
}

/// States the conclusion, and what a split test would have concluded.
fn sentence(class: &RehearsedClass) -> String {
    let (verdict, after) = class.trial.verdict();
    let [test, control] = &class.controllers;
    let what = match verdict {
        Verdict::More => {
            format!("{test} is faster than {control}, significant after {after} triples")
        }
        Verdict::Less => {
            format!("{test} is slower than {control}, significant after {after} triples")
        }
        Verdict::NoEffect => format!("no significant effect of {test} in {after} triples"),
        Verdict::Stopped(harm) => {
            let why = match harm {
                Guarded::Retransmissions => "retransmits far more",
                Guarded::Delay => "has a 95th percentile of the queueing delay over 20 % longer",
                Guarded::Completion => {
                    "has a 95th percentile of the completion of transfers under 100 kB over 5 % \
                     longer"
                }
            };
            format!("stopped after {after} triples, because {test} {why}")
        }
        Verdict::RecordsLost => "too many records were lost for a result".to_string(),
        Verdict::UnlikeHalves => "the halves differ too much for a result".to_string(),
    };
    let split = class.trial.naive().and_then(|naive| {
        let (low, high) = naive.interval?;
        let says = match (low > 0.0, high < 0.0) {
            (true, _) => "faster",
            (_, true) => "slower",
            _ => "no faster or slower",
        };
        Some(format!("; a split test would have found it {says}"))
    });
    format!("{}, {}: {what}{}.", class.traffic, class.sizes, split.unwrap_or_default())
}
