//! How far two values may be apart and still agree.

/// Largest difference that counts as agreement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Relative to the kernel's value.
    Part(f64),
    /// Relative to the kernel's value, or in percentage points; the larger applies.
    PartOrPoints(f64, f64),
    /// Largest factor between the two values.
    Factor(f64),
}

impl Tolerance {
    /// Returns whether a value of the simulator is close enough to the kernel's. Infinity means
    /// that the event did not occur; if it occurred on neither ground, they agree.
    pub fn accepts(self, sim: f64, kernel: f64) -> bool {
        if sim == kernel {
            return true;
        }
        let off = (sim - kernel).abs();
        match self {
            Tolerance::Part(part) => off <= part * kernel.abs(),
            Tolerance::PartOrPoints(part, points) => {
                off <= (part * kernel.abs()).max(points / 100.0)
            }
            Tolerance::Factor(factor) => sim <= factor * kernel && kernel <= factor * sim,
        }
    }

    /// Returns the fraction of the tolerance that a finite difference uses; one is the limit.
    pub(crate) fn used(self, sim: f64, kernel: f64) -> f64 {
        let off = (sim - kernel).abs();
        let used = match self {
            Tolerance::Part(part) => off / (part * kernel.abs()),
            Tolerance::PartOrPoints(part, points) => {
                off / (part * kernel.abs()).max(points / 100.0)
            }
            Tolerance::Factor(factor) => (sim / kernel).ln().abs() / factor.ln(),
        };
        if off == 0.0 { 0.0 } else { used.min(1e9) }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Tolerance::Part(part) => write!(formatter, "{} %", part * 100.0),
            Tolerance::PartOrPoints(part, points) => {
                write!(formatter, "{} % or {points} points", part * 100.0)
            }
            Tolerance::Factor(factor) => write!(formatter, "a factor of {factor}"),
        }
    }
}
