//! Access log of a proxy on the observed host, matched with the connections that carried its
//! objects.

use crate::LiveError;
use ipnet::IpNet;
use knee_foreign::{AccessLines, Extent, FileError, Moment, Transfer};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

/// Memory of the lines: this, and [`HELD_PER_BYTE`] for each byte of the file. Only a compressed
/// file can need more.
const HELD_MAX: u64 = 24 << 20;
const HELD_PER_BYTE: u64 = 8;
/// Tolerance: a log may have whole seconds, and a line may be written after the connection's end.
const SLACK_MS: u64 = 1000;

/// A transferred object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    client: IpAddr,
    /// A time within the request, milliseconds since 1970.
    unix_ms: u64,
    pub bytes: u64,
    /// Logged duration; `None` if it is missing or below the log's resolution.
    pub seconds: Option<f64>,
}

/// Log lines that wait for the end of their connections.
#[derive(Clone, Debug, Default)]
pub struct AccessLog {
    /// Lines by client port.
    waiting: BTreeMap<u16, Vec<Line>>,
    lines: u64,
    passed_over: u64,
}

impl AccessLog {
    /// Reads a log in any format of [`AccessLines`] that has the client's address and port, and a time
    /// within the request. Lines that lack one of them are skipped.
    ///
    /// # Errors
    /// [`LiveError::Table`] if no line is usable, with the problem of the first; if the file cannot
    /// be read; or if it has more than 10,000,000 lines, or its lines take more than 24 MiB and eight
    /// times its size, which is `bytes`.
    pub fn read(path: &Path, content: impl Read, bytes: u64) -> Result<AccessLog, LiveError> {
        let wrong = |error| LiveError::file(path, error);
        let mut lines = AccessLines::open(content, Extent::Kept).map_err(wrong)?;
        let lines_max =
            bytes.saturating_mul(HELD_PER_BYTE).saturating_add(HELD_MAX) / size_of::<Line>() as u64;
        let (mut log, mut first) = (AccessLog::default(), None);
        while let Some(one) = lines.next_transfer().map_err(wrong)? {
            match line(one) {
                Ok(_) if log.lines == lines_max => {
                    let problem = "the lines up to here take too much memory for this file";
                    return Err(wrong(FileError::new(one.line, problem, "use a part of it")));
                }
                Ok((port, line)) => {
                    log.waiting.entry(port).or_default().push(line);
                    log.lines += 1;
                }
                Err(lacks) => {
                    first.get_or_insert((one.line, lacks));
                    log.passed_over += 1;
                }
            }
        }
        log.passed_over += lines.passed_over().iter().map(|over| over.lines as u64).sum::<u64>();
        if log.lines > 0 {
            return Ok(log);
        }
        let (number, lacks) = first.unwrap_or((1, "it is empty"));
        Err(wrong(FileError::new(number, lacks, "write JSON lines as docs/observe.md shows")))
    }

    /// Number of lines read.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Number of incomplete lines.
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Takes the objects of an ended connection. Addresses and ports identify one connection at a
    /// time, so an object belongs to the first one that ended after it. Call this in the order in
    /// which connections end.
    pub(crate) fn take(&mut self, port: u16, net: IpNet, end_unix_ms: u64) -> Vec<Line> {
        let Some(waiting) = self.waiting.get_mut(&port) else { return Vec::new() };
        let is_its =
            |line: &Line| net.contains(&line.client) && line.unix_ms <= end_unix_ms + SLACK_MS;
        let (its, others) = waiting.iter().partition(|line| is_its(line));
        *waiting = others;
        its
    }
}

/// Returns a line with the client's port, or what it lacks.
fn line(one: &Transfer) -> Result<(u16, Line), &'static str> {
    let client = one.client.ok_or("it has no address of the client")?;
    let port = one.port.ok_or("it has no port of the client")?;
    let Some(Moment::Instant(at_ns)) = one.at else { return Err("it has no time") };
    let unix_ms = u64::try_from(at_ns / 1_000_000).map_err(|_| "it has no time")?;
    let seconds = one.duration_ns.filter(|nanos| *nanos > 0).map(|nanos| nanos as f64 / 1e9);
    Ok((port, Line { client, unix_ms, bytes: one.bytes, seconds }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use std::io::Write;

    const LOG: &str = "\
        {\"client\":\"192.0.2.7\",\"port\":40000,\"time\":1000.250,\"bytes\":5000,\"seconds\":0.5}\n\
        <134>proxy: {\"client_ip\":\"192.0.2.7\",\"client_port\":\"40000\",\
        \"timestamp\":\"1970-01-01T00:16:43.500Z\",\"bytes_sent\":1000,\"ms\":250}\n\
        {\"remote_addr\":\"192.0.2.9\",\"remote_port\":40000,\"msec\":1000,\"bytes\":7}\n\
        {\"client\":\"192.0.2.7\",\"time\":1,\"bytes\":7}\n";

    fn read(content: &[u8]) -> Result<AccessLog, LiveError> {
        AccessLog::read(Path::new("access.log"), content, content.len() as u64)
    }

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn an_object_is_on_the_first_connection_that_ends_after_it() {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(LOG.as_bytes()).unwrap();
        for content in [LOG.as_bytes().to_vec(), packed.finish().unwrap()] {
            let mut log = read(&content).unwrap();
            assert_eq!((log.lines(), log.passed_over()), (3, 1));
            let bytes = |lines: Vec<Line>| lines.iter().map(|line| line.bytes).collect::<Vec<_>>();
            // Another port, another address, and a connection that ended before the object.
            assert!(log.take(40001, net("192.0.2.7/32"), 2_000_000).is_empty());
            assert!(log.take(40000, net("192.0.2.8/32"), 2_000_000).is_empty());
            assert!(log.take(40000, net("192.0.2.7/32"), 900_000).is_empty());
            assert_eq!(bytes(log.take(40000, net("192.0.2.7/32"), 1_000_400)), [5000]);
            let second = log.take(40000, net("192.0.2.7/32"), 1_100_000);
            assert_eq!((second[0].unix_ms, second[0].seconds), (1_003_500, Some(0.25)));
            // The rest, by truncated prefix.
            assert_eq!(bytes(log.take(40000, net("192.0.2.0/24"), 1_100_000)), [7]);
        }
    }

    #[test]
    fn a_log_that_cannot_be_joined_is_refused() {
        for (text, part) in [
            ("", "there is no line in it"),
            ("192.0.2.7 - - [x] \"GET /\" 200 5\n", "line 1: it has no port"),
            ("\n{\"client\":\"192.0.2.7\",\"time\":1,\"bytes\":7}\n", "line 2: it has no port"),
            ("{\"client\":\"192.0.2.7\",\"port\":1,\"time\":\"x\",\"bytes\":7}\n", "no time"),
        ] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
