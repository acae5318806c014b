//! What ping writes: a line for each answer, with its time under `-D`.

use crate::columns::Columns;
use crate::error::FileError;
use crate::instant::decimal_ns;
use crate::measured::{Measured, Measurement, Probes, ROWS_MAX};
use crate::quantity::Quantity;
use crate::series::{DAMAGED, Series, Taken};
use crate::unpack::{lines, next_line};

/// Name of the format.
pub(crate) const PING: &str = "ping";

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// When it came, nanoseconds since 1970; `None` without `-D`.
    pub at_ns: Option<i128>,
    /// Round-trip time, seconds.
    pub rtt_s: f64,
}

/// Returns whether a file begins as what ping writes.
pub(crate) fn is_ping(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines();
    let is_head = lines.clone().next().is_some_and(|line| {
        line.starts_with("PING ") && (line.contains("bytes of data") || line.contains("data bytes"))
    });
    is_head || lines.any(|line| answer(line).is_some())
}

/// Parses the line of an answer: `[1773309601.123456] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57
/// time=12.3 ms`.
pub(crate) fn answer(line: &str) -> Option<Answer> {
    let (at_ns, rest) = match line.strip_prefix('[') {
        Some(rest) => {
            let (at, rest) = rest.split_once(']')?;
            (Some(decimal_ns(at, 1_000_000_000)?), rest)
        }
        None => (None, line),
    };
    if !rest.contains(" bytes from ") || !(rest.contains("icmp_seq=") || rest.contains("seq=")) {
        return None;
    }
    let (_, after) = rest.split_once("time=").or_else(|| rest.split_once("time<"))?;
    let (number, unit) = after.trim().split_once(' ')?;
    let size = match unit.split_whitespace().next()? {
        "ms" => 1e-3,
        "us" => 1e-6,
        "s" => 1.0,
        _ => return None,
    };
    let rtt_s = number.parse::<f64>().ok()? * size;
    (rtt_s.is_finite() && rtt_s >= 0.0).then_some(Answer { at_ns, rtt_s })
}

/// Reads the answers, and how many packets were sent: as its last lines say, or as the numbers of the
/// packets do if it was stopped before.
pub(crate) fn measurement(bytes: &[u8]) -> Result<Measurement, FileError> {
    let mut lines = lines(bytes)?;
    let (mut line, mut answers) = (String::new(), Vec::new());
    let (mut sent, mut last) = (None, 0_u64);
    while next_line(&mut lines, &mut line)? {
        if let Some(Answer { at_ns, rtt_s }) = answer(&line) {
            // One that came twice does not count again.
            if !line.contains("(DUP!)") {
                answers.push((at_ns.map(|ns| ns as f64 / 1e9), rtt_s));
            }
            if answers.len() > ROWS_MAX {
                let problem = format!("there are more than {ROWS_MAX} answers");
                return Err(FileError::new(lines.number(), problem, "use a part of it"));
            }
        } else if let Some((count, _)) = line.split_once(" packets transmitted") {
            sent = count.trim().parse().ok();
        }
        let number = line.split_once("seq=").map(|(_, rest)| rest);
        let number = number.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        if let Some(number) = number.flatten().and_then(|text| text.parse().ok()) {
            // After 65535 they begin again, which the last lines of a whole file do not.
            last = last.max(number);
        }
    }
    let wraps = answers.len() as u64 > last;
    let sent = sent.or(Some(last).filter(|_| !wraps)).filter(|sent| *sent >= answers.len() as u64);
    if answers.is_empty() && sent.unwrap_or(0) == 0 {
        return Err(FileError::new(1, "it has no answer", "write the name of another file"));
    }
    let probes = Probes { sent, answers };
    Ok(Measurement { format: PING, measured: vec![Measured::Probes(probes)] })
}

/// Reads the round-trip times.
pub(crate) fn series(
    bytes: &[u8],
    quantity: Quantity,
    columns: &Columns<'_>,
) -> Result<Series, FileError> {
    if quantity != Quantity::Delay {
        let problem = format!("ping records round-trip times, not {}", quantity.name());
        return Err(FileError::new(1, problem, "use it for a delay, with scale = 0.5"));
    }
    let mut lines = lines(bytes)?;
    let mut taken = Taken::new(quantity, columns.gap);
    let mut line = String::new();
    let mut without_time = None;
    while next_line(&mut lines, &mut line)? {
        match answer(&line) {
            Some(Answer { at_ns: Some(at), rtt_s }) => taken.add(lines.number(), at, rtt_s)?,
            Some(_) => without_time = without_time.or(Some(lines.number())),
            None if line.contains(" bytes from ") => taken.pass_over(DAMAGED, lines.number()),
            // Its first and last lines, and what was not answered.
            None => {}
        }
    }
    taken.series(PING).ok_or_else(|| match without_time {
        Some(line) => {
            let problem = "the answers have no time";
            FileError::new(line, problem, "record them with ping -D")
        }
        None => FileError::new(1, "no packet came back", "write the name of another file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_other_lines() {
        let line = "[1773309601.123456] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.5 ms";
        let at_ns = Some(1_773_309_601_123_456_000);
        assert_eq!(answer(line), Some(Answer { at_ns, rtt_s: 0.0125 }));
        let line = "64 bytes from ::1 (::1): icmp_seq=2 ttl=64 time=0.05 ms";
        assert_eq!(answer(line), Some(Answer { at_ns: None, rtt_s: 5e-5 }));
        for other in [
            "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.",
            "[1773309601.1] no answer yet for icmp_seq=3",
            "rtt min/avg/max/mdev = 0.05/0.05/0.05/0.0 ms",
            "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=later ms",
            "",
        ] {
            assert_eq!(answer(other), None, "{other}");
        }
    }
}
