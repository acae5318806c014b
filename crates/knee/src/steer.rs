//! `knee steer`.

use crate::arguments::{Rehearse, Steer, SteerAction};
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, to_host, watched};
use crate::print::Print;
use crate::screen;
use crate::verdicts::{self, Shown, change, effect, tone, word};
use crate::{auto, experiment, guard, host_default, policy, signed};
use knee_lab::{RehearseSettings, Rehearsed, RehearsedClass, ScenarioText, all_or_every_error};
use knee_present::words::time_us;
use knee_present::{Cell, Document, Table, number, text};
use knee_steer::{Guarded, Verdict};
use knee_units::statistics::Interval;

/// Carries out an action.
pub fn steer(arguments: &Steer) -> Result<Ending, Failure> {
    match &arguments.action {
        SteerAction::Auto(arguments) => auto::auto(arguments),
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
    let mut lab = lab(arguments.jobs);
    let on = std::slice::from_ref(&arguments.on);
    lab.grounds = to_host(lab.grounds, on, arguments.host.as_deref())?;
    chosen(&lab.grounds, on)?;
    let texts = all_or_every_error(arguments.files.iter().map(|file| ScenarioText::read(file)))?;
    let settings = RehearseSettings {
        on: arguments.on.clone(),
        in_use: None,
        set: arguments.set.clone(),
        seed: arguments.seed,
        triples: arguments.triples,
        calibration: arguments.calibration,
        truth: arguments.truth,
        accepts: arguments.accepted.harms.clone(),
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
    let of = if triples == &planned { String::new() } else { format!(" of {planned}") };
    let title = format!(
        "{}: {triples}{of} triples of blocks of {}, burn-in {}, seed {seed}",
        pairs.join(", "),
        length(*block),
        length(*burn_in)
    );
    let threshold = classes.first().map_or(0.0, |class| class.trial.threshold());
    let legend = format!(
        "Speed of a transfer: size over completion time, geometric mean. B minus A: all under B \
         compared with all under A. An effect is significant with evidence of {threshold:.0} or \
         more. Truth: the same arrivals under each, 95 % interval. Transfers count if they begin \
         after the burn-in, and {} or more before the end of their block; those that do not finish \
         count as if they finished then. From 16 triples on with intervals that are valid at any \
         time.",
        length(rehearsed.tail)
    );
    let document = Document::default().words(screen::wrapped(&title) + "\n");
    let document = document.table(verdicts(classes)).said(legend).words("\n");
    let document = classes.iter().fold(document, |all, class| all.said(sentence(class)));
    let document = cautions(document, rehearsed);
    let shown = classes.iter().map(|class| Shown {
        of: &class.traffic,
        sizes: class.sizes,
        trial: &class.trial,
    });
    verdicts::beside(document, ["traffic", "transfers"], &shown.collect::<Vec<_>>())
}

fn verdicts(classes: &[RehearsedClass]) -> Table {
    let mut table = Table::new([
        text("traffic"),
        text("objects"),
        text("verdict"),
        number("evidence"),
        number("B minus A"),
        number("truth"),
    ])
    .called("classes");
    for class in classes {
        let (verdict, after) = class.trial.verdict();
        let evidence = class.trial.evidence();
        let cells = [
            Cell::from(class.traffic.as_str()),
            class.sizes.into(),
            word(&class.trial).into(),
            Cell::shown(verdicts::evidence(evidence), evidence).with("after", after as f64),
            effect(class.trial.total()),
            class.truth.map_or_else(Cell::default, |truth| {
                let Interval { mean, low, high, .. } = truth;
                change(mean, low.zip(high))
            }),
        ];
        table.row_with(2, tone(verdict), cells);
    }
    table
}

/// What limits the result.
fn cautions(document: Document, rehearsed: &Rehearsed) -> Document {
    let triples = rehearsed.triples;
    let mut said = Vec::new();
    said.extend(rehearsed.hard_stop.iter().map(|(triple, time)| {
        format!(
            "On a live host triple {triple} would have been stopped {} into its block under B: \
             two consecutive windows retransmitted over 2 % and three times as much as A.",
            length(*time)
        )
    }));
    said.extend(rehearsed.block_too_short.iter().map(|block| {
        format!(
            "Blocks are too short for these transfers, of which nineteen in twenty should take at \
             most a third of one: write --set duration={} or more.",
            written(*block)
        )
    }));
    said.extend(rehearsed.burn_in_too_short.iter().map(|burn_in| {
        format!(
            "The burn-in is too short for these transfers, of which nine in ten should not take \
             longer: write --set warmup={} or more.",
            written(*burn_in)
        )
    }));
    if rehearsed.void > 0 {
        let void = rehearsed.void;
        said.push(format!(
            "{void} of {triples} triples are left out: the host was too busy for a run."
        ));
    }
    for class in rehearsed.classes.iter().filter(|class| class.left_out > 0) {
        said.push(format!(
            "{}, {}: {} of {triples} triples are left out, because no transfer began in one of \
             their blocks.",
            class.traffic, class.sizes, class.left_out
        ));
    }
    let left_out = &rehearsed.left_out;
    if !left_out.is_empty() {
        said.push(format!("Too few transfers in a block for a result: {}.", left_out.join("; ")));
    }
    said.into_iter().fold(document, Document::said)
}

fn length(time: knee_units::Time) -> String {
    time_us(Some(time.as_nanos() as f64 / 1e3))
}

/// A time as a key takes it, rounded up: whole seconds from one second on.
fn written(time: knee_units::Time) -> String {
    match time.as_nanos().div_ceil(1_000_000) {
        ms if ms < 1000 => format!("{ms}ms"),
        ms => format!("{}s", ms.div_ceil(1000)),
    }
}

/// States the conclusion, and what a split test would have concluded.
fn sentence(class: &RehearsedClass) -> String {
    let trial = &class.trial;
    let (verdict, after) = trial.verdict();
    let [test, control] = &class.controllers;
    let what = match verdict {
        Verdict::More => {
            format!("{test} is better than {control}, significant after {after} triples")
        }
        Verdict::Less => {
            format!("{test} is worse than {control}, significant after {after} triples")
        }
        Verdict::Alike => {
            format!("{test} and {control} are alike: within 1 % after {after} triples")
        }
        Verdict::Undecided => {
            let seen = trial.smallest_so_far().map_or_else(String::new, |least| {
                let [slower, faster] = [-least, least].map(|by| 100.0 * by.exp_m1().abs());
                format!(
                    ", which would have shown {test} to be slower by {slower:.0} % or faster by \
                     {faster:.0} %"
                )
            });
            format!("undecided after {after} triples{seen}")
        }
        Verdict::TooFew => format!(
            "too short: {after} of {} triples, and no effect is significant in fewer than {}",
            trial.planned(),
            trial.triples_min()
        ),
        Verdict::Stopped(harm) => {
            let why = match harm {
                Guarded::Unfinished => "leaves more of these transfers unfinished",
                Guarded::Retransmissions => "retransmits far more",
                Guarded::Delay => "has a 95th percentile of the queueing delay over 20 % longer",
                Guarded::Completion => {
                    "has a 95th percentile of the completion of transfers under 100 kB over 5 % \
                     longer"
                }
            };
            format!("{test} is worse: stopped after {after} triples, because it {why}")
        }
        Verdict::RecordsLost => "could not be tried: too many records were lost".to_string(),
        Verdict::UnlikeHalves => "could not be tried: the halves differ too much".to_string(),
    };
    let split = trial.naive().and_then(|naive| {
        let (low, high) = naive.interval?;
        Some(match (low > 0.0, high < 0.0) {
            (true, _) => "; a split test would have found it better",
            (_, true) => "; a split test would have found it worse",
            _ => "; a split test would have been undecided",
        })
    });
    format!("{}, {}: {what}{}.", class.traffic, class.sizes, split.unwrap_or_default())
}
