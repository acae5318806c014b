//! An experiment on this host: whole blocks of time under the controller in use, under the one on
//! trial, and half and half, in an order drawn from the policy's seed.
//!
//! Connections count if they begin after a block's burn-in and have sent something when they end, or
//! when the block does: those that then have undelivered data are unfinished, and count with what
//! they have delivered in the time that it took. They are classified by group and by the bytes that
//! the application wrote. Times come from the caller and must not depend on the setting of a clock.

mod block;
mod follow;
mod judge;
mod observed;
mod records;
mod run;
mod site;
mod timeline;
mod watch;

pub use block::{Block, CLASSES, GroupBlock, Sums, Times};
pub use judge::{Judged, Stopped, certain_harm, judge};
pub use observed::{Checked, Noise, check, noise};
pub use records::{BlockFile, RecordedBlocks, recorded_blocks};
pub use run::{ExperimentEnd, ExperimentFiles, SoFar, judged, run_experiment, so_far};
pub use timeline::{Slot, Timeline};

use crate::plan::part_length;
use crate::{Actuator, Arm, Choice, Policy, PolicyError, Stage};
use ipnet::IpNet;
use knee_steer::{Alarm, AssignedGroup, Design, Treatment, Window, in_half};
use std::collections::BTreeSet;
use std::time::Duration;
use watch::{ConnectionReport, Watch};

/// Window of the search for harm; a quarter of the block if that is shorter.
const WINDOW: Duration = Duration::from_secs(60);
/// Interval between looks at live connections; a twentieth of the block if that is shorter.
const LOOK: Duration = Duration::from_secs(10);
/// Stall (or a quarter of the block, if shorter) after which a block is void.
const STALL: Duration = Duration::from_secs(30);
/// Share of connections with a refused controller above which a block is void.
const REFUSED_MAX: f64 = 0.001;
/// Fewer connections with another controller than was chosen say nothing, where only those that are
/// seen alive count.
const OTHERS_MIN: u64 = 5;
/// Limit below which a connection counts as small, bytes delivered.
const SMALL_BYTES: u64 = CLASSES[0].0;

/// A group under experiment.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    prefixes: Vec<(IpNet, u8)>,
    ports: Vec<u16>,
    /// A, in use, and B, on trial.
    arms: [Arm; 2],
    /// Sums for A over all blocks under A alone.
    control: Window,
    /// Whether there was anything under A before the current block.
    has_control: bool,
    /// Sums for B in the current window.
    window: Window,
    alarm: Option<Alarm>,
    stopped: bool,
    /// Why B was stopped, if no block tells of it yet.
    untold: Option<String>,
    parts: [BTreeSet<IpNet>; 2],
}

/// A running experiment.
pub struct Experiment {
    stage: Stage,
    timeline: Timeline,
    design: Design,
    groups: Vec<Group>,
    /// Clients whose controller an administrator has set.
    kept: Vec<IpNet>,
    watch: Watch,
    /// Whether the controllers of connections are read back.
    reads_back: bool,
    /// When controllers were chosen last.
    chosen: Duration,
    /// Number of the first block of this process.
    first: u64,
    block: Block,
    begun: bool,
    window_end: Duration,
    last: Duration,
}

/// Events of a step.
#[derive(Debug, Default)]
pub struct Step {
    /// A block that has ended.
    pub block: Option<Block>,
    /// Groups whose B was stopped, with the reason.
    pub stopped: Vec<(String, String)>,
    /// Whether all blocks are done.
    pub done: bool,
}

impl Experiment {
    /// Starts with the block of number `first`, after those that earlier processes have completed:
    /// the next one, or on a site [`Timeline::joined`]. Clients in `kept` are excluded.
    ///
    /// # Errors
    ///
    /// If the kernel does not report connections.
    pub fn begin(
        policy: &Policy,
        timeline: Timeline,
        kept: Vec<IpNet>,
        before: &[Block],
        first: u64,
    ) -> Result<Experiment, PolicyError> {
        let design = Design::new(policy.seed);
        let group = |(index, group): (usize, &crate::PolicyGroup)| Group {
            name: group.name.clone(),
            prefixes: group.prefixes.iter().map(|net| (*net, part_length(group, net))).collect(),
            ports: group.ports.clone(),
            arms: [Arm::of(group.control.as_deref().unwrap_or_default()), group.arm()],
            control: before
                .iter()
                .filter(|block| is_control(block, &timeline, design, &group.name))
                .fold(Window::default(), |mut sum, block| {
                    sum.merge(&block.groups[index].window());
                    sum
                }),
            has_control: false,
            window: Window::default(),
            alarm: None,
            stopped: before.iter().any(|block| block.groups[index].stopped.is_some()),
            untold: None,
            parts: Default::default(),
        };
        let look = LOOK.min(timeline.block / 20);
        Ok(Experiment {
            stage: policy.stage,
            design,
            groups: policy.groups.iter().enumerate().map(group).collect(),
            kept,
            watch: Watch::begin(look)?,
            reads_back: false,
            chosen: Duration::ZERO,
            block: Block { number: first, ..Block::default() },
            first,
            timeline,
            begun: false,
            window_end: Duration::ZERO,
            last: Duration::ZERO,
        })
    }

    /// Counts from now on which controllers connections have that begin in the current block, for an
    /// actuator that does not count them itself.
    pub fn read_back(&mut self) {
        self.reads_back = true;
    }

    /// Excludes these clients from now on, instead of those so far. The current block is void.
    pub fn exclude(&mut self, kept: Vec<IpNet>, why: &str) {
        self.kept = kept;
        self.block.void.get_or_insert_with(|| why.to_string());
    }

    /// Stops B in a group, by its index in the policy, from now on: its clients return to A. The
    /// current block, or the first one, tells of it. Returns whether B had not been stopped before.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn stop(
        &mut self,
        group: usize,
        why: &str,
        actuator: &mut dyn Actuator,
    ) -> Result<bool, PolicyError> {
        let Some(one) = self.groups.get_mut(group).filter(|one| !one.stopped) else {
            return Ok(false);
        };
        one.stopped = true;
        match self.block.groups.get_mut(group) {
            Some(record) => {
                record.stopped = Some(why.to_string());
                self.chosen = self.last;
                actuator.choose(self.choices())?;
            }
            None => one.untold = Some(why.to_string()),
        }
        Ok(true)
    }

    /// Ends the experiment in the midst of a block, which is then void. Returns the block if B was
    /// stopped in it, which is to be kept.
    pub fn interrupted(mut self) -> Option<Block> {
        self.block.void.get_or_insert_with(|| "it was interrupted".to_string());
        self.block.groups.iter().any(|group| group.stopped.is_some()).then_some(self.block)
    }

    /// Continues for about a tenth of a second; `now` is the time since the start.
    ///
    /// # Errors
    ///
    /// Errors of the kernel.
    pub fn step(
        &mut self,
        now: Duration,
        actuator: &mut dyn Actuator,
    ) -> Result<Step, PolicyError> {
        let mut step = Step::default();
        if !self.begun {
            self.enter(now, actuator)?;
            self.begun = true;
        }
        let stall = STALL.min(self.timeline.block / 4);
        if now.saturating_sub(self.last) > stall {
            let words =
                format!("the kernel reported nothing for {} s", (now - self.last).as_secs());
            self.block.void.get_or_insert(words);
        }
        self.last = now;
        if self.first + self.timeline.number_at(now) > self.block.number {
            self.hear(now, true)?;
            step.block = Some(self.leave(actuator)?);
            // If the process missed whole blocks, each of them is void.
            self.block.number += 1;
            if self.timeline.slot(self.block.number).is_none() {
                step.done = true;
                return Ok(step);
            }
            self.enter(now, actuator)?;
        }
        self.hear(now, false)?;
        if now >= self.window_end {
            self.window_end = now + self.window_length();
            step.stopped = self.close_window();
            if !step.stopped.is_empty() {
                self.chosen = now;
                actuator.choose(self.choices())?;
            }
        }
        Ok(step)
    }

    fn window_length(&self) -> Duration {
        WINDOW.min(self.timeline.block / 4)
    }

    /// Treatment of a group in the current block.
    fn treatment(&self, group: &Group) -> (Treatment, u64) {
        match self.timeline.slot(self.block.number) {
            _ if group.stopped => (Treatment::Control, 0),
            // Harm is seen by comparison with A, which a late host of a site may not have had yet.
            Some(Slot::Triple { .. }) if self.stage == Stage::Site && !group.has_control => {
                (Treatment::Control, 0)
            }
            Some(Slot::Triple { triple, place }) => {
                (self.design.order(&group.name, triple)[place], triple)
            }
            _ => (Treatment::Control, 0),
        }
    }

    /// Whether clients of this block have labels only.
    fn is_observed(&self) -> bool {
        self.stage == Stage::Observe
            && matches!(self.timeline.slot(self.block.number), Some(Slot::Triple { .. }))
    }

    fn choices(&self) -> Vec<Choice> {
        let choice = |group: &Group| {
            let (treatment, triple) = self.treatment(group);
            let [a, b] = group.arms.clone();
            Choice {
                arms: if treatment == Treatment::Test { [b, a] } else { [a, b] },
                key: self.design.half_key(&group.name, triple),
                share: if treatment == Treatment::Half { 1 << 31 } else { 0 },
            }
        };
        self.groups.iter().map(choice).collect()
    }

    /// Returns the number of the current block, and the arms of its groups: A and B, in a block of
    /// halves `half A` and `half B`.
    pub fn assigned(&self) -> (u64, Vec<AssignedGroup>) {
        let group = |(group, choice): (&Group, Choice)| {
            let arms = match self.treatment(group).0 {
                Treatment::Control => ["A", "B"],
                Treatment::Test => ["B", "A"],
                Treatment::Half => ["half A", "half B"],
            };
            AssignedGroup {
                name: group.name.clone(),
                arms: arms.map(String::from),
                key: choice.key,
                share: choice.share,
            }
        };
        let groups = self.groups.iter().zip(self.choices());
        (self.block.number, groups.map(group).collect())
    }

    fn enter(&mut self, now: Duration, actuator: &mut dyn Actuator) -> Result<(), PolicyError> {
        let groups = vec![GroupBlock::default(); self.groups.len()];
        self.block = Block { number: self.block.number, groups, ..Block::default() };
        for group in &mut self.groups {
            group.has_control = group.control.sent_bytes > 0;
        }
        self.chosen = now;
        actuator.choose(self.choices())?;
        self.window_end = now + self.window_length();
        let late = now.saturating_sub(self.timeline.begin(self.block.number - self.first));
        if late > self.timeline.burn_in / 2 {
            self.block.void = Some(format!("it began {:.1} s late", late.as_secs_f64()));
        }
        let triple = matches!(self.timeline.slot(self.block.number), Some(Slot::Triple { .. }));
        let alarmed = triple && self.stage != Stage::Observe;
        for (group, record) in self.groups.iter_mut().zip(&mut self.block.groups) {
            record.stopped = group.untold.take();
            group.parts = Default::default();
            group.window = Window::default();
            // Restart with each block: windows of different blocks are not consecutive.
            group.alarm = alarmed.then(|| Alarm::new(group.control));
        }
        Ok(())
    }

    fn leave(&mut self, actuator: &mut dyn Actuator) -> Result<Block, PolicyError> {
        let renewed = actuator.renew()?;
        self.block.given += renewed.given;
        self.block.refused += renewed.refused;
        for (group, record) in self.groups.iter().zip(&mut self.block.groups) {
            record.parts = [0, 1].map(|arm| group.parts[arm].len() as u64);
        }
        let (refused, all) = (self.block.refused, self.block.given + self.block.refused);
        let are_many = refused as f64 > REFUSED_MAX * all as f64;
        if are_many && !(self.reads_back && refused < OTHERS_MIN) {
            let words = if self.reads_back {
                format!("{refused} of {all} open connections had another controller than chosen")
            } else {
                format!("the kernel refused {refused} of {all} connections their controller")
            };
            self.block.void.get_or_insert(words);
        }
        Ok(self.block.clone())
    }

    /// Adds connections that got a controller or were refused one; called once a second.
    pub fn renewed(&mut self, given: u64, refused: u64) {
        self.block.given += given;
        self.block.refused += refused;
    }

    /// Counts what has ended; at the end of the block also what is open and unfinished.
    fn hear(&mut self, now: Duration, at_end: bool) -> Result<(), PolicyError> {
        let begin = self.timeline.begin(self.block.number - self.first);
        let (counts_from, end) = (begin + self.timeline.burn_in, begin + self.timeline.block);
        let treatments: Vec<(Treatment, [u8; 16])> = self
            .groups
            .iter()
            .map(|group| {
                let (treatment, triple) = self.treatment(group);
                (treatment, self.design.half_key(&group.name, triple))
            })
            .collect();
        let observed = self.is_observed();
        let chosen = self.reads_back.then_some(self.chosen);
        let Experiment { watch, groups, block, kept, .. } = self;
        let counted = watch.step(now, at_end, |report| {
            let found = groups.iter().enumerate().find_map(|(index, group)| {
                let fits = group.ports.is_empty() || group.ports.contains(&report.local_port);
                let prefix = group.prefixes.iter().find(|(net, _)| net.contains(&report.remote));
                prefix.filter(|_| fits).map(|(_, part)| (index, *part))
            });
            let Some((index, part)) = found else { return };
            if kept.iter().any(|net| net.contains(&report.remote)) {
                return;
            }
            // Connections from before the block have another controller, and what they sent until the
            // first listing is not of this block.
            let is_now = now < end || at_end;
            let Some(not_before) = report.not_before.filter(|at| *at >= begin && is_now) else {
                return;
            };
            let (group, record) = (&mut groups[index], &mut block.groups[index]);
            let Ok(part) = IpNet::new(report.remote, part).map(|net| net.trunc()) else { return };
            let (treatment, key) = &treatments[index];
            let tested = match treatment {
                // Every block is cut in halves, so that any order can be assumed afterwards.
                _ if observed => in_half(key, part),
                Treatment::Control => false,
                Treatment::Test => true,
                Treatment::Half => in_half(key, part),
            };
            // Those from before a choice may have any controller.
            if let Some(name) = report.began_with
                && chosen.is_some_and(|chosen| not_before > chosen)
            {
                let is_given = name == group.arms[usize::from(tested)].controller;
                *(if is_given { &mut block.given } else { &mut block.refused }) += 1;
            }
            watched(group, &report, tested, *treatment);
            record.bytes[0] += report.again;
            record.bytes[1] += report.sent;
            let is_unfinished = report.info.outstanding_bytes() > 0;
            let is_cut_off = at_end && !report.has_ended && is_unfinished;
            if (report.has_ended || is_cut_off) && (counts_from..end).contains(&not_before) {
                group.parts[usize::from(tested)].insert(part);
                time(&mut record.times, &report);
                count(record, &report, usize::from(tested));
            }
        })?;
        self.block.reports += counted.reports;
        self.block.lost += counted.lost;
        Ok(())
    }

    /// Ends a window and checks it for harm.
    fn close_window(&mut self) -> Vec<(String, String)> {
        let mut stopped = Vec::new();
        for (group, record) in self.groups.iter_mut().zip(&mut self.block.groups) {
            let window = std::mem::take(&mut group.window);
            let harm = group.alarm.as_mut().and_then(|alarm| alarm.push(&window));
            if let Some(harm) = harm.filter(|_| !group.stopped) {
                let why = block::name(harm);
                group.stopped = true;
                record.stopped = Some(why.clone());
                stopped.push((group.name.clone(), why));
            }
        }
        stopped
    }
}

/// Whether all of a group was under A in a block of an earlier process.
fn is_control(block: &Block, timeline: &Timeline, design: Design, group: &str) -> bool {
    let treatment = match timeline.slot(block.number) {
        Some(Slot::Triple { triple, place }) => design.order(group, triple)[place],
        _ => Treatment::Control,
    };
    treatment == Treatment::Control && block.void.is_none()
}

/// Adds a connection to the sums that alarms compare.
fn watched(group: &mut Group, report: &ConnectionReport<'_>, tested: bool, treatment: Treatment) {
    let mut one =
        Window { sent_bytes: report.sent, retransmitted_bytes: report.again, ..Window::default() };
    if report.has_ended && report.info.srtt_us > 0 {
        one.connections = 1;
        one.rtt_us = report.info.srtt_us.into();
        one.unfinished = u64::from(report.info.outstanding_bytes() > 0);
        let busy = report.info.busy_us.filter(|busy| *busy > 0);
        if let Some(busy) = busy.filter(|_| written(report) < SMALL_BYTES) {
            one.small = 1;
            one.small_ln_us = (busy as f64).ln();
        }
    }
    if tested {
        group.window.merge(&one);
    } else if treatment == Treatment::Control {
        group.control.merge(&one);
    }
}

/// Adds the times of a connection.
fn time(times: &mut Times, report: &ConnectionReport<'_>) {
    let found = report.info.min_rtt().map(|_| report.info.min_rtt_us);
    times.rtt_min_us = times.rtt_min_us.into_iter().chain(found).min();
    times.rtt_us.add(report.info.srtt_us.into());
    let busy = report.info.busy_us.filter(|_| (1..SMALL_BYTES).contains(&written(report)));
    times.small_us.add(busy.unwrap_or(0) as f64);
}

/// Adds a connection to its class.
fn count(record: &mut GroupBlock, report: &ConnectionReport<'_>, arm: usize) {
    let (bytes, busy_us) = (written(report), report.info.busy_us.unwrap_or(0));
    if bytes == 0 || busy_us == 0 {
        return;
    }
    let class = CLASSES.iter().position(|(below, _)| bytes < *below);
    // If nothing has arrived in this time, its rate is below that of a segment.
    let arrived = report.info.delivered_bytes().max(report.info.mss.max(1).into()).min(bytes);
    record.classes[class.unwrap_or(CLASSES.len() - 1)][arm].merge(Sums {
        count: 1,
        unfinished: u64::from(report.info.outstanding_bytes() > 0),
        ln_bps: (arrived as f64 * 8e6 / busy_us as f64).ln(),
    });
}

/// Payload that the application has written: of a connection that has finished, what it delivered.
fn written(report: &ConnectionReport<'_>) -> u64 {
    report.info.delivered_bytes() + report.info.outstanding_bytes()
}
