//! The tables of a host's own connections: one definition for the page, the terminal and
//! other programs.

use super::{NO_EXPERIMENT, NO_TREATMENT};
use crate::words::{NONE, bytes, count, percent, rate, time_us};
use knee_record::{ObservedBeside, ObservedCell, ObservedObjects, ObservedReport, ObservedSpread};

/// Largest number of rows of groups and of providers on a page and a screen; JSON has all.
const ROWS_MAX: usize = 200;
const PROVIDERS_MAX: usize = 40;

/// A table.
#[derive(Clone, Debug)]
pub struct ObservedTable {
    /// Short name, for programs.
    pub name: &'static str,
    /// Title.
    pub title: String,
    /// What to know before reading it; may be empty.
    pub note: String,
    /// Column heads; those of numbers begin with `>`.
    pub heads: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<ObservedFigure>>,
}

/// A cell of such a table.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservedFigure {
    /// Text.
    Text(String),
    /// A count.
    Count(u64),
    /// Bytes.
    Bytes(u64),
    /// Bit/s.
    Rate(Option<f64>),
    /// Microseconds.
    Time(Option<f64>),
    /// A fraction.
    Part(Option<f64>),
    /// A ratio of two values.
    Ratio(Option<f64>),
}

use ObservedFigure::{Bytes, Count, Part, Rate, Ratio, Text, Time};

impl ObservedFigure {
    /// Formats the cell for display.
    pub fn text(&self) -> String {
        match self {
            Text(text) => text.clone(),
            Count(number) => count(*number),
            Bytes(number) => bytes(Some(*number as f64)),
            Rate(bps) => rate(*bps),
            Time(us) => time_us(*us),
            Part(part) => percent(*part),
            Ratio(ratio) => ratio.map_or_else(|| NONE.to_string(), |ratio| format!("{ratio:.2}")),
        }
    }
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

    fn figure(self, value: Option<f64>) -> ObservedFigure {
        match self {
            Measure::Throughput => Rate(value),
            Measure::Time => Time(value),
        }
    }

    fn head(self) -> &'static str {
        match self {
            Measure::Throughput => ">throughput 5 %",
            Measure::Time => ">time 5 %",
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
pub fn observed_tables(report: &ObservedReport) -> Vec<ObservedTable> {
    let mut tables = Vec::new();
    if let Some(beside) = &report.beside {
        tables.extend(Measure::BOTH.map(|measure| compared(beside, measure)));
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

fn controller(name: &str) -> ObservedFigure {
    Text(if name.is_empty() { "not seen" } else { name }.to_string())
}

fn percentiles(measure: Measure, cell: &ObservedCell) -> [ObservedFigure; 3] {
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

fn cells(all: &[ObservedCell], measure: Measure, by: By, name: &'static str) -> ObservedTable {
    let mut heads = match by {
        By::Class => vec!["acknowledged"],
        By::Group => vec!["group"],
        By::Arm => vec!["group", "arm"],
    };
    heads.extend(["controller", ">connections", measure.head(), ">median", ">95 %"]);
    heads.extend([">RTT median", ">receiver-limited", ">retransmitted", ">timeouts"]);
    let mine: Vec<&ObservedCell> = all.iter().filter(|cell| measure.counts_for(cell)).collect();
    let left_out = mine.len().saturating_sub(ROWS_MAX);
    let rows = mine.iter().take(ROWS_MAX).map(|cell| {
        let mut row = match by {
            By::Class => vec![Text(cell.class.clone())],
            By::Group => vec![Text(cell.group.clone())],
            By::Arm => vec![Text(cell.group.clone()), Text(cell.arm.clone())],
        };
        row.push(controller(&cell.controller));
        row.push(Count(cell.connections));
        row.extend(percentiles(measure, cell));
        row.extend([
            Time(cell.rtt_min_us.map(|rtt| rtt.p50)),
            Part(cell.receive_limited_ratio),
            Part(cell.retransmit_ratio()),
            Count(cell.timeouts),
        ]);
        row
    });
    let mut note = match (measure, by) {
        (_, By::Group) => String::new(),
        (_, By::Arm) => "Connections whose arm is known. Arms are drawn at random, but only knee \
                         steer run judges an experiment: it leaves out the burn-in of each block \
                         and compares whole blocks."
            .to_string(),
        (Measure::Throughput, _) => "Payload acknowledged over the time with data to send or \
                                     unacknowledged data. The controller is not seen for \
                                     connections shorter than the ten seconds between two scans."
            .to_string(),
        (Measure::Time, _) => "Time with data to send or unacknowledged data: the pauses of a \
                               connection that is kept open do not count. The kernel counts in \
                               ticks of 1 to 10 ms; shorter connections have no time here."
            .to_string(),
    };
    if left_out > 0 {
        note += &format!(" {left_out} further rows, of groups with fewer bytes, are left out.");
    }
    let of = match by {
        By::Class => "",
        By::Group => ", by group",
        By::Arm => ", by arm",
    };
    ObservedTable {
        name,
        title: format!("{}{of}", measure.title()),
        note: note.trim().to_string(),
        heads: heads.into_iter().map(str::to_string).collect(),
        rows: rows.collect(),
    }
}

fn compared(beside: &ObservedBeside, measure: Measure) -> ObservedTable {
    let [a, b] = &beside.names;
    let heads = vec![
        "group".to_string(),
        format!(">connections {a}"),
        format!(">{b}"),
        format!(">median {a}"),
        format!(">median {b}"),
        ">second over first".to_string(),
        format!(">slow end {a}"),
        format!(">slow end {b}"),
        format!(">retransmitted {a}"),
        format!(">retransmitted {b}"),
    ];
    // The slow tail: for throughput the 5th percentile, for times the 95th.
    let slow = |spread: ObservedSpread| match measure {
        Measure::Throughput => spread.p5,
        Measure::Time => spread.p95,
    };
    let pairs = beside.pairs.iter().filter(|[one, _]| measure.counts_for(one));
    let rows = pairs.map(|[one, other]| {
        let [first, second] = [measure.of(one), measure.of(other)];
        let ratio = first.zip(second).map(|(first, second)| second.p50 / first.p50);
        let group = if one.group.is_empty() { "all" } else { &one.group };
        vec![
            Text(group.to_string()),
            Count(one.connections),
            Count(other.connections),
            measure.figure(first.map(|spread| spread.p50)),
            measure.figure(second.map(|spread| spread.p50)),
            Ratio(ratio),
            measure.figure(first.map(slow)),
            measure.figure(second.map(slow)),
            Part(one.retransmit_ratio()),
            Part(other.retransmit_ratio()),
        ]
    });
    let warning = if beside.of_controllers { NO_EXPERIMENT } else { NO_TREATMENT };
    ObservedTable {
        name: measure.name(["throughput beside", "time beside"]),
        title: format!("{}: {a} and {b} beside each other", measure.title()),
        note: warning.to_string(),
        heads,
        rows: rows.collect(),
    }
}

fn providers(report: &ObservedReport) -> ObservedTable {
    let heads = ["AS", "network", ">connections", ">acknowledged", ">throughput median"];
    let heads = heads.into_iter().chain([">time median", ">RTT median", ">retransmitted"]);
    let rows = report.providers.iter().take(PROVIDERS_MAX).map(|one| {
        let name = if one.asn.is_none() { "in no line of the table" } else { &one.name };
        vec![
            Text(one.asn.map_or_else(|| NONE.to_string(), |number| number.to_string())),
            Text(name.to_string()),
            Count(one.all.connections),
            Bytes(one.all.acked_bytes),
            Rate(one.large.throughput_bps.map(|spread| spread.p50)),
            Time(one.small.busy_us.map(|spread| spread.p50)),
            Time(one.all.rtt_min_us.map(|spread| spread.p50)),
            Part(one.all.retransmit_ratio()),
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
    ObservedTable {
        name: "providers",
        title: "By provider".to_string(),
        note,
        heads: heads.map(str::to_string).collect(),
        rows: rows.collect(),
    }
}

fn objects(objects: &ObservedObjects) -> ObservedTable {
    let heads = ["object", "controller", ">objects", ">throughput 5 %", ">median", ">95 %"];
    let heads =
        heads.into_iter().chain([">alone", ">connection's", ">RTT median", ">retransmitted"]);
    let rows = objects.cells.iter().map(|cell| {
        let log = cell.log_throughput_bps;
        vec![
            Text(cell.class.clone()),
            controller(&cell.controller),
            Count(cell.objects),
            Rate(log.map(|spread| spread.p5)),
            Rate(log.map(|spread| spread.p50)),
            Rate(log.map(|spread| spread.p95)),
            Count(cell.alone),
            Rate(cell.throughput_bps.map(|spread| spread.p50)),
            Time(cell.rtt_min_us.map(|spread| spread.p50)),
            Part(cell.retransmit_ratio),
        ]
    });
    ObservedTable {
        name: "objects",
        title: "Objects of the access log".to_string(),
        note: format!(
            "{} of {} objects were found on a connection that ended; {} lines were incomplete. \
             Throughput: size of the object over its time in the log. Alone: objects that had a \
             connection to themselves, with the median throughput of these connections in the \
             kernel.",
            count(objects.joined),
            count(objects.lines),
            count(objects.passed_over)
        ),
        heads: heads.map(str::to_string).collect(),
        rows: rows.collect(),
    }
}

fn hours(report: &ObservedReport) -> ObservedTable {
    let heads = ["hour (UTC)", ">connections", ">acknowledged", ">throughput median"];
    let heads = heads.into_iter().chain([">time median", ">RTT median", ">retransmitted"]);
    let rows = report.hours.iter().map(|hour| {
        vec![
            Text(format!("{:02}", hour.hour)),
            Count(hour.all.connections),
            Bytes(hour.all.acked_bytes),
            Rate(hour.large.throughput_bps.map(|spread| spread.p50)),
            Time(hour.small.busy_us.map(|spread| spread.p50)),
            Time(hour.all.rtt_min_us.map(|spread| spread.p50)),
            Part(hour.all.retransmit_ratio()),
        ]
    });
    ObservedTable {
        name: "hours",
        title: "By hour of the day".to_string(),
        note: "All days together. Throughput of connections of 3 MB and more, time of those \
               below."
            .to_string(),
        heads: heads.map(str::to_string).collect(),
        rows: rows.collect(),
    }
}

/// Returns the label of a row in a picture.
pub(super) fn label(cell: &ObservedCell) -> String {
    let parts = [&cell.group, &cell.class, &cell.controller];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).cloned().collect();
    parts.join(" · ")
}
