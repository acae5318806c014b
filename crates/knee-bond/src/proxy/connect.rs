//! CONNECT of HTTP/1.1 (RFC 9110, section 9.3.6): parsing and formatting.

use crate::request::{Malformed, Outcome, Partial, Target};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Maximum number of header fields of a request.
const FIELDS_MAX: usize = 64;
/// Maximum length of the head of a request.
pub const HEAD_MAX: usize = 16 << 10;

/// A request to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// The target, or `None` if the method is not CONNECT.
    pub target: Option<Target>,
    /// Credentials as they were sent: `user:password`.
    pub credentials: Option<Vec<u8>>,
}

/// Parses the head of a request.
pub fn request(bytes: &[u8]) -> Partial<Connect> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let taken = match request.parse(bytes) {
        Ok(httparse::Status::Complete(taken)) => taken,
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX => return Ok(None),
        Ok(httparse::Status::Partial) => return Err(Malformed("a request that is too long")),
        Err(_) => return Err(Malformed("neither SOCKS5 nor HTTP")),
    };
    let target = match (request.method, request.path) {
        (Some("CONNECT"), Some(authority)) => Some(Target::parse(authority)?),
        _ => None,
    };
    let credentials = request
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case("Proxy-Authorization"))
        .and_then(|field| basic(field.value))
        .and_then(|encoded| BASE64_STANDARD.decode(encoded.trim_ascii()).ok());
    Ok(Some((Connect { target, credentials }, taken)))
}

/// Returns the credentials of the scheme Basic, whose name may be in any case (RFC 9110, section
/// 11.1).
fn basic(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"Basic ".len())?;
    scheme.eq_ignore_ascii_case(b"Basic ").then_some(rest)
}

/// Response once the connection is established.
pub const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// Formats an error response with a reason.
pub fn refusal(status: &str, more: &str, reason: &str) -> String {
    let reason = reason.replace(['\r', '\n'], " ");
    format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{reason}\n",
        reason.len() + 1
    )
}

/// Returns the status of a connection that could not be opened.
pub fn status(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Denied => "403 Forbidden",
        Outcome::TimedOut => "504 Gateway Timeout",
        Outcome::TooMany => "503 Service Unavailable",
        _ => "502 Bad Gateway",
    }
}
