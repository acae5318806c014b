//! A scenario on the simulator and on the kernel: what both gave, side by
//! side.

use crate::command;
use crate::directory::{FIDELITY, REPORT};
use crate::error::Error;
use crate::ground::{KERNEL, SIMULATOR};
use crate::words::{agrees, difference, measure_words, time_us, verdict};
use knee_record::{
    Agreement, ClaimOutcome, Fidelity, SavedRun, read_fidelity, read_run, write_json, write_text,
};
use knee_report::{Comparison, ComparisonHead, RunPage, StudyPage, comparison_report};
use std::path::Path;

/// The two that are compared; also names of their directories.
const BOTH: [&str; 2] = [SIMULATOR, KERNEL];

/// Heads of the table of measures; `>` before those of figures.
pub const HEADS: [&str; 7] =
    ["agrees", "measure", "of", ">sim", ">kernel", ">difference", "tolerance"];

/// Heads of the table of claims on the simulator and on another ground.
pub fn claim_heads(ground: &str) -> [&str; 7] {
    ["id", "claim", "expected", SIMULATOR, "measured", ground, "measured"]
}

/// A ground as a sentence has it after "the".
pub fn noun(ground: &str) -> String {
    if ground == KERNEL { ground.to_string() } else { format!("ground {ground}") }
}

/// Whether both grounds left a run below a directory.
pub fn are_in(directory: &Path) -> bool {
    BOTH.iter().all(|ground| directory.join(ground).join(knee_record::MANIFEST).is_file())
}

/// Compares the runs below a directory; writes `fidelity.json` and the page
/// of both, which holds the line that repeats them.
///
/// # Errors
/// That a run cannot be read, or the comparison not be written.
pub fn compare(directory: &Path, command: &str) -> Result<Fidelity, Error> {
    let [sim, kernel] = BOTH.map(|ground| read_run(&directory.join(ground)));
    let (sim, kernel) = (sim?, kernel?);
    let fidelity = Fidelity::new(&sim, &kernel);
    write_json(&directory.join(FIDELITY), &fidelity)?;
    let page = page(directory, &fidelity, [&sim, &kernel], command)?;
    write_text(&directory.join(REPORT), &page)?;
    Ok(fidelity)
}

/// Reads what [`compare`] wrote.
pub(crate) fn read(directory: &Path) -> Result<Fidelity, Error> {
    Ok(read_fidelity(&directory.join(FIDELITY))?)
}

/// A row of the table of measures.
pub fn row(one: &Agreement) -> [String; 7] {
    let never = |value: Option<f64>| one.unit.show(value.unwrap_or(f64::INFINITY));
    [
        agrees(one.within).to_string(),
        measure_words(&one.measure).to_string(),
        if one.of == "*" { "all flows".to_string() } else { one.of.clone() },
        never(one.sim),
        never(one.kernel),
        difference(one),
        one.tolerance.clone(),
    ]
}

/// The tables of the page: measures, then what came of the claims.
fn tables(fidelity: &Fidelity, runs: [&SavedRun; 2]) -> Vec<Comparison> {
    let probes = fidelity.kernel.probes.iter();
    let probes: Vec<String> = probes
        .map(|probe| format!("{} over path {}", time_us(probe.rtt_p50_us), probe.path))
        .collect();
    let probes = match probes.is_empty() {
        true => String::new(),
        false => format!(
            " Beside the flows, an independent probe measured a median RTT of {}.",
            probes.join(", ")
        ),
    };
    let release = fidelity.kernel_release.as_deref().unwrap_or("of unknown release");
    let note = format!(
        "Simulator: {}. Linux {release}: {}. A difference is the simulator's value less the \
         kernel's.{probes}",
        verdict(&fidelity.sim),
        verdict(&fidelity.kernel),
    );
    let measures = Comparison {
        title: "The simulator against the kernel".to_string(),
        note,
        heads: ComparisonHead::all(&HEADS),
        rows: fidelity.measures.iter().map(|one| row(one).to_vec()).collect(),
    };
    let [sim, kernel] = runs.map(|run| &run.summary.claims);
    let claims = claims_table(KERNEL, sim.iter().zip(kernel));
    std::iter::once(measures).chain((!claims.rows.is_empty()).then_some(claims)).collect()
}

/// Claims with their outcome on the simulator and on another ground.
pub(crate) fn claims_table<'c>(
    ground: &str,
    claims: impl Iterator<Item = (&'c ClaimOutcome, &'c ClaimOutcome)>,
) -> Comparison {
    Comparison {
        title: match ground {
            KERNEL => "Claims on both grounds".to_string(),
            other => format!("Claims on sim and {other}"),
        },
        note: String::new(),
        heads: ComparisonHead::all(&claim_heads(ground)),
        rows: claims.map(|(sim, kernel)| claim_row(sim, kernel).to_vec()).collect(),
    }
}

/// A row of the table of claims.
pub fn claim_row(sim: &ClaimOutcome, other: &ClaimOutcome) -> [String; 7] {
    [
        sim.id.clone(),
        sim.says.clone(),
        sim.expected.clone(),
        sim.outcome.to_string(),
        sim.measured_text.clone(),
        other.outcome.to_string(),
        other.measured_text.clone(),
    ]
}

fn page(
    directory: &Path,
    fidelity: &Fidelity,
    runs: [&SavedRun; 2],
    command: &str,
) -> Result<String, Error> {
    let commands = BOTH.map(|ground| {
        let scenario = directory.join(ground).join(knee_record::SCENARIO);
        format!("knee run {} --on {ground}", command::quoted(&scenario.to_string_lossy()))
    });
    let pages = runs.iter().zip(BOTH).zip(&commands).map(|((run, name), command)| RunPage {
        name,
        summary: &run.summary,
        records: &run.records,
        answers: None,
        scenario: &run.scenario,
        command,
    });
    let study = StudyPage {
        name: "grounds",
        title: &fidelity.name,
        source: "",
        about: "",
        conclusion: "",
        claims: &[],
        on_kernel: Vec::new(),
        runs: pages.collect(),
        command,
    };
    let tables = tables(fidelity, runs);
    Ok(comparison_report(&[(study, tables)], &fidelity.name, command)?)
}
