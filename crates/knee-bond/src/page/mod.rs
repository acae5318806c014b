//! What an end shows of itself to a browser and to a collector of metrics, on loopback:
//! `/` is a page, `/status` the state as JSON, `/metrics` OpenMetrics.

mod metrics;

use crate::status::Status;
use knee_page::axum::Router;
use knee_page::axum::http::StatusCode;
use knee_page::axum::response::{IntoResponse, Response};
use knee_page::axum::routing::get;
use knee_page::{open_metrics, text};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

pub use metrics::families;

/// Requests for the state that may wait.
const WAITING_MAX: usize = 16;

/// Asks the end for its state, which lives on one thread.
type Ask = mpsc::Sender<oneshot::Sender<Status>>;

/// Answers whoever asks, for as long as the end runs.
pub async fn serve(listener: TcpListener, state: impl Fn() -> Status) {
    let (ask, mut asked) = mpsc::channel::<oneshot::Sender<Status>>(WAITING_MAX);
    let telling = async {
        while let Some(asker) = asked.recv().await {
            // Who went away meanwhile is told nothing.
            let _ = asker.send(state());
        }
    };
    tokio::join!(knee_page::serve(listener, routes(&ask)), telling);
}

fn routes(ask: &Ask) -> Router {
    let file = |kind, body: &'static str| get(async move || text(kind, body));
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("page.html")))
        .route("/page.css", file("text/css; charset=utf-8", include_str!("page.css")))
        .route("/page.js", file("text/javascript; charset=utf-8", include_str!("page.js")))
        .route("/status", {
            let ask = ask.clone();
            get(async move || told(&ask, json).await)
        })
        .route("/metrics", {
            let ask = ask.clone();
            get(async move || told(&ask, |status| open_metrics(families(status))).await)
        })
}

/// The state in a form.
async fn told(ask: &Ask, form: fn(&Status) -> Response) -> Response {
    let (asker, told) = oneshot::channel();
    let is_asked = ask.send(asker).await.is_ok();
    match told.await {
        Ok(status) if is_asked => form(&status),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "It is being stopped.\n").into_response(),
    }
}

fn json(status: &Status) -> Response {
    // A state has names and finite numbers alone.
    text("application/json", serde_json::to_string(status).unwrap_or_default())
}
