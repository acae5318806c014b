//! Page of a running observer: the report of the last hour, updated as connections end, and
//! metrics.

mod metrics;

use crate::live::{Live, LiveReport};
use knee_page::axum::Router;
use knee_page::axum::http::StatusCode;
use knee_page::axum::response::{IntoResponse, Response};
use knee_page::axum::routing::get;
use knee_page::{Family, events, open_metrics, serve, text};
use knee_record::ObservedReport;
use knee_report::{ReportError, observed_body, observed_live, observed_style};
use metrics::Names;
use std::future::{Ready, ready};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
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
    pub fn open(listener: TcpListener, live: Live) -> io::Result<Page> {
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _within = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (end, ended) = oneshot::channel::<()>();
        let site = Arc::new(Site::new(live));
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

impl Drop for Page {
    fn drop(&mut self) {
        // Dropping the sender wakes the thread.
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// State of the page and its subscribers.
struct Site {
    live: Live,
    report: Mutex<LiveReport>,
    names: Mutex<Names>,
    news: watch::Sender<Arc<str>>,
}

impl Site {
    fn new(live: Live) -> Site {
        let report = Mutex::new(LiveReport::new(live.clone()));
        Site { live, report, names: Mutex::default(), news: watch::Sender::default() }
    }

    fn metrics(&self) -> Vec<Family> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        metrics::families(&self.live, &mut names)
    }

    fn report(&self) -> ObservedReport {
        // A report that panicked starts again from the current state.
        self.report.lock().unwrap_or_else(PoisonError::into_inner).report()
    }

    fn body(&self) -> Result<String, ReportError> {
        observed_body(&self.report())
    }
}

/// Sends updates to subscribers periodically.
async fn renew(site: &Site) {
    // Sum up the hour before the first request.
    site.report();
    let mut ticks = interval(RENEWED);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if site.news.receiver_count() > 0
            && let Ok(body) = site.body()
        {
            site.news.send_replace(body.into());
        }
    }
}

fn routes(site: &Arc<Site>) -> Router {
    Router::new()
        .route("/", get(with(site, |site| html(site.body().and_then(|body| observed_live(&body))))))
        .route("/page.css", get(async || text("text/css; charset=utf-8", observed_style())))
        .route("/page.js", get(async || text("text/javascript; charset=utf-8", SCRIPT)))
        .route("/events", get(with(site, told)))
        .route("/report", get(with(site, |site| json(&site.report()))))
        .route("/metrics", get(with(site, |site| open_metrics(site.metrics()))))
}

/// A handler that answers from the page's state.
fn with(
    site: &Arc<Site>,
    answer: fn(&Site) -> Response,
) -> impl Fn() -> Ready<Response> + Clone + Send + Sync + 'static {
    let site = site.clone();
    move || ready(answer(&site))
}

/// Starts with the current state, without waiting for the next tick.
fn told(site: &Site) -> Response {
    let news = site.news.subscribe();
    match site.body() {
        Ok(body) => {
            site.news.send_replace(body.into());
            events(news)
        }
        Err(error) => failed(&error),
    }
}

fn html(page: Result<String, ReportError>) -> Response {
    match page {
        Ok(page) => text("text/html; charset=utf-8", page),
        Err(error) => failed(&error),
    }
}

fn json(report: &ObservedReport) -> Response {
    // Cannot fail: a report contains only names and finite numbers.
    text("application/json", serde_json::to_string(report).unwrap_or_default())
}

fn failed(error: &ReportError) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
}
