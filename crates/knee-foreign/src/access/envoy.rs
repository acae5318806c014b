//! Envoy's default text format, and Istio's, which has three more fields
//! (<https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage>).

use super::common::quoted;
use super::draft::{Draft, Miss, NOT_A_LINE};
use super::names::{Field, Span};

/// Parses `[start] "method path protocol" status flags received sent duration upstream
/// "forwarded for" …`, with the times in milliseconds. Istio has the details of the answer, of the
/// connection's end and of a failed handshake after the flags.
pub(super) fn read(line: &str, draft: &mut Draft) -> Result<(), Miss> {
    let parts = parts(line).ok_or(Miss::Over(NOT_A_LINE))?;
    draft.take(Field::Size(0), parts.sent);
    draft.take_time(0, parts.time);
    draft.take_request(parts.request);
    draft.take_client(parts.client);
    for (span, text) in [(Span::Whole, parts.duration), (Span::Upstream, parts.upstream)] {
        if let Ok(value) = text.parse::<f64>() {
            draft.span(span, 1e6 * value);
        }
    }
    Ok(())
}

/// Returns whether a line is in this format.
pub(super) fn is_line(line: &str) -> bool {
    parts(line).is_some()
}

struct Parts<'l> {
    time: &'l str,
    request: &'l str,
    sent: &'l str,
    duration: &'l str,
    upstream: &'l str,
    client: &'l str,
}

/// Fields of a line after the request, at most.
const FIELDS: usize = 10;

fn parts(line: &str) -> Option<Parts<'_>> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] \"")?;
    let (request, mut rest) = quoted(rest)?;
    let mut fields = [""; FIELDS];
    for field in &mut fields {
        rest = rest.trim_start();
        (*field, rest) = match rest.strip_prefix('"') {
            Some(text) => quoted(text)?,
            None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let from = if digits(fields[2]) { 2 } else { 5 };
    let [received, sent, duration, upstream, client] =
        fields.get(from..from + 5)?.try_into().ok()?;
    let is_line = digits(fields[0]) && digits(received) && digits(sent) && digits(duration);
    is_line.then_some(Parts { time, request, sent, duration, upstream, client })
}
