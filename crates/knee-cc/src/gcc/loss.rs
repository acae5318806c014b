//! The loss-based estimate (section 6).

/// Loss ratio above which the estimate falls, and below which it grows.
const HIGH: f64 = 0.1;
const LOW: f64 = 0.02;
/// Growth with each report.
const GROWTH: f64 = 1.05;
/// Minimum number of packets in a report, as in libwebrtc: otherwise one lost packet of
/// three would count as a third.
const REPORTED: u64 = 20;

/// The loss-based controller.
#[derive(Clone, Debug)]
pub(super) struct LossControl {
    /// As_hat, in bit/s.
    pub(super) estimate: f64,
    /// Bytes delivered and lost until the last report.
    delivered: u64,
    lost: u64,
}

impl LossControl {
    pub(super) fn new(estimate: f64) -> LossControl {
        LossControl { estimate, delivered: 0, lost: 0 }
    }

    /// Takes all bytes delivered and lost until now, as a report if it is one.
    pub(super) fn update(&mut self, delivered: u64, lost: u64, mss: u32) {
        let arrived = delivered.saturating_sub(self.delivered);
        let missing = lost.saturating_sub(self.lost);
        let all = arrived + missing;
        if all < REPORTED * u64::from(mss) {
            return;
        }
        (self.delivered, self.lost) = (delivered, lost);
        let part = missing as f64 / all as f64;
        if part > HIGH {
            self.estimate *= 1.0 - 0.5 * part;
        } else if part < LOW {
            self.estimate *= GROWTH;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports of 100 packets with so many lost.
    fn after(lost: &[u64]) -> f64 {
        let mut control = LossControl::new(1e6);
        let (mut arrived, mut missing) = (0, 0);
        for lost in lost {
            (arrived, missing) = (arrived + (100 - lost) * 1000, missing + lost * 1000);
            control.update(arrived, missing, 1000);
        }
        control.estimate
    }

    /// 1 x 1.05 at 1 %; as it is from 2 to 10 %; 0.9 at 20 %, 0.75 at 50 %.
    #[test]
    fn it_follows_the_formula() {
        assert!((after(&[1]) - 1.05e6).abs() < 1e-6);
        assert_eq!(after(&[2]), 1e6);
        assert_eq!(after(&[10]), 1e6);
        assert!((after(&[20]) - 0.9e6).abs() < 1e-6);
        assert!((after(&[50]) - 0.75e6).abs() < 1e-6);
        assert!((after(&[20, 20, 20]) - 0.729e6).abs() < 1e-6);
        assert!((after(&[20, 5, 0]) - 0.945e6).abs() < 1e-6);
    }

    #[test]
    fn a_few_packets_are_no_report() {
        let mut control = LossControl::new(1e6);
        control.update(10_000, 9_000, 1000);
        assert_eq!(control.estimate, 1e6);
        // Eleven arrived and nine lost, of all 20.
        control.update(11_000, 9_000, 1000);
        assert!((control.estimate - 1e6 * (1.0 - 0.225)).abs() < 1e-6, "{}", control.estimate);
    }
}
