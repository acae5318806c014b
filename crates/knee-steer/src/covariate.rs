//! Variance that was known beforehand: regression on a forecast (CUPED).
//!
//! If the blocks of a group differ in a way that repeats, such as by the time of day, part of B
//! minus A only says which of the two had the busier hour. CUPED (Deng, Xu, Kohavi and Walker, WSDM
//! 2013) subtracts what a covariate from before the experiment explains: y' = y - theta (x - mean
//! x). The covariate of a block is what the group did before the triple; a value that is common to
//! both blocks cancels in their difference, so x has to be a forecast of each block, such as the
//! same hour of the day before. Then D' = D - theta X, where X is the forecast for the block under B
//! less that for the block under A.
//!
//! The sign-flip e-process stays valid, exactly. Without an effect the results of the three blocks
//! are what they are, whatever their order; the order is drawn independently of all that was before.
//! Theta and the forecasts come from before the triple only, so a swap of A and B turns D into -D
//! and X into -X, and D' is as likely to be positive as negative. Besides, theta is a sum of D X over
//! a sum of X², in which a swap in an earlier triple changes nothing either: it does not depend on
//! any order. With an effect, the mean of theta X over the orders is zero: the estimate of the effect
//! is not biased, even though earlier blocks were under B.

/// Pairs of blocks before the first regression, and predictions before it is relied on: with fewer,
/// chance may look like an explanation.
const PAIRS_MIN: u64 = 8;
/// Largest part of the variance that may remain for the regression to be used.
const REMAINS_MAX: f64 = 0.9;

/// Regression of the differences of blocks on those of their forecasts, through the origin, from
/// earlier pairs only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covariate {
    pairs: u64,
    /// Sums of X² and of D X.
    squares: f64,
    products: f64,
    /// Pairs that were predicted before they were learned; sums of D² and of (D - theta X)².
    predicted: u64,
    without: f64,
    with: f64,
}

impl Covariate {
    /// Adds the difference of two blocks that are over, and that of their forecasts.
    pub fn learn(&mut self, difference: f64, forecast: f64) {
        if self.pairs >= PAIRS_MIN && self.squares > 0.0 {
            self.predicted += 1;
            self.without += difference.powi(2);
            self.with += (difference - self.theta() * forecast).powi(2);
        }
        self.pairs += 1;
        self.squares += forecast.powi(2);
        self.products += difference * forecast;
    }

    fn theta(&self) -> f64 {
        self.products / self.squares
    }

    /// Returns the part of the variance of earlier differences that remained when each was predicted
    /// from those before it; `None` if it is not used: too few, or over 90 % remained.
    pub fn remains(&self) -> Option<f64> {
        let remains = self.with / self.without;
        (self.predicted >= PAIRS_MIN && remains < REMAINS_MAX).then_some(remains)
    }

    /// Returns a difference less what its forecast explains, and the factor by which its standard
    /// deviation is smaller. Unchanged, with a factor of one, without a forecast or if forecasts do
    /// not help.
    pub fn adjusted(&self, difference: f64, forecast: Option<f64>) -> (f64, f64) {
        match forecast.zip(self.remains()) {
            // Evidence from very small differences would depend on rounding.
            Some((forecast, remains)) => {
                (difference - self.theta() * forecast, remains.sqrt().max(0.01))
            }
            None => (difference, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Evidence;

    /// X is 1, D 0.6 and 0.4 in turn, so theta is 0.5 after an even number n of pairs and
    /// 0.5 + 0.1 / n after an odd one. The ninth to sixteenth pair are predicted: four errors of 0.1,
    /// and four of 0.1 + 0.1 / n for n = 9, 11, 13, 15. Their squares are 0.087223 in all, of 2.08.
    #[test]
    fn theta_by_hand() {
        let mut covariate = Covariate::default();
        for at in 0..16 {
            assert_eq!(
                (covariate.remains(), covariate.adjusted(3.0, Some(1.0))),
                (None, (3.0, 1.0))
            );
            covariate.learn(if at % 2 == 0 { 0.6 } else { 0.4 }, 1.0);
        }
        let remains = covariate.remains().unwrap();
        assert!((remains - 0.087_223 / 2.08).abs() < 1e-6, "{remains}");
        let (adjusted, factor) = covariate.adjusted(3.0, Some(1.0));
        assert!((adjusted - 2.5).abs() < 1e-12 && (factor - remains.sqrt()).abs() < 1e-12);
        assert_eq!(covariate.adjusted(3.0, None), (3.0, 1.0));
    }

    /// A forecast of something else, or one that explains less than a tenth, is not used.
    #[test]
    fn what_explains_little_is_not_used() {
        for share in [0.0, 0.2] {
            let mut covariate = Covariate::default();
            for at in 0..400 {
                let forecast = if at % 2 == 0 { 1.0 } else { -1.0 };
                let noise = if at % 4 < 2 { 1.0 } else { -1.0 };
                covariate.learn(share * forecast + noise, forecast);
            }
            assert_eq!(covariate.remains(), None, "{share}");
        }
    }

    /// Over all orders of eight triples the mean evidence is one: nothing is won by chance, whatever
    /// the forecasts and whatever was learned from earlier triples, whose orders vary too.
    #[test]
    fn over_all_orders_nothing_is_won() {
        let blocks = |at: u32| {
            let forecast = f64::from(at * 37 % 17) / 8.0 - 1.0;
            (0.7 * forecast + f64::from(at * 29 % 13) / 30.0 - 0.2, forecast)
        };
        let (mut sum, mut thetas) = (0.0, Vec::new());
        for orders in 0..256_u32 {
            let (mut evidence, mut covariate) = (Evidence::new(0.5), Covariate::default());
            let mut used = 0;
            for at in 0..32 {
                // The first 24 only teach, in orders that depend on these.
                let swapped = orders >> (at % 8) & 1 == 1;
                let (difference, forecast) = blocks(at);
                let sign = if swapped { -1.0 } else { 1.0 };
                let (difference, forecast) = (sign * difference, sign * forecast);
                if at >= 24 {
                    let (adjusted, factor) = covariate.adjusted(difference, Some(forecast));
                    used += u32::from(factor < 1.0);
                    evidence.push(adjusted / factor);
                }
                covariate.learn(difference, forecast);
            }
            assert_eq!(used, 8, "the forecasts help in this case");
            thetas.push(covariate.theta());
            sum += evidence.values()[0];
        }
        assert!((sum / 256.0 - 1.0).abs() < 1e-9, "{}", sum / 256.0);
        assert!(thetas.iter().all(|theta| (theta - thetas[0]).abs() < 1e-12));
    }
}
