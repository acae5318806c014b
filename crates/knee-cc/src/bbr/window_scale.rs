//! The change `scale_window`: a window of PROBE_BW that is scaled to share a
//! link with loss-based flows (after Song, Kim and Cho, "BBR-CWS: Improving the
//! Inter-Protocol Fairness of BBR", Electronics 9(5), 2020).
//!
//! With two BDP, plain BBR takes most of a link whose buffer holds less than
//! that, because CUBIC responds to the losses and BBR does not; in a deep
//! buffer CUBIC's queue grows beyond two BDP and BBR has too few packets in it.
//!
//! The paper's abstract says that the window is scaled, and gives results; its
//! equations were not available. All of the following is our own:
//! ```text
//!   window = scale x bandwidth x min_rtt
//!   a round with losses:           scale x 0.7, at least 1
//!   a gain cycle without losses:   scale + 1/8, at most `upper`
//!   upper = 2, or the cycle's largest RTT / min_rtt while others fill the buffer
//! ```
//! - 0.7 is CUBIC's own factor (RFC 9438, section 4.6): a flow that shares a
//!   buffer with CUBIC backs off as CUBIC does.
//! - Several plain BBR flows keep at most two BDP in flight. If no RTT of a
//!   whole cycle was below 9/4 of the minimum, and a packet was lost within the
//!   last ten to twenty seconds, other flows fill the buffer; then a flow keeps
//!   its share of a queue with a window of bandwidth times RTT. Without a loss,
//!   the link may simply have become slower.
//! - The scale starts at 2 and is at most 8: it is not worth matching a queue
//!   that PROBE_RTT finds to be longer.

use super::changes::Rtts;
use super::{Gain, UNIT};

/// Initial scale, and its upper limit while only BBR builds the queue.
const OWN: Gain = 2 * UNIT;

/// Largest scale.
const LARGEST: u64 = 8 * UNIT as u64;

/// Added by a cycle without losses: 1/8, so that growing from 1 to 2 takes 64
/// round trips, about as long as CUBIC takes to return to its last window.
const STEP: Gain = UNIT / 8;

/// Renewals of the minimum RTT, every ten seconds, for which a loss is remembered.
const REMEMBERED: u8 = 2;

/// Fraction kept after a round with losses: 7/10.
const KEPT: (u32, u32) = (7, 10);

/// Multiple of the minimum RTT above which every RTT of a cycle must lie for
/// other flows to count as filling the buffer: 9/4.
const FILLED: (u64, u64) = (9, 4);

/// The scale and its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// In BDP, times 256.
    pub(super) value: Gain,
    /// Round of the last reduction.
    reduced_in: Option<u32>,
    /// Whether a packet was lost in this cycle.
    lost: bool,
    /// Renewals of the minimum RTT until losses are forgotten.
    remembered: u8,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { value: OWN, reduced_in: None, lost: false, remembered: 0 }
    }
}

impl Scale {
    /// Reduces the scale for losses in `round`, once per round.
    pub(super) fn lose(&mut self, round: u32) {
        self.lost = true;
        self.remembered = REMEMBERED;
        if self.reduced_in != Some(round) {
            self.reduced_in = Some(round);
            let kept = u32::from(self.value) * KEPT.0 / KEPT.1;
            self.value = (kept as Gain).max(UNIT);
        }
    }

    /// Called when the minimum RTT is renewed.
    pub(super) fn renew(&mut self) {
        self.remembered = self.remembered.saturating_sub(1);
    }

    /// Ends a gain cycle with these RTTs.
    pub(super) fn end_cycle(&mut self, rtts: &Rtts, min_us: u32) {
        let upper = if self.remembered > 0 { upper(rtts, min_us) } else { OWN };
        if !std::mem::take(&mut self.lost) {
            self.value += STEP;
        }
        self.value = self.value.min(upper);
    }
}

/// Returns the largest scale after a cycle with these RTTs, if other flows are present.
fn upper(rtts: &Rtts, min_us: u32) -> Gain {
    let filled = u64::from(rtts.cycle_min_us) * FILLED.1 > u64::from(min_us) * FILLED.0;
    if !filled {
        return OWN;
    }
    let longest = u64::from(rtts.cycle_max_us) * u64::from(UNIT) / u64::from(min_us.max(1));
    longest.min(LARGEST) as Gain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(cycle_min_us: u32, cycle_max_us: u32) -> Rtts {
        Rtts { cycle_min_us, cycle_max_us, ..Rtts::default() }
    }

    /// By hand, in 1/256: two losses in a round count once, with factor 0.7;
    /// the minimum is 1; a cycle without losses adds 1/8, up to 2.
    #[test]
    fn losses_and_quiet_cycles() {
        let mut scale = Scale::default();
        let quiet = cycle(40_000, 50_000);
        for (round, expected) in [(1, 358), (1, 358), (2, 256), (3, 256)] {
            scale.lose(round);
            assert_eq!(scale.value, expected, "round {round}");
        }
        for expected in [256, 288, 320, 352, 384, 416, 448, 480, 512, 512] {
            scale.end_cycle(&quiet, 40_000);
            assert_eq!(scale.value, expected);
        }
    }

    /// If others fill the buffer, the bound rises towards the largest RTT of
    /// the cycle, and drops back as soon as one RTT is short.
    #[test]
    fn a_full_buffer_raises_the_bound() {
        let mut scale = Scale { value: 700, remembered: 1, ..Scale::default() };
        let full = cycle(91_000, 120_000);
        for expected in [732, 764, 768, 768] {
            scale.end_cycle(&full, 40_000);
            assert_eq!(scale.value, expected);
        }
        scale.end_cycle(&cycle(90_000, 120_000), 40_000);
        assert_eq!(scale.value, 512);
        scale.end_cycle(&full, 40_000);
        assert_eq!(scale.value, 544);
        // No loss for a long time: the link became slower.
        scale.renew();
        scale.end_cycle(&full, 40_000);
        assert_eq!(scale.value, 512);
        assert_eq!(upper(&cycle(1_000_000, 10_000_000), 40_000), 2048);
    }
}
