//! Which segments Linux's receiver acknowledges at once, before it delays ACKs.
//!
//! Three rules of `tcp_input.c` (6.18), in which `quick` counts ACKs to come
//! that are not delayed:
//! - the first segment, and one after a silence longer than the retransmission
//!   timeout, asks for 16 (`tcp_event_data_recv`);
//! - a segment by which the offered window grows asks for one
//!   (`tcp_grow_window`): the window grows by two segments for each that arrives,
//!   up to what the receive buffer has room for;
//! - the receive buffer follows what the application read within an RTT
//!   (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`: dynamic right-sizing).
//!
//! So a sender in slow start sees nearly each segment acknowledged, as a capture
//! of a bulk flow over 7 Mbit/s shows: 22 segments one by one, 4 ACKs for two,
//! then in the next round 24 one by one, 8 ACKs for two, then 54 one by one.
//!
//! Left out: the window here decides on ACKs alone and never holds the sender
//! back, for right-sizing keeps it ahead of the congestion window; memory
//! pressure; sizes of socket buffers other than Linux's defaults. Subflows of a
//! connection tune themselves, where MPTCP tunes the connection. No packet of its
//! own ends the handshake here, so that its RTT, of an application that waits
//! before it sends, comes out too long.

use crate::config::{Config, ReceiveWindow};
use knee_units::Time;

/// Receive buffer at the start, bytes: second value of `net.ipv4.tcp_rmem`.
const BUFFER_START: u64 = 131_072;
/// Of 256 bytes of buffer so many hold payload: a segment of 1448 bytes takes
/// 2304 from a virtual device.
const PAYLOAD_OF_256: u64 = 160;
/// Offered at the start, bytes: what a header without scaling can say.
const WINDOW_START: u64 = 65_535;
/// Segments of an initial window.
const INITIAL_WINDOW: u64 = 10;
/// Bytes of the timestamp option, which the advertised MSS includes.
const TIMESTAMP_OPTION: u64 = 12;

/// How many of the next ACKs are not delayed.
#[derive(Clone, Debug)]
pub(crate) struct QuickAcks {
    left: u32,
    /// Asked for at the start and after a silence; zero: there are none.
    most: u32,
    /// Offered, bytes (`rcv_ssthresh`).
    window: u64,
    /// What it may grow to, bytes (`window_clamp`).
    window_max: u64,
    /// What that may grow to, bytes.
    limit: u64,
    /// By which the window grows for a segment, bytes.
    step: u64,
    /// Most that was read within an RTT, bytes (`rcvq_space.space`).
    read_most: u64,
    /// Read before the measurement under way, bytes.
    read_before: u64,
    /// When that began.
    since: Time,
    /// Smoothed, as the receiver sees it; zero before the first.
    rtt: Time,
    /// Without load, from the handshake; before: when its SYN came.
    handshake: Time,
    /// From this end to the sender.
    way_back: Option<Time>,
    /// Of the last segment, milliseconds, as Linux's count.
    timestamp_ms: u32,
    /// Longer silence asks for quick ACKs again.
    timeout: Time,
    silence_ends: Time,
}

impl QuickAcks {
    pub fn new(config: &Config) -> QuickAcks {
        let advertised = u64::from(config.mss) + TIMESTAMP_OPTION;
        let start = BUFFER_START * PAYLOAD_OF_256 / 256;
        let (window_max, limit) = match config.receive_window {
            ReceiveWindow::Unlimited => (start, ReceiveWindow::LARGEST_BYTES),
            ReceiveWindow::Auto { max } => (start.min(max), max),
            ReceiveWindow::Fixed(bytes) => (bytes, bytes),
        };
        QuickAcks {
            left: 0,
            most: config.quick_acks,
            window: WINDOW_START.min(window_max),
            window_max,
            limit,
            step: 2 * advertised,
            read_most: INITIAL_WINDOW * advertised,
            read_before: 0,
            since: Time::ZERO,
            rtt: Time::ZERO,
            handshake: Time::ZERO,
            way_back: None,
            timestamp_ms: 0,
            timeout: Time::ZERO,
            silence_ends: Time::ZERO,
        }
    }

    /// The handshake begins.
    pub fn on_syn(&mut self, now: Time) {
        self.handshake = now;
        self.since = now;
    }

    /// A segment arrived, sent at `timestamp`, microseconds.
    #[inline]
    pub fn on_segment(&mut self, now: Time, timestamp: u32) {
        if self.most == 0 {
            return;
        }
        match self.way_back {
            None => self.on_first(now, timestamp),
            Some(way_back) => {
                if now > self.silence_ends {
                    self.left = self.left.max(self.most);
                }
                if timestamp / 1000 != self.timestamp_ms {
                    self.timestamp_ms = timestamp / 1000;
                    self.take_rtt(one_way(now, timestamp) + way_back);
                }
            }
        }
        self.silence_ends = now + self.timeout;
        if self.window < self.window_max {
            self.window = self.window_max.min(self.window + self.step);
            // Linux sets the lowest bit: a number that is even rises, so that
            // none of those asked for is used up meanwhile.
            self.left |= 1;
        }
    }

    /// The first segment ends the handshake, whose RTT is known thereby.
    #[cold]
    fn on_first(&mut self, now: Time, timestamp: u32) {
        self.left = self.most;
        self.handshake = now - self.handshake;
        let way_there = one_way(now, timestamp).min(self.handshake);
        self.way_back = Some(self.handshake - way_there);
        self.timestamp_ms = timestamp / 1000;
        self.rtt = self.handshake;
        // Linux's first timeout: the RTT and four times a deviation of half of
        // it, or 200 ms. An end that only receives measures no other.
        self.timeout = self.rtt + (self.rtt + self.rtt).max(Time::from_millis(200));
    }

    /// The smallest, then smoothed (`tcp_rcv_rtt_update`).
    fn take_rtt(&mut self, sample: Time) {
        self.rtt = if self.rtt == Time::ZERO || sample < self.rtt {
            sample
        } else {
            Time::from_nanos(self.rtt.as_nanos() - self.rtt.as_nanos() / 8 + sample.as_nanos() / 8)
        };
    }

    /// The application has read so much since the start.
    #[inline]
    pub fn on_read(&mut self, now: Time, read: u64) {
        if now < self.since + self.rtt || self.most == 0 {
            return;
        }
        let within = read - self.read_before;
        if within > self.read_most && self.window_max < self.limit {
            self.grow_buffer(within);
        }
        self.read_most = self.read_most.max(within);
        self.read_before = read;
        self.since = now;
    }

    /// Room for twice what was read, and as much more as a sender that doubles
    /// its rate will send.
    fn grow_buffer(&mut self, within: u64) {
        let twice = 2 * within;
        let more = u128::from(twice) * u128::from(within - self.read_most)
            / u128::from(self.read_most.max(1));
        let wanted = u128::from(twice) + 2 * more;
        let wanted = wanted.min(u128::from(self.limit)) as u64;
        self.window_max = self.window_max.max(wanted);
    }

    /// Whether the ACK that is due is not delayed.
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.left > 0
    }

    /// An ACK was sent.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// Time on the way of a segment that was sent at `timestamp`, microseconds of
/// the same clock.
fn one_way(now: Time, timestamp: u32) -> Time {
    Time::from_micros(u64::from((now.as_micros() as u32).wrapping_sub(timestamp)))
}
