//! Settings of a connection's two ends, as given in the scenario.

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
    /// Rules by which the receiver acknowledges: TCP's, as in Linux.
    pub acks: Acks,
    /// Segments that one delayed ACK covers: 2; with 1 each segment is acknowledged.
    pub ack_every: u32,
    /// Payload bytes after which an ACK is also due; `None` if only the count matters.
    pub ack_bytes: Option<u32>,
    /// The sender's request for the number of ACKs; `None` for no request.
    pub ack_frequency: Option<AckFrequency>,
    /// Longest delay of an ACK: 40 ms.
    pub ack_delay: Time,
    /// Number of ACKs that are not delayed at the start and after a silence (quick
    /// ACKs): 16. With zero, growth of the receive window causes none either.
    pub quick_acks: u32,
    /// What the receiver lies about; by default nothing.
    pub lies: Lies,
    /// Receive window.
    pub receive_window: ReceiveWindow,
    /// Pacing.
    pub pacing: Pacing,
    /// Whether to use ECN if the controller can (RFC 3168 negotiation succeeds).
    pub ecn: bool,
    /// How the delivery rate is sampled.
    pub sampler: Sampler,
    /// How recovery ends; `None` for what the controller needs.
    pub recovery: Option<RecoveryPeriod>,
    /// Smallest retransmission timeout: 200 ms.
    pub min_rto: Time,
    /// Largest burst that segmentation offload sends at once, bytes: 65536.
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

/// Rules by which a receiver acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Linux's TCP: acknowledges at once the end of a burst (PSH), segments
    /// that are out of order or fill a gap, and the first segments
    /// ([`Config::quick_acks`]).
    #[default]
    Tcp,
    /// QUIC's (RFC 9000, section 13.2): acknowledges at once only packets that
    /// are out of order or fill a gap, and a change between marked and
    /// unmarked. Only the timing of ACKs is QUIC's: their contents stay TCP's,
    /// and so does the sender's RTT, from which no ACK delay is subtracted.
    Quic,
}

impl Acks {
    /// Returns the default limit on the delay of an ACK: Linux's 40 ms, and
    /// QUIC's max_ack_delay of 25 ms (RFC 9000, section 18.2).
    pub fn delay(self) -> Time {
        Time::from_millis(match self {
            Acks::Tcp => 40,
            Acks::Quic => 25,
        })
    }

    /// Returns the default number of ACKs at the start that are not delayed.
    pub fn quick(self) -> u32 {
        match self {
            Acks::Tcp => 16,
            Acks::Quic => 0,
        }
    }
}

/// A sender's request to its receiver (draft-ietf-quic-ack-frequency-10).
///
/// The draft leaves it to the sender what to request, except that there must be an
/// ACK in each round trip (section 8). This sender requests a number of ACKs per
/// round trip: one for each such fraction of its window, and of its smoothed RTT.
///
/// Left out: the frame. Its contents are on each segment, rounded to an eighth,
/// as if it were repeated until acknowledged; the delay in it does not enter
/// the sender's timers, which wait for at least 200 ms; and IMMEDIATE_ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// ACKs per round trip, at least one.
    pub per_round: u32,
    /// Shortest delay that the receiver accepts (min_ack_delay).
    pub min_delay: Time,
    /// Distance from a missing segment at which an arriving one causes an
    /// immediate ACK (Reordering Threshold, section 6.2); with 1 every segment
    /// out of order does, with 0 none.
    pub reordering: u32,
}

/// How much data the receiver lets a sender have outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// As large as TCP allows, [`ReceiveWindow::LARGEST_BYTES`].
    #[default]
    Unlimited,
    /// Constant, in bytes.
    Fixed(u64),
    /// Grows with what is delivered, as in Linux. On a single-path connection
    /// it acts as if unlimited: there it only has to stay ahead of the
    /// congestion window.
    Auto {
        /// Largest window in bytes.
        max: u64,
    },
}

impl ReceiveWindow {
    /// The largest window that TCP can announce: 1 GiB (RFC 7323, section 2.3). It
    /// limits the outstanding data of a flow on a path where nothing else does.
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
    /// As in Linux (draft-ietf-ccwg-bbr).
    #[default]
    Linux,
    /// As in ns-3 up to 3.40, with its defects, to reproduce a published
    /// artefact: every sample is below the rate (see `ns3.rs`).
    Ns3V335,
}
