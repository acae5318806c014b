//! Runs a fixed grid of scenarios on the simulator and on the kernel. Implements `knee fidelity`.
//!
//! Each cell runs several times on both grounds, and medians are compared: where the repeats of one
//! ground disagree, they prove nothing about the other. Kernel runs take real time, so sound ones
//! are kept, and every cell gets its first run before any gets its second. Simulator runs are
//! always repeated: after a change of the simulator, the same command shows its effect.

mod cell;
mod cells;
mod extended;
pub mod page;

use crate::both;
use crate::command::{self, quoted};
use crate::directory::{FIDELITY, MARKDOWN, REPORT, cannot_write, no_links};
use crate::error::Error;
use crate::experiment::check_jobs;
use crate::ground::{Ground, Grounds, KERNEL, SIMULATOR};
use crate::job::{Job, Run};
use crate::lab::Lab;
use crate::text::ScenarioText;
use cell::Cell;
use knee_record::{
    FidelityGrid, GridCell, OverallValues, RunView, Verdict, overall_values, read_manifest,
    read_run, read_summary, write_json, write_text,
};
use knee_scenario::{Scenario, load_file};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs of a cell on the simulator.
const SIM_RUNS: usize = 11;

/// Default number of kernel runs per cell.
pub const KERNEL_RUNS: u16 = 3;

/// Selection of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Rate, RTT, buffer, loss, flows, controller: 72 cells.
    All,
    /// A dozen of these, covering every level of every factor.
    Quick,
    /// Rate, RTT, buffer, loss, reordering, controller: 54 cells.
    Reordering,
    /// Further cells: several controllers, more flows, varying rates, AQMs, loss, MPTCP. A recorded
    /// link in Mahimahi's format can replace the synthetic one.
    Extended(Option<PathBuf>),
}

/// Settings of the grid.
#[derive(Clone, Debug)]
pub struct GridSettings {
    /// Selection of cells.
    pub cells: Cells,
    /// Restricts it to cells whose name contains this.
    pub named: Option<String>,
    /// Kernel runs of each cell.
    pub kernel_runs: u16,
    /// Whether to repeat runs that exist.
    pub anew: bool,
    /// Output directory.
    pub out: PathBuf,
}

/// Why the grid cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum GridError {
    /// No cell matches.
    #[error("no cell has such a name; an example is {example}")]
    NoCell {
        /// Name of an existing cell.
        example: String,
    },
    /// The recorded link is invalid.
    #[error("{}: {why}", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The directory contains something other than cells of the grid.
    #[error("{} contains something other than cells of the grid", .0.display())]
    OfAnother(PathBuf),
}

/// The grid, planned.
#[derive(Debug)]
pub struct Grid<'g> {
    settings: GridSettings,
    sim: &'g dyn Ground,
    kernel: &'g dyn Ground,
    plans: Vec<Planned>,
}

/// A cell with its directory and its scenarios, which differ only in randomness.
#[derive(Debug)]
struct Planned {
    cell: Cell,
    scenarios: Vec<Scenario>,
    /// Requested kernel runs.
    kernel_runs: usize,
    directory: PathBuf,
}

impl Planned {
    /// Directory of a run; on the simulator only the first run has one.
    fn at(&self, name: &str, repeat: usize) -> PathBuf {
        match repeat {
            0 => self.directory.join(name),
            _ => self.directory.join(format!("{name}-{}", repeat + 1)),
        }
    }

    /// Whether a complete run of this scenario exists on a ground.
    fn has(&self, ground: &str, repeat: usize) -> bool {
        let directory = self.at(ground, repeat);
        let scenario = ScenarioText::of_run(&directory);
        read_manifest(&directory).is_ok_and(|manifest| !manifest.interrupted)
            && scenario.is_ok_and(|text| text.bytes() == self.scenarios[repeat].resolved.as_bytes())
    }

    /// Verdict of a kernel run; `None` if there is none.
    fn verdict(&self, repeat: usize) -> Option<Verdict> {
        let summary = || read_summary(&self.at(KERNEL, repeat)).ok();
        self.has(KERNEL, repeat).then(summary).flatten().map(|run| run.verdict)
    }

    /// Whether a kernel run is sound and need not be repeated.
    fn is_kept(&self, repeat: usize) -> bool {
        self.verdict(repeat).is_some_and(|verdict| verdict != Verdict::Invalid)
    }

    /// Measurements of the sound kernel runs.
    fn on_kernel(&self) -> Result<Vec<OverallValues>, Error> {
        let kept = (0..self.kernel_runs).filter(|repeat| self.is_kept(*repeat));
        let values = kept.map(|repeat| {
            let run = read_run(&self.at(KERNEL, repeat))?;
            let warmup = self.scenarios[repeat].warmup;
            Ok(overall_values(&RunView::new(&run.records, warmup)))
        });
        values.collect()
    }
}

impl<'g> Grid<'g> {
    /// Plans the grid.
    ///
    /// # Errors
    /// A [`GridError`], or what the kernel or this host lacks.
    pub fn new(settings: GridSettings, grounds: &'g Grounds) -> Result<Grid<'g>, Error> {
        let (sim, kernel) = (grounds.get(SIMULATOR)?, grounds.get(KERNEL)?);
        let plans = plan(&settings)?;
        let jobs: Vec<Job<'_>> =
            plans.iter().map(|planned| Job::new(&planned.scenarios[0], kernel)).collect();
        check_jobs(&jobs)?;
        Ok(Grid { settings, sim, kernel, plans })
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.plans.len()
    }

    /// Number of pending kernel runs, and their total duration, seconds.
    pub fn to_run(&self) -> (usize, f64) {
        let real = self.missing();
        let seconds: f64 = real.iter().map(|part| part.scenario().duration.as_secs_f64()).sum();
        (real.len(), seconds + real.len() as f64 * self.kernel.setup_s())
    }

    /// Pending kernel runs.
    fn missing(&self) -> Vec<Part<'_>> {
        let repeats = 0..usize::from(self.settings.kernel_runs);
        let real = repeats.flat_map(|repeat| {
            let anew = self.settings.anew;
            let missing = self.plans.iter().filter(move |plan| anew || !plan.is_kept(repeat));
            missing.map(move |planned| Part { planned, ground: self.kernel, repeat })
        });
        real.collect()
    }

    /// The command that continues with the pending runs.
    pub fn command(&self) -> String {
        let GridSettings { cells, named, kernel_runs, .. } = &self.settings;
        let mut line = "knee fidelity".to_string();
        line += match cells {
            Cells::All => "",
            Cells::Quick => " --quick",
            Cells::Reordering => " --reordering",
            Cells::Extended(_) => " --extended",
        };
        if let Some(part) = named {
            line += &format!(" --cells {}", quoted(part));
        }
        if let Cells::Extended(Some(trace)) = cells {
            line += &format!(" --trace {}", quoted(&trace.to_string_lossy()));
        }
        if *kernel_runs != KERNEL_RUNS {
            line += &format!(" --repeat {kernel_runs}");
        }
        line
    }

    /// Creates the directory; refuses one with other contents.
    ///
    /// # Errors
    /// [`GridError::OfAnother`], [`Error::Link`], or a directory that cannot be created.
    pub fn claim(&self) -> Result<(), Error> {
        let GridSettings { out, anew, .. } = &self.settings;
        let known: Vec<Cell> = [cells::all(), cells::reordering(), extended::all(None)]
            .into_iter()
            .flatten()
            .collect();
        let ours = |name: &str| known.iter().any(|cell| cell.name == name);
        let entries = fs::read_dir(out).into_iter().flatten().flatten();
        let names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        let foreign = !names.is_empty() && !names.iter().any(|name| name == FIDELITY || ours(name));
        if foreign && !anew {
            return Err(GridError::OfAnother(out.clone()).into());
        }
        for planned in &self.plans {
            let kernel = (0..planned.kernel_runs).map(|repeat| planned.at(KERNEL, repeat));
            let mut runs = kernel.chain([planned.at(SIMULATOR, 0)]);
            runs.try_for_each(|run| no_links(out, &run, *anew))?;
        }
        fs::create_dir_all(out).map_err(|error| cannot_write(out, error))
    }

    /// Collects the cells that ran on both grounds. `simulated` has the measurements of each cell's
    /// runs on the simulator; `None` if a stop left some out.
    fn gather(&self, simulated: &[Option<Vec<OverallValues>>]) -> Result<FidelityGrid, Error> {
        let whole = self.plans.iter().zip(simulated).filter_map(|(planned, simulated)| {
            let both = planned.has(SIMULATOR, 0) && planned.has(KERNEL, 0);
            Some((planned, simulated.as_ref()?)).filter(|_| both)
        });
        let cells = whole.map(|(planned, simulated)| {
            let command = command::of_run(&planned.at(KERNEL, 0), &[SIMULATOR, KERNEL]);
            let fidelity = both::compare(&planned.directory, &command)?;
            let fidelity = fidelity.with_repeats(&simulated[1..], &planned.on_kernel()?);
            let kernel_runs = (0..planned.kernel_runs).filter_map(|repeat| planned.verdict(repeat));
            let kernel_runs = kernel_runs.collect();
            Ok(GridCell { fidelity, kernel_runs, ..planned.cell.described() })
        });
        Ok(FidelityGrid::new(self.plans.len(), cells.collect::<Result<_, Error>>()?))
    }
}

impl Lab {
    /// Runs the simulator and the pending kernel runs, compares them, and writes document, table
    /// and page. The directory must have been [`Grid::claim`]ed.
    ///
    /// # Errors
    /// The first failure of a run, or a file that cannot be written.
    pub fn fidelity(&self, grid: &Grid<'_>) -> Result<FidelityGrid, Error> {
        let simulated = grid.plans.iter().flat_map(|planned| {
            (0..SIM_RUNS).map(move |repeat| Part { planned, ground: grid.sim, repeat })
        });
        let parts: Vec<Part<'_>> = simulated.chain(grid.missing()).collect();
        let jobs: Vec<Job<'_>> = parts.iter().map(Part::job).collect();
        let values = self.run_all(&jobs, |index, finished| parts[index].keep(self, finished))?;
        let simulated = values.into_iter().take(grid.plans.len() * SIM_RUNS);
        let simulated: Vec<Option<OverallValues>> = simulated.map(Option::flatten).collect();
        let of_cell = |values: &[Option<OverallValues>]| values.iter().copied().collect();
        let simulated: Vec<Option<Vec<OverallValues>>> =
            simulated.chunks(SIM_RUNS).map(of_cell).collect();
        let compared = grid.gather(&simulated)?;
        let out = &grid.settings.out;
        // A stop before all of them is no reason to replace the documents of the whole grid.
        if simulated.iter().any(Option::is_none) && out.join(FIDELITY).is_file() {
            return Ok(compared);
        }
        write_json(&out.join(FIDELITY), &compared)?;
        write_text(&out.join(MARKDOWN), &page::markdown(&compared))?;
        write_text(&out.join(REPORT), &page::page(&compared, &grid.command())?)?;
        Ok(compared)
    }
}

fn plan(settings: &GridSettings) -> Result<Vec<Planned>, Error> {
    let all = all_cells(&settings.cells)?;
    let wanted = |name: &str| settings.named.as_ref().is_none_or(|part| name.contains(part));
    let example = all[0].name.clone();
    let cells: Vec<Cell> = all.into_iter().filter(|cell| wanted(&cell.name)).collect();
    if cells.is_empty() {
        return Err(GridError::NoCell { example }.into());
    }
    let kernel_runs = usize::from(settings.kernel_runs);
    let planned = |cell: Cell| {
        let scenario = |repeat| {
            cell.scenario(repeat).map_err(|errors| match &settings.cells {
                Cells::Extended(Some(path)) => not_a_trace(path, errors.to_string()),
                _ => Error::Defect(errors.to_string()),
            })
        };
        let repeats = 0..SIM_RUNS.max(kernel_runs) as u64;
        Ok(Planned {
            directory: settings.out.join(&cell.name),
            scenarios: repeats.map(scenario).collect::<Result<_, _>>()?,
            kernel_runs,
            cell,
        })
    };
    cells.into_iter().map(planned).collect()
}

fn all_cells(cells: &Cells) -> Result<Vec<Cell>, Error> {
    Ok(match cells {
        Cells::All => cells::all(),
        Cells::Quick => cells::quick(),
        Cells::Reordering => cells::reordering(),
        Cells::Extended(None) => extended::all(None),
        Cells::Extended(Some(path)) => {
            extended::all(Some(load_file(path).map_err(|why| not_a_trace(path, why))?))
        }
    })
}

fn not_a_trace(path: &Path, why: String) -> Error {
    GridError::NotATrace { path: path.to_path_buf(), why }.into()
}

/// One run of a cell.
struct Part<'p> {
    planned: &'p Planned,
    ground: &'p dyn Ground,
    repeat: usize,
}

impl Part<'_> {
    fn scenario(&self) -> &Scenario {
        &self.planned.scenarios[self.repeat]
    }

    /// Records are written only at the end, since a run of the grid is short.
    fn job(&self) -> Job<'_> {
        Job::new(self.scenario(), self.ground)
    }

    /// Repeats on the simulator leave only their measures. A run that was cut short has none.
    fn keep(&self, lab: &Lab, mut finished: Run) -> Result<Option<OverallValues>, Error> {
        let name = self.ground.name();
        if name == KERNEL || self.repeat == 0 {
            let directory = self.planned.at(name, self.repeat);
            lab.keep(&directory, self.scenario(), &mut finished, &[])?;
        }
        let is_whole = !finished.records.interrupted;
        Ok(is_whole.then(|| overall_values(&finished.view(self.scenario()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::Simulator;

    /// A grid of one cell, which has both of its runs from before.
    fn grid<'g>(sim: &'g Simulator, out: &Path) -> Grid<'g> {
        let settings = GridSettings {
            cells: Cells::Quick,
            named: None,
            kernel_runs: 1,
            anew: false,
            out: out.to_path_buf(),
        };
        let plans = plan(&settings).unwrap().into_iter().take(1).collect();
        Grid { settings, sim, kernel: sim, plans }
    }

    /// The command was stopped while the simulator's runs were repeated.
    #[test]
    fn a_cell_without_its_simulator_runs_is_left_out() {
        let (lab, sim) = (Lab::default(), Simulator::default());
        let out = tempfile::tempdir().unwrap();
        let grid = grid(&sim, out.path());
        let planned = &grid.plans[0];
        let scenario = &planned.scenarios[0];
        let mut run = lab.run(&Job::new(scenario, &sim)).unwrap();
        let values = overall_values(&run.view(scenario));
        for ground in [SIMULATOR, KERNEL] {
            lab.keep(&planned.at(ground, 0), scenario, &mut run, &[]).unwrap();
        }
        assert_eq!(grid.gather(&[None]).unwrap().cells.len(), 0);
        assert_eq!(grid.gather(&[Some(vec![values; SIM_RUNS])]).unwrap().cells.len(), 1);
    }
}
