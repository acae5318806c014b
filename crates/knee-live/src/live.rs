//! The last hour of an observer, for whoever shows it while it runs.

use crate::LiveError;
use crate::cells::{Cell, Cells, Kind};
use crate::files::{CONNECTIONS, MINUTES};
use crate::minutes::{self, MINUTE_S, Minute};
use crate::report::{COLUMNS, Gathered, ReportSettings, assemble, heat_bin, list};
use crate::row;
use knee_record::{ObservedReport, each_connection};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whole minutes that are kept.
const HOUR: usize = 60;

/// Connections by bin of size and bin of time.
pub(crate) type Heat = BTreeMap<(i32, i32), u64>;

/// What an observer has heard, as far as a page shows it. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<Shown>>);

#[derive(Clone, Debug, Default)]
struct Shown {
    /// Minutes that have ended, the oldest first.
    past: VecDeque<Arc<Part>>,
    /// The minute under way, as it was a moment ago.
    now: Arc<Part>,
    /// Of all minutes that have ended since the start.
    ended: Arc<Cells>,
    counts: Counts,
}

/// A minute with the map of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub minute: Minute,
    pub rows: u64,
    pub heat: Heat,
}

impl Part {
    /// Adds what another part of the same minute has.
    fn add(&mut self, other: &Part) {
        self.minute.lost += other.minute.lost;
        self.minute.cells.merge(&other.minute.cells);
        self.rows += other.rows;
        for (bin, connections) in &other.heat {
            *self.heat.entry(*bin).or_default() += connections;
        }
    }
}

/// Sums since an observer's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How long ago that was.
    pub running: Duration,
    /// Sockets that the kernel told of.
    pub reports: u64,
    /// Reports that the kernel had no room for.
    pub lost: u64,
}

impl Live {
    /// What the files of an observer hold of the hour before `now`, time since 1970 (UTC), so
    /// that a page goes on where one before it stopped. Files that cannot be read are left
    /// out; the second part says why.
    pub(crate) fn recent(directory: &Path, now: Duration) -> (Live, Vec<LiveError>) {
        let since_s = now.as_secs() / MINUTE_S * MINUTE_S - HOUR as u64 * MINUTE_S;
        let (mut parts, mut wrong) = (BTreeMap::<u64, Part>::new(), Vec::new());
        for_recent(directory, MINUTES, &mut wrong, |file| {
            let mut is_recent = false;
            minutes::read(file, |minute| {
                let unix_s = minute.unix_ns / 1_000_000_000;
                if unix_s >= since_s {
                    is_recent = true;
                    let part = parts.entry(unix_s).or_default();
                    part.minute.unix_ns = minute.unix_ns;
                    part.add(&Part { minute, ..Part::default() });
                }
            })?;
            Ok(is_recent)
        });
        for_recent(directory, CONNECTIONS, &mut wrong, |file| {
            let mut is_recent = false;
            each_connection(file, &COLUMNS, |epoch_unix_ns, one| {
                let end_s = epoch_unix_ns.saturating_add(one.end_ns) / 1_000_000_000;
                let part = parts.get_mut(&(end_s / MINUTE_S * MINUTE_S));
                let Some(part) = part else { return };
                is_recent = true;
                part.rows += 1;
                if let Some(bin) = heat_bin(&row::ended(one)) {
                    *part.heat.entry(bin).or_default() += one.weight.unwrap_or(1.0).round() as u64;
                }
            })?;
            Ok(is_recent)
        });
        let past = parts.into_values().map(Arc::new).collect();
        (Live(Arc::new(Mutex::new(Shown { past, ..Shown::default() }))), wrong)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // What is shown is replaced as a whole: who panicked left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the minute under way.
    pub(crate) fn now(&self, part: Part, counts: Counts) {
        let part = Arc::new(part);
        let mut shown = self.shown();
        (shown.now, shown.counts) = (part, counts);
    }

    /// Shows a minute that has ended, and what has ended since the start.
    pub(crate) fn ended(&self, part: Part, ended: &Cells) {
        let (part, ended) = (Arc::new(part), Arc::new(ended.clone()));
        let mut shown = self.shown();
        match shown.past.back_mut() {
            // The one before was stopped within this minute.
            Some(last) if last.minute.unix_ns == part.minute.unix_ns => {
                let mut whole = (**last).clone();
                whole.add(&part);
                *last = Arc::new(whole);
            }
            _ => shown.past.push_back(part),
        }
        if shown.past.len() > HOUR {
            shown.past.pop_front();
        }
        shown.ended = ended;
        shown.now = Arc::default();
    }

    /// Sums since the start, and connections by kind.
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

/// Hands over files whose names begin so, the newest first, until one has nothing recent.
fn for_recent(
    directory: &Path,
    start: &str,
    wrong: &mut Vec<LiveError>,
    mut read: impl FnMut(&Path) -> Result<bool, LiveError>,
) {
    // A folder that is not there yet holds nothing.
    for file in list(directory, start).unwrap_or_default().iter().rev() {
        match read(file) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => wrong.push(error),
        }
    }
}

/// The report of the last hour, again and again.
#[derive(Default)]
pub struct LiveReport {
    live: Live,
    /// What the minutes that have ended came to, and these.
    past: Gathered,
    of: VecDeque<Arc<Part>>,
}

impl LiveReport {
    /// Of what this observer has heard.
    pub fn new(live: Live) -> LiveReport {
        LiveReport { live, ..LiveReport::default() }
    }

    /// The report of the last 60 whole minutes and of the one under way. The course has
    /// whole minutes alone.
    pub fn report(&mut self) -> ObservedReport {
        let (past, now) = {
            let shown = self.live.shown();
            (shown.past.clone(), shown.now.clone())
        };
        let is_known = past.len() == self.of.len()
            && past.iter().zip(&self.of).all(|(one, other)| Arc::ptr_eq(one, other));
        if !is_known {
            self.past = Gathered::new(ReportSettings::default());
            past.iter().for_each(|part| self.past.part(part));
            self.of = past;
        }
        let mut gathered = self.past.clone();
        let is_begun = now.minute.unix_ns > 0;
        if is_begun {
            gathered.part(&now);
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

    const START_S: u64 = 1_795_539_600;

    fn part(minute: u64, connections: u64) -> Part {
        let unix_ns = (START_S + 60 * minute) * 1_000_000_000;
        let mut part = Part { minute: Minute { unix_ns, ..Minute::default() }, ..Part::default() };
        let ended = Ended { acked_bytes: 4_000_000, busy_us: 1_000_000, ..Ended::default() };
        for _ in 0..connections {
            part.minute.cells.add("office".into(), "bbr".into(), &ended);
        }
        (part.rows, part.heat) = (connections, Heat::from([((52, 0), connections)]));
        part
    }

    /// Of two hours the last one is reported, and the minute under way; the sums are those
    /// since the start.
    #[test]
    fn an_hour_is_shown_and_the_sums_go_on() {
        let live = Live::default();
        let mut reports = LiveReport::new(live.clone());
        assert_eq!((reports.report().connections, live.totals().1.len()), (0, 0));
        let mut ended = Cells::default();
        for minute in 0..120 {
            let part = part(minute, minute);
            ended.merge(&part.minute.cells);
            live.ended(part, &ended);
        }
        let counts = Counts { reports: 9, ..Counts::default() };
        live.now(part(120, 7), counts);
        for _ in 0..2 {
            let report = reports.report();
            assert_eq!(report.connections, (60..120).sum::<u64>() + 7);
            assert_eq!((report.minutes, report.course.points.len()), (61, 60));
            assert_eq!(report.heat.iter().map(|bin| bin.connections).sum::<u64>(), 5377);
            assert_eq!(report.from_unix_s, START_S + 3600);
        }
        let (told, cells) = live.totals();
        assert_eq!(told, counts);
        assert_eq!(cells.values().map(|cell| cell.connections).sum::<u64>(), 7147);
        // The next minute has begun, and nothing of it is known yet.
        ended.merge(&part(120, 8).minute.cells);
        live.ended(part(120, 8), &ended);
        let report = reports.report();
        assert_eq!(report.connections, (61..120).sum::<u64>() + 8);
        assert_eq!((report.minutes, report.course.points.len()), (60, 60));
    }

    /// What two runs of one minute wrote is one minute, and the page of the third goes on.
    #[test]
    fn a_page_goes_on_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, parts: &[Part]| {
            let minutes: Vec<Minute> = parts.iter().map(|part| part.minute.clone()).collect();
            minutes::write(&folder.path().join(name), &minutes).unwrap();
        };
        write("minutes-1.parquet", &[part(0, 1000)]);
        write("minutes-2.parquet", &[part(50, 3), part(51, 4)]);
        write("minutes-3.parquet", &[part(51, 5)]);
        let now = Duration::from_secs(START_S + 90 * 60 + 20);
        let (live, wrong) = Live::recent(folder.path(), now);
        assert!(wrong.is_empty(), "{wrong:?}");
        let mut reports = LiveReport::new(live.clone());
        let report = reports.report();
        assert_eq!((report.connections, report.minutes), (12, 2));
        // Sums are this run's alone.
        assert!(live.totals().1.is_empty());
        live.ended(part(51, 6), &Cells::default());
        assert_eq!(reports.report().connections, 18);
        std::fs::write(folder.path().join("minutes-4.parquet"), "PAR1").unwrap();
        let (live, wrong) = Live::recent(folder.path(), now);
        assert_eq!((LiveReport::new(live).report().connections, wrong.len()), (12, 1));
        let (live, wrong) = Live::recent(&folder.path().join("none"), now);
        assert_eq!((LiveReport::new(live).report().minutes, wrong.len()), (0, 0));
    }
}
