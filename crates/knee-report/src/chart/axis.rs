//! Units, round marks and ends of an axis.

/// The kind of an axis' values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// Bit per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
}

/// The unit of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// Number of the values' units in this unit.
    pub divisor: f64,
    /// Its symbol.
    pub unit: &'static str,
}

impl Kind {
    /// Returns the unit in which the largest value is easy to read.
    pub(crate) fn scale(self, largest: f64) -> Scale {
        // Smallest value, divisor and symbol.
        let units: &[(f64, f64, &'static str)] = match self {
            Kind::Rate => &[
                (1e9, 1e9, "Gbit/s"),
                (1e6, 1e6, "Mbit/s"),
                (1e3, 1e3, "kbit/s"),
                (0.0, 1.0, "bit/s"),
            ],
            Kind::Bytes => &[(1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e3, 1e3, "kB"), (0.0, 1.0, "B")],
            Kind::Time => &[(10e9, 1e9, "s"), (1e6, 1e6, "ms"), (1e3, 1e3, "µs"), (0.0, 1.0, "ns")],
        };
        let fits = units.iter().find(|(from, ..)| largest >= *from);
        let (_, divisor, unit) = fits.unwrap_or(&units[units.len() - 1]);
        Scale { divisor: *divisor, unit }
    }
}

/// Returns about `count` marks at 1, 2 or 5 times a power of ten between two ends, and the number
/// of decimals that distinguishes them.
pub(super) fn marks(low: f64, high: f64, count: f64) -> (Vec<f64>, usize) {
    let rough = (high - low) / count.max(1.0);
    if !(rough > 0.0 && rough.is_finite()) {
        return (Vec::new(), 0);
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|size| size * power >= rough * 0.999);
    let step = step.unwrap_or(10.0) * power;
    let decimals = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    ((first..=last).map(|number| number as f64 * step).collect(), decimals)
}

/// Returns the ends of the vertical axis for the smallest and largest visible value: from zero,
/// unless that would flatten a curve far above it.
pub(super) fn range(seen: Option<(f64, f64)>, levels: &[f64], from_zero: bool) -> (f64, f64) {
    let Some((mut low, mut high)) = seen else { return (0.0, 1.0) };
    for &level in levels {
        if level > low / 1.3 && level < high * 1.3 {
            (low, high) = (low.min(level), high.max(level));
        }
    }
    if !from_zero && low > 0.6 * high {
        let margin = ((high - low) * 0.1).max(high * 0.005);
        return (low - margin, high + margin);
    }
    (0.0, if high > 0.0 { high * 1.06 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_within_the_ends() {
        assert_eq!(marks(0.0, 100.0, 5.0), (vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0], 0));
        assert_eq!(marks(3.0, 11.0, 4.0), (vec![4.0, 6.0, 8.0, 10.0], 0));
        for (low, high) in [(0.0, 0.0), (5.0, 4.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert_eq!(marks(low, high, 5.0).0, Vec::<f64>::new());
        }
    }

    #[test]
    fn there_are_never_many_more_marks_than_asked_for() {
        let mut high = 1e-9;
        while high < 1e12 {
            let (marks, _) = marks(0.0, high, 6.0);
            assert!((3..=7).contains(&marks.len()), "{} up to {high}", marks.len());
            high *= 3.7;
        }
    }

    #[test]
    fn an_axis_fits_what_is_seen() {
        assert_eq!(range(None, &[], true), (0.0, 1.0));
        let (low, high) = range(Some((60.0, 62.0)), &[], false);
        assert!(low > 55.0 && high < 65.0, "a flat curve far above zero is not flattened");
        // A level close to the curves is inside the frame, a distant one is not.
        assert!(range(Some((5.0, 9.0)), &[9.65], true).1 > 9.65);
        assert!(range(Some((5.0, 9.0)), &[100.0], true).1 < 10.0);
    }
}
