//! The paths of a host's bundles, for those who watch.

use super::{Bond, BundleId, Host, LinkKey, Tape};
use crate::congestion::{CongestionControl, Observed};
use knee_bundle::{BundleCounters, PathUse};
use noq_proto::PathId;
use std::net::SocketAddr;

/// A path of a bundle, for those who watch.
#[derive(Clone, Debug)]
pub struct PathState {
    /// Where its packets go.
    pub peer: SocketAddr,
    /// What the client calls it.
    pub label: String,
    /// It can be used.
    pub is_up: bool,
    /// It was silent for too long.
    pub is_suspect: bool,
    /// It waits, since a cheaper one works.
    pub is_backup: bool,
    /// What both ends think of it.
    pub path_use: PathUse,
    /// Bytes of the largest packet that it carries.
    pub packet: u16,
    /// Bytes of packets that came over it.
    pub received: u64,
    /// What its congestion control knows.
    pub observed: Observed,
}

impl Host {
    /// The paths of a bundle, by their number; none: there is none of it now.
    pub fn paths(&self, id: &BundleId) -> Vec<Option<PathState>> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let state = |(number, key): (usize, &Option<LinkKey>)| {
            let link = self.links.get(&(*key)?)?;
            Some(PathState {
                peer: canonical(link.connection.network_path(PathId::ZERO).ok()?.remote()),
                label: link.member.as_ref()?.label.clone(),
                is_up: link.up,
                is_suspect: bond.bundle.is_suspect(number),
                is_backup: self.cheapest(bond) < bond.bundle.path_use(number).cost,
                path_use: bond.bundle.path_use(number),
                packet: link.connection.current_mtu(),
                received: link.received,
                observed: link.control.observe(),
            })
        };
        bond.links.iter().enumerate().map(state).collect()
    }

    /// Congestion control of a bundle's paths, by their number; none: the path has not
    /// joined.
    pub fn controls(&self, id: &BundleId) -> Vec<Option<CongestionControl>> {
        let Some(bond) = self.bonds.get(id) else { return Vec::new() };
        let control = |key: &Option<LinkKey>| Some(self.links.get(&(*key)?)?.control.clone());
        bond.links.iter().map(control).collect()
    }

    /// Counters of a bundle.
    pub fn counters(&self, id: &BundleId) -> BundleCounters {
        self.bonds.get(id).map(|bond| bond.bundle.counters()).unwrap_or_default()
    }

    /// Where a bundle's scheduler records what it decides, while that is wanted.
    pub fn tape(&self, id: &BundleId) -> Option<Tape> {
        self.bonds.get(id).map(|bond| bond.tape.clone())
    }

    /// What the cheapest path costs that works.
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

/// An address of IPv4 is shown as one, whatever socket it came to.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
