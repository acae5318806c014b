//! Student's distribution: tail probabilities and quantiles from the incomplete beta function
//! (Abramowitz and Stegun 26.5 and 26.7).

/// Returns the probability that |T| exceeds `t` with `freedom` degrees of freedom.
pub(super) fn two_sided(t: f64, freedom: usize) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    let nu = freedom as f64;
    incomplete_beta(nu / (nu + t * t), nu / 2.0, 0.5)
}

/// Returns the value that |T| exceeds with probability `tail`, by bisection of its logarithm.
/// `tail` is in `0.0..1.0`.
pub(super) fn quantile(tail: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (1e-9_f64.ln(), 1e15_f64.ln());
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match two_sided(middle.exp(), freedom) > tail {
            true => low = middle,
            false => high = middle,
        }
    }
    ((low + high) / 2.0).exp()
}

/// Regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        (a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp();
    // The fraction converges fast on this side of the mean; the other side follows by symmetry.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * fraction(x, a, b) / a,
        false => 1.0 - front * fraction(1.0 - x, b, a) / b,
    }
}

/// The continued fraction 26.5.8, evaluated from the front.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut result) = (1.0, d);
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = result;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            result *= c * d;
        }
        if (result / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// Stirling's series after twenty steps of the recurrence; `x` must be positive.
fn ln_gamma(x: f64) -> f64 {
    let steps = 20;
    let product: f64 = (0..steps).map(|step| x + f64::from(step)).product();
    let z = x + f64::from(steps);
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5));
    (z - 0.5) * z.ln() - z + (2.0 * std::f64::consts::PI).ln() / 2.0 + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From published tables: degrees of freedom, two-sided probability, quantile.
    const TABLE: [(usize, f64, f64); 12] = [
        (1, 0.05, 12.7062),
        (1, 0.001, 636.619),
        (2, 0.05, 4.3027),
        (3, 0.10, 2.3534),
        (4, 0.05, 2.7764),
        (4, 0.001, 8.6103),
        (5, 0.40, 0.919_54),
        (10, 0.05, 2.2281),
        (11, 0.05, 2.2010),
        (30, 0.01, 2.7500),
        (120, 0.05, 1.9799),
        (100_000, 0.05, 1.9600),
    ];

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, tail, t) in TABLE {
            let found = quantile(tail, freedom);
            assert!((found / t - 1.0).abs() < 3e-5, "{freedom}, {tail}: {found}, not {t}");
        }
    }

    /// With one degree of freedom it is Cauchy's distribution; with two it is algebraic.
    #[test]
    fn tails_are_those_of_the_closed_forms() {
        for t in [0.01, 0.5, 1.0, 3.0, 40.0, 1e4] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            assert!((two_sided(t, 1) - cauchy).abs() < 1e-10, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2) - two).abs() < 1e-10, "{t}");
        }
        assert_eq!((two_sided(0.0, 7), two_sided(f64::INFINITY, 7)), (1.0, 0.0));
    }
}
