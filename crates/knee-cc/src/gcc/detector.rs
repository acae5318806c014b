//! The over-use detector with its adaptive threshold (section 5.4).

/// Threshold at the start, del_var_th(0), in ms.
const FIRST_THRESHOLD: f64 = 12.5;
/// Least and largest threshold, in ms.
const THRESHOLDS: (f64, f64) = (6.0, 600.0);
/// How fast the threshold rises, K_u, and falls, K_d, per ms.
const RISE: f64 = 0.01;
const FALL: f64 = 0.000_18;
/// Estimates further above the threshold, in ms, leave it as it is.
const SPIKE: f64 = 15.0;
/// Time that over-use lasts before it is signalled, overuse_time_th, in ms.
const OVERUSE_TIME: f64 = 10.0;
/// Maximum time step of the threshold's adaptation, in ms, as in libwebrtc. With a longer
/// step K_u would move it beyond the estimate that it follows.
const LONGEST_STEP: f64 = 100.0;
/// Age of the earlier estimate that decides whether the estimate falls, in ms: one feedback
/// interval (section 3). The draft compares consecutive groups; then a packet of another
/// flow, after which the estimate jumps and falls for many groups, would hide a growing
/// queue.
const COMPARED: f64 = 100.0;
/// The estimate is multiplied by the number of groups, up to this, before it is compared, as
/// in libwebrtc. The draft compares the plain estimate: at 2 Mbit/s, reaching the minimum
/// threshold of 6 ms between two groups would take twice the link's rate.
const SCALE: u32 = 60;

/// Signal of the detector to the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Over,
    Normal,
    Under,
}

/// The detector.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    threshold: f64,
    /// Time that the estimate has been above the threshold, in ms; `None` if it is not.
    above: Option<f64>,
    /// An estimate of the last 100 ms, and its age in ms.
    previous: f64,
    age: f64,
    groups: u32,
}

impl Default for Detector {
    fn default() -> Detector {
        Detector { threshold: FIRST_THRESHOLD, above: None, previous: 0.0, age: 0.0, groups: 0 }
    }
}

impl Detector {
    /// Takes m(i) and the time between the groups' arrivals, in ms. None: the estimate is
    /// above the threshold, but over-use is not signalled.
    ///
    /// Compares before the threshold adapts, as libwebrtc does: where groups are 100 ms
    /// apart, K_u takes the threshold to the estimate at once.
    pub(super) fn detect(&mut self, mean: f64, arrival_ms: f64) -> Option<Signal> {
        self.groups = (self.groups + 1).min(SCALE);
        let scaled = mean * f64::from(self.groups);
        let rising = mean >= self.previous;
        self.age += arrival_ms;
        if self.age >= COMPARED {
            (self.previous, self.age) = (mean, 0.0);
        }
        let signal = if scaled > self.threshold {
            let above = self.above.map_or(0.0, |above| above + arrival_ms);
            self.above = Some(above);
            (above >= OVERUSE_TIME && rising).then_some(Signal::Over)
        } else {
            self.above = None;
            Some(if scaled < -self.threshold { Signal::Under } else { Signal::Normal })
        };
        self.adapt(scaled.abs(), arrival_ms.min(LONGEST_STEP));
        signal
    }

    fn adapt(&mut self, size: f64, step_ms: f64) {
        if size - self.threshold > SPIKE {
            return;
        }
        let speed = if size < self.threshold { FALL } else { RISE };
        self.threshold += step_ms * speed * (size - self.threshold);
        self.threshold = self.threshold.clamp(THRESHOLDS.0, THRESHOLDS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A detector that has seen many groups without any variation of their delay.
    fn warm() -> Detector {
        Detector { groups: SCALE, ..Detector::default() }
    }

    /// By hand, steps of 10 ms. 60 x 0.25 = 15 lies above 12.5, which rises by 10 x 0.01 x
    /// 2.5; nothing pulls it down by 10 x 0.00018 x 12.75; 40 lies too far above.
    #[test]
    fn the_threshold_follows_by_hand() {
        let mut detector = warm();
        detector.detect(0.25, 10.0);
        assert!((detector.threshold - 12.75).abs() < 1e-9, "{}", detector.threshold);
        detector.detect(0.0, 10.0);
        assert!((detector.threshold - 12.727_05).abs() < 1e-9, "{}", detector.threshold);
        detector.detect(40.0 / 60.0, 10.0);
        assert!((detector.threshold - 12.727_05).abs() < 1e-9, "{}", detector.threshold);
    }

    /// A minute without variation: 12.5 e^(-0.00018 x 60 000) is far below 6. And whatever
    /// it follows, it stays below 600.
    #[test]
    fn the_threshold_stays_within_its_bounds() {
        let mut detector = warm();
        for _ in 0..6000 {
            detector.detect(0.0, 10.0);
        }
        assert_eq!(detector.threshold, 6.0);
        for _ in 0..100_000 {
            let next = detector.threshold + 14.0;
            detector.detect(next / 60.0, 100.0);
        }
        assert_eq!(detector.threshold, 600.0);
    }

    /// Not at once, but after 10 ms.
    #[test]
    fn over_use_lasts_for_10_ms() {
        let mut detector = warm();
        assert_eq!(detector.detect(0.1, 6.0), Some(Signal::Normal));
        assert_eq!(detector.detect(0.5, 6.0), None);
        assert_eq!(detector.detect(0.5, 6.0), None, "for 6 ms");
        assert_eq!(detector.detect(0.6, 6.0), Some(Signal::Over), "for 12 ms");
        assert_eq!(detector.detect(0.1, 6.0), Some(Signal::Normal));
        assert_eq!(detector.detect(-0.5, 6.0), Some(Signal::Under));
    }

    /// Over-use is not signalled while the estimate falls from feedback to feedback.
    #[test]
    fn an_estimate_that_falls_is_no_over_use() {
        let mut detector = warm();
        assert_eq!(detector.detect(1.0, 100.0), None);
        assert_eq!(detector.detect(1.1, 100.0), Some(Signal::Over));
        assert_eq!(detector.detect(1.09, 50.0), None);
        assert_eq!(detector.detect(1.08, 50.0), None);
        assert_eq!(detector.detect(1.08, 50.0), Some(Signal::Over), "it falls no more");
    }

    /// An estimate from few groups counts little.
    #[test]
    fn the_first_groups_count_less() {
        let mut detector = Detector::default();
        // 1 x 1 to 12 x 1 lie below the threshold, 13 x 1 above.
        for group in 1..=12 {
            assert_eq!(detector.detect(1.0, 5.0), Some(Signal::Normal), "{group}");
        }
        assert_eq!(detector.detect(1.0, 5.0), None);
    }
}
