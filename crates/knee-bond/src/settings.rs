//! QUIC settings of both ends.

use crate::config::Tuning;
use knee_bundle::Limits;
use knee_quic::{CongestionSettings, ConnectionSettings, HostSettings};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Packet size that every Internet path carries (RFC 9000, section 14), and the largest that is
/// probed over IPv6: that of Ethernet, less the headers of IPv6 and UDP.
const PACKET: u16 = 1200;
const PACKET_MAX: u16 = 1452;
/// Keep-alive interval. Every NAT keeps a UDP flow for that long (RFC 4787, section 4.3, asks for
/// two minutes; half a minute is common).
const KEEP_ALIVE: Time = Time::from_secs(15);
/// Keep-alive interval of a link with a cost. Few NATs forget so soon, and the link is reopened.
const KEEP_ALIVE_QUIET: Time = Time::from_secs(25);
/// Time without a packet after which a link is closed and reopened.
const IDLE: Time = Time::from_secs(40);
/// How long streams wait for a link to come back.
const LINGER: Time = Time::from_secs(60);
/// Maximum number of bundles of a client: a restarted client has two until the first times out;
/// allow for repeated restarts.
const BUNDLES_OF_A_KEY: usize = 4;
/// Maximum bytes of all streams that were sent and not read.
pub const WINDOW: u64 = 16 << 20;
/// Maximum number of streams that a client may have at a time: with more, what each may always have
/// would leave less than half of the window for those that need more.
pub const STREAMS_MAX: u32 = 6144;
/// Bytes of a stream that may be written and not acknowledged, or twice those in flight if that is
/// more.
const BUFFER: u64 = 4 << 20;
/// Lateness of timers on a busy host.
const LATENESS: Time = Time::from_millis(2);
/// Packets of the initial window (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Maximum burst, bytes.
const BURST: u32 = 1 << 16;

/// Returns how many streams a bundle announces so that the peer can have `streams` at a time: the
/// bundle gives the numbers of ended streams back once they are a quarter of those announced.
fn announced(streams: u32) -> u64 {
    (u64::from(streams) * 4).div_ceil(3)
}

/// Returns the limits of a bundle that has `streams` streams at a time, [`STREAMS_MAX`] at most.
#[expect(clippy::expect_used, reason = "as tried below for the largest number")]
fn limits(streams: u32) -> Limits {
    let streams = announced(streams.min(STREAMS_MAX));
    Limits::sharing(WINDOW, streams).expect("so many leave a share")
}

/// Returns the settings of an end with `endpoints` sockets, whose peer may have `streams` streams at
/// a time; endpoints in `quiet` send few keep-alives.
pub fn settings(
    is_server: bool,
    endpoints: usize,
    tuning: &Tuning,
    quiet: &[usize],
    streams: u32,
) -> HostSettings {
    let path = |endpoint: usize| {
        let wait = if quiet.contains(&endpoint) { KEEP_ALIVE_QUIET } else { KEEP_ALIVE };
        ConnectionSettings {
            packet: PACKET,
            packet_max: Some(PACKET_MAX),
            keep_alive: (!is_server).then_some(wait),
            idle: Some(IDLE),
            more_number_spaces: true,
        }
    };
    HostSettings {
        is_server,
        paths: (0..endpoints).map(path).collect(),
        eager: false,
        linger: LINGER,
        bundles_of_a_key: BUNDLES_OF_A_KEY,
        congestion: CongestionSettings {
            controller: tuning.controller.clone(),
            recovery: None,
            paced: None,
            initial_window: INITIAL_WINDOW,
            max_burst: BURST,
        },
        scheduler: tuning.scheduler.clone(),
        limits: limits(streams),
        buffer: BUFFER,
        reinjection: true,
        lateness: LATENESS,
    }
}

/// Returns random bytes of the system.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> Result<[u8; N], ring::error::Unspecified> {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)?;
    Ok(bytes)
}

/// Returns the random generator of controllers and connection ids.
///
/// # Errors
/// The system has none.
pub fn rng() -> Result<ChaCha8Rng, ring::error::Unspecified> {
    Ok(ChaCha8Rng::from_seed(random()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_of_streams_leaves_a_share() {
        let most = limits(STREAMS_MAX);
        assert!(most.leaves_a_share() && most.streams >= u64::from(STREAMS_MAX));
        assert_eq!(Limits::sharing(WINDOW, announced(STREAMS_MAX + 1)), None);
        assert!(limits(256).stream_window * limits(256).streams <= WINDOW / 16);
    }
}
