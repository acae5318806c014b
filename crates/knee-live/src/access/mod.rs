//! Report on access logs: throughput and completion times from the durations that servers log. It
//! reads each log once, line by line, and keeps sums and distributions only.

mod assemble;
mod course;
mod sums;

use crate::{Groups, LiveError, Providers};
use knee_foreign::{AccessLines, Extent};
use knee_record::{LogFile, LogPassedOver, LogReport};
use std::io::Read;
use std::path::Path;
use sums::Sums;

/// Settings of a report on logs.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// Groups of clients' prefixes.
    pub groups: Groups,
    /// Networks of the clients.
    pub providers: Option<Providers>,
    /// Moment of a change, nanoseconds since 1970: what was logged before and after it is compared.
    pub since_ns: Option<i64>,
}

/// A report on logs while they are read.
#[derive(Debug)]
pub struct LogReader {
    sums: Sums,
    logs: Vec<LogFile>,
}

impl LogReader {
    /// Begins without logs.
    pub fn new(settings: LogSettings) -> LogReader {
        LogReader { sums: Sums::new(settings), logs: Vec::new() }
    }

    /// Reads a log to its end.
    ///
    /// # Errors
    /// [`LiveError::Table`] with the line, and what to write instead.
    pub fn read(&mut self, path: &Path, content: impl Read) -> Result<(), LiveError> {
        let wrong = |error| LiveError::file(path, error);
        let mut lines = AccessLines::open(content, Extent::Whole).map_err(wrong)?;
        let mut transfers = 0;
        self.sums.begin_log();
        while let Some(transfer) = lines.next_transfer().map_err(wrong)? {
            self.sums.add(transfer);
            transfers += 1;
        }
        let passed_over = lines.passed_over().into_iter().map(|over| LogPassedOver {
            reason: over.reason.to_string(),
            lines: over.lines as u64,
            first: over.first as u64,
        });
        self.logs.push(LogFile {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            format: lines.format().to_string(),
            transfers,
            passed_over: passed_over.collect(),
        });
        Ok(())
    }

    /// Returns the report on everything that was read.
    pub fn report(self) -> LogReport {
        assemble::report(&self.sums, self.logs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::{LogCell, ObservedSpread};
    use knee_units::statistics::Sketch;

    /// `date -u -d '2026-03-12 10:00:00' +%s`.
    const BEGAN_S: u64 = 1_773_309_600;

    /// A line, as whoever wrote the log knows it.
    struct Line {
        at_s: u64,
        bytes: u64,
        duration_ms: u64,
        server_ms: u64,
        client: &'static str,
        protocol: &'static str,
        controller: &'static str,
    }

    /// 1 kB to 40 MB over two hours.
    fn made() -> Vec<Line> {
        let one = |number: u64| {
            let bytes = 1000 * (1 + number * 7919 % 40_000);
            let duration_ms = 10 + bytes / (1000 * (1 + number % 9));
            Line {
                at_s: BEGAN_S + number * 6,
                bytes,
                duration_ms,
                server_ms: duration_ms / (2 + number % 3),
                client: ["192.0.2.7", "198.51.100.9", "2001:db8:1::7"][(number % 3) as usize],
                protocol: ["HTTP/1.1", "HTTP/2.0", "HTTP/3"][(number / 3 % 3) as usize],
                controller: ["bbr", "cubic"][(number / 5 % 2) as usize],
            }
        };
        (0..1200).map(one).collect()
    }

    fn text(made: &[Line]) -> String {
        let line = |one: &Line| {
            let Line { at_s, bytes, duration_ms, server_ms, client, protocol, controller } = one;
            format!(
                "{{\"ts\":{at_s},\"bytes\":{bytes},\"duration_ms\":{duration_ms},\"ttfb_ms\":{server_ms},\
                 \"client_ip\":\"{client}\",\"protocol\":\"{protocol}\",\"cc\":\"{controller}\",\
                 \"delivery_rate_bps\":{}}}\n",
                bytes * 16
            )
        };
        made.iter().map(line).collect()
    }

    fn report(settings: LogSettings, texts: &[&str]) -> LogReport {
        let mut reader = LogReader::new(settings);
        for text in texts {
            reader.read(Path::new("logs/access.log"), text.as_bytes()).unwrap();
        }
        reader.report()
    }

    /// Nearest-rank quantile.
    fn exact(mut values: Vec<f64>, part: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[((part * values.len() as f64).ceil() as usize).max(1) - 1]
    }

    fn near(found: Option<ObservedSpread>, values: Vec<f64>) {
        let found = found.unwrap();
        assert_eq!(found.count, values.len() as u64);
        for (part, found) in [(0.05, found.p5), (0.5, found.p50), (0.95, found.p95)] {
            let exact = exact(values.clone(), part);
            assert!((found / exact - 1.0).abs() <= 2.0 * Sketch::ERROR + 1e-3, "{found} {exact}");
        }
    }

    fn check<'m>(cell: &LogCell, own: impl Iterator<Item = &'m Line>) {
        let own: Vec<&Line> = own.collect();
        let sum = |get: fn(&Line) -> u64| own.iter().map(|one| get(one)).sum::<u64>();
        assert_eq!(
            (cell.transfers, cell.bytes),
            (own.len() as u64, sum(|one| one.bytes)),
            "{cell:?}"
        );
        near(cell.time_us, own.iter().map(|one| one.duration_ms as f64 * 1e3).collect());
        let bps = |one: &&Line| one.bytes as f64 * 8e3 / one.duration_ms as f64;
        near(cell.throughput_bps, own.iter().map(bps).collect());
        let server = sum(|one| one.server_ms) as f64 / sum(|one| one.duration_ms) as f64;
        assert!((cell.server_ratio.unwrap() - server).abs() < 1e-9);
        near(cell.delivery_ratio, own.iter().map(|one| 0.5e3 / one.duration_ms as f64).collect());
    }

    fn large(one: &&Line) -> bool {
        one.bytes >= 3_000_000
    }

    #[test]
    fn figures_are_those_of_the_lines() {
        let made = made();
        let found = report(LogSettings::default(), &[&text(&made)]);
        check(&found.all, made.iter());
        check(&found.large, made.iter().filter(large));
        check(&found.small, made.iter().filter(|one| !large(one)));
        assert_eq!(found.classes.iter().map(|cell| cell.transfers).sum::<u64>(), 1200);
        let is_large = |cell: &LogCell| cell.class == "3 MB and more";
        for cell in &found.controllers {
            let own = made.iter().filter(|one| one.controller == cell.name);
            check(cell, own.filter(|one| large(one) == is_large(cell)));
        }
        for cell in &found.protocols {
            let own = made.iter().filter(|one| one.protocol.starts_with(&cell.name));
            check(cell, own.filter(|one| large(one) == is_large(cell)));
        }
        for cell in &found.prefixes {
            let own = made.iter().filter(|one| cell.name.starts_with(&one.client[..7]));
            check(cell, own.filter(|one| large(one) == is_large(cell)));
        }
        let counts = [found.controllers.len(), found.protocols.len(), found.prefixes.len()];
        assert_eq!((counts, found.other_prefixes), ([4, 6, 6], 0));
        let from = BEGAN_S as i64;
        assert_eq!((found.from_unix_s, found.to_unix_s), (Some(from), Some(from + 1199 * 6)));
        assert_eq!((found.dated, found.without_time, found.without_duration), (true, 0, 0));
        assert_eq!(found.heat.iter().map(|bin| bin.connections).sum::<u64>(), 1200);
        assert_eq!(found.course.points.iter().map(|point| point.transfers).sum::<u64>(), 1200);
        assert_eq!(found.resolution_s, Some(1e-3));
        // Two logs are as one of both.
        let (first, second) = made.split_at(700);
        let both = report(LogSettings::default(), &[&text(second), &text(first)]);
        assert_eq!(both.logs.len(), 2);
        assert_eq!(LogReport { logs: found.logs.clone(), ..both }, found);
    }

    #[test]
    fn before_and_after_a_moment_and_two_protocols_stand_beside_each_other() {
        let made = made();
        let moment_s = BEGAN_S + 3600;
        let groups = Groups::new(vec!["one=192.0.2.0/24".parse().unwrap()]).unwrap();
        let table = "prefix,asn,name\n198.51.0.0/16,64496,Net\n2001:db8::/32,64497,\n";
        let providers = Some(Providers::read(Path::new("networks.csv"), table).unwrap());
        let since_ns = Some(moment_s as i64 * 1_000_000_000);
        let found = report(LogSettings { groups, providers, since_ns }, &[&text(&made)]);
        let [sides, protocols] = &found.beside[..] else { panic!("{:?}", found.beside) };
        assert_eq!((&*sides.names[0], &*sides.names[1]), ("before", "after"));
        for pair in &sides.pairs {
            for (side, cell) in pair.iter().enumerate() {
                let own = made.iter().filter(|one| (one.at_s >= moment_s) == (side == 1));
                let own = own.filter(|one| large(one) == (cell.class == "3 MB and more"));
                let client = match &*cell.name {
                    "one" | "in no line of the table" => Some("192.0.2.7"),
                    "others" => None,
                    "Net (AS64496)" => Some("198.51.100.9"),
                    "AS64497" => Some("2001:db8:1::7"),
                    _ => None,
                };
                let own = own.filter(|one| client.is_none_or(|client| one.client == client));
                let is_other = cell.name == "others";
                let own = own.filter(|one| !is_other || one.client != "192.0.2.7");
                let protocol = if cell.name.starts_with("HTTP") { &*cell.name } else { "" };
                check(cell, own.filter(|one| one.protocol.starts_with(protocol)));
            }
        }
        // All, three protocols, two groups and three rows of providers, with two sizes each.
        assert_eq!(sides.pairs.len(), 18);
        let counts = sides.heats.iter().map(|bins| bins.iter().map(|bin| bin.connections).sum());
        assert_eq!(counts.collect::<Vec<u64>>(), [600, 600]);
        assert_eq!((&*protocols.names[0], &*protocols.names[1]), ("HTTP/2", "HTTP/3"));
        let pairs = protocols.pairs.iter().flatten().map(|cell| cell.transfers);
        let newer = made.iter().filter(|one| one.protocol != "HTTP/1.1").count();
        assert_eq!(pairs.sum::<u64>(), newer as u64);
        assert_eq!(found.groups.len() + found.providers.len(), 10);
    }

    /// What a log lacks is said, not made up.
    #[test]
    fn what_is_missing_is_counted() {
        let common = "192.0.2.1 - - [12/Mar/2026:10:00:01 +0000] \"GET / HTTP/1.1\" 200 53\n";
        let found = report(LogSettings::default(), &[common]);
        assert_eq!((found.without_duration, found.all.transfers), (1, 1));
        assert_eq!((found.all.time_us, found.all.throughput_bps), (None, None));
        assert!(found.heat.is_empty() && found.beside.is_empty() && found.resolution_s.is_none());
        let lines = "{\"bytes\":5,\"duration_ms\":0}\n{\"bytes\":5,\"duration\":7}\n\
                     {\"bytes\":5,\"duration_s\":2,\"time\":\"23:59:59\"}\n\
                     {\"bytes\":5,\"time\":\"00:00:01\"}\nhalf\n";
        let found = report(LogSettings::default(), &[lines]);
        assert_eq!((found.too_short, found.without_duration, found.without_unit), (1, 2, 1));
        assert_eq!((found.without_time, found.dated, found.resolution_s), (2, false, Some(1.0)));
        // Two seconds over midnight.
        assert_eq!((found.from_unix_s, found.to_unix_s), (Some(86_399), Some(86_401)));
        assert_eq!(found.logs[0].passed_over[0].first, 5);
        let mut reader = LogReader::new(LogSettings::default());
        let error = reader.read(Path::new("x.log"), &b"what\n"[..]).unwrap_err().to_string();
        assert!(error.starts_with("x.log, line 1: "), "{error}");
    }
}
