//! The page of a host's own connections, and its tables, which the terminal shows too.

pub(crate) mod course;
pub(crate) mod heat;
mod open;
pub(crate) mod spreads;
pub(crate) mod tables;

pub use open::{OpenPoint, open_body, open_live};
pub use tables::observed_tables;

use crate::ReportError;
use crate::chart::style;
use crate::page::environment;
use knee_present::Table;
use knee_present::words::{bytes, count, percent, rate, time_us};
use knee_record::{ObservedCell, ObservedReport, rfc3339};
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/observed.html");
const LIVE: &str = include_str!("../assets/observed-live.html");
const BODY: &str = include_str!("../assets/observed-body.html");
/// A table with its title and its note.
pub(crate) const TABLE: &str = include_str!("../assets/observed-table.html");
const STYLE: &str = include_str!("../assets/report.css");
const OWN_STYLE: &str = include_str!("../assets/observed.css");

/// Warning that a table of controllers is not an experiment.
const NO_EXPERIMENT: &str = "This is not an experiment. The controller of a connection depended \
                             on its destination and its content, and connections of both shared \
                             queues, where one can take bandwidth from the other. An experiment \
                             shows which is better: knee steer rehearse.";

/// Warning that comparing two periods is not an experiment.
const NO_TREATMENT: &str = "This is not an experiment. Two periods differ in clients, load and \
                            time of day, not only in the change between them. An experiment \
                            switches back and forth: knee steer rehearse.";

const COUNTED: heat::Counted = heat::Counted {
    what: "connections",
    sizes: "acknowledged",
    which: " with a row of their own, by weight",
};

/// A picture with its heading.
#[derive(Serialize)]
pub(crate) struct Picture {
    pub title: String,
    pub note: String,
    pub drawing: Value,
}

/// Returns the page of a host's own connections as an HTML document. `command` is the command that
/// recreates it.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn observed_page(report: &ObservedReport, command: &str) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("observed.html", TEMPLATE)?;
    let body = Value::from_safe_string(observed_body(report)?);
    let assets = minijinja::context! {
        style => Value::from_safe_string(observed_style()),
        version => env!("CARGO_PKG_VERSION"),
    };
    let template = environment.get_template("observed.html")?;
    Ok(template.render(minijinja::context! { body, command, assets })?)
}

/// Returns the document around a live page, with its title, its initial contents and a sentence for
/// its foot. Its style is at `page.css` ([`observed_style`]), its script at `page.js`.
///
/// # Errors
/// The errors of [`observed_page`].
pub fn live_page(title: &str, body: &str, foot: &str) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("live.html", LIVE)?;
    let template = environment.get_template("live.html")?;
    let (body, version) = (Value::from_safe_string(body.to_string()), env!("CARGO_PKG_VERSION"));
    Ok(template.render(minijinja::context! { title, body, foot, version })?)
}

/// Returns the document around the live page of connections as they end ([`live_page`]).
///
/// # Errors
/// The errors of [`observed_page`].
pub fn observed_live(body: &str) -> Result<String, ReportError> {
    let foot = "The last hour, which begins with a multiple of five minutes, and ends with the \
                minute under way. Percentiles are at most 2.2 % off.";
    live_page("Connections of this host, live", body, foot)
}

/// Returns the style of these pages.
pub fn observed_style() -> String {
    [STYLE, &style(), OWN_STYLE].join("\n")
}

/// Returns the contents of the page without the document around it: a live page renders it again
/// whenever connections have ended.
///
/// # Errors
/// The errors of [`observed_page`].
pub fn observed_body(report: &ObservedReport) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("table.html", TABLE)?;
    environment.add_template("body.html", BODY)?;
    let template = environment.get_template("body.html")?;
    let tables: Vec<Table> = observed_tables(report).into_iter().map(on_page).collect();
    let facts = facts(report);
    let says = observed_says(report);
    let valid = report.valid;
    let context = minijinja::context! {
        says, valid, facts, tables,
        spreads => spreads::pictures(report),
        course => course::picture(report),
        heat => heat::picture(&report.heat, COUNTED),
        hours => heat::hours(&report.heat, COUNTED.what),
    };
    Ok(template.render(context)?)
}

/// Gives bytes the four digits that they have on pages.
pub(crate) fn on_page(mut table: Table) -> Table {
    for cell in table.rows.iter_mut().flat_map(|row| &mut row.cells) {
        let count = cell.numbers.iter().find(|number| number.unit == "bytes");
        let shown = count.map(|number| bytes(Some(number.value)));
        cell.shown = shown.unwrap_or_else(|| std::mem::take(&mut cell.shown));
    }
    table
}

/// Returns the sentences above the figures: the results, and how far they can be trusted.
pub fn observed_says(report: &ObservedReport) -> Vec<String> {
    let mut says = Vec::new();
    if !report.valid {
        says.push(format!(
            "Invalid: {} of the reports were lost, more than 1 %, so these figures do not \
             represent the host. Observe as root (CAP_NET_ADMIN) for a larger buffer, or free a \
             processor for it.",
            percent(Some(lost_ratio(report)))
        ));
    }
    let mut first = format!(
        "{} connections ended within {}",
        count(report.connections),
        duration(report.observed_s)
    );
    if let Some(spread) = report.large.throughput_bps {
        let half = rate(Some(spread.p50));
        first += &format!("; half of those of 3 MB and more had {half} or more");
    }
    if let Some(spread) = report.small.busy_us {
        let half = time_us(Some(spread.p50));
        first += &format!("; half of those below 3 MB took {half} or less");
    }
    first += ".";
    if let Some(again) = report.all.retransmit_ratio() {
        first += &format!(" {} of all bytes were retransmitted.", percent(Some(again)));
    }
    if let Some(cut) = report.all.unfinished_ratio().filter(|cut| *cut > 0.0) {
        first +=
            &format!(" {} of the connections ended with data undelivered.", percent(Some(cut)));
    }
    says.push(first);
    says.extend(controllers_say(report));
    says
}

/// Warns where a reader would compare controllers: they carried different connections, and a scan
/// sees the controllers of long connections only.
fn controllers_say(report: &ObservedReport) -> Option<String> {
    let mut names: Vec<&str> = report.controllers.iter().map(|cell| &*cell.controller).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let mut words = "Do not compare controllers by these figures: they carried different \
                     connections."
        .to_string();
    if let Some((seen, all)) = seen(&report.controllers, |_| true) {
        words += &format!(
            " A controller was seen of {} of {} connections; the others were too short to be seen \
             by a scan, so those are the slow ones. knee observe --bpf sees all.",
            count(seen),
            count(all)
        );
    }
    Some(words)
}

/// Numbers of connections whose controller was seen, and of all, among those that count; `None` if
/// it was seen of all.
fn seen(cells: &[ObservedCell], counts: impl Fn(&ObservedCell) -> bool) -> Option<(u64, u64)> {
    let of = |is_seen: fn(&ObservedCell) -> bool| -> u64 {
        let cells = cells.iter().filter(|cell| counts(cell) && is_seen(cell));
        cells.map(|cell| cell.connections).sum()
    };
    let (seen, all) = (of(|cell| !cell.controller.is_empty()), of(|_| true));
    (seen < all).then_some((seen, all))
}

/// Returns the warning about a comparison of two sets of connections; `None` if there is no
/// comparison.
pub fn observed_warning(report: &ObservedReport) -> Option<&'static str> {
    let beside = report.beside.as_ref()?;
    Some(if beside.of_controllers { NO_EXPERIMENT } else { NO_TREATMENT })
}

fn facts(report: &ObservedReport) -> Vec<String> {
    // To the minute.
    let minute = |unix_s: u64| (unix_s + 30) / 60 * 60;
    let time = |unix_s: u64| rfc3339(minute(unix_s)).replace('T', " ").replace(":00Z", "");
    let mut facts = vec![
        format!("{} to {} UTC", time(report.from_unix_s), time(report.to_unix_s)),
        format!("{} observed", duration(report.observed_s)),
        format!(
            "{} reports lost, {}",
            count(report.lost_reports),
            percent(Some(lost_ratio(report)))
        ),
    ];
    if report.minutes_with_loss > 0 {
        facts.push(format!("{} minutes with more than 1 % lost", count(report.minutes_with_loss)));
    }
    facts.push(format!("{} connections without payload", count(report.silent)));
    if report.rows > 0 {
        facts.push(format!("{} with a row of their own", count(report.rows)));
    }
    facts
}

fn lost_ratio(report: &ObservedReport) -> f64 {
    report.lost_reports as f64 / (report.lost_reports + report.connections).max(1) as f64
}

/// Formats a duration in its two largest units.
fn duration(seconds: u64) -> String {
    let units = [(86_400, "days"), (3600, "h"), (60, "min"), (1, "s")];
    let mut parts = Vec::new();
    let mut left = seconds;
    for (unit, name) in units {
        if left >= unit {
            parts.push(match (left / unit, name) {
                (1, "days") => "1 day".to_string(),
                (number, name) => format!("{number} {name}"),
            });
            left %= unit;
        }
    }
    parts.truncate(2);
    if parts.is_empty() { "0 s".to_string() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_two_units() {
        let said = [60, 3600, 3660, 86_400 * 2 + 60 * 61, 86_400, 425, 7, 0].map(duration);
        let right = ["1 min", "1 h", "1 h 1 min", "2 days 1 h", "1 day", "7 min 5 s", "7 s", "0 s"];
        assert_eq!(said, right);
    }

    fn cell(controller: &str, connections: u64) -> ObservedCell {
        ObservedCell {
            class: "1 to 3 MB".to_string(),
            controller: controller.to_string(),
            connections,
            unfinished: Some(connections / 4),
            ..ObservedCell::default()
        }
    }

    /// The time that was observed, not the minutes of the clock that were touched; what did not
    /// finish; and that a scan only sees the slow ones.
    #[test]
    fn the_first_sentences_say_how_long_how_many_and_which() {
        let report = ObservedReport {
            from_unix_s: 0,
            to_unix_s: 480,
            observed_s: 420,
            minutes: 8,
            valid: true,
            connections: 1554,
            all: cell("", 1000),
            controllers: vec![cell("cubic", 40), cell("bbr", 19), cell("", 1495)],
            ..ObservedReport::default()
        };
        let said = observed_says(&report).join(" ");
        for part in [
            "within 7 min.",
            "25 % of the connections ended with data undelivered.",
            "Do not compare controllers",
            "of 59 of 1\u{202f}554 connections; the others were too short",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(facts(&report).contains(&"7 min observed".to_string()));
        // With BPF programs all are seen, and of one there is nothing to compare.
        let both = vec![cell("cubic", 40), cell("bbr", 19)];
        let said = observed_says(&ObservedReport { controllers: both, ..report.clone() }).join(" ");
        assert!(said.contains("Do not compare") && !said.contains("too short"), "{said}");
        let one = vec![cell("cubic", 40)];
        let said = observed_says(&ObservedReport { controllers: one, ..report }).join(" ");
        assert!(!said.contains("Do not compare"), "{said}");
    }
}
