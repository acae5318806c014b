//! The tables of access logs: one definition for the page, the terminal and other programs.

use crate::observed::tables::{bytes, counted, part, rate, ratio};
use knee_present::{Cell, Table, number, text, words};
use knee_record::{LogBeside, LogCell, LogReport, ObservedSpread};

/// Rows of groups and networks on a page and a screen; JSON has all.
const ROWS_MAX: usize = 24;

/// Whether a size class is one of 3 MB and more, where throughput counts; below, time does.
pub(super) fn is_large(class: &str) -> bool {
    matches!(class, "3 MB and more" | "3 to 30 MB" | "30 MB and more")
}

/// Returns the tables for one screen: what the question is about, and otherwise the overview.
pub fn log_screen(report: &LogReport) -> Vec<Table> {
    let of_moment = report.beside.iter().any(|beside| beside.of_moment);
    let is_shown = |table: &Table| match table.name.as_str() {
        "prefixes" => false,
        // The comparisons have these rows.
        "protocols" => report.beside.is_empty(),
        "groups" | "providers" => !of_moment,
        _ => true,
    };
    log_tables(report).into_iter().filter(is_shown).collect()
}

/// Returns all tables for which a report has data.
pub fn log_tables(report: &LogReport) -> Vec<Table> {
    let mut tables: Vec<Table> = report.beside.iter().map(beside).collect();
    tables.push(classes(report));
    let lists = [
        (&report.protocols, "protocols", "By version of HTTP", "version"),
        (&report.controllers, "controllers", "By congestion controller", "controller"),
        (&report.groups, "groups", "By group of clients", "group"),
        (&report.providers, "providers", "By network of the clients", "network"),
        (&report.prefixes, "prefixes", "By prefix of the clients", "prefix"),
    ];
    for (cells, name, title, head) in lists {
        let mut table = list(cells, name, title, head);
        if name == "controllers" {
            table.note =
                "Controllers carried different transfers: this is not an experiment.".into();
        }
        if name == "prefixes" && report.other_prefixes > 0 {
            let others = knee_present::words::count(report.other_prefixes);
            table.note = format!("{others} transfers of other prefixes are not shown.");
        }
        tables.push(table);
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn microseconds(value: Option<f64>) -> Cell {
    Cell::us(value)
}

/// The three percentiles of the measure of a size: throughput from 3 MB on, time below.
fn percentiles(cell: &LogCell) -> [Cell; 3] {
    let parts = |spread: Option<ObservedSpread>| {
        [spread.map(|s| s.p5), spread.map(|s| s.p50), spread.map(|s| s.p95)]
    };
    let [low, _, high] = match is_large(&cell.class) {
        true => parts(cell.throughput_bps).map(rate),
        false => parts(cell.time_us).map(microseconds),
    };
    [low, median(cell), high]
}

/// The median of the measure of a size, with its interval.
fn median(cell: &LogCell) -> Cell {
    let middle = |spread: Option<ObservedSpread>| spread.map(|spread| spread.p50);
    let (figure, interval, show): (Cell, _, fn(Option<f64>) -> String) = match is_large(&cell.class)
    {
        true => (rate(middle(cell.throughput_bps)), cell.throughput_median_bps, words::rate),
        false => (microseconds(middle(cell.time_us)), cell.time_median_us, words::time_us),
    };
    match interval {
        Some(bounds) => figure.between(bounds, |value| show(Some(value))),
        None => figure,
    }
}

/// What is shown of each row beside its measure, if the logs have it.
struct Optional {
    server: bool,
    rtt: bool,
    delivery: bool,
}

impl Optional {
    fn of<'c>(cells: impl Iterator<Item = &'c LogCell> + Clone) -> Optional {
        Optional {
            server: cells.clone().any(|cell| cell.server_ratio.is_some()),
            rtt: cells.clone().any(|cell| cell.rtt_us.is_some()),
            delivery: cells.clone().any(|cell| cell.delivery_rate_bps.is_some()),
        }
    }

    fn heads(&self) -> Vec<&'static str> {
        let all = [
            (self.server, "server's part"),
            (self.rtt, "RTT median"),
            (self.delivery, "delivery rate"),
            (self.delivery, "used of it"),
        ];
        all.iter().filter(|(is_there, _)| *is_there).map(|(_, head)| *head).collect()
    }

    fn cells(&self, cell: &LogCell) -> Vec<Cell> {
        let median = |spread: Option<ObservedSpread>| spread.map(|spread| spread.p50);
        let all = [
            (self.server, part(cell.server_ratio)),
            (self.rtt, microseconds(median(cell.rtt_us))),
            (self.delivery, rate(median(cell.delivery_rate_bps))),
            (self.delivery, part(median(cell.delivery_ratio))),
        ];
        all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, cell)| cell).collect()
    }
}

const MEASURES: &str = "Throughput (bytes over duration) from 3 MB on, duration below. Percentiles \
                        are at most 4.4 % off, usually far less; counts are exact. In brackets: 95 % of \
                        the median, as if transfers were independent of each other.";

fn classes(report: &LogReport) -> Table {
    let rows = report.classes.iter().rev();
    let optional = Optional::of(rows.clone());
    let heads = ["transfers", "sent", "5 %", "median", "95 %"].into_iter().chain(optional.heads());
    let heads = std::iter::once(text("size")).chain(heads.map(number));
    let rows = rows.map(|cell| {
        let mut row = vec![Cell::from(&cell.class), counted(cell.transfers), bytes(cell.bytes)];
        row.extend(percentiles(cell));
        row.extend(optional.cells(cell));
        row
    });
    Table::new(heads).called("classes").titled("By size").noted(MEASURES).with_rows(rows)
}

fn list(cells: &[LogCell], name: &'static str, title: &str, head: &'static str) -> Table {
    let optional = Optional::of(cells.iter());
    let heads = ["transfers", "sent", "5 %", "median", "95 %"].into_iter().chain(optional.heads());
    let heads = [head, "size"].map(text).into_iter().chain(heads.map(number));
    let rows = cells.iter().take(ROWS_MAX).map(|cell| {
        let mut row: Vec<Cell> = vec![(&cell.name).into(), (&cell.class).into()];
        row.extend([counted(cell.transfers), bytes(cell.bytes)]);
        row.extend(percentiles(cell));
        row.extend(optional.cells(cell));
        row
    });
    let left_out = cells.len().saturating_sub(ROWS_MAX);
    let note = match left_out {
        0 => String::new(),
        _ => format!("{left_out} rows with fewer bytes are left out; --format json has all."),
    };
    Table::new(heads).called(name).titled(title).noted(note).with_rows(rows)
}

fn beside(beside: &LogBeside) -> Table {
    let [one, other] = &beside.names;
    let heads = [
        text("transfers"),
        text("size"),
        number(one.clone()),
        number(other.clone()),
        number(format!("median {one}")),
        number(format!("median {other}")),
        number("ratio"),
        number(format!("slow end {one}")),
        number(format!("slow end {other}")),
    ];
    let rows = beside.pairs.iter().map(|pair| {
        let name = if pair[0].name.is_empty() { "all" } else { &pair[0].name };
        let is_large = is_large(&pair[0].class);
        let [first, second] = pair.each_ref().map(|cell| match is_large {
            true => cell.throughput_bps,
            false => cell.time_us,
        });
        let figure = |value: Option<f64>| if is_large { rate(value) } else { microseconds(value) };
        // The slow tail: for throughput the 5th percentile, for times the 95th.
        let slow = |spread: Option<ObservedSpread>| {
            spread.map(|spread| if is_large { spread.p5 } else { spread.p95 })
        };
        let middle = |spread: Option<ObservedSpread>| spread.map(|spread| spread.p50);
        let over = middle(first).zip(middle(second)).map(|(first, second)| second / first);
        vec![
            name.into(),
            (&pair[0].class).into(),
            counted(pair[0].transfers),
            counted(pair[1].transfers),
            median(&pair[0]),
            median(&pair[1]),
            ratio(over),
            figure(slow(first)),
            figure(slow(second)),
        ]
    });
    let (name, what) = match beside.of_moment {
        true => ("moment", "Two periods differ in clients, load and time of day"),
        false => ("versions", "Two versions of HTTP differ in clients and in what they fetch"),
    };
    Table::new(heads)
        .called(name)
        .titled(format!("{} against {one}", capitalized(other)))
        .noted(format!(
            "Throughput from 3 MB on, duration below; ratio: {other} over {one}; slow end: the 5th or 95th \
             percentile. This is not an experiment. {what}. An experiment switches back and forth: knee steer rehearse."
        ))
        .with_rows(rows)
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
