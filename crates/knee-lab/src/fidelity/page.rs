//! The grid for display: text and rows, as Markdown and as a page.

use crate::error::Error;
use crate::words::{agrees, measure_words, three, verdict};
use knee_present::words::time_us;
use knee_present::{Table, Tone, number, text};
use knee_record::{Agreement, FidelityGrid, GridCell, GridMedian, JUDGED, Unit, Verdict};
use knee_report::{StudyPage, comparison_report};

const TITLE: &str = "The simulator against the kernel";
const OVER_ALL: &str = "A difference is the simulator's value minus the kernel's, each the median \
                        of its runs. A measure agrees if its difference is within the tolerance, \
                        or below two standard errors of the difference of the medians: a \
                        difference no larger than the spread between runs of one ground is not \
                        significant.";

/// Renders the grid as Markdown, for the README.
pub fn markdown(grid: &FidelityGrid) -> String {
    let tables = [
        medians(grid),
        cells("All cells", grid.cells.iter()),
        cells("The worst cells", worst_cells(grid)),
        invalid(grid),
    ];
    let tables = tables.iter().filter(|table| !table.rows.is_empty()).map(markdown_table);
    format!("# {TITLE}\n\n{}\n{}", headline(grid), tables.collect::<String>())
}

/// Renders the page; `command` is the command that repeats the grid.
///
/// # Errors
/// A defective template.
pub fn page(grid: &FidelityGrid, command: &str) -> Result<String, Error> {
    let about = headline(grid);
    let study = StudyPage {
        name: "fidelity",
        title: TITLE,
        source: "",
        about: &about,
        conclusion: "",
        lead: None,
        claims: &[],
        on_kernel: Vec::new(),
        runs: Vec::new(),
        command,
    };
    let mut tables = vec![medians(grid), cells("The worst cells", worst_cells(grid))];
    tables.push(cells("All cells", grid.cells.iter()));
    tables.extend(Some(invalid(grid)).filter(|table| !table.rows.is_empty()));
    Ok(comparison_report(&[(study, tables)], TITLE, command)?)
}

/// Summarises the result in a few sentences.
pub fn headline(grid: &FidelityGrid) -> String {
    let sound = grid.cells.iter().filter(|cell| cell.within().is_some());
    let degraded = sound.filter(|cell| cell.kernel_runs.contains(&Verdict::Degraded)).count();
    format!(
        "{} of {} cells agree, on Linux {}: {} are within the tolerances, {} others differ by \
         less than the noise of their runs. Cells with degraded runs: {}; with only invalid runs: \
         {}; not run: {}.",
        grid.within,
        grid.compared,
        grid.kernel_release.as_deref().unwrap_or("of unknown release"),
        grid.within_tolerance,
        grid.within - grid.within_tolerance,
        degraded,
        grid.invalid.len(),
        grid.planned - grid.cells.len(),
    )
}

/// The cells with the largest differences.
fn worst_cells(grid: &FidelityGrid) -> impl Iterator<Item = &GridCell> {
    grid.worst.iter().filter_map(|name| grid.cell(name))
}

/// Table of the medians over all cells.
pub fn medians(grid: &FidelityGrid) -> Table {
    let figures = ["cells", "agree", "median, absolute", "median, signed"].map(number);
    Table::new(std::iter::once(text("measure")).chain(figures))
        .called("medians")
        .titled("Over all cells")
        .noted(OVER_ALL)
        .with_rows(grid.medians.iter().map(median_row))
}

fn cells<'g>(title: &str, cells: impl Iterator<Item = &'g GridCell>) -> Table {
    let figures = ["goodput sim", "kernel", "difference", "RTT sim", "kernel", "probe"];
    let figures = figures.into_iter().chain(["difference", "retransmitted sim", "kernel"]);
    let figures = figures.chain(["difference"]).map(number);
    let heads = std::iter::once(text("cell")).chain(figures);
    Table::new(heads.chain(["agrees", "run"].map(text)))
        .titled(title)
        .noted(
            "RTT: median of the smoothed RTT; probe: median RTT of an independent probe during \
             the kernel's first run. After ±: two standard errors of the difference. \"by \
             noise\": a difference is beyond its tolerance, but not beyond those errors.",
        )
        .with_rows(cells.map(cell_row))
}

fn invalid(grid: &FidelityGrid) -> Table {
    Table::new(["cell", "why"].map(text))
        .titled("Cells with only invalid runs")
        .noted("The host was too busy. The same command repeats them.")
        .with_rows(invalid_rows(grid))
}

/// Cells with invalid runs only, and the reasons.
pub fn invalid_rows(grid: &FidelityGrid) -> Vec<[String; 2]> {
    let cells = grid.invalid.iter().filter_map(|name| grid.cell(name));
    cells.map(|cell| [cell.name.clone(), verdict(&cell.fidelity.kernel)]).collect()
}

fn median_row(median: &GridMedian) -> [String; 5] {
    let ratio = median.measure == "retransmit_ratio_total";
    let unit = if ratio { "points" } else { "%" };
    [
        measure_words(&median.measure).to_string(),
        median.cells.to_string(),
        median.within.to_string(),
        format!("{:.2} {unit}", median.median_size * 100.0),
        format!("{:+.2} {unit}", median.median * 100.0),
    ]
}

/// Narrow table of the cells with the largest differences: differences only.
pub fn worst(grid: &FidelityGrid) -> Table {
    let figures = ["goodput", "RTT", "retransmitted"].map(number);
    let heads = ["agrees", "cell"].map(text).into_iter().chain(figures).chain([text("run")]);
    let mut table = Table::new(heads).called("worst cells");
    for cell in worst_cells(grid) {
        let tone = if cell.within() == Some(true) { Tone::Neutral } else { Tone::Bad };
        table.row_in(tone, worst_row(cell));
    }
    table
}

fn worst_row(cell: &GridCell) -> [String; 6] {
    let [goodput, rtt, again] = JUDGED.map(|measure| {
        let [_, _, difference] = noisy_three(cell.fidelity.overall(measure));
        difference
    });
    [outcome(cell), cell.name.clone(), goodput, rtt, again, runs(cell)]
}

fn cell_row(cell: &GridCell) -> Vec<String> {
    let probe = cell.fidelity.kernel.probes.first().and_then(|probe| probe.rtt_p50_us);
    let mut row = vec![cell.name.clone()];
    row.extend(noisy_three(cell.fidelity.overall("goodput")));
    let [sim, kernel, off] = noisy_three(cell.fidelity.overall("smoothed_rtt_p50"));
    row.extend([sim, kernel, time_us(probe), off]);
    row.extend(noisy_three(cell.fidelity.overall("retransmit_ratio_total")));
    row.push(outcome(cell));
    row.push(runs(cell));
    row
}

/// The difference with the noise of the runs.
fn noisy_three(one: Option<&Agreement>) -> [String; 3] {
    let [sim, kernel, mut difference] = three(one);
    if let Some((one, noise)) = one.and_then(|one| Some((one, one.noise?))) {
        let part = match (one.unit, one.kernel) {
            (Unit::Fraction, _) => Some(noise),
            (_, Some(kernel)) if kernel != 0.0 => Some(noise / kernel),
            _ => None,
        };
        if let Some(part) = part {
            difference += &format!(" ± {:.1}", part * 100.0);
        }
    }
    [sim, kernel, difference]
}

fn outcome(cell: &GridCell) -> String {
    match (cell.within(), cell.within_tolerance()) {
        (Some(true), Some(false)) => "by noise".to_string(),
        (within, _) => agrees(within).to_string(),
    }
}

/// Number of the kernel's runs by verdict.
fn runs(cell: &GridCell) -> String {
    let verdicts = [Verdict::Valid, Verdict::Degraded, Verdict::Invalid];
    let counts = verdicts.map(|verdict| {
        let count = cell.kernel_runs.iter().filter(|one| **one == verdict).count();
        (count > 0).then(|| format!("{count} {verdict}"))
    });
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn markdown_table(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let heads = line(table.heads.iter().map(|head| head.text.as_str()).collect());
    let rule = table.heads.iter().map(|head| if head.numeric { "---:" } else { "---" });
    let rows =
        table.rows.iter().map(|row| line(row.cells.iter().map(|c| c.shown.as_str()).collect()));
    let note = if table.note.is_empty() { String::new() } else { format!("{}\n\n", table.note) };
    let rows = rows.collect::<String>();
    format!("\n## {}\n\n{note}{heads}{}{rows}", table.title, line(rule.collect()))
}
