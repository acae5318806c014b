//! The kernel's information about a connection: `TCP_INFO`, `TCP_CC_INFO`.

use crate::system::{TCP_INFO_BYTES, tcp_option};
use knee_units::Time;
use std::io;
use std::os::fd::AsFd;

/// Slow-start threshold of a connection without one.
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Values of `enum tcp_ca_state`: fast recovery, and recovery after a timeout.
const STATE_RECOVERY: u8 = 3;
const STATE_LOSS: u8 = 4;
/// States of a connection by number (include/net/tcp_states.h), as `ss` names them.
const STATES: [&str; 12] = [
    "UNKNOWN",
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
];
/// Unit of BBR's gains, 1/256.
const GAIN_UNIT: u32 = 256;

/// In the options of `struct tcp_info`: ECN is negotiated (include/uapi/linux/tcp.h).
const TCPI_OPT_ECN: u8 = 8;

/// The used fields of `struct tcp_info` (include/uapi/linux/tcp.h). Fields that a kernel from Linux
/// 4.10 on may lack are `None` then; the others are older, or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    state: u8,
    congestion_state: u8,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Packets sent and not yet acknowledged cumulatively.
    pub unacked: u32,
    /// Those of them that SACK reports.
    pub sacked: u32,
    /// Those of them declared lost.
    pub lost: u32,
    /// Those of them that were retransmitted and have not arrived yet.
    pub retransmitted: u32,
    /// Whether both ends have negotiated ECN (RFC 3168, section 6.1.1).
    pub has_ecn: bool,
    /// Whether the sample of the delivery rate was limited by the application.
    pub app_limited: bool,
    /// Time from the last ACK received to the reading of this information, milliseconds, in steps
    /// of a timer tick.
    pub last_ack_ms: u32,
    /// Smoothed RTT, microseconds.
    pub srtt_us: u32,
    /// Mean deviation of the RTT, microseconds.
    pub rttvar_us: u32,
    threshold: u32,
    /// Congestion window, packets.
    pub window: u32,
    /// Packets retransmitted.
    pub retransmitted_packets: u32,
    pacing_bytes_per_s: u64,
    /// Payload bytes acknowledged (RFC 4898, tcpEStatsAppHCThruOctetsAcked); the SYN of the
    /// connecting end and the FIN count as a byte each.
    pub acked_bytes: u64,
    /// Payload bytes received (tcpEStatsAppHCThruOctetsReceived).
    pub received_bytes: u64,
    /// Bytes that the application has written and that were not sent yet; a FIN counts as one.
    pub unsent_bytes: u32,
    /// Recent minimum RTT, microseconds; 0 or `u32::MAX` if none was measured
    /// ([`TcpInfo::min_rtt`]).
    pub min_rtt_us: u32,
    /// Packets with payload sent, including retransmissions.
    pub sent_packets: u32,
    /// Delivery rate of the last valid sample, bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// Time with data to send or unacknowledged, microseconds.
    pub busy_us: Option<u64>,
    /// Part of it limited by the receiver's window.
    pub receive_limited_us: Option<u64>,
    /// Part of it limited by the send buffer.
    pub send_buffer_limited_us: Option<u64>,
    /// Packets acknowledged, including selectively.
    pub delivered_packets: Option<u32>,
    /// Packets that arrived with a congestion mark, as echoed by the receiver.
    pub marked_packets: u32,
    /// Payload bytes sent, including retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes retransmitted.
    pub retransmitted_bytes: u64,
    /// D-SACK blocks received (tcpEStatsStackDSACKDups).
    pub dsacks: Option<u32>,
    /// ACKs that revealed reordering.
    pub reorderings: Option<u32>,
    /// Retransmission timeouts.
    pub timeouts: u16,
    /// Retransmission timeouts of the whole connection, if the kernel counts them (Linux 6.7).
    pub total_timeouts: Option<u16>,
}

impl TcpInfo {
    /// Reads `TCP_INFO` of a socket.
    ///
    /// # Errors
    ///
    /// If the descriptor is not a TCP socket.
    pub fn of(socket: &impl AsFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; TCP_INFO_BYTES];
        let len = tcp_option(socket, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo::decode(&bytes[..len]))
    }

    /// Decodes as much of the structure as a kernel has sent. The offsets never change, because
    /// user space depends on them.
    pub fn decode(sent: &[u8]) -> TcpInfo {
        let mut bytes = [0; TCP_INFO_BYTES];
        let len = sent.len().min(TCP_INFO_BYTES);
        bytes[..len].copy_from_slice(&sent[..len]);
        let word = |at: usize| u32_at(&bytes, at);
        let long = |at: usize| u64_at(&bytes, at);
        let newer_word = |at: usize| (at + 4 <= len).then(|| word(at));
        let newer_long = |at: usize| (at + 8 <= len).then(|| long(at));
        // The first bit of the byte.
        let app_limited = if cfg!(target_endian = "little") { 1 } else { 128 };
        let timeouts = u16::from_ne_bytes([bytes[240], bytes[241]]);
        TcpInfo {
            state: bytes[0],
            congestion_state: bytes[1],
            has_ecn: bytes[5] & TCPI_OPT_ECN != 0,
            app_limited: bytes[7] & app_limited != 0,
            mss: word(16),
            unacked: word(24),
            sacked: word(28),
            lost: word(32),
            retransmitted: word(36),
            last_ack_ms: word(56),
            srtt_us: word(68),
            rttvar_us: word(72),
            threshold: word(76),
            window: word(80),
            retransmitted_packets: word(100),
            pacing_bytes_per_s: long(104),
            acked_bytes: long(120),
            received_bytes: long(128),
            unsent_bytes: word(144),
            min_rtt_us: word(148),
            sent_packets: word(156),
            delivery_rate_bps: newer_long(160).map(|rate| rate.saturating_mul(8)),
            busy_us: newer_long(168),
            receive_limited_us: newer_long(176),
            send_buffer_limited_us: newer_long(184),
            delivered_packets: newer_word(192),
            marked_packets: word(196),
            sent_bytes: long(200),
            retransmitted_bytes: long(208),
            dsacks: newer_word(216),
            reorderings: newer_word(220),
            timeouts,
            total_timeouts: (len >= 242).then_some(timeouts),
        }
    }

    /// Returns the payload that was sent and acknowledged cumulatively. The kernel counts FIN, and
    /// the opener's SYN, as a byte each when acknowledged, but not as bytes sent.
    pub fn delivered_bytes(&self) -> u64 {
        self.acked_bytes.min(self.first_sent_bytes())
    }

    /// Returns the payload that the application has written and that the other end has not
    /// acknowledged: of a connection that has ended, what it left unfinished. Both a FIN that waits
    /// and acknowledged SYN and FIN may hide a byte or two.
    pub fn outstanding_bytes(&self) -> u64 {
        let unacked = self.first_sent_bytes().saturating_sub(self.acked_bytes);
        unacked + u64::from(self.unsent_bytes.saturating_sub(1))
    }

    /// Payload sent for the first time.
    fn first_sent_bytes(&self) -> u64 {
        self.sent_bytes.saturating_sub(self.retransmitted_bytes)
    }

    /// Returns whether the handshake is over, which always measures an RTT.
    pub fn is_established(&self) -> bool {
        self.srtt_us > 0
    }

    /// Returns the packets in flight (`tcp_packets_in_flight`).
    pub fn in_flight_packets(&self) -> u32 {
        (self.unacked + self.retransmitted).saturating_sub(self.sacked + self.lost)
    }

    /// Returns the slow-start threshold in packets, or `None` if it has none, as before any loss.
    pub fn threshold_packets(&self) -> Option<u32> {
        (self.threshold < NO_THRESHOLD).then_some(self.threshold)
    }

    /// Returns the pacing rate, bit/s; zero means unlimited.
    pub fn pacing_bps(&self) -> u64 {
        if self.pacing_bytes_per_s == u64::MAX { 0 } else { self.pacing_bytes_per_s * 8 }
    }

    /// Returns the recent minimum RTT, or `None` if none was measured.
    pub fn min_rtt(&self) -> Option<Time> {
        let measured = !matches!(self.min_rtt_us, 0 | u32::MAX);
        measured.then(|| Time::from_micros(u64::from(self.min_rtt_us)))
    }

    /// Returns the state of the connection, as `ss` names it: `ESTAB`, `FIN-WAIT-1`, …
    pub fn state(&self) -> &'static str {
        STATES.get(usize::from(self.state)).unwrap_or(&STATES[0])
    }

    /// Returns whether it is in fast recovery.
    pub fn in_recovery(&self) -> bool {
        self.congestion_state == STATE_RECOVERY
    }

    /// Returns the phase of a controller with a slow-start threshold, by `knee-cc`'s names.
    pub fn phase(&self) -> &'static str {
        match self.congestion_state {
            STATE_RECOVERY | STATE_LOSS => "recovery",
            _ if self.window < self.threshold => "slow_start",
            _ => "congestion_avoidance",
        }
    }
}

/// `struct tcp_bbr_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BbrInfo {
    /// Estimated bandwidth, bit/s.
    pub bandwidth_bps: u64,
    /// Estimated RTT without queue, microseconds.
    pub min_rtt_us: u32,
    pacing_gain: u32,
    window_gain: u32,
}

impl BbrInfo {
    const BYTES: usize = 20;

    /// Reads the information of a socket, or `None` if its controller is not BBR.
    pub fn of(socket: &impl AsFd) -> Option<BbrInfo> {
        let mut bytes = [0; TCP_INFO_BYTES];
        let len = tcp_option(socket, libc::TCP_CC_INFO, &mut bytes).ok()?;
        (len == Self::BYTES).then(|| BbrInfo {
            bandwidth_bps: u64_at(&bytes, 0) * 8,
            min_rtt_us: u32_at(&bytes, 8),
            pacing_gain: u32_at(&bytes, 12),
            window_gain: u32_at(&bytes, 16),
        })
    }

    /// Returns the phase, by `knee-cc`'s names, as inferred from the gains (tcp_bbr.c:
    /// `bbr_update_gains`): 2/ln 2 and its inverse in STARTUP and DRAIN, a window gain of one in
    /// PROBE_RTT, of two in PROBE_BW.
    pub fn phase(&self) -> &'static str {
        let high = 2 * GAIN_UNIT;
        match (self.pacing_gain, self.window_gain) {
            (pacing, _) if pacing > high => "startup",
            (pacing, window) if pacing < GAIN_UNIT && window > high => "drain",
            (_, GAIN_UNIT) => "probe_rtt",
            (pacing, _) if pacing > GAIN_UNIT => "probe_bw_up",
            (pacing, _) if pacing < GAIN_UNIT => "probe_bw_down",
            _ => "probe_bw_cruise",
        }
    }
}

/// What a controller knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerState {
    /// Its phase, by `knee-cc`'s names.
    pub phase: &'static str,
    /// Estimated bandwidth, bit/s.
    pub bandwidth_bps: u64,
    /// Estimated RTT without queue, microseconds; zero if unknown.
    pub min_rtt_us: u32,
}

impl From<BbrInfo> for ControllerState {
    fn from(bbr: BbrInfo) -> ControllerState {
        ControllerState {
            phase: bbr.phase(),
            bandwidth_bps: bbr.bandwidth_bps,
            min_rtt_us: bbr.min_rtt_us,
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let (low, high) = (u32_at(bytes, at), u32_at(bytes, at + 4));
    if cfg!(target_endian = "little") {
        u64::from(high) << 32 | u64::from(low)
    } else {
        u64::from(low) << 32 | u64::from(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gains as tcp_bbr.c computes them: `BBR_UNIT * 2885 / 1000 + 1`,
    /// `BBR_UNIT * 1000 / 2885`, 5/4, 3/4, 1; the window's: the first of
    /// these, or 2, or 1.
    #[test]
    fn phases_of_bbr() {
        let phase = |pacing_gain, window_gain| {
            BbrInfo { pacing_gain, window_gain, ..BbrInfo::default() }.phase()
        };
        assert_eq!(phase(739, 739), "startup");
        assert_eq!(phase(88, 739), "drain");
        assert_eq!(phase(320, 512), "probe_bw_up");
        assert_eq!(phase(192, 512), "probe_bw_down");
        assert_eq!(phase(256, 512), "probe_bw_cruise");
        assert_eq!(phase(256, 256), "probe_rtt");
    }
}
