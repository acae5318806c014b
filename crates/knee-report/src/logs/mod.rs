//! The page of access logs, and its tables, which the terminal shows too.

mod pictures;
mod tables;

pub use tables::{log_screen, log_tables};

use crate::ReportError;
use crate::observed::course::clock;
use crate::observed::{TABLE, observed_style, on_page};
use crate::page::environment;
use knee_present::Table;
use knee_present::words::{count, percent, rate, time_us};
use knee_record::{LogBeside, LogCell, LogFile, LogReport, ObservedSpread, rfc3339};
use minijinja::Value;

const TEMPLATE: &str = include_str!("../../assets/logs.html");
/// Fewer transfers are not compared in a sentence: their median is chance.
const COMPARED_MIN: u64 = 30;
/// Files that are listed individually.
const FILES_SHOWN: usize = 6;

/// Returns the page of access logs as an HTML document. `command` is the command that recreates it.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn log_page(report: &LogReport, command: &str) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("table.html", TABLE)?;
    environment.add_template("logs.html", TEMPLATE)?;
    let tables: Vec<Table> = log_tables(report).into_iter().map(on_page).collect();
    let mut says = log_says(report).into_iter();
    let context = minijinja::context! {
        answer => says.next(),
        says => says.collect::<Vec<_>>(),
        facts => log_facts(report),
        tables,
        spreads => pictures::spreads(report),
        course => pictures::course(report),
        heat => pictures::heat(report),
        sides => pictures::sides(report),
        hours => pictures::hours(report),
        command,
        style => Value::from_safe_string(observed_style()),
        version => env!("CARGO_PKG_VERSION"),
    };
    Ok(environment.get_template("logs.html")?.render(context)?)
}

/// Returns the sentences above the figures: the answer first, then what may be the server's or a
/// client's in it.
pub fn log_says(report: &LogReport) -> Vec<String> {
    let beside = report.beside.iter().filter_map(|beside| beside_says(beside, report.since_unix_s));
    let mut says: Vec<String> = beside.collect();
    says.push(all_say(report));
    if report.all.time_us.is_none() {
        says.push(format!(
            "No duration is logged, so the logs say what was sent, but not how fast.{} Log it too: \
             docs/logs.md has a line for each server.",
            match report.without_unit {
                0 => String::new(),
                _ => " There is one without a unit: name its column duration_s, duration_ms or \
                      duration_us."
                    .to_string(),
            }
        ));
        return says;
    }
    says.push(server_says(report));
    says.push(reader_says(report));
    says.extend(resolution_says(report));
    says
}

/// Compares two sets by their medians.
fn beside_says(beside: &LogBeside, since_unix_s: Option<i64>) -> Option<String> {
    let [one, other] = &beside.names;
    type Of<T> = fn(&LogCell) -> Option<T>;
    let over = |pair: &[LogCell; 2], get: Of<ObservedSpread>, median: Of<[f64; 2]>| {
        let [first, second] = [get(&pair[0])?, get(&pair[1])?];
        let enough = first.count.min(second.count) >= COMPARED_MIN;
        let [[low, high], [other_low, other_high]] = [median(&pair[0])?, median(&pair[1])?];
        let shown = high < other_low || other_high < low;
        enough.then_some((first.p50, second.p50, shown))
    };
    let mut parts = Vec::new();
    for pair in beside.pairs.iter().filter(|pair| pair[0].name.is_empty()) {
        let class = &pair[0].class;
        if tables::is_large(class) {
            let found = over(pair, |cell| cell.throughput_bps, |cell| cell.throughput_median_bps);
            if let Some((first, now, shown)) = found {
                let change = changed(now / first, shown, ["more", "less"]);
                let change = change.unwrap_or_else(|| by_chance(&rate(Some(first))));
                parts.push(format!("those of {class} had {}, {change}", rate(Some(now))));
            }
        } else if let Some((first, now, shown)) =
            over(pair, |cell| cell.time_us, |cell| cell.time_median_us)
        {
            let change = changed(now / first, shown, ["longer", "shorter"]);
            let change = change.unwrap_or_else(|| by_chance(&time_us(Some(first))));
            parts.push(format!("those of {class} took {}, {change}", time_us(Some(now))));
        }
    }
    if parts.is_empty() {
        let too_few = format!(
            "Fewer than {COMPARED_MIN} transfers of a size with a duration are {one} or {other}: too few to \
             compare."
        );
        return beside.of_moment.then_some(too_few);
    }
    let parts =
        parts.join("; ").replace("those of below", "those below").replace("of under", "under");
    Some(match since_unix_s.filter(|_| beside.of_moment) {
        Some(at) => format!(
            "Transfers from {} on, in the median and against before: {parts}. This is not an experiment: \
             clients, load and time of day differ too.",
            clock(at.unsigned_abs(), false)
        ),
        None => format!(
            "Transfers over {other}, in the median and against {one}: {parts}. This is not an \
             experiment: clients and what they fetch differ too."
        ),
    })
}

/// Says how medians differ; `None` if chance may explain it.
fn changed(ratio: f64, shown: bool, [more, less]: [&str; 2]) -> Option<String> {
    let off = ratio - 1.0;
    // A median is up to 4.4 % off.
    match off.abs() < 0.045 {
        true => Some("about the same".to_string()),
        false if !shown => None,
        false if off > 0.95 => Some(format!("{ratio:.1} times")),
        false if off > 0.0 => Some(format!("{} {more}", percent(Some(off)))),
        false => Some(format!("{} {less}", percent(Some(-off)))),
    }
}

fn by_chance(first: &str) -> String {
    format!("against {first}, which chance may explain")
}

fn all_say(report: &LogReport) -> String {
    let mut words = transfers(report.all.transfers);
    if let Some(spread) = report.large.throughput_bps {
        words +=
            &format!("; half of those of 3 MB and more had {} or more", rate(Some(spread.p50)));
    }
    if let Some(spread) = report.small.time_us {
        words += &format!("; half of those below 3 MB took {} or less", time_us(Some(spread.p50)));
    }
    words + "."
}

/// Says which part of the durations may be the server's.
fn server_says(report: &LogReport) -> String {
    let kernel = "A server's log ends when the last byte is handed to the kernel, so what fits into \
                  its send buffer looks faster than it was.";
    let parts = [(&report.large, "3 MB and more"), (&report.small, "below 3 MB")];
    let known = parts.iter().filter_map(|(cell, size)| {
        Some(format!("{} of those {size}", percent(Some(cell.server_ratio?))))
    });
    let known: Vec<String> = known.collect();
    match known.is_empty() {
        true => format!(
            "The logs do not tell when the first byte was sent, so any part of a duration may be the \
             server's. {kernel}"
        ),
        false => format!(
            "Of the time of transfers, up to {} may be the server's: it passed before the first byte, or \
             waiting for a server behind it. {kernel}",
            known.join(" and ")
        ),
    }
}

/// Says which part may be that of clients who read slowly.
fn reader_says(report: &LogReport) -> String {
    match report.large.delivery_ratio {
        Some(ratio) => format!(
            "Half of those of 3 MB and more had {} of the rate at which the transport delivered, or less: \
             the rest of the time they waited for the server or for a client that read slowly.",
            percent(Some(ratio.p50))
        ),
        None => "A client that reads slowly makes a duration longer too, which these logs cannot \
                 tell; knee observe on the host can."
            .to_string(),
    }
}

fn resolution_says(report: &LogReport) -> Option<String> {
    let step = match report.resolution_s? {
        step if step >= 1.0 => "whole seconds",
        _ => "whole milliseconds",
    };
    let short = match report.too_short {
        0 => String::new(),
        number => format!("; {} took less and have no time here", transfers(number)),
    };
    (step == "whole seconds" || report.too_short > 0)
        .then(|| format!("Durations are {step}{short}."))
}

/// Returns what was read, from when to when, and what was left out.
pub fn log_facts(report: &LogReport) -> Vec<String> {
    let mut facts = Vec::new();
    if let (Some(from), Some(to)) = (report.from_unix_s, report.to_unix_s) {
        let time = |unix_s: i64| rfc3339(unix_s.unsigned_abs()).replace('T', " ").replace('Z', "");
        facts.push(match report.dated {
            true => format!("{} to {} UTC", time(from), time(to)),
            false => format!("{} s, without a date", count((to - from).unsigned_abs())),
        });
    }
    facts.extend(report.logs.iter().take(FILES_SHOWN).map(file_says));
    let more = report.logs.len().saturating_sub(FILES_SHOWN);
    if more > 0 {
        facts.push(format!("{more} more logs"));
    }
    for (number, what) in
        [(report.without_time, "without a time"), (report.without_duration, "without a duration")]
    {
        if number > 0 && number < report.all.transfers {
            facts.push(format!("{} {what}", transfers(number)));
        }
    }
    facts
}

fn transfers(number: u64) -> String {
    format!("{} transfer{}", count(number), if number == 1 { "" } else { "s" })
}

fn file_says(log: &LogFile) -> String {
    let LogFile { name, format, passed_over, .. } = log;
    let mut words = format!("{name}: {format}, {}", transfers(log.transfers));
    let over: Vec<String> = passed_over
        .iter()
        .map(|over| format!("{} {} (first: line {})", count(over.lines), over.reason, over.first))
        .collect();
    if !over.is_empty() {
        words += &format!("; passed over: {}", over.join(", "));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(p50: f64) -> Option<ObservedSpread> {
        Some(ObservedSpread { count: 70, p5: p50 / 3.0, p50, p95: p50 * 2.5 })
    }

    fn cell(class: &str, scale: f64) -> LogCell {
        LogCell {
            class: class.to_string(),
            transfers: 1234,
            throughput_bps: spread(1e7 * scale),
            throughput_median_bps: Some([0.95, 1.05].map(|end| 1e7 * scale * end)),
            time_us: spread(1e5 * scale),
            time_median_us: Some([0.95, 1.05].map(|end| 1e5 * scale * end)),
            ..LogCell::default()
        }
    }

    fn report() -> LogReport {
        LogReport {
            all: cell("", 1.0),
            large: cell("3 MB and more", 1.0),
            small: cell("below 3 MB", 1.0),
            ..LogReport::default()
        }
    }

    /// The first sentence is the answer; then what may be the server's, and a slow client's.
    #[test]
    fn the_answer_comes_first_and_then_what_may_be_others() {
        let said = log_says(&report());
        assert_eq!(
            said[0],
            "1\u{202f}234 transfers; half of those of 3 MB and more had 10 Mbit/s or more; half of \
             those below 3 MB took 100 ms or less."
        );
        let said = said.join(" ");
        assert!(said.contains("any part of a duration may be the server's"), "{said}");
        assert!(said.contains("which these logs cannot tell; knee observe"), "{said}");
        let mut known = report();
        known.large.server_ratio = Some(0.25);
        known.small.server_ratio = Some(0.5);
        known.large.delivery_ratio = spread(0.8);
        (known.resolution_s, known.too_short) = (Some(1e-3), 3);
        let said = log_says(&known).join(" ");
        for part in [
            "up to 25 % of those 3 MB and more and 50 % of those below 3 MB may be the server's",
            "had 80 % of the rate at which the transport delivered, or less",
            "Durations are whole milliseconds; 3 transfers took less and have no time here.",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_change_is_said_with_its_size_and_its_limits() {
        let pair = |class: &str, scale| [cell(class, 1.0), cell(class, scale)];
        let beside = LogBeside {
            names: ["before", "after"].map(str::to_string),
            of_moment: true,
            pairs: vec![pair("3 MB and more", 1.5), pair("below 3 MB", 0.8)],
            heats: Vec::new(),
        };
        // `date -u -d '2026-03-12 10:00' +%s`.
        let since_unix_s = Some(1_773_309_600);
        let said = log_says(&LogReport { beside: vec![beside.clone()], since_unix_s, ..report() });
        assert_eq!(
            said[0],
            "Transfers from 2026-03-12 10:00 on, in the median and against before: those of 3 MB and \
             more had 15 Mbit/s, 50 % more; those below 3 MB took 80 ms, 20 % shorter. This is not an \
             experiment: clients, load and time of day differ too."
        );
        // Within what a median is known to, and within the intervals of the two medians.
        for (scale, words) in [
            (1.04, "had 10.4 Mbit/s, about the same."),
            (1.09, "had 10.9 Mbit/s, against 10 Mbit/s, which chance may explain."),
        ] {
            let close = LogBeside { pairs: vec![pair("3 MB and more", scale)], ..beside.clone() };
            let said = log_says(&LogReport { beside: vec![close], ..report() });
            assert!(said[0].contains(words), "{}", said[0]);
        }
    }

    /// Wherever a median is shown its interval is, too.
    #[test]
    fn medians_have_their_intervals() {
        let pairs = vec![["3 MB and more", "below 3 MB"].map(|class| cell(class, 1.0))];
        let names = ["before", "after"].map(str::to_string);
        let beside = LogBeside { names, of_moment: true, pairs, heats: Vec::new() };
        let (classes, protocols) =
            (vec![cell("30 MB and more", 1.0)], vec![cell("below 3 MB", 2.0)]);
        let report = LogReport { classes, protocols, beside: vec![beside], ..report() };
        let shown = |table: &Table| -> Vec<String> {
            table.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.shown.clone()).collect()
        };
        let rates = "10 Mbit/s (9.5 Mbit/s to 10.5 Mbit/s)";
        let wanted =
            [&[rates, "100 ms (95 ms to 105 ms)"][..], &[rates], &["200 ms (190 ms to 210 ms)"]];
        let tables = log_tables(&report);
        assert_eq!(tables.len(), wanted.len());
        for (table, wanted) in tables.iter().zip(wanted) {
            let shown = shown(table);
            assert!(wanted.iter().all(|one| shown.iter().any(|it| it == one)), "{shown:?}");
        }
    }

    /// The medians of a few transfers are chance, and said to be too few.
    #[test]
    fn a_few_transfers_are_not_compared() {
        let few = |scale| {
            let mut cell = cell("below 3 MB", scale);
            cell.time_us = spread(1e5).map(|spread| ObservedSpread { count: 29, ..spread });
            cell
        };
        let names = ["before", "after"].map(str::to_string);
        let pairs = vec![[few(1.0), cell("below 3 MB", 2.0)]];
        let beside = LogBeside { names, of_moment: true, pairs, heats: Vec::new() };
        let said = log_says(&LogReport { beside: vec![beside], ..report() });
        let first = "Fewer than 30 transfers of a size with a duration are before or after: too few to compare.";
        assert_eq!(said[0], first);
    }

    #[test]
    fn a_log_without_durations_is_said_to_be_one() {
        let all = LogCell { transfers: 2, ..LogCell::default() };
        let said = log_says(&LogReport { all, without_unit: 1, ..LogReport::default() }).join(" ");
        assert!(said.starts_with("2 transfers. No duration is logged"), "{said}");
        assert!(said.contains("without a unit: name its column duration_s"), "{said}");
    }
}
