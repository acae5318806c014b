//! The window: a multiple of the BDP, with room for offload and aggregated
//! acknowledgements; and how recovery changes it.

use super::bandwidth::{PacketRate, RATE_SHIFT};
use super::{Bbr, Gain, INITIAL_PACKETS, MIN_WINDOW_PACKETS, Mode};
use crate::{Connection, Recovery, Sample};

impl Bbr {
    /// Returns `ceil(gain x bw x min_rtt)`, in packets.
    #[inline]
    pub(super) fn bdp_packets(&self, bw: PacketRate, gain: Gain) -> u64 {
        if self.min_rtt.us == u32::MAX {
            return u64::from(INITIAL_PACKETS);
        }
        let pipe = u64::from(bw) * self.pipe_rtt_us();
        let scaled = (u128::from(pipe) * u128::from(gain)) >> 8;
        ((scaled + (1 << RATE_SHIFT) - 1) >> RATE_SHIFT) as u64
    }

    /// Adds room for packets held at the two ends rather than in the path: one
    /// burst in the sender's queue, one in its offload engine, one waiting for
    /// the receiver's delayed ACK. The result is even, which avoids delayed
    /// ACKs; two more packets while probing upwards, so that small pipes are
    /// exceeded as well.
    #[inline]
    fn with_quantisation(&self, packets: u64) -> u64 {
        if !self.config.allow_for_bursts {
            return packets;
        }
        let roomy = packets + 3 * u64::from(self.pacing.burst_packets);
        let even = (roomy + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle.probing_up() { even + 2 } else { even }
    }

    /// Returns the in-flight target of a phase with this gain, in bytes.
    #[inline]
    pub(super) fn in_flight_target(&self, bw: PacketRate, gain: Gain) -> u64 {
        self.with_quantisation(self.bdp_packets(bw, gain)) * u64::from(self.mss)
    }

    #[inline]
    pub(super) fn set_window(&mut self, bw: PacketRate, sample: &Sample, connection: &Connection) {
        let acked = sample.newly_acked;
        let floor = self.smallest_window();
        if acked > 0 && !self.follow_recovery(sample, connection) {
            let target = self.target_window(bw, sample, connection);
            let young = connection.delivered < u64::from(INITIAL_PACKETS * self.mss);
            if self.full_pipe.reached {
                self.window = (self.window + acked).min(target);
            } else if self.window < target || young {
                self.window += acked;
            }
            self.window = self.window.max(floor);
        }
        if self.mode == Mode::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window(bw));
        }
    }

    fn smallest_window(&self) -> u64 {
        u64::from(MIN_WINDOW_PACKETS) * u64::from(self.mss)
    }

    /// Returns the largest window in PROBE_RTT, in bytes.
    pub(super) fn probe_rtt_window(&self, bw: PacketRate) -> u64 {
        match self.config.probe_rtt_gain {
            0 => self.smallest_window(),
            gain => {
                let packets = self.bdp_packets(bw, Gain::from(gain));
                (packets * u64::from(self.mss)).max(self.smallest_window())
            }
        }
    }

    fn target_window(&mut self, bw: PacketRate, sample: &Sample, connection: &Connection) -> u64 {
        let mss = u64::from(self.mss);
        if self.full_pipe.reached
            && let Some(mut low_delay) = self.low_delay.take()
        {
            let window = self.low_delay_window(&mut low_delay, bw, sample, connection.now);
            self.low_delay = Some(low_delay);
            return window;
        }
        let extra = self.aggregation_packets(bw);
        self.with_quantisation(self.bdp_packets(bw, self.window_gain) + extra) * mss
    }

    /// Conserves packets in the first round of recovery: as many leave as arrive, each up to a full
    /// segment (`bbr_set_cwnd_to_recover_or_restore`). Afterwards restores the earlier window.
    /// Returns whether conservation is in force.
    #[inline]
    fn follow_recovery(&mut self, sample: &Sample, connection: &Connection) -> bool {
        let mss = u64::from(self.mss);
        if sample.newly_lost > 0 {
            self.window = self.window.saturating_sub(sample.newly_lost).max(mss);
        }
        let conserved = connection.in_flight + u64::from(sample.newly_acked_segments) * mss;
        if connection.recovery != self.prior_recovery {
            self.change_recovery(conserved, connection);
        }
        if self.packet_conservation {
            self.window = self.window.max(conserved);
        }
        self.packet_conservation
    }

    #[inline(never)]
    fn change_recovery(&mut self, conserved: u64, connection: &Connection) {
        let now = connection.recovery;
        let before = std::mem::replace(&mut self.prior_recovery, now);
        if now == Recovery::Recovery {
            self.packet_conservation = true;
            self.bandwidth.round_end = connection.delivered; // a round begins
            self.window = conserved; // cuts the unused part
        } else if in_recovery(before) && !in_recovery(now) {
            self.window = self.window.max(self.prior_window);
            self.packet_conservation = false;
        }
    }

    /// Saves the window before recovery or PROBE_RTT cuts it.
    pub(super) fn save_window(&mut self) {
        self.prior_window = if in_recovery(self.prior_recovery) || self.mode == Mode::ProbeRtt {
            self.prior_window.max(self.window) // already cut
        } else {
            self.window
        };
    }
}

fn in_recovery(state: Recovery) -> bool {
    matches!(state, Recovery::Recovery | Recovery::Loss)
}
