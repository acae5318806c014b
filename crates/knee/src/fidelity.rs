//! `knee fidelity`.

use crate::arguments::Fidelity;
use crate::failure::{Ending, Failure};
use crate::laboratory::{lab, watched};
use crate::print::Print;
use crate::progress::seconds_left;
use crate::screen;
use knee_lab::directory::{DEFAULT, FIDELITY, MARKDOWN, REPORT};
use knee_lab::fidelity::page::{headline, invalid_rows, medians, worst};
use knee_lab::{Cells, Grid, GridSettings};
use knee_present::Document;
use knee_record::FidelityGrid;
use std::path::Path;

/// Runs the missing cells of the grid; writes and prints the results.
pub fn fidelity(arguments: &Fidelity) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| Path::new(DEFAULT).join("fidelity"));
    let settings = GridSettings {
        cells: match arguments {
            Fidelity { extended: true, trace, .. } => Cells::Extended(trace.clone()),
            Fidelity { quick: true, .. } => Cells::Quick,
            Fidelity { reordering: true, .. } => Cells::Reordering,
            _ => Cells::All,
        },
        named: arguments.cells.clone(),
        kernel_runs: arguments.repeat,
        anew: arguments.force,
        out: out.clone(),
    };
    let grid = Grid::new(settings, &lab.grounds)?;
    grid.claim()?;
    let (runs, seconds) = grid.to_run();
    screen::say(&format!(
        "{} cells, {runs} runs on the kernel, {}.",
        grid.cells(),
        seconds_left(seconds)
    ));
    let compared = watched(&lab, || lab.fidelity(&grid))?;
    let document = document(&compared, &out, &grid.command());
    document.print(arguments.print.format(), &compared)?;
    Ok(if lab.is_stopped() { Ending::Interrupted } else { Ending::Done })
}

/// Medians, worst cells, and invalid cells.
fn document(grid: &FidelityGrid, out: &Path, command: &str) -> Document {
    let invalid = invalid_rows(grid).into_iter();
    let invalid: String = invalid.map(|row| format!("invalid  {}: {}\n", row[0], row[1])).collect();
    let at = |name: &str| out.join(name).display().to_string();
    let end = format!(
        "\n{invalid}report   {}\ntable    {}\ndata     {}\nrepeat   {command}\n",
        at(REPORT),
        at(MARKDOWN),
        at(FIDELITY),
    );
    let document = Document::default().said(headline(grid)).words("\n").table(medians(grid));
    document.words("\nDifferences of the worst cells\n").table(worst(grid)).words(end)
}
