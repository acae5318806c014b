//! A page as a browser loaded it, from what browsers record: which objects it has, how large they
//! were as transferred, and what each waited for.
//!
//! ```text
//!   HAR ────────────────────┐                       ┌─▶ what each object waited for
//!                           ├─▶ fetches, in time ───┼─▶ the time between that and its request
//!   performance's trace ────┘                       └─▶ the server's part of it
//! ```

mod fetch;
mod har;
mod order;
mod trace;

use crate::access::Protocol;
use crate::error::FileError;
use crate::{json, unpack};
use fetch::Recorded;
use knee_units::{Bytes, Time};
use std::fmt;

/// A page as a browser loaded it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPage {
    /// Name of the file's format, for display.
    pub format: &'static str,
    /// Where its objects came from.
    pub origins: Vec<Origin>,
    /// Its objects, in the order of their requests.
    pub objects: Vec<LoadedObject>,
    /// Time from the first request to the load event; `None` if the file does not say.
    pub load: Option<Time>,
    /// Requests that are not among the objects: why, and how many.
    pub left_out: Vec<(&'static str, usize)>,
    /// Objects of which only the size after decompression is known, which is counted instead.
    pub unpacked: usize,
}

/// Where objects came from: scheme, host and port (RFC 6454).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// As in a URL, such as `https://example.org`.
    pub name: String,
    /// Protocol of most of its answers.
    pub protocol: Protocol,
}

/// An object of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedObject {
    /// Last part of the path in its URL, or the host.
    pub name: String,
    /// Size as transferred, with headers where the file has them; at least 1.
    pub bytes: u64,
    /// Index of its origin.
    pub origin: usize,
    /// Indexes of the objects that it waited for; none if it was requested at the start.
    pub after: Vec<usize>,
    /// Time from the arrival of the last of these, or from the start, to its request; with the time
    /// that the server took.
    pub delay: Time,
}

/// Returns whether a file is what a browser recorded: JSON.
pub fn is_loaded_page(bytes: &[u8]) -> bool {
    matches!(unpack::start(bytes).first(), Some(b'{' | b'['))
}

/// Reads the page in a HAR (1.2) or in a trace of DevTools' performance panel, compressed by gzip or
/// not.
///
/// # Errors
/// The line, what is wrong there, and what to write instead.
pub fn read_loaded_page(bytes: &[u8]) -> Result<LoadedPage, FileError> {
    let start = unpack::text_start(bytes)?;
    let recorded = match start.first() {
        Some(b'[') => trace::of_list(bytes)?,
        Some(b'{') => {
            let json::Keys(keys) = json::keys(bytes)?;
            let has = |name: &str| keys.iter().any(|key| key == name);
            match () {
                () if has("log") => har::read(bytes)?,
                () if has("traceEvents") => trace::of_object(bytes)?,
                () if has("constants") && has("events") => {
                    let problem =
                        "it is a NetLog of Chromium, which does not say what a page waited for";
                    return Err(FileError::new(1, problem, KNOWN));
                }
                () => return Err(FileError::new(1, json::unknown(&keys), KNOWN)),
            }
        }
        _ => return Err(FileError::new(1, "it is no HAR and no trace of a browser", KNOWN)),
    };
    page(recorded)
}

/// What can be read.
const KNOWN: &str = "write the name of a HAR (in the browser's developer tools: Network, Export HAR), or \
                     of a trace that the performance panel saved";

/// Longest time from the first request to the last one.
const DAY_NS: i128 = 86_400_000_000_000;

fn page(recorded: Recorded) -> Result<LoadedPage, FileError> {
    let format = recorded.format;
    let times = || recorded.fetches.iter().flat_map(|fetch| [fetch.begun_ns, fetch.ended_ns]);
    if let (Some(first), Some(last)) = (times().min(), times().max())
        && last - first > DAY_NS
    {
        let problem = format!("the requests in this {format} are more than a day apart");
        return Err(FileError::new(1, problem, "record one page"));
    }
    let page = order::page(recorded);
    if !page.objects.is_empty() {
        return Ok(page);
    }
    let problem = match &page.left_out[..] {
        [] => format!("this {format} has no request"),
        left_out => format!("no request in this {format} can be used: {}", listed(left_out)),
    };
    Err(FileError::new(1, problem, "record the page again, from an empty cache"))
}

fn listed(left_out: &[(&str, usize)]) -> String {
    let one = |(why, count): &(&str, usize)| format!("{count} {why}");
    left_out.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Says what was read.
impl fmt::Display for LoadedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.objects.iter().map(|object| object.bytes).sum();
        let (objects, origins) = (self.objects.len(), self.origins.len());
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        write!(f, "{}, {objects} object{} of ", self.format, plural(objects))?;
        write!(f, "{origins} origin{}", plural(origins))?;
        let names = ["HTTP/1.1", "HTTP/2", "HTTP/3", "an unknown protocol"];
        let all = [Protocol::Http1, Protocol::Http2, Protocol::Http3, Protocol::Unknown];
        let of = |protocol| self.origins.iter().filter(|one| one.protocol == protocol).count();
        let used = names.iter().zip(all).map(|(name, one)| (name, of(one)));
        let used: Vec<String> = used
            .filter(|(_, count)| *count > 0)
            .map(
                |(name, count)| {
                    if count == origins { (*name).into() } else { format!("{count} {name}") }
                },
            )
            .collect();
        write!(f, " ({}), {}", used.join(", "), Bytes::new(bytes))?;
        if self.unpacked > 0 {
            write!(f, ", {} counted with the size after decompression", self.unpacked)?;
        }
        if let Some(load) = self.load {
            let whole = Time::from_millis(load.as_millis_f64().round() as u64);
            write!(f, "; loaded in {whole}")?;
        }
        if !self.left_out.is_empty() {
            write!(f, "; left out: {}", listed(&self.left_out))?;
        }
        Ok(())
    }
}
