//! `knee steer run`: an experiment on this host.

mod follow;
mod report;
mod site;

pub use follow::{obstacle, planned};
pub use report::document;

use crate::arguments::{Limit, Published, Schedule, SteerJudge, SteerRun};
use crate::failure::{Ending, Failure};
use crate::guard::Guard;
use crate::policy::{now_unix, published, read, taken, without_hints};
use crate::print::Print;
use crate::verdicts::{self, amount, change};
use crate::{interrupt, screen};
use follow::Follower;
use knee_lab::Handle;
use knee_policy::{
    Actuator, Announcing, Block, BlockFile, CLASSES, Experiment, Host, Journal, Judged, Means,
    Plan, Policy, PolicyError, Publication, RecordedBlocks, Slot, Stage, Step, Timeline, Unchanged,
    certain_harm, judge, recorded_blocks,
};
use knee_present::words::time_us;
use knee_steer::Design;
use site::{First, first, out_of_time, since_1970};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Limits on a live host: blocks long enough that few connections outlast them, a burn-in long
/// enough for effects of the previous block to fade, triples enough for an interval.
const BLOCK_MIN: Duration = Duration::from_secs(600);
const BURN_IN_MIN: Duration = Duration::from_secs(60);
const TRIPLES_MIN: u64 = 16;
/// Interval of lease renewals for the programs.
const STEP: Duration = Duration::from_secs(1);

/// Where an experiment keeps its blocks and its journal, and publishes its assignment.
#[derive(Clone, Copy)]
pub struct Place<'p> {
    /// File of the blocks; those in it count.
    pub blocks: &'p Path,
    /// Journal of all changes.
    pub journal: &'p Path,
    /// Where the assignment is published.
    pub published: &'p Published,
}

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
    let place = Place { blocks, journal: &journal.path, published };
    let Some((blocks, ended)) = carry_out(&policy, timeline, &place, &handle)? else {
        return Ok(Ending::Interrupted);
    };
    document(&policy, &timeline, &[&blocks]).print_tables(arguments.print.format())?;
    ended.ending()
}

/// Runs an experiment until all blocks are done or `handle` is stopped, then reverts all changes.
/// Returns its blocks, those of earlier processes included; `None` if it was stopped before the
/// first.
pub fn carry_out(
    policy: &Policy,
    timeline: Timeline,
    place: &Place<'_>,
    handle: &Handle,
) -> Result<Option<(Vec<Block>, Ended)>, Failure> {
    if policy.stage == Stage::Observe {
        return observe(policy, timeline, place, handle).map(Some);
    }
    let path = place.journal;
    let (mut journal, earlier) = Journal::hold_next(path)?;
    let mut host = Host::open()?;
    if !earlier.entries.is_empty() {
        let returned = host.roll_back(&earlier)?;
        journal.clear()?;
        screen::say(&format!(
            "An earlier process ended without reverting its changes. {}",
            taken(&returned)
        ));
    }
    follow::plan(policy, Means::of(policy), &mut host)?;
    let (mut file, mut blocks) = BlockFile::open(place.blocks, policy, &timeline)?;
    if !blocks.is_empty() {
        screen::say(&format!("{} blocks of an earlier process count.", blocks.len()));
    }
    // Others have to see who holds the journal, also during a long wait.
    journal.write(&[Journal::begin(&policy.name, now_unix())?])?;
    let waited = first(policy, &timeline, &blocks, handle);
    let Ok(Some(first)) = waited else {
        journal.clear()?;
        return waited.map(|_| None);
    };
    let mut guard = Guard::start(path)?;
    let ran = steer(
        policy,
        timeline,
        &mut blocks,
        &mut Held {
            journal: &mut journal,
            host: &mut host,
            guard: &mut guard,
            file: &mut file,
            handle,
            published: place.published,
            first,
        },
    );
    let returned = host.roll_back(&Journal::read(path)?)?;
    journal.clear()?;
    guard.dismiss();
    screen::say(&taken(&returned));
    Ok(Some((blocks, ran?)))
}

/// Observes the blocks of an experiment without changing anything.
fn observe(
    policy: &Policy,
    timeline: Timeline,
    place: &Place<'_>,
    handle: &Handle,
) -> Result<(Vec<Block>, Ended), Failure> {
    let (mut file, mut blocks) = BlockFile::open(place.blocks, policy, &timeline)?;
    if !blocks.is_empty() {
        screen::say(&format!("{} blocks of an earlier process count.", blocks.len()));
    }
    let mut plan = Plan::for_programs(policy, &Host::open()?.main_table()?);
    let first = First::after(&blocks);
    let ended = proceed(
        policy,
        timeline,
        &mut blocks,
        Going {
            first,
            plan: &mut plan,
            follower: None,
            actuator: &mut Unchanged,
            file: &mut file,
            handle,
            published: None,
            renew: &mut || Ok(Duration::ZERO),
        },
    )?;
    Ok((blocks, ended))
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

/// Resources of a running experiment.
struct Held<'h> {
    journal: &'h mut Journal,
    host: &'h mut Host,
    guard: &'h mut Guard,
    file: &'h mut BlockFile,
    handle: &'h Handle,
    published: &'h Published,
    first: First,
}

/// How an experiment ended.
pub enum Ended {
    /// All blocks are done, or the result is final.
    Done,
    /// It was stopped.
    Interrupted,
    /// Before its end, without a lease or out of time.
    Lost(Failure),
}

impl Ended {
    fn ending(self) -> Result<Ending, Failure> {
        match self {
            Ended::Done => Ok(Ending::Done),
            Ended::Interrupted => Ok(Ending::Interrupted),
            Ended::Lost(why) => Err(why),
        }
    }
}

fn steer(
    policy: &Policy,
    timeline: Timeline,
    blocks: &mut Vec<Block>,
    held: &mut Held<'_>,
) -> Result<Ended, Failure> {
    let means = Means::of(policy);
    let Held { journal, host, guard, file, handle, first, .. } = held;
    let mut actuator = means.prepare(policy, journal)?;
    let (follower, mut plan) = Follower::begin(policy, means, host, journal, &mut *actuator)?;
    // Ends before the actuator does.
    let mut published = published(held.published)?;
    if let Some(published) = &mut published {
        published.renew(guard.end())?;
    }
    let going = Going {
        first: *first,
        plan: &mut plan,
        follower: Some(follower),
        actuator: &mut *actuator,
        file,
        handle,
        published: published.as_mut(),
        renew: &mut || guard.renew().map(|()| guard.end()),
    };
    proceed(policy, timeline, blocks, going)
}

/// What a series of blocks needs.
struct Going<'g> {
    first: First,
    plan: &'g mut Plan,
    /// Unless nothing is changed.
    follower: Option<Follower<'g>>,
    actuator: &'g mut dyn Actuator,
    file: &'g mut BlockFile,
    handle: &'g Handle,
    /// Where others read which clients get what.
    published: Option<&'g mut Publication>,
    /// Renews the lease; its end, since the boot.
    renew: &'g mut dyn FnMut() -> Result<Duration, Failure>,
}

#[expect(clippy::disallowed_methods, reason = "blocks are stretches of real time")]
fn proceed(
    policy: &Policy,
    timeline: Timeline,
    blocks: &mut Vec<Block>,
    going: Going<'_>,
) -> Result<Ended, Failure> {
    let Going { first, plan, mut follower, actuator, file, handle, mut published, renew } = going;
    let kept = plan.left_alone();
    let mut experiment = Experiment::begin(policy, timeline, kept, blocks, first.number)?;
    if follower.as_ref().is_some_and(Follower::is_by_routes) {
        experiment.read_back();
    }
    for (group, why) in file.stopped().iter().enumerate() {
        if let Some(why) = why {
            experiment.stop(group, why, actuator)?;
        }
    }
    let so_far = so_far(policy, &timeline, blocks);
    if timeline.slot(first.number).is_none() || so_far.is_decided {
        return Ok(Ended::Done);
    }
    stop(policy, &mut experiment, so_far.harmed, file, actuator)?;
    let mut renewed = Instant::now();
    let began = first.at.unwrap_or(renewed);
    tell_begin(&timeline, first.number, policy.stage);
    let ended = loop {
        if handle.is_stopped() {
            break Ended::Interrupted;
        }
        if renewed.elapsed() >= STEP {
            renewed = Instant::now();
            let since_first = began.elapsed();
            if let Some(why) =
                out_of_time(policy, &timeline, first.number, since_first, since_1970())
            {
                break Ended::Lost(why);
            }
            let end = match renew() {
                Ok(end) => end,
                Err(why) => break Ended::Lost(why),
            };
            let done = actuator.renew()?;
            experiment.renewed(done.given, done.refused);
            if let Some(published) = published.as_deref_mut() {
                published.renew(end)?;
            }
        }
        let mut announcing = Announcing::new(&mut *actuator, published.as_deref_mut());
        let Step { block, stopped, done } = experiment.step(began.elapsed(), &mut announcing)?;
        for (group, why) in stopped {
            tell_stopped(&group, &why, file)?;
        }
        let has_ended = block.is_some();
        if let Some(block) = block {
            file.push(&block)?;
            tell(policy, &timeline, &block);
            blocks.push(block);
            tell_visible(policy, &timeline, blocks);
        }
        if done {
            return Ok(Ended::Done);
        }
        if has_ended {
            let so_far = self::so_far(policy, &timeline, blocks);
            if so_far.is_decided {
                return Ok(Ended::Done);
            }
            stop(policy, &mut experiment, so_far.harmed, file, &mut announcing)?;
        }
        if let Some(follower) = &mut follower
            && let Some(why) = follower.follow(plan, &mut announcing)?
        {
            experiment.exclude(plan.left_alone(), why);
        }
        if let Some(published) = published.as_deref_mut().filter(|one| !one.is_published()) {
            let (number, groups) = experiment.assigned();
            published.publish(policy, plan, Some(number), groups)?;
        }
    };
    if let Some(block) = experiment.interrupted() {
        file.push(&block)?;
    }
    Ok(ended)
}

/// Stops B in these groups, with the reasons.
fn stop(
    policy: &Policy,
    experiment: &mut Experiment,
    groups: BTreeMap<usize, String>,
    file: &mut BlockFile,
    actuator: &mut dyn Actuator,
) -> Result<(), Failure> {
    for (group, why) in groups {
        if experiment.stop(group, &why, actuator)? {
            tell_stopped(&policy.groups[group].name, &why, file)?;
        }
    }
    Ok(())
}

/// Reports that B was stopped, and records it at once: the block may never be finished.
fn tell_stopped(group: &str, why: &str, file: &mut BlockFile) -> Result<(), Failure> {
    screen::complain(&format!("B is stopped in {group}: {why}. Its clients returned to A."));
    Ok(file.stop(group, why)?)
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
fn tell(policy: &Policy, timeline: &Timeline, block: &Block) {
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

/// Judges the blocks of each host by group and class; `None` before the first triple.
pub fn judged(policy: &Policy, timeline: &Timeline, hosts: &[&[Block]]) -> Option<Vec<Judged>> {
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    judge(hosts, timeline, &Design::new(policy.seed), &names, &policy.accepts)
}

/// What the blocks so far demand.
#[derive(Default)]
struct SoFar {
    /// All verdicts are final.
    is_decided: bool,
    /// Groups in which a guard is certain of harm, with the reason.
    harmed: BTreeMap<usize, String>,
}

/// Judges the blocks so far, after whole triples only.
fn so_far(policy: &Policy, timeline: &Timeline, blocks: &[Block]) -> SoFar {
    let number = blocks.last().map_or(0, |block| block.number + 1);
    if number <= 2 * timeline.calibration || timeline.resumed(number) != number {
        return SoFar::default();
    }
    let judged = judged(policy, timeline, &[blocks]).unwrap_or_default();
    let harmed = match policy.stage {
        // Nothing was tried, or a site is judged as a whole, by nobody's own result.
        Stage::Observe | Stage::Site => BTreeMap::new(),
        Stage::Canary | Stage::Host => certain_harm(&judged),
    };
    let is_final = |one: &Judged| {
        let is_seen = policy.stage == Stage::Host && one.trial.is_final();
        one.stopped.is_some() || harmed.contains_key(&one.group) || is_seen
    };
    SoFar { is_decided: !judged.is_empty() && judged.iter().all(is_final), harmed }
}

#[cfg(test)]
mod tests;
