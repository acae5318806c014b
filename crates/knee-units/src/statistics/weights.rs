//! Weights that repeat, each kept once.

use std::collections::BTreeMap;

/// The positive weights that occurred, and where each is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weights {
    weights: Vec<f64>,
    places: BTreeMap<u64, u32>,
    /// Place of the last one.
    last: u32,
}

impl Weights {
    /// Returns the place of a weight; `None` unless it is positive.
    pub(crate) fn place(&mut self, weight: f64) -> Option<u32> {
        if weight.is_nan() || weight <= 0.0 {
            return None;
        }
        if self.weights.get(self.last as usize) != Some(&weight) {
            self.last = *self.places.entry(weight.to_bits()).or_insert_with(|| {
                self.weights.push(weight);
                self.weights.len() as u32 - 1
            });
        }
        Some(self.last)
    }

    /// Returns the weight at a place.
    pub(crate) fn at(&self, place: u32) -> f64 {
        self.weights[place as usize]
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }
}
