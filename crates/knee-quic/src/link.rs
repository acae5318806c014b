//! One QUIC connection as a path of a bundle, with more [number spaces](crate::congestion::number_spaces) where packets
//! overtake many others.

use crate::BundleId;
use crate::congestion::{CongestionControl, CongestionSettings, NUMBER_SPACES_MAX};
use crate::keys::PublicKey;
use bytes::Bytes;
use knee_bundle::PathUse;
use knee_cc::SelectionError;
use knee_multipath::sched::{Path, Status};
use knee_units::Time;
use noq_proto::congestion::{Controller, ControllerFactory};
use noq_proto::{Connection, ConnectionHandle, PathId, PathStatus};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Numbers by which a packet may be behind on each number space: half of what the library accepts.
const BEHIND: u64 = 64;
/// Shortest and longest interval between attempts to open number spaces, for which both ends must have seen that
/// they are needed; it doubles while the other end has not.
const OPEN_INTERVAL: Time = Time::from_millis(50);
const OPEN_INTERVAL_MAX: Time = Time::from_secs(10);

/// Size of a connection's buffer for datagrams to send.
pub const SEND_BUFFER: usize = 1 << 20;

/// Place of a connection in a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Id of the bundle.
    pub bundle: BundleId,
    /// Number of the path.
    pub number: usize,
    /// The client's name for the path.
    pub label: String,
    /// How the client wants the path to be used.
    pub path_use: PathUse,
}

/// A connection, with its congestion control and its place in a bundle.
pub struct Link {
    pub connection: Connection,
    pub handle: ConnectionHandle,
    pub control: CongestionControl,
    /// Its intended or actual place; `None` for a client's connection that has not joined.
    pub member: Option<Member>,
    /// When it must have joined; [`Time::MAX`] if that has no limit.
    pub join_by: Time,
    /// Key of the peer, after the handshake.
    pub peer: Option<PublicKey>,
    /// Whether it is a path of a bundle, and can carry datagrams.
    pub up: bool,
    /// Bytes of packets received.
    pub received: u64,
    /// What the peer has sent on the control stream.
    pub said: Vec<u8>,
    /// Datagrams that arrived before it was a path, and their bytes.
    early: VecDeque<Bytes>,
    early_bytes: usize,
    /// Send buffer space when no datagram waits.
    room: usize,
    /// Packets acknowledged at the last check.
    heard: u64,
    /// NumberSpaces that it has, or as a server may have, when it may try to get more, and the interval from
    /// then.
    spaces: usize,
    spaces_at: Time,
    spaces_interval: Time,
}

impl Link {
    pub fn new(
        mut connection: Connection,
        handle: ConnectionHandle,
        control: CongestionControl,
        join_by: Time,
    ) -> Link {
        let room = connection.datagrams().send_buffer_space();
        Link {
            connection,
            handle,
            control,
            member: None,
            join_by,
            peer: None,
            up: false,
            received: 0,
            said: Vec::new(),
            early: VecDeque::new(),
            early_bytes: 0,
            room,
            heard: 0,
            spaces: 1,
            spaces_at: Time::ZERO,
            spaces_interval: OPEN_INTERVAL,
        }
    }

    /// Returns its bundle, and its number there.
    pub fn place(&self) -> Option<(BundleId, usize)> {
        self.member.as_ref().map(|member| (member.bundle, member.number))
    }

    /// Returns when it is over unless it joins; [`Time::MAX`] if it has joined, or need not.
    pub fn deadline(&self) -> Time {
        if self.member.is_none() { self.join_by } else { Time::MAX }
    }

    /// Keeps the datagrams that arrived, at most `most` bytes of them, until it is a path; others are
    /// lost.
    pub fn keep_early(&mut self, most: usize) {
        while let Some(bytes) = self.connection.datagrams().recv() {
            let cost = bytes.len() + size_of::<Bytes>();
            if self.early_bytes + cost <= most {
                self.early_bytes += cost;
                // It shares the memory of its packet.
                self.early.push_back(Bytes::copy_from_slice(&bytes));
            }
        }
    }

    /// Returns the next datagram that arrived.
    pub fn next_datagram(&mut self) -> Option<Bytes> {
        let early = self.early.pop_front();
        early.or_else(|| self.connection.datagrams().recv())
    }

    /// Returns the bytes of datagrams that have not left.
    pub fn waiting(&mut self) -> u64 {
        self.room.saturating_sub(self.connection.datagrams().send_buffer_space()) as u64
    }

    /// Returns the maximum size of a datagram, bytes.
    pub fn datagram_max(&mut self) -> u16 {
        self.connection
            .datagrams()
            .max_size()
            .map_or(0, |max| max.min(usize::from(u16::MAX)) as u16)
    }

    /// Returns whether the connection takes more datagrams.
    fn has_room(&mut self) -> bool {
        self.connection.datagrams().send_buffer_space() > 1 << 16
    }

    /// Returns the path as a scheduler sees it.
    pub fn view(&mut self, now: Time, status: Status) -> Path {
        let waiting = self.waiting();
        let observed = self.control.observe();
        Path {
            status,
            ready: status != Status::Down && self.has_room() && self.control.may_send(now, waiting),
            srtt: observed.srtt,
            rtt_variation: observed.rtt_variation,
            min_rtt: observed.min_rtt,
            window: observed.window,
            in_flight: observed.in_flight + waiting,
            rate: observed.rate,
            capacity: observed.capacity,
            doubles: matches!(observed.state.phase, "slow_start" | "startup"),
            ..Path::default()
        }
    }

    /// Returns the bytes of a packet around its datagram, at most.
    pub fn around(&mut self) -> u16 {
        self.connection.current_mtu().saturating_sub(self.datagram_max())
    }

    /// Queues a datagram that has `around` bytes around it, with its number if it asks for an
    /// acknowledgement, and updates the path as a scheduler sees it.
    pub fn send(
        &mut self,
        now: Time,
        bytes: Bytes,
        around: u16,
        number: Option<u64>,
        path: &mut Path,
    ) {
        let before = self.waiting();
        let packet = bytes.len() as u16 + around;
        // It fits, because the bundle checked the room.
        let sent = self.connection.datagrams().send(bytes, true);
        debug_assert!(sent.is_ok(), "{sent:?}");
        let waiting = self.waiting();
        path.in_flight += waiting.saturating_sub(before);
        path.ready &= self.control.on_handed_over(now, packet, waiting, number) && self.has_room();
    }

    /// Adds number spaces if a datagram came further `behind` others than those there are allow.
    pub fn add_number_spaces(&mut self, now: Time, at: Instant, behind: u64) {
        let wanted = NUMBER_SPACES_MAX.min(1 + (behind / BEHIND) as usize);
        let (true, Some(count)) = (wanted > self.spaces, NonZeroU32::new(wanted as u32)) else {
            return;
        };
        if now < self.spaces_at || self.connection.set_max_concurrent_paths(at, count).is_err() {
            return;
        }
        if self.connection.side().is_server() {
            self.spaces = wanted;
            return;
        }
        let before = self.spaces;
        while self.spaces < wanted
            && let Ok(path) = self.connection.network_path(PathId::ZERO)
            && self.connection.open_path(path, PathStatus::Available, at).is_ok()
        {
            self.spaces += 1;
        }
        let progress = self.spaces > before;
        self.spaces_interval = match progress {
            true => OPEN_INTERVAL,
            false => (self.spaces_interval * 2).min(OPEN_INTERVAL_MAX),
        };
        self.spaces_at = now + self.spaces_interval;
    }

    /// Notes that the bundle had nothing to send.
    pub fn note_application_limited(&mut self) {
        let waiting = self.waiting();
        self.control.on_application_limited(waiting);
    }

    /// If anything was acknowledged since the last call, returns whether more is in flight.
    pub fn take_heard(&mut self) -> Option<bool> {
        let (delivered, more) = self.control.delivered();
        let before = std::mem::replace(&mut self.heard, delivered);
        (delivered > before).then_some(more)
    }

    /// Returns the RTT as measured by the library.
    pub fn rtt(&self) -> std::time::Duration {
        self.connection.rtt(PathId::ZERO).unwrap_or_default()
    }
}

/// Makes the congestion controls of a path's connections.
#[derive(Debug)]
pub struct Controls {
    settings: CongestionSettings,
    start: Instant,
    /// That of the next connection.
    rng: ChaCha8Rng,
}

impl Controls {
    /// # Errors
    /// The controller or a parameter is unknown.
    pub fn new(
        settings: CongestionSettings,
        start: Instant,
        rng: ChaCha8Rng,
    ) -> Result<Controls, SelectionError> {
        CongestionControl::new(&settings, 1200, start, rng.clone())?;
        Ok(Controls { settings, start, rng })
    }

    /// Returns the factory of the next connection's congestion control.
    pub fn next(&mut self) -> Arc<Factory> {
        let Controls { settings, start, rng } = self;
        let (settings, start, own) = (settings.clone(), *start, rng.clone());
        rng.set_stream(rng.get_stream().wrapping_add(1));
        Arc::new(Factory { settings, start, rng: own, control: OnceLock::new() })
    }
}

/// Factory of the congestion control of one connection, which is the same for its lifetime.
///
/// When the peer's address changes the library keeps it only if the port alone changes, over IPv4
/// and not in the form of an IPv6 address; otherwise it asks for a new one (RFC 9000, section 9.4).
/// A NAT that rebinds changes nothing in the network beyond it, and a path that is a different one
/// is measured soon: its data was in flight under this control.
#[derive(Debug)]
pub struct Factory {
    settings: CongestionSettings,
    start: Instant,
    rng: ChaCha8Rng,
    control: OnceLock<CongestionControl>,
}

impl Factory {
    /// Returns the control, if the library has asked for it.
    pub fn control(&self) -> Option<&CongestionControl> {
        self.control.get()
    }
}

impl ControllerFactory for Factory {
    #[expect(clippy::expect_used, reason = "one was made of the same settings before")]
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        let make = || CongestionControl::new(&self.settings, mtu, self.start, self.rng.clone());
        let control = self.control.get_or_init(|| make().expect("settings that were tried"));
        control.on_address_changed();
        let mut control = control.for_library();
        control.on_mtu_update(mtu);
        control
    }
}
