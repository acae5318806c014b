//! The change `delay_aware_window`: a window that depends on the state of the
//! network (Kim and Cho, "Delay-Aware BBR Congestion Control Algorithm for RTT
//! Fairness Improvement", IEEE Access 8, 2020; their kernel module, on GitHub
//! as ku-asteam/da-bbr).
//!
//! ```text
//!   pipe   = bandwidth x min_rtt x rtt / (rtt + min_rtt)     in PROBE_BW
//!   window = 2 x pipe
//! ```
//! `rtt` is the last sample. The window is one BDP with an empty queue and
//! approaches plain BBR's two as the queue grows: a flow whose queueing delay
//! is small relative to its RTT, the one with the longer RTT, is held back
//! more. The targets of the phases are multiples of the same pipe. If the
//! minimum RTT was renewed with a value more than a fifth longer, the pipe is
//! plain BBR's: the new sample included a queue.
//!
//! Not taken over from the module: PROBE_RTT keeps a third of the window, and recovery
//! neither restores the window nor lets it grow. Neither has to do with the
//! window's dependence on delay, and both would hide its effect.

use super::changes::Changes;
use super::{Bbr, Mode};

/// Largest ratio of a renewed minimum RTT to the old one: 6/5.
const LONGER: (u64, u64) = (6, 5);

impl Bbr {
    /// RTT in microseconds that is multiplied by the bandwidth to give the
    /// pipe: the minimum RTT, except with this change.
    #[inline]
    pub(super) fn pipe_rtt_us(&self) -> u64 {
        let min_us = u64::from(self.min_rtt.us);
        match self.changes.as_deref() {
            Some(Changes { delay_aware_window: true, rtts, .. }) if self.mode == Mode::ProbeBw => {
                pipe_rtt_us(min_us, rtts.last_us.into(), rtts.min_before_us.into())
            }
            _ => min_us,
        }
    }
}

/// Returns `min x rtt / (min + rtt)`, or `min` if there is no RTT or the
/// minimum was renewed with a value that is too long.
fn pipe_rtt_us(min_us: u64, rtt_us: u64, before_us: u64) -> u64 {
    let renewed_in_a_queue = before_us > 0 && before_us * LONGER.0 / LONGER.1 < min_us;
    if rtt_us == 0 || renewed_in_a_queue {
        return min_us;
    }
    min_us * rtt_us / (min_us + rtt_us)
}

#[cfg(test)]
mod tests {
    use super::pipe_rtt_us;

    /// By hand: twice the result is one minimum RTT without a queue, 4/3 with a
    /// queue of the same length, and approaches two.
    #[test]
    fn the_pipe_by_delay() {
        assert_eq!(2 * pipe_rtt_us(40_000, 40_000, 0), 40_000);
        assert_eq!(2 * pipe_rtt_us(30_000, 60_000, 0), 40_000);
        assert_eq!(2 * pipe_rtt_us(20_000, 60_000, 0), 30_000);
        let almost_two = 2 * pipe_rtt_us(1_000, 100_000_000, 0);
        assert!((1_998..=2_000).contains(&almost_two), "{almost_two}");
    }

    #[test]
    fn a_minimum_renewed_in_a_queue_is_not_halved() {
        assert_eq!(pipe_rtt_us(48_000, 48_000, 40_000), 24_000);
        assert_eq!(pipe_rtt_us(48_001, 48_001, 40_000), 48_001);
        assert_eq!(pipe_rtt_us(48_001, 0, 0), 48_001);
    }
}
