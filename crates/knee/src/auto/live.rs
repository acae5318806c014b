//! The stages on this host: observe, canary, host, and the policy.

use super::decide::{Class, Decision, canary, measured, observed, stays};
use super::folder::{Group, Outcome, SCHEMA, Stage};
use super::{Found, Next, Run};
use crate::arguments::{Apply, AutoStage, Published};
use crate::experiment;
use crate::failure::{Ending, Failure};
use crate::policy::{self, read};
use crate::screen;
use knee_policy::{
    Block, ExperimentEnd, ExperimentFiles, Judged, Means, Policy, PolicyGroup, Stage as Staged,
    TABLE, Timeline, judged, since_1970,
};
use knee_present::words::time_us;
use knee_record::write_text;

/// Triples of the stages observe and canary, at most: as many as an interval needs.
const TRIPLES: u64 = 16;
/// Share of the clients that the policy leaves as they are, for comparison.
const HOLD_OUT: f64 = 0.05;

/// The schedule of a stage.
fn timeline(found: &Found, stage: AutoStage) -> Timeline {
    found.advice.schedule.timeline(if stage == AutoStage::Host { u64::MAX } else { TRIPLES })
}

/// The groups of a stage: a canary is one.
fn groups(found: &Found, stage: AutoStage) -> Vec<&Group> {
    let mut groups = found.going();
    if stage == AutoStage::Canary {
        groups.truncate(1);
    }
    groups
}

/// The policy of a stage.
fn policy_of(found: &Found, groups: &[&Group], stage: AutoStage) -> Policy {
    let of = |group: &&Group| {
        let [_, control] = &group.in_use;
        PolicyGroup {
            name: group.name.clone(),
            prefixes: group.prefixes.clone(),
            ports: group.port.into_iter().collect(),
            hint: None,
            controller: group.candidate.as_ref().map_or_else(String::new, |[_, b]| b.clone()),
            initial_window: None,
            paces: false,
            ecn: false,
            control: Some(control.clone()).filter(|_| stage != AutoStage::Policy),
            hold_out: HOLD_OUT,
            controller_span: 0..0,
        }
    };
    Policy {
        name: "auto".to_string(),
        version: None,
        expires_unix: None,
        seed: found.advice.seed,
        table: TABLE,
        actuator: None,
        open_connections: false,
        stage: match stage {
            AutoStage::Observe => Staged::Observe,
            AutoStage::Canary => Staged::Canary,
            _ => Staged::Host,
        },
        begins_unix: None,
        accepts: found.advice.accepts.clone(),
        groups: groups.iter().map(of).collect(),
    }
}

/// What a stage changes, how long it takes, and how it is taken back.
pub fn warning(run: &Run<'_>, found: &Found, stage: AutoStage) -> Result<String, Failure> {
    let groups = groups(found, stage);
    let Timeline { block, calibration, triples, .. } = timeline(found, stage);
    let blocks = 2 * calibration + 3 * triples;
    let takes = time_us(Some(block.as_secs_f64() * blocks as f64 * 1e6));
    let each: Vec<String> = groups
        .iter()
        .map(|group| {
            let b = group.candidate.as_ref().map_or("", |[_, b]| b);
            format!("{} {b} in place of {}", group.name, group.in_use[1])
        })
        .collect();
    let each = each.join("; ");
    let by = match Means::of(&policy_of(found, &groups, stage)) {
        Means::Routes => "routes of its own",
        Means::Programs => "BPF programs",
    };
    let plan = run.folder.of(stage, "toml");
    let plan = knee_lab::command::quoted(&plan.to_string_lossy());
    let back = "Ctrl-C takes everything back; if this process dies, a second one does, or else knee \
                steer rollback. Open connections keep their controller.";
    Ok(match stage {
        AutoStage::Observe => format!(
            "Nothing is changed; connections are counted in {blocks} blocks, {takes} at most."
        ),
        AutoStage::Policy => format!(
            "New connections get another controller, by {by}, until Ctrl-C: {each}. 5 % of the \
             clients keep theirs. {back} knee steer plan {plan} lists every prefix."
        ),
        _ => format!(
            "New connections get another controller in part of {blocks} blocks, {takes} at most, by \
             {by}: {each}. A guard stops what does harm, within three minutes if it is clear. {back}"
        ),
    })
}

/// Writes the policy of a stage, and reads it as `knee steer` does.
fn kept(run: &Run<'_>, policy: &Policy, stage: AutoStage) -> Result<Policy, Failure> {
    let path = run.folder.of(stage, "toml");
    let text = policy.to_toml().ok_or_else(|| {
        let what = "the seed is too large for a policy".to_string();
        Failure::Usage(what, "write a smaller --seed".to_string())
    })?;
    let begin = format!("# Written by knee steer auto, stage {}.\n", stage.name());
    write_text(&path, &(begin + &text))?;
    read(&path, &run.arguments.trust, true)
}

/// Runs a stage's experiment. Its blocks are on disk, so an interrupted one goes on.
pub fn experiment(run: &Run<'_>, found: &Found, stage: AutoStage) -> Result<Next, Failure> {
    let timeline = timeline(found, stage);
    let mut able = Vec::new();
    let mut outcomes = Vec::new();
    for group in groups(found, stage) {
        match experiment::obstacle(&policy_of(found, &[group], stage))? {
            Some(why) => outcomes.push(outcome(group, Vec::new(), stays(why))),
            None => able.push(group),
        }
    }
    let mut blocks = Vec::new();
    let mut policy = policy_of(found, &able, stage);
    if !able.is_empty() {
        policy = experiment::compared(kept(run, &policy, stage)?, &[])?;
        let files = ExperimentFiles {
            blocks: &run.folder.of(stage, "jsonl"),
            journal: &run.arguments.journal.path,
            publication: None,
        };
        match experiment::carry_out(&policy, timeline, &files, &run.handle)? {
            None | Some((_, ExperimentEnd::Interrupted)) => return Ok(Next::Interrupted),
            Some((_, ExperimentEnd::Lost(why))) => return Err(why.into()),
            Some((done, ExperimentEnd::Done)) => blocks = done,
        }
    }
    // Observed blocks say what the experiment itself will see.
    let whole = self::timeline(found, AutoStage::Host);
    let judged_by = if stage == AutoStage::Observe { whole } else { timeline };
    let all = judged(&policy, &judged_by, &[&blocks]).unwrap_or_default();
    for (at, group) in able.into_iter().enumerate() {
        let own: Vec<&Judged> = all.iter().filter(|one| one.group == at).collect();
        outcomes.push(of_group(group, &own, stopped(&blocks, at), stage));
    }
    if stage == AutoStage::Canary {
        follow_canary(found, &mut outcomes);
    }
    let count = blocks.len();
    let done = match stage {
        AutoStage::Observe => format!("{count} blocks were observed, and nothing was changed"),
        AutoStage::Canary => format!("{count} blocks in one group, to look for harm"),
        _ => format!("{count} blocks in all groups, to compare"),
    };
    let ended_unix = since_1970().as_secs();
    Ok(Next::Decided(Stage { schema: SCHEMA.to_string(), ended_unix, done, groups: outcomes }))
}

fn outcome(group: &Group, classes: Vec<Class>, decision: Decision) -> Outcome {
    Outcome { name: group.name.clone(), classes, decision }
}

/// Why B was stopped in a group.
fn stopped(blocks: &[Block], group: usize) -> Option<&str> {
    blocks.iter().find_map(|block| block.groups.get(group)?.stopped.as_deref())
}

/// Decides for a group by its blocks.
fn of_group(group: &Group, own: &[&Judged], stopped: Option<&str>, stage: AutoStage) -> Outcome {
    let classes: Vec<Class> =
        own.iter().map(|one| Class::of(knee_policy::CLASSES[one.class].1, &one.trial)).collect();
    let guards = || own.iter().flat_map(|one| one.trial.guards().each());
    let decision = match stage {
        AutoStage::Observe => {
            let high = group.expected.iter().filter_map(|one| Some(one.gain?[2]));
            observed(&classes, high.reduce(f64::max))
        }
        AutoStage::Canary => {
            let harm = guards().find(|(_, guard)| guard.has_stopped());
            let harm = harm.map(|(harm, _)| crate::verdicts::name(harm));
            let mut limiting = guards().filter(|(_, guard)| !guard.is_accepted());
            let is_able = !own.is_empty() && limiting.all(|(_, guard)| guard.is_able());
            canary(stopped.or(harm), is_able)
        }
        _ => measured(&classes, stopped),
    };
    outcome(group, classes, decision)
}

/// After harm in the canary no group goes on; otherwise those that were not in it do.
fn follow_canary(found: &Found, outcomes: &mut Vec<Outcome>) {
    let Some(first) = outcomes.first().cloned() else { return };
    for group in found.going().into_iter().skip(1) {
        let decision = match first.decision.goes_on {
            true => Decision { goes_on: true, why: "it was not in the canary".to_string() },
            false => {
                stays(format!("the canary in {} did not go on: {}", first.name, first.decision.why))
            }
        };
        outcomes.push(outcome(group, Vec::new(), decision));
    }
}

/// Writes the policy of the groups that the experiment found better, unless it is there.
pub fn keep_policy(run: &Run<'_>, found: &Found) -> Result<(), Failure> {
    if run.folder.of(AutoStage::Policy, "toml").exists() {
        return Ok(());
    }
    let policy = policy_of(found, &found.going(), AutoStage::Policy);
    kept(run, &policy, AutoStage::Policy).map(drop)
}

/// Applies the policy until Ctrl-C.
pub fn apply(run: &Run<'_>) -> Result<Ending, Failure> {
    let arguments = Apply {
        policy: run.folder.of(AutoStage::Policy, "toml"),
        trust: run.arguments.trust.clone(),
        duration: run.arguments.duration,
        published: Published { assignment: None },
        journal: run.arguments.journal.clone(),
        print: run.arguments.print.clone(),
    };
    let policy = read(&arguments.policy, &arguments.trust, true)?;
    policy::steer(&policy, &arguments, &run.handle)?;
    screen::say("The policy is not applied any more. The same command applies it again.");
    Ok(Ending::Done)
}
