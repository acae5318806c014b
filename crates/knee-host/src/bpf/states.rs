//! What BBRv3 in BPF knows of a connection. `TCP_CC_INFO` cannot show it, since BPF has no such
//! hook; but the program keeps it in the socket's storage, which the socket's owner may read.

use crate::ControllerState;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

/// Phases, in the order of `enum phase` of `bpf/bbr3/types.h`.
const PHASES: [&str; 7] = [
    "startup",
    "drain",
    "probe_bw_down",
    "probe_bw_cruise",
    "probe_bw_refill",
    "probe_bw_up",
    "probe_rtt",
];

/// Offsets in `struct bbr3`, which `struct flow` begins with: bandwidth in bytes per second,
/// minimum RTT in microseconds, phase.
const BANDWIDTH: usize = 16;
const MIN_RTT: usize = 24;
const PHASE: usize = 28;

/// The states of the connections of a registered controller.
#[derive(Clone, Debug)]
pub struct ConnectionStates {
    map: Arc<MapHandle>,
}

impl PartialEq for ConnectionStates {
    fn eq(&self, other: &ConnectionStates) -> bool {
        Arc::ptr_eq(&self.map, &other.map)
    }
}

impl ConnectionStates {
    /// Returns those of a loaded BBRv3; `None` if its object has no storage of sockets.
    pub(super) fn of(object: &Object) -> Option<ConnectionStates> {
        let map = object.maps().find(|map| map.map_type() == MapType::SkStorage)?;
        Some(ConnectionStates { map: Arc::new(MapHandle::try_from(&map).ok()?) })
    }

    /// Returns the state of one of this process's sockets; `None` if it has another controller.
    pub fn of_socket(&self, socket: &impl AsFd) -> Option<ControllerState> {
        let key = socket.as_fd().as_raw_fd().to_ne_bytes();
        let bytes = self.map.lookup(&key, MapFlags::ANY).ok()??;
        let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let min_rtt_us = half(MIN_RTT)?;
        Some(ControllerState {
            phase: PHASES.get(usize::from(*bytes.get(PHASE)?))?,
            bandwidth_bps: word(BANDWIDTH)?.saturating_mul(8),
            min_rtt_us: if min_rtt_us == u32::MAX { 0 } else { min_rtt_us },
        })
    }
}
