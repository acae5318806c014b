//! The tables of a host's own connections: one definition for the page, the terminal and
//! other programs.

use super::{NO_EXPERIMENT, NO_TREATMENT, seen};
use knee_present::words::{NONE, count, percent};
use knee_present::{Cell, Table, number, text};
use knee_record::{
    ObservedBeside, ObservedCell, ObservedObjects, ObservedReport, ObservedSpread, Unit,
};

/// Largest number of rows of groups and of providers on a page and a screen; JSON has all.
const ROWS_MAX: usize = 200;
const PROVIDERS_MAX: usize = 40;

/// A count; in groups of three digits.
pub(crate) fn counted(number: u64) -> Cell {
    Cell::count(number).reading(count(number))
}

/// A rate in bit/s.
pub(crate) fn rate(bps: Option<f64>) -> Cell {
    Cell::figure(Unit::BitsPerSecond, bps)
}

/// A number of bytes.
pub(crate) fn bytes(number: u64) -> Cell {
    Cell::figure(Unit::Bytes, Some(number as f64))
}

/// A fraction.
pub(crate) fn part(fraction: Option<f64>) -> Cell {
    Cell::figure(Unit::Fraction, fraction).reading(percent(fraction))
}

/// A ratio of two values.
pub(crate) fn ratio(ratio: Option<f64>) -> Cell {
    ratio.map_or_else(|| NONE.into(), |ratio| Cell::shown(format!("{ratio:.2}"), ratio))
}

/// The measure by which connections of a size are compared.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    Throughput,
    Time,
}

impl Measure {
    const BOTH: [Measure; 2] = [Measure::Throughput, Measure::Time];

    /// Whether the measure applies to a size class: throughput from 3 MB on, time below that.
    fn counts_for(self, cell: &ObservedCell) -> bool {
        let large =
            matches!(cell.class.as_str(), "3 MB and more" | "3 to 30 MB" | "30 MB and more");
        large == (self == Measure::Throughput)
    }

    fn of(self, cell: &ObservedCell) -> Option<ObservedSpread> {
        match self {
            Measure::Throughput => cell.throughput_bps,
            Measure::Time => cell.busy_us,
        }
    }

    fn figure(self, value: Option<f64>) -> Cell {
        match self {
            Measure::Throughput => rate(value),
            Measure::Time => Cell::us(value),
        }
    }

    fn head(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput 5 %",
            Measure::Time => "time 5 %",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Measure::Throughput => "Throughput of connections of 3 MB and more",
            Measure::Time => "Time of connections below 3 MB",
        }
    }

    fn name(self, [throughput, time]: [&'static str; 2]) -> &'static str {
        match self {
            Measure::Throughput => throughput,
            Measure::Time => time,
        }
    }
}

/// Returns all tables for which a report has data.
pub fn observed_tables(report: &ObservedReport) -> Vec<Table> {
    let mut tables = Vec::new();
    if let Some(beside) = &report.beside {
        let cells = &report.controllers;
        tables.extend(Measure::BOTH.map(|measure| compared(beside, measure, cells)));
    }
    for measure in Measure::BOTH {
        let name = measure.name(["throughput", "time"]);
        tables.push(cells(&report.controllers, measure, By::Class, name));
    }
    for measure in Measure::BOTH.into_iter().filter(|_| !report.groups.is_empty()) {
        let name = measure.name(["group throughput", "group time"]);
        tables.push(cells(&report.groups, measure, By::Group, name));
    }
    for measure in Measure::BOTH {
        let name = measure.name(["arm throughput", "arm time"]);
        tables.push(cells(&report.arms, measure, By::Arm, name));
    }
    if !report.providers.is_empty() {
        tables.push(providers(report));
    }
    tables.extend(report.objects.as_ref().map(objects));
    if report.hours.len() > 1 {
        tables.push(hours(report));
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn controller(name: &str) -> Cell {
    if name.is_empty() { "not seen" } else { name }.into()
}

fn percentiles(measure: Measure, cell: &ObservedCell) -> [Cell; 3] {
    let spread = measure.of(cell);
    [spread.map(|s| s.p5), spread.map(|s| s.p50), spread.map(|s| s.p95)]
        .map(|value| measure.figure(value))
}

/// What the rows of a table are told apart by, beside the controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Class,
    Group,
    Arm,
}

fn cells(all: &[ObservedCell], measure: Measure, by: By, name: &'static str) -> Table {
    let mut heads = match by {
        By::Class => vec![text("acknowledged")],
        By::Group => vec![text("group")],
        By::Arm => vec![text("group"), text("arm")],
    };
    heads.push(text("controller"));
    heads.extend(["connections", measure.head(), "median", "95 %"].map(number));
    // Words that break, so that the table fits in 120 columns.
    heads.push(number("RTT median"));
    heads.extend((by == By::Class).then(|| number("receiver limited")));
    heads.extend(["retransmitted", "unfinished"].map(number));
    let mine: Vec<&ObservedCell> = all.iter().filter(|cell| measure.counts_for(cell)).collect();
    let left_out = mine.len().saturating_sub(ROWS_MAX);
    let rows = mine.iter().take(ROWS_MAX).map(|cell| {
        let mut row = match by {
            By::Class => vec![(&cell.class).into()],
            By::Group => vec![(&cell.group).into()],
            By::Arm => vec![(&cell.group).into(), (&cell.arm).into()],
        };
        row.push(controller(&cell.controller));
        row.push(counted(cell.connections));
        row.extend(percentiles(measure, cell));
        row.push(Cell::us(cell.rtt_min_us.map(|rtt| rtt.p50)));
        row.extend((by == By::Class).then(|| part(cell.receive_limited_ratio)));
        row.push(part(cell.retransmit_ratio()));
        row.push(part(cell.unfinished_ratio()));
        row
    });
    let mut note = match (measure, by) {
        (_, By::Group) => String::new(),
        (_, By::Arm) => "Connections whose arm is known. Arms are drawn at random, but only knee \
                         steer run judges an experiment: it leaves out the burn-in of each block \
                         and compares whole blocks."
            .to_string(),
        (Measure::Throughput, _) => "Payload acknowledged over the time with data to send or \
                                     unacknowledged data. Unfinished: connections that ended with \
                                     data that the other end had not acknowledged."
            .to_string(),
        (Measure::Time, _) => "Time with data to send or unacknowledged data: the pauses of a \
                               connection that is kept open do not count. The kernel counts in \
                               ticks of 1 to 10 ms; shorter connections have no time here."
            .to_string(),
    };
    if by == By::Class && all.iter().any(|cell| cell.controller.is_empty()) {
        note += " Not seen: shorter than the ten seconds between two scans.";
    }
    if left_out > 0 {
        note += &format!(" {left_out} further rows, of groups with fewer bytes, are left out.");
    }
    let of = match by {
        By::Class => "",
        By::Group => ", by group",
        By::Arm => ", by arm",
    };
    Table::new(heads)
        .called(name)
        .titled(format!("{}{of}", measure.title()))
        .noted(note.trim())
        .with_rows(rows)
}

fn compared(beside: &ObservedBeside, measure: Measure, all: &[ObservedCell]) -> Table {
    let [a, b] = &beside.names;
    let heads = [
        text("group"),
        number(format!("connections {a}")),
        number(b),
        number(format!("median {a}")),
        number(format!("median {b}")),
        number("second over first"),
        number(format!("slow end {a}")),
        number(format!("slow end {b}")),
        number(format!("retransmitted {a}")),
        number(format!("retransmitted {b}")),
        number(format!("unfinished {a}")),
        number(format!("unfinished {b}")),
    ];
    // The slow tail: for throughput the 5th percentile, for times the 95th.
    let slow = |spread: ObservedSpread| match measure {
        Measure::Throughput => spread.p5,
        Measure::Time => spread.p95,
    };
    let pairs = beside.pairs.iter().filter(|[one, _]| measure.counts_for(one));
    let rows = pairs.map(|[one, other]| {
        let [first, second] = [measure.of(one), measure.of(other)];
        let over = first.zip(second).map(|(first, second)| second.p50 / first.p50);
        let group = if one.group.is_empty() { "all" } else { &one.group };
        vec![
            group.into(),
            counted(one.connections),
            counted(other.connections),
            measure.figure(first.map(|spread| spread.p50)),
            measure.figure(second.map(|spread| spread.p50)),
            ratio(over),
            measure.figure(first.map(slow)),
            measure.figure(second.map(slow)),
            part(one.retransmit_ratio()),
            part(other.retransmit_ratio()),
            part(one.unfinished_ratio()),
            part(other.unfinished_ratio()),
        ]
    });
    let mut warning = if beside.of_controllers { NO_EXPERIMENT } else { NO_TREATMENT }.to_string();
    if let Some((seen, all)) = seen(all, |cell| measure.counts_for(cell))
        && beside.of_controllers
    {
        warning = format!(
            "{} of {} connections of these sizes: the others were too short for a scan to see their \
             controller, so these are the slow ones. {warning}",
            count(seen),
            count(all)
        );
    }
    Table::new(heads)
        .called(measure.name(["throughput beside", "time beside"]))
        .titled(format!("{}: {a} and {b} beside each other", measure.title()))
        .noted(warning)
        .with_rows(rows)
}

fn providers(report: &ObservedReport) -> Table {
    let figures = ["connections", "acknowledged", "throughput median", "time median"];
    let figures = figures.into_iter().chain(["RTT median", "retransmitted"]).map(number);
    let heads = ["AS", "network"].map(text).into_iter().chain(figures);
    let rows = report.providers.iter().take(PROVIDERS_MAX).map(|one| {
        let name = if one.asn.is_none() { "in no line of the table" } else { &one.name };
        vec![
            one.asn.map_or_else(|| NONE.to_string(), |number| number.to_string()).into(),
            name.into(),
            counted(one.all.connections),
            bytes(one.all.acked_bytes),
            rate(one.large.throughput_bps.map(|spread| spread.p50)),
            Cell::us(one.small.busy_us.map(|spread| spread.p50)),
            Cell::us(one.all.rtt_min_us.map(|spread| spread.p50)),
            part(one.all.retransmit_ratio()),
        ]
    });
    let mut note = "Throughput of connections of 3 MB and more, time of those below. From the \
                    connections with a row of their own, by weight."
        .to_string();
    if report.prefixes_too_long > 0 {
        note += &format!(
            " {} prefixes of the table are longer than /24 (IPv6: /48), the stored part of an \
             address without knee observe --addresses.",
            count(report.prefixes_too_long)
        );
    }
    let left_out = report.providers.len().saturating_sub(PROVIDERS_MAX);
    if left_out > 0 {
        note += &format!(" {left_out} networks with fewer bytes are left out.");
    }
    Table::new(heads).called("providers").titled("By provider").noted(note).with_rows(rows)
}

fn objects(objects: &ObservedObjects) -> Table {
    let figures = ["objects", "throughput 5 %", "median", "95 %", "alone", "connection's"];
    let figures = figures.into_iter().chain(["RTT median", "retransmitted"]).map(number);
    let heads = ["object", "controller"].map(text).into_iter().chain(figures);
    let rows = objects.cells.iter().map(|cell| {
        let log = cell.log_throughput_bps;
        vec![
            (&cell.class).into(),
            controller(&cell.controller),
            counted(cell.objects),
            rate(log.map(|spread| spread.p5)),
            rate(log.map(|spread| spread.p50)),
            rate(log.map(|spread| spread.p95)),
            counted(cell.alone),
            rate(cell.throughput_bps.map(|spread| spread.p50)),
            Cell::us(cell.rtt_min_us.map(|spread| spread.p50)),
            part(cell.retransmit_ratio),
        ]
    });
    Table::new(heads)
        .called("objects")
        .titled("Objects of the access log")
        .noted(format!(
            "{} of {} objects were found on a connection that ended; {} lines were incomplete. \
             Throughput: size of the object over its time in the log. Alone: objects that had a \
             connection to themselves, with the median throughput of these connections in the \
             kernel.",
            count(objects.joined),
            count(objects.lines),
            count(objects.passed_over)
        ))
        .with_rows(rows)
}

fn hours(report: &ObservedReport) -> Table {
    let figures = ["connections", "acknowledged", "throughput median", "time median"];
    let figures = figures.into_iter().chain(["RTT median", "retransmitted"]).map(number);
    let heads = std::iter::once(text("hour (UTC)")).chain(figures);
    let rows = report.hours.iter().map(|hour| {
        vec![
            format!("{:02}", hour.hour).into(),
            counted(hour.all.connections),
            bytes(hour.all.acked_bytes),
            rate(hour.large.throughput_bps.map(|spread| spread.p50)),
            Cell::us(hour.small.busy_us.map(|spread| spread.p50)),
            Cell::us(hour.all.rtt_min_us.map(|spread| spread.p50)),
            part(hour.all.retransmit_ratio()),
        ]
    });
    Table::new(heads)
        .called("hours")
        .titled("By hour of the day")
        .noted(
            "All days together. Throughput of connections of 3 MB and more, time of those below.",
        )
        .with_rows(rows)
}

/// Returns the label of a row in a picture.
pub(super) fn label(cell: &ObservedCell) -> String {
    let parts = [&cell.group, &cell.class, &cell.controller];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).cloned().collect();
    parts.join(" · ")
}
