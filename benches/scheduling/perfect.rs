//! A perfect scheduler with the same controllers.
//!
//! Path i alone, with endless data, has delivered F_i(t) bytes by t. Over all paths a file of S
//! bytes is acknowledged no earlier than T_cc, the least t with sum of F_i(t - back_i - join_i) >=
//! S, where `back` is the delay of the acknowledgement and `join` the round trip of the first path,
//! after which the others may begin. It is not a strict bound: a path with less data may lose less.

use crate::cells::Cell;
use crate::runs::run;
use knee_record::Records;

/// F of a path: times in ns and bytes, ascending.
struct Curve(Vec<(u64, u64)>);

impl Curve {
    fn at(&self, ns: f64) -> f64 {
        let after = self.0.partition_point(|(time, _)| (*time as f64) <= ns);
        let Some(&(from, bytes)) = after.checked_sub(1).and_then(|before| self.0.get(before))
        else {
            return 0.0;
        };
        let Some(&(to, next)) = self.0.get(after) else { return bytes as f64 };
        bytes as f64 + (next - bytes) as f64 * (ns - from as f64) / (to - from) as f64
    }
}

/// The curves of a connection's paths, each with the delay from delivery to acknowledgement, ns.
pub struct Curves {
    each: Vec<(Curve, f64)>,
    until_ns: f64,
}

impl Curves {
    /// Returns the curves of a cell, long enough for a file of `bytes`.
    pub fn of(cell: &Cell, seed: u64, bytes: u64) -> Curves {
        let rate: f64 = cell.paths.iter().map(|path| path.mbit * 1e6).sum();
        let seconds = (8.0 * bytes as f64 / rate * 1.5 + 5.0) as u64;
        let join = cell.paths[0].rtt_ms * 1e6;
        Curves::long_enough(bytes, seconds, |number, seconds| {
            let path = cell.paths.get(number)?;
            let back = path.rtt_ms / 2.0 * 1e6;
            let late = if number == 0 { back } else { back + join };
            Some((run(&cell.always_fed(seed, number, seconds)), late))
        })
    }

    /// Returns the curves of paths by number, over at least `seconds` and until they deliver
    /// `bytes`. `alone` runs a path with endless data, and returns its delay.
    pub fn long_enough(
        bytes: u64,
        mut seconds: u64,
        alone: impl Fn(usize, u64) -> Option<(Records, f64)>,
    ) -> Curves {
        loop {
            let runs = (0..).map_while(|number| alone(number, seconds));
            let each = runs.map(|(records, late)| {
                let rows = records.samples.iter();
                (Curve(rows.map(|row| (row.time_ns, row.delivered_bytes)).collect()), late)
            });
            let curves = Curves { each: each.collect(), until_ns: seconds as f64 * 1e9 };
            if curves.sum(curves.until_ns) >= bytes as f64 {
                return curves;
            }
            seconds *= 2;
        }
    }

    fn sum(&self, ns: f64) -> f64 {
        self.each.iter().map(|(curve, late)| curve.at(ns - late)).sum()
    }

    /// Returns T_cc in seconds.
    pub fn completion(&self, bytes: u64) -> f64 {
        let (mut low, mut high) = (0.0, self.until_ns);
        while high - low > 1e3 {
            let middle = f64::midpoint(low, high);
            if self.sum(middle) >= bytes as f64 { high = middle } else { low = middle }
        }
        high / 1e9
    }
}
