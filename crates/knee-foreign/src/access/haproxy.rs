//! HAProxy's HTTP log (<https://docs.haproxy.org/3.2/configuration.html#8.2.3>).

use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::{Field, Span};

/// Parses `client:port [date] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes … "request"`.
/// Before the first byte are TR, Tw, Tc and Tr: the request's arrival, the wait for a connection, its
/// handshake, and the wait for the server's answer.
pub(super) fn read(line: &str, draft: &mut Draft) -> Result<(), Miss> {
    let parts = parts(line).ok_or(Miss::Over(NOT_A_LINE))?;
    draft.take(Field::Size(0), parts.bytes);
    draft.take_client(parts.client);
    draft.take_time(0, parts.time);
    draft.take_request(parts.request);
    let [before @ .., whole] = parts.timers;
    // What was never reached is −1. A line that is written before the end has a plus sign: it says
    // nothing about the end.
    let whole = whole.filter(|whole| *whole >= 0.0);
    if let Some(whole) = whole {
        draft.span(Span::Whole, 1e6 * whole);
    }
    if before.iter().all(|timer| timer.is_some_and(|timer| timer >= 0.0)) {
        draft.span(Span::FirstByte, 1e6 * before.iter().flatten().sum::<f64>());
    }
    Ok(())
}

/// Returns whether a line is in this format.
pub(super) fn is_line(line: &str) -> bool {
    parts(line).is_some()
}

struct Parts<'l> {
    client: &'l str,
    time: &'l str,
    /// TR, Tw, Tc, Tr, Ta, milliseconds; `None` for one that is not final.
    timers: [Option<f64>; 5],
    bytes: &'l str,
    request: &'l str,
}

fn parts(line: &str) -> Option<Parts<'_>> {
    let (client, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] ")?;
    let mut fields = rest.split_ascii_whitespace();
    let (_frontend, server) = (fields.next()?, fields.next()?);
    let (timers, status, bytes) = (fields.next()?, fields.next()?, fields.next()?);
    let timer = |text: &str| match text.strip_prefix('+') {
        Some(_) => Some(None),
        None => text.parse::<f64>().ok().map(Some),
    };
    let timers: Vec<Option<f64>> = timers.split('/').map(timer).collect::<Option<_>>()?;
    let is_status = status == "-1" || status.len() == 3 && status.parse::<u16>().is_ok();
    let is_line = client.contains(':') && server.contains('/') && is_status;
    let bytes = bytes.strip_prefix('+').unwrap_or(bytes);
    let is_line = is_line && !bytes.is_empty() && bytes.bytes().all(|byte| byte.is_ascii_digit());
    let request = rest.find('"').map_or("", |at| rest[at + 1..].trim_end_matches('"'));
    let timers = timers.try_into().ok()?;
    is_line.then_some(Parts { client, time, timers, bytes, request })
}
