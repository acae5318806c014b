//! The ellipse of one standard deviation around the mean of some points, as
//! Pantheon draws it over the runs of a scheme (Yan et al., USENIX ATC 2018).

/// Point in the units of the two axes.
pub(super) type Point = (f64, f64);

/// Number of corners of the outline.
const CORNERS: usize = 48;

/// Returns mean and outline; `None` without points. The outline of points on a line is a line, that
/// of equal points a point.
pub(super) fn ellipse(points: &[Point]) -> Option<(Point, Vec<Point>)> {
    let count = points.len() as f64;
    let sum = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
    if points.is_empty() {
        return None;
    }
    let (x, y) = (sum(|point| point.0) / count, sum(|point| point.1) / count);
    let moment = |of: &dyn Fn(f64, f64) -> f64| {
        let products = points.iter().map(|point| of(point.0 - x, point.1 - y));
        products.sum::<f64>() / (count - 1.0).max(1.0)
    };
    let (xx, xy, yy) = (moment(&|x, _| x * x), moment(&|x, y| x * y), moment(&|_, y| y * y));
    // The Cholesky factor of the covariance maps the unit circle to the ellipse.
    let a = xx.sqrt();
    let b = if a > 0.0 { xy / a } else { 0.0 };
    let c = (yy - b * b).max(0.0).sqrt();
    let corner = |number: usize| {
        let angle = std::f64::consts::TAU * number as f64 / CORNERS as f64;
        (x + a * angle.cos(), y + b * angle.cos() + c * angle.sin())
    };
    Some(((x, y), (0..CORNERS).map(corner).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every corner has Mahalanobis distance one: for independent deviations of 2 and 1 that is
    /// (dx/2)² + dy² = 1, scaled by the sample's deviation.
    #[test]
    fn corners_are_one_deviation_away() {
        let points = [(12.0, 5.0), (8.0, 5.0), (10.0, 6.0), (10.0, 4.0)];
        let ((x, y), outline) = ellipse(&points).unwrap();
        assert_eq!((x, y), (10.0, 5.0));
        // Variances 8/3 and 2/3, no covariance.
        for (cx, cy) in outline {
            let distance = (cx - x).powi(2) / (8.0 / 3.0) + (cy - y).powi(2) / (2.0 / 3.0);
            assert!((distance - 1.0).abs() < 1e-9, "{distance}");
        }
    }

    /// Points on y = 2 x have an ellipse without width along that line.
    #[test]
    fn correlated_points_lie_on_a_line() {
        let (_, outline) = ellipse(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]).unwrap();
        assert!(outline.iter().all(|(x, y)| (y - 2.0 * x).abs() < 1e-6));
        let reach = outline.iter().map(|point| point.0).fold(0.0, f64::max);
        assert!((reach - 3.0).abs() < 1e-9, "deviation 1 around 2: {reach}");
        assert!(ellipse(&[]).is_none());
    }
}
