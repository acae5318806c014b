//! `knee observe`: records this host's connections as they end, or at intervals while they are open.

mod open;
mod page;
mod upload;

#[cfg(feature = "live")]
pub use page::page_failure;

use crate::failure::{Ending, Failure};
use crate::print::Print;
use crate::{arguments, interrupt, screen};
use clap::{Args, ValueHint};
use knee_lab::Handle;
use knee_live::{
    Group, Groups, LOST_MAX, LiveError, Observed, Observer, Reports, Settings, Stored,
};
use knee_present::words::{count, time_us};
use knee_present::{Cell, Document, Table, number};
use knee_record::{Error as RecordError, MANIFEST, Unit, size_classes};
use knee_units::{Bytes, Time};
use serde_json::json;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use upload::Upload;

pub const EXAMPLES: &str = "\
Examples:
  knee observe --duration '10 min'
  knee observe --group office=192.0.2.0/24 --group office=2001:db8::/32 --sample 1/100
  knee observe --out /var/lib/knee --limit '10 GB'      until Ctrl-C or SIGTERM
  knee observe --page                         the last hour, at http://127.0.0.1:9178
  knee observe --upload s3://bucket/observed  completed files also to an object store
  knee observe --open --addresses             what is retransmitted, and lost where
  knee observe --open --page                  the same, at http://127.0.0.1:9178
  knee observe --open --interval '5 s' --json | jq -r .lost.sentence
  knee observe --open --hops 192.0.2.9:443    and how many hops away, by probes, as root

Without --bpf no privilege is needed. The command sees the connections in its network
namespace; for those of a container: nsenter --net=/proc/PID/ns/net knee observe. The
files, and how to query them: docs/observe.md.";

/// `knee observe`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Stop after this time. Default: at Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME")]
    duration: Option<Time>,
    /// Group clients of this prefix; if two contain an address, the longer one counts
    #[arg(long, value_name = "NAME=PREFIX")]
    group: Vec<Group>,
    /// Show open connections at intervals instead, what they retransmit, and where it was
    /// lost: in this host's stack, in a queue, in a card or in the network
    #[arg(long, conflicts_with_all = ["sample", "bpf", "assignment", "upload"])]
    open: bool,
    /// Interval of --open
    #[arg(long, value_name = "TIME", default_value = "1 s", requires = "open")]
    interval: Time,
    /// Also send probes with a limited TTL to this IPv4 address and port, in a connection
    /// of its own, to say between which hops packets are lost; needs root
    #[arg(long, value_name = "ADDRESS:PORT", requires = "open")]
    hops: Option<SocketAddrV4>,
    /// Write a row for one of N connections; the aggregates include all
    #[arg(long, value_name = "1/N", default_value = "1/1", value_parser = one_of)]
    sample: u64,
    /// Have BPF programs report connections, with their start and their controller
    /// at the end; needs root, and a build with --features bpf
    #[arg(long)]
    bpf: bool,
    /// Record the group, block and arm that knee steer apply or run publishes with its
    /// own --assignment
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    assignment: Option<PathBuf>,
    /// Keep whole addresses of clients, not only their /24 or /48
    #[arg(long)]
    addresses: bool,
    /// Maximum size of all files; the oldest are removed
    #[arg(long, value_name = "SIZE", default_value = "10 GB")]
    limit: Bytes,
    /// Where to write; existing files are kept
    #[arg(long, value_name = "DIR", default_value = "knee-out/observed",
        value_hint = ValueHint::DirPath)]
    out: PathBuf,
    /// Also store completed files at s3://, gs://, az:// or file://, in a folder of this
    /// host; credentials come from the environment
    #[arg(long, value_name = "URL")]
    upload: Option<String>,
    /// Also serve the last hour as a web page at this loopback address, and metrics
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1,
        default_missing_value = "127.0.0.1:9178")]
    page: Option<SocketAddr>,
    #[command(flatten)]
    print: arguments::Print,
}

fn one_of(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1/").and_then(|number| number.parse().ok());
    number.filter(|number| (1..=1_000_000).contains(number)).ok_or_else(|| {
        "write 1/N with N from 1 to 1000000, such as 1/100 for one of a hundred".to_string()
    })
}

/// Drops the privileges, which are no longer needed once an observer has begun and no other thread
/// exists yet. Returns what Ctrl-C and SIGTERM stop, and until when it is observed in words.
fn stoppable(arguments: &Arguments) -> Result<(Handle, String), Failure> {
    knee_host::give_up_capabilities().map_err(LiveError::from)?;
    let handle = Handle::default();
    interrupt::stops(handle.clone())?;
    let until = match arguments.duration {
        Some(duration) => format!("for {duration}"),
        None => "until Ctrl-C".to_string(),
    };
    Ok((handle, until))
}

/// Observes until it is stopped, then prints a summary.
#[expect(clippy::disallowed_methods, reason = "it is told for how long to observe")]
pub fn observe(arguments: &Arguments) -> Result<Ending, Failure> {
    if arguments.out.join(MANIFEST).exists() {
        let what = format!("{} has the records of a run", arguments.out.display());
        return Err(Failure::Usage(what, "write elsewhere with --out DIR".to_string()));
    }
    if arguments.open {
        return open::observe(arguments);
    }
    let goes_on = knee_live::holds_observed(&arguments.out);
    let page =
        arguments.page.map(page::listen).transpose()?.map(|page| page.recent(&arguments.out));
    upload::check(arguments.upload.as_deref())?;
    let mut observer = Observer::begin(Settings {
        reports: if arguments.bpf { Reports::Programs } else { Reports::SockDiag },
        directory: arguments.out.clone(),
        groups: Groups::new(arguments.group.clone())?,
        sample_one_of: arguments.sample,
        assignment: arguments.assignment.clone(),
        keep_addresses: arguments.addresses,
        bytes_max: arguments.limit.get(),
    })?;
    let (handle, until) = stoppable(arguments)?;
    let room = Unit::Bytes.show(observer.buffer_bytes()? as f64);
    let out = arguments.out.display();
    screen::say(&format!("Observing {until}, into {out}; room for reports: {room}."));
    if goes_on {
        screen::say(
            "The files of earlier observations there stay: knee report covers all of them, or a \
             part with --period.",
        );
    }
    // The page lives until this function returns.
    let _page = page.map(|page| page.show(&mut observer)).transpose()?;
    let mut upload = upload::begin(arguments.upload.as_deref(), &arguments.out, &mut observer)?;
    let began = Instant::now();
    let duration = arguments.duration.map(|time| Duration::from_nanos(time.as_nanos()));
    let mut failed = None;
    while !handle.is_stopped() && duration.is_none_or(|duration| began.elapsed() < duration) {
        if let Err(error) = observer.step() {
            failed = Some(error);
            break;
        }
        if let Some(upload) = &mut upload {
            upload.tell();
        }
    }
    let observed = observer.finish();
    let stored = upload.map(Upload::finish);
    if let Some(error) = failed {
        return Err(error.into());
    }
    let observed = observed?;
    let (document, json) = (document(&observed, &stored), json(&observed, &stored));
    document.print(arguments.print.format(), &json)?;
    Ok(Ending::Done)
}

/// Summary by group, arm, controller and size.
fn document(observed: &Observed, stored: &Option<Stored>) -> Document {
    let named = observed.cells.iter().any(|(kind, _)| !kind.group.is_empty());
    let assigned = observed.cells.iter().any(|(kind, _)| !kind.arm.is_empty());
    let texts = named.then_some("group").into_iter().chain(assigned.then_some("arm"));
    let texts = texts.map(knee_present::text);
    // Seven characters less than `acknowledged`, so that the table fits in 120 columns with groups;
    // of throughput the slow end, which is the low one, and of time the long one.
    let mut sizes = knee_present::text("size");
    sizes.column = Some("acknowledged".to_string());
    let texts = texts.chain([knee_present::text("controller"), sizes]);
    let figures = ["connections", "throughput 5 %", "median", "time median", "95 %"].into_iter();
    let figures = figures.chain(["RTT median", "retransmitted", "unfinished"]).map(number);
    let mut table = Table::new(texts.chain(figures)).called("connections");
    for (kind, cell) in &observed.cells {
        let Some(class) = kind.class else { continue };
        let rate = |part| Cell::figure(Unit::BitsPerSecond, cell.throughput_bps.percentile(part));
        let time = |part| Cell::us(cell.busy_us.percentile(part));
        let group = named.then(|| text(&kind.group));
        let arm = assigned.then(|| text(&kind.arm));
        let cells = [
            text(if kind.controller.is_empty() { "not seen" } else { &kind.controller }),
            text(size_classes()[class].name),
            Cell::count(cell.connections),
            rate(0.05),
            rate(0.5),
            time(0.5),
            time(0.95),
            Cell::us(cell.rtt_min_us.percentile(0.5)),
            Cell::figure(Unit::Fraction, cell.retransmission_ratio()),
            Cell::figure(Unit::Fraction, cell.unfinished_ratio()),
        ];
        table.row(group.into_iter().chain(arm).chain(cells));
    }
    let silent = observed.cells.iter().filter(|(kind, _)| kind.class.is_none());
    let silent: u64 = silent.map(|(_, cell)| cell.connections).sum();
    let time = time_us(Some(observed.seconds * 1e6));
    let payload = match silent {
        0 => "all with payload".to_string(),
        silent => format!("{silent} of them without payload"),
    };
    let mut words = format!(
        "\nended    {} connections in {time}; {payload}\nrows     {}\n",
        count(observed.connections()),
        count(observed.rows),
    );
    let lost = Unit::Fraction.show(observed.lost_ratio());
    words += &format!("lost     {} reports, {lost} of all\n", count(observed.lost));
    if observed.unreported > 0 {
        let unreported = count(observed.unreported);
        words += &format!("unseen   {unreported} connections that were open at the start\n");
    }
    for file in &observed.written.files {
        words += &format!("file     {}\n", file.display());
    }
    if observed.written.removed > 0 {
        words += &format!("removed  {} old files, because of --limit\n", observed.written.removed);
    }
    words += &stored.as_ref().map(upload::words).unwrap_or_default();
    let document = Document::default().said(says(observed));
    match observed.cells.iter().any(|(kind, _)| kind.class.is_some()) {
        true => document.words("\n").table(table).words(words),
        false => document.words(words),
    }
}

/// How representative the figures are of the host.
fn says(observed: &Observed) -> String {
    let most = Unit::Fraction.show(LOST_MAX);
    if !observed.is_valid() {
        return format!(
            "Invalid: the kernel dropped {} of the reports, more than {most}. Run as root \
             (CAP_NET_ADMIN) for a larger buffer, or free a processor for it.",
            Unit::Fraction.show(observed.lost_ratio())
        );
    }
    if observed.connections() == 0 {
        return "No connection ended in this network namespace during that time.".to_string();
    }
    let all = if observed.lost == 0 { "Every" } else { "Nearly every" };
    let mut words = format!(
        "{all} connection that ended was reported. Time is the time with data to send or \
         unacknowledged data, throughput the payload acknowledged over it; unfinished are those \
         that ended with data undelivered."
    );
    if observed.cells.iter().any(|(kind, _)| kind.class.is_some() && kind.controller.is_empty()) {
        words += " The controller was not seen for connections shorter than the ten seconds between \
                  two scans; with --bpf it is.";
    }
    words + " Do not compare controllers by this table: they carried different connections."
}

fn text(text: &str) -> Cell {
    Cell { shown: text.to_string(), numbers: Vec::new() }
}

fn json(observed: &Observed, stored: &Option<Stored>) -> serde_json::Value {
    let cells = observed.cells.iter().map(|(kind, cell)| {
        let percentiles = |sketch: &knee_units::statistics::Sketch| {
            let at = |part| sketch.percentile(part);
            json!({ "count": sketch.count(), "p5": at(0.05), "p50": at(0.5), "p95": at(0.95) })
        };
        json!({
            "group": &*kind.group,
            "arm": &*kind.arm,
            "controller": &*kind.controller,
            "class": kind.class.map(|class| size_classes()[class].name),
            "connections": cell.connections,
            "unfinished": cell.unfinished,
            "acked_bytes": cell.acked_bytes,
            "sent_bytes": cell.sent_bytes,
            "retransmitted_bytes": cell.retransmitted_bytes,
            "timeouts": cell.timeouts,
            "throughput_bps": percentiles(&cell.throughput_bps),
            "busy_us": percentiles(&cell.busy_us),
            "rtt_min_us": percentiles(&cell.rtt_min_us),
        })
    });
    json!({
        "schema": "knee-observed/1",
        "seconds": observed.seconds,
        "verdict": if observed.is_valid() { "valid" } else { "invalid" },
        "connections": observed.connections(),
        "without_connection": observed.without_connection,
        "lost_reports": observed.lost,
        "unreported": observed.unreported,
        "rows": observed.rows,
        "files": observed.written.files,
        "cells": cells.collect::<Vec<_>>(),
        "upload": stored.as_ref().map(upload::json),
    })
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Failure {
        let what = error.to_string();
        match error {
            LiveError::Record(
                RecordError::Schema { .. }
                | RecordError::Malformed { .. }
                | RecordError::Missing { .. },
            ) => {
                Failure::Usage(what, "move the file away; the others are independent of it".into())
            }
            LiveError::Record(error) => error.into(),
            LiveError::Period { .. } => {
                let advice = "write it as 2026-11-24T18:00/2026-11-24T22:00, in UTC";
                Failure::Usage(what, advice.to_string())
            }
            LiveError::NoController { ref seen, .. } => {
                Failure::Usage(what, format!("write two of those that were: {seen}"))
            }
            LiveError::NothingObserved(_) => {
                Failure::Usage(what, "name another period, or none".to_string())
            }
            LiveError::Table { advice, .. } => Failure::Usage(what, advice),
            LiveError::Host(knee_host::HostError::Refused { what, source, advice }) => {
                Failure::Host(format!("cannot {what}: {source}"), advice.to_string())
            }
            LiveError::Host(_) => Failure::Internal(what),
            LiveError::Programs { advice, .. } => Failure::Host(what, advice),
            LiveError::Assignment { .. } => {
                let advice = "name the file of knee steer apply --assignment FILE, of the same \
                    version of Knee";
                Failure::Usage(what, advice.to_string())
            }
            LiveError::Group { .. } => Failure::Usage(what, "write it like this".to_string()),
            LiveError::Twice { .. } => Failure::Usage(what, "name it once".to_string()),
        }
    }
}
