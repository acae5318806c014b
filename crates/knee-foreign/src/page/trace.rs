//! Traces of DevTools' performance panel: Trace Event Format, of which the events of the network say
//! what was requested (category `devtools.timeline`).

use super::fetch::{FETCHES_MAX, Fetch, Recorded, blocks, elsewhere, ms, round_trip};
use crate::access::Protocol;
use crate::error::FileError;
use crate::json;
use crate::loose::{List, Loose, Node};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

const TRACE: &str = "trace of a browser";
/// A trace does not say how large a redirection was: a status line and some headers.
const REDIRECTION_BYTES: u64 = 500;
const FRAMES_MAX: usize = 1000;
/// Longest time between a request and its event.
const EARLY_NS_MAX: i128 = 60_000_000_000;

#[derive(Debug, Deserialize)]
struct Trace {
    #[serde(rename = "traceEvents")]
    events: Requests,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    name: Loose,
    /// Microseconds.
    ts: Loose,
    args: Node<Args>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    data: Node<Data>,
}

/// What the events of the network have, each a part of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data {
    request_id: Loose,
    url: Loose,
    resource_type: Loose,
    initiator: Node<Initiator>,
    stack_trace: List<Frame, FRAMES_MAX>,
    status_code: Loose,
    protocol: Loose,
    from_cache: Loose,
    from_service_worker: Loose,
    encoded_data_length: Loose,
    did_fail: Loose,
    /// Seconds, on the clock of the events.
    finish_time: Loose,
    timing: Node<Timing>,
    is_main_frame: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Initiator {
    url: Loose,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frame {
    url: Loose,
}

/// Milliseconds since `request_time`, which is in seconds, on the clock of the events; -1 is unknown.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Timing {
    request_time: Loose,
    connect_start: Loose,
    connect_end: Loose,
    ssl_start: Loose,
    ssl_end: Loose,
    send_end: Loose,
    receive_headers_end: Loose,
}

/// The requests of a trace, of which the other events are not kept.
#[derive(Debug, Default)]
struct Requests {
    /// By their identifiers.
    open: BTreeMap<String, Request>,
    /// Requests that were redirected.
    redirected: Vec<Fetch>,
    loaded_ns: Option<i128>,
}

#[derive(Debug)]
struct Request {
    fetch: Fetch,
    status: Option<f64>,
    from_cache: bool,
    failed: bool,
    finished: bool,
    /// Bytes counted while they came.
    came: f64,
}

/// Reads a trace that is an object.
pub(super) fn of_object(bytes: &[u8]) -> Result<Recorded, FileError> {
    json::document(bytes, TRACE).map(|Trace { events }| recorded(events))
}

/// Reads a trace that is a list of events.
pub(super) fn of_list(bytes: &[u8]) -> Result<Recorded, FileError> {
    json::document(bytes, TRACE).map(recorded)
}

fn recorded(requests: Requests) -> Recorded {
    let mut recorded = Recorded::new(TRACE);
    recorded.loaded_ns = requests.loaded_ns;
    recorded.fetches = requests.redirected;
    for request in requests.open.into_values() {
        match finished(request) {
            Ok(fetch) => recorded.fetches.push(fetch),
            Err(why) => recorded.leave_out(why),
        }
    }
    recorded
}

fn finished(request: Request) -> Result<Fetch, &'static str> {
    let Request { mut fetch, status, from_cache, failed, finished, came } = request;
    if let Some(why) = elsewhere(&fetch.url) {
        return Err(why);
    }
    if failed || status.is_none() {
        return Err("without an answer");
    }
    if from_cache {
        return Err("from the cache");
    }
    if !finished {
        return Err("not finished in the trace");
    }
    if fetch.bytes == 0 && came < 1e15 {
        fetch.bytes = came as u64;
    }
    Ok(fetch)
}

/// Seconds on the clock of the events as nanoseconds.
fn clock_ns(seconds: &Loose) -> Option<i128> {
    seconds.amount().filter(|seconds| *seconds > 0.0 && *seconds < 1e12).map(|s| (s * 1e9) as i128)
}

impl Requests {
    fn note(&mut self, event: Event) -> Result<(), String> {
        let Some(name) = event.name.text() else { return Ok(()) };
        let at_us = event.ts.number().filter(|us| us.abs() < 1e18);
        let Some(at_ns) = at_us.map(|us| (us * 1e3) as i128) else { return Ok(()) };
        let data = event.args.into_map().and_then(|args| args.data.into_map()).unwrap_or_default();
        if name == "MarkLoad" {
            let is_main = data.is_main_frame != Loose::Bool(false);
            if is_main && !self.open.is_empty() {
                self.loaded_ns.get_or_insert(at_ns);
            }
            return Ok(());
        }
        let Some(id) = data.request_id.text() else { return Ok(()) };
        if name == "ResourceSendRequest" {
            return self.send(id.to_owned(), at_ns, &data);
        }
        let Some(request) = self.open.get_mut(id) else { return Ok(()) };
        match name {
            "ResourceReceiveResponse" => request.answered(&data),
            "ResourceReceivedData" => {
                request.came += data.encoded_data_length.amount().unwrap_or(0.0);
            }
            "ResourceMarkAsCached" => request.from_cache = true,
            "ResourceFinish" => {
                request.finished = true;
                request.failed |= data.did_fail.is_set();
                // The event follows once the page's thread has time for it.
                let ended_ns = clock_ns(&data.finish_time).filter(|ended| *ended < at_ns);
                let ended_ns = ended_ns.unwrap_or(at_ns);
                request.fetch.ended_ns = ended_ns.max(request.fetch.begun_ns);
                let bytes = data.encoded_data_length.amount().filter(|bytes| *bytes < 1e15);
                request.fetch.bytes = bytes.unwrap_or(0.0) as u64;
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes a request; a second one with the same identifier follows a redirection.
    fn send(&mut self, id: String, at_ns: i128, data: &Data) -> Result<(), String> {
        let Some(url) = data.url.text() else { return Ok(()) };
        if self.open.len() + self.redirected.len() >= FETCHES_MAX {
            return Err(format!("more than {FETCHES_MAX} requests"));
        }
        let by = data.initiator.map().and_then(|one| one.url.text());
        let by = by.or_else(|| data.stack_trace.0.iter().find_map(|frame| frame.url.text()));
        let fetch = Fetch {
            url: url.to_owned(),
            blocks: blocks(&[data.resource_type.text()], url),
            begun_ns: at_ns,
            initiator: by.map(str::to_owned),
            ..Fetch::default()
        };
        let request = Request {
            fetch,
            status: None,
            from_cache: false,
            failed: false,
            finished: false,
            came: 0.0,
        };
        let before = self.open.insert(id, request);
        if let Some(Request { fetch, finished: false, .. }) = before
            && elsewhere(&fetch.url).is_none()
        {
            self.redirected.push(Fetch {
                ended_ns: at_ns,
                bytes: REDIRECTION_BYTES,
                redirects_to: Some(url.to_owned()),
                ..fetch
            });
        }
        Ok(())
    }
}

impl Request {
    fn answered(&mut self, data: &Data) {
        self.status = data.status_code.number().or(Some(200.0));
        self.from_cache |= data.from_cache.is_set() || data.from_service_worker.is_set();
        self.fetch.protocol = data.protocol.text().map_or(Protocol::Unknown, Protocol::named);
        self.came += data.encoded_data_length.amount().unwrap_or(0.0);
        let Some(timing) = data.timing.map() else { return };
        // The browser asks for a document before there is a page that could say so.
        if let Some(sent_ns) = clock_ns(&timing.request_time) {
            let begun_ns = self.fetch.begun_ns;
            self.fetch.begun_ns = begun_ns.min(sent_ns.max(begun_ns - EARLY_NS_MAX));
        }
        let between = |begin: &Loose, end: &Loose| {
            Some(end.amount()? - begin.amount()?).filter(|span| *span >= 0.0)
        };
        self.fetch.waited_ns = between(&timing.send_end, &timing.receive_headers_end).and_then(ms);
        self.fetch.round_trip_ns = round_trip(
            between(&timing.connect_start, &timing.connect_end),
            between(&timing.ssl_start, &timing.ssl_end),
        );
    }
}

impl<'de> Deserialize<'de> for Requests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Requests, D::Error> {
        struct OfList;
        impl<'de> Visitor<'de> for OfList {
            type Value = Requests;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of events")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Requests, A::Error> {
                let mut requests = Requests::default();
                while let Some(event) = list.next_element::<Node<Event>>()? {
                    if let Node::Map(event) = event {
                        requests.note(event).map_err(A::Error::custom)?;
                    }
                }
                Ok(requests)
            }
        }
        from.deserialize_seq(OfList)
    }
}
