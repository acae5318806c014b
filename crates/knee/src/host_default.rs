//! `knee steer host`: the controller of connections that no policy names.

use crate::arguments::Host;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use crate::screen;
use knee_lab::{Error, Ground, Job, Lab, Run, ScenarioText};
use knee_policy::{DefaultState, HostDefault, Setting};
use knee_present::{Cell, Document, Table, Tone, number, text};
use knee_record::{Unit, Verdict};
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
    let controllers = [state.now.as_str(), name.as_str()];
    let runs = match arguments.trial {
        true => match trial(controllers)? {
            Some(runs) => Some(runs),
            None => return Ok(Ending::Interrupted),
        },
        false => None,
    };
    let trial = runs.as_ref().map(|runs| table(runs, controllers));
    if !arguments.apply {
        let words =
            format!("{name} can be set, now and at each boot; add --apply. Nothing was changed.");
        return print(arguments, &state, words, trial);
    }
    runs.as_deref().map_or(Ok(()), all_usable)?;
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
        let mut table = Table::new([text("read at a start"), text("controller"), text("by")])
            .called("settings");
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
fn trial(controllers: [&str; 2]) -> Result<Option<Vec<Run>>, Failure> {
    let lab = lab(None);
    let kernel = lab.grounds.get("kernel").map_err(Error::from)?;
    screen::say("Six transfers of 10 s, one after the other.");
    watched(&lab, || transfers(&lab, kernel, controllers))
}

/// Runs both controllers over the paths in turn; `None` if it was stopped, even in the last one.
fn transfers(
    lab: &Lab,
    ground: &dyn Ground,
    controllers: [&str; 2],
) -> Result<Option<Vec<Run>>, Error> {
    let text = ScenarioText::new("trial.toml", TRIAL);
    let mut scenarios = Vec::new();
    for (_, key, value) in PATHS {
        for controller in controllers {
            let set = [Override::new("flow.download.cc", controller), Override::new(key, value)];
            scenarios.push(text.scenario(&set)?);
        }
    }
    let jobs: Vec<Job<'_>> = scenarios.iter().map(|scenario| Job::new(scenario, ground)).collect();
    let runs = lab.run_all(&jobs, |_, run| Ok(run))?;
    Ok(if lab.is_stopped() { None } else { runs.into_iter().collect() })
}

/// Refuses a trial in which a transfer could not be measured.
fn all_usable(runs: &[Run]) -> Result<(), Failure> {
    let invalid = runs.iter().find(|run| run.summary.verdict == Verdict::Invalid);
    let Some(run) = invalid else { return Ok(()) };
    let reason = run.summary.verdict_reason.as_deref().unwrap_or("its run is invalid");
    Err(Failure::Host(
        format!("a transfer of the trial could not be measured: {reason}"),
        "nothing was changed; repeat it when the host has less to do, or omit --trial".to_string(),
    ))
}

/// One row for each transfer.
fn table(runs: &[Run], controllers: [&str; 2]) -> Table {
    let figures = ["goodput", "RTT p50", "retransmitted"].map(number);
    let heads = ["path", "controller"].map(text).into_iter().chain(figures);
    let mut table = Table::new(heads.chain([text("verdict")])).called("trial");
    for (index, run) in runs.iter().enumerate() {
        let Some(flow) = run.summary.flows.first() else { continue };
        let path = if index % 2 == 0 { PATHS[index / 2].0 } else { "" };
        let verdict = run.summary.verdict;
        table.row_with(
            5,
            if verdict == Verdict::Valid { Tone::Neutral } else { Tone::Bad },
            [
                Cell::from(path),
                controllers[index % 2].into(),
                Cell::figure(Unit::BitsPerSecond, flow.goodput_bps),
                Cell::us(flow.rtt_us.as_ref().map(|spread| spread.p50)),
                Cell::figure(Unit::Fraction, flow.retransmit_ratio),
                verdict.to_string().into(),
            ],
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_lab::{Ended, GroundError, Grounds, Handle, Judged, Output, Pace};
    use knee_record::{Control, HostHealth, Records};
    use knee_scenario::Scenario;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    /// Does nothing in no time; something happens in the sixth run.
    #[derive(Debug, Default)]
    struct Idle {
        runs: Mutex<usize>,
        /// Stops all runs then.
        stops: Mutex<Option<Handle>>,
        /// Whether the host is then too busy.
        busy: bool,
    }

    impl Ground for &'static Idle {
        fn name(&self) -> &str {
            "idle"
        }

        fn summary(&self) -> &str {
            "Nothing happens"
        }

        fn pace(&self) -> Pace {
            Pace::Real
        }

        fn check(&self, _: &Scenario) -> Result<(), GroundError> {
            Ok(())
        }

        fn run(
            &self,
            _: &Scenario,
            control: &Control,
            _: Output<'_>,
        ) -> Result<Ended, GroundError> {
            let mut runs = self.runs.lock().unwrap();
            *runs += 1;
            let is_last = *runs == 6;
            if let Some(handle) = self.stops.lock().unwrap().as_ref().filter(|_| is_last) {
                handle.stop();
            }
            let interrupted = control.stop.load(Ordering::Relaxed);
            let verdict = match self.busy && is_last {
                true => Verdict::Invalid,
                false => Verdict::Valid,
            };
            let judged =
                Judged { health: Some(HostHealth::default()), verdict, reason: "busy".into() };
            let records = Records { interrupted, ..Records::default() };
            Ok(Ended { records, judged: Some(judged) })
        }
    }

    fn on(idle: Idle, stops: bool) -> Option<Vec<Run>> {
        let idle: &'static Idle = Box::leak(Box::new(idle));
        let lab = Lab::new(Grounds::new().with(idle));
        *idle.stops.lock().unwrap() = stops.then(|| lab.handle());
        let runs = transfers(&lab, lab.grounds.get("idle").unwrap(), ["cubic", "bbr"]).unwrap();
        assert_eq!(*idle.runs.lock().unwrap(), 6);
        runs
    }

    #[test]
    fn a_stop_in_the_last_transfer_ends_the_trial() {
        assert!(on(Idle::default(), true).is_none());
        let runs = on(Idle::default(), false).unwrap();
        assert!(runs.len() == 6 && all_usable(&runs).is_ok());
    }

    #[test]
    fn a_trial_on_a_busy_host_sets_nothing() {
        let runs = on(Idle { busy: true, ..Idle::default() }, false).unwrap();
        let Err(Failure::Host(what, advice)) = all_usable(&runs) else { panic!("refused") };
        assert!(what.contains("busy") && advice.contains("nothing was changed"), "{what}");
    }
}
