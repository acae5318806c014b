//! The change `delay_aware_window`: the window by the state of the network (Kim
//! and Cho, "Delay-Aware BBR Congestion Control Algorithm for RTT Fairness
//! Improvement", IEEE Access 8, 2020; their kernel module, on GitHub as
//! ku-asteam/da-bbr).
//!
//! ```text
//!   pipe   = bandwidth x min_rtt x rtt / (rtt + min_rtt)     in PROBE_BW
//!   window = 2 x pipe
//! ```
//! `rtt` is the last sample. With an empty queue that is one BDP, and tends to
//! plain BBR's two as the queue grows: a flow whose queueing delay is small
//! beside its RTT, the one with the longer RTT, is held back more. The targets
//! of the phases are multiples of the same pipe. Where the minimum RTT was
//! renewed with one more than a fifth longer, the pipe is plain BBR's: the
//! sample stood in a queue.
//!
//! Left out of the module: that PROBE_RTT keeps a third of the window, and that
//! recovery neither restores the window nor lets it grow. They are not about
//! the window by delay, and would hide what it does.

use super::changes::Changes;
use super::{Bbr, Mode};

/// How much longer a renewed minimum RTT may be: 6/5.
const LONGER: (u64, u64) = (6, 5);

impl Bbr {
    /// The RTT in microseconds by which the bandwidth gives the pipe: the
    /// minimum, but for this change.
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

/// `min x rtt / (min + rtt)`, or `min` where there is no RTT, or the minimum was
/// renewed with one that is too long.
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

    /// By hand: twice it is one minimum RTT without queue, 4/3 with as much
    /// queue again, and tends to two.
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
