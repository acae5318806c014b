//! Which link dropped which flow's packets, why and when. Implements `knee drops`.
//!
//! The packet log has every packet that was dropped. Without one there are the counters of the
//! links, which are always recorded; the scenario then says which flows cross a link, and for which
//! reasons it can drop a packet.

use crate::both;
use crate::directory::{PACKETS, repeat};
use crate::error::Error;
use crate::packet_log::{self, BYTES, DETAIL, KIND, LINK, Line, PacketLogError, Row};
use crate::page::{Saved, saved};
use crate::text::ScenarioText;
use knee_link::{Aqm, Buffer, Config, Loss, RateModel};
use knee_record::{LinkSample, LinkView, RunView, SavedRun, read_run};
use knee_scenario::{Reverse, Scenario};
use knee_units::Time;
use std::collections::BTreeMap;
use std::path::Path;

/// Equal spans into which a run is divided to say when packets were dropped.
pub const TIMELINE_SPANS: usize = 10;

/// What a dropped packet carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropKind {
    /// Data, or the packet that opens a connection.
    Data,
    /// An acknowledgement.
    Ack,
}

/// Packets that one link dropped, of the same flow and kind and for the same reason, as far as that
/// is known.
#[derive(Clone, Debug, PartialEq)]
pub struct DropLine {
    /// Name of the link.
    pub link: String,
    /// The flow; several if it is one of them; empty if that is not known.
    pub flows: Vec<String>,
    /// What the packets carried; `None` if they may have been of both kinds.
    pub kind: Option<DropKind>,
    /// The reason; several if it is one of them.
    pub reasons: Vec<&'static str>,
    /// Packets dropped.
    pub packets: u64,
    /// Their IP bytes; `None` without a packet log.
    pub bytes: Option<u64>,
    /// Packets of this kind that the flow sent; without a packet log, packets that entered the link.
    pub of_packets: u64,
    /// First drop, nanoseconds since the start of the run; without a packet log that of the first
    /// sample which counts one.
    pub first_ns: u64,
    /// Last drop, likewise.
    pub last_ns: u64,
    /// Packets dropped in each span of the run.
    pub timeline: [u64; TIMELINE_SPANS],
}

/// The drops of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDrops {
    /// Its folder below the given one; empty for that one itself.
    pub name: String,
    /// Name of the ground.
    pub ground: String,
    /// Seed.
    pub seed: u64,
    /// Whether they come from a packet log.
    pub is_logged: bool,
    /// Time between two samples of the links, which is how exact times without a packet log are.
    pub sample_ns: u64,
    /// End of the run, nanoseconds.
    pub end_ns: u64,
    /// Names of the links.
    pub links: Vec<String>,
    /// Packets that entered a link, all links added.
    pub entered_packets: u64,
    /// Drops, most first.
    pub lines: Vec<DropLine>,
}

impl RunDrops {
    /// Packets dropped by all links.
    pub fn packets(&self) -> u64 {
        self.lines.iter().map(|line| line.packets).sum()
    }

    /// Packets dropped by each link that dropped any, in each span of the run.
    pub fn timelines(&self) -> Vec<(&str, [u64; TIMELINE_SPANS])> {
        let of_link = |name: &String| {
            let mut sum = [0; TIMELINE_SPANS];
            let lines = self.lines.iter().filter(|line| line.link == *name);
            lines.for_each(|line| sum.iter_mut().zip(line.timeline).for_each(|(s, n)| *s += n));
            sum
        };
        let all = self.links.iter().map(|name| (name.as_str(), of_link(name)));
        all.filter(|(_, spans)| spans.iter().any(|packets| *packets > 0)).collect()
    }
}

/// Reads what the links of a run dropped; of repeats and of several grounds, for each run.
///
/// # Errors
/// [`Error::NoDrops`] for a folder of anything else, [`Error::NoLinks`] for a run between two
/// machines, and files that cannot be read or are damaged.
pub fn drops(directory: &Path) -> Result<Vec<RunDrops>, Error> {
    let none = |what| Err(Error::NoDrops { path: directory.to_path_buf(), what });
    match saved(directory)? {
        Saved::Run(_) => Ok(vec![of_run(directory, String::new())?]),
        Saved::Grounds(_) => {
            let grounds = both::are_in(directory).into_iter();
            grounds.map(|ground| of_run(&directory.join(ground), ground.to_string())).collect()
        }
        Saved::Repeats(_) => {
            let names = (1..).map(repeat).take_while(|name| directory.join(name).is_dir());
            names.map(|name| of_run(&directory.join(&name), name)).collect()
        }
        Saved::Studies(_) => none("studies"),
        Saved::Sweep(_) => none("a sweep"),
        Saved::Ranking(_) => none("a ranking"),
        Saved::Evaluation(_) => none("an evaluation"),
        Saved::Comparison(_) => none("a comparison"),
    }
}

fn of_run(directory: &Path, name: String) -> Result<RunDrops, Error> {
    let run = read_run(directory)?;
    if run.records.link_names.is_empty() {
        return Err(Error::NoLinks(directory.to_path_buf()));
    }
    let is_logged = packet_log::is_in(directory);
    let mut lines = match is_logged {
        true => logged(directory, &run)?,
        false => {
            let scenario = ScenarioText::of_run(directory);
            let scenario = scenario.and_then(|text| text.scenario(&[])).ok();
            counted(&run, scenario.as_ref())
        }
    };
    // Stable: what is equal keeps the order of links and flows.
    lines.sort_by_key(|line| std::cmp::Reverse(line.packets));
    let samples = RunView::new(&run.records, Time::ZERO).links.into_iter().next();
    let sample_ns = samples.map_or(0, |link| interval(&link));
    Ok(RunDrops {
        name,
        ground: run.summary.ground.clone(),
        seed: run.summary.seed,
        is_logged,
        sample_ns,
        end_ns: run.records.end_ns,
        links: run.summary.links.iter().map(|link| link.name.clone()).collect(),
        entered_packets: run.summary.links.iter().map(|link| link.entered_packets).sum(),
        lines,
    })
}

/// The largest time between two samples of a link.
fn interval(link: &LinkView<'_>) -> u64 {
    let times = link.samples.times(0);
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

/// Adds packets to a line's times.
fn note(line: &mut DropLine, at_ns: u64, packets: u64, end_ns: u64) {
    if line.packets == 0 {
        line.first_ns = at_ns;
    }
    line.last_ns = at_ns;
    line.packets += packets;
    let span = u128::from(at_ns) * TIMELINE_SPANS as u128 / u128::from(end_ns.max(1));
    line.timeline[(span as usize).min(TIMELINE_SPANS - 1)] += packets;
}

fn empty(link: &str) -> DropLine {
    DropLine {
        link: link.to_string(),
        flows: Vec::new(),
        kind: None,
        reasons: Vec::new(),
        packets: 0,
        bytes: None,
        of_packets: 0,
        first_ns: 0,
        last_ns: 0,
        timeline: [0; TIMELINE_SPANS],
    }
}

/// Drops by link, flow, kind and reason, as the packet log has them.
fn logged(directory: &Path, run: &SavedRun) -> Result<Vec<DropLine>, Error> {
    let flow_names = run.summary.flows.iter();
    let flow_names: Vec<String> =
        flow_names.map(|flow| format!("{}[{}]", flow.name, flow.index)).collect();
    let mut links: BTreeMap<usize, String> = BTreeMap::new();
    // The scenario's flow of each connection and subflow, by its number in the log.
    let mut flows: BTreeMap<u32, usize> = BTreeMap::new();
    let mut sent: BTreeMap<(usize, DropKind), u64> = BTreeMap::new();
    let mut lines: BTreeMap<(usize, usize, DropKind, &'static str), DropLine> = BTreeMap::new();
    // Packets that came to a link of the scenario: those that it dropped, and those that entered.
    let mut came = 0_u64;
    let last = packet_log::each_line(directory, |line| {
        match line {
            Line::Head(mut fields) => match fields.next() {
                Some("link") => {
                    let index = fields.next().and_then(|index| index.parse().ok());
                    let index: usize = index.ok_or("a link has no number")?;
                    // Links that the ground added have no name of their own.
                    let of_scenario = run.records.link_names.get(index).map(String::as_str);
                    let name = of_scenario.or(fields.next()).ok_or("a link has no name")?;
                    links.insert(index, name.to_string());
                }
                Some("flow") => {
                    let number = fields.next().and_then(|number| number.parse().ok());
                    let of = fields.find_map(|field| field.strip_prefix("of="));
                    let of: Option<usize> = of.and_then(|of| of.parse().ok());
                    let of = of.filter(|of| *of < flow_names.len());
                    let (number, of) = number.zip(of).ok_or("a flow is not one of the run")?;
                    flows.insert(number, of);
                }
                _ => {}
            },
            Line::Row(row) => match row.event {
                "enter" => came += is_of_scenario(&row, run),
                "send" => *sent.entry((of(&flows, &row)?, DropKind::Data)).or_default() += 1,
                "ack_send" => *sent.entry((of(&flows, &row)?, DropKind::Ack)).or_default() += 1,
                "drop" => {
                    let link = row.number(LINK).ok_or("a link is missing")? as usize;
                    let flow = of(&flows, &row)?;
                    let kind = match row.cells[KIND] {
                        "data" => DropKind::Data,
                        _ => DropKind::Ack,
                    };
                    let reason = reason(row.cells[DETAIL]).ok_or("a drop has no known reason")?;
                    let name = links.get(&link).ok_or("a link is not in the head")?;
                    let line =
                        lines.entry((link, flow, kind, reason)).or_insert_with(|| DropLine {
                            flows: vec![flow_names[flow].clone()],
                            kind: Some(kind),
                            reasons: vec![reason],
                            ..empty(name)
                        });
                    came += is_of_scenario(&row, run);
                    let bytes = row.number(BYTES).ok_or("a size is missing")?;
                    let bytes = bytes.checked_add(line.bytes.unwrap_or(0));
                    line.bytes = Some(bytes.ok_or("a size is impossible")?);
                    note(line, row.at_ns, 1, run.records.end_ns);
                }
                _ => {}
            },
        }
        Ok(())
    })?;
    let counted = run.summary.links.iter();
    let counted = counted.map(|link| link.entered_packets + link.drops + link.losses).sum::<u64>();
    if came != counted {
        let path = directory.join(PACKETS);
        let what = format!(
            "the log is cut off, or of another run: {came} packets come to a link in it, and the \
             links of the run counted {counted}"
        );
        return Err(PacketLogError { path, line: last, what }.into());
    }
    let total = |flow, kind| sent.get(&(flow, kind)).copied().unwrap_or(0);
    let with_total = lines
        .into_iter()
        .map(|((_, flow, kind, _), line)| DropLine { of_packets: total(flow, kind), ..line });
    Ok(with_total.collect())
}

/// 1 for a link of the scenario; 0 for one that the ground added, which the run does not count.
fn is_of_scenario(row: &Row<'_>, run: &SavedRun) -> u64 {
    u64::from(row.number(LINK).is_some_and(|link| (link as usize) < run.summary.links.len()))
}

/// The scenario's flow of a row.
fn of(flows: &BTreeMap<u32, usize>, row: &Row<'_>) -> Result<usize, &'static str> {
    row.flow.and_then(|flow| flows.get(&flow)).copied().ok_or("a flow is not in the head")
}

const QUEUE_FULL: &str = "queue full";
const AQM: &str = "AQM";
const POLICER: &str = "policer";
const BREAKER: &str = "circuit breaker";
const LOSS: &str = "link loss";
const OUTAGE: &str = "outage";

/// The reason that the packet log gives, in words.
fn reason(detail: &str) -> Option<&'static str> {
    Some(match detail {
        "queue" => QUEUE_FULL,
        "aqm" => AQM,
        "policer" => POLICER,
        "breaker" => BREAKER,
        "loss" => LOSS,
        "down" => OUTAGE,
        _ => return None,
    })
}

/// Reads a counter of a link.
type Counter = fn(&LinkSample) -> u64;

/// Drops by link, as its counters have them.
fn counted(run: &SavedRun, scenario: Option<&Scenario>) -> Vec<DropLine> {
    let view = RunView::new(&run.records, Time::ZERO);
    let mut lines = Vec::new();
    for (index, link) in view.links.iter().enumerate() {
        let (flows, kind) = scenario.map_or((Vec::new(), None), |all| crossing(all, index));
        let config = scenario.and_then(|all| all.links.get(index)).map(|link| &link.config);
        let (dropping, losing) = config.map_or_else(Default::default, reasons);
        let counters: [(Counter, Vec<&str>, &str); 2] = [
            (|row| row.dropped_packets, dropping, "dropped"),
            (|row| row.lost_packets, losing, "lost"),
        ];
        for (counter, reasons, unknown) in counters {
            let reasons = if reasons.is_empty() { vec![unknown] } else { reasons };
            let entered = link.samples.last().map_or(0, |row| row.entered_packets);
            let (flows, of_packets) = (flows.clone(), entered);
            let mut line = DropLine { flows, kind, reasons, of_packets, ..empty(link.name) };
            let mut before = 0;
            for row in link.samples.iter() {
                let now = counter(&row);
                if now > before {
                    note(&mut line, row.time_ns, now - before, run.records.end_ns);
                }
                before = now;
            }
            if line.packets > 0 {
                lines.push(line);
            }
        }
    }
    lines
}

/// Flows that cross a link, and what they send over it.
fn crossing(scenario: &Scenario, link: usize) -> (Vec<String>, Option<DropKind>) {
    let (mut names, mut data, mut acks) = (Vec::new(), false, false);
    for flow in &scenario.flows {
        let paths = || flow.paths.iter().map(|path| &scenario.paths[*path]);
        let forward = paths().any(|path| path.forward.contains(&link));
        let back =
            |reverse: &Reverse| matches!(reverse, Reverse::Links(all) if all.contains(&link));
        let reverse = paths().any(|path| back(&path.reverse));
        data |= forward;
        acks |= reverse;
        if forward || reverse {
            names.push(format!("{}[{}]", flow.name, flow.index));
        }
    }
    let kind = match (data, acks) {
        (true, false) => Some(DropKind::Data),
        (false, true) => Some(DropKind::Ack),
        _ => None,
    };
    (names, kind)
}

/// Why a link can drop packets, and why it can lose them.
fn reasons(config: &Config) -> (Vec<&'static str>, Vec<&'static str>) {
    let has_queue = config.rate != RateModel::Unlimited;
    let dropping = [
        (QUEUE_FULL, has_queue && config.buffer != Buffer::Unlimited),
        (AQM, has_queue && config.aqm != Aqm::DropTail),
        (POLICER, config.policer.is_some()),
        (BREAKER, config.circuit_breaker.is_some()),
    ];
    let losing = [(LOSS, config.loss != Loss::None), (OUTAGE, !config.down.is_empty())];
    let possible = |all: &[(&'static str, bool)]| {
        all.iter().filter(|(_, is_possible)| *is_possible).map(|(reason, _)| *reason).collect()
    };
    (possible(&dropping), possible(&losing))
}
