//! Stops an experiment that does harm.

use crate::evidence::Evidence;

/// Probability that a guard stops an experiment without harm beyond its margin.
pub const GUARD_LEVEL: f64 = 0.01;

/// Consecutive windows required for a hard stop: a single one may be a burst of other traffic.
const IN_A_ROW: u8 = 2;

/// Stops an experiment once it is certain that B is worse than A by more than a margin: an
/// e-process on the excess, checked after every triple.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    margin: f64,
    beyond: Evidence,
}

impl Guard {
    /// `margin` is the permitted harm of B; `scale` as in [`Evidence::new`].
    pub fn new(margin: f64, scale: f64) -> Guard {
        Guard { margin, beyond: Evidence::new(scale) }
    }

    /// Adds the amount by which B was worse. Returns whether to stop.
    pub fn push(&mut self, worse: f64) -> bool {
        self.beyond.push(worse - self.margin);
        self.beyond.values()[0] >= 1.0 / GUARD_LEVEL
    }
}

/// Stops a block at once if retransmissions in one-minute windows indicate a defect: above a limit
/// and several times A's ratio, twice in a row. So a bad arm is stopped within three minutes of its
/// first packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HardStop {
    limit: f64,
    in_a_row: u8,
}

impl HardStop {
    /// Limits the retransmission ratio to 2 %, or to three times that of A if it is higher.
    pub fn new(ratio_of_control: f64) -> HardStop {
        HardStop { limit: (3.0 * ratio_of_control).max(0.02), in_a_row: 0 }
    }

    /// Adds a window's retransmitted and sent bytes. Returns whether to stop. Windows without
    /// traffic are ignored.
    pub fn push(&mut self, retransmitted_bytes: u64, sent_bytes: u64) -> bool {
        if sent_bytes > 0 {
            let over = retransmitted_bytes as f64 > self.limit * sent_bytes as f64;
            self.in_a_row = if over { self.in_a_row + 1 } else { 0 };
        }
        self.in_a_row >= IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Harm of exactly the margin gives no reason to stop after any number of triples; three
    /// deviations more stop it within ten.
    #[test]
    fn a_guard_stops_what_is_beyond_its_margin() {
        let mut guard = Guard::new(0.005, 0.001);
        assert!((0..1000).all(|_| !guard.push(0.005)));
        let mut guard = Guard::new(0.005, 0.001);
        let stopped = (1..=10).find(|_| guard.push(0.008)).unwrap();
        assert!(stopped <= 10, "{stopped}");
    }

    #[test]
    fn two_bad_windows_in_a_row_stop() {
        let mut stop = HardStop::new(0.001);
        assert!(!stop.push(300, 10_000));
        assert!(!stop.push(100, 10_000));
        assert!(!stop.push(300, 10_000));
        assert!(!stop.push(0, 0));
        assert!(stop.push(300, 10_000));
        // Three times 1 % is allowed.
        let mut stop = HardStop::new(0.01);
        assert!((0..10).all(|_| !stop.push(300, 10_000)));
        assert!(!stop.push(301, 10_000));
        assert!(stop.push(301, 10_000));
    }
}
