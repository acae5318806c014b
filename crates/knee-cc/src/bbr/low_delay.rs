//! The low-delay change, `shrink_window`: first version, see `settle` below.

use super::Bbr;
use super::bandwidth::PacketRate;
use crate::{Connection, Sample};

/// State of the change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LowDelay {
    /// Bytes taken out of the window.
    shrink: u64,
    settled_round: u32,
}

impl LowDelay {
    pub(super) fn settle(&mut self, round: u32) {
        self.settled_round = round;
    }
}

/// Packets above one BDP, for acknowledgements that cover up to four.
const ALLOWANCE_PACKETS: u64 = 4;

impl Bbr {
    pub(super) fn low_delay_window(
        &mut self,
        bw: PacketRate,
        sample: &Sample,
        _connection: &Connection,
    ) -> u64 {
        let mss = u64::from(self.mss);
        let gain = self.window_gain.max(self.pacing_gain.min(self.config.gain_up));
        let extra = (self.aggregation_window() / mss).max(ALLOWANCE_PACKETS);
        self.track_shrink(bw, sample);
        let pipe = (self.bdp_packets(bw, gain) + extra) * mss;
        pipe.saturating_sub(self.low_delay.shrink)
    }

    fn track_shrink(&mut self, bw: PacketRate, sample: &Sample) {
        let Some(rtt) = sample.rtt else { return };
        let mss = u64::from(self.mss);
        let queued = rtt.as_micros().saturating_sub(u64::from(self.min_rtt.us));
        let bound = self.config.delay_lower_bound.as_micros();
        let step = sample.newly_acked;
        if queued > bound {
            let excess = super::aggregation::packets_in(bw, queued - bound) * mss;
            let per_round = self.window.max(mss) * u64::from(self.config.shrink_rounds);
            self.low_delay.shrink += excess * step / per_round;
        } else {
            self.low_delay.shrink =
                self.low_delay.shrink.saturating_sub(mss * step / self.window.max(mss));
        }
        self.low_delay.shrink = self.low_delay.shrink.min(self.bdp_packets(bw, 256) * mss / 2);
    }
}
