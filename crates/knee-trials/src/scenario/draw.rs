//! Draws from one random stream.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(ChaCha8Rng::seed_from_u64(seed))
    }

    /// An integer from `from` to `to`, both inclusive.
    pub fn between(&mut self, from: u32, to: u32) -> u32 {
        from + self.0.next_u32() % (to - from + 1)
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n) == 1
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u32 - 1) as usize]
    }

    /// Draws one of several weighted values.
    pub fn weighted(&mut self, choices: &[(u32, usize)]) -> usize {
        let sum = choices.iter().map(|(weight, _)| weight).sum::<u32>();
        let mut drawn = self.between(1, sum);
        for (weight, value) in choices {
            if drawn <= *weight {
                return *value;
            }
            drawn -= weight;
        }
        unreachable!("the number drawn is at most the sum of the weights")
    }
}
