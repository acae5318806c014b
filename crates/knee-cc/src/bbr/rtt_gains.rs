//! Two changes that make flows of different RTTs share more evenly: probing
//! gains that depend on the RTT, `gamma_gains` and `inverse_gains`.
//!
//! A probe with gain `g` puts `(g - 1) x bandwidth x RTT` into the queue. With
//! the same gain for all, the flow with the longer RTT puts more there, and a
//! share of the queue is a share of the link (Tao et al., GLOBECOM 2018).
//!
//! - `gamma_gains`, after Pan et al., "Improvement of RTT Fairness Problem in
//!   BBR Congestion Control Algorithm by Gamma Correction", Sensors 21(12),
//!   2021 (BBR-GC): the gain is a power function of the smallest and the largest
//!   RTT that the flow has seen. The queue is the same for all, so it is a larger
//!   part of the RTT on a shorter path:
//!   ```text
//!     up = 1 + 1/2 (1 - RTT_min / RTT_max)^2, at least 9/8
//!   ```
//! - `inverse_gains`, after a paper of 2022 in the Journal of Harbin Institute of
//!   Technology (BBR-A): the excess is inversely proportional to the RTT:
//!   ```text
//!     up = 1 + 1/4 x 40 ms / RTT_min, from 17/16 to 3/2
//!   ```
//! In both, the phase below gain 1 removes the same amount: `down = 2 - up`.
//!
//! Only the abstracts and BBR-GC's table of its phases were available, not the
//! constants of the functions. Our own choices are the exponent, the factors,
//! the bounds, the RTT of 40 ms at which the gain equals plain BBR's, and that
//! the largest RTT is forgotten together with the smallest. With an exponent of
//! two, `(up - 1) x RTT` is nearly the same for RTTs below and above the
//! queueing delay; the lower bounds keep a flow probing that sees no queue.
//! BBR-GC also ends its upward phase at 1.25 BDP or on loss, which is
//! `probe_up_exit_early`, a switch of its own.

use super::changes::Changes;
use super::{Gain, UNIT};

/// Smallest gain of an upward probe with `gamma_gains`: 9/8.
const GAMMA_LEAST: Gain = UNIT + UNIT / 8;

/// Excess of an upward probe at [`REFERENCE_US`], equal to plain BBR's: 1/4.
const EXCESS: u64 = UNIT as u64 / 4;

/// RTT in microseconds at which [`EXCESS`] applies.
const REFERENCE_US: u64 = 40_000;

/// Bounds of the excess with `inverse_gains`: 1/16 and 1/2.
const INVERSE_BOUNDS: (u64, u64) = (UNIT as u64 / 16, UNIT as u64 / 2);

/// Returns the gains of the phases above and below gain 1; `None` if the parameters apply.
pub(super) fn gains(changes: &Changes, min_us: u32) -> Option<(Gain, Gain)> {
    let up = if changes.gamma_gains {
        by_gamma(min_us, changes.rtts.max_us)
    } else if changes.inverse_gains {
        by_inverse(min_us)
    } else {
        return None;
    };
    Some((up, 2 * UNIT - up))
}

/// Returns the gain from the fraction of the largest RTT that was queueing delay.
fn by_gamma(min_us: u32, max_us: u32) -> Gain {
    let queue_us = u64::from(max_us.saturating_sub(min_us));
    let part = queue_us * u64::from(UNIT) / u64::from(max_us.max(1));
    (UNIT + (part * part / (2 * u64::from(UNIT))) as Gain).max(GAMMA_LEAST)
}

/// Returns the gain from the inverse of the smallest RTT.
fn by_inverse(min_us: u32) -> Gain {
    let excess = EXCESS * REFERENCE_US / u64::from(min_us.max(1));
    UNIT + excess.clamp(INVERSE_BOUNDS.0, INVERSE_BOUNDS.1) as Gain
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: no queue, half the RTT, three quarters, all of it.
    #[test]
    fn the_gain_by_the_queue_in_the_rtt() {
        for (min, max, expected) in [
            (40_000, 40_000, 1.125),
            (40_000, 80_000, 1.125),
            (20_000, 80_000, 1.0 + 0.5 * 0.75 * 0.75),
            (1, 1_000_000, 1.5),
        ] {
            let gain = f64::from(by_gamma(min, max)) / 256.0;
            assert!((gain - expected).abs() < 0.008, "{min} {max}: {gain}");
        }
    }

    /// By hand: 1 + 10 ms / RTT.
    #[test]
    fn the_gain_by_the_inverse_of_the_rtt() {
        for (min_us, expected) in
            [(40_000, 1.25), (80_000, 1.125), (20_000, 1.5), (5_000, 1.5), (400_000, 1.0625)]
        {
            let gain = f64::from(by_inverse(min_us)) / 256.0;
            assert!((gain - expected).abs() < 0.004, "{min_us}: {gain}");
        }
    }

    /// Data that a probe puts into a shared queue per unit of bandwidth, in ms:
    /// with one gain for all it is proportional to the RTT; with these gains it
    /// is the same within the bounds.
    #[test]
    fn the_excess_of_a_probe_does_not_grow_with_the_rtt() {
        let excess = |gain: Gain, rtt_us: u32| f64::from(gain - UNIT) / 256.0 * f64::from(rtt_us);
        let inverse = |rtt_us| excess(by_inverse(rtt_us), rtt_us);
        assert!((inverse(20_000) / inverse(120_000) - 1.0).abs() < 0.02);
        // 40 ms of queue on top of each.
        let gamma = |rtt_us| excess(by_gamma(rtt_us, rtt_us + 40_000), rtt_us);
        let ratio = gamma(60_000) / gamma(20_000);
        assert!(ratio < 2.0, "{ratio:.2} where one gain has 3");
    }
}
