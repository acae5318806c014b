//! HAR: HTTP Archive 1.2 (J. Odvarko, A. Jain, A. Davies, 2012;
//! <http://www.softwareishard.com/blog/har-12-spec/>), with the fields that Chromium, Firefox, Safari
//! and WebPageTest add.

use super::fetch::{FETCHES_MAX, Fetch, Recorded, blocks, elsewhere, ms, round_trip};
use crate::access::Protocol;
use crate::error::FileError;
use crate::instant::{At, calendar};
use crate::json;
use crate::loose::{List, Loose, Node};
use serde::Deserialize;

const HAR: &str = "HAR";
const PAGES_MAX: usize = 1000;
const FRAMES_MAX: usize = 1000;

#[derive(Debug, Deserialize)]
struct Har {
    #[serde(default)]
    log: Node<Log>,
}

#[derive(Debug, Deserialize)]
struct Log {
    #[serde(default)]
    pages: List<Page, PAGES_MAX>,
    #[serde(default)]
    entries: List<Entry, FETCHES_MAX>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    id: Loose,
    started_date_time: Loose,
    page_timings: Node<PageTimings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageTimings {
    on_load: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    pageref: Loose,
    started_date_time: Loose,
    time: Loose,
    request: Node<Request>,
    response: Node<Response>,
    timings: Node<Timings>,
    /// Chromium: what asked for it. WebPageTest: its URL.
    #[serde(rename = "_initiator")]
    initiator: Node<Initiator>,
    /// Chromium: "script", "stylesheet" …
    #[serde(rename = "_resourceType")]
    resource_type: Loose,
    /// Chromium: "disk", "memory" …
    #[serde(rename = "_fromCache")]
    from_cache: Loose,
    /// Safari: "Network Load", "Memory Cache" …
    #[serde(rename = "_fetchType")]
    fetch_type: Loose,
    /// WebPageTest: bytes that came in.
    #[serde(rename = "_bytesIn")]
    bytes_in: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Request {
    url: Loose,
    http_version: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response {
    status: Loose,
    http_version: Loose,
    headers_size: Loose,
    body_size: Loose,
    content: Node<Content>,
    #[serde(rename = "redirectURL")]
    redirect_url: Loose,
    /// Chromium: bytes with headers.
    #[serde(rename = "_transferSize")]
    transfer_size: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Content {
    mime_type: Loose,
    size: Loose,
    /// Bytes that compression saved.
    compression: Loose,
}

/// Parts of the time, ms; -1 is unknown or does not apply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Timings {
    blocked: Loose,
    dns: Loose,
    connect: Loose,
    send: Loose,
    wait: Loose,
    receive: Loose,
    /// Part of `connect`.
    ssl: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Initiator {
    url: Loose,
    stack: Node<Stack>,
}

/// Where a script was when it asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stack {
    call_frames: List<Frame, FRAMES_MAX>,
    parent: Box<Node<Stack>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frame {
    url: Loose,
}

/// Reads the first page with requests.
pub(super) fn read(bytes: &[u8]) -> Result<Recorded, FileError> {
    let har: Har = json::document(bytes, HAR)?;
    let mut recorded = Recorded::new(HAR);
    let Some(log) = har.log.into_map() else { return Ok(recorded) };
    let page = log.entries.0.first().map(|entry| entry.pageref.clone()).unwrap_or_default();
    for entry in log.entries.0 {
        if entry.pageref != page {
            recorded.leave_out("of another page");
            continue;
        }
        match fetch(entry) {
            Ok(fetch) => recorded.fetches.push(fetch),
            Err(why) => recorded.leave_out(why),
        }
    }
    let same = |one: &&Page| one.id == page && page.text().is_some();
    recorded.loaded_ns = log.pages.0.iter().find(same).and_then(loaded);
    Ok(recorded)
}

fn instant(text: &Loose) -> Option<i128> {
    match calendar(text.text()?) {
        Some(At::Instant(ns)) => Some(ns),
        _ => None,
    }
}

/// Returns when the page was loaded.
fn loaded(page: &Page) -> Option<i128> {
    let begun = instant(&page.started_date_time)?;
    let on_load = page.page_timings.map()?.on_load.amount()?;
    Some(begun + ms(on_load)?)
}

fn fetch(entry: Entry) -> Result<Fetch, &'static str> {
    let request = entry.request.into_map().unwrap_or_default();
    let response = entry.response.into_map().unwrap_or_default();
    let timings = entry.timings.into_map().unwrap_or_default();
    let url = request.url.text().ok_or("without a URL")?.to_owned();
    if let Some(why) = elsewhere(&url) {
        return Err(why);
    }
    if response.status.number() == Some(101.0) {
        return Err("a WebSocket");
    }
    if response.status.number().is_some_and(|status| status < 100.0) {
        return Err("without an answer");
    }
    let cached = entry.fetch_type.text().is_some_and(|kind| kind.contains("Cache"));
    if cached || entry.from_cache.is_set() {
        return Err("from the cache");
    }
    let begun_ns = instant(&entry.started_date_time).ok_or("without a time")?;
    let took_ms = entry.time.amount().filter(|time| *time > 0.0).or_else(|| total(&timings));
    let (bytes, is_unpacked) = size(&response, &entry.bytes_in).ok_or("without a size")?;
    let version = [&response.http_version, &request.http_version]
        .map(|version| version.text().map_or(Protocol::Unknown, Protocol::named));
    let media_type = response.content.map().and_then(|content| content.mime_type.text());
    Ok(Fetch {
        blocks: blocks(&[entry.resource_type.text(), media_type], &url),
        url,
        protocol: version.into_iter().find(|one| *one != Protocol::Unknown).unwrap_or_default(),
        bytes,
        is_unpacked,
        begun_ns,
        ended_ns: begun_ns + took_ms.and_then(ms).unwrap_or(0),
        initiator: initiator(&entry.initiator),
        redirects_to: response.redirect_url.text().map(str::to_owned),
        waited_ns: timings.wait.amount().and_then(ms),
        round_trip_ns: round_trip(timings.connect.amount(), timings.ssl.amount()),
    })
}

/// Returns the sum of the parts, as the specification defines the whole.
fn total(timings: &Timings) -> Option<f64> {
    let Timings { blocked, dns, connect, send, wait, receive, .. } = timings;
    let parts = [blocked, dns, connect, send, wait, receive];
    let known: Vec<f64> = parts.iter().filter_map(|part| part.amount()).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Returns the size as transferred, and whether it is that after decompression.
fn size(response: &Response, bytes_in: &Loose) -> Option<(u64, bool)> {
    // 1 PB: a cast beyond has no meaning.
    let whole = |value: f64| (value < 1e15).then_some(value as u64);
    let over_the_network = [&response.transfer_size, bytes_in].map(Loose::amount);
    if let Some(bytes) = over_the_network.into_iter().flatten().find(|bytes| *bytes > 0.0) {
        return Some((whole(bytes)?, false));
    }
    let headers = response.headers_size.amount().unwrap_or(0.0);
    if let Some(body) = response.body_size.amount() {
        return Some((whole(headers + body)?, false));
    }
    let content = response.content.map()?;
    let size = content.size.amount()?;
    match content.compression.number() {
        Some(saved) => Some((whole(headers + (size - saved).max(0.0))?, false)),
        None => Some((whole(headers + size)?, true)),
    }
}

fn initiator(found: &Node<Initiator>) -> Option<String> {
    match found {
        Node::Text(url) => Some(url.clone()).filter(|url| !url.is_empty()),
        Node::Map(found) => {
            let url = found.url.text().or_else(|| caller(&found.stack));
            url.map(str::to_owned)
        }
        Node::Other => None,
    }
}

/// Returns the script that was running.
fn caller(stack: &Node<Stack>) -> Option<&str> {
    let mut stack = stack.map();
    while let Some(one) = stack {
        if let Some(url) = one.call_frames.0.iter().find_map(|frame| frame.url.text()) {
            return Some(url);
        }
        stack = one.parent.map();
    }
    None
}
