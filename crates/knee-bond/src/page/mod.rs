//! What an end shows of itself to a browser and to a collector of metrics, on loopback:
//! `/` is a page, `/status` the state as JSON, `/metrics` OpenMetrics.
//!
//! Nothing can be changed there. Who asks by another name than one of loopback is refused,
//! so that no page of the Internet can read it by way of a name of its own (DNS rebinding).
//! As much of HTTP/1.1 as that needs, and one answer a connection: RFC 9112.

mod metrics;

use crate::status::Status;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

pub use metrics::{TYPE, metrics};

/// Longest head of a request, and its fields.
const HEAD_MAX: usize = 8 << 10;
const FIELDS_MAX: usize = 64;
/// A request is there within so long, and its answer is taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// Waiting after the host had no more file descriptors.
const RESPITE: Duration = Duration::from_millis(100);

/// What is sent: its status, its type and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Code and reason.
    pub status: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// What it is.
    pub body: String,
}

impl Answer {
    fn ok(kind: &'static str, body: impl Into<String>) -> Answer {
        Answer { status: "200 OK", kind, body: body.into() }
    }

    fn refusal(status: &'static str, why: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n") }
    }
}

/// Answers whoever asks, for as long as the end runs.
pub async fn serve(listener: TcpListener, state: impl Fn() -> Status + 'static) {
    let state = Rc::new(state);
    loop {
        match listener.accept().await {
            Ok((asker, _)) => {
                let state = state.clone();
                spawn_local(async move {
                    // Who goes away before the end is not told more.
                    let _ = timeout(PATIENCE, attend(asker, &*state)).await;
                });
            }
            Err(_) => sleep(RESPITE).await,
        }
    }
}

async fn attend(mut asker: TcpStream, state: &impl Fn() -> Status) -> std::io::Result<()> {
    let mut head = Vec::new();
    let answer = loop {
        if let Some(answer) = answer(&head, state) {
            break answer;
        }
        if asker.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    };
    let Answer { status, kind, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'self'; img-src data:; frame-ancestors 'none'\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    asker.write_all(head.as_bytes()).await?;
    asker.write_all(body.as_bytes()).await?;
    asker.shutdown().await
}

/// What is answered to a request; none: more of it has to come.
pub fn answer(bytes: &[u8], state: &impl Fn() -> Status) -> Option<Answer> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < HEAD_MAX => return None,
        _ => return Some(Answer::refusal("400 Bad Request", "This is no request that fits here.")),
    }
    let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|field| std::str::from_utf8(field.value).ok());
    if hosts.next().is_some() || !host.is_some_and(is_loopback) {
        let why = "Ask for this page by 127.0.0.1, [::1] or localhost.";
        return Some(Answer::refusal("403 Forbidden", why));
    }
    if request.method != Some("GET") {
        let why = "Nothing can be changed here: use GET.";
        return Some(Answer::refusal("405 Method Not Allowed", why));
    }
    let path = request.path.unwrap_or_default();
    Some(match path.split_once('?').map_or(path, |(path, _)| path) {
        "/" => Answer::ok("text/html; charset=utf-8", include_str!("page.html")),
        "/page.css" => Answer::ok("text/css; charset=utf-8", include_str!("page.css")),
        "/page.js" => Answer::ok("text/javascript; charset=utf-8", include_str!("page.js")),
        "/status" => {
            let status = serde_json::to_string(&state()).unwrap_or_default();
            Answer::ok("application/json", status)
        }
        "/metrics" => Answer::ok(TYPE, metrics(&state())),
        _ => Answer::refusal("404 Not Found", "There are /, /status and /metrics."),
    })
}

/// Whether a Host field names this host alone.
fn is_loopback(host: &str) -> bool {
    // An address of IPv6 stands in brackets, with or without a port.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
