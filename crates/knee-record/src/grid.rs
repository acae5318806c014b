//! Compares the simulator with the kernel over many scenarios.
//!
//! Cells whose kernel run is invalid are listed but not counted.

use crate::Verdict;
use crate::fidelity::{Agreement, Fidelity, median};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema name of the document.
pub const SCHEMA: &str = "knee-fidelity-grid/2";

/// Measures by which a cell is judged. The time until flows converge is not among them, because it
/// is a matter of chance in a run of a few seconds.
pub const JUDGED: [&str; 3] = ["goodput", "smoothed_rtt_p50", "retransmit_ratio_total"];

/// Number of worst cells named.
const WORST: usize = 10;

/// Results of a grid of scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FidelityGrid {
    /// `knee-fidelity-grid/2`.
    pub schema: String,
    /// Release of the kernel.
    pub kernel_release: Option<String>,
    /// Number of requested cells.
    pub planned: usize,
    /// Cells that count: both grounds have runs that are not invalid.
    pub compared: usize,
    /// Cells that agree: each measure is within its tolerance, or differs by
    /// less than the noise of the runs.
    pub within: usize,
    /// Cells with each measure within its tolerance.
    pub within_tolerance: usize,
    /// Summary over the cells that count, one entry per measure.
    pub medians: Vec<GridMedian>,
    /// Names of the cells with the largest differences relative to their
    /// tolerance, the worst first.
    pub worst: Vec<String>,
    /// Names of the cells with only invalid runs.
    pub invalid: Vec<String>,
    /// All cells that ran on both grounds, in the order of the grid.
    pub cells: Vec<GridCell>,
}

/// A cell of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridCell {
    /// Name of the cell and of its directory.
    pub name: String,
    /// Rate of the link.
    pub rate_bps: f64,
    /// RTT without queues.
    pub rtt_us: f64,
    /// Buffer, in bandwidth-delay products.
    pub buffer_bdp: f64,
    /// Independent loss on the link, `0..=1`.
    pub loss_ratio: f64,
    /// Largest random delay by which packets overtake each other; 0 for none.
    #[serde(default)]
    pub reordering_us: f64,
    /// Number of flows.
    pub flows: usize,
    /// Controllers of the flows.
    pub cc: String,
    /// Verdict on each run on the kernel.
    pub kernel_runs: Vec<Verdict>,
    /// Comparison of the two grounds.
    pub fidelity: Fidelity,
}

/// A measure over all counted cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridMedian {
    /// Name of the measure.
    pub measure: String,
    /// Cells with this measure.
    pub cells: usize,
    /// Cells that agree.
    pub within: usize,
    /// Median of the absolute differences: relative to the kernel's value; for
    /// fractions as they are.
    pub median_size: f64,
    /// Median of the signed differences; above zero if the simulator's value is
    /// larger.
    pub median: f64,
}

impl GridCell {
    /// Returns the measures by which the cell is judged.
    pub fn judged(&self) -> impl Iterator<Item = &Agreement> {
        JUDGED.iter().filter_map(|measure| self.fidelity.overall(measure))
    }

    /// Returns whether each measure agrees; `None` if a run of the cell is invalid.
    pub fn within(&self) -> Option<bool> {
        let each: Option<Vec<bool>> = self.judged().map(|one| one.within).collect();
        each.filter(|each| !each.is_empty()).map(|each| each.iter().all(|within| *within))
    }

    /// Returns whether it agrees without allowing for the noise of the runs.
    pub fn within_tolerance(&self) -> Option<bool> {
        self.within().map(|_| self.used() <= 1.0)
    }

    /// Returns the largest fraction of a tolerance that a measure uses.
    fn used(&self) -> f64 {
        self.judged().filter_map(|one| one.tolerance_used).fold(0.0, f64::max)
    }
}

impl FidelityGrid {
    /// Summarises cells.
    pub fn new(planned: usize, cells: Vec<GridCell>) -> FidelityGrid {
        let (sound, invalid): (Vec<&GridCell>, Vec<&GridCell>) =
            cells.iter().partition(|cell| cell.within().is_some());
        let mut worst = sound.clone();
        // Cells that differ come first, then by the size of the difference.
        worst.sort_by(|a, b| {
            a.within().cmp(&b.within()).then_with(|| b.used().total_cmp(&a.used()))
        });
        let names = |cells: &[&GridCell]| cells.iter().map(|cell| cell.name.clone()).collect();
        FidelityGrid {
            schema: SCHEMA.to_string(),
            kernel_release: cells.first().and_then(|cell| cell.fidelity.kernel_release.clone()),
            planned,
            compared: sound.len(),
            within: sound.iter().filter(|cell| cell.within() == Some(true)).count(),
            within_tolerance: sound
                .iter()
                .filter(|cell| cell.within_tolerance() == Some(true))
                .count(),
            medians: JUDGED.iter().filter_map(|name| GridMedian::of(name, &sound)).collect(),
            worst: names(&worst[..worst.len().min(WORST)]),
            invalid: names(&invalid),
            cells,
        }
    }

    /// Returns a cell by name.
    pub fn cell(&self, name: &str) -> Option<&GridCell> {
        self.cells.iter().find(|cell| cell.name == name)
    }
}

impl GridMedian {
    fn of(measure: &str, cells: &[&GridCell]) -> Option<GridMedian> {
        let all = cells.iter().filter_map(|cell| cell.fidelity.overall(measure));
        let all: Vec<&Agreement> = all.collect();
        let off: Vec<f64> = all.iter().filter_map(|one| one.off()).collect();
        Some(GridMedian {
            measure: measure.to_string(),
            cells: off.len(),
            within: all.iter().filter(|one| one.within == Some(true)).count(),
            median_size: median(off.iter().map(|off| off.abs()).collect())?,
            median: median(off)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::{GroundRun, SCHEMA as FIDELITY};
    use crate::print::Unit;
    use crate::tolerances;

    /// Returns a cell in which the simulator has `sim` times the kernel's goodput.
    fn cell(name: &str, sim: f64, verdict: Verdict) -> GridCell {
        let run = GroundRun { verdict, verdict_reason: None, probes: Vec::new() };
        let tolerance = tolerances()[0].1;
        let sound = verdict != Verdict::Invalid;
        let measures =
            vec![Agreement::new("goodput", "*", Unit::BitsPerSecond, [sim, 1.0], tolerance, sound)];
        let fidelity = Fidelity {
            schema: FIDELITY.to_string(),
            name: String::new(),
            seed: 1,
            ground: String::new(),
            kernel_release: None,
            sim: run.clone(),
            kernel: run,
            measures,
            further: Vec::new(),
        };
        GridCell {
            name: name.to_string(),
            rate_bps: 0.0,
            rtt_us: 0.0,
            buffer_bdp: 0.0,
            loss_ratio: 0.0,
            reordering_us: 0.0,
            flows: 1,
            cc: String::new(),
            kernel_runs: vec![verdict],
            fidelity,
        }
    }

    #[test]
    fn invalid_cells_are_listed_and_count_nowhere() {
        let cells = vec![
            cell("near", 1.01, Verdict::Valid),
            cell("far", 0.9, Verdict::Degraded),
            cell("void", 5.0, Verdict::Invalid),
            cell("exact", 1.0, Verdict::Valid),
        ];
        let grid = FidelityGrid::new(5, cells);
        assert_eq!((grid.planned, grid.compared, grid.within), (5, 3, 2));
        assert_eq!(grid.within_tolerance, 2);
        assert_eq!(grid.worst, ["far", "near", "exact"]);
        assert_eq!(grid.invalid, ["void"]);
        // Median of -0.1, 0, 0.01; of their absolute values 0, 0.01, 0.1.
        let [goodput] = &grid.medians[..] else { panic!("{:?}", grid.medians) };
        assert_eq!((goodput.cells, goodput.within, goodput.median), (3, 2, 0.0));
        assert!((goodput.median_size - 0.01).abs() < 1e-12);
    }

    #[test]
    fn medians_of_even_numbers_lie_between() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
