//! What a running end tells whoever records it, ten times a second, a line of JSON each.

use crate::engine::Engine;
use knee_quic::{BundleId, PathState};
use knee_units::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

/// How often.
pub const STEP: Duration = Duration::from_millis(100);

/// The state of one bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shot {
    /// When, since the start of the recording, ns.
    pub time_ns: u64,
    /// `client` or `server`.
    pub role: String,
    /// Who is at the other end.
    pub peer: String,
    /// What fills the links, and shares them.
    pub controller: String,
    /// What chooses the link of a packet.
    pub scheduler: String,
    /// Bytes that wait or are on their way.
    pub held_bytes: u64,
    /// Its links, as they are now.
    pub links: Vec<LinkShot>,
    /// Decisions since the last line, as `knee-decisions` writes them; each begins with its
    /// own first line.
    pub decisions: Vec<String>,
    /// Decisions that were not recorded, because there were too many.
    pub decisions_lost: u64,
}

/// The state of a link. Counts are since the link came up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkShot {
    /// Its name at the client.
    pub name: String,
    /// It was silent for too long, and is not used.
    pub is_silent: bool,
    /// It waits, since a cheaper one works.
    pub is_backup: bool,
    /// Bytes of packets sent, acknowledged and lost, and received.
    pub sent: u64,
    /// Bytes of packets that are acknowledged.
    pub delivered: u64,
    /// Bytes of packets that are lost.
    pub lost: u64,
    /// Bytes of packets that came.
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
    /// The last RTT, ns.
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

/// Gives the bundle of a client that is asked for by name, and who is at its other end.
pub type Chosen = dyn Fn(&str) -> Option<(BundleId, String)>;

/// Whose shots are taken.
pub struct Shooting {
    /// What runs the end.
    pub engine: Rc<Engine>,
    /// `client` or `server`.
    pub role: &'static str,
    /// The bundle that is recorded, and who is at its other end: the one of the client that
    /// was asked for, or the first.
    pub bundle: Box<Chosen>,
    /// Controller and scheduler, by name.
    pub tuning: (String, String),
}

/// Tells whoever asked, until that one has heard enough.
pub async fn tell(mut asker: UnixStream, shooting: &Shooting, of: &str) {
    let began = shooting.engine.now();
    let mut taped = None;
    let mut tick = tokio::time::interval(STEP);
    loop {
        tick.tick().await;
        let now = (shooting.bundle)(of);
        // A client's bundle may end, and another one begin.
        if taped != now.as_ref().map(|(id, _)| *id) {
            want(&shooting.engine, taped, false);
            taped = now.as_ref().map(|(id, _)| *id);
            want(&shooting.engine, taped, true);
        }
        let mut line = serde_json::to_vec(&shot(shooting, now, began)).unwrap_or_default();
        line.push(b'\n');
        if asker.write_all(&line).await.is_err() {
            break;
        }
    }
    want(&shooting.engine, taped, false);
}

fn want(engine: &Engine, id: Option<BundleId>, wanted: bool) {
    if let Some(id) = id {
        engine.with(|host, _| host.tape(&id).inspect(|tape| tape.want(wanted)));
    }
}

fn shot(shooting: &Shooting, now: Option<(BundleId, String)>, began: Time) -> Shot {
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
        let waiting = host.tape(&id).map(|tape| tape.take()).unwrap_or_default();
        shot.decisions = waiting.traces.iter().map(ToString::to_string).collect();
        shot.decisions_lost = waiting.lost;
    });
    shot
}
