//! Access log of a proxy on the observed host, matched with the connections that carried its
//! objects.

use super::period::unix_s;
use crate::LiveError;
use flate2::bufread::MultiGzDecoder;
use ipnet::IpNet;
use knee_units::{LineError, Lines, Unpacked};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::net::IpAddr;
use std::path::Path;

/// Memory of the lines: this, and [`HELD_PER_BYTE`] for each byte of the file. Only a compressed file can
/// need more.
const HELD_MAX: u64 = 24 << 20;
const HELD_PER_BYTE: u64 = 8;
/// First bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Tolerance: a log may have whole seconds, and a line may be written after the connection's end.
const SLACK_MS: u64 = 1000;

const CLIENT: [&str; 3] = ["client", "remote_addr", "client_ip"];
const PORT: [&str; 3] = ["port", "remote_port", "client_port"];
const TIME: [&str; 4] = ["time", "msec", "time_iso8601", "timestamp"];
const BYTES: [&str; 3] = ["bytes", "bytes_sent", "body_bytes_sent"];
const SECONDS: [&str; 2] = ["seconds", "request_time"];
const MILLISECONDS: [&str; 1] = ["ms"];

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
    /// Reads a log of JSON lines, optionally compressed with gzip. Each line has the client's
    /// address (`client`, `remote_addr`, `client_ip`) and port (`port`, `remote_port`,
    /// `client_port`), a time within the request (`time`, `msec`, `time_iso8601`, `timestamp`:
    /// seconds since 1970, or RFC 3339 in UTC), the object's size (`bytes`, `bytes_sent`,
    /// `body_bytes_sent`) and, optionally, its duration (`seconds`, `request_time`, or `ms`). Text
    /// before the first brace, as written by syslog, is ignored; lines that lack a field are
    /// skipped.
    ///
    /// # Errors
    /// [`LiveError::Table`] if no line is usable, with the problem of the first; if the file cannot
    /// be read; or if it has more than 10,000,000 lines, or its lines take more than 24 MiB and eight
    /// times its size, which is `bytes`.
    pub fn read(
        path: &Path,
        mut content: impl BufRead,
        bytes: u64,
    ) -> Result<AccessLog, LiveError> {
        let wrong = |line: u64, problem: String, advice: &str| LiveError::Table {
            path: path.to_path_buf(),
            line,
            problem,
            advice: advice.to_string(),
        };
        let unread = |line, error: LineError| wrong(line, error.problem(), error.advice());
        let start = content.fill_buf().map_err(|error| unread(1, LineError::Io(error)))?;
        let content: Box<dyn Read + '_> = match start.starts_with(&GZIP) {
            true => Box::new(Unpacked::new(MultiGzDecoder::new(content))),
            false => Box::new(content),
        };
        let mut lines = Lines::open(content).map_err(|error| unread(1, error))?;
        let lines_max =
            bytes.saturating_mul(HELD_PER_BYTE).saturating_add(HELD_MAX) / size_of::<Line>() as u64;
        let (mut log, mut first) = (AccessLog::default(), None);
        loop {
            let number = lines.number() as u64 + 1;
            let Some(text) = lines.next_line().map_err(|error| unread(number, error))? else {
                break;
            };
            if text.trim_ascii().is_empty() {
                continue;
            }
            match line(text) {
                Ok(_) if log.lines == lines_max => {
                    let problem = "the lines up to here take too much memory for this file";
                    return Err(wrong(number, problem.to_string(), "use a part of it"));
                }
                Ok((port, line)) => {
                    log.waiting.entry(port).or_default().push(line);
                    log.lines += 1;
                }
                Err(lacks) => {
                    first.get_or_insert((number, lacks));
                    log.passed_over += 1;
                }
            }
        }
        if log.lines > 0 {
            return Ok(log);
        }
        let (number, lacks) = first.unwrap_or((1, "it is empty"));
        Err(wrong(number, lacks.to_string(), "write JSON lines as docs/observe.md shows"))
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

/// Parses a line; returns it with the client's port, or the problem.
fn line(text: &[u8]) -> Result<(u16, Line), &'static str> {
    let begin = text.iter().position(|byte| *byte == b'{').ok_or("it is not a JSON object")?;
    let fields: Map<String, Value> =
        serde_json::from_slice(&text[begin..]).map_err(|_| "it is not a JSON object")?;
    let find = |names: &[&str]| names.iter().find_map(|name| fields.get(*name));
    let number = |names: &[&str]| match find(names)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let client = find(&CLIENT).and_then(Value::as_str).and_then(|text| text.parse().ok());
    let client: IpAddr = client.ok_or("it has no address of the client")?;
    let port = number(&PORT).filter(|port| (1.0..=65_535.0).contains(port));
    let unix_ms = number(&TIME).map(|seconds| (seconds * 1e3) as u64).or_else(|| {
        // UTC is written as Z or +00:00.
        let text = find(&TIME)?.as_str()?.trim_end_matches("+00:00");
        let text = text.trim_end_matches('Z');
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let part: f64 = format!("0.{part}").parse().ok()?;
        Some(unix_s(whole)? * 1000 + (part * 1e3) as u64)
    });
    let seconds = number(&SECONDS).or_else(|| number(&MILLISECONDS).map(|ms| ms / 1e3));
    let line = Line {
        client: client.to_canonical(),
        unix_ms: unix_ms.ok_or("it has no time")?,
        bytes: number(&BYTES).filter(|bytes| *bytes > 0.0).ok_or("it has no size")? as u64,
        seconds: seconds.filter(|seconds| *seconds > 0.0),
    };
    Ok((port.ok_or("it has no port of the client")? as u16, line))
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
            ("", "it is empty"),
            ("192.0.2.7 - - [x] \"GET /\" 200 5\n", "line 1: it is not a JSON object"),
            ("\n{\"client\":\"192.0.2.7\",\"time\":1,\"bytes\":7}\n", "line 2: it has no port"),
            ("{\"client\":\"192.0.2.7\",\"port\":1,\"time\":\"x\",\"bytes\":7}\n", "no time"),
        ] {
            let said = read(text.as_bytes()).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
