//! `knee fidelity`: a fixed grid of scenarios on the simulator and on the
//! kernel.
//!
//! Runs on the kernel take real time, so those that are sound are kept and
//! not made again; the simulator's are always made again: after a change of
//! the simulator the same command says what it brought. They are many, for
//! what their own repeats do not agree on proves nothing against the model.

mod cells;
mod document;

use crate::arguments::Fidelity;
use crate::directory::{self, FIDELITY, MARKDOWN, REPORT};
use crate::failure::{Ending, Failure, cannot_write};
use crate::progress::{SELF_CHECK_S, seconds_left};
use crate::run::quoted;
use crate::workers::{Finished, Job, run_all};
use crate::{grounds, interrupt, kernel, screen};
use cells::Cell;
use knee_record::{
    FidelityGrid, GridCell, OverallValues, RunView, Verdict, overall_values, read_manifest,
    read_summary, write_json, write_text,
};
use knee_scenario::{Ground, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs of a cell on the simulator beside the one that is kept.
const REPEATS: u64 = 10;

/// A cell with its scenario and its place.
struct Planned {
    cell: Cell,
    scenario: Scenario,
    /// The same but for chance.
    repeats: Vec<Scenario>,
    directory: PathBuf,
}

impl Planned {
    fn at(&self, ground: Ground) -> PathBuf {
        self.directory.join(grounds::word(ground))
    }

    /// The run on a ground is there to its end, and is of this scenario.
    fn has(&self, ground: Ground) -> bool {
        let directory = self.at(ground);
        let scenario = fs::read_to_string(directory.join(knee_record::SCENARIO));
        read_manifest(&directory).is_ok_and(|manifest| !manifest.interrupted)
            && scenario.is_ok_and(|text| text == self.scenario.resolved)
    }

    /// The kernel's run need not be made again: it proves something.
    fn is_kept(&self) -> bool {
        let summary = || read_summary(&self.at(Ground::Kernel));
        self.has(Ground::Kernel) && summary().is_ok_and(|run| run.verdict != Verdict::Invalid)
    }
}

/// Runs what is missing of the grid, writes and prints what came out.
pub fn fidelity(arguments: &Fidelity) -> Result<Ending, Failure> {
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| Path::new(directory::DEFAULT).join("fidelity"));
    let plans = plan(arguments, &out)?;
    kernel::check(plans.iter().map(|planned| &planned.scenario))?;
    claim(&out, arguments.force)?;
    let repeats = run(arguments, &plans)?;
    let grid = gather(&plans, &repeats)?;
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
    let cells = if arguments.quick { cells::quick() } else { cells::all() };
    let wanted = |name: &str| arguments.cells.as_ref().is_none_or(|part| name.contains(part));
    let cells: Vec<Cell> = cells.into_iter().filter(|cell| wanted(&cell.name())).collect();
    if cells.is_empty() {
        let what = "no cell's name contains what --cells says".to_string();
        let example = cells::all().remove(0).name();
        return Err(Failure::Usage(what, format!("write a part of a name such as {example}")));
    }
    let planned = |cell: Cell| {
        let scenario =
            |repeat| cell.scenario(repeat).map_err(|errors| Failure::Internal(errors.to_string()));
        Ok(Planned {
            directory: out.join(cell.name()),
            cell,
            scenario: scenario(0)?,
            repeats: (1..=REPEATS).map(scenario).collect::<Result<_, _>>()?,
        })
    };
    cells.into_iter().map(planned).collect()
}

/// A directory that holds something else is refused.
fn claim(out: &Path, anew: bool) -> Result<(), Failure> {
    let ours = |name: &str| cells::all().iter().any(|cell| cell.name() == name);
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let foreign = !names.is_empty() && !names.iter().any(|name| name == FIDELITY || ours(name));
    if foreign && !anew {
        let what = format!("{} holds something other than cells of the grid", out.display());
        return Err(Failure::Usage(what, "write elsewhere with --out DIR".to_string()));
    }
    fs::create_dir_all(out).map_err(|error| cannot_write(out, &error))
}

/// Runs the simulator, and what is missing on the kernel; what each cell's
/// repeats measured.
fn run(arguments: &Fidelity, plans: &[Planned]) -> Result<Vec<Vec<OverallValues>>, Failure> {
    let missing: Vec<&Planned> =
        plans.iter().filter(|planned| arguments.force || !planned.is_kept()).collect();
    let seconds: f64 = missing.iter().map(|planned| planned.scenario.duration.as_secs_f64()).sum();
    let whole = seconds + missing.len() as f64 * SELF_CHECK_S;
    screen::say(&format!(
        "{} cells, {} of them to run on the kernel, {}.",
        plans.len(),
        missing.len(),
        seconds_left(whole)
    ));
    let simulated = plans.iter().map(|planned| Part::Kept(planned, Ground::Sim));
    let repeats = plans.iter().flat_map(|planned| planned.repeats.iter().map(Part::Repeat));
    let real = missing.into_iter().map(|planned| Part::Kept(planned, Ground::Kernel));
    let parts: Vec<Part<'_>> = simulated.chain(repeats).chain(real).collect();
    let jobs: Vec<Job<'_>> = parts.iter().map(Part::job).collect();
    let values = run_all(&jobs, arguments.jobs, |index, finished| parts[index].keep(finished))?;
    // In the order of the parts: one cell's repeats after the other's.
    let values = values.into_iter().skip(plans.len()).take(plans.len() * REPEATS as usize);
    let values: Vec<Option<OverallValues>> = values.map(Option::flatten).collect();
    let of_cell = |values: &[Option<OverallValues>]| values.iter().flatten().copied().collect();
    Ok(values.chunks(REPEATS as usize).map(of_cell).collect())
}

/// A run of a cell.
enum Part<'p> {
    /// One that leaves its records.
    Kept(&'p Planned, Ground),
    /// One on the simulator that leaves nothing but its measures.
    Repeat(&'p Scenario),
}

impl Part<'_> {
    fn job(&self) -> Job<'_> {
        let (scenario, ground) = match self {
            Part::Kept(planned, ground) => (&planned.scenario, *ground),
            Part::Repeat(scenario) => (*scenario, Ground::Sim),
        };
        Job { scenario, ground, packet_log: None }
    }

    fn keep(&self, finished: Finished) -> Result<Option<OverallValues>, Failure> {
        match self {
            Part::Kept(planned, ground) => {
                directory::keep(&planned.at(*ground), &planned.scenario, &finished, &[])?;
                Ok(None)
            }
            Part::Repeat(scenario) => {
                let view = RunView::new(&finished.records, scenario.warmup);
                Ok(Some(overall_values(&view)))
            }
        }
    }
}

/// The cells of which both runs are there.
fn gather(plans: &[Planned], repeats: &[Vec<OverallValues>]) -> Result<FidelityGrid, Failure> {
    let whole = |(planned, _): &(&Planned, &Vec<OverallValues>)| {
        planned.has(Ground::Sim) && planned.has(Ground::Kernel)
    };
    let cells = plans.iter().zip(repeats).filter(whole).map(|(planned, repeats)| {
        let scenario = planned.at(Ground::Kernel).join(knee_record::SCENARIO);
        let scenario = quoted(&scenario.to_string_lossy());
        let command = format!("knee run {scenario} --on sim,kernel");
        let fidelity = grounds::compare(&planned.directory, &command)?;
        let fidelity = fidelity.with_repeats(repeats);
        Ok(GridCell { fidelity, ..planned.cell.described() })
    });
    Ok(FidelityGrid::new(plans.len(), cells.collect::<Result<_, Failure>>()?))
}

fn command(arguments: &Fidelity) -> String {
    let quick = if arguments.quick { " --quick" } else { "" };
    let cells = arguments.cells.iter();
    let cells = cells.map(|part| format!(" --cells {}", quoted(part)));
    format!("knee fidelity{quick}{}", cells.collect::<String>())
}
