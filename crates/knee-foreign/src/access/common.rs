//! The Common and Combined Log Format, with what servers append to them.

use super::draft::{Draft, Miss, NOT_A_LINE, with_unit};
use super::names::{Field, Span};
use crate::size::{NotASize, size};

/// The parts of a line in the Common Log Format.
struct Parts<'l> {
    client: &'l str,
    time: &'l str,
    request: &'l str,
    size: Result<u64, NotASize>,
    size_text: &'l str,
    rest: &'l str,
}

/// Parses `host ident user [time] "request" status bytes`
/// (<https://httpd.apache.org/docs/2.4/logs.html#common>), after which the Combined format has the
/// referrer and the user agent. Of what follows, fields count that have a name, such as
/// `rt=0.250 cc="bbr"`; numbers of seconds with three decimals, as nginx writes `$request_time` and
/// `$upstream_response_time`, in that order; and a duration with its unit, as Traefik writes it.
pub(super) fn read(line: &str, draft: &mut Draft) -> Result<(), Miss> {
    let parts = parts(line).ok_or(Miss::Over(NOT_A_LINE))?;
    draft.take(Field::Size(0), parts.size_text);
    // Without a body it is no transfer.
    parts.size?;
    draft.take_time(0, parts.time);
    draft.take_client(parts.client);
    draft.take_request(parts.request);
    if !parts.rest.is_empty() {
        appended(parts.rest, draft);
    }
    Ok(())
}

/// Returns the name of the format if a line is in it.
pub(super) fn format_of(line: &str) -> Option<&'static str> {
    let parts = parts(line)?;
    Some(match parts.rest.contains('"') {
        true => "Combined Log Format",
        false => "Common Log Format",
    })
}

fn parts(line: &str) -> Option<Parts<'_>> {
    let (who, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let (request, rest) = quoted(rest)?;
    let mut rest = rest.trim_start();
    let mut next = || {
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after.trim_start();
        field
    };
    let (status, size_text) = (next(), next());
    let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    let size = size(size_text);
    let is_size = !matches!(size, Err(NotASize::NotBytes | NotASize::Missing));
    let mut names = who.split_ascii_whitespace();
    let client = names.next()?;
    let whole = names.nth(1).is_some() && is_status && is_size;
    whole.then_some(Parts { client, time, request, size, size_text, rest })
}

/// Splits after a quoted text, in which quotes are escaped by backslashes.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find('"')?;
        let escapes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 1;
    }
}

/// Takes the fields after the size.
fn appended(mut rest: &str, draft: &mut Draft) {
    let mut seconds = [Span::Whole, Span::Upstream].into_iter();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return;
        }
        if let Some(text) = rest.strip_prefix('"') {
            let Some((_, after)) = quoted(text) else { return };
            rest = after;
            continue;
        }
        let end = word_end(rest);
        let (word, after) = rest.split_at(end);
        rest = after;
        let word = word.trim_end_matches(',');
        if let Some((name, value)) = word.split_once('=') {
            let value = match after.strip_prefix('"').filter(|_| value.is_empty()).and_then(quoted)
            {
                Some((text, after)) => {
                    rest = after;
                    text
                }
                None => value,
            };
            if let Some(field) = Field::named(name).filter(|field| !matches!(field, Field::Size(_)))
            {
                draft.take(field, value);
            }
        } else if are_seconds(word) || word == "-" && seconds.len() == 1 {
            let span = seconds.next();
            let sum = listed(word).filter_map(|part| part.parse::<f64>().ok());
            if let (Some(span), Some(value)) = (span, sum.reduce(|sum, part| sum + part)) {
                draft.span(span, 1e9 * value);
            }
        } else if let Some(nanos) = with_unit(word) {
            draft.span(Span::Whole, nanos);
        } else if end == 0 {
            return;
        }
    }
}

/// Returns where a word ends, or a list of numbers that begins with it: nginx writes `, ` between what
/// several servers took, and ` : ` at a redirect within it (ngx_http_upstream_module).
fn word_end(text: &str) -> usize {
    let end_of = |text: &str| text.find([' ', '"']).unwrap_or(text.len());
    let mut end = end_of(text);
    loop {
        let rest = &text[end..];
        let gap = match text[..end].ends_with(',') && rest.starts_with(' ') {
            true => 1,
            false if rest.starts_with(" : ") => 3,
            false => return end,
        };
        let next = &rest[gap..][..end_of(&rest[gap..])];
        let number = next.trim_end_matches(',');
        if number != "-" && number.parse::<f64>().is_err() {
            return end;
        }
        end += gap + next.len();
    }
}

/// The parts of a list.
fn listed(word: &str) -> impl Iterator<Item = &str> {
    word.split([',', ' ', ':']).filter(|part| !part.is_empty())
}

/// Returns whether a word, or each part of a list, is a number with exactly three decimals.
fn are_seconds(word: &str) -> bool {
    listed(word).any(is_seconds) && listed(word).all(|part| is_seconds(part) || part == "-")
}

/// Returns whether a word is a number with exactly three decimals.
fn is_seconds(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once('.')
        .is_some_and(|(whole, part)| part.len() == 3 && digits(whole) && digits(part))
}
