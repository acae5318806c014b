//! Finished connections, grouped by the traffic they served.

use super::AdviseError;
use crate::error::Error;
use ipnet::IpNet;
use knee_advise::Connection;
use knee_record::{
    ConnectionRecord, DEFAULT_CONTROLLER, connections_note, flow_names, read_connections,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Connections that are assumed to share a path.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedGroup {
    /// What they have in common: the operator's group, the other end's prefix or the scenario's flow;
    /// and the port of the service, which is the host's own unless the host opened them.
    pub name: String,
    /// The controller of most connections.
    pub in_use: String,
    /// The same as the kernel names it.
    pub in_kernel: String,
    /// Prefixes of the clients, as few as cover the same addresses; empty for a run, and for
    /// connections that the host opened: a policy cannot name the port of the other end.
    pub prefixes: Vec<IpNet>,
    /// The host's port; `None` for connections that it opened.
    pub port: Option<u16>,
    /// The connections under that controller.
    pub connections: Vec<Connection>,
    /// How many of the group's connections have a known controller.
    pub seen: Seen,
    /// Length of the period in which they ended, seconds.
    pub span_s: f64,
}

impl ObservedGroup {
    /// Lowest RTT that any of the connections measured, seconds.
    pub fn base_rtt_s(&self) -> f64 {
        self.connections.iter().map(|one| one.rtt_min_s).fold(f64::INFINITY, f64::min)
    }

    /// Mean time between arrivals, seconds.
    pub fn interval_s(&self) -> f64 {
        self.span_s / self.connections.len().max(1) as f64
    }

    /// Mean payload of a connection, bytes.
    pub(crate) fn mean_bytes(&self) -> f64 {
        let all: u64 = self.connections.iter().map(|one| one.bytes).sum();
        all as f64 / self.connections.len().max(1) as f64
    }

    /// Offered load of all connections, bit/s.
    pub fn load_bps(&self) -> f64 {
        self.mean_bytes() * 8.0 / self.interval_s()
    }

    /// Highest throughput of any connection, bit/s.
    pub fn best_bps(&self) -> f64 {
        self.connections.iter().map(Connection::throughput_bps).fold(0.0, f64::max)
    }
}

/// Of how many connections of a group the controller is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// All connections.
    pub all: usize,
    /// Those of which no scan saw it: shorter than the time between two.
    pub unseen: usize,
    /// The controller that these are taken to have: the host's default at that time, or the one that
    /// the user named.
    pub assumed: Option<String>,
}

/// Finished connections by group and controller, with the period in which they ended.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    groups: BTreeMap<String, Group>,
    /// Controller of the connections of which none was seen; `None`: the host's default.
    in_use: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    prefixes: BTreeSet<IpNet>,
    port: Option<u16>,
    /// Connections by controller, with the length of the periods in which they ended.
    by: BTreeMap<String, (Vec<Connection>, f64)>,
    /// Names of these controllers in the kernel.
    in_kernel: BTreeMap<String, String>,
    seen: Seen,
}

impl Observed {
    /// Takes connections of which no controller was seen to have this one, by its name in the kernel.
    pub fn assuming(in_use: Option<String>) -> Observed {
        Observed { in_use, ..Observed::default() }
    }

    /// Adds a file of connections from any source, or all such files in a folder of a run or of
    /// `knee observe`.
    ///
    /// # Errors
    /// A file that cannot be read or has other contents; [`AdviseError::NoFiles`].
    pub fn read(&mut self, path: &Path) -> Result<(), Error> {
        self.read_by(path, &|_| None)
    }

    /// Does the same; connections without a group of the operator's are grouped by the provider of
    /// their prefix, if it has one.
    ///
    /// # Errors
    /// Those of [`Observed::read`].
    pub fn read_by(
        &mut self,
        path: &Path,
        provider: &dyn Fn(IpNet) -> Option<String>,
    ) -> Result<(), Error> {
        if !path.is_dir() {
            let mut rows = read_connections(path)?;
            for row in rows.iter_mut().filter(|row| row.group.is_empty()) {
                if let Some(provider) = row.prefix.parse().ok().and_then(provider) {
                    row.group = provider.into();
                }
            }
            self.assume(path, &mut rows)?;
            let names = flow_names(path)?;
            self.add_named(&rows, &names);
            return Ok(());
        }
        files(path)?.iter().try_for_each(|file| self.read_by(file, provider))
    }

    /// Gives connections of which no controller was seen the one that is assumed: a live host notes
    /// its default with its files. Those that a policy or an experiment treated keep none.
    fn assume(&mut self, path: &Path, rows: &mut [ConnectionRecord]) -> Result<(), Error> {
        let noted = match &self.in_use {
            Some(in_use) => Some(in_use.clone()),
            None => connections_note(path, DEFAULT_CONTROLLER)?,
        };
        let ended = rows.iter_mut().filter(|row| has_ended(row));
        for row in ended.filter(|row| row.flow.is_none() && connection(row).is_some()) {
            let seen = &mut self.groups.entry(name(row, &BTreeMap::new())).or_default().seen;
            seen.all += 1;
            if !row.cc.is_empty() {
                continue;
            }
            seen.unseen += 1;
            if let Some(noted) = noted.as_deref().filter(|_| row.arm.is_empty()) {
                row.cc = noted.into();
                seen.assumed = Some(noted.to_string());
            }
        }
        Ok(())
    }

    /// Adds connections that ended within one period.
    pub fn add(&mut self, rows: &[ConnectionRecord]) {
        self.add_named(rows, &BTreeMap::new());
    }

    fn add_named(&mut self, rows: &[ConnectionRecord], flows: &BTreeMap<u32, String>) {
        let name = |row: &ConnectionRecord| name(row, flows);
        let mut seen: BTreeMap<(String, String), Vec<Connection>> = BTreeMap::new();
        for row in rows.iter().filter(|row| has_ended(row)) {
            if let Some(one) = connection(row) {
                // `knee cc load` prefixes the kernel names of Knee's own controllers.
                let cc = row.cc.strip_prefix("knee_").unwrap_or(&row.cc).replace('_', "-");
                let group = self.groups.entry(name(row)).or_default();
                if opened_to(row).is_none() {
                    group.prefixes.extend(row.prefix.parse::<IpNet>());
                    group.port = row.local_port;
                }
                group.in_kernel.entry(cc.clone()).or_insert_with(|| row.cc.to_string());
                seen.entry((name(row), cc)).or_default().push(one);
            }
        }
        let span_s = span_s(rows);
        for ((name, cc), connections) in seen {
            let known = self.groups.entry(name).or_default().by.entry(cc).or_default();
            known.0.extend(connections);
            known.1 += span_s;
        }
    }

    /// Returns the groups, each with the connections of its most frequent controller, the group
    /// with the most bytes first.
    pub fn groups(self) -> Vec<ObservedGroup> {
        let group = |(name, Group { prefixes, port, by, mut in_kernel, seen }): (String, Group)| {
            let most = by.into_iter().max_by_key(|(_, (connections, _))| connections.len());
            let (in_use, (connections, span_s)) = most?;
            let prefixes = IpNet::aggregate(&prefixes.into_iter().collect());
            let in_kernel = in_kernel.remove(&in_use).unwrap_or_default();
            Some(ObservedGroup {
                name,
                in_use,
                in_kernel,
                prefixes,
                port,
                connections,
                seen,
                span_s,
            })
        };
        let mut found: Vec<ObservedGroup> = self.groups.into_iter().filter_map(group).collect();
        let bytes =
            |group: &ObservedGroup| -> u64 { group.connections.iter().map(|one| one.bytes).sum() };
        found.sort_by_key(|group| std::cmp::Reverse(bytes(group)));
        found
    }
}

/// Files of connections: the file itself, or those of a folder.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let unreadable = |source| Error::Read { path: path.to_path_buf(), source };
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let entries = entries.collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
    let is_one = |name: &str| name.starts_with("connections") && name.ends_with(".parquet");
    let names = entries.iter().map(fs::DirEntry::path);
    let mut files: Vec<PathBuf> = names
        .filter(|path| path.file_name().is_some_and(|name| is_one(&name.to_string_lossy())))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(AdviseError::NoFiles(path.to_path_buf()).into());
    }
    Ok(files)
}

/// Time from the earliest start (the end, if the start was not seen) to the last end.
fn span_s(rows: &[ConnectionRecord]) -> f64 {
    let first = rows.iter().map(|row| row.start_ns.unwrap_or(row.end_ns)).min();
    let last = rows.iter().map(|row| row.end_ns).max();
    first.zip(last).map_or(0.0, |(first, last)| last.saturating_sub(first) as f64 / 1e9)
}

/// Whether the row's connection has ended. A live host writes a row only when a connection closes;
/// a run also writes one for each connection that is open at its end.
fn has_ended(row: &ConnectionRecord) -> bool {
    row.flow.is_none() || row.completion_ns.is_some()
}

fn name(row: &ConnectionRecord, flows: &BTreeMap<u32, String>) -> String {
    let who = match (&*row.group, &*row.prefix, row.flow) {
        ("", "", Some(flow)) => {
            return flows.get(&flow).cloned().unwrap_or_else(|| format!("flow {flow}"));
        }
        ("", prefix, _) => prefix,
        (group, ..) => group,
    };
    match (opened_to(row), row.local_port) {
        (Some(port), _) => format!("{who}, to port {port}"),
        (None, Some(port)) => format!("{who}, port {port}"),
        (None, None) => who.to_string(),
    }
}

/// Smallest port that Linux gives to connections that a host opens (`net.ipv4.ip_local_port_range`).
const OPENED_FROM: u16 = 32_768;

/// The port of the other end, if this one opened the connection: it then has a port that Linux chose,
/// a different one for each connection, and the other end has not.
fn opened_to(row: &ConnectionRecord) -> Option<u16> {
    row.local_port.filter(|local| *local >= OPENED_FROM)?;
    row.remote_port.filter(|remote| *remote < OPENED_FROM)
}

/// Extracts the fields that advice needs; `None` if nothing was sent or a field is missing.
pub(super) fn connection(row: &ConnectionRecord) -> Option<Connection> {
    let seconds = |ns: Option<u64>| ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    Some(Connection {
        bytes: row.acked_bytes.filter(|bytes| *bytes > 0)?,
        busy_s: seconds(row.busy_ns)?,
        sent_bytes: row.sent_bytes?,
        retransmitted_bytes: row.retransmitted_bytes?,
        rtt_min_s: seconds(row.rtt_min_ns)?,
        srtt_s: seconds(row.srtt_ns)?,
        delivery_rate_bps: row.delivery_rate_bps.filter(|rate| *rate > 0).map(|rate| rate as f64),
    })
}
