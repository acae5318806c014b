//! Table of a run's results.

use crate::screen;
use knee_present::words::time_us;
use knee_present::{Cell, Document, Table, number, text};
use knee_record::{
    APPLICATION_VALUES, ApplicationValue, FlowSummary, GroupSummary, HALF_AND_HALF, LinkSummary,
    Spread, Summary, Unit, lockstep_in_words,
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
    let mut document = Document::default().words(title + "\n");
    if summary.is_half_and_half() {
        let words = format!("One run, {HALF_AND_HALF}.");
        document = document.said(words).words("\n");
    }
    let document = document.then(flows(summary));
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
    show: Show,
    /// What it shows; `None` for the completion time of files, which groups have themselves.
    value: Option<&'static ApplicationValue>,
}

/// Formats a value; `None` if what it measures did not happen.
type Show = fn(Option<f64>) -> Cell;

/// Heads of the columns for certain workloads, in order, with the names of what they show and how.
const OF_WORKLOADS: [(&str, &str, Show); 8] = [
    ("finished in", "completion_us", Cell::us),
    ("answered in", "bursts.time_us.mean", Cell::us),
    ("loaded in", "page.load_us", Cell::us),
    ("bitrate", "video.bitrate_bps", |value| show(Unit::BitsPerSecond, value)),
    ("stalled", "video.stall_us", Cell::us),
    ("started in", "video.startup_us", Cell::us),
    ("transfers", "transfers.all.finished", |value| Cell::count(value.unwrap_or(0.0) as u64)),
    ("mean time", "transfers.all.completion_us.mean", Cell::us),
];

fn of_workloads() -> impl Iterator<Item = OfWorkload> {
    OF_WORKLOADS.into_iter().map(|(head, name, show)| {
        let value = APPLICATION_VALUES.iter().find(|value| value.name == name);
        OfWorkload { head, show, value }
    })
}

impl OfWorkload {
    /// The value of a flow; `None` if it has another workload.
    fn of(&self, flow: &FlowSummary) -> Option<Option<f64>> {
        match self.value {
            None => flow.size_bytes.map(|_| flow.completion_us),
            Some(value) => value.of_flow(flow),
        }
    }

    fn is_of(&self, flow: &FlowSummary) -> bool {
        self.of(flow).is_some()
    }

    fn cell(&self, flow: &FlowSummary) -> Cell {
        self.of(flow).map(self.show).unwrap_or_default()
    }

    /// The cell of a group; empty if its flows have another workload.
    fn of_group(&self, group: &GroupSummary, flows: &[FlowSummary]) -> Cell {
        let members: Vec<&FlowSummary> =
            flows.iter().filter(|flow| flow.name == group.name).collect();
        match self.value {
            None => Cell::us(group.completion_us),
            Some(value) => value.of_group(&members).map(self.show).unwrap_or_default(),
        }
    }
}

fn flows(summary: &Summary) -> Document {
    let filled = |column: &OfWorkload| summary.flows.iter().any(|flow| column.is_of(flow));
    let more: Vec<OfWorkload> = of_workloads().filter(filled).collect();
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
        let finished = |column: &OfWorkload| match column.value {
            None => Cell::us(summary.measures.completion_us),
            Some(_) => Cell::default(),
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

fn flow_row(flow: &FlowSummary, more: &[OfWorkload]) -> Vec<Cell> {
    // That of the path, if the sender does not tell its own.
    let known = flow.rtt_us.as_ref().or(flow.path_rtt_us.as_ref());
    let rtt = |value: fn(&Spread) -> f64| Cell::us(known.map(value));
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
    if summary.links.is_empty() {
        return Document::default().said("The links of the path are not known.");
    }
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
