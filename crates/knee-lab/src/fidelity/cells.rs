//! The grid: rate, RTT, buffer, loss, flows, controller.
//!
//! All combinations would be 3^4 * 2^2 = 324. The grid takes 72 of them: for each loss and number
//! of flows, two Latin squares of order three over the other four factors (the orthogonal array L9;
//! see Montgomery, "Design and Analysis of Experiments", on the 3^(4-2) fraction), shifted against
//! each other. Each level of a factor occurs equally often, and so does each pair of levels of two
//! factors.
//!
//! A further factor is reordering: 54 cells of one flow, of which those without reordering are part
//! of the 72.

use super::cell::{Cell, Factors};

const RATES_MBIT: [u64; 3] = [5, 20, 100];
const RTTS_MS: [u64; 3] = [10, 40, 120];
const BUFFERS_BDP: [&str; 3] = ["0.5", "1", "4"];
const CONTROLLERS: [&str; 3] = ["reno", "cubic", "bbr"];
const LOSSES_PERCENT: [&str; 2] = ["0", "0.5"];
/// Largest random delay by which packets overtake each other, ms; the last level is the RTT.
const REORDERING_MS: [u64; 2] = [0, 5];
/// Long enough for slow start and several periods of a window or of probes; 13 minutes in total.
const DURATIONS_S: [u64; 3] = [8, 10, 14];
/// A quarter of the durations, ms.
const WARMUPS_MS: [u64; 3] = [2000, 2500, 3500];
/// One in this many cells is part of the quick grid.
const QUICK: usize = 6;

/// A cell as the index of each factor's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Levels {
    rate: usize,
    rtt: usize,
    buffer: usize,
    controller: usize,
    loss: usize,
    flows: usize,
    reordering: usize,
}

/// The whole grid.
pub fn all() -> Vec<Cell> {
    levels().iter().map(Levels::cell).collect()
}

/// A dozen of its cells, covering every level of every factor.
pub fn quick() -> Vec<Cell> {
    quick_levels().iter().map(Levels::cell).collect()
}

/// The cells with the factor reordering: none, 5 ms and as long as the RTT.
pub fn reordering() -> Vec<Cell> {
    reordering_levels().iter().map(Levels::cell).collect()
}

fn levels() -> Vec<Levels> {
    let squares = product(2, 2, 2);
    squares.flat_map(|(loss, flows, square)| latin_square(loss, flows, square, 0)).collect()
}

fn reordering_levels() -> Vec<Levels> {
    let squares = product(3, 2, 1);
    squares.flat_map(|(level, loss, _)| latin_square(loss, 0, level, level)).collect()
}

/// Nine cells with each pair of levels of rate, RTT, buffer and controller.
fn latin_square(
    loss: usize,
    flows: usize,
    square: usize,
    reordering: usize,
) -> impl Iterator<Item = Levels> {
    product(3, 3, 1).map(move |(rate, rtt, _)| {
        let buffer = (rate + rtt + square + loss) % 3;
        let controller = (rate + 2 * rtt + 2 * square + flows) % 3;
        Levels { rate, rtt, buffer, controller, loss, flows, reordering }
    })
}

fn quick_levels() -> Vec<Levels> {
    let chosen =
        |(index, cell): (usize, Levels)| (index % QUICK == index / QUICK % QUICK).then_some(cell);
    levels().into_iter().enumerate().filter_map(chosen).collect()
}

fn product(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

impl Levels {
    /// Largest random delay, ms.
    fn reordering_ms(self) -> u64 {
        REORDERING_MS.get(self.reordering).copied().unwrap_or(RTTS_MS[self.rtt])
    }

    /// A name that states all levels; without reordering, it is not mentioned.
    fn name(self) -> String {
        let reordering = match self.reordering {
            0 => String::new(),
            1 => format!("reorder{}ms-", self.reordering_ms()),
            _ => "reorderrtt-".to_string(),
        };
        format!(
            "{}-{}mbit-{}ms-{}bdp-loss{}-{reordering}{}flow{}",
            CONTROLLERS[self.controller],
            RATES_MBIT[self.rate],
            RTTS_MS[self.rtt],
            BUFFERS_BDP[self.buffer],
            LOSSES_PERCENT[self.loss],
            self.flows + 1,
            ["", "s"][self.flows],
        )
    }

    fn cell(&self) -> Cell {
        let number = |text: &str| text.parse::<f64>().unwrap_or_default();
        let factors = Factors {
            mbit: RATES_MBIT[self.rate] as f64,
            rtt_ms: RTTS_MS[self.rtt] as f64,
            buffer_bdp: number(BUFFERS_BDP[self.buffer]),
            loss_percent: number(LOSSES_PERCENT[self.loss]),
            reordering_ms: self.reordering_ms() as f64,
        };
        let controllers = [(CONTROLLERS[self.controller], self.flows + 1)];
        let mut cell = Cell::bottleneck(&self.name(), factors, &controllers);
        cell.duration_ms = DURATIONS_S[self.rtt] * 1000;
        cell.warmup_ms = WARMUPS_MS[self.rtt];
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn indices(cell: &Levels) -> [usize; 6] {
        [cell.rate, cell.rtt, cell.buffer, cell.controller, cell.loss, cell.flows]
    }

    /// Strength two: every pair of levels of any two factors occurs equally often.
    #[test]
    fn every_pair_of_levels_occurs_equally_often() {
        let cells = levels();
        assert_eq!(cells.len(), 72);
        let sizes = [3, 3, 3, 3, 2, 2];
        for (a, b) in (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))) {
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for cell in &cells {
                *counts.entry((indices(cell)[a], indices(cell)[b])).or_default() += 1;
            }
            let expected = 72 / (sizes[a] * sizes[b]);
            assert_eq!(counts.len(), sizes[a] * sizes[b], "factors {a} and {b}");
            assert!(counts.values().all(|count| *count == expected), "{a}, {b}: {counts:?}");
        }
    }

    #[test]
    fn no_cell_comes_twice() {
        let mut names: Vec<String> = all().into_iter().map(|cell| cell.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 72);
    }

    #[test]
    fn the_quick_grid_has_every_level() {
        let cells = quick_levels();
        assert_eq!(cells.len(), 12);
        for (factor, size) in [3, 3, 3, 3, 2, 2].into_iter().enumerate() {
            let has = |level| cells.iter().any(|cell| indices(cell)[factor] == level);
            assert!((0..size).all(has), "factor {factor}");
        }
    }

    /// Strength two again, with reordering in the place of flows.
    #[test]
    fn every_pair_with_reordering_occurs_equally_often() {
        let cells = reordering_levels();
        assert_eq!(cells.len(), 54);
        let sizes = [3, 3, 3, 3, 2, 3];
        let indices = |c: &Levels| [c.rate, c.rtt, c.buffer, c.controller, c.loss, c.reordering];
        for (a, b) in (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))) {
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for cell in &cells {
                *counts.entry((indices(cell)[a], indices(cell)[b])).or_default() += 1;
            }
            let expected = 54 / (sizes[a] * sizes[b]);
            assert!(counts.values().all(|count| *count == expected), "{a}, {b}: {counts:?}");
        }
    }

    /// A third of the cells are known by their old names, the others are new; only these reorder.
    #[test]
    fn cells_without_reordering_are_those_of_the_grid() {
        let old: Vec<String> = all().into_iter().map(|cell| cell.name).collect();
        for cell in reordering() {
            let reorders = cell.factors.reordering_ms > 0.0;
            assert_eq!(old.contains(&cell.name), !reorders, "{}", cell.name);
            let scenario = cell.scenario(0).unwrap();
            let jitter = scenario.links[0].config.delay.jitter.as_ref();
            let most = jitter.map(|jitter| (jitter.amount.0[0].1.as_millis_f64(), jitter.reorder));
            assert_eq!(most, reorders.then_some((cell.factors.reordering_ms, true)));
        }
        let names: Vec<String> = reordering().into_iter().map(|cell| cell.name).collect();
        assert!(names.contains(&"bbr-20mbit-40ms-0.5bdp-loss0-reorder5ms-1flow".to_string()));
    }

    /// Twelve to fifteen minutes, including about 0.7 s for each self-check.
    #[test]
    fn the_grid_takes_a_quarter_of_an_hour_at_most() {
        let scenarios = all().into_iter().map(|cell| cell.scenario(0).unwrap());
        let seconds: f64 = scenarios.map(|one| one.duration.as_secs_f64() + 0.7).sum();
        assert!((12.0 * 60.0..15.0 * 60.0).contains(&seconds), "{seconds}");
    }
}
