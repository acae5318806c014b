//! What both ends set their hosts to.

use crate::config::Tuning;
use knee_bundle::Limits;
use knee_quic::{CongestionSettings, ConnectionSettings, HostSettings};
use knee_units::Time;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Bytes of a packet that every path of the Internet carries (RFC 9000, section 14), and the
/// largest that is tried: that of Ethernet, less IPv6's and UDP's headers.
const PACKET: u16 = 1200;
const PACKET_MAX: u16 = 1452;
/// Every NAT keeps a flow of UDP for so long (RFC 4787, section 4.3, asks for two minutes;
/// half a minute is what there is).
const KEEP_ALIVE: Time = Time::from_secs(15);
/// On a link that costs something; few NATs forget so soon, and the link is tried anew.
const KEEP_ALIVE_QUIET: Time = Time::from_secs(25);
/// A link that was not heard for so long is given up, and tried anew.
const IDLE: Time = Time::from_secs(40);
/// For so long streams wait for a link to come back.
const LINGER: Time = Time::from_secs(60);
/// A client that was started anew, and is not missed yet, has two; some have bad luck.
const BUNDLES_OF_A_KEY: usize = 4;
/// Bytes of all streams that are on their way at most, of one, and that wait to be sent.
const WINDOW: u64 = 16 << 20;
const STREAM_WINDOW: u64 = 8 << 20;
const BUFFER: u64 = 4 << 20;
/// Streams at once, unless the server says otherwise.
const STREAMS: u64 = 256;
/// How late timers are on a busy host.
const LATENESS: Time = Time::from_millis(2);
/// Packets of the first window (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// Bytes that leave at once at most.
const BURST: u32 = 1 << 16;

/// The settings of an end that has `endpoints` sockets, some of which are to be quiet.
pub fn settings(
    is_server: bool,
    endpoints: usize,
    tuning: &Tuning,
    quiet: &[usize],
) -> HostSettings {
    let path = |endpoint: usize| {
        let wait = if quiet.contains(&endpoint) { KEEP_ALIVE_QUIET } else { KEEP_ALIVE };
        ConnectionSettings {
            packet: PACKET,
            packet_max: Some(PACKET_MAX),
            keep_alive: (!is_server).then_some(wait),
            idle: Some(IDLE),
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
        limits: Limits { window: WINDOW, stream_window: STREAM_WINDOW, streams: STREAMS },
        buffer: BUFFER,
        reinjection: true,
        lateness: LATENESS,
    }
}

/// Random bytes of the system.
///
/// # Errors
/// It has none.
pub fn random<const N: usize>() -> Result<[u8; N], ring::error::Unspecified> {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)?;
    Ok(bytes)
}

/// Random numbers of controllers and connection ids.
///
/// # Errors
/// The system has none.
pub fn rng() -> Result<ChaCha8Rng, ring::error::Unspecified> {
    Ok(ChaCha8Rng::from_seed(random()?))
}
