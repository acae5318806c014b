//! A Gauss-Newton step towards paths that explain the observations: assumes that statistics are
//! linear in the parameters near a known path.

use crate::path::{DIMENSIONS, Point};

/// A constant, and a slope for each dimension.
const COEFFICIENTS: usize = DIMENSIONS + 1;
/// Regularisation of the slopes, for parameters that are equal in all points.
const RIDGE: f64 = 1e-3;
/// Standard deviation of the prior for the length of a step.
const STEP: f64 = 0.3;

/// A simulated path: its position, and its differences from the observations in standard errors.
pub(crate) struct Neighbour<'a> {
    pub point: Point,
    pub differences: &'a [Option<f64>],
}

/// Steps from `origin` to where the differences are minimal; `reach` is the distance at which
/// neighbours have lost much of their weight.
pub(crate) fn step(origin: &Neighbour<'_>, others: &[Neighbour<'_>], reach: f64) -> Option<Point> {
    let rows: Vec<([f64; COEFFICIENTS], f64)> = others
        .iter()
        .map(|other| {
            let mut row = [1.0; COEFFICIENTS];
            let mut square = 0.0;
            for dimension in 0..DIMENSIONS {
                row[dimension + 1] = other.point[dimension] - origin.point[dimension];
                square += row[dimension + 1].powi(2);
            }
            (row, (-square / (2.0 * reach * reach)).exp())
        })
        .collect();
    let mut normal = [[0.0; COEFFICIENTS]; COEFFICIENTS];
    for (row, weight) in &rows {
        for i in 0..COEFFICIENTS {
            for j in 0..COEFFICIENTS {
                normal[i][j] += weight * row[i] * row[j];
            }
        }
    }
    for (i, row) in normal.iter_mut().enumerate() {
        row[i] += RIDGE;
    }
    let mut left = [[0.0; DIMENSIONS]; DIMENSIONS];
    let mut right = [0.0; DIMENSIONS];
    for (index, value) in origin.differences.iter().enumerate() {
        let Some(value) = value else { continue };
        let mut moments = [0.0; COEFFICIENTS];
        for ((row, weight), other) in rows.iter().zip(others) {
            let Some(there) = other.differences[index] else { continue };
            for i in 0..COEFFICIENTS {
                moments[i] += weight * row[i] * (there - value);
            }
        }
        let slopes = solve(normal, moments)?;
        // Limit the influence of a statistic that no path matches.
        let weight = 1.0 / value.abs().max(1.0);
        for i in 0..DIMENSIONS {
            right[i] -= weight * slopes[i + 1] * value;
            for j in 0..DIMENSIONS {
                left[i][j] += weight * slopes[i + 1] * slopes[j + 1];
            }
        }
    }
    for (i, row) in left.iter_mut().enumerate() {
        row[i] += 1.0 / (STEP * STEP);
    }
    let way = solve(left, right)?;
    Some(std::array::from_fn(|i| (origin.point[i] + way[i]).clamp(0.0, 1.0)))
}

/// Gaussian elimination with pivoting; `None` if the matrix is singular.
fn solve<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot = (column..N)
            .max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..N {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(column) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|at| matrix[row][at] * right[at]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With exactly linear differences, one step reaches the goal, except for the effect of the
    /// prior.
    #[test]
    fn a_step_arrives() {
        let goal = [0.6, 0.3, 0.5, 0.7];
        let of = |point: &Point| -> Vec<Option<f64>> {
            let by = |slopes: [f64; 4]| {
                Some((0..4).map(|i| slopes[i] * (point[i] - goal[i])).sum::<f64>())
            };
            vec![
                by([60.0, 0.0, 5.0, 0.0]),
                by([0.0, 80.0, 0.0, 0.0]),
                by([0.0, 9.0, 70.0, 20.0]),
                by([1.0, 0.0, 10.0, 90.0]),
                None,
            ]
        };
        let points: Vec<Point> = (0..12).map(|n| crate::path::even(n, &[0.1; 4])).collect();
        let differences: Vec<_> = points.iter().map(of).collect();
        let neighbour = |i: usize| Neighbour { point: points[i], differences: &differences[i] };
        let others: Vec<_> = (0..12).map(neighbour).collect();
        let found = step(&neighbour(0), &others, 1.0).unwrap();
        let distance = |from: &Point| -> f64 {
            from.iter().zip(goal).map(|(at, goal)| (at - goal).powi(2)).sum::<f64>().sqrt()
        };
        let (before, after) = (distance(&points[0]), distance(&found));
        assert!(after < before / 5.0, "{after} of {before}");
    }
}
