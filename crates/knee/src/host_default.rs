//! `knee steer host`: the controller of connections that no policy names.

use crate::arguments::Host;
use crate::cell::Cell;
use crate::document::Document;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::screen;
use crate::table::{Mood, Table};
use knee_lab::{Error, Job, ScenarioText};
use knee_policy::{DefaultState, HostDefault, Setting};
use knee_record::Unit;
use knee_scenario::Override;
use serde_json::json;

const TRIAL: &str = include_str!("host_default/trial.toml");
/// Paths of the trial: name, key to override in the scenario, and value.
const PATHS: [(&str, &str, &str); 3] = [
    ("clean", "link.bottleneck.loss", "0 %"),
    ("1 % random loss", "link.bottleneck.loss", "1 %"),
    ("buffer of a quarter BDP", "link.bottleneck.buffer", "0.25 BDP"),
];

/// Shows what determines the default, tries or sets another, or reverts it.
pub fn host(arguments: &Host) -> Result<Ending, Failure> {
    let host = HostDefault::of_this_host();
    if arguments.undo {
        let undone = host.undo()?;
        return print(arguments, &host.state()?, undone_words(undone), None);
    }
    let Some(name) = &arguments.controller else {
        return print(arguments, &host.state()?, String::new(), None);
    };
    let state = host.allows(name)?;
    let trial = match arguments.trial {
        true => match trial(&state.now, name)? {
            Some(table) => Some(table),
            None => return Ok(Ending::Interrupted),
        },
        false => None,
    };
    if !arguments.apply {
        let words =
            format!("{name} can be set, now and at each boot; add --apply. Nothing was changed.");
        return print(arguments, &state, words, trial);
    }
    host.set(name)?;
    let words = format!(
        "{name} is set, in place of {}; knee steer host --undo reverts it. Open connections keep \
         their controller; servers that choose one themselves still do.",
        state.now
    );
    print(arguments, &host.state()?, words, trial)
}

fn undone_words(undone: Option<bool>) -> String {
    match undone {
        Some(true) => "Knee's setting was removed; the previous one is restored.".to_string(),
        Some(false) => {
            "Knee's setting was removed. Another controller has been set since; it is kept."
                .to_string()
        }
        None => "There is no setting of Knee's: nothing to revert.".to_string(),
    }
}

fn print(
    arguments: &Host,
    state: &DefaultState,
    words: String,
    trial: Option<Table>,
) -> Result<Ending, Failure> {
    let mut document = Document::default();
    if !words.is_empty() {
        document = document.said(words.clone());
    }
    if let Some(trial) = trial {
        document = document.table(trial).said(
            "One TCP connection of this kernel over a path of 50 Mbit/s and 50 ms, for 10 s each. \
             For the effect on your clients, use knee advise, and a policy with a hold-out: \
             docs/policy.md.",
        );
    }
    let next = match state.at_next_start() {
        Some(setting) => format!("{}, by {}", setting.controller, place(setting)),
        None => "the kernel's own choice, since no file sets it".to_string(),
    };
    document = document.said(format!(
        "New connections get {}. After the next boot: {next}. The kernel has {}{}.",
        state.now,
        state.available.join(", "),
        match state.loadable.is_empty() {
            true => String::new(),
            false => format!("; as modules {}", state.loadable.join(", ")),
        }
    ));
    if state.settings.len() > 1 {
        let mut table = Table::new(&["read at a start", "controller", "by"]).called("settings");
        for setting in &state.settings {
            let by = if setting.own { "knee steer host" } else { "" };
            table.row([place(setting).as_str(), setting.controller.as_str(), by]);
        }
        document = document.table(table);
    }
    let setting = |setting: &Setting| {
        json!({
            "file": setting.path.display().to_string(),
            "line": setting.line,
            "controller": setting.controller,
            "own": setting.own,
        })
    };
    document.print(
        arguments.print.format(),
        &json!({
            "schema": "knee-steer-host/1",
            "now": state.now,
            "available": state.available,
            "loadable": state.loadable,
            "settings": state.settings.iter().map(setting).collect::<Vec<_>>(),
            "before": state.before,
            "said": words,
        }),
    )?;
    Ok(Ending::Done)
}

fn place(setting: &Setting) -> String {
    format!("{}:{}", setting.path.display(), setting.line)
}

/// Runs both controllers over the paths in turn on the kernel; `None` if it was stopped.
fn trial(now: &str, name: &str) -> Result<Option<Table>, Failure> {
    let lab = lab(None);
    let kernel = lab.grounds.get("kernel").map_err(Error::from)?;
    let text = ScenarioText::new("trial.toml", TRIAL);
    let controllers = [now, name];
    let mut scenarios = Vec::new();
    for (_, key, value) in PATHS {
        for controller in controllers {
            let set = [Override::new("flow.download.cc", controller), Override::new(key, value)];
            scenarios.push(text.scenario(&set).map_err(Error::from)?);
        }
    }
    let jobs: Vec<Job<'_>> = scenarios.iter().map(|scenario| Job::new(scenario, kernel)).collect();
    screen::say("Six transfers of 10 s, one after the other.");
    let runs = watched(&lab, || lab.run_all(&jobs, |_, run| Ok(run)))?;
    let Some(runs) = runs.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let mut table = Table::new(&["path", "controller", ">goodput", ">RTT p50", ">retransmitted"])
        .called("trial");
    for (index, run) in runs.iter().enumerate() {
        let Some(flow) = run.summary.flows.first() else { continue };
        let path = if index % 2 == 0 { PATHS[index / 2].0 } else { "" };
        table.row_with(
            0,
            Mood::Neutral,
            [
                Cell::from(path),
                controllers[index % 2].into(),
                Cell::figure(Unit::BitsPerSecond, flow.goodput_bps),
                Cell::us(flow.rtt_us.as_ref().map(|spread| spread.p50)),
                Cell::figure(Unit::Fraction, flow.retransmit_ratio),
            ],
        );
    }
    Ok(Some(table))
}
