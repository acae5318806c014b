//! Page of a running observer, updated as time passes, and metrics: of connections as they end, or
//! of those that are open.

mod course;
mod ended;
mod metrics;
mod open;

use crate::live::Live;
use crate::open::Look;
use course::OpenLive;
use ended::Ended;
use knee_page::axum::Router;
use knee_page::axum::http::StatusCode;
use knee_page::axum::response::{IntoResponse, Response};
use knee_page::axum::routing::get;
use knee_page::{Family, events, open_metrics, serve, text};
use knee_report::{ReportError, observed_style};
use open::Open;
use std::future::{Ready, ready};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval};

pub use knee_page::{PageError, listen};

/// Update interval of open pages.
const RENEWED: Duration = Duration::from_secs(2);
const SCRIPT: &str = include_str!("page.js");

/// A page that is served until it is dropped.
pub struct Page {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Serves an observer's last hour on a loopback listener ([`listen`]), on a separate thread.
    /// Nothing is computed without a client.
    ///
    /// # Errors
    /// Errors of the system about threads and sockets.
    pub fn of_ended(listener: TcpListener, live: Live) -> io::Result<Page> {
        Page::serve(listener, Ended::new(live))
    }

    fn serve(listener: TcpListener, shown: impl Shown) -> io::Result<Page> {
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _within = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (end, ended) = oneshot::channel::<()>();
        let site = Arc::new(Site { shown, news: watch::Sender::default() });
        let thread = thread::Builder::new().name("page".to_string()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = serve(listener, routes(&site)) => {}
                    () = renew(&site) => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(Page { address, end: Some(end), thread: Some(thread) })
    }

    /// Address of the page.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A page of open connections: the last interval, and the course of the last hour.
pub struct OpenPage {
    page: Page,
    live: OpenLive,
}

impl OpenPage {
    /// Serves it as [`Page::of_ended`] does; `grouped` if there are groups, `whole` if it may show
    /// whole addresses of clients.
    ///
    /// # Errors
    /// Errors of the system about threads and sockets.
    pub fn open(listener: TcpListener, grouped: bool, whole: bool) -> io::Result<OpenPage> {
        let live = OpenLive::new(grouped, whole);
        Ok(OpenPage { page: Page::serve(listener, Open::new(live.clone()))?, live })
    }

    /// Address of the page.
    pub fn address(&self) -> SocketAddr {
        self.page.address
    }

    /// Shows an interval.
    pub fn add(&self, look: &Arc<Look>) {
        self.live.add(look);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // Dropping the sender wakes the thread.
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a page shows.
trait Shown: Send + Sync + 'static {
    /// Its contents.
    fn body(&self) -> Result<String, ReportError>;

    /// The document around its contents.
    fn document(&self, body: &str) -> Result<String, ReportError>;

    /// The same for programs, as JSON.
    fn json(&self) -> String;

    /// Sums since the start.
    fn metrics(&self) -> Vec<Family>;
}

/// What a page shows, and its subscribers.
struct Site<S> {
    shown: S,
    news: watch::Sender<Arc<str>>,
}

/// Sends updates to subscribers periodically.
async fn renew<S: Shown>(site: &Site<S>) {
    // The first request does not wait for what is computed once.
    let _ = site.shown.body();
    let mut ticks = interval(RENEWED);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if site.news.receiver_count() > 0
            && let Ok(body) = site.shown.body()
        {
            site.news.send_replace(body.into());
        }
    }
}

fn routes<S: Shown>(site: &Arc<Site<S>>) -> Router {
    Router::new()
        .route("/", get(with(site, page)))
        .route("/page.css", get(async || text("text/css; charset=utf-8", observed_style())))
        .route("/page.js", get(async || text("text/javascript; charset=utf-8", SCRIPT)))
        .route("/events", get(with(site, current_state)))
        .route("/report", get(with(site, |site| text("application/json", site.shown.json()))))
        .route("/metrics", get(with(site, |site| open_metrics(site.shown.metrics()))))
}

/// A handler that answers from the page's state.
fn with<S: Shown>(
    site: &Arc<Site<S>>,
    answer: fn(&Site<S>) -> Response,
) -> impl Fn() -> Ready<Response> + Clone + Send + Sync + 'static {
    let site = site.clone();
    move || ready(answer(&site))
}

fn page<S: Shown>(site: &Site<S>) -> Response {
    match site.shown.body().and_then(|body| site.shown.document(&body)) {
        Ok(page) => text("text/html; charset=utf-8", page),
        Err(error) => failed(&error),
    }
}

/// Starts with the current state, without waiting for the next tick.
fn current_state<S: Shown>(site: &Site<S>) -> Response {
    let news = site.news.subscribe();
    match site.shown.body() {
        Ok(body) => {
            site.news.send_replace(body.into());
            events(news)
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &ReportError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}
