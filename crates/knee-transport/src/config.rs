//! What a connection's ends are set to, as the scenario says it.

use crate::lies::Lies;
use knee_cc::RecoveryPeriod;
use knee_units::Time;

/// Settings of a sender and its receiver. The defaults are Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload bytes of a full segment: 1448 (1500 less IPv4, TCP and the
    /// timestamp option).
    pub mss: u32,
    /// Bytes of IP and TCP headers on each segment and ACK: 52.
    pub header: u32,
    /// Initial window in segments: 10 (RFC 6928).
    pub initial_window: u32,
    /// By whose rules the receiver acknowledges: TCP's, as Linux has them.
    pub acks: Acks,
    /// Segments that one delayed ACK covers: 2; 1 acknowledges each.
    pub ack_every: u32,
    /// Payload bytes after which an ACK is due too; none: the count alone says.
    pub ack_bytes: Option<u32>,
    /// The sender asks for the number of ACKs that it wants; none: it does not.
    pub ack_frequency: Option<AckFrequency>,
    /// Longest time an ACK is held back: 40 ms.
    pub ack_delay: Time,
    /// ACKs that are not delayed at the start and after a silence (quick ACKs):
    /// 16. With zero there are none while the receive window grows either.
    pub quick_acks: u32,
    /// What the receiver lies about: nothing.
    pub lies: Lies,
    /// Receive window.
    pub receive_window: ReceiveWindow,
    /// Pacing.
    pub pacing: Pacing,
    /// Use ECN if the controller can (RFC 3168 negotiation succeeds).
    pub ecn: bool,
    /// How the delivery rate is sampled.
    pub sampler: Sampler,
    /// How recovery ends; none: as the controller needs it.
    pub recovery: Option<RecoveryPeriod>,
    /// Smallest retransmission timeout: 200 ms.
    pub min_rto: Time,
    /// Largest burst that segmentation offload lets leave at once, bytes: 65536.
    pub max_burst: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1448,
            header: 52,
            initial_window: 10,
            acks: Acks::Tcp,
            ack_every: 2,
            ack_bytes: None,
            ack_frequency: None,
            ack_delay: Time::from_millis(40),
            quick_acks: 16,
            lies: Lies::default(),
            receive_window: ReceiveWindow::Unlimited,
            pacing: Pacing::Auto,
            ecn: false,
            sampler: Sampler::Linux,
            recovery: None,
            min_rto: Time::from_millis(200),
            max_burst: 65_536,
        }
    }
}

/// By whose rules a receiver acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Linux's TCP: at once what ends a burst (PSH), what is out of order or
    /// fills a gap, and the first segments ([`Config::quick_acks`]).
    #[default]
    Tcp,
    /// QUIC's (RFC 9000, section 13.2): at once what is out of order or fills a
    /// gap, and a change between marked and unmarked; nothing else. Only the
    /// moment of ACKs is QUIC's: what is in them stays TCP's, and so does the
    /// sender's RTT, from which no delay of the ACK is taken.
    Quic,
}

impl Acks {
    /// Longest time an ACK is held back if nothing is said: Linux's 40 ms, and
    /// QUIC's max_ack_delay of 25 ms (RFC 9000, section 18.2).
    pub fn delay(self) -> Time {
        Time::from_millis(match self {
            Acks::Tcp => 40,
            Acks::Quic => 25,
        })
    }

    /// ACKs at the start that are not delayed if nothing is said.
    pub fn quick(self) -> u32 {
        match self {
            Acks::Tcp => 16,
            Acks::Quic => 0,
        }
    }
}

/// What a sender asks its receiver for (draft-ietf-quic-ack-frequency-10).
///
/// The draft leaves to the sender what it asks for, but that there is an ACK in
/// each round trip (section 8). This one asks for a number of them: one for each
/// such part of its window, and of its smoothed RTT.
///
/// Left out: the frame. What it would say is on each segment, rounded to an
/// eighth, as if it were repeated until it is acknowledged; the delay in it does
/// not enter the sender's timers, which wait for 200 ms at least; and
/// IMMEDIATE_ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// ACKs in a round trip, at least one.
    pub per_round: u32,
    /// The receiver takes no shorter delay (min_ack_delay).
    pub min_delay: Time,
    /// Distance from a missing segment at which one that arrives calls for an
    /// ACK at once (Reordering Threshold, section 6.2); with 1 all that is out
    /// of order does, with 0 nothing.
    pub reordering: u32,
}

/// How much the receiver lets a sender have outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// As large as TCP's can be, [`ReceiveWindow::LARGEST_BYTES`].
    #[default]
    Unlimited,
    /// Always so many bytes.
    Fixed(u64),
    /// Grows with what is delivered, as Linux's does. Of a connection over
    /// one path as if unlimited: there it only has to stay ahead of the
    /// congestion window.
    Auto {
        /// Largest window in bytes.
        max: u64,
    },
}

impl ReceiveWindow {
    /// The largest window that TCP can announce: 1 GiB (RFC 7323, section
    /// 2.3). It bounds what a flow has outstanding on a path on which nothing
    /// else does.
    pub const LARGEST_BYTES: u64 = 1 << 30;

    /// The largest window of Linux's automatic tuning: third value of
    /// `net.ipv4.tcp_rmem`, 6 MiB.
    pub const LINUX_BYTES: u64 = 6 << 20;

    /// Linux's automatic tuning.
    pub const LINUX: ReceiveWindow = ReceiveWindow::Auto { max: ReceiveWindow::LINUX_BYTES };
}

/// Whether segments are paced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// As the controller needs it.
    #[default]
    Auto,
    /// Always, at the controller's rate.
    On,
    /// Never, even if the controller asks for it.
    Off,
}

/// How the delivery rate is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampler {
    /// As Linux does (draft-ietf-ccwg-bbr).
    #[default]
    Linux,
    /// As ns-3 up to 3.40, with its defects, to show a published artefact:
    /// every sample falls short of the rate (`ns3.rs` says why).
    Ns3V335,
}
