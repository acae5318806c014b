//! `knee observe --open`: what open connections do in each interval, and where packets are lost.

use super::{Arguments, page, stoppable};
use crate::arguments::Format;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_live::{Groups, HOP_INTERVAL, Hops, Look, OpenObserver, OpenSettings};
use knee_present::Document;
use knee_record::rfc3339;
use knee_units::Time;
use serde::Serialize;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// The shortest interval: the kernel's timer ticks have up to 10 ms.
const INTERVAL_MIN: Time = Time::from_millis(100);
/// Maximum wait until the stop condition is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Rows of a table, if the output is no terminal.
const ROWS: usize = 20;
/// Columns that a narrow terminal has no room for, the first to be left out first.
const CONNECTIONS: [&str; 9] =
    ["unacked", "smallest", "local", "acked", "state", "window", "port", "RTT", "cc"];
const GROUPS: [&str; 2] = ["acked", "connections"];
const INTERFACES: [&str; 7] =
    ["requeues", "overlimits", "backlog", "tx_errors", "card drops", "tx_dropped", "qdisc"];
/// The fewest rows on a terminal.
const ROWS_MIN: usize = 3;

/// Observes until it is stopped.
#[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
pub fn observe(arguments: &Arguments) -> Result<Ending, Failure> {
    let format = arguments.print.format();
    if !matches!(format, Format::Text | Format::Json) {
        let what = "--open prints text or JSON lines".to_string();
        let advice = "remove --format, or write --json; the files have the same rows";
        return Err(Failure::Usage(what, advice.to_string()));
    }
    if arguments.interval < INTERVAL_MIN {
        let what = format!("--interval {} is too short", arguments.interval);
        return Err(Failure::Usage(what, format!("write {INTERVAL_MIN} or more")));
    }
    let page = arguments.page.map(page::listen).transpose()?;
    let mut observer = OpenObserver::begin(OpenSettings {
        directory: arguments.out.clone(),
        groups: Groups::new(arguments.group.clone())?,
        keep_addresses: arguments.addresses,
        bytes_max: arguments.limit.get(),
    })?;
    // Its thread connects again when the peer closes, so it keeps the privileges.
    let hops = arguments.hops.map(|to| Hops::begin(to, HOP_INTERVAL)).transpose()?;
    let (handle, until) = stoppable(arguments)?;
    screen::say(&format!(
        "Observing open connections every {} {until}, into {}.",
        arguments.interval,
        arguments.out.display()
    ));
    // The page lives until this function returns.
    let (grouped, whole) = (!arguments.group.is_empty(), arguments.addresses);
    let page = page.map(|page| page.show_open(&mut observer, grouped, whole)).transpose()?;
    let [interval, duration] = [Some(arguments.interval), arguments.duration]
        .map(|time| time.map(|time| Duration::from_nanos(time.as_nanos())));
    let interval = interval.unwrap_or(CHECK_INTERVAL);
    let began = Instant::now();
    let mut due = interval;
    let mut failed = None;
    while failed.is_none() && duration.is_none_or(|duration| due <= duration) {
        while began.elapsed() < due && !handle.is_stopped() {
            thread::sleep(due.saturating_sub(began.elapsed()).min(CHECK_INTERVAL));
        }
        if handle.is_stopped() {
            break;
        }
        failed = observer
            .look()
            .map_err(Failure::from)
            .and_then(|look| {
                if let Some(page) = &page {
                    page.add(&look);
                }
                print(&look, hops.as_ref(), arguments, format)
            })
            .err();
        // Whole intervals are skipped if one took longer.
        while due <= began.elapsed() {
            due += interval;
        }
    }
    let written = observer.finish();
    if let Some(error) = failed {
        return Err(error);
    }
    for file in written?.files {
        screen::say(&format!("file     {}", file.display()));
    }
    Ok(Ending::Done)
}

/// An interval and the hops to a peer, as a line for programs.
#[derive(Serialize)]
struct WithHops<L> {
    #[serde(flatten)]
    look: L,
    hops: Value,
}

fn print(
    look: &Look,
    hops: Option<&Hops>,
    arguments: &Arguments,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        let look = look.json(arguments.addresses);
        return match hops {
            None => screen::print_json_line(&look),
            Some(hops) => {
                let hops = hops.seen().json(hops.to);
                screen::print_json_line(&WithHops { look, hops })
            }
        };
    }
    let height = screen::height();
    // Lines that are read by nobody at a screen have all columns, one part below the other.
    let width = height.map_or(usize::MAX, |_| screen::layout().width);
    let mut rows = height.unwrap_or(ROWS);
    let text = loop {
        let text = document(look, hops, arguments, [rows, width]).text(screen::layout());
        // Beside the line of the cursor.
        let excess = height.map_or(0, |height| (text.lines().count() + 1).saturating_sub(height));
        if excess == 0 || rows <= ROWS_MIN {
            break text;
        }
        // A table that is still too wide has each row twice.
        rows = rows.saturating_sub(excess.div_ceil(2)).max(ROWS_MIN);
    };
    screen::clear()?;
    let end = if height.is_some() { "" } else { "\n" };
    screen::print(&(text + end))
}

fn document(
    look: &Look,
    hops: Option<&Hops>,
    arguments: &Arguments,
    [rows, width]: [usize; 2],
) -> Document {
    let grouped = !arguments.group.is_empty();
    let active = look.active();
    let (shown, others) = active.split_at(rows.min(active.len()));
    let head = format!("{}  {}\n", rfc3339(look.unix.as_secs()), look.says(active.len()));
    let table = look.connection_table(shown, grouped, arguments.addresses);
    let mut document = Document::default().words(head).said(look.lost.sentence());
    if let Some(hops) = hops {
        let seen = hops.seen();
        document = document.said(seen.sentence(hops.to)).words("\n").table(seen.table());
    }
    document = document.words("\n").table(table.within(width, &CONNECTIONS));
    if let Some(others) = look.says_of_others(others) {
        document = document.words(others + "\n");
    }
    if grouped {
        document = document.words("\n").table(look.group_table().within(width, &GROUPS));
    }
    let interfaces = look.host_table().within(width, &INTERFACES);
    document.words("\n").table(interfaces).said(look.stack_says())
}
