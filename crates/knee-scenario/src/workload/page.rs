//! A web page.

use super::{Kind, Room};
use crate::check::{Inputs, in_range};
use crate::read::{Optional, table, words};
use crate::source::Reading;
use knee_workload::{Http, Page, Protocol, Workload};

const CONNECTIONS_MAX: u64 = 1_000;

table! {
    /// A web page: objects, some of which are requested only after others have
    /// arrived.
    "a page" PageFile {
        /// Name of a file, relative to the scenario's folder: a HAR, or a trace
        /// of DevTools' performance panel; or comma-separated values under the
        /// names name,bytes,after, where after holds names, separated by
        /// spaces. Default: a page of 53 objects and 2.3 MB.
        objects: Optional<String>,
        /// How the objects are fetched. Default: as the browser recorded it for
        /// each origin, otherwise "1.1".
        http: Optional<HttpWord>,
        /// HTTP/1.1: maximum number of connections to each origin. Default: 6.
        connections: Optional<u64>,
    }
}

words! {
    /// How the objects of a page are fetched.
    "HTTP" HttpWord {
        /// One request at a time on each of several connections.
        Version1 = "1.1",
        /// All requests at once on one connection, as in HTTP/2.
        Multiplexed = "multiplexed",
    }
}

impl Kind for PageFile {
    fn alone() -> Option<PageFile> {
        Some(PageFile::default())
    }

    fn check(
        &mut self,
        _room: &Room,
        inputs: &mut Inputs<'_>,
        reading: &mut Reading<'_>,
    ) -> Option<Workload> {
        let page = match self.objects.at().cloned() {
            Some(name) => {
                let page = inputs.page(&name, reading)?;
                self.objects = Optional::new(inputs.resolved(&name.value));
                Some(page)
            }
            None => None,
        };
        let (objects, protocols) = match page {
            Some(page) => (page.objects, page.origins),
            None => (knee_workload::default_page(), vec![Protocol::Unknown]),
        };
        Some(Workload::Page(Page { objects, origins: origins(self, &protocols, reading) }))
    }
}

/// Returns how the objects of each origin are fetched.
fn origins(file: &mut PageFile, protocols: &[Protocol], reading: &mut Reading<'_>) -> Vec<Http> {
    in_range(&file.connections, "the number of connections", 1, CONNECTIONS_MAX, reading);
    if protocols.iter().all(|protocol| *protocol == Protocol::Unknown) {
        file.http.fill(HttpWord::Version1);
    }
    let is_multiplexed = |protocol: &Protocol| match file.http.get() {
        Some(word) => *word == HttpWord::Multiplexed,
        None => matches!(protocol, Protocol::Http2 | Protocol::Http3),
    };
    let multiplexed: Vec<bool> = protocols.iter().map(is_multiplexed).collect();
    if multiplexed.iter().all(|is| *is) {
        if let Some(span) = file.connections.span() {
            let message = "a multiplexed page has one connection to each origin";
            reading.problem(span, message, "remove connections, or write http = \"1.1\"");
        }
        return vec![Http::Multiplexed; multiplexed.len()];
    }
    let connections = file.connections.fill(6).min(CONNECTIONS_MAX) as u32;
    let http = |is| if is { Http::Multiplexed } else { Http::Version1 { connections } };
    multiplexed.into_iter().map(http).collect()
}
