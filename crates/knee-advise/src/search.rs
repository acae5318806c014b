//! Search for paths that explain the observations.

use crate::linear::{Neighbour, step};
use crate::path::{self, Bounds, Path, Point};
use crate::statistics::{Misfitting, Statistics, misfit, misfitting};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Settings of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// Seed of the random draws.
    pub seed: u64,
    /// Number of simulations of the controller in use.
    pub simulations: usize,
    /// Number of paths to return.
    pub kept: usize,
}

/// A path that was simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Number in the order of [`Search::next_paths`].
    pub number: usize,
    /// The path.
    pub path: Path,
    /// Distance of its connections from the observed ones; see [`misfit`].
    pub misfit: f64,
}

#[derive(Clone, Debug)]
struct Tried {
    number: usize,
    point: Point,
    misfit: f64,
    differences: Vec<Option<f64>>,
}

impl Tried {
    fn neighbour(&self) -> Neighbour<'_> {
        Neighbour { point: self.point, differences: &self.differences }
    }
}

/// Rounds of the search: first the whole space, then ever smaller neighbourhoods of the best
/// points.
const ROUNDS: usize = 6;
/// Share of the simulations in the first round.
const FIRST: f64 = 0.35;
/// Spread in the second round, and its factor for each later round.
const SPREAD: f64 = 0.15;
const SHRINK: f64 = 0.7;
/// Best points whose neighbourhoods are searched, and those from which a step is taken.
const PARENTS: usize = 6;
const STEPS: usize = 5;

/// A search in rounds: [`Search::next_paths`] returns paths; the caller simulates them and passes
/// the results to [`Search::tell`].
#[derive(Debug)]
pub struct Search {
    observed: Statistics,
    bounds: Bounds,
    settings: SearchSettings,
    rng: ChaCha8Rng,
    shift: Point,
    round: usize,
    pending: Vec<Point>,
    tried: Vec<Tried>,
}

impl Search {
    /// Starts a search.
    pub fn new(observed: Statistics, bounds: Bounds, settings: SearchSettings) -> Search {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let shift = path::anywhere(&mut rng);
        let (round, pending, tried) = (0, Vec::new(), Vec::new());
        Search { observed, bounds, settings, rng, shift, round, pending, tried }
    }

    /// The paths to simulate next; empty at the end of the search.
    pub fn next_paths(&mut self) -> Vec<Path> {
        let total = self.settings.simulations;
        let first = ((total as f64 * FIRST).ceil() as usize).min(total);
        self.pending = match self.round {
            0 => (0..first).map(|number| path::even(number, &self.shift)).collect(),
            round if round < ROUNDS => {
                let left = total.saturating_sub(self.tried.len());
                self.around(left.div_ceil(ROUNDS - round), SPREAD * SHRINK.powi(round as i32 - 1))
            }
            _ => Vec::new(),
        };
        self.round += 1;
        self.pending.iter().map(|point| self.bounds.path(point)).collect()
    }

    /// Points near the best: some by linear steps, the others at random.
    fn around(&mut self, count: usize, spread: f64) -> Vec<Point> {
        self.sort();
        let parents = self.tried.len().min(PARENTS);
        let others: Vec<Neighbour<'_>> = self.tried.iter().map(Tried::neighbour).collect();
        let steps = self.tried.iter().take(STEPS);
        let reach = 2.0 * spread;
        let steps = steps.filter_map(|one| step(&one.neighbour(), &others, reach));
        let mut points: Vec<Point> = steps.take(count).collect();
        for number in 0..count - points.len() {
            let parent = &self.tried[number % parents].point;
            points.push(path::near(parent, spread, &mut self.rng));
        }
        points
    }

    /// Adds the results of the paths from [`Search::next_paths`], in that order.
    pub fn tell(&mut self, simulated: &[Statistics]) {
        let first = self.tried.len();
        for (index, (point, one)) in self.pending.drain(..).zip(simulated).enumerate() {
            let misfit = misfit(&self.observed, one);
            let differences = self.observed.differences(one);
            self.tried.push(Tried { number: first + index, point, misfit, differences });
        }
    }

    fn sort(&mut self) {
        self.tried.sort_by(|a, b| a.misfit.total_cmp(&b.misfit));
    }

    /// The statistics that the best path reproduces least: those over three standard errors off.
    pub fn misfitting(&self) -> Vec<Misfitting> {
        let best = self.tried.iter().min_by(|a, b| a.misfit.total_cmp(&b.misfit));
        best.map(|best| misfitting(&best.differences, 3.0)).unwrap_or_default()
    }

    /// The paths with the smallest misfit, best first.
    pub fn fits(mut self) -> Vec<Fit> {
        self.sort();
        let fit = |one: &Tried| Fit {
            number: one.number,
            path: self.bounds.path(&one.point),
            misfit: one.misfit,
        };
        self.tried.iter().take(self.settings.kept).map(fit).collect()
    }
}
