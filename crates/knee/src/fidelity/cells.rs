//! The grid: rate, RTT, buffer, loss, flows, controller.
//!
//! All combinations would be 3^4 * 2^2 = 324. Of them 72 are taken: for each
//! loss and number of flows two Latin squares of order three over the other
//! four factors (the orthogonal array L9; see Montgomery, "Design and Analysis
//! of Experiments", on the 3^(4-2) fraction), shifted against each other. Each
//! level of a factor occurs equally often, and so does each pair of levels of
//! two factors.

use knee_record::{Fidelity, GridCell, GroundRun, Verdict};
use knee_scenario::{Embedded, Errors, Scenario, Source, parse};

const RATES_MBIT: [u64; 3] = [5, 20, 100];
const RTTS_MS: [u64; 3] = [10, 40, 120];
const BUFFERS_BDP: [&str; 3] = ["0.5", "1", "4"];
const CONTROLLERS: [&str; 3] = ["reno", "cubic", "bbr"];
const LOSSES_PERCENT: [&str; 2] = ["0", "0.5"];
/// Long enough for slow start and some periods of a window or of probes:
/// together 13 minutes.
const DURATIONS_S: [u64; 3] = [8, 10, 14];
/// A quarter of them, in milliseconds.
const WARMUPS_MS: [u64; 3] = [2000, 2500, 3500];
/// Every how many-th cell is part of the quick grid.
const QUICK: usize = 6;

/// A cell, each factor by the index of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    rate: usize,
    rtt: usize,
    buffer: usize,
    controller: usize,
    loss: usize,
    flows: usize,
}

/// The whole grid.
pub fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (loss, flows, square) in product(2, 2, 2) {
        for (rate, rtt, _) in product(3, 3, 1) {
            let buffer = (rate + rtt + square + loss) % 3;
            let controller = (rate + 2 * rtt + 2 * square + flows) % 3;
            cells.push(Cell { rate, rtt, buffer, controller, loss, flows });
        }
    }
    cells
}

/// A dozen of its cells, with every level of every factor.
pub fn quick() -> Vec<Cell> {
    let chosen =
        |(index, cell): (usize, Cell)| (index % QUICK == index / QUICK % QUICK).then_some(cell);
    all().into_iter().enumerate().filter_map(chosen).collect()
}

fn product(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

impl Cell {
    /// Says all of it; also the name of its directory.
    pub fn name(&self) -> String {
        format!(
            "{}-{}mbit-{}ms-{}bdp-loss{}-{}flow{}",
            CONTROLLERS[self.controller],
            RATES_MBIT[self.rate],
            RTTS_MS[self.rtt],
            BUFFERS_BDP[self.buffer],
            LOSSES_PERCENT[self.loss],
            self.flows + 1,
            ["", "s"][self.flows],
        )
    }

    /// What runs. A second flow begins a little later, so that the two are not
    /// in step to the nanosecond, as no two real ones are. Repeats after the
    /// first, zero, differ in chance alone: in the seed, and in how much
    /// later that is.
    pub fn scenario(&self, repeat: u64) -> Result<Scenario, Errors> {
        let one_way = RTTS_MS[self.rtt] / 2;
        let (seed, later_ms) = (1 + repeat, 100 + 7 * repeat);
        let text = format!(
            "name = \"{}\"\nduration = \"{} s\"\nwarmup = \"{} ms\"\nsample_interval = \"20 ms\"\n\
             seed = {seed}\n\
             [link.bottleneck]\nrate = \"{} Mbit/s\"\ndelay = \"{one_way} ms\"\n\
             buffer = \"{} BDP\"\nloss = \"{} %\"\n\
             [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"{one_way} ms\"\n\
             [[flow]]\nname = \"flow\"\ncount = {}\nstart_interval = \"{later_ms} ms\"\ncc = \"{}\"\n",
            self.name(),
            DURATIONS_S[self.rtt],
            WARMUPS_MS[self.rtt],
            RATES_MBIT[self.rate],
            BUFFERS_BDP[self.buffer],
            LOSSES_PERCENT[self.loss],
            self.flows + 1,
            CONTROLLERS[self.controller],
        );
        parse(&text, &Source { name: "cell.toml", loader: &Embedded(&[]) }, &[])
    }

    /// The factors, beside an empty comparison.
    pub fn described(&self) -> GridCell {
        let number = |text: &str| text.parse::<f64>().unwrap_or_default();
        GridCell {
            name: self.name(),
            rate_bps: RATES_MBIT[self.rate] as f64 * 1e6,
            rtt_us: RTTS_MS[self.rtt] as f64 * 1e3,
            buffer_bdp: number(BUFFERS_BDP[self.buffer]),
            loss_ratio: number(LOSSES_PERCENT[self.loss]) / 100.0,
            flows: self.flows + 1,
            cc: CONTROLLERS[self.controller].to_string(),
            fidelity: nothing(),
        }
    }
}

fn nothing() -> Fidelity {
    let run = GroundRun { verdict: Verdict::Valid, verdict_reason: None, probes: Vec::new() };
    Fidelity {
        schema: String::new(),
        name: String::new(),
        seed: 0,
        kernel_release: None,
        sim: run.clone(),
        kernel: run,
        measures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn levels(cell: &Cell) -> [usize; 6] {
        [cell.rate, cell.rtt, cell.buffer, cell.controller, cell.loss, cell.flows]
    }

    /// Strength two: of any two factors every pair of levels occurs equally
    /// often.
    #[test]
    fn every_pair_of_levels_occurs_equally_often() {
        let cells = all();
        assert_eq!(cells.len(), 72);
        let sizes = [3, 3, 3, 3, 2, 2];
        for (a, b) in (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b))) {
            let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for cell in &cells {
                *counts.entry((levels(cell)[a], levels(cell)[b])).or_default() += 1;
            }
            let expected = 72 / (sizes[a] * sizes[b]);
            assert_eq!(counts.len(), sizes[a] * sizes[b], "factors {a} and {b}");
            assert!(counts.values().all(|count| *count == expected), "{a}, {b}: {counts:?}");
        }
    }

    #[test]
    fn no_cell_comes_twice() {
        let mut names: Vec<String> = all().iter().map(Cell::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 72);
    }

    #[test]
    fn the_quick_grid_has_every_level() {
        let cells = quick();
        assert_eq!(cells.len(), 12);
        for (factor, size) in [3, 3, 3, 3, 2, 2].into_iter().enumerate() {
            let has = |level| cells.iter().any(|cell| levels(cell)[factor] == level);
            assert!((0..size).all(has), "factor {factor}");
        }
    }

    /// Twelve to fifteen minutes, with some 0.7 s for each self-check.
    #[test]
    fn the_grid_takes_a_quarter_of_an_hour_at_most() {
        let scenarios = all().into_iter().map(|cell| cell.scenario(0).unwrap());
        let seconds: f64 = scenarios.map(|one| one.duration.as_secs_f64() + 0.7).sum();
        assert!((12.0 * 60.0..15.0 * 60.0).contains(&seconds), "{seconds}");
    }
}
