//! State of the paths of a host's bundles.

use super::{Bond, BundleId, DecisionQueue, Host, LinkKey};
use crate::congestion::{CongestionControl, Observed};
use knee_bundle::{BundleCounters, DATAGRAM_MIN, PathUse, message_max};
use knee_multipath::sched::{Path, Status};
use knee_units::Time;
use noq_proto::PathId;
use std::net::SocketAddr;

/// State of a path of a bundle.
#[derive(Clone, Debug)]
pub struct PathState {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// The client's name for the path.
    pub label: String,
    /// Whether it is available.
    pub is_up: bool,
    /// Whether it was silent for too long.
    pub is_suspect: bool,
    /// Whether it waits, because a cheaper one works.
    pub is_backup: bool,
    /// How both ends want it to be used.
    pub path_use: PathUse,
    /// Largest packet that it carries, bytes.
    pub packet: u16,
    /// Bytes of packets received.
    pub received: u64,
    /// State of its congestion control.
    pub observed: Observed,
}

impl Host {
    /// Returns the paths of a bundle, by number; `None` for one that has no connection now.
    pub fn paths(&self, id: &BundleId) -> Vec<Option<PathState>> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let state = |(number, key): (usize, &Option<LinkKey>)| {
            let link = self.links.get(&(*key)?)?;
            Some(PathState {
                peer: canonical(link.connection.network_path(PathId::ZERO).ok()?.remote()),
                label: link.member.as_ref()?.label.clone(),
                is_up: link.up,
                is_suspect: bond.bundle.is_suspect(number),
                is_backup: self.cheapest(bond) < bond.bundle.path_use(number).cost
                    && !bond.bundle.overflows(number),
                path_use: bond.bundle.path_use(number),
                packet: link.connection.current_mtu(),
                received: link.received,
                observed: link.control.observe(),
            })
        };
        bond.links.iter().enumerate().map(state).collect()
    }

    /// Returns the largest message that each available path of a bundle carries now, bytes.
    pub fn message_max(&mut self, id: &BundleId) -> usize {
        let links = self.bonds.get(id).map(|bond| bond.links.as_slice()).unwrap_or_default();
        let carried = links.iter().flatten().filter_map(|key| {
            let link = self.links.get_mut(key).filter(|link| link.up)?;
            Some(link.datagram_max())
        });
        message_max(carried.min().unwrap_or_default().max(DATAGRAM_MIN))
    }

    /// Returns the congestion controls of a bundle's paths, by number; `None` for one that has not
    /// joined.
    pub fn controls(&self, id: &BundleId) -> Vec<Option<CongestionControl>> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let control = |key: &Option<LinkKey>| Some(self.links.get(&(*key)?)?.control.clone());
        bond.links.iter().map(control).collect()
    }

    /// Returns the counters of a bundle.
    pub fn counters(&self, id: &BundleId) -> BundleCounters {
        self.bonds.get(id).map(|bond| bond.bundle.counters()).unwrap_or_default()
    }

    /// Returns the queue of a bundle's scheduling decisions, which are recorded on request.
    pub fn decisions(&self, id: &BundleId) -> Option<DecisionQueue> {
        self.bonds.get(id).map(|bond| bond.decisions.clone())
    }

    /// Returns the paths of a bundle as its scheduler sees them.
    pub(super) fn views(&mut self, now: Time, id: &BundleId) -> Vec<Path> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let mut paths = Vec::with_capacity(bond.links.len());
        let cheapest = self.cheapest(bond);
        for (number, key) in bond.links.iter().enumerate() {
            let status = if bond.bundle.is_suspect(number) {
                Status::Suspect
            } else if bond.bundle.path_use(number).cost > cheapest {
                Status::Backup
            } else {
                Status::Active
            };
            let link = key.and_then(|key| self.links.get_mut(&key)).filter(|link| link.up);
            let down = Path { status: Status::Down, ..Path::default() };
            paths.push(link.map_or(down, |link| link.view(now, status)));
        }
        paths
    }

    /// Returns the cost of the cheapest path that works.
    pub(super) fn cheapest(&self, bond: &Bond) -> u8 {
        let links = bond.links.iter().enumerate();
        let works = |(number, key): (usize, &Option<LinkKey>)| {
            let is_up = self.links.get(&(*key)?)?.up;
            let works = is_up && !bond.bundle.is_suspect(number);
            works.then(|| bond.bundle.path_use(number).cost)
        };
        links.filter_map(works).min().unwrap_or(u8::MAX)
    }
}

/// Converts an IPv4-mapped address to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
