//! The last hour of a running observer, for display.

use crate::LiveError;
use crate::cells::{Cell, Cells, Kind};
use crate::files::{CONNECTIONS, FILE_TIME, MINUTES, stamp};
use crate::minutes::{self, MINUTE_S, Minute};
use crate::observer::since_1970;
use crate::report::{COLUMNS, Gathered, ReportSettings, assemble, heat_bin, list};
use crate::row;
use knee_record::{ObservedPoint, ObservedReport, each_connection};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The hour is kept in slots of five minutes: `SLOTS` complete ones and the current one.
const SLOT_S: u64 = 5 * MINUTE_S;
const SLOTS: u64 = 12;

/// Connections by bin of size and bin of duration.
pub(crate) type Heat = BTreeMap<(i32, i32), u64>;

/// State of an observer for a page. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<Shown>>);

#[derive(Clone, Debug, Default)]
struct Shown {
    /// Completed minutes, by number of the slot since 1970.
    past: BTreeMap<u64, Arc<Slot>>,
    /// Snapshot of the current minute.
    now: Arc<Part>,
    /// Sums over all completed minutes since the start.
    ended: Arc<Cells>,
    counts: Counts,
}

/// A minute with the heat map of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub minute: Minute,
    pub rows: u64,
    pub heat: Heat,
}

/// Merged minutes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    /// Start of the first minute, seconds since 1970 (UTC).
    pub unix_s: u64,
    pub cells: Cells,
    /// Points by start of the minute, seconds since 1970.
    pub points: BTreeMap<u64, ObservedPoint>,
    pub rows: u64,
    pub heat: Heat,
}

impl Slot {
    fn number(unix_s: u64) -> u64 {
        unix_s / SLOT_S
    }

    /// Adds a minute, or a part of it.
    fn add_minute(&mut self, minute: &Minute) {
        let point = minute.point();
        if self.points.is_empty() {
            self.unix_s = point.unix_s;
        }
        add_point(self.points.entry(point.unix_s).or_default(), &point);
        self.cells.merge(&minute.cells);
    }

    /// Adds a heat map of rows.
    fn add_rows(&mut self, rows: u64, heat: &Heat) {
        self.rows += rows;
        for (bin, connections) in heat {
            *self.heat.entry(*bin).or_default() += connections;
        }
    }

    /// Merges another slot with the same number.
    fn add(&mut self, other: &Slot) {
        if self.points.is_empty() {
            self.unix_s = other.unix_s;
        }
        for (unix_s, point) in &other.points {
            add_point(self.points.entry(*unix_s).or_default(), point);
        }
        self.cells.merge(&other.cells);
        self.add_rows(other.rows, &other.heat);
    }
}

/// Merges another part of the same minute.
pub(crate) fn add_point(point: &mut ObservedPoint, other: &ObservedPoint) {
    (point.unix_s, point.minutes) = (other.unix_s, 1);
    point.observed_ns = (point.observed_ns + other.observed_ns).min(MINUTE_S * 1_000_000_000);
    point.connections += other.connections;
    point.acked_bytes += other.acked_bytes;
    point.sent_bytes += other.sent_bytes;
    point.retransmitted_bytes += other.retransmitted_bytes;
    point.lost_reports += other.lost_reports;
}

/// Sums since the start of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time since the start.
    pub running: Duration,
    /// Sockets reported by the kernel.
    pub reports: u64,
    /// Reports that the kernel dropped.
    pub lost: u64,
}

impl Live {
    /// Reads the last hour from an observer's files, so that a page continues after a restart. Call
    /// it before the observer starts, since reports would otherwise queue up. Skips unreadable
    /// files and returns their errors.
    pub fn recent(directory: &Path) -> (Live, Vec<LiveError>) {
        Live::before(directory, since_1970())
    }

    /// Reads the hour before a time since 1970 (UTC).
    fn before(directory: &Path, now: Duration) -> (Live, Vec<LiveError>) {
        let last = Slot::number(now.as_secs());
        let numbers = last.saturating_sub(SLOTS)..=last;
        // File names contain the time at which the file was started.
        let since = Duration::from_secs(numbers.start() * SLOT_S).saturating_sub(FILE_TIME);
        let (mut past, mut wrong) = (BTreeMap::<u64, Slot>::new(), Vec::new());
        each_since(directory, MINUTES, since, &mut wrong, |file| {
            let mut found = BTreeMap::<u64, Slot>::new();
            minutes::read(file, |minute| {
                let number = Slot::number(minute.unix_ns / 1_000_000_000);
                if numbers.contains(&number) {
                    found.entry(number).or_default().add_minute(&minute);
                }
            })?;
            found.iter().for_each(|(number, slot)| past.entry(*number).or_default().add(slot));
            Ok(())
        });
        each_since(directory, CONNECTIONS, since, &mut wrong, |file| {
            let mut found = BTreeMap::<u64, (u64, Heat)>::new();
            each_connection(file, &COLUMNS, |epoch_unix_ns, one| {
                let end_s = epoch_unix_ns.saturating_add(one.end_ns) / 1_000_000_000;
                let (rows, heat) = found.entry(Slot::number(end_s)).or_default();
                *rows += 1;
                if let Some(bin) = heat_bin(&row::ended(one)) {
                    *heat.entry(bin).or_default() += one.weight.unwrap_or(1.0).round() as u64;
                }
            })?;
            for (number, (rows, heat)) in found {
                // Only for known slots: their sums are in the other file.
                if let Some(slot) = past.get_mut(&number) {
                    slot.add_rows(rows, &heat);
                }
            }
            Ok(())
        });
        let past = past.into_iter().map(|(number, slot)| (number, Arc::new(slot))).collect();
        (Live(Arc::new(Mutex::new(Shown { past, ..Shown::default() }))), wrong)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // The state is replaced as a whole, so a panic leaves it consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the current minute.
    pub(crate) fn now(&self, part: Part, counts: Counts) {
        let part = Arc::new(part);
        let mut shown = self.shown();
        (shown.now, shown.counts) = (part, counts);
    }

    /// Adds a completed minute, and updates the sums since the start.
    pub(crate) fn ended(&self, part: &Part, ended: &Cells) {
        let ended = Arc::new(ended.clone());
        let number = Slot::number(part.minute.unix_ns / 1_000_000_000);
        let mut shown = self.shown();
        let slot = Arc::make_mut(shown.past.entry(number).or_default());
        slot.add_minute(&part.minute);
        slot.add_rows(part.rows, &part.heat);
        shown.past = shown.past.split_off(&number.saturating_sub(SLOTS));
        shown.ended = ended;
        shown.now = Arc::default();
    }

    /// Sums since the start, in total and by kind.
    pub fn totals(&self) -> (Counts, BTreeMap<Kind, Cell>) {
        let (counts, ended, now) = {
            let shown = self.shown();
            (shown.counts, shown.ended.clone(), shown.now.clone())
        };
        let mut cells = (*ended).clone();
        cells.merge(&now.minute.cells);
        (counts, cells.0)
    }
}

/// Reads files with this name prefix that were started since then.
fn each_since(
    directory: &Path,
    start: &str,
    since: Duration,
    wrong: &mut Vec<LiveError>,
    mut read: impl FnMut(&Path) -> Result<(), LiveError>,
) {
    let first = format!("{start}{}", stamp(since));
    // A folder that does not exist yet is empty.
    for file in list(directory, start).unwrap_or_default() {
        if file.file_name().is_some_and(|name| *name >= *first)
            && let Err(error) = read(&file)
        {
            wrong.push(error);
        }
    }
}

/// Repeatedly computes the report of the last hour.
#[derive(Default)]
pub struct LiveReport {
    live: Live,
    /// Sums over completed slots, and those slots.
    past: Gathered,
    of: BTreeMap<u64, Arc<Slot>>,
}

impl LiveReport {
    /// Creates the report of an observer.
    pub fn new(live: Live) -> LiveReport {
        LiveReport { live, ..LiveReport::default() }
    }

    /// The report of the last hour, from the start of a slot to the current minute. Its time series
    /// contains complete minutes only.
    pub fn report(&mut self) -> ObservedReport {
        let (past, now) = {
            let shown = self.live.shown();
            (shown.past.clone(), shown.now.clone())
        };
        let is_known = past.len() == self.of.len()
            && past.values().zip(self.of.values()).all(|(one, other)| Arc::ptr_eq(one, other));
        if !is_known {
            self.past = Gathered::new(ReportSettings::default());
            past.values().for_each(|slot| self.past.slot(slot));
            self.of = past;
        }
        let mut gathered = self.past.clone();
        let is_begun = now.minute.unix_ns > 0;
        if is_begun {
            let mut slot = Slot::default();
            slot.add_minute(&now.minute);
            slot.add_rows(now.rows, &now.heat);
            gathered.slot(&slot);
        }
        let mut report = assemble::report(gathered);
        if is_begun {
            report.course.points.pop();
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Ended;
    use knee_record::{ConnectionFile, ConnectionRecord};

    const START_S: u64 = 1_795_539_600;

    fn part(minute: u64, connections: u64) -> Part {
        let unix_ns = (START_S + 60 * minute) * 1_000_000_000;
        let mut part = Part { minute: Minute { unix_ns, ..Minute::default() }, ..Part::default() };
        let ended = Ended { acked_bytes: 4_000_000, busy_us: 1_000_000, ..Ended::default() };
        for _ in 0..connections {
            part.minute.cells.add("office".into(), "bbr".into(), "".into(), &ended);
        }
        (part.rows, part.heat) = (connections, Heat::from([((52, 0), connections)]));
        part
    }

    /// Of two hours the report covers the last one, in whole slots, and the current minute; sums
    /// cover the time since the start.
    #[test]
    fn an_hour_is_shown_and_the_sums_go_on() {
        let live = Live::default();
        let mut reports = LiveReport::new(live.clone());
        assert_eq!((reports.report().connections, live.totals().1.len()), (0, 0));
        let mut ended = Cells::default();
        for minute in 0..120 {
            let part = part(minute, minute);
            ended.merge(&part.minute.cells);
            live.ended(&part, &ended);
        }
        let counts = Counts { reports: 9, ..Counts::default() };
        live.now(part(120, 7), counts);
        for _ in 0..2 {
            let report = reports.report();
            // Minutes 115 to 119 form the last slot; twelve slots precede it.
            let all = (55..120).sum::<u64>() + 7;
            assert_eq!(report.connections, all);
            assert_eq!((report.minutes, report.course.points.len()), (66, 65));
            assert_eq!(report.heat.iter().map(|bin| bin.connections).sum::<u64>(), all);
            assert_eq!(report.from_unix_s, START_S + 55 * 60);
        }
        let (told, cells) = live.totals();
        assert_eq!(told, counts);
        assert_eq!(cells.values().map(|cell| cell.connections).sum::<u64>(), 7147);
        // The next minute has begun without data.
        ended.merge(&part(120, 8).minute.cells);
        live.ended(&part(120, 8), &ended);
        let report = reports.report();
        assert_eq!(report.connections, (60..120).sum::<u64>() + 8);
        assert_eq!((report.minutes, report.course.points.len()), (61, 61));
    }

    /// Parts of one minute from two runs are merged, and the page of a third continues.
    #[test]
    fn a_page_goes_on_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let name = |start: &str, minute: u64| {
            let begun = Duration::from_secs(START_S + 60 * minute);
            folder.path().join(format!("{start}{}.parquet", stamp(begun)))
        };
        let write = |begun: u64, parts: &[Part]| {
            let minutes: Vec<Minute> = parts.iter().map(|part| part.minute.clone()).collect();
            minutes::write(&name(MINUTES, begun), &minutes).unwrap();
        };
        let rows = |begun: u64, count: u64| {
            let epoch = (START_S + 60 * begun) * 1_000_000_000;
            let mut file =
                ConnectionFile::create(&name(CONNECTIONS, begun), "live", epoch).unwrap();
            for _ in 0..count {
                let row = ConnectionRecord {
                    end_ns: 1_000_000_000,
                    acked_bytes: Some(5_000_000),
                    busy_ns: Some(1_000_000_000),
                    weight: Some(3.0),
                    ..ConnectionRecord::default()
                };
                file.push(&row).unwrap();
            }
            file.finish().unwrap();
        };
        write(0, &[part(0, 1000)]);
        // One file started before the hour and extends into it, one is from the future.
        write(20, &[part(20, 1000), part(31, 2)]);
        write(50, &[part(50, 3), part(51, 4)]);
        write(51, &[part(51, 5)]);
        write(5000, &[part(5000, 1000)]);
        rows(50, 7);
        rows(51, 0);
        rows(200, 9);
        let now = Duration::from_secs(START_S + 90 * 60 + 20);
        let (live, wrong) = Live::before(folder.path(), now);
        assert!(wrong.is_empty(), "{wrong:?}");
        let mut reports = LiveReport::new(live.clone());
        let report = reports.report();
        assert_eq!((report.connections, report.minutes), (14, 3));
        let shown = report.heat.iter().map(|bin| bin.connections).sum::<u64>();
        assert_eq!((report.rows, shown), (7, 21));
        // Sums cover this run only.
        assert!(live.totals().1.is_empty());
        live.ended(&part(51, 6), &Cells::default());
        assert_eq!(reports.report().connections, 20);
        std::fs::write(name(MINUTES, 85), "PAR1").unwrap();
        let (live, wrong) = Live::before(folder.path(), now);
        assert_eq!((LiveReport::new(live).report().connections, wrong.len()), (14, 1));
        let (live, wrong) = Live::before(&folder.path().join("none"), now);
        assert_eq!((LiveReport::new(live).report().minutes, wrong.len()), (0, 0));
    }
}
