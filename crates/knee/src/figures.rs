//! Table of a run's results.

use crate::cell::Cell;
use crate::document::Document;
use crate::table::Table;
use knee_lab::words::time_us;
use knee_record::{FlowSummary, GroupSummary, LinkSummary, Spread, Summary, TransferSummary, Unit};

/// Maximum number of flows and links listed; the records contain all.
const ROWS_MAX: usize = 20;
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
    document.words("\n").then(links(summary))
}

/// A column for certain workloads: its head, and the value of a flow.
type OfWorkload = (&'static str, fn(&FlowSummary) -> Option<Cell>);

const OF_WORKLOADS: [OfWorkload; 7] = [
    (">finished in", |flow| flow.size_bytes.map(|_| Cell::us(flow.completion_us))),
    (">loaded in", |flow| flow.page.as_ref().map(|page| Cell::us(page.load_us))),
    (">bitrate", |flow| flow.video.as_ref().map(|v| show(Unit::BitsPerSecond, v.bitrate_bps))),
    (">stalled", |flow| flow.video.as_ref().map(|video| Cell::us(video.stall_us))),
    (">started in", |flow| flow.video.as_ref().map(|video| Cell::us(video.startup_us))),
    (">transfers", |flow| transfers(flow).map(|all| Cell::count(all.finished as u64))),
    (">mean time", |flow| {
        transfers(flow).map(|all| Cell::us(all.completion_us.map(|time| time.mean)))
    }),
];

/// The class of all transfers of a mix.
fn transfers(flow: &FlowSummary) -> Option<&TransferSummary> {
    flow.transfers.as_ref()?.iter().find(|class| class.name == "all")
}

fn flows(summary: &Summary) -> Document {
    let filled = |column: &&OfWorkload| summary.flows.iter().any(|flow| column.1(flow).is_some());
    let more: Vec<&OfWorkload> = OF_WORKLOADS.iter().filter(filled).collect();
    let mut heads = vec!["flow", "cc"];
    heads.extend(more.iter().map(|(head, _)| *head));
    heads.extend(FIGURES);
    let mut table = Table::new(&heads).called("flows");
    let many = summary.flows.len() > GROUPS_FIRST && !summary.groups.is_empty();
    let shown = if many { 0 } else { ROWS_MAX };
    if many {
        let alone = |flow: &&FlowSummary| summary.groups.iter().all(|g| g.name != flow.name);
        let of_group = |group: &GroupSummary| {
            let cell = |(head, _): &&OfWorkload| match *head == ">finished in" {
                true => Cell::us(group.completion_us),
                false => Cell::default(),
            };
            more.iter().map(cell).collect::<Vec<_>>()
        };
        summary.groups.iter().for_each(|group| {
            let name = format!("{} × {}", group.name, group.flow_count);
            let words = [name, group.cc.clone()].map(Cell::from).into_iter().chain(of_group(group));
            table.row(words.chain(group_figures(group)));
        });
        summary.flows.iter().filter(alone).take(ROWS_MAX).for_each(|flow| {
            table.row(flow_row(flow, &more));
        });
    }
    summary.flows.iter().take(shown).for_each(|flow| table.row(flow_row(flow, &more)));
    if summary.flows.len() > 1 {
        let finished = |(head, _): &&OfWorkload| match *head == ">finished in" {
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
const FIGURES: [&str; 6] =
    [">goodput", ">RTT p50", ">RTT p95", ">standing", ">retransmitted", ">power"];

fn flow_row(flow: &FlowSummary, more: &[&OfWorkload]) -> Vec<Cell> {
    let rtt = |value: fn(&Spread) -> f64| Cell::us(flow.rtt_us.as_ref().map(value));
    let mut row = vec![format!("{}[{}]", flow.name, flow.index).into(), (&flow.cc).into()];
    row.extend(more.iter().map(|(_, value)| value(flow).unwrap_or_default()));
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
    let mut table = Table::new(&[
        "link",
        ">utilisation",
        ">delay p50",
        ">delay p95",
        ">standing",
        ">dropped",
        ">lost",
        ">marked",
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
