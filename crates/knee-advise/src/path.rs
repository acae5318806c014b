//! The path model and the search space.

use crate::search::Space;
use knee_units::random::{chance, normal, unit};
use rand_chacha::ChaCha8Rng;

/// A bottleneck with cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Rate of the bottleneck, bit/s.
    pub rate_bps: f64,
    /// RTT without queueing, seconds.
    pub rtt_s: f64,
    /// Probability of random loss.
    pub loss: f64,
    /// Queue capacity, BDP.
    pub buffer_bdp: f64,
    /// Share of the rate taken by cross traffic under CUBIC.
    pub cross: f64,
}

/// Number of searched parameters of a path.
pub const DIMENSIONS: usize = 4;
/// A path in the unit cube.
pub type Point = [f64; DIMENSIONS];

/// Bounds of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// RTT without queueing, seconds: the lowest that any connection measured.
    pub rtt_s: f64,
    /// Lowest and highest rate, bit/s.
    pub rate_bps: [f64; 2],
}

/// A coordinate of loss or cross traffic below this fraction of its range means none.
pub(crate) const NONE_BELOW: f64 = 0.4;
/// Probability that a parameter of a neighbour is drawn anew.
const REDRAWN: f64 = 0.1;
pub(crate) const LOSS: [f64; 2] = [1e-5, 3e-2];
const CROSS_MAX: f64 = 0.5;
const BUFFER_BDP: [f64; 2] = [0.05, 8.0];

impl Bounds {
    /// Derives the bounds from the lowest RTT, the offered load of all connections (bit/s) and the
    /// highest throughput of a single one (bit/s).
    pub fn new(rtt_s: f64, load_bps: f64, best_bps: f64) -> Bounds {
        let low = load_bps.max(0.7 * best_bps);
        Bounds { rtt_s, rate_bps: [low, 12.0 * low] }
    }
}

impl Space for Bounds {
    type Path = Path;

    fn path(&self, point: &Point) -> Path {
        let [rate, loss, buffer, cross] = *point;
        let above = |part: f64| (part - NONE_BELOW) / (1.0 - NONE_BELOW);
        Path {
            rate_bps: between(self.rate_bps, rate),
            rtt_s: self.rtt_s,
            loss: if loss < NONE_BELOW { 0.0 } else { between(LOSS, above(loss)) },
            buffer_bdp: between(BUFFER_BDP, buffer),
            cross: if cross < NONE_BELOW { 0.0 } else { CROSS_MAX * above(cross) },
        }
    }
}

/// Logarithmic interpolation between two bounds.
pub(crate) fn between([low, high]: [f64; 2], part: f64) -> f64 {
    low * (high / low).powf(part)
}

/// The `number`-th point of a low-discrepancy sequence shifted by `shift`: multiples of the powers
/// of the root of x^(d+1) = x + 1 (Roberts 2018).
pub(crate) fn even(number: usize, shift: &Point) -> Point {
    const ROOT: f64 = 1.167_303_978_261_418_7;
    std::array::from_fn(|dimension| {
        let step = ROOT.powi(-(dimension as i32) - 1);
        (shift[dimension] + (number + 1) as f64 * step).fract()
    })
}

pub(crate) fn anywhere(rng: &mut ChaCha8Rng) -> Point {
    std::array::from_fn(|_| unit(rng))
}

/// Returns a neighbour of a point, sometimes with a parameter redrawn from its whole range.
/// Coordinates beyond a border of the space are reflected.
pub(crate) fn near(point: &Point, spread: f64, rng: &mut ChaCha8Rng) -> Point {
    std::array::from_fn(|dimension| {
        if chance(rng, REDRAWN) {
            return unit(rng);
        }
        let folded = (point[dimension] + spread * normal(rng)).abs() % 2.0;
        if folded > 1.0 { 2.0 - folded } else { folded }
    })
}
