//! The search space: knobs with discrete steps.

use knee_units::random::{below, chance};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

/// Mantissas of the values between two powers of ten.
const MANTISSAS: [&str; 6] = ["1", "1.5", "2", "3", "5", "7"];
/// Limit on the steps that a knob moves at once, and probability of a jump to any value instead.
const STEPS_MAX: u64 = 3;
const ANYWHERE: f64 = 0.15;

/// A number of a scenario and its bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Knob {
    pub name: String,
    low: f64,
    high: f64,
    /// Preferred value in a simplified scenario.
    plain: f64,
    #[serde(default)]
    whole: bool,
    /// Whether zero is allowed as well.
    #[serde(default)]
    none: bool,
}

/// Index of the value of each knob.
pub(super) type Point = Vec<usize>;

/// The knobs of one metric, each with its values in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Space {
    knobs: Vec<(Knob, Vec<f64>)>,
}

impl Space {
    /// Builds the space of the knobs that `set` names.
    pub fn new(knobs: &[Knob], set: &[String]) -> Space {
        let named = |knob: &&Knob| set.iter().any(|set| set.contains(&placeholder(knob)));
        let knobs = knobs.iter().filter(named).map(|knob| (knob.clone(), values(knob)));
        Space { knobs: knobs.filter(|(_, values)| !values.is_empty()).collect() }
    }

    /// Fills a point's values into the keys and values of `set`.
    pub fn fill(&self, set: &[String], point: &Point) -> Vec<String> {
        let fill = |text: &String| {
            self.knobs.iter().zip(point).fold(text.clone(), |text, ((knob, values), step)| {
                text.replace(&placeholder(knob), &values[*step].to_string())
            })
        };
        set.iter().map(fill).collect()
    }

    /// Draws a uniformly random point.
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> Point {
        self.knobs.iter().map(|(_, values)| below(rng, values.len() as u64) as usize).collect()
    }

    /// Draws a neighbour of a point: moves about half of the knobs, at least one.
    pub fn near(&self, point: &Point, rng: &mut ChaCha8Rng) -> Point {
        let surely = below(rng, point.len() as u64) as usize;
        let turn = |(at, (step, (_, values))): (usize, (&usize, &(Knob, Vec<f64>)))| {
            if at != surely && !chance(rng, 0.4) {
                return *step;
            }
            if chance(rng, ANYWHERE) {
                return below(rng, values.len() as u64) as usize;
            }
            let far = 1 + below(rng, STEPS_MAX) as usize;
            match chance(rng, 0.5) {
                true => (step + far).min(values.len() - 1),
                false => step.saturating_sub(far),
            }
        };
        point.iter().zip(&self.knobs).enumerate().map(turn).collect()
    }

    /// Simpler points, simplest first: one knob at its plain value, halfway to it, or at an
    /// adjacent rounder number.
    pub fn simpler(&self, point: &Point) -> Vec<Point> {
        let mut found: Vec<(usize, Point)> = Vec::new();
        for (at, (knob, values)) in self.knobs.iter().enumerate() {
            let plain = nearest(values, knob.plain);
            let step = point[at];
            let tries = [plain, (plain + step) / 2, step + 1, step.saturating_sub(1)];
            for step in tries.into_iter().filter(|step| *step < values.len()) {
                let other = Point::from_iter(
                    point.iter().enumerate().map(|(n, own)| if n == at { step } else { *own }),
                );
                let complexity = self.complexity(&other);
                let new = !found.iter().any(|(_, known)| *known == other);
                if complexity < self.complexity(point) && new {
                    found.push((complexity, other));
                }
            }
        }
        found.sort();
        found.into_iter().map(|(_, point)| point).collect()
    }

    /// Distance from the plain values, plus a penalty for numbers that are not round.
    fn complexity(&self, point: &Point) -> usize {
        let of = |((knob, values), step): (&(Knob, Vec<f64>), &usize)| {
            let rough = match values[*step].to_string().trim_matches(['0', '.']) {
                "" | "1" => 0,
                "2" | "5" => 1,
                _ => 2,
            };
            2 * nearest(values, knob.plain).abs_diff(*step) + rough
        };
        self.knobs.iter().zip(point).map(of).sum()
    }
}

fn placeholder(knob: &Knob) -> String {
    format!("{{{}}}", knob.name)
}

fn values(knob: &Knob) -> Vec<f64> {
    let powers = -3..=4;
    let all = powers.flat_map(|power| MANTISSAS.map(|mantissa| format!("{mantissa}e{power}")));
    let all = all.filter_map(|text| text.parse::<f64>().ok());
    let within = all.filter(|value| (knob.low..=knob.high).contains(value));
    let zero = knob.none.then_some(0.0);
    zero.into_iter().chain(within.filter(|value| !knob.whole || value.fract() == 0.0)).collect()
}

fn nearest(values: &[f64], wanted: f64) -> usize {
    let far = |step: &usize| (values[*step] - wanted).abs();
    (0..values.len()).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    fn space() -> (Space, Vec<String>) {
        let knob = |name: &str, low, high, plain, whole, none| Knob {
            name: name.to_string(),
            low,
            high,
            plain,
            whole,
            none,
        };
        let knobs = [
            knob("rate", 0.1, 20.0, 10.0, false, false),
            knob("loss", 0.5, 2.0, 0.0, false, true),
            knob("flows", 1.0, 10.0, 1.0, true, false),
        ];
        let set = ["r={rate} Mbit/s", "l={loss} %", "n={flows}"].map(str::to_string).to_vec();
        (Space::new(&knobs, &set), set)
    }

    /// Values respect bounds, whole numbers and zero, and print as a scenario accepts them.
    #[test]
    fn every_scenario_is_within_the_bounds() {
        let (space, set) = space();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut point = space.draw(&mut rng);
        let mut without_loss = 0;
        for _ in 0..500 {
            point = space.near(&point, &mut rng);
            let filled = space.fill(&set, &point);
            let number = |at: usize| {
                let text = filled[at].split_once('=').unwrap().1;
                text.split(' ').next().unwrap().parse::<f64>().unwrap()
            };
            assert!((0.1..=20.0).contains(&number(0)) && filled[0].len() < 16, "{filled:?}");
            assert!(number(1) == 0.0 || (0.5..=2.0).contains(&number(1)), "{filled:?}");
            assert!((1.0..=10.0).contains(&number(2)) && number(2).fract() == 0.0, "{filled:?}");
            without_loss += usize::from(number(1) == 0.0);
        }
        assert!((10..490).contains(&without_loss), "{without_loss}");
    }

    /// Repeatedly taking the first simpler point ends at the plain scenario.
    #[test]
    fn simpler_ends_where_all_is_plain() {
        let (space, set) = space();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for _ in 0..20 {
            let mut point = space.draw(&mut rng);
            for _ in 0..100 {
                let Some(simpler) = space.simpler(&point).into_iter().next() else { break };
                point = simpler;
            }
            assert_eq!(space.fill(&set, &point), ["r=10 Mbit/s", "l=0 %", "n=1"]);
        }
    }
}
