//! `knee steer run`: an experiment on this host.

mod report;

pub use report::document;

use crate::arguments::{Limit, Schedule, SteerJudge, SteerRun};
use crate::failure::{Ending, Failure};
use crate::policy::{read, without_hints};
use crate::print::Print;
use crate::verdicts::{self, amount, change};
use crate::{guard, interrupt, policy, screen};
use knee_lab::Handle;
use knee_policy::{
    Block, CLASSES, Event, ExperimentEnd, ExperimentFiles, Host, Judged, LiveEnvironment, Means,
    Plan, Policy, PolicyError, RecordedBlocks, Slot, Stage, Timeline, judged, recorded_blocks,
    run_experiment,
};
use knee_present::words::time_us;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Limits on a live host: blocks long enough that few connections outlast them, a burn-in long
/// enough for effects of the previous block to fade, triples enough for an interval.
const BLOCK_MIN: Duration = Duration::from_secs(600);
const BURN_IN_MIN: Duration = Duration::from_secs(60);
const TRIPLES_MIN: u64 = 16;

/// Runs an experiment until all blocks are done or it is stopped, then reverts all changes.
pub fn run(arguments: &SteerRun) -> Result<Ending, Failure> {
    let policy = read(&arguments.policy, &arguments.trust, true)?;
    let policy = compared(policy, &arguments.group)?;
    let timeline = timeline(&arguments.schedule)?;
    let words = match policy.stage {
        Stage::Observe if arguments.published.assignment.is_some() => {
            let what = "the stage observe assigns nothing that could be published";
            return Err(Failure::Usage(what.to_string(), "remove --assignment".to_string()));
        }
        Stage::Observe => "Stopping; nothing was changed.",
        Stage::Canary | Stage::Host | Stage::Site => "Stopping; reverting all changes.",
    };
    let handle = Handle::default();
    interrupt::stops_with(handle.clone(), words)?;
    let SteerRun { blocks, journal, published, .. } = arguments;
    let publication = published.assignment.as_deref();
    let files = ExperimentFiles { blocks, journal: &journal.path, publication };
    let Some((blocks, ended)) = carry_out(&policy, timeline, &files, &handle)? else {
        return Ok(Ending::Interrupted);
    };
    document(&policy, &timeline, &[&blocks]).print_tables(arguments.print.format())?;
    match ended {
        ExperimentEnd::Done => Ok(Ending::Done),
        ExperimentEnd::Interrupted => Ok(Ending::Interrupted),
        ExperimentEnd::Lost(why) => Err(why.into()),
    }
}

/// Runs an experiment until all blocks are done or `handle` is stopped, then reverts all changes, and
/// says what happens. Returns its blocks, those of earlier processes included; `None` if it was
/// stopped before the first.
pub fn carry_out(
    policy: &Policy,
    timeline: Timeline,
    files: &ExperimentFiles<'_>,
    handle: &Handle,
) -> Result<Option<(Vec<Block>, ExperimentEnd)>, Failure> {
    let is_stopped = || handle.is_stopped();
    let mut environment = LiveEnvironment::open(&is_stopped, &guard::command)?;
    let means = Means::of(policy);
    run_experiment(policy, timeline, files, &mut environment, &mut |event| {
        tell(policy, &timeline, means, &event);
        Ok(())
    })
}

/// Why this host cannot carry out an experiment with a policy, if it cannot.
pub fn obstacle(policy: &Policy) -> Result<Option<String>, Failure> {
    match plan(policy, Means::of(policy)) {
        Ok(_) => Ok(None),
        Err(Failure::Host(what, advice)) => Ok(Some(format!("{what}; {advice}"))),
        Err(other) => Err(other),
    }
}

/// What a policy with two controllers for each group needs as an experiment by routes.
pub fn planned(policy: &Policy, means: Means) -> Result<Option<String>, Failure> {
    let mut policy = policy.clone();
    policy.groups.retain(|group| group.control.is_some());
    if policy.groups.is_empty() || means != Means::Routes {
        return Ok(None);
    }
    Ok(Some(match plan(&policy, means) {
        Ok(plan) => format!("As an experiment (knee steer run): {} routes.", plan.routes.len()),
        Err(Failure::Host(what, advice)) => format!("Not as an experiment: {what}; {advice}."),
        Err(other) => return Err(other),
    }))
}

fn plan(policy: &Policy, means: Means) -> Result<Plan, Failure> {
    Ok(Plan::for_experiment_checked(means, policy, &Host::open()?.main_table()?)?)
}

/// The requested groups, each with two controllers; nobody is held out, since the halves are drawn
/// anew for each triple.
pub fn compared(mut policy: Policy, named: &[String]) -> Result<Policy, Failure> {
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    if let Some(wrong) = named.iter().find(|name| !names.contains(name)) {
        let what = format!("the policy has no group {wrong}");
        return Err(Failure::Usage(what, format!("it has {}", names.join(", "))));
    }
    if !named.is_empty() {
        policy.groups.retain(|group| named.contains(&group.name));
    }
    if let Some(group) = policy.groups.iter().find(|group| group.control.is_none()) {
        let what = format!("{} has one controller, {}", group.name, group.controller);
        let help = "write the one in use as well: control = \"cubic\"; or name other groups";
        return Err(Failure::Usage(what, help.to_string()));
    }
    let help = "remove mark and cgroup, or try the controller with knee steer apply";
    without_hints(&policy, "an experiment cannot tell", help)?;
    if policy.stage == Stage::Canary && policy.groups.len() > 1 {
        let all: Vec<&str> = policy.groups.iter().map(|group| group.name.as_str()).collect();
        let what = format!("the stage canary changes one group, and {} are named", all.join(", "));
        return Err(Failure::Usage(what, format!("add --group {}", all[0])));
    }
    for group in &mut policy.groups {
        group.hold_out = 0.0;
    }
    policy.open_connections = false;
    Ok(policy)
}

/// The schedule, within the limits of a live host unless these are lifted.
pub fn timeline(arguments: &Schedule) -> Result<Timeline, Failure> {
    let length = |time: knee_units::Time| Duration::from_nanos(time.as_nanos());
    let (block, burn_in) = (length(arguments.block), length(arguments.burn_in));
    let allowed = |limit: Limit| arguments.allow.contains(&limit);
    let refuse = |what: &str, help: &str| Err(Failure::Usage(what.to_string(), help.to_string()));
    if block < BLOCK_MIN && !allowed(Limit::ShortBlock) {
        return refuse(
            "a block is shorter than 10 min: on a live host too many connections cross its borders",
            "remove --block, or write --allow short-block",
        );
    }
    if burn_in < BURN_IN_MIN && !allowed(Limit::ShortBurnIn) {
        return refuse(
            "the burn-in is shorter than 60 s: effects of the previous block would count",
            "remove --burn-in, or write --allow short-burn-in",
        );
    }
    if arguments.triples < TRIPLES_MIN && !allowed(Limit::FewTriples) {
        return refuse(
            "with fewer than 16 triples there is no interval",
            "remove --triples, or write --allow few-triples",
        );
    }
    if burn_in > block / 2 {
        return refuse("the burn-in is more than half of a block", "write a longer --block");
    }
    let (calibration, triples) = (arguments.calibration, arguments.triples);
    Ok(Timeline { block, burn_in, calibration, triples })
}

/// Prints the result of the blocks of one host, or of the hosts of a site.
pub fn judge_files(arguments: &SteerJudge) -> Result<Ending, Failure> {
    let real = |path: &PathBuf| fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let files: BTreeSet<PathBuf> = arguments.blocks.iter().map(real).collect();
    if files.len() < arguments.blocks.len() {
        let what = "a file is named twice, so its host would count twice";
        return Err(Failure::Usage(what.to_string(), "name each file once".to_string()));
    }
    let wrong = |error| match error {
        PolicyError::OtherExperiment { path } if path == arguments.blocks[0] => Failure::Usage(
            format!("{} is not a file of blocks", path.display()),
            "name one that knee steer run --blocks wrote".to_string(),
        ),
        PolicyError::OtherExperiment { path } => Failure::Usage(
            format!("{} does not belong to {}", path.display(), arguments.blocks[0].display()),
            "files belong together if their policy has the stage site, and policy, --block, \
             --burn-in, --calibration and --triples are the same"
                .to_string(),
        ),
        PolicyError::Records { path, source, .. } => Failure::Usage(
            format!("cannot read {}: {source}", path.display()),
            "name a file that knee steer run --blocks wrote".to_string(),
        ),
        other => other.into(),
    };
    let RecordedBlocks { policy, timeline, hosts } =
        recorded_blocks(&arguments.blocks).map_err(wrong)?;
    let blocks: Vec<&[Block]> = hosts.iter().map(Vec::as_slice).collect();
    let mut document = document(&policy, &timeline, &blocks);
    if policy.stage == Stage::Site {
        document = document.then(report::hosts(&timeline, &arguments.blocks, &blocks));
    }
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

/// Says what happened in an experiment.
fn tell(policy: &Policy, timeline: &Timeline, means: Means, event: &Event<'_>) {
    match event {
        Event::EarlierBlocks(count) => {
            screen::say(&format!("{count} blocks of an earlier process count."));
        }
        Event::Waits { number, time, has_no_pair } => {
            let time = time_us(Some(time.as_secs_f64() * 1e6));
            screen::say(&format!("Block {} of this site begins in {time}.", number + 1));
            if *has_no_pair {
                screen::say(
                    "This host has no pair of blocks before the first triple. It keeps step with \
                     the others, but its connections have no part in the result.",
                );
            }
        }
        Event::Begins { number } => tell_begin(timeline, *number, policy.stage),
        Event::Stopped { group, why } => {
            screen::complain(&format!("B is stopped in {group}: {why}. Its clients returned to A."))
        }
        Event::BlockEnded(blocks) => {
            if let Some(block) = blocks.last() {
                tell_block(policy, timeline, block);
            }
            tell_visible(policy, timeline, blocks);
        }
        other => policy::tell(means, other),
    }
}

fn tell_begin(timeline: &Timeline, done: u64, stage: Stage) {
    let all = 2 * timeline.calibration + 3 * timeline.triples - done;
    let time = time_us(Some(timeline.block.as_secs_f64() * all as f64 * 1e6));
    let end = match stage {
        Stage::Observe => "Nothing is changed.",
        Stage::Canary | Stage::Host | Stage::Site => "Ctrl-C reverts all changes.",
    };
    screen::say(&format!("{all} blocks to go, {time} at most. {end}"));
}

/// Reports a finished block.
fn tell_block(policy: &Policy, timeline: &Timeline, block: &Block) {
    let what = match timeline.slot(block.number) {
        Some(Slot::Triple { triple, place }) => {
            format!("block {} of triple {} of {}", place + 1, triple + 1, timeline.triples)
        }
        _ => format!("block {} under A and A", block.number + 1),
    };
    let counted = |group: &knee_policy::GroupBlock| -> u64 {
        group.classes.iter().flatten().map(|sums| sums.count).sum()
    };
    let each: Vec<String> = policy
        .groups
        .iter()
        .zip(&block.groups)
        .map(|(group, record)| format!("{} {}", counted(record), group.name))
        .collect();
    let lost = if block.lost > 0 { format!(", {} lost", block.lost) } else { String::new() };
    screen::say(&format!("Done: {what}; connections that count: {}{lost}.", each.join(", ")));
    if let Some(void) = &block.void {
        screen::complain(&format!("The block is void: {void}."));
    }
}

/// Says before the first triple what the experiment can see.
fn tell_visible(policy: &Policy, timeline: &Timeline, blocks: &[Block]) {
    if blocks.last().map(|block| block.number + 1) != Some(2 * timeline.calibration) {
        return;
    }
    for one in judged(policy, timeline, &[blocks]).unwrap_or_default() {
        let Judged { group, class, trial, .. } = &one;
        let (name, sizes) = (&policy.groups[*group].name, CLASSES[*class].1);
        let Some(speed) = trial.smallest_planned() else {
            let planned = trial.planned();
            screen::say(&format!(
                "{name}, {sizes}: {planned} triples are too few to show anything."
            ));
            continue;
        };
        let speed = change(-speed, None).shown;
        let harms = trial.guards().each().map(|(harm, guard)| {
            let least = trial.smallest_harm_planned(guard);
            let least = least.map_or("nothing".to_string(), |by| amount(harm, by).shown);
            format!("{} {least}", verdicts::name(harm))
        });
        screen::say(&format!(
            "{name}, {sizes}: {} triples show a change of the speed by {speed} or more, and these \
             harms: {}. Smaller ones are seldom seen.",
            trial.planned(),
            harms.collect::<Vec<_>>().join(", ")
        ));
    }
}

#[cfg(test)]
mod tests;
