//! Existence of an effect: a sign-flip e-process.
//!
//! Each difference of B and A is a bet on its sign. Without an effect, the random order makes D and
//! -D equally likely, so the bet's payoff `1 + tanh(lambda D / s0)` is one on average, and the
//! product of payoffs is a nonnegative martingale: the probability that it ever reaches `1 / level`
//! is at most `level` (Ville), however often it is checked. The payoff is between zero and two, so
//! a single outlier cannot decide. The mean over several lambda also has mean one, and works for
//! small and large effects.

/// Stakes for effects from 20 times the scale down to half of it.
pub(crate) const LAMBDAS: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];

/// Logarithm of a bet's payoff, 1 + tanh(x): exact also where the payoff is next to nothing.
pub(crate) fn payoff_ln(x: f64) -> f64 {
    let below = 2.0 * x.min(0.0);
    below + std::f64::consts::LN_2 - (-2.0 * x.abs()).exp().ln_1p()
}

/// Evidence so far that B is more than A, and that it is less.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Unit of a difference.
    scale: f64,
    /// Logarithms of the products, by direction and stake.
    products: [[f64; LAMBDAS.len()]; 2],
}

impl Evidence {
    /// Creates empty evidence. `scale` is the standard deviation of a difference without an effect
    /// (both blocks under A), estimated beforehand and fixed; it must not depend on later data.
    pub fn new(scale: f64) -> Evidence {
        Evidence { scale: scale.max(f64::MIN_POSITIVE), products: Default::default() }
    }

    /// Adds the difference of one group in one triple.
    pub fn push(&mut self, difference: f64) {
        for (direction, products) in [1.0, -1.0].into_iter().zip(&mut self.products) {
            for (lambda, product) in LAMBDAS.into_iter().zip(products) {
                *product += payoff_ln(lambda * direction * difference / self.scale);
            }
        }
    }

    /// E-values that B is more, and that it is less. A value of one is no evidence; 40 occurs by
    /// chance in one of 40 experiments, at any time.
    pub fn values(&self) -> [f64; 2] {
        self.products.map(|products| {
            let sum: f64 = products.iter().map(|product| product.exp()).sum();
            sum / LAMBDAS.len() as f64
        })
    }

    /// The larger of the two, and whether it is for B being more.
    pub fn largest(&self) -> (f64, bool) {
        let [more, less] = self.values();
        if more >= less { (more, true) } else { (less, false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by hand: for D = s0 the payoffs are 1 + tanh(0.05) … 1 + tanh(1.6), their mean is
    /// 1.3919; for D and then -D each product is 1 - tanh(lambda)^2.
    #[test]
    fn values_by_hand() {
        let mut evidence = Evidence::new(2.0);
        assert_eq!(evidence.values(), [1.0, 1.0]);
        evidence.push(2.0);
        let tanh = [0.049_958, 0.099_668, 0.197_375, 0.379_949, 0.664_037, 0.921_669];
        let mean = 1.0 + tanh.iter().sum::<f64>() / 6.0;
        assert!((evidence.values()[0] - mean).abs() < 1e-5);
        assert!((evidence.values()[1] - (2.0 - mean)).abs() < 1e-5);
        evidence.push(-2.0);
        let mean = tanh.iter().map(|t| 1.0 - t * t).sum::<f64>() / 6.0;
        let [more, less] = evidence.values();
        assert!((more - mean).abs() < 1e-5 && (less - mean).abs() < 1e-5, "{more}, {less}");
    }

    /// The mean over both signs of each difference is one: without an effect no sequence of sizes
    /// yields a profit.
    #[test]
    fn over_all_signs_nothing_is_won() {
        let sizes: [f64; 8] = [0.1, 3.0, 0.7, 100.0, 0.01, 1.0, 2.0, 0.4];
        let mut sum = 0.0;
        for signs in 0..256_u32 {
            let mut evidence = Evidence::new(1.0);
            for (at, size) in sizes.iter().enumerate() {
                evidence.push(if signs >> at & 1 == 1 { *size } else { -size });
            }
            sum += evidence.values()[0];
        }
        assert!((sum / 256.0 - 1.0).abs() < 1e-9, "{}", sum / 256.0);
    }

    /// One outlier at most doubles it.
    #[test]
    fn an_outlier_decides_nothing() {
        let mut evidence = Evidence::new(1.0);
        evidence.push(1e9);
        assert!(evidence.values()[0] <= 2.0 && evidence.values()[1] >= 0.0);
    }
}
