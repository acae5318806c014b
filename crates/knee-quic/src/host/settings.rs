//! Settings of a host and its connections.

use crate::congestion::CongestionSettings;
use crate::link::{Factory, SEND_BUFFER};
use knee_bundle::Limits;
use knee_multipath::sched::Selection;
use knee_units::Time;
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Buffer for the datagrams of a packet, which are taken from it at once; also the largest datagram
/// that is announced (RFC 9221, section 3).
const RECEIVE_BUFFER: usize = 1 << 16;
/// Time threshold of the library's loss detection, in RTTs (RFC 9002, section 6.1.2, allows more than
/// 9/8). The bundle repeats datagrams, and the congestion control finds losses, so the library has to
/// repeat only a handshake and a JOIN, later by as much as this exceeds 9/8. It forgets what it has
/// declared lost, so only until then may a packet be late. If it is higher, losses that the library
/// finds together when the RTT falls look like a path whose MTU has shrunk.
const TIME_THRESHOLD: f32 = 2.0;
/// Bytes that a peer may send on the control stream beyond those that were read: more than its only
/// message has.
const CONTROL_WINDOW: u32 = 1 << 10;
/// Bytes of datagrams that are kept until their connection is a path. They wait for a JOIN that was
/// lost or overtaken; the bundle repeats what is lost.
const EARLY_MAX: usize = 16 << 10;
/// The same if the peer, which is trusted, does not wait for an answer to its JOIN.
const EARLY_MAX_EAGER: usize = 16 << 20;

/// Settings of a path's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Size of a packet, as UDP payload, bytes.
    pub packet: u16,
    /// Maximum size to probe for over IPv6 (RFC 8899), bytes; over IPv4, whose header is 20 bytes
    /// shorter, it is 20 bytes more. If absent, packets keep their size.
    pub packet_max: Option<u16>,
    /// Interval of keep-alives; if absent, none are sent.
    pub keep_alive: Option<Time>,
    /// Silence after which a connection is over; if absent, it lasts, whether it joins or not.
    pub idle: Option<Time>,
    /// Whether a path on which many packets are overtaken gets further packet number spaces (RFC 9000,
    /// section 12.3). To negotiate that makes each ACK some bytes longer.
    pub more_number_spaces: bool,
}

impl ConnectionSettings {
    /// Returns settings with packets of one size and without timeout.
    pub fn lasting(packet: u16) -> ConnectionSettings {
        ConnectionSettings {
            packet,
            packet_max: None,
            keep_alive: None,
            idle: None,
            more_number_spaces: false,
        }
    }

    /// Returns the largest size of a packet over a version of IP.
    pub(super) fn largest(&self, version: IpVersion) -> u16 {
        let shorter = if version == IpVersion::V4 { IPV6_HEADER - IPV4_HEADER } else { 0 };
        self.packet_max.map_or(self.packet, |most| most.saturating_add(shorter))
    }
}

/// Bytes of the headers of IP, without options and extensions.
const IPV4_HEADER: u16 = 20;
const IPV6_HEADER: u16 = 40;
/// Difference below which the binary search for the largest packet ends, bytes: over PPPoE, whose
/// frames are eight bytes smaller, few bytes are left unused.
const PROBE_CHANGE_MIN: u16 = 8;

/// Version of IP, whose header takes part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IpVersion {
    V4,
    V6,
}

impl IpVersion {
    /// Returns the version of the packets to or from an address.
    pub(super) fn of(address: SocketAddr) -> IpVersion {
        if address.ip().to_canonical().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
    }
}

/// Settings of a host.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Whether it accepts connections, and opens none.
    pub is_server: bool,
    /// Its paths, each with an endpoint of its own.
    pub paths: Vec<ConnectionSettings>,
    /// Whether a client uses a path once it knows the server, without waiting for JOINED; both ends
    /// must have the same limits.
    pub eager: bool,
    /// How long a server keeps a bundle without a path.
    pub linger: Time,
    /// Maximum number of concurrent bundles of one key at a server.
    pub bundles_of_a_key: usize,
    /// Settings of each path's congestion control.
    pub congestion: CongestionSettings,
    /// The scheduler.
    pub scheduler: Selection,
    /// Limits of a bundle that each end sets for the other.
    pub limits: Limits,
    /// Bytes of a stream that may be written and not acknowledged, or twice those in flight if that
    /// is more.
    pub buffer: u64,
    /// Whether a fast path repeats what a slower one would deliver later.
    pub reinjection: bool,
    /// Maximum lateness of this host's clock and timers.
    pub lateness: Time,
}

impl HostSettings {
    /// Returns the bytes of datagrams that are kept for a connection until it is a path.
    pub(super) fn early_max(&self) -> usize {
        if self.eager { EARLY_MAX_EAGER } else { EARLY_MAX }
    }
}

/// Returns the settings in the library's form.
pub(super) fn transport(
    path: ConnectionSettings,
    version: IpVersion,
    is_server: bool,
    factory: Arc<Factory>,
) -> TransportConfig {
    let mut config = TransportConfig::default();
    let discovery = path.packet_max.map(|_| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(path.largest(version)).minimum_change(PROBE_CHANGE_MIN);
        discovery
    });
    // Longer than a varint of milliseconds can express means no timeout.
    let idle = path.idle.and_then(|idle| IdleTimeout::try_from(duration(idle)).ok());
    config
        .congestion_controller_factory(factory)
        .packet_threshold(u32::MAX)
        .time_threshold(TIME_THRESHOLD)
        .initial_mtu(path.packet)
        .mtu_discovery_config(discovery)
        .max_idle_timeout(idle)
        .keep_alive_interval(path.keep_alive.map(duration))
        .max_concurrent_bidi_streams(VarInt::from_u32(u32::from(is_server)))
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(CONTROL_WINDOW))
        .receive_window(VarInt::from_u32(CONTROL_WINDOW))
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .datagram_send_buffer_size(SEND_BUFFER)
        .ack_frequency_config(None::<AckFrequencyConfig>);
    if path.more_number_spaces {
        config.max_concurrent_multipath_paths(1);
    }
    config
}

pub(super) fn duration(time: Time) -> Duration {
    Duration::from_nanos(time.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket for both versions shows IPv4 addresses as those of IPv6 (RFC 4291, section 2.5.5.2).
    #[test]
    fn mapped_addresses_are_of_ipv4() {
        let largest = |address: &str| {
            let settings =
                ConnectionSettings { packet_max: Some(1452), ..ConnectionSettings::lasting(1200) };
            settings.largest(IpVersion::of(address.parse().unwrap()))
        };
        assert_eq!(largest("192.0.2.1:443"), 1472);
        assert_eq!(largest("[::ffff:192.0.2.1]:443"), 1472);
        assert_eq!(largest("[2001:db8::1]:443"), 1452);
    }
}
