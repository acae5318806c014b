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

/// Interval between shots.
pub const STEP: Duration = Duration::from_millis(100);

/// State of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shot {
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
    pub links: Vec<LinkShot>,
    /// Decisions since the last line, in the format `knee-decisions`; each entry begins with that
    /// format's first line.
    pub decisions: Vec<String>,
    /// Number of decisions not recorded, because there were too many.
    pub decisions_lost: u64,
}

/// State of a link. Counts restart when the link comes up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkShot {
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

impl LinkShot {
    fn of(path: &PathState) -> LinkShot {
        let bits = |rate: Option<Rate>| rate.map_or(0, Rate::as_bits_per_second);
        let seen = &path.observed;
        LinkShot {
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

/// What an end answers instead of shots to a recorder that it cannot serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Why there are none.
    pub refused: String,
}

/// What an end needs to take shots.
pub struct Shooting {
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
    pub taped: RefCell<BTreeSet<BundleId>>,
}

impl Shooting {
    /// Returns why there are no shots of this client, or `None` if there may be some.
    async fn refusal(&self, of: &str) -> Option<String> {
        if self.role == "server" && !of.is_empty() && !self.names.iter().any(|name| name == of) {
            let names = self.names.join(", ");
            return Some(format!("no client is named {of:?}: the names are {names}"));
        }
        let is_taped = || {
            let now = (self.bundle)(of);
            now.is_some_and(|(id, _)| self.taped.borrow().contains(&id))
        };
        // A recorder that has just ended is noticed at its next shot.
        for _ in 0..3 {
            if !is_taped() {
                return None;
            }
            tokio::time::sleep(STEP).await;
        }
        is_taped().then(|| "another recording is under way: it must end first".to_owned())
    }

    /// Begins to record the decisions of a bundle, unless another recorder does.
    fn begin(&self, id: BundleId) -> bool {
        let is_mine = self.taped.borrow_mut().insert(id);
        if is_mine {
            want(&self.engine, id, true);
        }
        is_mine
    }

    fn end(&self, id: BundleId) {
        self.taped.borrow_mut().remove(&id);
        want(&self.engine, id, false);
    }
}

/// Sends shots to a recorder until it closes the connection.
pub async fn tell(mut asker: UnixStream, shooting: &Shooting, of: &str) {
    let mut of = of.to_owned();
    if let Some(refused) = shooting.refusal(&of).await {
        // Fails if the recorder has gone away.
        let _ = asker.write_all(&line(&Refusal { refused })).await;
        return;
    }
    let began = shooting.engine.now();
    let mut taped: Option<BundleId> = None;
    let mut tick = tokio::time::interval(STEP);
    loop {
        tick.tick().await;
        let now = (shooting.bundle)(&of);
        // The first client stays the one that is recorded.
        if let Some((_, peer)) = now.as_ref().filter(|_| of.is_empty()) {
            of.clone_from(peer);
        }
        // A client's bundle may end, and another one begin.
        let id = now.as_ref().map(|(id, _)| *id);
        if taped != id {
            if let Some(old) = taped {
                shooting.end(old);
            }
            taped = id.filter(|id| shooting.begin(*id));
        }
        if asker.write_all(&line(&shot(shooting, now, taped.is_some(), began))).await.is_err() {
            break;
        }
    }
    if let Some(id) = taped {
        shooting.end(id);
    }
}

/// Formats a value as a line.
fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

fn want(engine: &Engine, id: BundleId, wanted: bool) {
    engine.with(|host, _| host.tape(&id).inspect(|tape| tape.want(wanted)));
}

fn shot(shooting: &Shooting, now: Option<(BundleId, String)>, is_taped: bool, began: Time) -> Shot {
    let (controller, scheduler) = shooting.tuning.clone();
    let mut shot = Shot {
        time_ns: (shooting.engine.now() - began).as_nanos(),
        role: shooting.role.to_owned(),
        controller,
        scheduler,
        ..Shot::default()
    };
    let Some((id, peer)) = now else { return shot };
    shot.peer = peer;
    shooting.engine.with(|host, _| {
        shot.held_bytes = host.bundle(&id).map(|bundle| bundle.held()).unwrap_or_default();
        let paths = host.paths(&id);
        shot.links = paths.iter().flatten().filter(|path| path.is_up).map(LinkShot::of).collect();
        let tape = host.tape(&id).filter(|_| is_taped);
        let waiting = tape.map(|tape| tape.take()).unwrap_or_default();
        shot.decisions = waiting.traces.iter().map(ToString::to_string).collect();
        shot.decisions_lost = waiting.lost;
    });
    shot
}
