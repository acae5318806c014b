//! Positions of a setting's values on an axis.

use knee_record::SweepKey;
use knee_units::{Bytes, Fraction, Rate, Time};

/// Returns the positions of a key's values on an axis, in the base unit. `None` if one
/// is not a number, or if their quantities differ.
pub(super) fn numbers(key: &SweepKey) -> Option<Vec<f64>> {
    let read: Vec<(String, f64)> =
        key.values.iter().map(|text| number(text)).collect::<Option<_>>()?;
    let same = read.windows(2).all(|pair| pair[0].0 == pair[1].0);
    same.then(|| read.into_iter().map(|(_, number)| number).collect())
}

/// Returns the quantity and the size that a text gives.
fn number(text: &str) -> Option<(String, f64)> {
    let of = |what: &str, value: f64| Some((what.to_string(), value));
    if let Ok(rate) = text.parse::<Rate>() {
        return of("rate", rate.as_bits_per_second() as f64);
    }
    if let Ok(time) = text.parse::<Time>() {
        return of("time", time.as_secs_f64());
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return of("bytes", bytes.get() as f64);
    }
    if let Ok(fraction) = text.parse::<Fraction>() {
        return of("fraction", fraction.get());
    }
    // A plain number, or one of a unit of the key's own: packets, BDP.
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let unit_is_word = unit.chars().all(|c| c.is_alphabetic());
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite() && unit_is_word)?;
    of(unit, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> SweepKey {
        let values = values.iter().map(|value| value.to_string()).collect();
        SweepKey { name: "link.bottleneck.x".to_string(), values }
    }

    /// Sizes of the prefixes: SI.
    #[test]
    fn values_of_one_quantity_lie_on_an_axis_whatever_their_units() {
        assert_eq!(
            numbers(&key(&["500 kbit/s", "10 Mbit/s", "1 Gbit/s"])),
            Some(vec![5e5, 1e7, 1e9])
        );
        assert_eq!(numbers(&key(&["20 ms", "2 s"])), Some(vec![0.02, 2.0]));
        assert_eq!(numbers(&key(&["0.5 BDP", "4 BDP"])), Some(vec![0.5, 4.0]));
        assert_eq!(numbers(&key(&["1", "16"])), Some(vec![1.0, 16.0]));
        assert_eq!(numbers(&key(&["0.5 %", "2 %"])), Some(vec![0.005, 0.02]));
    }

    #[test]
    fn names_and_mixed_quantities_have_no_axis() {
        assert_eq!(numbers(&key(&["bbr", "cubic"])), None);
        assert_eq!(numbers(&key(&["20 ms", "1 BDP"])), None);
        assert_eq!(numbers(&key(&["inf", "1"])), None);
    }
}
