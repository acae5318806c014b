//! Cells of the grid: paths, a size, a controller and a condition.

use crate::runs::Contender;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A path: Mbit/s and round-trip time in ms, half of it in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    pub mbit: f64,
    pub rtt_ms: f64,
}

/// Condition of a cell's ends and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The receive window grows as needed.
    Ample,
    /// The receive window grows as needed, and each path loses 0.5 %.
    Loss,
    /// A receive window of 64 KiB.
    Small,
}

impl Condition {
    pub fn name(self) -> &'static str {
        match self {
            Condition::Ample => "ample",
            Condition::Loss => "loss",
            Condition::Small => "64K",
        }
    }
}

/// A cell of the grid.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The paths, the one with the lower RTT first.
    pub paths: Vec<Path>,
    pub bytes: u64,
    pub cc: &'static str,
    pub condition: Condition,
}

const CONTROLLERS: [&str; 3] = ["cubic", "reno", "bbr"];
const CONDITIONS: [Condition; 3] = [Condition::Ample, Condition::Loss, Condition::Small];
const SIZES: [u64; 6] = [16_000, 64_000, 256_000, 1_000_000, 5_000_000, 20_000_000];

const TOPOLOGIES: [&[(f64, f64)]; 8] = [
    &[(10.0, 20.0), (10.0, 20.0)],
    &[(10.0, 20.0), (5.0, 40.0)],
    &[(10.0, 20.0), (2.0, 100.0)],
    &[(10.0, 20.0), (1.0, 200.0)],
    &[(20.0, 10.0), (1.0, 200.0)],
    &[(2.0, 20.0), (20.0, 200.0)],
    &[(10.0, 40.0), (5.0, 40.0), (1.0, 40.0)],
    &[(10.0, 20.0), (5.0, 60.0), (2.0, 200.0)],
];

/// Returns the grid: 8 topologies, 6 sizes, 3 controllers, 3 conditions.
pub fn grid() -> Vec<Cell> {
    let mut cells = Vec::new();
    for topology in TOPOLOGIES {
        let paths: Vec<Path> =
            topology.iter().map(|(mbit, rtt_ms)| Path { mbit: *mbit, rtt_ms: *rtt_ms }).collect();
        for bytes in SIZES {
            for cc in CONTROLLERS {
                for condition in CONDITIONS {
                    cells.push(Cell { paths: paths.clone(), bytes, cc, condition });
                }
            }
        }
    }
    cells
}

/// Draws as many random cells as the grid has: 2 to 4 paths of 0.5 to 50 Mbit/s and 5 to 300 ms,
/// files of 10 kB to 20 MB, all log-uniform.
pub fn random(seed: u64) -> Vec<Cell> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut between = |low: f64, high: f64| {
        let part = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        low * (high / low).powf(part)
    };
    let mut draw = |number: usize| {
        let count = between(2.0, 4.999) as usize;
        let path = |_| Path {
            mbit: (between(0.5, 50.0) * 100.0).round() / 100.0,
            rtt_ms: between(5.0, 300.0).round(),
        };
        let mut paths: Vec<Path> = (0..count).map(path).collect();
        paths.sort_by(|a, b| a.rtt_ms.total_cmp(&b.rtt_ms));
        Cell {
            paths,
            bytes: between(1e4, 2e7) as u64,
            cc: CONTROLLERS[number % 3],
            condition: CONDITIONS[number / 3 % 3],
        }
    };
    (0..432).map(&mut draw).collect()
}

impl Cell {
    /// Returns the name for a table.
    pub fn name(&self) -> String {
        let paths: Vec<String> =
            self.paths.iter().map(|path| format!("{}/{}", path.mbit, path.rtt_ms)).collect();
        format!("{}, {}, {}, {}", paths.join("+"), self.bytes, self.cc, self.condition.name())
    }

    /// Returns the number of seeds: without loss there is no randomness.
    pub fn seeds(&self) -> u64 {
        if self.condition == Condition::Loss { 2 } else { 1 }
    }

    /// Returns links and paths in a scenario, after `head`. The queue holds one BDP, at least 30
    /// kB.
    fn network(&self, head: &str) -> String {
        let mut text = head.to_owned();
        let loss = if self.condition == Condition::Loss { "loss = \"0.5 %\"\n" } else { "" };
        for (number, Path { mbit, rtt_ms }) in self.paths.iter().enumerate() {
            let queue = (mbit * rtt_ms * 125.0).max(30_000.0).round();
            let way = rtt_ms / 2.0;
            text += &format!(
                "[link.l{number}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"{way} ms\"\n\
                 buffer = \"{queue} B\"\n{loss}\
                 [path.p{number}]\nforward = [\"l{number}\"]\nreverse_delay = \"{way} ms\"\n"
            );
        }
        text
    }

    fn window(&self) -> &'static str {
        if self.condition == Condition::Small { "receive_window = \"64 KiB\"\n" } else { "" }
    }

    /// Returns the scenario with the file over all paths.
    pub fn over_all(&self, seed: u64, contender: &Contender) -> String {
        let names: Vec<String> = (0..self.paths.len()).map(|n| format!("\"p{n}\"")).collect();
        let Contender { scheduler, reinjection, .. } = contender;
        let flow = format!(
            "[[flow]]\nname = \"flow\"\npaths = [{}]\nscheduler = {scheduler}\n\
             reinjection = {reinjection}\ncc = \"{}\"\nworkload = {{ file = \"{} B\" }}\n{}",
            names.join(", "),
            self.cc,
            self.bytes,
            self.window()
        );
        self.network(&format!("duration = \"{SECONDS_MAX} s\"\nseed = {seed}\n")) + &flow
    }

    /// Returns the scenario with the file over one path.
    pub fn over_one(&self, seed: u64, path: usize) -> String {
        let flow = format!(
            "[[flow]]\nname = \"flow\"\npath = \"p{path}\"\ncc = \"{}\"\n\
             workload = {{ file = \"{} B\" }}\n{}",
            self.cc,
            self.bytes,
            self.window()
        );
        self.network(&format!("duration = \"{SECONDS_MAX} s\"\nseed = {seed}\n")) + &flow
    }

    /// Returns the scenario with one path alone and endless data, with the headers of a subflow.
    pub fn always_fed(&self, seed: u64, path: usize, seconds: u64) -> String {
        let head =
            format!("duration = \"{seconds} s\"\nseed = {seed}\nsample_interval = \"1 ms\"\n");
        let flow = format!(
            "[[flow]]\nname = \"flow\"\npaths = [\"p{path}\"]\nscheduler = \"minrtt\"\n\
             receive_window = \"unlimited\"\ncc = \"{}\"\nworkload = \"bulk\"\n",
            self.cc
        );
        self.network(&head) + &flow
    }
}

/// Maximum duration of a transfer of the grid.
const SECONDS_MAX: u64 = 3000;
