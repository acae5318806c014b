//! Whatever a path reorders, data goes on arriving in order.
//!
//! Every run of the tests has the smallest cells with one controller each, drawn from
//! `KNEE_FIRST_SEED`. `cargo test --release -p knee-sim --test it reordering:: -- --ignored
//! --nocapture` has all cells with every controller, and prints what each delivered.

use crate::common::{Dumbbell, in_parallel};
use crate::random::{first_seed, run};
use crate::shocks::{delivered, failed};
use knee_trials::controllers;

/// Length of a run, seconds.
const SECONDS: f64 = 60.0;

/// End of the run in which data must arrive, seconds.
const END: f64 = 5.0;

/// A path that delays each packet by up to `jitter_ms` more.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mbit: f64,
    rtt_ms: f64,
    jitter_ms: u32,
    buffer_bdp: f64,
}

impl Cell {
    /// Returns bytes delivered in order in the last half minute, and in the last five seconds.
    fn run(self, cc: &str, seed: u64) -> [f64; 2] {
        let path =
            Dumbbell::new(self.mbit, self.rtt_ms).buffer(&format!("{} BDP", self.buffer_bdp));
        let path = path
            .link(&format!("jitter = {{ amount = \"{} ms\", reorder = true }}", self.jitter_ms));
        let path = path.flows(cc, 1).lasting(SECONDS, 0.0).seed(seed);
        let records = run(&path.scenario());
        [30.0, END].map(|last| delivered(&records, SECONDS) - delivered(&records, SECONDS - last))
    }
}

/// Returns the cells with rates of these.
fn cells(rates: &[f64]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for mbit in rates.iter().copied() {
        for rtt_ms in [10.0, 40.0, 200.0] {
            for jitter_ms in [5, 20, 100, 400] {
                let of = |buffer_bdp| Cell { mbit, rtt_ms, jitter_ms, buffer_bdp };
                cells.extend([0.5, 1.0, 4.0].map(of));
            }
        }
    }
    cells
}

/// Runs cells with controllers, and returns a line for each, and whether nothing arrives at its end.
fn outcomes(trials: &[(Cell, &str)]) -> Vec<(String, bool)> {
    let seed = first_seed();
    in_parallel(trials, |(cell, cc)| {
        let [half_minute, end] = cell.run(cc, seed);
        let Cell { mbit, rtt_ms, jitter_ms, buffer_bdp } = cell;
        let line = format!(
            "{cc:14} {mbit:3} Mbit/s, {rtt_ms:3} ms, jitter {jitter_ms:3} ms, {buffer_bdp} BDP: \
             {:.2} Mbit/s, {end:.0} B in the last {END} s",
            half_minute * 8e-6 / 30.0
        );
        (line, end == 0.0)
    })
}

#[test]
fn data_arrives_in_order_until_the_end() {
    let all = controllers();
    let drawn = |number: usize| all[(number + first_seed() as usize) % all.len()];
    let cells = cells(&[5.0]).into_iter().enumerate();
    let trials: Vec<_> = cells.map(|(number, cell)| (cell, drawn(number))).collect();
    let outcomes = outcomes(&trials);
    outcomes.iter().for_each(|(line, _)| println!("{line}"));
    assert!(failed(&outcomes).is_empty(), "\n{}", failed(&outcomes).join("\n"));
}

#[test]
#[ignore = "takes long: .ci/night random"]
fn every_controller_delivers_in_order_until_the_end() {
    let all = controllers();
    let of = |cell: Cell| all.iter().map(move |cc| (cell, *cc));
    let trials: Vec<_> = cells(&[5.0, 20.0, 100.0]).into_iter().flat_map(of).collect();
    let outcomes = outcomes(&trials);
    outcomes.iter().for_each(|(line, _)| println!("{line}"));
    println!("{} of {} are silent at the end", failed(&outcomes).len(), trials.len());
    assert!(failed(&outcomes).is_empty(), "\n{}", failed(&outcomes).join("\n"));
}
