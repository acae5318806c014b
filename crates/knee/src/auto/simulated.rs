//! The stages advise and rehearse, in the simulator.

use super::decide::{Class, Decision, advised, connections_needed, rehearsed};
use super::folder::{Advice, Expected, Group, Outcome, PathFound, Planned, SCHEMA, Stage};
use super::{Found, Next, Run, page};
use crate::advise::{advise_groups, observed};
use crate::failure::Failure;
use crate::policy::networks;
use crate::progress::Bar;
use crate::screen;
use ipnet::IpNet;
use knee_advise::{Path, Verdict};
use knee_lab::{
    Advised, AdvisedClass, Error, History, ObservedGroup, Rehearsal, RehearseError,
    RehearseSettings, Rehearsed, RehearsedClass, recommended, speed_spread,
};
use knee_live::Providers;
use knee_policy::{Timeline, since_1970};

/// Limit on the sizes that are kept of a group.
const SIZES_MAX: usize = 1500;
/// Connections of a rehearsed block, unless the host's has fewer.
const REHEARSED: f64 = 400.0;
/// Pairs of rehearsed blocks with the same arrivals.
const TRUTH: u64 = 8;
/// Shortest rehearsed block, seconds.
const REHEARSED_MIN_S: f64 = 10.0;

/// Advises the groups of the rows; `None` if it was interrupted.
pub fn advise(run: &Run<'_>, planned: Planned) -> Result<Option<Advice>, Failure> {
    let arguments = run.arguments;
    screen::say("Stage advise: paths are fitted to the connections. Nothing is changed.");
    let table = arguments.providers.as_deref().map(networks).transpose();
    let table = table.map_err(|[what, advice]| Failure::Usage(what, advice))?;
    let history = arguments.history.then(|| History::read(&arguments.rows)).transpose()?;
    let common = |prefix: IpNet| match &history {
        Some(history) => history.name_of(prefix),
        None => table.as_ref()?.name_of(prefix),
    };
    let (groups, _) = observed(&arguments.rows, arguments.by.in_use.clone(), &common)?;
    let all = groups.len();
    let examined: Vec<ObservedGroup> =
        groups.into_iter().take(usize::from(arguments.by.groups)).collect();
    let mut found = {
        let _bar = Bar::over(run.handle.clone());
        advise_groups(&run.lab, &examined, &arguments.by)?
    };
    if run.handle.is_stopped() {
        return Ok(None);
    }
    for one in &mut found {
        one.prefixes = widened(one, table.as_ref());
    }
    let worth = recommended(&found);
    let timeline = planned.timeline(u64::MAX);
    let groups = found.iter().map(|one| {
        let rows = examined.iter().find(|group| group.name == one.name);
        let spread = rows.and_then(|rows| speed_spread(&rows.connections, |_| true));
        let needed = spread.and_then(|spread| connections_needed(spread, &timeline));
        let own = worth.iter().find(|other| other.group.name == one.name);
        let own = own.map(|own| [own.class.candidate.clone(), own.controller()]);
        Group {
            name: one.name.clone(),
            prefixes: one.prefixes.clone(),
            port: one.port,
            connections: one.connections,
            interval_s: rows.map_or(0.0, ObservedGroup::interval_s),
            in_use: [one.in_use.clone(), one.in_kernel.clone()],
            candidate: own,
            expected: one.classes.iter().map(|class| expected(one, class)).collect(),
            path: one.fits.first().map(|fit| fitted(fit.path)),
            sizes: rows.map(sizes).unwrap_or_default(),
            needed,
            decision: advised(one, &worth, needed),
        }
    });
    let mut groups: Vec<Group> = groups.collect();
    let place = |group: &Group| worth.iter().position(|one| one.group.name == group.name);
    groups.sort_by_key(|group| place(group).unwrap_or(usize::MAX));
    Ok(Some(Advice {
        schema: SCHEMA.to_string(),
        command: page::command(arguments),
        seed: arguments.by.seed,
        schedule: planned,
        accepts: arguments.accepted.harms.clone(),
        left_out: all - found.len(),
        groups,
    }))
}

/// The group's prefixes; of a provider all that the table has, since others of its clients share
/// its networks.
fn widened(one: &Advised, table: Option<&Providers>) -> Vec<IpNet> {
    let name = one.name.rsplit_once(", port ").map_or(one.name.as_str(), |(name, _)| name);
    let more = table.map(|table| table.prefixes_of(name)).unwrap_or_default();
    match one.prefixes.is_empty() || more.is_empty() {
        true => one.prefixes.clone(),
        false => IpNet::aggregate(&[one.prefixes.clone(), more].concat()),
    }
}

/// Sizes of the connections, spread over all of them.
fn sizes(group: &ObservedGroup) -> Vec<u64> {
    let step = group.connections.len().div_ceil(SIZES_MAX).max(1);
    group.connections.iter().step_by(step).map(|one| one.bytes).collect()
}

fn expected(one: &Advised, class: &AdvisedClass) -> Expected {
    let gain = class.prediction.filter(|_| !matches!(class.verdict, Verdict::NoAdvice(_)));
    Expected {
        objects: class.sizes().to_string(),
        candidate: class.candidate.clone(),
        advice: class.conclusion(&one.in_use),
        gain: gain.map(|one| [one.gain.mean, one.gain.low, one.gain.high]),
        bytes_share: class.bytes_share,
    }
}

fn fitted(path: Path) -> PathFound {
    let Path { rate_bps, rtt_s, loss, buffer_bdp, cross } = path;
    PathFound { rate_bps, rtt_s, loss, buffer_bdp, cross }
}

/// Rehearses the experiment of each group on its path.
pub fn rehearse(run: &Run<'_>, found: &Found) -> Result<Next, Failure> {
    let timeline = found.advice.schedule.timeline(u64::MAX);
    screen::say("Stage rehearse: the experiment in the simulator. Nothing is changed.");
    let _bar = Bar::over(run.handle.clone());
    let mut groups = Vec::new();
    for group in found.going() {
        let Some(result) = rehearse_group(run, group, &timeline, &found.advice)? else {
            return Ok(Next::Interrupted);
        };
        groups.push(result);
    }
    let done = format!(
        "on the path that explains each group best, an experiment of {} triples was simulated",
        timeline.triples
    );
    Ok(Next::Decided(Stage {
        schema: SCHEMA.to_string(),
        ended_unix: since_1970().as_secs(),
        done,
        groups,
    }))
}

/// Rehearses an experiment; `None` if it was interrupted.
fn rehearse_group(
    run: &Run<'_>,
    group: &Group,
    timeline: &Timeline,
    advice: &Advice,
) -> Result<Option<Outcome>, Failure> {
    let named = |classes, decision| Some(Outcome { name: group.name.clone(), classes, decision });
    let (Some(PathFound { rate_bps, rtt_s, loss, buffer_bdp, cross }), Some([candidate, _])) =
        (group.path, &group.candidate)
    else {
        return Ok(named(Vec::new(), unrehearsed(group, "no path explains its connections")));
    };
    let block_s = timeline.block.as_secs_f64();
    let rehearsed_s = (REHEARSED * group.interval_s).max(REHEARSED_MIN_S).min(block_s);
    let [in_use, _] = &group.in_use;
    let text = Rehearsal {
        group: &group.name,
        path: Path { rate_bps, rtt_s, loss, buffer_bdp, cross },
        sizes: &group.sizes,
        interval_s: group.interval_s,
        controllers: [candidate, in_use],
        block_s: rehearsed_s,
        burn_in_s: timeline.burn_in.as_secs_f64() * rehearsed_s / block_s,
        seed: advice.seed,
    }
    .scenario();
    let settings = RehearseSettings {
        on: knee_lab::SIMULATOR.to_string(),
        in_use: Some(in_use.clone()),
        set: Vec::new(),
        seed: None,
        triples: timeline.triples,
        calibration: timeline.calibration,
        truth: TRUTH,
        accepts: advice.accepts.clone(),
    };
    let Rehearsed { classes, .. } = match run.lab.rehearse(&[text], &settings) {
        Ok(Some(rehearsed)) if !run.handle.is_stopped() => rehearsed,
        Ok(_) => return Ok(None),
        Err(Error::Rehearse(error @ RehearseError::TooFew)) => {
            return Ok(named(Vec::new(), unrehearsed(group, &error.to_string())));
        }
        Err(other) => return Err(other.into()),
    };
    let of = |one: &RehearsedClass| Class::of(one.sizes, &one.trial).with_truth(one.truth);
    let classes: Vec<Class> = classes.iter().map(of).collect();
    let decision = rehearsed(&classes, block_s / rehearsed_s);
    Ok(named(classes, decision))
}

/// Decides by the prediction alone: the group was recommended by it.
fn unrehearsed(group: &Group, why: &str) -> Decision {
    Decision {
        goes_on: true,
        why: format!("not rehearsed, {why}; by the advice, {}", group.decision.why),
    }
}
