//! The page and the metrics of an end, on loopback: `/` is a page, `/status` the state as JSON,
//! `/metrics` OpenMetrics.

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

/// Maximum number of pending requests for the state.
const WAITING_MAX: usize = 16;

/// Requests the state from the end, which lives on one thread.
type Ask = mpsc::Sender<oneshot::Sender<Status>>;

/// Answers requests for as long as the end runs.
pub async fn serve(listener: TcpListener, state: impl Fn() -> Status) {
    let (ask, mut asked) = mpsc::channel::<oneshot::Sender<Status>>(WAITING_MAX);
    let telling = async {
        while let Some(asker) = asked.recv().await {
            // Fails if the browser has disconnected meanwhile.
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
            get(async move || respond(&ask, json).await)
        })
        .route("/metrics", {
            let ask = ask.clone();
            get(async move || respond(&ask, |status| open_metrics(families(status))).await)
        })
}

/// Returns the state in the given form.
async fn respond(ask: &Ask, form: fn(&Status) -> Response) -> Response {
    let (asker, answer) = oneshot::channel();
    let is_asked = ask.send(asker).await.is_ok();
    match answer.await {
        Ok(status) if is_asked => form(&status),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "It is stopping.\n").into_response(),
    }
}

fn json(status: &Status) -> Response {
    // Cannot fail: a state contains only names and finite numbers.
    text("application/json", serde_json::to_string(status).unwrap_or_default())
}
