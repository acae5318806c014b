//! Table of a run's results.

use crate::screen;
use knee_present::words::time_us;
use knee_present::{Cell, Document, Table, number, text};
use knee_record::{
    FlowSummary, GroupSummary, LinkSummary, Spread, Summary, TransferSummary, Unit,
    lockstep_in_words,
};

/// Maximum number of flows and links listed; the records contain all.
pub const ROWS_MAX: usize = 20;
/// Maximum number of flows listed individually; above it, groups replace them.
pub const GROUPS_FIRST: usize = 8;

/// Title, flows and links.
pub fn document(summary: &Summary) -> Document {
    let title = format!(
        "{} · {} · seed {} · {}\n",
        summary.name,
        summary.ground,
        summary.seed,
        time_us(Some(summary.duration_us))
    );
    let document = Document::default().words(title + "\n").then(flows(summary));
    let document = document.words("\n").then(links(summary));
    match &summary.lockstep {
        None => document,
        Some(link) => {
            let words = format!("One run is not enough: {}.\n", lockstep_in_words(link));
            document.words("\n").words(screen::wrapped(&words))
        }
    }
}

/// A column for certain workloads.
struct OfWorkload {
    head: &'static str,
    /// How several flows give the value of their group.
    gather: Gather,
    /// Formats a value; `None` if what it measures did not happen.
    show: fn(Option<f64>) -> Cell,
    /// The value of a flow; `None` if it has another workload.
    of_flow: fn(&FlowSummary) -> Option<Part>,
}

/// A flow's part in the value of its group.
struct Part {
    value: Option<f64>,
    /// Number of events of which the value is the mean.
    events: usize,
}

/// How several flows give the value of their group, as in a claim about the group.
#[derive(Clone, Copy)]
enum Gather {
    /// Mean over the flows; missing if one of them has no value.
    Mean,
    /// Mean over the events of all flows.
    OverEvents,
    Sum,
}

/// Head of the column whose group value the summary contains.
const FINISHED: &str = "finished in";

const OF_WORKLOADS: [OfWorkload; 8] = [
    OfWorkload {
        head: FINISHED,
        gather: Gather::Mean,
        show: Cell::us,
        of_flow: |flow| flow.size_bytes.map(|_| once(flow.completion_us)),
    },
    OfWorkload {
        head: "answered in",
        gather: Gather::OverEvents,
        show: Cell::us,
        of_flow: |flow| {
            let bursts = flow.bursts.as_ref()?;
            let value = bursts.time_us.as_ref().map(|time| time.mean);
            Some(Part { value, events: bursts.arrived })
        },
    },
    OfWorkload {
        head: "loaded in",
        gather: Gather::Mean,
        show: Cell::us,
        of_flow: |flow| flow.page.as_ref().map(|page| once(page.load_us)),
    },
    OfWorkload {
        head: "bitrate",
        gather: Gather::OverEvents,
        show: |value| show(Unit::BitsPerSecond, value),
        of_flow: |flow| {
            let video = flow.video.as_ref()?;
            Some(Part { value: video.bitrate_bps, events: video.segments })
        },
    },
    OfWorkload {
        head: "stalled",
        gather: Gather::Mean,
        show: Cell::us,
        of_flow: |flow| flow.video.as_ref().map(|video| once(video.stall_us)),
    },
    OfWorkload {
        head: "started in",
        gather: Gather::Mean,
        show: Cell::us,
        of_flow: |flow| flow.video.as_ref().map(|video| once(video.startup_us)),
    },
    OfWorkload {
        head: "transfers",
        gather: Gather::Sum,
        show: |value| Cell::count(value.unwrap_or(0.0) as u64),
        of_flow: |flow| transfers(flow).map(|all| once(Some(all.finished as f64))),
    },
    OfWorkload {
        head: "mean time",
        gather: Gather::OverEvents,
        show: Cell::us,
        of_flow: |flow| {
            let all = transfers(flow)?;
            Some(Part { value: all.completion_us.map(|time| time.mean), events: all.finished })
        },
    },
];

fn once(value: Option<f64>) -> Part {
    Part { value, events: 1 }
}

impl OfWorkload {
    fn is_of(&self, flow: &FlowSummary) -> bool {
        (self.of_flow)(flow).is_some()
    }

    fn cell(&self, flow: &FlowSummary) -> Cell {
        (self.of_flow)(flow).map(|part| (self.show)(part.value)).unwrap_or_default()
    }

    /// The cell of a group; empty if its flows have another workload.
    fn of_group(&self, group: &GroupSummary, flows: &[FlowSummary]) -> Cell {
        if self.head == FINISHED {
            return Cell::us(group.completion_us);
        }
        let members = flows.iter().filter(|flow| flow.name == group.name);
        let parts: Vec<Part> = members.filter_map(self.of_flow).collect();
        match parts.is_empty() {
            true => Cell::default(),
            false => (self.show)(self.gather.all(&parts, group.flow_count)),
        }
    }
}

impl Gather {
    /// Returns the value of a group with so many flows; `None` if there is none.
    fn all(self, parts: &[Part], flow_count: usize) -> Option<f64> {
        let values = || parts.iter().filter_map(|part| Some((part.value?, part.events as f64)));
        let sum = || values().map(|(value, _)| value).sum::<f64>();
        match self {
            Gather::Sum => Some(sum()),
            Gather::Mean => {
                let all = values().count() == flow_count;
                all.then(|| sum() / flow_count as f64)
            }
            Gather::OverEvents => {
                let events: f64 = values().map(|(_, events)| events).sum();
                let total: f64 = values().map(|(value, events)| value * events).sum();
                (events > 0.0).then(|| total / events)
            }
        }
    }
}

/// The class of all transfers of a mix.
fn transfers(flow: &FlowSummary) -> Option<&TransferSummary> {
    flow.transfers.as_ref()?.iter().find(|class| class.name == "all")
}

fn flows(summary: &Summary) -> Document {
    let filled = |column: &&OfWorkload| summary.flows.iter().any(|flow| column.is_of(flow));
    let more: Vec<&OfWorkload> = OF_WORKLOADS.iter().filter(filled).collect();
    let figures = more.iter().map(|column| column.head).chain(FIGURES).map(number);
    let heads = ["flow", "cc"].map(text).into_iter().chain(figures);
    let mut table = Table::new(heads).called("flows");
    let many = summary.flows.len() > GROUPS_FIRST && !summary.groups.is_empty();
    let shown = if many { 0 } else { ROWS_MAX };
    if many {
        let alone = |flow: &&FlowSummary| summary.groups.iter().all(|g| g.name != flow.name);
        summary.groups.iter().for_each(|group| {
            let name = format!("{} × {}", group.name, group.flow_count);
            let words = [name, group.cc.clone()].map(Cell::from).into_iter();
            let waited = more.iter().map(|column| column.of_group(group, &summary.flows));
            table.row(words.chain(waited).chain(group_figures(group)));
        });
        summary.flows.iter().filter(alone).take(ROWS_MAX).for_each(|flow| {
            table.row(flow_row(flow, &more));
        });
    }
    summary.flows.iter().take(shown).for_each(|flow| table.row(flow_row(flow, &more)));
    if summary.flows.len() > 1 {
        let finished = |column: &&OfWorkload| match column.head == FINISHED {
            true => Cell::us(summary.measures.completion_us),
            false => Cell::default(),
        };
        let words = [Cell::from("all"), Cell::default()].into_iter();
        table.row(words.chain(more.iter().map(finished)).chain(all_figures(summary)));
    }
    let fairness = match summary.measures.jain {
        Some(jain) if summary.flows.len() > 1 => {
            format!("fairness (Jain's index) {}\n", Unit::Number.show(jain))
        }
        _ => String::new(),
    };
    let rest = match many {
        true => format!("Each of the {} flows: {}\n", summary.flows.len(), knee_record::FLOWS),
        false => left_out(summary.flows.len(), "flows", knee_record::FLOWS),
    };
    Document::default().table(table).words(fairness + &rest)
}

/// Column heads common to all flows.
const FIGURES: [&str; 6] = ["goodput", "RTT p50", "RTT p95", "standing", "retransmitted", "power"];

fn flow_row(flow: &FlowSummary, more: &[&OfWorkload]) -> Vec<Cell> {
    let rtt = |value: fn(&Spread) -> f64| Cell::us(flow.rtt_us.as_ref().map(value));
    let mut row = vec![format!("{}[{}]", flow.name, flow.index).into(), (&flow.cc).into()];
    row.extend(more.iter().map(|column| column.cell(flow)));
    row.extend([
        show(Unit::BitsPerSecond, flow.goodput_bps),
        rtt(|rtt| rtt.p50),
        rtt(|rtt| rtt.p95),
        Cell::us(flow.standing_queue_us),
        show(Unit::Fraction, flow.retransmit_ratio),
        show(Unit::Number, flow.power),
    ]);
    row
}

fn group_figures(group: &GroupSummary) -> [Cell; 6] {
    let rtt = |value: fn(&Spread) -> f64| Cell::us(group.rtt_us.as_ref().map(value));
    [
        show(Unit::BitsPerSecond, group.goodput_bps),
        rtt(|rtt| rtt.p50),
        rtt(|rtt| rtt.p95),
        Cell::us(group.standing_queue_us),
        show(Unit::Fraction, group.retransmit_ratio),
        Cell::default(),
    ]
}

fn all_figures(summary: &Summary) -> [Cell; 6] {
    let all = &summary.measures;
    let rtt = |value: fn(&Spread) -> f64| Cell::us(all.rtt_us.as_ref().map(value));
    [
        show(Unit::BitsPerSecond, all.goodput_bps),
        rtt(|rtt| rtt.p50),
        rtt(|rtt| rtt.p95),
        Cell::us(all.standing_queue_us),
        show(Unit::Fraction, all.retransmit_ratio),
        show(Unit::Number, all.power),
    ]
}

fn links(summary: &Summary) -> Document {
    let mut table = Table::new([
        text("link"),
        number("utilisation"),
        number("delay p50"),
        number("delay p95"),
        number("standing"),
        number("dropped"),
        number("lost"),
        number("marked"),
    ])
    .called("links");
    summary.links.iter().take(ROWS_MAX).for_each(|link| table.row(link_row(link)));
    let rest = left_out(summary.links.len(), "links", knee_record::LINKS);
    Document::default().table(table).words(rest)
}

fn link_row(link: &LinkSummary) -> [Cell; 8] {
    let delay = |value: fn(&Spread) -> f64| Cell::us(link.queueing_delay_us.as_ref().map(value));
    [
        (&link.name).into(),
        show(Unit::Fraction, link.utilisation),
        delay(|delay| delay.p50),
        delay(|delay| delay.p95),
        Cell::us(link.standing_queue_us),
        Cell::count(link.drops),
        Cell::count(link.losses),
        Cell::count(link.marks),
    ]
}

fn left_out(count: usize, what: &str, file: &str) -> String {
    match count.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!("… and {more} more {what}, in {file}\n"),
    }
}

fn show(unit: Unit, value: Option<f64>) -> Cell {
    Cell::figure(unit, value)
}
