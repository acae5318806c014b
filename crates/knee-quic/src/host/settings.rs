//! What a host and its connections are set to.

use crate::congestion::CongestionSettings;
use crate::link::{Factory, SEND_BUFFER};
use knee_bundle::Limits;
use knee_sched::Selection;
use knee_units::Time;
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::sync::Arc;
use std::time::Duration;

/// Room for what arrives before its bundle is known.
const RECEIVE_BUFFER: usize = 16 << 20;

/// What the connections of a path are set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Bytes of a packet, as UDP's payload.
    pub packet: u16,
    /// Larger packets are tried up to so many bytes (RFC 8899); none: they stay as they are.
    pub packet_max: Option<u16>,
    /// Something is sent after so long a silence.
    pub keep_alive: Option<Time>,
    /// A connection that was not heard for so long is over.
    pub idle: Option<Time>,
}

impl ConnectionSettings {
    /// Packets of one size, and a connection that lasts.
    pub fn lasting(packet: u16) -> ConnectionSettings {
        ConnectionSettings { packet, packet_max: None, keep_alive: None, idle: None }
    }
}

/// What a host is set to.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// It accepts connections, and does not open any.
    pub is_server: bool,
    /// The paths that it may have, each with an endpoint of its own.
    pub paths: Vec<ConnectionSettings>,
    /// A client uses a path once it knows the server, and does not wait for JOINED: both
    /// ends have the same limits.
    pub eager: bool,
    /// For so long a server keeps a bundle that has no path.
    pub linger: Time,
    /// Bundles that a server takes of one key at once.
    pub bundles_of_a_key: usize,
    /// What each path's congestion control is set to.
    pub congestion: CongestionSettings,
    /// The scheduler.
    pub scheduler: Selection,
    /// What each end takes of the other, of a bundle.
    pub limits: Limits,
    /// Bytes that a stream keeps which are written and not acknowledged.
    pub buffer: u64,
    /// A fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// How late this host's clock and timers may be.
    pub lateness: Time,
}

/// What the library is told of it.
pub(super) fn transport(
    path: ConnectionSettings,
    is_server: bool,
    factory: Arc<Factory>,
) -> TransportConfig {
    let mut config = TransportConfig::default();
    let discovery = path.packet_max.map(|most| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(most);
        discovery
    });
    // A time beyond what a varint of milliseconds holds is for ever.
    let idle = path.idle.and_then(|idle| IdleTimeout::try_from(duration(idle)).ok());
    config
        .congestion_controller_factory(factory)
        .initial_mtu(path.packet)
        .mtu_discovery_config(discovery)
        .max_idle_timeout(idle)
        .keep_alive_interval(path.keep_alive.map(duration))
        .max_concurrent_bidi_streams(VarInt::from_u32(u32::from(is_server)))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .datagram_send_buffer_size(SEND_BUFFER)
        .ack_frequency_config(None::<AckFrequencyConfig>);
    config
}

fn duration(time: Time) -> Duration {
    Duration::from_nanos(time.as_nanos())
}
