//! Hand-made views, and a toy ground: paths of constant window and delay, so
//! that the expected results can be computed on paper.
use knee_multipath::sched::{
    Decision, Kind, Oldest, Path, PathSet, Place, Scheduler, Selection, Status, Value, View, build,
    schedulers,
};
use knee_units::Time;
use std::collections::{BTreeMap, BTreeSet};

pub const MSS: u64 = 1000;

pub fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// A ready path; window and flight in packets, RTT in ms.
pub fn path(srtt: u64, window: u64, in_flight: u64) -> Path {
    Path {
        ready: in_flight < window,
        srtt: ms(srtt),
        min_rtt: ms(srtt),
        window: window * MSS,
        in_flight: in_flight * MSS,
        ..Path::default()
    }
}

/// Makes a path not ready, although its window has room.
pub fn busy(mut path: Path) -> Path {
    path.ready = false;
    path
}

pub fn with_status(mut path: Path, status: Status) -> Path {
    path.status = status;
    path
}

/// Plenty of data and window.
pub fn view(paths: &[Path]) -> View<'_> {
    View {
        now: ms(1000),
        mss: MSS,
        unsent: 1_000_000,
        window_left: 10_000_000,
        outstanding: paths.iter().map(|path| path.in_flight).sum(),
        oldest: None,
        can_repeat: PathSet::default(),
        paths,
    }
}

/// A full send window whose oldest packet is held by `holder` alone.
pub fn blocked_by(holder: usize, paths: &[Path]) -> View<'_> {
    let can_repeat = PathSet(PathSet::first_of(paths.len()).0 & !(1 << holder));
    let oldest = Some(Oldest { holder, sent_on: PathSet(1 << holder) });
    View { window_left: 0, oldest, can_repeat, ..view(paths) }
}

pub fn head(path: usize) -> Decision {
    Decision::Send(path, Place::Head)
}

pub fn scheduler(name: &str) -> Box<dyn Scheduler> {
    build(&Selection::named(name)).unwrap()
}

pub fn scheduler_with(name: &str, parameter: &str, value: Value) -> Box<dyn Scheduler> {
    build(&Selection::named(name).with(parameter, value)).unwrap()
}

/// All schedulers and presets.
pub fn names() -> Vec<&'static str> {
    let presets = |e: &'static knee_multipath::sched::Entry| e.presets.iter().map(|p| p.name);
    schedulers().iter().flat_map(|e| std::iter::once(e.name).chain(presets(e))).collect()
}

/// SCTC in cycles of a send buffer: two switches.
pub fn buffered_cycle() -> Selection {
    let on = || Value::Switch(true);
    Selection::named("sctc").with("cycle", on()).with("send_buffer", on())
}

/// All schedulers and presets, each scheduler with one of its switches inverted, and the only one
/// with a switch that needs another.
pub fn selections() -> Vec<Selection> {
    let turned = schedulers().iter().flat_map(|entry| {
        let switches = entry.parameters.iter().filter(|it| matches!(it.kind, Kind::Switch));
        switches.map(|switch| {
            let other = Value::Switch(switch.default == "false");
            Selection::named(entry.name).with(switch.name, other)
        })
    });
    let plain = names().into_iter().map(Selection::named);
    let chosen = plain.chain(turned.filter(|selection| build(selection).is_ok()));
    chosen.chain([buffered_cycle()]).collect()
}

/// A path of the toy ground: `window` packets per `rtt`, without loss.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub rtt: Time,
    pub window: u64,
}

pub fn line(rtt: u64, window: u64) -> Line {
    Line { rtt: ms(rtt), window }
}

/// Results of a transfer over the toy ground.
#[derive(Debug, Default)]
pub struct Outcome {
    /// When each packet first arrived at the receiver.
    pub arrived: BTreeMap<u64, Time>,
    /// Packets given to each path, in order.
    pub given: Vec<Vec<u64>>,
    /// Copies sent in addition to the first.
    pub repeated: u64,
}

impl Outcome {
    pub fn completed(&self) -> Time {
        self.arrived.values().copied().max().unwrap_or_default()
    }

    /// Returns the largest number of packets that waited for an earlier one.
    pub fn most_waiting(&self) -> usize {
        let mut order: Vec<(Time, u64)> = self.arrived.iter().map(|(n, at)| (*at, *n)).collect();
        order.sort_unstable();
        let (mut held, mut next, mut most) = (BTreeSet::new(), 0, 0);
        for (_, packet) in order {
            held.insert(packet);
            while held.remove(&next) {
                next += 1;
            }
            most = most.max(held.len());
        }
        most
    }
}

/// A connection over the toy ground.
pub struct Ground<'l> {
    lines: &'l [Line],
    receive_window: u64,
    total: u64,
    now: Time,
    unsent: BTreeSet<u64>,
    /// Unacknowledged packets, with the paths to which they were given.
    outstanding: BTreeMap<u64, (usize, PathSet)>,
    /// Acknowledgements in transit: time, serial number, path and packet.
    acks: BTreeSet<(Time, u64, usize, u64)>,
    in_flight: Vec<u64>,
    sent: Vec<u64>,
    serial: u64,
    outcome: Outcome,
}

impl<'l> Ground<'l> {
    pub fn new(lines: &'l [Line], packets: u64, receive_window: u64) -> Ground<'l> {
        Ground {
            lines,
            receive_window,
            total: packets,
            now: Time::ZERO,
            unsent: (0..packets).collect(),
            outstanding: BTreeMap::new(),
            acks: BTreeSet::new(),
            in_flight: vec![0; lines.len()],
            sent: vec![0; lines.len()],
            serial: 0,
            outcome: Outcome { given: vec![Vec::new(); lines.len()], ..Outcome::default() },
        }
    }

    /// Runs to the end; an error describes where the connection stalled.
    pub fn run(mut self, scheduler: &mut dyn Scheduler) -> Result<Outcome, String> {
        while self.outcome.arrived.len() < self.total as usize || !self.acks.is_empty() {
            while self.ask(scheduler)? {}
            let Some((at, _, path, packet)) = self.acks.pop_first() else {
                return Err(format!("stall at {:?} with {} unsent", self.now, self.unsent.len()));
            };
            self.now = at;
            self.in_flight[path] -= 1;
            self.outstanding.remove(&packet);
        }
        Ok(self.outcome)
    }

    /// Asks the scheduler once; returns whether there was something to carry out.
    fn ask(&mut self, scheduler: &mut dyn Scheduler) -> Result<bool, String> {
        let paths: Vec<Path> = (0..self.lines.len()).map(|path| self.path(path)).collect();
        let first = self.outstanding.keys().next().copied();
        let lowest = first.into_iter().chain(self.unsent.first().copied()).min().unwrap_or(0);
        let open = self.unsent.range(..lowest + self.receive_window).count() as u64;
        let beyond = (lowest + self.receive_window).saturating_sub(self.total);
        let mut can_repeat = PathSet::default();
        for path in 0..paths.len() {
            if self.outstanding.values().any(|(_, on)| !on.contains(path)) {
                can_repeat.insert(path);
            }
        }
        let highest = self.outstanding.keys().last().map_or(lowest, |last| last + 1);
        let view = View {
            now: self.now,
            mss: MSS,
            unsent: self.unsent.len() as u64 * MSS,
            window_left: (open + beyond) * MSS,
            outstanding: (highest - lowest) * MSS,
            oldest: first.map(|packet| {
                let (holder, sent_on) = self.outstanding[&packet];
                Oldest { holder, sent_on }
            }),
            can_repeat,
            paths: &paths,
        };
        let asked = view.has_new() || view.is_blocked() || !can_repeat.is_empty();
        if !asked || !paths.iter().any(|path| path.ready) {
            return Ok(false);
        }
        let decision = scheduler.schedule(&view);
        check(&view, decision)?;
        Ok(self.carry_out(decision, &view))
    }

    fn path(&self, index: usize) -> Path {
        let line = self.lines[index];
        Path {
            ready: self.in_flight[index] < line.window,
            srtt: line.rtt,
            min_rtt: line.rtt,
            window: line.window * MSS,
            in_flight: self.in_flight[index] * MSS,
            sent: self.sent[index] * MSS,
            ..Path::default()
        }
    }

    fn carry_out(&mut self, decision: Decision, view: &View<'_>) -> bool {
        match decision {
            Decision::Send(path, place) => {
                let packet = match place {
                    Place::Head => self.unsent.first(),
                    Place::Tail => self.unsent.last(),
                    Place::Ahead(bytes) => self.unsent.iter().nth((bytes / MSS) as usize),
                };
                let packet = *packet.expect("the place is within what is unsent");
                self.unsent.remove(&packet);
                self.give(packet, path);
            }
            Decision::Duplicate(paths) => {
                let packet = self.unsent.pop_first().expect("checked");
                paths.iter().for_each(|path| self.give(packet, path));
            }
            Decision::Repeat(path) | Decision::RepeatAndPenalise { path, .. } => {
                let mut missing = self.outstanding.iter().filter(|(_, (_, on))| !on.contains(path));
                let packet = *missing.next().expect("checked").0;
                self.give(packet, path);
            }
            Decision::Wait => return false,
        }
        let _ = view;
        true
    }

    fn give(&mut self, packet: u64, path: usize) {
        let line = self.lines[path];
        let entry = self.outstanding.entry(packet).or_insert((path, PathSet::default()));
        self.outcome.repeated += u64::from(!entry.1.is_empty());
        entry.0 = path;
        entry.1.insert(path);
        let arrival = self.now + Time::from_nanos(line.rtt.as_nanos() / 2);
        let arrived = self.outcome.arrived.entry(packet).or_insert(arrival);
        *arrived = (*arrived).min(arrival);
        self.outcome.given[path].push(packet);
        self.serial += 1;
        self.acks.insert((self.now + line.rtt, self.serial, path, packet));
        self.in_flight[path] += 1;
        self.sent[path] += 1;
    }
}

/// Checks for decisions that are invalid for any scheduler.
pub fn check(view: &View<'_>, decision: Decision) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {decision:?} to {view:?}"));
    let ready = |path: usize| view.paths.get(path).is_some_and(|path| path.ready);
    match decision {
        Decision::Send(path, place) => {
            let reach = match place {
                Place::Head => 0,
                Place::Tail => view.unsent.saturating_sub(view.mss),
                Place::Ahead(bytes) => bytes,
            };
            let there = reach < view.unsent && reach < view.window_left;
            match (ready(path), view.has_new(), there) {
                (false, _, _) => wrong("not ready"),
                (_, false, _) => wrong("nothing new to send"),
                (_, _, false) => wrong("no such place"),
                _ => avoid(view, &[path], decision),
            }
        }
        Decision::Duplicate(paths) => {
            let paths: Vec<usize> = paths.iter().collect();
            match (paths.iter().all(|path| ready(*path)) && paths.len() > 1, view.has_new()) {
                (false, _) => wrong("not ready"),
                (_, false) => wrong("nothing new to send"),
                _ => avoid(view, &paths, decision),
            }
        }
        Decision::Repeat(path) | Decision::RepeatAndPenalise { path, .. } => {
            match (ready(path), view.can_repeat.contains(path)) {
                (false, _) => wrong("not ready"),
                (_, false) => wrong("nothing to repeat"),
                _ => avoid(view, &[path], decision),
            }
        }
        Decision::Wait => {
            let idle = view.paths.iter().all(|path| path.in_flight == 0);
            let able = view.paths.iter().any(|path| path.ready && preferred(view, path.status));
            if idle && able && view.has_new() { wrong("would wait for ever") } else { Ok(()) }
        }
    }
}

fn avoid(view: &View<'_>, paths: &[usize], decision: Decision) -> Result<(), String> {
    match paths.iter().find(|path| !preferred(view, view.paths[**path].status)) {
        Some(_) => Err(format!("a better path exists: {decision:?} to {view:?}")),
        None => Ok(()),
    }
}

/// Whether no path of a better status exists (RFC 8684, section 3.3.8, for backups).
fn preferred(view: &View<'_>, status: Status) -> bool {
    let any = |wanted: Status| view.paths.iter().any(|path| path.status == wanted);
    match status {
        Status::Active => true,
        Status::Backup => !any(Status::Active),
        Status::Suspect => !any(Status::Active) && !any(Status::Backup),
        Status::Down => false,
    }
}
