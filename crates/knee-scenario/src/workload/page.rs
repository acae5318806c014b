//! A web page.

use super::{Kind, Room};
use crate::check::{Inputs, in_range};
use crate::read::{Optional, table, words};
use crate::source::Reading;
use knee_workload::{Http, Page, Workload};

const CONNECTIONS_MAX: u64 = 1_000;

table! {
    /// A web page: objects, some of which are requested only after others have
    /// arrived.
    "a page" PageFile {
        /// Name of a file of comma-separated values under the names
        /// name,bytes,after, relative to the scenario's folder; after holds
        /// names, separated by spaces. Default: a page of 53 objects and
        /// 2.3 MB.
        objects: Optional<String>,
        /// How the objects are fetched. Default: "1.1".
        http: Optional<HttpWord>,
        /// HTTP/1.1: maximum number of connections. Default: 6.
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
        let http = http(self, reading);
        let objects = match self.objects.at().cloned() {
            Some(name) => {
                let objects = inputs.page(&name, reading)?;
                self.objects = Optional::new(inputs.resolved(&name.value));
                objects
            }
            None => knee_workload::default_page(),
        };
        Some(Workload::Page(Page { objects, http }))
    }
}

fn http(file: &mut PageFile, reading: &mut Reading<'_>) -> Http {
    in_range(&file.connections, "the number of connections", 1, CONNECTIONS_MAX, reading);
    match file.http.fill(HttpWord::Version1) {
        HttpWord::Version1 => {
            let connections = file.connections.fill(6).min(CONNECTIONS_MAX);
            Http::Version1 { connections: connections as u32 }
        }
        HttpWord::Multiplexed => {
            if let Some(span) = file.connections.span() {
                let message = "a multiplexed page has one connection";
                reading.problem(span, message, "remove connections, or write http = \"1.1\"");
            }
            Http::Multiplexed
        }
    }
}
