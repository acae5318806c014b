//! A path as the model has it, and where paths are looked for.

use knee_random::{chance, normal, unit};
use rand_chacha::ChaCha8Rng;

/// A bottleneck, and what there is beside the connections that are observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Rate of the bottleneck, bit/s.
    pub rate_bps: f64,
    /// RTT without a queue, seconds.
    pub rtt_s: f64,
    /// Part of the packets that are lost at random.
    pub loss: f64,
    /// Room of the queue, in products of rate and RTT.
    pub buffer_bdp: f64,
    /// Part of the rate that others take, under CUBIC.
    pub cross: f64,
}

/// Numbers of a path that are looked for.
pub(crate) const DIMENSIONS: usize = 4;
/// A path as numbers between zero and one.
pub(crate) type Point = [f64; DIMENSIONS];

/// Where paths are looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// RTT without a queue, seconds: that of the connection that saw the least.
    pub rtt_s: f64,
    /// Rates, bit/s.
    pub rate_bps: [f64; 2],
}

/// Losses and cross traffic below this part of their range are none.
const NONE_BELOW: f64 = 0.4;
/// How often a number of a path near another is drawn anew.
const REDRAWN: f64 = 0.1;
const LOSS: [f64; 2] = [1e-5, 3e-2];
const CROSS_MAX: f64 = 0.5;
const BUFFER_BDP: [f64; 2] = [0.05, 8.0];

impl Bounds {
    /// From the least RTT, the load that all connections together bring, and the
    /// best throughput that one of them had (bit/s).
    pub fn new(rtt_s: f64, load_bps: f64, best_bps: f64) -> Bounds {
        let low = load_bps.max(0.7 * best_bps);
        Bounds { rtt_s, rate_bps: [low, 12.0 * low] }
    }

    /// The path at a point.
    pub(crate) fn path(&self, point: &Point) -> Path {
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

/// Between two bounds, on a scale of logarithms.
fn between([low, high]: [f64; 2], part: f64) -> f64 {
    low * (high / low).powf(part)
}

/// The `number`-th of a sequence that fills the space evenly, shifted by `shift`:
/// multiples of the powers of the root of x^(d+1) = x + 1 (Roberts 2018).
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

/// A point near another, or, now and then, with one number from anywhere; what leaves
/// the space is reflected.
pub(crate) fn near(point: &Point, spread: f64, rng: &mut ChaCha8Rng) -> Point {
    std::array::from_fn(|dimension| {
        if chance(rng, REDRAWN) {
            return unit(rng);
        }
        let folded = (point[dimension] + spread * normal(rng)).abs() % 2.0;
        if folded > 1.0 { 2.0 - folded } else { folded }
    })
}
