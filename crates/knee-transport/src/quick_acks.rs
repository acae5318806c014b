//! Determines which segments Linux's receiver acknowledges without delay.
//!
//! Three rules of `tcp_input.c` (6.18); `quick` counts the following ACKs that
//! are not delayed:
//! - the first segment, and one after a silence longer than the retransmission
//!   timeout, sets it to 16 (`tcp_event_data_recv`);
//! - a segment that makes the offered window grow sets it to at least one
//!   (`tcp_grow_window`): the window grows by two segments for each that
//!   arrives, up to the room in the receive buffer;
//! - the receive buffer follows what the application read within an RTT
//!   (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`: dynamic right-sizing).
//!
//! A sender in slow start therefore sees almost every segment acknowledged, as in a
//! capture of a bulk flow over 7 Mbit/s: 22 segments one by one, 4 ACKs for two,
//! then in the next round 24 one by one, 8 ACKs for two, then 54 one by one.
//!
//! Left out: the window here only determines ACKs and never limits the sender,
//! since right-sizing keeps it ahead of the congestion window; memory pressure;
//! socket buffer sizes other than Linux's defaults. Subflows of a connection
//! tune themselves, whereas MPTCP tunes the connection. Here the handshake does
//! not end with a packet of its own, so its RTT is too long if an application
//! waits before it sends.

use crate::config::{Config, ReceiveWindow};
use knee_units::Time;

/// Initial receive buffer, bytes: second value of `net.ipv4.tcp_rmem`.
const BUFFER_START: u64 = 131_072;
/// Payload bytes per 256 bytes of buffer: a segment of 1448 bytes takes 2304
/// from a virtual device.
const PAYLOAD_OF_256: u64 = 160;
/// Initial offered window, bytes: the largest that a header without scaling allows.
const WINDOW_START: u64 = 65_535;
/// Segments of an initial window.
const INITIAL_WINDOW: u64 = 10;
/// Bytes of the timestamp option, which the advertised MSS includes.
const TIMESTAMP_OPTION: u64 = 12;

/// State that determines how many of the next ACKs are not delayed.
#[derive(Clone, Debug)]
pub(crate) struct QuickAcks {
    left: u32,
    /// Quick ACKs at the start and after a silence; zero to disable quick ACKs.
    most: u32,
    /// Offered window, bytes (`rcv_ssthresh`).
    window: u64,
    /// Upper limit of `window`, bytes (`window_clamp`).
    window_max: u64,
    /// Upper limit of `window_max`, bytes.
    limit: u64,
    /// Growth of the window per segment, bytes.
    step: u64,
    /// Largest amount read within an RTT, bytes (`rcvq_space.space`).
    read_most: u64,
    /// Bytes read before the current measurement.
    read_before: u64,
    /// When the current measurement began.
    since: Time,
    /// Smoothed RTT as measured by the receiver; zero before the first sample.
    rtt: Time,
    /// RTT of the handshake, without load; before that, when the SYN arrived.
    handshake: Time,
    /// One-way delay from this end to the sender.
    way_back: Option<Time>,
    /// Timestamp of the last segment, milliseconds, as counted by Linux.
    timestamp_ms: u32,
    /// A longer silence restarts quick ACKs.
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

    /// Called when the handshake begins.
    pub fn on_syn(&mut self, now: Time) {
        self.handshake = now;
        self.since = now;
    }

    /// Processes a segment that was sent at `timestamp`, microseconds.
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
            // Linux sets the lowest bit: an even number increases by one, so
            // the remaining quick ACKs are not used up.
            self.left |= 1;
        }
    }

    /// Processes the first segment, which ends the handshake and gives its RTT.
    #[cold]
    fn on_first(&mut self, now: Time, timestamp: u32) {
        self.left = self.most;
        self.handshake = now - self.handshake;
        let way_there = one_way(now, timestamp).min(self.handshake);
        self.way_back = Some(self.handshake - way_there);
        self.timestamp_ms = timestamp / 1000;
        self.rtt = self.handshake;
        // Linux's first timeout: the RTT plus four times a deviation of half of
        // it, or plus 200 ms. An end that only receives measures no other.
        self.timeout = self.rtt + (self.rtt + self.rtt).max(Time::from_millis(200));
    }

    /// Updates the RTT: the smallest sample, otherwise smoothed (`tcp_rcv_rtt_update`).
    fn take_rtt(&mut self, sample: Time) {
        self.rtt = if self.rtt == Time::ZERO || sample < self.rtt {
            sample
        } else {
            Time::from_nanos(self.rtt.as_nanos() - self.rtt.as_nanos() / 8 + sample.as_nanos() / 8)
        };
    }

    /// Called when the application has read `read` bytes since the start.
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

    /// Makes room for twice what was read, plus what a sender that doubles its
    /// rate will send.
    fn grow_buffer(&mut self, within: u64) {
        let twice = 2 * within;
        let more = u128::from(twice) * u128::from(within - self.read_most)
            / u128::from(self.read_most.max(1));
        let wanted = u128::from(twice) + 2 * more;
        let wanted = wanted.min(u128::from(self.limit)) as u64;
        self.window_max = self.window_max.max(wanted);
    }

    /// Whether the due ACK is not delayed.
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.left > 0
    }

    /// Called when an ACK was sent.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// Returns the one-way delay of a segment sent at `timestamp`, microseconds of
/// the same clock.
fn one_way(now: Time, timestamp: u32) -> Time {
    Time::from_micros(u64::from((now.as_micros() as u32).wrapping_sub(timestamp)))
}
