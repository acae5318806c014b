//! `knee fidelity`: a fixed grid of scenarios on the simulator and on the
//! kernel.
//!
//! Each cell runs several times on both grounds, and medians are compared:
//! what the repeats of one ground do not agree on proves nothing against the
//! other. Runs on the kernel take real time, so those that are sound are kept
//! and not made again, and all cells have their first before any has its
//! second; the simulator's are always made again: after a change of the
//! simulator the same command says what it brought.

mod cell;
mod cells;
mod document;
mod extended;

use crate::arguments::Fidelity;
use crate::directory::{self, FIDELITY, MARKDOWN, REPORT};
use crate::failure::{Ending, Failure, cannot_write};
use crate::progress::{SELF_CHECK_S, seconds_left};
use crate::run::quoted;
use crate::workers::{Finished, Job, run_all};
use crate::{grounds, interrupt, kernel, screen};
use cell::Cell;
use knee_record::{
    FidelityGrid, GridCell, OverallValues, RunView, Verdict, overall_values, read_manifest,
    read_run, read_summary, write_json, write_text,
};
use knee_scenario::{Ground, Scenario, load_file};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs of a cell on the simulator.
const SIM_RUNS: usize = 11;

/// A cell with its place and its scenarios, which differ in chance alone.
struct Planned {
    cell: Cell,
    scenarios: Vec<Scenario>,
    /// Runs on the kernel that are asked for.
    kernel_runs: usize,
    directory: PathBuf,
}

impl Planned {
    /// Of the simulator only the first run leaves a directory.
    fn at(&self, ground: Ground, repeat: usize) -> PathBuf {
        let name = grounds::word(ground);
        match repeat {
            0 => self.directory.join(name),
            _ => self.directory.join(format!("{name}-{}", repeat + 1)),
        }
    }

    /// The run on a ground is there to its end, and is of this scenario.
    fn has(&self, ground: Ground, repeat: usize) -> bool {
        let directory = self.at(ground, repeat);
        let scenario = fs::read_to_string(directory.join(knee_record::SCENARIO));
        read_manifest(&directory).is_ok_and(|manifest| !manifest.interrupted)
            && scenario.is_ok_and(|text| text == self.scenarios[repeat].resolved)
    }

    /// How a run on the kernel went; none: it is not there.
    fn verdict(&self, repeat: usize) -> Option<Verdict> {
        let summary = || read_summary(&self.at(Ground::Kernel, repeat)).ok();
        self.has(Ground::Kernel, repeat).then(summary).flatten().map(|run| run.verdict)
    }

    /// A run on the kernel need not be made again: it proves something.
    fn is_kept(&self, repeat: usize) -> bool {
        self.verdict(repeat).is_some_and(|verdict| verdict != Verdict::Invalid)
    }

    /// What the sound runs on the kernel measured.
    fn on_kernel(&self) -> Result<Vec<OverallValues>, Failure> {
        let kept = (0..self.kernel_runs).filter(|repeat| self.is_kept(*repeat));
        let values = kept.map(|repeat| {
            let run = read_run(&self.at(Ground::Kernel, repeat))?;
            let warmup = self.scenarios[repeat].warmup;
            Ok(overall_values(&RunView::new(&run.records, warmup)))
        });
        values.collect()
    }
}

/// Runs what is missing of the grid, writes and prints what came out.
pub fn fidelity(arguments: &Fidelity) -> Result<Ending, Failure> {
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| Path::new(directory::DEFAULT).join("fidelity"));
    let plans = plan(arguments, &out)?;
    kernel::check(plans.iter().map(|planned| &planned.scenarios[0]))?;
    claim(&out, &plans, arguments.force)?;
    let simulated = run(arguments, &plans)?;
    let grid = gather(&plans, &simulated)?;
    write_json(&out.join(FIDELITY), &grid)?;
    write_text(&out.join(MARKDOWN), &document::markdown(&grid))?;
    write_text(&out.join(REPORT), &document::page(&grid, &command(arguments))?)?;
    match arguments.json {
        true => screen::print_json(&grid)?,
        false => screen::print(&document::text(&grid, &out, &command(arguments)))?,
    }
    Ok(if interrupt::requested() { Ending::Interrupted } else { Ending::Done })
}

fn plan(arguments: &Fidelity, out: &Path) -> Result<Vec<Planned>, Failure> {
    let all = all_cells(arguments)?;
    let wanted = |name: &str| arguments.cells.as_ref().is_none_or(|part| name.contains(part));
    let example = all[0].name.clone();
    let cells: Vec<Cell> = all.into_iter().filter(|cell| wanted(&cell.name)).collect();
    if cells.is_empty() {
        let what = "no cell's name contains what --cells says".to_string();
        return Err(Failure::Usage(what, format!("write a part of a name such as {example}")));
    }
    let kernel_runs = usize::from(arguments.repeat);
    let planned = |cell: Cell| {
        let scenario = |repeat| {
            cell.scenario(repeat).map_err(|errors| match &arguments.trace {
                Some(path) => not_a_trace(path, &errors.to_string()),
                None => Failure::Internal(errors.to_string()),
            })
        };
        let repeats = 0..SIM_RUNS.max(kernel_runs) as u64;
        Ok(Planned {
            directory: out.join(&cell.name),
            scenarios: repeats.map(scenario).collect::<Result<_, _>>()?,
            kernel_runs,
            cell,
        })
    };
    cells.into_iter().map(planned).collect()
}

fn all_cells(arguments: &Fidelity) -> Result<Vec<Cell>, Failure> {
    let trace = arguments.trace.as_ref();
    let trace = trace.map(|path| load_file(path).map_err(|why| not_a_trace(path, &why)));
    let trace = trace.transpose()?;
    Ok(match (arguments.extended, arguments.quick) {
        (true, _) => extended::all(trace),
        (false, true) => cells::quick(),
        (false, false) => cells::all(),
    })
}

fn not_a_trace(path: &Path, why: &str) -> Failure {
    let what = format!("{}: {why}", path.display());
    Failure::Usage(what, "name a recorded link in Mahimahi's format".to_string())
}

/// A directory that holds something else is refused.
fn claim(out: &Path, plans: &[Planned], anew: bool) -> Result<(), Failure> {
    let known: Vec<Cell> = cells::all().into_iter().chain(extended::all(None)).collect();
    let ours = |name: &str| known.iter().any(|cell| cell.name == name);
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let foreign = !names.is_empty() && !names.iter().any(|name| name == FIDELITY || ours(name));
    if foreign && !anew {
        let what = format!("{} holds something other than cells of the grid", out.display());
        return Err(Failure::Usage(what, "write elsewhere with --out DIR".to_string()));
    }
    for planned in plans {
        let kernel = (0..planned.kernel_runs).map(|repeat| planned.at(Ground::Kernel, repeat));
        let mut runs = kernel.chain([planned.at(Ground::Sim, 0)]);
        runs.try_for_each(|run| directory::no_links(out, &run, anew))?;
    }
    fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))
}

/// Runs the simulator, and what is missing on the kernel; what each cell's
/// runs on the simulator measured.
fn run(arguments: &Fidelity, plans: &[Planned]) -> Result<Vec<Vec<OverallValues>>, Failure> {
    let simulated = plans.iter().flat_map(|planned| {
        (0..SIM_RUNS).map(move |repeat| Part { planned, ground: Ground::Sim, repeat })
    });
    let repeats = 0..usize::from(arguments.repeat);
    let real = repeats.flat_map(|repeat| {
        let missing = plans.iter().filter(move |plan| arguments.force || !plan.is_kept(repeat));
        missing.map(move |planned| Part { planned, ground: Ground::Kernel, repeat })
    });
    let real: Vec<Part<'_>> = real.collect();
    let seconds: f64 = real.iter().map(|part| part.scenario().duration.as_secs_f64()).sum();
    screen::say(&format!(
        "{} cells, {} runs of them to make on the kernel, {}.",
        plans.len(),
        real.len(),
        seconds_left(seconds + real.len() as f64 * SELF_CHECK_S)
    ));
    let parts: Vec<Part<'_>> = simulated.chain(real).collect();
    let jobs: Vec<Job<'_>> = parts.iter().map(Part::job).collect();
    let values = run_all(&jobs, arguments.jobs, |index, finished| parts[index].keep(finished))?;
    let values: Vec<Option<OverallValues>> =
        values.into_iter().take(plans.len() * SIM_RUNS).collect();
    let of_cell = |values: &[Option<OverallValues>]| values.iter().flatten().copied().collect();
    Ok(values.chunks(SIM_RUNS).map(of_cell).collect())
}

/// A run of a cell.
struct Part<'p> {
    planned: &'p Planned,
    ground: Ground,
    repeat: usize,
}

impl Part<'_> {
    fn scenario(&self) -> &Scenario {
        &self.planned.scenarios[self.repeat]
    }

    /// What is kept is kept at its end: a run of the grid is short.
    fn job(&self) -> Job<'_> {
        Job { scenario: self.scenario(), ground: self.ground, directory: None, packet_log: false }
    }

    /// Repeats on the simulator leave nothing but their measures.
    fn keep(&self, mut finished: Finished) -> Result<OverallValues, Failure> {
        if self.ground == Ground::Kernel || self.repeat == 0 {
            let directory = self.planned.at(self.ground, self.repeat);
            directory::keep(&directory, self.scenario(), &mut finished, &[])?;
        }
        Ok(overall_values(&RunView::new(&finished.records, self.scenario().warmup)))
    }
}

/// The cells that ran on both grounds.
fn gather(plans: &[Planned], simulated: &[Vec<OverallValues>]) -> Result<FidelityGrid, Failure> {
    let whole = |(planned, _): &(&Planned, &Vec<OverallValues>)| {
        planned.has(Ground::Sim, 0) && planned.has(Ground::Kernel, 0)
    };
    let cells = plans.iter().zip(simulated).filter(whole).map(|(planned, simulated)| {
        let scenario = planned.at(Ground::Kernel, 0).join(knee_record::SCENARIO);
        let scenario = quoted(&scenario.to_string_lossy());
        let command = format!("knee run {scenario} --on sim,kernel");
        let fidelity = grounds::compare(&planned.directory, &command)?;
        let fidelity = fidelity.with_repeats(&simulated[1..], &planned.on_kernel()?);
        let kernel_runs = (0..planned.kernel_runs).filter_map(|repeat| planned.verdict(repeat));
        let kernel_runs = kernel_runs.collect();
        Ok(GridCell { fidelity, kernel_runs, ..planned.cell.described() })
    });
    Ok(FidelityGrid::new(plans.len(), cells.collect::<Result<_, Failure>>()?))
}

/// The line that goes on with what is missing.
fn command(arguments: &Fidelity) -> String {
    let mut line = "knee fidelity".to_string();
    for (given, option) in [(arguments.quick, " --quick"), (arguments.extended, " --extended")] {
        line += if given { option } else { "" };
    }
    if let Some(part) = &arguments.cells {
        line += &format!(" --cells {}", quoted(part));
    }
    if let Some(trace) = &arguments.trace {
        line += &format!(" --trace {}", quoted(&trace.to_string_lossy()));
    }
    if arguments.repeat != crate::arguments::FIDELITY_REPEAT {
        line += &format!(" --repeat {}", arguments.repeat);
    }
    line
}
