//! Shots: what a running end sends to a recorder ten times a second, as lines of JSON.

use crate::engine::Engine;
use knee_quic::{BundleId, PathState};
use knee_units::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// Interval between snapshots.
pub const STEP: Duration = Duration::from_millis(100);

/// State of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Time since the start of the recording, ns.
    pub time_ns: u64,
    /// `client` or `server`.
    pub role: String,
    /// Name of the other end.
    pub peer: String,
    /// Congestion controller of the links, as it is written: a name, in quotes, or a table.
    pub controller: String,
    /// Scheduler, which chooses the link of a packet, as it is written.
    pub scheduler: String,
    /// Bytes that wait or are in flight.
    pub held_bytes: u64,
    /// Current state of the links.
    pub links: Vec<LinkSnapshot>,
    /// Decisions since the last line, in the format `knee-decisions`; each entry begins with that
    /// format's first line.
    pub decisions: Vec<String>,
    /// Number of decisions not recorded, because there were too many.
    pub decisions_lost: u64,
}

/// State of a link. Counts restart when the link comes up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSnapshot {
    /// Name of the link at the client.
    pub name: String,
    /// The link has been silent for too long, and is not used.
    pub is_silent: bool,
    /// The link waits, because a cheaper one works.
    pub is_backup: bool,
    /// Bytes of packets sent.
    pub sent: u64,
    /// Bytes of packets acknowledged.
    pub delivered: u64,
    /// Bytes of packets lost.
    pub lost: u64,
    /// Bytes of packets received.
    pub received: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Congestion window, bytes.
    pub window: u64,
    /// Pacing rate, bit/s; zero: none.
    pub pacing_bps: u64,
    /// The controller's estimate of the rate, bit/s; zero: none.
    pub bandwidth_bps: u64,
    /// Latest RTT, ns.
    pub rtt_ns: u64,
    /// Smoothed RTT, ns.
    pub srtt_ns: u64,
    /// Lowest RTT, ns.
    pub min_rtt_ns: u64,
}

impl LinkSnapshot {
    fn of(path: &PathState) -> LinkSnapshot {
        let bits = |rate: Option<Rate>| rate.map_or(0, Rate::as_bits_per_second);
        let seen = &path.observed;
        LinkSnapshot {
            name: path.label.clone(),
            is_silent: path.is_suspect,
            is_backup: path.is_backup,
            sent: seen.sent,
            delivered: seen.delivered,
            lost: seen.lost,
            received: path.received,
            sent_packets: seen.sent_packets,
            in_flight: seen.in_flight,
            window: seen.window,
            pacing_bps: bits(seen.decision.pacing_rate),
            bandwidth_bps: bits(seen.state.bandwidth),
            rtt_ns: seen.rtt.as_nanos(),
            srtt_ns: seen.srtt.as_nanos(),
            min_rtt_ns: seen.min_rtt.as_nanos(),
        }
    }
}

/// Returns the bundle of the named client, and the name of the other end.
pub type Chosen = dyn Fn(&str) -> Option<(BundleId, String)>;

/// What an end answers instead of snapshots to a recorder that it cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why there are none.
    pub refused: String,
}

/// What an end needs to take snapshots.
pub struct SnapshotSource {
    /// Runs the end.
    pub engine: Rc<Engine>,
    /// `client` or `server`.
    pub role: &'static str,
    /// Selects the bundle to record, by the requested client or else the first, and names the other
    /// end.
    pub bundle: Box<Chosen>,
    /// Names of the clients of a server.
    pub names: Vec<String>,
    /// Controller and scheduler, as they are written.
    pub tuning: (String, String),
    /// Bundles whose decisions a recorder takes. Another one of the same bundle would get the rest of
    /// them, and neither a complete trace.
    pub recorded: RefCell<BTreeSet<BundleId>>,
}

impl SnapshotSource {
    /// Returns why there are no snapshots of this client, or `None` if there may be some.
    async fn refusal(&self, of: &str) -> Option<String> {
        if self.role == "server" && !of.is_empty() && !self.names.iter().any(|name| name == of) {
            let names = self.names.join(", ");
            return Some(format!("no client is named {of:?}: the names are {names}"));
        }
        let is_recorded = || {
            let now = (self.bundle)(of);
            now.is_some_and(|(id, _)| self.recorded.borrow().contains(&id))
        };
        // A recorder that has just ended is noticed at its next snapshot.
        for _ in 0..3 {
            if !is_recorded() {
                return None;
            }
            tokio::time::sleep(STEP).await;
        }
        is_recorded().then(|| "another recording is under way: it must end first".to_owned())
    }

    /// Begins to record the decisions of a bundle, unless another recorder does.
    fn begin(&self, id: BundleId) -> bool {
        let is_mine = self.recorded.borrow_mut().insert(id);
        if is_mine {
            want(&self.engine, id, true);
        }
        is_mine
    }

    fn end(&self, id: BundleId) {
        self.recorded.borrow_mut().remove(&id);
        want(&self.engine, id, false);
    }
}

/// Sends snapshots to a recorder until it closes the connection.
pub async fn send_snapshot(mut asker: UnixStream, source: &SnapshotSource, of: &str) {
    let mut of = of.to_owned();
    if let Some(refused) = source.refusal(&of).await {
        // Fails if the recorder has gone away.
        let _ = asker.write_all(&line(&Refusal { refused })).await;
        return;
    }
    let began = source.engine.now();
    let mut recorded: Option<BundleId> = None;
    let mut tick = tokio::time::interval(STEP);
    loop {
        tick.tick().await;
        let now = (source.bundle)(&of);
        // The first client stays the one that is recorded.
        if let Some((_, peer)) = now.as_ref().filter(|_| of.is_empty()) {
            of.clone_from(peer);
        }
        // A client's bundle may end, and another one begin.
        let id = now.as_ref().map(|(id, _)| *id);
        if recorded != id {
            if let Some(old) = recorded {
                source.end(old);
            }
            recorded = id.filter(|id| source.begin(*id));
        }
        if asker.write_all(&line(&snapshot(source, now, recorded.is_some(), began))).await.is_err()
        {
            break;
        }
    }
    if let Some(id) = recorded {
        source.end(id);
    }
}

/// Formats a value as a line.
fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

fn want(engine: &Engine, id: BundleId, wanted: bool) {
    engine.with(|host, _| host.decisions(&id).inspect(|decisions| decisions.want(wanted)));
}

fn snapshot(
    source: &SnapshotSource,
    now: Option<(BundleId, String)>,
    is_recorded: bool,
    began: Time,
) -> Snapshot {
    let (controller, scheduler) = source.tuning.clone();
    let mut snapshot = Snapshot {
        time_ns: (source.engine.now() - began).as_nanos(),
        role: source.role.to_owned(),
        controller,
        scheduler,
        ..Snapshot::default()
    };
    let Some((id, peer)) = now else { return snapshot };
    snapshot.peer = peer;
    source.engine.with(|host, _| {
        snapshot.held_bytes = host.bundle(&id).map(|bundle| bundle.held()).unwrap_or_default();
        let paths = host.paths(&id);
        snapshot.links =
            paths.iter().flatten().filter(|path| path.is_up).map(LinkSnapshot::of).collect();
        let decisions = host.decisions(&id).filter(|_| is_recorded);
        let waiting = decisions.map(|decisions| decisions.take()).unwrap_or_default();
        snapshot.decisions = waiting.traces.iter().map(ToString::to_string).collect();
        snapshot.decisions_lost = waiting.lost;
    });
    snapshot
}
