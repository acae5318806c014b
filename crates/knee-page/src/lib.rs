//! A page and a metrics endpoint that a running process serves on loopback.
//!
//! The page is read-only. Requests with a host name that is not loopback are refused, so that no
//! page of the Internet can read it through a name of its own (DNS rebinding).
//!
//! What this crate never does: know the subject of a page, load external resources, print.

mod metrics;

pub use axum;
pub use metrics::{Family, Histogram, OPEN_METRICS, Sample, Samples, Unit, open_metrics, written};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use axum::http::header::{HeaderName, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::spawn;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;

/// Maximum concurrent connections; further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// Those of them that may be streams of events, which last: others find a place beside them.
const EVENTS_MAX: usize = 32;
/// Timeout of a request, and of writing its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the host has run out of file descriptors.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Headers of every answer. Scripts, styles and events may come from here only.
const HEADERS: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
];

/// Why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The address is not loopback.
    #[error("{0} is not a loopback address; the page is for this host only")]
    NotLoopback(SocketAddr),
    /// The host denied the address.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the host.
        source: io::Error,
    },
}

/// Listens on a loopback address, for [`serve`]; port 0 selects a free port.
///
/// # Errors
/// [`PageError::NotLoopback`], or [`PageError::Listen`] if the port is in use.
pub fn listen(address: SocketAddr) -> Result<TcpListener, PageError> {
    if !address.ip().is_loopback() {
        return Err(PageError::NotLoopback(address));
    }
    let listen = |source| PageError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    Ok(listener)
}

/// Serves requests until the future is dropped.
pub async fn serve(listener: tokio::net::TcpListener, routes: Router) {
    let routes = guarded(routes);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((asker, _)) = listener.accept().await else {
            sleep(RETRY_DELAY).await;
            continue;
        };
        let routes = TowerToHyperService::new(routes.clone());
        spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
            let mut asker = TimeoutStream::new(asker);
            asker.set_write_timeout(Some(TIMEOUT));
            // A client that disconnects early is not an error.
            let _ = server.serve_connection(TokioIo::new(Box::pin(asker)), routes).await;
            drop(place);
        });
    }
}

/// Restricts the routes to read requests with a loopback host name.
pub fn guarded(routes: Router) -> Router {
    routes
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "There is nothing here: see /.") })
        .layer(from_fn(guard))
}

async fn guard(request: Request, next: Next) -> Response {
    let mut answer = if !asks_loopback(request.headers(), request.uri().host()) {
        refusal(StatusCode::FORBIDDEN, "Ask for this page by 127.0.0.1, [::1] or localhost.")
    } else if request.method() == Method::GET || request.method() == Method::HEAD {
        next.run(request).await
    } else {
        refusal(StatusCode::METHOD_NOT_ALLOWED, "Nothing can be changed here: use GET.")
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Whether a page of this server asked, or a program or a person did, and not a page from elsewhere
/// (Fetch Metadata, section 2.3: browsers say so in `Sec-Fetch-Site`). A route that costs something
/// asks it.
pub fn asked_from_here(fields: &HeaderMap) -> bool {
    fields.get_all("sec-fetch-site").iter().all(|site| site == "same-origin" || site == "none")
}

/// A response of a media type.
pub fn text(kind: &'static str, body: impl Into<String>) -> Response {
    ([(CONTENT_TYPE, kind)], body.into()).into_response()
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

/// Places of streams of events, of all pages of this process.
static EVENTS: Semaphore = Semaphore::const_new(EVENTS_MAX);

/// Sends each new text as an event (server-sent events: HTML standard, section 9.2), starting with
/// the latest. A slow client skips to the newest.
pub fn events(news: watch::Receiver<Arc<str>>) -> Response {
    let Ok(place) = EVENTS.try_acquire() else {
        let why = "Too many pages are open: close one.";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let event = move |text: Arc<str>| {
        let _held = &place;
        Ok::<Event, Infallible>(Event::default().data(&*text))
    };
    Sse::new(WatchStream::new(news).map(event)).keep_alive(KeepAlive::default()).into_response()
}

/// Whether a request names loopback: in its only Host field, and in its target if that is a full
/// URL.
fn asks_loopback(fields: &HeaderMap, target: Option<&str>) -> bool {
    let mut hosts = fields.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.is_some_and(is_loopback) && target.is_none_or(is_loopback)
}

fn is_loopback(host: &str) -> bool {
    // IPv6 addresses have brackets, with or without a port.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
