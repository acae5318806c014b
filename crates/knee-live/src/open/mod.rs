//! Open connections at intervals, the host's own counters beside them, and where packets were lost.

mod connections;
mod files;
mod hops;
mod host;
mod json;
mod lost;
mod tables;

pub use connections::{Change, OpenConnection};
pub use files::{COUNTERS_SCHEMA, OPEN_SCHEMA};
pub use hops::{HOP_INTERVAL, Hop, Hops, HopsSeen};
pub use host::{HostChange, InterfaceChange, QdiscChange};
pub use lost::{Lost, Place};
#[cfg(feature = "page")]
pub(crate) use lost::{drops, retransmits_within};

use crate::LiveError;
use crate::files::Written;
use crate::group::Groups;
use crate::observer::{since_1970, text_of};
use connections::Connections;
use files::{OpenFiles, Span};
use ipnet::IpNet;
use knee_host::{CounterReader, Counters};
use lost::Recent;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Settings of an observer of open connections.
#[derive(Clone, Debug)]
pub struct OpenSettings {
    /// Output directory.
    pub directory: PathBuf,
    /// Groups of remote prefixes.
    pub groups: Groups,
    /// Whether to keep whole addresses rather than prefixes of 24 and 48 bits.
    pub keep_addresses: bool,
    /// Limit on the total size of the files; beyond it the oldest are removed.
    pub bytes_max: u64,
}

/// An interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Its end, since 1970 (UTC).
    pub unix: Duration,
    /// Its length.
    pub length: Duration,
    /// All connections that are open at its end, by cookie.
    pub connections: Vec<OpenConnection>,
    /// The counters of the host.
    pub host: HostChange,
    /// Where packets were lost in the last intervals.
    pub lost: Lost,
}

/// Observer of the open connections of a namespace.
pub struct OpenObserver {
    settings: OpenSettings,
    connections: Connections,
    reader: CounterReader,
    counters: Counters,
    recent: Recent,
    files: OpenFiles,
    prefixes: BTreeMap<IpNet, Arc<str>>,
    /// Whose own connections are left out.
    without: Option<SocketAddr>,
    /// When connections were last read.
    looked: Instant,
    /// When the current files began, on a monotonic clock and since 1970 (UTC).
    clock: (Instant, Duration),
}

impl OpenObserver {
    /// Makes the first reading, in the network namespace of the calling thread, on which
    /// [`OpenObserver::look`] must be called.
    ///
    /// # Errors
    ///
    /// If the host lacks sock_diag or the directory cannot be created.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn begin(settings: OpenSettings) -> Result<OpenObserver, LiveError> {
        let mut reader = CounterReader::open()?;
        let files = OpenFiles::new(settings.directory.clone(), settings.bytes_max)?;
        let counters = reader.read()?;
        let looked = Instant::now();
        let mut connections = Connections::default();
        connections.look(&settings.groups)?;
        Ok(OpenObserver {
            settings,
            connections,
            reader,
            counters,
            recent: Recent::default(),
            files,
            prefixes: BTreeMap::new(),
            without: None,
            looked,
            clock: (looked, since_1970()),
        })
    }

    /// Leaves out the connections of a page at this address from now on.
    pub fn leave_out(&mut self, page: SocketAddr) {
        self.without = Some(page);
    }

    /// Ends an interval: reads the open connections and the counters, and writes their rows.
    ///
    /// # Errors
    ///
    /// Errors of reading and of writing files.
    #[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
    pub fn look(&mut self) -> Result<Arc<Look>, LiveError> {
        // Counters first: what they count was sent before what connections count.
        let counters = self.reader.read()?;
        let host = HostChange::between(&self.counters, &counters);
        self.counters = counters;
        let now = Instant::now();
        let mut connections = self.connections.look(&self.settings.groups)?;
        if let Some(page) = self.without {
            connections.retain(|one| one.local != page && one.remote != page);
        }
        let length = now.saturating_duration_since(self.looked);
        self.looked = now;
        if !self.files.is_begun() {
            // It may have been set meanwhile.
            self.clock = (now, since_1970());
        }
        let unix = self.clock.1 + now.saturating_duration_since(self.clock.0);
        let lost = self.recent.add(length.as_secs_f64(), &connections, &host);
        let OpenObserver { settings, prefixes, files, .. } = self;
        files.push(Span { unix, length }, &connections, &host, |one| {
            text_of(prefixes, one.remote.ip(), settings.keep_addresses)
        })?;
        Ok(Arc::new(Look { unix, length, connections, host, lost }))
    }

    /// Completes all files and returns the list.
    ///
    /// # Errors
    ///
    /// Errors of writing files.
    pub fn finish(self) -> Result<Written, LiveError> {
        self.files.finish()
    }
}
