//! A page that a running process shows of itself to a browser and to a collector of metrics,
//! on loopback.
//!
//! Nothing can be changed there. Who asks by another name than one of loopback is refused,
//! so that no page of the Internet can read it by way of a name of its own (DNS rebinding).
//!
//! What this crate never does: know what a page is about, load anything from elsewhere,
//! print.

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

/// Connections at once; further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// A request is there within so long, and its answer is taken up again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Waiting after the host had no more file descriptors.
const RESPITE: Duration = Duration::from_millis(100);

/// What every answer says of itself. Scripts, styles and events come from here alone.
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
    /// The address is not one of this host alone.
    #[error("{0} is not a loopback address; the page is for this host only")]
    NotLoopback(SocketAddr),
    /// The host did not permit it.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the host says.
        source: io::Error,
    },
}

/// Listens at an address of loopback, for [`serve`]; port 0 is any that is free.
///
/// # Errors
/// [`PageError::NotLoopback`], and [`PageError::Listen`] where the port is in use.
pub fn listen(address: SocketAddr) -> Result<TcpListener, PageError> {
    if !address.ip().is_loopback() {
        return Err(PageError::NotLoopback(address));
    }
    let listen = |source| PageError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    Ok(listener)
}

/// Answers whoever asks, until the future is dropped.
pub async fn serve(listener: tokio::net::TcpListener, routes: Router) {
    let routes = guarded(routes);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // It is never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((asker, _)) = listener.accept().await else {
            sleep(RESPITE).await;
            continue;
        };
        let routes = TowerToHyperService::new(routes.clone());
        spawn(async move {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            let mut asker = TimeoutStream::new(asker);
            asker.set_write_timeout(Some(PATIENCE));
            // Who goes away before the end is not told more.
            let _ = server.serve_connection(TokioIo::new(Box::pin(asker)), routes).await;
            drop(place);
        });
    }
}

/// The routes, for those alone who ask by a name of loopback, and to read.
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

/// Text of a media type.
pub fn text(kind: &'static str, body: impl Into<String>) -> Response {
    ([(CONTENT_TYPE, kind)], body.into()).into_response()
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

/// Each new text as an event (server-sent events: HTML standard, section 9.2), the latest
/// at once. Who reads slowly gets the newest, and none of those between.
pub fn events(news: watch::Receiver<Arc<str>>) -> Response {
    let event = |text: Arc<str>| Ok::<Event, Infallible>(Event::default().data(&*text));
    Sse::new(WatchStream::new(news).map(event)).keep_alive(KeepAlive::default()).into_response()
}

/// Whether a request names this host alone: in its one Host field, and in its target where
/// that is a whole URL.
fn asks_loopback(fields: &HeaderMap, target: Option<&str>) -> bool {
    let mut hosts = fields.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    hosts.next().is_none() && host.is_some_and(is_loopback) && target.is_none_or(is_loopback)
}

fn is_loopback(host: &str) -> bool {
    // An address of IPv6 stands in brackets, with or without a port.
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
