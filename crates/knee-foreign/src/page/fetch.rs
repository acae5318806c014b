//! What a browser recorded of single requests.

use crate::access::Protocol;
use crate::error::shorten;

/// Largest number of requests of a page.
pub(super) const FETCHES_MAX: usize = 10_000;
/// Characters of an object's name.
const NAME_MAX: usize = 60;

/// What a browser recorded of a page.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Name of the format, for display.
    pub format: &'static str,
    /// Its requests.
    pub fetches: Vec<Fetch>,
    /// When the page was loaded, in the time of the fetches.
    pub loaded_ns: Option<i128>,
    /// Requests that cannot be used: why, and how many.
    pub left_out: Vec<(&'static str, usize)>,
}

impl Recorded {
    pub fn new(format: &'static str) -> Recorded {
        Recorded { format, fetches: Vec::new(), loaded_ns: None, left_out: Vec::new() }
    }

    /// Counts a request that is left out.
    pub fn leave_out(&mut self, why: &'static str) {
        match self.left_out.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => self.left_out.push((why, 1)),
        }
    }
}

/// A request and its answer. Times are nanoseconds since some instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetch {
    pub url: String,
    pub protocol: Protocol,
    pub bytes: u64,
    /// Whether `bytes` is the size after decompression, for want of another.
    pub is_unpacked: bool,
    /// When the browser knew that it needed it.
    pub begun_ns: i128,
    /// When its last byte was there.
    pub ended_ns: i128,
    /// Whether it is a script or a style sheet, for which others wait.
    pub blocks: bool,
    /// URL of what asked for it; `None` if the file does not say.
    pub initiator: Option<String>,
    /// URL that the answer redirects to.
    pub redirects_to: Option<String>,
    /// From the end of the request to the first byte of the answer.
    pub waited_ns: Option<i128>,
    /// Round-trip time, as far as setting up a connection for it tells.
    pub round_trip_ns: Option<i128>,
}

/// Returns whether one of these, a media type or the browser's word for it, is that of a script or
/// a style sheet; without them, whether the URL is.
pub(super) fn blocks(kinds: &[Option<&str>], url: &str) -> bool {
    let is = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        ["script", "css", "stylesheet"].iter().any(|known| kind.contains(known))
    };
    match kinds.iter().flatten().next() {
        Some(_) => kinds.iter().flatten().any(|kind| is(kind)),
        None => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            [".js", ".mjs", ".css"].iter().any(|ending| path.ends_with(ending))
        }
    }
}

/// Milliseconds as nanoseconds; `None` of a number that cannot be one.
pub(super) fn ms(value: f64) -> Option<i128> {
    // A day.
    (value.abs() < 86_400e3).then_some((value * 1e6) as i128)
}

/// Returns the time that a connection's set-up tells of one round trip: TCP's handshake without that
/// of TLS, or QUIC's, which has both in one.
pub(super) fn round_trip(connect_ms: Option<f64>, tls_ms: Option<f64>) -> Option<i128> {
    let connect = connect_ms.filter(|connect| *connect > 0.0)?;
    let tcp = connect - tls_ms.unwrap_or(0.0);
    ms(if tcp > 0.05 * connect { tcp } else { connect })
}

/// Why a URL is none that a server answers over HTTP.
pub(super) fn elsewhere(url: &str) -> Option<&'static str> {
    let begins =
        |start: &str| url.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    if begins("http://") || begins("https://") {
        return None;
    }
    match begins("ws:") || begins("wss:") {
        true => Some("a WebSocket"),
        false => Some("not over HTTP"),
    }
}

/// Returns scheme, host and port of a URL.
pub(super) fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |at| host + at);
    &url[..end]
}

/// Returns a name for the object with this URL.
pub(super) fn name(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("object");
    shorten(last, NAME_MAX)
}

/// Returns whether a redirection names this URL.
pub(super) fn is_target(redirects_to: &str, url: &str) -> bool {
    let target = redirects_to.split('#').next().unwrap_or_default();
    let url = url.split('#').next().unwrap_or_default();
    match target.contains("://") {
        true => target == url,
        // Relative to the URL before.
        false => url.ends_with(target.trim_start_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_an_origin_and_a_name() {
        for (url, expected, called) in [
            ("https://example.org/", "https://example.org", "example.org"),
            ("https://example.org", "https://example.org", "example.org"),
            ("http://a.example:8080/b/c.js?x=/y#z", "http://a.example:8080", "c.js"),
            ("https://example.org?q=1", "https://example.org", "example.org"),
            ("https://example.org/a/", "https://example.org", "a"),
        ] {
            assert_eq!((origin(url), &name(url)[..]), (expected, called), "{url}");
        }
        assert_eq!(elsewhere("HTTPS://example.org/"), None);
        assert_eq!(elsewhere("data:text/plain,x"), Some("not over HTTP"));
        assert_eq!(elsewhere("wss://example.org/"), Some("a WebSocket"));
    }

    #[test]
    fn redirections_are_absolute_or_relative() {
        assert!(is_target("https://b.example/x", "https://b.example/x#y"));
        assert!(is_target("//b.example/x", "https://b.example/x"));
        assert!(is_target("/x", "https://b.example/x"));
        assert!(!is_target("https://b.example/x", "https://b.example/y"));
    }

    #[test]
    fn scripts_and_style_sheets_are_known_by_any_word() {
        for kind in ["script", "Stylesheet", "text/javascript", "text/css; charset=utf-8"] {
            assert!(blocks(&[None, Some(kind)], "x"), "{kind}");
        }
        assert!(!blocks(&[Some("image/png"), None], "https://example.org/a.js"));
        assert!(blocks(&[None, None], "https://example.org/a.js?v=2"));
        assert!(!blocks(&[], "https://example.org/a.jsp"));
    }

    /// TCP takes 30 of 70 ms, with 40 for TLS; QUIC's handshake is TLS's as well.
    #[test]
    fn a_handshake_tells_the_round_trip() {
        assert_eq!(round_trip(Some(70.0), Some(40.0)), Some(30_000_000));
        assert_eq!(round_trip(Some(30.0), None), Some(30_000_000));
        assert_eq!(round_trip(Some(40.0), Some(40.0)), Some(40_000_000));
        assert_eq!(round_trip(Some(0.0), None), None);
        assert_eq!(round_trip(None, None), None);
    }
}
