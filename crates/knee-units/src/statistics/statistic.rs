//! Names of the numbers that a distribution is condensed to.

/// How a distribution is condensed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Smallest value.
    Min,
    /// 5th percentile.
    P5,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest value.
    Max,
    /// Arithmetic mean over time.
    Mean,
}
