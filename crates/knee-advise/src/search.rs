//! Search for paths that explain the observations.

use crate::linear::{Neighbour, step};
use crate::path::{self, Bounds, DIMENSIONS, Path, Point};
use crate::statistics::Statistics;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// The paths among which is searched.
pub trait Space {
    /// A path.
    type Path: Copy;

    /// The path at a point of the unit cube.
    fn path(&self, point: &Point) -> Self::Path;
}

/// What is known of connections, observed or simulated.
pub trait Compared {
    /// Differences of `other`, in standard errors; `None` where either has no value.
    fn differences(&self, other: &Self) -> Vec<Option<f64>>;

    /// Number of values.
    fn count(&self) -> usize;

    /// What the value at an index is.
    fn name(index: usize) -> String;
}

/// Distance of simulated from observed connections: the mean Huber loss over all statistics, so
/// that a statistic outside of the model does not dominate. About one half if both come from the
/// same path.
pub fn misfit<S: Compared>(observed: &S, simulated: &S) -> f64 {
    const EDGE: f64 = 2.0;
    let huber = |z: f64| match z.abs() {
        small if small <= EDGE => small * small / 2.0,
        large => EDGE * (large - EDGE / 2.0),
    };
    let differences = observed.differences(simulated);
    // A value that only one of them has counts as a large difference.
    let both: Vec<f64> = differences.into_iter().flatten().collect();
    let missing = observed.count().max(simulated.count()) - both.len();
    let sum: f64 = both.iter().map(|z| huber(*z)).sum();
    (sum + missing as f64 * huber(3.0)) / (both.len() + missing).max(1) as f64
}

/// A statistic that a simulation does not reproduce.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfitting {
    /// What it is.
    pub name: String,
    /// Simulated minus observed, standard errors.
    pub errors: f64,
}

/// Returns the largest of these differences, largest first, each over `errors_min` standard errors.
pub(crate) fn misfitting<S: Compared>(
    differences: &[Option<f64>],
    errors_min: f64,
) -> Vec<Misfitting> {
    let each = differences.iter().enumerate().filter_map(|(at, errors)| {
        let errors = (*errors)?;
        (errors.abs() >= errors_min).then(|| Misfitting { name: S::name(at), errors })
    });
    let mut all: Vec<Misfitting> = each.collect();
    all.sort_by(|a, b| b.errors.abs().total_cmp(&a.errors.abs()));
    all
}

/// Settings of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// Seed of the random draws.
    pub seed: u64,
    /// Number of simulations of the controller in use.
    pub simulations: usize,
    /// Number of paths to return.
    pub kept: usize,
    /// Number of values, over the whole range of each parameter, that are tried at the end with the
    /// others as in each of the best paths, in further simulations: how far a parameter makes a
    /// difference at all. Zero for none.
    pub scan: usize,
}

/// A path that was simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit<P = Path> {
    /// Number in the order of [`Search::next_paths`].
    pub number: usize,
    /// The path.
    pub path: P,
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
/// Best points whose coordinates are tried over their whole range.
const SCANNED: usize = 3;
const STEPS: usize = 5;

/// A search in rounds: [`Search::next_paths`] returns paths; the caller simulates them and passes
/// the results to [`Search::tell`].
#[derive(Debug)]
pub struct Search<B = Bounds, S = Statistics> {
    observed: S,
    bounds: B,
    settings: SearchSettings,
    rng: ChaCha8Rng,
    shift: Point,
    round: usize,
    pending: Vec<Point>,
    tried: Vec<Tried>,
}

impl<B: Space, S: Compared> Search<B, S> {
    /// Starts a search.
    pub fn new(observed: S, bounds: B, settings: SearchSettings) -> Search<B, S> {
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let shift = path::anywhere(&mut rng);
        let (round, pending, tried) = (0, Vec::new(), Vec::new());
        Search { observed, bounds, settings, rng, shift, round, pending, tried }
    }

    /// The paths to simulate next; empty at the end of the search.
    pub fn next_paths(&mut self) -> Vec<B::Path> {
        let total = self.settings.simulations;
        let first = ((total as f64 * FIRST).ceil() as usize).min(total);
        self.pending = match self.round {
            0 => (0..first).map(|number| path::even(number, &self.shift)).collect(),
            round if round < ROUNDS => {
                let left = total.saturating_sub(self.tried.len());
                self.around(left.div_ceil(ROUNDS - round), SPREAD * SHRINK.powi(round as i32 - 1))
            }
            ROUNDS => self.scanned(),
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

    /// The best points, each with one coordinate anywhere.
    fn scanned(&mut self) -> Vec<Point> {
        self.sort();
        let scan = self.settings.scan;
        let values = (0..scan).map(|number| (number as f64 + 0.5) / scan as f64);
        let mut points = Vec::new();
        for parent in self.tried.iter().take(SCANNED) {
            for dimension in 0..DIMENSIONS {
                points.extend(values.clone().map(|value| {
                    let mut point = parent.point;
                    point[dimension] = value;
                    point
                }));
            }
        }
        points
    }

    /// Adds the results of the paths from [`Search::next_paths`], in that order.
    pub fn tell(&mut self, simulated: &[S]) {
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
        best.map(|best| misfitting::<S>(&best.differences, 3.0)).unwrap_or_default()
    }

    /// The paths that explain the observations, best first, with their points: those whose sum of
    /// losses is what chance alone leaves (`chance`), and those nearly as good as the best (by
    /// `support`), which may be further off than that.
    pub(crate) fn supported(&mut self, chance: f64, support: f64) -> Vec<(Point, B::Path)> {
        self.sort();
        let Some(best) = self.tried.first().map(|best| best.misfit) else { return Vec::new() };
        let count = self.observed.count() as f64;
        let limit = (best * count + support).max(chance);
        let near = |one: &&Tried| one.misfit * count <= limit;
        let place = |one: &Tried| (one.point, self.bounds.path(&one.point));
        self.tried.iter().filter(near).map(place).collect()
    }

    /// The paths with the smallest misfit, best first.
    pub fn fits(mut self) -> Vec<Fit<B::Path>> {
        self.sort();
        let fit = |one: &Tried| Fit {
            number: one.number,
            path: self.bounds.path(&one.point),
            misfit: one.misfit,
        };
        self.tried.iter().take(self.settings.kept).map(fit).collect()
    }
}
