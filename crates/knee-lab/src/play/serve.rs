//! The page of a scenario that is played with, on loopback.
//!
//! A page asks for a beginning first, which ends after [`BEGINNING`] wherever it is, and then for the
//! whole, unless it was complete. It asks for the newest positions only, and leaves a request that is
//! overtaken: then its simulation ends.

use super::{Choice, Drawn, NAMES, Play};
use crate::error::Error;
use crate::handle::Handle;
use knee_page::axum::Router;
use knee_page::axum::http::header::{CONTENT_DISPOSITION, HeaderValue};
use knee_page::axum::http::{HeaderMap, StatusCode, Uri};
use knee_page::axum::response::{IntoResponse, Response};
use knee_page::axum::routing::get;
use knee_page::{asked_from_here, text};
use knee_record::Control;
use knee_report::play_style;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// Real time for which the beginning of a run may take: what is drawn within 100 ms has its charts,
/// its table and its way through the browser in the other half.
const BEGINNING: Duration = Duration::from_millis(50);
/// Results computed at the same time; others wait.
const RESULTS_MAX: usize = 2;
/// How often it is asked whether to stop.
const STOP_POLL: Duration = Duration::from_millis(100);
const SCRIPT: &str = include_str!("page.js");

struct Site {
    play: Play,
    room: Arc<Semaphore>,
}

/// Serves the page until the handle stops it.
///
/// # Errors
/// Errors of the system about sockets.
pub fn serve(listener: TcpListener, play: Play, handle: &Handle) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let site = Arc::new(Site { play, room: Arc::new(Semaphore::new(RESULTS_MAX)) });
        tokio::select! {
            () = knee_page::serve(listener, routes(&site)) => {}
            () = stopped(handle) => {}
        }
        Ok(())
    })
}

async fn stopped(handle: &Handle) {
    while !handle.is_stopped() {
        sleep(STOP_POLL).await;
    }
}

fn routes(site: &Arc<Site>) -> Router {
    let [of_page, of_run, of_file] = [(); 3].map(|()| site.clone());
    Router::new()
        .route("/", get(async move || page(&of_page)))
        .route("/page.css", get(async || text("text/css; charset=utf-8", play_style())))
        .route("/page.js", get(async || text("text/javascript; charset=utf-8", SCRIPT)))
        .route(
            "/run",
            get(async move |uri: Uri, headers: HeaderMap| run(of_run, uri, headers).await),
        )
        .route("/file", get(async move |uri: Uri| file(&of_file, &uri)))
}

fn page(site: &Site) -> Response {
    match site.play.page() {
        Ok(page) => text("text/html; charset=utf-8", page),
        Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Ends the simulation of a request that nobody waits for any more.
struct Waited(Arc<Control>);

impl Drop for Waited {
    fn drop(&mut self) {
        self.0.stop();
    }
}

async fn run(site: Arc<Site>, uri: Uri, headers: HeaderMap) -> Response {
    // A page from elsewhere cannot read the answer, but could keep this host busy.
    if !asked_from_here(&headers) {
        return failed(StatusCode::FORBIDDEN, "Only the page of knee play may ask for this.");
    }
    let choices: Vec<Choice> = match choices(&site.play, &uri) {
        Some(choices) if !choices.is_empty() => choices,
        _ => return failed(StatusCode::BAD_REQUEST, WRONG_POSITIONS),
    };
    let control = Arc::new(Control::default());
    let waited = Waited(control.clone());
    // It is never closed.
    let Ok(place) = site.room.clone().acquire_owned().await else {
        return failed(StatusCode::SERVICE_UNAVAILABLE, "Knee is stopping.");
    };
    let of_task = control.clone();
    let mut task = spawn_blocking(move || {
        let _held = place;
        site.play.draw(&choices, &of_task)
    });
    let drawn = match has(&uri, "whole") {
        true => task.await,
        false => match timeout(BEGINNING, &mut task).await {
            Ok(drawn) => drawn,
            Err(_) => {
                control.stop();
                task.await
            }
        },
    };
    drop(waited);
    match drawn {
        Ok(Ok(drawn)) => json(&drawn),
        Ok(Err(error)) => failed(StatusCode::UNPROCESSABLE_ENTITY, &words(&error)),
        Err(_) => {
            failed(StatusCode::INTERNAL_SERVER_ERROR, "The simulation failed: a bug in Knee.")
        }
    }
}

const WRONG_POSITIONS: &str = "The address has positions that this page does not: open it again.";

/// The problems of a scenario, with what to write instead.
fn words(error: &Error) -> String {
    let Error::Files(files) = error else { return error.to_string() };
    let problems = files.iter().flat_map(|file| &file.problems);
    let words = problems.map(|problem| format!("{}: {}.", problem.message, problem.help));
    words.collect::<Vec<_>>().join(" ")
}

fn json(drawn: &Drawn) -> Response {
    match serde_json::to_string(drawn) {
        Ok(json) => text("application/json", json),
        Err(error) => failed(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Hands over the scenario of the only choice in an address.
fn file(site: &Site, uri: &Uri) -> Response {
    let found = NAMES.iter().enumerate().find_map(|(of, name)| {
        let positions = value(uri, &name.to_ascii_lowercase())?;
        Some((of, site.play.choice(positions)?))
    });
    let Some((of, choice)) = found else {
        return failed(StatusCode::BAD_REQUEST, WRONG_POSITIONS);
    };
    let mut answer = text("application/toml; charset=utf-8", site.play.file(&choice));
    let attached = format!("attachment; filename=\"{}\"", site.play.file_name(of));
    // The name has letters of ASCII only.
    if let Ok(attached) = HeaderValue::from_str(&attached) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, attached);
    }
    answer
}

/// The choices in an address: A, or A and B. `None` if one of them is wrong.
fn choices(play: &Play, uri: &Uri) -> Option<Vec<Choice>> {
    let names = NAMES.map(str::to_ascii_lowercase);
    names.iter().filter_map(|name| value(uri, name)).map(|text| play.choice(text)).collect()
}

fn parts(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let parts = uri.query().unwrap_or_default().split('&');
    parts.map(|part| part.split_once('=').unwrap_or((part, "")))
}

fn value<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    parts(uri).find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn has(uri: &Uri, name: &str) -> bool {
    value(uri, name).is_some()
}

fn failed(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}
