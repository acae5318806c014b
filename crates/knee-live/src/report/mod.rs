//! Report on a folder of `knee observe`, from aggregates of minutes and, for details, from rows.

pub(crate) mod assemble;
mod gather;
mod log;
mod period;
mod providers;

pub(crate) use gather::{Gathered, heat_bin, size_name};
pub use log::AccessLog;
pub use period::{Period, unix_s};
pub use providers::Providers;

use crate::files::{CONNECTIONS, ENDING, MINUTES, OPEN};
use crate::minutes;
use crate::{LiveError, row};
use knee_record::{Error, ObservedReport, PART, each_connection};
use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a connection that a report reads.
pub(crate) const COLUMNS: [&str; 12] = [
    "end_ns",
    "acked_bytes",
    "sent_bytes",
    "retransmitted_bytes",
    "rtt_min_ns",
    "busy_ns",
    "receive_limited_ns",
    "timeouts",
    "cc",
    "prefix",
    "remote_port",
    "weight",
];

/// Settings of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportSettings {
    /// Restricts it to connections that ended in one of these; two periods are compared. Empty: all
    /// connections.
    pub periods: Vec<Period>,
    /// Two controllers to compare.
    pub controllers: Option<[String; 2]>,
    /// Networks of the clients.
    pub providers: Option<Providers>,
    /// Log of a proxy on this host.
    pub log: Option<AccessLog>,
}

/// Whether a folder contains output of `knee observe`.
pub fn holds_observed(directory: &Path) -> bool {
    list(directory, MINUTES).is_ok_and(|files| !files.is_empty())
}

/// Whether a folder contains open connections, which [`report`] does not cover.
pub fn holds_open(directory: &Path) -> bool {
    list(directory, OPEN).is_ok_and(|files| !files.is_empty())
}

/// Whether `knee observe` has begun to write to a folder, and completed no file yet.
pub fn is_begun(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.contains(CONNECTIONS) && name.ends_with(PART))
}

/// Reads a folder of `knee observe` and computes its report.
///
/// # Errors
/// [`LiveError::Record`] for a file that is unreadable, damaged or of another schema;
/// [`LiveError::NothingObserved`] if no minute lies in the periods.
pub fn report(directory: &Path, settings: ReportSettings) -> Result<ObservedReport, LiveError> {
    let mut gathered = Gathered::new(settings);
    for file in list(directory, MINUTES)? {
        minutes::read(&file, |minute| gathered.minute(&minute))?;
    }
    if gathered.is_empty() {
        return Err(LiveError::NothingObserved(directory.to_path_buf()));
    }
    for file in list(directory, CONNECTIONS)? {
        each_connection(&file, &COLUMNS, |epoch_unix_ns, one| {
            let end_unix_ns = epoch_unix_ns.saturating_add(one.end_ns);
            gathered.row(end_unix_ns, one, &row::ended(one));
        })?;
    }
    let report = assemble::report(gathered);
    if let Some(beside) = report.beside.as_ref().filter(|beside| beside.of_controllers) {
        let mut seen: Vec<&str> = report.controllers.iter().map(|cell| &*cell.controller).collect();
        seen.sort_unstable();
        seen.dedup();
        if let Some(name) = beside.names.iter().find(|name| !seen.contains(&name.as_str())) {
            seen.retain(|name| !name.is_empty());
            return Err(LiveError::NoController { name: name.clone(), seen: seen.join(", ") });
        }
    }
    Ok(report)
}

/// Files with this name prefix, oldest first.
pub(crate) fn list(directory: &Path, start: &str) -> Result<Vec<PathBuf>, LiveError> {
    let wrong = |source| Error::Io { action: "list", path: directory.to_path_buf(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(start) && name.ends_with(ENDING) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Ended;
    use crate::minutes::Minute;
    use knee_record::{ConnectionFile, ConnectionRecord};
    use knee_units::statistics::Sketch;

    /// 2026-11-24T17:00Z.
    const BEGAN_S: u64 = 1_795_539_600;

    /// A connection of a synthetic folder.
    struct Connection {
        minute: u64,
        group: &'static str,
        cc: &'static str,
        prefix: &'static str,
        port: u16,
        ended: Ended,
    }

    /// Deterministic connections: 1 kB to 40 MB over two hours, two groups, two controllers.
    fn made() -> Vec<Connection> {
        let one = |number: u64| {
            let acked_bytes = 1000 * (1 + number * 7919 % 40_000);
            let busy_us = 10_000 + acked_bytes / (1 + number % 9);
            let retransmitted_bytes = if number.is_multiple_of(3) { 1460 } else { 0 };
            Connection {
                minute: number % 120,
                group: ["office", "others"][(number % 2) as usize],
                cc: ["bbr", "cubic", ""][(number / 2 % 3) as usize],
                prefix: ["192.0.2.0/24", "198.51.100.0/24"][(number / 5 % 2) as usize],
                port: 10_000 + number as u16,
                ended: Ended {
                    acked_bytes,
                    sent_bytes: acked_bytes + retransmitted_bytes,
                    retransmitted_bytes,
                    busy_us,
                    receive_limited_us: busy_us / 4,
                    rtt_min_us: Some(1000.0 * (1 + number % 50) as f64),
                    ..Ended::default()
                },
            }
        };
        (0..1200).map(one).collect()
    }

    fn write(directory: &Path, made: &[Connection], lost: u64) {
        let mut minutes: Vec<Minute> = Vec::new();
        for minute in 0..120 {
            let unix_ns = (BEGAN_S + 60 * minute) * 1_000_000_000;
            let mut one =
                Minute { unix_ns, lost: if minute == 7 { lost } else { 0 }, ..Minute::default() };
            for made in made.iter().filter(|made| made.minute == minute) {
                one.cells.add(made.group.into(), made.cc.into(), "".into(), &made.ended);
            }
            minutes.push(one);
        }
        minutes::write(&directory.join("minutes-1.parquet"), &minutes[..60]).unwrap();
        minutes::write(&directory.join("minutes-2.parquet"), &minutes[60..]).unwrap();
        let path = directory.join("connections-1.parquet");
        let mut file = ConnectionFile::create(&path, "live", BEGAN_S * 1_000_000_000).unwrap();
        for made in made {
            let ended = &made.ended;
            let row = ConnectionRecord {
                end_ns: (made.minute * 60 + 30) * 1_000_000_000,
                acked_bytes: Some(ended.acked_bytes),
                sent_bytes: Some(ended.sent_bytes),
                retransmitted_bytes: Some(ended.retransmitted_bytes),
                busy_ns: Some(ended.busy_us * 1000),
                cc: made.cc.into(),
                prefix: made.prefix.into(),
                remote_port: Some(made.port),
                weight: Some(2.0),
                ..ConnectionRecord::default()
            };
            file.push(&row).unwrap();
        }
        file.finish().unwrap();
    }

    fn made_report(settings: ReportSettings) -> (Vec<Connection>, ObservedReport) {
        let (folder, made) = (tempfile::tempdir().unwrap(), made());
        write(folder.path(), &made, 3);
        let report = report(folder.path(), settings).unwrap();
        (made, report)
    }

    /// Nearest-rank quantile.
    fn exact(mut values: Vec<f64>, part: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[((part * values.len() as f64).ceil() as usize).max(1) - 1]
    }

    fn near(found: f64, exact: f64) {
        assert!((found / exact - 1.0).abs() <= Sketch::ERROR, "{found} {exact}");
    }

    #[test]
    fn figures_are_those_of_the_connections() {
        let (made, report) = made_report(ReportSettings::default());
        assert_eq!((report.connections, report.rows, report.lost_reports), (1200, 1200, 3));
        assert_eq!((report.minutes, report.minutes_with_loss, report.valid), (120, 1, true));
        assert_eq!((report.from_unix_s, report.to_unix_s), (BEGAN_S, BEGAN_S + 7200));
        let large = |one: &&Connection| one.ended.acked_bytes >= 3_000_000;
        let bps = |one: &Connection| one.ended.acked_bytes as f64 * 8e6 / one.ended.busy_us as f64;
        let spread = report.large.throughput_bps.unwrap();
        for (part, found) in [(0.05, spread.p5), (0.5, spread.p50), (0.95, spread.p95)] {
            near(found, exact(made.iter().filter(large).map(bps).collect(), part));
        }
        // Sums by class and controller, and by group.
        for cell in &report.controllers {
            let class = knee_record::size_classes().into_iter().find(|c| c.name == cell.class);
            let own = made.iter().filter(|one| {
                one.cc == cell.controller
                    && class.is_some_and(|class| class.sizes.contains(one.ended.acked_bytes))
            });
            assert_eq!(cell.acked_bytes, own.clone().map(|one| one.ended.acked_bytes).sum::<u64>());
            near(
                cell.busy_us.unwrap().p50,
                exact(own.map(|m| m.ended.busy_us as f64).collect(), 0.5),
            );
        }
        let sum =
            |cells: &[knee_record::ObservedCell]| cells.iter().map(|c| c.connections).sum::<u64>();
        assert_eq!((sum(&report.controllers), sum(&report.groups)), (1200, 1200));
        let again: u64 = made.iter().map(|one| one.ended.retransmitted_bytes).sum();
        assert_eq!(report.all.retransmitted_bytes, again);
        // Hours, course and heat map include every connection; the heat map has weights.
        let hours: Vec<u32> = report.hours.iter().map(|hour| hour.hour).collect();
        assert_eq!(hours, [17, 18]);
        assert_eq!(report.hours.iter().map(|hour| hour.all.connections).sum::<u64>(), 1200);
        assert_eq!(report.course.points.iter().map(|p| p.connections).sum::<u64>(), 1200);
        assert_eq!(report.course.step_s, 60);
        assert_eq!(report.heat.iter().map(|bin| bin.connections).sum::<u64>(), 2400);
    }

    #[test]
    fn periods_and_controllers_stand_beside_each_other() {
        let periods = ["2026-11-24T17:00/2026-11-24T18:00", "2026-11-24T18:00/2026-11-24T18:30"];
        let periods: Vec<Period> = periods.iter().map(|text| text.parse().unwrap()).collect();
        let settings = ReportSettings { periods, ..ReportSettings::default() };
        let (made, report) = made_report(settings);
        let beside = report.beside.unwrap();
        let within = |from: u64, to: u64| {
            let own = made.iter().filter(|one| (from..to).contains(&one.minute));
            own.filter(|one| one.ended.acked_bytes >= 3_000_000).count() as u64
        };
        let [first, second] = &beside.pairs[1];
        assert_eq!((&*first.group, &*first.class), ("", "3 MB and more"));
        assert_eq!([first.connections, second.connections], [within(0, 60), within(60, 90)]);
        assert_eq!((report.connections, report.rows), (900, 900));

        let controllers = Some(["cubic", "bbr"].map(str::to_string));
        let settings = ReportSettings { controllers, ..ReportSettings::default() };
        let (made, report) = made_report(settings);
        let beside = report.beside.unwrap();
        for [first, second] in &beside.pairs {
            for cell in [first, second] {
                let own = made.iter().filter(|one| one.cc == cell.controller);
                let own = own.filter(|one| cell.group.is_empty() || one.group == cell.group);
                let large = cell.class == "3 MB and more";
                let own = own.filter(|one| (one.ended.acked_bytes >= 3_000_000) == large);
                assert_eq!(cell.connections, own.count() as u64, "{cell:?}");
            }
        }
        // All connections and two groups, with two sizes each.
        assert_eq!(beside.pairs.len(), 6);
    }

    /// A controller that no connection had is an error, not a table of dashes.
    #[test]
    fn a_controller_that_was_not_seen_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &made(), 0);
        let controllers = Some(["cubic", "vegas"].map(str::to_string));
        let settings = ReportSettings { controllers, ..ReportSettings::default() };
        let error = report(folder.path(), settings).unwrap_err();
        assert!(
            matches!(&error, LiveError::NoController { name, seen } if name == "vegas" && seen == "bbr, cubic"),
            "{error}"
        );
    }

    #[test]
    fn networks_and_objects_come_from_rows() {
        let table = "prefix,asn,name\n192.0.2.0/24,AS64496,One\n203.0.113.0/24,64497,Two\n";
        let providers = Providers::read(Path::new("networks.csv"), table).unwrap();
        let line = |made: &Connection| {
            let unix_s = BEGAN_S + made.minute * 60 + 20;
            let client = made.prefix.replace(".0/24", ".77");
            let (port, bytes) = (made.port, made.ended.acked_bytes - 300);
            format!(
                "{{\"client\":\"{client}\",\"port\":{port},\"time\":{unix_s}.5,\"bytes\":{bytes},\"seconds\":2}}\n"
            )
        };
        let text: String = made().iter().step_by(2).map(line).collect();
        let log =
            AccessLog::read(Path::new("access.log"), text.as_bytes(), text.len() as u64).unwrap();
        let settings = ReportSettings {
            providers: Some(providers),
            log: Some(log),
            ..ReportSettings::default()
        };
        let (made, report) = made_report(settings);
        let one = report.providers.iter().find(|one| one.asn == Some(64_496)).unwrap();
        let own = made.iter().filter(|one| one.prefix == "192.0.2.0/24");
        let bytes: u64 = own.map(|one| 2 * one.ended.acked_bytes).sum();
        assert_eq!((&*one.name, one.all.acked_bytes), ("One", bytes));
        assert!(report.providers.iter().any(|one| one.asn.is_none()));
        assert_eq!(report.providers.len(), 2);
        let objects = report.objects.unwrap();
        assert_eq!((objects.lines, objects.joined), (600, 600));
        let cells = &objects.cells;
        assert_eq!(cells.iter().map(|cell| cell.alone).sum::<u64>(), 600);
        let bbr = cells.iter().find(|c| c.controller == "bbr" && c.class == "3 to 30 MB").unwrap();
        let own = made.iter().step_by(2).filter(|one| one.cc == "bbr");
        let sizes = own.map(|one| (one.ended.acked_bytes - 300) as f64);
        let sizes: Vec<f64> = sizes.filter(|size| (3e6..3e7).contains(size)).collect();
        assert_eq!(bbr.objects, sizes.len() as u64);
        near(bbr.log_throughput_bps.unwrap().p50, exact(sizes, 0.5) * 8.0 / 2.0);
    }

    #[test]
    fn what_is_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!holds_observed(folder.path()));
        write(folder.path(), &made(), 13);
        assert!(holds_observed(folder.path()));
        // Losses above 1 % of 1213.
        let settings = ReportSettings::default;
        assert!(!report(folder.path(), settings()).unwrap().valid);
        let periods = vec!["2026-11-23/2026-11-24".parse().unwrap()];
        let none = ReportSettings { periods, ..settings() };
        let said = report(folder.path(), none).unwrap_err().to_string();
        assert!(said.contains("nothing in"), "{said}");
        let file = folder.path().join("minutes-2.parquet");
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let said = report(folder.path(), settings()).unwrap_err().to_string();
        assert!(said.contains("minutes-2.parquet is damaged"), "{said}");
        fs::copy(folder.path().join("connections-1.parquet"), &file).unwrap();
        let said = report(folder.path(), settings()).unwrap_err().to_string();
        assert!(said.contains("has schema \"knee-connections/1\""), "{said}");
    }
}
