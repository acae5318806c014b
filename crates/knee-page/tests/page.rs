//! Access to a page, its answers and its events.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use axum::routing::get;
use knee_page::{PageError, asked_from_here, events, guarded, listen, serve, text};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tower::ServiceExt;

fn routes() -> Router {
    Router::new().route("/", get(|| async { text("text/html; charset=utf-8", "<p>") }))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn asked(request: Request<Body>) -> Response {
    runtime().block_on(guarded(routes()).oneshot(request)).unwrap()
}

fn by(host: &str) -> StatusCode {
    asked(Request::get("/").header("Host", host).body(Body::empty()).unwrap()).status()
}

#[test]
fn who_asks_by_another_name_is_refused() {
    for host in ["127.0.0.1", "127.0.0.1:9433", "localhost:1", "LOCALHOST", "[::1]:9433", "[::1]"] {
        assert_eq!(by(host), StatusCode::OK, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.0.2.1",
        "",
        "[::1",
    ] {
        assert_eq!(by(host), StatusCode::FORBIDDEN, "{host}");
    }
    let none = Request::get("/").body(Body::empty()).unwrap();
    assert_eq!(asked(none).status(), StatusCode::FORBIDDEN);
    let twice = Request::get("/").header("Host", "localhost").header("Host", "evil.example");
    assert_eq!(asked(twice.body(Body::empty()).unwrap()).status(), StatusCode::FORBIDDEN);
    // A full URL in the target overrides the field (RFC 9112, section 3.2.2).
    let whole = Request::get("http://evil.example/").header("Host", "localhost");
    assert_eq!(asked(whole.body(Body::empty()).unwrap()).status(), StatusCode::FORBIDDEN);
}

#[test]
fn nothing_can_be_changed() {
    for (method, place, status) in [
        ("GET", "/", StatusCode::OK),
        ("GET", "/?x=1", StatusCode::OK),
        ("HEAD", "/", StatusCode::OK),
        ("GET", "/other", StatusCode::NOT_FOUND),
        ("POST", "/", StatusCode::METHOD_NOT_ALLOWED),
        ("DELETE", "/other", StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let request = Request::builder().method(method).uri(place).header("Host", "localhost");
        let answer = asked(request.body(Body::empty()).unwrap());
        assert_eq!(answer.status(), status, "{method} {place}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'self';"), "{policy}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
    }
}

#[test]
fn a_page_is_for_this_host_alone() {
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let refused = listen(address.parse().unwrap()).unwrap_err();
        assert!(matches!(refused, PageError::NotLoopback(_)), "{refused}");
    }
    let first = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let taken = listen(first.local_addr().unwrap()).unwrap_err();
    assert!(matches!(taken, PageError::Listen { .. }), "{taken}");
}

/// A page from elsewhere may send a request, but says so.
#[test]
fn who_asks_from_elsewhere_is_known() {
    for (site, here) in [
        (None, true),
        (Some("none"), true),
        (Some("same-origin"), true),
        (Some("same-site"), false),
        (Some("cross-site"), false),
        (Some(""), false),
    ] {
        let mut fields = HeaderMap::new();
        site.map(|site| fields.insert("Sec-Fetch-Site", site.parse().unwrap()));
        assert_eq!(asked_from_here(&fields), here, "{site:?}");
    }
}

/// A silent client times out and does not block others.
#[test]
fn who_says_nothing_is_left() {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, routes()));
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(tokio::net::TcpStream::connect(address).await.unwrap());
        }
        let mut asker = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        asker.write_all(request).await.unwrap();
        let mut answer = String::new();
        asker.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    });
}

/// Over a real socket: the latest text at once, then each new one.
#[test]
fn events_come_as_they_are_made() {
    let (news, _) = watch::channel::<Arc<str>>("one\ntwo".into());
    let news = Arc::new(news);
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let source = news.clone();
    let routes = Router::new().route(
        "/events",
        get(move || {
            let news = source.subscribe();
            async move { events(news) }
        }),
    );
    thread::spawn(move || {
        runtime().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            serve(listener, routes).await;
        })
    });
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(socket).lines().map(Result::unwrap);
    let mut data = || lines.find(|line| line.starts_with("data: ")).unwrap();
    assert_eq!([data(), data()], ["data: one", "data: two"]);
    news.send("three".into()).unwrap();
    assert_eq!(data(), "data: three");
    assert_eq!(news.receiver_count(), 1);
}

/// Streams of events, which last, leave places to others, and are free again when they end.
#[test]
fn events_leave_places_to_others() {
    let runtime = runtime();
    let _inside = runtime.enter();
    let (_news, latest) = watch::channel::<Arc<str>>("1".into());
    let mut open: Vec<Response> = Vec::new();
    while open.len() < 64 {
        let answer = events(latest.clone());
        if answer.status() == StatusCode::SERVICE_UNAVAILABLE {
            break;
        }
        open.push(answer);
    }
    assert!(open.len() <= 32, "{}", open.len());
    drop(open);
    assert_eq!(events(latest).status(), StatusCode::OK);
}
