//! `knee steer run`: an experiment on this host.

use crate::arguments::{Limit, SteerRun};
use crate::cell::Cell;
use crate::document::Document;
use crate::failure::{Ending, Failure};
use crate::guard::Guard;
use crate::laboratory::lab;
use crate::policy::{now_unix, read, taken};
use crate::steer::{effect, evidence, mood, word};
use crate::table::{Mood, Table};
use crate::{interrupt, screen};
use knee_lab::Handle;
use knee_lab::words::time_us;
use knee_policy::{
    Block, BlockFile, CLASSES, Experiment, Host, Journal, Judged, Means, Plan, Policy, Slot, Step,
    Timeline, judge,
};
use knee_steer::{Design, Verdict};
use std::time::{Duration, Instant};

/// Limits on a live host: blocks long enough that few connections outlast them, a burn-in long
/// enough for effects of the previous block to fade, triples enough for an interval.
const BLOCK_MIN: Duration = Duration::from_secs(600);
const BURN_IN_MIN: Duration = Duration::from_secs(60);
const TRIPLES_MIN: u64 = 16;
/// Interval of lease renewals for the programs.
const STEP: Duration = Duration::from_secs(1);

/// Runs an experiment until all blocks are done or it is stopped, then reverts all changes.
pub fn run(arguments: &SteerRun) -> Result<Ending, Failure> {
    let policy = compared(arguments)?;
    let timeline = timeline(arguments)?;
    let path = &arguments.journal.path;
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
    let (mut file, mut blocks) = BlockFile::open(&arguments.blocks, &policy, &timeline)?;
    if !blocks.is_empty() {
        screen::say(&format!("{} blocks of an earlier process count.", blocks.len()));
    }
    let handle = lab(None).handle();
    interrupt::stops_with(handle.clone(), "Stopping; reverting all changes.")?;
    let mut guard = Guard::start(path)?;
    journal.write(&[Journal::begin(&policy.name, now_unix())?])?;
    let ran = carry_out(
        &policy,
        timeline,
        &mut blocks,
        &mut Held {
            journal: &mut journal,
            host: &mut host,
            guard: &mut guard,
            file: &mut file,
            handle: &handle,
        },
    );
    let returned = host.roll_back(&Journal::read(path)?)?;
    journal.clear()?;
    guard.dismiss();
    screen::say(&taken(&returned));
    let ended = ran?;
    document(&policy, &timeline, &blocks).print_tables(arguments.print.format())?;
    match ended {
        Ended::Done => Ok(Ending::Done),
        Ended::Interrupted => Ok(Ending::Interrupted),
        Ended::Alone => {
            let what =
                "the process that reverts all changes when this one ends is gone".to_string();
            Err(Failure::Host(what, "all changes were reverted; start again".to_string()))
        }
    }
}

/// The requested groups, each with two controllers; nobody is held out, since the halves are drawn
/// anew for each triple.
fn compared(arguments: &SteerRun) -> Result<Policy, Failure> {
    let mut policy = read(&arguments.policy, &arguments.trust, true)?;
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    if let Some(wrong) = arguments.group.iter().find(|name| !names.contains(name)) {
        let what = format!("the policy has no group {wrong}");
        return Err(Failure::Usage(what, format!("it has {}", names.join(", "))));
    }
    if !arguments.group.is_empty() {
        policy.groups.retain(|group| arguments.group.contains(&group.name));
    }
    if let Some(group) = policy.groups.iter().find(|group| group.control.is_none()) {
        let what = format!("{} has one controller, {}", group.name, group.controller);
        let help = "write the one in use as well: control = \"cubic\"; or name other groups";
        return Err(Failure::Usage(what, help.to_string()));
    }
    for group in &mut policy.groups {
        group.hold_out = 0.0;
    }
    policy.open_connections = false;
    Ok(policy)
}

fn timeline(arguments: &SteerRun) -> Result<Timeline, Failure> {
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

/// Resources of a running experiment.
struct Held<'h> {
    journal: &'h mut Journal,
    host: &'h mut Host,
    guard: &'h mut Guard,
    file: &'h mut BlockFile,
    handle: &'h Handle,
}

enum Ended {
    Done,
    Interrupted,
    /// The guard process has ended.
    Alone,
}

#[expect(clippy::disallowed_methods, reason = "blocks are stretches of real time")]
fn carry_out(
    policy: &Policy,
    timeline: Timeline,
    blocks: &mut Vec<Block>,
    held: &mut Held<'_>,
) -> Result<Ended, Failure> {
    let mut actuator = Means::Programs.prepare(policy, held.journal)?;
    let mut plan = Plan::for_programs(policy, &held.host.main_table()?);
    // Treats the time before the first block as a block under A.
    plan.controllers = policy.groups.iter().filter_map(|group| group.control.clone()).collect();
    actuator.apply(&plan, held.journal)?;
    let kept = plan.kept.iter().map(|kept| kept.prefix).collect();
    let mut experiment = Experiment::begin(policy, timeline, kept, blocks)?;
    if timeline.slot(blocks.len() as u64).is_none() {
        return Ok(Ended::Done);
    }
    let (began, mut renewed) = (Instant::now(), Instant::now());
    tell_begin(&timeline, blocks.len());
    loop {
        if held.handle.is_stopped() {
            return Ok(Ended::Interrupted);
        }
        if renewed.elapsed() >= STEP {
            renewed = Instant::now();
            if !held.guard.renew() {
                return Ok(Ended::Alone);
            }
            let done = actuator.renew()?;
            experiment.renewed(done.given, done.refused);
        }
        let Step { block, stopped, done } = experiment.step(began.elapsed(), &mut *actuator)?;
        for (group, why) in stopped {
            screen::complain(&format!(
                "B is stopped in {group}: {why}. Its clients returned to A."
            ));
        }
        if let Some(block) = block {
            held.file.push(&block)?;
            tell(policy, &timeline, &block);
            blocks.push(block);
        }
        if done || is_decided(policy, &timeline, blocks) {
            return Ok(Ended::Done);
        }
    }
}

fn tell_begin(timeline: &Timeline, done: usize) {
    let all = 2 * timeline.calibration + 3 * timeline.triples - done as u64;
    let time = time_us(Some(timeline.block.as_secs_f64() * all as f64 * 1e6));
    screen::say(&format!("{all} blocks to go, {time} at most. Ctrl-C reverts all changes."));
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

fn judged(policy: &Policy, timeline: &Timeline, blocks: &[Block]) -> Option<Vec<Judged>> {
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    judge(blocks, timeline, &Design::new(policy.seed), &names)
}

/// Whether all verdicts are final; checked after whole triples only.
fn is_decided(policy: &Policy, timeline: &Timeline, blocks: &[Block]) -> bool {
    let number = blocks.len() as u64;
    number > 2 * timeline.calibration
        && timeline.resumed(number) == number
        && judged(policy, timeline, blocks).is_some_and(|all| {
            all.iter()
                .all(|one| one.stopped.is_some() || one.trial.verdict().0 != Verdict::NoEffect)
        })
}

fn document(policy: &Policy, timeline: &Timeline, blocks: &[Block]) -> Document {
    let done = (blocks.len() as u64).saturating_sub(2 * timeline.calibration) / 3;
    let length = |time: Duration| time_us(Some(time.as_secs_f64() * 1e6));
    let title = format!(
        "{}: {done} of {} triples of blocks of {}, burn-in {}, seed {}.",
        policy.name,
        timeline.triples,
        length(timeline.block),
        length(timeline.burn_in),
        policy.seed
    );
    let document = Document::default().said(title);
    let Some(judged) = judged(policy, timeline, blocks).filter(|all| !all.is_empty()) else {
        return document.said(
            "There is no result: the blocks before the first triple are not finished, or no class \
             has five connections in a block.",
        );
    };
    let mut table = Table::new(&[
        "group",
        "B against A",
        "objects",
        "verdict",
        ">evidence",
        ">B minus A",
        ">half and half",
        ">neighbours",
        ">left out",
    ])
    .called("classes");
    for one in &judged {
        let group = &policy.groups[one.group];
        let (verdict, after) = one.trial.verdict();
        let pair = format!("{}, {}", group.controller, group.control.as_deref().unwrap_or(""));
        let (words, mood) = match &one.stopped {
            Some(_) => ("stopped at once", Mood::Bad),
            None => (word(verdict), mood(verdict)),
        };
        let proof = one.trial.evidence();
        table.row_with(
            3,
            mood,
            [
                Cell::from(group.name.as_str()),
                pair.as_str().into(),
                CLASSES[one.class].1.into(),
                words.into(),
                Cell::shown(evidence(proof), proof).with("after", after as f64),
                effect(one.trial.total()),
                effect(one.trial.naive()),
                effect(one.trial.neighbours()),
                Cell::count(one.left_out),
            ],
        );
    }
    let threshold = judged.first().map_or(0.0, |one| one.trial.threshold());
    let stopped: Vec<String> = judged
        .iter()
        .filter_map(|one| {
            let (why, triple) = one.stopped.as_ref()?;
            let group = &policy.groups[one.group].name;
            Some(format!("B was stopped in {group}, in triple {triple}: {why}."))
        })
        .collect();
    let mut document = document.table(table).said(format!(
        "Rate of a connection: bytes delivered over the time with data to send, geometric mean. B \
         minus A: all under B compared with all under A. Half and half: result of a split test; \
         neighbours: loss of those that keep A beside B. An effect is significant with evidence \
         of {threshold:.0} or more. Left out: triples with a block that is void or without a \
         connection of the class."
    ));
    for one in &judged {
        if let Some(remains) = one.trial.covariate().remains() {
            let (group, class) = (&policy.groups[one.group].name, CLASSES[one.class].1);
            document = document.said(format!(
                "{group}, {class}: what the same hours of the day before explain is removed, {:.0} % \
                 of the variance.",
                100.0 * (1.0 - remains)
            ));
        }
    }
    let mut said = Vec::new();
    for words in stopped {
        if !said.contains(&words) {
            said.push(words.clone());
            document = document.said(words);
        }
    }
    document
}
