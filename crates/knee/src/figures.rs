//! Table of a run's results.

use crate::screen;
use knee_present::words::time_us;
use knee_present::{Cell, Column, Document, Table, number, text};
use knee_record::{
    APPLICATION_VALUES, ApplicationValue, FlowSummary, GroupSummary, HALF_AND_HALF, LinkSummary,
    Measures, Spread, Summary, Unit, lockstep_in_words,
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
    let common = FIGURES.iter().map(|figure| figure.head);
    let figures = more.iter().map(|column| column.head).chain(common).map(number);
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
            table
                .row(words.chain(waited).chain(FIGURES.iter().map(|figure| (figure.group)(group))));
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
        let together = FIGURES.iter().map(|figure| (figure.all)(&summary.measures));
        let words = [Cell::from("all"), Cell::default()].into_iter();
        table.row(words.chain(more.iter().map(finished)).chain(together));
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

/// A figure of all flows, of each flow, of a group, and of all together.
struct Figure {
    head: &'static str,
    flow: fn(&FlowSummary) -> Cell,
    group: fn(&GroupSummary) -> Cell,
    all: fn(&Measures) -> Cell,
}

const FIGURES: [Figure; 6] = [
    Figure {
        head: "goodput",
        flow: |flow| show(Unit::BitsPerSecond, flow.goodput_bps),
        group: |group| show(Unit::BitsPerSecond, group.goodput_bps),
        all: |all| show(Unit::BitsPerSecond, all.goodput_bps),
    },
    Figure {
        head: "RTT p50",
        flow: |flow| time(rtt(flow), |rtt| rtt.p50),
        group: |group| time(group.rtt_us.as_ref(), |rtt| rtt.p50),
        all: |all| time(all.rtt_us.as_ref(), |rtt| rtt.p50),
    },
    Figure {
        head: "RTT p95",
        flow: |flow| time(rtt(flow), |rtt| rtt.p95),
        group: |group| time(group.rtt_us.as_ref(), |rtt| rtt.p95),
        all: |all| time(all.rtt_us.as_ref(), |rtt| rtt.p95),
    },
    Figure {
        head: "standing",
        flow: |flow| Cell::us(flow.standing_queue_us),
        group: |group| Cell::us(group.standing_queue_us),
        all: |all| Cell::us(all.standing_queue_us),
    },
    Figure {
        head: "retransmitted",
        flow: |flow| show(Unit::Fraction, flow.retransmit_ratio),
        group: |group| show(Unit::Fraction, group.retransmit_ratio),
        all: |all| show(Unit::Fraction, all.retransmit_ratio),
    },
    Figure {
        head: "power",
        flow: |flow| show(Unit::Number, flow.power),
        group: |_| Cell::default(),
        all: |all| show(Unit::Number, all.power),
    },
];

/// The RTT of a flow: that of the path, if the sender does not tell its own.
fn rtt(flow: &FlowSummary) -> Option<&Spread> {
    flow.rtt_us.as_ref().or(flow.path_rtt_us.as_ref())
}

fn time(spread: Option<&Spread>, of: fn(&Spread) -> f64) -> Cell {
    Cell::us(spread.map(of))
}

fn flow_row(flow: &FlowSummary, more: &[OfWorkload]) -> Vec<Cell> {
    let mut row = vec![format!("{}[{}]", flow.name, flow.index).into(), (&flow.cc).into()];
    row.extend(more.iter().map(|column| column.cell(flow)));
    row.extend(FIGURES.iter().map(|figure| (figure.flow)(flow)));
    row
}

fn links(summary: &Summary) -> Document {
    if summary.links.is_empty() {
        return Document::default().said("The links of the path are not known.");
    }
    let columns: [Column<LinkSummary>; 8] = [
        Column::new(text("link"), |link| (&link.name).into()),
        Column::new(number("utilisation"), |link| show(Unit::Fraction, link.utilisation)),
        Column::new(number("delay p50"), |link| time(link.queueing_delay_us.as_ref(), |it| it.p50)),
        Column::new(number("delay p95"), |link| time(link.queueing_delay_us.as_ref(), |it| it.p95)),
        Column::new(number("standing"), |link| Cell::us(link.standing_queue_us)),
        Column::new(number("dropped"), |link| Cell::count(link.drops)),
        Column::new(number("lost"), |link| Cell::count(link.losses)),
        Column::new(number("marked"), |link| Cell::count(link.marks)),
    ];
    let table = Table::of(&columns, summary.links.iter().take(ROWS_MAX)).called("links");
    let rest = left_out(summary.links.len(), "links", knee_record::LINKS);
    Document::default().table(table).words(rest)
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
