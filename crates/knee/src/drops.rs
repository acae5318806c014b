//! `knee drops`.

use crate::arguments::{Drops, Format};
use crate::failure::{Ending, Failure};
use crate::figures::ROWS_MAX;
use crate::print::Print;
use knee_lab::{DropKind, DropLine, RunDrops, SIMULATOR, TIMELINE_SPANS, command};
use knee_present::words::{count, counted, listed_or};
use knee_present::{Cell, Document, Head, Table, number, text};
use knee_record::Unit;
use std::path::Path;

/// Number of flows that a cell names before it counts the others, which are two or more.
const NAMED_MAX: usize = 3;

/// Prints what the links of a run dropped.
pub fn drops(arguments: &Drops) -> Result<Ending, Failure> {
    let runs = knee_lab::drops(&arguments.directory)?;
    let format = arguments.print.format();
    let for_programs = matches!(format, Format::Csv | Format::Json);
    document(&arguments.directory, &runs, for_programs).print_tables(format)?;
    Ok(Ending::Done)
}

/// The tables of a run without drops are left out, unless for programs, which rely on their names.
fn document(directory: &Path, runs: &[RunDrops], for_programs: bool) -> Document {
    let names = runs.len() > 1;
    let mut document = Document::default();
    for run in runs {
        document = document.said(said(run));
    }
    for is_logged in [true, false] {
        let of = |run: &&RunDrops| run.is_logged == is_logged;
        let of: Vec<&RunDrops> = runs.iter().filter(of).collect();
        let dropped = of.iter().any(|run| run.packets() > 0);
        if dropped || (for_programs && !of.is_empty()) {
            document = document.words("\n").then(shortened(lines(&of, is_logged, names)));
        }
    }
    if for_programs || runs.iter().any(|run| run.packets() > 0) {
        document = document.words("\n").then(shortened(timeline(runs, names)));
    }
    match runs.iter().find(|run| !run.is_logged && run.packets() > 0) {
        Some(run) => document.words("\n").said(rest(directory, run)),
        None => document,
    }
}

/// The main result of a run in one sentence.
fn said(run: &RunDrops) -> String {
    let before = if run.name.is_empty() { String::new() } else { format!("{}: ", run.name) };
    let Some(first) = run.lines.first() else {
        let links = counted(run.links.len(), "link");
        let entered = count(run.entered_packets);
        return format!(
            "{before}Nothing was dropped: {entered} packets entered {links}, and none was dropped \
             or lost."
        );
    };
    let all = run.packets();
    let were = if all == 1 { "packet was" } else { "packets were" };
    let part = match first.packets == all {
        true => String::new(),
        false => format!(", {} of them", count(first.packets)),
    };
    let (link, reason) = (&first.link, listed_or(&first.reasons));
    let flows = match &first.flows[..] {
        [] => String::new(),
        [flow] => format!(", {} of {flow}", kind(first)),
        flows => format!(", {} of {}", kind(first), named(flows)),
    };
    format!("{before}{} {were} dropped{part} by {link} ({reason}){flows}.", count(all))
}

/// One row for each link, flow and reason.
fn lines(runs: &[&RunDrops], is_logged: bool, names: bool) -> Table {
    let (part, called) = match is_logged {
        true => ("of sent", "drops"),
        false => ("of entered", "counted"),
    };
    let heads = ["link", "flow", "packet", "reason"].map(text).into_iter();
    let bytes = is_logged.then(|| number("size").holds(Some(Unit::Bytes), &[""]));
    let figures = [number(part).holds(None, &[""]), time("first"), time("last")];
    let heads = run_head(names).chain(heads).chain([number("packets").holds(None, &[""])]);
    let mut table = Table::new(heads.chain(bytes).chain(figures)).called(called);
    for run in runs {
        for line in &run.lines {
            let part = line.packets as f64 / line.of_packets.max(1) as f64;
            let row = [
                line.link.as_str().into(),
                named(&line.flows).into(),
                kind(line).into(),
                listed_or(&line.reasons).into(),
                Cell::count(line.packets),
            ];
            let bytes = is_logged.then(|| Cell::figure(Unit::Bytes, line.bytes.map(|b| b as f64)));
            let share = (line.of_packets > 0).then_some(part);
            let figures =
                [Cell::figure(Unit::Fraction, share), at(line.first_ns), at(line.last_ns)];
            table.row(run_cell(run, names).chain(row).chain(bytes).chain(figures));
        }
    }
    table
}

/// One row for each link and span of the run in which it dropped something.
fn timeline(runs: &[RunDrops], names: bool) -> Table {
    let heads = [text("link"), time("from"), time("until"), number("packets").holds(None, &[""])];
    let mut table = Table::new(run_head(names).chain(heads)).called("timeline");
    for run in runs {
        for (link, spans) in run.timelines() {
            for (place, packets) in spans.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                let bound = |place: usize| {
                    (u128::from(run.end_ns) * place as u128 / TIMELINE_SPANS as u128) as u64
                };
                let times = [at(bound(place)), at(bound(place + 1))];
                let row = [Cell::from(link)].into_iter().chain(times);
                table.row(run_cell(run, names).chain(row).chain([Cell::count(packets)]));
            }
        }
    }
    table
}

/// What the counters of the links leave open, and how to get it.
fn rest(directory: &Path, run: &RunDrops) -> String {
    let command = command::of_run(&directory.join(&run.name), &[SIMULATOR]);
    let command = format!("{command} --seed {} --packet-log", run.seed);
    let exact = Unit::Seconds.show(run.sample_ns as f64 / 1e9);
    let counters = format!(
        "Without a packet log these are the counters of the links, with times to within {exact}"
    );
    match run.ground == SIMULATOR {
        true => format!(
            "{counters}. Which packets of which flow, with sizes and exact times: {command}, then \
             knee drops on its folder."
        ),
        false => format!(
            "{counters}. The ground {} writes no packet log; for the same scenario on the \
             simulator: {command}.",
            run.ground
        ),
    }
}

/// Limits what is displayed; programs get all rows.
fn shortened(table: Table) -> Document {
    let more = table.rows.len().saturating_sub(ROWS_MAX);
    if more == 0 {
        return Document::default().table(table);
    }
    let mut shown = table.clone().with_data(table);
    shown.rows.truncate(ROWS_MAX);
    Document::default().table(shown).words(format!("… and {more} more rows: --format csv\n"))
}

fn run_head(names: bool) -> impl Iterator<Item = Head> {
    names.then(|| text("run")).into_iter()
}

fn run_cell(run: &RunDrops, names: bool) -> impl Iterator<Item = Cell> {
    names.then(|| Cell::from(&run.name)).into_iter()
}

fn time(head: &str) -> Head {
    number(head).holds(Some(Unit::Seconds), &[""])
}

fn at(time_ns: u64) -> Cell {
    Cell::figure(Unit::Seconds, Some(time_ns as f64 / 1e9))
}

fn kind(line: &DropLine) -> &'static str {
    match line.kind {
        Some(DropKind::Data) => "data",
        Some(DropKind::Ack) => "ACK",
        None => "data or ACK",
    }
}

/// The flow, or the flows of which it is one.
fn named(flows: &[String]) -> String {
    match flows.len().saturating_sub(NAMED_MAX) {
        0 | 1 => listed_or(flows),
        more => format!("{} or {more} others", flows[..NAMED_MAX].join(", ")),
    }
}
