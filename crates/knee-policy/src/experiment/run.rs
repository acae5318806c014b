//! Runs an experiment block by block, then reverts everything.

use super::follow::Follower;
use super::site::{First, first, out_of_time};
use super::{Block, BlockFile, Experiment, Judged, Step, Timeline, certain_harm, judge};
use crate::apply::RENEWAL;
use crate::{
    Actuator, Announcing, Environment, Event, Journal, Means, Plan, Policy, PolicyError,
    Publication, Stage, Unchanged,
};
use knee_steer::Design;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Where an experiment keeps its blocks and its journal, and publishes its assignment.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentFiles<'f> {
    /// File of the blocks; those in it count.
    pub blocks: &'f Path,
    /// Journal of all changes.
    pub journal: &'f Path,
    /// Where the assignment is published.
    pub publication: Option<&'f Path>,
}

/// How an experiment ended.
#[derive(Debug)]
pub enum ExperimentEnd {
    /// All blocks are done, or the result is final.
    Done,
    /// It was stopped.
    Interrupted,
    /// Before its end, without a lease or out of time.
    Lost(PolicyError),
}

/// Runs an experiment until all blocks are done or the environment is stopped, then reverts all
/// changes. Returns its blocks, those of earlier processes included; `None` if it was stopped before
/// the first. With the stage observe nothing is changed, and there is no journal.
///
/// # Errors
///
/// [`PolicyError`], and those of `tell`. Everything is reverted, except if that fails, too: then the
/// guard goes on.
pub fn run_experiment<E: From<PolicyError>>(
    policy: &Policy,
    timeline: Timeline,
    files: &ExperimentFiles<'_>,
    environment: &mut dyn Environment,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<Option<(Vec<Block>, ExperimentEnd)>, E> {
    if policy.stage == Stage::Observe {
        return observe(policy, timeline, files, environment, tell).map(Some);
    }
    let path = files.journal;
    let (mut journal, earlier) = Journal::hold_next(path)?;
    if !earlier.entries.is_empty() {
        let returned = environment.roll_back(&earlier)?;
        journal.clear()?;
        tell(Event::EarlierReverted(&returned))?;
    }
    Plan::for_experiment_checked(Means::of(policy), policy, &environment.main_table()?)?;
    let (file, blocks) = open_blocks(policy, &timeline, files, tell)?;
    // Others have to see who holds the journal, also during a long wait.
    journal.write(&[Journal::begin(&policy.name, environment.since_1970().as_secs())?])?;
    let waited = first(policy, &timeline, &blocks, environment, tell);
    let Ok(Some(first)) = waited else {
        journal.clear()?;
        return waited.map(|_| None);
    };
    environment.begin_guard(path)?;
    let mut running = Running { policy, timeline, blocks, file, first, environment, tell };
    let ran = running.steer(&mut journal, files.publication);
    let Running { blocks, .. } = running;
    let returned = environment.roll_back(&Journal::read(path)?)?;
    journal.clear()?;
    environment.dismiss_guard();
    let told = tell(Event::Reverted(&returned));
    let ended = ran?;
    told.map(|()| Some((blocks, ended)))
}

/// Observes the blocks of an experiment without changing anything.
fn observe<E: From<PolicyError>>(
    policy: &Policy,
    timeline: Timeline,
    files: &ExperimentFiles<'_>,
    environment: &mut dyn Environment,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(Vec<Block>, ExperimentEnd), E> {
    let (file, blocks) = open_blocks(policy, &timeline, files, tell)?;
    let mut plan = Plan::for_programs(policy, &environment.main_table()?);
    let first = First::after(&blocks);
    let mut running = Running { policy, timeline, blocks, file, first, environment, tell };
    let ended = running.proceed(&mut plan, None, &mut Unchanged, None)?;
    Ok((running.blocks, ended))
}

fn open_blocks<E: From<PolicyError>>(
    policy: &Policy,
    timeline: &Timeline,
    files: &ExperimentFiles<'_>,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), E>,
) -> Result<(BlockFile, Vec<Block>), E> {
    let (file, blocks) = BlockFile::open(files.blocks, policy, timeline)?;
    if !blocks.is_empty() {
        tell(Event::EarlierBlocks(blocks.len()))?;
    }
    Ok((file, blocks))
}

/// A running experiment with its files.
struct Running<'r, E> {
    policy: &'r Policy,
    timeline: Timeline,
    /// Those that are done.
    blocks: Vec<Block>,
    file: BlockFile,
    first: First,
    environment: &'r mut dyn Environment,
    tell: &'r mut dyn FnMut(Event<'_>) -> Result<(), E>,
}

impl<E: From<PolicyError>> Running<'_, E> {
    /// Runs it by an actuator, which is dropped at the end.
    fn steer(
        &mut self,
        journal: &mut Journal,
        publication: Option<&Path>,
    ) -> Result<ExperimentEnd, E> {
        let means = Means::of(self.policy);
        let mut actuator = self.environment.prepare(means, self.policy, journal)?;
        let (follower, mut plan) = Follower::begin(
            self.policy,
            means,
            self.environment,
            journal,
            &mut *actuator,
            self.tell,
        )?;
        // Ends before the actuator does.
        let mut published = publication.map(Publication::at).transpose()?;
        if let Some(published) = &mut published {
            published.renew(self.environment.renew()?)?;
        }
        self.proceed(&mut plan, Some((follower, journal)), &mut *actuator, published.as_mut())
    }

    /// Goes through the blocks. Without a follower nothing is changed.
    fn proceed(
        &mut self,
        plan: &mut Plan,
        mut follower: Option<(Follower<'_>, &mut Journal)>,
        actuator: &mut dyn Actuator,
        mut published: Option<&mut Publication>,
    ) -> Result<ExperimentEnd, E> {
        let Running { policy, timeline, first, .. } = *self;
        let kept = plan.left_alone();
        let mut experiment = Experiment::begin(policy, timeline, kept, &self.blocks, first.number)?;
        if follower.as_ref().is_some_and(|(follower, _)| follower.is_by_routes()) {
            experiment.read_back();
        }
        for (group, why) in self.file.stopped().iter().enumerate() {
            if let Some(why) = why {
                experiment.stop(group, why, actuator)?;
            }
        }
        let so_far = self::so_far(policy, &timeline, &self.blocks);
        if timeline.slot(first.number).is_none() || so_far.is_decided {
            return Ok(ExperimentEnd::Done);
        }
        self.stop(&mut experiment, so_far.harmed, actuator)?;
        let mut renewed = self.environment.now();
        let (began, late) = first.seen.unwrap_or((renewed, Duration::ZERO));
        (self.tell)(Event::Begins { number: first.number })?;
        let ended = loop {
            if self.environment.is_stopped() {
                break ExperimentEnd::Interrupted;
            }
            let now = self.environment.now();
            let since_first = now - began + late;
            if now - renewed >= RENEWAL {
                renewed = now;
                let unix = self.environment.since_1970();
                if let Some(why) = out_of_time(policy, &timeline, first.number, since_first, unix) {
                    break ExperimentEnd::Lost(why);
                }
                let end = match self.environment.renew() {
                    Ok(end) => end,
                    Err(why) => break ExperimentEnd::Lost(why),
                };
                let done = actuator.renew()?;
                experiment.renewed(done.given, done.refused);
                if let Some(published) = published.as_deref_mut() {
                    published.renew(end)?;
                }
            }
            let mut announcing = Announcing::new(&mut *actuator, published.as_deref_mut());
            let Step { block, stopped, done } = experiment.step(since_first, &mut announcing)?;
            for (group, why) in stopped {
                self.record_stop(&group, &why)?;
            }
            let has_ended = block.is_some();
            if let Some(block) = block {
                self.file.push(&block)?;
                self.blocks.push(block);
                (self.tell)(Event::BlockEnded(&self.blocks))?;
            }
            if done {
                return Ok(ExperimentEnd::Done);
            }
            if has_ended {
                let so_far = self::so_far(policy, &timeline, &self.blocks);
                if so_far.is_decided {
                    return Ok(ExperimentEnd::Done);
                }
                self.stop(&mut experiment, so_far.harmed, &mut announcing)?;
            }
            if let Some((follower, journal)) = &mut follower
                && let Some(why) =
                    follower.follow(plan, self.environment, journal, &mut announcing, self.tell)?
            {
                experiment.exclude(plan.left_alone(), why);
            }
            if let Some(published) = published.as_deref_mut().filter(|one| !one.is_published()) {
                let (number, groups) = experiment.assigned();
                published.publish(policy, plan, Some(number), groups)?;
            }
        };
        if let Some(block) = experiment.interrupted() {
            self.file.push(&block)?;
        }
        Ok(ended)
    }

    /// Stops B in these groups, with the reasons.
    fn stop(
        &mut self,
        experiment: &mut Experiment,
        groups: BTreeMap<usize, String>,
        actuator: &mut dyn Actuator,
    ) -> Result<(), E> {
        for (group, why) in groups {
            if experiment.stop(group, &why, actuator)? {
                self.record_stop(&self.policy.groups[group].name, &why)?;
            }
        }
        Ok(())
    }

    /// Tells that B was stopped, and records it at once: the block may never be finished.
    fn record_stop(&mut self, group: &str, why: &str) -> Result<(), E> {
        (self.tell)(Event::Stopped { group, why })?;
        Ok(self.file.stop(group, why)?)
    }
}

/// Judges the blocks of each host by group and class; `None` before the first triple.
pub fn judged(policy: &Policy, timeline: &Timeline, hosts: &[&[Block]]) -> Option<Vec<Judged>> {
    let names: Vec<String> = policy.groups.iter().map(|group| group.name.clone()).collect();
    judge(hosts, timeline, &Design::new(policy.seed), &names, &policy.accepts)
}

/// What the blocks so far demand.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// All verdicts are final.
    pub is_decided: bool,
    /// Groups in which a guard is certain of harm, by their index in the policy, with the reason.
    pub harmed: BTreeMap<usize, String>,
}

/// Judges the blocks so far, after whole triples only.
pub fn so_far(policy: &Policy, timeline: &Timeline, blocks: &[Block]) -> SoFar {
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
